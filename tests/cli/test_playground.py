"""The Python of the playground, on this machine: commands in this process, what is progress, the explorer."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
COUNTING = """spec counting

var n : 0..100000 = 0

action up():
    require n < 100000
    n' = n + 1
"""
JUGS = str(ROOT / "spec/examples/die_hard.spec")


def loaded(name: str) -> ModuleType:
    """A module of the playground, beside which there are others with names of libraries."""
    spec = importlib.util.spec_from_file_location(f"playground_{name}", ROOT / f"playground/python/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def playground() -> Iterator[ModuleType]:
    module = loaded("playground")
    words = sys.argv
    yield module
    sys.argv = words


def test_a_command_gives_its_code_and_its_output(playground: ModuleType, tmp_path: Path):
    page = tmp_path / "report.html"
    done = playground.command(["run", JUGS, "--engine", "reference", "--json", f"--html={page}"])
    report = json.loads(done["out"])
    assert (done["code"], report["verdict"], report["states_distinct"]) == (10, "violated", 14)
    assert "never_four" in page.read_text()
    assert playground.command(["run", JUGS, "--model=nine"])["code"] == 30
    assert playground.command(["walk"])["code"] == 2


def test_a_search_tells_its_progress(playground: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("specchk.search.engine.REPORT_EVERY_S", 0)  # however fast this machine is
    counting = tmp_path / "counting.spec"
    counting.write_text(COUNTING)
    told: list[str] = []
    words = ["run", str(counting), "--engine", "reference", "--json", "--max-states", "4000"]
    done = playground.command(words, told.append)
    assert (done["code"], done["errors"], told[-1]) == (20, "", "")
    assert all(re.match(r"\d+ states \(\d+/s\), depth \d+", line) for line in told[:-1])
    assert len(told) > 1


def test_a_check_has_the_names_of_what_can_be_run(playground: ModuleType, tmp_path: Path):
    names = playground.check(JUGS)["names"]
    assert names == {
        "models": ["solve", "all_states"], "scenarios": ["by_hand"],
        "properties": ["never_four", "four"], "witnesses": ["four"],
    }  # fmt: skip
    wrong = tmp_path / "wrong.spec"
    wrong.write_text(Path(JUGS).read_text().replace("small", "smal", 1))
    found = playground.check(str(wrong))
    assert found["names"] is None
    assert {error["code"] for error in found["report"]["diagnostics"]} == {"S201"}


def test_the_explorer_answers_as_its_server_does():
    module = loaded("explorer")
    explorer = module.Explorer(JUGS, "solve")
    status, text = explorer.ask("position", json.dumps({"path": [0]}))
    assert (status, len(json.loads(text)["enabled"])) == (200, 6)
    status, text = explorer.ask("position", json.dumps({"path": [0, 99]}))
    assert (status, json.loads(text)) == (404, {"error": "this path is not a behaviour of the spec"})
    assert "nine" in module.Explorer(JUGS, "nine").error
