"""A campaign: whether the gate kills each mutant of an implementation, and by which of its tests.

Every mutant gets its own forked process.  There the implementation and its binding are
unloaded, the mutant's patches installed, and all loaded again; the spec, its programs and suites are
the parent's, since no mutant changes them.  Then the members of the gate are run, cheapest first,
until two different tests have failed.

The implementation without any patch, `UNCHANGED`, must pass all of it.  That run also records the lines
that each member runs, so that a mutant is run only by members that could detect it; and the work
(`work`) of its longest test, so that one that does many times as much is endless: the same on every
machine.  Seconds decide nothing: a process that is stopped because its time is over has no verdict.

Outcomes are kept on disk under a digest of the mutant, the sources of the implementation, of all that is
loaded beside it, and of specchk, the spec, and the packages that are installed.

Not here: the list of mutants (`mutants`, `operators`), their outcomes (`outcomes`), and the report
(`scores`).
"""

from __future__ import annotations

import fnmatch
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from specchk import kept
from specchk.conform.contract.failures import LEAVING
from specchk.conform.mutation import members, outcomes
from specchk.conform.mutation.members import Bench, Member, Reporter, SuiteMember
from specchk.conform.mutation.mutants import Mutant, MutantError
from specchk.conform.mutation.other_gates import AcceptedRuns, files_of
from specchk.conform.mutation.outcomes import Baseline, MutantOutcome
from specchk.conform.mutation.patches import Counted, Patch, forget, install
from specchk.conform.mutation.reach import modules_of, reaches, recording, touched
from specchk.conform.work import lock_file
from specchk.conform.work.effort import TooMuch
from specchk.conform.work.forks import Ended, Say, Task, run_all
from specchk.conform.work.installed import installed
from specchk.conform.work.sources import is_theirs
from specchk.processes import cores

T = TypeVar("T")
UNCHANGED = Mutant("unchanged", "none", "The unchanged implementation.", ())
SLOWER = 4.0  # while lines are noted; by as much more time may the survey take
# A mutant may do more than the implementation without being endless (a retry more, a longer log); the
# margin costs time only where there is no end.
MORE_WORK = 20  # times the work of a member's longest test, and it is endless
# So that tests with very little work need not be measured precisely.
LEAST_WORK = 1 << 20  # loops and calls that every test may do
UNMEASURED = 1 << 27  # the same, if the unchanged implementation was not measured


class Settings(Struct, frozen=True):
    """The settings of a campaign: sufficient failing tests, members, and amounts of work.

    `seconds` are for hangs: a process is stopped after them.  `work` is the permitted work of a test, in
    loops and calls, 0 for many times the work of the unchanged implementation.
    """

    seconds: float = 1800.0
    work: int = 0
    workers: int = 0
    members: str = "*"  # globs, with commas between them
    is_cached: bool = True
    enough: int = 2
    only_judges: bool = False  # only the members that judge with a binding or a tracing


class Subject(Struct, frozen=True):
    """A subject of some members: a mutant, or in the survey the unchanged implementation."""

    mutant: Mutant
    members: frozenset[str]
    work: tuple[tuple[str, int], ...] = ()  # that a test of each member may do


class Records(Struct, Generic[T], frozen=True):
    """How results of subjects are read from the cache, computed and kept; `done` receives each."""

    read: Callable[[str, Subject], T | None]
    made: Callable[[Subject, Ended], T]
    write: Callable[[str, T], None]
    done: Callable[[T], None]


