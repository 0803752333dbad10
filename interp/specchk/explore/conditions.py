"""Deciding conditions: for each part of a guard, branch or property, a state in which it alone decides.

A part of a guard decides where all others are true and it is false, so that it alone forbids the step; an
alternative, where all others are false and it is true.  Tests of code call this modified condition/decision
coverage (Chilenski and Miller, 1994).  A part that never decides in a model could be left out of the spec,
or of the code behind it, and no behaviour of this model would show it.

Each such case becomes a witness of the program, so any engine can search for all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from specchk.ir import nodes
from specchk.ir.footprint import switched_off
from specchk.ir.nodes import Block, Const, Expr, Stmt
from specchk.ir.ops import Op
from specchk.ir.program import Action, Program, Property, any_end
from specchk.ir.totality import is_total
from specchk.ir.types import BOOL, Set, has_horizon
from specchk.lang.text.source import Span
from specchk.meaning.values import universe
from specchk.search.verdict import Outcome, violations_of

Around = Callable[[Expr], Expr]  # wraps the part before a statement around an expression


class Condition(Struct, frozen=True):
    """A part of a guard, a branch condition or a property; `effect`: the result that it alone decides.

    `owner` is the action or property; `effect` is `allows`, `forbids`, `takes`, `avoids` or `fulfils`.
    """

    owner: str
    effect: str
    span: Span

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity of a condition in all models of a spec."""
        return self.owner, self.effect, self.span.where


