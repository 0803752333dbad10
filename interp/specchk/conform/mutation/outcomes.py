"""Outcomes of mutants and of the unchanged implementation, and their storage between runs.

    killed      by two tests at least
    weak        by one: the gate would lose it with one test
    endless     by tests that did too much work; counted as killed, and apart
    survived    by none
    unfinished  not decided: its process died, or its time was over before all members were asked
    equivalent  survived, and its file argues why it may
    wrongly     argued to be equivalent, but killed: the argument is wrong

Nothing here depends on how fast a machine is, but `unfinished`: then there is no score.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from specchk import kept
from specchk.conform.mutation.members import Kill
from specchk.conform.mutation.mutants import Mutant
from specchk.conform.mutation.reach import Lines
from specchk.conform.work.pool import DONE, LATE, Ended

KILLED, WEAK, ENDLESS = "killed", "weak", "endless"
SURVIVED, UNFINISHED = "survived", "unfinished"
EQUIVALENT, WRONGLY = "equivalent", "wrongly"
GOOD = frozenset({KILLED, ENDLESS})  # what counts as killed


@dataclass(frozen=True, slots=True)
class MutantOutcome:
    """The outcome of a mutant; `asked` are the members that ran, `tests` the number of their tests."""

    mutant: Mutant
    kills: tuple[Kill, ...]
    asked: tuple[str, ...]
    tests: int
    how: str  # the process: done, or how else it ended
    seconds: float
    is_cached: bool = False
    is_late: bool = False

    @property
    def tests_that_failed(self) -> int:
        """How many different tests failed."""
        return len({(kill.member, kill.test) for kill in self.kills})

    def verdict(self, enough: int = 2) -> str:
        """One of the words in the module's table."""
        # Before anything else: an argument that is refuted is wrong, however few tests do it.
        if self.mutant.equivalent and self.kills:
            return WRONGLY
        # Before the question how its process ended: enough tests had failed by then.
        if self.tests_that_failed >= enough:
            return ENDLESS if all(kill.is_endless for kill in self.kills) else KILLED
        if self.how != DONE:
            return UNFINISHED
        if self.mutant.equivalent:
            return EQUIVALENT
        return WEAK if self.kills else SURVIVED


@dataclass(frozen=True, slots=True)
class Baseline:
    """The unchanged implementation: the tests that it passed, the lines that each member runs, and its work.

    `work` is the most that one test of a member did.
    """

    kills: tuple[Kill, ...]  # none, or the campaign means nothing
    unfinished: tuple[str, ...]  # members, and how their process ended
    tests: int
    lines: Mapping[str, Lines]
    work: Mapping[str, int] = field(default_factory=dict)
    is_late: bool = False

    @property
    def is_sound(self) -> bool:
        """Whether it passed everything."""
        return not (self.kills or self.unfinished)


def words_of(ended: Ended) -> str:
    """How a process ended, for people."""
    if ended.how == LATE:
        return f"stopped after {ended.seconds:.0f} s"
    return f"{ended.how}: {ended.why}" if ended.why else ended.how


def outcome_of(mutant: Mutant, ended: Ended) -> MutantOutcome:
    """The messages of a mutant's process, and its end."""
    kills = tuple(one[1] for one in ended.said if one[0] == "kill")
    asked = [one for one in ended.said if one[0] == "asked"]
    # The reporter counts on over all members, so the last number is the sum.
    tests = max((one[2] for one in asked), default=0)
    names = tuple(one[1] for one in asked)
    how, is_late = words_of(ended), ended.how == LATE
    return MutantOutcome(mutant, kills, names, tests, how, ended.seconds, is_late=is_late)


def ground_of(name: str, ended: Ended) -> Baseline:
    """The result of one member on the unchanged implementation."""
    kills = tuple(said[1] for said in ended.said if said[0] == "kill")
    ran = [said for said in ended.said if said[0] == "ran"]
    if not ran:
        how = f"{name} ({ended.why or words_of(ended)})"
        return Baseline(kills, (how,), 0, {name: {}}, {name: 0}, ended.how == LATE)
    _, tests, lines, most = ran[0]
    return Baseline(kills, (), tests, {name: lines}, {name: most})


def together(every: list[Baseline]) -> Baseline:
    """The results of all members."""
    return Baseline(
        tuple(kill for one in every for kill in one.kills),
        tuple(words for one in every for words in one.unfinished),
        sum(one.tests for one in every),
        {name: lines for one in every for name, lines in one.lines.items()},
        {name: most for one in every for name, most in one.work.items()},
        any(one.is_late for one in every),
    )


def _place(key: str) -> Path | None:
    return kept.place("mutants", f"{key}.json")


def read_outcome(key: str, mutant: Mutant) -> MutantOutcome | None:
    """The outcome that was kept under a name."""
    data = kept.read(_place(key))
    if data is None:
        return None
    found = json.loads(data)
    kills = tuple(Kill(**one) for one in found["kills"])
    asked = tuple(found["asked"])
    return MutantOutcome(mutant, kills, asked, found["tests"], DONE, found["seconds"], is_cached=True)


def write_outcome(key: str, outcome: MutantOutcome) -> None:
    """Keep an outcome, unless it is none."""
    if outcome.how == DONE:
        # What was stopped says how fast this machine was; it is not kept.
        kills = [asdict(kill) for kill in outcome.kills]
        found = {"kills": kills, "asked": outcome.asked, "tests": outcome.tests, "seconds": outcome.seconds}
        kept.write(_place(key), json.dumps(found).encode())


def read_ground(key: str) -> Baseline | None:
    """The stored results on the unchanged implementation."""
    data = kept.read(_place(key))
    if data is None:
        return None
    found = json.loads(data)
    lines = {name: {module: frozenset(those) for module, those in one.items()}
             for name, one in found["lines"].items()}  # fmt: skip
    return Baseline((), (), found["tests"], lines, found["work"])


def write_ground(key: str, ground: Baseline) -> None:
    """Keep it if it is sound."""
    if ground.is_sound:
        lines = {
            name: {module: sorted(those) for module, those in one.items()}
            for name, one in ground.lines.items()
        }
        found = {"tests": ground.tests, "lines": lines, "work": dict(ground.work)}
        kept.write(_place(key), json.dumps(found).encode())
