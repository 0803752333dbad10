"""The report on a binding or tracing that does not fit its spec."""

from __future__ import annotations

import sys
from typing import NoReturn

from specchk.cli.common import print_json
from specchk.cli.exits import Exit
from specchk.cli.output import echo
from specchk.conform.contract.binding import BindingError


def reject_binding(error: BindingError, *, as_json: bool) -> NoReturn:
    """Print the mistakes of the binding or tracing and exit."""
    if as_json:
        mistakes = [{"message": mistake.message, "hint": mistake.hint, "at": mistake.at}
                    for mistake in error.mistakes]  # fmt: skip
        print_json({"schema": "specchk.rejected/1", "verdict": "rejected", "mistakes": mistakes,
                    "exit_code": int(Exit.REJECTED)})  # fmt: skip
    else:
        echo("\n".join(f"error: {mistake}" for mistake in error.mistakes), err=True)
    sys.exit(Exit.REJECTED)