class Decided(Struct, frozen=True):
    """The conditions of a model: those that decide in a searched state, and the others.

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


class _Decision(Struct, frozen=True):
    """The predicate `when`: `part` alone decides, so that the whole has this `value`."""

    part: Expr
    value: bool
    when: Expr


def conditions(program: Program) -> dict[Condition, Property]:
    """The conditions of a program not fixed by constants, each with the witness that it decides."""
    cases: dict[Condition, list[Expr]] = {}
    slots: dict[str, int] = {}
    off = switched_off(program)
    for action in [action for action in program.actions if action.name not in off]:
        slots[action.name] = action.locals
        for condition, when in _of_action(action):
            cases.setdefault(condition, []).append(when)
    for prop in program.invariants:
        slots[prop.name] = prop.locals
        for decision in _of_property(prop.body):
            if decision.value:
                condition = Condition(prop.name, "fulfils", decision.part.span)
                cases.setdefault(condition, []).append(decision.when)
    return {
        condition: Property(
            "reachable", f"condition {number}", _any(ways), slots[condition.owner], condition.span
        )
        for number, (condition, ways) in enumerate(cases.items(), 1)
    }


def _of_property(body: Expr) -> Iterator[_Decision]:
    """As `_decisions`; all items of an enclosing `forall` are evaluated wherever the property holds."""
    if isinstance(body, nodes.And):
        for part in body.parts:
            yield from _of_property(part)
    elif isinstance(body, nodes.Quantifier) and body.every:
        items = body.body  # counted, where the set may be empty
        for decision in _of_property(items.body if isinstance(items, nodes.Cover) else items):
            yield replace(decision, when=_some(body.span, body.local, body.domain, decision.when))
    else:
        yield from [decision for decision in _decisions(body) if decision.part is not body]


def bare(program: Program) -> Program:
    """The program without its properties: all states are searched, and every end is allowed."""
    return replace(program, invariants=(), step_invariants=(), witnesses=(), deadlock_ok=any_end(program),
                   liveness=(), fairness=(), ignored=())  # fmt: skip


def with_conditions(program: Program, witnesses: Iterable[Property]) -> Program:
    """The program with these witnesses as its only properties."""
    return replace(bare(program), witnesses=tuple(witnesses))


def with_denials(program: Program, witnesses: Iterable[Property]) -> Program:
    """The program with, as its only properties, the claims that none of these witnesses is reached.

    An engine can prove a claim without the states that a witness needs.
    """
    claims = [replace(witness, kind="invariant", body=_not(witness.body)) for witness in witnesses]
    return replace(bare(program), invariants=tuple(claims))


def decided(program: Program, witnesses: Mapping[Condition, Property], outcome: Outcome) -> Decided:
    """The conditions as classified by a search for these witnesses."""
    reached = {name for name, _ in outcome.witnesses}
    undefined = {each.name for each in violations_of(outcome.verdict) if each.kind == "undefined"}
    names = {condition: prop.name for condition, prop in witnesses.items()}
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
    if outcome.stopped is not None and outcome.stopped.budget:
        return "a budget ended the search"
    # Where a step has no value a state has no successors.
    listed = ", ".join(f"`{name}`" for name in sorted(undefined))
    if undefined:
        return f"nothing was searched where {listed} is undefined"
    return "" if outcome.stopped is None else outcome.stopped.reason


def _of_action(action: Action) -> Iterator[tuple[Condition, Expr]]:
    def around(body: Expr) -> Expr:
        for param in reversed(action.params):
            values = Const(Set(param.type), param.span, tuple(universe(param.type)), has_horizon(param.type))
            body = _some(param.span, param, values, body)
        return body

    for effect, part, when in _of_block(action.body, around, action.span):
        yield Condition(action.name, effect, part.span), when


def _of_block(block: Block, around: Around, at: Span) -> Iterator[tuple[str, Expr, Expr]]:
    """The conditions in a block: the effect, the part, and the predicate that it decides."""
    if not block:
        return
    stmt, rest = block[0], block[1:]
    match stmt:
        case nodes.Guard(condition):
            for decision in _decisions(condition):
                effect = "allows" if decision.value else "forbids"
                behind = _enabled(rest, condition.span, total=not decision.value)
                yield effect, decision.part, around(_both(decision.when, behind))
        case nodes.Unwrap(_, value):
            yield "forbids", value, around(_is_none(value))
        case nodes.When(condition, then, orelse):
            for decision in _decisions(condition):
                yield "takes" if decision.value else "avoids", decision.part, around(decision.when)
            yield from _of_block(then, lambda body: around(_both(condition, body)), at)
            yield from _of_block(orelse, lambda body: around(_both(_not(condition), body)), at)
        case nodes.Choice(local, domain, chosen):
            yield from _of_block(chosen, lambda body: around(_some(domain.span, local, domain, body)), at)
        case nodes.Either(branches):
            for branch in branches:
                yield from _of_block(branch, around, at)
    yield from _of_block(rest, _behind(stmt, around, at), at)


def _behind(stmt: Stmt, around: Around, at: Span) -> Around:
    """The wrapping of parts after a statement."""
    match stmt:
        case nodes.Assign():
            return around
        case nodes.Bind() | nodes.Unwrap():
            return lambda body: around(_followed(stmt, body, at, total=False))
    enabled = _enabled((stmt,), at, total=False)  # once for all conditions behind it
    return lambda body: around(_both(enabled, body))


def _enabled(block: Block, at: Span, *, total: bool) -> Expr:
    """The predicate that a block runs to its end; `total`: as far as all parts certainly have a value."""
    enabled: Expr = Const(BOOL, at, True)
    for stmt in reversed(block):
        enabled = _followed(stmt, enabled, at, total=total)
    return enabled


def _followed(stmt: Stmt, behind: Expr, at: Span, *, total: bool) -> Expr:
    """The predicate that a statement runs, and that `behind` holds after it; `total` as in `_enabled`."""
    match stmt:
        case nodes.Assign():
            return behind
        case nodes.Guard(first) | nodes.Bind(_, first) | nodes.Unwrap(_, first):
            pass
        case nodes.Choice(local, domain, body):
            first = _some(domain.span, local, domain, _enabled(body, at, total=total))
        case nodes.Either(branches):
            first = _any([_enabled(branch, at, total=total) for branch in branches])
        case nodes.When(condition, then, orelse):
            ways = [_enabled(branch, at, total=total) for branch in (then, orelse)]
            first = nodes.If(BOOL, condition.span, condition, *ways)
    if total and not is_total(first):
        return Const(BOOL, at, True)
    match stmt:
        case nodes.Bind(local, value):
            return nodes.Let(BOOL, value.span, local, value, behind)
        case nodes.Unwrap(local, value):
            return nodes.Case(BOOL, value.span, value, ((1, local, behind),), _const(value, False))
    return _both(first, behind)


def _decisions(expr: Expr) -> Iterator[_Decision]:
    """The parts of a condition, for each value that a part alone may decide.

    A part that comes first may be what gives the others a meaning.  Where it has its other value, these are
    not evaluated: one that may have no value there counts as not in the way.
    """
    match expr:
        case nodes.Cover(body=body):
            yield from _decisions(body)
        case Const():  # the model's constants decide it
            pass
        case nodes.And(parts=parts) | nodes.Or(parts=parts):
            every = isinstance(expr, nodes.And)
            for number, part in enumerate(parts):
                others = [*parts[:number], *parts[number + 1 :]]
                certain = [*parts[:number], *[rest for rest in parts[number + 1 :] if is_total(rest)]]
                for decision in _decisions(part):
                    # With this value of the part all others are evaluated; with the other one, those before.
                    agree = [_is(rest, every) for rest in (others if decision.value is every else certain)]
                    yield replace(decision, when=_all([*agree[:number], decision.when, *agree[number:]]))
        case nodes.Implies(left=left, right=right):
            for decision in _decisions(left):
                wrong = [_not(right)] if is_total(right) or decision.value else []
                yield replace(decision, value=not decision.value, when=_all([decision.when, *wrong]))
            for decision in _decisions(right):
                yield replace(decision, when=_all([left, decision.when]))
        case nodes.Apply(op=Op.NOT, args=(body,)):
            for decision in _decisions(body):
                yield replace(decision, value=not decision.value)
        case nodes.Let() | nodes.If() | nodes.Case():
            yield from _inside(expr)
        case nodes.Quantifier(every=every, local=local, domain=domain, body=body) if is_total(body):
            for decision in _decisions(body):
                some = _some(expr.span, local, domain, decision.when)
                # One item decides a `forall` that is false; for one that is true all items must agree.
                agree = [] if decision.value is not every else [_is(expr, every)]
                yield replace(decision, when=_all([*agree, some]))
        case _:
            yield _Decision(expr, True, expr)
            yield _Decision(expr, False, _not(expr))


def _inside(expr: nodes.Let | nodes.If | nodes.Case) -> Iterator[_Decision]:
    """The parts of a condition that is evaluated inside another expression."""
    match expr:
        case nodes.Let(local=local, value=value, body=body):
            for decision in _decisions(body):
                yield replace(decision, when=nodes.Let(BOOL, expr.span, local, value, decision.when))
        case nodes.If(condition=condition, then=then, orelse=orelse):
            for side, branch in ((condition, then), (_not(condition), orelse)):
                for decision in _decisions(branch):
                    yield replace(decision, when=_both(side, decision.when))
        case nodes.Case(scrutinee=scrutinee, arms=arms):
            for tag, bound, body in arms:
                for decision in _decisions(body):
                    arm = ((tag, bound, decision.when),)
                    when = nodes.Case(BOOL, expr.span, scrutinee, arm, _const(expr, False))
                    yield replace(decision, when=when)


def _is(expr: Expr, value: bool) -> Expr:
    return expr if value else _not(expr)


def _not(expr: Expr) -> Expr:
    if isinstance(expr, nodes.Apply) and expr.op is Op.NOT:
        return expr.args[0]
    return nodes.Apply(BOOL, expr.span, Op.NOT, (expr,))


def _some(at: Span, local: nodes.Local, domain: Expr, body: Expr) -> Expr:
    return nodes.Quantifier(BOOL, at, False, local, domain, body)


def _both(a: Expr, b: Expr) -> Expr:
    return _all([a, b])


def _all(parts: Sequence[Expr]) -> Expr:
    kept = [part for part in parts if part != _const(part, True)]
    return kept[0] if len(kept) == 1 else nodes.And(BOOL, parts[0].span, tuple(kept)) if kept else parts[0]


def _any(parts: Sequence[Expr]) -> Expr:
    kept = list(dict.fromkeys(parts))
    return kept[0] if len(kept) == 1 else nodes.Or(BOOL, parts[0].span, tuple(kept))


def _const(at: Expr, value: bool) -> Const:
    return Const(BOOL, at.span, value)


def _is_none(value: Expr) -> Expr:
    return nodes.Case(BOOL, value.span, value, ((0, None, _const(value, True)),), _const(value, False))
