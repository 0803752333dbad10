"""Checkpoints: continued only by a search of the same identity, and never when damaged."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from native.variants import ALIKE, HALF, VARIANTS, pairs
from specchk.cli.commands.run import command
from specchk.ir.program import Program
from specchk.ir.types import Room
from specchk.native import checkpoint
from specchk.native.checkpoint import Checkpoints
from specchk.native.compiler import kernel_key
from specchk.native.engine import NativeEngine, NativeOptions, search
from specchk.native.identity import identity_of
from specchk.native.machine.runs import without
from specchk.search.budget import Budget
from specchk.search.engine import Search, Unusable, explore
from specchk.search.verdict import Inconclusive, Outcome
from specchk.spark.engine import SparkOptions

ROOT = Path(__file__).resolve().parents[2]
KIP320 = str(ROOT / "spec" / "kafka" / "kip320.spec")


def said(outcome: Outcome) -> Outcome:
    return replace(outcome, statistics=replace(outcome.statistics, seconds=0.0))


def options(name: str, place: Path | None = None) -> NativeOptions:
    """A variant's options, with its checkpoints in a place."""
    given = VARIANTS[name].options
    found = NativeOptions(checkpoint=place, workers=2 if given.get("workers") else 1)
    return replace(found, **{key: value for key, value in given.items() if key != "workers"})  # type: ignore[arg-type]


def halved(name: str, place: Path, folder: Path) -> None:
    """The first half of a variant's search."""
    cut = replace(options(name, place), checkpoint_every_s=0.0, budget=Budget(max_states=HALF))
    assert isinstance(search(VARIANTS[name].program(folder), cut).verdict, Inconclusive), name


def gone_on(program: Program, wanted: NativeOptions) -> Outcome | str:
    """The result of a continued search, or the reason why it does not continue."""
    try:
        return search(program, wanted)
    except Unusable as reason:
        return str(reason)


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first half of each variant's search, by name."""
    folder = tmp_path_factory.mktemp("halves")
    for name in VARIANTS:
        halved(name, folder / name, folder)
    return folder


@pytest.mark.parametrize("first", VARIANTS)
def test_another_search_never_goes_on_with_a_half(first: str, halves: Path, tmp_path: Path) -> None:
    """With every other option, spec, model or constant: refused, or the answer of a separate search."""
    went_on = set()
    for second in [other for name, other in pairs(compact=True) if name == first]:
        place, program = tmp_path / second, VARIANTS[second].program(tmp_path)
        shutil.copytree(halves / first, place)
        found = gone_on(program, replace(options(second, place), resume=True))
        if isinstance(found, Outcome):
            assert said(found) == said(search(program, options(second))), second
            went_on.add(second)
        else:
            assert "which differs in: " in found
    assert went_on == (set(ALIKE) - {first} if first in ALIKE else set())


def test_a_refusal_names_what_differs(halves: Path, tmp_path: Path) -> None:
    """The parts, in the user's terms."""
    for second, parts in (("--property", "properties"), ("--no-symmetry", "symmetry"),
                          ("--keep-going", "--keep-going"), ("model of another name", "model"),
                          ("--set of what is not used", "constants"), ("init", "spec")):  # fmt: skip
        with pytest.raises(Unusable, match=f"differs in: {parts}; resume that one"):
            search(
                VARIANTS[second].program(tmp_path), replace(options(second, halves / "as it is"), resume=True)
            )


