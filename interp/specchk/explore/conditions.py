"""Conditions that decide: for each part of a guard, a branch or a property, a state in which it alone does.

A part of a guard decides where all others are true and it is false, so that it alone forbids the step; an
alternative, where all others are false and it is true.  Tests of code call this modified condition/decision
coverage (Chilenski and Miller, 1994).  A part that never decides in a model could be left out of the spec,
or of the code behind it, and no behaviour of this model would show it.

Each such case becomes a witness of the program, so any engine can search for all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from specchk.ir.footprint import switched_off
from specchk.ir.nodes import (
    And,
    Apply,
    Assign,
    Bind,
    Block,
    Case,
    Choice,
    Const,
    Cover,
    Either,
    Expr,
    Guard,
    If,
    Implies,
    Let,
    Or,
    Quantifier,
    Stmt,
    Unwrap,
    When,
)
from specchk.ir.ops import Op
from specchk.ir.program import Action, Program, Property, any_end
from specchk.ir.totality import is_total
from specchk.ir.types import BOOL, Set, has_horizon
from specchk.lang.text.source import Span
from specchk.meaning.values import universe
from specchk.search.verdict import Outcome, Violated

Around = Callable[[Expr], Expr]  # puts what is in front of a statement around an expression


@dataclass(frozen=True, slots=True)
class Condition:
    """A part of a guard, of a branch's condition or of a property; `effect`: the one that it alone has.

    `owner` is the action or property; `effect` is `allows`, `forbids`, `takes`, `avoids` or `fulfils`.
    """

    owner: str
    effect: str
    span: Span

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity of a condition in all models of a spec."""
        return self.owner, self.effect, self.span.where


@dataclass(frozen=True, slots=True)
class Decided:
    """The conditions of a model: those that decide in a state that was searched, and the others.

    `unknown` have no value in some state.  `ended` is what ended the search before it had all states, empty
    if nothing did; otherwise the others may still decide.
    """

    program: Program
    deciding: tuple[Condition, ...]
    never: tuple[Condition, ...]
    unknown: tuple[Condition, ...]
    never_taken: tuple[str, ...]  # actions that no state enables; their conditions are among `never`
    states: int
    ended: str
    is_budget: bool = False  # what ended it

    @property
    def is_complete(self) -> bool:
        """Whether all states were searched."""
        return not self.ended


@dataclass(frozen=True, slots=True)
class _Decision:
    """That `part` alone decides, so that the whole has this `value`, is `when`."""

    part: Expr
    value: bool
    when: Expr


def conditions(program: Program) -> dict[Condition, Property]:
    """The conditions of a program that its constants leave open, each with the witness that it decides."""
    found: dict[Condition, list[Expr]] = {}
    slots: dict[str, int] = {}
    off = switched_off(program)
    for action in [action for action in program.actions if action.name not in off]:
        slots[action.name] = action.locals
        for condition, when in _of_action(action):
            found.setdefault(condition, []).append(when)
    for prop in program.invariants:
        slots[prop.name] = prop.locals
        for decision in _of_property(prop.body):
            if decision.value:
                found.setdefault(Condition(prop.name, "fulfils", decision.part.span), []).append(
                    decision.when
                )
    return {
        condition: Property(
            "reachable", f"condition {number}", _any(ways), slots[condition.owner], condition.span
        )
        for number, (condition, ways) in enumerate(found.items(), 1)
    }


def _of_property(body: Expr) -> Iterator[_Decision]:
    """As `_decisions`; all items of a `forall` around it are evaluated wherever the property holds."""
    if isinstance(body, And):
        for part in body.parts:
            yield from _of_property(part)
    elif isinstance(body, Quantifier) and body.every:
        for found in _of_property(body.body):
            yield replace(found, when=Quantifier(BOOL, body.span, False, body.local, body.domain, found.when))
    else:
        yield from [found for found in _decisions(body) if found.part is not body]


def bare(program: Program) -> Program:
    """The program without its properties, whose states may all be ends."""
    return replace(program, invariants=(), step_invariants=(), witnesses=(), deadlock_ok=any_end(program),
                   liveness=(), fairness=())  # fmt: skip


def asking_conditions(program: Program, witnesses: Iterable[Property]) -> Program:
    """The program with these witnesses and no other property."""
    return replace(bare(program), witnesses=tuple(witnesses))


