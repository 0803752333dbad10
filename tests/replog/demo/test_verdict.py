"""The demo's verdict is true: each count is compared with what an independent reader finds in the files."""

from __future__ import annotations

import io
import re
import struct
from pathlib import Path

import pytest

from replog.cli import run
from replog.core.protocol import preset, preset_names
from replog.core.types import NO_LEADER
from replog.demo.screen import Screen
from replog.demo.story import Story
from replog.demo.verdict import Ending, Verdict, judge, verdict_lines

PROMISE, OTHER = (3, b"promised"), (3, b"other")


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    shift = value = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at


def read_values(records: bytes, count: int) -> list[bytes]:
    """Read the values of records by the format of Kafka's message format v2."""
    values, at = [], 0
    for _ in range(count):
        size, begin = read_varint(records, at)
        at = begin + size
        inside = begin + 1
        for _ in range(2):
            _, inside = read_varint(records, inside)
        length, inside = read_varint(records, inside)
        inside += max(length, 0)
        length, inside = read_varint(records, inside)
        values.append(records[inside : inside + length])
    return values


def read_disk(folder: Path) -> dict[int, tuple[int, bytes]]:
    """Read a broker's segments without any code of replog: offset to epoch and value."""
    found: dict[int, tuple[int, bytes]] = {}
    for path in sorted(folder.glob("t-0/*.log")):
        data, at = path.read_bytes(), 0
        while at < len(data):
            base, size, epoch = struct.unpack_from(">qii", data, at)
            (count,) = struct.unpack_from(">i", data, at + 57)
            for number, value in enumerate(read_values(data[at + 61 : at + 12 + size], count)):
                found[base + number] = (epoch, value)
            at += 12 + size
    return found


class Ended(Story):
    """A story that notes the cluster right before it is stopped."""

    def _the_reckoning(self) -> Verdict:
        self.final = self.world.image
        self.high_watermarks = {
            broker: -1 if node.broker is None else node.broker.state.log.hw
            for broker, node in self.world.nodes.items()
        }
        return super()._the_reckoning()


class EarlyEnd(Ended):
    """The story up to the crash: the old leader is dead, with a tail that nobody else has."""

    def _the_return(self) -> None:
        pass


class NobodyLeft(Ended):
    """The story, and then everybody dies."""

    def _the_return(self) -> None:
        super()._the_return()
        for broker in self.world.nodes:
            self.world.crash(broker)
        self._run(20_000)


class OneLags(Ended):
    """The story, but one follower hears nothing at the end, and cannot be thrown out of the ISR in time."""

    def _the_return(self) -> None:
        super()._the_return()
        self._cables.cut_off.add(next(b for b in self.world.nodes if b != self.world.image.leader))
        self.producer.is_active = True
        self._run(700)


def perform(story_class: type[Ended], name: str, path: Path) -> tuple[Ended, Verdict]:
    story = story_class(str(path), preset(name), Screen(io.StringIO(), 0, is_live=False))
    return story, story.tell()


def expected(story: Ended, path: Path) -> Verdict:
    """Compute the verdict anew, by loops over what the files hold."""
    disks = [read_disk(path / f"broker-{broker}") for broker in range(3)]
    bodies = [{offset: value for offset, (_, value) in disk.items()} for disk in disks]
    leader, promised = story.final.leader, story.producer.promised
    gone = {
        "lost": [],
        "kept": 0,
        "nowhere": [],
        "hidden": [],
        "unread": [],
        "diverged": [],
        "epochs_differ": [],
    }
    for offset, body in sorted(promised):
        holders = [broker for broker in range(3) if bodies[broker].get(offset) == body]
        if not holders:
            gone["nowhere"].append(offset)
        if leader >= 0 and leader not in holders:
            gone["lost"].append(offset)
            gone["kept"] += bool(holders)
        if leader in holders and offset >= story.high_watermarks[leader]:
            gone["hidden"].append(offset)
    for offset, body in sorted(story.consumer.read):
        if leader >= 0 and bodies[leader].get(offset) != body:
            gone["unread"].append(offset)
    for offset in range(max(max(disk, default=-1) for disk in disks) + 1):
        there = [disk[offset] for disk in disks if offset in disk]
        if len({value for _, value in there}) > 1:
            gone["diverged"].append(offset)
        elif len(set(there)) > 1:
            gone["epochs_differ"].append(offset)
    behind = [(b, sum(offset > max(disks[b], default=-1) for offset, _ in promised)) for b in range(3)]
    return Verdict(
        leader,
        len(promised),
        3,
        behind=tuple((b, count) for b, count in behind if count and b != leader),
        **{name: tuple(value) if isinstance(value, list) else value for name, value in gone.items()},
    )


