"""Lemmas that are found: with them the proof succeeds, each is needed, and none of them is false."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from agreement.open_specs import open_spec
from seeded import few_of
from specchk.cli.commands.run import command
from specchk.compile.instantiate import Instance, instantiate
from specchk.ir.program import Program, Property
from specchk.ir.types import BOOL
from specchk.lang.frontend import check
from specchk.meaning.evaluate import Evaluator
from specchk.search.budget import Budget, Meter
from specchk.search.engine import Options
from specchk.search.proof import Suggestion
from specchk.search.reference import search
from specchk.search.verdict import Holds, Violated
from specchk.symbolic.induction.exclusions import Exclusion, Literal, merged, minimal, rows
from specchk.symbolic.induction.prove import ProofOptions, prove
from specchk.symbolic.induction.suggest import _states, suggest
from specchk.symbolic.induction.tables import invariant, tables
from specchk.symbolic.induction.templates import Atom, Templates, Vocabulary, unused_names
from specchk.symbolic.replay import raised_to

SPEC = Path(__file__).parents[2] / "spec"
# `low <= high` is not inductive: `jump` may go anywhere up to `limit`, of which only a lemma knows enough.
JUMPS = """spec jumps
type Offset = nat upto 4
var low : Offset = 0
var limit : Offset = 0
var high : Offset = 0
action grow():
    high' = high + 1
action raise_limit():
    limit' = high
action jump():
    low' = limit
invariant ordered: low <= high
"""
CLAIMS = ("hw_within_leo", "follower_behind", "remote_is_lower_bound", "committed_everywhere", "hw_monotonic")
PLACES = """spec places
sort Node
const boss : Node
type Offset = nat upto 3
var end : Node -> Offset = { n: 0 for n in Node }
var sent : { at: Offset, late: bool }? = none
var seen : set[Node] = {}
type Word = Told(by: Node) | Nobody
var heard : set[Word] = {}
type Mood = enum { sad, gay }
var mood : Node -> Mood = { n: sad for n in Node }
type Place = 0..2
var turn : Place = 0
def is_ahead(n: Node): bool = end[n] > 0
def is_ahead_of(n: Node, m: Node): bool = end[n] > end[m]
action go():
    end'[boss] = end[boss] + 1
model m:
    Node = 2, boss = first
"""


def instance_of(text: str, folder: Path) -> Instance:
    file = folder / "of.spec"
    file.write_text(text, encoding="utf-8")
    return instantiate(check(str(file)))


def suggested(instance: Instance, budget: Budget = Budget()) -> Suggestion:
    return suggest(instance.program, instance.expression, budget, vocabulary(instance))


def vocabulary(instance: Instance) -> Vocabulary:
    return Vocabulary(instance.lowering.named_types(), instance.lowering.definitions())


def atoms(instance: Instance) -> list[Atom]:
    return Templates(instance.program, vocabulary(instance)).atoms()


def with_lemmas(program: Program, lemmas: Sequence[tuple[Property, str]]) -> Program:
    return replace(program, invariants=(*program.invariants, *[prop for prop, _ in lemmas]))


def test_the_lemma_that_is_missing_is_found(tmp_path: Path) -> None:
    """Alone it is not proved; with the found lemma it is."""
    instance = instance_of(JUMPS, tmp_path)
    assert prove(instance.program, ProofOptions()).proved == ()
    found = suggested(instance)
    assert [text for _, text in found.lemmas] == ["limit <= high"]
    proof = prove(with_lemmas(instance.program, found.lemmas), ProofOptions())
    assert proof.verdict == Holds()
    assert proof.proved == ("ordered", "suggested_1")


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        pytest.param("small", "Replica = 2, leader = first, MaxOffset = 3", marks=pytest.mark.system),
        pytest.param("three", "Replica = 3, leader = first, MaxOffset = 2", marks=pytest.mark.slow),
    ],
)
def test_two_round_fetch_is_proved_with_text_of_its_spec(model: str, sizes: str, tmp_path: Path) -> None:
    """Without its proof's lemmas: the printed ones, written into the spec, prove it; fewer do not."""
    instance = instantiate(check(str(SPEC / "two_round_fetch.spec")), model)
    found = suggested(instance)
    lines = [f"invariant {prop.name}: {text}" for prop, text in found.lemmas]
    text = (SPEC / "two_round_fetch.spec").read_text(encoding="utf-8")
    (tmp_path / "two_round_fetch.spec").write_text(text, encoding="utf-8")
    for left_out in (None, 0, len(lines) - 1):
        kept = [line for number, line in enumerate(lines) if number != left_out]
        chosen = ", ".join([*CLAIMS, *[line.split()[1].rstrip(":") for line in kept]])
        model = ["model m:", f"    {sizes}", f"    properties {chosen}", ""]
        grown = "\n".join(["spec grown", "extends two_round_fetch", *kept, *model])
        (tmp_path / "grown.spec").write_text(grown, encoding="utf-8")
        program = instantiate(check(str(tmp_path / "grown.spec"))).program
        assert (prove(program, ProofOptions()).verdict == Holds()) == (left_out is None), left_out


