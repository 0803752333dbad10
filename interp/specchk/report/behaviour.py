"""The text of infinite behaviours: where one repeats or rests, and why it is fair."""

from __future__ import annotations

from specchk.search.verdict import FairPoint, Kept, Trace


def length(trace: Trace) -> str:
    """The length of a trace in words: ` in 5 steps, the last 3 in a loop`."""
    count = len(trace.steps)
    if trace.loop is None:
        return " in the initial state" if count == 0 else f" in {count} step{'s' * (count > 1)}"
    repeated = count - trace.loop
    if repeated == 0:
        return f" in {count} step{'s' * (count != 1)} and a rest"
    if trace.loop == 0:
        return f" in a loop of {count} steps"
    return f" in {count} steps, the last {repeated} in a loop"


def ending(trace: Trace) -> str:
    """A sentence on the repetition or rest at the end of a looping trace; empty for a finite one."""
    if trace.loop is None:
        return ""
    last = len(trace.steps)
    if trace.loop == last:
        return f"rests in state {last}: it stays there forever"
    return f"state {last} is state {trace.loop} again: steps {trace.loop + 1} to {last} repeat forever"


def fair_line(point: FairPoint) -> str:
    """The reason why the loop is fair to one condition: `fair send(r1): taken in step 3`."""
    match point.kept:
        case Kept.TAKEN:
            return f"{point.condition}: taken in step {point.at}"
        case Kept.DISABLED:
            return f"{point.condition}: disabled in state {point.at}"
        case Kept.NEVER_ENABLED:
            return f"{point.condition}: never enabled in the states that repeat"
