"""THE meaning of actions: which successors a state has.

A block is compiled from its last statement to its first: the function of a statement runs it in an
environment and then calls the function of what follows, once for each way to go on.  Past the last
statement the variables' new values are collected as one successor.  Writes are undone on the way
back, so one environment serves all successors of a state.

- Every right-hand side reads the state before the step; unassigned variables stay.
- An assignment above a `nat upto` horizon means that this step is not taken; `horizon_cuts` counts.
- Assigning one place twice on one path is undefined (found statically where it can be).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import product
from typing import Any, assert_never

from specchk.ir import nodes
from specchk.ir.footprint import assigned_often, of_action
from specchk.ir.program import Action, Program
from specchk.ir.types import Map
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.operators import position_of, replaced
from specchk.meaning.texts.joined import RuleText, body_of, called, filled
from specchk.meaning.undefined import BeyondHorizon, Undefined
from specchk.meaning.values import State, Values

Run = Callable[[list[Any]], None]
Successor = tuple[int, tuple[Any, ...], State]  # action's position, arguments, state after
Path = tuple[Any, ...]


class Faulty(Exception):
    """An action instance has no meaning in a state: some expression of it is undefined."""

    def __init__(self, action: int, args: tuple[Any, ...], undefined: Undefined) -> None:
        self.action = action
        self.args_ = args
        self.undefined = undefined
        super().__init__(undefined.reason)

    def __reduce__(self) -> tuple[type[Faulty], tuple[object, ...]]:
        return type(self), (self.action, self.args_, self.undefined)


class Stepper:
    """The next-state relation of a program.

    `counts` has one entry for each coverage point; it grows while successors are computed.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.size = len(program.variables)
        self.counts = [0] * len(program.points)
        self.horizon_cuts = 0
        self.cut: set[int] = set()
        """The positions of the actions with such steps; to be cleared by who reads them."""
        self.evaluator = self.make_evaluator()
        self._locals = max((action.locals for action in program.actions), default=0)
        self._out: list[Successor] = []
        values = Values()
        self._compiled = [self.compiled(index, act, values) for index, act in enumerate(program.actions)]
        self._bodies = [one.body for one in self._compiled]
        self._domains = [one.domains for one in self._compiled]

    def make_evaluator(self) -> Evaluator:
        """What compiles the expressions; `meaning.tracing` watches them."""
        return Evaluator(self.size, self.counts)

    def compiled(self, index: int, action: Action, values: Values) -> Compiled:
        """One action's functions; `meaning.tracing` watches them."""
        return Compiled(self, index, action, values)

    @cached_property
    def _actions(self) -> list[Run]:
        """For each action what tries all of its instances: many, and not needed where calls are named."""
        return [one.runs() for one in self._compiled]

    def environment(self, state: State) -> list[Any]:
        """An environment in which the state is both before and after."""
        # Behind the locals a place for each variable, where `_claim` keeps which parts of it were assigned.
        return [*state, *state, *([0] * (self._locals + self.size))]

    def successors(self, state: State) -> list[Successor]:
        """All successors, in the order of actions, arguments and choices; with repetitions."""
        return self._after(state, enumerate(self._actions))

    def successors_by(self, state: State, index: int) -> list[Successor]:
        """The successors by one action, in the order of arguments and choices; with repetitions."""
        return self._after(state, ((index, self._actions[index]),))

    def _after(self, state: State, actions: Iterable[tuple[int, Run]]) -> list[Successor]:
        env = self.environment(state)
        self._out.clear()
        index = 0
        try:
            for index, run in actions:  # noqa: B007 - blamed below
                run(env)
        except Undefined as undefined:  # a state in which a step is undefined has no successors
            # The arguments are still in the environment where the instance left them.
            raise Faulty(index, self._arguments(env, index), undefined) from None
        return self._out.copy()  # the caller's own: it may ask for other states' successors meanwhile

    @cached_property
    def footprints(self) -> list[tuple[int, ...]]:
        """Of each action the positions of the variables that it touches."""
        touched = [of_action(action) for action in self.program.actions]
        return [tuple(sorted(one.reads | one.writes)) for one in touched]

    def narrow(self, index: int, values: Sequence[Any]) -> State:
        """A state in which an action's variables have these values, and all others have none."""
        state: list[Any] = [None] * self.size
        for slot, value in zip(self.footprints[index], values, strict=True):
            state[slot] = value
        return tuple(state)

    @property
    def emitted(self) -> tuple[Successor, ...]:
        """The successors found last; those before the fault where there was one."""
        return tuple(self._out)

    def _arguments(self, env: list[Any], index: int) -> tuple[Any, ...]:
        first = self.evaluator.first_local
        return tuple(env[first : first + len(self.program.actions[index].params)])

    def of_action(self, state: State, index: int, args: Sequence[Any]) -> list[Successor]:
        """The successors by one action with given arguments; none where an argument is out of range."""
        # A recording or a scenario may name an argument that no instance has; a compiled body would index
        # with it.
        for arg, domain in zip(args, self._domains[index], strict=True):
            if arg not in domain:
                return []
        return self.of_instance(state, index, args)

    def of_instance(self, state: State, index: int, args: Sequence[Any]) -> list[Successor]:
        """As `of_action`, for arguments that an instance has."""
        env = self.environment(state)
        first = self.evaluator.first_local
        env[first : first + len(args)] = args
        self._out.clear()
        try:
            self._bodies[index](env)
        except Undefined as undefined:
            raise Faulty(index, tuple(args), undefined) from None
        return self._out.copy()


