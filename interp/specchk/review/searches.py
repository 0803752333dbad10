"""The searches of a review: all models of a spec, and the mutants of those that hold.

The engine is an argument: rooms for engines are not below this one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from specchk.compile.instantiate import Instance, instantiate
from specchk.explore.scenario import run_scenario
from specchk.ir.program import Liveness, Program, Property
from specchk.lang.frontend import CheckedSpec, check
from specchk.lang.text.diagnostics import SpecError
from specchk.review.mutants import SpecMutant
from specchk.search.budget import Budget
from specchk.search.coverage import vacuous
from specchk.search.engine import Options
from specchk.search.expect import options_for, unmet
from specchk.search.verdict import Holds, HoldsWithin, Inconclusive, Outcome, violations_of

Search = Callable[[Program, Options], Outcome]

MOST_MODELS = 2  # on which a mutant is tried, the smallest that hold
SPARE_STATES = 1000


class Searched(Struct, frozen=True):
    """A model and the outcome of its search; `problems` are the expectations that it does not meet."""

    name: str
    instance: Instance
    options: Options
    outcome: Outcome
    problems: tuple[str, ...]

    @property
    def is_cut(self) -> bool:
        """Whether a limit ended the search."""
        return isinstance(self.outcome.verdict, Inconclusive) or self.outcome.stopped is not None

    @property
    def is_sound(self) -> bool:
        """Whether all of the model's states were searched, and no property is violated."""
        return not self.is_cut and isinstance(self.outcome.verdict, Holds | HoldsWithin)

    @property
    def vacuous(self) -> frozenset[str]:
        """What is never taken or checked in this model."""
        found = vacuous(self.outcome.program, self.outcome.coverage, self.outcome.by_order)
        return frozenset(violation.name for violation in found)


class TriedMutant(Struct, frozen=True):
    """What became of a mutant: `noticed` by the names of `properties`, `equal`, `unnoticed` or `rejected`."""

    mutant: SpecMutant
    result: str
    properties: frozenset[str] = frozenset()


def searched(checked: CheckedSpec, search: Search, most: int) -> Iterator[Searched]:
    """The search of each model, as `specchk test` does it; what a limit ended is no problem."""
    for name in checked.spec.models:
        instance = instantiate(checked, name)
        expects = instance.model.expects
        options = options_for(expects, Budget(max_states=most))
        outcome = search(instance.program, options)
        is_cut = isinstance(outcome.verdict, Inconclusive)
        yield Searched(name, instance, options, outcome, () if is_cut else tuple(unmet(outcome, expects)))


def chosen(models: Sequence[Searched]) -> list[Searched]:
    """The models on which mutants are tried."""
    sound = [model for model in models if model.is_sound]
    return sorted(sound, key=lambda model: model.outcome.statistics.distinct)[:MOST_MODELS]


def selected(models: Sequence[Searched]) -> list[Property | Liveness]:
    """The properties that these models select and a state or behaviour may violate, each once."""
    programs = [model.instance.program for model in models]
    every: dict[str, Property | Liveness] = {}
    for program in programs:
        every |= {prop.name: prop for prop in (*program.invariants, *program.step_invariants)}
        every |= {prop.name: prop for prop in program.liveness}
    return list(every.values())


def tried(path: str, mutant: SpecMutant, models: Sequence[Searched], search: Search) -> TriedMutant:
    """Whether any property, or scenario, of these models notices a mutant."""
    violated: set[str] = set()
    is_equal = True
    try:
        checked = check(path, mutant.text)
        for model in models:
            before = model.outcome.statistics
            budget = Budget(max_states=4 * before.distinct + SPARE_STATES)
            options = replace(model.options, budget=budget, keep_going=True, strict=True)
            outcome = search(instantiate(checked, model.name).program, options)
            found = [
                v
                for v in violations_of(outcome.verdict)
                if v.kind != "vacuous" or v.name not in model.vacuous
            ]
            violated |= {violation.name for violation in found}
            after = outcome.statistics
            is_equal = is_equal and (after.distinct, after.generated) == (before.distinct, before.generated)
            if violated:
                return TriedMutant(mutant, "noticed", frozenset(violated))
        failed = failing_scenarios(checked, [model.name for model in models])
    except SpecError:
        return TriedMutant(mutant, "rejected")
    if failed:
        return TriedMutant(mutant, "noticed", frozenset(failed))
    return TriedMutant(mutant, "equal" if is_equal else "unnoticed")


def failing_scenarios(checked: CheckedSpec, models: Collection[str]) -> Mapping[str, str]:
    """The scenarios of these models that fail, each with the reason."""
    failed = {}
    names = [prop.name for prop in checked.spec.properties.values() if prop.kind != "liveness"]
    for scenario in checked.spec.scenarios.values():
        if scenario.model.text in models:
            result = run_scenario(instantiate(checked, scenario.model.text, {}, names), scenario)
            if result.failure is not None:
                failed[scenario.name] = result.failure.message
    return failed


def expected_violations(models: Sequence[Searched]) -> set[str]:
    """The properties that some model is expected to violate, and violates."""
    return {violation.name for model in models for violation in violations_of(model.outcome.verdict)}
