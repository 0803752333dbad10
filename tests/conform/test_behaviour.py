"""Accepted behaviour: an implementation's outputs are compared, and a change is reported with its place."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from conform.counter_behaviours import Answer, Counter, Ways
from specchk.cli.accepted.behaviour import command
from specchk.conform.behaviour.comparison import ADDED, CHANGED, MISSING, ORDER, SOMEWHERE
from specchk.conform.behaviour.running import Behaved, behave
from specchk.conform.behaviour.symbols import symbols_of
from specchk.conform.behaviour.texts import NoText, Texts
from specchk.conform.contract.behaviours import Behaviours, Run, RunWatch
from specchk.conform.report.behaviour_report import apart, text
from specchk.conform.work import lock_file
from specchk.conform.work.lock_file import BadLock, LockFile

FILE = Path(__file__).with_name("counter_behaviours.py")
PLANTED = {
    "a field of a write": (Ways(content="N={}"), CHANGED, "disk: write", "content"),
    "an added write": (Ways(extra_write=True), ADDED, "disk: write", ""),
    "a missing sync": (Ways(syncs=("data",)), MISSING, "disk: sync", ""),
    "the order of two syncs": (Ways(syncs=("folder", "data")), ORDER, "disk: sync", ""),
    "a timer": (Ways(timer_ms=51), CHANGED, "counter: timer", "delay_ms"),
    "an answer": (Ways(answer=lambda n: Answer(n, n % 2 == 1)), CHANGED, "counter: answer", "answer"),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Keep transcripts of these tests separate from those of other runs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def counting(ways: Ways) -> Counter:
    counter = Counter()
    counter.ways = ways
    return counter


def changed(ways: Ways) -> Behaved:
    return behave(counting(ways), behave(Counter(), None, 1).accepted, 1)


@pytest.mark.parametrize("planted", PLANTED)
def test_a_change_is_named_with_both_values(planted):
    """Run, step, observation, field, old and new value, if the old run is kept."""
    ways, kind, name, part = PLANTED[planted]
    short, long = changed(ways).differences
    assert (short.run, short.about, short.kind, short.field) == ("short", "turn 2", kind, part)
    assert (long.run, long.about, long.kind, long.field) == ("long", "turn 2", kind, part)
    assert (short.before or short.after or "").startswith(part or name)
    if kind == CHANGED:
        assert None not in (short.before, short.after)
        assert short.before != short.after


@pytest.mark.parametrize("planted", PLANTED)
def test_a_change_is_located_in_its_step_by_the_lock_alone(planted, monkeypatch, tmp_path):
    """If the old run is not kept, its step is right, with the events before it and all outputs in it."""
    locked = behave(Counter(), None, 1).accepted
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    short = behave(counting(PLANTED[planted][0]), locked, 1).differences[0]
    assert (short.about, short.kind, short.earlier) == ("turn 2", SOMEWHERE, ("turn 0", "turn 1"))
    assert short.seen


def test_an_error_that_leaves_a_run_is_an_observation():
    """An exception of an implementation is compared like an answer, and the run ends there."""
    short, long = changed(Ways(error="disk full")).differences
    assert short.kind == long.kind == ADDED
    assert short.after == "the run: raises, error=OSError, text=disk full"


def test_the_inside_of_an_implementation_is_not_compared():
    """Other names, orders of fields and data structures are the same behaviour."""

    @dataclass(frozen=True)
    class Answer:
        is_even: bool
        number: int

    ways = Ways(answer=lambda number: Answer(not number & 1, int(str(number))))
    assert changed(ways).is_accepted


def test_symbols_do_not_depend_on_workers_or_order():
    """One process, several, and each run alone give the same digests."""
    alone = behave(Counter(), None, 1).runs
    assert behave(Counter(), None, 3).runs == alone

    class Backwards(Counter):
        def runs(self):
            return dict(reversed(list(super().runs().items())))

    assert dict(behave(Backwards(), None, 1).runs) == dict(alone)


def test_every_change_changes_the_digest():
    """The digest of a run decides alone: it differs with each part and the boundaries of each step."""
    steps = [(("a: x", "n=1"), ("a: y", "n=2")), (("b: x",),)]
    others = [
        [(("a: x", "n=1"), ("a: y", "n=2"), ("b: x",))],
        [(("a: x", "n=1"),), (("a: y", "n=2"),), (("b: x",),)],
        [(("a: x", "n=1", "a: y", "n=2"),), (("b: x",),)],
        [(("a: x", "n=1"), ("a: y", "n=3")), (("b: x",),)],
        [(("a: y", "n=2"), ("a: x", "n=1")), (("b: x",),)],
        steps[:1],
    ]
    assert len({symbols_of(run)[0].digest for run in [steps, *others]}) == len(others) + 1


def test_texts_are_the_same_for_equal_values():
    """Sets and maps are written in order, records by names, and values without such a text are refused."""

    class Light(Enum):
        RED = 1

    @dataclass
    class Jar:
        lid: str
        beans: set[int] = field(default_factory=set)

    texts = Texts()
    assert texts.of({3: Light.RED, 1: None}) == "{1: none, 3: red}"
    assert texts.of(Jar("on", {30, 4})) == "Jar(beans={30, 4}, lid=on)"
    # A record that may change is written anew each time.
    jar = Jar("on")
    before = texts.of(jar)
    jar.lid = "off"
    assert texts.of(jar) != before
    with pytest.raises(NoText):
        texts.of(1.5)
    with pytest.raises(NoText):
        texts.of(object())


def test_the_lock_is_read_as_written_and_refused_when_edited(tmp_path):
    """`read` is the inverse of `write`; a changed digit, and a truncated file, are refused."""
    accepted = behave(Counter(), None, 1).accepted
    path = tmp_path / lock_file.NAME
    lock_file.write(path, LockFile(behaviour=accepted))
    assert lock_file.read(path).behaviour == accepted
    whole = path.read_text()
    digest = accepted.runs["short"].digest
    for edited in (whole.replace(digest, f"{digest[:-1]}x", 1), whole[: len(whole) // 2]):
        path.write_text(edited)
        with pytest.raises(BadLock):
            lock_file.read(path)


def copy_of(tmp_path: Path, ways: str = "Ways()") -> Path:
    file = tmp_path / "counter_behaviours.py"
    file.write_text(FILE.read_text().replace("ways = Ways()\n", f"ways = {ways}\n"))
    return file


def test_the_command_accepts_compares_and_reports(tmp_path):
    """0 without a difference, 14 with one or without a lock; the report ends with how to repeat it."""
    runner, file = CliRunner(), copy_of(tmp_path)
    assert runner.invoke(command, [str(file), "--lock"]).exit_code == 14
    assert runner.invoke(command, [str(file), "--update-lock"]).exit_code == 0
    assert runner.invoke(command, [str(file), "--lock"]).exit_code == 0
    copy_of(tmp_path, "Ways(timer_ms=51)")
    red = runner.invoke(command, [str(file), "--lock", "--junit", str(tmp_path / "out.xml")])
    assert red.exit_code == 14
    assert "2 of 2 runs differ" in red.output
    assert "now: delay_ms=51" in red.output
    assert "was: delay_ms=50" in red.output
    assert "not a verdict against a spec" in red.output
    again = f"specchk behaviour {file} --lock --run short"
    assert red.output.rstrip().endswith(f"the shortest run alone: {again}")
    alone = runner.invoke(command, [str(file), "--lock", "--run", "short"])
    assert (alone.exit_code, "1 of 1 runs differ" in alone.output) == (14, True)
    assert runner.invoke(command, [str(file), "--lock", "--run", "shorter"]).exit_code == 2
    assert runner.invoke(command, [str(file), "--update-lock", "--run", "short"]).exit_code == 2
    assert (tmp_path / "out.xml").read_text().count("<failure") == 2
    report = json.loads(runner.invoke(command, [str(file), "--lock", "--json"]).output)
    assert (report["verdict"], report["exit_code"], len(report["differences"])) == ("changed", 14, 2)
    assert report["differences"][0]["field"] == "delay_ms"


def test_runs_that_were_added_or_removed_are_red():
    """A lock with fewer or more runs is another behaviour: a removed run checks nothing."""
    accepted = behave(Counter(), None, 1).accepted
    runs = accepted.runs
    fewer = behave(Counter(), replace(accepted, runs={"short": runs["short"]}), 1)
    more = behave(Counter(), replace(accepted, runs={**runs, "third": runs["short"]}), 1)
    assert (fewer.unknown, fewer.is_accepted) == (("long",), False)
    assert (more.lacking, more.is_accepted) == (("third",), False)
    assert "runs in the lock alone: third" in text("the counter", more, "the.lock", "accept")


def test_a_lock_of_steps_that_are_gone_is_red():
    """A run that became shorter differs at its end."""
    accepted = behave(Counter(), None, 1).accepted
    runs = {**accepted.runs, "short": accepted.runs["long"]}
    short = behave(Counter(), replace(accepted, runs=runs), 1).differences
    assert [each.run for each in short] == ["short"]


LEAVES = """
import os, signal, sys
from specchk.conform.contract.behaviours import Behaviours

