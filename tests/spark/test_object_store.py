"""Ledgers, exports, recordings and tables in an object store, by URI."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from export.stores import environ_of, object_store
from hang import HANG_S
from spark.coins import RIGHT, WRONG
from spark.small import SPEC
from specchk.cli.sql import command as sql
from specchk.export.places import storage_at

KIP320 = str(SPEC / "kafka" / "kip320.spec")
SPARK = ("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.memory=512m")
STATES = "select * from states order by id"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with object_store(tmp_path_factory.mktemp("store") / "log") as found:
        yield found


@pytest.fixture
def store(server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    return server


def reported(store: dict[str, str], *line: str) -> tuple[int, Any]:
    """Exit code and report of a command in its own process, whose executors have its environment."""
    done = subprocess.run(
        [sys.executable, "-m", "specchk", *line, "--json", *SPARK], capture_output=True, text=True,
        check=False, timeout=HANG_S, env=environ_of(store),
    )  # fmt: skip
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def answer(place: str, text: str) -> Any:
    found = CliRunner().invoke(sql, [place, text, "--json"])
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)["rows"]


@pytest.mark.slow
def test_a_search_is_resumed_from_a_store_and_exported_to_one(store: dict[str, str], tmp_path: Path) -> None:
    """A driver that had a budget, then another one; slices by the shuffle's tasks, too; the native answer."""
    line = ("run", KIP320, "--engine", "spark", "--handover", "10", "--partitions", "3")
    ledger = ("--ledger", "s3a://bucket/L")
    code, report = reported(store, *line, *ledger, "--max-states", "1000")
    assert (code, report["verdict"]) == (20, "inconclusive")
    code, report = reported(store, *line, *ledger, "--resume", "--export", "s3://bucket/E")
    assert (code, report["verdict"], report["engine"]) == (0, "holds", "spark")
    stored = storage_at("s3://bucket/L")
    assert stored.file_names("claims") == []
    native = (sys.executable, "-m", "specchk", "run", KIP320, "--engine", "native", "--json")
    alone = json.loads(
        subprocess.run([*native, "--export", str(tmp_path / "N")], capture_output=True, check=True).stdout
    )
    for name in ("states_distinct", "coverage", "depth"):
        assert report[name] == alone[name]
    assert answer("s3://bucket/E", STATES) == answer(str(tmp_path / "N"), STATES)


@pytest.mark.slow
def test_recordings_of_a_store_are_validated_into_tables_there(store: dict[str, str], bank: Path) -> None:
    """By executors, which list and read them, one of an odd name included; the report of one process."""
    stored = storage_at("s3://bucket/in")
    for name, text in (("a b.ndjson", RIGHT), ("wrong.ndjson", WRONG)):
        stored.write(name, [text.encode()])
        (bank / "in" / name).write_text(text)
    line = ("validate", str(bank / "tracing.py"), "--partial")
    code, report = reported(
        store, *line[:2], "s3://bucket/in", *line[2:], "--master", "local[2]", "--tables", "s3://bucket/T"
    )
    alone = subprocess.run(
        [sys.executable, "-m", "specchk", *line[:2], str(bank / "in"), *line[2:], "--json"],
        capture_output=True,
        check=False,
    )
    assert code == alone.returncode
    here = json.loads(alone.stdout)
    for name in ("events", "verdict"):
        assert report[name] == here[name]
    assert len(answer("s3://bucket/T", "select * from recordings")) == 2
    assert len(answer("s3://bucket/T", "select * from unexplained")) == 1
