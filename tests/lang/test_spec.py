"""Loading, names, types, levels and models: the facts of a checked spec, and the refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import asdict

from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.expressions import RULES
from specchk.lang.check.spec import Facts, Spec
from specchk.lang.check.types import Type, show
from specchk.lang.frontend import check, check_expression, choose_model
from specchk.lang.syntax import tree
from specchk.lang.syntax.parse import parse_expression
from specchk.lang.text.diagnostics import Diagnostic, Report, SpecError
from specchk.lang.text.source import Source

Findings = Callable[[str], tuple[Diagnostic, ...]]

BASE = """
sort Replica
const N : 1..9 = 2
type Phase = enum {idle, busy}
type Offset = 0..N
type Message = Fetch(at: Offset, by: Replica) | Ping
var phase : Phase = idle
var log : seq[Offset] upto 3 = []
var net : bag[Message] upto 2 = {}
var hw : Replica -> Offset = { r: 0 for r in Replica }
var last : Message? = none
action tick(): phase' = busy
model two:
    Replica = 2
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("1 + N * 2 // 3 % 4 - -1", "int"),
        ("hw[r1] <= 3 and not (phase == idle)", "bool"),
        ("{ r: hw[r] for r in Replica }", "Replica -> int"),
        ("{ r for r in Replica if hw[r] > 0 }", "set[Replica]"),
        ("filter r in Replica: hw[r] > 0", "set[Replica]"),
        ("choose o in Offset: o > 1", "int"),
        ("append(log, 1) ++ [2] ++ []", "seq[int]"),
        ("elements(net)", "set[Message]"),
        ("add(net, Fetch(at: 1, by: r2))", "bag[Message]"),
        ("some({ a: 1, b: none })", "{ a: int, b: ?? }?"),
        ("get(last, Ping)", "Message"),
        ("match last { some m: match m { Fetch f: f.at, Ping: 0 }, none: 1 }", "int"),
        ("if phase == busy then {} else { first }", "set[Replica]"),
        ("min(hw[r] for r in Replica) + max(1, 2, 3) + sum({ 1, 2 }) + card(Replica)", "int"),
        ("{ hw with [r1]: 1, [r2]: 2 }", "Replica -> int"),
        ("(1..3) union { 4 } - { 5 }", "set[int]"),
        ("forall b in bool: b or not b", "bool"),
        ("Fetch(at: 1, by: r1) is Ping", "bool"),
        ("subsets({ 1 })", "set[set[int]]"),
        ("(let a = 1: a + 1) in log", "bool"),
        ("1 in [] or 1 in {}", "bool"),
        ("some(1) in [none]", "bool"),
    ],
)
def test_expressions_have_the_type_that_a_reader_expects(expression: str, kind: str, here: Path) -> None:
    """Types are inferred from the parts and from the place."""
    checked = check("a.spec", BASE)
    model = choose_model(checked, "two", {})
    if "?" in kind.replace("?? }?", ""):
        pytest.fail("an example with an unknown part must say so")
    if "??" in kind or "first" in expression:
        with pytest.raises(SpecError) as caught:
            check_expression(checked, model, expression)
        assert caught.value.diagnostics[0].code in {"S303", "S201"}
    else:
        assert show(check_expression(checked, model, expression)[1]) == kind


def checks(text: str) -> Counter[int]:
    """The number of times each node of an expression is checked."""
    checked: Counter[int] = Counter()

    def count(checker: Checker, node: tree.Expr, context: Context, expected: Type | None) -> Type:
        checked[id(node)] += 1
        return RULES[type(node)](checker, node, context, expected)

    source, report = Source("counted", text), Report()
    node = parse_expression(source, report)
    assert node is not None
    Checker(Facts(), report, count).boolean(node, Context(Spec("counted", source)))
    assert not report.found
    return checked


@pytest.mark.parametrize("term", ["1", "{ 1 }", "(2 - 1)", "({ 1 } - { 2 })", "(1..2)"])
def test_each_part_of_a_chain_is_checked_once(term: str) -> None:
    """A left side that is checked twice doubles the work with each operator."""
    assert max(checks(f"{term} == {' - '.join([term] * 8)}").values()) == 1


