"""Bugs of a quorum of controllers, to be planted; the others are in `planted`."""

from __future__ import annotations

from planting import Patch, Planted

from replog.core.effects import StoreRecords
from replog.core.protocol import RecordIs
from replog.core.quorum import records
from replog.sim.cluster.quorum import ControllerDisk


def _votes_for_anybody() -> list[Patch]:
    return [(records, "is_as_new", lambda candidate, own: True)]


def _records_are_not_written() -> list[Patch]:
    right = ControllerDisk.perform

    def perform(self, effect):
        if not isinstance(effect, StoreRecords):
            right(self, effect)

    return [(ControllerDisk, "perform", perform)]


CONTROLLERS = (
    Planted(
        "answered-early",
        "A36",
        "isr-complete",
        {"answered_when": RecordIs.APPENDED},
        profile="controllers",
        seed=22,
    ),
    Planted(
        "applied-early",
        "A36",
        "one-leader",
        {"applied_when": RecordIs.APPENDED},
        profile="controllers",
        seed=47,
    ),
    Planted(
        "no-own-record", "KAFKA-12619", "metadata-kept", {"own_record": False}, profile="controllers", seed=98
    ),
    Planted(
        "votes-for-anybody",
        "KIP-595",
        "metadata-kept",
        patches=_votes_for_anybody,
        profile="controllers",
        seed=1,
    ),
    Planted(
        "records-are-not-written",
        "KIP-595",
        "metadata-kept",
        patches=_records_are_not_written,
        profile="controllers",
    ),
)
