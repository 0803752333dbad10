"""Searches of random specs that are stopped between any two states, and while a checkpoint is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from agreement.both import said
from specchk.ir.program import Program
from specchk.native import store
from specchk.native.checkpoint import Checkpoints
from specchk.native.engine import NativeOptions, search
from specchk.native.kernel import search_kernel
from specchk.native.machine.frames import SharedWord
from specchk.native.store import Store
from specchk.search.verdict import Outcome

MOMENTS = ("save", "_appended", "replace")  # before states are written, after, and before the rename


class Killed(BaseException):
    """The end of a process."""


@contextmanager
def one_by_one(folder: Path) -> Iterator[None]:
    """Kernels that return after each state with a successor, so that a search pauses there."""
    with pytest.MonkeyPatch.context() as patched:
        # What is kept has the name of code with larger batches.
        patched.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patched.setattr(search_kernel, "BATCH", 1)
        patched.setattr(store, "PIECE", 2)
        patched.setattr(Store, "work", _one_turn)
        yield


def _one_turn(found: Store, looking: Callable[[], bool]) -> None:
    """Like `Store.work`, with workers that receive the stop before they start, one after another."""
    found.control[SharedWord.STOP] = 1
    for worker in found.workers:
        found.kernel.call["work"](found.control.address, worker.block.address)
    cursor, end = found.control[SharedWord.CURSOR], found.control[SharedWord.WORK_END]
    found.control[SharedWord.CURSOR] = min(cursor, end)
    looking()


def stop(program: Program, options: NativeOptions, moment: str, number: int) -> None:
    """Search until the checkpoint of that number; the process ends at some moment during it."""
    left = [number]

    def hit() -> None:
        left[0] -= 1
        if not left[0]:
            raise Killed

    owner = Path if moment == "replace" else Checkpoints
    original = getattr(owner, moment)

    def stopping(*given: object) -> object:
        if moment == "_appended":
            written = original(*given)
            hit()
            return written
        hit()
        return original(*given)

    with pytest.MonkeyPatch.context() as patched, suppress(Killed):
        patched.setattr(owner, moment, stopping)
        search(program, options)


def stopped_and_resumed(program: Program, random: Random, folder: Path, **way: bool) -> Outcome:
    """The outcome of a search that was stopped up to three times, with other numbers of workers."""
    place = folder / "checkpoint"
    kept = NativeOptions(checkpoint=place, checkpoint_every_s=0.0, **way)  # type: ignore[arg-type]
    for _ in range(random.randint(1, 3)):
        # An order of states decides which of them is the first, where variables are ignored.
        workers = 1 if program.ignored else random.randint(1, 3)
        resume = (place / "search.json").exists()
        options = replace(kept, workers=workers, resume=resume)
        stop(program, options, random.choice(MOMENTS), random.randint(1, 12))
    resume = (place / "search.json").exists()
    return search(program, replace(kept, workers=random.randint(1, 3), resume=resume))


def told(outcome: Outcome) -> dict[str, object]:
    """Everything that an outcome reports, except for seconds."""
    owed = outcome.statistics.owed_at_horizon
    return {
        **said(outcome, coverage=True),
        "verdict": outcome.verdict,
        "warnings": outcome.warnings,
        "owed": owed,
    }
