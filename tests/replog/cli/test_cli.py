"""The `replog` command from a user's view: output, exit codes, bad input, pipes, interrupts."""

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from replog.cli import run
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.fs import OsFs
from replog.store.segments.records import ProducerFields, Record, encode_batch

COMMAND = [sys.executable, "-W", "error", "-c", "from replog.__main__ import main; main()"]


def replog(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Make a cleanly stopped directory with one partition of two segments and an empty one."""
    path = tmp_path / "data"
    opened = LogDirectory.open(OsFs(), str(path), LogConfig(segment_bytes=2000, index_interval_bytes=300))
    log = opened.log("orders", 0)
    for i in range(30):
        records = [Record(b"value %d" % i, b"key\0", timestamp=i), Record(None)]
        log.append_as_leader(encode_batch(records, ProducerFields(5, 0, 2 * i)), i // 20)
    opened.log("orders", 1)
    opened.shut_down({("orders", 0): 55}, 3)
    return path


def test_help_imports_no_command() -> None:
    """The help lists the commands without loading the simulator."""
    code = (
        "import sys; from replog.cli import run; run(['--help']); "
        "sys.exit('replog.sim.cluster.world' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert shown.returncode == 0
    assert all(name in shown.stdout for name in ("demo", "dump", "sim"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "No such command 'nope'"),
        (["dump", "/does/not/exist"], "does not exist"),
        (["sim"], "--seed N or --seeds A..B"),
        (["sim", "--seed", "1", "--seeds", "1..2"], "--seed N or --seeds A..B"),
        (["sim", "--seeds", "9..3"], "empty"),
        (["sim", "--seeds", "a..b"], "a range such as"),
        (["sim", "--seed", "-1"], "-1"),
        (["sim", "--seed", "1", "--max-events", "0"], "0"),
        (["sim", "--seed", "1", "--profile", "nice"], "nice"),
        (["demo", "--protocol", "raft"], "raft"),
        (["demo", "--speed", "-1"], "-1"),
    ],
)
def test_bad_usage_is_explained_with_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error is written to stderr."""
    assert run(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_dump_shows_segments_epochs_and_checkpoints(directory: Path) -> None:
    """The whole content of the files, as text, and exit code 0."""
    shown = replog("dump", directory)
    assert shown.returncode == 0
    for text in (
        "broker epoch 3",
        "replication-offset-checkpoint    orders-0 55",
        "recovery-point-offset-checkpoint orders-0 60, orders-1 0",
        "leader-epoch-checkpoint          0 from 0, 1 from 40",
        "00000000000000000000.log         ",
        "epochs 0..1",
        "CRCs correct",
        "entries, correct",
        "empty",
    ):
        assert text in shown.stdout


def test_a_dump_of_a_partition_shows_its_records(directory: Path) -> None:
    """Batches with their producer, records with escaped keys and null values."""
    shown = replog("dump", directory / "orders-0", "--records")
    assert "@0 offsets 0..1, epoch 0" in shown.stdout
    assert "producer 5/0 from seq 58" in shown.stdout
    assert "      6: key\\x00 = value 3" in shown.stdout
    assert "      7: null" in shown.stdout


def test_a_dump_names_every_damage_and_changes_nothing(directory: Path) -> None:
    """A flipped bit, a cut checkpoint and a wrong index are lines that begin with `!`, and exit code 1."""
    partition = directory / "orders-0"
    log, index = partition / f"{0:020d}.log", partition / f"{0:020d}.index"
    damaged = bytearray(log.read_bytes())
    damaged[500] ^= 1
    log.write_bytes(damaged)
    index.write_bytes(index.read_bytes()[:-1])
    (directory / "replication-offset-checkpoint").write_text("0\n2\norders 0 55\n")
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    shown = replog("dump", directory)
    marked = [line for line in shown.stdout.splitlines() if line.startswith("!")]
    assert shown.returncode == 1
    assert any("damaged at byte" in line and "CRC" in line for line in marked)
    assert any(".index" in line for line in marked)
    assert any("2' entries announced, 1 found" in line for line in marked)
    assert before == {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def marked(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("!")]


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("log-start-offset-checkpoint", b"0\n0\n", b"0\n1\norders 0 900\n", "not the one written last"),
        ("replication-offset-checkpoint", b" 55\n", b" 99\n", "not the one written last"),
        ("orders-0/leader-epoch-checkpoint", b"1 40\n", b"1 50\n", "do not fit the log"),
        ("orders-0/log-manifest", b"start 0", b"start 8", "the checksum of its first part is wrong"),
        ("directory-manifest", b"orders-0", b"orders-7", "its checksum is wrong"),
    ],
)
def test_a_dump_reports_what_was_not_written(
    directory: Path, file: str, old: bytes, new: bytes, message: str
) -> None:
    """A possible but wrong number, in any of the small files."""
    content = (directory / file).read_bytes()
    assert content.count(old) == 1
    (directory / file).write_bytes(content.replace(old, new))
    shown = replog("dump", directory)
    assert shown.returncode == 1
    assert any(message in line for line in marked(shown.stdout)), shown.stdout


def test_a_dump_reports_offsets_that_the_log_does_not_have(tmp_path: Path) -> None:
    """A high watermark beyond the log end, though with a valid checksum."""
    opened = LogDirectory.open(OsFs(), str(tmp_path / "data"))
    opened.log("orders", 0).append_as_leader(encode_batch([Record(b"v")]), 0)
    opened.shut_down({("orders", 0): 7})
    shown = replog("dump", tmp_path / "data")
    assert shown.returncode == 1
    assert marked(shown.stdout) == [
        "! replication-offset-checkpoint    high watermark 7, but orders-0 ends at 1"
    ]


@pytest.mark.parametrize("as_partition", [True, False])
def test_a_dump_reports_a_missing_first_segment(directory: Path, as_partition: bool) -> None:
    """Also for the partition's folder alone."""
    (directory / "orders-0" / f"{0:020d}.log").unlink()
    shown = replog("dump", directory / "orders-0" if as_partition else directory)
    assert shown.returncode == 1
    assert any("is missing" in line and "were synced" in line for line in marked(shown.stdout))


def test_a_dump_of_one_partition_shows_what_it_counts(directory: Path) -> None:
    """The directory's checkpoints are compared too: a problem of theirs is a line, not only counted."""
    checkpoint = directory / "replication-offset-checkpoint"
    checkpoint.write_bytes(checkpoint.read_bytes().replace(b" 55\n", b" 99\n"))
    shown = replog("dump", directory / "orders-0")
    assert shown.returncode == 1
    assert "not the one written last" in shown.stdout
    assert shown.stdout.endswith(f"\n{len(marked(shown.stdout))} problem\n")


def test_a_dump_of_a_folder_that_is_no_log_says_so(tmp_path: Path) -> None:
    """An empty folder, or one with other files, is a problem."""
    (tmp_path / "notes.txt").write_text("x")
    for path in (tmp_path, tmp_path / "topic-0"):
        path.mkdir(exist_ok=True)
        shown = replog("dump", path)
        assert (shown.returncode, "not a log" in shown.stdout) == (1, True), shown.stdout


def test_a_repair_shows_what_would_be_lost_and_does_it_when_told(directory: Path) -> None:
    """First the plan and exit code 1, then the cut; the dump is correct after it, and the copy exists."""
    log = directory / "orders-0" / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[500] ^= 1
    log.write_bytes(content)
    files = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    planned = replog("repair", directory)
    assert planned.returncode == 1
    assert re.search(r"kept: offsets 0\.\.\d+; cut: \d+\.\.59", planned.stdout), planned.stdout
    assert "1 of 2 partitions to repair; nothing was changed" in planned.stdout
    assert f"next: replog repair {directory} --apply" in planned.stdout
    assert files == {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    done = replog("repair", directory, "--apply")
    assert done.returncode == 0
    assert "kept as" in done.stdout
    copy = next(log.parent.glob("*.at-*.quarantine1"))
    assert log.read_bytes() + copy.read_bytes() == bytes(content)
    again = replog("repair", directory)
    assert (again.returncode, "0 of 2 partitions" in again.stdout) == (0, True)
    assert replog("dump", directory).returncode == 0


def test_a_repair_of_a_directory_in_use_is_refused(directory: Path) -> None:
    """By a running broker."""
    opened = LogDirectory.open(OsFs(), str(directory))
    refused = replog("repair", directory)
    assert (refused.returncode, "in use by another process" in refused.stderr) == (1, True)
    opened.abandon()


def test_a_usage_error_that_nobody_reads_is_one() -> None:
    """The exit code does not depend on the reader of standard error."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*COMMAND, "nosuch"], stderr=writing, check=False)
    os.close(writing)
    assert done.returncode == 2


def test_a_closed_pipe_is_silent() -> None:
    """A reader that stops reading does not cause a traceback."""
    for arguments in (["sim", "--seed", "1"], ["demo"], ["--help"]):
        reading, writing = os.pipe()
        os.close(reading)
        with subprocess.Popen(
            [*COMMAND, *arguments], stdout=writing, stderr=subprocess.PIPE, text=True
        ) as process:
            os.close(writing)
            assert process.stderr is not None
            assert process.stderr.read() == ""
        assert process.returncode == 141


def test_an_interrupt_ends_cleanly() -> None:
    """Ctrl-C in the middle of the demo gives exit code 130 and one word."""
    master, slave = pty.openpty()
    command = [*COMMAND, "demo", "--speed", "0.1"]  # long enough to be in its middle on any machine
    with subprocess.Popen(command, stdout=slave, stderr=subprocess.PIPE, text=True) as process:
        os.close(slave)
        shown = b""
        while b"controller:" not in shown:
            shown += os.read(master, 4096)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.read().strip() == "interrupted"
    os.close(master)
    assert process.returncode == 130


def test_one_seed_is_one_run() -> None:
    """The same seed gives the same report, including the promises kept."""
    first, second = replog("sim", "--seed", "7"), replog("sim", "--seed", "7")
    assert (first.returncode, first.stdout) == (0, second.stdout)
    assert "all oracles hold" in first.stdout


def test_many_seeds_are_summed_up() -> None:
    """Counts of seeds, steps, crashes and faults by kind."""
    shown = replog("sim", "--seeds", "0..4", "--profile", "store")
    assert shown.returncode == 0
    assert "5 of 5 seeds, profile store: all oracles hold" in shown.stdout
    assert "message-loss" in shown.stdout
    assert re.search(r"^    flushed-survives +[1-9]", shown.stdout, re.MULTILINE)


def test_a_broken_promise_stops_the_run_and_says_how_to_repeat_it() -> None:
    """Yesterday's rules lose data within a few seeds; the repeated run finds the same."""
    shown = replog("sim", "--seeds", "0..99", "--protocol", "hw-truncation")
    assert shown.returncode == 1
    repeat = shown.stdout.strip().splitlines()[-1].split("repeat: replog ")[1]
    again = replog(*repeat.split())
    assert again.returncode == 1
    assert again.stdout.splitlines()[0] in shown.stdout


def test_the_demo_of_todays_rules_loses_nothing(tmp_path: Path) -> None:
    """The old leader truncates its uncopied tail, and every acknowledged record is on all disks."""
    files = tmp_path / "files"
    shown = replog("demo", "--directory", files)
    assert shown.returncode == 0
    assert re.search(r"broker 0: truncates its log, \d+ -> \d+", shown.stdout)
    assert "acknowledged with acks=all are on all three disks" in shown.stdout
    assert all(len(line) < 80 for line in shown.stdout.replace(str(files), "files").splitlines())
    assert "\033" not in shown.stdout
    assert replog("dump", files / "broker-0").returncode == 0
    refused = replog("demo", "--directory", files)
    assert (refused.returncode, "is not empty" in refused.stderr) == (2, True)


def test_the_demo_of_yesterdays_rules_loses_and_diverges() -> None:
    """The bounced follower cuts at its high watermark, is elected, and acknowledged records are lost."""
    shown = replog("demo", "--protocol", "hw-truncation")
    assert shown.returncode == 1
    assert re.search(r"broker 1: truncates its log, \d+ -> \d+", shown.stdout)
    assert "LOST: 27 of 257 records acknowledged with acks=all (offsets 49..75)." in shown.stdout
    assert "DIVERGED: at offset 49 the brokers hold different records." in shown.stdout


def test_a_disk_that_cannot_be_used_is_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory of another process, or one that is not a log directory: exit code 1 and a sentence."""
    (tmp_path / "file").write_text("x")
    assert run(["demo", "--directory", str(tmp_path / "file" / "below")]) == 1
    assert "file" in capsys.readouterr().err
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OsFs, "lock", lambda _fs, _path: raise_taken())
        assert run(["demo", "--directory", str(tmp_path / "taken")]) == 1
    assert "in use by another process" in capsys.readouterr().err


def raise_taken() -> None:
    raise BlockingIOError


def test_on_a_terminal_the_table_is_redrawn_in_place() -> None:
    """The live view moves the cursor up over the table it replaces; the last screen is the verdict."""
    master, slave = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80"}
    with subprocess.Popen([*COMMAND, "demo", "--speed", "0"], stdout=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            shown += data
    os.close(master)
    assert process.returncode == 0
    assert shown.count(b"\033[6F\033[J") > 50
    assert shown.rstrip().endswith(b"next: replog demo --protocol hw-truncation")
