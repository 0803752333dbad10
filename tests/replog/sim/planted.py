"""Bugs to plant: each is one rule of the protocol reverted or changed, most of them former flaws of Kafka.

A bug is a set of switches (`Protocol`), of substituted functions, or both; no file is edited.  `seed` is
a seed of its profile that finds it, `oracle` the promise that it breaks there.

Not in the list, because about 150 seeds did not find them: B4, B6, B7 (they need two elections within one
fetch), B18, B24 (an ISR proposal overtaken by a restart), B8 with the fetch unfenced alone (the other fences
carry it, as in the reference's exhaustive search), an older controller that refuses (`newest_only`,
story `a36_old_controller`), B12 (this core cuts and moves HW in one step, so nobody reads in between).
"""

from __future__ import annotations

from dataclasses import replace

from planted_controllers import CONTROLLERS
from planting import Patch, Planted

from replog.core.broker import coordinator, deletion, follower, isr, leader, membership
from replog.core.broker.replica import Replica
from replog.core.broker.state import ReplicaState
from replog.core.controller import election
from replog.core.controller.controller import Controller
from replog.core.effects import Flush, Send, StoreEpochs, Truncate
from replog.core.log import producer
from replog.core.log.epochs import EpochCache
from replog.core.log.logview import LogView
from replog.core.messages import ProduceReply
from replog.core.protocol import MaximalIsr, Truncation
from replog.core.types import NO_LEADER, BrokerState, EpochEnd, Error, Role
from replog.run.files import FileStorage
from replog.sim.cluster.storage import MemoryStorage
from replog.sim.disks.disk import SimFile


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


def _last_leader_forgotten() -> list[Patch]:
    return [(election, "_last_known_leader", lambda old, leader, rules: NO_LEADER)]


def _unfenced_is_not_elected() -> list[Patch]:
    return [(Controller, "_unfence", lambda self, broker: self._set_state(broker, BrokerState.ACTIVE))]


def _elr_joined_by_anybody() -> list[Patch]:
    def next_elr(old, members, rules, gone):
        return tuple(sorted(set(old.replicas) - set(members)))

    return [(election, "next_elr", next_elr)]


def _deposed_leads_on() -> list[Patch]:
    right = Replica._change

    def change(self, image, now_ms, out):
        was_leading = self.state.leading is not None
        right(self, image, now_ms, out)
        if was_leading and self.state.leading is None and image.leader != NO_LEADER:
            leader.become(self.state, image, now_ms, out)

    return [(Replica, "_change", change)]


def _removed_keep_their_log() -> list[Patch]:
    def leave(self, out):
        self.state.role, self.state.leading, self.state.following = Role.NONE, None, None

    return [(Replica, "_leave", leave)]


