"""Models as data: which constants, actions and properties a model fixes, with its bases applied.

A model is named, extends at most one other, and binds names to constant expressions.  `fixed`
collects the bindings of a chain of `extends`, nearest last; command-line overrides (`--set`) are added on
top as bindings with their own source.  Values are computed later, by `compile.instantiate`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from specchk.lang.check.spec import Spec
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import Diagnostic, Report, nearest
from specchk.lang.text.source import Span


class FixedModel(Struct):
    """A model with its chain of bases flattened."""

    name: str
    decl: decls.Model | None
    bindings: dict[str, decls.ModelBinding] = field(default_factory=dict)
    actions: tuple[tree.Name, ...] | None = None
    properties: tuple[tree.Name, ...] | None = None
    ignored: tuple[tree.Name, ...] = ()
    expects: tuple[decls.Expect, ...] = ()
    members: dict[str, tuple[str, ...]] = field(default_factory=dict)


def fixed(
    spec: Spec, name: str | None, report: Report, overrides: Sequence[decls.ModelBinding] = ()
) -> FixedModel | None:
    """The model `name` (the first one by default; none needed when overrides fix everything)."""
    if name is None:
        name = next(iter(spec.models), None)
    if name is not None and name not in spec.models:
        hint = nearest(name, spec.models) or f"its models are {', '.join(spec.models) or '(none)'}"
        message = f"{spec.source.path} has no model `{name}`"
        report.found.append(Diagnostic("S504", message, hint=hint, path=spec.source.path))
        return None
    model = FixedModel(name or "(command line)", spec.models.get(name) if name else None)
    for decl in _chain(spec, name, report) if name else ():
        _apply(decl, model, report)
        # Unlike bindings not inherited: with other constants the same counts are rarely right. The last in
        # the chain is the model itself.
        model.expects = tuple(item for item in decl.items if isinstance(item, decls.Expect))
    for binding in overrides:
        model.bindings[binding.name.full] = binding
    _members(spec, model, report)
    return model


def _chain(spec: Spec, name: str, report: Report) -> list[decls.Model]:
    chain: list[decls.Model] = []
    decl: decls.Model | None = spec.models[name]
    met: set[str] = set()
    while decl is not None:
        if decl.name in met:
            circle = chain[chain.index(decl) :]
            first = min(circle, key=lambda model: model.span.start)
            names = [model.name for model in circle]
            turned = names[names.index(first.name) :] + names[: names.index(first.name)]
            report.add("S507", first.span.word(first.name),
                       f"model `{first.name}` extends itself: {' -> '.join([*turned, first.name])}",
                       "remove the `extends` of one of them")  # fmt: skip
            break
        met.add(decl.name)
        chain.append(decl)
        base = decl.base
        if base is not None and base.text not in spec.models:
            report.add("S504", base.span, f"there is no model `{base.full}` to extend",
                       nearest(base.text, spec.models) or "declare it in this file")  # fmt: skip
        decl = spec.models.get(base.text) if base is not None else None
    return chain[::-1]


def _apply(decl: decls.Model, model: FixedModel, report: Report) -> None:
    given: dict[str, Span] = {}
    for item in decl.items:
        match item:
            case decls.ModelBinding():
                model.bindings[item.name.full] = item
                once("model", item.name.full, item.name.span, given, report)
            case decls.Selection():
                if item.kind == "actions":
                    model.actions = item.names
                elif item.kind == "ignore":
                    model.ignored = item.names
                else:
                    model.properties = item.names
                once("model", f"{item.kind} ...", item.span, given, report)


def once(where: str, what: str, span: Span, given: dict[str, Span], report: Report) -> None:
    """Report a part that a model or a view has twice, of which one would be lost; otherwise note it."""
    if what in given:
        note = (given[what], "first given here")
        report.add("S202", span, f"this {where} has `{what}` twice", "remove one of them", [note])
    given.setdefault(what, span)


def sorts_of(spec: Spec) -> dict[str, decls.Sort]:
    """All sorts whose size a model must fix, by full name."""
    sorts = dict(spec.sorts)
    for alias, imported in spec.imports.items():
        sorts.update({f"{alias}.{name}": decl for name, decl in imported.sorts.items() if not decl.given})
    return sorts


def consts_of(spec: Spec) -> dict[str, tuple[decls.Const, Spec]]:
    """All constants, by full name, with their home: a model must fix those without a value from an import."""
    consts = {name: (decl, spec) for name, decl in spec.consts.items()}
    for alias, imported in spec.imports.items():
        consts.update({f"{alias}.{name}": (decl, imported) for name, decl in imported.consts.items()})
    return consts


def _members(spec: Spec, model: FixedModel, report: Report) -> None:
    """The names of each sort's elements: those listed, or the initial of the sort and a number."""
    taken: dict[str, str] = {}
    values = (
        spec.variables,
        spec.consts,
        spec.members,
        spec.variants,
        spec.sorts,
        spec.types,
        spec.properties,
    )
    for full, decl in sorts_of(spec).items():
        binding = model.bindings.get(full)
        if binding is None:
            place, message = decl.span, f"there is no model that sizes sort `{full}`"
            hint = f"declare a model, `model small:` with `{full} = 2` below it, or pass --set {full}=2"
            if model.decl is not None:
                place = model.decl.span.word(model.name)
                message = f"model `{model.name}` does not size sort `{full}`"
                hint = f"add `{full} = 2`, or --set {full}=2"
            report.add("S502", place, message, hint)
            continue
        names = _names(decl, binding, report)
        hint = f"name the elements: `{full} = {{{decl.name[0].lower()}a, ...}}`"
        for name in names:
            # Scenarios, `--set` and traces name elements without their sort, so a name is one element, and
            # nothing else that has a value.
            if name in taken:
                message = f"`{name}` names an element of both `{taken[name]}` and `{full}`"
                report.add("S505", binding.span, message, hint)
                break
            if any(name in table for table in values):
                message = f"`{name}` is declared already and cannot name an element of `{full}`"
                report.add("S208", binding.span, message, hint, [(spec.declared[name], "declared here")])
                break
            taken[name] = full
        model.members[full] = names


def _names(decl: decls.Sort, binding: decls.ModelBinding, report: Report) -> tuple[str, ...]:
    value = binding.value
    match value:
        case tree.IntLiteral() if 1 <= value.value <= 32:
            initial = decl.name[0].lower()
            return tuple(f"{initial}{index}" for index in range(1, value.value + 1))
        case tree.SetLiteral() if value.items and all(isinstance(item, tree.Name) for item in value.items):
            names = tuple(item.text for item in value.items if isinstance(item, tree.Name))
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is None:
                return names
            message = f"`{twice}` is named twice in this sort"
            report.add("S505", value.span, message, "elements differ by name")
            return ("?",)
    message = f"a sort is sized by a number from 1 to 32 or a list of names, not `{value.span.text}`"
    report.add("S505", value.span, message, f"e.g. `{decl.name} = 3` or `{decl.name} = {{a, b, c}}`")
    # Not empty: the checks that follow need an element, and the mistake has been reported.
    return ("?",)
