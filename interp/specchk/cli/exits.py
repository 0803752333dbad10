"""Exit codes: stable, documented in docs/exit-codes.md, tested."""

from __future__ import annotations

from enum import IntEnum

from specchk.search.verdict import Inconclusive, Verdict, Violated


class Exit(IntEnum):
    """The meaning of a command's exit code."""

    OK = 0
    USAGE = 2
    VIOLATED = 10
    DEADLOCK = 11
    LIVENESS = 12
    DIVERGED = 13
    BELOW_LOCK = 14
    BUDGET = 20
    INCONCLUSIVE = 21
    REJECTED = 30
    INTERNAL = 70


def of_verdict(verdict: Verdict) -> Exit:
    """The exit code of a run: a deadlock alone has a code of its own."""
    if isinstance(verdict, Violated):
        only_deadlock = all(violation.kind == "deadlock" for violation in verdict.violations)
        return Exit.DEADLOCK if only_deadlock else Exit.VIOLATED
    if isinstance(verdict, Inconclusive):
        return Exit.BUDGET if verdict.budget else Exit.INCONCLUSIVE
    return Exit.OK
