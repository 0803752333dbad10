"""Models: constants from bindings, defaults, bases and --set; sizes, ranges, open constants."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_texts import instance_of

from specchk.compile.instantiate import Instance, instantiate
from specchk.ir.types import Int
from specchk.ir.types import show as show_type
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.initial import initial_states
from specchk.meaning.values import show

SPEC = """\
spec sized
sort R
const N : int
const Low : 0..5 = N - 1
const boss : R = first_of
const names : set[R] = {}
const first_of : R
var x : 0..N = 0
action up():
    require x < N
    x' = x + 1
invariant small: x <= N
invariant other: true
model base:
    R = 2, N = 3, first_of = r2
model more extends base:
    N = 4, names = {r1}
model named extends base:
    R = {a, b, c}, first_of = c, boss = a
"""


def constants(instance: Instance) -> dict[str, str]:
    return {c.name: show(c.value, c.type) for c in instance.program.constants}


def refused(text: str = SPEC, model: str | None = None, **overrides: str) -> set[str]:
    """The codes with which a model is refused."""
    with pytest.raises(SpecError) as caught:
        instantiate(check("test.spec", text), model, overrides)
    return {diagnostic.code for diagnostic in caught.value.diagnostics}


def test_the_first_model_is_the_default() -> None:
    """Defaults may use other constants, in any order."""
    instance = instance_of(SPEC)
    assert instance.program.model == "base"
    assert constants(instance) == {"N": "3", "Low": "2", "boss": "r2", "names": "{}", "first_of": "r2"}


def test_a_model_overrides_its_base() -> None:
    """The bindings of `extends` apply where the model has none."""
    found = constants(instantiate(check("test.spec", SPEC), "more"))
    assert (found["N"], found["Low"], found["names"], found["first_of"]) == ("4", "3", "{r1}", "r2")


def test_a_sort_may_be_named() -> None:
    """Elements have the names that the model gives."""
    instance = instantiate(check("test.spec", SPEC), "named")
    assert instance.program.sorts[0].members == ("a", "b", "c")
    assert constants(instance)["boss"] == "a"


def test_overrides_come_on_top() -> None:
    """--set wins over the model, for numbers, sizes and elements."""
    instance = instance_of(SPEC, N="5", R="3", boss="r3")
    assert instance.program.sorts[0].members == ("r1", "r2", "r3")
    assert constants(instance) == {"N": "5", "Low": "4", "boss": "r3", "names": "{}", "first_of": "r2"}


@pytest.mark.parametrize(
    ("model", "overrides", "codes"),
    [
        (None, {"Low": "9"}, {"S503"}),
        (None, {"N": "9"}, {"S503"}),
        (None, {"N": "-1"}, {"S503"}),
        (None, {"N": "1 // 0"}, {"S511"}),
        (None, {"N": "true"}, {"S301"}),
        (None, {"N": "x"}, {"S402"}),
        (None, {"N": "("}, {"S103"}),
        (None, {"M": "3"}, {"S501"}),
        (None, {"R": "0"}, {"S505"}),
        (None, {"R": "33"}, {"S505"}),
        (None, {"R": "1"}, {"S201"}),
        ("bases", {}, {"S504"}),
    ],
)
def test_a_wrong_constant_or_model_is_refused(
    model: str | None, overrides: dict[str, str], codes: set[str]
) -> None:
    """Out of range, without value, of another type, unknown, unreadable, a sort too small or large."""
    assert refused(SPEC, model, **overrides) == codes


def test_a_constant_left_open_is_refused() -> None:
    """A model fixes every constant without a default, and sizes every sort."""
    assert refused(SPEC.replace("N = 3, ", "")) == {"S502"}
    assert refused(SPEC.replace("R = 2, ", "")) >= {"S502"}


def test_constants_that_depend_on_each_other_are_refused() -> None:
    """A circle of defaults has no values."""
    assert refused("spec c\nconst A : int = B\nconst B : int = A\nmodel m:\n    expect holds\n") == {"S508"}


BOUNDS = """\
spec bounds
sort R
type Offset = nat upto 3
const Names : set[0..9] = {2, 3, 5}
def half(n: int): int = n // 2
def own(): int = card(Own)
def far(): int = if 7 in Offset then 2 else 1
type Own = 0..1
type Cell = { at: 0..card(R) }
var x : BOUND = 0
action stay():
    skip
model m:
    R = 5
