"""Checkpoint files: Kafka's text, replaced atomically, read strictly."""

from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replog.sim.disks.disk import CrashedError, SimFs
from replog.store.checkpoints.checkpoint import (
    CLEAN_SHUTDOWN_FILE,
    EPOCH_FILE,
    METADATA_FILE,
    EpochEntry,
    read_clean_shutdown,
    read_epochs,
    read_metadata,
    read_offsets,
    render_clean_shutdown,
    render_offsets,
    write_epochs,
)
from replog.store.files.errors import CorruptFileError, ForeignVersionError
from replog.store.files.fs import make_directory, read_file, replace_file

NAME = "replication-offset-checkpoint"
keys = st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 2**31 - 1))


def disk(name: str | None = None, content: bytes = b"") -> SimFs:
    fs = SimFs()
    make_directory(fs, "d")
    if name is not None:
        replace_file(fs, "d", name, content)
    return fs


@given(st.dictionaries(keys, st.integers(0, 2**63 - 1)))
def test_offsets_survive_the_round_trip(offsets: dict[tuple[str, int], int]) -> None:
    """What was written is read back."""
    fs = disk()
    replace_file(fs, "d", NAME, render_offsets(offsets))
    assert read_offsets(fs, "d", NAME) == offsets


def test_the_text_is_kafkas() -> None:
    """Version, count, entries, each line ended; the marker is JSON; the metadata two lines."""
    fs = disk()
    replace_file(fs, "d", NAME, render_offsets({("orders", 3): 41, ("a", 0): 7}))
    write_epochs(fs, "d", [EpochEntry(0, 0), EpochEntry(4, 120)])
    replace_file(fs, "d", CLEAN_SHUTDOWN_FILE, render_clean_shutdown(7))
    replace_file(fs, "d", METADATA_FILE, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA")
    assert read_file(fs, f"d/{NAME}") == b"0\n2\na 0 7\norders 3 41\n"
    assert read_file(fs, f"d/{EPOCH_FILE}") == b"0\n2\n0 0\n4 120\n"
    assert read_file(fs, f"d/{CLEAN_SHUTDOWN_FILE}") == b'{"version":0,"brokerEpoch":7}'
    assert read_epochs(fs, "d") == ((0, 0), (4, 120))
    assert read_clean_shutdown(fs, "d") == 7
    assert read_metadata(fs, "d") == "AAAAAAAAAAAAAAAAAAAAAA"


def test_missing_files_and_empty_files_have_no_entries() -> None:
    """A missing epoch file is told apart from an empty one."""
    assert read_offsets(disk(), "d", NAME) == {}
    assert read_offsets(disk(NAME), "d", NAME) == {}
    assert read_epochs(disk(), "d") is None
    assert read_epochs(disk(EPOCH_FILE), "d") == ()
    assert read_clean_shutdown(disk(), "d") is None
    assert read_clean_shutdown(disk(CLEAN_SHUTDOWN_FILE), "d") == -1
    assert read_metadata(disk(), "d") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"0\n", "line 2"),
        (b"0\n1\n", "1' entries announced, 0 found"),
        (b"0\n1\na 0 7\nb 0 7\n", "1' entries announced, 2 found"),
        (b"0\n1\na 0 7", "cut off"),
        (b"0\nx\na 0 7\n", "line 2"),
        (b"0\n1\na 0\n", "line 3: 3 fields"),
        (b"0\n1\na 0 7 9\n", "line 3: 3 fields"),
        (b"0\n1\na 0 -7\n", "line 3"),
        (b"0\n1\na 0 99999999999999999999\n", "line 3"),
        (b"0\n2\na 0 7\na 0 8\n", "line 4: a-0 is listed twice"),
        (b"zero\n0\n", "not a version"),
        (b"\xff\xfe", "not text"),
    ],
)
def test_a_broken_checkpoint_is_named_by_file_and_line(content: bytes, message: str) -> None:
    """Every deviation is an error with its place."""
    with pytest.raises(CorruptFileError, match=message) as caught:
        read_offsets(disk(NAME, content), "d", NAME)
    assert NAME in str(caught.value)


@pytest.mark.parametrize("content", [b"0\n2\n3 5\n3 9\n", b"0\n2\n3 5\n4 5\n", b"0\n2\n4 5\n3 9\n"])
def test_epochs_must_increase_in_both_columns(content: bytes) -> None:
    """Entries out of order are corruption, not history."""
    with pytest.raises(CorruptFileError, match="line 4"):
        read_epochs(disk(EPOCH_FILE, content), "d")


def test_another_version_is_foreign() -> None:
    """Version 1 is refused as such in all four kinds of file."""
    with pytest.raises(ForeignVersionError, match="version 1"):
        read_offsets(disk(NAME, b"1\n0\n"), "d", NAME)
    with pytest.raises(ForeignVersionError):
        read_epochs(disk(EPOCH_FILE, b"1\n0\n"), "d")
    with pytest.raises(ForeignVersionError):
        read_clean_shutdown(disk(CLEAN_SHUTDOWN_FILE, b'{"version":1,"brokerEpoch":3}'), "d")
    with pytest.raises(ForeignVersionError):
        read_metadata(disk(METADATA_FILE, b"version: 1\ntopic_id: x"), "d")


@given(st.binary(max_size=60) | st.text(alphabet='0123456789 \nab{}":', max_size=60).map(str.encode))
def test_noise_in_any_file_is_a_documented_error_or_a_value(noise: bytes) -> None:
    """Content that is not a checkpoint is damage, or another version, and nothing else."""
    for name, read in (
        (NAME, lambda fs: read_offsets(fs, "d", NAME)),
        (EPOCH_FILE, lambda fs: read_epochs(fs, "d")),
        (CLEAN_SHUTDOWN_FILE, lambda fs: read_clean_shutdown(fs, "d")),
        (METADATA_FILE, lambda fs: read_metadata(fs, "d")),
    ):
        with suppress(CorruptFileError, ForeignVersionError):
            read(disk(name, noise))


@given(st.integers(0, 5), st.integers(0, 2**32))
def test_a_crash_at_any_moment_leaves_the_old_file_or_the_new(moment: int, seed: int) -> None:
    """Replacement is atomic and, once it returned, durable, whatever the power does."""
    fs = disk(NAME, b"0\n1\na 0 1\n")
    fs.faults.crash_in = moment
    try:
        replace_file(fs, "d", NAME, render_offsets({("a", 0): 2}))
        returned = True
    except CrashedError:
        returned = False
    fs.power_loss(Random(seed).randrange)
    assert read_offsets(fs, "d", NAME)["a", 0] in ((2,) if returned else (1, 2))


@pytest.mark.parametrize("moment", range(6))
def test_a_death_while_epochs_are_written_leaves_the_old_ones_or_the_new(moment: int) -> None:
    """Of the process or of the machine: never half of them, never none."""
    for seed in range(10):
        fs = disk()
        write_epochs(fs, "d", [EpochEntry(0, 0)])
        fs.faults.crash_in = moment
        with suppress(CrashedError):
            write_epochs(fs, "d", [EpochEntry(0, 0), EpochEntry(4, 120)])
        if seed:
            fs.power_loss(Random(seed).randrange)
        else:
            fs.process_crash()
        assert read_epochs(fs, "d") in (((0, 0),), ((0, 0), (4, 120)))
