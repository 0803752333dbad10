"""A campaign: whether each mutant of an implementation is killed by the gate, and by which of its tests.

Every mutant gets a forked process of its own.  There the implementation and its binding are
unloaded, the mutant's patches installed, and all loaded anew; the spec, its programs and suites are
the parent's, since no mutant changes them.  Then the members of the gate are asked, cheapest first,
until two different tests have failed.

    killed      by two tests at least
    weak        by one: the gate would lose it with one test
    timeout     by tests that did not end; counted as killed, and apart
    survived    by none
    unfinished  not decided: its process died, or its time was over before all members were asked
    equivalent  survived, and its file argues why it may
    wrongly     argued to be equivalent, but killed: the argument is wrong

The implementation without any patch, `UNCHANGED`, must pass all of it; that run also says which lines
each member runs, so that a mutant is held to those members only that could notice it.  Outcomes are
kept on disk under a digest of the mutant, the sources of the implementation, of its binding and of
the harness, and the spec.

Not here: which mutants there are (`mutants`, `operators`), how they are told (`scores`).
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from specchk.conform.forks import cores
from specchk.conform.members import BROKEN, Bench, Kill, Member, Reporter, members_of, watched
from specchk.conform.mutants import Mutant
from specchk.conform.patches import Patch, as_json, forget, install
from specchk.conform.pool import Ended, Say, Task, run_all
from specchk.conform.reach import Lines, modules_of, reaches, recording, touched
from specchk.lang.tables import cache_directory

KILLED, WEAK, TIMEOUT = "killed", "weak", "timeout"
SURVIVED, UNFINISHED = "survived", "unfinished"
EQUIVALENT, WRONGLY = "equivalent", "wrongly"
UNCHANGED = Mutant("unchanged", "none", "The implementation as it is.", ())
SLOWER = 4.0  # while lines are noted; by as much more time may the survey take
_HERE = Path(__file__).parent
_SEARCHES = ("core", "ir")
_REPLAYS = ("binding", "replay", "runner", "suites", "cover", "classes", "faults", "values", "members",
            "recorded", "recording", "tracing", "validate")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """How a campaign is run: failing tests that are enough, limits in seconds, which members."""

    seconds: float = 300.0
    test_seconds: float = 30.0
    workers: int = 0
    members: str = "*"  # globs, with commas between them
    is_cached: bool = True
    enough: int = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant; `asked` are the members that were asked, `tests` what they ran."""

    mutant: Mutant
    kills: tuple[Kill, ...]
    asked: tuple[str, ...]
    tests: int
    how: str  # the process: done, or how else it ended
    seconds: float
    is_cached: bool = False

    @property
    def tests_that_failed(self) -> int:
        """How many different tests failed."""
        return len({(kill.member, kill.test) for kill in self.kills})

    def verdict(self, enough: int = 2) -> str:
        """One of the words in the module's table."""
        if self.mutant.equivalent and self.kills:
            return WRONGLY
        if self.tests_that_failed >= enough:
            return TIMEOUT if all(kill.is_timeout for kill in self.kills) else KILLED
        if self.how != "done":
            return UNFINISHED
        if self.mutant.equivalent:
            return EQUIVALENT
        return WEAK if self.kills else SURVIVED


