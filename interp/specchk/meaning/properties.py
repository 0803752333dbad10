"""The properties of a program, ready to be checked on states and steps."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from specchk.ir.program import Program, Property, Refinement
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.explain import Blame, blame
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty, Undefined
from specchk.meaning.values import State

Test = Callable[[list[Any]], Any]
Tests = list[tuple[Property, Test]]

MAX_KNOWN = 1 << 16  # images of which the steps are kept


class NoAnswer(Exception):
    """A constraint, a witness or a `deadlock ok` is undefined in a state."""

    def __init__(self, prop: Property, undefined: Undefined) -> None:
        self.name = prop.name
        self._made_of = prop, undefined
        self.blame = Blame.of(undefined)
        super().__init__(undefined.reason)

    def __reduce__(self) -> tuple[type[NoAnswer], tuple[object, ...]]:
        return type(self), self._made_of


class Refining:
    """One refinement, compiled to be checked on states and steps.

    A step is allowed if its ends have one image (to the other program nothing happens), or if an action of
    the other program leads from the first image to the second.  A fault in an action of the other program is
    one of the claim, unless a way that comes before it allows the step.

    This is the meaning of a refinement, by the other program's own stepper.  The predicate of two states that
    compiled engines check (`compile.relation`) is compared with it.
    """

    def __init__(self, refinement: Refinement, variables: int, counts: list[int] | None = None) -> None:
        self.refinement = refinement
        self._counts = counts
        self.program = refinement.abstract
        self.stepper = Stepper(self.program)
        evaluator = Evaluator(variables)
        self._size = variables
        self._locals = [0] * (max(refinement.locals, refinement.initial.locals) + 1)
        self._images = [evaluator.compile(image) for image in refinement.images]
        self._begins = evaluator.compile(refinement.initial.body)
        self._known: dict[State, tuple[frozenset[State], Undefined | None]] = {}

    def image(self, state: Sequence[Any]) -> State:
        """The state of the refined program; raises `Undefined`."""
        env = [*state, *state, *self._locals]
        return tuple([value(env) for value in self._images])

    def begins(self, state: State) -> bool:
        """Whether the image of a state is an initial state; raises `Undefined`."""
        return bool(self._begins([*state, *state, *self._locals]))

    def allows(self, env: Sequence[Any]) -> bool:
        """Whether the refined program allows the step of an environment; raises `Undefined`."""
        before, after = self.image(env[: self._size]), self.image(env[self._size : 2 * self._size])
        if before == after:
            return True
        if self._counts is not None:
            self._counts[self.refinement.point] += 1
        reached, fault = self._steps(before)
        if after not in reached and fault is not None:
            raise fault
        return after in reached

    def fault(self, image: State) -> Undefined | None:
        """The first fault in the refined program's actions, in one of its states."""
        return self._steps(image)[1]

    def _steps(self, before: State) -> tuple[frozenset[State], Undefined | None]:
        """The successors found before the first fault, and that fault."""
        known = self._known.get(before)
        if known is None:
            fault: Undefined | None = None
            try:
                self.stepper.successors(before)
            except Faulty as faulty:
                fault = faulty.undefined
            known = frozenset(after for _, _, after in self.stepper.emitted), fault
            if len(self._known) == MAX_KNOWN:
                self._known.clear()
            self._known[before] = known
        return known


