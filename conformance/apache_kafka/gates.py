"""How metadata reaches brokers: held for each of them, and let through up to a decision of the controller.

With KRaft a broker fetches the metadata log, and whatever one response has is applied as one change: a
broker that is let through late never sees the leader epochs in between.  A response that has been served
and is held keeps what was the newest decision then; that is how a broker applies an old epoch after a newer
one has begun.

With ZooKeeper the controller sends each decision to each broker, in their order (LeaderAndIsr): a broker
may be late, but it misses none.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from conformance.apache_kafka.batches import parse_batches
from conformance.apache_kafka.cluster import Cluster
from conformance.apache_kafka.links import Direction, Frame, Pattern
from conformance.apache_kafka.metadata_log import Decision
from conformance.apache_kafka.releases import Metadata
from conformance.apache_kafka.wire import Api, decode_request, decode_response

_NO_PLACE = -1


class MetadataGate(ABC):
    """The links on which brokers learn decisions."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster, self.relay, self.topic = cluster, cluster.relay, topic
        self.applied = dict.fromkeys(cluster.brokers, _NO_PLACE)  # the place of the last decision let through

    @abstractmethod
    def close(self, broker: int) -> None:
        """Hold a broker's metadata from now on."""

    @abstractmethod
    def open(self, broker: int) -> None:
        """Hold a broker's metadata no longer."""

    @abstractmethod
    def capture(self, broker: int, decision: Decision) -> None:
        """Have a broker's metadata end, for the next `let`, with this decision, which is the newest."""

    @abstractmethod
    def let(self, broker: int, decision: Decision) -> None:
        """Let metadata through to a broker, up to this decision.  Raises TimeoutError."""


def metadata_gate(cluster: Cluster, topic: str) -> MetadataGate:
    """The gate of a cluster, of its kind."""
    return (_QuorumGate if cluster.plan.release.metadata is Metadata.KRAFT else _ZooKeeperGate)(
        cluster, topic
    )


class _QuorumGate(MetadataGate):
    def __init__(self, cluster: Cluster, topic: str) -> None:
        super().__init__(cluster, topic)
        self._captured: dict[int, Frame] = {}

    def close(self, broker: int) -> None:
        self.relay.hold(self._link(broker))
        self._rest(broker)

    def open(self, broker: int) -> None:
        self._captured.pop(broker, None)
        self.relay.release(self._link(broker))

    def capture(self, broker: int, decision: Decision) -> None:
        if broker not in self._captured and self.applied[broker] < decision.place:
            self._captured[broker] = self._response_up_to(broker, decision.place)

    def let(self, broker: int, decision: Decision) -> None:
        if self.applied[broker] >= decision.place:
            return
        response = self._captured.pop(broker, None)
        if response is None or self._last(response) < decision.place:
            if response is not None:
                self.relay.forward(response)
            response = self._response_up_to(broker, decision.place)
        self.applied[broker] = self._last(response)
        self.relay.forward(response)
        self._rest(broker)

    def _link(self, broker: int) -> Pattern:
        return Pattern(broker, self.cluster.controllers[0], Api.FETCH)

    def _rest(self, broker: int) -> Frame:
        """The broker's next request, at the gate; responses before it go on."""
        while True:
            frame = self.relay.expect(self._link(broker))
            if frame.direction is Direction.REQUEST:
                return frame
            self.relay.forward(frame)

    def _response_up_to(self, broker: int, place: int) -> Frame:
        """The response, at the gate, that has the decision of this place."""
        while True:
            self.relay.forward(self._rest(broker))
            link = self._link(broker)
            response = self.relay.expect(link, lambda frame: frame.direction is Direction.RESPONSE)
            if self._last(response) >= place:
                return response
            self.relay.forward(response)

    def _last(self, response: Frame) -> int:
        """The offset of the last committed record in a response with records of the metadata log."""
        fields = decode_response(self.cluster.schemas, Api.FETCH, response.version, response.data)
        last = _NO_PLACE
        for topic in fields["Responses"]:
            for partition in topic["Partitions"]:
                for batch in parse_batches(partition["Records"] or b""):
                    last = max(last, min(batch.last, partition["HighWatermark"] - 1))
        return last


class _ZooKeeperGate(MetadataGate):
    def close(self, broker: int) -> None:
        self.relay.hold(self._link(broker))

    def open(self, broker: int) -> None:
        self.relay.release(self._link(broker))

    def capture(self, broker: int, decision: Decision) -> None:
        """Not needed: a request has one decision."""

    def let(self, broker: int, decision: Decision) -> None:
        end = time.monotonic() + 60
        while self.applied[broker] < decision.epoch and time.monotonic() < end:
            request = self.relay.expect(self._link(broker))
            self.relay.forward(request)
            self.relay.await_answer(request, 60)
            self.applied[broker] = max(self.applied[broker], self._epoch(request))

    def _link(self, broker: int) -> Pattern:
        return Pattern(None, broker, Api.LEADER_AND_ISR, Direction.REQUEST)

    def _epoch(self, request: Frame) -> int:
        fields = decode_request(self.cluster.schemas, request.data)
        grouped = fields.get("TopicStates", ())
        states = [(topic["TopicName"], state) for topic in grouped for state in topic["PartitionStates"]]
        states += [(state["TopicName"], state) for state in fields.get("UngroupedPartitionStates", ())]
        return max((state["LeaderEpoch"] for name, state in states if name == self.topic), default=_NO_PLACE)
