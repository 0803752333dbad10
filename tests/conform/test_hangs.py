"""A call of an implementation that does not return is a divergence, and a slow one is not."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from bank import Bank, BankBinding, bank

from specchk.conform.contract import hangs
from specchk.conform.contract.binding import Answer, action, project
from specchk.conform.contract.hangs import contained
from specchk.conform.covers.cover import build_suite
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import run_suite
from specchk.conform.replay.suites import SuiteResult

TICK_S = 0.02


@pytest.fixture(autouse=True)
def _short_ticks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ticks that come soon, where pytest-timeout has no timer."""
    monkeypatch.setattr(hangs, "TICK_S", TICK_S)
    left = signal.setitimer(signal.ITIMER_REAL, 0), signal.signal(signal.SIGALRM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGALRM, left[1])
    signal.setitimer(signal.ITIMER_REAL, *left[0])


class Hasty(BankBinding):
    """A binding whose calls are ended soon."""

    timeout_s: ClassVar[float] = 4 * TICK_S


def result(cls: type[BankBinding], workers: int = 1) -> SuiteResult:
    with contained():
        return run_suite(Replayer(cls(bank().program)), build_suite(bank().program), workers=workers)


def loops() -> None:
    while True:
        pass


def catches() -> None:
    """Catch everything, like a loop of retries."""
    while True:
        with suppress(Exception):
            loops()


def waits() -> None:
    lock = threading.Lock()
    with lock, lock:
        pass


def sleeps() -> None:
    time.sleep(3600)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("stop", [loops, catches, waits, sleeps])
def test_a_step_that_does_not_return_diverges(stop: Callable[[], None], workers: int) -> None:
    """Whatever it does, in this process and in forked ones; the report gives the place."""

    class Stops(Hasty):
        @action("sleep")
        def sleep(self, bank: Bank) -> Answer:
            stop()
            return super().sleep(bank)

    divergence = result(Stops, workers).divergence
    assert divergence is not None
    assert divergence.kind == "hung"
    assert str(divergence.step) == "sleep()"
    name = "loops" if stop is catches else stop.__name__
    assert divergence.reason.startswith(
        f"no return after {Hasty.timeout_s:g} s; it is in `{name}` (test_hangs.py:"
    )


def test_a_projection_that_does_not_return_diverges() -> None:
    """Each method of a binding is watched."""

    class Stops(Hasty):
        @project
        def state(self, bank: Bank) -> dict[str, Any]:
            return super().state(bank) if not bank.days else loops()  # type: ignore[return-value, func-returns-value]

    divergence = result(Stops).divergence
    assert divergence is not None
    assert (divergence.kind, divergence.reason[:27]) == ("hung", "when its state was observed")


def ticks(count: int) -> None:
    """Act as if the timer had ended this often."""
    for _ in range(count):
        signal.raise_signal(signal.SIGALRM)


@pytest.mark.parametrize(("count", "kind"), [(4, None), (5, "hung")])
def test_slow_steps_are_no_hang(count: int, kind: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has the time of its binding; the first tick is within it, and all calls together span many."""
    monkeypatch.setattr(hangs, "TICK_S", 1000.0)

    class Slow(BankBinding):
        timeout_s = 4000.0

        @action("sleep")
        def sleep(self, bank: Bank) -> Answer:
            ticks(count)
            return super().sleep(bank)

    found = result(Slow)
    assert (None if found.divergence is None else found.divergence.kind) == kind
    assert kind or found.tally.taken["sleep"] > 1


def test_the_spec_takes_the_time_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a binding's methods are watched, and none in a debugger."""
    monkeypatch.setattr(hangs, "TICK_S", 1000.0)
    real = Replayer.same

    def same(replayer: Replayer[Any], *given: Any) -> bool:
        ticks(100)
        return real(replayer, *given)

    class Slow(BankBinding):
        timeout_s = 4000.0

        @action("sleep")
        def sleep(self, bank: Bank) -> Answer:
            exec("ticks(100)", {"__name__": "pdb", "ticks": ticks})
            return super().sleep(bank)

    monkeypatch.setattr(Replayer, "same", same)
    assert result(Slow).divergence is None


def test_another_timer_is_left_alone() -> None:
    """pytest-timeout uses the process's only timer; it stays unchanged."""
    handler = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 1000)
    with contained():
        assert signal.getsignal(signal.SIGALRM) not in (signal.SIG_DFL, handler)
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 900
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 900


def test_no_timer_is_left() -> None:
    """An inner use shares that of the outer one."""
    with contained():
        with contained():
            assert signal.getitimer(signal.ITIMER_REAL)[1] == pytest.approx(TICK_S)
        assert signal.getitimer(signal.ITIMER_REAL)[1] == pytest.approx(TICK_S)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_the_command_ends_with_a_divergence(tmp_path: Path) -> None:
    """Exit code 13, and a report with the path to the step, as for any other."""
    here = Path(__file__).parent
    (tmp_path / "bank.spec").write_text((here / "bank.py").read_text().split('"""')[3])
    (tmp_path / "binding.py").write_text(f"""
import sys
sys.path.insert(0, {str(here)!r})
from bank import *
class Stops(BankBinding):
    spec = "bank.spec"
    timeout_s = 1.0
    @action("sleep")
    def sleep(self, bank):
        while bank.days:
            pass
        return super().sleep(bank)
""")
    line = [sys.executable, "-m", "specchk", "conform", str(tmp_path / "binding.py"), "--suite", "edges"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 13, done.stdout + done.stderr
    assert "the implementation did not respond in time" in done.stdout
    assert "no return after 1 s; it is in `sleep` (binding.py:" in done.stdout
