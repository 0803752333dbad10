"""Scores by layer: what each layer of the checks kills, as if there were no other."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from till_folder import BINDING, build, mutate

from specchk.conform.gate.lock import Kills, Lock, lowered, raised, read, write
from specchk.conform.mutation.members import Bench, Kill, Reporter
from specchk.conform.mutation.mutate import MutationCampaign, Settings
from specchk.conform.mutation.mutate_by import kit_for
from specchk.conform.mutation.scores_file import NoScores, read_scores
from specchk.lang.frontend import check

# Of the flaws below, walks see the first two, another binding's gate the first alone, and a test the last.
MEMBERS = """
from specchk.conform.contract.binding import At
from specchk.conform.mutation.members import Outside, SuiteMember
from specchk.conform.mutation.other_gates import OtherGate
from specchk.conform.replay.suites import SuiteWalks

def notes(reporter):
    from till.drawer import Till
    till = Till()
    till.sleep()
    reporter.ask("a note", lambda: "" if till.note == "slept" else "no note")

MEMBERS = (
    SuiteMember("walks small", At(suite="walks"), walks=SuiteWalks(0, 15, 20), layer="walks"),
    OtherGate("gate of moves", "moves/binding.py"),
    Outside("notes", notes, ("till",)),
)
"""
FLAWS = {
    "lends": ("if self.balance[source] == 0:", "if False:"),
    "sleepless": ("self.days += 1", "self.days += 0"),
    "no-note": ('self.note = "slept"', "pass"),
    "never": ("return 1", "return 2"),
}
KILLERS = {"lends": {"walks", "gate"}, "sleepless": {"walks"}, "no-note": {"tests"}, "never": set()}
OTHER = BINDING.replace('"bank.spec", "small"', '"../bank.spec", "small"')
OTHER = OTHER.replace(
    'gate = (At(suite="walks"),)', 'gate = (At(suite="classes"),)\n    unobserved = {"days": "-"}'
)
OTHER = OTHER.replace(', "days": till.days', "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The toy, with a second binding that does not see days."""
    table = '[[mutant]]\nid = "{}"\nflaw = "none"\nstory = "A story."\nmodule = "till.drawer"\n'
    table += "old = {}\nnew = {}\n"
    tables = [table.format(name, json.dumps(old), json.dumps(new)) for name, (old, new) in FLAWS.items()]
    home = build(tmp_path_factory.mktemp("layers"), MEMBERS, "".join(tables))
    (home / "moves").mkdir()
    (home / "moves" / "binding.py").write_text(OTHER)
    return home


@pytest.fixture(scope="module")
def scores(folder: Path) -> Path:
    """The file of a campaign by layers."""
    code, text = mutate(str(folder / "till_binding.py"), "--by-layer", "--json", "--no-cache")
    assert code == 14, text
    path = folder / "scores.json"
    path.write_text(text)
    return path


@pytest.mark.system
@pytest.mark.parametrize("name", FLAWS)
def test_each_layer_is_run_as_if_there_were_no_other(scores: Path, name: str):
    """A layer is run although another has killed the mutant, and no kill counts for two layers."""
    (mutant,) = [mutant for mutant in json.loads(scores.read_text())["mutants"] if mutant["id"] == name]
    assert {kill["layer"] for kill in mutant["kills"]} == KILLERS[name]


@pytest.mark.system
def test_the_score_has_a_figure_for_each_layer(folder: Path, scores: Path):
    """In JSON and in text, in the order of the members."""
    assert json.loads(scores.read_text())["layers"] == {"walks": 2, "gate": 1, "tests": 1}
    text = mutate(str(folder / "till_binding.py"), "--by-layer")[1]
    assert text.rstrip().splitlines()[-3:] == [
        "    2 of 4 by walks alone",
        "    1 of 4 by gate alone",
        "    1 of 4 by tests alone",
    ]


@pytest.mark.system
def test_a_campaign_that_is_not_by_layers_has_no_such_figures(folder: Path):
    """It stops at two failures, so who killed a mutant is who was run first."""
    report = json.loads(mutate(str(folder / "till_binding.py"), "--json", "--only", "lends")[1])
    assert report["layers"] is None
    assert {kill["member"] for kill in report["mutants"][0]["kills"]} == {"walks small"}


