"""The front end in one call: from a file to a checked spec, or to all of its diagnostics."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.declared.declarations import check_declarations
from specchk.lang.check.expressions import expression_checker
from specchk.lang.check.levels import Level
from specchk.lang.check.model_rules import check_model, check_models, elements
from specchk.lang.check.models import FixedModel, fixed
from specchk.lang.check.spec import Facts, Spec
from specchk.lang.check.types import Type
from specchk.lang.load import load
from specchk.lang.syntax import decls, tree
from specchk.lang.syntax.reading import parse_expression
from specchk.lang.text.diagnostics import Report, SpecError
from specchk.lang.text.source import Source, Span


class CheckedSpec(Struct):
    """A spec without errors, and the facts derived from its tree."""

    spec: Spec
    facts: Facts


def check(path: str, text: str | None = None) -> CheckedSpec:
    """Load and check a spec file (or `text` in its place); raises `SpecError` with all findings."""
    report = Report()
    spec = load(path, report, text)
    if spec is None:
        raise SpecError(report.found)
    facts = Facts()
    check_loaded(spec, expression_checker(facts, report))
    report.stop_if_any()
    return CheckedSpec(spec, facts)


def check_loaded(spec: Spec, checker: Checker) -> None:
    """Check all declarations and models of a loaded spec, into the checker's report and facts."""
    report = checker.report
    if any(d.code in ("S005", "S006") for d in report.found):  # names would be missing by the dozen
        return
    try:
        check_declarations(checker, spec)
        check_models(checker, spec)
    except RecursionError:
        _too_deep(checker, spec, report)


def _too_deep(checker: Checker, spec: Spec, report: Report) -> None:
    """Report definitions that are shallow by themselves but, when inlined, too deep for recursion."""
    outermost = next(iter(checker.open_defs), None)
    span = outermost.span.word(outermost.name) if outermost else Span(spec.source, 0, 0)
    report.add("S104", span, "the definitions used here nest too deeply", "reduce their nesting")


def choose_model(checked: CheckedSpec, name: str | None, overrides: Mapping[str, str]) -> FixedModel:
    """The model to run with `--set` overrides applied and checked; raises `SpecError`."""
    report = Report()
    bindings = []
    for target, text in overrides.items():
        source = Source(f"--set {target}", text)
        value = parse_expression(source, report)
        if value is not None:
            # Facts are stored by `id(node)`. If a tree were freed, its facts would be those of the next node
            # allocated at its address.
            checked.facts.kept.append(value)
            bindings.append(_binding(target, value, source))
    report.stop_if_any()
    model = fixed(checked.spec, name, report, bindings)
    report.stop_if_any()
    assert model is not None
    check_model(expression_checker(checked.facts, report), checked.spec, model)
    report.stop_if_any()
    return model


def _binding(target: str, value: tree.Expr, source: Source) -> decls.ModelBinding:
    alias, _, text = target.rpartition(".")
    span = Span(source, 0, 0)
    return decls.ModelBinding(value.span, tree.Name(span, text, alias or None), value)


def check_expression(checked: CheckedSpec, model: FixedModel, text: str) -> tuple[tree.Expr, Type]:
    """Check a lone expression over a model's states (for the REPL); raises `SpecError`."""
    report = Report()
    node = parse_expression(Source("expression", text), report)
    report.stop_if_any()
    assert node is not None
    checked.facts.kept.append(node)
    context = Context(checked.spec, elements=elements(model), properties=True)
    checker = expression_checker(checked.facts, report)
    kind = checker.settle(node, context)
    checker.levels.demand(node, Level.STATE, "an expression has its value in one state")
    report.stop_if_any()
    return node, kind
