"""The index of an analysis: a walk over its trees that finds what each name refers to.

Names of declarations are in the tables of their spec, those of fields and cases follow from the types of
values, and bound names have no table: the walk carries those that are in scope.  Which characters are a name
the tokens show: a node has its extent only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from specchk.lang.check.builtins import BUILTINS
from specchk.lang.check.levels import children
from specchk.lang.check.models import fixed, sorts_of
from specchk.lang.check.spec import Spec
from specchk.lang.check.types import Enum, Map, Option, PartialMap, Record, Seq, Type, Union
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import Report
from specchk.lang.text.source import Span
from specchk.lsp.analysis import Analysis
from specchk.lsp.symbols import (
    NameIndex,
    Occurrence,
    Place,
    Symbol,
    field_of,
    field_symbol,
    kind_of,
    parts_of,
)
from specchk.lsp.texts import WORD

Scope = dict[str, Symbol]  # bound names
_WORDS = frozenset({"bool", "int", "some", "none", "first", "_"})  # of the language, where they are names


def index_of(analysis: Analysis) -> NameIndex:
    """The index of all texts of an analysis."""
    writer = _NameWriter(analysis)
    for spec in analysis.namespaces():
        walk = _NameWalk(analysis, spec, writer)
        sources = {id(source) for source in spec.sources}
        for text in analysis.texts:
            if id(text.source) in sources:
                for _, chunk in text.chunks:
                    if chunk.node is not None:
                        walk.walk(chunk.node, {})
    return writer.index()


class _NameWriter:
    """Finds the tokens of names, and notes their symbols."""

    def __init__(self, analysis: Analysis) -> None:
        self._words: dict[int, tuple[str, int, list[int], list[str]]] = {}
        for text in analysis.texts:
            for start, chunk in text.chunks:
                words = [word for word in chunk.words if word.type == WORD] if chunk.node else []
                starts, texts = [word.start for word in words], [word.text for word in words]
                self._words[id(chunk.source)] = text.source.path, start, starts, texts
        self._met: dict[str, dict[int, Occurrence]] = {}
        self._declared: dict[Symbol, Place] = {}

    def place(self, span: Span, name: str) -> Place | None:
        """The place of the first token in a span that is a name."""
        path, offset, starts, texts = self._words.get(id(span.source), ("", 0, [], []))
        at = bisect_left(starts, span.start)
        while at < len(starts) and starts[at] < span.end:
            if texts[at] == name:
                return path, offset + starts[at], offset + starts[at] + len(name)
            at += 1
        return None

    def symbol(self, kind: str, name: str, span: Span) -> Symbol:
        """The symbol of a name whose declaration is the first such token in a span."""
        place = self.place(span, name)
        return Symbol(kind, name, f"{place[0]}:{place[1]}" if place else "")

    def note(self, symbol: Symbol | None, span: Span, type_: Type | None = None) -> None:
        """Note that the first token in a span with a symbol's name refers to it."""
        place = self.place(span, symbol.name) if symbol is not None else None
        if symbol is not None and place is not None:
            # The value of a case is written once and in the tree twice; the first note is kept.
            self._met.setdefault(place[0], {}).setdefault(
                place[1], Occurrence(place[1], place[2], symbol, type_)
            )

    def declare(
        self, kind: str, name: str, span: Span, type_: Type | None = None, symbol: Symbol | None = None
    ) -> Symbol:
        """The symbol of a name that is declared by the first such token in a span."""
        symbol = symbol or self.symbol(kind, name, span)
        place = self.place(span, name)
        if place is not None:
            self._met.setdefault(place[0], {})[place[1]] = Occurrence(place[1], place[2], symbol, type_, True)
            self.declare_at(symbol, place)
        return symbol

    def declare_at(self, symbol: Symbol, place: Place) -> None:
        """Have a symbol declared at a place, which may have another text."""
        self._declared.setdefault(symbol, place)

    def index(self) -> NameIndex:
        """What has been noted."""
        names = {path: sorted(met.values(), key=lambda item: item.start) for path, met in self._met.items()}
        open_: dict[str, list[int]] = {}
        for path, offset, starts, _ in self._words.values():
            met = self._met.get(path, {})
            open_.setdefault(path, []).extend(offset + s for s in starts if offset + s not in met)
        return NameIndex(names, self._declared, open_)


