"""The properties of a program, ready to be asked of states and steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from specchk.core.evaluate import Evaluator
from specchk.core.explain import blame
from specchk.core.step import Stepper
from specchk.core.undefined import Undefined
from specchk.core.values import State
from specchk.core.verdict import Blame
from specchk.ir.program import Program, Property

Test = Callable[[list[Any]], Any]


class Properties:
    """Compiled predicates; coverage goes to the stepper's counts."""

    def __init__(self, program: Program, stepper: Stepper) -> None:
        self.size = len(program.variables)
        self.evaluator = Evaluator(self.size, stepper.counts)
        self._quiet = Evaluator(self.size)  # explanations do not count as coverage
        self.invariants = self._compiled(program.invariants)
        self.steps = self._compiled(program.step_invariants)
        self.witnesses = self._compiled(program.witnesses)
        self._constraints = self._compiled(program.constraints)
        self._deadlock_ok = self._compiled((program.deadlock_ok,) if program.deadlock_ok else ())
        everything = (*program.invariants, *program.step_invariants, *program.witnesses, *program.constraints)
        self._locals = max((p.locals for p in everything), default=0) + 8
        if program.deadlock_ok:
            self._locals = max(self._locals, program.deadlock_ok.locals)

    def _compiled(self, props: tuple[Property, ...]) -> list[tuple[Property, Test]]:
        return [(prop, self.evaluator.compile(prop.body)) for prop in props]

    def environment(self, state: State, after: State | None = None) -> list[Any]:
        """An environment for predicates of a state, or of a step to `after`."""
        return [*state, *(after if after is not None else state), *([0] * self._locals)]

    def failed(
        self, env: list[Any], among: list[tuple[Property, Test]]
    ) -> Iterator[tuple[Property, str, Blame]]:
        """The properties that fail, with kind and blame; an undefined one fails as `undefined`."""
        for prop, test in among:
            try:
                if test(env):
                    continue
            except Undefined as undefined:
                yield prop, "undefined", Blame(undefined.span, undefined.reason, ())
                continue
            yield prop, prop.kind, blame(prop, self._quiet, env)

    def inside(self, env: list[Any]) -> bool:
        """Whether a state satisfies all constraints; one that is undefined does not."""
        return all(_true(test, env) for _, test in self._constraints)

    def may_deadlock(self, env: list[Any]) -> bool:
        """Whether `deadlock ok` says that this end is fine."""
        return any(_true(test, env) for _, test in self._deadlock_ok)


def _true(test: Test, env: list[Any]) -> bool:
    try:
        return bool(test(env))
    except Undefined:
        return False
