"""A follower: fetching, truncation by every historical rule, out of range, and replies it must ignore."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_support import NOW, following, log_of, metadata, sent

from replog.core.broker.follower import truncation_point
from replog.core.broker.state import FetchPhase
from replog.core.effects import Append, Reset, SetTimer, StoreEpochs, Timer, Truncate
from replog.core.log.epochs import EpochCache
from replog.core.log.logview import LogView
from replog.core.messages import (
    EARLIEST,
    LATEST,
    EpochEndReply,
    EpochEndRequest,
    FetchReply,
    FetchRequest,
    ListOffsetsReply,
    ListOffsetsRequest,
)
from replog.core.protocol import CURRENT, TruncateWhen, Truncation
from replog.core.types import UNDEFINED, Batch, EpochEnd, Error
from replog.sim.cluster.storage import MemoryStorage
from replog.sim.disks.stored import StoreStorage


def ask(replica):
    """Fire the fetch timer and return the request sent."""
    (request,) = sent(replica.fire(Timer.SEND_FETCH, 0, NOW))
    return request


def answer(replica, **fields):
    """Make the replica send a request, and answer with a fetch reply."""
    request = ask(replica)
    fields = {"error": Error.NONE, "high_watermark": 0, "log_start": 0, **fields}
    return replica.receive(0, FetchReply(request.correlation, **fields), NOW)


def test_a_fetch_says_where_the_log_ends_and_in_which_epoch():
    """A5: fetchOffset is the LEO, lastFetchedEpoch the latest epoch known; one request in flight."""
    follower = following(log_of(0, 0, 2), epoch=3)
    request = ask(follower)
    assert isinstance(request, FetchRequest)
    assert (request.replica_id, request.leader_epoch, request.fetch_offset) == (1, 3, 3)
    assert (request.last_fetched_epoch, request.broker_epoch) == (2, 2)
    assert sent(follower.fire(Timer.SEND_FETCH, 0, NOW)) == []


def test_records_are_appended_and_the_high_watermark_follows_as_far_as_the_log():
    """A8, I6: HW is assigned, clamped to the LEO, and may go down."""
    follower = following()
    answer(follower, batches=(Batch(0, 0, 2),), high_watermark=9)
    assert (follower.state.log.leo, follower.state.log.hw) == (2, 2)
    answer(follower, high_watermark=1)
    assert follower.state.log.hw == 1


def test_each_epochs_entry_is_stored_right_before_its_first_record():
    """The disk never has a later epoch's entry before an earlier epoch's records."""
    follower = following()
    effects = answer(follower, batches=(Batch(0, 0, 1), Batch(1, 0, 1), Batch(2, 3, 1)))
    on_disk = [e for e in effects if isinstance(e, Append | StoreEpochs)]
    assert on_disk == [
        StoreEpochs(((0, 0),)),
        Append((Batch(0, 0, 1), Batch(1, 0, 1))),
        StoreEpochs(((0, 0), (3, 2))),
        Append((Batch(2, 3, 1),)),
    ]


@pytest.mark.parametrize(
    "batches",
    [
        (Batch(1, 0, 1),),
        (Batch(0, 0, 0),),
        (Batch(0, 0, -1),),
        (Batch(0, -1, 1),),
        (Batch(0, 0, 1), Batch(2, 0, 1)),
    ],
)
def test_records_that_do_not_continue_the_log_change_nothing(batches):
    """A leader that lies about offsets, counts or epochs is queried again after the backoff."""
    follower = following()
    effects = answer(follower, batches=batches, high_watermark=7)
    assert effects == [SetTimer(Timer.SEND_FETCH, follower.state.config.fetch_backoff_ms)]
    assert (follower.state.log.leo, follower.state.log.hw) == (0, 0)


def test_a_diverging_answer_cuts_and_does_nothing_else():
    """F5, B12: log epochs [0,0,1,1,1], Diverging(0,3) -> cut to 2; HW is not the reply's."""
    follower = following(log_of(0, 0, 1, 1, 1), epoch=2)
    effects = answer(follower, high_watermark=5, diverging=EpochEnd(0, 3))
    assert (follower.state.log.leo, follower.state.log.hw) == (2, 0)
    assert effects[:2] == [Truncate(2), StoreEpochs(((0, 0),))]
    request = ask(follower)
    assert (request.fetch_offset, request.last_fetched_epoch) == (2, 0)


