"""Work in pieces by others: the report is that of one machine, whatever the workers and the order."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bank import SPEC, BankBinding
from broken import BROKEN
from msgspec.structs import replace

from specchk.conform.contract.binding import At, BindingError
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.conform.contract.load import load_binding, load_tracing
from specchk.conform.contract.tracing import Tracing
from specchk.conform.gate.controls import try_controls
from specchk.conform.gate.shares import lots_of, run_parts_by, shares_of
from specchk.conform.gate.tiers import SuiteBudget, parts_of, run_parts
from specchk.conform.mutation.members import Bench
from specchk.conform.mutation.mutants import Mutant
from specchk.conform.mutation.mutate import MutationCampaign as Mutants
from specchk.conform.mutation.mutate import Settings
from specchk.conform.mutation.mutate_by import by_crew, kit_for
from specchk.conform.mutation.patches import Patch
from specchk.conform.recordings.by_crew import CrewExplainer, run_campaign_by
from specchk.conform.recordings.campaign import Campaign, run_campaign
from specchk.conform.recordings.explainer import CampaignOptions
from specchk.conform.replay.suites import SuiteResult, SuiteWalks
from specchk.conform.report.campaign_report import as_json, text
from specchk.conform.work.crews import Job
from specchk.conform.work.kit import Kit, enter, kit_of, shipped, spec_files
from specchk.lang.frontend import CheckedSpec, check
from specchk.spark.pipeline.files import read

ROOT = Path(__file__).parents[2]
SUITES = (At(), At(suite="edges"), At(suite="product"), At(suite="walks"))
BUDGET = SuiteBudget(walks=SuiteWalks(1, 20, 10))


class Shuffled:
    """A crew that executes the pieces in any order, each with a serialised job."""

    hands = 3

    def __init__(self, cls: type[Any], folder: Path = Path()) -> None:
        self.cls, self.folder = cls, folder

    def each(self, work: Job[Any, Any], pieces: Sequence[Any], about: str) -> list[Any]:
        order = list(range(len(pieces)))
        random.Random(len(order)).shuffle(order)
        done = {}
        for number in order:
            sent = pickle.loads(pickle.dumps((work, pieces[number])))
            done[number] = pickle.loads(pickle.dumps(sent[0](self.cls, self.folder)(sent[1])))
        return [done[number] for number in range(len(pieces))]


def bank() -> CheckedSpec:
    return check("bank.spec", SPEC)


def timeless(results: Sequence[SuiteResult]) -> list[SuiteResult]:
    return [replace(one, seconds=0.0) for one in results]


@pytest.mark.parametrize("binding", [BankBinding, *(one[0] for one in BROKEN)], ids=lambda x: x.__name__)
def test_a_crew_gives_the_results_of_one_machine(binding):
    """Verdicts, counts, coverage and divergences of all kinds of suites are the same."""
    parts = parts_of(binding, bank(), SUITES)
    assert timeless(run_parts_by(Shuffled(binding), parts, BUDGET)) == timeless(run_parts(parts, BUDGET, 1))


def test_shares_have_each_case_once():
    """The shares of a lot are all of its cases in order, and a suite without cases is one share."""
    parts = parts_of(BankBinding, bank(), SUITES)
    lots = lots_of(parts, BUDGET)
    shares = shares_of(lots, 2)
    assert len(shares) > len(lots)
    for number, lot in enumerate(lots):
        mine = [one.positions for one in shares if one.lot == number]
        if lot.suite is None:
            assert mine == [None]
        else:
            assert [at for one in mine for at in one or ()] == list(range(len(lot.cases)))


def test_a_binding_that_does_not_fit_is_refused_before_anything_is_sent():
    """The error is that of a run on this machine, and no crew is used."""

    class Unbound(BankBinding):
        toss = None  # type: ignore[assignment]

    class Nobody(Shuffled):
        def each(self, work: Job[Any, Any], pieces: Sequence[Any], about: str) -> list[Any]:
            raise AssertionError("something was sent")

    with pytest.raises(BindingError, match="toss"):
        run_parts_by(Nobody(Unbound), parts_of(Unbound, bank(), [At()]), BUDGET)


class Controlled(BankBinding):
    controls = (
        BadSpec("half as many days", "small", {"Most": "1"}),
        BadCode("days never pass", BankBinding.sleep, "bank.days += 1", "pass", "small"),
    )


def test_a_crew_runs_the_controls():
    """Each control is detected as on this machine, by its number."""
    assert try_controls(Controlled, bank(), None, Shuffled(Controlled)) == try_controls(
        Controlled, bank(), None
    )


def recordings(folder: Path) -> list[Path]:
    """One that is a behaviour, one that is not; one that is truncated, is not text, or does not exist."""
    event = '{"at": "bank", "seq": 1, "event": "moved", "from": "a1", "to": "a2", "after": {"from": %d}}'
    for name, left in (("right", 1), ("wrong", 3)):
        lines = ['{"format": "bank/1"}', event % left, '{"end": true, "events": 1}']
        (folder / f"{name}.ndjson").write_text("\n".join(lines))
    (folder / "cut.ndjson").write_text('{"format": "bank/1"}')
    (folder / "binary.ndjson").write_bytes(b"\xff\xfe")
    return [folder / f"{name}.ndjson" for name in ("right", "wrong", "cut", "binary", "absent")]


TRACING = """
from specchk.conform.contract.tracing import Call, Seen, Tracing, event


