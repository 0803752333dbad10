"""Kernels: they compute the same as the lists, or refuse."""

from __future__ import annotations

import ast
import ctypes
import inspect
from array import array
from functools import cache
from itertools import chain
from random import Random
from textwrap import dedent
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from offset_specs import offset_spec
from zone_lists import closed, zone_at
from zone_lists import cut as cut_lists
from zone_lists import joined as joined_lists
from zoned import program_of

from specchk.codegen import functions
from specchk.codegen.arrays import Words
from specchk.codegen.functions import NotAKernel, module_of
from specchk.codegen.objects import initialize, linked, optimised, quick
from specchk.meaning.paths import FREE, NotSymbolic, assuming
from specchk.search.budget import Budget
from specchk.symbolic.joins.engine import JoinOptions, search
from specchk.symbolic.kernels import loading, matrices
from specchk.symbolic.kernels.matrices import CAP
from specchk.symbolic.zones.concrete import Taken
from specchk.symbolic.zones.expand import Expander
from specchk.symbolic.zones.images import Buffer, Images
from specchk.symbolic.zones.leaves import Effect
from specchk.symbolic.zones.zones import Reach, cut, joined
from specchk.symbolic.zones.zones import zone_at as zone_by_kernel

SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
PLACES = 5
NUMBERS = st.one_of(
    st.integers(-3, 3), st.sampled_from([CAP, -CAP, CAP + 1, CAP - 1, 1 - CAP, 1 << 57, -1 << 57, CAP // 2])
)
CONSTRAINTS = st.lists(st.tuples(st.integers(0, PLACES), st.integers(0, PLACES), NUMBERS), max_size=8)
AT = st.lists(st.tuples(st.integers(0, PLACES), st.integers(-2, 2)), min_size=4, max_size=6)
REACHES = st.sampled_from([Reach(0, 1), Reach(1, 3), Reach(31, 63)])


def matrix_of(constraints):
    """The closed matrix of some constraints; None if they have no solutions."""
    rows = [[0 if i == j else FREE for j in range(PLACES + 1)] for i in range(PLACES + 1)]
    rows[0] = [0] * (PLACES + 1)
    for i, j, bound in constraints:
        rows[i][j] = min(rows[i][j], bound)
    rows = closed(rows)
    return rows if all(rows[i][i] == 0 for i in range(PLACES + 1)) else None


def matrices_of(*constraints):
    """The same for examples, all of which must have solutions."""
    rows = [matrix_of(some) for some in constraints]
    assume(None not in rows)
    return rows


def words_of(rows):
    return array("q", chain.from_iterable(rows))


def is_large(zone):
    """Whether a zone has numbers that kernels may refuse."""
    numbers = [*chain.from_iterable(zone.bounds), *chain.from_iterable(zone.classes)]
    return any(abs(number) > CAP and number != FREE for number in numbers)


def result(call, *args):
    """The result of a call; None if its numbers are refused."""
    try:
        return call(*args)
    except NotSymbolic:
        return None


def law_of_images(kernels, rows, images, reach):
    """The least zone after a step, of all of its renamings."""
    size = len(rows)
    effect = Effect((), 0, Taken(0, (), ("shape",)), (), tuple(images))
    classes = [(place, place % 2) for place in range(size)]
    work = Buffer(1000)
    work.words[: size * size] = words_of(rows)
    work.words[size * size : size * size + 2 * size] = array("q", chain.from_iterable(classes))
    found = Images(kernels, work).zone(effect, (0, size, size * size, size), reach)
    if found is None:
        # Refused: sums of a number beyond the cap, and nothing else.
        return any(abs(bound) > CAP - 8 for row in rows for bound in row if bound < FREE)
    places = [[(s, s % 2 + d) for s, d in image] for image in images]
    zones = [zone_at(("shape",), at, rows, reach) for at in places]
    if result(zone_by_kernel, ("shape",), places[0], rows, reach) != zones[0]:
        return False
    return found == min(zones, key=lambda zone: (zone.classes, zone.bounds))


def law_of_hulls(one, other):
    found, expected = result(joined, one, other), joined_lists(one, other)
    if found is None:
        return any(map(is_large, (one, other, expected)))
    return found == expected and (found is one) == (expected is one)


def law_of_parts(zone, i, j, bound):
    size = len(zone.bounds)
    i, j = i % size, j % size
    if i == j or zone.bounds[j][i] < -bound or zone.bounds[i][j] <= bound:
        return True
    found = result(cut, zone, i, j, bound)
    if found is None:
        rows = assuming(zone.bounds, i, j, bound)
        return (
            is_large(zone) or abs(bound) > CAP or any(abs(b) > CAP for row in rows for b in row if b < FREE)
        )
    return found == cut_lists(zone, i, j, bound)


FAR = [(1, 2, -1 << 62), (3, 4, -1 << 62)]


def test_a_part_whose_numbers_have_more_than_64_bits_is_refused():
    """If a sum would overflow."""
    with pytest.raises(NotSymbolic, match="beyond 2\\^50"):
        cut(far_zone(matrix_of(FAR), [(n, 0) for n in range(1, 5)]), 2, 3, -1)


def far_zone(rows, at):
    return zone_at((), at, rows, None)


@settings(max_examples=300, deadline=None)
@given(constraints=CONSTRAINTS, images=st.lists(AT, min_size=1, max_size=3), reach=REACHES)
def test_the_zone_after_a_step_is_that_of_lists(constraints, images, reach):
    """Projected, forgotten, closed, classes named; the least of its renamings; others are refused."""
    count = min(map(len, images))
    (rows,) = matrices_of(constraints)
    assert law_of_images(loading.compiled(), rows, [tuple(one[:count]) for one in images], reach)


@settings(max_examples=300, deadline=None)
@given(first=CONSTRAINTS, second=CONSTRAINTS, at=AT)
def test_the_hull_of_two_zones_is_that_of_lists(first, second, at):
    """The same zone, and the first one itself where it contains the other."""
    one, other = [far_zone(rows, at) for rows in matrices_of(first, second)]
    assert law_of_hulls(one, other)


@settings(max_examples=300, deadline=None)
@given(constraints=CONSTRAINTS, at=AT, i=st.integers(0, 9), j=st.integers(0, 9), bound=NUMBERS)
def test_a_part_of_a_zone_is_that_of_lists(constraints, at, i, j, bound):
    """On one side of a comparison that the zone leaves open."""
    (rows,) = matrices_of(constraints)
    assert law_of_parts(far_zone(rows, at), i, j, bound)


def by_python(program, **options):
    """As `outcome`, of a search that walks decision trees in Python."""
    with patch.object(Expander, "_is_quick", lambda *_: False):
        return outcome(program, **options)


def outcome(program, join_after=3, **options):
    """All that a search reports, except its time."""
    # Not more: where a set of offsets grows, as with seed 1344, 200 states take ten times as long as 100.
    found = search(program, JoinOptions(Budget(max_states=100), workers=1, join_after=join_after, **options))
    return replace(found, statistics=replace(found.statistics, seconds=0.0))


@settings(max_examples=12, suppress_health_check=SHARED, deadline=None)
@given(seed=st.integers(0, 10**9), keep_going=st.booleans())
def test_a_search_by_kernels_is_that_of_python(seed, keep_going, tmp_path):
    """Random specs: the same verdict, traces, coverage, and counts of zones, hulls, forks and answers."""
    program = program_of(offset_spec(Random(seed)), tmp_path)
    assert outcome(program, keep_going=keep_going) == by_python(program, keep_going=keep_going)


@pytest.mark.system
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bound > upper", "bound >= upper"),
        ("known == -rows[at + there * size + i]", "known == 0"),
        ("far > known", "far >= known"),
        ("near + far < rows[row + b]", "near + far > rows[row + b]"),
        ("work[at + 1] - work[at + 3] == d - f", "d == d"),
        ("out[HEAD + 2 * n + 1] += zone[HEAD + 2 * n + 1]", "pass"),
        ("bound >= -CAP and", "bound >= -CAP or"),
    ],
)
def test_a_planted_bug_in_a_kernel_is_noticed(old, new, monkeypatch):
    """By one of the laws, on some random example."""
    kernels = planted(old, new, monkeypatch)
    monkeypatch.setattr("specchk.symbolic.zones.zones.compiled", lambda: kernels)
    assert any(not law() for law in examples(kernels, Random(4)))


