"""The page of rules: its rules as Python, as engines read them, and their shortcuts are the same."""

from __future__ import annotations

import ast
from contextlib import nullcontext, suppress
from pathlib import Path
from types import MappingProxyType

import pytest

from laws.operators import cases, on_constants, tried
from native.emitted import miscompiled
from specchk.ir.ops import Op
from specchk.meaning import rules
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.reading import read
from specchk.native.values import expressions
from specchk.symbolic.induction.encode.exprs import encode
from specchk.symbolic.induction.encode.scope import Unencodable, of_state
from specchk.symbolic.induction.encode.states import ModelReader

TREE = {"lang.check", "lang.check.models", "lang.frontend", "lang.syntax", "lang.syntax.tree"}
NAIVE = sorted((Path(__file__).parents[1] / "core").glob("naive*.py"))
LISTED = (Op.SUBSETS, Op.MAPS)  # which the encoding refuses if they are many
SHORTCUTS = [op for op in rules.DERIVED if op in expressions.RULES]


@pytest.mark.parametrize("op", rules.RULES, ids=lambda op: op.name)
def test_a_rule_as_python_is_the_meaning(op: Op) -> None:
    """The reference engine's shortcut, if it has one; where a rule does not fail it has a value."""
    for expr, kinds in cases(op):
        for values, wanted in tried(expr, kinds):
            try:
                value = rules.RULES[op](*values)
            except rules.NoValue:
                value = None
            assert value == wanted, values


@pytest.mark.parametrize("op", rules.DERIVED, ids=lambda op: op.name)
def test_a_rule_as_it_is_read_is_the_meaning(op: Op) -> None:
    """What an engine without a shortcut gets, evaluated by the reference engine."""
    for expr, kinds in cases(op):
        (conditions, body), evaluator = read(expr), Evaluator(0)
        value, faults = evaluator.compile(body), list(map(evaluator.compile, conditions))
        for values, wanted in tried(expr, kinds):
            env = [*values, 0, 0]
            assert (None if any(fault(env) for fault in faults) else value(env)) == wanted, values


@pytest.mark.parametrize("op", SHORTCUTS, ids=lambda op: op.name)
def test_a_shortcut_of_the_native_engine_is_the_rule(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the code has the meaning, too (with it: tests/native)."""
    others = {other: rule for other, rule in expressions.RULES.items() if other is not op}
    monkeypatch.setattr(expressions, "RULES", MappingProxyType(others))
    assert not miscompiled(op)


@pytest.mark.parametrize("op", Op, ids=lambda op: op.name)
def test_the_encoding_of_an_operator_is_the_meaning(op: Op) -> None:
    """Of decided arguments, the tree is decided and has the value, or there is a fault."""
    for expr, kinds in cases(op):
        for values, wanted in tried(expr, kinds):
            scope = of_state(())
            with suppress(Unencodable) if op in LISTED else nullcontext():
                tree = encode(on_constants(expr, values), scope)
                value = None if True in scope.faults else ModelReader(None).value(tree, expr.type)
                assert value == wanted, values


@pytest.mark.parametrize("file", NAIVE, ids=lambda file: file.name)
def test_the_second_reading_uses_the_checked_tree_alone(file: Path) -> None:
    """Engines that read one page err together: the naive interpreter has nothing of it."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    names = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    used = {name.removeprefix("specchk.") for name in names if name.startswith("specchk")}
    assert used
    assert used <= TREE
