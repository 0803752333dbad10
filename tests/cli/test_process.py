"""The program in its own process: pipes, signals, encodings, imports."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import PROGRAM, process, searching

from hang import HANG_S
from laws.sources import ROOT
from specchk.processes import cores

SPECS = ROOT / "spec"

LONG = """\
spec long
var x : 0..2000 = 0
var y : 0..2000 = 0
action right():
    require x < 2000
    x' = x + 1
action up():
    require y < 2000
    y' = y + 1
invariant fine: x + y >= 0
deadlock ok
model m:
    expect holds
"""


@pytest.fixture
def long(here: Path) -> Path:
    (here / "long.spec").write_text(LONG, encoding="utf-8")
    return here


def test_help_loads_no_heavy_library() -> None:
    """`specchk --help` imports neither an engine's library nor the parser."""
    code = (
        "import sys\nsys.argv = ['specchk', '--help']\nfrom specchk.cli.main import main\n"
        "try:\n    main()\nfinally:\n"
        "    print(sorted({'z3', 'llvmlite', 'pyspark', 'lark', 'specchk.meaning'} & set(sys.modules)))\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "Usage: specchk" in out
    assert out.splitlines()[-1] == "[]"


def test_the_end_looks_for_no_cycles() -> None:
    """The remaining objects are kept from the collector, which would take a tenth of a short run."""
    # Registered before the program's own, so called after it.
    count = "import atexit, gc\natexit.register(lambda: print(gc.get_freeze_count()))\n"
    out, _ = process("--help", program=count + PROGRAM).communicate(timeout=HANG_S)
    assert int(out.splitlines()[-1]) > 10_000


def test_ctrl_c_ends_a_long_run_as_inconclusive(long: Path) -> None:
    """SIGINT in the search: the report so far, exit code 21, no traceback."""
    running = searching("run", "long.spec", "--engine", "reference")
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=HANG_S)
    assert b"inconclusive: it was interrupted: long, model m" in out
    assert err == b""
    assert running.returncode == 21


def test_ctrl_c_ends_a_test_with_all_its_models(long: Path) -> None:
    """SIGINT in one model does not start the next: exit code 21."""
    two = LONG.replace("spec long", "spec two") + "model n:\n    expect holds\n"
    Path("two.spec").write_text(two, encoding="utf-8")
    running = searching("test", "two.spec", "--engine", "reference")
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=HANG_S)
    assert (running.returncode, err.strip()) == (21, b"interrupted")
    assert b"two.spec n:" not in out


def test_a_pipe_gets_no_progress(long: Path) -> None:
    """Nothing on standard error, one report on standard output."""
    out, err = process("run", "long.spec", "--engine", "reference", "--max-seconds", "0.8").communicate(
        timeout=HANG_S
    )
    assert out.startswith(b"inconclusive: the limit of 0.8 s")
    assert b"\r" not in out
    assert err == b""


@pytest.mark.parametrize(("model", "code"), [("good", 0), ("bad", 10)])
def test_a_reader_that_goes_away_changes_no_exit_code(here: Path, model: str, code: int) -> None:
    """Standard output closed by the reader: quiet, and the verdict's exit code."""
    read, write = os.pipe()
    os.close(read)
    running = process("run", "shop.spec", "--model", model, stdout=write)
    os.close(write)
    assert running.communicate(timeout=HANG_S)[1] == b""
    assert running.returncode == code


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--help"], 0),
        (["run", "--help"], 0),
        (["--version"], 0),
        (["nosuch"], 2),
        (["run", "shop.spec", "--max-states", "0"], 2),
        (["run", "nosuch.spec"], 30),
    ],
)
@pytest.mark.parametrize("buffered", ["", "1"])
def test_no_reader_changes_the_exit_code_of_what_click_writes(
    here: Path, args: list[str], code: int, buffered: str
) -> None:
    """Help, the version and usage errors, with both streams closed by their readers."""
    read, write = os.pipe()
    os.close(read)
    env = {**os.environ, "PYTHONUNBUFFERED": buffered}
    running = process(*args, stdout=write, stderr=write, env=env)
    os.close(write)
    running.communicate(timeout=HANG_S)
    assert running.returncode == code


