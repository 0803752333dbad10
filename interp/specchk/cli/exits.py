"""Exit codes: stable, documented in docs/exit-codes.md, tested."""

from __future__ import annotations

from enum import IntEnum

from specchk.search.verdict import Inconclusive, Verdict, Violated


class Exit(IntEnum):
    """The meaning of a command's exit code."""

    OK = 0
    DIFFERS = 1
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
    """The exit code of a run: deadlocks alone, and temporal properties alone, have codes of their own."""
    if isinstance(verdict, Violated):
        kinds = {violation.kind for violation in verdict.violations}
        alone = {"deadlock": Exit.DEADLOCK, "liveness": Exit.LIVENESS}
        return alone.get(kinds.pop(), Exit.VIOLATED) if len(kinds) == 1 else Exit.VIOLATED
    if isinstance(verdict, Inconclusive):
        return Exit.BUDGET if verdict.budget else Exit.INCONCLUSIVE
    return Exit.OK
