"""Types of binding forms, literals, comprehensions, updates and matches."""

from __future__ import annotations

from specchk.lang.check.base import Context
from specchk.lang.check.operators import Operators
from specchk.lang.check.types import (
    BOOL,
    UNKNOWN,
    Bag,
    Int,
    Map,
    Option,
    Record,
    Seq,
    Set,
    Type,
    Union,
    join,
    show,
)  # fmt: skip
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import nearest


class Forms(Operators):
    """Everything that is neither a name, an operator nor a call."""

    def check_quantified(self, node: tree.Quantified, context: Context) -> Type:
        """`forall`, `exists`, `choose`, `filter`."""
        inner = self.bind(node.binders, context)
        self.boolean(node.body, inner)
        if node.kind in ("forall", "exists"):
            return BOOL
        if len(node.binders) > 1:
            self.report.add("S302", node.span, f"`{node.kind}` takes one name", "choose a record of both")
        item = self.facts.binders[id(node.binders[0])]
        return item if node.kind == "choose" else Set(item)

    def check_if(self, node: tree.IfElse, context: Context, expected: Type | None) -> Type:
        """`if c then a else b`: both branches have one type."""
        self.boolean(node.condition, context)
        then = self.check(node.then, context, expected)
        orelse = self.check(node.orelse, context, expected if expected is not None else _known(then))
        joined = join(then, orelse)
        if joined is None and expected is None:
            self.mismatch(node.orelse.span, orelse, then)
        elif joined is not None and joined != then and expected is None:
            self.check(node.then, context, joined)
        return joined if joined is not None else then

    def check_let(self, node: tree.LetIn, context: Context, expected: Type | None) -> Type:
        """`let x = e: body`."""
        kind = self.settle(node.value, context)
        self.fresh(node.name, node.span, context)
        return self.check(node.body, context.bind(node.name, kind), expected)

    def check_set(self, node: tree.SetLiteral, context: Context, expected: Type | None) -> Type:
        """`{a, b}`; a bag where a bag is expected."""
        shape = Bag if isinstance(expected, Bag) else Set
        wanted = expected.item if isinstance(expected, Set | Bag) else None
        return shape(self.items(node.items, context, wanted))

    def items(self, nodes: tuple[tree.Expr, ...], context: Context, wanted: Type | None) -> Type:
        """The one type of several expressions."""
        kind: Type = wanted if wanted is not None else UNKNOWN
        for node in nodes:
            found = self.check(node, context, kind if kind != UNKNOWN else None)
            kind = join(found, kind) or kind
        return kind

    def check_seq(self, node: tree.SeqLiteral, context: Context, expected: Type | None) -> Type:
        """`[a, b]`."""
        return Seq(self.items(node.items, context, expected.item if isinstance(expected, Seq) else None))

    def check_set_comp(self, node: tree.SetComp, context: Context, expected: Type | None) -> Type:
        """`{ e for x in S if c }`."""
        inner = self.bind(node.binders, context)
        if node.condition is not None:
            self.boolean(node.condition, inner)
        return Set(self.check(node.body, inner, expected.item if isinstance(expected, Set) else None))

    def check_map_comp(self, node: tree.MapComp, context: Context, expected: Type | None) -> Type:
        """`{ k: e for k in K }`, where K is a whole type and the key the bound name."""
        inner = self.bind((node.binder,), context)
        key = self.facts.binders[id(node.binder)]
        if not (isinstance(node.key, tree.Name) and node.key.text == node.binder.name):
            self.report.add(
                "S309",
                node.key.span,
                "the key of a map comprehension is the bound name itself",
                f"write `{{ {node.binder.name}: ... for {node.binder.name} in ... }}`: maps are total",
            )
        else:
            self.check(node.key, inner)
        if isinstance(expected, Map) and join(expected.key, key) is not None:
            key = expected.key
        value = self.check(node.value, inner, expected.value if isinstance(expected, Map) else None)
        return Map(key, value)

    def check_pairs(self, node: tree.PairLiteral, context: Context, expected: Type | None) -> Type:
        """`{ a: 1 }`: a map where one is expected, else a record."""
        if isinstance(expected, Map):
            kind = expected.value
            for pair in node.pairs:
                self.check(pair.key, context, expected.key)
                self.check(pair.value, context, kind)
            return expected
        wanted = expected if isinstance(expected, Record) else None
        return self.record(node, context, wanted)

    def record(self, node: tree.PairLiteral, context: Context, wanted: Record | None) -> Type:
        """A record literal, its fields in the order of `wanted` where that is known."""
        found: dict[str, Type] = {}
        strangers = False
        for pair in node.pairs:
            if not isinstance(pair.key, tree.Name) or pair.key.qualifier:
                self.report.add("S301", pair.key.span, "a record's field is a name",
                                "a map literal needs a place where a map is expected")  # fmt: skip
                continue
            name = pair.key.text
            if name in found:
                self.report.add("S202", pair.key.span, f"field `{name}` is given twice")
            field = wanted.get(name) if wanted else None
            if wanted is not None and field is None:
                strangers = True
                self.report.add("S305", pair.key.span, f"{show(wanted)} has no field `{name}`",
                                nearest(name, (f for f, _ in wanted.fields if f not in found))
                                or f"the record is {show(wanted)}")  # fmt: skip
            found[name] = self.check(pair.value, context, field)
        return wanted if strangers and wanted is not None else self._complete(node, found, wanted)

    def _complete(self, node: tree.PairLiteral, found: dict[str, Type], wanted: Record | None) -> Type:
        if wanted is None:
            return Record(tuple(found.items()))
        missing = [name for name, _ in wanted.fields if name not in found]
        if missing:
            self.report.add(
                "S305",
                node.span,
                f"field{'s' * (len(missing) > 1)} {', '.join(missing)} missing",
                f"the record is {show(wanted)}",
            )
        return wanted

    def check_with(self, node: tree.With, context: Context, expected: Type | None) -> Type:
        """`{ base with path: e }`: same type, parts replaced."""
        base = self.check(node.base, context, expected)
        for change in node.changes:
            place = self.walk(base, change.path, node.base, context)
            self.check(change.value, context, place)
        return base

    def walk(self, base: Type, path: tuple[tree.Accessor, ...], start: tree.Node, context: Context) -> Type:
        """The type at the end of an update path."""
        before: tree.Node = start
        for step in path:
            if step.field is not None:
                base = self.field_of(base, step.field, step)
            elif step.index is not None:
                base = self.element_at(base, step.index, before, context)
            before = step
        return base

    def check_match(self, node: tree.Match, context: Context, expected: Type | None) -> Type:
        """`match e { ... }` on options and unions; every case is covered once."""
        found = self.check(node.scrutinee, context)
        cases = _cases(found)
        if cases is None:
            if found != UNKNOWN:
                self.report.add("S301", node.scrutinee.span,
                                f"`match` accepts options and unions, not {show(found)}")  # fmt: skip
            cases = {}
        result: Type = expected if expected is not None else UNKNOWN
        seen: set[str] = set()
        for arm in node.arms:
            inner = self._arm(arm.pattern, cases, seen, context, known=bool(cases))
            kind = self.check(arm.body, inner, result if result != UNKNOWN else None)
            result = join(result, kind) or result
        missing = [tag for tag in cases if tag not in seen]
        if missing and "_" not in seen:
            self.report.add("S306", node.span, f"the match leaves out {', '.join(missing)}",
                            "add arms for them, or `_: ...` for the rest")  # fmt: skip
        return result

    def _arm(
        self,
        pattern: tree.Pattern,
        cases: dict[str, Type | None],
        seen: set[str],
        context: Context,
        *,
        known: bool,
    ) -> Context:
        tag = pattern.tag
        if tag in seen or "_" in seen:
            self.report.add("S306", pattern.span, f"`{tag}` is already covered", "remove this arm")
        elif tag != "_" and tag not in cases and known:
            self.report.add(
                "S306", pattern.span, f"`{tag}` is not one of {', '.join(cases)}", nearest(tag, cases)
            )
        seen.add(tag)
        if pattern.bound is None:
            return context
        self.fresh(pattern.bound, pattern.span, context)
        payload = cases.get(tag)
        if payload is None and tag in cases:
            self.report.add("S306", pattern.span, f"`{tag}` carries nothing to bind", f"write `{tag}: ...`")
        return context.bind(pattern.bound, payload or UNKNOWN)


def _known(kind: Type) -> Type | None:
    return kind if kind != UNKNOWN and not isinstance(kind, Int) else None


def _cases(kind: Type) -> dict[str, Type | None] | None:
    if isinstance(kind, Option):
        return {"some": kind.item, "none": None}
    if isinstance(kind, Union):
        return {tag: record if record.fields else None for tag, record in kind.variants}
    return None
