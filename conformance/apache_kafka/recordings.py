"""Logs of brokers as recordings, one for each partition, and whether kafka_recorded.spec explains them.

Each recording is a folder with one file of events, which `specchk validate` reads with `tracing.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from conformance.apache_kafka.logs import Reading, Unread, read_logs

TRACING = Path(__file__).parent / "tracing.py"
_CREATED = re.compile(r"Replayed PartitionRecord for new partition (\S+) ")


def write_recordings(
    files: Sequence[Path], into: Path, within_s: float, partitions: Sequence[str] = ()
) -> dict[Path, Reading]:
    """Write what happened to partitions, by default to all but those of Kafka's own topics.

    Returns the folder of each, with what was read.  Raises `Unread`, and OSError.
    """
    lines = {str(file): file.read_text(encoding="utf-8", errors="replace").splitlines() for file in files}
    created = {text[1] for each in lines.values() for line in each if (text := _CREATED.search(line))}
    chosen = list(partitions) or sorted(name for name in created if not name.startswith("__"))
    if not chosen:
        raise Unread(
            "no controller's log says that a partition was created; the logs must reach back to that"
        )
    written = {}
    for partition in chosen:
        reading = read_logs(lines, partition, within_s)
        folder = into / partition
        folder.mkdir(parents=True, exist_ok=True)
        data = b"".join(msgspec.json.encode(event) + b"\n" for event in reading.events)
        (folder / "events.ndjson").write_bytes(data)
        written[folder] = reading
    return written


def validate(folders: Sequence[Path]) -> tuple[int, str]:
    """The exit code and the report of `specchk validate`."""
    command = [sys.executable, "-m", "specchk", "validate", str(TRACING), *map(str, folders)]
    command += ["--partial", "--no-power"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
    return done.returncode, done.stdout + done.stderr
