"""Types of binding forms, literals, comprehensions, updates and matches."""

from __future__ import annotations

from specchk.lang.check import types
from specchk.lang.check.access import place_at
from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.declare import check_length
from specchk.lang.check.types import BOOL, MAX_TUPLE, UNKNOWN, Type, is_complete, join, show, tuple_of
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import nearest


def check_quantified(checker: Checker, node: tree.Quantified, context: Context, _: Type | None) -> Type:
    """`forall`, `exists`, `choose`, `filter`."""
    inner = checker.bind(node.binders, context)
    checker.boolean(node.body, inner)
    if node.kind in ("forall", "exists"):
        return BOOL
    if len(node.binders) > 1:
        checker.report.add("S302", node.span, f"`{node.kind}` takes one name", "choose a record of both")
    item = checker.facts.binders[id(node.binders[0])]
    return item if node.kind == "choose" else types.Set(item)


def check_if(checker: Checker, node: tree.IfElse, context: Context, expected: Type | None) -> Type:
    """`if c then a else b`: both branches have one type."""
    checker.boolean(node.condition, context)
    then = checker.check(node.then, context, expected)
    # The bounds of a number are those of one branch.
    known = then if then != UNKNOWN and not isinstance(then, types.Int) else None
    orelse = checker.check(node.orelse, context, expected if expected is not None else known)
    joined = join(then, orelse)
    if joined is None and expected is None:
        checker.mismatch(node.orelse.span, orelse, then)
    # From left to right, a `none` or `{}` in the first branch had no expected type; it gets its type now.
    elif joined is not None and joined != then and expected is None:
        checker.check(node.then, context, joined)
    return joined if joined is not None else then


def check_let(checker: Checker, node: tree.LetIn, context: Context, expected: Type | None) -> Type:
    """`let x = e: body`."""
    inner = checker.bound(node.bound, checker.settle(node.value, context), node, context)
    return checker.check(node.body, inner, expected)


def check_set(checker: Checker, node: tree.SetLiteral, context: Context, expected: Type | None) -> Type:
    """`{a, b}`; a bag where a bag is expected."""
    shape = types.Bag if isinstance(expected, types.Bag) else types.Set
    wanted = expected.item if isinstance(expected, types.Set | types.Bag) else None
    return shape(_items(checker, node.items, context, wanted))


def _items(checker: Checker, nodes: tuple[tree.Expr, ...], context: Context, wanted: Type | None) -> Type:
    """The common type of several expressions."""
    kind: Type = wanted if wanted is not None else UNKNOWN
    before: list[tuple[tree.Expr, Context, Type]] = []
    for node in nodes:
        found = checker.check(node, context, kind if kind != UNKNOWN else None)
        before.append((node, context, found))
        kind = join(found, kind) or kind
    _fill(checker, before, kind)
    return kind


def _fill(checker: Checker, before: list[tuple[tree.Expr, Context, Type]], kind: Type) -> None:
    """Check again the items that determined less of a type than later ones: `{}` in `{{}, b}`, b a bag."""
    for node, context, found in before:
        if found != kind and not is_complete(found):
            checker.check(node, context, kind)


def check_seq(checker: Checker, node: tree.SeqLiteral, context: Context, expected: Type | None) -> Type:
    """`[a, b]`."""
    return types.Seq(
        _items(checker, node.items, context, expected.item if isinstance(expected, types.Seq) else None)
    )


def check_tuple(checker: Checker, node: tree.TupleLiteral, context: Context, expected: Type | None) -> Type:
    """`(a, b)`."""
    check_length(node, len(node.items), checker.report)
    wanted = expected.fields if isinstance(expected, types.Record) and expected.is_tuple else ()
    kinds = [part for _, part in wanted] if len(wanted) == len(node.items) else [None] * len(node.items)
    found: list[Type] = []
    for item, kind in zip(node.items, kinds, strict=True):
        part = checker.check(item, context, kind)
        # A wrong part is reported; as a part of a wrong whole it would be so twice.
        found.append(part if kind is None or join(part, kind) is not None else kind)
    return tuple_of(found[:MAX_TUPLE])


def check_set_comp(checker: Checker, node: tree.SetComp, context: Context, expected: Type | None) -> Type:
    """`{ e for x in S if c }`."""
    inner = checker.bind(node.binders, context)
    if node.condition is not None:
        checker.boolean(node.condition, inner)
    return types.Set(
        checker.check(node.body, inner, expected.item if isinstance(expected, types.Set) else None)
    )


def check_map_comp(checker: Checker, node: tree.MapComp, context: Context, expected: Type | None) -> Type:
    """`{ k: e for k in K }`: K is a whole type, or any set for a partial map; the key is the bound name."""
    inner = checker.bind((node.binder,), context)
    key = checker.facts.binders[id(node.binder)]
    name = tree.shown(node.binder.bound)
    if _bound(node.key) != node.binder.bound:
        message = "the key of a map comprehension is the bound name itself"
        hint = f"write `{{ {name}: ... for {name} in ... }}`: each key has one value"
        checker.report.add("S309", node.key.span, message, hint)
    else:
        checker.check(node.key, inner)
    wanted = expected if isinstance(expected, types.Map | types.PartialMap) else None
    if wanted is not None and join(wanted.key, key) is not None:
        key = wanted.key
    value = checker.check(node.value, inner, wanted.value if wanted is not None else None)
    return types.PartialMap(key, value) if isinstance(expected, types.PartialMap) else types.Map(key, value)


def _bound(node: tree.Expr) -> tree.Bound | None:
    """The binder of the names in an expression that consists of names."""
    match node:
        case tree.Name(qualifier=None):
            return node.text
        case tree.TupleLiteral():
            parts = [_bound(item) for item in node.items]
            return tuple([part for part in parts if part is not None]) if None not in parts else None
    return None


