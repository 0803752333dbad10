"""One spec on every engine, and the required relations between the answers.

    reference = native = Spark          everything: verdict, counts of each level, coverage, lengths
    zones with the horizons put back    the reference's states, verdict and lengths
    zones without horizons, --depth     shortest of all: no enumeration within a horizon finds a shorter
                                        violation, and each of theirs is found within one that is far enough
    --prove                             what is proved is violated within no horizon

An engine that refuses a spec, or gives up within its budget, owes nothing; `compared` counts who did not.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("core", "symbolic")]

from zoned import differences as zone_differences  # noqa: E402 - pytest runs with importlib mode
from zoned import leaves_open  # noqa: E402

from agreement.both import PATIENCE_S, differences, in_time, said  # noqa: E402
from specchk.compile.instantiate import instantiate  # noqa: E402
from specchk.ir.program import Program  # noqa: E402
from specchk.lang.frontend import check  # noqa: E402
from specchk.lang.text.diagnostics import SpecError  # noqa: E402
from specchk.native import engine as native  # noqa: E402
from specchk.search import reference  # noqa: E402
from specchk.search.budget import Budget  # noqa: E402
from specchk.search.engine import Options, Unsupported  # noqa: E402
from specchk.search.verdict import Inconclusive, Outcome, Violated, Violation  # noqa: E402
from specchk.symbolic.induction.bmc import bounded  # noqa: E402
from specchk.symbolic.induction.encode.scope import Unencodable  # noqa: E402
from specchk.symbolic.induction.prove import ProofOptions, prove  # noqa: E402
from specchk.symbolic.joins.engine import JoinOptions  # noqa: E402
from specchk.symbolic.joins.engine import search as zones  # noqa: E402
from specchk.symbolic.legality import check as check_legality  # noqa: E402
from specchk.symbolic.replay import most_in, raised_to  # noqa: E402

LIMIT = Budget(max_states=3000, max_seconds=PATIENCE_S)
ZONES = Budget(max_states=1500, max_seconds=PATIENCE_S)
UNROLLED = Budget(max_seconds=PATIENCE_S)
DEPTH = 4  # steps of --depth
FURTHER = 2  # horizons beyond the model's own that are enumerated
QUERY_SECONDS = 10.0
HIDDEN = (2, 4, 8)  # how far numbers that are chosen and not kept may lie beyond those that are
OnSpark = Callable[[Program, bool, bool], Outcome]  # symmetry, keep_going


@dataclass
class Comparison:
    """The comparisons made and the disagreements found; `symmetry` and `keep_going` as for the engines."""

    program: Program
    symmetry: bool = False
    keep_going: bool = False
    workers: int = 2
    higher: tuple[Program, ...] = ()  # with higher horizons
    zones: Budget = ZONES  # of one symbolic search
    compared: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def enumerating(self, on_spark: OnSpark | None) -> None:
        """The reference, the native engine and Spark."""
        way = {"symmetry": self.symmetry, "keep_going": self.keep_going}
        found = differences(self.program, **way, workers=self.workers, limit=LIMIT)
        self._note("native", found)
        if found is None or on_spark is None:
            return
        options = native.NativeOptions(LIMIT, **way, workers=self.workers)
        expected, other = native.search(self.program, options), on_spark(self.program, *way.values())
        a, b = said(expected, coverage=True), said(other, coverage=True)
        self._note("spark", {key: (a[key], b[key]) for key in a if a[key] != b[key]})

    def symbolic(self, horizon: int) -> None:
        """Zones, --depth and --prove, checked against the reference within growing horizons."""
        try:
            check_legality(self.program)
        except SpecError:
            self.compared["symbolic refused"] += 1
            return
        found = zone_differences(self.program, horizon, keep_going=self.keep_going, patience_s=PATIENCE_S)
        self._note(
            "zones", None if found is None or found.get("verdict", ("",))[-1] == "Inconclusive" else found
        )
        within = [found for found in map(self._within, range(FURTHER + 1)) if found is not None]
        self._natively()
        self._search(within)
        try:
            self._unrolled(within)
            self._proved(within)
        except Unencodable:
            self.compared["depth refused"] += 1

    def _within(self, further: int) -> Outcome | None:
        """The reference's result with a higher horizon, if the search is complete."""
        return enumerated(raised_to(self.program, horizon_of(self.program) + further))

    def _natively(self) -> None:
        """The reference and the native engine with higher horizons."""
        for further, program in enumerate(self.higher, 1):
            way = {"symmetry": self.symmetry, "keep_going": self.keep_going}
            self._note(f"native, horizon + {further}", differences(program, **way, workers=1, limit=LIMIT))

    def _search(self, within: list[Outcome]) -> None:
        for name, after in (("symbolic", None), ("hulls", 0)):
            options = JoinOptions(self.zones, symmetry=self.symmetry, workers=1, join_after=after)
            outcome = zones(self.program, options)
            # Constraints that leave no initial state are an answer, which no horizon changes.
            is_given_up = isinstance(outcome.verdict, Inconclusive) and outcome.statistics.levels != ()
            if in_time(outcome) is None or is_given_up:
                self._note(name, None)
            else:
                self._note(name, [*self._confirmed(outcome), *denied(outcome, within, None)])

    def _unrolled(self, within: list[Outcome]) -> None:
        outcome = bounded(self.program, DEPTH, UNROLLED, QUERY_SECONDS)
        is_given_up = isinstance(outcome.verdict, Inconclusive) and not outcome.verdict.budget
        if in_time(outcome) is None or is_given_up:
            self._note("depth", None)
        else:
            self._note("depth", [*self._confirmed(outcome), *denied(outcome, within, DEPTH)])

    def _proved(self, within: list[Outcome]) -> None:
        proof = prove(self.program, ProofOptions(query_seconds=QUERY_SECONDS, budget=UNROLLED))
        violated = {violation.name for outcome in within for violation in shortest(outcome)}
        self.compared["prove, something proved"] += bool(proof.proved)
        self._note("prove", [f"`{name}` is proved and violated" for name in violated & set(proof.proved)])

    def _confirmed(self, outcome: Outcome) -> Iterator[str]:
        """Check that the reference finds each violation, too, within a sufficient horizon."""
        for violation in shortest(outcome):
            found = [self._at(violation, further) for further in HIDDEN]
            told = [said_of(one) for one in found if one is not None]
            if (
                None not in found
                and not any(key(violation) in one for one in told)
                and not any(one is not None and leaves_open(one.program, violation) for one in found)
            ):
                yield f"{key(violation)} is not what the reference finds: {told}"

    def _at(self, violation: Violation, further: int) -> Outcome | None:
        """The reference's result with a horizon this far beyond the numbers of a trace."""
        assert violation.trace is not None
        most = max(most_in(violation.trace.states) + further, horizon_of(self.program))
        return enumerated(raised_to(self.program, most))

    def _note(self, engine: str, found: Any) -> None:
        self.compared[f"{engine}{' gave up' if found is None else ''}"] += 1
        if found:
            self.wrong.append(f"{engine}: {found}")