class _NameWalk:
    """The walk over the declarations of one namespace.

    `walk` returns the names in scope behind a node: of a `let`, a binder or a parameter more than before it.
    """

    def __init__(self, analysis: Analysis, spec: Spec, writer: _NameWriter) -> None:
        self.facts = analysis.facts
        self.spec = spec
        self.writer = writer
        self._tables: dict[int, dict[str, Symbol]] = {}

    def walk(self, node: tree.Node, scope: Scope) -> Scope:
        """Note the names in a node."""
        rule = _RULES.get(type(node))
        if rule is not None:
            return rule(self, node, scope) or scope
        self.parts(children(node), scope)
        return scope

    def parts(self, nodes: Iterable[tree.Node], scope: Scope) -> Scope:
        """Note the names in nodes, each in the scope behind those before it; what they bind comes first."""
        for node in sorted(nodes, key=lambda node: not isinstance(node, tree.Binder)):
            scope = self.walk(node, scope)
        return scope

    def type_of(self, node: tree.Node) -> Type | None:
        """The type of an expression, or the one that a type expression means."""
        return self.facts.types.get(id(node)) or self.facts.declared.get(id(node))

    # Declared names.

    def declared(self, name: str, spec: Spec | None) -> Symbol | None:
        """The symbol of a name declared in a namespace."""
        if spec is None:
            return None
        table = self._tables.get(id(spec))
        if table is None:
            table = self._tables[id(spec)] = {}
            for kind, declared, span in _declarations(spec):
                table.setdefault(declared, self.writer.symbol(kind, declared, span))
        return table.get(name)

    def use(self, name: tree.Name, scope: Scope, type_: Type | None = None) -> None:
        """Note a name and its qualifier."""
        home = self.spec.lookup(name.qualifier)
        symbol = scope.get(name.text) if name.qualifier is None else None
        symbol = symbol or self.declared(name.text, home)
        if symbol is None and (name.text in BUILTINS or name.text in _WORDS):
            symbol = Symbol("built-in", name.text)
        if name.qualifier is not None:
            self.writer.note(self.declared(name.qualifier, self.spec), name.span)
        self.writer.note(symbol, _behind(name.span, len(name.qualifier or "")), type_)

    def _named(self, decl: decls.Named, scope: Scope) -> None:
        kind = self.type_of(decl.type) if isinstance(decl, decls.Const | decls.Var) else None
        self.writer.declare(kind_of(decl), decl.name, decl.span, kind)
        self.parts(children(decl), scope)

    def _type_decl(self, decl: decls.TypeDecl, scope: Scope) -> None:
        self.writer.declare("type", decl.name, decl.span)
        for kind, name, node in parts_of(decl):
            if name in self.spec.sorts:  # a variant that is a sort has its name from there
                self.writer.note(self.declared(name, self.spec), node.span)
            else:
                self.writer.declare(kind, name, node.span)
        self.walk(decl.type, scope)

    def _header(self, decl: decls.Header, _: Scope) -> None:
        self.writer.declare("spec", decl.name, decl.span)

    def _file(self, decl: decls.Import | decls.Refines | decls.Extends, scope: Scope) -> None:
        path = ".".join(decl.path)
        for part in decl.path:
            self.writer.note(Symbol("file", part, path), decl.span)
        if isinstance(decl, decls.Extends):
            return
        alias = self.declared(decl.alias, self.spec)
        if alias is not None:
            self.writer.declare(alias.kind, decl.alias, self.spec.declared[decl.alias], symbol=alias)
        for binding in decl.given if isinstance(decl, decls.Import) else decl.mapping:
            name = binding.name
            self.writer.note(self.declared(name.text, self.spec.lookup(decl.alias)), name.span)
            self.walk(binding.value, scope)

    def _fair_action(self, item: decls.FairAction, scope: Scope) -> None:
        self.use(item.action, {})
        action = self.spec.actions.get(item.action.text)
        params = (
            [self.writer.symbol("parameter", param.name, param.span) for param in action.params]
            if action
            else []
        )
        after = item.span.text.find("(") + 1
        for name, param in zip_longest(item.params, params[: len(item.params)]):
            rest = _behind(item.span, after)
            after += len(rest.text.split(",", 1)[0]) + 1
            # A name that no `forall` binds is that of the parameter.
            self.writer.note(Symbol("built-in", name) if name == "_" else scope.get(name, param), rest)

    # Models, scenarios, views.

    def _elements(self, model: str) -> Scope:
        """The elements of sorts that a model names; of a sort with a size, the binding declares them."""
        chosen = fixed(self.spec, model, Report()) if model in self.spec.models else None
        scope: Scope = {}
        for full, names in chosen.members.items() if chosen is not None else ():
            binding = chosen.bindings.get(full) if chosen is not None else None
            for name in names if binding is not None else ():
                assert binding is not None
                symbol = self.writer.symbol("element", name, binding.value.span)
                sized = self.writer.place(binding.name.span, binding.name.text)
                if symbol.home:
                    self.writer.declare("element", name, binding.value.span)
                elif sized is not None:
                    symbol = replace(symbol, home=f"{sized[0]}:{sized[1]}")
                    self.writer.declare_at(symbol, sized)
                scope[name] = symbol
        return scope

    def _model_name(self, name: tree.Name) -> None:
        decl = self.spec.models.get(name.text)
        self.writer.note(self.writer.symbol("model", name.text, decl.span) if decl else None, name.span)

    def _model(self, decl: decls.Model, _: Scope) -> None:
        self.writer.declare("model", decl.name, decl.span)
        if decl.base is not None:
            self._model_name(decl.base)
        scope = self._elements(decl.name)
        for item in decl.items:
            if isinstance(item, decls.ModelBinding):
                self.use(item.name, {})
                if item.name.full in sorts_of(self.spec):
                    continue
            self.parts(children(item)[isinstance(item, decls.ModelBinding) :], scope)

    def _scenario(self, decl: decls.Scenario, _: Scope) -> None:
        self.writer.declare("scenario", decl.name, decl.span)
        self._model_name(decl.model)
        self.parts(decl.steps, self._elements(decl.model.text))

    def _view(self, decl: decls.View, scope: Scope) -> None:
        scope = {**scope, decl.lane: self.writer.declare("lane", decl.lane, decl.span)}
        self.parts((decl.sort, *decl.logs, *decl.hidden), scope)
        for shown in (*decl.marks, *decl.labels):
            self.writer.declare("label", shown.name, shown.span)
            self.walk(shown.value, scope)
        for arrow in decl.arrows:
            self.writer.note(self.declared(arrow.action, self.spec), arrow.span)
            # The names of an arrow are its own: they have the places of the action's parameters.
            own = {name: self.writer.declare("parameter", name, arrow.span) for name in arrow.params}
            self.parts((arrow.source, arrow.target), own)

    # Statements.

    def _let(self, node: decls.Let | tree.LetIn, scope: Scope) -> Scope:
        self.walk(node.value, scope)
        kind = self.type_of(node.value)
        if isinstance(node, decls.Let) and node.unwraps:
            kind = kind.item if isinstance(kind, Option) else None
        inner = self._bound(node.bound, kind, node.span, scope)
        if isinstance(node, decls.Let):
            return inner
        self.walk(node.body, inner)
        return scope

    def _branches(self, stmt: decls.Either | decls.When, scope: Scope) -> None:
        if isinstance(stmt, decls.When):
            self.walk(stmt.condition, scope)
        for branch in (stmt.then, stmt.orelse) if isinstance(stmt, decls.When) else stmt.branches:
            self.parts(branch, scope)

    def _assign(self, stmt: decls.Assign | decls.AssignIn, scope: Scope) -> None:
        decl = self.spec.variables.get(stmt.target.text)
        kind = self.type_of(decl.type) if decl is not None else None
        self.use(stmt.target, {}, kind)
        self._path(kind, stmt.path, scope)
        self.walk(stmt.value if isinstance(stmt, decls.Assign) else stmt.domain, scope)

    def _path(self, kind: Type | None, path: tuple[tree.Accessor, ...], scope: Scope) -> None:
        for step in path:
            if step.field is not None:
                symbol = field_of(kind, step.field)
                kind = kind.get(step.field) if isinstance(kind, Record) else None
                self.writer.note(symbol, step.span, kind)
                continue
            self.parts(children(step), scope)
            if isinstance(kind, Map | PartialMap):
                kind = kind.value
            else:
                kind = kind.item if isinstance(kind, Seq) else None

    def _param(self, param: decls.Param | decls.OperatorParam, scope: Scope) -> Scope:
        self.parts(children(param), {})
        kind = self.type_of(param.type) if isinstance(param, decls.Param) else None
        return {**scope, param.name: self.writer.declare("parameter", param.name, param.span, kind)}

    # Expressions.

    def _name(self, node: tree.Name, scope: Scope) -> None:
        self.use(node, scope, self.type_of(node))

    def _field(self, node: tree.Field, scope: Scope) -> None:
        base = node.base
        if isinstance(base, tree.Name) and base.text not in scope and self.spec.lookup(base.text):
            self.use(tree.Name(node.span, node.name, base.text), scope, self.type_of(node))
            return
        self.walk(base, scope)
        name = _behind(node.span, base.span.end - node.span.start)
        self.writer.note(field_of(self.type_of(base), node.name), name, self.type_of(node))

    def _call(self, node: tree.CallExpr, scope: Scope) -> None:
        kind = self.type_of(node)
        self.use(node.callee, scope, kind)
        fields = kind.get(node.callee.text) if isinstance(kind, Union) else None
        for arg in node.args:
            if arg.label is not None:
                self.writer.note(field_of(fields, arg.label), arg.span)
            self.walk(arg.value, scope)

    def _lambda(self, node: tree.Lambda, scope: Scope) -> None:
        for bound in node.params:
            scope = self._bound(bound, None, node.span, scope)
        self.walk(node.body, scope)

    def _match(self, node: tree.Match, scope: Scope) -> None:
        self.walk(node.scrutinee, scope)
        kind = self.type_of(node.scrutinee)
        for arm in node.arms:
            tag, bound, span, inner = arm.pattern.tag, arm.pattern.bound, arm.pattern.span, scope
            self.writer.note(self._case(kind, tag), span)
            if bound is not None:
                payload = kind.get(tag) if isinstance(kind, Union) else None
                value = kind.item if isinstance(kind, Option) else payload and (payload.element or payload)
                inner = self._bound(bound, value, _behind(span, 1), scope)  # behind the tag, if it is a name
            self.walk(arm.body, inner)

    def _case(self, kind: Type | None, tag: str) -> Symbol | None:
        """The symbol of a case of an option, a union or an enum."""
        if tag in _WORDS or isinstance(kind, Option):
            return Symbol("built-in", tag)
        alias = kind.name.rpartition(".")[0] if isinstance(kind, Union | Enum) else ""
        return self.declared(tag, self.spec.lookup(alias or None) or self.spec)

    def _binary(self, node: tree.Binary, scope: Scope) -> None:
        self.walk(node.left, scope)
        if node.op == "is" and isinstance(node.right, tree.Name):
            self.writer.note(self._case(self.type_of(node.left), node.right.text), node.right.span)
        else:
            self.walk(node.right, scope)

    def _pairs(self, node: tree.PairLiteral, scope: Scope) -> None:
        kind = self.type_of(node)
        for pair in node.pairs:
            if isinstance(kind, Record) and isinstance(pair.key, tree.Name):
                self.writer.note(field_of(kind, pair.key.text), pair.key.span, kind.get(pair.key.text))
            else:
                self.walk(pair.key, scope)
            self.walk(pair.value, scope)

    def _with(self, node: tree.With, scope: Scope) -> None:
        self.walk(node.base, scope)
        for change in node.changes:
            self._path(self.type_of(node), change.path, scope)
            self.walk(change.value, scope)

    def _fields(self, node: tree.RecordType | tree.VariantType, scope: Scope) -> None:
        names = [item.name for item in node.fields]
        for item in node.fields:
            symbol = field_symbol(names, item.name)
            self.writer.declare("field", item.name, item.span, self.type_of(item.type), symbol)
            self.walk(item.type, scope)

    def _binder(self, node: tree.Binder, scope: Scope) -> Scope:
        self.walk(node.domain, scope)
        return self._bound(node.bound, self.facts.binders.get(id(node)), node.span, scope)

    def _bound(self, bound: tree.Bound, kind: Type | None, span: Span, scope: Scope) -> Scope:
        if isinstance(bound, str):
            symbol = self.writer.declare("local", bound, span, kind)
            return {**scope, bound: symbol} if bound != "_" else scope
        parts = [part for _, part in kind.fields] if isinstance(kind, Record) and kind.is_tuple else []
        for name, part in zip_longest(bound, parts[: len(bound)]):
            scope = self._bound(name, part, span, scope)
        return scope


