"""The legality check: a violation of each rule is found, in any place where a pass might have put it."""

from __future__ import annotations

import pytest
from grown import grown
from msgspec.structs import replace

from specchk.compile.simplify import simplify
from specchk.ir.nodes import (
    And,
    Apply,
    Assign,
    Bind,
    Choice,
    Choose,
    Const,
    Cover,
    Either,
    Expr,
    Guard,
    If,
    Let,
    Local,
    Narrow,
    PathStep,
    Quantifier,
    Stmt,
    Unwrap,
    Var,
    When,
)
from specchk.ir.ops import Op
from specchk.ir.program import Program, Property, Start
from specchk.ir.types import BOOL, Int, Map, Record, Seq, Set, Sort, Type
from specchk.ir.verify import IllegalProgram, verify
from specchk.lang.text.source import Source, Span

SPAN = Span(Source("here", "here"), 0, 4)
YES = Const(BOOL, SPAN, True)
ONE, FIVE = Const(Int(1, 1), SPAN, 1), Const(Int(5, 5), SPAN, 5)
SETS = Const(Set(Int(1, 5)), SPAN, (1, 5))


def local(kind: Type, slot: int = 0) -> Local:
    return Local(kind, SPAN, slot, "x")


def checked(body: Expr, kind: str = "invariant") -> None:
    program = replace(grown()[1].program, invariants=(), step_invariants=())
    prop = Property(kind, "made", body, 9, SPAN)
    field = {"step_invariants": (prop,)} if kind == "step invariant" else {"invariants": (prop,)}
    verify(replace(program, **field))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "body",
    [
        ONE,
        local(BOOL),
        Var(BOOL, SPAN, 99, False),
        Var(BOOL, SPAN, 0, False),
        Var(BOOL, SPAN, 2, True),
        And(BOOL, SPAN, (YES, ONE)),
        If(BOOL, SPAN, ONE, YES, YES),
        If(BOOL, SPAN, YES, YES, ONE),
        Quantifier(BOOL, SPAN, True, local(Int(1, 1)), ONE, YES),
        Quantifier(BOOL, SPAN, True, local(Int(1, 5)), SETS, ONE),
        Quantifier(BOOL, SPAN, True, local(Set(Int(1, 5))), local(Set(Int(1, 5))), YES),
        Let(BOOL, SPAN, local(BOOL), local(BOOL), YES),
        Apply(BOOL, SPAN, Op.EQ, (Choose(Int(1, 5), SPAN, local(Int(1, 5)), SETS, ONE), ONE)),
        Apply(BOOL, SPAN, Op.LE, (Apply(Int(0, 5), SPAN, Op.ADD, (ONE, FIVE)), ONE)),
        Apply(BOOL, SPAN, Op.LE, (If(Int(1, 1), SPAN, YES, ONE, FIVE), ONE)),
        Apply(BOOL, SPAN, Op.LE, (Narrow(Int(1, 1), SPAN, YES), ONE)),
    ],
)
def test_what_breaks_a_rule_is_found(body: Expr) -> None:
    """Types, names out of scope, primes in an invariant, results wider than their node."""
    with pytest.raises(IllegalProgram):
        checked(body)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (YES, "invariant"),
        (Var(BOOL, SPAN, 2, True), "step invariant"),
        (
            Quantifier(BOOL, SPAN, True, local(BOOL), Const(Set(BOOL), SPAN, (False,)), local(BOOL)),
            "invariant",
        ),
        (If(BOOL, SPAN, YES, YES, Let(BOOL, SPAN, local(BOOL), YES, local(BOOL))), "invariant"),
        (Apply(BOOL, SPAN, Op.LE, (If(Int(0, 9), SPAN, YES, ONE, FIVE), ONE)), "invariant"),
    ],
)
def test_what_keeps_the_rules_passes(body: Expr, kind: str) -> None:
    """Narrower parts than a node states are legal; so are primes in step invariants."""
    checked(body, kind)


N, Q, C, M = 0, 7, 10, 12  # a number, a sequence, a record and a map of the grown spec
NINE, NAMED = Const(Int(9, 9), SPAN, 9), local(Int(0, 1), 3)
ROW = Seq(Int(0, 3), 3)
RECORD = Record((("x", Int(0, 3)), ("y", BOOL)))
TABLE = Map(Sort("R", ("r1", "r2")), Int(0, 3))


def assigned(slot: int, value: Expr, *path: PathStep) -> Assign:
    return Assign(slot, path, value, SPAN)


def with_body(*body: Stmt) -> Program:
    program = grown()[1].program
    return replace(program, actions=(replace(program.actions[0], body=body),))


def pick(*body: Stmt, domain: Expr = SETS) -> Choice:
    return Choice(local(Int(1, 5)), domain, body)


BAD = assigned(N, NINE)
FIRST = PathStep(None, ONE, ROW)