@pytest.mark.parametrize(
    ("file", "model"),
    [
        ("peterson", "right"),
        pytest.param("two_phase_commit", "three", marks=pytest.mark.system),
        pytest.param("dining_philosophers", "one_left_handed", marks=pytest.mark.system),
        ("lag", "today"),
        pytest.param("two_phase_commit", "five", marks=pytest.mark.slow),
    ],
)
def test_examples_are_proved_with_text_of_their_specs(file: str, model: str) -> None:
    """Flags, enumerations, sets of messages, options and definitions; none is proved without a lemma."""
    instance = instantiate(check(str(SPEC / f"examples/{file}.spec")), model)
    assert prove(instance.program, ProofOptions()).verdict != Holds()
    found = suggested(instance)
    written = tuple([(invariant(prop.name, instance.expression(text)), text) for prop, text in found.lemmas])
    assert prove(with_lemmas(instance.program, written), ProofOptions()).verdict == Holds()


def test_the_atoms_are_what_places_and_definitions_say(tmp_path: Path) -> None:
    """For the same keys and for different ones; of an option also its content."""
    instance = instance_of(PLACES, tmp_path)
    found = {(atom.text, atom.domains, atom.options) for atom in atoms(instance)}
    assert len(found) == len(atoms(instance))
    assert {
        ("sent == none", (), ()),
        ("$m0.late", (), ("sent",)),
        ("end[$k0] <= end[boss]", ("Node",), ()),
        ("end[$k0] <= end[$k1]", ("Node", "Node"), ()),
        ("end[$k0] <= $m0.at", ("Node",), ("sent",)),
        ("$k0 in seen", ("Node",), ()),
        ("card(seen) == 0", (), ()),
        ("Told(by: $k0) in heard", ("Node",), ()),
        ("Nobody in heard", (), ()),
        ("mood[$k0] == gay", ("Node",), ()),
        ("turn == $k0", ("Place",), ()),
        ("is_ahead($k0)", ("Node",), ()),
        ("is_ahead_of($k0, $k1)", ("Node", "Node"), ()),
        ("is_ahead_of($k0, $k0)", ("Node",), ()),
    } <= found
    assert not [text for text, _, _ in found if "late <=" in text]


@pytest.mark.system
def test_every_atom_and_clause_is_text_of_its_spec() -> None:
    """They are checked and lowered like a user's text, and are predicates; every 7th of some specs."""
    for file in ("two_round_fetch", "replication", "delivery", "kafka/kip320", "examples/lossy_channel"):
        instance = instantiate(check(str(SPEC / f"{file}.spec")))
        names = unused_names(instance.program)
        for atom in atoms(instance)[::7]:
            both = literal(atom, positive=True), literal(atom, positive=False)
            for literals in ((both[0],), (both[1],), both):
                text = Exclusion(atom.domains, literals).text(names)
                assert instance.expression(text)[0].type == BOOL, text


def literal(atom: Atom, *, positive: bool) -> Literal:
    return Literal(atom, tuple(range(len(atom.domains))), positive)


