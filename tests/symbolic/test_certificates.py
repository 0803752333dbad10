"""Certificates: what they prove, what is refused, and the independence of their check from the search."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from random import Random

import cvc5
import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from sums import SPECS, spec
from zoned import program_of, search_zones

from laws.sources import ROOT
from specchk.cli.commands.recheck import command as recheck
from specchk.cli.commands.run import command as run
from specchk.ir.program import Program
from specchk.search import reference
from specchk.search.engine import Options
from specchk.search.verdict import Holds
from specchk.symbolic.certificates.checker import CertificateChecker
from specchk.symbolic.certificates.format import (
    Certificate,
    CertifiedPart,
    MalformedCertificate,
    parsed,
    read,
)
from specchk.symbolic.certificates.states import CertifiedStates
from specchk.symbolic.differences.obligations import DifferenceDecider
from specchk.symbolic.zones.certify import written
from specchk.symbolic.zones.engine import ZoneOptions

FETCH = str(ROOT / "spec" / "two_round_fetch.spec")
PROOF = str(ROOT / "spec" / "two_round_fetch_proof.spec")
ROOM = ROOT / "interp" / "specchk" / "symbolic" / "certificates"
GUARDED = """\
type Role = Idle | Busy(from: Offset)
var role : Role = Idle
var last : Offset? = none
var log : seq[Offset] upto 2 = []
var a : Offset = 0
action begin():
    require role is Idle
    role' = Busy(from: a)
action append():
    require not (role is Idle) and len(log) < 2
    log' = log ++ [a]
    a' = a + 1
action finish():
    require not (role is Idle)
    last' = some(match role { Busy b: b.from, Idle: 0 })
    role' = Idle
