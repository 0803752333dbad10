"""The pipes to a process: how long an answer is awaited."""

from __future__ import annotations

from itertools import count

import pytest

from conform.test_adapter import stubborn
from specchk.conform.adapter import link
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.suites import run_product


def test_a_pause_of_the_machine_is_not_a_hang(monkeypatch: pytest.MonkeyPatch):
    """Both processes are stopped meanwhile; the clock continues."""
    clock = count(step=100.0)
    monkeypatch.setattr(link, "monotonic", lambda: next(clock))
    binding = stubborn("snapshot", timeout_s=60.0, start_timeout_s=60.0)
    assert run_product(Replayer(binding)).divergence is None