def test_a_clause_holds_in_all_states_and_no_part_of_it_does(tmp_path: Path) -> None:
    """Of every length, as text in its spec, in every state that the model has."""
    instance = instantiate(check(str(SPEC / "examples/peterson.spec")), "right")
    program, names = instance.program, unused_names(instance.program)
    said = tables(program, atoms(instance), names, instance.expression)
    states = _states(program, 1_000, Meter(Budget()))
    masks = {atom: table.masks(states, len(program.variables)) for atom, table in said.items()}
    sizes = {"Process": 2}
    assert rows(("Process", "Process"), sizes) == [(0, 1), (1, 0)]
    found = [clause for length in (1, 2, 3) for clause in minimal(masks, sizes, length)[0]]
    assert {len(clause.literals) for clause in found} == {2, 3}

    def holds(clause: Exclusion) -> bool:
        evaluate = Evaluator(len(program.variables)).compile(instance.expression(clause.text(names))[0])
        return all(evaluate([*state, *state, *([0] * 9)]) for state in states)

    for clause in [*found, *merged(found)]:
        assert holds(clause), clause.text(names)
    for clause in found:
        for left_out in clause.literals:
            kept = tuple([each for each in clause.literals if each is not left_out])
            assert not holds(Exclusion(clause.domains, kept)), clause.text(names)


@pytest.mark.parametrize("seed", few_of([2, 18, 25, 32, 40, 43, 44], 2))
def test_no_lemma_is_false(seed: int, tmp_path: Path) -> None:
    """Some are found for these random specs, and they hold within further horizons, too."""
    instance = instance_of(open_spec(Random(seed)), tmp_path)
    found = suggested(instance)
    assert found.lemmas
    lemmas = tuple([prop for prop, _ in found.lemmas])
    program = replace(instance.program, invariants=lemmas, step_invariants=(), witnesses=())
    outcome = search(raised_to(program, 7), Options(Budget(max_states=3_000), keep_going=True))
    violated = outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ()
    assert not {violation.name for violation in violated} & {prop.name for prop in lemmas}


def test_no_lemma_helps_what_is_false(tmp_path: Path) -> None:
    """A violated invariant stays violated, and nothing is suggested for it."""
    instance = instance_of(JUMPS.replace("limit' = high", "limit' = high + 1"), tmp_path)
    found = suggested(instance)
    assert found.lemmas == ()
    assert found.tried > found.held > 0
    proof = prove(with_lemmas(instance.program, found.lemmas), ProofOptions())
    assert isinstance(proof.verdict, Violated)


def test_a_budget_that_is_over_suggests_nothing(tmp_path: Path) -> None:
    """A candidate not shown to be inductive is not a lemma."""
    found = suggested(instance_of(JUMPS, tmp_path), Budget(max_seconds=1e-9))
    assert (found.lemmas, found.inductive) == ((), 0)


def test_the_command_prints_them_and_json_has_them(tmp_path: Path) -> None:
    """As lines to copy into the spec, and as a member `suggested`."""
    file = tmp_path / "jumps.spec"
    file.write_text(JUMPS, encoding="utf-8")
    said = CliRunner().invoke(command, [str(file), "--prove", "--suggest"])
    assert said.exit_code == 0
    assert "holds by induction" in said.output
    assert "\n  invariant suggested_1: limit <= high\n" in said.output
    answer = json.loads(CliRunner().invoke(command, [str(file), "--prove", "--suggest", "--json"]).output)
    assert answer["suggested"]["invariants"] == [{"name": "suggested_1", "text": "limit <= high"}]
    assert answer["proved"] == ["ordered", "suggested_1"]


@pytest.mark.parametrize("wrong", [["--suggest"], ["--prove", "--k", "2", "--suggest"]])
def test_it_goes_with_prove_from_one_state(wrong: list[str], tmp_path: Path) -> None:
    """Exit code 2, before anything is proved."""
    file = tmp_path / "jumps.spec"
    file.write_text(JUMPS, encoding="utf-8")
    said = CliRunner().invoke(command, [str(file), *wrong])
    assert said.exit_code == 2
    assert "--suggest" in said.output
