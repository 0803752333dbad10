"""A campaign of mutants: which member kills which, other gates and accepted behaviour among them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from till_folder import BINDING, build, mutate

from specchk.conform.mutation.members import Bench, Kill, Reporter
from specchk.conform.mutation.mutate import MutationCampaign, Settings
from specchk.conform.mutation.scores_file import NoScores
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

MEMBERS = (
    SuiteMember("walks small", At(suite="walks"), walks=SuiteWalks(0, 15, 20)),
    OtherGate("gate of moves", "moves/binding.py"),
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
    "walks small": {"lends", "sleepless"},
    "gate of moves": {"lends"},
    "notes": {"no-note"},
    "accepted": {"lends", "sleepless"},
}
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
    home = build(tmp_path_factory.mktemp("campaign"), MEMBERS, "".join(tables))
    (home / "moves").mkdir()
    (home / "moves" / "binding.py").write_text(OTHER)
    (home / "shown").mkdir()
    (home / "shown" / "behaviours.py").write_text(BEHAVIOURS)
    environment = {**os.environ, "PYTHONPATH": str(home)}
    command = [sys.executable, "-m", "specchk", "behaviour", str(home / "shown" / "behaviours.py")]
    subprocess.run([*command, "--update-lock"], env=environment, check=True, capture_output=True)
    return home


@pytest.mark.system
@pytest.mark.parametrize("member", KILLERS)
def test_a_member_alone_kills_what_it_can_see(folder: Path, member: str):
    """`--members` is how to learn what one check is worth: the others are not run."""
    given = [str(folder / "till_binding.py"), "--members", member, "--json", "--no-cache"]
    code, text = mutate(*given)
    assert code == 14, text
    killed = {mutant["id"] for mutant in json.loads(text)["mutants"] if mutant["kills"]}
    assert killed == KILLERS[member]


@pytest.mark.system
def test_a_campaign_stops_at_two_failures(folder: Path):
    """So the killer of a mutant is the member that ran first."""
    report = json.loads(mutate(str(folder / "till_binding.py"), "--json", "--only", "lends")[1])
    assert {kill["member"] for kill in report["mutants"][0]["kills"]} == {"walks small"}


@pytest.mark.system
def test_a_sample_is_called_one(folder: Path):
    """With the number of all and the seed."""
    given = [str(folder / "till_binding.py"), "--sample", "2", "--seed", "3", "--json"]
    report = json.loads(mutate(*given)[1])
    assert (report["sample"], len(report["mutants"])) == ({"of": 4, "seed": 3}, 2)


def test_another_binding_is_a_part_of_the_campaign(folder: Path, monkeypatch):
    """A kept outcome does not apply to a changed binding."""
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    before = set(sys.modules)
    bench = Bench(folder, "till_binding.py", folder / "bank.spec", check(str(folder / "bank.spec")))
    campaign = MutationCampaign(bench, folder / "mutants", ("till",), Settings())
    bench.binding()
    world = campaign._world()
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