ENDINGS = [(Ended, name) for name in preset_names()] + [
    (story_class, name)
    for story_class in (EarlyEnd, NobodyLeft, OneLags)
    for name in ("kafka-4.1", "hw-truncation", "no-truncation")
]


@pytest.mark.parametrize(("story_class", "name"), ENDINGS)
def test_the_verdict_is_what_an_independent_reader_of_the_files_finds(story_class, name, tmp_path):
    """All presets, and other ends of the story: every count and offset, and whether all is well."""
    story, verdict = perform(story_class, name, tmp_path)
    assert verdict == expected(story, tmp_path)
    assert verdict.promised > 150
    assert verdict.is_well == (
        verdict.leader >= 0 and not verdict.lost and not verdict.unread and not verdict.diverged
    )
    assert all(len(line) < 80 for line in verdict_lines(verdict))


WELL = r"All \d+ records acknowledged with acks=all are on all three disks\."
ENDS = dict.fromkeys(preset_names(), (0, WELL)) | {
    "hw-truncation": (1, r"LOST: 27 of 257 .* \(offsets 49..75\)\.(\n.*)*\nDIVERGED: at offset 49 "),
    "no-truncation": (1, r"Broker 2 leads, and has all 231 .*\.\nDIVERGED: at offsets 77..83 "),
}


@pytest.mark.parametrize("name", preset_names())
def test_each_preset_ends_as_its_rules_make_it_end(name, capsys):
    """Only HW truncation loses, it and no truncation diverge; the exit code says if anything is wrong."""
    code, said = ENDS[name]
    assert run(["demo", "--plain", "--protocol", name]) == code
    shown = capsys.readouterr().out
    assert re.search(said, shown)
    assert ("LOST" in shown) == (name == "hw-truncation")


def test_the_ways_to_end_are_really_different(tmp_path):
    """A dead leader's tail diverges and a laggard is behind, without a loss; a dead cluster has no leader."""
    early = perform(EarlyEnd, "kafka-4.1", tmp_path / "early")[1]
    assert (early.lost, len(early.behind)) == ((), 1)
    assert early.diverged
    lags = perform(OneLags, "kafka-4.1", tmp_path / "lags")[1]
    assert (lags.lost, lags.diverged, lags.is_well) == ((), (), True)
    nobody = perform(NobodyLeft, "kafka-4.1", tmp_path / "nobody")[1]
    assert (nobody.leader, nobody.lost, nobody.nowhere, nobody.is_well) == (NO_LEADER, (), (), False)
    assert verdict_lines(nobody)[0] == "NO LEADER: 231 records acknowledged with acks=all cannot be read."


def test_a_story_leaves_the_marks_of_a_clean_stop_as_the_brokers_wrote_them(tmp_path, capsys):
    """Reading the files for the verdict does not change the broker epoch in the marker."""
    story, _ = perform(Ended, "kafka-4.1", tmp_path)
    for broker, known in story.world.controller.state.brokers.items():
        run(["dump", str(tmp_path / f"broker-{broker}")])
        shown = re.search(r"broker epoch (\d+)", capsys.readouterr().out)
        assert shown is not None
        assert int(shown[1]) == known.broker_epoch


