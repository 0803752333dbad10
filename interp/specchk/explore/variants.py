"""Models next to given ones: a few in which conditions decide that decide in none of the given ones.

A variant differs in bounds only: a constant that is a number, or the size of a sort, by one.  With one change
a bound is larger; with two another one is larger, too, or smaller, so that the state graph stays small.
Rules of the spec (constants of other types) stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import permutations

from msgspec import Struct

from specchk.compile.instantiate import Instance, instantiate
from specchk.explore.conditions import Condition, Decided
from specchk.ir.program import Program, setting
from specchk.lang.frontend import CheckedSpec
from specchk.lang.syntax.tree import IntLiteral
from specchk.lang.text.diagnostics import SpecError

Key = tuple[str, str, str]
MOST_CHANGES = 2


class BoundedModel(Struct, frozen=True):
    """A model of a spec, with the constants and sizes set in addition."""

    model: str | None
    bounds: Mapping[str, str]

    def options(self) -> str:
        """The command-line options that select the model."""
        model = [] if self.model is None else [f"--model {self.model}"]
        return " ".join([*model, *(f"--set {name}={value}" for name, value in self.bounds.items())])


class Proposal(Struct, frozen=True):
    """A model in which more conditions decide, and its number of states."""

    at: BoundedModel
    states: int
    conditions: tuple[Condition, ...]


class Proposals(Struct, frozen=True):
    """Proposed models, conditions that decide in no searched model, and the numbers of searches."""

    models: tuple[Proposal, ...]
    left: frozenset[Key]
    searched: int
    cut: int


def variants(checked: CheckedSpec, at: BoundedModel, changes: int) -> Iterator[tuple[BoundedModel, Program]]:
    """The models that differ from one in 1 or 2 bounds (`changes`), without those that the spec rejects."""
    instance = instantiate(checked, at.model, at.bounds)
    sizes = _sizes(checked, instance, at)
    for names in permutations(sizes, changes):
        for last in (1, -1) if changes == MOST_CHANGES else (1,):
            if last == 1 and list(names) != sorted(names):
                continue  # both larger: the order of the two is undetermined
            steps = (*[1] * (changes - 1), last)
            bounds = {name: str(sizes[name] + step) for name, step in zip(names, steps, strict=True)}
            model = BoundedModel(at.model, {**at.bounds, **bounds})
            try:
                yield model, instantiate(checked, model.model, model.bounds).program
            except SpecError:
                continue  # a bound below its range, or a sort without elements


def _sizes(checked: CheckedSpec, instance: Instance, at: BoundedModel) -> dict[str, int]:
    """The numbers of a model that are bounds, without those that the spec computes from others."""
    set_here = {*instance.model.bindings, *at.bounds}
    sizes = {sort.name: len(sort.members) for sort in instance.program.sorts}
    for constant in instance.program.constants:
        declared = checked.spec.consts.get(constant.name)
        is_bound = constant.name in set_here or (declared and isinstance(declared.default, IntLiteral))
        if is_bound and type(constant.value) is int:
            sizes[constant.name] = constant.value
    return sizes


def proposals(
    checked: CheckedSpec,
    models: Sequence[BoundedModel],
    wanted: Collection[Key],
    decide: Callable[[Program, Collection[Key]], Decided],
) -> Proposals:
    """Search variants with one change, then two, for states in which the wanted conditions decide."""
    left = set(wanted)
    tried: list[Proposal] = []
    seen = {setting(instantiate(checked, at.model, at.bounds).program) for at in models}
    searched = cut = 0
    for changes in range(1, MOST_CHANGES + 1):
        wanted = frozenset(left)
        for at in models if wanted else ():
            for model, program in variants(checked, at, changes):
                if setting(program) in seen:
                    continue
                seen.add(setting(program))
                decided = decide(program, wanted)
                searched += 1
                cut += not decided.is_complete
                left -= {condition.key for condition in decided.deciding}
                if decided.deciding:
                    tried.append(Proposal(model, decided.states, decided.deciding))
    return Proposals(tuple(_cover(tried)), frozenset(left), searched, cut)


def _cover(tried: Sequence[Proposal]) -> Iterator[Proposal]:
    """A few models that cover all deciding conditions: greedily the one with most, then the smallest."""
    open_ = {condition.key for proposal in tried for condition in proposal.conditions}
    while open_:
        best = max(tried, key=lambda proposal: (len(open_ & _keys(proposal)), -proposal.states))
        new = tuple(condition for condition in best.conditions if condition.key in open_)
        open_ -= _keys(best)
        yield Proposal(best.at, best.states, new)


def _keys(proposal: Proposal) -> set[Key]:
    return {condition.key for condition in proposal.conditions}
