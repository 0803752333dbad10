"""What runs in no model of a file: actions, branches, parts of properties; from the models' reports."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct


class Uncovered(Struct, frozen=True):
    """A point of a spec that is reached in no model; `kind` and `label` are those of `coverage`."""

    at: str
    kind: str
    owner: str
    label: str


def never_taken(file: str, results: Sequence[Mapping[str, Any]]) -> list[Uncovered]:
    """The actions and branches of a file that run in none of its models.

    Points that some model's constants decide are left out, and those whose counts depend on the order of
    elements: they may be taken there without being counted.
    """
    never = _uncovered(file, results, ("action", "branch"))
    idle = {point.owner for point in never if point.kind == "action"}
    return [point for point in never if point.kind == "action" or point.owner not in idle]


def never_true(file: str, results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The warnings of `run` on parts of properties, and refinements, that no model of a file ever reaches."""
    never = [f"{point.at}: " for point in _uncovered(file, results, ("implication", "forall", "refinement"))]
    warnings = dict.fromkeys(text for result in results for text in result.get("warnings", ()))
    return [text for text in warnings if text.startswith(tuple(never))]


def _uncovered(file: str, results: Sequence[Mapping[str, Any]], kinds: Collection[str]) -> list[Uncovered]:
    counts: dict[Uncovered, int] = {}
    for result in results:
        for point in result.get("coverage", ()):
            if point["kind"] in kinds and point["at"].startswith(f"{file}:"):
                key = Uncovered(point["at"], point["kind"], point["in"], point["label"])
                unsure = point["decided"] or point["by_order"]
                counts[key] = counts.get(key, 0) + int(point["count"]) + int(unsure)
    return [key for key, count in counts.items() if count == 0]
