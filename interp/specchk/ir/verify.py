"""The legality check, run after every pass, so that a wrong rewrite is detected where it occurred.

A legal program has types that agree (a part has the shape that its node needs, and no wider range
where a store was checked), locals that are bound where they are used, primed variables in step
invariants only, and coverage points that exist.  A failure is a bug of specchk (`IllegalProgram`),
never of a spec.

A pass keeps most parts of a program.  These are checked once: their legality depends on themselves, on the
names in scope and on the program's variables and coverage points only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Never

from msgspec import Struct, field

from specchk.ir import nodes
from specchk.ir.ops import Kinds, Op
from specchk.ir.program import Program, Property, Same
from specchk.ir.types import BOOL, Set, Type, fits, same_shape, show
from specchk.ir.typing import kinds, part_at
from specchk.lang.text.source import Span


class IllegalProgram(Exception):
    """A pass produced a program that violates the rules of the core."""


class Verified(Struct):
    """Parts known to be legal for the same variables and points, by identity, scope and allowed primes."""

    program: Program
    # With the parts themselves, so that no other object gets the number of one.
    parts: dict[tuple[int, frozenset[int], bool], nodes.Expr] = field(default_factory=dict)

    def of(self, program: Program) -> bool:
        """Whether the parts are also legal in another program."""
        known = self.program
        return known.variables is program.variables and known.points is program.points


def verify(program: Program, before: Verified | None = None) -> Verified:
    """Raise `IllegalProgram` unless every action and property is legal; `before` is from an earlier pass."""
    verified = before if before is not None and before.of(program) else Verified(program)
    check = _Check(program, verified)
    for start, variable in zip(program.starts, program.variables, strict=True):
        if start.value is not None:
            check.stored(start.value, variable.type, frozenset())
        if start.choices is not None:
            check.stored(start.choices, Set(variable.type), frozenset())
    for action in program.actions:
        check.block(action.body, frozenset(param.slot for param in action.params))
    for prop in properties(program):
        check.primes = prop.kind in ("step invariant", "refinement")
        check.expr(prop.body, frozenset())
        check.demand(prop.body.type == BOOL, "{} is not a truth value", prop.name)
    check.primes = False
    return verified


@lru_cache(maxsize=1)  # a search verifies when it begins, or before, while it waits for a compiler
def verify_passes(lowered: Same, program: Same) -> None:
    """Raise `IllegalProgram` for the first of two passes after which the program is wrong."""
    verify(program.program, verify(lowered.program))


def properties(program: Program) -> Iterator[Property]:
    """Every predicate of a program."""
    yield from program.inits
    yield from judged(program)


def judged(program: Program) -> Iterator[Property]:
    """Every predicate that a search evaluates: all except the conditions of initial states."""
    yield from program.invariants
    yield from program.step_invariants
    yield from (prop.initial for prop in program.refinements)
    yield from program.witnesses
    yield from program.constraints
    if program.deadlock_ok is not None:
        yield program.deadlock_ok
    for liveness in program.liveness:
        for clause in liveness.clauses:
            if clause.trigger is not None:
                yield clause.trigger
            yield clause.goal


def parts(expr: nodes.Expr) -> tuple[nodes.Expr, ...]:
    """The direct sub-expressions, in evaluation order."""
    return _PARTS[type(expr)](expr)


def _none(_: Any) -> tuple[Never, ...]:
    return ()


def _body(expr: Any) -> tuple[nodes.Expr, ...]:
    return (expr.body,)


def _of_collect(expr: nodes.Collect) -> tuple[nodes.Expr, ...]:
    condition = () if expr.condition is None else (expr.condition,)
    return (*(domain for _, domain in expr.binders), *condition, expr.body)


def _of_case(expr: nodes.Case) -> tuple[nodes.Expr, ...]:
    default = () if expr.default is None else (expr.default,)
    return (expr.scrutinee, *(body for _, _, body in expr.arms), *default)


# By class and not by `match`, which compares with one class after another: a program is walked many times.
_PARTS: Mapping[type, Callable[[Any], tuple[nodes.Expr, ...]]] = MappingProxyType({
    nodes.Const: _none, nodes.Var: _none, nodes.Local: _none,
    nodes.Apply: attrgetter("args"), nodes.And: attrgetter("parts"), nodes.Or: attrgetter("parts"),
    nodes.Implies: attrgetter("left", "right"), nodes.If: attrgetter("condition", "then", "orelse"),
    nodes.Quantifier: attrgetter("domain", "body"), nodes.Choose: attrgetter("domain", "body"),
    nodes.Collect: _of_collect,
    nodes.MapOf: _body, nodes.Narrow: _body, nodes.Cover: _body, nodes.Let: attrgetter("value", "body"),
    nodes.Case: _of_case,
})  # fmt: skip


def bound(expr: nodes.Expr) -> tuple[nodes.Local, ...]:
    """The locals that a node binds."""
    return _BOUND.get(type(expr), _none)(expr)


def _local(expr: Any) -> tuple[nodes.Local, ...]:
    return (expr.local,)


_BOUND: Mapping[type, Callable[[Any], tuple[nodes.Local, ...]]] = MappingProxyType({
    nodes.Quantifier: _local, nodes.Choose: _local, nodes.MapOf: _local, nodes.Let: _local,
    nodes.Collect: lambda expr: tuple([local for local, _ in expr.binders]),
    nodes.Case: lambda expr: tuple([local for _, local, _ in expr.arms if local is not None]),
})  # fmt: skip


def results(expr: nodes.Expr) -> tuple[nodes.Expr, ...]:
    """The parts whose value may be that of the expression."""
    return _RESULTS.get(type(expr), _none)(expr)


_RESULTS: Mapping[type, Callable[[Any], tuple[nodes.Expr, ...]]] = MappingProxyType({
    nodes.If: attrgetter("then", "orelse"), nodes.Let: _body, nodes.Cover: _body,
    nodes.Case: lambda expr: _of_case(expr)[1:],
})  # fmt: skip


def scoped(expr: nodes.Expr) -> Iterator[tuple[nodes.Expr, frozenset[int]]]:
    """The direct sub-expressions, each with the locals that the node binds for it."""
    nothing: frozenset[int] = frozenset()
    match expr:
        case nodes.Quantifier() | nodes.Choose() | nodes.MapOf() | nodes.Let():
            yield from ((part, nothing) for part in parts(expr)[:-1])
            yield expr.body, frozenset({expr.local.slot})
        case nodes.Collect():
            names = nothing
            for local, domain in expr.binders:
                yield domain, names
                names |= {local.slot}
            yield from ((part, names) for part in parts(expr)[len(expr.binders) :])
        case nodes.Case():
            yield expr.scrutinee, nothing
            yield from ((body, frozenset({local.slot}) if local else nothing) for _, local, body in expr.arms)
            if expr.default is not None:
                yield expr.default, nothing
        case _:
            yield from ((part, nothing) for part in parts(expr))


class _Check:
    def __init__(self, program: Program, verified: Verified) -> None:
        self.program = program
        self.legal = verified.parts
        self.primes = False

    def demand(self, condition: bool, message: str, *about: Type | Span | str | int) -> None:
        # Written out only for a program that is wrong: every node of every program is checked.
        if not condition:
            raise IllegalProgram(message.format(*map(_shown, about)))

    def expr(self, expr: nodes.Expr, scope: frozenset[int]) -> None:
        """Check an expression with the locals in scope."""
        match expr:
            case nodes.Const():
                return
            case nodes.Var():
                known = expr.slot < len(self.program.variables)
                self.demand(known and (self.primes or not expr.primed), "variable {} out of place", expr.slot)
                # Equal, and not only fitting: engines read the variable's bits as a code of the node's type.
                self.demand(expr.type == self.program.variables[expr.slot].type, "a variable's type changed")
                return
            case nodes.Local():
                self.demand(expr.slot in scope, "local {} is not bound here: {}", expr.name, expr.span)
                return
        place = id(expr), scope, self.primes
        if place not in self.legal:
            self._whole(expr, scope)
            self.legal[place] = expr

    def _whole(self, expr: nodes.Expr, scope: frozenset[int]) -> None:
        """Check an expression that has parts."""
        match expr:
            case nodes.Apply():
                fault = _misapplied(expr.op, kinds(expr.args), expr.data, expr.type)
                self.demand(fault is None, "{}", fault or "")
            case nodes.Cover():
                self.demand(expr.point < len(self.program.points), "no such coverage point")
            case nodes.Narrow():
                self.demand(same_shape(expr.type, expr.body.type), "cannot narrow {}", expr.body.type)
            case nodes.Quantifier() | nodes.Choose():
                self.demand(isinstance(expr.domain.type, Set), "a domain is a set")
                self.truth(expr.body)
            case nodes.Collect():
                self.demand(all(isinstance(d.type, Set) for _, d in expr.binders), "a domain is a set")
                if expr.condition is not None:
                    self.truth(expr.condition)
            case nodes.And() | nodes.Or() | nodes.Implies():
                for part in parts(expr):
                    self.truth(part)
            case nodes.If():
                self.truth(expr.condition)
        for part in results(expr):
            self.demand(fits(part.type, expr.type), "{} given as {}", part.type, expr.type)
        if bound(expr):
            for part, names in scoped(expr):
                # A name inside another one with its slot would change the value that is read after it.
                self.demand(not names & scope, "a slot is bound twice: {}", expr.span)
                self.expr(part, scope | names)
        else:
            for part in parts(expr):
                self.expr(part, scope)

    def truth(self, expr: nodes.Expr) -> None:
        """Check that an expression is a truth value."""
        self.demand(expr.type == BOOL, "{} is not a truth value: {}", expr.type, expr.span)

    def stored(self, expr: nodes.Expr, kind: Type, scope: frozenset[int]) -> None:
        """Check an expression whose value is assigned to a variable."""
        self.expr(expr, scope)
        self.demand(fits(expr.type, kind), "{} stored as {}: {}", expr.type, kind, expr.span)

    def block(self, body: nodes.Block, scope: frozenset[int]) -> None:
        """Check statements; a binding is in scope until the end of its block."""
        for stmt in body:
            match stmt:
                case nodes.Guard():
                    self.truth(stmt.condition)
                    self.expr(stmt.condition, scope)
                case nodes.Bind() | nodes.Unwrap():
                    self.expr(stmt.value, scope)
                    scope |= {stmt.local.slot}
                case nodes.Assign():
                    self._assign(stmt, scope)
                case nodes.Choice():
                    self.expr(stmt.domain, scope)
                    self.block(stmt.body, scope | {stmt.local.slot})
                case nodes.Either():
                    for branch in stmt.branches:
                        self.block(branch, scope)
                case nodes.When():
                    self.truth(stmt.condition)
                    self.expr(stmt.condition, scope)
                    self.block(stmt.then, scope)
                    self.block(stmt.orelse, scope)

    def _assign(self, stmt: nodes.Assign, scope: frozenset[int]) -> None:
        kind: Type = self.program.variables[stmt.slot].type
        for step in stmt.path:
            self.demand(step.container == kind, "a path leaves its variable")
            if step.key is not None:
                self.expr(step.key, scope)
            kind = part_at(kind, step)
        self.stored(stmt.value, kind, scope)


@lru_cache(maxsize=1 << 14)  # definitions are inlined, so most applications are as others are
def _misapplied(op: Op, given: Kinds, data: int, kind: Type) -> str | None:
    """The fault of an operator applied to arguments of these types; None without one."""
    card = op.card
    if not card.accepts(given):
        return f"{op.name} of {' '.join(map(show, given))}"
    wanted = given if card.part_types is None else card.part_types(kind, data, len(given))
    if len(given) != len(wanted):
        return f"{show(kind)} made of {len(given)} parts"
    for part, place in zip(given, wanted, strict=True):
        if not fits(part, place):
            return f"{show(part)} given as {show(place)}"
    found = kind if card.result is None else card.result(given, data)
    return None if fits(found, kind) else f"{op.name} gives {show(found)}, not {show(kind)}"


def _shown(about: Type | Span | str | int) -> str:
    if isinstance(about, Span):
        return about.where
    return str(about) if isinstance(about, str | int) else show(about)
