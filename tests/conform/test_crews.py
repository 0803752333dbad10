"""Work in pieces by others: the report is that of one machine, whatever the workers and the order."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bank import SPEC

from specchk.conform.contract.load import load_tracing
from specchk.conform.contract.tracing import Tracing
from specchk.conform.recordings.by_crew import CrewExplainer, run_campaign_by
from specchk.conform.recordings.campaign import Campaign, run_campaign
from specchk.conform.recordings.explainer import CampaignOptions
from specchk.conform.report.campaign_report import as_json, text
from specchk.conform.work.crews import Job
from specchk.conform.work.kit import Kit, enter, kit_of, shipped, spec_files
from specchk.lang.frontend import CheckedSpec, check
from specchk.spark.pipeline.files import read

ROOT = Path(__file__).parents[2]


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
        (self.place.parent / "sent").write_bytes(pickle.dumps((shipped(work, self.kit), pieces)))
        script = (
            "import pathlib, pickle, sys; place = pathlib.Path(sys.argv[1]); "
            "start, pieces = pickle.loads((place.parent / 'sent').read_bytes()); do = start(place); "
            "(place.parent / 'back').write_bytes(pickle.dumps([do(piece) for piece in pieces]))"
        )
        subprocess.run([sys.executable, "-c", script, str(self.place)], cwd=self.place, check=True)
        found: list[Any] = pickle.loads((self.place.parent / "back").read_bytes())
        return found


def test_a_kit_is_all_that_a_tracing_needs(tmp_path: Path):
    """A package beside the tracing, a neighbour, late imports, and the spec are in it."""
    home, away = tmp_path / "home", tmp_path / "away"
    (home / "bind").mkdir(parents=True)
    (home / "lib" / "vault" / "deep").mkdir(parents=True)
    (home / "lib" / "vault" / "__init__.py").write_text("")
    (home / "lib" / "vault" / "deep" / "__init__.py").write_text("")
    (home / "lib" / "vault" / "deep" / "rules.py").write_text("def place(name):\n    return name\n")
    (home / "lib" / "vault" / "late.py").write_text("ACTION = 'transfer'\n")
    (home / "bind" / "bank.spec").write_text(SPEC)
    (home / "bind" / "neighbour.py").write_text("from vault.deep.rules import place\n")
    (home / "bind" / "tracing.py").write_text(
        "import sys\n"
        "sys.path.append(__file__.replace('bind/tracing.py', 'lib'))\n"
        "from neighbour import place\n"
        + TRACING.replace(
            '        return Call("transfer", (found["from"]',
            '        from vault.late import ACTION\n        return Call(ACTION, (place(found["from"])',
        )
    )
    before, path = set(sys.modules), list(sys.path)
    try:
        cls = load_tracing(home / "bind" / "tracing.py")
        checked = check(str(home / "bind" / "bank.spec"))
        kit = kit_of(home / "bind" / "tracing.py", checked)
        paths = recordings(tmp_path)
        here = run_campaign(cls, checked, paths, CampaignOptions(1))
        crew = Elsewhere(cls, kit, away)
        (home / "lib").rename(home / "gone")
        there = run_campaign_by(by(crew, cls, checked), list(map(str, paths)))
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            if name.split(".")[0] in ("vault", "neighbour"):
                del sys.modules[name]
    assert quiet(here) == quiet(there)
    assert set(kit.roots) == {"bind", "lib"}
    assert "lib/vault/late.py" in dict(kit.files)


def test_the_kit_of_replog_has_replog_and_all_files_of_its_spec():
    """All of the package is sent, and a spec with its bases; no installed package is."""
    main = ROOT / "conformance" / "tracing.py"
    load_tracing(main)
    names = set(dict(kit_of(main, check(str(ROOT / "spec" / "recorded.spec"))).files))
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
