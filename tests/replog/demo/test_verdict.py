"""The demo's verdict is correct: each count is compared with the findings of an independent reader."""

from __future__ import annotations

import io
import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from replog.cli import run
from replog.core.protocol import Truncation, preset, preset_names
from replog.core.types import CONTROLLER, NO_LEADER
from replog.demo.screen import Screen
from replog.demo.stage import Stage
from replog.demo.story import (
    STORIES,
    STORY_OF,
    Story,
    bring_back_who_is_dead,
    cut_off,
    cut_the_leader,
    kill_the_leader,
)
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


def read_disk(folder: Path, partition: str = "t-0") -> dict[int, tuple[int, bytes]]:
    """Read a broker's segments without any code of replog: offset to epoch and value."""
    found: dict[int, tuple[int, bytes]] = {}
    for path in sorted(folder.glob(f"{partition}/*.log")):
        data, at = path.read_bytes(), 0
        while at < len(data):
            base, size, epoch = struct.unpack_from(">qii", data, at)
            (count,) = struct.unpack_from(">i", data, at + 57)
            for number, value in enumerate(read_values(data[at + 61 : at + 12 + size], count)):
                found[base + number] = (epoch, value)
            at += 12 + size
    return found


class Ended(Stage):
    """A stage that notes the cluster right before it is stopped."""

    def reckoning(self) -> Verdict:
        self.final = self.world.image
        self.high_watermarks = {
            broker: -1 if node.broker is None else node.broker.state.log.hw
            for broker, node in self.world.nodes.items()
        }
        return super().reckoning()


def early_end(stage: Stage) -> None:
    """The story up to the crash: the old leader is dead, with a tail that no other broker has."""
    cut_the_leader(stage)
    kill_the_leader(stage)


def nobody_left(stage: Stage) -> None:
    """The story, and then all brokers die."""
    cut_off(stage)
    for broker in stage.world.nodes:
        stage.world.crash(broker)
    stage.run(20_000)


def one_lags(stage: Stage) -> None:
    """The story, but one follower receives nothing at the end, and cannot be removed from the ISR in time."""
    cut_off(stage)
    leader, follower, other = stage.brokers()
    stage.cables.cut_between(follower, CONTROLLER, leader, other)
    stage.part.producer.is_active = True
    stage.run(700)


ENDS = {tell.__name__: Story("", tell) for tell in (early_end, nobody_left, one_lags)}


def perform(story: Story, name: str, path: Path) -> tuple[Ended, Verdict]:
    screen = Screen(io.StringIO(), 0, is_live=False)
    stage = Ended(str(path), preset(name), screen, skips_metadata=story.skips_metadata)
    stage.calm_days()
    story.run(stage)
    verdict = stage.reckoning()
    return stage, verdict


def expected(stage: Ended, path: Path) -> Verdict:
    """Compute the verdict again, by loops over the contents of the files."""
    disks = [read_disk(path / f"broker-{broker}") for broker in range(3)]
    bodies = [{offset: value for offset, (_, value) in disk.items()} for disk in disks]
    leader, promised = stage.final.leader, stage.part.producer.promised
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
        if leader in holders and offset >= stage.high_watermarks[leader]:
            gone["hidden"].append(offset)
    for offset, body in sorted(stage.part.consumer.read):
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


PLAYED = [(STORY_OF[name], name) for name in preset_names()] + [
    (end, name) for end in ENDS for name in ("kafka-4.1", "hw-truncation", "no-truncation")
]


@pytest.mark.parametrize(("title", "name"), PLAYED)
def test_the_verdict_is_what_an_independent_reader_of_the_files_finds(title, name, tmp_path):
    """All presets, and other ends of the story: every count and offset, and whether all is well."""
    stage, verdict = perform((STORIES | ENDS)[title], name, tmp_path)
    assert verdict == expected(stage, tmp_path)
    assert verdict.promised > 120
    assert verdict.is_well == (
        verdict.leader >= 0 and not verdict.lost and not verdict.unread and not verdict.diverged
    )
    assert all(len(line) < 80 for line in verdict_lines(verdict))


WELL = r"All \d+ records acknowledged with acks=all are on all three disks\."
SHOWN = {
    "kafka-4.1": (0, WELL),
    "kafka-4.1-as-is": (1, r"\nLOST: 1 of 157 .* \(offset 76\)\.\nA consumer had read 3 records "),
    "kafka-4.1-upgraded": (1, r"\nNO LEADER: 126 records acknowledged with acks=all cannot be read\."),
    "hw-truncation": (1, r"\nLOST: 27 of 257 .* \(offsets 49..75\)\.(\n.*)*\nDIVERGED: at offset 49 "),
    "no-truncation": (1, r"\nBroker 2 leads, and has all 231 .*\.\nDIVERGED: at offsets 77..83 "),
    "kip101": (1, r"\nBroker 0 leads, and has all 128 .*\.\nDIVERGED: at offsets 77..81 "),
    "kip279": (1, r"\nBroker 0 leads, and has all 137 .*\.\nDIVERGED: at offset 77 "),
    "kip320": (1, r"\nLOST: 76 of 253 .* \(offsets 0..75\)\.\nA consumer had read 76 records "),
    "unclean": (1, r"\nLOST: 57 of 212 .* \(offsets 78..134\)\.\nA consumer had read 58 records "),
}
NEXT_FIX = {
    "kafka-4.1-as-is": replace(preset("kafka-4.1-as-is"), keeps_remote_leo=False),
    "kafka-4.1-upgraded": replace(preset("kafka-4.1-upgraded"), elr=True),
    "hw-truncation": preset("kip101"),
    "no-truncation": replace(preset("no-truncation"), truncation=Truncation.FETCH),
    "kip101": preset("kip279"),
    "kip279": preset("kip320"),
    "kip320": replace(preset("kip320"), restart_leaves_isr=True),
    "unclean": replace(preset("unclean"), unclean_election=False),
}
"""For each preset the rules that came next in history, or its own without the one that shows."""


