"""Types of names, operators and accesses."""

from __future__ import annotations

from specchk.lang.check.base import Base, Context
from specchk.lang.check.spec import Ref, Spec
from specchk.lang.check.types import (
    BOOL,
    INT,
    UNKNOWN,
    Bag,
    Int,
    Map,
    Option,
    Record,
    Seq,
    Set,
    Sort,
    Type,
    Union,
    join,
    show,
)  # fmt: skip
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import nearest

_LOGIC = {"and", "or", "implies", "iff"}
_ORDER = {"<", "<=", ">", ">="}


class Operators(Base):
    """Names, unary and binary operators, indexing, fields, primes."""

    def check_name(self, node: tree.Name, context: Context, expected: Type | None) -> Type:
        """A bare name: local, element, variable, constant, enum member, type, property."""
        found = self._lookup(node, context, expected)
        if found is None:
            self._report_unknown(node, context)
            return UNKNOWN
        self.facts.refs[id(node)] = found[0]
        return found[1]

    def _lookup(self, node: tree.Name, context: Context, expected: Type | None) -> tuple[Ref, Type] | None:
        text = node.text
        if node.qualifier is None and text in context.locals:
            return Ref("local", text), context.locals[text]
        if node.qualifier is None and text in context.elements:
            return Ref("element", text), context.elements[text]
        if text == "first" and context.elements and isinstance(expected, Sort):
            return Ref("first", expected.name), expected
        if text == "bool" and node.qualifier is None:
            return Ref("typeset", text, context.spec), Set(BOOL)
        home = context.spec.lookup(node.qualifier)
        if home is None:
            return None
        return self._global(text, home) or (self._property(text, home) if context.properties else None)

    def _global(self, text: str, home: Spec) -> tuple[Ref, Type] | None:
        if text in home.variables and not home.prefix:
            return Ref("variable", text, home), self.resolver.resolve(home.variables[text].type, home)
        if text in home.consts:
            return Ref("constant", text, home), self.resolver.resolve(home.consts[text].type, home)
        if text in home.members:
            owner, _ = home.members[text]
            return Ref("member", text, home), self.resolver.declared(owner, home, home.types[owner])
        if text in home.variants:
            owner = home.variants[text]
            kind = self.resolver.declared(owner, home, home.types[owner])
            if isinstance(kind, Union) and kind.get(text) == Record(()):
                return Ref("constructor", text, home), kind
            return None
        if text in home.sorts:
            return Ref("typeset", text, home), Set(Sort(home.prefix + text))
        if text in home.types:
            return Ref("typeset", text, home), Set(self.resolver.declared(text, home, home.types[text]))
        return None

    def _property(self, text: str, home: Spec) -> tuple[Ref, Type] | None:
        decl = home.properties.get(text)
        if decl is None or decl.kind not in ("invariant", "reachable", "constraint"):
            return None
        return Ref("property", text, home), BOOL

    def _report_unknown(self, node: tree.Name, context: Context) -> None:
        home = context.spec.lookup(node.qualifier)
        if home is None:
            self.no_import(node, context)
            return
        if node.text in home.declared:
            what = _kind_of(node.text, home)
            arguments = "..." if node.text in home.variants or _takes_arguments(node.text, home) else ""
            hint = (
                f"call it: `{node.text}({arguments})`" if what in ("a definition", "a constructor") else None
            )
            self.report.add("S203", node.span, f"`{node.full}` is {what}, not a value", hint,
                            [(home.declared[node.text], "declared here")])  # fmt: skip
            return
        if node.text in self.resolver.nameless:
            return
        known = [*context.locals, *context.elements, *home.declared]
        self.report.add("S201", node.span, f"no name `{node.full}` is known here", nearest(node.text, known))

    def no_import(self, name: tree.Name, context: Context) -> None:
        """Report a qualifier that no import gives."""
        alias = name.qualifier or ""
        if alias in context.locals or alias in context.spec.declared:
            self.report.add("S205", name.span, f"`{alias}` is not an imported file",
                            f"functions are written in prefix form: `{name.text}({alias}, ...)`")  # fmt: skip
            return
        self.report.add("S205", name.span, f"no file is imported as `{alias}`",
                        nearest(alias, context.spec.imports) or f"add `import {alias}`")  # fmt: skip

    def check_unary(self, node: tree.Unary, context: Context) -> Type:
        """`not`, `-`, `eventually`, `always`."""
        if node.op == "-":
            self.integer(node.operand, context)
            return INT
        self.boolean(node.operand, context)
        return BOOL

    def check_binary(self, node: tree.Binary, context: Context, expected: Type | None) -> Type:
        """Every binary operator."""
        op = node.op
        if op in _LOGIC or op == "leadsto":
            self.boolean(node.left, context)
            self.boolean(node.right, context)
            return BOOL
        if op in ("==", "!="):
            self.same(node.left, node.right, context)
            return BOOL
        if op in _ORDER:
            self._ordered(node, context)
            return BOOL
        if op in ("in", "not in"):
            return self._membership(node, context)
        if op == "subset":
            self.set_pair(node, context, None)
            return BOOL
        if op == "is":
            return self._is(node, context)
        return self._value_operator(node, context, expected)

    def _value_operator(self, node: tree.Binary, context: Context, expected: Type | None) -> Type:
        if node.op == "..":
            self.integer(node.left, context)
            self.integer(node.right, context)
            return Set(INT)
        if node.op in ("union", "intersect"):
            return self.set_pair(node, context, expected)
        if node.op == "++":
            return self._concatenation(node, context, expected)
        if node.op == "-" and not isinstance(self.check(node.left, context), Int):
            return self.set_pair(node, context, expected)
        self.integer(node.left, context)
        self.integer(node.right, context)
        return INT

    def same(self, left: tree.Expr, right: tree.Expr, context: Context) -> Type:
        """Both sides have one type; a side that shows none takes the other's."""
        a = self.check(left, context)
        b = self.check(right, context, a if a != UNKNOWN else None)
        joined = join(a, b) or a
        if joined != a:
            self.check(left, context, joined)
        return joined

    def _ordered(self, node: tree.Binary, context: Context) -> None:
        sides = [(side, self.check(side, context)) for side in (node.left, node.right)]
        for side, found in sides:
            if not isinstance(found, Int) and found != UNKNOWN:
                self.report.add("S304", side.span, f"{show(found)} has no order", _order_hint(found))
                return

    def _membership(self, node: tree.Binary, context: Context) -> Type:
        container = self.check(node.right, context)
        if isinstance(container, Set | Seq | Bag):
            found = self.check(node.left, context, container.item)
            if container.item == UNKNOWN:
                self.check(node.right, context, Set(found))
            return BOOL
        self.check(node.left, context)
        if container != UNKNOWN:
            self.report.add("S301", node.right.span, f"expected a set, found {show(container)}",
                            _membership_hint(container))  # fmt: skip
        return BOOL

    def set_pair(self, node: tree.Binary, context: Context, expected: Type | None) -> Type:
        """Both sides are sets (or bags, for `union`) of one type, which is the result."""
        hint = expected if isinstance(expected, Set | Bag) else None
        left = self.check(node.left, context, hint)
        if not isinstance(left, Set | Bag) and left != UNKNOWN:
            self.report.add("S301", node.left.span, f"expected a set, found {show(left)}")
            self.check(node.right, context)
            return UNKNOWN
        right = self.check(node.right, context, left if left != UNKNOWN else hint)
        joined = join(left, right) or left
        if joined != left:
            self.check(node.left, context, joined)
        return joined

    def _concatenation(self, node: tree.Binary, context: Context, expected: Type | None) -> Type:
        left = self.check(node.left, context, expected if isinstance(expected, Seq) else None)
        if not isinstance(left, Seq) and left != UNKNOWN:
            self.report.add("S301", node.left.span, f"expected a sequence, found {show(left)}")
            return UNKNOWN
        right = self.check(node.right, context, left if left != UNKNOWN else None)
        joined = join(left, right) or left
        if joined != left:
            self.check(node.left, context, joined)
        return Seq(joined.item) if isinstance(joined, Seq) else UNKNOWN

    def _is(self, node: tree.Binary, context: Context) -> Type:
        found = self.check(node.left, context)
        tag = node.right
        if isinstance(found, Union) and isinstance(tag, tree.Name):
            if found.get(tag.text) is None:
                self.report.add("S305", tag.span, f"{found.name} has no variant `{tag.text}`",
                                nearest(tag.text, (t for t, _ in found.variants)))  # fmt: skip
        elif found != UNKNOWN:
            self.report.add(
                "S301", node.left.span, f"`is` tests for a variant of a union, not of {show(found)}"
            )
        return BOOL

    def check_index(self, node: tree.Index, context: Context) -> Type:
        """`m[k]`, `s[i]`."""
        base = self.check(node.base, context)
        return self.element_at(base, node.key, node.base, context)

    def element_at(self, base: Type, key: tree.Expr, base_node: tree.Node, context: Context) -> Type:
        """The type of an element of a map or sequence, the key checked."""
        if isinstance(base, Map):
            self.check(key, context, base.key)
            return base.value
        if isinstance(base, Seq):
            self.integer(key, context)
            return base.item
        self.check(key, context)
        if base != UNKNOWN:
            self.report.add(
                "S301",
                base_node.span,
                f"only maps and sequences are indexed, this is {show(base)}",
                _option_hint(base),
            )
        return UNKNOWN

    def check_field(self, node: tree.Field, context: Context, expected: Type | None) -> Type:
        """`r.f`, or a name of an imported file."""
        base = node.base
        if (
            isinstance(base, tree.Name)
            and base.text in context.spec.imports
            and base.text not in context.locals
        ):
            name = tree.Name(node.span, node.name, base.text)
            found = self.check_name(name, context, expected)
            if id(name) in self.facts.refs:
                self.facts.refs[id(node)] = self.facts.refs[id(name)]
            return found
        return self.field_of(self.check(base, context), node.name, node)

    def field_of(self, base: Type, name: str, node: tree.Field | tree.Accessor | tree.Change) -> Type:
        """The type of a record's field."""
        if isinstance(base, Record):
            found = base.get(name)
            if found is None:
                self.report.add("S305", node.span, f"{show(base)} has no field `{name}`",
                                nearest(name, (f for f, _ in base.fields)))  # fmt: skip
            return found or UNKNOWN
        if base != UNKNOWN:
            hint = _option_hint(base) or ("take it apart with `match`" if isinstance(base, Union) else None)
            self.report.add("S301", node.span, f"only records have fields, this is {show(base)}", hint)
        return UNKNOWN


def _order_hint(found: Type) -> str | None:
    if isinstance(found, Set):
        return "sets are compared with `subset`"
    return _option_hint(found) or "only numbers have an order; everything else is compared with == and !="


def _option_hint(base: Type) -> str | None:
    return "unwrap it: `let x = ... else skip`, `get(...)` or `match`" if isinstance(base, Option) else None


def _membership_hint(container: Type) -> str | None:
    return (
        "a map's keys are all of its type's values" if isinstance(container, Map) else _option_hint(container)
    )


def _takes_arguments(text: str, home: Spec) -> bool:
    return text in home.defs and bool(home.defs[text].params)


def _kind_of(text: str, home: Spec) -> str:
    tables = (
        (home.actions, "an action"), (home.defs, "a definition"), (home.properties, "a property"),
        (home.variants, "a constructor"), (home.imports, "an imported file"),
        (home.variables, "a variable, which an imported file does not export"),
    )  # fmt: skip
    return next((what for table, what in tables if text in table), "something else")