class Properties:
    """Compiled predicates; their coverage is added to the stepper's counts."""

    def __init__(self, program: Program, stepper: Stepper) -> None:
        self.program = program
        self.size = len(program.variables)
        self.evaluator = Evaluator(self.size, stepper.counts)
        self._quiet = Evaluator(self.size)  # explanations do not count as coverage
        everything = (*program.invariants, *program.step_invariants, *program.witnesses, *program.constraints)
        self._locals = max((p.locals for p in everything), default=0) + 8
        if program.deadlock_ok:
            self._locals = max(self._locals, program.deadlock_ok.locals)

    # Each on demand: a program has hundreds of properties, and many callers need one kind of them, or none.

    @cached_property
    def invariants(self) -> Tests:
        """The invariants."""
        return self._compiled(self.program.invariants)

    @cached_property
    def steps(self) -> Tests:
        """The step invariants, with refinements."""
        return self._compiled(self.program.step_invariants)

    @cached_property
    def witnesses(self) -> Tests:
        """The properties that a state should satisfy."""
        return self._compiled(self.program.witnesses)

    @cached_property
    def _constraints(self) -> Tests:
        return self._compiled(self.program.constraints)

    @cached_property
    def _deadlock_ok(self) -> Tests:
        return self._compiled((self.program.deadlock_ok,) if self.program.deadlock_ok else ())

    def make(self) -> None:
        """Build all functions now, instead of where they are called first."""
        _ = self.invariants, self.steps, self.witnesses, self._constraints, self._deadlock_ok

    def _compiled(self, props: tuple[Property, ...]) -> Tests:
        return [(prop, self._test(prop)) for prop in props]

    def _test(self, prop: Property) -> Test:
        # By the steps of the other program, and not by the predicate that was made of them.
        if isinstance(prop, Refinement):
            return Refining(prop, self.size, self.evaluator.counts).allows
        return self.evaluator.compile(prop.body)

    def environment(self, state: State, after: State | None = None) -> list[Any]:
        """An environment for predicates of a state, or of a step to `after`."""
        return [*state, *(after if after is not None else state), *([0] * self._locals)]

    def failed(
        self, env: list[Any], among: Tests, known: Container[tuple[str, str]] = ()
    ) -> Iterator[tuple[Property, str, Blame]]:
        """The properties that fail, with kind and blame; an undefined property fails as `undefined`.

        Failures that are `known`, as (kind, name), are left out: finding the blame takes a while.
        """
        for prop, test in among:
            try:
                if test(env):
                    continue
            except Undefined as undefined:
                # A fault of one property hides none of the later ones: each has its own violation.
                if ("undefined", prop.name) not in known:
                    yield prop, "undefined", Blame.of(undefined)
                continue
            if (prop.kind, prop.name) not in known:
                yield prop, prop.kind, self._blame(prop, env)

    def _blame(self, prop: Property, env: list[Any]) -> Blame:
        if isinstance(prop, Refinement):
            return Blame(prop.span, f"no action of `{prop.abstract.spec}` allows this step", ())
        return blame(prop, self._quiet, env)

    def inside(self, env: list[Any]) -> bool:
        """Whether a state satisfies all constraints; raises `NoAnswer`."""
        # In order, up to the first that is false: as with `and`, a later one may rely on it to have a value.
        # The kernel does the same (`native.kernel.predicates`).
        return all(answer(prop, test, env) for prop, test in self._constraints)

    def keeps(self, state: State) -> bool:
        """Whether a state satisfies all constraints; false if one of them is undefined."""
        try:
            return self.inside(self.environment(state))
        except NoAnswer:
            return False

    def may_deadlock(self, env: list[Any]) -> bool:
        """Whether `deadlock ok` allows this end of a behaviour; raises `NoAnswer`."""
        return any(answer(prop, test, env) for prop, test in self._deadlock_ok)


class Functions(Struct, frozen=True):
    """All functions of a program: of its actions, and of its properties.

    To make those of a large program takes as long as to expand hundreds of states, so searches of one
    program that follow each other share them; the counts are those of the first.
    """

    stepper: Stepper
    properties: Properties

    @classmethod
    def of(cls, program: Program) -> Functions:
        """The functions of a program, with counts of their own."""
        stepper = Stepper(program)
        return cls(stepper, Properties(program, stepper))

    def make(self) -> None:
        """Build all functions now, instead of where they are called first."""
        self.stepper.make()
        self.properties.make()


def answer(prop: Property, test: Test, env: list[Any]) -> bool:
    """Whether a predicate is true in an environment; raises `NoAnswer` if it is undefined."""
    try:
        return bool(test(env))
    except Undefined as undefined:
        raise NoAnswer(prop, undefined) from None
