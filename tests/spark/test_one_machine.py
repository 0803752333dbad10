"""Levels built by tasks that exchange files: on one machine, whatever happens to one of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hang import HANG_S
from spark.cluster import wait_for
from spark.small import SPEC, natively, program, said
from specchk.export.storage import Unwritable
from specchk.native import engine as native
from specchk.native.compiler import exchange_code
from specchk.native.machine.layout import layout_of
from specchk.native.visited import InMemory, Visited
from specchk.search.budget import Progress
from specchk.search.engine import Search
from specchk.spark import one_machine, stages
from specchk.spark.engine import SparkOptions, search
from specchk.spark.ledger import hand_over
from specchk.spark.one_machine import Arrivals, Maker, make_levels, refusal_in, sent_of, wanted_file
from specchk.spark.parcel import Host, Parcel, host_of
from specchk.spark.reasons import NO_JAVA, has_java
from specchk.spark.states.slices import BrokenSlice, SpoiledSlice

CHECKED = program("kafka/kip320.spec", "small", Replicas="3", MaxLeaderEpoch="1")  # some 40 000 states
LAYOUT = layout_of(CHECKED)
ANSWER = natively(CHECKED, SparkOptions(symmetry=False))
MANY = 2


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A ledger with the initial states, distributed to two partitions."""
    code = exchange_code(CHECKED, LAYOUT, [])
    parcel = Parcel("run", CHECKED, [], code, MANY, str(tmp_path / "ledger"), str(tmp_path / "tables"), 1)
    found = host_of(parcel.packed())
    options = native.NativeOptions(symmetry=False, handover=1)
    search = Search(CHECKED, options)
    engine = native.NativeEngine(search, options)
    search.run(engine)
    hand_over(engine, found.kernel, found.slices, MANY)
    engine.store.release()
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job's folder."""
    made = tmp_path / "job"
    made.mkdir()
    wanted_file(made).touch()
    return made


def together(host: Host, folder: Path, level: int = 0) -> list[int]:
    """The results of two tasks that run side by side."""

    def task(partition: int) -> int:
        maker = Maker(host, partition, folder)
        try:
            return maker.levels_after(level)
        finally:
            maker.close()

    with ThreadPoolExecutor(MANY) as pool:
        return list(pool.map(task, range(MANY)))


def sizes(host: Host) -> list[int]:
    """The sizes of the levels in the ledger, without empty ones at the end."""
    found = []
    while slices := host.slices.level(len(found), MANY):
        found.append(sum(about.inside for about in slices))
    while found and not found[-1]:
        found.pop()
    return found


def test_tasks_make_all_levels(host: Host, folder: Path) -> None:
    """As many states in each level as the native engine finds; they end when there are no new ones."""
    last = together(host, folder)
    assert last == [last[0]] * MANY
    assert sizes(host) == list(ANSWER.statistics.levels)


def test_files_are_removed_when_all_have_read_them(host: Host, folder: Path) -> None:
    """Of each task the last two levels are left, however many there were."""
    together(host, folder)
    assert [len(list((folder / f"{n:05d}").iterdir())) for n in range(MANY)] == [2, 2]


def test_a_slice_that_is_there_is_not_made_again(host: Host, folder: Path, tmp_path: Path) -> None:
    """Another job after a lost one: lost slices are built from the remaining ones, the others not touched."""
    together(host, folder)
    ledger = Path(host.parcel.ledger)
    kept = {level: (ledger / host.slices.path(level, 0)).stat().st_ino for level in (9, 10)}
    for level, partition in ((9, 1), (10, 1)):
        (ledger / host.slices.path(level, partition)).unlink()
    assert len(sizes(host)) == 9
    again = tmp_path / "again"
    again.mkdir()
    wanted_file(again).touch()
    together(host, again, 8)
    assert sizes(host) == list(ANSWER.statistics.levels)
    assert kept == {level: (ledger / host.slices.path(level, 0)).stat().st_ino for level in kept}


