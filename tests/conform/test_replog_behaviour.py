"""replog's accepted behaviour depends on no order of its runs and no internals, and covers all of replog.

That it is the same everywhere is shown by the gate (Makefile), which runs elsewhere than the lock was made.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from laws.sources import ROOT
from replog.core.broker import leader, purgatory
from replog.store.checkpoints import checkpoint
from replog.store.partition import PartitionLog
from replog.store.segments.segment import Segment
from specchk.conform.behaviour.comparison import ADDED, CHANGED, ORDER, Difference
from specchk.conform.behaviour.running import behave, taken
from specchk.conform.contract.behaviours import Run, RunWatch
from specchk.conform.contract.load import load_behaviours
from specchk.conform.mutation.mutants import load
from specchk.conform.mutation.patches import forget, install
from specchk.conform.work.forks import run_all
from specchk.conform.work.lock_file import NAME, read

FILE = ROOT / "conformance" / "behaviour" / "behaviours.py"
REPLOG = ROOT / "impl" / "replog"
FURTHER = re.compile(r"(damaged )?store, seed [012]?\d")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Keep transcripts of these tests separate from those of other runs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Reached:
    """The entered code objects of some folders."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self.folders = tuple(f"{folder}{os.sep}" for folder in folders)
        self.codes: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        self.codes.add(frame.f_code)  # and None: nothing is called for the lines and returns of this frame

    @contextmanager
    def watching(self) -> Iterator[None]:
        before = sys.gettrace()
        # Not a profile function, which is also called for each return, and for each function of C.
        sys.settrace(self)
        try:
            yield
        finally:
            sys.settrace(before)

    def names(self) -> set[str]:
        return {name_of(code) for code in self.codes if code.co_filename.startswith(self.folders)}


def name_of(code: CodeType) -> str:
    return f"{Path(code.co_filename).relative_to(REPLOG)}: {code.co_qualname}"


def functions(folder: Path) -> set[str]:
    """All functions of a folder's modules, nested ones too, except for expressions without a name."""
    names = set()
    for path in folder.rglob("*.py"):
        waiting = [compile(path.read_text(encoding="utf-8"), str(path), "exec")]
        while waiting:
            for part in waiting.pop().co_consts:
                if isinstance(part, CodeType):
                    waiting.append(part)
                    # Bodies of classes and modules run when they are imported.
                    if part.co_flags & 2 and not part.co_name.startswith("<") and not is_protocol(part):
                        names.add(name_of(part))
    return names


def is_protocol(code: CodeType) -> bool:
    """Whether a function has only a docstring: a method of an interface."""
    is_empty = all(part is None or isinstance(part, str) for part in code.co_consts)
    return is_empty and not code.co_names and len(code.co_code) <= 8


def test_replog_behaves_as_accepted_and_all_of_it_is_executed():
    """In one process and in reverse order the runs have the digests of the lock.

    They execute every function of core and store, and none of them ends in an error of its own.  Of the forty
    walks of a store, and of a damaged one, ten do; the gate has the others.
    """
    names = [name for name in load_behaviours(FILE)().runs() if not FURTHER.fullmatch(name)]
    folders = REPLOG / "core", REPLOG / "store"
    reached = Reached(folders)
    missing = set().union(*map(functions, folders))
    raised: list[str] = []

    def watched(name: str, run: Run, watch: RunWatch) -> None:
        # Watched runs take three times as long, and the last ones have most functions.
        with reached.watching() if missing else nullcontext():
            try:
                run(watch)
            except BaseException:
                raised.append(name)
                raise
        missing.difference_update(reached.names())
        raised.extend(name for step in watch.steps for seen in step.seen if seen.kind == "raises")

    class Backwards(load_behaviours(FILE)):  # type: ignore[misc]
        def runs(self):
            backwards = reversed(list(super().runs().items()))
            return {name: partial(watched, name, run) for name, run in backwards}

    behaved = behave(Backwards(), read(FILE.with_name(NAME)).behaviour, 1, names)
    assert behaved.is_accepted, [each.run for each in behaved.differences]
    assert (missing, raised) == (set(), [])


Plant = tuple[Any, str, Any]
RUNS = ("simulation on files of all, seed 20", "simulation of all, seed 20", "store, seed 1")


def earlier(original: Any) -> Any:
    """Return `replace_file` with its last two steps exchanged."""

    def replaced(fs: Any, directory: str, name: str, data: bytes) -> None:
        temporary = f"{directory}/{name}.tmp"
        with closing(fs.create(temporary)) as file:
            file.append(data)
            file.fsync()
        fs.fsync_dir(directory)
        fs.rename(temporary, f"{directory}/{name}")

    return replaced


def longer(original: Any) -> Any:
    return lambda timer, delay_ms, token=0: original(timer, delay_ms + 1, token)


def twice(original: Any) -> Any:
    def flushed(segment: Any) -> None:
        original(segment)
        original(segment)

    return flushed


PLANTED = {
    "a message's field": (
        (purgatory, "_served", lambda served: lambda *words: replace(served(*words), high_watermark=-7)),
        (CHANGED, "send FetchReply, high_watermark"),
    ),
    "a timer": ((leader, "SetTimer", longer), (CHANGED, "timer, delay_ms")),
    "an answer": (
        (PartitionLog, "truncate_to", lambda cut: lambda log, offset: cut(log, offset) + 1),
        (CHANGED, "truncate, answer"),
    ),
    "an added sync": ((Segment, "flush", twice), (ADDED, "sync, added")),
    "the order of two syncs": ((checkpoint, "replace_file", earlier), (ORDER, "in another order")),
    "a file's content": (
        (checkpoint, "_render", lambda render: lambda rows: render(rows) + b"\n"),
        (CHANGED, "append, bytes"),
    ),
}


def difference_of(
    name: str, planted: tuple[Any, str, Any], monkeypatch: pytest.MonkeyPatch
) -> Difference | None:
    """The difference between a run with a planted change and the same run without it."""
    run = load_behaviours(FILE)().runs()[name]
    before = taken(name, run, None)
    owner, attribute, change = planted
    with monkeypatch.context() as patch:
        patch.setattr(owner, attribute, change(getattr(owner, attribute)))
        return taken(name, run, before.symbols).difference


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_change_is_named(planted, monkeypatch):
    """For any output of replog: the observation and its field, in the first run that has it."""
    plant, (kind, place) = PLANTED[planted]
    differences = [difference_of(name, plant, monkeypatch) for name in RUNS]
    assert any(each and each.kind == kind and each.place.endswith(place) for each in differences), differences


REFACTORINGS = {mutant.id: mutant for mutant in load(ROOT / "bench" / "gate" / "refactorings")}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFACTORINGS)
def test_a_refactoring_is_not_reported(name):
    """Renamed attributes, other data structures, other ways to call: the lock holds."""

    def task(say):
        forget(("replog",), (FILE.parent,))
        install(REFACTORINGS[name].patches)
        known = read(FILE.with_name(NAME)).behaviour
        say([each.place for each in behave(load_behaviours(FILE)(), known, 1).differences])

    (ended,) = run_all([task], 1)
    assert ended.said == [[]], ended.why
