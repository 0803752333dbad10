"""Suites: selections of a spec's steps for an implementation to take.

- `product`: breadth first through the spec's states, as the implementation reaches them: every
  edge once, every disabled instance of every state probed.  Divergences have shortest paths.
- `walks`: at random, with a seed; the disabled instances of every state on the way are probed.
- `classes`, `edges`: cases computed from the spec beforehand (`cover`), taken by `runner`.

A suite without findings reports whether it could have had any: a comparison that does not detect a wrong
value, a suite without steps or without probes is `vacuous`, which is not a success.

Both continue from the implementation's choice if the spec leaves one.  The product keeps one
system for each state: other systems in the same state of the spec, reached by another path, are
left to the walks.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any, Generic, TypeVar

from msgspec import Struct

from specchk.conform.covers.cases import EffectClass
from specchk.conform.replay.place import Diverged, Divergence, Place, ReplayTally
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.spec_side import ActionCall
from specchk.meaning.values import State

S = TypeVar("S")
BREADTH_FIRST = ("product", "faults")  # suites that go to every place by a shortest path


class Coverage(Struct, frozen=True):
    """The coverage of a suite's cases, by position in the suite's classes.

    A class of refusals is `refused` if the implementation received the request and refused, `impossible` if
    the binding had no request for it in any tried place.  `listed` are the classes of steps
    that the implementation is listed as never taking (`choices`).  `tried` are the classes of the cases that
    passed: one of them that is not covered was tried, and the implementation chose otherwise.
    """

    cases: int
    classes: tuple[EffectClass, ...]
    covered: frozenset[int]
    probe_classes: tuple[EffectClass, ...]
    refused: frozenset[int]
    impossible: frozenset[int]
    listed: frozenset[int] = frozenset()
    tried: frozenset[int] = frozenset()
    cover: str = ""
    """The cover in words, as `Suite.cover`; empty where some of the suite's cases were left out."""
    states: int = 0
    edges: int = 0
    """Of the spec's graph, as `Suite` has them."""

    @property
    def missed(self) -> tuple[EffectClass, ...]:
        """The classes of steps that were reachable and neither taken nor established as never taken."""
        return tuple(
            self.classes[at] for at in range(len(self.classes)) if at not in self.covered | self.listed
        )

    @property
    def avoided(self) -> tuple[EffectClass, ...]:
        """The missed classes that a case tried."""
        return tuple(self.classes[at] for at in sorted(self.tried - self.covered - self.listed))

    @property
    def never(self) -> tuple[EffectClass, ...]:
        """The classes that the spec allows and that the implementation provably never takes."""
        return tuple(self.classes[at] for at in sorted(self.listed - self.covered))

    @property
    def wrong(self) -> tuple[EffectClass, ...]:
        """The classes that are listed as never taken, but were taken."""
        return tuple(self.classes[at] for at in sorted(self.listed & self.covered))

    @property
    def reachable(self) -> int:
        """The number of classes of steps that this implementation can take, as far as established."""
        return len(self.classes) - len(self.never)

    def __str__(self) -> str:
        more = f" ({len(self.never)} more are allowed but never taken)" if self.never else ""
        cover = f", {self.cover}" if self.cover else ""
        return f"{len(self.covered)} of {self.reachable} classes{more}{cover}"


class SuiteResult(Struct, frozen=True):
    """The result of a suite; `complete` unless a budget ended it.

    `failed` is the id of the case that diverged, `passed` are the ids of those that were taken before it
    and did not.  A case in neither was not run.  `coverage` is of suites that are made of cases.
    """

    suite: str
    divergence: Divergence | None
    tally: ReplayTally
    states: int
    complete: bool
    seconds: float
    vacuous: str = ""
    """Why the suite says nothing, whatever it found; empty where it says something."""
    failed: str | None = None
    coverage: Coverage | None = None
    passed: tuple[str, ...] = ()

    @property
    def steps(self) -> int:
        """The number of steps taken."""
        return sum(self.tally.taken.values())

    @property
    def probes(self) -> int:
        """The number of disabled instances that were tried and refused by the implementation."""
        return sum(self.tally.refused.values())


class SuiteWalks(Struct, frozen=True):
    """The size of a random suite."""

    seed: int
    walks: int
    steps: int


def run_product(replayer: Replayer[Any], limit: int | None = None) -> SuiteResult:
    """Explore spec and implementation together; at most `limit` states are expanded."""
    return _Product(replayer, limit).run()


def run_walks(replayer: Replayer[Any], walks: SuiteWalks) -> SuiteResult:
    """Walk at random, repeatably by seed."""
    return _Walker(replayer, walks).run()


def why_vacuous(tally: ReplayTally, blind_to: Sequence[str], disabled: int) -> str:
    """The reason why a suite without a divergence is vacuous; empty if it is sound."""
    if blind_to:
        return f"a wrong value of {', '.join(blind_to)} was not detected"
    if not tally.taken:
        return "no step was taken"
    # Where something is forbidden it must have been tried: a suite that skips its probes would pass on
    # anything.
    if disabled and not tally.refused and not tally.impossible:
        return f"none of {disabled} disabled instances was tried"
    # The initial state is compared as well, so there must be one comparison more than steps.
    if tally.compared <= sum(tally.taken.values()):
        return "not every step was followed by a comparison"
    return ""