def test_an_epoch_the_follower_never_knew_cuts_to_where_its_own_begins():
    """F5: follower cache (1,0), answer (0,4) -> cut to 0."""
    follower = following(log_of(1, 1), epoch=3)
    answer(follower, diverging=EpochEnd(0, 4))
    assert follower.state.log.leo == 0


def leo_after_a_late_reply(**rules):
    """The LEO of a log of one record, after another one that was requested in the previous epoch."""
    follower = following(log_of(0), protocol=replace(CURRENT, **rules))
    old = ask(follower)
    follower.apply(metadata(0, 1, 2, version=2), 2, NOW)
    late = FetchReply(old.correlation, Error.NONE, 1, 0, (Batch(1, 0, 1),))
    follower.receive(0, late, NOW)
    return follower.state.log.leo


def test_a_reply_to_a_request_of_before_the_epoch_change_is_ignored():
    """P19, KAFKA-13207: in-flight replies of the old epoch change nothing."""
    assert leo_after_a_late_reply() == 1


def test_a_reply_of_before_the_epoch_change_was_applied_under_the_old_rule():
    """B10, KAFKA-13207: which request it answered was not checked."""
    assert leo_after_a_late_reply(checks_response=False) == 2


def test_an_answer_to_another_kind_of_question_is_no_answer():
    """The kind of request is compared, not only its number."""
    follower = following(log_of(0, 0))
    fetched = ask(follower)
    follower.receive(0, ListOffsetsReply(fetched.correlation, Error.NONE, 1), NOW)
    assert follower.state.log.leo == 2
    follower.receive(0, FetchReply(fetched.correlation, Error.OFFSET_OUT_OF_RANGE, 0, 0), NOW)
    asked = ask(follower)
    assert isinstance(asked, ListOffsetsRequest)
    late = FetchReply(asked.correlation, Error.NONE, 0, 0, (Batch(2, 0, 1),))
    assert follower.receive(0, late, NOW) == [SetTimer(Timer.SEND_FETCH, 0)]
    assert follower.state.log.leo == 2


def test_a_cut_of_records_cuts_their_epochs_under_the_old_rule_too():
    """B23, KAFKA-10706: the entries that remained had no record."""
    old = replace(CURRENT, truncates_cache_always=False)
    follower = following(log_of(0, 1), epoch=3, protocol=old)
    effects = answer(follower, diverging=EpochEnd(0, 1))
    assert effects[:2] == [Truncate(1), StoreEpochs(((0, 0),))]


def test_a_duplicate_reply_is_applied_once():
    """The same reply twice appends once."""
    follower = following()
    request = ask(follower)
    reply = FetchReply(request.correlation, Error.NONE, 0, 0, (Batch(0, 0, 1),))
    follower.receive(0, reply, NOW)
    follower.receive(0, reply, NOW)
    assert follower.state.log.leo == 1


def test_a_fenced_fetch_waits_for_metadata_and_an_unknown_epoch_is_tried_again():
    """A8: FENCED_LEADER_EPOCH stops the fetcher until new metadata; others back off."""
    follower = following()
    backoff = SetTimer(Timer.SEND_FETCH, follower.state.config.fetch_backoff_ms)
    assert answer(follower, error=Error.UNKNOWN_LEADER_EPOCH) == [backoff]
    assert answer(follower, error=Error.FENCED_LEADER_EPOCH) == []
    assert follower.fire(Timer.SEND_FETCH, 0, NOW) == []
    follower.apply(metadata(0, 1, 2, version=2), 2, NOW)
    assert isinstance(ask(follower), FetchRequest)


def test_a_lost_request_is_sent_again():
    """The timeout of the request in flight sends a new one; that of an older one does nothing."""
    follower = following()
    request = ask(follower)
    assert sent(follower.fire(Timer.FETCH_TIMEOUT, request.correlation - 1, NOW)) == []
    (again,) = sent(follower.fire(Timer.FETCH_TIMEOUT, request.correlation, NOW))
    assert again.correlation != request.correlation


