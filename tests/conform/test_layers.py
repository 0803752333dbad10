"""Scores by layer: the mutants killed by each layer of the checks, as if it were the only one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from till_folder import BINDING, build, mutate

from specchk.conform.gate.gate import Held
from specchk.conform.gate.lock import lowered, raised
from specchk.conform.mutation.members import Bench, Kill, Reporter
from specchk.conform.mutation.mutate import MutationCampaign, Settings
from specchk.conform.mutation.mutate_by import kit_for
from specchk.conform.mutation.scores_file import NoScores, read_scores
from specchk.conform.report.gate_report import render_held
from specchk.conform.work.lock_file import GateFigures, Kills, LayerKills, LockFile, read, write
from specchk.lang.frontend import check

# Of the flaws below, walks see the first two, another binding's gate the first, and a test the third.
MEMBERS = """
from specchk.conform.contract.binding import At
from specchk.conform.mutation.members import Outside, SuiteMember
from specchk.conform.mutation.other_gates import AcceptedRuns, OtherGate
from specchk.conform.replay.suites import SuiteWalks

def notes(reporter):
    from till.drawer import Till
    till = Till()
    till.sleep()
    reporter.check("a note", lambda: "" if till.note == "slept" else "no note")

TOGETHER = (("gate", ("suites", "behaviour")),)
MEMBERS = (
    SuiteMember("walks small", At(suite="walks"), walks=SuiteWalks(0, 15, 20), layer="walks"),
    OtherGate("gate of moves", "moves/binding.py", layer="suites"),
    Outside("notes", notes, ("till",)),
    AcceptedRuns("accepted", "shown/behaviours.py"),
)
"""
# What leaves the till: the answer to a loan from an empty account, and how many days there were.
BEHAVIOURS = """
from till.drawer import Till
from specchk.conform.contract.behaviours import Behaviours

def loan(watch):
    till = Till()
    watch.note("till", "answer", lent=[till.move("a1", "a2") for _ in range(3)])

def nights(watch):
    till = Till()
    till.sleep()
    watch.note("till", "days", days=till.days)

class Shown(Behaviours):
    def runs(self):
        return {"loan": loan, "nights": nights}
"""
FLAWS = {
    "lends": ("if self.balance[source] == 0:", "if False:"),
    "sleepless": ("self.days += 1", "self.days += 0"),
    "no-note": ('self.note = "slept"', "pass"),
    "never": ("return 1", "return 2"),
}
KILLERS = {
    "lends": {"walks", "suites", "behaviour"},
    "sleepless": {"walks", "behaviour"},
    "no-note": {"tests"},
    "never": set(),
}
KILLED = {"gate": 2, "walks": 2, "suites": 1, "tests": 1, "behaviour": 2}
ONLY = {"suites": 0, "behaviour": 1}
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
    (home / "shown").mkdir()
    (home / "shown" / "behaviours.py").write_text(BEHAVIOURS)
    environment = {**os.environ, "PYTHONPATH": str(home)}
    command = [sys.executable, "-m", "specchk", "behaviour", str(home / "shown" / "behaviours.py")]
    subprocess.run([*command, "--update-lock"], env=environment, check=True, capture_output=True)
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
    """A layer is run although another has killed the mutant, and ends at its own first failure."""
    (mutant,) = [mutant for mutant in json.loads(scores.read_text())["mutants"] if mutant["id"] == name]
    layers = [kill["layer"] for kill in mutant["kills"]]
    assert (set(layers), len(layers)) == (KILLERS[name], len(KILLERS[name]))


@pytest.mark.system
def test_the_score_has_a_figure_for_each_layer(folder: Path, scores: Path):
    """In JSON and in text: groups first, then layers in the order of the members."""
    layers = json.loads(scores.read_text())["layers"]
    assert (layers["killed"], layers["only"]) == (KILLED, ONLY)
    text = mutate(str(folder / "till_binding.py"), "--by-layer")[1]
    assert text.rstrip().splitlines()[-6:] == [
        "killed of 4 mutants, by each layer as if it were the only one:",
        "    2 by gate (suites, behaviour)",
        "    2 by walks",
        "    1 by suites (0 by no other of its group)",
        "    1 by tests",
        "    2 by behaviour (1 by no other of its group)",
    ]


@pytest.mark.system
def test_a_sample_is_called_one(folder: Path, tmp_path: Path):
    """With the number of all and the seed, in the text and in what a lock records."""
    given = [str(folder / "till_binding.py"), "--by-layer", "--sample", "2", "--seed", "3"]
    assert "killed of 2 mutants, sampled of 4 with seed 3, by" in mutate(*given)[1]
    path = tmp_path / "scores.json"
    path.write_text(mutate(*given, "--json")[1])
    layers = read_scores([str(path)]).layers["curated"]
    assert (layers.sampled, layers.all, layers.seed) == (2, 4, 3)
    assert str(layers) == "of 2, sampled of 4 with seed 3"


@pytest.mark.system
def test_a_campaign_that_is_not_by_layers_has_no_such_figures(folder: Path):
    """It stops at two failures, so the killer of a mutant is the member that ran first."""
    report = json.loads(mutate(str(folder / "till_binding.py"), "--json", "--only", "lends")[1])
    assert report["layers"] is None
    assert {kill["member"] for kill in report["mutants"][0]["kills"]} == {"walks small"}


@pytest.mark.system
def test_figures_that_the_mutants_do_not_confirm_are_rejected(scores: Path, tmp_path: Path):
    """A file that was edited gives no score."""
    recorded = read_scores([str(scores)])
    assert recorded.kills == {}  # one failing test of a layer is no score of two
    assert (recorded.layers["curated"].killed, recorded.layers["curated"].only) == (KILLED, ONLY)
    report = json.loads(scores.read_text())
    report["layers"]["killed"]["suites"] = 2
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(report))
    with pytest.raises(NoScores, match="2 killed by suites, but its mutants give 1"):
        read_scores([str(path)])


def test_a_layer_ends_at_its_own_failures():
    """Failures of another layer are not enough."""
    kills: list[Kill] = []
    reporter = Reporter(1, {}, kills.append, member="a", layer="walks")
    assert not reporter.note("first", "is wrong")
    reporter.layer = "gate"
    assert reporter.needs_more
    assert reporter.note("second", "")
    assert not reporter.note("third", "is wrong")
    assert [kill.layer for kill in kills] == ["walks", "gate"]


def test_another_binding_is_a_part_of_the_campaign(folder: Path, monkeypatch):
    """It is sent to a cluster, and a kept outcome does not apply to a changed binding."""
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    before = set(sys.modules)
    bench = Bench(folder, "till_binding.py", folder / "bank.spec", check(str(folder / "bank.spec")))
    campaign = MutationCampaign(bench, folder / "mutants", ("till",), Settings(by_layer=True))
    kit, world = kit_for(bench, folder / "mutants", bench.binding()), campaign._world()
    assert {"moves/binding.py", "shown/behaviours.py", "shown/specchk.lock"} <= dict(kit.files).keys()
    for path in (folder / "moves" / "binding.py", folder / "shown" / "specchk.lock"):
        text = path.read_text()
        path.write_text(f"{text}\n")
        assert campaign._world() != world
        path.write_text(text)
        assert campaign._world() == world
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("till", "till_binding", "members"):
            del sys.modules[name]


class StepLimit(Exception):
    """An example of an implementation's own exceptions."""


