"""The interface that a user implements to check an implementation against a spec."""

from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    At,
    Binding,
    Impossible,
    Refused,
    action,
    project,
)

__all__ = ["Accepted", "Answer", "At", "Binding", "Impossible", "Refused", "action", "project"]
