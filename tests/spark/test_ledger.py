"""The ledger: of one driver at a time, of one search alone, and trusted only with right checksums."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark import SparkContext

from native.variants import ALIKE, HALF, VARIANTS, pairs
from spark.small import SPEC, natively, program, said
from specchk.export import places, storage
from specchk.ir.program import Program
from specchk.lang.text.diagnostics import SpecError
from specchk.search.budget import Budget
from specchk.search.engine import Unusable
from specchk.search.verdict import Inconclusive, Outcome
from specchk.spark.engine import SparkOptions, search

AT_ONCE = SparkOptions(handover=1, partitions=2)
LINE = (sys.executable, "-m", "specchk", "run", str(SPEC / "kafka" / "truncate_to_hw.spec"), "--model",
        "committed_divergence", "--json")  # fmt: skip
SPARK = ("--engine", "spark", "--handover", "1", "--conf", "spark.ui.enabled=false")
PROPERTIES = ("leader_in_isr", "log_match", "weak_isr", "strong_isr")
TMPFS = 'mkdir -p "$0" && mount -t tmpfs -o size=96k none "$0" && exec "$@" --ledger "$0/L"'
KIP320 = (
    str(SPEC / "kafka" / "kip320.spec"),
    "--no-symmetry",
    "--set",
    "Replicas=3",
    "--set",
    "MaxLeaderEpoch=1",
)


@pytest.fixture(autouse=True)
def _context(context: SparkContext) -> None:
    """`run` uses the existing context."""


@pytest.mark.slow
def test_of_searches_started_together_one_answers(tmp_path: Path) -> None:
    """Whatever property each checks: the others are refused in one sentence, with exit code 2."""
    many = 3  # 20 of them: bench/spark/ledger.py, of which test_damage.py has a sample
    line = [*LINE, *SPARK, "--ledger", str(tmp_path / "ledger"), "--property"]
    asked = [PROPERTIES[number % len(PROPERTIES)] for number in range(many)]
    running = [
        subprocess.Popen([*line, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name in asked
    ]
    ended = [
        (name, *process.communicate(), process.returncode)
        for name, process in zip(asked, running, strict=True)
    ]
    answers = [(name, json.loads(out)) for name, out, _, code in ended if code != 2]
    refusals = [errors.splitlines() for _, _, errors, code in ended if code == 2]
    assert (len(answers), len(refusals)) == (1, many - 1), ended
    for lines in refusals:
        assert "is held by another search (process" in lines[-1] or "already has a search" in lines[-1]
    name, answer = answers[0]
    alone = json.loads(subprocess.run([*LINE, "--property", name], capture_output=True, check=False).stdout)
    for part in ("verdict", "states_distinct", "coverage", "violations"):
        assert answer[part] == alone[part]


def test_a_refusal_names_the_holder_and_needs_no_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner of the ledger and its purpose; no session is created for that, also not to resume."""
    monkeypatch.setattr("specchk.spark.engine.session", None)
    checked = program("kafka/kip320.spec", "small")
    (tmp_path / "ledger.json").touch()
    for resume in (False, True):
        with places.storage_at(str(tmp_path)).claim("a search of ours"), pytest.raises(Unusable) as refused:
            search(checked, replace(AT_ONCE, ledger=str(tmp_path), resume=resume))
        assert f"process {os.getpid()} on" in str(refused.value)
        assert "for a search of ours" in str(refused.value)


def test_a_ledger_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """A file in its place: before Spark is started."""
    (tmp_path / "file").touch()
    with pytest.raises(Unusable, match="file/ledger cannot be written"):
        search(
            program("kafka/kip320.spec", "small"), replace(AT_ONCE, ledger=str(tmp_path / "file" / "ledger"))
        )


def options(name: str, place: Path) -> SparkOptions:
    given = {key: value for key, value in VARIANTS[name].options.items() if key != "workers"}
    return replace(AT_ONCE, ledger=str(place), **given)  # type: ignore[arg-type]


def gone_on(checked: Program, wanted: SparkOptions) -> Outcome | str:
    """The result of a continued search, or the reason why it does not continue."""
    try:
        return search(checked, wanted)
    except (Unusable, SpecError) as reason:
        return str(reason)


