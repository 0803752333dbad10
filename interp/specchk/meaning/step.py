"""THE meaning of actions: the successors of a state.

A block is compiled from its last statement to its first: the function of a statement runs it in an
environment and then calls the function of what follows, once for each way to go on.  Past the last
statement the variables' new values are collected as one successor.  Writes are undone on the way
back, so one environment serves all successors of a state.

- Every right-hand side reads the state before the step; unassigned variables stay.
- Conditions are evaluated in order, up to the first that is false; one that is undefined is a fault.
- A path on which all conditions hold is a step, unless an assignment on it is undefined, which is a fault, or
  else above a `nat upto` horizon, which `horizon_cuts` counts.  So an assignment that has no value is only
  noted (`pending`) until the end of its path, and means nothing if a condition below it is false.
- Assigning one place twice on one path is undefined (found statically where it can be).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import product
from typing import Any, assert_never

from specchk.ir import nodes
from specchk.ir.footprint import assigned_often
from specchk.ir.nodes import Value
from specchk.ir.program import Action, Program
from specchk.ir.types import Map, Type, has_horizon
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.operators import position_of
from specchk.meaning.texts.joined import RuleText, body_of, called, filled, function_of, indented
from specchk.meaning.undefined import BeyondHorizon, Faulty, Undefined, fault
from specchk.meaning.values import State, Values

Run = Callable[[list[Any]], None]
Successor = tuple[int, tuple[Any, ...], State]  # action's position, arguments, state after
Path = tuple[Any, ...]
Test = nodes.Guard | nodes.Bind | nodes.Unwrap


class Stepper:
    """The next-state relation of a program.

    `counts` has one entry for each coverage point; it grows while successors are computed.  A state in which
    a step is undefined has none, and adds none: those that come before that step are up to each engine.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.size = len(program.variables)
        self.counts = [0] * len(program.points)
        self.horizon_cuts = 0
        self.evaluator = self.make_evaluator()
        self.evaluator.above = []  # of the present assignments: they may be undefined all the same
        self._locals = max((action.locals for action in program.actions), default=0)
        # Behind the locals a place for each variable, where `_claim` keeps which parts of it were assigned,
        # and one for an assignment without a value on the present path: None, `Undefined`, `BeyondHorizon`.
        self._blank = (*(0,) * (self._locals + self.size), None)
        self._out: list[Successor] = []
        values = Values()
        self._compiled = [self.compiled(index, act, values) for index, act in enumerate(program.actions)]
        self._domains = [one.domains for one in self._compiled]

    def make_evaluator(self) -> Evaluator:
        """The compiler of the expressions; overridden in `meaning.tracing`."""
        return Evaluator(self.size, self.counts)

    def compiled(self, index: int, action: Action, values: Values) -> Compiled:
        """The functions of one action; overridden in `meaning.tracing`."""
        return Compiled(self, index, action, values)

    @cached_property
    def _actions(self) -> list[Run]:
        """For each action, the function that tries all of its instances; built on demand: they are many."""
        return [one.runs() for one in self._compiled]

    def make(self) -> None:
        """Build the functions of all actions now, instead of in the first state."""
        _ = self._actions

    def environment(self, state: State) -> list[Any]:
        """An environment with the state both as the state before and as the state after."""
        return [*state, *state, *self._blank]

    def successors(self, state: State) -> list[Successor]:
        """All successors, in the order of actions, arguments and choices; with duplicates."""
        counts, cuts = self.counts.copy(), self.horizon_cuts
        env = self.environment(state)
        self._out.clear()
        index = 0
        try:
            for index, run in enumerate(self._actions):  # noqa: B007 - blamed below
                run(env)
        except Undefined as undefined:  # a state in which a step is undefined has no successors
            self.counts[:], self.horizon_cuts = counts, cuts
            # The arguments are still in the environment where the instance left them.
            raise Faulty(index, self._arguments(env, index), undefined) from None
        return self._out.copy()  # the caller's own: it may request other states' successors in the meantime

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """A context that leaves coverage and horizon cuts as they were; read them before it ends."""
        counts, cuts = self.counts.copy(), self.horizon_cuts
        try:
            yield
        finally:
            self.counts[:], self.horizon_cuts = counts, cuts

    @property
    def emitted(self) -> tuple[Successor, ...]:
        """The successors found last; if there was a fault, those found before it."""
        return tuple(self._out)

    def _arguments(self, env: list[Any], index: int) -> tuple[Any, ...]:
        first = self.evaluator.first_local
        return tuple(env[first : first + len(self.program.actions[index].params)])

    def of_action(self, state: State, index: int, args: Sequence[Any]) -> list[Successor]:
        """The successors by one action with given arguments; none if an argument is out of range."""
        # A recording or a scenario may name an argument that no instance has; a compiled body would index
        # with it.
        for arg, domain in zip(args, self._domains[index], strict=True):
            if arg not in domain:
                return []
        return self.of_instance(state, index, args)

    def of_instance(self, state: State, index: int, args: Sequence[Any]) -> list[Successor]:
        """As `of_action`, for arguments known to be in range."""
        env = self.environment(state)
        first = self.evaluator.first_local
        env[first : first + len(args)] = args
        self._out.clear()
        try:
            self._compiled[index].body(env)
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
        self.pending = self.paths + self.size
        self.often = assigned_often(action.body)
        self.domains = [self.domain(param.type, values) for param in action.params]

    def domain(self, kind: Type, values: Values) -> Sequence[Value]:
        """The values of a parameter of a type."""
        return values.values(kind)

    @cached_property
    def body(self) -> Run:
        """The function of an instance; built on demand, since a recording needs few of the actions."""
        emit = self._emit(self.evaluator.first_local, len(self.action.params))
        return self.block(self.action.body, emit)

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
        stepper, reach, pending = self.stepper, self._reach(first, count), self.pending

        def emit(e: list[Any]) -> None:
            if e[pending] is None:
                reach(e)
            elif isinstance(e[pending], Undefined):
                raise e[pending]
            else:
                stepper.horizon_cuts += 1

        return self._counted(emit)

    def _counted(self, run: Run) -> Run:
        """The end of a path, counted; overridden where no coverage is counted."""
        counts, point = self.stepper.counts, self.action.point

        def counted(e: list[Any]) -> None:
            run(e)
            counts[point] += 1

        return counted

    def _reach(self, first: int, count: int) -> Run:
        """Add a successor; overridden in `meaning.tracing`."""
        out, index, size = self.stepper._out, self.index, self.size

        def reach(e: list[Any]) -> None:
            out.append((index, tuple(e[first : first + count]), tuple(e[size : 2 * size])))

        return reach

    def block(self, body: nodes.Block, then: Run) -> Run:
        """The function of a block's statements followed by the rest."""
        # From the last to the first, because each statement's function needs that of what follows it.
        rest = list(body)
        while rest:
            assigns = self._last(rest, nodes.Assign)
            tests = self._last(rest, nodes.Guard | nodes.Bind | nodes.Unwrap)
            if assigns or tests:
                then = self._straight(tests, assigns, then)
            else:
                then = self._statement(rest.pop(), then)
        return then

    def _last(self, rest: list[nodes.Stmt], kind: Any) -> list[Any]:
        """Remove and return the last statements of one kind."""
        at = len(rest)
        while at and isinstance(rest[at - 1], kind):
            at -= 1
        last = rest[at:]
        del rest[at:]
        return last

    def _statement(self, stmt: nodes.Stmt, then: Run) -> Run:
        match stmt:
            case nodes.Guard() | nodes.Bind() | nodes.Unwrap():
                return self._straight([stmt], [], then)
            case nodes.Assign():
                return self._straight([], [stmt], then)
            case nodes.Choice():
                return self._choice(stmt, then)
            case nodes.Either():
                return self._either(stmt, then)
            case nodes.When():
                return self._when(stmt, then)
            case _:
                assert_never(stmt)

    def _straight(self, tests: Sequence[Test], assigns: Sequence[nodes.Assign], then: Run) -> Run:
        """Statements without alternatives as one function: calls cost more than the rest."""
        lines = [line for stmt in tests for line in self._test(stmt)]
        if not assigns:
            return body_of([*lines, called(then)])
        # Undone after everything that follows has run, since the next path starts from the same environment.
        # Not in a `finally`: `Undefined` ends the whole state, and the environment with it.
        slots = dict.fromkeys(stmt.slot for stmt in assigns)
        changed = [self.size + slot for slot in slots]
        changed += [self.paths + slot for slot in slots if slot in self.often]
        places = [RuleText("{}", (place,)) for place in [*changed, self.pending]]
        lines += [filled(f"old{n} = e[{{}}]", [place]) for n, place in enumerate(places)]
        for stmt in assigns:
            lines += [RuleText("try:"), *indented(self._written(stmt))]
            lines.append(RuleText("except {} as reason: {}(e, reason)", (Undefined, self._postpone)))
        above = self.evaluator.above
        lines.append(RuleText("if {}: {}(e, {}[0])", (above, self._postpone, above)))
        undone = [filled(f"e[{{}}] = old{n}", [place]) for n, place in enumerate(places)]
        return body_of([*lines, called(then), *undone])

    def _postpone(self, e: list[Any], reason: Undefined | BeyondHorizon) -> None:
        """Note that an assignment cannot be made; the first that is undefined counts, or else any."""
        if not isinstance(e[self.pending], Undefined):
            e[self.pending] = reason
        if self.evaluator.above:
            self.evaluator.above.clear()

    def _test(self, stmt: Test) -> list[RuleText]:
        # False, it ends the way and not only the block around it: `then` has all that follows, also behind
        # the block.
        match stmt:
            case nodes.Guard():
                return [filled("if not {}: return", [self.evaluator.part(stmt.condition)])]
            case nodes.Bind():
                return [filled("e[{}] = {}", [self._slot(stmt.local), self.evaluator.part(stmt.value)])]
            case nodes.Unwrap():
                return [
                    filled("content = {}", [self._content(stmt.value)]),
                    RuleText("if not content: return"),
                    filled("e[{}] = content[0]", [self._slot(stmt.local)]),
                ]
        assert_never(stmt)

    def _slot(self, local: nodes.Local) -> RuleText:
        return RuleText("{}", (self.evaluator.index(local),))

    def _choice(self, stmt: nodes.Choice, then: Run) -> Run:
        slot, items = self.evaluator.index(stmt.local), self._items(stmt.domain)
        # What follows the choice is compiled into its body, so that it runs once for each item.
        body = self._each(self.block(stmt.body, then))

        def choice(e: list[Any]) -> None:
            listed: Any = items(e)
            for e[slot] in listed:
                body(e)

        return choice

    def _items(self, domain: nodes.Expr) -> Callable[[list[Any]], Any]:
        """The items of a choice; overridden in `symbolic.replay`."""
        return function_of(self._content(domain))

    def _content(self, expr: nodes.Expr) -> RuleText:
        """The value of an option or a set; an empty one ends the path. Overridden in `meaning.tracing`."""
        return self.evaluator.part(expr)

    def _each(self, run: Run) -> Run:
        """The statements of a choice, for one item; overridden in `meaning.tracing`."""
        return run

    def _covered(self, point: int, run: Run) -> list[RuleText]:
        """Run a branch, and count the steps that it leads to."""
        stepper, counts, out = self.stepper, self.stepper.counts, self.stepper._out

        def covered(e: list[Any]) -> None:
            before = len(out) + stepper.horizon_cuts
            run(e)
            counts[point] += len(out) + stepper.horizon_cuts - before

        return [called(covered)]

    def _either(self, stmt: nodes.Either, then: Run) -> Run:
        pairs = zip(stmt.points, stmt.branches, strict=True)
        return body_of(
            [line for point, branch in pairs for line in self._covered(point, self.block(branch, then))]
        )

    def _when(self, stmt: nodes.When, then: Run) -> Run:
        # Both branches end in one and the same `then`, so that ten `when` in a row are ten functions and not
        # 1024.  Where paths become code they must be joined for that (`native.kernel.ways`).
        yes = self._covered(stmt.points[0], self.block(stmt.then, then))
        no = self._covered(stmt.points[1], self.block(stmt.orelse, then))
        test = filled("if {}:", [self.evaluator.part(stmt.condition)])
        return body_of([test, *indented(yes), RuleText("else:"), *indented(no)])

    def _written(self, stmt: nodes.Assign) -> list[RuleText]:
        """Give a variable its new value."""
        # The value last: a value above a horizon leaves nothing else unchecked.
        target = RuleText("{}", (self.size + stmt.slot,))
        lines = [filled(f"key{n} = {{}}", [self._key(step)]) for n, step in enumerate(stmt.path)]
        if stmt.slot in self.often:
            written, path = self.paths + stmt.slot, "".join(f"key{n}, " for n in range(len(stmt.path)))
            lines.append(RuleText(f"{{}}(e, {{}}, ({path}), {{}})", (_claim, written, stmt)))
        for n, step in enumerate(stmt.path):
            part = (
                filled("part0 = e[{}]", [target]) if not n else RuleText(f"part{n} = part{n - 1}[key{n - 1}]")
            )
            lines += [part, *self._inside(n, step, stmt)]
        lines.append(filled("new = {}", [self.evaluator.part(stmt.value)]))
        # As `replaced` does.
        for n in reversed(range(len(stmt.path))):
            lines += [RuleText(f"items = list(part{n})"), RuleText(f"items[key{n}] = new")]
            lines.append(RuleText("new = tuple(items)"))
        return [*lines, filled("e[{}] = new", [target])]

    @staticmethod
    def _inside(n: int, step: nodes.PathStep, stmt: nodes.Assign) -> list[RuleText]:
        """Check a key that may be outside the map or sequence."""
        kind = step.container
        # A field is one of the record's, and `position_of` has checked a map's key; for a key with a horizon,
        # values above it are allowed where there are no horizons.
        if step.field is not None or (isinstance(kind, Map) and not has_horizon(kind.key)):
            return []
        outside = fault(stmt.span, "this index is outside the sequence")
        return [RuleText(f"if not 0 <= key{n} < len(part{n}): {{}}()", (outside,))]

    def _key(self, step: nodes.PathStep) -> RuleText:
        if step.field is not None:
            return RuleText(str(step.field))
        assert step.key is not None
        key = self.evaluator.part(step.key)
        if isinstance(step.container, Map):
            return position_of(step.container.key, step.key.type, key, step.key.span)
        return key


def _claim(e: list[Any], written: int, path: Path, stmt: nodes.Assign) -> None:
    """Note that a place is written; undefined if it, or a place around it or in it, was written before."""
    paths: tuple[Path, ...] = e[written] or ()
    for other in paths:
        # Of a whole and a part of it one path is the beginning of the other.
        shorter = min(len(path), len(other))
        if path[:shorter] == other[:shorter]:
            raise Undefined(stmt.span, "this place is assigned twice in one step")
    e[written] = (*paths, path)