def _nothing(outcome: Outcome) -> None:
    """Hear of an outcome, and do nothing."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The implementation as it is: the tests that it passed, and the lines that each member runs."""

    kills: tuple[Kill, ...]  # none, or the campaign means nothing
    unfinished: tuple[str, ...]  # members, and how their process ended
    tests: int
    lines: Mapping[str, Lines]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be held to some members: a mutant, or for the survey the implementation as it is."""

    mutant: Mutant
    members: frozenset[str]


By = Callable[["Campaign", Sequence[Asked], float, Callable[[int, Ended], None]], list[Ended]]


def _here(
    campaign: Campaign, todo: Sequence[Asked], seconds: float, done: Callable[[int, Ended], None]
) -> list[Ended]:
    workers = campaign.settings.workers or cores()
    return run_all([campaign.task(one) for one in todo], workers, seconds, done)


class Campaign:
    """All that mutants of one implementation share; `packages` are the top names of what they change.

    `by` is who holds the mutants, each within some seconds: processes of this machine, if not a crew.
    """

    def __init__(
        self,
        bench: Bench,
        mutants: Path,
        packages: Iterable[str],
        settings: Settings,
        by: By | None = None,
    ) -> None:
        self.bench = bench
        self.folder = mutants
        self.packages = tuple(sorted(set(packages)))
        self.settings = settings
        self.by = by or _here
        self.members = self._listed()
        self.ground: Ground | None = None

    def _listed(self) -> list[Member]:
        """The members that are wanted."""
        every = members_of(self.folder, self.bench)
        wanted = self.settings.members.split(",")
        return [one for one in every if any(fnmatch.fnmatch(one.name, glob) for glob in wanted)]

    def run(self, mutants: Sequence[Mutant], done: Callable[[Outcome], None] = _nothing) -> list[Outcome]:
        """The outcomes of all mutants, in their order; `done` hears of each as soon as it is known."""
        world = self._world()
        keys = {one.id: self._key(world, one) for one in mutants}
        found: dict[str, Outcome] = {}
        for one in mutants:
            kept = _read(keys[one.id], one) if self.settings.is_cached else None
            if kept is not None:
                found[one.id] = kept
                done(kept)
        todo = [one for one in mutants if one.id not in found]
        ground = self.ground

        def ended(number: int, result: Ended) -> None:
            outcome = _outcome(todo[number], result)
            found[outcome.mutant.id] = outcome
            _write(keys[outcome.mutant.id], outcome)
            done(outcome)

        for member in self.members if todo else ():
            member.prepare(self.bench)
        asked = [Asked(one, self._asked(one, ground)) for one in todo]
        self.by(self, asked, self.settings.seconds, ended)
        return [found[one.id] for one in mutants]

    def survey(self) -> Ground:
        """Hold the implementation as it is to all members, and note which lines each of them runs."""
        world = self._world()
        keys = {one.name: self._key(world, UNCHANGED, (one.name,)) for one in self.members}
        found: dict[str, Ground] = {}
        for name, key in keys.items():
            kept = _read_ground(key) if self.settings.is_cached else None
            if kept is not None:
                found[name] = kept
        todo = [one for one in self.members if one.name not in found]

        def ended(number: int, result: Ended) -> None:
            name = todo[number].name
            found[name] = _ground(name, result)
            _write_ground(keys[name], found[name])

        for member in todo:
            member.prepare(self.bench)
        asked = [Asked(UNCHANGED, frozenset({member.name})) for member in todo]
        self.by(self, asked, SLOWER * self.settings.seconds, ended)
        every = [found[one.name] for one in self.members]
        self.ground = Ground(
            tuple(kill for one in every for kill in one.kills),
            tuple(words for one in every for words in one.unfinished),
            sum(one.tests for one in every),
            {name: lines for one in every for name, lines in one.lines.items()},
        )
        return self.ground

    def task(self, asked: Asked) -> Task:
        """What a process has to do; `UNCHANGED` is surveyed."""
        if asked.mutant == UNCHANGED:
            return self._survey(*asked.members)
        return self._task(asked.mutant, asked.members)

    def _survey(self, name: str) -> Task:
        def hold(say: Say) -> None:
            _silence()
            limit = SLOWER * self.settings.seconds
            reporter = Reporter(0, limit, lambda kill: say(("kill", kill)), name)
            (member,) = [one for one in self.freshly(()) if one.name == name]
            with recording(self.packages) as tracer:
                member.hold(self.bench, (), reporter)
            say(("ran", reporter.tests, tracer.lines()))

        return hold

    def _asked(self, mutant: Mutant, ground: Ground | None) -> frozenset[str]:
        """The members that could notice a mutant."""
        changed = touched(mutant.patches)
        names = [one.name for one in self.members]
        return frozenset(name for name in names if ground is None or reaches(ground.lines[name], changed))

    def _task(self, mutant: Mutant, asked: frozenset[str]) -> Task:
        def hold(say: Say) -> None:
            _silence()
            limit = self.settings.test_seconds
            reporter = Reporter(self.settings.enough, limit, lambda kill: say(("kill", kill)))
            for member in self.freshly(mutant.patches, reporter):
                if member.name in asked and reporter.goes_on:
                    reporter.member = member.name
                    member.hold(self.bench, mutant.modules, reporter)
                    say(("asked", member.name, reporter.tests))

        return hold

    def freshly(self, patches: tuple[Patch, ...], reporter: Reporter | None = None) -> list[Member]:
        """The members, with an implementation loaded anew with these patches: for the rest of a process.

        One that cannot even be loaded fails every member.
        """
        forget(self.packages, [self.bench.folder, self.folder])
        install(patches)
        try:
            return self._listed()
        except BROKEN as error:
            if reporter is None:
                raise
            for member in self.members:
                reporter.member = member.name
                reporter.tell("loading", f"{type(error).__name__}: {error}")
            return []

    # -- what an outcome depends on

    def _key(self, world: str, mutant: Mutant, members: Sequence[str] = ()) -> str:
        names = list(members) or [one.name for one in self.members]
        enough = self.settings.enough if mutant.patches else 0
        about = (world, as_json(mutant.patches), enough, names)
        return hashlib.sha256(repr(about).encode()).hexdigest()[:40]

    def _world(self) -> str:
        """A digest of all sources that play a part, the patches aside."""
        files = {path for package in self.packages for path, _ in modules_of(package)}
        files.update(self.bench.spec.parent.rglob("*.spec"))
        files.update(self.bench.folder.glob("*.py"), self.folder.glob("*.py"), watched(self.folder))
        files.update(path for folder in _SEARCHES for path in (_HERE.parent / folder).glob("*.py"))
        files.update(_HERE / f"{name}.py" for name in _REPLAYS)
        digest = hashlib.sha256()
        for path in sorted(files):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()


def _outcome(mutant: Mutant, ended: Ended) -> Outcome:
    kills = tuple(one[1] for one in ended.said if one[0] == "kill")
    asked = [one for one in ended.said if one[0] == "asked"]
    tests = max((one[2] for one in asked), default=0)
    how = f"{ended.how}: {ended.why}" if ended.why else ended.how
    return Outcome(mutant, kills, tuple(one[1] for one in asked), tests, how, ended.seconds)


def _ground(name: str, ended: Ended) -> Ground:
    """What one member says of the implementation as it is."""
    kills = tuple(said[1] for said in ended.said if said[0] == "kill")
    ran = [said for said in ended.said if said[0] == "ran"]
    if not ran:
        return Ground(kills, (f"{name} ({ended.why or ended.how})",), 0, {name: {}})
    return Ground(kills, (), ran[0][1], {name: ran[0][2]})


def _silence() -> None:
    """Let what members print go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


