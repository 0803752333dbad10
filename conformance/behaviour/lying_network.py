"""A network that delays, loses and duplicates messages, remembers old ones, and alters them.

Not here: when an old one is sent again (`cluster_walks`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import Any

from replog.core.messages import FetchReply, Message, ProduceReply
from replog.core.types import Error
from replog.sim.cluster.node import Network

OLD_MESSAGES = 12
"""Of each kind, so that those which are rare are repeated as often as others."""
Sent = tuple[int, int, Message]


class LyingNetwork(Network):
    """A network with probabilities and `cut` links, pairs of addresses; `sent` are old messages by kind."""

    def __init__(self, random: Random) -> None:
        self.random = random
        # On a coarse clock, times that are compared with a limit are often equal to it.
        self.grain_ms = random.choice((1, 1, 50, 100))
        self.cut: set[tuple[int, int]] = set()
        self.sent: dict[str, deque[Sent]] = {}
        self.end = 1
        self.accepted: list[int] = []

    def delays(self, source: int, to: int, message: Message) -> Iterable[int]:
        """Choose the delays of one message, and note the ends of logs."""
        self.sent.setdefault(type(message).__name__, deque(maxlen=OLD_MESSAGES)).append((source, to, message))
        if isinstance(message, FetchReply):
            self.end = max(self.end, message.high_watermark)
        elif isinstance(message, ProduceReply):
            self.end = max(self.end, message.base_offset + 1)
            if message.error is Error.NONE:
                self.accepted.append(message.correlation)
        draw = self.random.random()
        if (source, to) in self.cut or draw < 0.02:
            return ()
        delay_ms = self._time(20)
        if draw < 0.05:
            return (delay_ms, self._time(1_500))
        return (delay_ms + self._time(1_500),) if draw < 0.08 else (delay_ms,)

    def _time(self, most_ms: int) -> int:
        """Return a time on the network's clock; messages take no time between two ticks of a coarse clock."""
        drawn_ms = 1 + self.random.randrange(most_ms)
        return drawn_ms if self.grain_ms == 1 else drawn_ms // self.grain_ms * self.grain_ms

    def take_accepted(self) -> list[int]:
        """Return the numbers of the produces accepted since the last call."""
        accepted, self.accepted = self.accepted, []
        return accepted

    def old(self) -> Sent | None:
        """Return a message sent before, of any kind."""
        if not self.sent:
            return None
        of_kind = self.random.choice(list(self.sent.values()))
        return self.random.choice(list(of_kind))


def altered(value: Any, random: Random) -> Any:
    """Return a message, or a value in one, with one number, flag or member changed."""
    if isinstance(value, Error):
        return random.choice(tuple(Error))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + random.choice((-1, 1, 1, 2))
    if isinstance(value, tuple) and value:
        at = random.randrange(len(value))
        changed = random.choice(((), (value[at],) * 2, (altered(value[at], random),)))
        return (*value[:at], *changed, *value[at + 1 :])
    if is_dataclass(value) and not isinstance(value, type):
        # A longer wait would only be waited for.
        names = [field.name for field in fields(value) if field.name != "max_wait_ms"]
        name = random.choice(names)
        return replace(value, **{name: altered(getattr(value, name), random)})
    return value
