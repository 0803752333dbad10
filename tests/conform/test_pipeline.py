"""Many recordings by others: one tally, and one verdict for each, whatever is lost or truncated."""

from __future__ import annotations

import gc
import json
import pickle
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from bank import SPEC
from bank_tracing import BankTracing, moved, recorded
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from specchk.conform.contract.recording import BadRecording, Recording, Unfinished, decode
from specchk.conform.recordings.by_crew import CrewExplainer, run_campaign_by
from specchk.conform.recordings.campaign import concluded
from specchk.conform.recordings.explainer import YOUNG, CampaignOptions, RecordingExplainer
from specchk.conform.recordings.explanation import Explanation
from specchk.conform.recordings.following import UNFINISHED, UNREAD, Follower, RunEnded
from specchk.conform.recordings.pieces import ALL_AFTER, Explaining, Piece, PlacedRecording
from specchk.conform.recordings.result import MOST_KEPT, Copy, RecordingResult, Tally, tally_of
from specchk.conform.report.campaign_report import as_json, text, verdict
from specchk.conform.work.crews import Job, LostWork
from specchk.lang.frontend import check

RIGHT = recorded(moved("a1", "a2"), moved("a2", "a1", a1=2))
WRONG = recorded(moved("a1", "a2", a1=3))
OTHER = b'{"format": "other/1"}\n{"end": true, "events": 0}'
BLOCKED = Explanation(1, {"at": 0, "event": "moved"}, (), (), 1, (), (), (), "")


def written(recording: Recording) -> bytes:
    lines = [recording.header, *recording.events, {"end": True, "events": len(recording.events)}]
    return ("\n".join(map(json.dumps, lines)) + "\n").encode()


@dataclass
class Desk:
    """A crew of one, on files in memory; it dies of recordings with certain names, and counts its work."""

    folder: Path
    files: dict[str, bytes]
    kills: tuple[str, ...] = ()
    hands: int = 1
    done: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    rows: dict[str, Any] = field(default_factory=dict)

    def each(self, work: Job[Any, Any], pieces: Sequence[Any], about: str) -> list[Any]:
        do = work(BankTracing, self.folder)
        for piece in pieces:
            for entry in getattr(piece, "entries", ()):
                self.done[entry.place] += 1
                if entry.place in self.kills and not entry.lost:
                    raise LostWork("the worker exited unexpectedly")
        return [pickle.loads(pickle.dumps(do(piece))) for piece in pieces]

    def read(self, place: str, unless: int) -> bytes | None:
        if place not in self.files:
            raise FileNotFoundError(2, "No such file or directory", place)
        if len(self.files[place]) == unless:
            return None
        self.reads[place] += 1
        return self.files[place]

    def write(self, name: str, rows: Any) -> None:
        self.rows[name] = rows

    def explainer(self) -> CrewExplainer:
        checked = check(str(self.folder / "bank.spec"))
        wanted = CampaignOptions(power=False, partial=True)
        return CrewExplainer(BankTracing, checked, wanted, self, self.read, self.write)

    def verdicts(self) -> list[tuple[str, str]]:
        """All rows of the table of recordings."""
        rows = [row for part in self.rows.values() for row in part["recordings"]]
        return sorted((row["recording"], row["verdict"]) for row in rows)


@pytest.fixture
def desk(tmp_path: Path) -> Callable[..., Desk]:
    (tmp_path / "bank.spec").write_text(SPEC)
    return lambda files, kills=(): Desk(tmp_path, files, kills)


NAMES = st.sampled_from(["a", "b", "c"])
RESULTS = st.builds(
    RecordingResult,
    NAMES, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 3),
    st.integers(0, 3), st.booleans(), st.just(0.0), st.builds(Counter, st.lists(NAMES)),
    st.dictionaries(NAMES, st.frozensets(st.integers(0, 4))),
    st.lists(st.builds(Copy, NAMES, NAMES, st.booleans()), max_size=3).map(tuple),
    st.sampled_from(["", "", "cut"]), st.sampled_from([None, None, BLOCKED]),
)  # fmt: skip


