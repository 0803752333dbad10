"""What a cluster's controller has decided on a partition, and how an operator has it decide.

A decision is a state of the partition: its leader, leader epoch, ISR and partition epoch.  With KRaft they
are records of the metadata log, read from the controller's own file in their total order; with ZooKeeper
they are the versions of a node, of which only the last can be read.

An election of a given broker is what an operator does: a reassignment to the same replicas in another
order, which makes that broker the preferred one, and a preferred election.  With ZooKeeper the reassignment
alone starts a leader epoch (`updateLeaderEpochAndSendRequest`), with KRaft it does not.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from conformance.apache_kafka.cluster import ZOOKEEPER_CONTROLLER, Cluster
from conformance.apache_kafka.metadata_log import METADATA_LOG, Decision, metadata_records, read_decisions
from conformance.apache_kafka.nodes import NotYet, wait_for
from conformance.apache_kafka.releases import Metadata, jar
from conformance.apache_kafka.schemas import METADATA, Fields, Schemas
from conformance.apache_kafka.wire import Api
from conformance.apache_kafka.zookeeper import NoNode, ZooKeeper

NO_LEADER = -1
_PREFERRED, _UNCLEAN = 0, 1
_ELECTION_NOT_NEEDED = 84


class Refusal(Exception):
    """The controller refused what an operator requested; the message has its answer."""


class Deciding(ABC):
    """The controller of a cluster, for one topic of one partition."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster, self.topic = cluster, topic
        self.topic_id: bytes | None = None  # known with the first decision of a quorum

    @abstractmethod
    def latest(self) -> Decision:
        """The last decision.  Raises NotYet while there is none."""

    @abstractmethod
    def is_fenced(self, broker: int) -> bool:
        """Whether the controller takes a broker for dead."""

    @abstractmethod
    def reorder(self, replicas: Sequence[int]) -> None:
        """Reassign the partition to the same replicas in another order; complete on return."""

    @abstractmethod
    def elect_preferred(self) -> None:
        """Request a preferred election.  Raises Refusal."""

    @abstractmethod
    def elect_unclean(self) -> None:
        """Request an unclean election.  Raises Refusal."""


def deciding(cluster: Cluster, topic: str) -> Deciding:
    """The controller of a cluster, of its kind."""
    kind = _Quorum if cluster.plan.release.metadata is Metadata.KRAFT else _ZooKeeper
    return kind(cluster, topic)


class _Quorum(Deciding):
    def __init__(self, cluster: Cluster, topic: str) -> None:
        super().__init__(cluster, topic)
        self._schemas = Schemas(jar(cluster.plan.release, "kafka-metadata"), METADATA)

    def latest(self) -> Decision:
        decision = read_decisions(self._records()).partitions.get((self.topic, 0))
        if decision is None:
            raise NotYet(f"topic {self.topic} has not been created")
        self.topic_id = decision.topic_id
        return decision

    def is_fenced(self, broker: int) -> bool:
        fenced = True
        for _, name, fields in self._records():
            if name == "RegisterBrokerRecord" and fields["BrokerId"] == broker:
                fenced = fields["Fenced"]
            elif (
                name == "BrokerRegistrationChangeRecord" and fields["BrokerId"] == broker and fields["Fenced"]
            ):
                fenced = fields["Fenced"] > 0
        return fenced

    def reorder(self, replicas: Sequence[int]) -> None:
        partition = {"PartitionIndex": 0, "Replicas": list(replicas)}
        topics = [{"Name": self.topic, "Partitions": [partition]}]
        answer = self._request(Api.ALTER_PARTITION_REASSIGNMENTS, 0, {"Topics": topics})
        code = answer["ErrorCode"] or answer["Responses"][0]["Partitions"][0]["ErrorCode"]
        if code:
            raise Refusal(f"the reassignment is refused: error {code}")

    def elect_preferred(self) -> None:
        self._elect(_PREFERRED)

    def elect_unclean(self) -> None:
        self._elect(_UNCLEAN)

    def _elect(self, kind: int) -> None:
        partitions = [{"Topic": self.topic, "Partitions": [0]}]
        answer = self._request(Api.ELECT_LEADERS, 2, {"ElectionType": kind, "TopicPartitions": partitions})
        results = [each for topic in answer["ReplicaElectionResults"] for each in topic["PartitionResult"]]
        codes = [answer["ErrorCode"], *(each["ErrorCode"] for each in results)]
        if any(code not in (0, _ELECTION_NOT_NEEDED) for code in codes):
            raise Refusal(f"the election is refused: errors {codes}")

    def _request(self, key: Api, version: int, fields: Fields) -> Fields:
        alive = next(broker for broker in self.cluster.brokers if self.cluster.nodes[broker].is_running)
        return self.cluster.call(alive, key, version, fields)

    def _records(self) -> Iterator[tuple[int, str, Fields]]:
        folder = self.cluster.log_folder(self.cluster.controllers[0])
        return metadata_records(folder / METADATA_LOG, self._schemas)


class _ZooKeeper(Deciding):
    def latest(self) -> Decision:
        try:
            with self._session() as zookeeper:
                entry = zookeeper.get(f"/brokers/topics/{self.topic}/partitions/0/state")
        except NoNode:
            raise NotYet(f"topic {self.topic} has not been created") from None
        state = json.loads(entry.data)
        isr = frozenset(state["isr"])
        return Decision(entry.version, state["leader"], state["leader_epoch"], isr, entry.version)

    def is_fenced(self, broker: int) -> bool:
        with self._session() as zookeeper:
            return not zookeeper.exists(f"/brokers/ids/{broker}")

    def reorder(self, replicas: Sequence[int]) -> None:
        partition = {"topic": self.topic, "partition": 0, "replicas": list(replicas)}
        self._administer("reassign_partitions", {"version": 1, "partitions": [partition]})

    def elect_preferred(self) -> None:
        partitions = [{"topic": self.topic, "partition": 0}]
        self._administer("preferred_replica_election", {"version": 1, "partitions": partitions})

    def elect_unclean(self) -> None:
        if self.cluster.plan.release.numbers < (2, 4):
            raise Refusal("before 2.4 a controller elects uncleanly by itself, or not at all")
        topics = [{"Topic": self.topic, "Partitions": [0]}]
        request = {"ElectionType": _UNCLEAN, "TopicPartitions": topics}
        self.cluster.call(ZOOKEEPER_CONTROLLER, Api.ELECT_LEADERS, 1, request)

    def _administer(self, name: str, request: Fields) -> None:
        """Create a node that the controller deletes when it has done what the node requests."""
        path = f"/admin/{name}"
        with self._session() as zookeeper:
            zookeeper.create(path, json.dumps(request).encode())
        wait_for(lambda: not self._has(path), f"the controller acts upon {path}")

    def _has(self, path: str) -> bool:
        with self._session() as zookeeper:
            return zookeeper.exists(path)

    def _session(self) -> ZooKeeper:
        return ZooKeeper(self.cluster.zookeeper_port)
