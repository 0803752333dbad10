"""A replica in a given role, and the messages it answers: the parts of unit tests of the core."""

from __future__ import annotations

from typing import Any

from replog.core.broker.replica import Replica
from replog.core.broker.state import Config, ReplicaState
from replog.core.effects import Effect, Send
from replog.core.log.logview import LogView
from replog.core.messages import FetchRequest, Message, ProduceRequest
from replog.core.types import Batch, BrokerImage, BrokerState, MetadataImage, PartitionImage

NOW = 1_000_000
CLIENT = -10
PARTITION = "t-0"


def batch(count: int = 1, body: bytes = b"m", **fields: Any) -> Batch:
    return Batch(0, -1, count, body=body, **fields)


def log_of(*epochs: int) -> LogView:
    """A log with one record of each given epoch."""
    log = LogView()
    for offset, epoch in enumerate(epochs):
        log.append(Batch(offset, epoch, 1, body=b"%d" % offset))
    return log


def metadata(
    leader: int,
    epoch: int = 0,
    partition_epoch: int = 1,
    isr: tuple[int, ...] = (0, 1),
    version: int = 1,
    brokers: int = 2,
) -> MetadataImage:
    image = PartitionImage(tuple(range(brokers)), leader, epoch, partition_epoch, isr)
    known = {b: BrokerImage(b + 1, BrokerState.ACTIVE) for b in range(brokers)}
    return MetadataImage(version, {PARTITION: image}, known)


def replica_of(broker: int, log: LogView | None = None, **fields: Any) -> Replica:
    config = fields.pop("config", Config(min_isr=fields.pop("min_isr", 1), lag_ms=10_000))
    state = ReplicaState(broker, config=config, **fields)
    if log is not None:
        state.log = log
    return Replica(state)


def leading(
    log: LogView | None = None, epoch: int = 0, isr: tuple[int, ...] = (0, 1), brokers: int = 2, **fields: Any
) -> Replica:
    """Broker 0 as a leader."""
    replica = replica_of(0, log, **fields)
    replica.apply(metadata(0, epoch, 1, isr, brokers=brokers), 1, NOW)
    return replica


def following(log: LogView | None = None, epoch: int = 0, **fields: Any) -> Replica:
    """Broker 1 as a follower of broker 0."""
    replica = replica_of(1, log, **fields)
    replica.apply(metadata(0, epoch), 2, NOW)
    return replica


def sent(effects: list[Effect], kind: type[Message] | None = None) -> list[Any]:
    found = [effect.message for effect in effects if isinstance(effect, Send)]
    return found if kind is None else [message for message in found if isinstance(message, kind)]


def produce(replica: Replica, acks: int = -1, number: int = 1, now: int = NOW, **fields: Any) -> list[Effect]:
    return replica.receive(CLIENT, ProduceRequest(number, batch(**fields), acks, 1_000), now)


def fetch(replica: Replica, offset: int, epoch: int = 0, now: int = NOW, **fields: Any) -> list[Effect]:
    """Broker 1's fetch to broker 0."""
    request = FetchRequest(1, fields.pop("replica_id", 1), epoch, offset, **{"broker_epoch": 2, **fields})
    return replica.receive(1, request, now)