"""


@pytest.mark.parametrize(
    ("bound", "ends"),
    [
        ("0..card(R)", (0, 5)), ("0..half(card(R))", (0, 2)), ("-half(3)..9" , None),
        ("0..max(half(9), card(Names)) - 1", (0, 3)), ("0..(card(R) + 1) * 2 // 5 % 4", (0, 2)),
        ("0..card(bool)", (0, 2)), ("0 - len(Names)..1", None), ("0..sum(Names)", (0, 10)),
        ("nat upto card(Names)", (0, 3)),
    ],
)  # fmt: skip
def test_a_bound_is_computed_from_constants(bound: str, ends: tuple[int, int] | None) -> None:
    """Arithmetic, built-in functions, definitions and sets of the model; anything else is refused."""
    text = BOUNDS.replace("BOUND", bound)
    if ends is None:
        assert refused(text) <= {"S101", "S301"}
        return
    kind = instance_of(text).program.variables[0].type
    assert isinstance(kind, Int)
    assert (kind.low, kind.high) == ends


@pytest.mark.parametrize(
    ("bound", "code"),
    [("0..card(Offset)", "S503"), ("0..2 * half(max(1, card(Offset)))", "S503"), ("0..half(x)", "S402"),
     ("0..nothing(3)", "S201"), ("0..half(1, 2)", "S302"), ("0..card(Names) - 9", "S503"),
     ("0..far()", "S503")],
)  # fmt: skip
def test_a_bound_that_is_no_constant_number_is_refused(bound: str, code: str) -> None:
    """The end of a horizon, the state, unknown names, an empty range."""
    assert refused(BOUNDS.replace("BOUND", bound)) == {code}


@pytest.mark.parametrize(
    "value",
    ["card(Offset)", "max(Offset)", "if far() then 3 else 2", "if 7 in Offset then 3 else 2", "Half * 2",
     "max(k for k in Offset if k < 3)", "card({ o for o in Offset })"],
)  # fmt: skip
@pytest.mark.parametrize("given", ["default", "model"])
def test_a_constant_that_depends_on_the_end_of_a_horizon_is_refused(value: str, given: str) -> None:
    """It would be a plain number: a proof for unbounded offsets would hold for one horizon only."""
    default, binding = (f" = {value}", "N = 3") if given == "default" else ("", f"N = 3, K = {value}")
    text = f"""\
spec horizons
const N : int
type Offset = nat upto N
def far(): bool = 7 in Offset
const Half : int = card(Offset) // 2
const K : int{default}
var n : 0..9 = 0
action count():
    when n < K:
        n' = n + 1
invariant few: n < 5
model m:
    {binding}
"""
    assert refused(text) == {"S503"}


def test_a_bound_that_needs_its_own_type_is_refused() -> None:
    """No endless computation."""
    text = BOUNDS.replace("Own = 0..1", "Own = 0..own()").replace("BOUND", "0..card(Own)")
    assert refused(text) == {"S508"}


def test_a_property_can_be_selected() -> None:
    """--property keeps only the selected ones, and an unknown one is refused with the nearest name."""
    checked = check("test.spec", SPEC)
    program = instantiate(checked, properties=["small"]).program
    assert [p.name for p in program.invariants] == ["small"]
    assert program.left_out == ("other",)
    with pytest.raises(SpecError, match="no property `smal`"):
        instantiate(checked, properties=["smal"])


KEYED = """\
spec keyed
const N : int
const Given : 0..1 -> 0..3 = {{ 0: 2, 1: 3 }}
const Other : {keys} -> 0..3 = {const}
var p : 0..1 -> 0..3 = {{ k: k for k in 0..1 }}
var q : {keys} -> 0..9 = {start}
var b : bool = true
action go():
    {action}
invariant claim: {claim}
model only:
    N = 1
"""


def keyed(keys: str, **parts: str) -> str:
    other = f"{{ k: 0 for k in {'0..N' if 'upto' in keys else keys} }}"
    return KEYED.format(keys=keys, **{"const": other, "start": other, "action": "skip", "claim": "b"} | parts)


@pytest.mark.parametrize(
    "part",
    [
        {"action": "q' = p"}, {"action": "q' in {p}"}, {"action": "b' = p == q"}, {"start": "Given"},
        {"action": "p' = if b then p else q"}, {"const": "Given"}, {"claim": "p != q"},
        {"claim": "q in {p}"}, {"claim": "{p} subset {q}"}, {"claim": "card({p} intersect {q}) == 0"},
        {"claim": "card({p} - {q}) == 1"}, {"claim": "card({p, q}) == 2"}, {"claim": "q in [p]"},
        {"claim": "some(p) == some(q)"}, {"claim": "{ x: p } == { x: q }"},
        {"claim": "(match some(p) { some m: m, none: q })[1] == 1"}, {"claim": "get(some(p), q)[1] == 1"},
        {"claim": "len(append([p], q)) == 2"}, {"claim": "[p] ++ [q] == []"},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("keys", ["1..2", "0..2", "-1..N"])
def test_maps_with_different_keys_are_of_different_types(keys: str, part: dict[str, str]) -> None:
    """They have no value in common, though they may have as many keys; equal ranges are one type."""
    assert refused(keyed(keys, **part)) == {"S301"}
    for same in ("0..1", "0..N", "nat upto N"):
        instantiate(check("test.spec", keyed(same, **part)))


def test_an_action_with_too_many_instances_is_refused() -> None:
    """Parameters are enumerated in each state, so there is a limit."""
    wide = "action wide(a: 0..9999, b: 0..9999):\n    skip\n"
    assert refused(SPEC.replace("invariant small", f"{wide}invariant small")) == {"S510"}


@pytest.mark.parametrize("place", ["const", "=", "in", "model", "action"])
def test_a_constant_may_bind_any_number_of_names(place: str) -> None:
    """Each use of a definition binds names of its own, wherever it is evaluated."""
    many = " + ".join(["g()"] * 24)
    used = {"const": "0", "=": "= 0", "model": "0", "action": "skip"}
    used |= {
        place: {"=": f"= {many}", "in": f"in {{{many}}}", "action": f"require x in 0..{many}"}.get(
            place, many
        )
    }
    text = f"""spec many
