"""A spec's path from the command line to its verdict: calls go down the floors, with few exceptions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from click.testing import CliRunner

from laws.test_floors import IDENTITY, ROOMS
from specchk.cli.commands.run import command

SPEC = Path(__file__).parents[2] / "spec" / "two_round_fetch.spec"
BELOW = {room: {IDENTITY, *[".".join(below.split(".")[:2]) for below in parts]}
         for room, parts in ROOMS.items()}  # fmt: skip
# The life of a search is in one place and calls the engine through the protocol; numbers that are open have
# operators of their own, which meaning calls.
CLIMBS = {
    "reference": set[tuple[str, str]](),
    "native": {("specchk.search", "specchk.native")},
    "symbolic": {("specchk.search", "specchk.symbolic"), ("specchk.meaning", "specchk.symbolic")},
}


@contextmanager
def climbing(found: set[tuple[str, str]]) -> Iterator[None]:
    """Collect the calls from a room to one that it must not import: they were passed to it."""

    def look(frame: FrameType, event: str, _: Any) -> None:
        callee = _room(frame)
        if event != "call" or callee is None:
            return
        outer = frame.f_back
        while outer is not None and _room(outer) is None:  # through a library, such as a pool of threads
            outer = outer.f_back
        caller = _room(outer) if outer is not None else None
        if caller is not None and callee not in BELOW.get(caller, {callee}) | {caller}:
            found.add((caller, callee))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)


def _room(frame: FrameType) -> str | None:
    room = ".".join(frame.f_globals.get("__name__", "").split(".")[:2])
    return room if room in BELOW else None


@pytest.mark.parametrize("engine", CLIMBS)
def test_a_run_climbs_only_where_it_is_meant_to(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From text to verdict; at most two climbs, where there once were six."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing is kept yet, so all of it happens
    found = set[tuple[str, str]]()
    with climbing(found):
        workers = [] if engine == "reference" else ["--workers", "1"]
        said = CliRunner().invoke(command, [str(SPEC), "--engine", engine, *workers, "--json"])
    assert said.exit_code == 0, said.output
    assert found == CLIMBS[engine]
    assert len(found) <= 2