_Rule = Callable[[_NameWalk, Any, Scope], "Scope | None"]
# The rule of each kind of node in which a name is more than one of its parts; the others have parts only.
_RULES: MappingProxyType[type[tree.Node], _Rule] = MappingProxyType({
    decls.Header: _NameWalk._header, decls.Import: _NameWalk._file, decls.Extends: _NameWalk._file,
    decls.Refines: _NameWalk._file, decls.TypeDecl: _NameWalk._type_decl, decls.Model: _NameWalk._model,
    decls.Scenario: _NameWalk._scenario, decls.View: _NameWalk._view,
    decls.FairAction: _NameWalk._fair_action,
    decls.Let: _NameWalk._let, decls.Assign: _NameWalk._assign, decls.AssignIn: _NameWalk._assign,
    decls.Either: _NameWalk._branches, decls.When: _NameWalk._branches, decls.Param: _NameWalk._param,
    decls.OperatorParam: _NameWalk._param, tree.Name: _NameWalk._name, tree.Field: _NameWalk._field,
    tree.CallExpr: _NameWalk._call, tree.LetIn: _NameWalk._let, tree.Lambda: _NameWalk._lambda,
    tree.Match: _NameWalk._match, tree.Binary: _NameWalk._binary, tree.PairLiteral: _NameWalk._pairs,
    tree.With: _NameWalk._with, tree.RecordType: _NameWalk._fields, tree.VariantType: _NameWalk._fields,
    tree.Binder: _NameWalk._binder,
    **dict.fromkeys((
        decls.Sort, decls.Const, decls.Var, decls.Def, decls.Action, decls.Helper, decls.Property,
    ), _NameWalk._named),
})  # fmt: skip


def _behind(span: Span, length: int) -> Span:
    """The rest of a span without its first characters."""
    return Span(span.source, span.start + length, span.end)


def _declarations(spec: Spec) -> Iterator[tuple[str, str, Span]]:
    """The declared names of a namespace: kind, name, and a span whose first such word declares it."""
    for table in (
        spec.sorts,
        spec.consts,
        spec.variables,
        spec.defs,
        spec.actions,
        spec.helpers,
        spec.properties,
    ):
        yield from ((kind_of(decl), name, decl.span) for name, decl in table.items())
    for name, decl in spec.types.items():
        yield "type", name, decl.span
        yield from ((kind, part, node.span) for kind, part, node in parts_of(decl) if part not in spec.sorts)
    for kind, names in (("import", spec.imports), ("refinement", spec.refined)):
        yield from ((kind, name, spec.declared[name]) for name in names if name in spec.declared)