def _epochs_stamped_in_pairs() -> list[Patch]:
    right = leader.stamp

    def stamp(state, batch):
        return replace(right(state, batch), epoch=state.leader_epoch // 2)

    return [(leader, "stamp", stamp)]


def _fsync_is_a_wish() -> list[Patch]:
    return [(SimFile, "fsync", lambda self: None)]


def _power_loss_takes_flushed() -> list[Patch]:
    def lose_power(self, choose):
        del self.batches[choose(len(self.batches) + 1) :]
        self.flush()

    return [(MemoryStorage, "lose_power", lose_power)]


def _forgotten(owner: object, effect: type) -> list[Patch]:
    """Let a disk ignore one kind of effect."""
    right = owner.__dict__["perform"]

    def perform(disk, asked):
        if not isinstance(asked, effect):
            right(disk, asked)

    return [(owner, "perform", perform)]


def _epochs_stay_in_memory() -> list[Patch]:
    return _forgotten(MemoryStorage, StoreEpochs)


def _truncations_stay_in_memory() -> list[Patch]:
    return _forgotten(FileStorage, Truncate)


def _heartbeats_without_pause() -> list[Patch]:
    return [(membership, "HEARTBEAT_MS", 0)]


def _unknown_leader_raises() -> list[Patch]:
    right = follower.become

    def become(state, image, out):
        if image.leader == NO_LEADER:
            raise LookupError("no broker -1")
        right(state, image, out)

    return [(follower, "become", become)]


def _answered_before_all_have_deleted() -> list[Patch]:
    return [(deletion, "low_watermark", lambda state, leading: state.log.log_start)]


def _deletes_more_than_requested() -> list[Patch]:
    right = deletion.advance_start
    return [(deletion, "advance_start", lambda state, offset, out: right(state, offset + 1, out))]


def _start_stays_in_memory() -> list[Patch]:
    return [(MemoryStorage, "_advance_start", lambda self, offset: None)]


def _commits_answered_when_written() -> list[Patch]:
    return [(coordinator, "_is_due", lambda one, state: True)]


BUGS = (
    Planted("truncate-to-hw", "B1 KIP-101", "isr-complete", {"truncation": Truncation.HW}, seed=6),
    Planted("no-truncation", "B31", "committed-agree", {"truncation": Truncation.NONE}),
    Planted("kip101", "B3 KAFKA-6361", "log-matching", {"truncation": Truncation.KIP101}, seed=53),
    Planted("update-on-diverge", "B9 KAFKA-13141", "committed-copies", {"updates_on_diverge": True}, seed=9),
    Planted("stale-response", "B10 KAFKA-13207", "converges", {"checks_response": False}, seed=40),
    Planted("isr-committed-only", "B14 KIP-497", "isr-complete", {"maximal_isr": MaximalIsr.NONE}, seed=90),
    Planted(
        "eager-shrink", "B14 KIP-497", "committed-copies", {"maximal_isr": MaximalIsr.EAGER_SHRINK}, seed=1
    ),
    Planted("hw-under-min-isr", "B15 KAFKA-15583", "isr-complete", {"hw_under_min_isr": True}, seed=16),
    Planted("unclean-election", "B16", "isr-complete", {"unclean_election": True}, seed=2),
    Planted(
        "no-partition-epoch",
        "B19",
        "isr-complete",
        {"checks_partition_epoch": False},
        profile="stale",
        seed=143,
    ),
    Planted("expand-without-leso", "B5 KAFKA-7128", "isr-complete", {"expand_needs_leso": False}, seed=2),
    Planted(
        "expand-without-hw", "B30", "isr-complete", {"expand_needs_hw": False, "expand_needs_leso": False}
    ),
    Planted("restart-unnoticed", "B17", "converges", {"restart_leaves_isr": False}),
    Planted("follower-hw-unclamped", "I6", "hw-within-log", patches=_follower_hw_unclamped),
    Planted("leader-hw-is-leo", "A7", "committed-copies", patches=_leader_hw_is_leo),
    Planted("hw-is-max", "A7", "isr-complete", patches=_hw_is_max),
    Planted("remote-leo-from-response", "S14", "isr-complete", patches=_remote_leo_from_response),
    Planted("ack-at-once", "A4", "ack-after-commit", patches=_ack_at_once),
    Planted("reads-past-hw", "A30", "reads-committed", patches=_consumer_reads_past_hw),
    Planted("dedupe-window-of-one", "A2", "never-gives-up", patches=_window_of_one),
    Planted("no-dedupe", "B13", "no-duplicate", patches=_no_dedupe),
    Planted("sequence-gap", "A2", "no-duplicate", patches=_gap_accepted),
    Planted("no-epoch-bump", "A15", "one-leader", patches=_no_epoch_bump),
    Planted("end-offset-off-by-one", "A20", "converges", patches=_end_offset_off_by_one),
    Planted(
        "cache-kept-on-truncation", "KAFKA-10706", "converges", patches=_cache_kept_on_truncation, seed=11
    ),
    Planted("hw-falls", "I2", "hw-monotone", patches=_hw_falls),
    Planted("min-isr-ignored", "A1", "isr-complete", {"hw_under_min_isr": True}, _min_isr_ignored, seed=3),
    Planted("flush-forgotten", "KAFKA-10101", "isr-complete", patches=_flush_forgotten, profile="flush"),
    Planted("dead-stay-in-isr", "A23", "leader-complete", patches=_fence_keeps_isr, seed=1),
    Planted(
        "last-leader-forgotten", "KIP-966", "has-leader", patches=_last_leader_forgotten, profile="blackout"
    ),
    Planted(
        "elr-joined-by-anybody", "KIP-966", "isr-complete", patches=_elr_joined_by_anybody, profile="elr"
    ),
    Planted("unfenced-is-not-elected", "A23", "has-leader", patches=_unfenced_is_not_elected, seed=3),
    Planted(
        "removed-stay-eligible",
        "A34",
        "in-assignment",
        {"removed_leave_elr": False},
        profile="reassign",
        seed=28,
    ),
    Planted(
        "removed-keep-their-log", "A34", "converges", patches=_removed_keep_their_log, profile="reassign"
    ),
    Planted("deposed-leads-on", "A19", "one-leader", patches=_deposed_leads_on),
    Planted("epochs-stamped-in-pairs", "S32", "log-matching", patches=_epochs_stamped_in_pairs, seed=2),
    Planted("fsync-is-a-wish", "A28", "flushed-survives", patches=_fsync_is_a_wish, profile="store"),
    Planted(
        "power-loss-takes-flushed",
        "A28",
        "flushed-survives",
        patches=_power_loss_takes_flushed,
        profile="flush",
    ),
    Planted("epochs-stay-in-memory", "A28", "disk-is-log", patches=_epochs_stay_in_memory),
    Planted(
        "truncations-stay-in-memory", "A28", "converges", patches=_truncations_stay_in_memory, profile="store"
    ),
    Planted(
        "heartbeats-without-pause", "W7", "step-limit", patches=_heartbeats_without_pause, profile="calm"
    ),
    Planted(
        "answered-before-all-have-deleted",
        "A35",
        "log-start",
        patches=_answered_before_all_have_deleted,
        profile="delete",
    ),
    Planted(
        "deletes-more-than-requested",
        "A35",
        "log-start",
        patches=_deletes_more_than_requested,
        profile="delete",
    ),
    Planted(
        "joins-without-start",
        "KIP-107",
        "log-start",
        {"join_needs_start": False},
        profile="delete",
        seed=17,
    ),
    Planted("start-stays-in-memory", "A35", "disk-is-log", patches=_start_stays_in_memory, profile="delete"),
    Planted(
        "completes-as-follower",
        "KAFKA-20634",
        "commits-kept",
        {"completes_as_leader": False},
        profile="groups",
        seed=84,
    ),
    Planted(
        "commits-answered-when-written",
        "A31",
        "commits-kept",
        patches=_commits_answered_when_written,
        profile="groups",
        seed=3,
    ),
    *CONTROLLERS,
    Planted("no-leader-raises", "A19", "no-exception", patches=_unknown_leader_raises),
)