class BankTracing(Tracing):
    spec, model, reads = "bank.spec", "small", "bank/1"

    @event("moved")
    def moved(self, found):
        return Call("transfer", (found["from"], found["to"]))

    def after(self, found):
        return [Seen("balance", f"balance[{found['from']}]", found["after"]["from"])]
"""


def quiet(campaign: Campaign) -> Any:
    report = as_json(campaign, 0)
    return {**report, "seconds": 0, "workers": 0, "events_per_second": 0}, text(campaign)


def by(crew: Any, cls: type[Tracing], checked: CheckedSpec, **more: Any) -> CrewExplainer:
    return CrewExplainer(cls, checked, CampaignOptions(1), crew, read, **more)


def test_a_crew_explains_recordings(tmp_path: Path):
    """Results are in the recordings' order, and other files are reported with the same messages."""
    (tmp_path / "bank.spec").write_text(SPEC)
    (tmp_path / "reader.py").write_text(TRACING)
    cls, checked = load_tracing(tmp_path / "reader.py"), check(str(tmp_path / "bank.spec"))
    paths = [path for _ in range(3) for path in recordings(tmp_path)]
    here = run_campaign(cls, checked, paths, CampaignOptions(1))
    there = run_campaign_by(by(Shuffled(cls, tmp_path), cls, checked), list(map(str, paths)))
    assert quiet(here) == quiet(there)
    assert [one.accepted for one in here.results] == [True, False, False, False, False] * 3
    assert there.workers == 3


