"""Recordings of simulated runs: whole, numbered, and committed events only."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from replog.sim.recording.record_run import FORMAT, record
from replog.simulate import command


def events(seed: int) -> list[dict]:
    return [json.loads(line) for line in record(seed)[1:-1]]


@pytest.mark.parametrize("seed", range(4))
def test_a_recording_has_a_header_numbered_events_and_a_trailer(seed):
    """Every writer's events are numbered from 1 without a gap, and the last line counts them all."""
    lines = [json.loads(line) for line in record(seed)]
    assert lines[0]["format"] == FORMAT
    assert lines[-1] == {"end": True, "events": len(lines) - 2}
    seen: dict[int, int] = {}
    for event in lines[1:-1]:
        seen[event["at"]] = seen.get(event["at"], 0) + 1
        assert event["seq"] == seen[event["at"]]


def test_what_was_recorded_before_a_crash_is_on_disk_after_it():
    """A log is as long as recorded in its last event; a power loss loses only unflushed records."""
    found = 0
    for seed in range(12):
        last: dict[int, dict] = {}
        died: dict[int, str] = {}
        for event in events(seed):
            at, after = event["at"], event.get("after")
            if event["event"] in ("crash", "power-loss"):
                died[at] = event["event"]
            elif at >= 0 and after:
                if at in died:
                    kept = last[at]["leo"] if died.pop(at) == "crash" else last[at]["flushed"]
                    assert after["leo"] == kept
                    found += 1
                last[at] = after
    assert found > 20


def test_messages_are_sent_before_they_are_counted_and_taken():
    """A fetch is recorded by its sender, then by its server, then by the receiver of the answer."""
    order = {"fetch": 0, "serve": 1, "answer": 2, "apply": 3}
    stages: dict[str, int] = {}
    for event in events(5):
        if event["event"] in order:
            stage = order[event["event"]]
            assert stages.get(event["message"], -1) < stage
            stages[event["message"]] = stage
    assert set(stages.values()) > {1, 3}


def test_the_command_writes_a_file_a_seed(tmp_path):
    """`replog sim --seeds 3..4 --record DIR` writes what `record` returns."""
    result = CliRunner().invoke(command, ["--seeds", "3..4", "--record", str(tmp_path)])
    assert result.exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed-3.ndjson", "seed-4.ndjson"]
    assert (tmp_path / "seed-4.ndjson").read_text().splitlines() == record(4)
