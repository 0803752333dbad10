"""Folds, and definitions with operators as parameters: all engines, compared with Python's `reduce`."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from random import Random

import pytest
from zoned import search_zones as zones

from agreement.both import differences, program_of
from specchk.compile.calls import MAX_FOLDED
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.search.engine import Options
from specchk.search.reference import search
from specchk.search.verdict import Holds, HoldsWithin, Violated
from specchk.symbolic.zones.engine import ZoneOptions

VALUES = """\
spec values
sort Node
type Colour = enum {red, green, blue}
type Offset = nat upto 3
var nums : set[0..9] = {1, 4, 7}
var line : seq[0..9] upto 4 = [5, 2, 9]
var nodes : set[Node] = Node
var colours : set[Colour] = {red, blue}
var ends : set[Offset] = {1, 3}
def minus(a: int, b: int): int = a - b
def twice(f: (int) => int, x: int): int = f(f(x))
def through(s: set[int], f: (int, int) => int): int = fold(s, 100, f)
def reversed(s: seq[int] upto 4): seq[int] upto 4 = fold(s, [], (acc, x) => [x] ++ acc)
model m:
    Node = 3
"""


def is_true(claim: str) -> bool:
    """Whether a predicate is true in the initial state."""
    text = VALUES.replace("model m:", f"invariant claim: {claim}\ndeadlock ok\nmodel m:")
    found = search(instantiate(check("values.spec", text)).program, Options())
    return isinstance(found.verdict, Holds | HoldsWithin)


REDUCED: list[tuple[str, list[int], Callable[[int, int], int], int]] = [
    ("fold(nums, 0, (acc, x) => acc * 10 + x)", [1, 4, 7], lambda acc, x: acc * 10 + x, 0),
    ("fold(line, 0, (acc, x) => acc * 10 + x)", [5, 2, 9], lambda acc, x: acc * 10 + x, 0),
    ("fold(line, 1, minus)", [5, 2, 9], lambda acc, x: acc - x, 1),
    ("fold(2..5, 1, (acc, x) => acc * x)", [2, 3, 4, 5], lambda acc, x: acc * x, 1),
    ("fold(5..2, 7, (acc, x) => acc * x)", [], lambda acc, x: acc * x, 7),
    ("fold(min(nums)..max(nums), 0, (a, x) => 2 * a - x)", list(range(1, 8)), lambda a, x: 2 * a - x, 0),
    ("fold(filter x in nums: x > 1, 3, (acc, x) => acc // 2 + x)", [4, 7], lambda acc, x: acc // 2 + x, 3),
    ("fold(ends, 0, (acc, x) => 4 * acc + x)", [1, 3], lambda acc, x: 4 * acc + x, 0),
    ("through({4, 2, 8}, minus)", [2, 4, 8], lambda acc, x: acc - x, 100),
    ("through({4, 2, 8}, (a, b) => a - twice((y) => y + b, 1))", [2, 4, 8], lambda a, b: a - 1 - 2 * b, 100),
]


@pytest.mark.parametrize(("text", "items", "operator", "start"), REDUCED, ids=[row[0] for row in REDUCED])
def test_a_fold_of_numbers_is_pythons_reduce(
    text: str, items: list[int], operator: Callable[[int, int], int], start: int
) -> None:
    """Sets are folded ascending, sequences in order."""
    assert is_true(f"{text} == {reduce(operator, items, start)}")


@pytest.mark.parametrize(
    "claim",
    [
        "reversed(line) == [9, 2, 5]",
        "fold(line, {}, (acc, x) => acc union {x}) == elements(line)",
        "fold(nodes, 0, (acc, n) => acc + 1) == card(nodes)",
        "fold(colours, none, (acc, c) => some(c)) == some(blue)",
        "fold(colours, { n: 0, last: red }, (acc, c) => { n: acc.n + 1, last: c }) == { n: 2, last: blue }",
        "fold(line, true, (acc, x) => acc and x > 1)",
        "fold(nums, 0, (acc, x) => acc + fold(line, 0, (sum, y) => sum + x * y)) == 12 * 16",
        "twice((x) => x * x, 3) == 81",
    ],
)
def test_a_fold_of_other_values(claim: str) -> None:
    """Over sequences, sets, options, records, truth values, and folds."""
    assert is_true(claim)


DOMAINS = ("nums", "line", "nodes", "Node", "colours", "min(nums, n)..3", "1..n", "filter x in nums: x < n")
STARTS = {
    "int": (
        "n",
        ("acc * 2 - {x}", "max(acc, {x}) + 1", "if acc > {x} then acc else {x} - acc", "acc % 5 + {x}"),
    ),
    "bool": ("n > 0", ("acc == ({x} > 1)", "not acc or {x} == n")),
    "set": ("nums", ("acc union {{ {x} % 4 }}", "acc - {{ {x} }}")),
    "seq": ("prefix(line, min(1, len(line)))", ("if len(acc) < 2 then append(acc, {x}) else tail(acc)",)),
    "record": ("{ a: 0, b: n }", ("{{ a: acc.b, b: ({x} + acc.a) % 4 }}",)),
}


def random_folds(random: Random) -> str:
    """A spec with folds of several types in its guards, values and invariant."""

    def a_fold(kind: str) -> str:
        start, bodies = STARTS[kind]
        domain = random.choice(DOMAINS)
        rank = "rank[x]"
        item = {"nodes": rank, "Node": rank, "colours": "(if x == red then 3 else 1)"}.get(domain, "x")
        domain = domain.replace("min(nums, n)", "min(2, n)")
        return f"fold({domain}, {start}, (acc, x) => {random.choice(bodies).format(x=item)})"

    number = [f"({a_fold('int')}) % 4" for _ in range(3)]
    record, line = a_fold("record"), random.choice(("nums", "line"))
    return f"""\
