"""Scenario commands that show one formula of the core, without a cluster: epoch ends, placement, propagation.

Each has the parameters of its command, as words, and returns lines of output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from replog.core.broker.groups import Commit, Groups
from replog.core.broker.propagation import TICK_MS, Propagator
from replog.core.controller.placement import assign, assign_simple
from replog.core.log.epochs import EpochCache
from replog.core.protocol import Truncation
from replog.core.types import EpochEnd


def epoch_end(*epochs: str, cache: str, leo: str, rules: str = "fetch") -> list[str]:
    """`epoch-end 0 1 cache=1:20,2:80 leo=150 [rules=kip101]`: the end of each epoch (F4)."""
    entries = (entry.split(":") for entry in cache.split(","))
    known = EpochCache((int(epoch), int(start)) for epoch, start in entries)
    ends = {epoch: known.end_offset_for(int(epoch), int(leo), Truncation(rules)) for epoch in epochs}
    return [f"epoch {epoch}: {describe_end(end)}" for epoch, end in ends.items()]


def describe_end(end: EpochEnd) -> str:
    """Describe an answer; KIP-101's contains no epoch."""
    if end.is_undefined:
        return "undefined"
    return f"{end.epoch} ends at {end.end_offset}" if end.epoch >= 0 else f"ends at {end.end_offset}"


def place(*, brokers: str, partitions: str, replicas: str, rule: str = "kafka") -> list[str]:
    """`place brokers=5 partitions=6 replicas=3 [rule=seeds]`: the placement of the replicas (F7)."""
    assigned = assign_simple if rule == "seeds" else assign
    placed = assigned(range(int(brokers)), int(partitions), int(replicas))
    return [f"p{i}: {','.join(map(str, members))}" for i, members in enumerate(placed)]


def propagate(*moments: str, until: str, sent: str = "0") -> list[str]:
    """`propagate 0 3000 until=20000 [sent=-70000]`: ISR changes at these moments.

    When is the controller notified? (F9)
    """
    changes = [int(moment) for moment in moments]
    state = Propagator(min([0, *changes]), int(sent))
    lines = []
    for now_ms in range(0, int(until) + 1, TICK_MS):
        for change in [change for change in changes if change <= now_ms]:
            state = state.changed("t-0", change)
            changes.remove(change)
        state, reported = state.tick(now_ms)
        if reported:
            lines.append(f"notified at {now_ms / 1000:.1f} s")
    return lines or ["not notified"]


def deliver(*steps: str) -> list[str]:
    """`deliver poll commit crash poll process`.

    One consumer on a log m0 m1 ..., and what it has processed (F6); what it still holds is not missed.
    """
    groups, position, polled = Groups(), 0, -1
    generation = groups.join("g", 1).number
    processed: list[int] = []
    for step in steps:
        if step == "poll":
            polled, position = position, position + 1
        elif step == "process":
            if polled < 0:
                raise ValueError("nothing to process: poll first")
            processed.append(polled)
        elif step == "commit":
            groups.commit(Commit("g", "t-0", position), 1, generation)
        elif step == "crash":
            generation = groups.join("g", 1).number
            position, polled = groups.position("g", "t-0") or 0, -1
        else:
            raise ValueError(f"no step {step!r}")
    missed = [m for m in range(position) if m not in processed and m != polled]
    twice = sorted({m for m in processed if processed.count(m) > 1})
    return [
        f"processed {_names(processed)}; never {_names(missed)}; twice {_names(twice)}; next is m{position}"
    ]


def _names(numbers: list[int]) -> str:
    return ",".join(f"m{number}" for number in numbers) or "none"


EXAMPLES: Mapping[str, Callable[..., list[str]]] = MappingProxyType(
    {"epoch-end": epoch_end, "place": place, "propagate": propagate, "deliver": deliver}
)
