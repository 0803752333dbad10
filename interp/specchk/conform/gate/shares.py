"""The suites of a tier divided into shares for a crew, with the same results as on one machine.

A suite that is made of cases is cut into slices, which count as one runner would (`runner.follow`);
any other suite is one share.  The suites are computed here, or read from the cache, and
sent with their programs: no worker computes one again.

Not here: the workers (`crews`); the same on one machine (`tiers`).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.covers.cases import MADE_OF_CASES, Suite, SuiteCase
from specchk.conform.gate.tiers import Part, SuiteBudget, cases_of, run_whole
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import PASSING, Done, Runner, merged, run_slice, slices
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.work.crews import Crew
from specchk.conform.work.forks import each
from specchk.ir.program import Program
from specchk.processes import cores

PER_HAND = 4  # shares for each hand: enough that none waits long for the last


class Lot(Struct, frozen=True):
    """A suite to be sent: its kind, and its cases if it consists of cases."""

    program: Program
    kind: str
    suite: Suite | None
    cases: Sequence[SuiteCase]


class Share(Struct, frozen=True):
    """The cases of a lot at some positions, or all of a lot that does not consist of cases."""

    lot: int
    positions: range | None


class ShareResult(Struct, frozen=True):
    """The result of a share: of a slice, or of a whole suite."""

    lot: int
    done: Done | None
    result: SuiteResult | None
    seconds: float


def _share_job(
    lots: Sequence[bytes], budget: SuiteBudget, cls: Any, _: Path
) -> Callable[[Share], ShareResult]:
    """A `crews.Job`, for some lots, that runs shares; an unpacked lot is kept."""

    @cache
    def opened(number: int) -> Lot:
        lot: Lot = pickle.loads(lots[number])  # noqa: S301 - packed by `run_parts_by`
        return lot

    return lambda share: _done(opened(share.lot), share, cls, budget)


def _done(lot: Lot, share: Share, cls: Any, budget: SuiteBudget) -> ShareResult:
    begun = perf_counter()
    replayer = Replayer(cls(lot.program))
    if lot.suite is None or share.positions is None:
        result = run_whole(replayer, lot.kind, budget)
        return ShareResult(share.lot, None, result, result.seconds)
    # A new runner for each slice, as in `run_suite`: results must not depend on earlier slices.
    done = run_slice(Runner(replayer, lot.suite), lot.cases, share.positions)
    return ShareResult(share.lot, done, None, perf_counter() - begun)


def run_parts_by(crew: Crew, parts: Sequence[Part], budget: SuiteBudget) -> list[SuiteResult]:
    """As `tiers.run_parts`, by a crew; the seconds of a suite are the sum over its shares."""
    lots = lots_of(parts, budget)
    # Packed one by one: a worker opens the lots that its shares need, and not all.
    packed = tuple(pickle.dumps(lot, protocol=5) for lot in lots)
    about = f"{parts[0].instance.program.spec}: {len(parts)} suites of {type(parts[0].binding).__name__}"
    return joined(lots, crew.each(partial(_share_job, packed, budget), shares_of(lots, crew.hands), about))


def lots_of(parts: Sequence[Part], budget: SuiteBudget) -> list[Lot]:
    """The parts as lots; raises `BindingError` if a binding does not fit, as a run would."""
    for part in parts:
        Replayer(part.binding)
    suites = each([partial(_suite, part, budget) for part in parts], cores(), PASSING)
    return [
        Lot(part.instance.program, part.at.suite, suite, () if suite is None else cases_of(suite, budget))
        for part, suite in zip(parts, suites, strict=True)
    ]


def _suite(part: Part, budget: SuiteBudget) -> Suite | None:
    return part.suite(budget) if part.at.suite in MADE_OF_CASES else None


def shares_of(lots: Sequence[Lot], hands: int) -> list[Share]:
    """The shares in the order of lots and cases, each with about the same number of cases."""
    # Of about the same size over all lots, so that a large suite has more shares than a small one.
    size = max(1, -(-sum(len(lot.cases) for lot in lots) // (hands * PER_HAND)))
    shares = []
    for number, lot in enumerate(lots):
        if lot.suite is None:
            shares.append(Share(number, None))
        else:
            count = len(lot.cases)
            shares += [Share(number, positions) for positions in slices(count, max(1, -(-count // size)))]
    return shares


def joined(lots: Sequence[Lot], done: Sequence[ShareResult]) -> list[SuiteResult]:
    """The results of all lots, from the results of their shares in order."""
    results = []
    for number, lot in enumerate(lots):
        own = [share for share in done if share.lot == number]
        seconds = sum(share.seconds for share in own)
        if lot.suite is None:
            results += [replace(share.result, seconds=seconds) for share in own if share.result is not None]
        else:
            parts = [share.done for share in own if share.done is not None]
            results.append(merged(lot.suite, lot.cases, parts, seconds))
    return results
