"""Java agents that change or observe an unmodified broker: compiled here, from the sources in `agent/`.

They use Byte Buddy, which is fetched as Kafka is.  An agent is a jar with the name of its class in the
manifest.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

from conformance.apache_kafka.releases import BYTE_BUDDY, Unavailable, cache_folder, fetched

_SOURCES = Path(__file__).parent / "agent"


def agent_jar(name: str) -> Path:
    """The agent whose class is `name`, compiled once for each text of its source.  Raises Unavailable."""
    source = _SOURCES / f"{name}.java"
    (library,) = fetched("agent", [BYTE_BUDDY]).glob("byte-buddy-*.jar")
    digest = sha256(source.read_bytes()).hexdigest()[:12]
    jar = cache_folder() / "agent" / f"{name}-{digest}.jar"
    if jar.exists():
        return jar
    if shutil.which("javac") is None:
        raise Unavailable("there is no `javac` to compile an agent")
    with tempfile.TemporaryDirectory(dir=jar.parent) as place:
        command = ["javac", "--release", "17", "-cp", str(library), "-d", place, str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
        if done.returncode:
            raise ValueError(f"{source.name} does not compile: {done.stderr}")
        complete = Path(place) / "agent.zip"
        with ZipFile(complete, "w") as archive:
            manifest = f"Premain-Class: {name}\nCan-Retransform-Classes: true\nClass-Path: {library.name}\n"
            archive.writestr("META-INF/MANIFEST.MF", manifest)
            for path in Path(place).glob("*.class"):
                archive.write(path, path.name)
        complete.rename(jar)
    return jar
