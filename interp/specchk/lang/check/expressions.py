"""The rule of each kind of expression: one table, total over them (tests/laws/test_operators.py)."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from specchk.lang.check import access, builtins, calls, forms, names, operators
from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.lambdas import check_lone_lambda
from specchk.lang.check.spec import Facts
from specchk.lang.check.types import BOOL, INT, UNKNOWN, Option, Type
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import Report

# A checker, a node of the kind, its context, and the type that its place expects, if that is known.
Rule = Callable[[Checker, Any, Context, "Type | None"], Type]


def _none(_: Checker, __: tree.NoneLiteral, ___: Context, expected: Type | None) -> Type:
    return expected if isinstance(expected, Option) else Option(UNKNOWN)


RULES: MappingProxyType[type[tree.Node], Rule] = MappingProxyType({
    tree.Name: names.check_name, tree.IntLiteral: lambda *_: INT, tree.BoolLiteral: lambda *_: BOOL,
    tree.NoneLiteral: _none, tree.Unary: operators.check_unary, tree.Binary: operators.check_binary,
    tree.Prime: lambda checker, node, *rest: checker.check(node.operand, *rest),
    tree.Index: access.check_index, tree.Field: access.check_field,
    tree.CallExpr: calls.check_call, tree.Fold: builtins.check_fold, tree.Quantified: forms.check_quantified,
    tree.IfElse: forms.check_if, tree.LetIn: forms.check_let, tree.Match: forms.check_match,
    tree.SetLiteral: forms.check_set, tree.SeqLiteral: forms.check_seq, tree.TupleLiteral: forms.check_tuple,
    tree.PairLiteral: forms.check_pairs,
    tree.SetComp: forms.check_set_comp, tree.MapComp: forms.check_map_comp, tree.With: forms.check_with,
    tree.Lambda: lambda checker, node, *_: check_lone_lambda(checker, node),
})  # fmt: skip


def expression_checker(facts: Facts, report: Report) -> Checker:
    """An expression checker with these rules."""
    # Given to the checker, which the rules import: it could not import them.
    return Checker(facts, report, lambda checker, node, *rest: RULES[type(node)](checker, node, *rest))
