"""Scenario commands that show one formula of the core, without a cluster: epoch ends, placement, propagation.

Each takes the words and options of its line and returns lines of output.
"""

from __future__ import annotations

from types import MappingProxyType

from replog.core.broker.groups import Commit, Groups
from replog.core.broker.propagation import TICK_MS, Propagator
from replog.core.controller.placement import assign, assign_simple
from replog.core.log.epochs import EpochCache
from replog.core.protocol import Truncation
from replog.core.types import EpochEnd


def parse_cache(text: str) -> EpochCache:
    """Read `1:20,2:80` as a cache."""
    pairs = (entry.split(":") for entry in text.split(",") if entry)
    return EpochCache((int(epoch), int(start)) for epoch, start in pairs)


def epoch_end(words: list[str], options: dict[str, str]) -> list[str]:
    """`epoch-end 0 1 cache=1:20,2:80 leo=150 [rules=kip101]`: the end of each epoch (F4)."""
    cache, leo = parse_cache(options["cache"]), int(options["leo"])
    rules = Truncation(options.get("rules", "fetch"))
    lines = []
    for word in words:
        end = cache.end_offset_for(int(word), leo, rules)
        lines.append(f"epoch {word}: " + ("undefined" if end.is_undefined else describe_end(end)))
    return lines


def describe_end(end: EpochEnd) -> str:
    """Return an answer in words; KIP-101's has no epoch in it."""
    return f"{end.epoch} ends at {end.end_offset}" if end.epoch >= 0 else f"ends at {end.end_offset}"


def place(words: list[str], options: dict[str, str]) -> list[str]:
    """`place brokers=5 partitions=6 replicas=3 [rule=seeds]`: where the replicas go (F7)."""
    del words
    rule = assign_simple if options.get("rule") == "seeds" else assign
    placed = rule(range(int(options["brokers"])), int(options["partitions"]), int(options["replicas"]))
    return [f"p{i}: {','.join(map(str, replicas))}" for i, replicas in enumerate(placed)]


def propagate(words: list[str], options: dict[str, str]) -> list[str]:
    """`propagate 0 3000 until=20000 [sent=-70000]`: ISR changes at these moments.

    When is the controller notified? (F9)
    """
    changes = [int(word) for word in words]
    state = Propagator(min([0, *changes]), int(options.get("sent", "0")))
    lines = []
    for now_ms in range(0, int(options["until"]) + 1, TICK_MS):
        for change in [change for change in changes if change <= now_ms]:
            state = state.changed("t-0", change)
            changes.remove(change)
        state, sent = state.tick(now_ms)
        if sent:
            lines.append(f"notified at {now_ms / 1000:.1f} s")
    return lines or ["not notified"]


def deliver(words: list[str], options: dict[str, str]) -> list[str]:
    """`deliver poll commit crash poll process`.

    One consumer on a log m0 m1 ..., and what it has processed (F6); what it still holds is not missed.
    """
    del options
    groups, position, polled = Groups(), 0, -1
    generation = groups.join("g", 1)
    processed: list[int] = []
    for word in words:
        if word == "poll":
            polled, position = position, position + 1
        elif word == "process":
            if polled < 0:
                raise ValueError("nothing to process: poll first")
            processed.append(polled)
        elif word == "commit":
            groups.commit(Commit("g", "t-0", position), 1, generation)
        elif word == "crash":
            generation = groups.join("g", 1)
            position, polled = groups.position("g", "t-0") or 0, -1
        else:
            raise ValueError(f"no step {word!r}")
    missed = [m for m in range(position) if m not in processed and m != polled]
    twice = sorted({m for m in processed if processed.count(m) > 1})
    return [
        f"processed {_names(processed)}; never {_names(missed)}; twice {_names(twice)}; next is m{position}"
    ]


def _names(numbers: list[int]) -> str:
    return ",".join(f"m{number}" for number in numbers) or "none"


EXAMPLES = MappingProxyType(
    {"epoch-end": epoch_end, "place": place, "propagate": propagate, "deliver": deliver}
)
