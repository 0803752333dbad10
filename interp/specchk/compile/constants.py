"""Values of constant expressions, by the meaning that every engine has."""

from __future__ import annotations

from specchk.ir.nodes import Expr, Value
from specchk.lang.text.diagnostics import Diagnostic, SpecError
from specchk.meaning.initial import value_of
from specchk.meaning.undefined import BeyondHorizon, Undefined


def evaluate_constant(expr: Expr) -> Value:
    """The value of a constant expression; a `SpecError` where it has none."""
    try:
        return value_of(expr)
    except Undefined as undefined:
        message = f"this constant has no value: {undefined.reason}"
        hint = "change the constants from which it is computed"
        raise SpecError([Diagnostic("S511", message, undefined.span, hint)]) from None
    except BeyondHorizon:
        hint = "raise the bound of its `nat upto`, or give it a smaller value"
        raise SpecError([Diagnostic("S503", "this value is above its horizon", expr.span, hint)]) from None


def fold(expr: Expr) -> Value | None:
    """The value of a constant expression; None where it is undefined or beyond a horizon."""
    try:
        return value_of(expr)
    except (Undefined, BeyondHorizon):
        return None