@given(st.lists(RESULTS, max_size=12), st.randoms())
def test_a_tally_does_not_depend_on_who_counted_what(results, random):
    """Tallies of any groups, added in any order, are the tally of all."""
    tallies = [Tally.of(number, result) for number, result in enumerate(results)]
    random.shuffle(tallies)
    while len(tallies) > 1:
        one = tallies.pop(random.randrange(len(tallies)))
        other = tallies.pop(random.randrange(len(tallies)))
        tallies.append(one + other)
    assert sum(tallies, Tally()) == tally_of(results)


def test_a_report_has_a_size_that_recordings_do_not_change():
    """For ten times as many failures there are as many lines, and all are counted."""

    def report(count: int) -> dict[str, Any]:
        results = [
            replace(one, name=f"{n:06}")
            for n in range(count)
            for one in (
                RecordingResult("", 1, consumed=1, blocked=BLOCKED), RecordingResult("", bad="cut"),
                RecordingResult("", 1, consumed=1, is_idle=True, copies=(Copy("flip", "x", False),)),
            )
        ]  # fmt: skip
        campaign = concluded(BankTracing, tally_of(results), CampaignOptions(partial=True), 0.0, 1)
        assert f"{count - 3} more recordings are not explained" in text(campaign)
        return as_json(campaign, 13)

    few, many = report(MOST_KEPT), report(10 * MOST_KEPT)
    assert [len(few[name]) for name in ("blocked", "missed")] == [MOST_KEPT, MOST_KEPT]
    assert few["blocked"] == many["blocked"]
    assert (many["diverging"], many["without_verdict"], many["copies"]) == (10 * MOST_KEPT,) * 3
    assert len(many["vacuous"]) == len(few["vacuous"]) + 2
    assert f"{9 * MOST_KEPT} more recordings have no verdict" in many["vacuous"]


@pytest.mark.parametrize("count", range(len(written(RIGHT)) - 1))
def test_every_beginning_of_a_recording_may_still_grow(count):
    """Wherever it is truncated, it is neither complete nor garbage."""
    with pytest.raises(Unfinished):
        decode("cut", written(RIGHT)[:count])


def test_the_end_of_a_recording_needs_no_newline():
    """The trailer is its end."""
    assert decode("whole", written(RIGHT)[:-1]) == replace(RIGHT, name="whole")


@pytest.mark.parametrize("data", [b"\xff\xfe", b"no JSON\n{}\n", b"[]\n", written(RIGHT) + b"more\n"])
def test_garbage_is_not_waited_for(data):
    """A file that further writing cannot complete is rejected at once."""
    with pytest.raises(BadRecording) as caught:
        decode("garbage", data)
    assert not isinstance(caught.value, Unfinished)


def test_each_recording_has_one_verdict_whatever_its_file_is(desk):
    """Whole, wrong, garbage, empty, truncated, or lost since it was listed."""
    files = {"right": written(RIGHT), "wrong": written(WRONG), "garbage": b"\x00\n", "empty": b"",
             "cut": written(RIGHT)[:-9], "other": OTHER}  # fmt: skip
    crew = desk(files)
    found = run_campaign_by(crew.explainer(), [*files, "lost"])
    assert (found.tally.recordings, found.tally.accepted, found.tally.blocked.count) == (7, 1, 1)
    assert crew.verdicts() == [
        ("cut", "none"), ("empty", "none"), ("garbage", "none"), ("lost", "none"), ("other", "none"),
        ("right", "explained"), ("wrong", "diverges"),
    ]  # fmt: skip
    assert verdict(found) == "diverges"
    assert found.tally.blocked.items[0].blocked.contradiction is not None
    words = ("1 events were", "is empty", "garbage:1", "other/1", "No such file")
    assert [any(word in reason for reason in found.vacuous) for word in words] == [False] + [True] * 4