def check_pairs(checker: Checker, node: tree.PairLiteral, context: Context, expected: Type | None) -> Type:
    """`{ a: 1 }`: a map where one is expected, else a record."""
    if isinstance(expected, types.Map | types.PartialMap):
        kind = expected.value
        for pair in node.pairs:
            checker.check(pair.key, context, expected.key)
            checker.check(pair.value, context, kind)
        return expected
    key = node.pairs[0].key
    if isinstance(key, tree.Binary) and key.op == "in":
        checker.report.add("S301", key.span, "a record's field is a name",
                           "a set by a condition is `filter x in S: c`")  # fmt: skip
        return UNKNOWN
    wanted = expected if isinstance(expected, types.Record) else None
    return _record(checker, node, context, wanted)


def _record(checker: Checker, node: tree.PairLiteral, context: Context, wanted: types.Record | None) -> Type:
    """A record literal, with its fields in the order of `wanted` if that is known."""
    found: dict[str, Type] = {}
    strangers = False
    for pair in node.pairs:
        if not isinstance(pair.key, tree.Name) or pair.key.qualifier:
            checker.report.add("S301", pair.key.span, "a record's field is a name",
                               "a map literal needs a place where a map is expected")  # fmt: skip
            continue
        name = pair.key.text
        if name in found:
            checker.report.add("S202", pair.key.span, f"field `{name}` is given twice")
        field = wanted.get(name) if wanted else None
        if wanted is not None and field is None:
            strangers = True
            checker.report.add("S305", pair.key.span, f"{show(wanted)} has no field `{name}`",
                               nearest(name, (f for f, _ in wanted.fields if f not in found))
                               or f"the record is {show(wanted)}")  # fmt: skip
        found[name] = checker.check(pair.value, context, field)
    # With an unknown field one that is missing is most likely its correct name: one error, not two.
    return wanted if strangers and wanted is not None else _complete(checker, node, found, wanted)


def _complete(
    checker: Checker, node: tree.PairLiteral, found: dict[str, Type], wanted: types.Record | None
) -> Type:
    if wanted is None:
        return types.Record(tuple(found.items()))
    missing = [name for name, _ in wanted.fields if name not in found]
    if missing:
        message = f"field{'s' * (len(missing) > 1)} {', '.join(missing)} missing"
        checker.report.add("S305", node.span, message, f"the record is {show(wanted)}")
    # A field may determine the part of the type that the place leaves open: `{ z: net }` beside `{ z: {} }`.
    shown = [(name, kind if is_complete(kind) else join(found.get(name, kind), kind) or kind)
             for name, kind in wanted.fields]  # fmt: skip
    return types.Record(tuple(shown))


def check_with(checker: Checker, node: tree.With, context: Context, expected: Type | None) -> Type:
    """`{ base with path: e }`: same type, parts replaced."""
    found = checker.infer(node.base, context, expected)
    if found == UNKNOWN:  # what the place expects is no type of an item that there is not
        checker.unfit(node.base.span, found, "")
    base = checker.expect(node.base, found, expected)
    for change in node.changes:
        place = place_at(checker, base, change.path, node.base, context)
        checker.check(change.value, context, place)
    return base


def check_match(checker: Checker, node: tree.Match, context: Context, expected: Type | None) -> Type:
    """`match e { ... }` on options, unions and enums; every case must be covered exactly once."""
    found = checker.check(node.scrutinee, context)
    cases = _cases(found)
    if cases is None:
        span = node.scrutinee.span
        checker.unfit(span, found, f"`match` accepts options, unions and enums, not {show(found)}")
        cases = {}
    result: Type = expected if expected is not None else UNKNOWN
    seen: set[str] = set()
    before: list[tuple[tree.Expr, Context, Type]] = []
    for arm in node.arms:
        inner = _arm(checker, arm.pattern, cases, seen, context)
        kind = checker.check(arm.body, inner, result if result != UNKNOWN else None)
        before.append((arm.body, inner, kind))
        result = join(result, kind) or result
    _fill(checker, before, result)
    missing = [tag for tag in cases if tag not in seen]
    if missing and "_" not in seen:
        checker.report.add("S306", node.span, f"the match leaves out {', '.join(missing)}",
                           "add arms for them, or `_: ...` for the rest")  # fmt: skip
    return result


def _arm(
    checker: Checker, pattern: tree.Pattern, cases: dict[str, Type | None], seen: set[str], context: Context
) -> Context:
    tag = pattern.tag
    if tag in seen or "_" in seen:
        checker.report.add("S306", pattern.span, f"`{tag}` is already covered", "remove this arm")
    # Where the scrutinee has no cases at all, that is reported; each pattern would only repeat it.
    elif cases and tag != "_" and tag not in cases:
        message = f"`{tag}` is not one of {', '.join(cases)}"
        checker.report.add("S306", pattern.span, message, nearest(tag, cases))
    seen.add(tag)
    if pattern.bound is None:
        return context
    checker.fresh(pattern.bound, pattern.span, context)
    payload = cases.get(tag)
    if payload is None and tag in cases:
        checker.report.add("S306", pattern.span, f"`{tag}` carries nothing to bind", f"write `{tag}: ...`")
    return context.bind(pattern.bound, payload or UNKNOWN)


def _cases(kind: Type) -> dict[str, Type | None] | None:
    if isinstance(kind, types.Option):
        return {"some": kind.item, "none": None}
    if isinstance(kind, types.Union):
        return {tag: record.element or record if record.fields else None for tag, record in kind.variants}
    return dict.fromkeys(kind.members) if isinstance(kind, types.Enum) else None
