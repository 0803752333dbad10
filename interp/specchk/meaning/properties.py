"""The properties of a program, ready to be checked on states and steps."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any

from specchk.ir.program import Program, Property
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.explain import Blame, blame
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State

Test = Callable[[list[Any]], Any]


class NoAnswer(Exception):
    """A constraint, a witness or a `deadlock ok` is undefined in a state."""

    def __init__(self, prop: Property, undefined: Undefined) -> None:
        self.name = prop.name
        self._made_of = prop, undefined
        self.blame = Blame(undefined.span, undefined.reason, ())
        super().__init__(undefined.reason)

    def __reduce__(self) -> tuple[type[NoAnswer], tuple[object, ...]]:
        return type(self), self._made_of


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
        self, env: list[Any], among: list[tuple[Property, Test]], known: Container[tuple[str, str]] = ()
    ) -> Iterator[tuple[Property, str, Blame]]:
        """The properties that fail, with kind and blame; an undefined one fails as `undefined`.

        Failures that are `known`, as (kind, name), are left out: finding the blame takes a while.
        """
        for prop, test in among:
            try:
                if test(env):
                    continue
            except Undefined as undefined:
                # A fault of one property hides none of those after it: each has a violation of its own.
                if ("undefined", prop.name) not in known:
                    yield prop, "undefined", Blame(undefined.span, undefined.reason, ())
                continue
            if (prop.kind, prop.name) not in known:
                yield prop, prop.kind, blame(prop, self._quiet, env)

    def inside(self, env: list[Any]) -> bool:
        """Whether a state satisfies all constraints; raises `NoAnswer`."""
        # In order, up to the first that is false: as with `and`, a later one may rely on it to have a value.
        # The kernel does the same (`native.kernel.predicates`).
        return all(answer(prop, test, env) for prop, test in self._constraints)

    def keeps(self, state: State) -> bool:
        """Whether a state is within all constraints; one of which that is undefined leaves it out."""
        try:
            return self.inside(self.environment(state))
        except NoAnswer:
            return False

    def may_deadlock(self, env: list[Any]) -> bool:
        """Whether `deadlock ok` allows this end; raises `NoAnswer`."""
        return any(answer(prop, test, env) for prop, test in self._deadlock_ok)


def answer(prop: Property, test: Test, env: list[Any]) -> bool:
    """Whether a predicate is true in an environment; raises `NoAnswer`."""
    try:
        return bool(test(env))
    except Undefined as undefined:
        raise NoAnswer(prop, undefined) from None