def test_a_recording_that_ends_its_process_has_no_verdict_and_the_others_have(desk):
    """It is identified among those of its piece, and all rows are written once."""
    files = {f"{n:03}": written(WRONG if n == 7 else RIGHT) for n in range(100)}
    crew = desk(files, ("004", "050"))
    found = run_campaign_by(crew.explainer(), list(files))
    assert (found.tally.recordings, found.tally.accepted, found.tally.blocked.count) == (100, 97, 1)
    assert found.tally.bad.items == [f"{n}: the worker exited unexpectedly" for n in ("004", "050")]
    assert len(crew.verdicts()) == len(dict(crew.verdicts())) == 100
    assert [one for one, known in crew.verdicts() if known == "none"] == ["004", "050"]


def test_a_process_that_is_lost_once_changes_nothing(desk):
    """As when an executor is killed: the work is repeated, and each recording is counted once."""
    files = {f"{n:03}": written(RIGHT) for n in range(9)}
    crew = desk(files)
    once, each = [True], crew.each

    def dying(work: Job[Any, Any], pieces: Sequence[Any], about: str) -> list[Any]:
        found = each(work, pieces, about)
        if once.pop() if once else False:
            raise LostWork("killed")
        return found

    crew.each = dying
    found = run_campaign_by(crew.explainer(), list(files))
    assert (found.tally.recordings, found.tally.accepted, verdict(found)) == (9, 9, "explained")
    assert len(crew.verdicts()) == 9
    assert max(crew.done.values()) == 2


def test_of_a_lost_wave_only_the_pieces_around_the_lost_one_are_done_alone(desk):
    """A wave is long, since workers are idle at its end; the pieces of one worker are tried together."""
    crew = desk({f"{n:03}": written(RIGHT) for n in range(40)}, kills=("020",))
    waves, each = list[int](), crew.each

    def counted(work: Job[Any, Any], pieces: Sequence[Any], about: str) -> list[Any]:
        waves.append(len(pieces))
        return each(work, pieces, about)

    crew.each = counted
    pieces = [Piece(name, (PlacedRecording(n, name),)) for n, name in enumerate(crew.files)]
    found = [answer.tally for answer in crew.explainer().answers(pieces)]
    assert [tally.accepted for tally in found] == [name != "020" for name in crew.files]
    assert waves[:4] == [40, 8, 8, 8]
    assert waves[-2:] == [8, 8]
    # Those of the third wave, and twice more the lost one: without rows, and as one that is known to be lost.
    assert waves[4:-2] == [1] * (8 + 2)


def test_the_collector_does_not_visit_programs(desk, thawed, monkeypatch):
    """A Spark worker collects after each task, and rarely within one."""
    crew, seen = desk({"a": written(RIGHT), "b": written(RIGHT)}), list[tuple[int, int]]()
    explained, lasting = RecordingExplainer.explained, list[list[int]]()

    def noted(self: RecordingExplainer, recording: Recording) -> RecordingResult:
        result = explained(self, recording)
        lasting.extend([] for _ in range(5_000))  # as functions do that are made when they are needed
        seen.append((gc.get_threshold()[0], gc.get_freeze_count()))
        return result

    monkeypatch.setattr(RecordingExplainer, "explained", noted)
    before = gc.get_threshold()
    list(crew.explainer().answers([Piece("a", (PlacedRecording(0, "a"),))]))
    kept, left = gc.get_freeze_count(), len(gc.get_objects())
    assert [threshold for threshold, _ in seen] == [YOUNG]
    assert gc.get_threshold() == before
    assert min(kept, seen[0][1]) > 10_000
    assert left < 1_000  # what a piece has made is not visited after the next one


def test_what_was_in_use_at_the_end_of_a_piece_is_collected_some_pieces_later(desk, thawed):
    """Otherwise self-referencing objects of each Spark task would stay."""

    class Task:
        def __init__(self) -> None:
            self.me = self

    gone, crew = list[int](), desk({"a": written(RIGHT)})
    answer = Explaining(CampaignOptions(), "bank.spec", crew.read)(BankTracing, crew.folder)
    for number in range(2 * ALL_AFTER):
        task = Task()
        weakref.finalize(task, gone.append, number)
        answer(Piece("a", (PlacedRecording(0, "a"),)))
        del task
        gc.collect()  # as Spark's daemon does after each task
    assert len(gone) >= ALL_AFTER - 1


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def followed(crew: Desk) -> tuple[Follower, list[str], Clock]:
    alarms, clock = list[str](), Clock()
    return Follower(crew.explainer(), alarms.append, 60.0, clock), alarms, clock