def _path(key: str) -> Path | None:
    directory = cache_directory()
    return None if directory is None else directory / "mutants" / f"{key}.json"


def _read(key: str, mutant: Mutant) -> Outcome | None:
    path = _path(key)
    if path is None:
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        kills = tuple(Kill(**one) for one in found["kills"])
        asked = tuple(found["asked"])
        return Outcome(mutant, kills, asked, found["tests"], found["how"], found["seconds"], is_cached=True)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_ground(key: str) -> Ground | None:
    path = _path(key)
    if path is None:
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        lines = {name: {module: frozenset(those) for module, those in one.items()}
                 for name, one in found["lines"].items()}  # fmt: skip
        return Ground((), (), found["tests"], lines)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _write_ground(key: str, ground: Ground) -> None:
    """Keep it if it is sound."""
    if not ground.kills and not ground.unfinished:
        lines = {
            name: {module: sorted(those) for module, those in one.items()}
            for name, one in ground.lines.items()
        }
        _keep(key, {"tests": ground.tests, "lines": lines})


def _write(key: str, outcome: Outcome) -> None:
    """Keep an outcome, unless it depends on how busy the machine was."""
    if outcome.how != "done" or any(kill.is_timeout for kill in outcome.kills):
        return
    found = {
        "kills": [asdict(kill) for kill in outcome.kills], "asked": outcome.asked, "tests": outcome.tests,
        "how": outcome.how, "seconds": outcome.seconds,
    }  # fmt: skip
    _keep(key, found)


def _keep(key: str, found: Mapping[str, object]) -> None:
    path = _path(key)
    if path is None:
        return
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found), encoding="utf-8")
