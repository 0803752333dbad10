"""Steps with their reasons: the branches that were taken, and the result of each comparison.

A `Tracer` is the stepper of `meaning.step` whose evaluator records its decisions on the path to each
successor, and to each place where a path ends without one: a guard that is false, an option that is
none, a choice from an empty set.  The meaning of steps stays in `meaning.step` and `meaning.evaluate`; only
the records are made here.

A mark is (what, where, how it came out):

    branch   of `either` and `when`                  the coverage point is the place
    sign     `==`, `<`, ... and `min`, `max`         -1, 0, 1 for numbers; else 0 equal, 1 different
    enum     `==` and `!=` of names of an enum       which two
    truth    membership, and every bool that is read 0 or 1
    case     of a match                              the variant, for options 0 none, 1 some
    end      a guard's part, an option, a choice     why a path ended

A path whose guard is false is continued through the guards after it, up to the first statement with
alternatives: a refusal is described by all guards that forbid the step, not by the first one.

Places are spans of the source, so an inlined definition has the same marks wherever it is used, and
a comparison in a loop has all the marks that it gets there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from operator import itemgetter
from typing import Any, NamedTuple

from specchk.ir.nodes import Apply, Assign, Block, Case, Choice, Either, Expr, Guard, Local, Stmt, Var, When
from specchk.ir.program import Action, Program
from specchk.ir.types import Bool, Enum, Int, Option, Union, of_shape
from specchk.ir.walk import conjuncts
from specchk.lang.text.source import Span
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.operators import RULES, TextRule
from specchk.meaning.step import Compiled, Run, Stepper
from specchk.meaning.texts.joined import RuleText, body_of, called, filled, function_of
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State, Values

Get = Callable[[list[Any]], Any]


class Decision(NamedTuple):
    """One decision; `where` is a position in `Tracer.places`."""

    kind: str
    where: int
    how: int


Marks = frozenset[Decision]


class Reached(NamedTuple):
    """A successor, and the decisions that led to it."""

    after: State
    marks: Marks


class Looked(NamedTuple):
    """An instance in a state: its successors, its dead ends, and whether a path exceeded a horizon."""

    action: int
    args: tuple[Any, ...]
    reached: tuple[Reached, ...]
    dead_ends: frozenset[Marks]
    beyond: bool


class Tracer(Stepper):
    """A stepper that records decisions; it counts no coverage."""

    def __init__(self, program: Program) -> None:
        self.places: list[Span] = []
        self.trail: list[Decision] = []
        self.failing = False
        self._numbers: dict[tuple[int, int], int] = {}
        self._reached: list[Reached] = []
        self._dead_ends: list[Marks] = []
        super().__init__(program)
        self.every = [list(product(*domains)) for domains in self._domains]

    def make_evaluator(self) -> Evaluator:
        """A condition that records its result."""
        return _Watching(self)

    def compiled(self, index: int, action: Action, values: Values) -> Compiled:
        """An action that records the branches it takes."""
        return _Watched(self, index, action, values)

    def place(self, span: Span) -> int:
        """The number of a place in the source."""
        # By place and not by node: an inlined definition is many nodes with one span, and one place for the
        # reader.
        number = self._numbers.setdefault((span.start, span.end), len(self.places))
        if number == len(self.places):
            self.places.append(span)
        return number

    def look(self, state: State) -> Iterator[Looked]:
        """Every instance of every action in a state; undefined ones are left out."""
        for index in range(len(self.every)):
            yield from self.instances(index, state)

    def instances(self, index: int, state: State) -> Iterator[Looked]:
        """Every instance of an action in a state; undefined ones are left out."""
        for args in self.every[index]:
            looked = self.instance(index, args, state)
            if looked is not None:
                yield looked

    def instance(self, index: int, args: tuple[Any, ...], state: State) -> Looked | None:
        """An instance in a state; None if it is undefined there."""
        env, first = self.environment(state), self.evaluator.first_local
        env[first : first + len(args)] = args
        self.trail.clear()
        self._reached.clear()
        self._dead_ends.clear()
        self.failing = False
        cuts = self.horizon_cuts
        try:
            self._compiled[index].body(env)
        except Undefined:
            return None
        beyond = self.horizon_cuts > cuts
        return Looked(index, args, tuple(self._reached), frozenset(self._dead_ends), beyond)

    def reach(self, after: State) -> None:
        """Record a successor."""
        self._reached.append(Reached(after, frozenset(self.trail)))

    def end(self) -> None:
        """Record that a path ended without a successor."""
        self._dead_ends.append(frozenset(self.trail))


class _Watching(Evaluator):
    """Compiles as its base class does; decisions leave marks."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__(tracer.size)
        self.tracer = tracer
        self._joins = True  # what leaves marks does so in the text, too

    def compile(self, expr: Expr) -> Get:
        """The function of an expression."""
        if isinstance(expr, Var | Local) and isinstance(expr.type, Bool):
            return function_of(self._text(expr))
        return super().compile(expr)

    def _text(self, expr: Expr) -> RuleText:
        """The text of an expression; a part that leaves a mark is a call that notes and returns its value."""
        if isinstance(expr, Apply) and expr.op.card.marks == "sign":
            return self._signed(expr)
        text = super()._text(expr)
        if not isinstance(expr.type, Bool):
            return text
        if isinstance(expr, Var | Local) or (isinstance(expr, Apply) and expr.op.card.marks == "truth"):
            return self._marked("truth", expr, text)
        return text

    def _signed(self, expr: Apply) -> RuleText:
        """The operator, on two operands that are also compared for the note."""
        left, right = (self.part(arg) for arg in expr.args)
        where, append = self.tracer.place(expr.span), self.tracer.trail.append
        kind = expr.args[0].type
        if isinstance(kind, Enum):
            # The names themselves are recorded, not only whether they are equal.
            size = len(kind.members)
            marks = [Decision("enum", where, how) for how in range(size * size)]
            note = RuleText("{}({}[a * {} + b])", (append, marks, size))
        elif isinstance(kind, Int):
            equal, more, less = (Decision("sign", where, how) for how in (0, 1, -1))
            note = RuleText("{}({} if a == b else {} if a > b else {})", (append, equal, more, less))
        else:
            # Values that are no numbers have an order, but none that a spec can see.
            equal, other = (Decision("sign", where, how) for how in (0, 1))
            note = RuleText("{}({} if a == b else {})", (append, equal, other))
        # By the operator's own rule, whose operands are evaluated once, for it and for the mark.
        rule = RULES[expr.op]
        if isinstance(rule, TextRule):
            value = rule.text(expr, [RuleText("a"), RuleText("b")])
        else:
            value = called(rule(expr, [itemgetter(0), itemgetter(1)]))
        lines = [RuleText("a, b = e"), filled("value = {}", [value]), note, RuleText("return value")]
        return filled("{}(({}, {}))", [RuleText("{}", (body_of(lines),)), left, right])

    def _marked(self, kind: str, expr: Expr, text: RuleText) -> RuleText:
        append, where = self.tracer.trail.append, self.tracer.place(expr.span)
        no, yes = Decision(kind, where, 0), Decision(kind, where, 1)
        note = body_of([RuleText("{}({} if e else {})", (append, yes, no)), RuleText("return e")])
        return filled("{}({})", [RuleText("{}", (note,)), text])

    def _case(self, expr: Case) -> list[RuleText]:
        """A match that notes the arm that is taken."""
        value, tag, *arms = super()._case(expr)
        kind, where = expr.scrutinee.type, self.tracer.place(expr.span)
        tags = range(2 if isinstance(kind, Option) else len(of_shape(kind, Union).variants))
        marks = [Decision("case", where, how) for how in tags]
        return [value, tag, RuleText("{}({}[tag])", (self.tracer.trail.append, marks)), *arms]