def test_a_version_of_the_code_is_a_part_of_it(
    halves: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint of other sources is refused, whatever number their version has."""
    # Of a name of its own: code that other sources compiled may be kept, and lack a function of these.
    monkeypatch.setattr("specchk.kept.sources", lambda *_: str(tmp_path))
    with pytest.raises(Unusable, match="differs in: version of specchk;"):
        search(
            VARIANTS["as it is"].program(tmp_path),
            replace(options("as it is", halves / "as it is"), resume=True),
        )


def changed(program: Program) -> dict[str, Program]:
    """The program with another value of one field, by its name."""
    return {name: replace(program, **{name: "another"}) for name in Program.__struct_fields__}


# What of a program and of options does not decide the answer, with the reason where it is not plain.
# Where the spec and an `ignore` line are, what a model omits, and `folds`: it decides which renamings there
# are; those are in it.
NOT_THE_ANSWER = {"path", "left_out", "left_out_actions", "folds", "ignored_at"}
NOT_THE_CODE = {
    *NOT_THE_ANSWER,
    "spec",
    "model",
    "constants",
    "starts",
    "inits",
    "horizons",
}  # nothing is compiled of
LATER_OR_WHERE = {
    "optimise_after",
    "on_end",
    "functions",
    "room",
    "anew",
    "budget",
    "strict",
    "workers",
    "spill",
    "checkpoint",
    "checkpoint_every_s",
    "resume",
    "handover",
    "lowered",
}
ON_SPARK = {
    "on_end",
    "lowered",
    "budget",
    "strict",
    "master",
    "settings",
    "partitions",
    "handover",
    "ledger",
    "resume",
    "scratch",
}


def test_no_field_of_a_program_is_left_out_of_its_identity(tmp_path: Path) -> None:
    """Each determines the answer or is in the list here; the same for the name of compiled code."""
    program = VARIANTS["as it is"].program(tmp_path)
    own = identity_of(program, [], keep_going=False, compact=False)
    alike = {name for name, other in changed(program).items()
             if identity_of(other, [], keep_going=False, compact=False) == own}  # fmt: skip
    assert alike == NOT_THE_ANSWER
    key = kernel_key(program, [], compact=False)
    same_code = {
        name for name, other in changed(program).items() if kernel_key(other, [], compact=False) == key
    }
    assert same_code == NOT_THE_CODE


def test_no_option_is_left_out_of_the_identity() -> None:
    """An option is a part of it, or in a list of those that do not affect the answer."""
    assert {*NativeOptions.__struct_fields__} == LATER_OR_WHERE | {
        "symmetry",
        "keep_going",
        "compact",
    }
    assert {*SparkOptions.__struct_fields__} == ON_SPARK | {"symmetry", "keep_going"}


def test_a_checkpoint_is_not_written_over(halves: Path, tmp_path: Path) -> None:
    """Without --resume a directory that has one is refused, and stays as it was."""
    place = tmp_path / "place"
    shutil.copytree(halves / "as it is", place)
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    with pytest.raises(Unusable, match="already has a checkpoint: use --resume"):
        search(VARIANTS["init"].program(tmp_path), options("init", place))
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


def test_a_search_that_ends_before_its_first_checkpoint_spoils_none(
    halves: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States of a search that never wrote `search.json` are in a separate file."""
    place, program = tmp_path / "place", VARIANTS["as it is"].program(tmp_path)
    shutil.copytree(halves / "as it is", place)
    wanted = options("init")
    engine = NativeEngine(Search(VARIANTS["init"].program(tmp_path), wanted), wanted)
    try:
        explore(engine)
        engine.checkpoints = Checkpoints(place, {}, Room())
        monkeypatch.setattr(checkpoint, "sealed", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine._save([])
    finally:
        engine.store.release()
    monkeypatch.undo()
    found = search(program, replace(options("as it is", place), resume=True))
    assert said(found) == said(search(program, options("as it is")))


def test_two_searches_never_have_one_checkpoint(tmp_path: Path) -> None:
    """The second names the owner; if the first is killed, the second continues its checkpoint."""
    large = [word for name in ("Replicas", "MaxRecords", "MaxLeaderEpoch") for word in ("--set", f"{name}=3")]
    own = ["--no-symmetry", "--checkpoint", str(tmp_path), "--every", "0.05"]
    line = [sys.executable, "-m", "specchk", "run", KIP320, *large, *own]
    first = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    while not (tmp_path / "search.json").exists():
        assert first.poll() is None
        time.sleep(0.01)
    os.kill(first.pid, signal.SIGSTOP)  # it would be done at some time
    second = CliRunner().invoke(command, [*line[4:], "--resume", "--max-states", "1"])
    assert second.exit_code == 2
    assert f"--checkpoint: {tmp_path} is held by another search (process {first.pid} on" in second.output
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    third = CliRunner().invoke(command, [*line[4:], "--resume", "--max-states", "1"])
    assert third.exit_code == 20, third.output


DAMAGES = {
    "bit": lambda data: data[:99] + bytes([data[99] ^ 4]) + data[100:],
    "zeroes": lambda data: data[:64] + bytes(512) + data[576:],
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
}  # fmt: skip


@pytest.mark.parametrize("damage", [*DAMAGES, "lost", "of another search"])
@pytest.mark.parametrize("file", ["search.json", "states-*.bin"])
def test_a_damaged_checkpoint_is_refused_by_name(
    file: str, damage: str, halves: Path, tmp_path: Path
) -> None:
    """Whatever happened to a file: a sentence with its name, exit code 2."""
    place = tmp_path / "place"
    shutil.copytree(halves / "as it is", place)
    (path,) = place.glob(file)
    if damage == "lost":
        path.unlink()
    elif damage == "of another search":
        (other,) = (halves / "initial value").glob(file)
        shutil.copy(other, path)
    else:
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    words = r"there is no checkpoint|differs in|is damaged, or of another version"
    with pytest.raises(Unusable, match=words) as refused:
        search(VARIANTS["as it is"].program(tmp_path), replace(options("as it is", place), resume=True))
    assert str(path.name if "is damaged" in str(refused.value) else place) in str(refused.value)


def test_what_is_behind_the_states_that_count_is_no_damage(halves: Path, tmp_path: Path) -> None:
    """It was written by a search that was killed before its `search.json`."""
    place, program = tmp_path / "place", VARIANTS["as it is"].program(tmp_path)
    shutil.copytree(halves / "as it is", place)
    (path,) = place.glob("states-*.bin")
    path.write_bytes(path.read_bytes() + b"x" * 1000)
    found = search(program, replace(options("as it is", place), resume=True))
    assert said(found) == said(search(program, options("as it is")))


def test_a_place_that_cannot_be_written_is_said_before_the_search(tmp_path: Path) -> None:
    """A file in its place, exit code 2."""
    (tmp_path / "file").touch()
    found = CliRunner().invoke(command, [KIP320, "--checkpoint", str(tmp_path / "file")])
    assert found.exit_code == 2
    assert f"{tmp_path / 'file'} cannot be written: " in found.output


def test_nothing_is_made_to_resume_from(tmp_path: Path) -> None:
    """A missing directory is refused, and is not created."""
    for own in (["--checkpoint"], ["--engine", "spark", "--ledger"]):
        found = CliRunner().invoke(command, [KIP320, "--resume", *own, str(tmp_path / "wrong")])
        assert found.exit_code == 2
        assert "there is no " in found.output
        assert not (tmp_path / "wrong").exists()


def test_what_is_left_of_ranges() -> None:
    """Ranges without others: before, between, after, and where they overlap."""
    assert without([(0, 10)], [(2, 3), (5, 7)]) == [(0, 2), (3, 5), (7, 10)]
    assert without([(0, 4), (6, 9)], [(0, 7)]) == [(7, 9)]
    assert without([(0, 4)], []) == [(0, 4)]
    assert without([(3, 5)], [(0, 9)]) == []