def test_a_spec_is_told_by_the_name_that_it_has_here(tmp_path: Path):
    """The place of a guard is in the named file, not in the copy that was sent."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bank.spec").write_text(SPEC)
        (tmp_path / name / "reader.py").write_text(TRACING.replace("(found", '("a1", "a1") or (found'))
    cls, checked = load_tracing(tmp_path / "here" / "reader.py"), check(str(tmp_path / "here" / "bank.spec"))
    places = [str(path) for path in recordings(tmp_path)[:1]]
    there = run_campaign_by(by(Shuffled(cls, tmp_path / "there"), cls, checked), places)
    blocked = there.tally.blocked.items[0].blocked
    assert blocked is not None
    assert blocked.misses[0]["guards"][0]["where"].startswith(str(tmp_path / "here" / "bank.spec"))


def unpacked(kit: Kit, place: Path) -> Path:
    for name, data in kit.files:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    return place


class Elsewhere(Shuffled):
    """A crew in its own process, with the kit and no other file of the user's."""

    def __init__(self, cls: type[Any], kit: Kit, place: Path) -> None:
        super().__init__(cls)
        self.kit, self.place = kit, unpacked(kit, place / "kit")

    def each(self, work: Job[Any, Any], pieces: Sequence[Any], about: str) -> list[Any]:
        (self.place.parent / "sent").write_bytes(pickle.dumps((shipped(work, self.kit, self.cls), pieces)))
        script = (
            "import pathlib, pickle, sys; place = pathlib.Path(sys.argv[1]); "
            "start, pieces = pickle.loads((place.parent / 'sent').read_bytes()); do = start(place); "
            "(place.parent / 'back').write_bytes(pickle.dumps([do(piece) for piece in pieces]))"
        )
        subprocess.run([sys.executable, "-c", script, str(self.place)], cwd=self.place, check=True)
        found: list[Any] = pickle.loads((self.place.parent / "back").read_bytes())
        return found


def test_a_kit_is_all_that_a_binding_needs(tmp_path: Path):
    """A package beside the binding, a neighbour, late imports, and the spec are in it."""
    home, away = tmp_path / "home", tmp_path / "away"
    (home / "bind").mkdir(parents=True)
    (home / "lib" / "vault" / "deep").mkdir(parents=True)
    (home / "lib" / "vault" / "__init__.py").write_text("")
    (home / "lib" / "vault" / "deep" / "__init__.py").write_text("")
    (home / "lib" / "vault" / "deep" / "rules.py").write_text("def least():\n    return 0\n")
    (home / "lib" / "vault" / "late.py").write_text("START = 2\n")
    (home / "bind" / "bank.spec").write_text(SPEC)
    source = Path(__file__).with_name("bank.py").read_text()
    (home / "bind" / "neighbour.py").write_text(source.replace("== 0", "== least()").replace(
        "@dataclass\n", "from vault.deep.rules import least\n\n@dataclass\n", 1))  # fmt: skip
    (home / "bind" / "binding.py").write_text(
        "import sys\n"
        "sys.path.append(__file__.replace('bind/binding.py', 'lib'))\n"
        "from neighbour import Bank, BankBinding\n"
        "class Own(BankBinding):\n"
        "    def start(self):\n"
        "        from vault.late import START\n"
        "        return Bank({'a1': START, 'a2': START})\n"
    )
    before, path = set(sys.modules), list(sys.path)
    try:
        cls = load_binding(home / "bind" / "binding.py")
        checked = check(str(home / "bind" / "bank.spec"))
        kit = kit_of(home / "bind" / "binding.py", cls, checked)
        parts = parts_of(cls, checked, [At(), At(suite="walks")])
        here = run_parts(parts, BUDGET, 1)
        crew = Elsewhere(cls, kit, away)
        (home / "lib").rename(home / "gone")
        there = run_parts_by(crew, parts, BUDGET)
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            if name.split(".")[0] in ("vault", "neighbour"):
                del sys.modules[name]
    assert timeless(here) == timeless(there)
    assert set(kit.roots) == {"bind", "lib"}
    assert "lib/vault/late.py" in dict(kit.files)


def test_the_kit_of_replog_has_replog_and_all_files_of_its_spec():
    """All of the package is sent, and a spec with its bases; no installed package is."""
    main = ROOT / "conformance" / "tracing.py"
    cls, checked = load_tracing(main), check(str(ROOT / "spec" / "recorded.spec"))
    names = set(dict(kit_of(main, cls, checked).files))
    assert {"spec/recorded.spec", "spec/replication.spec", "conformance/tracing.py"} <= names
    assert not [name for name in names if "site-packages" in name or "specchk/" in name]


