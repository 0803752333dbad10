"""From expressions to trees: the rules of `meaning.evaluate`, with the undecided parts left open.

If the condition of a branch is decided, only that branch is encoded.  Otherwise both are, each under its
condition, and the results are merged; quantifiers over listed sets are unfolded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from specchk.ir import nodes
from specchk.ir.ops import Op
from specchk.ir.types import Int, Map, Set, of_shape
from specchk.meaning.reading import read
from specchk.symbolic.induction.encode.bools import Truth, both, conj, disj, implies, negation
from specchk.symbolic.induction.encode.collections import distinct, first_by, items_of, summed
from specchk.symbolic.induction.encode.merge import merge, select, set_of, tag_is
from specchk.symbolic.induction.encode.numbers import less
from specchk.symbolic.induction.encode.ops import RULES, decided_position
from specchk.symbolic.induction.encode.scope import StepScope, Unencodable, entry, placed
from specchk.symbolic.induction.encode.states import default, keys, outside
from specchk.symbolic.induction.encode.trees import CannotEncode, Opt, RangeOf, SetOf, Tree, lift


def encode(expr: nodes.Expr, scope: StepScope) -> Tree:
    """The tree of an expression; `Unencodable` has the place of the innermost one without a tree."""
    try:
        match expr:
            case nodes.Const():
                return _const(expr)
            case nodes.Var():
                return (scope.after if expr.primed else scope.before)[expr.slot]
            case nodes.Local():
                return scope.locals[expr.slot]
            case nodes.Apply():
                return _apply(expr, scope)
            case nodes.And() | nodes.Or():
                every = isinstance(expr, nodes.And)
                return _joined((encode(part, scope) for part in expr.parts), scope, every=every)
            case nodes.Implies():
                return _implies(expr, scope)
            case nodes.If():
                return _if(expr, scope)
            case nodes.Quantifier():
                return _quantifier(expr, scope)
            case nodes.Choose():
                return _choose(expr, scope)
            case nodes.Collect():
                return _collect(expr, scope)
            case nodes.MapOf():
                return _map_of(expr, scope)
            case nodes.Let() | nodes.Cover():
                return _let(expr, scope)
            case nodes.Case():
                return _case(expr, scope)
            case nodes.Narrow():
                return _narrow(expr, scope)
            case _:
                assert_never(expr)
    except CannotEncode as reason:
        raise Unencodable(expr.span, str(reason)) from None


def _apply(expr: nodes.Apply, scope: StepScope) -> Tree:
    if expr.op is Op.MAP_GET and isinstance(expr.args[0], nodes.Var):
        return _entry(expr, expr.args[0], scope)
    args = [encode(arg, scope) for arg in expr.args]
    return _any((RULES.get(expr.op) or _by_rule)(expr, args, scope), expr)


def _by_rule(expr: nodes.Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    faults, value = read(expr)
    # What parts of a rule note is no fault: where the rule does not fail it has a value.
    inside = StepScope((), (), dict(enumerate(args)))
    for fault in faults:
        scope.fail(encode(fault, inside))
    return encode(value, inside)


def _entry(expr: nodes.Apply, variable: nodes.Var, scope: StepScope) -> Tree:
    """An entry of a variable: if the key is decided, the others are not read."""
    key = encode(expr.args[1], scope)
    state = scope.after if variable.primed else scope.before
    position = decided_position(of_shape(variable.type, Map).key, key)
    if position is not None:
        return entry(state, variable.slot, position)
    return _any(RULES[expr.op](expr, (state[variable.slot], key), scope), expr)


def _any(tree: Tree, expr: nodes.Expr) -> Tree:
    """Any value of the type, for an expression that is certainly undefined (a fault)."""
    # The fault is noted; the rest of the expression still needs a tree of the right shape.
    return default(expr.type) if tree is None else tree


def _const(expr: nodes.Const) -> Tree:
    kind = expr.type
    if not expr.ends_at_horizon:
        return lift(expr.value, kind)
    if isinstance(kind, Set) and isinstance(kind.item, Int):  # all offsets, of which none is the greatest
        return RangeOf(kind.item.low, None)
    raise Unencodable(expr.span, "all values of a type with offsets, which are unbounded here")


def _joined(parts: Iterator[Truth], scope: StepScope, *, every: bool) -> Truth:
    """`and` (`every`) or `or` of parts: one counts if none before has decided.

    Each is encoded when it is taken, under what the ones before leave open; so a list will not do.
    """
    truths: list[Truth] = []
    size = len(scope.path)
    for truth in parts:
        truths.append(truth)
        if truth is (not every):
            break
        if truth is not every:
            # A later part is evaluated only where this one does not decide: its faults count only there.
            scope.path.append(truth if every else negation(truth))
    del scope.path[size:]
    return conj(truths) if every else disj(truths)


def _implies(expr: nodes.Implies, scope: StepScope) -> Truth:
    left = encode(expr.left, scope)
    if left is False:
        return True
    with scope.under(left):
        return implies(left, encode(expr.right, scope))


def _if(expr: nodes.If, scope: StepScope) -> Tree:
    condition = encode(expr.condition, scope)
    if isinstance(condition, bool):
        return encode(expr.then if condition else expr.orelse, scope)
    with scope.under(condition):
        then = encode(expr.then, scope)
    with scope.under(negation(condition)):
        orelse = encode(expr.orelse, scope)
    return merge(condition, then, orelse)


def _items(domain: nodes.Expr, scope: StepScope) -> SetOf:
    tree = encode(domain, scope)
    with placed(domain.span):
        return items_of(tree)


def _quantifier(expr: nodes.Quantifier, scope: StepScope) -> Truth:
    domain, faults = _items(expr.domain, scope), len(scope.faults)

    def bodies() -> Iterator[Truth]:
        # Unfolded, so that queries have no quantifiers (except for `Instance.idle`): over propositions and
        # linear integers they are decidable then.
        for item, guard in domain.items:
            scope.locals[expr.local.slot] = item
            with scope.under(guard):
                body = encode(expr.body, scope)
            yield implies(guard, body) if expr.every else both(guard, body)

    # Like the evaluator, which stops at the first item that decides.
    truth = _joined(bodies(), scope, every=expr.every)
    # A fault depends on the order of the items, which must be known.
    if len(scope.faults) > faults and not domain.listed and len(domain.items) > 1:
        raise Unencodable(expr.span, "an expression that may be undefined, over offsets in no known order")
    return truth


def _choose(expr: nodes.Choose, scope: StepScope) -> Tree:
    domain = _items(expr.domain, scope)
    if not domain.listed:
        raise Unencodable(expr.span, "`choose` among offsets that are not decided")
    rows: list[tuple[Truth, Tree]] = []
    size = len(scope.path)
    for item, guard in domain.items:
        scope.locals[expr.local.slot] = item
        with scope.under(guard):
            holds = both(guard, encode(expr.body, scope))
        rows.append((holds, item))
        # The first item that satisfies the condition is chosen; a later one is tried only if those before it
        # do not.
        scope.path.append(negation(holds))
    del scope.path[size:]
    scope.fail(negation(disj([g for g, _ in rows])))
    return _any(select(rows), expr)


def _gathered(
    expr: nodes.Collect, scope: StepScope, depth: int, guard: Truth
) -> Iterator[tuple[Tree, Truth]]:
    """The bodies for every choice of the binders, each with its condition."""
    if depth == len(expr.binders):
        counts: Truth = True
        if expr.condition is not None:
            counts = encode(expr.condition, scope)
        if counts is not False:
            # Where the condition is false the body is not evaluated, so its faults do not count.
            with scope.under(counts):
                yield encode(expr.body, scope), both(guard, counts)
        return
    local, domain = expr.binders[depth]
    listing = _items(domain, scope)
    # Only a sum depends on how often an item is listed: offsets that may be equal are listed separately.
    is_counted = expr.gather is nodes.Gather.SUM
    for item, present in distinct(listing) if is_counted else listing.items:
        if present is False:
            continue
        scope.locals[local.slot] = item
        with scope.under(present):
            yield from _gathered(expr, scope, depth + 1, both(guard, present))


def _collect(expr: nodes.Collect, scope: StepScope) -> Tree:
    rows = list(_gathered(expr, scope, 0, True))
    match expr.gather:
        case nodes.Gather.SET:
            return set_of(rows)
        case nodes.Gather.SUM:
            return summed(rows)
        case nodes.Gather.MIN:
            exists, extreme = first_by(less, rows)
        case nodes.Gather.MAX:
            exists, extreme = first_by(lambda a, b: less(b, a), rows)
    scope.fail(negation(exists))
    return extreme


def _map_of(expr: nodes.MapOf, scope: StepScope) -> Tree:
    assert isinstance(expr.type, Map)
    known = keys(expr.type.key)
    out = []
    for key in known:
        scope.locals[expr.local.slot] = lift(key, expr.type.key)
        out.append(encode(expr.body, scope))
    return tuple(out)


def _let(expr: nodes.Let | nodes.Cover, scope: StepScope) -> Tree:
    if isinstance(expr, nodes.Let):
        scope.locals[expr.local.slot] = encode(expr.value, scope)
    return encode(expr.body, scope)


def _case(expr: nodes.Case, scope: StepScope) -> Tree:
    scrutinee = encode(expr.scrutinee, scope)
    rows: list[tuple[Truth, Tree]] = []
    rest: list[Truth] = []
    for tag, local, body in expr.arms:
        if isinstance(scrutinee, Opt):
            # Arm 1 of an option is `some`, arm 0 `none`.
            here = scrutinee.present if tag else negation(scrutinee.present)
            payload = scrutinee.item
        else:
            here, payload = tag_is(scrutinee, tag), scrutinee.records[tag]
        rest.append(negation(here))
        if here is False:
            continue
        if local is not None:
            scope.locals[local.slot] = payload
        with scope.under(here):
            rows.append((here, encode(body, scope)))
    otherwise = conj(rest)
    if expr.default is not None and otherwise is not False:
        with scope.under(otherwise):
            rows.append((otherwise, encode(expr.default, scope)))
    return _any(select(rows), expr)


def _narrow(expr: nodes.Narrow, scope: StepScope) -> Tree:
    tree = encode(expr.body, scope)
    for fault in outside(tree, expr.type):
        scope.fail(fault)
    return tree
