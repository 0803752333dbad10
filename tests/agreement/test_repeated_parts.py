"""Quick code has parts that properties repeat only once, and the results of the reference engine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from agreement.both import differences, program_of
from agreement.gathered_specs import gathered_spec
from agreement.recursive_specs import random_recursive_spec
from agreement.sparse_specs import random_sparse_spec
from laws.operators import SPAN
from specchk.codegen.ir import Function, IRModule, Tier
from specchk.ir import nodes
from specchk.ir.ops import Op
from specchk.ir.program import Program, Property
from specchk.ir.types import BOOL, Int, Set, Type
from specchk.lang.text.source import Span
from specchk.native.compiler import KernelSource
from specchk.native.engine import LONG
from specchk.native.machine.layout import StateLayout, layout_of
from specchk.native.values import repeated
from specchk.native.values.expressions import ExpressionEmitter
from specchk.native.values.repeated import PartFunction, RepeatedParts, renaming
from specchk.native.values.totality import ExpressionFacts

SHIFT = 3  # from the names of a part to those of its copy


def copied(part: Any, random: Random) -> Any:
    """A part of a program with other names; some of its nodes are at another place in the source."""
    match part:
        case tuple():
            return tuple(copied(item, random) for item in part)
        case nodes.Const() | nodes.Var():
            return part
        case nodes.Local():
            return replace(part, slot=part.slot + SHIFT)
        case nodes.Node():
            names = [name for name in part.__struct_fields__ if name not in ("type", "span")]
            inner = {name: copied(getattr(part, name), random) for name in names}
            span = part.span if random.randrange(2) else Span(part.span.source, 0, 0)
            return replace(part, span=span, **inner)
    return part


def with_copies(program: Program, random: Random) -> Program:
    """The program with two copies of each of its properties."""

    def more(props: tuple[Property, ...]) -> tuple[Property, ...]:
        return props + tuple(
            replace(p, name=f"{p.name}_{i}", body=copied(p.body, random), locals=p.locals + SHIFT)
            for p in props
            for i in range(2)
        )

    return replace(
        program,
        invariants=more(program.invariants),
        step_invariants=more(program.step_invariants),
        witnesses=more(program.witnesses),
        constraints=more(program.constraints),
    )


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[PartFunction]:
    """The functions of parts that are made during a test: also of small ones, and no kernel is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made: list[PartFunction] = []
    make = RepeatedParts._function

    def made_here(*args: Any) -> PartFunction:
        made.append(make(*args))
        return made[-1]

    monkeypatch.setattr(RepeatedParts, "_function", made_here)
    monkeypatch.setattr(repeated, "LEAST", 2)
    return made


@pytest.mark.parametrize("make", [gathered_spec, random_recursive_spec, random_sparse_spec])
def test_calls_have_the_results_of_copies(make: Any, functions: list[PartFunction], tmp_path: Path) -> None:
    compared = 0
    for seed in range(40):
        program = program_of(make(Random(seed)), tmp_path)
        if program is not None:
            found = differences(with_copies(program, Random(seed)), optimising_after=LONG, keep_going=True)
            assert not found, seed
            compared += found is not None
    assert compared >= 25
    # All kinds of them: of names that a part does not bind, of parts without a value, and of steps.
    assert sum(1 for one in functions if one.names) >= 20
    assert sum(1 for one in functions if one.may_fail) >= 20


TWICE = """spec twice
const Most : 0..40
type Number = 0..3
var x : Number = 0
var y : Number = 0
def near(a: Number, b: Number) = forall n in Number: n * b < Most + a or (n + b) % (3 - a) != n
action grow():
    require x < 3
    x' = x + 1
action turn():
    y' = x
invariant first: near(x, y)
invariant second: x < 3 implies near(y, x)
invariant third: forall a in Number, b in Number: a > b or x != a or near(a, b)
invariant fourth: exists b in Number, a in Number: a + y < b and near(a, b)
invariant fifth: exists a in Number: a < y and near(a, a)
step invariant sixth: near(x, y) or near(x', y')
model m:
    Most = {most}
"""


