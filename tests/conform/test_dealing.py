"""Recordings are dealt to processes by the program that they need, each once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from bank_tracing import BankTracing, moved, recorded

from specchk.conform.contract.recording import Recording
from specchk.conform.recordings.dealing import dealt_by_program


class SizedTracing(BankTracing):
    """As many accounts as the header has."""

    @classmethod
    def constants(cls, recording: Recording) -> Mapping[str, str]:
        return {"Account": str(recording.header["accounts"])}


def written(folder: Path, accounts: list[int]) -> list[Path]:
    """Recordings of the same length, with these numbers of accounts."""
    events = recorded(moved("a1"), moved("a2")).events
    paths = []
    for number, count in enumerate(accounts):
        header = {"format": "bank/1", "accounts": count}
        lines = [header, *events, {"end": True, "events": len(events)}]
        paths.append(folder / f"{number}.ndjson")
        paths[-1].write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return paths


def test_recordings_that_need_the_same_program_are_dealt_together(tmp_path):
    """Each once, and to processes with equal work."""
    dealt = dealt_by_program(SizedTracing, written(tmp_path, [2, 3, 2, 3, 2, 3]), 2)
    assert sorted(map(sorted, dealt)) == [[0, 2, 4], [1, 3, 5]]


def test_a_program_that_most_recordings_need_is_made_twice(tmp_path):
    """A group is cut where it is more than one process's work."""
    dealt = dealt_by_program(SizedTracing, written(tmp_path, [2, 2, 2, 2, 2, 3]), 2)
    assert sorted(number for share in dealt for number in share) == list(range(6))
    assert sorted(map(len, dealt)) == [3, 3]


def test_a_file_that_is_no_recording_is_dealt_too(tmp_path):
    """It is reported where it is explained."""
    paths = [*written(tmp_path, [2, 3]), tmp_path / "missing.ndjson", tmp_path / "empty.ndjson"]
    paths[-1].touch()
    dealt = dealt_by_program(SizedTracing, paths, 2)
    assert sorted(number for share in dealt for number in share) == [0, 1, 2, 3]
    assert dealt_by_program(SizedTracing, paths, 1) == [range(4)]


def test_of_a_recording_only_the_header_is_read_to_deal_it(tmp_path):
    """A broken line behind the header changes nothing."""
    paths = written(tmp_path, [2, 3, 2, 3])
    for path in paths[:2]:
        header, _, rest = path.read_text(encoding="utf-8").partition("\n")
        path.write_text(header + "\n" + "?" + rest[1:], encoding="utf-8")
    dealt = dealt_by_program(SizedTracing, paths, 2)
    assert sorted(map(sorted, dealt)) == [[0, 2], [1, 3]]


def test_a_pipe_is_left_to_its_explainer(tmp_path):
    """It can be read only once."""
    (path,) = written(tmp_path, [2])
    reading, writing = os.pipe()
    try:
        os.write(writing, path.read_bytes())
        os.close(writing)
        pipe = Path(f"/dev/fd/{reading}")
        dealt = dealt_by_program(SizedTracing, [pipe, path], 2)
        assert sorted(number for share in dealt for number in share) == [0, 1]
        assert pipe.read_bytes() == path.read_bytes()
    finally:
        os.close(reading)
