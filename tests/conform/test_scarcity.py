"""Where the system gives specchk no descriptor or process, there is no verdict about an implementation."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from conform.bank import BankBinding, bank
from conform.test_adapter import stubborn
from hang import HANG_S
from specchk import guardian
from specchk.conform.contract.binding import BindingError, action
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.suites import run_product
from specchk.processes import Starved

ROOT = Path(__file__).resolve().parents[2]
RUN = [sys.executable, "-m", "specchk", "conform", "--json"]


def conformed(binding: str, descriptors: int) -> subprocess.CompletedProcess[str]:
    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (descriptors, descriptors))
    return subprocess.run(
        [*RUN, binding], cwd=ROOT, capture_output=True, text=True, preexec_fn=limit, check=False
    )


@pytest.mark.parametrize("binding", ["two_phase", "lock_service"])
@pytest.mark.parametrize("descriptors", [9, 11, 13, 15, 17, 19, 21, 60])
def test_few_descriptors_are_no_divergence(binding: str, descriptors: int) -> None:
    """In this process and in one of its own, wherever they run out."""
    if binding == "lock_service" and which("node") is None:
        pytest.skip("there is no node")
    end = conformed(f"docs/{binding}/binding.py", descriptors)
    assert end.returncode in ({0} if descriptors == 60 else {0, 20}), end.stdout + end.stderr
    if end.returncode == 20:
        assert "inconclusive: Too many open files before there was a verdict" in end.stderr


@pytest.mark.parametrize("place", ["guardian", "process"])
def test_no_process_for_the_implementation_is_no_divergence(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`EAGAIN` of a fork, at the first start and after some steps."""
    whole = subprocess.Popen

    class Refusing(whole):  # type: ignore[type-arg, misc, valid-type]
        def __init__(self, command: Any, *args: Any, **options: Any) -> None:
            if (command[0] == guardian.SHELL) == (place == "guardian"):
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            super().__init__(command, *args, **options)

    binding = stubborn("")
    started = binding.start()
    monkeypatch.setattr(subprocess, "Popen", Refusing)
    with pytest.raises(Starved):
        run_product(Replayer(stubborn("")))
    started._forget()
    with pytest.raises(Starved):  # a new one, in the middle of a suite
        run_product(Replayer(binding))


def test_descriptors_that_run_out_in_an_implementation_are_this_process_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with memory, it may be either; a socket's `EAGAIN` is the implementation's."""

    class Opening(BankBinding):
        code = errno.EMFILE

        @action("transfer")
        def transfer(self, *_: Any) -> Any:
            raise OSError(self.code, os.strerror(self.code))

    with pytest.raises(OSError, match="Too many open files"):
        run_product(Replayer(Opening(bank().program)))
    Opening.code = errno.EAGAIN
    found = run_product(Replayer(Opening(bank().program))).divergence
    assert found is not None
    assert found.kind == "raised"


def test_a_build_ends_with_its_children_and_keeps_little_of_its_output(tmp_path: Path) -> None:
    """At its time limit, and when it is done; of much output its end is shown."""
    number = tmp_path / "number"
    child = f"sleep 3600 & echo $! > {number};"
    late = stubborn("", build=("/bin/sh", "-c", f"{child} yes; true"), build_timeout_s=1.0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BindingError, match=r"not built: no end after 1 s\n  y\n"):
        late.start()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kilobytes
    assert has_ended(int(number.read_text()))
    stubborn("", build=("/bin/sh", "-c", f"{child} echo built")).start()._forget()
    assert has_ended(int(number.read_text()))
    failed = stubborn("", build=("/bin/sh", "-c", f"{child} seq 100000; exit 3"))
    with pytest.raises(BindingError, match=r"exit code 3\n  99989\n[^x]*  100000"):
        failed.start()
    assert has_ended(int(number.read_text()))


def has_ended(number: int) -> bool:
    """Whether a process ends soon; one whose end nobody waits for has no words."""
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        try:
            if not Path(f"/proc/{number}/cmdline").read_bytes():
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False