@pytest.mark.parametrize("most", [0, 3, 40])
def test_a_definition_that_is_used_again_is_called(most: int, tmp_path: Path) -> None:
    program = program_of(TWICE.format(most=most), tmp_path)
    assert program is not None
    source = KernelSource(program, layout_of(program))
    quick, optimised = source.module(Tier.QUICK), source.module()
    assert [name for name in quick.globals if name.startswith("part")]
    assert not [name for name in optimised.globals if name.startswith("part")]
    assert differences(program, optimising_after=LONG, keep_going=True) == {}


DIFFERENT = """spec different
var x : 0..3 = 0
def p(a: 0..200): bool = x * a < a + 5 and x + a < a * 3 and (exists k in 0..3: k * a < a + x) and x < a
action grow():
    require x < 3
    x' = x + 1
"""


def test_different_copies_are_compared_a_few_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else comparing would take longer than to emit all copies."""
    compared: Counter[tuple[int, type]] = Counter()

    def counted(part: nodes.Expr, other: nodes.Expr) -> dict[int, int] | None:
        compared[id(other.span), type(other)] += 1
        return renaming(part, other)

    monkeypatch.setattr(repeated, "renaming", counted)
    text = DIFFERENT + "".join(f"invariant i{a}: p({a}) or x > {a}\n" for a in range(100))
    program = program_of(text, tmp_path)
    assert program is not None
    KernelSource(program, layout_of(program)).module(Tier.QUICK)
    most = repeated.MOST_VARIANTS
    assert 1 < max(compared.values()) <= most * (most + 1) / 2 + most


SMALL, WIDE = Int(0, 3), Int(0, 7)


def name(slot: int, kind: Type = SMALL) -> nodes.Local:
    return nodes.Local(kind, SPAN, slot, "")


def below(bound: nodes.Local, *sides: nodes.Expr) -> nodes.Expr:
    """`forall bound in 0..3: left < right`."""
    domain = nodes.Const(Set(SMALL), SPAN, (0, 1, 2, 3))
    return nodes.Quantifier(BOOL, SPAN, True, bound, domain, nodes.Apply(BOOL, SPAN, Op.LT, sides))


@pytest.mark.parametrize(
    ("other", "names"),
    [
        (below(name(5), name(5), name(7)), {1: 5, 2: 7}),
        (below(name(2), name(2), name(1)), {1: 2, 2: 1}),
        (below(name(5), name(7), name(5)), None),  # the bound name on the other side
        (below(name(5), name(5), name(5)), None),  # and on both
        (below(name(5), name(7), name(7)), None),
        (below(name(5), name(5), name(7, WIDE)), None),
        (below(name(5), name(5), nodes.Const(SMALL, SPAN, 2)), None),
    ],
)
def test_only_names_may_differ(other: nodes.Expr, names: dict[int, int] | None) -> None:
    assert renaming(below(name(1), name(1), name(2)), other) == names


@pytest.mark.parametrize(("kind", "is_found"), [(SMALL, True), (WIDE, False)])
def test_a_function_is_called_with_values_of_its_types_only(kind: Type, is_found: bool) -> None:
    """The types of bound values, which their names in the expression need not have."""
    part, other = below(name(1), name(1), name(2)), below(name(5), name(5), name(7))
    parts = RepeatedParts(IRModule(Tier.QUICK), StateLayout((), 1), ExpressionFacts(), [part])
    known = PartFunction(part, (2,), (SMALL,), cast(Function, None), may_fail=False)
    parts._known[id(other.span), type(other)] = [known]
    emitter = cast(ExpressionEmitter, SimpleNamespace(locals={7: (3, kind)}))
    assert parts._found((id(other.span), type(other)), emitter, other) == ((known, [3]) if is_found else None)