@pytest.mark.parametrize(
    "nest", ["{{ none for x{0} in 0..1 if {1} }} == {{ some(1) }}",
             "{{ none for x{0} in 0..card({{ 1 }} union {{ 2 for y{0} in 0..1 if {1} }}) }} == {{ some(1) }}"]
)  # fmt: skip
def test_parts_of_parts_that_are_checked_again_are_not(nest: str) -> None:
    """Twice at each level would be two hundred times at the innermost."""
    text = "true"
    for level in range(8):
        text = nest.format(level, text)
    assert max(checks(text).values()) <= 4


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("hw[1]", "S301"),
        ("hw + 1", "S301"),
        ("phase < busy", "S304"),
        ("r1 <= r2", "S304"),
        ("phase == r1", "S301"),
        ("{ 1, idle }", "S301"),
        ("if true then 1 else idle", "S301"),
        ("1 == 2 or if true then true else false", "S101"),
        ("Fetch(at: 1)", "S305"),
        ("Fetch(at: 1, at: 2, by: r1) == Ping", "S202"),
        ("tick()", "S203"),
        ("len(hw)", "S301"),
        ("len(log, 1)", "S302"),
        ("hw[r3] == 1", "S201"),
        ("forall phase in Phase: true", "S208"),
        ("match last { some m: 1 }", "S306"),
        ("match last { some m: 1, none: 2, _: 3, none: 4 }", "S306"),
        ("last.at", "S301"),
        ("{ a: 1, a: 2 }.a == 1", "S202"),
        ("log.x.y == 1", "S301"),
        ("other.f(1)", "S205"),
        ("", "S101"),
        ("1 +", "S101"),
        ("1 == 1 == 1", "S101"),
        ("exists v in {}: v is Ping", "S301"),
        ("exists v in {}: 1 in v", "S301"),
        ("exists v in {}: exists w in v: true", "S301"),
        ("exists v in {}: v ++ [1] == [1]", "S301"),
        ("exists v in {}: sum(v) == 1", "S301"),
        ("{ hw } == { { v with [r1]: 1 } for v in {} }", "S301"),
    ],
)
def test_wrong_expressions_are_refused(expression: str, code: str, here: Path) -> None:
    """The first diagnostic has the code; its place is in the expression."""
    checked = check("a.spec", BASE)
    with pytest.raises(SpecError) as caught:
        check_expression(checked, choose_model(checked, "two", {}), expression)
    assert caught.value.diagnostics[0].code == code
    assert caught.value.diagnostics[0].where.startswith("expression:1:")


def test_extends_brings_all_and_imports_bring_what_reads_no_state(here: Path) -> None:
    """Extended names are unqualified, imported ones are qualified by their file's name."""
    Path("base.spec").write_text("sort R\nvar x : 0..2 = 0\naction up(): x' = 1\nmodel m:\n    R = 1\n")
    Path("log.spec").write_text("const W : int = 2\ntype T = 0..W\ndef twice(n: int): int = 2 * n\n")
    text = (
        "extends base\nimport log as l\nvar y : l.T = 0\ninvariant p: l.twice(x) <= l.W\nmodel k:\n  R = 2\n"
    )
    spec = check("a.spec", text).spec
    assert list(spec.variables) == ["x", "y"]
    assert list(spec.actions) == ["up"]
    assert list(spec.models) == ["k"]
    assert list(spec.imports["l"].defs) == ["twice"]


def test_a_file_met_twice_through_extends_counts_once(here: Path) -> None:
    """The diamond of one base."""
    Path("base.spec").write_text("var x : bool = true\n")
    Path("left.spec").write_text("extends base\n")
    Path("right.spec").write_text("extends base\n")
    assert list(check("a.spec", "extends left\nextends right\n").spec.variables) == ["x"]


@pytest.mark.parametrize(
    "lost",
    [
        "var lost : (Client -> bool = none",
        "def lost(: int = 1",
        "type Lost = enum {\n    lost, = found\n}",
        "const lost : = 3",
    ],
)
def test_a_name_whose_declaration_cannot_be_read_is_not_unknown(lost: str) -> None:
    """One mistake, one error; another unknown name is still reported."""
    text = f"sort Client\n{lost}\ninvariant i: lost == 0 and gone == 0\nmodel m:\n    Client = 2, lost = 1\n"
    with pytest.raises(SpecError) as caught:
        check("a.spec", text)
    assert [one.code for one in caught.value.diagnostics] == ["S101", "S201"]
    assert "`gone`" in caught.value.diagnostics[1].message