@pytest.mark.parametrize(
    "body",
    [
        (Guard(ONE),), (Guard(Var(BOOL, SPAN, 2, True)),), (Guard(NAMED),),
        (BAD,), (assigned(N, YES),), (assigned(N, local(Int(0, 1))),), (assigned(Q, FIVE, FIRST),),
        (assigned(Q, ONE, PathStep(None, NAMED, ROW)),), (assigned(N, ONE, FIRST),),
        (assigned(C, FIVE, PathStep(0, None, RECORD)),), (assigned(C, ONE, PathStep(1, None, RECORD)),),
        (assigned(M, FIVE, PathStep(None, Const(TABLE.key, SPAN, 0), TABLE)),),
        (Bind(NAMED, local(BOOL)),), (Unwrap(NAMED, local(BOOL)),),
        (pick(BAD),), (pick(domain=local(Set(BOOL), 4)),), (pick(), assigned(N, local(Int(1, 5)))),
        (Either(((), (BAD,)), (0, 0)),), (When(ONE, (), (), (0, 0)),), (When(NAMED, (), (), (0, 0)),),
        (When(YES, (BAD,), (), (0, 0)),), (When(YES, (), (BAD,), (0, 0)),),
        (When(YES, (Bind(NAMED, ONE),), (), (0, 0)), assigned(N, NAMED)),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_in_a_statement_is_found(body: tuple[Stmt, ...]) -> None:
    """Guards that are not truth values, stores that are too wide, paths that leave, names out of scope."""
    with pytest.raises(IllegalProgram):
        verify(with_body(*body))


@pytest.mark.parametrize(
    "body",
    [
        (Guard(YES), assigned(N, ONE)), (Bind(NAMED, ONE), assigned(N, NAMED)),
        (assigned(Q, ONE, FIRST),), (assigned(C, YES, PathStep(1, None, RECORD)),),
        (pick(Bind(local(Int(1, 5), 1), local(Int(1, 5)))),), (Either(((Guard(YES),), ()), (0, 0)),),
        (When(YES, (Bind(NAMED, ONE), assigned(N, NAMED)), (), (0, 0)),),
    ],
)  # fmt: skip
def test_what_keeps_the_rules_of_statements_passes(body: tuple[Stmt, ...]) -> None:
    """A name is valid to the end of its block, and a part of a variable has that part's type."""
    verify(with_body(*body))


def test_what_a_variable_starts_with_fits_it() -> None:
    """One value, or a set of them."""
    program = grown()[1].program
    for wrong in (Start(NINE, None), Start(None, SETS), Start(local(Int(0, 0)), None)):
        with pytest.raises(IllegalProgram):
            verify(replace(program, starts=(wrong, *program.starts[1:])))
    verify(replace(program, starts=(Start(None, Const(Set(Int(1, 4)), SPAN, (1,))), *program.starts[1:])))


@pytest.mark.parametrize("field", ["inits", "invariants", "step_invariants", "witnesses", "constraints"])
def test_every_kind_of_property_is_checked(field: str) -> None:
    """No kind is left out, nor is the condition under which a deadlock is allowed."""
    wrong = Property("made", "made", ONE, 9, SPAN)
    for change in ({field: (wrong,)}, {"deadlock_ok": wrong}):
        with pytest.raises(IllegalProgram, match="made is not a truth value"):
            verify(replace(grown()[1].program, **change))


def test_a_point_of_coverage_is_one_of_the_program_s() -> None:
    """Counting at another place would count for another program, or not at all."""
    with pytest.raises(IllegalProgram, match="no such coverage point"):
        checked(Cover(BOOL, SPAN, 99, YES))


def test_a_part_that_a_pass_keeps_is_checked_where_it_is_put() -> None:
    """A part legal in one scope is not in another, nor outside step invariants, nor with other variables."""
    part = Apply(BOOL, SPAN, Op.NOT, (local(BOOL),))
    inside = Let(BOOL, SPAN, local(BOOL), YES, part)
    primed = Apply(BOOL, SPAN, Op.NOT, (Var(BOOL, SPAN, 2, True),))
    program = replace(grown()[1].program, invariants=(), step_invariants=())

    def claiming(**bodies: Expr) -> Program:
        props = {kind: (Property(kind.rstrip("s").replace("_", " "), kind, body, 9, SPAN),)
                 for kind, body in bodies.items()}  # fmt: skip
        return replace(program, **props)  # type: ignore[arg-type]

    right = claiming(invariants=inside, step_invariants=primed)
    verified = verify(right)
    assert verify(right, verified) is verified
    for wrong in (claiming(invariants=part), claiming(invariants=primed)):
        with pytest.raises(IllegalProgram):
            verify(wrong, verified)
    fewer = replace(right, variables=program.variables[:2], starts=program.starts[:2], actions=())
    with pytest.raises(IllegalProgram, match="variable 2 out of place"):
        verify(fewer, verified)


def test_an_action_that_nothing_decides_in_is_the_same_after_simplification() -> None:
    """An unchanged part need not be checked again."""
    body = (Guard(Apply(BOOL, SPAN, Op.NOT, (Var(BOOL, SPAN, 2, False),))),)
    (guard,) = simplify(with_body(*body)).actions[0].body
    assert isinstance(guard, Guard)
    assert guard.condition is body[0].condition