def examples(kernels, random):
    # The sum of three of its numbers has more than 64 bits.
    yield lambda: result(cut, far_zone(matrix_of(FAR), [(n, 0) for n in range(1, 5)]), 2, 3, -1) is None
    for _ in range(1500):
        rows = [random_matrix(random), random_matrix(random)]
        if None in rows:
            continue
        at = [(random.randint(0, PLACES), random.randint(-2, 2)) for _ in range(5)]
        images = [tuple(at), tuple(at[::-1])]
        one, other = far_zone(rows[0], at), far_zone(rows[1], at)
        yield lambda: law_of_images(kernels, rows[0], images, Reach(1, 2))  # noqa: B023 - called at once
        yield lambda: law_of_hulls(one, other)  # noqa: B023
        i, j, bound = random.randint(0, 4), random.randint(0, 4), random.choice([-1, 0, 1, CAP])
        yield lambda: law_of_parts(one, i, j, bound)  # noqa: B023


def random_matrix(random):
    numbers = [-2, -1, 0, 1, 2, CAP, 1 << 57] if random.random() < 0.2 else [-2, -1, 0, 1, 2]
    pairs = [random.sample(range(PLACES + 1), 2) for _ in range(7)]
    return matrix_of([(i, j, random.choice(numbers)) for i, j in pairs])