def test_an_unexplained_recording_is_an_alarm_at_once(desk):
    """With its place and the event; garbage is an alarm as well, and an explained recording is not."""
    crew = desk({"/in/right": written(RIGHT), "/in/wrong": written(WRONG), "/in/garbage": b"\x00\n"})
    follower, alarms, _ = followed(crew)
    follower.take("0-", ["/in/right"])
    assert alarms == []
    follower.take("1-", ["/in/wrong", "/in/garbage"])
    assert alarms == [
        "/in/wrong: no behaviour of the spec explains event 1 of 1 (0: moved)",
        "/in/garbage: no verdict: garbage:1: this line is not a JSON object",
    ]
    found = concluded(BankTracing, follower.finish(), follower.work.wanted, 0.0, 1)
    assert (found.tally.recordings, found.tally.accepted, verdict(found)) == (3, 1, "diverges")
    assert found.tally.blocked.items[0].blocked.contradiction is not None


def test_a_recording_that_is_being_written_is_waited_for(desk):
    """It gets a verdict when it is complete, and one that stops growing is reported."""
    crew = desk({"slow": written(RIGHT)[:20], "stuck": written(RIGHT)[:30], "gone": b""})
    follower, alarms, clock = followed(crew)
    follower.take("0-", ["slow", "stuck", "gone"])
    assert (follower.tally.recordings, alarms, len(follower.growing)) == (0, [], 3)
    clock.now = 40
    crew.files["slow"] = written(RIGHT)[:50]
    assert not follower.look_again()
    clock.now = 61
    del crew.files["gone"]
    assert follower.look_again()
    assert follower.growing == ["slow"]
    assert [line.partition(":")[0] for line in alarms] == ["stuck", "gone"]
    crew.files["slow"] = written(WRONG)
    assert follower.look_again()
    assert "explains event 1" in alarms[-1]
    assert crew.verdicts() == [("gone", "none"), ("slow", "diverges"), ("stuck", "none")]
    assert follower.finish().recordings == 3


def test_a_recording_that_does_not_grow_is_not_read_again(desk):
    """Its size is enough, until it has grown or waited too long."""
    crew = desk({"slow": written(RIGHT)[:20]})
    follower, alarms, clock = followed(crew)
    follower.take("0-", ["slow"])
    for clock.now in range(1, 50):
        assert not follower.look_again()
    assert crew.reads == {"slow": 1}
    crew.files["slow"] = written(RIGHT)[:50]
    for clock.now in range(50, 100):
        assert not follower.look_again()
    assert (crew.reads, alarms) == ({"slow": 2}, [])
    clock.now = 111
    assert follower.look_again()
    assert (crew.reads, len(alarms)) == ({"slow": 3}, 1)


def test_what_a_run_leaves_is_counted_and_continued(desk):
    """A recording without an end, or of an interrupted batch, has no verdict; the next run continues."""
    crew = desk({"slow": written(RIGHT)[:20], "right": written(RIGHT), "next": written(RIGHT)})
    follower, _, _ = followed(crew)
    follower.take("0-", ["slow"])

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    crew.each = interrupted
    with pytest.raises(KeyboardInterrupt):
        follower.take("1-", ["right", "next"])
    left = follower.growing
    tally = follower.finish()
    assert (tally.recordings, tally.accepted) == (3, 0)
    assert [reason.partition(": ")[2] for reason in tally.bad.items] == [UNFINISHED, UNREAD, UNREAD]
    follower, _, _ = followed(desk({"right": written(RIGHT)}))
    follower.end()
    with pytest.raises(RunEnded):  # so that Spark does not commit the batch
        follower.take("0-", ["right"])
    assert (follower.finish().recordings, follower.tally.accepted) == (1, 0)
    again, _, _ = followed(desk({"slow": written(RIGHT)}))
    again.expect(left)
    again.take("2-", ["slow"])  # a batch that is repeated has it as well
    assert again.look_again()
    assert (again.finish().recordings, again.finish().accepted) == (1, 1)
