"""Verdicts, traces and findings of a run: plain values, shared by all engines and reports.

No engine returns a bool.  A verdict is one of four, and running out of anything is never "ok".
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import count
from typing import Any, ClassVar

from msgspec import Struct, field

from specchk.identity import Identified
from specchk.ir.program import Program
from specchk.meaning.explain import Blame
from specchk.meaning.values import State, show
from specchk.search.watch import LimitReached

INTERRUPTED = "it was interrupted"  # the reason of a run that was ended from the keyboard


class Step(Struct, frozen=True):
    """One step of a trace: the action, its arguments, and the state after it."""

    action: str
    args: tuple[str, ...]
    state: State

    @classmethod
    def of(cls, program: Program, action: int, args: tuple[Any, ...], after: State) -> Step:
        """A step from a stepper's successor, with names as in the spec."""
        taken = program.actions[action]
        shown = tuple(show(arg, param.type) for arg, param in zip(args, taken.params, strict=True))
        return cls(taken.name, shown, after)

    def __str__(self) -> str:
        return f"{self.action}({', '.join(self.args)})"


class Trace(Struct, frozen=True):
    """A behaviour: `initial`, then the steps; finite unless `loop` is given.

    The steps behind state number `loop` repeat forever, and the last of them leads back to that state.  Where
    there are none, the behaviour rests in its last state.
    """

    initial: State
    steps: tuple[Step, ...]
    loop: int | None = None

    @property
    def states(self) -> tuple[State, ...]:
        """All states, the initial one first."""
        return (self.initial, *(step.state for step in self.steps))

    @property
    def last(self) -> State:
        """The last state."""
        return self.steps[-1].state if self.steps else self.initial

    @property
    def numbered(self) -> Iterator[tuple[int, State, Step]]:
        """Each step with its number, from 1, and the state before it."""
        return zip(count(1), self.states, self.steps)

    def then(self, step: Step) -> Trace:
        """The trace with one more step."""
        return Trace(self.initial, (*self.steps, step))


class Kept(Enum):
    """How a loop keeps a fair condition; the value is the report's word."""

    TAKEN = "taken"
    DISABLED = "disabled"
    NEVER_ENABLED = "never enabled"


class FairPoint(Struct, frozen=True):
    """Why a counterexample's loop is fair to one condition.

    `at` is the number of the step that takes it, or of the state that does not enable it; None where no
    state of the loop does, as a strong condition needs.
    """

    condition: str
    kept: Kept
    at: int | None


class Obstacle(Struct, frozen=True):
    """The reason why one action of the refined program does not allow a step: guards, or values that differ.

    `differs` has for each such variable its name, the value that the action gives it, and the image's.
    """

    action: str
    guards: tuple[Blame, ...]
    differs: tuple[tuple[str, str, str], ...]


class AbstractStep(Struct, frozen=True):
    """A step in terms of the refined program; `before` is None for an initial state.

    `obstacles` has the nearest instance of each action, the nearest action first.
    """

    program: Program
    before: State | None
    after: State
    obstacles: tuple[Obstacle, ...]


class Violation(Struct, frozen=True):
    """A property that does not hold, with a shortest trace to it.

    `kind`: `invariant`, `step invariant`, `refinement`, `liveness`, `deadlock`, `undefined` or `unreachable`
    (a witness that no state satisfies; it has no trace).  `condition`: the relevant condition on the offsets
    at its end, if the engine gives it.  `fairness` and `notes` explain a behaviour that violates a temporal
    property; `abstract` is the last step of one that violates a refinement, as the refined program sees it.
    `bounds`: the bounds that kept states out of the search that found no witness, as in `HoldsWithin`.
    """

    kind: str
    name: str
    trace: Trace | None
    blame: Blame | None = None
    condition: tuple[str, ...] = ()
    fairness: tuple[FairPoint, ...] = ()
    notes: tuple[str, ...] = ()
    abstract: AbstractStep | None = None
    bounds: tuple[str, ...] = ()


class Holds(Struct, frozen=True):
    """Every reachable state was checked."""


