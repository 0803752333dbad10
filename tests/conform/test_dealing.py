"""Recordings are distributed to processes by the program that they need, each once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from bank_tracing import BankTracing, moved, recorded

from specchk.conform.contract.recording import Recording
from specchk.conform.recordings.campaign import shares_of


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


def shared(paths: list[Path], workers: int) -> list[list[int]]:
    return shares_of(SizedTracing, paths, workers)


def test_recordings_that_need_the_same_program_are_together(tmp_path):
    """As far as all processes then have about as many bytes."""
    paths = written(tmp_path, [2, 3, 2, 3, 4, 2])
    assert shared(paths, 2) == [[0, 2, 5], [1, 3, 4]]
    assert shared(paths, 1) == [[0, 1, 2, 3, 4, 5]]
    assert [len(share) for share in shared(written(tmp_path, [2] * 7), 3)] == [3, 2, 2]


def test_a_file_that_is_no_recording_has_a_process_too(tmp_path):
    """It is reported where it is explained."""
    paths = [*written(tmp_path, [2, 3]), tmp_path / "missing.ndjson", tmp_path / "empty.ndjson"]
    paths[-1].touch()
    assert sorted(number for share in shared(paths, 2) for number in share) == [0, 1, 2, 3]


def test_of_a_recording_only_the_header_is_read_to_deal_it(tmp_path):
    """A broken line after the header changes nothing."""
    paths = written(tmp_path, [2, 3, 2, 3])
    for path in paths[:2]:
        header, _, rest = path.read_text(encoding="utf-8").partition("\n")
        path.write_text(header + "\n" + "?" + rest[1:], encoding="utf-8")
    assert shared(paths, 2) == [[0, 2], [1, 3]]


def test_a_pipe_is_left_to_its_explainer(tmp_path):
    """It can be read only once."""
    (path,) = written(tmp_path, [2])
    reading, writing = os.pipe()
    try:
        os.write(writing, path.read_bytes())
        os.close(writing)
        pipe = Path(f"/dev/fd/{reading}")
        assert sorted(number for share in shared([pipe, path], 2) for number in share) == [0, 1]
        assert pipe.read_bytes() == path.read_bytes()
    finally:
        os.close(reading)
