"""Jobs that are ended from outside: by a lost home, or when the time limit is reached."""

from __future__ import annotations

from threading import Event, Timer

import pytest

from specchk.spark import stages
from specchk.spark.stages import Watch

HANGS_S = 30.0


@pytest.mark.parametrize("how", ["time", "home"])
def test_a_job_that_had_not_begun_is_ended_all_the_same(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark cancels only started jobs, so that a search without time left would run a whole job."""
    monkeypatch.setattr(stages, "WATCH_S", 0.01)
    ended, calls = Event(), list[int]()

    def end() -> None:
        calls.append(1)
        if len(calls) > 1:
            ended.set()

    with Watch(end, wait=0.0) if how == "time" else Watch(end, lambda: True):
        assert ended.wait(HANGS_S), "ended once only, before the job began"


def test_nothing_is_ended_after_its_context() -> None:
    """The next job of the search would be ended in its place, and has done nothing."""
    begun, may_end, log = Event(), Event(), list[str]()

    def end() -> None:
        begun.set()
        may_end.wait(HANGS_S)
        log.append("ended")

    with Watch(end, wait=0.0):
        assert begun.wait(HANGS_S)
        Timer(0.1, may_end.set).start()
    log.append("left")
    assert log == ["ended", "left"]


def test_nothing_is_ended_that_is_not_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """The homes are checked repeatedly; as long as none is lost, the job continues."""
    monkeypatch.setattr(stages, "WATCH_S", 0.001)
    looked, looks = Event(), list[int]()

    def is_due() -> bool:
        looks.append(1)
        if len(looks) > 2:
            looked.set()
        return False

    with Watch(lambda: pytest.fail("ended"), is_due) as watch:
        assert looked.wait(HANGS_S)
    assert not watch.has_ended
