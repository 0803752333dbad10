"""Types of names: locals, elements, variables, constants, enum members, types, properties."""

from __future__ import annotations

from types import MappingProxyType

from specchk.lang.check.builtins import BUILTINS
from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.spec import Ref, Spec
from specchk.lang.check.types import BOOL, UNKNOWN, Record, Set, Sort, Type, Union
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import nearest


def check_name(checker: Checker, node: tree.Name, context: Context, expected: Type | None) -> Type:
    """A name by itself."""
    return check_as_name(checker, node, node, context, expected)


def check_as_name(
    checker: Checker, node: tree.Expr, name: tree.Name, context: Context, expected: Type | None
) -> Type:
    """The type of `node`, used as `name`; the fact is recorded for `node`, since `name` may be temporary."""
    meaning = _lookup(checker, name, context, expected)
    if meaning is None:
        _report_unknown(checker, name, context)
        return UNKNOWN
    checker.facts.refs[id(node)] = meaning[0]
    return meaning[1]


def _lookup(
    checker: Checker, node: tree.Name, context: Context, expected: Type | None
) -> tuple[Ref, Type] | None:
    text = node.text
    if node.qualifier is None and text in context.locals:
        return Ref("local", text), context.locals[text]
    if node.qualifier is None and text in context.elements:
        return Ref("element", text), context.elements[text]
    # Of which sort it is the first element only the expected type can show, so it is no name where nothing is
    # expected, nor where elements have no names.
    if text == "first" and context.elements and isinstance(expected, Sort):
        return Ref("first", expected.name), expected
    if text == "bool" and node.qualifier is None:
        return Ref("typeset", text, context.spec), Set(BOOL)
    home = context.spec.lookup(node.qualifier)
    if home is None:
        return None
    meaning = _global(checker, text, home, context)
    if meaning is None and context.properties and home.has_state_for(context.spec):
        meaning = _property(checker, text, home)
    return meaning


def _global(checker: Checker, text: str, home: Spec, context: Context) -> tuple[Ref, Type] | None:
    if text in home.variables and home.has_state_for(context.spec):
        return Ref("variable", text, home), checker.resolver.resolve(home.variables[text].type, home)
    if text in home.consts:
        return Ref("constant", text, home), checker.resolver.resolve(home.consts[text].type, home)
    if text in home.members:
        owner, _ = home.members[text]
        return Ref("member", text, home), checker.resolver.declared(owner, home, home.types[owner])
    if text in home.variants:
        owner = home.variants[text]
        kind = checker.resolver.declared(owner, home, home.types[owner])
        if isinstance(kind, Union) and kind.get(text) == Record(()):
            return Ref("constructor", text, home), kind
        return None
    if text in home.sorts:
        return Ref("typeset", text, home), Set(checker.resolver.sort(text, home))
    if text in home.types:
        return Ref("typeset", text, home), Set(checker.resolver.declared(text, home, home.types[text]))
    return None


def _property(checker: Checker, text: str, home: Spec) -> tuple[Ref, Type] | None:
    decl = home.properties.get(text)
    if decl is None or decl.kind not in ("invariant", "reachable", "constraint"):
        return None
    return Ref("property", text, home), BOOL


def _report_unknown(checker: Checker, node: tree.Name, context: Context) -> None:
    home = context.spec.lookup(node.qualifier)
    if home is None:
        no_import(checker, node, context)
        return
    if node.qualifier is None and node.text in context.operators:
        checker.report.add("S203", node.span, f"`{node.text}` is an operator, not a value",
                           f"call it: `{node.text}(...)`")  # fmt: skip
        return
    if node.text in home.declared:
        what = _kind_of(node.text, home)
        is_plain = node.text in home.defs and not home.defs[node.text].params
        arguments = "" if is_plain else "..."
        hint = f"call it: `{node.text}({arguments})`" if what in ("a definition", "a constructor") else None
        checker.report.add("S203", node.span, f"`{node.full}` is {what}, not a value", hint,
                           [(home.declared[node.text], "declared here")])  # fmt: skip
        return
    if node.text in checker.resolver.nameless:
        return
    known = [*context.locals, *context.elements, *home.declared]
    hint = home.qualified_hint(node) or nearest(node.text, known) or foreign_hint(node.text)
    checker.report.add("S201", node.span, f"no name `{node.full}` is known here", hint)


# a name of another language -> how its meaning is written here
_FOREIGN = MappingProxyType(
    {
        "write `true` or `false`": "True TRUE False FALSE",
        "nothing is `none`, a value of a type `T?`": "None null nil NULL Null Nothing",
        "the number of elements is `card(S)`, the length of a sequence `len(s)`": "size Cardinality length",
        "membership is `x in S`": "contains has member includes In",
        "the set of all subsets is `subsets(S)`": "SUBSET powerset Subsets",
        "a new item is added by `append(s, x)`, and to a set by `S union {x}`": "push enqueue insert put",
        "the first item is `head(s)`, the others are `tail(s)`": "pop dequeue shift rest front",
        "the range from a to b is `a..b`": "range Range to",
        "the keys of a map `K -> V` are all of K, those of a `map[K, V]` are `keys(m)`": "DOMAIN domain",
        "operators are written between their operands: `a union b`": "union intersect subset intersection",
        "all subsets of S are `subsets(S)`; a type needs a name here: `type Any = set[T]`": "set seq bag",
        "the pairs of two sets are `{ (x, y) for x in S, y in T }`": "tuples product cross times",
        "a tuple is written `(a, b)`, its type `(A, B)`": "Tup tuple Tuple Pair pair",
        "a tuple is taken apart by names: `let (x, y) = p`": "fst snd",
        "an item is added to a set by `s union { x }`, to a bag by `add(b, x)`": "add",
        "the values of a map are `{ m[k] for k in K }`": "values",
        "the empty set is `{}`": "empty emptyset Set",
        "whether an action is enabled is `enabled(act)`, `enabled(act(x, _))`": "ENABLED enabled",
    }
)
_INSTEAD = MappingProxyType({name: hint for hint, names in _FOREIGN.items() for name in names.split()})


def foreign_hint(name: str) -> str | None:
    """The equivalent here of another language's name; None if there is none."""
    return _INSTEAD.get(name)


def no_import(checker: Checker, name: tree.Name, context: Context) -> None:
    """Report a qualifier that no import declares."""
    alias = name.qualifier or ""
    if alias in context.locals or alias in context.spec.declared:
        hint = foreign_hint(name.text)
        if hint is None and (name.text in BUILTINS or name.text in context.spec.declared):
            hint = f"functions are written in prefix form: `{name.text}({alias}, ...)`"
        checker.report.add("S205", name.span, f"`{alias}` is not an imported file", hint)
        return
    checker.report.add("S205", name.span, f"no file is imported as `{alias}`",
                       nearest(alias, context.spec.imports) or f"add `import {alias}`")  # fmt: skip


def _kind_of(text: str, home: Spec) -> str:
    tables = (
        (home.actions, "an action"), (home.helpers, "a helper action"), (home.defs, "a definition"),
        (home.properties, "a property"),
        (home.variants, "a constructor"), (home.imports, "an imported file"),
        (home.variables, "a variable, which has no value outside its own file"),
    )  # fmt: skip
    return next((what for table, what in tables if text in table), "something else")
