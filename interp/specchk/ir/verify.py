"""The legality check: run after every pass, so that a wrong rewrite stops where it was made.

A legal program has types that agree (a part has the shape that its node needs, and no wider range
where a store was checked), locals that are bound where they are used, primed variables in step
invariants only, and coverage points that exist.  A failure is a bug of specchk (`IllegalProgram`),
never of a spec.
"""

from __future__ import annotations

from collections.abc import Iterator

from specchk.ir.nodes import (
    And,
    Apply,
    Assign,
    Bind,
    Block,
    Case,
    Choice,
    Choose,
    Collect,
    Cover,
    Either,
    Expr,
    Guard,
    If,
    Implies,
    Let,
    Local,
    MapOf,
    Narrow,
    Or,
    Quantifier,
    Unwrap,
    Var,
    When,
)  # fmt: skip
from specchk.ir.program import Program, Property
from specchk.ir.types import BOOL, Set, Type, fits, same_shape, show
from specchk.ir.typing import kinds, part_at, result_type


class IllegalProgram(Exception):
    """A pass produced a program that breaks the rules of the core."""


def verify(program: Program) -> None:
    """Raise `IllegalProgram` unless every action and property is legal."""
    check = _Check(program)
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
        check.demand(prop.body.type == BOOL, f"{prop.name} is not a truth value")
    check.primes = False


def properties(program: Program) -> Iterator[Property]:
    """Every predicate of a program."""
    yield from program.inits
    yield from judged(program)


def judged(program: Program) -> Iterator[Property]:
    """Every predicate that a search evaluates: all but the conditions of initial states."""
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


