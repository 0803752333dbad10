"""How well forecasts hold: models of which the number of states is known, forecast from a part of them.

    python bench/engines/forecast.py [--most 1000000] [--keep FILE]

Each family is a spec with some of its constants at several values.  All of its models of up to `--most`
states are searched once.  Then each model of more than ten thousand states is forecast from a third of
its states down to a thousandth; what would be searched for that is looked up.  `error` is how many times
too large or too small the likely number was; `interval` is its upper end by the likely number.  The last
line makes the interval of each family from what the others needed, and counts how often it held.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from specchk.compile.instantiate import instantiate
from specchk.forecast.extrapolate import SPREAD, TooSmall, estimate
from specchk.forecast.smaller import SmallerModels
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.native import engine
from specchk.search.budget import Budget
from specchk.search.verdict import Holds, HoldsWithin, Inconclusive

SPEC = Path(__file__).resolve().parents[2] / "spec"
SHARES = (3, 10, 30, 100, 300, 1000)
LEAST, LEAST_SAMPLE, SEARCHES = 10_000, 300, 10
PUBLISHED = {"LogSize": (1, 2, 3), "MaxRecords": (1, 2, 3), "MaxLeaderEpoch": (0, 1, 2, 3)}
FAULTS = {"MaxOffset": (0, 1, 2), "MaxEpoch": (0, 1, 2), "MaxCrashes": (0, 1), "MaxShrinks": (0, 1)}


@dataclass(frozen=True)
class Family:
    """A spec, a model, sorts that are given, and the constants' values."""

    file: str
    model: str | None
    given: Mapping[str, int]
    dials: Mapping[str, tuple[int, ...]]