class WholeSuite(ABC, Generic[S]):
    """A suite that does not consist of cases: its steps are chosen while it runs."""

    name = ""

    def __init__(self, replayer: Replayer[S]) -> None:
        self.replayer = replayer
        self.seen: set[State] = set()
        self.complete = True
        self.disabled = 0

    def run(self) -> SuiteResult:
        """The whole suite, to its end or its first divergence."""
        begun = perf_counter()
        divergence = None
        try:
            self.go()
        except Diverged as diverged:
            divergence = diverged.divergence
        seconds = perf_counter() - begun
        complete = self.complete and divergence is None
        tally = self.replayer.tally
        vacuous = "" if divergence is not None else self.vacuous()
        return SuiteResult(self.name, divergence, tally, len(self.seen), complete, seconds, vacuous)

    def vacuous(self) -> str:
        """The reason why the suite is vacuous; empty if it is not."""
        return why_vacuous(self.replayer.tally, self.replayer.blind_to, self.disabled)

    def _probe(self, place: Place[S], disabled: Sequence[ActionCall]) -> None:
        """Try all forbidden steps at a place, and check that the place is unchanged."""
        self.disabled += len(disabled)
        self.replayer.probe(place, disabled)
        self.replayer.check_kept(place)

    @abstractmethod
    def go(self) -> None:
        """Take the steps of the suite; raises `Diverged`."""


def breadth_first(
    replayer: Replayer[S],
    seen: set[State],
    limit: int | None,
    steps: Callable[[Place[S]], Iterable[Place[S]]],
) -> bool:
    """Visit every place of the product once, and note its state; `steps` takes the steps of one place.

    False where `limit` places had their steps taken and others had not.
    """
    first = replayer.begin()
    seen.add(first.state)
    queue = deque([first] if replayer.spec.inside(first.state) else [])
    expanded = 0
    while queue:
        if expanded == limit:
            return False
        expanded += 1
        for after in steps(queue.popleft()):
            # Marked when first reached, and not when expanded: otherwise it would be queued once for each
            # way to it.
            if after.state not in seen:
                seen.add(after.state)
                if replayer.spec.inside(after.state):
                    queue.append(after)
    return True


class BreadthFirst(WholeSuite[S]):
    """A suite that reaches every place by a shortest path, and takes the steps of at most `limit` places."""

    def __init__(self, replayer: Replayer[S], limit: int | None) -> None:
        super().__init__(replayer)
        self.limit = limit

    def go(self) -> None:
        """Take the steps breadth first, from the initial state."""
        self.complete = breadth_first(self.replayer, self.seen, self.limit, self._steps)

    @abstractmethod
    def _steps(self, place: Place[S]) -> Iterator[Place[S]]:
        """Take all steps at one place; returns the places reached."""


class _Product(BreadthFirst[S]):
    name = "product"

    def _steps(self, place: Place[S]) -> Iterator[Place[S]]:
        """Take all steps at one place, and then all probes."""
        self.replayer.check_kept(place)
        enabled, disabled = self.replayer.spec.options(place.state)
        for instance, successors in enabled:
            yield from self.replayer.take(place, instance, successors)
        self._probe(place, disabled)


class _Walker(WholeSuite[S]):
    name = "walks"

    def __init__(self, replayer: Replayer[S], walks: SuiteWalks) -> None:
        super().__init__(replayer)
        self.walks = walks
        self.random = random.Random(walks.seed)  # noqa: S311 - chooses tests, keeps no secrets

    def go(self) -> None:
        """Take each walk from the start, until it ends or is long enough."""
        for _ in range(self.walks.walks):
            place = self._inside(self.replayer.begin())
            for _ in range(self.walks.steps):
                if place is None:
                    break
                place = self._go_on(place)

    def _inside(self, place: Place[S]) -> Place[S] | None:
        """The place, if the spec's constraints allow a search to continue there; otherwise None."""
        return place if self.replayer.spec.inside(place.state) else None

    def _go_on(self, place: Place[S]) -> Place[S] | None:
        """Probe an unseen state, and take one step; None if no step is possible."""
        enabled, disabled = self.replayer.spec.options(place.state)
        # Probing a state again would show nothing new; the walk's length is better spent on steps.
        if place.state not in self.seen:
            self.seen.add(place.state)
            self.replayer.check_kept(place)
            self._probe(place, disabled)
        if not enabled:
            return None
        # The action first, then one of its instances: else an action with many arguments would be nearly
        # all of a walk.
        action = self.random.choice(sorted({instance.index for instance, _ in enabled}))
        chosen, successors = self.random.choice([pair for pair in enabled if pair[0].index == action])
        reached = self.replayer.take(place, chosen, successors)
        return self._inside(self.random.choice(reached)) if reached else None
