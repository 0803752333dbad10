"""Options that select what `specchk conform` runs: suites, budgets and cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar, cast

import click

from specchk.cli.common import parse_overrides
from specchk.conform.contract.binding import At, Binding
from specchk.conform.gate.tiers import BUDGETS, MAX_STATES, SUITES, TIERS, WALKS, Budget
from specchk.conform.replay.suites import Walks

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options as given; None where one is not."""

    model: str | None
    overrides: Mapping[str, str]
    suite: str | None
    tier: str | None
    max_states: int | None
    walks: Walks
    case: str | None

    @property
    def of_tier(self) -> str | None:
        """The tier to run, without options the gate; None where one suite is described."""
        describes = self.model is not None or self.overrides or self.suite is not None
        if self.tier is not None and describes:
            raise click.UsageError("a tier has its own models and suites; omit --model, --set and --suite")
        return self.tier or (None if describes else "gate")

    def suites(self, cls: type[Binding[Any]]) -> tuple[At, ...]:
        """The selected suites: of the binding's tiers, or as described."""
        lists = {"smoke": cls.smoke, "gate": cls.gate, "exhaustive": cls.exhaustive}
        tier = self.of_tier
        return lists[tier] if tier else (At(self.model, self.overrides, self.suite or "classes"),)

    @property
    def budget(self) -> Budget:
        """How much each suite may do."""
        budget = BUDGETS[self.of_tier or "exhaustive"]
        if self.of_tier is None:
            is_search = self.suite == "product"
            budget = Budget(None if is_search else MAX_STATES, None, self.walks)
        return budget if self.max_states is None else replace(budget, max_states=self.max_states)


def suite_options(function: F) -> F:
    """The options that select suites; the command gets them as `wanted`."""

    @wraps(function)
    def command(
        *, model: str | None, overrides: tuple[str, ...], suite: str | None, tier: str | None, smoke: bool,
        max_states: int | None, walks: int, steps: int, seed: int, case: str | None, **rest: Any,
    ) -> Any:  # fmt: skip
        wanted = Wanted(
            model, parse_overrides(overrides), suite, "smoke" if smoke else tier, max_states,
            Walks(seed, walks, steps), case,
        )  # fmt: skip
        return function(wanted=wanted, **rest)

    count = click.IntRange(min=1)
    decorators = [
        click.option("--tier", type=click.Choice(TIERS),
                     help="Run a tier of the binding, a list of suites; by default gate."),
        click.option("--smoke", is_flag=True, help="The same as --tier smoke."),
        click.option("--model", metavar="M", help="Run one suite, on this model."),
        click.option("--set", "overrides", multiple=True, metavar="C=V",
                     help="Run one suite, and override a constant or the size of a sort; repeatable."),
        click.option("--suite", type=click.Choice(SUITES), help="Run one suite, of this kind."),
        click.option("--max-states", type=count, metavar="N", help="Explore at most N states of the spec."),
        click.option("--walks", type=count, default=WALKS.walks, show_default=True, help="Number of walks."),
        click.option("--steps", type=count, default=WALKS.steps, show_default=True,
                     help="Maximum number of steps of a walk."),
        click.option("--seed", type=int, metavar="N", default=0, show_default=True,
                     help="Seed of the walks."),
        click.option("--case", metavar="ID", help="Run only the case whose id is ID or begins with it."),
    ]  # fmt: skip
    decorated: Any = command
    for decorator in reversed(decorators):
        decorated = decorator(decorated)
    return cast("F", decorated)
