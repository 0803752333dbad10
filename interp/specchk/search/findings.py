"""The findings of a search so far, and the verdict that follows from them: the same for every engine.

An engine notes violations, reached witnesses and why it stopped; at the end `conclude` turns them
into a verdict.  The first violation of each (kind, name) is kept, so an engine that goes breadth
first keeps a shortest one.

Not here: how states are explored and traces found (`search`, and the engines' own rooms).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from specchk.ir.program import Program
from specchk.meaning.deadlock import End
from specchk.search.coverage import complete_search_warnings, vacuous
from specchk.search.refined import with_abstract_step
from specchk.search.verdict import Holds, HoldsWithin, Inconclusive, Trace, Verdict, Violated, Violation

NOTHING_TO_CHECK = Inconclusive("no state satisfies `init`, so there is nothing to check", budget=False)
INCOMPLETE = "the search is incomplete, other properties may fail, too"  # with the reason, of a violation
UNSEARCHED = Inconclusive(
    "a state in which a step or a constraint is undefined has no further successors", budget=False
)
NOT_REACHED = (
    "reached by no state that was searched, but not all states that differ in ignored variables were"
)
OUTSIDE = "every initial state is outside {names}, so no step was searched"  # of the constraints
UNDECIDED = (
    "in some states no step is enabled within {bounds}, "
    "but a larger number may enable one: they are not reported as deadlocks"
)
NO_MEMORY = Inconclusive("out of memory; set a limit with --max-memory", budget=True)


def outside_of(program: Program) -> Inconclusive:
    """The verdict if the constraints exclude all initial states."""
    names = ", ".join(f"`{prop.name}`" for prop in program.constraints)
    return Inconclusive(OUTSIDE.format(names=names), budget=False)


class Findings(Struct):
    """Violations by (kind, name), witnesses by name, and the reason why the search stopped, if it did."""

    program: Program
    found: dict[tuple[str, str], Violation] = field(default_factory=dict)
    reached: dict[str, Trace] = field(default_factory=dict)
    stopped: Inconclusive | None = None
    undecided_end: bool = False
    vacuous: list[str] = field(default_factory=list)  # of temporal properties, fairness and steps
    notes: list[str] = field(default_factory=list)  # more warnings
    by_order: frozenset[int] = frozenset()  # points whose counts depend on which states symmetry kept
    announced: set[tuple[str, str]] = field(default_factory=set)  # violations whose traces are built later

    @property
    def is_violated(self) -> bool:
        """Whether a violation was found, whether or not its trace is known yet."""
        return bool(self.found or self.announced)

    @property
    def has_unsearched(self) -> bool:
        """Whether a step or a constraint is undefined in some state, so that its successors are missing."""
        names = [action.name for action in self.program.actions]
        names += [constraint.name for constraint in self.program.constraints]
        return any(("undefined", name) in self.found for name in names)

    def has(self, kind: str, name: str) -> bool:
        """Whether the trace of this violation, or of the witness of this name (kind "reached"), is known."""
        return name in self.reached if kind == "reached" else (kind, name) in self.found

    def clear(self) -> None:
        """Forget all violations and witnesses, before a restart."""
        self.found.clear()
        self.reached.clear()
        self.announced.clear()
        self.vacuous.clear()
        self.notes.clear()
        self.undecided_end = False

    def note(self, violation: Violation) -> None:
        """Keep a violation, unless one of the same kind and name is kept already."""
        self.found.setdefault((violation.kind, violation.name), violation)

    def note_end(self, end: End) -> None:
        """Note an end of which it is not known whether it is a deadlock."""
        self.undecided_end = self.undecided_end or end is End.UNDECIDED

    def warnings(self, counts: Sequence[int], *, complete: bool) -> tuple[str, ...]:
        """The outcome's warnings; `counts` and `complete` as in `conclude`."""
        of_search = complete_search_warnings(
            self.program, counts, complete=complete, by_order=self.by_order, failed=self._failed()
        )
        warnings = [*of_search, *self.vacuous, *self.notes]
        if self.undecided_end:
            warnings.append(UNDECIDED.format(bounds=", ".join(self.program.horizons)))
        if self.found and self.stopped is not None:  # the verdict is "violated", and does not show it
            warnings.append(f"{INCOMPLETE}: {self.stopped.reason}")
        return tuple(warnings)

    def is_complete(self, *, keep_going: bool) -> bool:
        """Whether the whole state space has been explored."""
        return self.stopped is None and (not self.found or keep_going)

    def conclude(
        self, counts: Sequence[int], *, complete: bool, strict: bool, cut: bool, outside: bool, skipped: bool
    ) -> Verdict:
        """The verdict at the end of the search.

        `counts` are the coverage counts; `cut` is whether a horizon kept steps from being taken,
        `outside` whether a constraint left out states, `skipped` whether states that differ from others only
        in ignored variables, which decide something, were left out.
        """
        bounds = self._bounds(cut=cut, outside=outside, skipped=skipped)
        if complete:
            failed = self._failed()
            for name in self.unreached():
                self.found["unreachable", name] = Violation("unreachable", name, None, bounds=bounds)
            if strict:
                of_fairness = [Violation("vacuous", text, None) for text in self.vacuous]
                for violation in [*vacuous(self.program, counts, self.by_order, failed), *of_fairness]:
                    self.found[violation.kind, violation.name] = violation
        # Before the reason for stopping: a violation was confirmed by the reference stepper, so it is true
        # however little was searched.  That there is none, or no witness, is known of a complete search only.
        if self.found:
            explained = [with_abstract_step(self.program, one) for one in self.found.values()]
            return Violated(tuple(sorted(explained, key=_length)))
        if self.stopped is not None:
            return self.stopped
        if skipped and (unreached := self.unreached()):
            return Inconclusive(f"{', '.join(unreached)}: {NOT_REACHED}", budget=False)
        return HoldsWithin(bounds) if bounds else Holds()

    def _bounds(self, *, cut: bool, outside: bool, skipped: bool) -> tuple[str, ...]:
        """The limits that kept states out of the search; `cut`, `outside` and `skipped` as in `conclude`."""
        # Only where something was cut off: a model that ends by itself below its horizons holds without a
        # bound.
        bounds = list(self.program.horizons) if cut else []
        if outside:
            bounds += [prop.name for prop in self.program.constraints]
        if skipped:
            bounds.append(f"`ignore {self.program.ignored_names}`")
        return tuple(bounds)

    def _failed(self) -> set[str]:
        """The names of what is violated or undefined in some state."""
        return {name for kind, name in self.found if kind not in ("unreachable", "vacuous")}

    def unreached(self) -> list[str]:
        """The names of the witnesses that were not reached."""
        return [prop.name for prop in self.program.witnesses if prop.name not in self.reached]


def _length(violation: Violation) -> tuple[int, str, str]:
    # Those without a trace (witnesses that were not reached, vacuity) come last.
    steps = len(violation.trace.steps) if violation.trace is not None else 1 << 30
    return steps, violation.kind, violation.name