spec folds
sort Node
type Colour = enum {{red, green, blue}}
var rank : Node -> 0..3 = {{ r: 1 for r in Node }}
var n : 0..3 = 1
var nums : set[0..3] = {{1, 2}}
var line : seq[0..3] upto 2 = [1]
var nodes : set[Node] = {{}}
var colours : set[Colour] = {{green}}
def each(ok: (Node) => bool): bool = forall r in nodes: ok(r)
helper action note(value: int):
    n' = value
action count(m: Node):
    require {a_fold("bool")}
    note({number[0]})
    rank'[m] = ({a_fold("int")}) % 4
    nodes' = nodes union {{m}}
action paint(c: Colour):
    colours' = {{c}}
    nums' = {a_fold("set")} intersect (0..3)
    note({number[1]})
action shift():
    require each((r) => rank[r] >= {number[2]} or {random.choice(("n > 1", "r in nodes"))})
    line' = fold({line}, [], (acc, x) => if len(acc) < 2 then [x] ++ acc else acc)
    n' = ({record}).b % 4
invariant one: {a_fold("bool")} or n < {random.randint(1, 4)}
deadlock ok
model m:
    Node = 3
"""


def compared(seed: int, folder: Path) -> bool:
    program = program_of(random_folds(Random(seed)), folder)
    if program is None:
        return False
    assert not differences(program, symmetry=seed % 2 == 0, keep_going=seed % 3 == 0)
    return True


def test_engines_agree_on_random_folds(tmp_path: Path) -> None:
    """Native code and the reference interpreter: verdicts, counts, coverage and the lengths of traces."""
    assert sum(compared(seed, tmp_path) for seed in range(4)) >= 3


@pytest.mark.slow
def test_engines_agree_on_many_random_folds(tmp_path: Path) -> None:
    """The same for more specs."""
    assert sum(compared(seed, tmp_path) for seed in range(4, 60)) >= 40


ELECTED = """\
spec elected
sort Node
sort Other
var chosen : Node? = none
var others : set[Other] = {{}}
action choose_one():
    require chosen == none
    chosen' = {chosen}
action add(o: Other):
    others' = others union {{o}}
invariant never: {never}
deadlock ok
model m:
    Node = 3, Other = 2
"""


def elected(chosen: str, never: str) -> Program:
    return instantiate(check("elected.spec", ELECTED.format(chosen=chosen, never=never))).program


def test_symmetry_leaves_what_a_fold_distinguishes() -> None:
    """The last node differs from the others; other sorts are still renamed."""
    last = "fold(Node, none, (acc, r) => some(r))"
    program = elected(last, "chosen == none")
    found = search(program, Options())
    assert [fold.sort for fold in program.folds] == ["Node"]
    place = "elected.spec:8:15"
    assert (
        found.statistics.symmetry == f"on (2 renamings; `fold` at {place} distinguishes the elements of Node)"
    )
    assert isinstance(found.verdict, Violated)
    assert not differences(program, symmetry=True, keep_going=True)
    plain = search(program, Options(symmetry=False, keep_going=True))
    assert plain.statistics.distinct == 2 * 4
    shared = search(program, Options(symmetry=True, keep_going=True))
    assert shared.statistics.distinct == 2 * 3


def test_a_fold_over_a_sequence_distinguishes_no_element() -> None:
    """Its order is the state's."""
    program = elected("none", "fold([1, 2], 0, (acc, x) => acc + x) == 3")
    assert program.folds == ()
    assert search(program, Options()).statistics.symmetry == "on (12 renamings)"