def test_a_kit_has_files_of_a_spec_that_declare_no_name(tmp_path: Path):
    """Base and imported files are needed wherever the spec is loaded, whatever their contents."""
    (tmp_path / "low.spec").write_text("spec low\nvar x : bool = false\naction a():\n    x' = not x\n")
    (tmp_path / "mid.spec").write_text("spec mid\nextends low\nimport maths\ndeadlock ok\n")
    (tmp_path / "top.spec").write_text("spec top\nextends mid\n")
    (tmp_path / "maths.spec").write_text("spec maths\nextends numbers\n")
    (tmp_path / "numbers.spec").write_text("spec numbers\n")
    found = spec_files(check(str(tmp_path / "top.spec")).spec)
    assert found == {path.resolve() for path in tmp_path.glob("*.spec")}


PURSE = """
class Purse:
    def __init__(self):
        self.balance, self.coin, self.days, self.note = {"a1": 2, "a2": 2}, "unseen", 0, ""

    def sleep(self):
        self.days += 1
        self.note = "slept"
"""
MEMBERS = """
from specchk.conform.contract.binding import At
from specchk.conform.mutation.members import SuiteMember
from specchk.conform.replay.suites import SuiteWalks

MEMBERS = (SuiteMember("walks", At(suite="walks"), walks=SuiteWalks(0, 10, 6)),)
"""
MUTANTS = {
    "sleepless": ("self.days += 1", "self.days += 0"),
    "no-note": ('self.note = "slept"', "pass"),
    "dies": ("self.days += 1", "__import__('os')._exit(3)"),
    "unloadable": ("class Purse:", "class Bag:"),
}


def test_a_crew_holds_mutants(tmp_path: Path):
    """Killed, survived, died or unloadable: outcomes are those of this machine, and a survey's lines, too."""
    home = tmp_path / "home"
    (home / "purse").mkdir(parents=True)
    (home / "mutants").mkdir()
    (home / "purse" / "__init__.py").write_text(PURSE)
    (home / "bank.spec").write_text(SPEC)
    (home / "mutants" / "members.py").write_text(MEMBERS)
    bound = Path(__file__).with_name("bank.py").read_text().replace("return Bank()", "return Purse()")
    bound = bound.replace("bank.days += 1", "bank.sleep()").replace(
        "SPEC =", "from purse import Purse\nSPEC ="
    )
    (home / "purse_binding.py").write_text(bound)
    before, path = set(sys.modules), list(sys.path)
    try:
        bench = Bench(home, "purse_binding.py", home / "bank.spec", check(str(home / "bank.spec")))
        cls = bench.binding()
        mutants = [Mutant(name, "none", "", (Patch("purse", *texts),)) for name, texts in MUTANTS.items()]
        kit = kit_for(bench, home / "mutants", cls)
        crew = Elsewhere(cls, kit, tmp_path / "away")
        found = []
        for by in (None, by_crew(crew, kit)):
            settings = Settings(workers=1, is_cached=False)
            campaign = Mutants(bench, home / "mutants", {"purse"}, settings, by)
            ground = campaign.survey()
            outcomes = [replace(one, seconds=0.0) for one in campaign.run(mutants)]
            kills = [[replace(kill, seconds=0.0) for kill in one.kills] for one in outcomes]
            found.append((ground, [replace(one, kills=()) for one in outcomes], kills))
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            if name.split(".")[0] in ("purse", "purse_binding", "members"):
                del sys.modules[name]
    assert found[0] == found[1]
    ground, outcomes, kills = found[1]
    assert not ground.kills
    assert not ground.unfinished
    assert [bool(one) for one in kills] == [True, False, False, True]
    assert outcomes[2].how.startswith("lost")


def test_a_process_forgets_the_kit_before(tmp_path: Path):
    """A module of the same name is that of the last entered kit."""
    path = list(sys.path)
    try:
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "of_a_kit.py").write_text(f"NAME = {name!r}\n")
            enter(tmp_path / name, ["."])
            module = __import__("of_a_kit")
            assert name == module.NAME
        assert str(tmp_path / "first") not in sys.path
    finally:
        sys.path[:] = path
        sys.modules.pop("of_a_kit", None)
