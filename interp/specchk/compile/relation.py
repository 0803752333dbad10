"""An action as a predicate of two states: whether one of its paths leads from the first to the second.

    require p      p and ...                    any x in S: b      exists x in S: b ...
    either, when   `or`, `if`, each branch with what follows
    at the end     x'[k] = e: the new x is { x with [k]: e }, one assignment after the other; and
                   every variable's new value, or its old one, equals its value in the second state

Paths are tried in the order of `meaning.step`, and parts that may be undefined are evaluated where it does:
those of assignments where all conditions hold.
For an action that always has a value, the variables that it leaves unchanged are compared first, and a name
that is assigned unchanged to a variable gets its value from the second state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from specchk.compile.expressions import ExpressionLowering
from specchk.compile.nodes import operators
from specchk.ir import nodes
from specchk.ir.nodes import Assign, Block, Const, Expr, Local, PathStep, Stmt
from specchk.ir.ops import Op
from specchk.ir.program import Action
from specchk.ir.totality import is_total
from specchk.ir.types import BOOL, Map, Set, Type, cardinality, fits, has_horizon
from specchk.ir.walk import assignments, roots
from specchk.lang.text.diagnostics import refusal
from specchk.lang.text.source import Span

MAX_STATEMENTS = 10_000  # of an action, those after a branch counted once for each branch


class _Written(Struct, frozen=True):
    """The new value of a variable so far, and the assigned paths."""

    value: Expr
    paths: tuple[tuple[PathStep, ...], ...]


_Writes = Mapping[int, _Written]
_Then = Callable[[tuple[Assign, ...]], Expr]  # what follows, for the assignments so far


class Relation:
    """Builds predicates from actions, with variables `before` in the first state, `after` in the second."""

    def __init__(
        self, expressions: ExpressionLowering, before: Sequence[Expr], after: Sequence[Expr]
    ) -> None:  # fmt: skip
        self.expressions = expressions
        self.before = before
        self.after = after
        self._made = 0
        self._has_value = False

    def same(self, span: Span) -> Expr:
        """The predicate that the step changes nothing."""
        return operators.conjoined(span, [self._equal(slot, {}, span) for slot in range(len(self.before))])

    def of(self, action: Action, domains: Sequence[Expr]) -> Expr:
        """The predicate of an action; `domains` are the values of its parameters."""
        span, self._made = action.span, 0
        written = frozenset(stmt.slot for stmt in assignments(action.body))
        frame: list[int] = []
        # Most pairs of states differ in a variable that the action leaves alone, so these conjuncts fail
        # soonest. Where something may be undefined they wait: the step is then reported, wherever it leads.
        self._has_value = _has_value(action.body)
        if self._has_value:
            frame = [slot for slot in range(len(self.before)) if slot not in written]
        late = [slot for slot in range(len(self.before)) if slot not in frame]

        def ends(writes: _Writes) -> Expr:
            return operators.conjoined(span, [self._equal(slot, writes, span) for slot in late])

        predicate = self._block(action.body, (), lambda changes: self._changes(changes, {}, ends), action)
        for index, (param, domain) in reversed(list(enumerate(zip(action.params, domains, strict=True)))):
            known = frozenset(action.params[:index])
            predicate = self._some(param, domain, known, action.body, predicate)
        return operators.conjoined(span, [*[self._equal(slot, {}, span) for slot in frame], predicate])

    def _some(self, local: Local, domain: Expr, known: frozenset[Expr], body: Block, predicate: Expr) -> Expr:
        """The predicate for some value of a name; for the one in the second state if no other is possible."""
        if self._has_value and isinstance(domain, Const) and isinstance(domain.value, tuple):
            value = self._given(local, known, body)
            # Else the value in the second state may be one that the domain does not have.
            is_whole = len(domain.value) == cardinality(local.type)
            if is_whole and value is not None and _has_room(local.type, value.type):
                return nodes.Let(BOOL, domain.span, local, value, predicate)
        return nodes.Quantifier(BOOL, domain.span, False, local, domain, predicate)

    def _given(self, local: Local, known: frozenset[Expr], body: Block) -> Expr | None:
        """The place in the second state to which a block assigns the value of a name unchanged."""
        for stmt in body:
            if isinstance(stmt, nodes.Choice):
                return self._given(local, known, stmt.body)
            if not isinstance(stmt, Assign) or stmt.value != local:
                continue
            keys = [step.key for step in stmt.path if step.key is not None]
            if all(isinstance(key, Const) or key in known for key in keys):
                return _place(self.after[stmt.slot], stmt)
        return None

    def _equal(self, slot: int, writes: _Writes, span: Span) -> Expr:
        value = writes[slot].value if slot in writes else self.before[slot]
        return operators.applied(span, Op.EQ, self.after[slot], value)

    def _block(self, body: Block, changes: tuple[Assign, ...], then: _Then, action: Action) -> Expr:
        if not body:
            return then(changes)
        self._made += 1
        if self._made > MAX_STATEMENTS:
            message = f"`{action.name}` has too many ways to be compared with one step"
            hint = "split it into several actions; each `when` and `either` doubles what follows it"
            raise refusal("S509", action.span, message, hint)
        first, rest = body[0], body[1:]
        return self._statement(first, changes, lambda after: self._block(rest, after, then, action), action)

    def _statement(self, stmt: Stmt, changes: tuple[Assign, ...], then: _Then, action: Action) -> Expr:
        match stmt:
            case nodes.Guard():
                return nodes.And(BOOL, stmt.condition.span, (stmt.condition, then(changes)))
            case nodes.Bind():
                return nodes.Let(BOOL, stmt.value.span, stmt.local, stmt.value, then(changes))
            case nodes.Unwrap():
                span = stmt.value.span
                # With `none` there is no way on; 1 is the tag of `some`.
                no = Const(BOOL, span, False)
                return nodes.Case(BOOL, span, stmt.value, ((1, stmt.local, then(changes)),), no)
            case Assign():
                return then((*changes, stmt))
            case nodes.Choice():
                body = self._block(stmt.body, changes, then, action)
                known = frozenset(action.params)
                return self._some(stmt.local, stmt.domain, known, stmt.body, body)
            case nodes.Either():
                ways = tuple(self._block(branch, changes, then, action) for branch in stmt.branches)
                return nodes.Or(BOOL, action.span, ways)
            case nodes.When():
                yes, no_ = (self._block(branch, changes, then, action) for branch in (stmt.then, stmt.orelse))
                return nodes.If(BOOL, stmt.condition.span, stmt.condition, yes, no_)

    def _changes(self, changes: tuple[Assign, ...], writes: _Writes, then: Callable[[_Writes], Expr]) -> Expr:
        if not changes:
            return then(writes)
        return self._assign(changes[0], writes, lambda after: self._changes(changes[1:], after, then))

    def _assign(self, stmt: Assign, writes: _Writes, then: Callable[[_Writes], Expr]) -> Expr:
        known = writes.get(stmt.slot, _Written(self.before[stmt.slot], ()))
        keys = [step.key for step in stmt.path if step.key is not None]

        def assigned(parts: list[Expr]) -> Expr:
            *new_keys, value = parts
            path = _with_keys(stmt.path, new_keys)
            accessors = [(step, stmt.span) for step in path]
            new = self.expressions.partial.updated(stmt.span, known.value, accessors, value)
            paths = (*known.paths, path)
            rest = self._kept([new], lambda kept: then({**writes, stmt.slot: _Written(kept[0], paths)}), stmt)
            return self._once(known, path, stmt.span, rest)

        return self._kept([*keys, stmt.value], assigned, stmt)

    def _kept(self, values: list[Expr], body: Callable[[list[Expr]], Expr], stmt: Assign) -> Expr:
        """The body with values that may be undefined evaluated first."""
        if all(map(is_total, values)):
            return body(values)
        kept: list[tuple[Local, Expr]] = []
        parts: list[Expr] = []
        for value in values:
            if isinstance(value, Const | Local):
                parts.append(value)
            else:
                local = self.expressions.local("_", value.type, value.span)
                kept.append((local, value))
                parts.append(local)
        predicate = body(parts)
        for local, value in reversed(kept):
            predicate = nodes.Let(BOOL, stmt.span, local, value, predicate)
        return predicate

    def _once(self, known: _Written, path: tuple[PathStep, ...], span: Span, rest: Expr) -> Expr:
        """The rest of the block; undefined if the place was assigned before, as the step itself is."""
        clashes = [clash for other in known.paths if (clash := _meets(other, path, span)) is not None]
        if not clashes:
            return rest
        # An expression without a value: a choice from nothing.
        nothing = Const(Set(BOOL), span, ())
        local = self.expressions.local("_", BOOL, span)
        fault = nodes.Choose(BOOL, span, local, nothing, Const(BOOL, span, True))
        return nodes.If(BOOL, span, nodes.Or(BOOL, span, (Const(BOOL, span, False), *clashes)), fault, rest)


def _meets(one: tuple[PathStep, ...], other: tuple[PathStep, ...], span: Span) -> Expr | None:
    """The condition that two paths overlap; None if they certainly do not."""
    parts: list[Expr] = [Const(BOOL, span, True)]
    # Up to the end of the shorter one: an assignment of a whole assigns its parts.
    for a, b in zip(one, other, strict=False):
        if a.field != b.field:
            return None
        if a.key is not None and b.key is not None:
            parts.append(operators.applied(span, Op.EQ, a.key, b.key))
    return nodes.And(BOOL, span, tuple(parts))


def _with_keys(path: tuple[PathStep, ...], keys: list[Expr]) -> tuple[PathStep, ...]:
    rest = iter(keys)
    return tuple(
        PathStep(step.field, next(rest) if step.key is not None else None, step.container) for step in path
    )


def _has_room(kind: Type, given: Type) -> bool:
    """Whether all values of a type are values of another, both with and without horizons."""
    return fits(given, kind) and (has_horizon(kind) or not has_horizon(given))


def _place(value: Expr, stmt: Assign) -> Expr:
    """The place in a value to which an assignment writes."""
    for step in stmt.path:
        if step.field is not None:
            value = operators.applied(stmt.span, Op.FIELD, value, data=step.field)
        else:
            assert step.key is not None
            value = operators.at(stmt.span, value, step.key)
    return value


def _has_value(body: Block) -> bool:
    """Whether every path of a block is defined."""
    assigned = assignments(body)
    once = len({stmt.slot for stmt in assigned}) == len(assigned)
    return once and all(map(is_total, roots(body))) and not any(map(_may_miss, assigned))


def _may_miss(stmt: Assign) -> bool:
    """Whether an index on an assignment's path may be outside its domain."""
    keys = [(step.container, step.key.type) for step in stmt.path if step.key is not None]
    return any(not isinstance(of, Map) or Op.MAP_GET.card.partial((of, key)) for of, key in keys)