class Leaving(Behaviours):
    name = "what leaves"

    def runs(self):
        return {"first": self.run, "second": self.run}

    def run(self, watch):
        watch.step("a")
        watch.note("disk", "write", bytes=1)
        WAY
"""


def ended(folder: Path, way: str, workers: int) -> subprocess.CompletedProcess[str]:
    """Run the command, with a lock, in its own process, which the implementation may end."""
    (folder / "leaving.py").write_text(LEAVES.replace("WAY", "pass"))
    line = [sys.executable, "-m", "specchk", "behaviour", str(folder / "leaving.py")]
    subprocess.run([*line, "--update-lock"], check=True, capture_output=True)
    (folder / "leaving.py").write_text(LEAVES.replace("WAY", way))
    line += ["--lock", "--workers", str(workers)]
    return subprocess.run(line, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("way", ["sys.exit(0)", "os._exit(0)"])
def test_an_exit_of_the_implementation_is_a_difference(way, workers, tmp_path):
    """It ended the command with code 0 and no output, so that nothing was compared, or with code 70."""
    done = ended(tmp_path, way, workers)
    assert done.returncode == 14, done.stderr
    assert "2 of 2 runs differ" in done.stdout
    assert "SystemExit" in done.stdout


def test_a_process_that_the_implementation_ended_is_reported(tmp_path):
    """By signal and verdict, as `conform` does, not as an internal error."""
    done = ended(tmp_path, "os.kill(os.getpid(), signal.SIGSEGV)", workers=2)
    assert (done.returncode, done.stderr) == (13, "")
    assert "the implementation ended the process that ran it: SIGSEGV" in done.stdout


def test_a_damaged_transcript_is_written_again(tmp_path):
    """It would never show an old value."""
    changed(Ways())
    transcript, *_ = (path for path in (tmp_path / "cache").rglob("*") if path.is_file())
    whole = transcript.read_bytes()
    transcript.write_bytes(whole[:-1])
    changed(Ways())
    assert transcript.read_bytes() == whole


def test_transcripts_that_cannot_be_read_are_none(tmp_path, monkeypatch):
    """As in a cache that another user has made; for root, the system refuses too long a name alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ("c" * 300)))
    assert changed(Ways()).differences == ()


