"""Declared types: from the tree's type expressions to `lang.check.types`.

Each type expression is resolved once, in the namespace of its file.  Types may refer
to each other in any order but not to themselves: a recursive type has infinitely many values.
"""

from __future__ import annotations

from types import MappingProxyType

from specchk.lang.check import types
from specchk.lang.check.spec import Facts, Spec
from specchk.lang.check.types import MAX_TUPLE, UNKNOWN, Type, show
from specchk.lang.syntax import decls as tree_decls
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import Report, nearest

# Names in types are expanded in place. Twenty types, each a pair of the one before, are a million parts, and
# each link of a chain is a level of recursion for all passes behind this one.
MAX_CHAIN = 50
MAX_PARTS = 2000


_TEXT = "there are no strings: declare `type Name = enum {a, b}`, or a `sort`"
_FOREIGN = MappingProxyType(
    {
        "string": _TEXT, "str": _TEXT, "text": _TEXT,
        "nat": "numbers have a bound: `0..9`, or `nat upto 9` where larger ones exist but are not searched",
        "float": "numbers are whole", "real": "numbers are whole",
    }
)  # fmt: skip


class TypeResolver:
    """Resolves type expressions; keeps the results in `facts.declared`."""

    def __init__(self, facts: Facts, report: Report) -> None:
        self.facts = facts
        self.report = report
        self.nameless: set[str] = set()  # members of enums that were refused: not reported again
        self._open: list[str] = []
        self._sizes: dict[int, int] = {}
        self._measured: list[Type] = []

    def resolve(self, node: tree.TypeExpr, home: Spec) -> Type:
        """The type that `node` means in `home`; UNKNOWN after a diagnostic."""
        known = self.facts.declared.get(id(node))
        if known is None:
            known = self.facts.declared[id(node)] = self._resolve(node, home)
        return known

    def _resolve(self, node: tree.TypeExpr, home: Spec) -> Type:
        match node:
            case tree.NamedType():
                return self._named(node, home)
            case tree.RangeType():
                return types.Int(node.low, node.high)
            case tree.NatType():
                return types.Int(tree.IntLiteral(node.span, 0), node.horizon, horizon=True)
            case tree.OptionType():
                return types.Option(self.resolve(node.item, home))
            case tree.RecordType():
                return self._record(node.fields, home)
            case tree.MapType():
                return self._map(node, home)
            case tree.SetType():
                return types.Set(self.resolve(node.item, home))
            case tree.SeqType():
                return types.Seq(self.resolve(node.item, home), node.limit)
            case tree.BagType():
                return types.Bag(self.resolve(node.item, home), node.limit)
            case tree.PartialMapType():
                return types.PartialMap(self.resolve(node.key, home), self.resolve(node.value, home))
            case tree.TupleType():
                check_length(node, len(node.items), self.report)
                return types.tuple_of([self.resolve(item, home) for item in node.items[:MAX_TUPLE]])
            case tree.EnumType() | tree.UnionType():
                self.report.add("S308", node.span, "an enum or union needs a name of its own",
                                f"declare it: `type Name = {node.span.text}`, then use the name")  # fmt: skip
                if isinstance(node, tree.EnumType):
                    self.nameless.update(node.members)
                return UNKNOWN

    def _map(self, node: tree.MapType, home: Spec) -> Type:
        key = self.resolve(node.key, home)
        if types.has_partial_map(key):
            message = f"the values of {show(key)} cannot be listed, and all of them would be keys"
            self.report.add("S307", node.key.span, message, "a map that has some of its keys is `map[K, V]`")
        return types.Map(key, self.resolve(node.value, home))

    def _named(self, node: tree.NamedType, home: Spec) -> Type:
        name = node.name
        if name.qualifier is None and name.text in ("bool", "int"):
            return types.BOOL if name.text == "bool" else types.INT
        where = home.lookup(name.qualifier)
        if where is None:
            self.report.add("S205", name.span, f"no file is imported as `{name.qualifier}`",
                            nearest(name.qualifier or "", home.imports))  # fmt: skip
            return UNKNOWN
        if name.text in where.sorts:
            return self.sort(name.text, where)
        if name.text in where.types:
            return self.declared(name.text, where, name)
        self._unknown(name, where)
        return UNKNOWN

    def sort(self, text: str, where: Spec) -> Type:
        """The type of a sort's elements; for a sort of a refined spec, the type that the mapping gives."""
        return where.sort_types.get(text) or types.Sort(where.prefix + text)

    def _unknown(self, name: tree.Name, where: Spec) -> None:
        if name.text in where.declared:
            self.report.add("S203", name.span, f"`{name.full}` is not a type",
                            notes=[(where.declared[name.text], "declared here")])  # fmt: skip
            return
        known = [*where.sorts, *where.types, "bool", "int"]
        hint = where.qualified_hint(name) or _FOREIGN.get(name.text.lower()) or nearest(name.text, known)
        self.report.add("S201", name.span, f"no type `{name.full}` is known here", hint)

    def declared(self, text: str, where: Spec, use: tree.Node) -> Type:
        """The type declared as `type text = ...` in `where`."""
        decl = where.types[text]
        full = where.prefix + text
        if full in self._open:
            self.report.add(
                "S207",
                use.span,
                f"type `{text}` contains itself, so it has infinitely many values",
                "refer to the other part by an index or a name",
            )
            return UNKNOWN
        known = self.facts.declared.get(id(decl))
        if known is None:
            self._open.append(full)
            known = self._bounded(decl, full, where)
            self._open.pop()
            self.facts.declared[id(decl)] = known
        return known

    def _bounded(self, decl: tree_decls.TypeDecl, full: str, where: Spec) -> Type:
        """The type that a name declares, rejected if it is too large to be processed."""
        if len(self._open) <= MAX_CHAIN:
            kind = self._declared(decl.type, full, where)
            if self._size(kind) <= MAX_PARTS:
                return kind
            message = f"type `{decl.name}` has more than {MAX_PARTS} parts once the names in it are expanded"
        else:
            message = f"type `{decl.name}` ends a chain of more than {MAX_CHAIN} types"
        self.report.add("S311", decl.span.word(decl.name), message, "omit parts that the spec does not need")
        return UNKNOWN

    def _size(self, kind: Type) -> int:
        """The number of parts of a type; shared parts are visited once."""
        known = self._sizes.get(id(kind))
        if known is None:
            known = self._sizes[id(kind)] = 1 + sum(self._size(part) for part in types.parts(kind))
            self._measured.append(kind)  # ids stay unique
        return known

    def _declared(self, node: tree.TypeExpr, full: str, where: Spec) -> Type:
        if isinstance(node, tree.EnumType):
            return types.Enum(full, node.members)
        if isinstance(node, tree.UnionType):
            return self._union(node, full, where)
        return self.resolve(node, where)

    def _union(self, node: tree.UnionType, full: str, where: Spec) -> types.Union:
        variants: list[tuple[str, types.Record]] = []
        for variant in node.variants:
            record = self._record(variant.fields, where)
            if variant.name in where.sorts and not variant.fields:
                record = types.Record((("", self.sort(variant.name, where)),))
            if record.element is not None and any(record == other for _, other in variants):
                message = f"{show(record.element)} is in this union twice"
                self.report.add("S202", variant.span, message,
                                "map the sorts of a refined spec to different ones")  # fmt: skip
            variants.append((variant.name, record))
        return types.Union(full, tuple(variants))

    def _record(self, fields: tuple[tree.FieldType, ...], home: Spec) -> types.Record:
        kinds: dict[str, Type] = {}
        for item in fields:
            if item.name in kinds:
                self.report.add("S202", item.span, f"field `{item.name}` is declared twice")
            kinds[item.name] = self.resolve(item.type, home)
        return types.Record(tuple(kinds.items()))


def check_length(node: tree.Node, length: int, report: Report) -> None:
    """Report a tuple with too many parts."""
    if length > MAX_TUPLE:
        report.add("S311", node.span, f"a tuple has at most {MAX_TUPLE} parts, this one has {length}",
                   "name the parts: a record is `{ a: x, b: y }`")  # fmt: skip
