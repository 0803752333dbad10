"""A network that delays, loses and doubles messages, remembers old ones, and alters them.

Not here: when an old one is sent again (`cluster_walks`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import fields, replace
from random import Random

from replog.core.messages import FetchReply, Message, ProduceReply
from replog.core.types import Error
from replog.sim.cluster.node import Network

OLD_MESSAGES = 60


class Delays(Network):
    """A network that delays, loses and doubles; `cut` are pairs of addresses."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.cut: set[tuple[int, int]] = set()
        self.sent: deque[tuple[int, int, Message]] = deque(maxlen=OLD_MESSAGES)
        self.end = 1

    def delays(self, source: int, to: int, message: Message) -> Iterable[int]:
        """Draw the fate of one message; and learn how far logs go."""
        self.sent.append((source, to, message))
        if isinstance(message, FetchReply):
            self.end = max(self.end, message.high_watermark)
        elif isinstance(message, ProduceReply):
            self.end = max(self.end, message.base_offset + 1)
        draw = self.random.random()
        if (source, to) in self.cut or draw < 0.02:
            return ()
        delay_ms = 1 + self.random.randrange(20)
        if draw < 0.05:
            return (delay_ms, 1 + self.random.randrange(1_500))
        return (delay_ms + self.random.randrange(1_500),) if draw < 0.08 else (delay_ms,)


def altered(message: Message, random: Random) -> Message:
    """Return a message with another value in one of its plain fields."""
    names = [field.name for field in fields(message) if field.name != "max_wait_ms"]
    plain = [name for name in names if isinstance(getattr(message, name), int)]
    name = plain[random.randrange(len(plain))] if plain else ""
    value = getattr(message, name, None)
    if isinstance(value, Error):
        return replace(message, **{name: random.choice(tuple(Error))})
    if isinstance(value, bool):
        return replace(message, **{name: not value})
    if isinstance(value, int):
        return replace(message, **{name: value + random.choice((-1, 1, 1, 2))})
    return message
