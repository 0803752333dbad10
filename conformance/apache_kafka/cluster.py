"""A cluster of real brokers on this machine: any release, each link through a relay, nothing left behind.

    with Cluster(Plan(RELEASES["4.4.0"])) as cluster:
        cluster.create_topic("orders", [[1, 2, 3]], {"min.insync.replicas": "2"})
        cluster.relay.hold(Pattern(source=3, destination=1, api=Api.FETCH))
        ...

Brokers are 1, 2, 3.  With KRaft, controllers are 101 and so on; with ZooKeeper, broker 4 has no replicas
and starts first, so that it is the controller, and no fault of a replica is one of the controller.

    clients ---> CLIENT port                                of each broker
    brokers ---> relay ---> REPLICATION port                of each broker
    brokers, controllers ---> relay ---> CONTROLLER port    of each controller (KRaft)
    broker  ---> its own relay port ---> ZooKeeper          (so that one broker's session can be held)
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from conformance.apache_kafka.links import ZOOKEEPER, Relay
from conformance.apache_kafka.nodes import Node, NotYet, StartFailed, free_ports, java_command, wait_for
from conformance.apache_kafka.releases import ALL_VERSIONS, Metadata, Release, jar
from conformance.apache_kafka.schemas import Fields, Schemas
from conformance.apache_kafka.settings import (
    Elr,
    Ports,
    format_folder,
    kraft_broker,
    kraft_controller,
    new_id,
    write_logging,
    write_properties,
    zookeeper_broker,
    zookeeper_server,
)
from conformance.apache_kafka.wire import Api, Connection
from msgspec import Struct

BROKERS = (1, 2, 3)
ZOOKEEPER_CONTROLLER = 4  # a broker without replicas


class Plan(Struct, frozen=True):
    """What a cluster is to be; `settings` are for all brokers, `settings_of` for some."""

    release: Release
    controllers: int = 1
    settings: Mapping[str, str] = {}
    settings_of: Mapping[int, Mapping[str, str]] = {}
    elr: Elr = Elr()
    agent: Path | None = None  # of each broker
    levels: Mapping[str, str] = {}  # of loggers


def schemas_of(release: Release) -> Schemas:
    """The messages of a release.

    All before 4.0 by one that has their versions, too, since names of fields changed.
    """
    return Schemas(jar(max(release, ALL_VERSIONS, key=lambda each: each.numbers), "kafka-clients"))


class Cluster:
    """Processes, their folders and the links between them; a context that starts and ends them."""

    def __init__(self, plan: Plan, folder: Path | None = None) -> None:
        self.plan, self.relay, self.brokers = plan, Relay(), BROKERS
        self.schemas = schemas_of(plan.release)
        self._is_temporary = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="specchk-kafka-"))
        self.controllers = tuple(101 + n for n in range(plan.controllers))
        self.nodes: dict[int, Node] = {}
        self._connections: dict[int, Connection] = {}
        self.zookeeper_port = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(self.close)
            if self.plan.release.metadata is Metadata.KRAFT:
                self._start_kraft()
            else:
                self._start_zookeeper()
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes and connections, and remove the folder if it is a temporary one."""
        for connection in self._connections.values():
            connection.close()
        for node in self.nodes.values():
            node.kill()
        self.relay.close()
        if self._is_temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self) -> None:
        """Stop all processes in good order, brokers first: they request it of the controller."""
        self.relay.release_all()
        groups = (self.brokers, (ZOOKEEPER_CONTROLLER,), self.controllers, (ZOOKEEPER,))
        for group in groups:
            chosen = [self.nodes[node] for node in group if node in self.nodes]
            for node in chosen:
                node.terminate()
            for node in chosen:
                node.wait()

    def log_folder(self, node: int) -> Path:
        """The log directory of a broker or controller."""
        return self.folder / str(node)

    def log_lines(self, node: int) -> list[str]:
        """What a broker or controller has logged."""
        path = self.folder / f"{node}.log"
        return path.read_text(errors="replace").splitlines() if path.exists() else []

    def call(self, broker: int, key: Api, version: int, fields: Mapping[str, Any]) -> Fields:
        """A request to a broker and its response, on a kept connection.  Raises OSError."""
        connection = self._connections.get(broker)
        if connection is None:
            connection = self._connections[broker] = self.connect(broker)
        try:
            return connection.call(key, version, fields)
        except OSError:
            self._connections.pop(broker).close()
            raise

    def connect(self, broker: int) -> Connection:
        """A new connection to a broker's port for clients."""
        return Connection(self.nodes[broker].port, self.schemas)

    def metadata(self, broker: int, topic: str) -> Fields:
        """A topic as a broker's metadata has it; raises NotYet where it does not."""
        response = self.call(broker, Api.METADATA, 1, {"Topics": [{"Name": topic}]})
        (described,) = response["Topics"]
        if described["ErrorCode"]:
            raise NotYet(f"error {described['ErrorCode']} for topic {topic}")
        return dict(described)

    def create_topic(self, topic: str, replicas: Sequence[Sequence[int]], configs: Mapping[str, str]) -> None:
        """Create a topic with these replicas of each partition; all brokers have applied it on return."""
        assignments = [{"PartitionIndex": n, "BrokerIds": list(ids)} for n, ids in enumerate(replicas)]
        new = {
            "Name": topic,
            "NumPartitions": -1,
            "ReplicationFactor": -1,
            "Assignments": assignments,
            "Configs": [{"Name": name, "Value": value} for name, value in configs.items()],
        }
        version = 1 if self.plan.release.numbers < (0, 11) else 2
        broker = ZOOKEEPER_CONTROLLER if ZOOKEEPER_CONTROLLER in self.nodes else self.brokers[0]
        request = {"Topics": [new], "timeoutMs": 60000}

        def is_created() -> bool:
            code = self.call(broker, Api.CREATE_TOPICS, version, request)["Topics"][0]["ErrorCode"]
            if code not in (0, _TOPIC_ALREADY_EXISTS, _NOT_CONTROLLER, _REQUEST_TIMED_OUT):
                raise ValueError(f"topic {topic} is not created: error {code}")
            return code in (0, _TOPIC_ALREADY_EXISTS)

        wait_for(is_created, f"topic {topic}")

    def _start_kraft(self) -> None:
        plan, cluster_id = self.plan, new_id()
        everyone = (*self.controllers, *self.brokers)
        logging = write_logging(self.folder, plan.release, plan.levels)
        ports = dict(zip(self.controllers, free_ports(len(self.controllers)), strict=True))
        advertised = {node: self.relay.listen(node, port) for node, port in ports.items()}
        voters = ",".join(f"{node}@127.0.0.1:{advertised[node]}" for node in self.controllers)
        for node in self.controllers:
            properties = kraft_controller(node, self.log_folder(node), ports[node], advertised[node], voters)
            self._add(node, logging, {**properties, **plan.settings_of.get(node, {})}, ports[node], None)
        for node in self.brokers:
            listening = self._ports(node)
            properties = kraft_broker(node, self.log_folder(node), listening, voters)
            self._add_broker(node, logging, properties, listening)
        for node in everyone:
            format_folder(self.log_folder(node), plan.release, node, cluster_id, plan.elr)
        self._start(everyone)

    def _start_zookeeper(self) -> None:
        logging = write_logging(self.folder, self.plan.release, self.plan.levels)
        (port,) = free_ports(1)
        self.zookeeper_port = port
        write_properties(
            self.folder / "zookeeper.properties", zookeeper_server(self.folder / "zookeeper", port)
        )
        command = java_command(self.plan.release, {**logging, "node": "zookeeper"}, None)
        command += [
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(self.folder / "zookeeper.properties"),
        ]
        self.nodes[ZOOKEEPER] = Node("zookeeper", command, port, self.folder)
        self._start([ZOOKEEPER])
        for node in (ZOOKEEPER_CONTROLLER, *self.brokers):
            listening = self._ports(node)
            session = self.relay.listen(ZOOKEEPER, port, source=node)
            properties = zookeeper_broker(node, self.log_folder(node), listening, session)
            self._add_broker(node, logging, properties, listening)
        self._start([ZOOKEEPER_CONTROLLER])
        wait_for(self._is_controller, "a controller")
        self._start(self.brokers)

    def _is_controller(self) -> bool:
        response = self.call(ZOOKEEPER_CONTROLLER, Api.METADATA, 1, {"Topics": []})
        return bool(response["ControllerId"] == ZOOKEEPER_CONTROLLER)

    def _ports(self, node: int) -> Ports:
        client, replication = free_ports(2)
        return Ports(client, replication, self.relay.listen(node, replication))

    def _add_broker(
        self, node: int, logging: Mapping[str, object], properties: Mapping[str, str], ports: Ports
    ) -> None:
        chosen = {**properties, **self.plan.settings, **self.plan.settings_of.get(node, {})}
        self._add(node, logging, chosen, ports.client, self.plan.agent)

    def _add(
        self,
        node: int,
        logging: Mapping[str, object],
        properties: Mapping[str, str],
        port: int,
        agent: Path | None,
    ) -> None:
        path = self.folder / f"{node}.properties"
        write_properties(path, properties)
        command = java_command(self.plan.release, {**logging, "node": node}, agent)
        self.nodes[node] = Node(str(node), [*command, "kafka.Kafka", str(path)], port, self.folder)

    def _start(self, nodes: Iterable[int]) -> None:
        for node in nodes:
            self.nodes[node].start()
        for node in nodes:
            self.nodes[node].wait_until_listening()

    def wait_until_ready(self) -> None:
        """Wait until every broker's metadata has all brokers."""

        def is_ready() -> bool:
            known = [self.call(broker, Api.METADATA, 1, {"Topics": []})["Brokers"] for broker in self.brokers]
            return all(set(self.brokers) <= {each["NodeId"] for each in brokers} for brokers in known)

        wait_for(is_ready, "a cluster in which all brokers know each other", 120)


_REQUEST_TIMED_OUT, _TOPIC_ALREADY_EXISTS, _NOT_CONTROLLER = 7, 36, 41

__all__ = ["BROKERS", "ZOOKEEPER_CONTROLLER", "Cluster", "Plan", "StartFailed", "schemas_of"]
