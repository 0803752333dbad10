"""Partial maps in the core: sets of pairs, one for each key.

| written | is |
|---|---|
| `m[k]` | the value of the only pair with this key: `Choose`, `unique` |
| `k in m` | `exists p in m: p.key == k` |
| `keys(m)` | `{ p.key for p in m }` |
| `{ m with [k]: v }` | `{ p for p in m if p.key != k } union {{ key: k, value: v }}` |
| `remove(m, k)` | `m - {p}`, p being the only pair with this key |

So engines that have sets of records have partial maps: listed, packed, renamed and compared as these are.
Nothing else makes values of the type, and none of these gives a key two values.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from specchk.compile.nodes import operators
from specchk.compile.nodes.operators import Bind, Fresh, in_turn
from specchk.ir.nodes import Apply, Choose, Collect, Const, Expr, Gather, If, Local, PathStep, Quantifier
from specchk.ir.ops import Op
from specchk.ir.types import BOOL, Map, Set, Type, hull, of_shape, partial_map
from specchk.lang.text.diagnostics import refusal
from specchk.lang.text.source import Span


def is_partial_map(kind: Type) -> bool:
    """Whether values of the type are partial maps."""
    return isinstance(kind, Set) and kind.keyed


class PartialMaps:
    """Builds the nodes of partial maps; `local` returns a fresh local, `let` binds a value in a body."""

    def __init__(self, local: Fresh, let: Bind) -> None:
        self.local = local
        self.let = let

    def keys(self, span: Span, table: Expr) -> Expr:
        """`keys(m)`."""
        pair, key = self._pair(span, table)
        return Collect(Set(key.type), span, Gather.SET, ((pair, table),), None, key)

    def has(self, span: Span, key: Expr, table: Expr) -> Expr:
        """`k in m`."""

        def found(wanted: Expr) -> Expr:
            pair, own = self._pair(span, table)
            same = operators.applied(span, Op.EQ, own, wanted)
            return Quantifier(BOOL, span, False, pair, table, same)

        return self.let("key", key, span, found)

    def at(self, span: Span, table: Expr, key: Expr) -> Expr:
        """`m[k]`."""

        def value(wanted: Expr) -> Expr:
            return operators.field(span, self._only(span, table, wanted), "value")

        return self.let("key", key, span, value)

    def get(self, span: Span, table: Expr, key: Expr, default: Expr) -> Expr:
        """`get(m, k, d)`."""

        def of(known: Expr, wanted: Expr) -> Expr:
            value = self.at(span, known, wanted)
            kind = hull(value.type, default.type)
            return If(kind, span, self.has(span, wanted, known), value, default)

        return in_turn(self.let, [("map", table, span), ("key", key, span)], of)

    def put(self, span: Span, table: Expr, key: Expr, value: Expr) -> Expr:
        """`{ m with [k]: v }`."""

        def changed(wanted: Expr) -> Expr:
            pair, own = self._pair(span, table)
            differs = operators.applied(span, Op.NE, own, wanted)
            # Without the old pair, whether there was one or not: a set with two pairs of a key is no map.
            others = Collect(table.type, span, Gather.SET, ((pair, table),), differs, pair)
            return operators.applied(span, Op.UNION, others, self._of_pairs(span, [(wanted, value)]))

        return self.let("key", key, span, changed)

    def remove(self, span: Span, table: Expr, key: Expr) -> Expr:
        """`remove(m, k)`."""

        def rest(known: Expr, wanted: Expr) -> Expr:
            pair = self._only(span, known, wanted)
            kind = replace(of_shape(known.type, Set), item=pair.type)
            return operators.applied(span, Op.DIFFERENCE, known, Apply(kind, span, Op.SET, (pair,)))

        return in_turn(self.let, [("map", table, span), ("key", key, span)], rest)

    def literal(self, span: Span, pairs: Sequence[tuple[Expr, Expr]]) -> Expr:
        """`{ k: v, ... }`; if keys turn out equal in a state, the last one counts."""
        known: set[object] = set()
        for key, _ in pairs:
            if isinstance(key, Const) and key.value in known:
                hint = "omit one of the two"
                raise refusal("S309", key.span, "each key of a map literal is given once", hint)
            known |= {key.value} if isinstance(key, Const) else set()
        # Keys that are certainly different need no order; others are added one after another, as written.
        if len(known) == len(pairs) or len(pairs) == 1:
            return self._of_pairs(span, pairs)
        made = self._of_pairs(span, pairs[:1])
        for key, value in pairs[1:]:
            made = self.let("map", made, span, lambda m, k=key, v=value: self.put(span, m, k, v))  # type: ignore[misc]
        return made

    def made_of(self, span: Span, local: Local, domain: Expr, value: Expr) -> Expr:
        """`{ k: e for k in S }`."""
        pair = operators.record(span, {"key": local, "value": value})
        return Collect(partial_map(local.type, value.type), span, Gather.SET, ((local, domain),), None, pair)

    def updated(self, span: Span, base: Expr, path: operators.Path, value: Expr) -> Expr:
        """`base` with the place at the end of a path replaced."""
        if not path:
            return value
        (step, here), rest = path[0], path[1:]
        if step.field is not None:
            part = operators.applied(span, Op.FIELD, base, data=step.field)
            inner = self.updated(span, part, rest, value)
            return operators.applied(span, Op.WITH_FIELD, base, inner, data=step.field)
        assert step.key is not None
        # A part that is replaced as a whole is not read: a partial map may not have it.
        inner = self.updated(span, self.part(here, base, step), rest, value) if rest else value
        if is_partial_map(base.type):
            return self.put(here, base, step.key, inner)
        op = Op.MAP_SET if isinstance(base.type, Map) else Op.SEQ_SET
        return operators.applied(here, op, base, step.key, inner)

    def part(self, span: Span, base: Expr, step: PathStep) -> Expr:
        """The part of a value selected by one accessor of a path."""
        if step.field is not None:
            return operators.applied(span, Op.FIELD, base, data=step.field)
        assert step.key is not None
        if is_partial_map(base.type):
            return self.at(span, base, step.key)
        return operators.at(span, base, step.key)

    def _pair(self, span: Span, table: Expr) -> tuple[Local, Expr]:
        pair = self.local("pair", of_shape(table.type, Set).item, span)
        return pair, operators.field(span, pair, "key")

    def _only(self, span: Span, table: Expr, wanted: Expr) -> Expr:
        """The pair with a key; undefined if there is none."""
        pair, own = self._pair(span, table)
        same = operators.applied(span, Op.EQ, own, wanted)
        return Choose(pair.type, span, pair, table, same, unique=True)

    def _of_pairs(self, span: Span, pairs: Sequence[tuple[Expr, Expr]]) -> Expr:
        records = tuple(operators.record(span, {"key": key, "value": value}) for key, value in pairs)
        return operators.collection(span, partial_map(pairs[0][0].type, pairs[0][1].type), records)