FAMILIES = {
    "kip320, 3 replicas": Family("kafka/kip320.spec", "small", {"Replicas": 3}, PUBLISHED),
    "kip320, 2 replicas": Family("kafka/kip320.spec", "small", {"Replicas": 2}, PUBLISHED),
    "kip320, first try": Family("kafka/kip320_first_try.spec", None, {}, PUBLISHED),
    "kip101": Family("kafka/kip101.spec", None, {}, PUBLISHED),
    "truncate to HW": Family("kafka/truncate_to_hw.spec", None, {}, PUBLISHED),
    "asynchronous ISR": Family(
        "kafka/async_isr.spec", None, {},
        {"MaxOffset": (1, 2, 3, 4, 5), "MaxVersion": (1, 2, 3, 4, 5)},
    ),
    "replication, 2 brokers": Family(
        "replication.spec", "two_brokers", {"Broker": 2}, {**FAULTS, "MaxFences": (0, 1)}
    ),
    "replication, 3 brokers": Family("replication.spec", "three_brokers", {"Broker": 3}, FAULTS),
    "delivery": Family("delivery.spec", None, {}, {"Messages": (1, 2, 3, 4, 5), "Tries": (1, 2, 3, 4)}),
    "ISR timing": Family(
        "isr_timing.spec", None, {}, {"MaxTime": (4, 8, 12, 16, 20, 24), "MaxOffset": (1, 2, 3)}
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Known:
    """A model that was searched: its levels; whether it ends there, and with every property holding."""

    levels: tuple[int, ...]
    is_whole: bool
    holds: bool


@dataclass(frozen=True)
class Case:
    """One forecast: its error and its deviation, both in logarithms."""

    family: str
    share: int
    models: int
    error: float
    deviation: float

    @property
    def needed(self) -> float:
        """The spread with which the interval would have held, just so."""
        return abs(self.error) / self.deviation


Values = tuple[int, ...]


def searched(family: Family, most: int) -> Iterator[tuple[Values, Known]]:
    """The models of a family."""
    checked = check(str(SPEC / family.file))
    for values in product(*family.dials.values()):
        table = {**family.given, **dict(zip(family.dials, values, strict=True))}
        try:
            program = instantiate(checked, family.model, {n: str(v) for n, v in table.items()}).program
        except SpecError:
            continue
        found = engine.search(program, engine.NativeOptions(Budget(max_states=most)))
        verdict, numbers = found.verdict, found.statistics
        whole = not isinstance(verdict, Inconclusive)
        yield values, Known(numbers.levels, whole, isinstance(verdict, Holds | HoldsWithin))


def forecasts(name: str, family: Family, known: Mapping[Values, Known]) -> Iterator[Case]:
    """A family's forecasts from every share of its larger models."""
    for values, model in known.items():
        states = sum(model.levels)
        if not model.holds or states < LEAST:
            continue
        for share in SHARES:
            if states // share < LEAST_SAMPLE:
                continue
            case = _forecast(name, family, known, values, share)
            if case is not None:
                yield case


def _forecast(
    name: str, family: Family, known: Mapping[Values, Known], values: Values, share: int
) -> Case | None:
    levels = known[values].levels
    most = sum(levels) // share
    names = [n for n, v in zip(family.dials, values, strict=True) if v > 0]
    full = dict(zip(family.dials, values, strict=True))

    def place(dials: Mapping[str, int]) -> Values:
        return tuple({**full, **dials}.values())

    def search(dials: Mapping[str, int]) -> tuple[int, ...] | None:
        found = known.get(place(dials))
        return found.levels if found and found.is_whole and sum(found.levels) <= most else None

    sample: list[int] = []
    while sum(sample) + levels[len(sample)] <= most:
        sample.append(levels[len(sample)])
    dials = {n: full[n] for n in names}
    smaller = SmallerModels(lambda d: place(d) in known, search, dials, most, SEARCHES).run()
    try:
        found = estimate(sample, smaller)
    except TooSmall:
        return None
    return Case(name, share, len(smaller), found.value - math.log(sum(levels)), found.deviation)


def quantile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def report(cases: list[Case]) -> None:
    print("| sample | forecasts | error, median | error, 90 % | interval, median | held |")
    print("|---|---|---|---|---|---|")
    for share in SHARES:
        some = [case for case in cases if case.share == share]
        if not some:
            continue
        errors = [math.exp(abs(case.error)) for case in some]
        held = sum(case.needed <= SPREAD for case in some)
        width = quantile([math.exp(SPREAD * case.deviation) for case in some], 0.5)
        print(
            f"| 1/{share} | {len(some)} | {quantile(errors, 0.5):.2f}x | {quantile(errors, 0.9):.1f}x | "
            f"{width:.1f}x | {100 * held / len(some):.0f} % |"
        )
    held = sum(case.needed <= SPREAD for case in cases)
    print(f"all: {held} of {len(cases)} held")
    left_out = 0
    for family in sorted({case.family for case in cases}):
        spread = quantile([case.needed for case in cases if case.family != family], 0.9)
        own = [case for case in cases if case.family == family]
        inside = sum(case.needed <= spread for case in own)
        left_out += inside
        print(f"{family}: {sum(c.needed <= SPREAD for c in own)} of {len(own)} held; "
              f"with the others' spread of {spread:.2f}: {inside}")  # fmt: skip
    print(f"with spreads from other families: {left_out} of {len(cases)} held")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, help="what was searched, read if it is there")
    args = parser.parse_args()
    kept = json.loads(args.keep.read_text()) if args.keep and args.keep.exists() else {}
    cases: list[Case] = []
    for name, family in FAMILIES.items():
        if name not in kept:
            kept[name] = [(values, asdict(model)) for values, model in searched(family, args.most)]
            if args.keep:
                args.keep.write_text(json.dumps(kept))
        known = {
            tuple(values): Known(tuple(m["levels"]), m["is_whole"], m["holds"]) for values, m in kept[name]
        }
        cases += forecasts(name, family, known)
    report(cases)


if __name__ == "__main__":
    main()