invariant behind: match last { some x: x <= a, none: true }
invariant ordered: forall i in 0..1: i < len(log) implies log[i] < a
"""


def fixpoint(program: Program) -> list[CertifiedPart]:
    """The parts of a search that holds."""
    parts: list[CertifiedPart] = []
    outcome = search_zones(program, ZoneOptions(symmetry=False, workers=1, on_fixpoint=parts.extend))
    assert isinstance(outcome.verdict, Holds)
    assert parts
    return parts


def problems(program: Program, parts: list[CertifiedPart]) -> list[str]:
    states = CertifiedStates(program, parts)
    return CertificateChecker(program, decider=DifferenceDecider(states)).parts(states).problems


@pytest.mark.parametrize("name", SPECS)
def test_a_fixpoint_is_proved(name, tmp_path):
    """Its zones are closed under steps, with sums and without."""
    program = program_of(spec("sums", SPECS[name][0], 3), tmp_path)
    assert problems(program, fixpoint(program)) == []


@pytest.mark.parametrize("name", [name for name in SPECS if name != "segment"])
def test_a_fixpoint_of_another_spec_is_refused(name, tmp_path):
    """The spec was changed after its certificate was written."""
    body, old, new = SPECS[name]
    parts = fixpoint(program_of(spec("sums", body, 3), tmp_path))
    assert problems(program_of(spec("sums", body.replace(old, new), 3), tmp_path), parts)


KINDS = f"spec kinds\ntype Offset = nat upto 3\n{GUARDED}deadlock ok\nmodel one:\n    expect holds\n"


def test_all_kinds_of_places_are_certified(tmp_path):
    """Offsets in a union, an option and a sequence."""
    program = program_of(KINDS, tmp_path)
    parts = fixpoint(program)
    assert problems(program, parts) == []
    assert len({part.state for part in parts}) > 4


def test_parts_are_the_same_after_they_were_written(tmp_path):
    """The parts read are those written, quotients included."""
    program = program_of(spec("sums", SPECS["half"][0], 3), tmp_path)
    before = Certificate("a.spec", "one", {"n": "2"}, ("p",), parts=tuple(fixpoint(program)))
    assert parsed(list(written(before))) == before


def number(terms, offsets: list[int]) -> int:
    """A linear form of whole numbers."""
    parts = [
        times * (offsets[p - 1] if isinstance(p, int) else (number(p[0], offsets) + p[1]) // p[2])
        for p, times in terms
    ]
    return sum(parts)


def without(random: Random, parts: list[CertifiedPart], offsets: list[int]) -> list[CertifiedPart]:
    """Parts with no state of these offsets: each that has it is left out, or a constraint is tighter."""
    found = []
    for part in parts:
        if any(number(terms, offsets) > bound for terms, bound in part.constraints):
            found.append(part)
        elif part.constraints and random.random() < 0.7:
            rows = list(part.constraints)
            row = random.randrange(len(rows))
            rows[row] = (rows[row][0], number(rows[row][0], offsets) - 1)
            found.append(replace(part, constraints=tuple(rows)))
    return found


@pytest.mark.parametrize("name", ["sum_below", "twice", "parity", "quotas", "stored_difference"])
def test_a_certificate_that_lacks_a_reachable_state_is_refused(name, tmp_path):
    """Whichever state was cut out, and how: some step leaves such a set, or it has no initial state."""
    program = program_of(spec("sums", SPECS[name][0], 4), tmp_path)
    parts, random = fixpoint(program), Random(name)
    reachable = [[n for part in state for n in (part if isinstance(part, tuple) else (part,))]
                 for state in reference_states(program)]  # fmt: skip
    for _ in range(5):
        assert problems(program, without(random, parts, random.choice(reachable)))


def reference_states(program: Program) -> list[tuple]:
    """The states that the reference reaches within the horizon."""
    engine = reference.ReferenceEngine(reference.Search(program, Options(symmetry=False)))
    reference.explore(engine)
    return list(engine.parents)


def test_a_part_that_breaks_a_property_is_refused(tmp_path):
    """Although no step leads there: the set is closed, and not safe."""
    program = program_of(spec("sums", SPECS["twice"][0], 3), tmp_path)
    everything = [CertifiedPart((None, None), ((((1, -1),), 0), (((2, -1),), 0)))]
    assert any("at_most_half" in problem for problem in problems(program, everything))


def test_a_state_in_which_nothing_can_be_done_is_refused(tmp_path):
    """If deadlocks are violations."""
    body = "var a : Offset = 0\naction up():\n    require a < 9\n    a' = a + 1\n"
    text = f"spec ends\ntype Offset = nat upto 3\n{body}model one:\n    expect holds\n"
    program = program_of(text, tmp_path)
    below = [CertifiedPart((None,), ((((1, -1),), 0), (((1, 1),), 9)))]
    assert problems(program, below) == ["nothing can be done in control part 1"]


def outcome_of(command, *args: str):
    return CliRunner().invoke(command, list(args))


@pytest.mark.parametrize(
    "options", [[FETCH, "--engine", "symbolic"], [PROOF, "--prove"], [FETCH, "--prove", "--suggest"]]
)
def test_a_run_writes_what_recheck_proves(options, tmp_path):
    """Of a search, of a proof, and of one with lemmas that were found; the verdict names the file."""
    file = str(tmp_path / "run.cert")
    done = outcome_of(run, *options, "--certificate", file)
    assert done.exit_code == 0
    assert f"(certificate: {file})" in done.stdout.splitlines()[0]
    again = outcome_of(recheck, file, "--json")
    assert again.exit_code == 0
    found = json.loads(again.stdout)
    assert (found["verdict"], found["problems"]) == ("proved", [])
    assert found["queries"] > 0


def test_a_check_by_z3_alone_has_a_query_for_each_control_part(tmp_path, monkeypatch):
    """It proves the same without the arithmetic of differences."""
    file = str(tmp_path / "run.cert")
    assert outcome_of(run, FETCH, "--engine", "symbolic", "--certificate", file).exit_code == 0
    quick = json.loads(outcome_of(recheck, file, "--json").stdout)
    monkeypatch.setattr(DifferenceDecider, "__init__", None)  # so that nothing can make one
    found = json.loads(outcome_of(recheck, file, "--json", "--only-z3").stdout)
    assert (found["verdict"], found["problems"]) == ("proved", [])
    assert found["cases"] == quick["cases"] == 2
    assert found["queries"] >= found["cases"] > quick["queries"]


STILL = """\
spec still
type Offset = nat upto 3
var a : Offset = 0
var b : 0..1 = 0
action turn():
    b' = 1 - b
invariant small: a <= 3
model one:
    expect holds
