"""An export is complete or absent: a killed one, a full disk, a damaged part."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from export.exported import SPEC, exported, program, rows
from specchk import kept
from specchk.cli.commands.run import command
from specchk.cli.sql import command as sql
from specchk.export import names, parts
from specchk.export.manifest import NoExport, opened
from specchk.export.names import SharedNames
from specchk.export.parts import Unwritten
from specchk.native.kernel.edge_kernel import NAME_SHARES
from specchk.native.machine.layout import layout_of
from specchk.native.tiers import load_edges

KIP320 = str(SPEC / "kafka" / "kip320.spec")
KILLED = """
import os, signal, sys
from specchk import kept
left, after = int(sys.argv.pop(1)), sys.argv.pop(1)
real = getattr(kept.Replacement, after)
def step(file, *args):
    global left
    real(file, *args)
    left -= ".unfinished-" in str(file.path)  # and not of a kept kernel
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
setattr(kept.Replacement, after, step)
from specchk.cli.main import main
main()
"""


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    exported(program("two_round_fetch.spec", "small"), "native", tmp_path / "E")
    return tmp_path / "E"


def query(place: Path, text: str = "select count(*) from states") -> str:
    found = CliRunner().invoke(sql, [str(place), text])
    assert found.exit_code == 2
    return found.output.splitlines()[-1].removeprefix("Error: ")


@pytest.mark.parametrize(
    ("files", "after"), [(1, "finish"), (4, "finish"), (8, "finish"), (1, "write"), (2, "write")]
)
def test_a_killed_export_is_none(files: int, after: str, tmp_path: Path) -> None:
    """Whenever it ended, within a file or before the last rename: the directory does not exist."""
    line = [sys.executable, "-c", KILLED, str(files), after, "run", KIP320, "--workers", "1"]
    done = subprocess.run([*line, "--export", str(tmp_path / "E")], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (tmp_path / "E").exists()
    (left,) = tmp_path.iterdir()
    assert left.name.startswith("E.unfinished-")
    if files < 8:
        assert query(left) == f"{left} is not an export: it has no manifest.json, which is written last"
    # The next one needs no cleaning.
    exported(program("kafka/kip320.spec", "small"), "native", tmp_path / "E")
    assert len(rows(tmp_path / "E", "states")) == opened(tmp_path / "E").about["states"]


@pytest.mark.parametrize("at", [1, 3, 8])
def test_a_full_disk_costs_the_export_and_not_the_verdict(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report is printed; then one sentence with path and reason, exit code 2, and nothing is left."""
    real, many = kept.Replacement.write, [at]

    def write(file: kept.Replacement, pieces: list[bytes]) -> None:
        many[0] -= ".unfinished-" in str(file.path)  # and not of a kept kernel
        if not many[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file, pieces)

    monkeypatch.setattr(kept.Replacement, "write", write)
    found = CliRunner().invoke(command, [KIP320, "--export", str(tmp_path / "E")])
    assert found.exit_code == 2
    assert found.output.startswith("holds: kip320, model small")
    last = found.output.splitlines()[-1]
    assert last.startswith(f"Error: --export: cannot write {tmp_path}/E/")
    assert last.endswith(": No space left on device")
    assert not list(tmp_path.iterdir())


def test_what_a_killed_executor_left_is_not_in_the_export(tmp_path: Path) -> None:
    """Its file beside the part written by another attempt is removed before the directory appears."""
    draft = parts.LocalDraft.at(tmp_path / "E")
    draft.write("states/part-0-00000.parquet", [b"wh", memoryview(b"ole")])
    lost = kept.Replacement(draft.folder / "states" / "part-0-00000.parquet")
    lost.write([b"ha"])
    draft.finish(b"{}")
    lost.abandon()
    assert [path.name for path in (tmp_path / "E" / "states").iterdir()] == ["part-0-00000.parquet"]
    assert (tmp_path / "E" / "states" / "part-0-00000.parquet").read_bytes() == b"whole"


