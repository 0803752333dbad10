"""Bugs to plant: each is one rule of the protocol taken back or bent, most of them flaws Kafka once had.

A bug is a set of switches (`Protocol`), of substituted functions, or both; no file is edited.  `seed` is
the first seed of its profile that finds it.

Not in the list, because about 150 seeds did not find them: B4, B6, B7 (they need two elections within one
fetch), B18, B24 (an ISR proposal overtaken by a restart), B8 with the fetch unfenced alone (the other fences
carry it, as in the reference's exhaustive search), B12 (this core cuts and moves HW in one step, so nobody
reads in between).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from replog.core import election, follower, isr, leader, producer
from replog.core.controller import Controller
from replog.core.effects import Flush, Send
from replog.core.epochs import EpochCache
from replog.core.logview import LogView
from replog.core.messages import ProduceReply
from replog.core.protocol import CURRENT, MaximalIsr, Protocol, Truncation
from replog.core.state import ReplicaState
from replog.core.types import EpochEnd, Error
from replog.sim.storage import MemoryStorage

Patch = tuple[object, str, Any]


@dataclass(frozen=True)
class Planted:
    """One bug: what it mirrors, how to make it, where to look for it."""

    name: str
    mirrors: str
    switches: Mapping[str, Any] = field(default_factory=dict)
    patches: Callable[[], list[Patch]] = list
    profile: str = "all"
    seed: int = 0

    @property
    def rules(self) -> Protocol:
        return replace(CURRENT, **self.switches)


@contextmanager
def planted(bug: Planted) -> Iterator[Protocol]:
    """Put a bug's functions in place of the right ones while the block runs."""
    patches = bug.patches()
    before = [(owner, name, owner.__dict__[name]) for owner, name, _ in patches]
    for owner, name, value in patches:
        setattr(owner, name, value)
    try:
        yield bug.rules
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def _follower_hw_unclamped() -> list[Patch]:
    def update_hw(state, reply):
        state.log.hw = max(reply.high_watermark, 0)

    return [(follower, "update_hw", update_hw)]


def _leader_hw_is_leo() -> list[Patch]:
    return [(leader, "candidate_hw", lambda state, leading, now_ms: state.log.leo)]


def _hw_is_max() -> list[Patch]:
    def candidate(state, leading, now_ms):
        members = isr.maximal_isr(state, leading)
        others = [r.leo for f, r in leading.remotes.items() if f in members]
        return max(others, default=state.log.leo)

    return [(leader, "candidate_hw", candidate)]


def _remote_leo_from_response() -> list[Patch]:
    right = isr.note_fetch

    def note_fetch(state, remote, fetch_offset, leader_leo, now_ms):
        return right(state, remote, leader_leo, leader_leo, now_ms)

    return [(isr, "note_fetch", note_fetch)]


def _ack_at_once() -> list[Patch]:
    def finish(state, leading, source, request, base_offset, now_ms, out):
        if request.acks != 0:
            out.append(Send(source, ProduceReply(request.correlation, Error.NONE, base_offset)))

    return [(leader, "finish_produce", finish)]


def _consumer_reads_past_hw() -> list[Patch]:
    right = LogView.read

    def read(self, start, end, max_bytes):
        return right(self, start, self.leo, max_bytes)

    return [(LogView, "read", read)]


def _window_of_one() -> list[Patch]:
    return [(producer, "WINDOW", 1)]


def _no_dedupe() -> list[Patch]:
    return [
        (producer, "find_duplicate", lambda entry, batch: None),
        (producer, "check_sequence", lambda entry, batch: Error.NONE),
    ]


def _gap_accepted() -> list[Patch]:
    return [(producer, "check_sequence", lambda entry, batch: Error.NONE)]


def _no_epoch_bump() -> list[Patch]:
    right = election.next_image

    def next_image(old, members, rules, gone=()):
        new = right(old, members, rules, gone)
        return replace(new, leader_epoch=max(old.leader_epoch, 0))

    return [(election, "next_image", next_image)]


