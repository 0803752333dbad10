"""Recordings are distributed to processes by the program that they need, each once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from bank_tracing import BankTracing, moved, recorded

from specchk.conform.contract.recording import Recording
from specchk.conform.recordings.campaign import Dealt, dealt_by_program
from specchk.conform.work.forks import MOST_TOKENS, Claims, each


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


def every(dealt: Dealt) -> list[int]:
    return sorted([*dealt.common, *(number for share in dealt.shares for number in share)])


def test_recordings_that_need_the_same_program_are_dealt_together(tmp_path):
    """Those of the most needed program are common, and the others are shares."""
    dealt = dealt_by_program(SizedTracing, written(tmp_path, [2, 3, 2, 3, 4, 2]), 2)
    assert dealt.common == (0, 2, 5)
    assert sorted(map(sorted, dealt.shares)) == [[1, 3], [4]]


def test_of_one_program_all_recordings_are_common(tmp_path):
    """However long each takes, all processes end at the same time."""
    assert dealt_by_program(SizedTracing, written(tmp_path, [2] * 5), 3) == Dealt(((),) * 3, (0, 1, 2, 3, 4))


def test_a_group_that_is_more_than_a_share_is_cut(tmp_path):
    """Its program is built by each process that has a piece of it."""
    dealt = dealt_by_program(SizedTracing, written(tmp_path, [2] * 8 + [3] * 7), 4)
    assert dealt.common == tuple(range(8))
    assert [len(share) for share in dealt.shares].count(0) == 1
    assert every(dealt) == list(range(15))


@pytest.mark.parametrize("count", [0, 1, 7, MOST_TOKENS, MOST_TOKENS + 1, 3 * MOST_TOKENS + 5])
def test_each_number_is_claimed_once(count):
    """By two alternating readers, and by a late one."""
    claims = Claims(count)
    readers = [iter(claims), iter(claims)]
    taken = []
    while readers:
        for reader in list(readers):
            number = next(reader, None)
            if number is None:
                readers.remove(reader)
            else:
                taken.append(number)
    assert sorted(taken) == list(range(count))
    assert list(claims) == []
    claims.close()


def test_processes_share_what_is_common():
    """A recording taken by one is never given to the other, whatever the scheduling."""
    claims = Claims(400)
    parts = each([partial(list, claims)] * 2, 2)
    claims.close()
    assert sorted(number for part in parts for number in part) == list(range(400))


def test_a_file_that_is_no_recording_is_dealt_too(tmp_path):
    """It is reported where it is explained."""
    paths = [*written(tmp_path, [2, 3]), tmp_path / "missing.ndjson", tmp_path / "empty.ndjson"]
    paths[-1].touch()
    assert every(dealt_by_program(SizedTracing, paths, 2)) == [0, 1, 2, 3]
    assert dealt_by_program(SizedTracing, paths, 1) == Dealt(((0, 1, 2, 3),), ())


def test_of_a_recording_only_the_header_is_read_to_deal_it(tmp_path):
    """A broken line after the header changes nothing."""
    paths = written(tmp_path, [2, 3, 2, 3])
    for path in paths[:2]:
        header, _, rest = path.read_text(encoding="utf-8").partition("\n")
        path.write_text(header + "\n" + "?" + rest[1:], encoding="utf-8")
    dealt = dealt_by_program(SizedTracing, paths, 2)
    assert (dealt.common, sorted(dealt.shares)) == ((0, 2), [(), (1, 3)])


def test_a_pipe_is_left_to_its_explainer(tmp_path):
    """It can be read only once."""
    (path,) = written(tmp_path, [2])
    reading, writing = os.pipe()
    try:
        os.write(writing, path.read_bytes())
        os.close(writing)
        pipe = Path(f"/dev/fd/{reading}")
        dealt = dealt_by_program(SizedTracing, [pipe, path], 2)
        assert every(dealt) == [0, 1]
        assert pipe.read_bytes() == path.read_bytes()
    finally:
        os.close(reading)


def test_a_recording_that_is_removed_meanwhile_is_left_to_its_explainer(tmp_path, monkeypatch):
    """Who lists a folder of recordings may do so while they are written again."""
    paths = written(tmp_path, [2, 3])
    paths[0].unlink()
    monkeypatch.setattr(Path, "exists", lambda path: path in paths)
    assert sorted(every(dealt_by_program(SizedTracing, paths, 2))) == [0, 1]