class _Watched(Compiled):
    """Compiles as its base class does; the notes of an item or branch are discarded before the next one."""

    stepper: Tracer

    def __init__(self, stepper: Tracer, index: int, action: Action, values: Values) -> None:
        super().__init__(stepper, index, action, values)
        self.body = self._scoped(self.body)

    def _emit(self, first: int, count: int) -> Run:
        return self._unless_failing(super()._emit(first, count), self._end)

    def _reach(self, first: int, count: int) -> Run:
        size, tracer = self.size, self.stepper
        return lambda e: tracer.reach(tuple(e[size : 2 * size]))

    def _end(self, _: list[Any]) -> None:
        self.stepper.end()

    def block(self, body: Block, then: Run) -> Run:
        """Each statement separately, since each may end a path."""
        for stmt in reversed(body):
            then = self._statement(stmt, then)
        return then

    def _statement(self, stmt: Stmt, then: Run) -> Run:
        if isinstance(stmt, Guard):
            return self._guard(stmt, then)
        run = super()._statement(stmt, then)
        # Guards, bindings and options are followed after a failure, assignments passed; alternatives are not.
        if isinstance(stmt, Assign):
            return self._unless_failing(run, then)
        return self._unless_failing(run, self._end) if isinstance(stmt, Choice | Either | When) else run

    def _each(self, run: Run) -> Run:
        return self._scoped(run)

    def _unless_failing(self, run: Run, otherwise: Run) -> Run:
        """A statement on a path that has not failed before it, and the way on for one that has."""
        tracer = self.stepper

        def unless_failing(e: list[Any]) -> None:
            if tracer.failing:
                otherwise(e)
            else:
                run(e)

        return unless_failing

    def _scoped(self, run: Run) -> Run:
        """A run whose notes are discarded afterwards."""
        trail = self.stepper.trail

        def scoped(e: list[Any]) -> None:
            length = len(trail)
            run(e)
            del trail[length:]

        return scoped

    def _covered(self, point: int, run: Run) -> list[RuleText]:
        trail, mark = self.stepper.trail, Decision("branch", point, 1)

        def covered(e: list[Any]) -> None:
            length = len(trail)
            trail.append(mark)
            run(e)
            del trail[length:]

        return [called(covered)]

    def _guard(self, stmt: Guard, then: Run) -> Run:
        """All parts of a guard are evaluated; after the first false one, undefined parts are skipped."""
        tracer, trail = self.stepper, self.stepper.trail
        parts = [
            (self.evaluator.compile(part), Decision("end", tracer.place(part.span), 0))
            for part in conjuncts(stmt.condition)
        ]

        def guard(e: list[Any]) -> None:
            had_failed = tracer.failing
            for test, mark in parts:
                try:
                    holds = test(e)
                except Undefined:
                    # After a false guard no expression needs to have a value: the guard may keep it from
                    # being undefined.
                    if not tracer.failing:
                        raise
                    continue
                if not holds:
                    tracer.failing = True
                    trail.append(mark)
            try:
                then(e)
            except Undefined:
                if not tracer.failing:
                    raise
                tracer.end()
            finally:
                tracer.failing = had_failed

        return guard

    def _content(self, expr: Expr) -> RuleText:
        tracer, value = self.stepper, function_of(super()._content(expr))
        mark = Decision("end", tracer.place(expr.span), 0)

        def content(e: list[Any]) -> Any:
            found = value(e)
            if not found:
                tracer.trail.append(mark)
                tracer.end()
            return found

        return called(content)
