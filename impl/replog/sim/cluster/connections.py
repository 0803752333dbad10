"""The effect of connections: a copy of an ISR proposal cannot arrive after a later one was refused.

A refusal changes no epoch, so the copy would be granted behind its leader's back.  Kafka, too, has nothing
but its connections against that.

Not here: who loses the copies (`world`).
"""

from __future__ import annotations

from replog.core.messages import AlterPartitionReply, AlterPartitionRequest, ForPartition, Message, OfTerm
from replog.core.types import Error
from replog.sim.cluster.node import Delivery, Item

Attempt = tuple[int, str]
"""An attempt of a proposal: its correlation, and of several partitions which."""


def refused(message: Message) -> Attempt | None:
    """Return the attempt that a message refuses, so that the sender rolls back."""
    inner, partition = _opened(message)
    if isinstance(inner, AlterPartitionReply) and inner.error is Error.INELIGIBLE_REPLICA:
        return inner.correlation, partition
    return None


def is_copy(item: Item, source: int, attempt: Attempt) -> bool:
    """Return whether something in flight is a proposal that a broker sent no later than an attempt."""
    if not isinstance(item, Delivery) or item.source != source:
        return False
    inner, partition = _opened(item.message)
    is_earlier = isinstance(inner, AlterPartitionRequest) and inner.correlation <= attempt[0]
    return is_earlier and partition == attempt[1]


def _opened(message: Message) -> tuple[object, str]:
    """Return the content of a message, and its partition."""
    inner = message.message if isinstance(message, OfTerm) else message
    return (inner.message, inner.partition) if isinstance(inner, ForPartition) else (inner, "")
