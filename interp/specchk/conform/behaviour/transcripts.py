"""Complete accepted runs, kept on this machine by digest, so that a report can show old values.

A lock has digests alone: where nothing is kept, a report shows new values and where they are.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path

from specchk import kept
from specchk.conform.behaviour.texts import Written

FOLDER = "behaviour"
ROOMS = ("conform",)  # how values are written; the observations are in the digest


def place(digest: str) -> Path | None:
    """Return the path at which a run is kept."""
    return kept.place(FOLDER, kept.name_of(kept.sources(*ROOMS), digest))


def keep(digest: str, steps: Sequence[Written]) -> None:
    """Keep a run, unless it is kept already."""
    path = place(digest)
    # Read, not only searched for: a damaged file is as good as none, and so is a folder of another user.
    if kept.read(path) is None:
        kept.write(path, zlib.compress(json.dumps(steps).encode(), 1))


def recall(digest: str) -> list[Written] | None:
    """Return the run with this digest; None if it is not kept."""
    data = kept.read(place(digest))
    if data is None:
        return None
    return [tuple(tuple(seen) for seen in step) for step in json.loads(zlib.decompress(data))]
