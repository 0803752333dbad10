"""The conditions that decide in no model of a gate, as lines of its report and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from msgspec import Struct, to_builtins

from specchk.conform.gate.conditions import GateConditions
from specchk.conform.work.seal import OLDER

REFRESH = "run --update-conditions"


class ConditionStatus(Struct, frozen=True):
    """A file of conditions: its path as a person would write it, and whether it fits spec and models."""

    path: Path
    conditions: GateConditions
    is_current: bool
    is_written: bool = False
    title: ClassVar[str] = "Conditions"
    is_wrong: ClassVar[bool] = False  # that a condition never decides is a warning

    def lines(self) -> Iterator[str]:
        """The lines below a gate's report."""
        if not self.is_current:
            is_older = self.conditions.spec == OLDER
            why = f"has {OLDER}" if is_older else "belongs to another spec or other models"
            yield f"conditions: {self.path} {why} and is ignored; {REFRESH}"
            return
        undecided = self.conditions.undecided
        written = f"{self.path} written; " if self.is_written else ""
        decide = self.conditions.all - len(undecided)
        yield f"conditions: {written}{decide} of {self.conditions.all} decide in a model of the gate"
        proved = sum(1 for condition in undecided if condition.proved)
        if proved:
            yield f"  {_are(proved)} impossible, as shown by induction"
        searched = sum(1 for condition in undecided if condition.is_impossible and not condition.proved)
        if searched:
            yield f"  {_are(searched)} impossible for all offsets in every model, by symbolic search"
        left = [condition for condition in undecided if not condition.is_impossible]
        open_ = [condition for condition in left if not condition.reason]
        argued = len(left) - len(open_)
        if argued:
            yield f"  {argued} {'decides' if argued == 1 else 'decide'} in none, with a reason in {self.path}"
        for condition in open_:
            part = f"{condition.owner} {condition.effect} by `{condition.text}` in {condition.within}"
            yield f"  never decides: {part}"

    def json(self) -> dict[str, object]:
        """The same as a member of the report's JSON object."""
        return {
            "conditions": {
                "all": self.conditions.all,
                "undecided": list(map(to_builtins, self.conditions.undecided)),
                "current": self.is_current,
            }
        }


def _are(count: int) -> str:
    return f"{count} {'is' if count == 1 else 'are'}"