OFFSETS = """\
spec offsets
type Offset = nat upto 2
var log : seq[Offset] upto 2 = []
var seen : set[Offset] = {}
var top : Offset = 0
action push(x: Offset):
    require len(log) < 2
    log' = append(log, x)
    top' = max(top, fold(append(log, x), 0, (acc, y) => max(acc, y)))
action pop():
    require len(log) > 0
    log' = tail(log)
action see(x: Offset):
    require fold(seen, 0, (acc, y) => max(acc, y)) <= x
    seen' = seen union {x}
invariant bound: fold(log, 0, (acc, y) => max(acc, y)) <= top
deadlock ok
model sequences:
    actions push, pop
model sets:
    actions see
"""


def test_folds_of_open_offsets_are_exact_or_refused() -> None:
    """Over a sequence any offsets may be folded; over a set those above the horizon would be left out."""
    checked = check("offsets.spec", OFFSETS)
    sequences = instantiate(checked, "sequences").program
    assert isinstance(zones(sequences, ZoneOptions(workers=1)).verdict, Holds)
    assert not differences(sequences, symmetry=False, keep_going=False)
    sets = instantiate(checked, "sets").program
    assert not differences(sets, symmetry=False, keep_going=False)
    assert sets.horizons
    with pytest.raises(SpecError) as refused:
        zones(sets, ZoneOptions(workers=1))
    assert refused.value.diagnostics[0].code == "S701"


def test_a_fold_that_is_too_long_is_refused_at_its_place() -> None:
    """A fold over too many items for a chain of applications is a diagnostic, not a slow search."""
    text = "spec wide\nvar s : set[0..{}] = {{}}\ninvariant p: fold(s, 0, (a, x) => a + x) == 0\n"
    text += "deadlock ok\nmodel m:\n    expect holds\n"
    fits = instantiate(check("wide.spec", text.format(MAX_FOLDED - 1))).program
    assert isinstance(search(fits, Options()).verdict, Holds)
    with pytest.raises(SpecError) as refused:
        instantiate(check("wide.spec", text.format(MAX_FOLDED)))
    assert refused.value.diagnostics[0].code == "S510"
    assert refused.value.diagnostics[0].span is not None
    assert refused.value.diagnostics[0].span.text == "s"


def test_a_fold_whose_numbers_grow_with_each_step_is_refused() -> None:
    """A square doubles the length of its bound; forty of them must not take forever."""
    text = "spec squares\nvar x : 0..9 = 2\naction go():\n"
    text += "    x' = fold(1..{}, x, (a, y) => if a < 4 then a * a else y % 5)\n"
    text += "model m:\n    expect holds\n"
    assert instantiate(check("squares.spec", text.format(4))).program
    with pytest.raises(SpecError) as refused:
        instantiate(check("squares.spec", text.format(40)))
    assert refused.value.diagnostics[0].code == "S510"


@pytest.mark.parametrize(
    ("start", "value", "is_typed"),
    [
        ("{}", "{acc}", False),
        ("{ a: {}, b: {} }", "{ a: {acc.b}, b: {acc.a} }", False),
        ("{}", "acc union {x}", True),
        (
            "{ a: none, b: none, c: [], d: none }",
            "{ a: acc.b, b: some(acc.c), c: append(acc.c, acc.d), d: some(x) }",
            True,
        ),
    ],
)
def test_a_fold_of_infinitely_many_types_is_refused(start: str, value: str, *, is_typed: bool) -> None:
    """Each step may refine one type; a type that grows in each step is not accepted."""
    text = "spec typed\nvar s : set[0..2] = {}\n"
    text += f"invariant p: fold(s, {start}, (acc, x) => {value}) == {start}\n"
    text += "deadlock ok\nmodel m:\n    expect holds\n"
    if is_typed:
        assert isinstance(search(instantiate(check("typed.spec", text)).program, Options()).verdict, Holds)
        return
    with pytest.raises(SpecError) as refused:
        check("typed.spec", text)
    assert [found.code for found in refused.value.diagnostics] == ["S301"]
