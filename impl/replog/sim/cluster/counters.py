"""The counts of a world: events by kind, which nothing that happens depends on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """What happened in a world, by kind; `truncations` are those of a file, `stops` the clean ones."""

    steps: int = 0
    lost: int = 0
    crashes: int = 0
    crashes_mid_effects: int = 0
    stops: int = 0
    restarts: int = 0
    disk_failures: int = 0
    truncations: int = 0