def f(a: int): int = let b = a + 1: let c = b + a: c
def g(): int = {" + ".join(["f(0)"] * 25)}
const C : int = {used["const"]}
const D : int
var x : 0..600 {used.get("in", used["="])}
action go():
    {used["action"]}
model only:
    D = {used["model"]}
"""
    program = instance_of(text).program
    assert constants(instance_of(text)) == {
        "C": "600" if place == "const" else "0",
        "D": "600" if place == "model" else "0",
    }
    assert initial_states(program) == [(600 if place in ("=", "in") else 0,)]


def test_expressions_asked_one_after_another_are_told_apart() -> None:
    """Facts about a discarded expression are never used for a new one (REPL, --set)."""
    checked = check("test.spec", SPEC)
    for number in range(200):
        text = f"{{r1, r2}} - {{r{number % 2 + 1}}}"
        found = constants(instantiate(checked, None, {"names": text, "N": f"{number % 3} + 2"}))
        assert found["names"] == f"{{r{2 - number % 2}}}"
        assert found["N"] == str(number % 3 + 2)


@pytest.mark.parametrize("expression", [
    "[{}, net]", "{{}, net}", "append([{}], net)", "get(some({}), net)",
    "match on { none: {}, some x: net }", "{ { k: 1, z: {} }, { k: 2, z: net } }",
])  # fmt: skip
def test_what_comes_first_has_the_type_of_what_follows(expression: str, tmp_path: Path) -> None:
    """An empty bag is written like an empty set; the program is legal, and both are compared as bags."""
    file = tmp_path / "bags.spec"
    file.write_text(f"""spec bags
var net : bag[0..3] upto 2 = {{}}
type Bit = 0..1
var on : Bit? = none
action go(): net' = {{1}}
invariant same: ({expression}) == ({expression})
model m:
    expect holds
""", encoding="utf-8")  # fmt: skip
    assert instantiate(check(str(file)), "m").program.invariants


WRITTEN = """\
spec written
sort R
const N : int
const Size : {{ low: 0..9, high: 0..9 }}
var x : {kind}
init: true
deadlock ok
model m:
    R = 2, N = 3, Size = {{ low: 1, high: 4 }}
"""


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("(R -> bool)?", "(R -> bool)?"),
        ("((R -> 0..1)?)?", "(R -> 0..1)??"),
        ("((0..N)?)", "0..3?"),
        ("(0..1) -> (0..N)", "0..1 -> 0..3"),
        ("R -> (bool -> (0..1))", "R -> bool -> 0..1"),
        ("(bool -> bool) -> bool", "(bool -> bool) -> bool"),
        ("((0..1), (R -> bool)?)", "(0..1, (R -> bool)?)"),
        ("set[(N - 1)..(N)]", "set[2..3]"),
        ("(N)..(2 * (N))", "3..6"),
        ("Size.low..Size.high", "1..4"),
        ("0..(Size.high - Size.low) * N", "0..9"),
        ("seq[0..1] upto max(Size.low, N)", "seq[0..1] upto 3"),
        ("{ a: (0..1), b: (R?) }", "{ a: 0..1, b: R? }"),
    ],
)
def test_a_type_may_be_in_parentheses_and_a_bound_a_field(kind: str, shown: str) -> None:
    """They are shown where another type would otherwise be read."""
    text = WRITTEN.format(kind=kind)
    (variable,) = instantiate(check("written.spec", text)).program.variables
    assert show_type(variable.type) == shown


@pytest.mark.parametrize(
    ("bound", "code"), [("Size.other", "S305"), ("N.low", "S301"), ("Sizes.low", "S201")]
)
def test_a_bound_is_a_field_of_a_constant_that_has_it(bound: str, code: str) -> None:
    """Anything else is an error of the bound alone."""
    assert refused(WRITTEN.format(kind=f"bool\nvar y : 0..{bound}")) == {code}


@pytest.mark.parametrize(("others", "horizons"), [
    ("", ("x upto 3",)),
    ("var y : nat upto 3 = 0\nvar z : nat upto 4 = 0", ("x and y upto 3", "z upto 4")),
    ("type S = nat upto 3\nvar y : S? = none\nvar z : seq[S] upto 2 = []", ("x and 2 more upto 3",)),
    ("const N : int = 3\nvar y : nat upto N = 0", ("x upto 3", "N=3")),
])  # fmt: skip
def test_a_number_as_a_horizon_is_named_by_what_it_bounds(others: str, horizons: tuple[str, ...]) -> None:
    """A constant has a name of its own."""
    rest = "action up():\n    x' = x + 1\nmodel m:\n    expect holds\n"
    text = f"spec a\nvar x : nat upto 3 = 0\n{others}\n{rest}"
    assert instantiate(check("a.spec", text)).program.horizons == horizons
