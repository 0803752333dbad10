"""Where logical lines and blocks begin and end (lang/syntax/layout.py)."""

from __future__ import annotations

import re

import pytest

from specchk.lang.syntax import decls
from specchk.lang.syntax.decls import Module
from specchk.lang.syntax.parse import parse
from specchk.lang.text.diagnostics import Diagnostic, Report
from specchk.lang.text.source import Source


def module(text: str) -> Module:
    """The tree of a text that has no errors."""
    report = Report()
    found = parse(Source("a.spec", text), report)
    assert not report.found, report.found
    return found


def errors(text: str) -> list[Diagnostic]:
    """The syntax errors of a text."""
    report = Report()
    parse(Source("a.spec", text), report)
    return report.found


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        ("var x : set[\n    bool\n  ] = {\n}", "var x : set[bool] = {}"),
        ("invariant p: a and\n  b", "invariant p: a and b"),
        ("invariant p: a\n  and b\n    or c", "invariant p: a and b or c"),
        ("invariant p:\n    a\n    and b", "invariant p: a and b"),
        ("invariant p: forall x in S:\n    x == 1", "invariant p: forall x in S: x == 1"),
        ("invariant p: let a = 1:\n    a == 1", "invariant p: let a = 1: a == 1"),
        ("invariant p: if a\n  then b\n  else c", "invariant p: if a then b else c"),
        ("invariant p: a not\n  in b", "invariant p: a not in b"),
        ("invariant p: a\n  not in b", "invariant p: a not in b"),
        ("const N : int =\n    3", "const N : int = 3"),
        ("type M = A\n  | B(x: int)", "type M = A | B(x: int)"),
        ("var x : bool ->\n  bool = f", "var x : bool -> bool = f"),
        ("invariant p: a # why\n\n  # and\n  and b", "invariant p: a and b"),
        ("fair a,\n  b", "fair a, b"),
        ("action a(): skip; skip", "action a():\n    skip\n    skip"),
        ("action a():\n  when p: skip\n  else: skip", "action a():\n when p:\n  skip\n else:\n  skip"),
        ("action a():\n  either: skip\n  or: skip", "action a():\n either:\n  skip\n or:\n  skip"),
        ("action a():\n    let r = x else skip\n    skip", "action a(): let r = x else skip; skip"),
        ("def f(): bool =\n  forall x in S:\n    x", "def f(): bool =\n  forall x in S: x"),
        ("def f(): int =\n  let a = 1\n  a", "def f(): int =\n    let a = 1\n    a"),
        ("model m:\n  A = 1,\n    B = 2\n  expect holds", "model m:\n    A = 1, B = 2; expect holds"),
    ],
)  # fmt: skip
def test_line_breaks_where_a_line_goes_on_mean_nothing(broken: str, whole: str) -> None:
    """Both give the same tree."""
    assert module(broken) == module(whole)


def test_a_conjunct_list_has_an_expression_a_line() -> None:
    """Lines that start with an operator belong to the one above."""
    text = "invariant p:\n    let a = 1\n    a == 1\n    or a == 2\n    not (a == 3)\n"
    (found,) = module(text).decls
    assert isinstance(found, decls.Property)
    assert (len(found.lets), len(found.conjuncts)) == (1, 2)


def test_a_line_that_starts_with_minus_continues_another_only_if_it_is_deeper() -> None:
    """At the block's indentation `-x < 0` is a line of its own; deeper it is the end of a subtraction."""
    block = "invariant p:\n    let n = x\n    -x < 0\n    x <= 3\n"
    (separate,) = module(block).decls
    (deeper,) = module(block.replace("    -x < 0", "      -x < 0")).decls
    assert isinstance(separate, decls.Property)
    assert isinstance(deeper, decls.Property)
    assert (len(separate.conjuncts), len(deeper.conjuncts)) == (2, 1)
    assert errors(block.replace("    -x < 0", "  -x < 0"))


@pytest.mark.parametrize(
    "text",
    [
        "def f(): int =\n    let a = 1\n    -a\n",
        "init:\n    x == 1\n    -x == y\n",
        "assume:\n    a\n    -b < 0\n",
    ],
)
def test_a_line_of_each_block_may_start_with_minus(text: str) -> None:
    """The lines are as many as in the same text with the minus in parentheses."""
    assert module(text) == module(re.sub(r"^    (-\w.*)$", r"    (\1)", text, flags=re.MULTILINE))


@pytest.mark.parametrize("line", ["x' = 1", "require x", "let y = x", "x' in s", "any y in S:"])
def test_no_statement_takes_in_the_line_below_that_starts_with_minus(line: str) -> None:
    """No statement begins with minus, so it is refused."""
    assert [(d.code, d.where) for d in errors(f"action a():\n    {line}\n    -1\n")] == [
        ("S101", "a.spec:3:5")
    ]


OPERATORS = [
    "and", "or", "implies", "iff", "leadsto", "union", "intersect", "subset", "then", "else", "where", "is",
    "in", "not in", "==", "!=", "<=", ">=", "<", ">", "+", "++", "*", "//", "%", "..", "|",
]  # fmt: skip


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_continues_the_line_above_at_any_indentation_begins_no_line(operator: str) -> None:
    """So no line that could be one of its own is swallowed; minus is the only operator that begins one."""
    assert errors(f"invariant p: {operator} b\n") != []
    assert errors("invariant p: -b == 0\n") == []


@pytest.mark.parametrize(
    "opening", ["(b)", "[b] == c", "{b} == c", "not b", "forall x in S: x", "b.c", "1 == b"]
)
def test_what_may_begin_an_expression_begins_a_line(opening: str) -> None:
    """A bracket at the beginning of a line is no call and no index of the line above."""
    (found,) = module(f"invariant p:\n    let n = x\n    a\n    {opening}\n").decls
    assert isinstance(found, decls.Property)
    assert len(found.conjuncts) == 2


def test_a_line_in_column_one_starts_a_declaration() -> None:
    """So an open bracket does not swallow the rest of the file."""
    found = errors("var x : set[\nvar y : bool = true\nvar z : = 3\n")
    assert [(d.code, d.where) for d in found] == [("S103", "a.spec:1:12"), ("S101", "a.spec:3:9")]
    assert len(module("var x : bool = true\n# aside\nvar y : bool = true\n").decls) == 2


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("action a():\n    skip\n      skip\n", "S101", "a.spec:3:1"),
        ("action a():\n        skip\n    skip\n", "S102", "a.spec:3:1"),
        ("action a():\n", "S101", "a.spec:1:11"),
        ("action a():\n\tskip\n", "S107", "a.spec:2:1"),
        ("invariant p: (a]\n", "S103", "a.spec:1:16"),
        ("invariant p: a)\n", "S103", "a.spec:1:15"),
        ("  var x : bool = true\n", "S101", "a.spec:1:3"),
        ("invarient p: a\n", "S101", "a.spec:1:1"),
        ("invariant p: a +\n", "S101", "a.spec:1:17"),
        ("invariant p: true and forall x in S: x\n", "S101", "a.spec:1:23"),
    ],
)
def test_blocks_and_brackets_that_do_not_fit_are_marked(text: str, code: str, where: str) -> None:
    """One diagnostic at the place where a reader would expect it."""
    (found,) = errors(text)
    assert (found.code, found.where) == (code, where)
    assert found.hint