def enumerated(program: Program) -> Outcome | None:
    """The reference's result, if the search is complete."""
    outcome = reference.search(program, Options(LIMIT, symmetry=False))
    return None if isinstance(outcome.verdict, Inconclusive) else in_time(outcome)


def shortest(outcome: Outcome) -> list[Violation]:
    """The violations that have a trace."""
    found = outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ()
    return [violation for violation in found if violation.trace is not None]


def key(violation: Violation) -> tuple[str, str, int]:
    """The violated property, and the number of steps."""
    assert violation.trace is not None
    return violation.kind, violation.name, len(violation.trace.steps)


def said_of(outcome: Outcome) -> list[tuple[str, str, int]]:
    """The violated property, and the number of steps."""
    return [key(violation) for violation in shortest(outcome)]


def denied(outcome: Outcome, within: list[Outcome], depth: int | None) -> Iterator[str]:
    """The violations that the reference finds within horizons and `depth` steps, and an engine misses."""
    own = min((key(violation)[2] for violation in shortest(outcome)), default=None)
    unreachable = [v.name for v in getattr(outcome.verdict, "violations", ()) if v.kind == "unreachable"]
    for found in within:
        for what in said_of(found):
            if (depth is None or what[2] <= depth) and (own is None or own > what[2]):
                yield f"the reference finds {what} within {found.program.horizons}, and not {own}"
        for name, _ in found.witnesses:
            if name in unreachable:
                yield f"`{name}` is said to be unreachable, and is reached"


def horizon_of(program: Program) -> int:
    """The end of the only horizon in the generated specs."""
    return max((value.value for value in program.constants if value.name == "H"), default=2)  # type: ignore[type-var]


def compare(
    text: str,
    folder: Path,
    *,
    symmetry: bool,
    keep_going: bool,
    workers: int = 2,
    on_spark: OnSpark | None = None,
    most_zones: Budget = ZONES,
) -> Comparison | None:
    """All comparisons of a spec's text; None if it is rejected."""
    file = folder / "compared.spec"
    file.write_text(text, encoding="utf-8")
    try:
        checked = check(str(file))
        program = instantiate(checked, None).program
        # Compiled code depends on more of a program than its types, so it is made again (`raised_to`).
        has_horizon = any(value.name == "H" for value in program.constants)
        higher = [
            instantiate(checked, None, {"H": str(horizon_of(program) + more)}).program
            for more in range(1, FURTHER + 1)
            if has_horizon
        ]
    except SpecError:
        return None
    found = Comparison(program, symmetry, keep_going, workers, tuple(higher), most_zones)
    try:
        found.enumerating(on_spark)
    except Unsupported:
        found.compared["native gave up"] += 1
    if program.spec in ("choosing", "offsets", "linear", "gathered", "conjunctions"):
        found.symbolic(horizon_of(program))
    return found