def test_states_of_equal_names_are_no_export() -> None:
    """A step's end would be two states; it is refused, wherever the two are, and whatever their share."""
    found = program("two_round_fetch.spec", "small")
    kernel = load_edges(found, layout_of(found), [], is_long=True)

    def shared(*blocks: Sequence[int]) -> list[SharedNames]:
        some = []
        for block in blocks:
            words, out, ends = array("q", block), array("q", block), array("Q", bytes(8 * NAME_SHARES))
            places = (words.buffer_info()[0], len(words), ends.buffer_info()[0], out.buffer_info()[0])
            kernel.call["share_names"](*places)
            some.append(SharedNames(out.tobytes(), ends))
        return some

    alike = [share << 56 | 5 for share in range(9)]  # of one share
    others = [0, *range(-300, -1), *(number << 40 | number for number in range(1, 2_000))]
    names.require_distinct(kernel, shared(alike, others))
    names.require_distinct(kernel, [])
    for again in (alike[0], alike[8], 0, -2, others[-1]):
        with pytest.raises(Unwritten, match="two of 2309 states have the same 64-bit name"):
            names.require_distinct(kernel, shared(alike, others, [again]))


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("there", "there, and has something else: choose another place, or remove it"),
        ("E", "there, and has an export already: choose another place, or remove it"),
        ("file", "is a file: choose another place"),
        ("file/E", "cannot be made: "),
    ],
)
def test_a_place_that_is_taken_is_refused_before_the_search(
    place: str, words: str, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The existing contents stay unchanged."""
    (whole.parent / "there").mkdir()
    (whole.parent / "there" / "x").touch()
    (whole.parent / "file").touch()
    monkeypatch.setattr("specchk.cli.commands.run.explore", None)
    found = CliRunner().invoke(command, [KIP320, "--export", str(whole.parent / place)])
    assert found.exit_code == 2
    assert words in " ".join(found.output.split())


def test_an_empty_directory_is_a_place(tmp_path: Path) -> None:
    """As created by `mktemp -d`; also one that does not exist yet."""
    (tmp_path / "E").mkdir()
    for place in (tmp_path / "E", tmp_path / "new" / "F"):
        found = CliRunner().invoke(command, [KIP320, "--export", str(place)])
        assert found.exit_code == 0, found.output
        assert found.output.splitlines()[-1] == f"wrote {place}"
        opened(place)


def test_a_damaged_export_is_refused_by_file(whole: Path) -> None:
    """A lost part, a short one, a manifest of another kind, none, and no directory."""
    part = next((whole / "states").iterdir())
    data = part.read_bytes()
    part.write_bytes(data[:-1])
    assert query(whole) == f"{part} has {len(data) - 1} bytes instead of {len(data)}: export again"
    part.unlink()
    assert query(whole) == f"{part} is missing (No such file or directory): export again"
    manifest = whole / "manifest.json"
    manifest.write_text(json.dumps({"schema": "specchk.export/0"}))
    assert query(whole) == f"{whole} is not an export of this version of specchk (specchk.export/1)"
    manifest.write_text("{")
    assert query(whole).startswith(f"{manifest} cannot be read (")
    with pytest.raises(NoExport, match="there is no such directory"):
        opened(whole / "nothing")


@pytest.mark.parametrize(
    ("args", "library", "words"),
    [
        (
            ("run", KIP320, "--export", "E"),
            "pyarrow",
            "`--export` needs pyarrow: pip install 'specchk[data]'",
        ),
        (("sql", "E", "select 1"), "duckdb", "`specchk sql` needs duckdb: pip install 'specchk[data]'"),
    ],
)
def test_without_the_libraries_it_names_what_to_install(
    args: tuple[str, ...], library: str, words: str, tmp_path: Path
) -> None:
    """One sentence, before a search."""
    script = (
        f"import sys; sys.modules[{library!r}] = None; sys.argv[:] = ['specchk', *{args!r}]; "
        "from specchk.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"Error: {words}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("args", [("--engine", "symbolic"), ("--prove",)])
def test_what_has_no_states_is_not_exported(args: tuple[str, ...], tmp_path: Path) -> None:
    """Zones and proofs; a usage error."""
    found = CliRunner().invoke(command, [KIP320, *args, "--export", str(tmp_path / "E")])
    assert found.exit_code == 2
    assert "--export is for engines that search states" in found.output