def disk(*records: tuple[int, bytes], epoch: int = 0) -> dict[int, tuple[int, bytes]]:
    return {offset: (epoch, body) for offset, body in records}


def test_what_the_leader_has_is_not_lost_whatever_the_others_have():
    """A follower with another record diverges, one without any is behind; neither is a loss."""
    before = [(offset, b"x") for offset in range(3)]
    logs = [disk(*before, PROMISE), disk(*before, OTHER), disk(*before)]
    verdict = judge([PROMISE], [PROMISE], Ending(0, 4, logs))
    assert (verdict.lost, verdict.unread, verdict.diverged, verdict.behind) == ((), (), (3,), ((2, 1),))
    assert verdict_lines(verdict) == [
        "Broker 0 leads, and has all 1 record acknowledged with acks=all.",
        "DIVERGED: at offset 3 the brokers hold different records.",
        "Broker 2 is behind: its log ends before 1 of them.",
    ]


def test_what_only_a_follower_has_is_lost():
    """The leader decides; a copy elsewhere is mentioned, and helps no consumer."""
    logs = [disk(OTHER), disk(PROMISE), {}]
    verdict = judge([PROMISE], [PROMISE, OTHER], Ending(0, 4, logs))
    assert (verdict.lost, verdict.kept, verdict.nowhere, verdict.unread) == ((3,), 1, (), (3,))
    assert verdict_lines(verdict)[:3] == [
        "LOST: 1 of 1 record acknowledged with acks=all (offset 3).",
        "1 of them is still on the disk of another broker.",
        "A consumer had read 1 record that the leader does not have.",
    ]
    assert not verdict.is_well


def test_what_is_above_the_leaders_hw_is_not_lost_but_cannot_be_read():
    """HW 3 shows the records before offset 3 only."""
    logs = [disk(PROMISE), disk(PROMISE), disk(PROMISE)]
    verdict = judge([PROMISE], [], Ending(1, 3, logs))
    assert (verdict.lost, verdict.hidden, verdict.is_well) == ((), (3,), True)
    assert verdict_lines(verdict) == [
        "All 1 record acknowledged with acks=all are on all three disks.",
        "At or above the leader's HW, not readable yet: offset 3.",
    ]
    assert judge([PROMISE], [], Ending(1, 4, logs)).hidden == ()


def test_without_a_leader_nothing_can_be_read_and_only_what_no_disk_has_is_lost():
    """Who will lead is not known, so a record on one disk may still be found again."""
    verdict = judge([PROMISE, (4, b"x")], [PROMISE], Ending(NO_LEADER, 0, [disk(PROMISE), {}, {}]))
    assert (verdict.lost, verdict.nowhere, verdict.unread, verdict.is_well) == ((), (4,), (), False)
    assert verdict_lines(verdict)[:2] == [
        "NO LEADER: 2 records acknowledged with acks=all cannot be read.",
        "LOST: 1 of them is on no disk (offset 4).",
    ]


def test_one_content_in_two_epochs_is_not_called_a_different_record():
    """A retried record can be written by two leaders; a reader sees the same."""
    verdict = judge([PROMISE], [], Ending(0, 4, [disk(PROMISE), disk(PROMISE, epoch=2), {}]))
    assert (verdict.diverged, verdict.epochs_differ, verdict.is_well) == ((), (3,), True)
    assert (
        verdict_lines(verdict)[1]
        == "At offset 3 they hold the same record, written in different leader epochs."
    )


def test_offsets_are_shown_as_the_ranges_they_are():
    """A range stands for all of its offsets, and no line grows without end."""
    promised = [(offset, b"x") for offset in (1, 2, 3, 7, 9, 10, 20, 30)]
    line = verdict_lines(judge(promised, [], Ending(0, 40, [{}, {}, {}])))[0]
    assert line == "LOST: 8 of 8 records acknowledged with acks=all (offsets 1..3, 7, 9..10, 20, ...)."
