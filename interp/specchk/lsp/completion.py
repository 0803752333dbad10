"""What can be written at a place: the words that the grammar allows there, and names by their types.

Which words follow is what the parser accepts behind the text before the cursor.  For the names of an
expression a placeholder is put at the cursor and the spec is checked with it: the checker shows the names in
scope and the type that is expected; if the text around it cannot be parsed, all declared names are offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from lsprotocol import types as lsp
from msgspec import Struct, field

from specchk.lang.check.builtins import BUILTINS, MEANINGS
from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.expressions import RULES
from specchk.lang.check.spec import Facts, Spec
from specchk.lang.check.types import BOOL, UNKNOWN, Record, Set, Sort, Type, is_complete, join, show
from specchk.lang.syntax import decls, tree
from specchk.lang.syntax.parse import possible_next, words
from specchk.lang.text.diagnostics import Report
from specchk.lsp.analysis import examine
from specchk.lsp.hover import comment, declaration
from specchk.lsp.symbols import kind_of
from specchk.lsp.texts import Drafts, KeptChunks
from specchk.lsp.workspace import Workspace

HOLE = "hole__at__the__cursor"
_PARTIAL = re.compile(r"\w*\Z")
_KINDS = MappingProxyType({
    "sort": lsp.CompletionItemKind.Class, "type": lsp.CompletionItemKind.Struct,
    "constant": lsp.CompletionItemKind.Constant, "variable": lsp.CompletionItemKind.Variable,
    "definition": lsp.CompletionItemKind.Function, "built-in": lsp.CompletionItemKind.Function,
    "action": lsp.CompletionItemKind.Event, "helper action": lsp.CompletionItemKind.Method,
    "member": lsp.CompletionItemKind.EnumMember, "element": lsp.CompletionItemKind.EnumMember,
    "variant": lsp.CompletionItemKind.Constructor, "local": lsp.CompletionItemKind.Variable,
    "field": lsp.CompletionItemKind.Field, "word": lsp.CompletionItemKind.Keyword,
    "file": lsp.CompletionItemKind.Module, "import": lsp.CompletionItemKind.Module,
})  # fmt: skip
# The word that decides which names follow, behind it or behind a comma -> their table of the spec.
_TABLES: MappingProxyType[str, str] = MappingProxyType({
    "ON": "models", "VIOLATES": "properties", "UNREACHABLE": "properties", "PROPERTIES": "properties",
    "ACTIONS": "actions", "FAIR": "actions", "REFUSED": "actions", "ARROW": "actions",
    "IGNORE": "variables", "HIDE": "variables",
})  # fmt: skip


class CompletionName(Struct, frozen=True):
    """A name or word that can be written, with its type and the place of its declaration, if it has them."""

    name: str
    kind: str
    type: Type | None = None
    decl: decls.Named | None = None


class _Hole(Struct):
    """What the checker has met at the placeholder."""

    context: Context | None = None
    expected: Type | None = None
    base: tree.Expr | None = None  # whose field it is
    facts: Facts = field(default_factory=Facts)


def completions(workspace: Workspace, path: str, position: lsp.Position) -> list[lsp.CompletionItem]:
    """The items for a place, those whose type is expected there first."""
    text = workspace.read(path)
    at = text.offset(position)
    partial = _PARTIAL.search(text.source.text, 0, at)
    start = partial.start() if partial is not None else at
    chunk = workspace.analysis(path).text
    found = chunk.at(max(0, start - 1)) if chunk is not None and start > 0 else None
    begin = found[0] if found is not None and text.source.line_starts[position.line] != start else start
    accepted, tokens = possible_next(text.source.text[begin:start])
    items = [
        CompletionName(words()[name], "word") for name in sorted(accepted) if words().get(name, "").isalpha()
    ]
    hole = _Hole()
    if "NAME" in accepted or not accepted:
        spec = workspace.analysis(path).spec
        if "TRUE" in accepted or not accepted or _last(tokens) == "DOT":
            hole, spec = _checked(workspace, path, text.source.text[:start], text.source.text[at:], spec)
        items = [*_names(workspace, spec, hole, accepted, tokens), *items]
    return [_item(candidate, hole.expected) for candidate in items]


def _last(tokens: list[tuple[str, str]], *, passing: tuple[str, ...] = ()) -> str:
    """The type of the last token that is none of those to be passed over."""
    return next((kind for kind, _ in reversed(tokens) if kind not in passing), "")


def _checked(
    workspace: Workspace, path: str, before: str, after: str, spec: Spec | None
) -> tuple[_Hole, Spec | None]:
    """Check the spec with a placeholder; what is known of it, and the spec."""
    hole, report = _Hole(), Report()
    drafts = {**workspace.drafts, path: f"{before}{HOLE}{after}"}

    def rule(checker: Checker, node: tree.Expr, context: Context, advice: Type | None = None) -> Type:
        kind = RULES[type(node)](checker, node, context, advice)
        match node:
            case tree.Name(text=text) if text == HOLE:
                hole.context, hole.expected = context, advice
            case tree.Field(name=name) if name == HOLE:
                hole.context, hole.expected, hole.base = context, advice, node.base
            # `{ x }` may become `{ x: 1 }` where a record is expected.
            case tree.SetLiteral(items=(tree.Name(text=text),)) if text == HOLE and isinstance(
                advice, Record
            ):
                hole.expected = advice
        return kind

    kept = KeptChunks(dict(workspace.kept.chunks))
    analysis = examine(path, report, Drafts(drafts, kept.chunks), Checker(hole.facts, report, rule), kept)
    if hole.base is not None and (kind := hole.facts.types.get(id(hole.base))) is not None:
        hole.expected = kind
    return hole, analysis.spec or spec


def _names(
    workspace: Workspace,
    spec: Spec | None,
    hole: _Hole,
    accepted: frozenset[str],
    tokens: list[tuple[str, str]],
) -> Iterator[CompletionName]:
    """The names that fit a place."""
    first, deciding = tokens[0][1] if tokens else "", _last(tokens, passing=("NAME", "COMMA", "DOT"))
    if _last(tokens) == "DOT":
        yield from _parts(spec, hole, tokens)
    elif spec is None or (len(tokens) == 1 and first not in ("fair", "extends", "import", "refines")):
        return  # the name of a declaration is new
    elif first in ("extends", "import", "refines") and len(tokens) == 1:
        yield from (CompletionName(file.stem, "file") for file in workspace.beside(spec.source.path))
    else:
        for table in _tables(first, deciding, accepted):
            yield from (_declared(name, decl) for name, decl in getattr(spec, table).items())
        if "TRUE" in accepted or not accepted:
            yield from _values(spec, hole)


def _tables(first: str, deciding: str, accepted: frozenset[str]) -> tuple[str, ...]:
    """The tables of the spec whose names fit a place that is no expression."""
    if deciding in _TABLES or (first == "model" and deciding == "EXTENDS"):
        return (_TABLES.get(deciding, "models"),)
    marks = {
        "SET": ("sorts", "types"), "REQUIRE": ("variables", "helpers"), "REFUSED": ("actions",),
        "EXPECT": ("sorts", "consts"),
    }  # fmt: skip
    return next((tables for mark, tables in marks.items() if mark in accepted), ())


def _parts(spec: Spec | None, hole: _Hole, tokens: list[tuple[str, str]]) -> Iterator[CompletionName]:
    """The fields of a record, or the names of an imported file."""
    home = spec.lookup(tokens[-2][1]) if spec is not None and len(tokens) > 1 else None
    if home is not None:
        yield from _globals(home, hole.facts)
    elif isinstance(hole.expected, Record) and not hole.expected.is_tuple:
        yield from (CompletionName(name, "field", kind) for name, kind in hole.expected.fields)


def _values(spec: Spec, hole: _Hole) -> Iterator[CompletionName]:
    """The names of values."""
    context = hole.context or Context(spec)
    if isinstance(hole.expected, Record):
        yield from (CompletionName(name, "field", kind) for name, kind in hole.expected.fields)
    for kind, names in (("local", context.locals), ("element", context.elements)):
        yield from (CompletionName(name, kind, type_) for name, type_ in names.items())
    yield from (CompletionName(name, "local") for name in context.operators)
    yield from _globals(spec, hole.facts)
    if context.properties:
        yield from (_declared(name, decl, hole.facts) for name, decl in spec.properties.items())
    yield from (CompletionName(alias, "import") for alias in spec.imports)
    yield from (CompletionName(name, "built-in") for name in BUILTINS if name not in spec.defs)


def _globals(spec: Spec, facts: Facts) -> Iterator[CompletionName]:
    """The declared names of a namespace that can be part of an expression."""
    tables: tuple[Mapping[str, decls.Named], ...] = (
        spec.variables, spec.consts, spec.defs, spec.sorts, spec.types,
    )  # fmt: skip
    for table in tables:
        yield from (_declared(name, decl, facts) for name, decl in table.items())
    for name, (owner, _) in spec.members.items():
        yield CompletionName(name, "member", facts.declared.get(id(spec.types[owner])), spec.types[owner])
    for name, owner in spec.variants.items():
        yield CompletionName(name, "variant", facts.declared.get(id(spec.types[owner])), spec.types[owner])


def _declared(name: str, decl: decls.Named, facts: Facts | None = None) -> CompletionName:
    kind: Type | None = None
    match decl:
        case _ if facts is None:
            pass
        case decls.Var() | decls.Const():
            kind = facts.declared.get(id(decl.type))
        case decls.Def():
            kind = facts.types.get(id(decl.value))
        case decls.Sort():
            kind = Set(Sort(name))
        case decls.Property():
            kind = BOOL
    return CompletionName(name, kind_of(decl), kind, decl)


def _item(candidate: CompletionName, expected: Type | None) -> lsp.CompletionItem:
    """A candidate as the protocol has it; one of the expected type is sorted before the others."""
    decl, kind = candidate.decl, candidate.type
    detail = show(kind) if kind is not None else candidate.kind
    text = None
    if decl is not None:
        source, start = decl.span.source, decl.span.word(decl.name).start
        if isinstance(decl, decls.Def | decls.Action | decls.Helper):
            detail = declaration(source, start, is_whole=False)
        text = comment(source, start)
    fits = (
        kind is not None and is_complete(kind) and expected is not None and join(kind, expected) is not None
    )
    order = (
        0
        if candidate.kind == "field" or (fits and expected != UNKNOWN)
        else 2
        if candidate.kind == "word"
        else 1
    )
    return lsp.CompletionItem(
        candidate.name, kind=_KINDS.get(candidate.kind, lsp.CompletionItemKind.Property), detail=detail,
        documentation=text or "\n".join(MEANINGS.get(candidate.name, ())) or None,
        sort_text=f"{order}{candidate.name}",
    )  # fmt: skip


def signature(workspace: Workspace, path: str, position: lsp.Position) -> lsp.SignatureHelp | None:
    """The parameters of the call around a place, and which of them it is at."""
    text = workspace.read(path)
    at = text.offset(position)
    analysed = workspace.analysis(path)
    chunk = analysed.text.at(max(0, at - 1)) if analysed.text is not None else None
    if chunk is None or analysed.spec is None:
        return None
    calls: list[tuple[str, int]] = []  # the open brackets: the name before each, and commas behind it
    before = ""
    for kind, word in possible_next(text.source.text[chunk[0] : at])[1]:
        if word in ("(", "[", "{"):
            calls.append((before if word == "(" else "", 0))
        elif word in (")", "]", "}") and calls:
            calls.pop()
        elif word == "," and calls:
            calls[-1] = calls[-1][0], calls[-1][1] + 1
        before = word if kind == "NAME" else ""
    name, index = next(((name, index) for name, index in reversed(calls) if name), ("", 0))
    shown = _signature(name, analysed.spec)
    if shown is None:
        return None
    label, documentation = shown
    params = label[label.find("(") + 1 : label.rfind(")")].split(", ")
    information = [lsp.ParameterInformation(param) for param in params if param]
    return lsp.SignatureHelp([lsp.SignatureInformation(label, documentation, information)], 0, index)


def _signature(name: str, spec: Spec) -> tuple[str, str] | None:
    """The call of a name with its parameters, and its comment."""
    if name in spec.variants:
        union = spec.types[spec.variants[name]].type
        assert isinstance(union, tree.UnionType)
        variant = next(variant for variant in union.variants if variant.name == name)
        return variant.span.text, f"of `{spec.variants[name]}`"
    decl = spec.defs.get(name) or spec.actions.get(name) or spec.helpers.get(name)
    if decl is not None:
        params = ", ".join(param.span.text for param in decl.params)
        return f"{name}({params})", comment(decl.span.source, decl.span.word(name).start)
    if name in MEANINGS:
        first = MEANINGS[name][0]
        calls = re.findall(rf"{name}\([^`]*?\)(?=[,`])", first)
        return calls[0] if calls else f"{name}()", "\n".join(MEANINGS[name])
    return None
