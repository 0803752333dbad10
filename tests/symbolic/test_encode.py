"""The encoding of the core is correct: compared with the reference interpreter, state by state."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from z3 import And, Bools, Not, Or

from agreement.both import of_seed, program_of
from specchk.compile.instantiate import instantiate
from specchk.ir.ops import Op
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.meaning import rules
from specchk.symbolic.induction.encode import exprs, ops, steps
from specchk.symbolic.induction.encode.bools import conjuncts
from specchk.symbolic.induction.encode.merge import has, merge
from specchk.symbolic.induction.encode.numbers import at_most, counted, less
from specchk.symbolic.induction.encode.scope import Unencodable
from specchk.symbolic.induction.encode.states import OpenTrees
from specchk.symbolic.induction.encode.trees import plain
from symbolic.relation import Relation, some_states

SPEC = Path(__file__).parents[2] / "spec"
MODELS = (
    ("two_round_fetch.spec", "small"),
    pytest.param("replication.spec", "page_cache_lost", marks=pytest.mark.system),
    ("kafka/kip320.spec", "small"),
    ("examples/two_phase_commit.spec", None),
    ("examples/lossy_channel.spec", None),
    ("delivery.spec", None),
)
SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)

CHOICES = """spec choices
type Offset = nat upto 3
type Item = { at: Offset, who: bool }
var end : Offset = 0
var flags : bool -> Offset = { b: 0 for b in bool_type }
var queue : seq[Item] upto 2 = []
var loose : bag[Offset] upto 2 = {}
var latest : Offset? = none
var seen : set[bool] = {}
type bool_type = bool
action grow(by: Offset):
    require by <= 1
    end' = end + by
action pick():
    any n in 0..end:
        flags'[n == end] = max(n, flags[n == end])
        seen' = seen union { n == end }
        when n > 0:
            queue' = append(queue, { at: n, who: n == end })
action drop():
    require len(queue) > 0
    queue' = tail(queue)
    loose' = add(loose, head(queue).at)
action look():
    require end == 3 or latest != none
    latest' = if get(latest) == end then none else some(get(latest, 7) // 2)
action note():
    require end != 2
    latest' = some(min(get(latest, end), end))
action forget():
    any x in elements(loose):
        loose' = remove(loose, x)
invariant low: forall b in bool_type: flags[b] <= end
invariant known: len(queue) == 2 implies queue[1].at <= end and min({ queue[0].at, queue[1].at }) >= 0
model m:
    expect holds
