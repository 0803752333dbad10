"""Options that select the suites, budgets and cases of `specchk conform`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import click
from msgspec.structs import replace

from specchk.cli.common import parse_overrides
from specchk.cli.groups import option
from specchk.conform.contract.binding import At, Binding
from specchk.conform.covers.lassos import ROUNDS
from specchk.conform.gate.tiers import BUDGETS, MAX_STATES, SUITES, TIERS, WALKS, SuiteBudget
from specchk.conform.replay.suites import SuiteWalks


@dataclass(frozen=True, slots=True)
class SuiteChoice:
    """The selection: a tier, one suite, or one case of it."""

    heading: ClassVar[str] = "Suites"
    tier: str | None = option(
        "--tier", type=click.Choice(TIERS),
        help="Run the suites of this tier of the binding; by default gate.",
    )  # fmt: skip
    model: str | None = option("--model", metavar="M", help="Run one suite, on this model.")
    overrides: tuple[str, ...] = option(
        "--set", metavar="C=V",
        help="Run one suite, and override a constant or the size of a sort; repeatable.",
    )  # fmt: skip
    suite: str | None = option("--suite", type=click.Choice(SUITES), help="Run one suite, of this kind.")
    max_states: int | None = option("--max-states", help="Explore at most N states of the spec.")
    walks: int = option("--walks", default=WALKS.walks, help="Number of walks.")
    steps: int = option("--steps", default=WALKS.steps, help="Maximum number of steps of a walk.")
    seed: int = option("--seed", type=int, default=0, help="Seed of the walks.")
    rounds: int = option("--rounds", default=ROUNDS, help="Number of times to take each loop (lassos).")
    case: str | None = option(
        "--case", metavar="ID", help="Run only the case whose id is ID or begins with it."
    )
    list_cases: bool = option("--list", help="List the cases without running them.")

    @property
    def of_tier(self) -> str | None:
        """The tier to run: by default the gate; None if one suite is described."""
        describes = self.model is not None or self.overrides or self.suite is not None
        if self.tier is not None and describes:
            raise click.UsageError("a tier has its own models and suites; omit --model, --set and --suite")
        return self.tier or (None if describes else "gate")

    def suites(self, cls: type[Binding[Any]]) -> tuple[At, ...]:
        """The selected suites: those of the binding's tier, or the described one."""
        if self.of_tier:
            return cls.tier(self.of_tier)
        return (At(self.model, parse_overrides(self.overrides), self.suite or "classes"),)

    @property
    def budget(self) -> SuiteBudget:
        """The budget of each suite."""
        if self.of_tier is not None:
            budget = BUDGETS[self.of_tier]
        else:
            most = None if self.suite == "product" else MAX_STATES
            walks = SuiteWalks(self.seed, self.walks, self.steps)
            budget = SuiteBudget(most, None, walks, rounds=self.rounds)
        return budget if self.max_states is None else replace(budget, max_states=self.max_states)
