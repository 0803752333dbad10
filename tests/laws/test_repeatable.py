"""The tests are the same everywhere: no chance, clock or earlier run decides what they try."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from hang import HANG_S
from laws.sources import ROOT, last_name

FILES = sorted((ROOT / "tests").rglob("*.py"))
OWN = {"conftest.py", "test_repeatable.py"}  # these are about it
DRAWN = """
import hypothesis
from hypothesis import given, strategies as st

@hypothesis.settings(max_examples=60)
@given(st.integers(), st.text(), st.sets(st.sampled_from("abcdef")), st.floats())
def test_drawn(a, b, c, d):
    with open("drawn.txt", "a") as file:
        print(ascii((a, b, sorted(c), d)), file=file)
"""
WRONG = """
from hypothesis import given, strategies as st

@given(st.lists(st.integers(0, 99)))
def test_wrong(drawn):
    assert len(drawn) < 3, drawn
"""


def run(folder: Path, text: str, *options: str, hashes: str = "0", more: str = "") -> tuple[str, str]:
    """The output of pytest for one test file beside these tests' conftest, and the drawn examples."""
    folder.mkdir(exist_ok=True)
    shutil.copy(ROOT / "tests" / "conftest.py", folder)
    (folder / "test_it.py").write_text(f"{more}{text}")
    (folder / "drawn.txt").write_text("")
    (folder / "constants.py").write_text("".join(f"X{n} = {n * 1001}, '{n}', {n}.5\n" for n in range(60)))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environment |= {"PYTHONHASHSEED": hashes, "CI": "1" if hashes == "1" else ""}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-qp", "no:cacheprovider", "-p", "no:xdist", "test_it.py", *options],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    return done.stdout, (folder / "drawn.txt").read_text()


def test_the_same_examples_are_drawn_everywhere(tmp_path: Path) -> None:
    """On a build server and elsewhere, whatever is loaded, in any place, in any order of sets."""
    constants = "import sys; sys.path.append('.'); import constants\n"
    found = [run(tmp_path / "one", DRAWN), run(tmp_path / "tests", DRAWN, hashes="1", more=constants)]
    assert all("1 passed" in printed for printed, _ in found)
    assert found[0][1].count("\n") >= 60
    assert {drawn for _, drawn in found} == {found[0][1]}


def test_a_seed_draws_others_and_draws_them_again(tmp_path: Path) -> None:
    """New examples are tried by night, and can be repeated."""
    asked = ((), ("--random-seed=5",), ("--random-seed=5",), ("--random-seed=6",))
    found = [run(tmp_path / "one", DRAWN, *options)[1] for options in asked]
    assert found[1] == found[2]
    assert len(set(found)) == 3


@pytest.mark.parametrize("options", [(), ("--random-seed=77",)])
def test_a_failure_is_repeated_by_its_line(options: tuple[str, ...], tmp_path: Path) -> None:
    """The line of the summary runs the same test on the same examples, and it fails again."""
    printed, _ = run(tmp_path / "one", WRONG, *options)
    (line,) = re.findall(r"^repeat: (.*)$", printed, re.MULTILINE)
    assert line.endswith(" ".join(["-m pytest test_it.py::test_wrong", *options]))
    again = subprocess.run(
        line, shell=True, cwd=tmp_path / "one", capture_output=True, text=True, check=False, timeout=HANG_S
    )
    # where CI is set, pytest's summary prints the example a second time
    examples = [set(re.findall(r"drawn=(\[.*\])", text)) for text in (printed, again.stdout)]
    assert examples[0]
    assert examples[0] == examples[1]


def test_no_example_is_kept_between_runs() -> None:
    """Neither profile has a database, nor has a test; and loaded modules provide no constants to draw."""
    assert settings().database is None
    for name in ("same", "random"):
        assert settings.get_profile(name).database is None
        assert settings.get_profile(name).deadline is None
    assert settings.get_profile("same").derandomize
    assert not settings.get_profile("random").derandomize
    assert not providers.is_local_module_file(str(ROOT / "impl" / "replog" / "core" / "broker" / "leader.py"))
    assert not len(providers._get_local_constants())


def test_no_test_has_a_profile_a_clock_or_chance_of_its_own() -> None:
    """A seed, a deadline or a database in a decorator, `random.random()`: each would decide alone."""
    found = {f"{path.name}:{what}" for path in FILES if path.name not in OWN for what in _own_way(path)}
    assert not found