"""


@pytest.mark.parametrize(("old", "new", "message"), [
    ("a : Offset = 0", "a : Offset in Offset", "so all of them would be listed"),
    ("model one", "liveness turned: eventually b == 1\nfair turn\nmodel one", "S702"),
    ("model one", "invariant calm: b == 0\nmodel one", "`calm` fails"),
    ("model one", "step invariant calm: b' == b\nmodel one", "`calm` fails"),
])  # fmt: skip
@pytest.mark.parametrize("way", [["--engine", "symbolic"], ["--prove"]])
def test_what_was_added_to_a_spec_is_checked_too(way, old, new, message, tmp_path):
    """Also properties that neither engine would have proved; a proof by induction names its invariants."""
    file, proof = tmp_path / "still.spec", str(tmp_path / "still.cert")
    file.write_text(STILL, encoding="utf-8")
    assert outcome_of(run, str(file), *way, "--certificate", proof).exit_code == 0
    assert outcome_of(recheck, proof).exit_code == 0
    file.write_text(STILL.replace(old, new), encoding="utf-8")
    done = outcome_of(recheck, proof)
    assert done.exit_code == (21 if done.stdout else 30)
    # By induction it is a set of states, not a part, of which a step leads out.
    assert message in done.output or (way == ["--prove"] and "not listed" in done.stdout)


@pytest.mark.parametrize(("lemma", "code", "message"), [
    ("gone == 1", 30, "no name `gone`"), ("(", 30, "never closed"), ("1 + 1", 2, "not a truth value"),
    ("b == 0", 21, "refused"),
])  # fmt: skip
def test_a_lemma_that_the_spec_does_not_have_proves_nothing(lemma, code, message, tmp_path):
    """Its text is read with the present spec."""
    file, proof = tmp_path / "still.spec", tmp_path / "still.cert"
    file.write_text(STILL, encoding="utf-8")
    head = {"schema": "specchk.certificate/2", "kind": "invariants", "spec": str(file), "model": "one",
            "constants": {}, "invariants": ["small", "more"], "lemmas": {"more": lemma},
            "parts": 0}  # fmt: skip
    proof.write_text(json.dumps(head), encoding="utf-8")
    done = outcome_of(recheck, str(proof))
    assert done.exit_code == code
    assert message in done.output


def test_the_queries_are_unsatisfiable_for_another_solver(tmp_path):
    """cvc5 agrees with Z3 on each; a wrong certificate has one on which both disagree with it."""
    file, folder = str(tmp_path / "run.cert"), tmp_path / "queries"
    assert outcome_of(run, FETCH, "--engine", "symbolic", "--certificate", file).exit_code == 0
    assert outcome_of(recheck, file, "--smt-lib", str(folder)).exit_code == 0
    queries = sorted(folder.iterdir())
    assert queries
    assert {answer_of(query) for query in queries} == {"unsat"}
    certificate = read(Path(file).open("rb"))  # noqa: SIM115 - it closes the file
    less = replace(certificate, parts=certificate.parts[1:])
    (tmp_path / "less.cert").write_text("\n".join(written(less)), encoding="utf-8")
    again = tmp_path / "again"
    assert outcome_of(recheck, str(tmp_path / "less.cert"), "--smt-lib", str(again)).exit_code == 21
    assert "sat" in {answer_of(query) for query in again.iterdir()}


def answer_of(query: Path) -> str:
    """cvc5's answer for a file."""
    solver = cvc5.Solver(cvc5.TermManager())
    parser = cvc5.InputParser(solver)
    parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, str(query))
    symbols, answer = parser.getSymbolManager(), ""
    while True:
        step = parser.nextCommand()
        if step.isNull():
            return answer.strip()
        answer = step.invoke(solver, symbols) or answer


def test_what_is_violated_has_no_certificate(tmp_path):
    """No file, and the exit code of the violation."""
    file = tmp_path / "run.cert"
    lag = str(ROOT / "spec" / "examples" / "lag.spec")
    done = outcome_of(run, lag, "--model", "message_lag", "--engine", "symbolic", "--certificate", str(file))
    assert done.exit_code == 10
    assert not file.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([FETCH], "for --engine symbolic and for --prove"),
        ([FETCH, "--prove", "--k", "2"], "induction from one state"),
        (
            [FETCH, "--engine", "symbolic", "--certificate", "no/such/run.cert"],
            "run.cert cannot be written: there is no folder",
        ),
    ],
)
def test_a_certificate_of_what_has_none_is_a_usage_error(options, message, tmp_path):
    """Before anything is searched."""
    done = outcome_of(run, "--certificate", str(tmp_path / "run.cert"), *options)
    assert done.exit_code == 2
    assert message in done.stderr


