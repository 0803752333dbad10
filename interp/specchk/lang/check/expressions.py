"""One total dispatch over the tree's expressions."""

from __future__ import annotations

from typing import assert_never

from specchk.lang.check import access, calls, forms, names, operators
from specchk.lang.check.builtins import check_fold
from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.spec import Facts
from specchk.lang.check.types import BOOL, INT, UNKNOWN, Option, Type
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import Report


def expression_checker(facts: Facts, report: Report) -> Checker:
    """A checker by these rules."""
    return Checker(facts, report, infer)


def infer(checker: Checker, node: tree.Expr, context: Context, expected: Type | None) -> Type:
    """The type of a node from its parts."""
    match node:
        case tree.Name():
            return names.check_as_name(checker, node, node, context, expected)
        case tree.IntLiteral():
            return INT
        case tree.BoolLiteral():
            return BOOL
        case tree.NoneLiteral():
            return expected if isinstance(expected, Option) else Option(UNKNOWN)
        case tree.Unary():
            return operators.check_unary(checker, node, context)
        case tree.Binary():
            return operators.check_binary(checker, node, context, expected)
        case tree.Prime():
            return checker.check(node.operand, context, expected)
        case tree.Index():
            return access.check_index(checker, node, context)
        case tree.Field():
            return access.check_field(checker, node, context, expected)
        case tree.CallExpr():
            return calls.check_call(checker, node, context, expected)
        case tree.Fold():
            return check_fold(checker, node, context)
        case _:
            return _infer_form(checker, node, context, expected)


def _infer_form(
    checker: Checker,
    node: tree.Quantified | tree.IfElse | tree.LetIn | tree.Match | tree.SetLiteral | tree.SeqLiteral
    | tree.PairLiteral | tree.SetComp | tree.MapComp | tree.With,
    context: Context,
    expected: Type | None,
) -> Type:  # fmt: skip
    match node:
        case tree.Quantified():
            return forms.check_quantified(checker, node, context)
        case tree.IfElse():
            return forms.check_if(checker, node, context, expected)
        case tree.LetIn():
            return forms.check_let(checker, node, context, expected)
        case tree.Match():
            return forms.check_match(checker, node, context, expected)
        case tree.SetLiteral():
            return forms.check_set(checker, node, context, expected)
        case tree.SeqLiteral():
            return forms.check_seq(checker, node, context, expected)
        case tree.PairLiteral():
            return forms.check_pairs(checker, node, context, expected)
        case tree.SetComp():
            return forms.check_set_comp(checker, node, context, expected)
        case tree.MapComp():
            return forms.check_map_comp(checker, node, context, expected)
        case tree.With():
            return forms.check_with(checker, node, context, expected)
        case _:
            assert_never(node)