@dataclass(slots=True)
class MutationCampaign:
    """The mutants of one implementation; `packages` are the top names of changed modules."""

    bench: Bench
    folder: Path
    packages: tuple[str, ...]
    settings: Settings
    ground: Baseline | None = None
    members: list[Member] = field(init=False)

    def __post_init__(self) -> None:
        # Sorted, since they are a part of cache keys.
        self.packages = tuple(sorted(set(self.packages)))
        self.members = self._listed()

    def _listed(self) -> list[Member]:
        """The selected members; `MutantError` for a pattern that selects none."""
        every = members.members_of(self.folder, self.bench)
        wanted = self.settings.members.split(",")
        for glob in wanted:
            if not fnmatch.filter([member.name for member in every], glob):
                names = ", ".join(member.name for member in every)
                raise MutantError(f"no member is named `{glob}`; there are: {names}")
        if self.settings.only_judges:
            every = tuple(one for one in every if not isinstance(one, members.Outside | AcceptedRuns))
        return [member for member in every if any(fnmatch.fnmatch(member.name, glob) for glob in wanted)]

    def run(
        self, mutants: Sequence[Mutant], done: Callable[[MutantOutcome], None] = lambda _: None
    ) -> list[MutantOutcome]:
        """The outcomes of all mutants, in order; `done` receives each as soon as it is known."""
        records = Records(
            lambda key, subject: outcomes.read_outcome(key, subject.mutant),
            lambda subject, ended: outcomes.outcome_of(subject.mutant, ended), outcomes.write_outcome, done,
        )  # fmt: skip
        return self._held([self._asked(mutant) for mutant in mutants], self.settings.seconds, records)

    def survey(self) -> Baseline:
        """Run all members on the unchanged implementation; record the lines that each runs, and its work."""
        grounds = Records(
            lambda key, _: outcomes.read_ground(key),
            lambda subject, ended: outcomes.ground_of(min(subject.members), ended),
            outcomes.write_ground, lambda _: None,
        )  # fmt: skip
        # Of unlimited work, if no number was given.
        work = self.settings.work
        subjects = [
            Subject(UNCHANGED, frozenset({member.name}), ((member.name, work),) if work else ())
            for member in self.members
        ]
        self.ground = outcomes.together(self._held(subjects, SLOWER * self.settings.seconds, grounds))
        return self.ground

    def _held(self, subjects: Sequence[Subject], seconds: float, records: Records[T]) -> list[T]:
        """The results of all subjects, in order, whether cached or computed now."""
        world = self._world()
        keys = [self._key(world, each) for each in subjects]
        results: dict[int, T] = {}
        for number, (key, subject) in enumerate(zip(keys, subjects, strict=True)):
            known = records.read(key, subject) if self.settings.is_cached else None
            if known is not None:
                results[number] = known
                records.done(known)
        todo = [number for number in range(len(subjects)) if number not in results]

        def ended(position: int, result: Ended) -> None:
            number = todo[position]
            results[number] = records.made(subjects[number], result)
            # As soon as it is known: a campaign of hours that is interrupted continues with the mutants that
            # are left.
            records.write(keys[number], results[number])
            records.done(results[number])

        # In the parent, before any fork: suites and programs are then shared by all processes.
        needed = frozenset[str]().union(*(subjects[number].members for number in todo))
        for member in self.members:
            if member.name in needed:
                member.prepare(self.bench)
        asked = [subjects[number] for number in todo]
        run_all(list(map(self.task, asked)), self.settings.workers or cores(), seconds, ended)
        return [results[number] for number in range(len(subjects))]

    def task(self, subject: Subject) -> Task:
        """The task of a process; `UNCHANGED` is surveyed."""
        return partial(self._survey if subject.mutant == UNCHANGED else self._test, subject)

    def _survey(self, subject: Subject, say: Say) -> None:
        _silence()
        (name,) = subject.members
        # All failures, not the first: the survey reports the errors of the unchanged implementation.
        reporter = Reporter(0, dict(subject.work), lambda kill: say(("kill", kill)), member=name)
        # From before the implementation is loaded: loading may call its functions, and start threads.
        with recording(self.packages) as tracer:
            (member,) = [one for one in self.freshly((), reporter) if one.name == name]
            member.hold(self.bench, (), reporter)
        say(("ran", reporter.tests, tracer.lines(), reporter.most))

    def _test(self, subject: Subject, say: Say) -> None:
        _silence()
        mutant = subject.mutant
        reporter = Reporter(self.settings.enough, dict(subject.work), lambda kill: say(("kill", kill)))
        for member in shown_first(self.freshly(mutant.patches, reporter), mutant.shown):
            self._begin(reporter, member)
            if member.name in subject.members and reporter.needs_more:
                member.hold(self.bench, mutant.modules, reporter)
                say(("asked", member.name, reporter.tests))

    def _asked(self, mutant: Mutant) -> Subject:
        """The members that could detect a mutant, and the work allowed for each of their tests."""
        changed, ground = touched(mutant.patches), self.ground
        names = [member.name for member in self.members]
        # Without a survey every member is held to be able: slower, and never wrong.
        able = [name for name in names if ground is None or reaches(ground.lines[name], changed)]
        return Subject(mutant, frozenset(able), tuple((name, self._work(name)) for name in able))

    def _work(self, member: str) -> int:
        if self.settings.work:
            return self.settings.work
        if self.ground is None:
            return UNMEASURED
        # Rounded up to a power of two, so that a test that does a little more keeps its key in the cache.
        return max(LEAST_WORK, 1 << (MORE_WORK * self.ground.work[member]).bit_length())

    def freshly(self, patches: tuple[Patch, ...], reporter: Reporter) -> list[Member]:
        """The members, with the implementation reloaded with these patches, for the rest of a process.

        One of a mutant that cannot even be loaded fails every member.
        """
        # In a forked process, which ends afterwards: nothing must be restored.  All of the user's modules may
        # have names of the unchanged implementation, wherever the binding imports them from.
        forget(self.packages, {self.bench.folder, self.folder, *(path.parent for path in _loaded())})
        install(patches, Counted(frozenset(self.packages), reporter.meter))
        try:
            # Loading is limited, too: a mutant may loop at the level of a module.
            with reporter.meter.giving(UNMEASURED):
                return self._listed()
        except (*LEAVING, TooMuch) as error:
            # Without patches a failure is one of the members themselves, and a verdict on mutants would hide
            # it.
            if not patches or not (isinstance(error, TooMuch) or members.is_failure(error)):
                raise
            for member in self.members:
                self._begin(reporter, member)
                reporter.note("loading", f"{type(error).__name__}: {error}")
            return []

    def _begin(self, reporter: Reporter, member: Member) -> None:
        """Attribute the next tests to a member."""
        reporter.member = member.name

    def _key(self, world: str, subject: Subject) -> str:
        # The survey runs every test, however many failures are enough for a kill; its results serve both.
        enough = self.settings.enough if subject.mutant.patches else 0
        return kept.name_of(world, subject.mutant.patches, enough, sorted(subject.members), subject.work)

    def _world(self) -> str:
        """A digest of all relevant sources, except the patches."""
        files = {path.resolve() for package in self.packages for path, _ in modules_of(package)}
        files.update(self.bench.spec.parent.rglob("*.spec"))
        files.update(
            self.bench.folder.glob("*.py"), self.folder.glob("*.py"), members.listed(self.folder, "WATCHED")
        )
        files.update(files_of(self.members, self.bench))
        # What members import besides is not known by name, so all that is loaded of the user's counts.
        files.update(_loaded())
        # Of the lock only what adds cases to suites: new scores in it make no other outcomes.
        chosen = lock_file.read(self.bench.folder / lock_file.NAME).choices
        return kept.name_of(kept.sources(), installed(), kept.contents(files, self.bench.folder), chosen)


def shown_first(members: Sequence[Member], model: str) -> list[Member]:
    """The members in order, except that suites over one model come first; an empty name selects none."""
    # A mutant that only one model shows would pass all cheaper suites, minutes each, before it is killed.
    suites = [member for member in members if isinstance(member, SuiteMember)]
    waiting = iter(sorted(suites, key=lambda suite: not model or suite.at.model != model))
    return [next(waiting) if isinstance(member, SuiteMember) else member for member in members]


def _loaded() -> Iterator[Path]:
    """The files of the user's loaded modules: further code that members and bindings run."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) or ""
        if file.endswith(".py") and is_theirs(path := Path(file).resolve()) and path.is_file():
            yield path


def _silence() -> None:
    """Discard the output of members."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    # The descriptors and not `sys.stdout`: members may start processes, or print from C.
    for stream in (1, 2):
        os.dup2(nowhere, stream)