def said(*sentences: str) -> dict[str, Run]:
    """A run for each ending, in which the implementation says these sentences."""

    def run(watch: RunWatch) -> None:
        for sentence in sentences:
            watch.step("a call")
            watch.note("log", "answer", text=sentence)

    return {"first": run, "second": run}


class Talking(Behaviours):
    """What says the sentences that it is given."""

    def __init__(self, *sentences: str) -> None:
        self.sentences = sentences

    def runs(self) -> dict[str, Run]:
        return said(*self.sentences)


def test_changed_words_are_one_row_and_no_run_differs():
    """In whatever number of runs a sentence is; its numbers are compared in each."""
    lock = behave(
        Talking("offset 3 is not there", "disk full at 7", "offset 4 is not there"), None, 1
    ).accepted
    other = behave(Talking("there is no offset 3", "disk full at 7", "there is no offset 4"), lock, 1)
    assert (other.differences, other.is_accepted) == ((), False)
    assert (other.new, other.gone) == (("there is no offset #",), ("offset # is not there",))
    told = text("it", other, "the.lock", "accept")
    assert "sentences, without their numbers: 1 new, 1 gone" in told
    assert "  + there is no offset #    (2 of 2 runs, as `first`)" in told
    wrong = behave(Talking("offset 3 is not there", "disk full at 7", "offset 5 is not there"), lock, 1)
    assert [each.number for each in wrong.differences] == [2, 2]
    exchanged = behave(Talking("disk full at 3", "offset 7 is not there", "offset 4 is not there"), lock, 1)
    assert [each.number for each in exchanged.differences] == [2, 2]


def test_of_two_long_texts_the_part_that_differs_is_shown():
    """A digit in the middle of 700 characters, and one at an end."""
    long = "abcdefghij" * 35
    was, now = apart(f"{long}7{long}", f"{long}8{long}")
    assert was is not None
    assert now is not None
    assert (len(was), was[63], now[63]) == (3 + 60 + 1 + 60 + 3, "7", "8")
    assert apart(f"{long}7", f"{long}8") == (f"...{long[-60:]}7", f"...{long[-60:]}8")
    assert apart("a", "b") == ("a", "b")
    assert apart(None, long) == (None, long)