"""


def program(name: str, model: str | None) -> Program:
    return instantiate(check(str(SPEC / name)), model).program


def differences(found: Program, states: int, seed: int, limit: int = 400) -> list[str]:
    random = Random(seed)
    relation = Relation(found)
    known = some_states(found, limit, random)
    return [
        line
        for state in random.sample(known, min(states, len(known)))
        for line in relation.differences(state)
    ]


@pytest.mark.parametrize(("name", "model"), MODELS)
def test_the_relation_of_our_models_is_the_steppers(name: str, model: str | None) -> None:
    """Successors, undefined actions and properties of random reachable states are the same."""
    assert not differences(program(name, model), 12, seed=1)


def check_random(seed: int, folder: Path) -> None:
    found = of_seed(seed, folder)
    if found is None:
        return
    with suppress(Unencodable):
        assert not differences(found, 8, seed, 200)


@settings(max_examples=25, suppress_health_check=SHARED)
@given(seed=st.integers(0, 10**6))
def test_the_relation_of_random_specs_is_the_steppers(seed: int, tmp_path: Path) -> None:
    """The same for specs with every type and operator."""
    check_random(seed, tmp_path)


@pytest.mark.slow
@settings(max_examples=300, suppress_health_check=SHARED)
@given(seed=st.integers(0, 10**6))
def test_the_relation_of_many_random_specs_is_the_steppers(seed: int, tmp_path: Path) -> None:
    """The same for many specs with every type and operator."""
    check_random(seed, tmp_path)


def test_offsets_are_chosen_from_open_ranges(tmp_path: Path) -> None:
    """`any` over a range of offsets and a parameter of an offset type take every number."""
    found = program_of(CHOICES, tmp_path)
    assert found is not None
    assert not differences(found, 30, seed=3)


def _wrong(op: Op, rule: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(exprs, "RULES", MappingProxyType({**ops.RULES, op: rule}))

    return plant


def _pure(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda expr, args, scope: fn(*args)


PLANTED = {
    "less is at most": _wrong(Op.LT, _pure(at_most)),
    "at most is less": _wrong(Op.LE, _pure(less)),
    "min is max": _wrong(Op.MIN, _pure(lambda a, b: merge(at_most(b, a), a, b))),
    "max is min": _wrong(Op.MAX, _pure(lambda a, b: merge(at_most(a, b), a, b))),
    "equal is always": _wrong(Op.EQ, _pure(lambda a, b: True)),
    "not is nothing": _wrong(Op.NOT, _pure(lambda a: a)),
    "addition forgets": _wrong(Op.ADD, _pure(lambda a, b: a)),
    "union is the first": _wrong(Op.UNION, _pure(lambda a, b: a)),
    "difference is the first": _wrong(Op.DIFFERENCE, _pure(lambda a, b: a)),
    "membership is reversed": _wrong(Op.IN_SET, lambda e, args, s: ops.negation(has(args[1], args[0]))),
    "the first value of a map": _wrong(Op.MAP_GET, _pure(lambda m, key: m[0])),
    "get of none is fine": _wrong(Op.GET, _pure(lambda option: option.item)),
    "get or forgets the default": _wrong(Op.GET_OR, _pure(lambda option, default: option.item or default)),
    "a when that always runs": lambda patch: patch.setattr(steps, "merge", lambda c, a, b: a),
    "a frame that forgets": lambda patch: patch.setattr(steps._Frame, "when", lambda self, *guards: self),
}


@pytest.mark.system
@pytest.mark.parametrize("bug", PLANTED)
def test_planted_encoder_bugs_are_noticed(bug: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The comparison fails for every wrong rule, on one of a few models."""
    PLANTED[bug](monkeypatch)
    small = program_of(CHOICES, tmp_path)
    assert small is not None
    assert _differs(small, 25) or _differs(program("kafka/kip320.spec", "small"), 8)


def _differs(found: Program, states: int) -> bool:
    try:
        return bool(differences(found, states, seed=2, limit=200))
    except Exception:
        return True


def test_every_operator_has_a_rule() -> None:
    """In the table of the encoding or on the page; none is in both, since reading a rule gives its terms."""
    assert sorted([*ops.RULES, *rules.DERIVED], key=list(Op).index) == list(Op)


@given(st.lists(st.booleans(), max_size=5))
def test_counting_counts(held: list[bool]) -> None:
    """`counted` of decided guards is the number that hold."""
    assert counted(list(held)) == sum(held)


def test_a_merge_keeps_what_agrees() -> None:
    """Parts of two trees that agree stay as they are; the rest depends on the condition."""
    fresh = OpenTrees()
    condition = fresh.tree(program("two_round_fetch.spec", "small").variables[0].type, "x")[0] >= 1
    assert merge(condition, (1, 2), (1, 3))[0] == 1
    assert plain(merge(condition, (1, 2), (1, 3))) is None
    assert plain(merge(True, (1, 2), (1, 3))) == (1, 2)


def test_conjuncts_go_through_implications() -> None:
    """`a implies (b and c)` is two conjuncts: each can be settled on its own."""
    a, b, c = Bools("a b c")
    assert len(conjuncts(Or(Not(a), And(b, c)))) == 2


def test_what_has_no_encoding_says_where(tmp_path: Path) -> None:
    """A quantifier over all offsets is refused with its place."""
    text = CHOICES.replace("forall b in bool_type: flags[b] <= end", "forall o in Offset: o >= 0 or o > end")
    found = program_of(text, tmp_path)
    assert found is not None
    with pytest.raises(Unencodable, match=r"random\.spec:\d+:\d+: .*cannot be listed"):
        Relation(found)