HEAD = (
    '{"schema": "specchk.certificate/2", "kind": "zones", "spec": "a.spec", "model": "m", "constants": {}, '
)
HEAD += '"properties": [], "invariants": null, "lemmas": {}, "parts": 1}'
TABLES = '{"values": [[null]], "constraints": [[[[1, 1]], 0]]}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 is not a JSON object"),
        ("[1]", "line 1 is not a JSON object"),
        ('{"schema": "other"}', "no schema"),
        (HEAD, "it has 0 parts"),
        (HEAD + "\nnonsense", "line 2 is not a JSON object"),
        (HEAD + '\n{"values": [["x1"]], "constraints": []}', "line 2 is not a line of values"),
        (HEAD + '\n{"values": [[null]], "constraints": [[[[1, 1.5]], 0]]}', "line 2 is not a line of values"),
        (
            HEAD + '\n{"values": [[null]], "constraints": [[[[["//", [[1, 1]], 0, 0], 1]], 0]]}',
            "line 2 is not a line of values",
        ),
        (HEAD + '\n{"values": [4], "constraints": []}', "line 2 is not a line of values"),
        (f'{HEAD}\n{TABLES}\n{{"state": [0, 0], "parts": []}}', "line 3 is not a line of a control part"),
        (f'{HEAD}\n{TABLES}\n{{"state": [1], "parts": []}}', "line 3 is not a line of a control part"),
        (f'{HEAD}\n{TABLES}\n{{"state": [-1], "parts": []}}', "line 3 is not a line of a control part"),
        (f'{HEAD}\n{TABLES}\n{{"state": 4, "parts": []}}', "line 3 is not a line of a control part"),
        (f'{HEAD}\n{TABLES}\n{{"state": [0], "parts": [[-1]]}}', "line 3 is not a line of a control part"),
        (f'{HEAD}\n{TABLES}\n{{"state": [0]}}', "line 3 is not a line of a control part"),
        (HEAD.replace('"zones"', '"invariants"') + "\n{}", "line 2 is not a line of values"),
    ],
)
def test_a_file_that_is_no_certificate_says_where(text, message):
    """Nothing of it is trusted."""
    with pytest.raises(MalformedCertificate, match=message):
        parsed(text.splitlines())


@pytest.mark.parametrize(
    "part",
    [
        CertifiedPart((None,), ()), CertifiedPart((None, None, 0), ()), CertifiedPart((0, None), ()),
        CertifiedPart(((None,), None), ()), CertifiedPart((None, None), ((((3, 1),), 0),)),
    ],
)  # fmt: skip
def test_a_part_of_other_variables_is_no_certificate_of_a_model(part, tmp_path):
    """Each value is of its variable's type, and a constraint is on existing offsets."""
    program = program_of(spec("sums", SPECS["twice"][0], 3), tmp_path)
    with pytest.raises(MalformedCertificate):
        CertifiedStates(program, [part])


def test_a_truth_value_is_no_number(tmp_path):
    """JSON distinguishes both, and Python does not."""
    program = program_of(STILL, tmp_path)
    CertifiedStates(program, [CertifiedPart((None, 1), ())])
    with pytest.raises(MalformedCertificate):
        CertifiedStates(program, [CertifiedPart((None, True), ())])


def test_the_check_imports_nothing_of_the_search():
    """Neither zones nor trees nor engines, at any distance; and it is small enough to be read."""
    seen = reached({f"specchk.symbolic.certificates.{path.stem}" for path in ROOM.glob("[a-z]*.py")})
    wrong = ("specchk.symbolic.zones", "specchk.symbolic.joins", "specchk.symbolic.kernels",
             "specchk.symbolic.recording", "specchk.search", "specchk.native", "specchk.meaning.paths",
             "specchk.meaning.moves", "specchk.symbolic.induction.prove", "specchk.spark",
             "specchk.symbolic.differences")  # fmt: skip
    assert [name for name in sorted(seen) if name.startswith(wrong)] == []
    assert lines_in(ROOM) <= 520
    # All that a reader of the check by Z3 has to trust and that no proof by induction needs: only to shrink.
    own = seen - reached({"specchk.symbolic.induction.prove"})
    assert own >= {"specchk.symbolic.certificates.checker", "specchk.symbolic.induction.encode.shapes"}
    assert sum(len(source(name).read_text(encoding="utf-8").splitlines()) for name in own) <= 920
    # Beside it, what decides differences without Z3 if that is to be fast; tested against Z3.
    assert lines_in(ROOM.parent / "differences") <= 625


def reached(names: set[str]) -> set[str]:
    """Modules of this package that some import, at any distance, themselves included."""
    seen, left = set[str](), set(names)
    while left:
        name = left.pop()
        seen.add(name)
        if source(name).exists():
            left |= imported(source(name)) - seen
    return seen


def source(name: str) -> Path:
    return ROOT / "interp" / (name.replace(".", "/") + ".py")


def lines_in(folder: Path) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in folder.glob("*.py"))


def imported(file: Path) -> set[str]:
    """The modules of this package that a module names in its imports."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    named = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name for name in named if name.startswith("specchk.")}
