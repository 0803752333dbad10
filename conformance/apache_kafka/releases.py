"""Releases of Apache Kafka: where their jars come from, and what each needs in order to start.

Nothing of Kafka is in this repository.  `jars(release)` resolves a release once with the machine's own
Maven, from Maven Central, into a cache folder that is complete or absent:

    $SPECCHK_KAFKA, or else ~/.cache/specchk/kafka
        4.4.0/*.jar   agent/byte-buddy-1.17.8.jar   ...

All releases run on Java 17: those of the past need some packages of the JDK opened, and the oldest a
library that the JDK no longer has (JAXB).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from xml.sax.saxutils import escape

from msgspec import Struct


class Unavailable(Exception):
    """Kafka cannot be had on this machine; the message has the reason, for a skipped test."""


class Metadata(Enum):
    """Who decides: a controller that writes ZooKeeper, or a quorum of controllers with a log of their own."""

    ZOOKEEPER = "ZooKeeper"
    KRAFT = "KRaft"


class Release(Struct, frozen=True):
    """A release of Kafka.

    Its version, its kind of metadata and the Maven coordinates of all that it needs.
    """

    version: str
    metadata: Metadata
    artifacts: tuple[str, ...]  # group:artifact:version
    opens: bool = False  # packages of the JDK by --add-opens

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version as numbers, for comparisons."""
        return tuple(map(int, self.version.split(".")))


def _zookeeper(version: str, scala: str, *others: str) -> Release:
    return Release(
        version, Metadata.ZOOKEEPER, (f"org.apache.kafka:kafka_{scala}:{version}", *others), opens=True
    )


def _kraft(version: str, *others: str) -> Release:
    return Release(version, Metadata.KRAFT, (f"org.apache.kafka:kafka_2.13:{version}", *others))


_JAXB = "javax.xml.bind:jaxb-api:2.3.1"
_LOG4J_12 = ("org.slf4j:slf4j-log4j12:1.7.25", "log4j:log4j:1.2.17")
_RELOAD4J = "org.slf4j:slf4j-reload4j:1.7.36"

# Each is the last of its line that shows or lacks something of the ledger: docs/apache-kafka.md has the
# reasons.
RELEASES = {
    release.version: release
    for release in (
        _zookeeper("0.10.2.2", "2.12", _JAXB),
        _zookeeper("0.11.0.3", "2.12", _JAXB),
        _zookeeper("1.1.1", "2.12", _JAXB, *_LOG4J_12),
        _zookeeper("2.4.1", "2.13", *_LOG4J_12),
        _zookeeper("2.8.2", "2.13", *_LOG4J_12),
        _kraft("3.9.1", _RELOAD4J),
        _kraft("4.0.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3"),
        _kraft("4.1.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3"),
        _kraft("4.4.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.5"),
    )
}
NEWEST = RELEASES["4.4.0"]
# Kafka 4.0 removed the oldest versions of each request; this release has all that any of these releases
# offer.
ALL_VERSIONS = RELEASES["3.9.1"]

BYTE_BUDDY = "net.bytebuddy:byte-buddy:1.17.8"


def cache_folder() -> Path:
    """The folder of all jars: $SPECCHK_KAFKA, or ~/.cache/specchk/kafka."""
    chosen = os.environ.get("SPECCHK_KAFKA")
    return Path(chosen) if chosen else Path.home() / ".cache" / "specchk" / "kafka"


def jars(release: Release) -> Path:
    """The folder with the jars of a release; fetches them if necessary.  Raises Unavailable."""
    return fetched(release.version, release.artifacts)


def jar(release: Release, artifact: str) -> Path:
    """A jar of Kafka's own of this release, such as `kafka-clients`."""
    return jars(release) / f"{artifact}-{release.version}.jar"


def fetched(name: str, artifacts: Iterable[str]) -> Path:
    """A folder of the cache with these artifacts and all that they need at run time.  Raises Unavailable."""
    folder = cache_folder() / name
    if folder.is_dir():
        return folder
    for tool in ("mvn", "java"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{name} is not in {cache_folder()}, and there is no `{tool}` to fetch it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Two runs that need the same release fetch it once.
    with (folder.parent / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch(folder, artifacts)
    return folder


def _fetch(folder: Path, artifacts: Iterable[str]) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as place:
        pom = Path(place) / "pom.xml"
        pom.write_text(_pom(artifacts), encoding="utf-8")
        complete = Path(place) / "jars"
        command = ["mvn", "-B", "-q", "-f", str(pom), "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={complete}", "-DincludeScope=runtime"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
        if done.returncode:
            lines = [line for line in done.stdout.splitlines() if "ERROR" in line] or ["(no output)"]
            raise Unavailable(f"Maven could not fetch {folder.name}: {lines[0]}")
        complete.rename(folder)


def _pom(artifacts: Iterable[str]) -> str:
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>".format(
            *map(escape, artifact.split(":"))
        )
        for artifact in artifacts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>specchk</groupId><artifactId>kafka</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )
