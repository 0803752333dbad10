"""Exploration of the choices that an implementation makes among its spec's: its whole product.

Breadth first through the states that the two reach together, from each state every step in every way,
as the suite `product` does; probes are omitted.  A class that no step has is never taken, as far as a
state of the spec determines the next behaviour of the implementation: the product keeps one system
for each state, the first to reach it.  For each requested class the first ways are kept.

Not here: the file (`choices`), its report (`gate_report`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from specchk.conform.covers.cases import CaseStep
from specchk.conform.covers.classes import Classifier, Key
from specchk.conform.covers.cover import EDGES_PER_CLASS
from specchk.conform.covers.instances import Instances
from specchk.conform.gate.choices import of_model, written_step
from specchk.conform.gate.tiers import Part, SuiteBudget
from specchk.conform.replay.place import Diverged, Place
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import PASSING
from specchk.conform.replay.suites import SuiteResult, breadth_first
from specchk.conform.work.forks import each
from specchk.conform.work.lock_file import Choices, ChosenPath, Listed
from specchk.meaning.initial import initial_states
from specchk.meaning.tracing import Tracer
from specchk.meaning.values import State
from specchk.processes import cores

# Of a state's steps, by action, arguments and state after, the ids of their classes.
Taken = dict[tuple[int, tuple[Any, ...], State], frozenset[str]]


class NotExplored(Exception):
    """A product ended by a divergence or a budget, which shows nothing about classes never taken."""


class Explorer:
    """Explores the product of one binding: the ids of the classes taken, and paths to the wanted ones."""

    def __init__(self, replayer: Replayer[Any], wanted: frozenset[str]) -> None:
        self.replayer = replayer
        self.wanted = wanted
        self.states: set[State] = set()
        self.steps = 0
        self.taken: set[str] = set()
        self.ways: dict[str, list[ChosenPath]] = {}
        self.instances = Instances(Classifier(Tracer(replayer.program)))
        self._initial = initial_states(replayer.program)
        self._ids: dict[Key, str] = {}

    def run(self, limit: int | None) -> None:
        """Explore it all; raises `NotExplored` if it diverges or has more than this many states."""
        name = self.replayer.program.model
        try:
            is_all = breadth_first(self.replayer, self.states, limit, self._steps)
        except Diverged as diverged:
            # With a divergence the product is incomplete, and untried classes would be reported as
            # never taken.
            raise NotExplored(f"{name} diverges: {diverged}; see --suite product") from None
        if not is_all:
            raise NotExplored(f"{name} has more than {limit} states")

    def _steps(self, place: Place[Any]) -> Iterator[Place[Any]]:
        """Take and note every step at a place."""
        classes = self._classes(place.state)
        for instance, successors in self.replayer.spec.options(place.state)[0]:
            for after in self.replayer.take(place, instance, successors):
                ids = classes[instance.index, instance.args, after.state]
                self.steps += 1
                self.taken |= ids
                for id_ in ids & self.wanted:
                    if len(self.ways.setdefault(id_, [])) < EDGES_PER_CLASS:
                        self.ways[id_].append(self._way(after))
                yield after

    def _classes(self, state: State) -> Taken:
        taken: Taken = {}
        for step in self.instances.classified(state):
            for key in step.classes:
                # Describing a class makes texts and a digest; a state graph has many edges and few classes.
                if key not in self._ids:
                    self._ids[key] = self.instances.classifier.described(key).id
            taken[step.action, step.args, step.after] = frozenset(self._ids[key] for key in step.classes)
        return taken

    def _way(self, place: Place[Any]) -> ChosenPath:
        """The path to a place, with each step as its position among those that the spec allows."""
        places, spec = place.path(), self.replayer.spec
        steps: list[CaseStep] = []
        for before, after in pairwise(places):
            assert after.step is not None
            allowed = spec.allowed(before.state, spec.instance(after.step))
            steps.append(CaseStep(after.step.action, after.step.args, sorted(allowed).index(after.state)))
        return ChosenPath(self._initial.index(places[0].state), tuple(map(written_step, steps)))


def explored(
    parts: Sequence[Part], results: Sequence[SuiteResult], budget: SuiteBudget, about: Choices
) -> Choices:
    """The choices made in each suite whose cases miss classes; raises `NotExplored`.

    `about` has the fingerprints, and the reasons that people gave.
    """
    open_ = [(part, frozenset(effect_class.id for effect_class in result.coverage.missed))
             for part, result in zip(parts, results, strict=True)
             if result.coverage is not None and result.coverage.missed and result.complete]  # fmt: skip
    # After a divergence or an exhausted budget nothing is explored: the suite may not have tried the classes
    # that it missed.
    tasks = [partial(_listed, part, missed, budget) for part, missed in open_]
    suites: dict[str, Listed] = {}
    for (part, _), listed in zip(open_, each(tasks, cores(), (*PASSING, NotExplored)), strict=True):
        known = about.suites.get(part.label)
        suites[part.label] = replace(listed, reason="" if known is None else known.reason)
    return replace(about, suites=suites)


def _listed(part: Part, missed: frozenset[str], budget: SuiteBudget) -> Listed:
    product = Explorer(Replayer(part.binding), missed)
    product.run(budget.max_states)
    words = {effect_class.id: str(effect_class) for effect_class in part.suite(budget).classes}
    never = {effect_class: words[effect_class] for effect_class in sorted(missed - product.taken)}
    ways = dict.fromkeys(way for id_ in sorted(product.ways) for way in product.ways[id_])
    model = of_model(part.instance.program)
    return Listed(model, len(product.states), product.steps, "", never, tuple(ways))