def _end_offset_off_by_one() -> list[Patch]:
    right = EpochCache._end_at

    def end_at(self, asked, lower, start, rules):
        end = right(self, asked, lower, start, rules)
        return EpochEnd(end.epoch, end.end_offset + 1)

    return [(EpochCache, "_end_at", end_at)]


def _cache_kept_on_truncation() -> list[Patch]:
    return [(EpochCache, "truncate_from_end", lambda self, offset: False)]


def _hw_falls() -> list[Patch]:
    def raise_hw(self, offset):
        moved = min(offset, self.leo) != self.hw
        self.hw = max(min(offset, self.leo), 0)
        return moved

    return [(LogView, "raise_hw", raise_hw)]


def _min_isr_ignored() -> list[Patch]:
    return [(ReplicaState, "effective_min_isr", lambda self: 1)]


def _flush_forgotten() -> list[Patch]:
    right = MemoryStorage.perform

    def perform(self, effect):
        if not isinstance(effect, Flush):
            right(self, effect)

    return [(MemoryStorage, "perform", perform)]


def _fence_keeps_isr() -> list[Patch]:
    return [(Controller, "_drop", lambda self, broker_id, gone=(): None)]


BUGS = (
    Planted("truncate-to-hw", "B1 KIP-101", {"truncation": Truncation.HW}, seed=6),
    Planted("no-truncation", "B31", {"truncation": Truncation.NONE}),
    Planted("kip101", "B3 KAFKA-6361", {"truncation": Truncation.KIP101}, seed=53),
    Planted("update-on-diverge", "B9 KAFKA-13141", {"updates_on_diverge": True}, seed=9),
    Planted("stale-response", "B10 KAFKA-13207", {"checks_response": False}, seed=40),
    Planted("isr-committed-only", "B14 KIP-497", {"maximal_isr": MaximalIsr.NONE}, seed=272),
    Planted("eager-shrink", "B14 KIP-497", {"maximal_isr": MaximalIsr.EAGER_SHRINK}, seed=1),
    Planted("hw-under-min-isr", "B15 KAFKA-15583", {"hw_under_min_isr": True}, seed=16),
    Planted("unclean-election", "B16", {"unclean_election": True}, seed=2),
    Planted("no-partition-epoch", "B19", {"checks_partition_epoch": False}, profile="stale", seed=98),
    Planted("expand-without-leso", "B5 KAFKA-7128", {"expand_needs_leso": False}, seed=2),
    Planted("expand-without-hw", "B30", {"expand_needs_hw": False, "expand_needs_leso": False}),
    Planted("restart-unnoticed", "B17", {"restart_leaves_isr": False}),
    Planted("follower-hw-unclamped", "I6", patches=_follower_hw_unclamped),
    Planted("leader-hw-is-leo", "A7", patches=_leader_hw_is_leo),
    Planted("hw-is-max", "A7", patches=_hw_is_max),
    Planted("remote-leo-from-response", "S14", patches=_remote_leo_from_response),
    Planted("ack-at-once", "A4", patches=_ack_at_once),
    Planted("reads-past-hw", "A30", patches=_consumer_reads_past_hw),
    Planted("dedupe-window-of-one", "A2", patches=_window_of_one),
    Planted("no-dedupe", "B13", patches=_no_dedupe),
    Planted("sequence-gap", "A2", patches=_gap_accepted),
    Planted("no-epoch-bump", "A15", patches=_no_epoch_bump),
    Planted("end-offset-off-by-one", "A20", patches=_end_offset_off_by_one),
    Planted("cache-kept-on-truncation", "KAFKA-10706", patches=_cache_kept_on_truncation, seed=21),
    Planted("hw-falls", "I2", patches=_hw_falls),
    Planted("min-isr-ignored", "A1", {"hw_under_min_isr": True}, _min_isr_ignored, seed=3),
    Planted("flush-forgotten", "KAFKA-10101", patches=_flush_forgotten, profile="flush", seed=2),
    Planted("dead-stay-in-isr", "A23", patches=_fence_keeps_isr, seed=1),
)  # fmt: skip
