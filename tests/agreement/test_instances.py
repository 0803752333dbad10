"""Imports that give constants and sorts: an instance equals the library written out, on all engines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agreement.both import differences
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.search.engine import Options
from specchk.search.reference import search
from specchk.symbolic.joins.engine import JoinOptions
from specchk.symbolic.joins.engine import search as symbolic

LIBRARY = """\
spec lib
sort Node
const Most : int
const Least : 0..9 = Most - 1
const weight : Node -> 0..3 = { n: 1 for n in Node }
type Path = seq[Node] upto Most
type Step = On(at: Node) | Off
assume: Most > 0
def put(p: Path, n: Node): Path = if len(p) == Most then tail(p) ++ [n] else append(p, n)
def heavy(p: Path): bool = fold(p, 0, (acc, n) => acc + weight[n]) > Least
def all(): set[Node] = Node
def count(s: set[Node]): int decreases s = if s == {} then 0 else 1 + count(s - {choose n in s: true})
"""

USER = """\
spec user
import lib with {{ {given} }}
sort Town
type Digit = 0..2
type Kind = enum {{ near, far }}
type Trip = {{ to: Kind, days: 0..1 }}
const Limit : int
var path : lib.Path = []
var step : lib.Step = lib.Off
action go(n: lib.Node):
    require step is Off or not lib.heavy(path)
    path' = lib.put(path, n)
    step' = lib.On(at: n)
action rest():
    step' = lib.Off
invariant short: len(path) <= Limit + 1 and elements(path) subset lib.all()
invariant counted: lib.count(elements(path)) == card(elements(path))
reachable heavy: lib.heavy(path)
model m:
    Town = 3, Limit = 1
"""

GIVEN = {
    "a sort": "Node = Town, Most = Limit + 1",
    "a range": "Node = Digit, Most = 2",
    "an enum": "Node = Kind, Most = Limit, Least = 0",
    "records, and a map": "Node = Trip, Most = 2, weight = { t: 2 * t.days for t in Trip }",
}


def program_with(folder: Path, given: str, **files: str) -> Program:
    (folder / "lib.spec").write_text(LIBRARY)
    file = folder / "user.spec"
    file.write_text(files.get("user", USER).format(given=given))
    return instantiate(check(str(file))).program


def written_out(given: str) -> str:
    """The spec with the library's text in place of the import, renamed as by the import."""
    types = dict(re.findall(r"(Node|Most|Least) = (\w+(?: \+ 1)?)", given))
    weight = re.search(r"weight = (.*)", given)
    text = LIBRARY.split("\n", 2)[2].replace("const Most : int\n", "")
    text = re.sub(r"const Least.*\n", f"const Least : 0..9 = {types.get('Least', 'Most - 1')}\n", text)
    if weight:
        text = re.sub(r"(const weight : \S+ -> \S+ =).*\n", rf"\1 {weight[1]}\n", text)
    text = re.sub(r"\bNode\b", types["Node"], f"const Most : int = {types['Most']}\n{text}")
    user = re.sub(r"import lib.*\n", "", USER.format(given="")).replace("lib.Node", types["Node"])
    return (
        user.replace("lib.", "")
        .replace("var path", f"{text}var path", 1)
        .replace("reachable heavy", "reachable h")
    )


@pytest.mark.parametrize("case", GIVEN)
def test_an_instance_is_the_library_written_out(case: str, tmp_path: Path) -> None:
    """The same states, transitions, levels and verdict, on each engine."""
    program = program_with(tmp_path, GIVEN[case])
    alone = instantiate(check("written.spec", written_out(GIVEN[case]))).program
    options = Options(symmetry=False, keep_going=True)
    here, there = search(program, options), search(alone, options)
    assert here.statistics.distinct == there.statistics.distinct > 3
    assert here.statistics.generated == there.statistics.generated
    assert here.statistics.levels == there.statistics.levels
    assert type(here.verdict) is type(there.verdict)
    assert not differences(program)
    assert type(symbolic(program, JoinOptions(workers=1)).verdict) is type(here.verdict)


def test_two_instances_of_a_file_have_values_of_their_own(tmp_path: Path) -> None:
    """And a third one is fixed by the model."""
    (tmp_path / "lib.spec").write_text(LIBRARY)
    file = tmp_path / "user.spec"
    file.write_text("""\
spec user
import lib as two with { Node = Digit, Most = 2 }
import lib as four with { Node = Digit, Most = two.Most * 2 }
import lib
type Digit = 0..1
var x : bool = true
invariant own: two.Most == 2 and four.Most == 4 and lib.Most == 3 and two.Least == 1 and four.Least == 3
invariant types: two.put([0, 1], 1) == [1, 1] and four.put([0, 1], 1) == [0, 1, 1] and card(lib.all()) == 5
deadlock ok
model m:
    lib.Node = 5, lib.Most = 3
""")
    program = instantiate(check(str(file))).program
    assert not differences(program)
    assert {one.name for one in program.sorts} == {"lib.Node"}
    assert search(program, Options()).statistics.distinct == 1


@pytest.mark.parametrize(
    ("given", "model", "codes"),
    [
        ("Node = Town, Most = 2, Other = 3", "", {"S201"}),
        ("Node = Town, Most = 2, Most = 3", "", {"S202"}),
        ("Node = 3, Most = 2", "", {"S605"}),
        ("Node = {1, 2}, Most = 2", "", {"S605"}),
        ("Node = Towns, Most = 2", "", {"S201", "S605"}),
        ("Node = Town, Most = true", "", {"S301"}),
        ("Node = Town, Most = len(path)", "", {"S402"}),
        ("Node = Town, Most = 2", ", lib.Most = 2", {"S501"}),
        ("Node = Town, Most = 2", ", lib.Node = 2", {"S501"}),
        ("Node = Town", "", {"S502"}),
        ("Most = 2", "", {"S502"}),
        ("Node = Town, Most = 0 - Limit", "", {"S503"}),
        ("Node = Town, Most = 1, Least = 70", "", {"S503"}),
        ("Node = Town, Most = card(elements(lib.put([], none)))", "", {"S301"}),
        ("Node = Town, Most = lib.Least + 1", "", {"S508"}),
    ],
)
def test_what_an_import_cannot_give_is_refused(
    given: str, model: str, codes: set[str], tmp_path: Path
) -> None:  # fmt: skip
    """At the binding, or at the model that gives another value."""
    with pytest.raises(SpecError) as refused:
        program_with(tmp_path, given, user=USER.replace("Limit = 1", f"Limit = 1{model}"))
    assert {found.code for found in refused.value.diagnostics} == codes