def test_out_of_range_above_the_leaders_end_cuts_to_it():
    """A9, I27: the leader's LATEST is below the LEO: truncate, and continue fetching."""
    follower = following(log_of(0, 0, 0))
    answer(follower, error=Error.OFFSET_OUT_OF_RANGE)
    request = ask(follower)
    assert isinstance(request, ListOffsetsRequest)
    assert request.which == LATEST
    follower.receive(0, ListOffsetsReply(request.correlation, Error.NONE, 1), NOW)
    assert follower.state.log.leo == 1
    assert isinstance(ask(follower), FetchRequest)


def test_epochs_beyond_the_leaders_end_are_cut_on_disk_too():
    """KAFKA-16541: the epoch file is written after the cut, or a restart restores them."""
    follower = following(log_of(0, 0, 1), epoch=2)
    answer(follower, error=Error.OFFSET_OUT_OF_RANGE)
    request = ask(follower)
    effects = follower.receive(0, ListOffsetsReply(request.correlation, Error.NONE, 2), NOW)
    assert effects[:2] == [Truncate(2), StoreEpochs(((0, 0),))]


def test_out_of_range_below_the_leaders_start_begins_anew_there():
    """A9: the leader's EARLIEST is past the LEO: drop everything."""
    follower = following(log_of(0))
    answer(follower, error=Error.OFFSET_OUT_OF_RANGE)
    follower.receive(0, ListOffsetsReply(ask(follower).correlation, Error.NONE, 50), NOW)
    request = ask(follower)
    assert request.which == EARLIEST
    effects = follower.receive(0, ListOffsetsReply(request.correlation, Error.NONE, 40), NOW)
    assert effects[:2] == [Reset(40), StoreEpochs(())]
    assert (follower.state.log.log_start, follower.state.log.leo, follower.state.log.hw) == (40, 40, 40)


def test_a_log_that_touches_the_leaders_is_kept():
    """A9: the leader's EARLIEST may be past this log's start, as long as it is not past its end."""
    follower = following(log_of(0, 0, 0))
    answer(follower, error=Error.OFFSET_OUT_OF_RANGE)
    follower.receive(0, ListOffsetsReply(ask(follower).correlation, Error.NONE, 50), NOW)
    effects = follower.receive(0, ListOffsetsReply(ask(follower).correlation, Error.NONE, 3), NOW)
    assert effects == [SetTimer(Timer.SEND_FETCH, 0)]
    assert follower.state.log.leo == ask(follower).fetch_offset == 3


LATER_START = LogView([Batch(40, 0, 2)], EpochCache([(0, 40)]), hw=42, log_start=40)
"""A log that began anew at a leader's start, 40."""


def ends_below(follower):
    """Let the leader answer that its log ends at 5."""
    answer(follower, error=Error.OFFSET_OUT_OF_RANGE)
    return follower.receive(0, ListOffsetsReply(ask(follower).correlation, Error.NONE, 5), NOW)


def diverges_below(follower):
    """Let the leader answer that the epoch of the follower's last record ends at 5 there."""
    return answer(follower, diverging=EpochEnd(0, 5))


@pytest.mark.parametrize("cut", [ends_below, diverges_below])
@pytest.mark.parametrize("storage", [MemoryStorage, StoreStorage])
def test_a_cut_below_the_log_start_begins_anew_there(cut, storage):
    """A9, I27: after an unclean election the leader may end before this log starts; so does the disk."""
    follower, disk = following(LATER_START.copy(), epoch=1), storage()
    disk.recover()
    for effect in (Reset(40), StoreEpochs(((0, 40),)), Append((Batch(40, 0, 2),))):
        disk.perform(effect)
    for effect in cut(follower):
        if not isinstance(effect, SetTimer):
            disk.perform(effect)
    log = follower.state.log
    assert (log.log_start, log.hw, log.leo, disk.end()) == (5, 5, 5, 5)
    assert ask(follower).fetch_offset == 5


def test_an_error_about_the_leaders_end_cuts_nothing():
    """A9: the offset beside an error has no meaning; the query is repeated."""
    follower = following(log_of(0, 0, 0))
    answer(follower, error=Error.OFFSET_OUT_OF_RANGE)
    request = ask(follower)
    follower.receive(0, ListOffsetsReply(request.correlation, Error.NOT_LEADER_OR_FOLLOWER, 1), NOW)
    assert follower.state.log.leo == 3