@pytest.mark.parametrize("name", preset_names())
def test_each_preset_shows_what_it_is_about(name, capsys):
    """A loss, a divergence or a partition without a leader; the exit code reports if anything is wrong."""
    code, words = SHOWN[name]
    assert run(["demo", "--plain", "--protocol", name]) == code
    shown = capsys.readouterr().out
    assert re.search(words, shown)
    assert ("LOST" in shown) == ("LOST" in words)
    assert f", story {STORY_OF[name]}\n{STORIES[STORY_OF[name]].about}\n" in shown


@pytest.mark.parametrize("name", NEXT_FIX)
def test_what_a_preset_shows_ends_with_the_next_change_of_its_rules(name, tmp_path):
    """With only that rule changed, the same story ends well."""
    story = STORIES[STORY_OF[name]]
    screen = Screen(io.StringIO(), 0, is_live=False)
    stage = Stage(str(tmp_path), NEXT_FIX[name], screen, skips_metadata=story.skips_metadata)
    stage.calm_days()
    story.run(stage)
    verdict = stage.reckoning()
    assert verdict.is_well


@pytest.mark.parametrize("title", STORIES)
def test_no_story_harms_todays_rules(title, tmp_path, capsys):
    """Nothing is lost, no logs diverge and there is a leader; `next` names the rules shown by a story."""
    assert perform(STORIES[title], "kafka-4.1", tmp_path)[1].is_well
    assert run(["demo", "--plain", "--story", title]) == 0
    about = capsys.readouterr().out.rsplit("next: replog demo --protocol ", 1)[1].strip()
    assert about != "kafka-4.1"
    assert STORY_OF[about] == title


def test_the_ways_to_end_are_really_different(tmp_path):
    """A dead leader's tail diverges and a laggard is behind, without a loss; a dead cluster has no leader."""
    early = perform(ENDS["early_end"], "kafka-4.1", tmp_path / "early")[1]
    assert (early.lost, len(early.behind)) == ((), 1)
    assert early.diverged
    lags = perform(ENDS["one_lags"], "kafka-4.1", tmp_path / "lags")[1]
    assert (lags.lost, lags.diverged, lags.is_well) == ((), (), True)
    nobody = perform(ENDS["nobody_left"], "kafka-4.1", tmp_path / "nobody")[1]
    assert (nobody.leader, nobody.lost, nobody.nowhere, nobody.is_well) == (NO_LEADER, (), (), False)
    assert verdict_lines(nobody)[0] == "NO LEADER: 231 records acknowledged with acks=all cannot be read."


def test_a_story_leaves_the_marks_of_a_clean_stop_as_the_brokers_wrote_them(tmp_path, capsys):
    """Reading the files for the verdict does not change the broker epoch in the marker."""
    stage, _ = perform(STORIES["cut-off"], "kafka-4.1", tmp_path)
    for broker, known in stage.world.controller.state.brokers.items():
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
    """The next leader is unknown, so a record on one disk may still be found again."""
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
    """A range represents all of its offsets, and no line grows without limit."""
    promised = [(offset, b"x") for offset in (1, 2, 3, 7, 9, 10, 20, 30)]
    line = verdict_lines(judge(promised, [], Ending(0, 40, [{}, {}, {}])))[0]
    assert line == "LOST: 8 of 8 records acknowledged with acks=all (offsets 1..3, 7, 9..10, 20, ...)."


@pytest.mark.parametrize("rules", ["kafka-4.1", "hw-truncation"])
def test_a_loss_is_a_record_that_is_missing_in_the_files(rules: str, tmp_path: Path):
    """And what the clients were told is all that counts."""
    stage = Stage(str(tmp_path), preset(rules), Screen(io.StringIO(), 0, is_live=False))
    stage.calm_days()
    cut_the_leader(stage)
    kill_the_leader(stage)
    bring_back_who_is_dead(stage)
    leader, verdict = stage.part.leader(), stage.reckoning()
    disk, promised = read_disk(tmp_path / f"broker-{leader}", "t-0"), sorted(stage.part.producer.promised)
    lost = [offset for offset, body in promised if disk.get(offset, (0, b""))[1] != body]
    assert list(verdict.lost) == lost
    assert verdict.promised == len(promised) > 200
    assert bool(lost) == (rules == "hw-truncation")