def decided(program: Program, found: Mapping[Condition, Property], outcome: Outcome) -> Decided:
    """The conditions as a search for these witnesses found them."""
    reached = {name for name, _ in outcome.witnesses}
    violations = outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ()
    undefined = {violation.name for violation in violations if violation.kind == "undefined"}
    names = {condition: prop.name for condition, prop in found.items()}
    return Decided(
        program=program,
        deciding=tuple([condition for condition, name in names.items() if name in reached]),
        never=tuple([condition for condition, name in names.items() if name not in reached | undefined]),
        unknown=tuple([condition for condition, name in names.items() if name in undefined - reached]),
        never_taken=tuple([action.name for action in program.actions if not outcome.coverage[action.point]]),
        states=outcome.statistics.distinct,
        ended=_ended(outcome, undefined - set(names.values())),
        is_budget=outcome.stopped is not None and outcome.stopped.budget,
    )


def _ended(outcome: Outcome, undefined: Collection[str]) -> str:
    # Not by the verdict: a condition without a value is a violation, and ends nothing.
    if outcome.stopped is not None:
        return "a budget ended the search" if outcome.stopped.budget else outcome.stopped.reason
    # Where a step has no value a state has no successors.
    listed = ", ".join(f"`{name}`" for name in sorted(undefined))
    return f"nothing was searched where {listed} is undefined" if undefined else ""


def _of_action(action: Action) -> Iterator[tuple[Condition, Expr]]:
    def around(body: Expr) -> Expr:
        for param in reversed(action.params):
            values = Const(Set(param.type), param.span, tuple(universe(param.type)), has_horizon(param.type))
            body = Quantifier(BOOL, param.span, False, param, values, body)
        return body

    for effect, part, when in _of_block(action.body, around, action.span):
        yield Condition(action.name, effect, part.span), when


def _of_block(block: Block, around: Around, at: Span) -> Iterator[tuple[str, Expr, Expr]]:
    """The conditions in a block: the effect, the part, and that it decides."""
    for number, stmt in enumerate(block):
        rest = block[number + 1 :]
        match stmt:
            case Guard(condition):
                for found in _decisions(condition):
                    effect = "allows" if found.value else "forbids"
                    behind = _enabled(rest, condition.span, total=not found.value)
                    yield effect, found.part, around(_both(found.when, behind))
            case Unwrap(_, value):
                yield "forbids", value, around(_is_none(value))
            case When(condition, then, orelse):
                for found in _decisions(condition):
                    yield "takes" if found.value else "avoids", found.part, around(found.when)
                yield from _of_block(then, _then(around, condition), at)
                yield from _of_block(orelse, _then(around, _not(condition)), at)
            case Choice(body=body):
                yield from _of_block(body, _chosen(around, stmt), at)
            case Either(branches):
                for branch in branches:
                    yield from _of_block(branch, around, at)
            case Bind() | Assign():
                pass
        around = _behind(around, stmt, at)


def _then(around: Around, condition: Expr) -> Around:
    return lambda body: around(_both(condition, body))


def _chosen(around: Around, stmt: Choice) -> Around:
    return lambda body: around(Quantifier(BOOL, stmt.domain.span, False, stmt.local, stmt.domain, body))


def _behind(around: Around, stmt: Stmt, at: Span) -> Around:
    """The prefix of the statement after this one."""
    match stmt:
        case Bind(local, value):
            return lambda body: around(Let(BOOL, value.span, local, value, body))
        case Unwrap(local, value):
            return lambda body: around(
                Case(BOOL, value.span, value, ((1, local, body),), _const(value, False))
            )
        case Guard() | When() | Choice() | Either():
            return _then(around, _enabled((stmt,), at, total=False))
    return around


def _enabled(block: Block, at: Span, *, total: bool) -> Expr:
    """That a block is taken to its end; `total`: as far as all that is evaluated certainly has a value."""
    if not block:
        return Const(BOOL, at, True)
    stmt, rest = block[0], block[1:]
    match stmt:
        case Assign():
            return _enabled(rest, at, total=total)
        case Guard(condition):
            first = condition
        case Choice(local, domain, body):
            first = Quantifier(BOOL, domain.span, False, local, domain, _enabled(body, at, total=total))
        case Either(branches):
            first = _any([_enabled(branch, at, total=total) for branch in branches])
        case When(condition, then, orelse):
            first = If(
                BOOL,
                condition.span,
                condition,
                _enabled(then, at, total=total),
                _enabled(orelse, at, total=total),
            )
        case Bind(local, value) if not total or is_total(value):
            return Let(BOOL, value.span, local, value, _enabled(rest, at, total=total))
        case Unwrap(local, value) if not total or is_total(value):
            taken = _enabled(rest, at, total=total)
            return Case(BOOL, value.span, value, ((1, local, taken),), _const(value, False))
        case _:
            return Const(BOOL, at, True)
    if total and not is_total(first):
        return Const(BOOL, at, True)
    return _both(first, _enabled(rest, at, total=total))


