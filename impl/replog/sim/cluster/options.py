"""The shape of a simulated cluster.

Not here: what happens in it (`world`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from replog.core.broker.state import Config
from replog.core.protocol import CURRENT, Protocol
from replog.sim.cluster.storage import MemoryStorage, Storage


@dataclass(frozen=True, slots=True)
class WorldOptions:
    """The shape of a cluster."""

    brokers: int = 3
    min_isr: int = 2
    protocol: Protocol = CURRENT
    config: Config = field(default_factory=Config)
    session_timeout_ms: int = 9_000
    coalesces_metadata: bool = False
    make_storage: Callable[[], Storage] = MemoryStorage
    replicas: int = 0
    """How many of the brokers hold the partition at first, from broker 0 on; 0: all."""
    controllers: int = 1
    """One that does not fail, or the voters of a quorum."""
    partitions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Several partitions and their replicas; none is the one partition `t-0`."""
    groups: str = ""
    """The partition that is the log of consumer groups, if there is one."""
