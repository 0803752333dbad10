"""Walks over programs leave nothing out: each is compared with the nodes' own fields."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from grown import grown
from msgspec import Struct
from msgspec.structs import asdict

from specchk.compile.instantiate import instantiate
from specchk.ir.footprint import live_points
from specchk.ir.nodes import Assign, Cover, Expr, Stmt, Var
from specchk.ir.program import Program
from specchk.ir.verify import bound, parts, properties
from specchk.ir.walk import assignments, expressions, inside, roots, statements
from specchk.lang.frontend import check

ROOT = Path(__file__).parents[2]
FILES = ("spec/replication.spec", "spec/placement.spec", "spec/delivery.spec", "spec/kafka/kip320.spec")


def everything() -> Program:
    """One use of each construct of the language."""
    return instantiate(
        check(str(ROOT / "tests" / "lang" / "everything.spec")), "m", {}, ["small", "up", "some_busy", "few"]
    ).program


@cache
def programs() -> tuple[Program, ...]:
    found = [grown()[1].program, everything()]
    return (*found, *(instantiate(check(str(ROOT / name))).program for name in FILES))


def children(value: Any) -> Iterator[Any]:
    """The structs and tuples directly in a value, except for spans and types."""
    if isinstance(value, tuple):
        yield from value
    elif isinstance(value, Struct):
        yield from (part for name, part in asdict(value).items() if name not in ("span", "type"))


def below(value: Any, kind: Any) -> Iterator[Any]:
    """Every value of a kind in a value, itself included."""
    if isinstance(value, kind):
        yield value
    for child in children(value):
        yield from below(child, kind)


def ids(found: Any) -> list[int]:
    return sorted({id(one) for one in found})


def direct(value: Any) -> Iterator[Expr]:
    """The expressions directly below a value, whatever tuples they are in."""
    for child in children(value):
        if isinstance(child, Expr):
            yield child
        elif isinstance(child, tuple):
            yield from direct(child)


def test_the_programs_have_every_node_and_every_statement() -> None:
    """A kind that is in none of them would not be walked here."""
    found = {type(node) for program in programs() for node in expressions(program)}
    assert found == set(get_args(Expr))
    assert {type(s) for p in programs() for a in p.actions for s in below(a.body, Stmt)} == set(
        get_args(Stmt)
    )


@pytest.mark.parametrize("number", range(2 + len(FILES)))
def test_a_walk_meets_every_expression_of_a_program(number: int) -> None:
    """In every statement and every kind of property; binders are not expressions."""
    program = programs()[number]
    roots = (
        program.starts,
        tuple(a.body for a in program.actions),
        tuple(p.body for p in properties(program)),
    )
    met = list(expressions(program))
    binders = {id(local) for node in met for local in bound(node)}
    binders |= {id(stmt.local) for stmt in below(roots, Stmt) if hasattr(stmt, "local")}
    assert [one for one in ids(below(roots, Expr)) if one not in binders] == [
        one for one in ids(met) if one not in binders
    ]


@pytest.mark.parametrize("number", range(2 + len(FILES)))
def test_parts_and_binders_are_all_that_a_node_has(number: int) -> None:
    """The parts of a node are listed by `parts` and `bound`, and nothing else is."""
    for node in expressions(programs()[number]):
        assert ids(direct(node)) == ids((*parts(node), *bound(node))), type(node)


@pytest.mark.parametrize("number", range(2 + len(FILES)))
def test_statements_are_met_wherever_they_stand(number: int) -> None:
    """In any block, and with them the written and read variables."""
    for action in programs()[number].actions:
        body = action.body
        assert [id(one) for one in statements(body)] == [id(one) for one in below(body, Stmt)]
        assert {one.slot for one in assignments(body)} == {one.slot for one in below(body, Assign)}
        read = {one.slot for root in roots(body) for one in inside(root) if isinstance(one, Var)}
        assert read == {one.slot for one in below(body, Var)}


def test_every_point_of_a_program_without_dead_ends_can_be_counted() -> None:
    """A point that is left out would be reported as dead, and its absence would not be a fault."""
    program = programs()[1]
    assert live_points(program) == frozenset(range(len(program.points)))
    assert any(isinstance(node, Cover) for node in expressions(program))