def _decisions(expr: Expr) -> Iterator[_Decision]:
    """The parts of a condition, for each value that one alone may give it.

    A part that comes first may be what gives the others a meaning.  Where it has its other value, these are
    not evaluated: one that may have no value there counts as not in the way.
    """
    match expr:
        case Cover(body=body):
            yield from _decisions(body)
        case Const():  # the model's constants decide it
            pass
        case And(parts=parts) | Or(parts=parts):
            every = isinstance(expr, And)
            for number, part in enumerate(parts):
                others = [*parts[:number], *parts[number + 1 :]]
                total = [*parts[:number], *[other for other in parts[number + 1 :] if is_total(other)]]
                for found in _decisions(part):
                    # With this value of the part all others are evaluated; with the other one, those before.
                    agree = [_is(other, every) for other in (others if found.value is every else total)]
                    yield replace(found, when=_all([*agree[:number], found.when, *agree[number:]]))
        case Implies(left=left, right=right):
            for found in _decisions(left):
                wrong = [_not(right)] if is_total(right) or found.value else []
                yield replace(found, value=not found.value, when=_all([found.when, *wrong]))
            for found in _decisions(right):
                yield replace(found, when=_all([left, found.when]))
        case Apply(op=Op.NOT, args=(body,)):
            for found in _decisions(body):
                yield replace(found, value=not found.value)
        case Let() | If() | Case():
            yield from _inside(expr)
        case Quantifier(every=every, local=local, domain=domain, body=body) if is_total(body):
            for found in _decisions(body):
                some = Quantifier(BOOL, expr.span, False, local, domain, found.when)
                # One item decides a `forall` that is false; for one that is true all have to agree.
                agree = [] if found.value is not every else [_is(expr, every)]
                yield replace(found, when=_all([*agree, some]))
        case _:
            yield _Decision(expr, True, expr)
            yield _Decision(expr, False, _not(expr))


def _inside(expr: Let | If | Case) -> Iterator[_Decision]:
    """The parts of a condition that is evaluated inside of another expression."""
    match expr:
        case Let(local=local, value=value, body=body):
            for found in _decisions(body):
                yield replace(found, when=Let(BOOL, expr.span, local, value, found.when))
        case If(condition=condition, then=then, orelse=orelse):
            for side, branch in ((condition, then), (_not(condition), orelse)):
                for found in _decisions(branch):
                    yield replace(found, when=_both(side, found.when))
        case Case(scrutinee=scrutinee, arms=arms):
            for tag, bound, body in arms:
                for found in _decisions(body):
                    arm = ((tag, bound, found.when),)
                    yield replace(found, when=Case(BOOL, expr.span, scrutinee, arm, _const(expr, False)))


def _is(expr: Expr, value: bool) -> Expr:
    return expr if value else _not(expr)


def _not(expr: Expr) -> Expr:
    if isinstance(expr, Apply) and expr.op is Op.NOT:
        return expr.args[0]
    return Apply(BOOL, expr.span, Op.NOT, (expr,))


def _both(a: Expr, b: Expr) -> Expr:
    return _all([a, b])


def _all(parts: Sequence[Expr]) -> Expr:
    kept = [part for part in parts if part != _const(part, True)]
    return kept[0] if len(kept) == 1 else And(BOOL, parts[0].span, tuple(kept)) if kept else parts[0]


def _any(parts: Sequence[Expr]) -> Expr:
    kept = list(dict.fromkeys(parts))
    return kept[0] if len(kept) == 1 else Or(BOOL, parts[0].span, tuple(kept))


def _const(at: Expr, value: bool) -> Const:
    return Const(BOOL, at.span, value)


def _is_none(value: Expr) -> Expr:
    return Case(BOOL, value.span, value, ((0, None, _const(value, True)),), _const(value, False))