def _own_way(path: Path) -> Iterator[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    is_module = any(isinstance(one, ast.Import) and "random" in {a.name for a in one.names} for one in nodes)
    for node in nodes:
        if isinstance(node, ast.Call):
            # The names below have one dot at most; the text of each longer call would take seconds.
            is_short = isinstance(getattr(node.func, "value", node.func), ast.Name)
            name = ast.unparse(node.func) if is_short else ""
            if is_module and name.startswith("random.") and not name.startswith("random.Random"):
                yield f"{node.lineno} {name}() is anybody's chance"
            keys = {key.arg: key.value for key in node.keywords}
            if name == "settings":
                deadline = keys.get("deadline")
                if {"database", "derandomize"} & set(keys) or (
                    deadline is not None and ast.unparse(deadline) != "None"
                ):
                    yield f"{node.lineno} {ast.unparse(node)}"
            if name in ("Random", "random.Random", "seed", "settings.load_profile") and not node.args:
                yield f"{node.lineno} {name}() without a seed"


# What waits a while, or has a limit in seconds, with the reason why no verdict depends on how long it is.
WHILES = {
    "cluster.py: time.sleep(0.02)": "between two looks at what must come; the end is a hang",
    "test_checkpoints.py: time.sleep(0.01)": "between two looks at a search that runs, or the test fails",
    "stubborn.py: time.sleep(LONG_S)": "a program that hangs, which the test kills",
    "test_adapter.py: time.sleep(0.05)": "between two looks at a process that ends; the end is a hang",
    "test_scarcity.py: time.sleep(0.05)": "between two looks at a process that ends; the end is a hang",
    "small_client.py: timeout=1000": "a field of a request; the broker answers at once",
    "small_client.py: timeout=5000": "a field of a request; the broker answers at once",
    "test_claims.py: time.sleep(0.01)": "between two looks at a process that was ended",
    "test_claims.py: patience_s=0.1": "who waits for a mark that nobody removes waits for nothing",
    "test_concrete.py: max_seconds=3600": "reached by a clock that the test sets",
    "test_faults.py: time.sleep(random.random() * 0.005)": "killed at any moment, it holds",
    "test_interrupts.py: time.sleep(wait_ms / 1000)": "interrupted at any moment, it prints no traceback",
    "test_hangs.py: time.sleep(3600)": "a call that hangs, which the watch ends",
    "test_limits.py: max_seconds=1e-09": "over when it begins",
    "test_server.py: seconds=2": "work that never ends by itself is ended, whenever that is",
    "test_suggest.py: max_seconds=1e-09": "over when it begins",
    "test_walks.py: max_seconds=0.05": "10 ** 9 steps take longer anywhere",
    "test_walks.py: max_seconds=3600": "reached by a clock that the test sets",
    "test_bmc.py: query_seconds=5.0": "what a solver gives up on is not compared",
    "test_prove.py: query_seconds=0.001": "nothing answers the question, and others may go unanswered",
    "test_prove.py: query_seconds=5.0": "what it gives up on is not proved, and not compared",
    "test_command.py: max_seconds=0.05": "work of 0.4 s is not disturbed by it, however late it comes",
    "test_watch.py: max_seconds=0.05": "work that never ends by itself is ended, whenever that is",
    "test_watch.py: max_seconds=3600": "reached by a clock that the test sets",
    "test_watch.py: time.sleep(0.7)": "a limit that waits does not come, however long it takes",
    "test_records.py: timeout=60000": "of a request, in milliseconds; its end is a hang",
    "zoned.py: max_seconds=20": "a search without horizons that ends early is not compared",
}
SECONDS = {"timeout", "seconds", "max_seconds", "query_seconds", "patience_s", "last_begins"}


def test_no_verdict_depends_on_how_long_something_takes() -> None:
    """A sleep in place of an event, or a limit that a busy machine exceeds, fails now and then."""
    found = {f"{path.name}: {what}" for path in FILES if path.name not in OWN for what in _whiles(path)}
    assert found == set(WHILES)


def _whiles(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            if last_name(node.func) == "sleep" and ast.unparse(node.func) in ("sleep", "time.sleep"):
                yield ast.unparse(node)
            for key in node.keywords:
                if key.arg in SECONDS and isinstance(key.value, ast.Constant) and key.value.value:
                    yield f"{key.arg}={key.value.value}"


def test_the_parts_of_the_suite_are_there() -> None:
    """A renamed file must be renamed in the list of a part."""
    text = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    values = {node.targets[0].id: ast.literal_eval(node.value)
              for node in ast.parse(text).body
              if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
              and node.targets[0].id in ("AGREEMENT", "SYSTEM")}  # fmt: skip
    assert set(values) == {"AGREEMENT", "SYSTEM"}
    assert all((ROOT / "tests" / name).exists() for names in values.values() for name in names)
