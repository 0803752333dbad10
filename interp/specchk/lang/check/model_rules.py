"""Checks of models, scenarios and refinement mappings: names, types of bindings, existence of steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.levels import Level
from specchk.lang.check.models import FixedModel, consts_of, fixed, sorts_of
from specchk.lang.check.spec import Spec
from specchk.lang.check.types import BOOL, Set, Sort, Type, enumerable
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import Report, nearest
from specchk.lang.text.source import Span


def check_models(checker: Checker, spec: Spec) -> None:
    """Check all models and scenarios of a spec."""
    for name, decl in spec.models.items():
        model = fixed(spec, name, checker.report)
        if model is not None:
            check_model(checker, spec, model)
            expected = [item.name for item in decl.items if isinstance(item, decls.Expect) and item.name]
            _selection(checker, spec, expected, claims(spec), "property")
            _expected_of_kind(checker, spec, decl)
    for scenario in spec.scenarios.values():
        _scenario(checker, spec, scenario)


def check_model(checker: Checker, spec: Spec, model: FixedModel) -> None:
    """Check one flattened model: every name known, every binding typed, nothing left open."""
    consts, sorts = consts_of(spec), sorts_of(spec)
    context = Context(spec, elements=elements(model))
    for full, binding in model.bindings.items():
        # Elements of sorts are names, not values: `fixed` has read them.
        if full in sorts:
            continue
        if full not in consts:
            hint = nearest(full, [*consts, *sorts])
            checker.report.add("S501", binding.name.span, f"there is no constant `{full}`", hint)
            continue
        const, home = consts[full]
        if const.given is not None:
            message, note = f"`{full}` has its value from the import", (const.given.span, "given here")
            checker.report.add("S501", binding.name.span, message, "remove it", [note])
            continue
        kind = checker.resolver.resolve(const.type, home)
        checker.typed(binding.value, context, kind, Level.CONSTANT, "a model binds constants")
    _nothing_open(checker, model, consts)
    _selection(checker, spec, model.actions, spec.actions, "action")
    _selection(checker, spec, model.properties, claims(spec), "property")
    _selection(checker, spec, model.ignored, spec.variables, "variable")


def _nothing_open(checker: Checker, model: FixedModel, consts: dict[str, tuple[decls.Const, Spec]]) -> None:
    open_ = [
        full
        for full, (const, _) in consts.items()
        if full not in model.bindings and not const.default and not const.given
    ]
    if not open_:
        return
    constants = f"constant{'s' * (len(open_) > 1)} {', '.join(f'`{full}`' for full in open_)}"
    bindings = ", ".join(f"{full} = ..." for full in open_)
    sets = " ".join(f"--set {full}=..." for full in open_)
    # Then there is no text to add a binding to, and the constant itself is marked.
    if model.decl is None:
        hint = f"declare a model, `model small:` with `{bindings}` below it, or pass {sets}"
        place, message = consts[open_[0]][0].span, f"there is no model that fixes {constants}"
        checker.report.add("S502", place, message, hint)
        return
    place, message = model.decl.span.word(model.name), f"model `{model.name}` leaves {constants} open"
    checker.report.add("S502", place, message, f"add `{bindings}` to the model, or pass {sets}")


def _selection(
    checker: Checker, spec: Spec, names: Iterable[tree.Name] | None, table: Collection[str], what: str
) -> None:
    for name in names or ():
        if name.full not in table:
            checker.unknown(name, table, what, spec)


def _expected_of_kind(checker: Checker, spec: Spec, decl: decls.Model) -> None:
    """Only a witness can be unreachable, and only another property violated."""
    for item in decl.items:
        if not isinstance(item, decls.Expect) or item.name is None or item.name.full not in spec.properties:
            continue
        name, is_witness = item.name.full, spec.properties[item.name.full].kind == "reachable"
        if is_witness != (item.kind == "unreachable"):
            kind, right = ("a witness", "unreachable") if is_witness else ("not a witness", "violates")
            note = (spec.declared[name], "declared here")
            checker.report.add(
                "S203", item.name.span, f"`{name}` is {kind}", f"write `expect {right} {name}`", [note]
            )


def _scenario(checker: Checker, spec: Spec, scenario: decls.Scenario) -> None:
    name = scenario.model
    if name.full not in spec.models:
        hint = nearest(name.text, spec.models) or f"the models are {', '.join(spec.models) or '(none)'}"
        checker.report.add("S504", name.span, f"there is no model `{name.full}`", hint)
        return
    # Into a separate report: errors of the model are reported with the model, once.
    model = fixed(spec, name.text, Report())
    if model is None:
        return
    context = Context(spec, elements=elements(model), properties=True)
    for step in scenario.steps:
        _step(checker, step, context)


def _step(checker: Checker, step: decls.TakeStep | decls.Assert, context: Context) -> None:
    """Check one line of a scenario."""
    if isinstance(step, decls.Assert):
        place = "a scenario asserts of one state"
        checker.typed(step.condition, context, BOOL, Level.STATE, place)
        return
    _call(checker, step.call, context)
    if step.where is not None:
        place = "`where` describes the state after the step"
        checker.typed(step.where, context, BOOL, Level.STATE, place)


def _call(checker: Checker, call: tree.CallExpr, context: Context) -> None:
    action = context.spec.actions.get(call.callee.text)
    if action is None:
        checker.unknown(call.callee, context.spec.actions, "action", context.spec)
        return
    if not checker.check_count(action, len(call.args), call.span):
        return
    for arg, param in zip(call.args, action.params, strict=True):
        kind = checker.resolver.resolve(param.type, context.spec)
        place = "an argument in a scenario is a constant"
        checker.typed(arg.value, context, kind, Level.CONSTANT, place)


def claims(spec: Spec) -> list[str]:
    """The names that a model may select: properties, and refinements by the names of their specs."""
    return [*spec.properties, *spec.refined]


def elements(model: FixedModel) -> dict[str, Type]:
    """The sort elements that a model names, with their sorts."""
    return {name: Sort(full) for full, names in model.members.items() for name in names}


def map_sorts(checker: Checker, spec: Spec) -> None:
    """Note for each mapped sort the type to which it is mapped."""
    for decl in spec.refines:
        other = spec.refined[decl.alias]
        for binding in decl.mapping:
            if binding.name.full in other.sorts:
                _sort(checker, binding, spec, other)
    for library in spec.imports.values():
        for sort in library.sorts.values():
            if sort.given is not None:
                _sort(checker, sort.given, spec, library)


def check_imports(checker: Checker, spec: Spec) -> None:
    """Check the values that imports give to constants."""
    for library in spec.imports.values():
        for const in library.consts.values():
            if const.given is not None:
                _binding(checker, const.given, spec, library)


def _sort(checker: Checker, binding: decls.ModelBinding, spec: Spec, other: Spec) -> None:
    kind = checker.check(binding.value, Context(spec))
    ref = checker.facts.refs.get(id(binding.value))
    if ref is None or ref.kind != "typeset" or not isinstance(kind, Set) or not enumerable(kind.item):
        message = f"the sort `{binding.name.full}` is mapped to a type, and this is not one"
        hint = "name a sort or a declared type whose values can be listed"
        checker.report.add("S605", binding.value.span, message, hint)
        return
    other.sort_types[binding.name.text] = kind.item


def check_mappings(checker: Checker, spec: Spec) -> None:
    """Check all mappings, once both specs are typed.

    A mapping is full.  Nothing is mapped by its name alone: a variable that is forgotten would be compared
    with another one of ours that only happens to have its name.
    """
    for decl in spec.refines:
        other = spec.refined[decl.alias]
        given: dict[str, Span] = {}
        for binding in decl.mapping:
            name = binding.name.full
            if name in given:
                note = (given[name], "first mapped here")
                checker.report.add(
                    "S202", binding.name.span, f"`{name}` is mapped twice", "remove one", [note]
                )
            given.setdefault(name, binding.name.span)
            _binding(checker, binding, spec, other)
        _nothing_unmapped(checker, decl, other, given)


def _binding(checker: Checker, binding: decls.ModelBinding, spec: Spec, other: Spec) -> None:
    name = binding.name.full
    if name in other.variables:
        kind = checker.resolver.resolve(other.variables[name].type, other)
        checker.typed(binding.value, Context(spec), kind, Level.STATE, "a mapping reads one state")
    elif name in other.consts:
        kind = checker.resolver.resolve(other.consts[name].type, other)
        place = "a constant is mapped to a constant"
        checker.typed(binding.value, Context(spec), kind, Level.CONSTANT, place)
    elif name not in other.sorts:
        message = f"`{other.name}` has no variable, constant or sort `{name}`"
        hint = nearest(name, [*other.variables, *other.consts, *other.sorts])
        checker.report.add("S201", binding.name.span, message, hint)


def _nothing_unmapped(checker: Checker, decl: decls.Refines, other: Spec, given: dict[str, Span]) -> None:
    wanted = [
        *other.sorts,
        # A constant with a default has that value; a variable's initial value does not fix later states.
        *[name for name, const in other.consts.items() if const.default is None],
        *other.variables,
    ]
    missing = [name for name in wanted if name not in given]
    if missing:
        message = f"the refinement of `{other.name}` leaves {_listed(missing)} open"
        bindings = _listed([f"{name} = ..." for name in missing])
        hint = f"add {bindings}: nothing is mapped by its name alone"
        note = (other.declared[missing[0]], "declared here")
        checker.report.add("S603", decl.span.word(decl.path[-1]), message, hint, [note])


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