class HoldsWithin(Struct, frozen=True):
    """Every reachable state within the declared horizons was checked."""

    bound: tuple[str, ...]


class Violated(Struct, frozen=True):
    """At least one property does not hold; the first is reported first."""

    violations: tuple[Violation, ...]


class Inconclusive(Struct, frozen=True):
    """The search ended without an answer; `budget`: whether the budget ended it."""

    reason: str
    budget: bool


Verdict = Holds | HoldsWithin | Violated | Inconclusive


def stopped_by(interrupt: KeyboardInterrupt) -> Inconclusive:
    """The verdict of a run that was ended where it was: by a limit, or from the keyboard."""
    if isinstance(interrupt, LimitReached):
        return Inconclusive(str(interrupt), budget=True)
    return Inconclusive(INTERRUPTED, budget=False)


def violations_of(verdict: Verdict) -> tuple[Violation, ...]:
    """The violations of a verdict; none unless it is `violated`."""
    return verdict.violations if isinstance(verdict, Violated) else ()


class Symbolic(Struct, frozen=True):
    """The effort of a search over zones of states; its `states_distinct` are zones.

    `questions` are comparisons of open numbers, `answered` those that the known constraints decided, so that
    a branch was pruned; the others were `forks`.  `covered` zones were contained in an earlier one.
    `refinements` are restarts of the search because differences of more than `reach` turned out to matter.
    `solver_checks` were made by Z3 where offsets are in sums, and `solver_pruned` branches ended there.
    `hulls` are the joined states of that many control `parts` that prove the verdict, 0 if the exact search
    does; `rounds` of a search for hulls were made, the last with hulls split by `splits` comparisons.
    """

    forks: int
    questions: int
    answered: int
    covered: int
    refinements: int
    reach: int | None
    solver_checks: int = 0
    solver_pruned: int = 0
    hulls: int = 0
    parts: int = 0
    rounds: int = 0
    splits: int = 0


class WalkCounts(Struct, frozen=True):
    """Counts of a simulation: walks that ended, and the steps of each action.

    `failed` is the number of the walk that has the violation, the first being 1.
    """

    ended: int
    taken: tuple[int, ...]
    failed: int | None = None


class Statistics(Identified, frozen=True):
    """Counts of a search.

    `depth` is the number of levels of the breadth-first search, the initial states being the first;
    `levels` the number of distinct states of each; `generated` counts every successor and initial
    state, repeated or not.  `queries` are questions to a solver, of a run that has them and no states.
    `skipped` are steps to states that differ from a known one in ignored variables only.
    `prepared_s` of the `seconds` were over when the search began.
    `owed_at_horizon` are states in which a temporal property is open and the only fair steps are cut off.
    Of random walks `generated` are the steps, and `depth` is the longest walk's number of states.
    """

    incidental: ClassVar = frozenset({"prepared_s"})
    distinct: int
    generated: int
    depth: int
    levels: tuple[int, ...]
    seconds: float
    horizon_cuts: int = 0
    prepared_s: float = 0.0
    symmetry: str = "off"
    symbolic: Symbolic | None = None
    queries: int | None = None
    owed_at_horizon: int = 0
    skipped: int = 0
    walks: WalkCounts | None = None


class Outcome(Struct, frozen=True):
    """All findings of a run."""

    program: Program
    engine: str
    verdict: Verdict
    statistics: Statistics
    coverage: tuple[int, ...]  # for each of the program's points
    warnings: tuple[str, ...] = ()
    witnesses: tuple[tuple[str, Trace], ...] = field(default=())
    seed: int | None = None
    certificate: str | None = None  # the file that was written of a verdict `holds`
    stopped: Inconclusive | None = None  # why a search ended early, also where the verdict is a violation
    by_order: frozenset[int] = frozenset()  # points whose counts depend on which states symmetry kept


def name_of(verdict: Verdict) -> str:
    """`holds`, `holds_within`, `violated` or `inconclusive`."""
    match verdict:
        case Holds():
            return "holds"
        case HoldsWithin():
            return "holds_within"
        case Violated():
            return "violated"
        case Inconclusive():
            return "inconclusive"
