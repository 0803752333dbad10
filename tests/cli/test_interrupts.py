"""Ctrl-C at any point of a process, from the first line of the program to its last: no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hang import HANG_S

# By package: arguments, the first words of their output, the code of an interrupt, and an early import.
PROGRAMS = {
    "specchk": (["run", "shop.spec", "--model", "good"], b"holds: shop, model good", 21, "click"),
    "replog": (["sim", "--seed", "1"], b"seed 1", 130, "click"),
}
# An importer that Python asks first; `at` is called for one module, or by an object that is then collected.
WATCHED = """
import os, signal, sys
class Collected:
    def __del__(self):
        at()
class Watching:
    @staticmethod
    def find_spec(name, *_):
        if name == {module!r} and not met:
            met.append(name)
            {point}
met = []
sys.meta_path.insert(0, Watching)
def at():
    {act}
"""
HERE = "os.kill(os.getpid(), signal.SIGINT)"
MAIN = "from {package}.__main__ import main\nmain()\n"


def started(package: str, before: str = "", **options: object) -> subprocess.Popen[bytes]:
    """A program as its user starts it, after some lines of Python."""
    pipes: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    text = before + MAIN.format(package=package)
    return subprocess.Popen([sys.executable, "-c", text, *PROGRAMS[package][0]], **pipes)  # type: ignore[call-overload,no-any-return]


def watched(package: str, point: str = "at()", act: str = HERE) -> str:
    return WATCHED.format(module=PROGRAMS[package][3], point=point, act=act)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("package", PROGRAMS)
@pytest.mark.parametrize("point", ["at()", "Collected()"])
def test_ctrl_c_while_the_program_is_imported_is_a_line(package: str, point: str) -> None:
    """Also where Python would print an exception and drop it, as in its own locks."""
    out, err = (running := started(package, watched(package, point))).communicate(timeout=HANG_S)
    assert (running.returncode, out, err.strip()) == (PROGRAMS[package][2], b"", b"interrupted")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("package", PROGRAMS)
def test_an_ignored_ctrl_c_stays_ignored(package: str) -> None:
    """In the background of a script, where the shell has processes ignore it."""
    ignore = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    last = f"import atexit, os\natexit.register(lambda: {HERE})\n"
    out, err = (running := started(package, ignore + watched(package) + last)).communicate(timeout=HANG_S)
    assert out.startswith(PROGRAMS[package][1])
    assert (running.returncode, err) == (0, b"")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("package", PROGRAMS)
def test_ctrl_c_while_the_interpreter_ends_is_silent(package: str) -> None:
    """All output was written; the process is ended by the signal."""
    # Registered first, so called last.
    last = f"import atexit, os, signal\natexit.register(lambda: {HERE})\n"
    out, err = (running := started(package, last)).communicate(timeout=HANG_S)
    assert out.startswith(PROGRAMS[package][1])
    assert (running.returncode, err) == (-signal.SIGINT, b"")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("package", PROGRAMS)
def test_ctrl_c_at_many_points_prints_no_traceback(package: str) -> None:
    """In steps of 10 ms from the first import of the program: a line or a report, and a documented exit code.

    Not before it: Python's own start answers Ctrl-C with a traceback, and no program can change that.
    """
    _, words, code, _ = PROGRAMS[package]
    for wait_ms in range(0, 301, 10):
        ours, theirs = os.pipe()
        told = watched(package, act=f"os.write({theirs}, b'.')")
        running = started(package, told, pass_fds=(theirs,))
        os.close(theirs)
        assert os.read(ours, 1) == b".", running.communicate()
        os.close(ours)
        time.sleep(wait_ms / 1000)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=HANG_S)
        if running.returncode == code:
            assert err.strip() == b"interrupted" or b"it was interrupted" in out, (wait_ms, out, err)
        else:
            assert running.returncode in (0, -signal.SIGINT), (wait_ms, running.returncode, out, err)
            assert out.startswith(words)
        assert err.strip() in (b"", b"interrupted"), wait_ms


ENDED = {
    "schema": "specchk.ended/1", "verdict": "inconclusive", "reason": "it was interrupted", "exit_code": 21,
}  # fmt: skip
LOCKS = Path(__file__).parents[2] / "docs" / "lock_service"
# A program with a function that is interrupted at its first call, with all processes of the command.
INTERRUPTED = """
import importlib, os, signal
module = importlib.import_module({module!r})
before = getattr(module, {name!r})
def interrupted(*args, **named):
    setattr(module, {name!r}, before)
    os.kill(0, signal.SIGINT)
    return before(*args, **named)
setattr(module, {name!r}, interrupted)
"""
COMMANDS = {
    "run": ["run", "shop.spec", "--model", "good"],
    "simulate": ["simulate", "shop.spec", "--model", "good"],
    "test": ["test", "shop.spec"],
    "conform": ["conform", str(LOCKS / "binding.py")],
    "validate": ["validate", str(LOCKS / "tracing.py"), str(LOCKS / "leases.ndjson"), "--partial"],
}


def json_after(command: str, before: str) -> tuple[int, object, bytes]:
    """The exit code, the object on standard output and the text on standard error."""
    text = before + MAIN.format(package="specchk")
    words = [sys.executable, "-c", text, *COMMANDS[command], "--json"]
    kept = os.environ | {"XDG_CACHE_HOME": str(Path("cache").absolute())}  # else the program is not made
    ended = subprocess.run(
        words, capture_output=True, timeout=HANG_S, check=False, start_new_session=True, env=kept
    )
    return ended.returncode, json.loads(ended.stdout), ended.stderr.strip()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("specchk.cli.groups", "takes"),
        ("specchk.lang.frontend", "load"),
        ("specchk.compile.instantiate", "simplify"),
        ("specchk.meaning.initial", "plan"),
    ],
)
def test_ctrl_c_before_there_is_a_report_gives_json(command: str, module: str, name: str) -> None:
    """While options are declared, the spec is read, or its program is made: an object with the reason."""
    code, found, err = json_after(command, INTERRUPTED.format(module=module, name=name))
    assert code == 21
    assert err in (b"", b"interrupted")
    if err:
        assert found == ENDED
    else:  # the search had begun, and has its own report
        assert isinstance(found, dict)
        assert (found["verdict"], found["reason"]) == ("inconclusive", "it was interrupted")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", COMMANDS)
def test_memory_that_ends_before_there_is_a_report_gives_json(command: str) -> None:
    """As an interrupt does."""
    full = "def full(*_):\n    raise MemoryError\nimport specchk.lang.frontend as f\nf.load = full\n"
    code, found, _ = json_after(command, full)
    reason = "out of memory before there was a verdict"
    assert (code, found) == (20, ENDED | {"reason": reason, "exit_code": 20})


@pytest.mark.usefixtures("here")
def test_ctrl_c_after_the_report_adds_no_second_object() -> None:
    """The output was written: it remains one object."""
    code, found, err = json_after("run", INTERRUPTED.format(module="sys", name="exit"))
    assert isinstance(found, dict)
    assert (code, found["verdict"], set(err.split())) == (21, "holds", {b"interrupted"})


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("package", PROGRAMS)
def test_the_installed_command_has_this_entry(package: str) -> None:
    """Its script calls the function that the other tests call."""
    script = Path(sys.executable).with_name(package).read_text(encoding="utf-8")
    assert f"from {package}.__main__ import main" in script
