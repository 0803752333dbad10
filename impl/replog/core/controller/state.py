"""The controller's state as plain values: configuration, registrations of brokers, partitions, history.

Not here: what changes it (`controller`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from replog.core.protocol import CURRENT, Protocol
from replog.core.types import METADATA_HISTORY, BrokerState, MetadataImage, PartitionImage


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """Configuration of the controller; times in milliseconds."""

    min_isr: int = 1
    session_timeout_ms: int = 9_000
    session_check_ms: int = 1_000
    metadata_history: int = METADATA_HISTORY


@dataclass(frozen=True, slots=True)
class Registration:
    """One broker: its incarnation, the metadata version at its registration, and its last heartbeat."""

    incarnation: int
    broker_epoch: int
    state: BrokerState
    last_seen_ms: int
    applied_version: int = -1


@dataclass(slots=True)
class ControllerState:
    """The whole state of the controller; frozen values in dicts, so `copy` is shallow."""

    config: ControllerConfig = ControllerConfig()
    protocol: Protocol = CURRENT
    brokers: dict[int, Registration] = field(default_factory=dict)
    partitions: dict[str, PartitionImage] = field(default_factory=dict)
    history: list[MetadataImage] = field(default_factory=list)
    is_dirty: bool = False

    @property
    def version(self) -> int:
        """Return the last announced metadata version."""
        return self.history[-1].version

    def copy(self) -> ControllerState:
        """Return a snapshot."""
        return ControllerState(
            self.config,
            self.protocol,
            dict(self.brokers),
            dict(self.partitions),
            list(self.history),
            self.is_dirty,
        )


def expire_session(state: ControllerState, broker_id: int, now_ms: int) -> bool:
    """Expire a broker's session now, and no other; return whether it had one."""
    known = state.brokers.get(broker_id)
    if known is None or known.state is BrokerState.FENCED:
        return False
    # Only the chosen session is old enough. The check itself is the controller's own, so that fencing has
    # one way.
    for other, registration in state.brokers.items():
        seen_ms = -now_ms if other == broker_id else now_ms
        state.brokers[other] = replace(registration, last_seen_ms=seen_ms)
    return True