@pytest.mark.system
def test_figures_that_the_mutants_do_not_confirm_are_rejected(scores: Path, tmp_path: Path):
    """A file that was edited gives no score."""
    assert read_scores([str(scores)]).kills["curated"].layers == {"walks": 2, "gate": 1, "tests": 1}
    report = json.loads(scores.read_text())
    report["layers"]["gate"] = 2
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(report))
    with pytest.raises(NoScores, match="2 killed by gate, but its mutants give 1"):
        read_scores([str(path)])


def test_a_layer_ends_at_its_own_failures():
    """Failures of another layer are not enough."""
    kills: list[Kill] = []
    reporter = Reporter(1, {}, kills.append, member="a", layer="walks")
    assert not reporter.tell("first", "is wrong")
    reporter.layer = "gate"
    assert reporter.goes_on
    assert reporter.tell("second", "")
    assert not reporter.tell("third", "is wrong")
    assert [kill.layer for kill in kills] == ["walks", "gate"]


def test_another_binding_is_a_part_of_the_campaign(folder: Path, monkeypatch):
    """It is sent to a cluster, and an outcome that was kept is not that of a changed one."""
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    before = set(sys.modules)
    bench = Bench(folder, "till_binding.py", folder / "bank.spec", check(str(folder / "bank.spec")))
    campaign = MutationCampaign(bench, folder / "mutants", ("till",), Settings(by_layer=True))
    kit, world = kit_for(bench, folder / "mutants", bench.binding()), campaign._world()
    assert "moves/binding.py" in dict(kit.files)
    path = folder / "moves" / "binding.py"
    text = path.read_text()
    path.write_text(f"{text}\n")
    assert campaign._world() != world
    path.write_text(text)
    assert campaign._world() == world
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("till", "till_binding", "members"):
            del sys.modules[name]


class StepLimit(Exception):
    """As an implementation has exceptions of its own."""


def test_an_exception_of_the_implementation_s_own_is_a_failure():
    """It ended the mutant's process, which was then undecided; specchk's own errors are not hidden."""
    kills: list[Kill] = []
    reporter = Reporter(2, {}, kills.append, member="recordings")

    def raises(error: Exception) -> str:
        raise error

    assert reporter.ask("seed 1", lambda: raises(StepLimit("1000 events in 4 seconds")))
    assert [kill.reason for kill in kills] == ["StepLimit: 1000 events in 4 seconds"]
    with pytest.raises(NoScores):
        reporter.ask("seed 2", lambda: raises(NoScores("a fault of specchk")))


SCORED = Kills(9, 10, "n", {"gate": 7, "tests": 8})
LOCK = Lock("Binding", "spec", {}, {}, (), (), "impl", 1, {"curated": SCORED})


@pytest.mark.parametrize(
    ("layers", "all_", "places"),
    [
        ({"gate": 7, "tests": 8}, 10, []),
        ({"gate": 14, "tests": 16}, 20, []),
        ({"gate": 8, "tests": 9}, 10, []),
        ({"gate": 6, "tests": 9}, 10, ["mutants: curated, by gate alone"]),
        ({"gate": 13, "tests": 16}, 20, ["mutants: curated, by gate alone"]),
        ({"gate": 7}, 10, ["mutants: curated, by tests alone"]),
        ({}, 10, ["mutants: curated, by gate alone", "mutants: curated, by tests alone"]),
    ],
)
def test_a_layer_that_kills_less_is_below_the_lock(layers, all_, places):
    """Shares are compared; a layer without a figure was not run, and is below, too."""
    current = replace(LOCK, mutants={"curated": Kills(all_, all_, "n", layers)})
    assert [lower.place for lower in lowered(LOCK, current)] == places


def test_a_lock_keeps_the_figures_of_layers(tmp_path: Path):
    """Written, read, and reported where a run has more."""
    write(tmp_path / "specchk.lock", LOCK)
    assert read(tmp_path / "specchk.lock") == LOCK
    without = replace(LOCK, mutants={"curated": replace(SCORED, layers={})})
    assert [higher.place for higher in raised(without, LOCK)] == [
        "mutants: curated, by gate alone",
        "mutants: curated, by tests alone",
    ]