def test_hw_truncation_cuts_on_becoming_follower():
    """B1: up to 0.10 a new follower cuts at its own HW, whatever the leader has."""
    log = log_of(0, 0, 0)
    log.assign_hw(1)
    follower = following(log, protocol=replace(CURRENT, truncation=Truncation.HW))
    assert follower.state.log.leo == 1


@pytest.mark.parametrize("rules", [Truncation.KIP101, Truncation.KIP279, Truncation.KAFKA7415])
def test_a_new_follower_asks_where_its_latest_epoch_ends(rules):
    """S35: from 0.11 to 2.7."""
    request = ask(following(log_of(0, 0, 2), epoch=5, protocol=replace(CURRENT, truncation=rules)))
    assert isinstance(request, EpochEndRequest)
    assert request.epoch == 2


def test_epoch_truncation_asks_until_the_logs_agree():
    """A21, KIP-279: an answer about an unknown epoch cuts, and a lower one is queried."""
    follower = following(
        log_of(0, 0, 2, 2, 4), epoch=5, protocol=replace(CURRENT, truncation=Truncation.KAFKA7415)
    )
    request = ask(follower)
    assert isinstance(request, EpochEndRequest)
    assert request.epoch == 4
    follower.receive(0, EpochEndReply(request.correlation, Error.NONE, EpochEnd(3, 4)), NOW)
    assert follower.state.log.leo == 4
    request = ask(follower)
    assert request.epoch == 2
    follower.receive(0, EpochEndReply(request.correlation, Error.NONE, EpochEnd(2, 3)), NOW)
    assert follower.state.log.leo == 3
    assert follower.state.following is not None
    assert follower.state.following.phase is FetchPhase.FETCHING


def test_an_undefined_answer_falls_back_to_the_high_watermark():
    """B4: (-1, -1) means truncate to HW."""
    log = log_of(0, 0, 0)
    log.assign_hw(1)
    assert truncation_point(following(log).state, UNDEFINED) == (1, True)


def test_the_same_leader_in_a_later_epoch_is_not_asked_under_the_old_rule():
    """B6: with LEADER_ID_CHANGE a missed epoch leaves the log uncut; today every epoch counts."""
    for when, phase in (
        (TruncateWhen.LEADER_ID_CHANGE, FetchPhase.FETCHING),
        (TruncateWhen.EVERY_EPOCH, FetchPhase.TRUNCATING),
    ):
        rules = replace(CURRENT, truncation=Truncation.KIP279, truncate_when=when)
        follower = following(log_of(0), protocol=rules)
        assert follower.state.following is not None
        follower.state.following.phase = FetchPhase.FETCHING
        follower.apply(metadata(0, 2, 2, version=2), 2, NOW)
        assert follower.state.following.phase is phase


def test_without_a_leader_nobody_is_asked():
    """A19: leader none stops the fetcher; the log stays."""
    follower = following(log_of(0))
    follower.apply(metadata(-1, 1, 2, version=2), 2, NOW)
    assert follower.fire(Timer.SEND_FETCH, 0, NOW) == []
    assert follower.state.log.leo == 1


def test_an_image_of_another_isr_leaves_the_fetcher_alone():
    """A19: neither leader nor epoch has changed, so a fetch in flight is not restarted."""
    follower = following(log_of(0), epoch=3)
    before = follower.state.following
    assert follower.apply(metadata(0, 3, 2, (0,), version=2), 2, NOW) == []
    assert follower.state.following is before
    assert follower.state.partition_epoch == 2


def test_metadata_that_lack_the_partition_change_nothing():
    """The data on brokers are adopted, and the replica continues as before."""
    follower = following(log_of(0), epoch=3)
    before = follower.state.copy()
    image = replace(metadata(0, 3, 2, version=2), partitions={})
    assert follower.apply(image, 7, NOW) == []
    assert follower.state == replace(before, brokers=image.brokers, broker_epoch=7)


def test_an_older_image_changes_nothing():
    """A19: a partition epoch that is not newer is ignored."""
    follower = following(log_of(0), epoch=3)
    before = follower.state.copy()
    image = metadata(1, 9, 1, version=9)
    follower.apply(image, 2, NOW)
    assert follower.state == replace(before, brokers=image.brokers)