def parts(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions, in evaluation order."""
    match expr:
        case Apply():
            return expr.args
        case And() | Or():
            return expr.parts
        case Implies():
            return (expr.left, expr.right)
        case If():
            return (expr.condition, expr.then, expr.orelse)
        case Quantifier() | Choose():
            return (expr.domain, expr.body)
        case Collect():
            condition = () if expr.condition is None else (expr.condition,)
            return (*(domain for _, domain in expr.binders), *condition, expr.body)
        case MapOf() | Narrow() | Cover():
            return (expr.body,)
        case Let():
            return (expr.value, expr.body)
        case Case():
            default = () if expr.default is None else (expr.default,)
            return (expr.scrutinee, *(body for _, _, body in expr.arms), *default)
    return ()


def bound(expr: Expr) -> tuple[Local, ...]:
    """The locals that a node binds inside itself."""
    match expr:
        case Quantifier() | Choose() | MapOf() | Let():
            return (expr.local,)
        case Collect():
            return tuple(local for local, _ in expr.binders)
        case Case():
            return tuple(local for _, local, _ in expr.arms if local is not None)
    return ()


def results(expr: Expr) -> tuple[Expr, ...]:
    """The parts whose value may be the expression's own."""
    match expr:
        case If():
            return (expr.then, expr.orelse)
        case Let() | Cover():
            return (expr.body,)
        case Case():
            return parts(expr)[1:]
    return ()


def scoped(expr: Expr) -> Iterator[tuple[Expr, frozenset[int]]]:
    """The direct sub-expressions, each with the locals that the node binds for it."""
    nothing: frozenset[int] = frozenset()
    match expr:
        case Quantifier() | Choose():
            yield expr.domain, nothing
            yield expr.body, frozenset({expr.local.slot})
        case MapOf():
            yield expr.body, frozenset({expr.local.slot})
        case Let():
            yield expr.value, nothing
            yield expr.body, frozenset({expr.local.slot})
        case Collect():
            names = nothing
            for local, domain in expr.binders:
                yield domain, names
                names |= {local.slot}
            yield from ((part, names) for part in parts(expr)[len(expr.binders) :])
        case Case():
            yield expr.scrutinee, nothing
            yield from ((body, frozenset({local.slot}) if local else nothing) for _, local, body in expr.arms)
            if expr.default is not None:
                yield expr.default, nothing
        case _:
            yield from ((part, nothing) for part in parts(expr))


class _Check:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.primes = False

    def demand(self, condition: bool, message: str) -> None:
        if not condition:
            raise IllegalProgram(message)

    def expr(self, expr: Expr, scope: frozenset[int]) -> None:
        """Check an expression with the locals in scope."""
        match expr:
            case Var():
                known = expr.slot < len(self.program.variables)
                self.demand(known and (self.primes or not expr.primed), f"variable {expr.slot} out of place")
                # Equal, and not only fitting: engines read the variable's bits as a code of the node's type.
                self.demand(expr.type == self.program.variables[expr.slot].type, "a variable's type changed")
            case Local():
                self.demand(expr.slot in scope, f"local {expr.name} is not bound here: {expr.span.where}")
            case Apply():
                self._apply(expr)
            case Cover():
                self.demand(expr.point < len(self.program.points), "no such coverage point")
            case Narrow():
                self.demand(same_shape(expr.type, expr.body.type), f"cannot narrow {show(expr.body.type)}")
            case Quantifier() | Choose():
                self.demand(isinstance(expr.domain.type, Set), "a domain is a set")
                self.truth(expr.body)
            case Collect():
                self.demand(all(isinstance(d.type, Set) for _, d in expr.binders), "a domain is a set")
                if expr.condition is not None:
                    self.truth(expr.condition)
            case And() | Or() | Implies():
                for part in parts(expr):
                    self.truth(part)
            case If():
                self.truth(expr.condition)
        for part in results(expr):
            self.demand(fits(part.type, expr.type), f"{show(part.type)} given as {show(expr.type)}")
        for part, names in scoped(expr):
            self.expr(part, scope | names)

    def truth(self, expr: Expr) -> None:
        """Demand that an expression is a truth value."""
        self.demand(expr.type == BOOL, f"{show(expr.type)} is not a truth value: {expr.span.where}")

    def _apply(self, expr: Apply) -> None:
        card, given = expr.op.card, kinds(expr.args)
        self.demand(card.accepts(given), f"{expr.op.name} of {', '.join(map(show, given))}")
        if card.parts is not None:
            wanted = card.parts(expr.type, expr.data, len(given))
            self.demand(len(given) == len(wanted), f"{show(expr.type)} made of {len(given)} parts")
            for kind, part in zip(given, wanted, strict=True):
                self.demand(fits(kind, part), f"{show(kind)} given as {show(part)}")
        if card.gives is not None:
            found = result_type(expr.op, expr.args, expr.data)
            self.demand(fits(found, expr.type), f"{expr.op.name} gives {show(found)}, not {show(expr.type)}")

    def stored(self, expr: Expr, kind: Type, scope: frozenset[int]) -> None:
        """Check an expression whose value becomes a variable's."""
        self.expr(expr, scope)
        self.demand(fits(expr.type, kind), f"{show(expr.type)} stored as {show(kind)}: {expr.span.where}")

    def block(self, body: Block, scope: frozenset[int]) -> None:
        """Check statements; a binding reaches to the end of its block."""
        for stmt in body:
            match stmt:
                case Guard():
                    self.truth(stmt.condition)
                    self.expr(stmt.condition, scope)
                case Bind() | Unwrap():
                    self.expr(stmt.value, scope)
                    scope |= {stmt.local.slot}
                case Assign():
                    self._assign(stmt, scope)
                case Choice():
                    self.expr(stmt.domain, scope)
                    self.block(stmt.body, scope | {stmt.local.slot})
                case Either():
                    for branch in stmt.branches:
                        self.block(branch, scope)
                case When():
                    self.truth(stmt.condition)
                    self.expr(stmt.condition, scope)
                    self.block(stmt.then, scope)
                    self.block(stmt.orelse, scope)

    def _assign(self, stmt: Assign, scope: frozenset[int]) -> None:
        kind: Type = self.program.variables[stmt.slot].type
        for step in stmt.path:
            self.demand(step.container == kind, "a path leaves its variable")
            if step.key is not None:
                self.expr(step.key, scope)
            kind = part_at(kind, step)
        self.stored(stmt.value, kind, scope)