def test_a_closed_standard_output_is_survived(here: Path) -> None:
    """Started without standard output (`>&-`): the exit code is still the verdict's."""
    shell = (
        f"exec {sys.executable} -c 'from specchk.cli.main import main; main()' run shop.spec --model bad >&-"
    )
    done = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, check=False, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (10, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_device_is_an_error_and_no_traceback(here: Path) -> None:
    """Output that cannot be written is reported."""
    with Path("/dev/full").open("wb") as full:
        running = process("run", "shop.spec", stdout=full)
        err = running.communicate(timeout=HANG_S)[1]
    assert running.returncode == 2
    assert b"cannot write the output" in err
    assert b"Traceback" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_device_for_errors_changes_no_exit_code(here: Path) -> None:
    """There is nowhere else to report that they cannot be written."""
    for args, code in ((["nosuch"], 2), (["check", "nosuch.spec"], 30)):
        with Path("/dev/full").open("wb") as full:
            running = process(*args, stderr=full)
            running.communicate(timeout=HANG_S)
        assert running.returncode == code


def test_a_terminal_without_unicode_gets_escapes(here: Path) -> None:
    """A name that the encoding lacks is written as an escape."""
    named = Path("sh\N{LATIN SMALL LETTER L WITH STROKE}p.spec")
    named.write_text(Path("shop.spec").read_text(encoding="utf-8"), encoding="utf-8")
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    running = process("run", str(named), "--model", "bad", env=env)
    out, err = running.communicate(timeout=HANG_S)
    assert running.returncode == 10
    assert rb"sh\u0142p.spec" in out
    assert err == b""


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_a_limit_of_memory_is_no_internal_error(long: Path, engine: str) -> None:
    """With `ulimit -v` a search has too little address space: it answers, or reports what is missing."""
    size = 1 << 30
    before = resource.getrlimit(resource.RLIMIT_AS)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (size, before[1]))

    command = ["run", str(long / "long.spec"), "--engine", engine, "--max-states", "2000"]
    running = process(*command, preexec_fn=limited)
    out, err = running.communicate(timeout=HANG_S)
    assert running.returncode == 20, err.decode()
    assert b"2000 states" in out, out.decode()
    assert b"Traceback" not in err


def test_memory_that_ends_is_inconclusive(long: Path) -> None:
    """Wherever it ends, in a search or before: one sentence, exit 20, no traceback."""
    program = (
        "import specchk.cli.engines as engines\n"
        "def explore(*_, **__): raise MemoryError\n"
        "engines.explore = explore\n"
    )
    running = process("run", str(long / "long.spec"), program=program + PROGRAM)
    out, err = running.communicate(timeout=HANG_S)
    assert (running.returncode, out) == (20, b"")
    assert err.decode() == "inconclusive: out of memory before there was a verdict\n"


def children(process: int) -> list[str]:
    """The unfinished child processes of a process."""
    return Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("args", [
    ("run", "replication.spec", "--model", "three_brokers", "--engine", "symbolic", "--workers", "2"),
    ("run", "replication.spec", "--model", "two_brokers", "--prove", "--workers", "2"),
], ids=lambda part: part[0] if isinstance(part, tuple) else str(part))  # fmt: skip
def test_processes_end_with_a_command_that_is_killed(args: tuple[str, ...], number: signal.Signals) -> None:
    """Those of a search by zones and of a proof: a cancelled build leaves none behind."""
    with process(*args, cwd=SPECS, stderr=subprocess.STDOUT) as running:
        assert running.stdout is not None
        while len(children(running.pid)) < 2:
            assert running.poll() is None, running.stdout.read()
            os.sched_yield()
        running.send_signal(number)
        # All of them have the pipe: its end comes when none is left.
        running.stdout.read()
        assert running.wait() == -number


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("args", [
    ("run", "replication.spec", "--model", "two_brokers", "--prove", "--workers", "2"),
], ids=lambda args: args[0])  # fmt: skip
def test_ctrl_c_ends_a_command_with_its_processes(args: tuple[str, ...]) -> None:
    """The terminal interrupts all of them; whichever it reaches first, there is a report and no traceback."""
    with process(*args, "--json", cwd=SPECS, start_new_session=True) as running:
        while len(children(running.pid)) < 3:  # with Python's resource tracker
            assert running.poll() is None
            os.sched_yield()
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=HANG_S)
        assert running.returncode == 21, err
        assert b"Traceback" not in err
        assert not out or json.loads(out)["verdict"] == "inconclusive"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux binds a process to cores")
def test_a_process_that_has_one_core_counts_one() -> None:
    """As in a container that may use few of the machine's."""
    code = (
        "import os\nfrom specchk.processes import cores\n"
        "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\nprint(cores())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"1\n"


def test_where_nothing_binds_processes_all_cores_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS, which lacks the call."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert cores() == 7
