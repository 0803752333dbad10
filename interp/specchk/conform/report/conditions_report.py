"""The conditions that decide in no model of a gate, as lines of its report, as JSON and as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from specchk.conform.gate.conditions import GateConditions

REFRESH = "run --update-conditions"


@dataclass(frozen=True, slots=True)
class ConditionStatus:
    """A file of conditions, as a person writes its path, and whether it is of this spec and these models."""

    path: Path
    conditions: GateConditions
    is_current: bool
    is_written: bool = False


def render_conditions_of(found: ConditionStatus) -> Iterator[str]:
    """The lines below a gate's report."""
    if not found.is_current:
        yield f"conditions: {found.path} belongs to another spec or other models and is ignored; {REFRESH}"
        return
    undecided = found.conditions.undecided
    written = f"{found.path} written; " if found.is_written else ""
    decide = found.conditions.all - len(undecided)
    yield f"conditions: {written}{decide} of {found.conditions.all} decide in a model of the gate"
    open_ = [one for one in undecided if not one.reason]
    argued = len(undecided) - len(open_)
    if argued:
        yield f"  {argued} decide in none, with a reason in {found.path}"
    yield from (f"  never decides: {one.owner} {one.effect} by `{one.text}` in {one.within}" for one in open_)


def conditions_of_json(found: ConditionStatus) -> dict[str, object]:
    """The same as a member of a report's JSON object."""
    keys = ("owner", "effect", "within", "text", "reason")
    return {
        "conditions": {
            "all": found.conditions.all,
            "undecided": [{key: getattr(one, key) for key in keys} for one in found.conditions.undecided],
            "current": found.is_current,
        }
    }


def conditions_section(found: ConditionStatus) -> str:
    """The same as HTML."""
    rows = "".join(f"<li>{escape(line)}</li>" for line in render_conditions_of(found))
    return f"<h2>Conditions</h2><ul>{rows}</ul>"