@pytest.mark.parametrize(
    "first",
    [
        "as it is",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in VARIANTS
            # The last two are refused by this engine.
            if name not in ("as it is", "--compact", "ignore")
        ),
    ],
)
def test_another_search_never_goes_on_with_a_half(first: str, tmp_path: Path) -> None:
    """With every other option, spec, model or constant: refused, or the answer of a separate search."""
    half = replace(options(first, tmp_path / "half"), budget=Budget(max_states=HALF))
    assert isinstance(search(VARIANTS[first].program(tmp_path), half).verdict, Inconclusive)
    went_on = set()
    for second in [other for name, other in pairs(compact=False) if name == first]:
        place, checked = tmp_path / second, VARIANTS[second].program(tmp_path)
        shutil.copytree(tmp_path / "half", place)
        wanted = replace(options(second, place), resume=True)
        found = gone_on(checked, wanted)
        if isinstance(found, Outcome):
            assert said(found) == said(natively(checked, wanted)), second
            went_on.add(second)
        else:
            assert ("keeps all variables" if second == "ignore" else "which differs in: ") in found
    assert went_on == (set(ALIKE) - {first} if first in ALIKE else set())


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"handover": 1 << 40}, {"strict": True}, {"scratch": "here"}])
def test_how_it_is_done_does_not_keep_a_search_from_going_on(
    how: dict[str, Any], half: Path, tmp_path: Path
) -> None:
    """Where tables are, and when Spark took over, does not matter."""
    shutil.copytree(half, tmp_path / "place")
    given = {key: str(tmp_path / "here") if key == "scratch" else value for key, value in how.items()}
    checked, wanted = program("kafka/kip320.spec", "small"), replace(AT_ONCE, symmetry=False, **given)
    found = search(checked, replace(wanted, ledger=str(tmp_path / "place"), resume=True))
    assert said(found) == said(natively(checked, wanted))


def test_what_a_search_left_that_died_while_handing_over_is_nobody_s(tmp_path: Path) -> None:
    """Slices without a ledger file: a search with other options finds its own states, and removes them."""
    first, second = (
        program("kafka/kip320.spec", "small"),
        program("kafka/kip320.spec", "small", MaxRecords="1"),
    )
    search(first, replace(AT_ONCE, ledger=str(tmp_path)))
    (tmp_path / "ledger.json").unlink()
    (left,) = tmp_path.glob("run-*")
    with pytest.raises(Unusable, match="there is no search in the ledger"):
        search(first, replace(AT_ONCE, ledger=str(tmp_path), resume=True))
    found = search(second, replace(AT_ONCE, ledger=str(tmp_path)))
    assert said(found) == said(natively(second, AT_ONCE))
    assert not left.exists()


@pytest.mark.parametrize("room", [80 << 10, 160 << 10])
def test_a_ledger_that_is_full_while_handing_over_is_told(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence with path and cause, a budget's verdict, and nothing left but the claim."""
    checked = program("kafka/kip320.spec", "small", Replicas="3", MaxLeaderEpoch="1")
    wanted = replace(AT_ONCE, ledger=str(tmp_path), symmetry=False, handover=3000)
    real, written = storage.write_fully, [0]

    def write_fully(file: int, data: bytes | memoryview) -> None:
        written[0] += len(data)
        if written[0] > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file, data)

    with monkeypatch.context() as full:
        full.setattr(storage, "write_fully", write_fully)
        verdict = search(checked, wanted).verdict
    assert isinstance(verdict, Inconclusive)
    assert verdict.budget
    assert verdict.reason.startswith(f"the ledger cannot be written ({tmp_path}/")
    assert verdict.reason.endswith(": No space left on device)")
    assert [path.name for path in tmp_path.iterdir()] == ["claim"]
    other = program("kafka/kip320.spec", "small", Replicas="3", MaxLeaderEpoch="1", MaxRecords="1")
    assert said(search(other, replace(wanted, handover=1))) == said(natively(other, wanted))