def planted(old, new, monkeypatch):
    """The kernels with another line, compiled and not kept."""
    changed = []
    loading.compiled()  # those without the bug, which are kept

    def definition(function):
        text = dedent(inspect.getsource(function))
        changed.append(old in text)
        return ast.parse(text.replace(old, new)).body[0]

    monkeypatch.setattr(functions, "_definition", definition)
    text = loading.text()
    assert any(changed)
    initialize()
    return loading.loaded(quick(text))  # the same answers, sooner: whether code is optimised is not the claim


# Two zones of one control part: the first has something to do everywhere, the second in a part only.
REST_IN_A_PART = """\
spec rests
type Offset = nat upto 3
var a : Offset = 0
var b : Offset = 0
var at : 0..2 = 0
action wait():
    require at == 0
    at' = 1
action draw_busy():
    any p in Offset:
        any q in Offset:
            require at == 0 and {busy}
            a' = p
            b' = q
            at' = 2
action draw():
    any p in Offset:
        any q in Offset:
            require at == 1
            a' = p
            b' = q
            at' = 2
action go():
    require at == 2 and {guard}
    b' = {after}
"""
# A step is possible where the answer to a question is yes, or where it is no.
PARTS = [REST_IN_A_PART.format(busy="p < q", guard="a < b", after="b + 1"),
         REST_IN_A_PART.format(busy="p >= q", guard="not (a < b)", after="b")]  # fmt: skip


@pytest.mark.parametrize("text", PARTS, ids=["yes", "no"])
def test_a_part_of_a_zone_in_which_nothing_is_possible_is_a_deadlock(text, tmp_path):
    """Though a kernel finds a step in the other part; it must not assume one in all of it."""
    program = program_of(text, tmp_path)
    found = outcome(program)
    assert [violation.kind for violation in found.verdict.violations] == ["deadlock"]
    assert found == by_python(program)


@pytest.mark.system
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if not job[ASSUMED]:", "if job[ASSUMED] >= 0:"),
        ("push(job, job[AT], room, 1)", "push(job, job[AT], room, 0)"),
        ("job[ASSUMED] = 1", "job[ASSUMED] = 0"),
        ("work[rows + j * size + i] < -bound:", "work[rows + j * size + i] <= -bound:"),
        ("j, i, -bound - 1", "j, i, -bound"),
        ("job[FORKS] += other", "pass"),
        ("== (flags & WANTED)", "!= (flags & WANTED)"),
    ],
)
def test_a_planted_bug_in_the_walk_is_noticed(old, new, monkeypatch, in_python):
    """Some random spec has another outcome."""
    kernels = planted(old, new, monkeypatch)
    monkeypatch.setattr("specchk.symbolic.zones.compiled.compiled", lambda: kernels)
    texts = chain(PARTS, (offset_spec(Random(seed)) for seed in range(30)))
    assert any(_differs(*in_python(text)) for text in texts)


@pytest.fixture(scope="module")
def in_python(tmp_path_factory):
    """A spec's program, and the outcome of a walk in Python, in whose code no bug is planted."""
    folder = tmp_path_factory.mktemp("python")

    @cache
    def searched(text):
        program = program_of(text, folder)
        return program, by_python(program)

    return searched


def _differs(program, expected):
    try:
        return outcome(program) != expected
    except Exception:
        return True


def test_kernels_may_be_run_as_they_are():
    """A kernel is a Python function, and computes the same in Python as compiled."""
    rows = matrix_of([(1, 2, -1), (3, 1, 2)])
    words = words_of(rows)
    assert matrices.assume(words, 0, PLACES + 1, 2, 3, 0) == 0
    assert words == words_of(assuming(rows, 2, 3, 0))


def _twice(words: Words, count: int) -> int:
    total = 0
    for at in range(1, count):
        if words[at] == 7:
            continue
        while words[at] > 0 and not total > 100:
            words[at] -= 1
            total += 2 if at < 3 or words[at] == 1 else 1
        if total > 50:
            break
    return total


def test_python_and_its_translation_agree():
    """Statements of all kinds that kernels may have."""
    initialize()
    code = linked(optimised(str(module_of([_twice], ["_twice"]))), ["_twice"])
    compiled = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(code.at["_twice"])
    random = Random(2)
    for _ in range(100):
        numbers = [random.randint(-2, 30) for _ in range(8)]
        one, other = array("q", numbers), array("q", numbers)
        assert _twice(one, 8) == compiled(other.buffer_info()[0], 8)
        assert one == other


def _divides(a: int) -> int:
    return a // 2


def test_what_no_kernel_may_have_is_refused():
    """Division, which rounds differently in LLVM."""
    with pytest.raises(NotAKernel):
        module_of([_divides], ["_divides"])


def test_a_number_of_more_than_64_bits_is_refused():
    """A zone has 64-bit words; with a larger number it is not a zone."""
    with pytest.raises(NotSymbolic, match="beyond"):
        zone_by_kernel((), [(1, 0)], [[0, 1 << 63], [FREE, 0]], None)
