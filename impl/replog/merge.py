"""The command `replog merge`: what the processes of a cluster have recorded, in one order."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from replog.live import merging

AGAIN_S = 1.0
LATE_NS = 250_000_000
"""How old a line is, at most, when it is written."""


@click.command()
@click.argument("recorded", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("into", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--follow", is_flag=True, help="Do it again each second, until Ctrl-C: the cluster runs on this machine."
)
def command(recorded: Path, into: Path, follow: bool) -> None:
    """Write a recording of each partition into the folder INTO.

    RECORDED is the folder of `replog cluster --record`.  `specchk validate conformance/live_tracing.py INTO`
    explains the recordings.  A partition that was created before the recording, or while a replica was away,
    has none.
    """
    into.mkdir(parents=True, exist_ok=True)
    try:
        while follow:
            _merge(recorded, into, is_running=True)
            time.sleep(AGAIN_S)
    except KeyboardInterrupt:
        pass
    for name, events in _merge(recorded, into, is_running=False).items():
        click.echo(f"{name}: {events} events" if events else f"{name}: its creation is not recorded")


def _merge(recorded: Path, into: Path, is_running: bool) -> dict[str, int]:
    until = time.monotonic_ns() - LATE_NS if is_running else None
    counts: dict[str, int] = {}
    for name, lines in merging.read(recorded, until).items():
        recording = merging.merged(name, lines)
        counts[name] = max(len(recording) - 2, 0)
        if recording:
            text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in recording)
            # At once: a reader that watches the folder never sees half of it.
            part = into / f".{name}"
            part.write_text(text, encoding="utf-8")
            part.replace(into / f"{name}.ndjson")
    return counts
