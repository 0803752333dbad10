"""What a user writes to hold an implementation to a spec."""

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
