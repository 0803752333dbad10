"""The interface that a user implements to check an implementation against a spec."""

from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    At,
    Binding,
    Impossible,
    Refused,
    action,
    never,
    project,
)
from specchk.conform.contract.known_bad import BadCode, BadFile, BadSpec, BadStart

__all__ = [
    "Accepted", "Answer", "At", "BadCode", "BadFile", "BadSpec", "BadStart", "Binding", "Impossible",
    "Refused", "action", "never", "project",
]  # fmt: skip