@pytest.mark.slow
@pytest.mark.parametrize("handover", ["1", "2500"])
def test_a_search_on_a_full_file_system_ends_in_a_sentence(handover: str, tmp_path: Path) -> None:
    """The driver's part, and that of tasks: path and cause, exit code 20, and no traceback."""
    own = ["unshare", "--map-root-user", "--mount"]
    if subprocess.run(
        [*own, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
    ).returncode:
        pytest.skip("file systems cannot be mounted here")
    line = [sys.executable, "-m", "specchk", "run", *KIP320, *SPARK, "--handover", handover]
    ended = subprocess.run(
        [*own, "sh", "-c", TMPFS, str(tmp_path / "small"), *line], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 20, ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout
    words = " ".join(ended.stdout.split())
    assert f"the ledger cannot be written ({tmp_path}/small/L/run-" in words
    assert "slice: No space left on device)" in words


@pytest.fixture(scope="module")
def half(context: SparkContext, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ledger of a search with four levels of the native engine that was ended after some of its own."""
    place = tmp_path_factory.mktemp("half")
    cut = replace(AT_ONCE, ledger=str(place), symmetry=False, handover=40, budget=Budget(max_states=1000))
    assert isinstance(search(program("kafka/kip320.spec", "small"), cut).verdict, Inconclusive)
    return place


def flipped(data: bytes) -> bytes:
    return data[:40] + bytes([data[40] ^ 16]) + data[41:]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "bit": flipped, "zeroes": lambda data: data[:8] + bytes(64) + data[72:], "cut": lambda data: data[:-16],
    "empty": lambda data: b"", "longer": lambda data: data + b"\0", "twice": lambda data: data + data,
}  # fmt: skip


def damaged(half: Path, place: Path, damage: Callable[[Path], Any]) -> Outcome | str:
    """The error for a copy of the ledger with some damage."""
    shutil.copytree(half, place)
    damage(place)
    return gone_on(
        program("kafka/kip320.spec", "small"),
        replace(AT_ONCE, ledger=str(place), symmetry=False, resume=True),
    )


def slice_of(place: Path, level: int, partition: int = 0) -> Path:
    (found,) = place.glob(f"run-*/{level:05d}/{partition:05d}.slice")
    return found


# Every other damage of a slice is noticed by the function that test_parts holds to it.
@pytest.mark.parametrize("damage", [
    name if name in ("bit", "twice") else pytest.param(name, marks=pytest.mark.slow) for name in DAMAGES
])  # fmt: skip
@pytest.mark.parametrize(("level", "remedy"), [(2, "start a new search"), (7, "--resume creates it again")])
def test_a_damaged_slice_is_refused_by_name(
    level: int, remedy: str, damage: str, half: Path, tmp_path: Path
) -> None:
    """One that was handed over, and one created by Spark: the sentence states the remedy, which works."""
    place = tmp_path / "place"

    def change(place: Path) -> None:
        file = slice_of(place, level)
        file.write_bytes(DAMAGES[damage](file.read_bytes()))

    found = damaged(half, place, change)
    told = found if isinstance(found, str) else getattr(found.verdict, "reason", "")
    assert f"{slice_of(place, level)} " in told
    assert told.endswith(f": {remedy} in another place" if level == 2 else f": remove that file; {remedy}")
    if level == 7:
        again = damaged(place, tmp_path / "again", lambda place: slice_of(place, level).unlink())
        assert isinstance(again, Outcome)
        checked = program("kafka/kip320.spec", "small")
        assert said(again) == said(natively(checked, replace(AT_ONCE, symmetry=False)))


def swap(first: Path, second: Path) -> None:
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)


@pytest.mark.parametrize("damage", [
    lambda place: swap(slice_of(place, 2, 0), slice_of(place, 2, 1)),
    lambda place: swap(slice_of(place, 6, 0), slice_of(place, 7, 0)),
    lambda place: shutil.copy(slice_of(place, 6, 0), slice_of(place, 7, 0)),
    lambda place: slice_of(place, 1, 1).unlink(),
    lambda place: shutil.rmtree(slice_of(place, 3).parent),
    lambda place: (place / "ledger.json").unlink(),
    lambda place: (place / "ledger.json").write_bytes(flipped((place / "ledger.json").read_bytes())),
])  # fmt: skip
def test_files_that_are_lost_or_elsewhere_are_refused(
    damage: Callable[[Path], Any], half: Path, tmp_path: Path
) -> None:
    """Swapped, doubled, removed: undamaged, they are not the expected files."""
    found = damaged(half, tmp_path / "place", damage)
    told = found if isinstance(found, str) else getattr(found.verdict, "reason", "")
    assert any(words in told for words in (
        "was replaced by another slice", "does not have the", "no search in the ledger", "is damaged, or",
    )), found  # fmt: skip


def test_slices_of_another_run_are_refused(half: Path, tmp_path: Path) -> None:
    """The same search, started again elsewhere."""
    other = tmp_path / "other"
    search(program("kafka/kip320.spec", "small"), replace(AT_ONCE, ledger=str(other), symmetry=False))
    for level in (2, 7):
        place = tmp_path / f"place {level}"
        found = damaged(
            half, place, lambda place, at=level: shutil.copy(slice_of(other, at), slice_of(place, at))
        )  # type: ignore[misc]
        told = found if isinstance(found, str) else getattr(found.verdict, "reason", "")
        assert f"{slice_of(place, level)} was replaced by another slice" in told