def test_a_table_that_is_too_large_goes_on_in_files(
    host: Host, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as it would have to grow in memory; no level differs."""
    used = []
    real = one_machine.making_of

    def making_of(host: Host, visited: Any, *rest: Any) -> Any:
        used.append(type(visited))
        return real(host, visited, *rest)

    monkeypatch.setattr(one_machine, "making_of", making_of)
    monkeypatch.setattr(one_machine, "free_bytes", lambda: (1 << 20) * MANY * one_machine.SHARE)
    together(host, folder)
    assert sizes(host) == list(ANSWER.statistics.levels)
    assert set(used) == {InMemory, Visited}


def test_no_more_levels_when_none_are_wanted(host: Host, folder: Path) -> None:
    """Before the first block already, and nothing partial is left in the ledger."""
    wanted_file(folder).unlink()
    assert together(host, folder) == [0, 0]
    assert sizes(host) == list(ANSWER.statistics.levels)[:1]


def test_a_task_does_not_wait_for_a_dead_spark(
    host: Host, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone it would wait forever; a task whose parent has ended knows that no data will come."""
    maker = Maker(host, 0, folder)
    monkeypatch.setattr(os, "getppid", lambda: -1)  # 1 may be a parent
    with pytest.raises(BrokenSlice, match="partition 1 sends no data"):
        maker.levels_after(0)
    maker.close()


@pytest.mark.parametrize("last", [False, True])
def test_a_file_that_others_lack_is_not_waited_for(host: Host, folder: Path, last: bool) -> None:
    """Its sender has continued to the next level, or has ended: a later receiver detects this."""
    maker = Maker(host, 1, folder)
    mark = maker._ended(0) if last else maker._place(0, 5).with_suffix(".draft")
    mark.parent.mkdir(exist_ok=True)
    mark.touch()
    with pytest.raises(BrokenSlice, match="00000/00004 is lost"):
        maker._awaited(4, 0)
    with pytest.raises(
        BrokenSlice, match="00001/00004 is lost"
    ):  # its own, which it has sent before it waits
        maker._awaited(4, 1)


@pytest.mark.parametrize("keep", [-1, 40, 0])
def test_a_file_that_is_cut_off_is_noticed(host: Host, folder: Path, tmp_path: Path, keep: int) -> None:
    """At its end, in the middle, or empty."""
    together(host, folder)
    whole = next((folder / "00000").iterdir()).read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(whole[:keep])
    with cut.open("rb") as file, pytest.raises(BrokenSlice):
        sent_of(file, 0, 19)


def damages(data: bytes) -> Iterator[bytes]:
    """A bit here and there, zeroes, missing bytes, additional bytes."""
    for at in range(0, len(data), max(1, len(data) // 40)):
        yield data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]
        yield data[:at] + bytes(512) + data[at + 512 :]
    yield from (data[:-1], data[: len(data) // 2], b"", data + b"\0", data[8:])


def test_a_file_that_is_damaged_is_not_taken(host: Host, folder: Path, tmp_path: Path) -> None:
    """The part of the data that arrives is unchanged; otherwise the task fails."""
    together(host, folder)
    level = min(int(path.name) for path in (folder / "00000").iterdir())
    wanted_file(folder).touch()
    maker, path = Maker(host, 1, folder), tmp_path / "sent"

    def taken(data: bytes) -> tuple[list[bytes], Any]:
        path.write_bytes(data)
        with path.open("rb", buffering=0) as file:
            came = Arrivals(maker, level, [file])
            return list(came.blocks()), came.size

    whole = (folder / "00000" / f"{level:05d}").read_bytes()
    expected = taken(whole)
    for data in damages(whole):
        if data != whole:
            with suppress(BrokenSlice):
                assert taken(data) == expected
    other = (folder / "00000" / f"{level + 1:05d}").read_bytes()
    with pytest.raises(BrokenSlice, match="replaced by another file"):
        taken(other)


@pytest.mark.parametrize("kind", [SpoiledSlice, Unwritable])
def test_a_task_leaves_word_of_what_nobody_mends(
    host: Host, folder: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    """A damaged slice, a full ledger: all tasks stop, none fails, and the driver gets the reason."""

    def fail(*_: Any) -> None:
        raise kind("the reason")

    monkeypatch.setattr(Maker, "_absorb", fail)
    monkeypatch.setattr(one_machine, "worker_host", lambda _: host)
    task = partial(make_levels, SimpleNamespace(value=None), 0, folder)
    with ThreadPoolExecutor(MANY) as pool:
        assert list(pool.map(lambda n: list(task([n])), range(MANY))) == [[0], [0]]
    told = refusal_in(folder)
    assert type(told) is kind
    assert str(told) == "the reason"


@pytest.fixture
def one_machine_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if the search of a test uses another method."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("levels through the shuffle")

    monkeypatch.setattr(stages.LevelMaker, "through_shuffle", refuse)


@pytest.mark.usefixtures("one_machine_only", "context")
@pytest.mark.parametrize(
    ("file", "model", "symmetry"),
    [("kafka/kip320.spec", "small", False), ("kafka/kip101.spec", "fast_failover", True)],
)
def test_one_stage_says_what_the_native_engine_says(file: str, model: str, symmetry: bool) -> None:
    """With and without a violation; a report for each level, in order."""
    checked = program(file, model)
    seen: list[Progress] = []
    options = SparkOptions(handover=1, partitions=2, symmetry=symmetry)
    found = search(checked, options, seen.append)
    assert said(found) == said(natively(checked, options))
    depths = [progress.depth for progress in seen if progress.note]
    assert depths == sorted(set(depths))


@pytest.mark.slow
@pytest.mark.usefixtures("context")
def test_one_stage_and_the_shuffle_say_the_same() -> None:
    """Two methods give the same levels, and a third if there are more partitions than cores."""
    ways = [SparkOptions(handover=1, partitions=n, shuffle=s) for n, s in ((2, False), (2, True), (3, False))]
    first, *others = [said(search(CHECKED, options)) for options in ways]
    assert others == [first, first]


LARGE = (str(SPEC / "kafka" / "kip320.spec"), "--no-symmetry", "--set", "Replicas=3", "--set", "MaxRecords=3")


class Command:
    """`specchk run --engine spark` on this machine, as a process; `below` are Spark's of it."""

    def __init__(self, ledger: Path, *args: str) -> None:
        assert has_java(), NO_JAVA
        self.ledger = ledger
        line = [sys.executable, "-m", "specchk", "run", *LARGE, "--engine", "spark", "--handover", "1"]
        self.process = subprocess.Popen(
            [*line, "--ledger", str(ledger), "--json", "--conf", "spark.ui.enabled=false", *args],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def at_level(self, level: int) -> None:
        """Wait until the ledger has data of a level."""
        wait_for(lambda: any(self.ledger.glob(f"run-*/{level:05d}/*")))

    def answer(self) -> tuple[int, dict[str, Any]]:
        """Exit code, and output."""
        out, errors = self.process.communicate(timeout=HANG_S)
        assert out, errors.decode()
        return self.process.returncode, json.loads(out)

    def below(self, wanted: Callable[[str], bool]) -> list[int]:
        """Processes of its session by their command line."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                own = entry.name.isdigit() and os.getsid(int(entry.name)) == self.process.pid
                line = (entry / "cmdline").read_text() if own else ""
            except OSError:
                continue
            if line and int(entry.name) != self.process.pid and wanted(line):
                found.append(int(entry.name))
        return sorted(found)


def is_worker(line: str) -> bool:
    return "pyspark.worker" in line


def is_java(line: str) -> bool:
    return "SparkSubmit" in line


def natively_found() -> dict[str, Any]:
    line = [sys.executable, "-m", "specchk", "run", *LARGE, "--json"]
    found: dict[str, Any] = json.loads(subprocess.run(line, capture_output=True, check=False).stdout)
    return found


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    """The job fails, and another one continues after the last complete level."""
    command = Command(tmp_path / "ledger")
    command.at_level(14)
    os.kill(command.below(is_worker)[-1], signal.SIGKILL)
    code, answer = command.answer()
    assert (code, answer["states_distinct"]) == (0, 1_694_476)
    assert answer["coverage"] == natively_found()["coverage"]


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["driver", "java"])
def test_a_killed_search_is_resumed_and_leaves_nobody(tmp_path: Path, victim: str) -> None:
    """The driver or Spark's own process: all others end, and the ledger has what a new search needs."""
    command = Command(tmp_path / "ledger")
    command.at_level(14)
    os.kill(command.process.pid if victim == "driver" else command.below(is_java)[0], signal.SIGKILL)
    if victim == "java":
        code, answer = command.answer()
        assert (code, answer["verdict"]) == (21, "inconclusive")
        assert "its process ended" in answer["reason"]
    else:
        command.process.communicate()
    wait_for(lambda: not command.below(bool))
    code, answer = Command(tmp_path / "ledger", "--resume").answer()
    assert (code, answer["states_distinct"]) == (0, 1_694_476)
    assert answer["coverage"] == natively_found()["coverage"]
