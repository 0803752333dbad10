"""A toy engine on one page: the requirements of `search.engine`, and nothing else.

Its frontier are whole traces, its memory is a set.  It knows no renaming, so it has symmetry switched off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from msgspec.structs import replace

from specchk.ir.program import Program
from specchk.meaning.deadlock import End, Ends
from specchk.meaning.explain import Blame
from specchk.meaning.properties import NoAnswer, Properties, answer
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State
from specchk.search.engine import Engine, OnProgress, Options, Search, Totals, explore
from specchk.search.verdict import Outcome, Step, Trace, Violation


def search(program: Program, options: Options = Options(), on_progress: OnProgress | None = None) -> Outcome:
    return explore(ToyEngine(Search(program, replace(options, symmetry=False), on_progress)))


@dataclass(slots=True)
class ToyEngine(Engine[list[Trace]]):
    name: ClassVar[str] = "toy"
    search: Search
    seen: set[State] = field(default_factory=set)
    inside: int = 0
    generated: int = 0
    stepper: Stepper = field(init=False)
    properties: Properties = field(init=False)
    ends: Ends = field(init=False)

    def __post_init__(self) -> None:
        self.stepper = Stepper(self.search.program)
        self.properties = Properties(self.search.program, self.stepper)
        self.ends = Ends(self.search.program, self.stepper, self.properties)

    def begin(self) -> list[Trace]:
        return self._new([Trace(state, ()) for state in self.search.initial_states()])

    def size(self, frontier: list[Trace]) -> int:
        return len(frontier)

    def expand(self, frontier: list[Trace]) -> list[Trace]:
        following: list[Trace] = []
        for trace in frontier:
            if self.search.look(self.inside, self.generated, len(following)):
                break
            cuts = self.stepper.horizon_cuts
            try:
                successors = self.stepper.successors(trace.last)
            except Faulty as fault:
                name = self.search.program.actions[fault.action].name
                self._undefined(name, trace, Blame.of_fault(self.search.program, fault))
                continue
            if not successors and self.stepper.horizon_cuts == cuts:
                self._end(trace)
            steps = [Step.of(self.search.program, *successor) for successor in successors]
            longer = [Trace(trace.initial, (*trace.steps, step)) for step in steps]
            for after in longer:
                self._check(after, self.properties.environment(trace.last, after.last), self.properties.steps)
            following += self._new(longer)
        return following

    def totals(self) -> Totals:
        return Totals(
            self.inside, self.generated, tuple(self.stepper.counts), self.stepper.horizon_cuts,
            outside=len(self.seen) > self.inside,
        )  # fmt: skip

    def _new(self, traces: list[Trace]) -> list[Trace]:
        """The steps to states that are new, checked, and within the constraints."""
        kept = []
        self.generated += len(traces)
        for trace in traces:
            if trace.last in self.seen:
                continue
            self.seen.add(trace.last)
            env = self.properties.environment(trace.last)
            try:
                is_inside = self.properties.inside(env)
            except NoAnswer as unclear:
                self._undefined(unclear.name, trace, unclear.blame)
                is_inside = False
            if is_inside:
                kept.append(trace)
                self._witnesses(trace, env)
            self._check(trace, env, self.properties.invariants)
        self.inside += len(kept)
        return kept

    def _check(self, trace: Trace, env: list[object], among: list) -> None:  # type: ignore[type-arg]
        for prop, kind, blame in self.properties.failed(env, among, self.search.findings.found):
            self.search.findings.note(Violation(kind, prop.name, trace, blame))

    def _witnesses(self, trace: Trace, env: list[object]) -> None:
        for prop, test in self.properties.witnesses:
            try:
                if answer(prop, test, env):
                    self.search.findings.reached.setdefault(prop.name, trace)
            except NoAnswer as unclear:
                self._undefined(unclear.name, trace, unclear.blame)

    def _end(self, trace: Trace) -> None:
        try:
            end = self.ends.without_steps(trace.last)
        except NoAnswer as unclear:
            self._undefined(unclear.name, trace, unclear.blame)
            return
        self.search.findings.note_end(end)
        if end is End.DEADLOCK:
            self.search.findings.note(Violation("deadlock", "deadlock", trace))

    def _undefined(self, name: str, trace: Trace, blame: Blame) -> None:
        self.search.findings.note(Violation("undefined", name, trace, blame))
