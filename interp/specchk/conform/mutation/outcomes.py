"""Outcomes of mutants and of the unchanged implementation, and their storage between runs.

    killed      by two tests at least
    weak        by one: the gate would lose it with one test
    endless     by tests that did too much work; counted as killed, and apart
    survived    by none
    unfinished  not decided: its process died, or its time was over before all members had run
    equivalent  survived, and its file argues why it is allowed to
    wrongly     argued to be equivalent, but killed: the argument is wrong

Nothing here depends on how fast a machine is, but `unfinished`: then there is no score.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import replace

from specchk import kept
from specchk.conform.mutation.members import Kill
from specchk.conform.mutation.mutants import Mutant
from specchk.conform.mutation.reach import Lines
from specchk.conform.work.forks import DONE, LATE, Ended

KILLED, WEAK, ENDLESS = "killed", "weak", "endless"
SURVIVED, UNFINISHED = "survived", "unfinished"
EQUIVALENT, WRONGLY = "equivalent", "wrongly"
GOOD = frozenset({KILLED, ENDLESS})  # what counts as killed


class MutantOutcome(Struct, frozen=True):
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
        """The number of different tests that failed."""
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


class Baseline(Struct, frozen=True):
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
        """Whether every test passed."""
        return not (self.kills or self.unfinished)


def words_of(ended: Ended) -> str:
    """The end of a process, in words."""
    if ended.how == LATE:
        return f"stopped after {ended.seconds:.0f} s"
    return f"{ended.how}: {ended.why}" if ended.why else ended.how


def outcome_of(mutant: Mutant, ended: Ended) -> MutantOutcome:
    """The outcome from the messages of a mutant's process, and its end."""
    kills = tuple(message[1] for message in ended.said if message[0] == "kill")
    asked = [message for message in ended.said if message[0] == "asked"]
    # The reporter counts on over all members, so the last number is the sum.
    tests = max((message[2] for message in asked), default=0)
    names = tuple(message[1] for message in asked)
    how, is_late = words_of(ended), ended.how == LATE
    return MutantOutcome(mutant, kills, names, tests, how, ended.seconds, is_late=is_late)


def ground_of(name: str, ended: Ended) -> Baseline:
    """The result of one member on the unchanged implementation."""
    kills = tuple(message[1] for message in ended.said if message[0] == "kill")
    ran = [message for message in ended.said if message[0] == "ran"]
    if not ran:
        how = f"{name} ({ended.why or words_of(ended)})"
        return Baseline(kills, (how,), 0, {name: {}}, {name: 0}, ended.how == LATE)
    _, tests, lines, most = ran[0]
    return Baseline(kills, (), tests, {name: lines}, {name: most})


def together(every: list[Baseline]) -> Baseline:
    """The results of all members together."""
    return Baseline(
        tuple(kill for baseline in every for kill in baseline.kills),
        tuple(words for baseline in every for words in baseline.unfinished),
        sum(baseline.tests for baseline in every),
        {name: lines for baseline in every for name, lines in baseline.lines.items()},
        {name: most for baseline in every for name, most in baseline.work.items()},
        any(baseline.is_late for baseline in every),
    )


def _place(key: str) -> Path | None:
    return kept.place("mutants", f"{key}.json")


def read_outcome(key: str, mutant: Mutant) -> MutantOutcome | None:
    """The outcome stored under a name."""
    known = kept.read_json(_place(key))
    # Its story is not a part of the name.
    return None if known is None else replace(convert(known, MutantOutcome), mutant=mutant, is_cached=True)


def write_outcome(key: str, outcome: MutantOutcome) -> None:
    """Store an outcome, unless it is none."""
    if outcome.how == DONE:
        # A stopped mutant depends on the speed of this machine; it is not kept.
        kept.write_json(_place(key), to_builtins(outcome))


def read_ground(key: str) -> Baseline | None:
    """The stored results on the unchanged implementation."""
    known = kept.read_json(_place(key))
    return None if known is None else convert(known, Baseline)


def write_ground(key: str, ground: Baseline) -> None:
    """Store the results, if they are sound."""
    if ground.is_sound:
        kept.write_json(_place(key), to_builtins(ground))
