"""What the nodes of a cluster read when they start: properties, logging, and a formatted log directory."""

from __future__ import annotations

import base64
import fcntl
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from conformance.apache_kafka.nodes import StartFailed, java_command
from conformance.apache_kafka.releases import Metadata, Release, cache_folder
from msgspec import Struct

# Nothing happens by itself: no elections, no topics, no cleaning, and one fetcher for each leader.
_BROKER = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "background.threads": "2",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.enable": "false",
    "num.io.threads": "2",
    "num.network.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "num.replica.fetchers": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
LOGGERS = {"org.apache.kafka": "INFO", "kafka": "INFO", "state.change.logger": "INFO"}
PATTERN = "[%d] %p [%t] %m (%c)%n"
# What says each step of replication (docs/check-your-cluster.md).
RECORDED = {
    "kafka.cluster": "TRACE",
    "kafka.server.ReplicaFetcherThread": "TRACE",
    "org.apache.kafka.controller": "DEBUG",
    "org.apache.kafka.server.partition": "TRACE",
    "org.apache.kafka.server.replica": "TRACE",
    "org.apache.kafka.storage.internals.epoch": "DEBUG",
    "org.apache.kafka.storage.internals.log.UnifiedLog": "TRACE",
    "state.change.logger": "TRACE",
}


class Ports(Struct, frozen=True):
    """Where a broker listens, for clients and for other brokers, and the port by which others reach it."""

    client: int
    replication: int
    advertised: int


def broker_listeners(ports: Ports) -> dict[str, str]:
    """Separate listeners for clients and for other brokers; the second is reached through the relay."""
    return {
        "listeners": f"CLIENT://127.0.0.1:{ports.client},REPLICATION://127.0.0.1:{ports.replication}",
        "advertised.listeners": f"CLIENT://127.0.0.1:{ports.client},REPLICATION://127.0.0.1:{ports.advertised}",
        "inter.broker.listener.name": "REPLICATION",
    }


def kraft_broker(node: int, folder: Path, ports: Ports, voters: str) -> dict[str, str]:
    """The properties of a broker with a quorum of controllers."""
    return {
        **_BROKER,
        **broker_listeners(ports),
        **_kraft(node, folder, "broker", voters),
        "initial.broker.registration.timeout.ms": "180000",
        "share.coordinator.state.topic.num.partitions": "1",
    }


def kraft_controller(node: int, folder: Path, port: int, advertised: int, voters: str) -> dict[str, str]:
    """The properties of a controller.

    Its advertised port matters: a raft response names the leader's endpoint, and brokers go there next,
    past a relay that is only in the list of voters.
    """
    return {
        **_kraft(node, folder, "controller", voters),
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "advertised.listeners": f"CONTROLLER://127.0.0.1:{advertised}",
    }


def _kraft(node: int, folder: Path, role: str, voters: str) -> dict[str, str]:
    return {
        "node.id": str(node),
        "process.roles": role,
        "log.dirs": str(folder),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": voters,
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,CLIENT:PLAINTEXT,REPLICATION:PLAINTEXT",
        # Records of no meaning would end fetches of the metadata log that a test holds.
        "metadata.max.idle.interval.ms": "0",
    }


def zookeeper_broker(node: int, folder: Path, ports: Ports, zookeeper: int) -> dict[str, str]:
    """The properties of a broker with ZooKeeper."""
    return {
        **_BROKER,
        **broker_listeners(ports),
        "broker.id": str(node),
        "log.dirs": str(folder),
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,REPLICATION:PLAINTEXT",
        "zookeeper.connect": f"127.0.0.1:{zookeeper}",
        "zookeeper.connection.timeout.ms": "60000",
    }


def zookeeper_server(folder: Path, port: int) -> dict[str, str]:
    """The properties of a ZooKeeper of one server."""
    return {
        "dataDir": str(folder),
        "clientPort": str(port),
        "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false",
        "maxClientCnxns": "0",
        "tickTime": "1000",
        "maxSessionTimeout": "600000",
    }


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Write a file of properties."""
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()), encoding="utf-8")


def write_logging(folder: Path, release: Release, levels: Mapping[str, str]) -> dict[str, object]:
    """Write the logging configuration.

    The system properties by which a node finds it (it also needs `node`).
    """
    loggers = {**LOGGERS, **levels}
    if release.numbers >= (4, 0):
        path = folder / "log4j2.xml"
        named = "".join(f'<Logger name="{name}" level="{level}"/>' for name, level in loggers.items())
        path.write_text(
            '<Configuration><Appenders><File name="F" fileName="${sys:logs}/${sys:node}.log">'
            f'<PatternLayout pattern="{PATTERN}"/></File></Appenders>'
            f'<Loggers><Root level="WARN"><AppenderRef ref="F"/></Root>{named}</Loggers></Configuration>\n',
            encoding="utf-8",
        )
        return {"log4j2.configurationFile": path, "logs": folder}
    path = folder / "log4j.properties"
    appender = {
        "rootLogger": "WARN, F",
        "appender.F": "org.apache.log4j.FileAppender",
        "appender.F.File": "${logs}/${node}.log",
        "appender.F.layout": "org.apache.log4j.PatternLayout",
        "appender.F.layout.ConversionPattern": PATTERN,
    }
    named_loggers = {f"logger.{name}": level for name, level in loggers.items()}
    write_properties(path, {f"log4j.{name}": value for name, value in {**appender, **named_loggers}.items()})
    return {"log4j.configuration": f"file:{path}", "logs": folder}


class Elr(Struct, frozen=True):
    """Whether eligible leader replicas are on in a new cluster; None is the release's own choice."""

    enabled: bool | None = None

    def features(self) -> list[str]:
        """Arguments of `format`."""
        if self.enabled is None:
            return []
        return ["--feature", f"eligible.leader.replicas.version={int(self.enabled)}"]


def format_folder(folder: Path, release: Release, node: int, cluster_id: str, elr: Elr) -> None:
    """Make a node's log directory as `kafka-storage format` does, without a JVM for each node."""
    shutil.copytree(_formatted(release, elr), folder)
    properties = {"version": "1", "cluster.id": cluster_id, "node.id": str(node), "directory.id": new_id()}
    write_properties(folder / "meta.properties", properties)


def new_id() -> str:
    """A random id in Kafka's form."""
    # As Kafka's: an id that begins with a dash would be an option of a command.
    texts = (base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=") for _ in count())
    return next(text for text in texts if not text.startswith("-"))


def _formatted(release: Release, elr: Elr) -> Path:
    """A folder that Kafka's own tool has formatted, made once.

    Its first records are features, the same for all.
    """
    assert release.metadata is Metadata.KRAFT
    choice = "" if elr.enabled is None else f"-elr-{int(elr.enabled)}"
    folder = cache_folder() / f"{release.version}{choice}.formatted"
    command = java_command(release, {}, None)
    with (cache_folder() / ".formatted.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder
        with tempfile.TemporaryDirectory(dir=cache_folder(), prefix=".formatting-") as place:
            properties, log = Path(place) / "properties", Path(place) / "log"
            write_properties(properties, kraft_controller(1, log, 9, 9, "1@127.0.0.1:9"))
            command += ["kafka.tools.StorageTool", "format", "-t", new_id(), "-c", str(properties)]
            command += elr.features()
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
            if done.returncode:
                raise StartFailed(
                    f"{release.version} cannot format a folder: {_last(done.stdout + done.stderr)}"
                )
            log.rename(folder)
    return folder


def _last(text: str) -> str:
    return " | ".join(text.strip().splitlines()[-3:])
