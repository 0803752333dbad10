"""A checked spec and a model to a program that engines can run.

This is where `ir.lower` gets the meaning of constant expressions from: it passes in
`evaluate_constant`, built on `core.evaluate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specchk.core.evaluate import Evaluator
from specchk.core.initial import CONSTANT_LOCALS
from specchk.core.undefined import BeyondHorizon, Undefined
from specchk.core.values import Values
from specchk.ir.lower import Lowering, ground, lower
from specchk.ir.nodes import Expr, Value
from specchk.ir.program import Program
from specchk.ir.simplify import simplify
from specchk.ir.types import cardinality
from specchk.ir.verify import verify
from specchk.lang import tree
from specchk.lang.diagnostics import Diagnostic, SpecError, nearest
from specchk.lang.frontend import CheckedSpec, choose_model
from specchk.lang.models import FixedModel
from specchk.lang.source import Source, Span

MAX_TRIES = 1 << 22


@dataclass(frozen=True, slots=True)
class Instance:
    """A program with what is needed to look at it: its model and its lowering."""

    program: Program
    model: FixedModel
    lowering: Lowering


def evaluate_constant(expr: Expr) -> Value:
    """The value of a constant expression; a `SpecError` where it has none."""
    try:
        return Evaluator(0).compile(expr)([0] * CONSTANT_LOCALS)
    except Undefined as undefined:
        message = f"this constant has no value: {undefined.reason}"
        hint = "bind the constants that it is computed from otherwise"
        raise SpecError([Diagnostic("S511", message, undefined.span, hint)]) from None
    except BeyondHorizon:
        hint = "raise the bound of its `nat upto`, or give it a smaller value"
        raise SpecError([Diagnostic("S503", "this value is above its horizon", expr.span, hint)]) from None


def instantiate(
    checked: CheckedSpec, model: str | None = None, overrides: Mapping[str, str] | None = None,
    properties: Sequence[str] = (),
) -> Instance:  # fmt: skip
    """The program of a model (the first by default) with `--set` and `--property` applied."""
    fixed = choose_model(checked, model, overrides or {})
    if properties:
        _select(checked, fixed, properties)
    try:
        program, lowering = lower(checked, fixed, evaluate_constant, Values())
        verify(program)
        program = simplify(program, _fold)
        verify(program)
    except RecursionError:  # each definition is shallow enough, but not put into each other
        span = fixed.decl.span.word(fixed.name) if fixed.decl else Span(checked.spec.source, 0, 0)
        message = "the definitions or constants that this model uses nest too deeply"
        raise SpecError([Diagnostic("S104", message, span, "let them use each other less")]) from None
    _bounded(program)
    return Instance(program, fixed, lowering)


def _fold(expr: Expr) -> Value | None:
    """The value of a constant expression; None where it is undefined or beyond a horizon."""
    try:
        return Evaluator(0).compile(expr)([0] * CONSTANT_LOCALS)
    except (Undefined, BeyondHorizon):
        return None


def survey(checked: CheckedSpec, model: str) -> None:
    """Check a model's constants, bounds and initial values without lowering the rest; raises `SpecError`."""
    ground(checked, choose_model(checked, model, {}), evaluate_constant, Values())


def _bounded(program: Program) -> None:
    """Refuse more choices of initial values than can be tried one by one."""
    tries = 1
    for start, variable in zip(program.starts, program.variables, strict=True):
        if start.choices is not None:
            chosen = _fold(start.choices)
            tries *= len(chosen) if isinstance(chosen, tuple) else 1
        elif start.value is None:
            tries *= cardinality(variable.type)
        if tries > MAX_TRIES:
            message = f"there are {tries} ways to begin, up to this variable, too many to try"
            hint = f"give `{variable.name}` a value (`= e`) or fewer choices (`in e`)"
            raise SpecError([Diagnostic("S510", message, variable.span, hint)])


def _select(checked: CheckedSpec, fixed: FixedModel, properties: Sequence[str]) -> None:
    known = checked.spec.properties
    unknown = [name for name in properties if name not in known]
    if unknown:
        raise SpecError(
            [
                Diagnostic(
                    "S201", f"there is no property `{name}`", hint=nearest(name, known), path="--property"
                )
                for name in unknown
            ]
        )
    span = Span(Source("--property", ""), 0, 0)
    fixed.properties = tuple(tree.Name(span, name) for name in properties)
