"""Jobs that are ended from outside: by a lost home, or when time is up."""

from __future__ import annotations

from threading import Event, Timer
from typing import Any

import pytest

from specchk.spark import stages
from specchk.spark.stages import Watch, ended_after

HANGS_S = 30.0


class Lost:
    """Homes of which one is no longer there."""

    def is_lost(self) -> bool:
        return True


@pytest.mark.parametrize("how", ["time", "home"])
def test_a_job_that_had_not_begun_is_ended_all_the_same(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark cancels what it has, so that a search without time left would run a whole job."""
    monkeypatch.setattr(stages, "WATCH_S", 0.01)
    ended, calls = Event(), list[int]()

    def end() -> None:
        calls.append(1)
        if len(calls) > 1:
            ended.set()

    lost: Any = Lost()
    with ended_after(0.0, end) if how == "time" else Watch(lost, end):
        assert ended.wait(HANGS_S), "ended once only, before the job began"


def test_nothing_is_ended_after_its_context() -> None:
    """The next job of the search would be ended in its place, and has done nothing."""
    begun, may_end, log = Event(), Event(), list[str]()

    def end() -> None:
        begun.set()
        may_end.wait(HANGS_S)
        log.append("ended")

    with ended_after(0.0, end):
        assert begun.wait(HANGS_S)
        Timer(0.1, may_end.set).start()
    log.append("left")
    assert log == ["ended", "left"]


def test_without_a_limit_nothing_is_ended() -> None:
    """And no thread is there to wait."""
    with ended_after(None, lambda: pytest.fail("ended")):
        pass