def test_a_file_that_is_loaded_again_is_told_of_again(here: Path) -> None:
    """Its tree is kept, not its diagnostics: errors are the same, and so are the facts of a correct one."""
    (here / "wrong.spec").write_text("spec wrong\nvar x : 0..3 = = 0\nvar y : 0..3 = 0\naction a(): y' = z\n")
    told = []
    for _ in range(2):
        with pytest.raises(SpecError) as caught:
            check("wrong.spec")
        told.append(caught.value.diagnostics)
    assert told[0] == told[1]
    assert [one.code for one in told[0]] == ["S101", "S201"]
    (here / "right.spec").write_text("spec right\n" + BASE)
    first, again = check("right.spec"), check("right.spec")
    assert first.spec == again.spec
    assert first.facts is not again.facts
    (here / "right.spec").write_text("spec right\n" + BASE.replace("tick", "tock"))
    assert "tock" in check("right.spec").spec.actions


def test_a_file_may_be_imported_under_two_names(here: Path) -> None:
    """Each name has its own facts, although the text is the same."""
    maths = "def twice(n: int): int = least(n + n)\ndef least(n: int): int = min(n, Most)\n"
    both = "import maths as one\nimport maths as two\nvar x : 0..9 = 0\n"
    (here / "maths.spec").write_text("spec maths\nconst Most : 1..9 = 2\n" + maths)
    (here / "both.spec").write_text(f"spec both\n{both}action a(): x' = one.twice(x) + two.twice(x)\n")
    found = check("both.spec")
    assert found.spec.imports["one"].defs["twice"] is not found.spec.imports["two"].defs["twice"]
    assert found.spec.imports["one"].defs["twice"] == found.spec.imports["two"].defs["twice"]


def parts(part: object) -> Iterator[object]:
    """A spec or a tree, and everything in it."""
    yield part
    inner: Iterable[object] = ()
    if isinstance(part, dict):
        inner = part.values()
    elif isinstance(part, tuple | list):
        inner = part
    elif isinstance(part, tree.Node | Spec):
        inner = asdict(part).values()
    for each in inner:
        yield from parts(each)


def test_every_fact_belongs_to_a_node_that_is_kept(here: Path) -> None:
    """A freed node would leave its facts to the next node at its address."""
    (here / "lib.spec").write_text(
        "const C : 0..9 = 3\ntype T = enum {one, two}\ndef f(n: int): int = n + C\n"
    )
    text = (
        "import lib\n" + BASE + "    lib.C = 4\nvar t : lib.T = lib.one\ninvariant p: lib.f(N) < lib.C + N\n"
    )
    checked = check("a.spec", text)
    model = choose_model(checked, "two", {"N": "lib.C - 1"})
    check_expression(checked, model, "hw[r1] < lib.C and t == lib.one and lib.f(lib.C) > 2")
    kept = {id(part) for part in parts([checked.spec, checked.facts.kept])}
    facts = checked.facts
    for table in (facts.refs, facts.types, facts.declared, facts.binders):
        assert table.keys() <= kept


def test_an_imported_definition_may_not_read_the_state(here: Path) -> None:
    """An import has no state."""
    Path("log.spec").write_text("var x : 0..2 = 0\ndef now(): int = x\n")
    with pytest.raises(SpecError) as caught:
        check("a.spec", "import log\ninvariant p: log.now() == 0\n")
    assert {d.code for d in caught.value.diagnostics} <= {"S203", "S402"}
    assert caught.value.diagnostics[0].where.startswith("log.spec:2:")


def test_errors_of_files_that_are_extended_name_those_files(here: Path) -> None:
    """All of them in one run."""
    Path("base.spec").write_text("var x : = 0\n")
    with pytest.raises(SpecError) as caught:
        check("a.spec", "extends base\nvar y : Ofset = 0\n")
    assert [d.where for d in caught.value.diagnostics] == ["a.spec:2:9", "base.spec:1:9"]


def test_a_model_takes_from_its_base_and_from_the_command_line(here: Path) -> None:
    """The nearest binding counts; expectations are not inherited."""
    text = BASE + "    N = 3\n    expect holds\nmodel three extends two:\n    Replica = 3\n"
    checked = check("a.spec", text)
    model = choose_model(checked, "three", {"N": "5"})
    assert model.members == {"Replica": ("r1", "r2", "r3")}
    assert {name: binding.value.span.text for name, binding in model.bindings.items()} == {
        "Replica": "3", "N": "5",
    }  # fmt: skip
    assert model.expects == ()
    assert choose_model(checked, None, {}).name == "two"