def test_an_exception_of_the_implementation_s_own_is_a_failure():
    """It once ended the mutant's process, leaving it undecided; specchk's own errors are not hidden."""
    kills: list[Kill] = []
    reporter = Reporter(2, {}, kills.append, member="recordings")

    def raises(error: Exception) -> str:
        raise error

    assert reporter.check("seed 1", lambda: raises(StepLimit("1000 events in 4 seconds")))
    assert [kill.reason for kill in kills] == ["StepLimit: 1000 events in 4 seconds"]
    with pytest.raises(NoScores):
        reporter.check("seed 2", lambda: raises(NoScores("a fault of specchk")))


SCORED = LayerKills(10, 40, 5, "n", {"gate": 7, "tests": 8}, {"suites": 1})
SCORES = {"curated": Kills(9, 10, "n")}
LOCK = GateFigures("Binding", "spec", (), (), "impl", 1, {}, {}, mutants=SCORES, layers={"curated": SCORED})


@pytest.mark.parametrize(
    ("layers", "sampled", "places"),
    [
        ({"gate": 7, "tests": 8}, 10, []),
        ({"gate": 14, "tests": 16}, 20, []),
        ({"gate": 8, "tests": 9}, 10, []),
        ({"gate": 6, "tests": 9}, 10, ["mutants: curated, by gate alone"]),
        ({"gate": 13, "tests": 16}, 20, ["mutants: curated, by gate alone"]),
        ({"gate": 7}, 10, ["mutants: curated, by tests alone"]),
        ({}, 10, ["mutants: curated, by gate alone", "mutants: curated, by tests alone"]),
        (None, 10, []),
    ],
)
def test_a_layer_that_kills_less_is_below_the_lock(layers, sampled, places):
    """Shares are compared; a layer without a figure was not run, and is below, if there was a campaign."""
    figures = {} if layers is None else {"curated": LayerKills(sampled, 40, 5, "n", layers)}
    current = replace(LOCK, layers=figures)
    assert [lower.place for lower in lowered(LOCK, current)] == places


def test_a_lock_keeps_the_figures_of_layers(tmp_path: Path):
    """Written, read, and reported where a run has more."""
    write(tmp_path / "specchk.lock", LockFile(LOCK))
    assert read(tmp_path / "specchk.lock").gate == LOCK
    lines = [*render_held(Held((), "", LOCK, LOCK), Path("a.lock"))]
    assert lines[-3:] == [
        "curated mutants by layer, each as if it were the only one, of 10, sampled of 40 with seed 5:",
        "  gate: 7 of 10",
        "  tests: 8 of 10",
    ]
    without = replace(LOCK, layers={"curated": replace(SCORED, killed={})})
    assert [higher.place for higher in raised(without, LOCK)] == [
        "mutants: curated, by gate alone",
        "mutants: curated, by tests alone",
    ]
