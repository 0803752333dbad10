"""Counterexamples that are easy to read: `--optimal` and `--all-counterexamples`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import click

from specchk.cli.engines import loaded
from specchk.cli.groups import option
from specchk.compile.instantiate import Instance
from specchk.search.verdict import Outcome


@dataclass(frozen=True, slots=True)
class Clearer:
    """The choice of counterexamples among the shortest."""

    heading: ClassVar[str] = "Choice of counterexamples"
    optimal: bool = option(
        "--optimal", help="Of the shortest counterexamples, show the one that is easiest to read."
    )
    several: int | None = option(
        "--all-counterexamples",
        type=click.IntRange(min=1),
        metavar="N",
        help="Show up to N shortest counterexamples of each property, easiest first.",
    )

    def applied(self, instance: Instance, outcome: Outcome) -> Outcome:
        """The outcome, with the best counterexamples if they were requested."""
        if not self.optimal and self.several is None:
            return outcome
        clarity = loaded("specchk.cli.clarity")
        clearer: Outcome = clarity.clearer(instance, outcome, clarity.Clarity(self.several or 1))
        return clearer