class Compiled:
    """Compiles one action."""

    def __init__(self, stepper: Stepper, index: int, action: Action, values: Values) -> None:
        self.stepper = stepper
        self.index = index
        self.action = action
        self.size = stepper.size
        self.evaluator = stepper.evaluator
        self.paths = 2 * self.size + stepper._locals
        self.often = assigned_often(action.body)
        self.domains = [values.values(param.type) for param in action.params]
        self.body = self.block(action.body, self._emit(self.evaluator.first_local, len(action.params)))

    def runs(self) -> Run:
        """The function that tries every instance of the action."""
        first = self.evaluator.first_local
        count = len(self.action.params)
        body, domains = self.body, self.domains
        if count == 0:
            return body
        # One parameter, as most actions have, without a tuple for each instance.
        if count == 1:
            (domain,) = domains

            def one(e: list[Any]) -> None:
                for e[first] in domain:
                    body(e)

            return one
        # Made once: the arguments of an action are the same in every state.
        instances = list(product(*domains))
        last = first + count

        def several(e: list[Any]) -> None:
            for e[first:last] in instances:
                body(e)

        return several

    def _emit(self, first: int, count: int) -> Run:
        out, index, size = self.stepper._out, self.index, self.size
        counts, point = self.stepper.counts, self.action.point

        def emit(e: list[Any]) -> None:
            counts[point] += 1
            out.append((index, tuple(e[first : first + count]), tuple(e[size : 2 * size])))

        return emit

    def block(self, body: nodes.Block, then: Run) -> Run:
        """The statements of a block, then what follows it."""
        # From the last to the first, because each statement's function needs that of what follows it.
        for stmt in reversed(body):
            then = self._statement(stmt, then)
        return then

    def _statement(self, stmt: nodes.Stmt, then: Run) -> Run:
        match stmt:
            case nodes.Guard():
                return self._guard(stmt, then)
            case nodes.Bind():
                return self._bind(stmt, then)
            case nodes.Unwrap():
                return self._unwrap(stmt, then)
            case nodes.Assign():
                return self._assign(stmt, then)
            case nodes.Choice():
                return self._choice(stmt, then)
            case nodes.Either():
                return self._either(stmt, then)
            case nodes.When():
                return self._when(stmt, then)
            case _:
                assert_never(stmt)

    def _guard(self, stmt: nodes.Guard, then: Run) -> Run:
        # False, it ends the way and not only the block around it: `then` has all that follows, also behind
        # the block.
        condition = self.evaluator.compile(stmt.condition)

        def guard(e: list[Any]) -> None:
            if condition(e):
                then(e)

        return guard

    def _bind(self, stmt: nodes.Bind, then: Run) -> Run:
        slot, value = self.evaluator.index(stmt.local), self.evaluator.compile(stmt.value)

        def bind(e: list[Any]) -> None:
            e[slot] = value(e)
            then(e)

        return bind

    def _unwrap(self, stmt: nodes.Unwrap, then: Run) -> Run:
        slot, value = self.evaluator.index(stmt.local), self._content(stmt.value)

        def unwrap(e: list[Any]) -> None:
            option: Any = value(e)
            if option:
                e[slot] = option[0]
                then(e)

        return unwrap

    def _choice(self, stmt: nodes.Choice, then: Run) -> Run:
        slot, domain = self.evaluator.index(stmt.local), self._content(stmt.domain)
        # What follows the choice is compiled into its body, so that it runs once for each item.
        body = self._each(self.block(stmt.body, then))

        def choice(e: list[Any]) -> None:
            items: Any = domain(e)
            for e[slot] in items:
                body(e)

        return choice

    def _content(self, expr: nodes.Expr) -> Callable[[list[Any]], Any]:
        """An option or a set, of which an empty one ends the way; `meaning.tracing` watches it."""
        return self.evaluator.compile(expr)

    def _each(self, run: Run) -> Run:
        """The statements of a choice, for one item; `meaning.tracing` watches them."""
        return run

    def _covered(self, point: int, run: Run) -> Run:
        counts = self.stepper.counts

        def covered(e: list[Any]) -> None:
            counts[point] += 1
            run(e)

        return covered

    def _either(self, stmt: nodes.Either, then: Run) -> Run:
        branches = [
            self._covered(point, self.block(branch, then))
            for point, branch in zip(stmt.points, stmt.branches, strict=True)
        ]

        def either(e: list[Any]) -> None:
            for branch in branches:
                branch(e)

        return either

    def _when(self, stmt: nodes.When, then: Run) -> Run:
        # Both branches end in one and the same `then`, so that ten `when` in a row are ten functions and not
        # 1024.  Where ways become code they have to be joined for that (`native.kernel.ways`).
        condition = self.evaluator.compile(stmt.condition)
        yes = self._covered(stmt.points[0], self.block(stmt.then, then))
        no = self._covered(stmt.points[1], self.block(stmt.orelse, then))

        def when(e: list[Any]) -> None:
            (yes if condition(e) else no)(e)

        return when

    def _assign(self, stmt: nodes.Assign, then: Run) -> Run:
        # As one text, since most of what steps do is to assign, and calls cost more than the rest.
        target = RuleText("{}", (self.size + stmt.slot,))
        stepper, index = self.stepper, self.index

        def cut(_: list[Any]) -> None:
            stepper.horizon_cuts += 1
            stepper.cut.add(index)

        # Undone when what follows has run, so that the next way begins from the same environment.  Not in a
        # `finally`: `Undefined` ends the whole state, and the environment with it.
        lines = [
            filled("old = e[{}]", [target]),
            RuleText("try:"),
            *[RuleText(f" {line.code}", line.values) for line in self._written(stmt)],
            filled(" e[{}] = new", [target]),
            RuleText("except {}: return {}(e)", (BeyondHorizon, cut)),
            # Outside of the `try`: a horizon that a later statement passes is that statement's, and counted
            # there.
            called(then),
            filled("e[{}] = old", [target]),
        ]
        assign = body_of(lines)
        return assign if stmt.slot not in self.often else self._remembering(stmt.slot, assign)

    def _written(self, stmt: nodes.Assign) -> list[RuleText]:
        """What makes the variable's `new` value of its `old` one."""

        def outside(_: list[Any]) -> None:
            raise Undefined(stmt.span, "this index is outside the sequence")

        # Keys, value, claim, index: the order decides which of two faults is reported, and the compiled
        # engine has the same (`native.kernel.steps`).
        keys = [called(self._key(step, stmt)) for step in stmt.path]
        lines = [filled(f"key{n} = {{}}", [key]) for n, key in enumerate(keys)]
        lines.append(filled("new = {}", [self.evaluator.part(stmt.value)]))
        if stmt.slot in self.often:
            written, path = self.paths + stmt.slot, "".join(f"key{n}, " for n in range(len(keys)))
            lines.append(RuleText(f"{{}}(e, {{}}, ({path}), {{}})", (_claim, written, stmt)))
        for n in range(len(keys)):
            lines.append(RuleText(f"part{n} = " + (f"part{n - 1}[key{n - 1}]" if n else "old")))
            lines.append(RuleText(f"if not 0 <= key{n} < len(part{n}): {{}}(e)", (outside,)))
        outwards = reversed(range(len(keys)))
        return [*lines, *[RuleText(f"new = {{}}(part{n}, key{n}, new)", (replaced,)) for n in outwards]]

    def _remembering(self, slot: int, assign: Run) -> Run:
        """Forget this assignment's path once what follows it is done."""
        written = self.paths + slot

        def remembering(e: list[Any]) -> None:
            before = e[written]
            assign(e)
            e[written] = before

        return remembering

    def _key(self, step: nodes.PathStep, stmt: nodes.Assign) -> Callable[[list[Any]], Any]:
        if step.field is not None:
            field = step.field
            return lambda e: field
        assert step.key is not None
        key = self.evaluator.compile(step.key)
        if isinstance(step.container, Map):
            return position_of(step.container.key, step.key.type, key, step.key)
        return key


def _claim(e: list[Any], written: int, path: Path, stmt: nodes.Assign) -> None:
    """Note that a place is written; undefined when it, or a place around or in it, already is."""
    paths: tuple[Path, ...] = e[written] or ()
    for other in paths:
        # Of a whole and a part of it one path is the beginning of the other.
        shorter = min(len(path), len(other))
        if path[:shorter] == other[:shorter]:
            raise Undefined(stmt.span, "this place is assigned twice in one step")
    e[written] = (*paths, path)