@pytest.mark.parametrize(
    ("model", "overrides", "code"),
    [
        ("one", {}, "S504"),
        ("two", {"M": "1"}, "S501"),
        ("two", {"N": "idle"}, "S301"),
        ("two", {"N": "1 +"}, "S101"),
        ("two", {"N": "phase"}, "S301"),
        ("two", {"Replica": "0"}, "S505"),
        ("two", {"Replica": "{a, a}"}, "S505"),
    ],
)
def test_wrong_choices_of_a_model_are_refused(
    model: str, overrides: dict[str, str], code: str, here: Path
) -> None:
    """Values from the command line are reported as such."""
    checked = check("a.spec", BASE)
    with pytest.raises(SpecError) as caught:
        choose_model(checked, model, overrides)
    assert caught.value.diagnostics[0].code == code
    assert all(d.where.startswith("--set ") for d in caught.value.diagnostics if overrides)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("var y : 0..len(log) = 0", "S402"),
        ("const K : int = len(log)", "S402"),
        ("var y : Offset = len(log)", "S402"),
        ("invariant p: phase' == idle", "S401"),
        ("reachable p: eventually phase == busy", "S403"),
        ("step invariant p: always phase' == busy", "S403"),
        ("def f(): bool = phase' == busy", "S401"),
        ("constraint p: (phase == idle)'", "S401"),
        ("deadlock ok when phase' == idle", "S401"),
    ],
)
def test_every_place_takes_expressions_up_to_its_level(line: str, code: str, findings: Findings) -> None:
    """Constants, states, steps, behaviours: as in TLA+."""
    assert [d.code for d in findings(BASE + line + "\n")] == [code]


@pytest.mark.parametrize("twice", ["N = 3", "actions tick", "properties calm"])
def test_a_model_fixes_nothing_twice(twice: str, findings: Findings) -> None:
    """The first of two lines would be lost silently, also for properties to check; a base's may change."""
    text = BASE.replace("model", "invariant calm: phase == idle\nmodel") + f"    {twice}\n"
    assert [d.code for d in findings(f"{text}model on extends two:\n    {twice}\n    Replica = 3\n")] == []
    assert [d.code for d in findings(f"{text}    {twice}\nmodel on extends two:\n    N = 4\n")] == ["S202"]


@pytest.mark.parametrize("name", ["hw", "N", "busy", "Ping", "Phase", "Replica", "safe", "r2"])
@pytest.mark.parametrize("line", ["", "scenario s on three:\n    assert phase == idle\n"])
def test_an_element_hides_no_other_value(name: str, line: str, findings: Findings) -> None:
    """Whether the name is given or generated from the sort: in a scenario it would be the element."""
    three = f"model three:\n    Replica = {{{name}, other}}\n"
    safe = "invariant safe: phase == idle\n"
    found = findings(BASE + safe + three + line)
    assert [d.code for d in found] == ([] if name == "r2" else ["S208"])
    found = findings(BASE + f"var r2 : bool = true\n{line.replace('three', 'two')}")
    assert [d.code for d in found] == ["S208"]


def test_a_word_that_continues_a_line_names_nothing(findings: Findings) -> None:
    """A statement that starts with such a name would be read as the end of the previous line."""
    assert [d.code for d in findings(BASE + "var where : bool = true\n")] == ["S105"]


@pytest.mark.parametrize(
    "line",
    [
        "step invariant p: phase' == phase or (hw[first_of()])' >= 0",
        "liveness p: phase == idle leadsto phase == busy",
        "invariant p: forall m in elements(net): m is Fetch implies len(log) >= 0",
        "constraint p: len(log) <= 2",
    ],
)
def test_what_a_place_takes_is_accepted(line: str, findings: Findings) -> None:
    """Primes in step invariants, temporal operators in liveness."""
    text = BASE.replace("model two:", "model two:\n    properties") if "liveness" in line else BASE
    text = text.replace("    properties\n", "")
    found = findings(text + "def first_of(): Replica = choose r in Replica: true\n" + line + "\n")
    assert {d.code for d in found} <= {"S601"}


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("hw'[r1_of()] = 1\n    hw'[r1_of()] = 2", ["S404"]),
        ("any r in Replica:\n        hw'[r] = 1\n        hw'[r] = 2", ["S404"]),
        ("any r in Replica: hw'[r] = 1\n    any r in Replica: hw'[r] = 2", []),
        ("any r in Replica: hw'[r] = 1\n    hw' = hw", []),
        ("when phase == idle:\n        phase' = busy\n    phase' = idle", ["S404"]),
        ("either: phase' = busy\n    or: phase' = idle", []),
    ],
)
def test_only_what_is_certainly_one_place_is_an_error(
    body: str, codes: list[str], findings: Findings
) -> None:
    """Two binders of one name are two names; possible equality is checked by the engines."""
    helper = "def r1_of(): Replica = choose r in Replica: true\n"
    assert [d.code for d in findings(f"{BASE}{helper}action a():\n    {body}\n")] == codes
