"""The rows of a review: what a spec does not say, and the next thing to do about each."""

from __future__ import annotations

from types import MappingProxyType

from msgspec import Struct

# kind of row -> its heading; the order is that of the report
KINDS = MappingProxyType({
    "expectation": "models and scenarios that are not as expected",
    "refused": "recorded steps that the spec refuses",
    "idle": "actions and branches that no model takes",
    "vacuous": "parts of properties that are never checked",
    "unviolated": "properties that nothing violates",
    "constant": "variables and values that never occur",
    "unchecked": "what no model or property checks",
    "unrecorded": "actions that were never recorded",
    "unreached": "recorded states that the model does not reach",
    "unnoticed": "changes of the spec that no property notices",
    "condition": "conditions that never decide",
    "stutter": "steps that change nothing",
    "unvisited": "states of the model that were never recorded",
})  # fmt: skip
# Rows of these kinds describe what may well be meant; of the others somebody should know the reason.
NOTES = frozenset({"unnoticed", "condition", "stutter", "unvisited"})


class ReviewRow(Struct, frozen=True):
    """One row: `at` is the place (`path:line:column`), `text` what is not said, `next` what to do."""

    kind: str
    at: str
    text: str
    next: str
    is_certain: bool = True  # without more states, or another model, it would be the same

    @property
    def is_note(self) -> bool:
        """Whether the row is for information, and no weakness by itself."""
        return self.kind in NOTES or not self.is_certain
