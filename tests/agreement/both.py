"""Runs the reference engine and the native one on one program, and compares their results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from agreement.random_specs import random_spec
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.ir.types import Room
from specchk.kept import name_of
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.native import engine
from specchk.native.machine.layout import NoRoom
from specchk.native.machine.rooms import first_room
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options, Search, Unsupported, explore
from specchk.search.reference import ReferenceEngine
from specchk.search.verdict import Inconclusive, Outcome

LIMIT = Budget(max_states=3000)
PATIENCE_S = 60.0  # a few random specs take hours; who needs longer owes no answer, and is counted apart


def program_of(text: str, folder: Path, model: str | None = None) -> Program | None:
    """The program of a spec's text, or None if it is rejected."""
    file = folder / "random.spec"
    file.write_text(text, encoding="utf-8")
    try:
        return instantiate(check(str(file)), model).program
    except SpecError:
        return None


def of_seed(seed: int, folder: Path) -> Program | None:
    """A random program."""
    return program_of(random_spec(Random(seed)), folder)


def said(outcome: Outcome, *, coverage: bool) -> dict[str, Any]:
    """The results on which both engines must agree.

    Coverage counts how often something was evaluated.  With symmetry the engines may evaluate
    different states of one class, which short circuits may tell apart.
    """
    verdict, statistics = outcome.verdict, outcome.statistics
    violations = getattr(verdict, "violations", ())
    return {
        "verdict": type(verdict).__name__,
        "bound": getattr(verdict, "bound", None),
        "violations": [(v.kind, v.name, v.trace and len(v.trace.steps)) for v in violations],
        "distinct": statistics.distinct,
        "generated": statistics.generated,
        "levels": statistics.levels,
        "cuts": statistics.horizon_cuts,
        "skipped": statistics.skipped,
        "symmetry": statistics.symmetry,
        "coverage": outcome.coverage if coverage else None,
        "witnesses": sorted((name, len(trace.steps)) for name, trace in outcome.witnesses),
    }


def in_time(outcome: Outcome) -> Outcome | None:
    """An outcome that no time limit can have cut; a cut one is compared with nothing."""
    return outcome if outcome.statistics.seconds < PATIENCE_S else None


def states_found(program: Program) -> set[Any]:
    """The states that the native engine kept, without symmetry."""
    options = engine.NativeOptions(symmetry=False, workers=2, keep_going=True)
    search = engine.NativeEngine(Search(program, options), options)
    try:
        explore(search)
        runs = [run for level in search.levels for run in level]
        words, size = search.store.layout.words, search.store.state_bytes
        found = set()
        for first, count in runs:
            data = search.store.states.view(first * size, count * size).cast("Q")
            found |= {
                search.store.layout.unpack(tuple(data[i : i + words])) for i in range(0, len(data), words)
            }
        return found
    finally:
        search.release()


def differences(
    program: Program,
    *,
    symmetry: bool = False,
    keep_going: bool = False,
    workers: int = 2,
    limit: Budget = LIMIT,
    room: Room | None = None,
    optimising_after: int | None = None,
) -> dict[str, tuple[Any, Any]] | None:
    """The differences between the engines; None if the spec is too large or not for the native engine."""
    if optimising_after is None:
        # Of half of the programs code that is optimised, of the others code that is not.
        optimising_after = optimise_after(program, 2)
    options = Options(limit, symmetry=symmetry, keep_going=keep_going)
    expected = reference.search(program, options)
    if in_time(expected) is None or (isinstance(expected.verdict, Inconclusive) and expected.verdict.budget):
        return None
    if limit.max_states is not None and expected.statistics.distinct >= limit.max_states:
        return None  # it found something, but not all
    try:
        found = engine.search(
            program,
            engine.NativeOptions(
                Budget(max_states=100_000),
                symmetry=symmetry,
                keep_going=keep_going,
                workers=workers,
                room=room,
                optimise_after=optimising_after,
            ),
        )
    except Unsupported:
        return None
    a, b = said(expected, coverage=not symmetry), said(found, coverage=not symmetry)
    return {key: (a[key], b[key]) for key in a if a[key] != b[key]}


class ShallowSearch(Search):
    """A search that ends after the level with which it has `most` states: the same level on every engine."""

    def __init__(self, program: Program, options: Options, most: int) -> None:
        super().__init__(program, options)
        self.most = most

    @property
    def is_answered(self) -> bool:
        """Return whether no further level is needed."""
        return super().is_answered or self.is_cut

    @property
    def is_cut(self) -> bool:
        """Return whether there are enough states."""
        return sum(self.levels) >= self.most


def check_agreement(text: str, folder: Path, *, symmetry: bool, keep_going: bool) -> None:
    """The engines agree on a spec, if it is one."""
    program = program_of(text, folder)
    if program is not None:
        assert not differences(program, symmetry=symmetry, keep_going=keep_going)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The reference compared with other runs: its states, whether there are more, and the differences."""

    states: int
    is_cut: bool
    wrong: tuple[str, ...]


def first_levels(
    program: Program,
    *,
    symmetry: bool,
    keep_going: bool,
    workers: tuple[int, ...],
    most: int,
    room: Room | None = None,
) -> Comparison | None:
    """The levels up to `most` states on the reference and the native engine; None if the former is slow.

    `Unsupported` where the native engine cannot compile the spec.
    """
    way = {"symmetry": symmetry, "keep_going": keep_going}
    search = ShallowSearch(program, Options(Budget(max_seconds=PATIENCE_S), **way), most=most)
    expected = explore(ReferenceEngine(search))
    if in_time(expected) is None:
        return None
    a, wrong = said(expected, coverage=not symmetry), []
    for count in workers:
        # Optimising takes four times of all else, but only that code has copies of the turns of a loop.
        options = engine.NativeOptions(
            **way, workers=count, room=room, optimise_after=optimise_after(program, 4)
        )
        b = said(_natively(program, options, most), coverage=not symmetry)
        wrong += [f"{key} with {count} threads: {a[key]} | {b[key]}" for key in a if a[key] != b[key]]
    return Comparison(expected.statistics.distinct, search.is_cut, tuple(wrong))


def _natively(program: Program, options: engine.NativeOptions, most: int) -> Outcome:
    """Like `engine.search`, for the first levels."""
    options = replace(options, room=options.room or first_room(program))
    while True:
        try:
            search = engine.NativeEngine(ShallowSearch(program, options, most=most), options)
            try:
                return explore(search)
            finally:
                search.release()
        except NoRoom:
            options = engine.with_larger_room(options)


def optimise_after(program: Program, every: int) -> int:
    """Use optimised code for one in this many programs, and unoptimised code for the others."""
    # Not by the path: a test has another one in each run.
    return engine.LONG if int(name_of(replace(program, path=""))[0], 16) % every else 0
