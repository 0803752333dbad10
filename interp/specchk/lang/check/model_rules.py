"""Checks of models, scenarios and refinement mappings: names, types of bindings, existence of steps."""

from __future__ import annotations

from collections.abc import Collection

from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.levels import Level
from specchk.lang.check.models import FixedModel, consts_of, fixed, sorts_of
from specchk.lang.check.spec import Spec
from specchk.lang.check.types import BOOL, Set, Sort, Type, enumerable
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import Report, counted, nearest
from specchk.lang.text.source import Span


class Models:
    """Checks the models and scenarios of one spec."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self.report = checker.report

    def check(self, spec: Spec) -> None:
        """Check all models and scenarios of a spec."""
        for name, decl in spec.models.items():
            model = fixed(spec, name, self.report)
            if model is not None:
                self.model(spec, model)
                self._expectations(spec, decl)
        for scenario in spec.scenarios.values():
            self._scenario(spec, scenario)

    def model(self, spec: Spec, model: FixedModel) -> None:
        """Check one flattened model: every name known, every binding typed, nothing left open."""
        consts, sorts = consts_of(spec), sorts_of(spec)
        context = Context(spec, elements=elements(model))
        for full, binding in model.bindings.items():
            # Elements of sorts are names, not values: `fixed` has read them.
            if full in sorts:
                continue
            if full not in consts:
                self.report.add("S501", binding.name.span, f"there is no constant `{full}`",
                                nearest(full, [*consts, *sorts]))  # fmt: skip
                continue
            const, home = consts[full]
            if const.given is not None:
                self.report.add("S501", binding.name.span, f"`{full}` has its value from the import",
                                "remove it", [(const.given.span, "given here")])  # fmt: skip
                continue
            kind = self.checker.resolver.resolve(const.type, home)
            self.checker.typed(binding.value, context, kind, Level.CONSTANT, "a model binds constants")
        self._nothing_open(model, consts)
        self._selection(spec, model.actions, spec.actions, "action")
        self._selection(spec, model.properties, claims(spec), "property")
        self._selection(spec, model.ignored, spec.variables, "variable")

    def _nothing_open(self, model: FixedModel, consts: dict[str, tuple[decls.Const, Spec]]) -> None:
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
            self.report.add(
                "S502", consts[open_[0]][0].span, f"there is no model that fixes {constants}", hint
            )
            return
        place, message = model.decl.span.word(model.name), f"model `{model.name}` leaves {constants} open"
        self.report.add("S502", place, message, f"add `{bindings}` to the model, or pass {sets}")

    def _selection(
        self, spec: Spec, names: tuple[tree.Name, ...] | None,
        table: Collection[str], what: str,
    ) -> None:  # fmt: skip
        for name in names or ():
            if name.full not in table:
                self.checker.unknown(name, table, what, spec)

    def _expectations(self, spec: Spec, decl: decls.Model) -> None:
        for item in decl.items:
            if isinstance(item, decls.Expect) and item.name is not None:
                self._selection(spec, (item.name,), claims(spec), "property")

    def _scenario(self, spec: Spec, scenario: decls.Scenario) -> None:
        name = scenario.model
        if name.full not in spec.models:
            self.report.add(
                "S504",
                name.span,
                f"there is no model `{name.full}`",
                nearest(name.text, spec.models) or f"the models are {', '.join(spec.models) or '(none)'}",
            )
            return
        # Into a separate report: errors of the model are reported with the model, once.
        model = fixed(spec, name.text, Report())
        if model is None:
            return
        context = Context(spec, elements=elements(model), properties=True)
        for step in scenario.steps:
            self.step(step, context)

    def step(self, step: decls.TakeStep | decls.Assert, context: Context) -> None:
        """Check one line of a scenario."""
        if isinstance(step, decls.Assert):
            place = "a scenario asserts of one state"
            self.checker.typed(step.condition, context, BOOL, Level.STATE, place)
            return
        self._call(step.call, context)
        if step.where is not None:
            place = "`where` describes the state after the step"
            self.checker.typed(step.where, context, BOOL, Level.STATE, place)

    def _call(self, call: tree.CallExpr, context: Context) -> None:
        action = context.spec.actions.get(call.callee.text)
        if action is None:
            self.checker.unknown(call.callee, context.spec.actions, "action", context.spec)
            return
        if len(call.args) != len(action.params):
            self.report.add("S302", call.span,
                            f"`{action.name}` takes {counted(len(action.params))}, not {len(call.args)}",
                            notes=[(action.span.word(action.name), "declared here")])  # fmt: skip
            return
        for arg, param in zip(call.args, action.params, strict=True):
            kind = self.checker.resolver.resolve(param.type, context.spec)
            place = "an argument in a scenario is a constant"
            self.checker.typed(arg.value, context, kind, Level.CONSTANT, place)


def claims(spec: Spec) -> list[str]:
    """The names that a model may select: properties, and refinements by the names of their specs."""
    return [*spec.properties, *spec.refined]


def elements(model: FixedModel) -> dict[str, Type]:
    """The sort elements that a model names, with their sorts."""
    return {name: Sort(full) for full, names in model.members.items() for name in names}


class Refinements:
    """Checks the `refines` lines of one spec, and of its imports that give values to constants and sorts.

    A mapping is full.  Nothing is mapped by its name alone: a variable that is forgotten would be compared
    with another one of ours that only happens to have its name.
    """

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self.report = checker.report

    def sorts(self, spec: Spec) -> None:
        """Note for each mapped sort the type to which it is mapped."""
        for decl in spec.refines:
            other = spec.refined[decl.alias]
            for binding in decl.mapping:
                if binding.name.full in other.sorts:
                    self._sort(binding, spec, other)
        for library in spec.imports.values():
            for sort in library.sorts.values():
                if sort.given is not None:
                    self._sort(sort.given, spec, library)

    def imports(self, spec: Spec) -> None:
        """Check the values that imports give to constants."""
        for library in spec.imports.values():
            for const in library.consts.values():
                if const.given is not None:
                    self._binding(const.given, spec, library)

    def _sort(self, binding: decls.ModelBinding, spec: Spec, other: Spec) -> None:
        kind = self.checker.check(binding.value, Context(spec))
        ref = self.checker.facts.refs.get(id(binding.value))
        if ref is None or ref.kind != "typeset" or not isinstance(kind, Set) or not enumerable(kind.item):
            self.report.add("S605", binding.value.span,
                            f"the sort `{binding.name.full}` is mapped to a type, and this is not one",
                            "name a sort or a declared type whose values can be listed")  # fmt: skip
            return
        other.sort_types[binding.name.text] = kind.item

    def mappings(self, spec: Spec) -> None:
        """Check all mappings, once both specs are typed."""
        for decl in spec.refines:
            other = spec.refined[decl.alias]
            given: dict[str, Span] = {}
            for binding in decl.mapping:
                name = binding.name.full
                if name in given:
                    self.report.add("S202", binding.name.span, f"`{name}` is mapped twice", "remove one",
                                    [(given[name], "first mapped here")])  # fmt: skip
                given.setdefault(name, binding.name.span)
                self._binding(binding, spec, other)
            self._nothing_open(decl, other, given)

    def _binding(self, binding: decls.ModelBinding, spec: Spec, other: Spec) -> None:
        name, checker = binding.name.full, self.checker
        if name in other.variables:
            kind = checker.resolver.resolve(other.variables[name].type, other)
            checker.typed(binding.value, Context(spec), kind, Level.STATE, "a mapping reads one state")
        elif name in other.consts:
            kind = checker.resolver.resolve(other.consts[name].type, other)
            place = "a constant is mapped to a constant"
            checker.typed(binding.value, Context(spec), kind, Level.CONSTANT, place)
        elif name not in other.sorts:
            known = [*other.variables, *other.consts, *other.sorts]
            self.report.add("S201", binding.name.span,
                            f"`{other.name}` has no variable, constant or sort `{name}`",
                            nearest(name, known))  # fmt: skip

    def _nothing_open(self, decl: decls.Refines, other: Spec, given: dict[str, Span]) -> None:
        wanted = [
            *other.sorts,
            # A constant with a default has that value; a variable's initial value does not fix later states.
            *[name for name, const in other.consts.items() if const.default is None],
            *other.variables,
        ]
        missing = [name for name in wanted if name not in given]
        if missing:
            self.report.add("S603", decl.span.word(decl.path[-1]),
                            f"the refinement of `{other.name}` leaves {_listed(missing)} open",
                            f"add {_listed([f'{name} = ...' for name in missing])}: nothing is mapped by its "
                            "name alone",
                            [(other.declared[missing[0]], "declared here")])  # fmt: skip


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
