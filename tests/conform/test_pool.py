"""A task in its own process: its messages count, and it delays no other task."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from threading import Event, Thread

import pytest

from specchk.conform.work.forks import run_all


def test_what_a_task_said_before_it_was_killed_counts(tmp_path):
    """A task that ends, two that die and one that is late; none is left behind, the order is kept."""
    over = set()

    def late(say):
        say("begun")
        (tmp_path / "begun").touch()
        Event().wait()

    def clock():
        """A clock whose time is over when everything else is, however long that takes."""
        return 1e9 if len(over) == 3 and (tmp_path / "begun").exists() else 0.0

    def lost(say):
        say("begun")
        raise LookupError("no such thing")

    def gone(say):
        os._exit(3)

    tasks = [late, lambda say: say("all"), lost, gone]
    ended = run_all(tasks, 2, 0.01, lambda number, ended: over.add(number), clock)
    assert [(one.said, one.how) for one in ended] == [
        (["begun"], "late"),
        (["all"], "done"),
        (["begun"], "lost"),
        ([], "lost"),
    ]
    assert ended[2].why.startswith("LookupError: no such thing, test_pool.py line ")
    assert ended[3].why == "exit code 3"


def test_a_process_that_outlives_its_last_word_has_until_its_deadline(tmp_path):
    """A thread that never ends holds it; it has sent everything, so it is done and not late."""

    def outlives():
        threading.main_thread().join()
        (tmp_path / "over").touch()
        Event().wait()

    def task(say):
        Thread(target=outlives).start()
        say("all")

    def clock():
        return 1e9 if (tmp_path / "over").exists() else 0.0

    (ended,) = run_all([task], 1, 0.01, clock=clock)
    assert (ended.said, ended.how) == (["all"], "done")


def test_a_process_that_a_late_task_has_forked_holds_nobody_up(tmp_path):
    """It has the task's pipe open, from which no data will come."""

    def task(say):
        child = os.fork()
        if not child:
            Event().wait()
        say(child)
        (tmp_path / "said").touch()
        Event().wait()

    def clock():
        return 1e9 if (tmp_path / "said").exists() else 0.0

    (ended,) = run_all([task], 1, 0.01, clock=clock)
    os.kill(ended.said[0], signal.SIGKILL)
    assert ended.how == "late"


def test_a_task_that_is_interrupted_prints_nothing(capfd):
    """Ctrl-C reaches all processes of a terminal: the parent reports it, and tracebacks would hide that."""

    def interrupted(say):
        say("begun")
        os.kill(os.getpid(), signal.SIGINT)
        Event().wait()

    (ended,) = run_all([interrupted], 1)
    assert (ended.said, ended.how) == (["begun"], "lost")
    assert ended.why.startswith("KeyboardInterrupt")
    assert capfd.readouterr() == ("", "")


NESTED = """
import os
from threading import Event
from specchk.conform.work.forks import run_all

def inner(say):
    os.write(1, f"{os.getpid()}\\n".encode())
    Event().wait()

def outer(say):
    run_all([inner, inner], 2)

run_all([outer], 1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_the_one_that_waits_for_them(number):
    """Those of tasks, and those that tasks have forked: a cancelled build leaves none behind."""
    with subprocess.Popen([sys.executable, "-c", NESTED], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert len({parent.stdout.readline() for _ in range(2)}) == 2
        parent.send_signal(number)
        # All of them have the pipe: its end comes when none is left.
        assert parent.stdout.read() == ""
    assert parent.returncode == -number


DURING_A_FORK = """
import os, signal
from specchk.conform.work.forks import run_all
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGINT))
(ended,) = run_all([lambda say: say("begun")], 1)
print(ended.how, ended.why.split(",")[0])
"""


def test_ctrl_c_during_a_fork_is_no_exception_that_is_lost():
    """Python calls functions of modules in a new process, and prints what they raise."""
    found = subprocess.run([sys.executable, "-c", DURING_A_FORK], capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("lost KeyboardInterrupt: \n", "")
