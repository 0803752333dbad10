"""Running the models and scenarios of spec/ for the tests of this folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from specchk.compile.instantiate import instantiate
from specchk.explore.scenario import run_scenario
from specchk.lang.frontend import CheckedSpec, check
from specchk.native import engine
from specchk.search.engine import Options
from specchk.search.expect import unmet, wants_counts
from specchk.search.reference import search
from specchk.search.verdict import Outcome, Violated

SPECS = Path(__file__).parents[2] / "spec"
# The reference engine takes seconds for these; smaller models of their specs are searched by it.
LARGE = ("delivery-five_in_flight", "kafka_stories-diverges", "coordinator-offset_commits")


@cache
def spec(name: str) -> CheckedSpec:
    """The checked spec spec/`name`.spec."""
    return check(str(SPECS / f"{name}.spec"))


def declared(kind: str, name: str) -> list[str]:
    """The names of a spec's models or scenarios, read without the parser: collecting tests checks no spec."""
    text = (SPECS / f"{name}.spec").read_text(encoding="utf-8")
    return re.findall(rf"^{kind}\s+(\w+)", text, re.MULTILINE)


def models_of(names: Iterable[str], slow: Mapping[str, set[str]]) -> list[ParameterSet]:
    """Parameters (spec, model) for all models of some specs; those in `slow` are marked so."""
    return [_param(name, model, slow.get(name, set())) for name in names for model in declared("model", name)]


def _param(name: str, model: str, slow: set[str]) -> ParameterSet:
    assert slow <= set(declared("model", name)), f"{name} has no models {slow}"
    return pytest.param(name, model, marks=[pytest.mark.slow] if model in slow else [], id=f"{name}-{model}")


def scenarios_of(names: Iterable[str]) -> list[ParameterSet]:
    """Parameters (spec, scenario) for all scenarios of some specs."""
    return [pytest.param(name, scenario, id=f"{name}-{scenario}")
            for name in names for scenario in declared("scenario", name)]  # fmt: skip


def problems_of_model(name: str, model: str) -> list[str]:
    """The unmet expectations of the model."""
    instance = instantiate(spec(name), model)
    expects = instance.model.expects
    assert expects, f"model {model} of {name} expects nothing"
    symmetry = not wants_counts(expects)
    if f"{name}-{model}" in LARGE:
        return unmet(engine.search(instance.program, engine.NativeOptions(symmetry=symmetry)), expects)
    return unmet(search(instance.program, Options(symmetry=symmetry)), expects)


def failure_of_scenario(name: str, scenario: str) -> str | None:
    """The reason why a scenario fails, or None."""
    decl = spec(name).spec.scenarios[scenario]
    failure = run_scenario(instantiate(spec(name), decl.model.text), decl).failure
    return failure.message if failure is not None else None


def explored(name: str, overrides: Mapping[str, int], properties: Sequence[str] = ()) -> Outcome:
    """The whole state space of a spec's first model in other sizes: no symmetry, and past any violation."""
    texts = {const: str(value) for const, value in overrides.items()}
    program = instantiate(spec(name), None, texts, properties).program
    return search(program, Options(symmetry=False, keep_going=True))


def lengths(outcome: Outcome) -> dict[str, int]:
    """The steps of the shortest counterexample to each property that fails."""
    if not isinstance(outcome.verdict, Violated):
        return {}
    return {v.name: len(v.trace.steps) for v in outcome.verdict.violations if v.trace is not None}
