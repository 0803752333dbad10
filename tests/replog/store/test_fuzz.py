"""Random damage to random folders, checked by an oracle; planted flaws of the store, which it must find."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
import store_cases

from replog.store.files.findings import Kind
from replog.store.partition import PartitionLog
from replog.store.recovery import recovery, survey
from replog.store.recovery.survey import Survey
from replog.store.segments import epochs, segment
from replog.store.segments.segment import Segment

FIRST_OF_SLOW = 1_000_000


def fates(numbers: range) -> list[tuple[int, str]]:
    return [(number, store_cases.run_case(number)[0]) for number in numbers]


@cache
def sample() -> list[tuple[int, str]]:
    return fates(range(250))


def failures(cases: list[tuple[int, str]]) -> list[str]:
    return [
        f"python bench/replog/fuzz.py --case {number}    {fate}" for number, fate in cases if fate[0] == "!"
    ]


def test_no_random_damage_breaks_a_promise() -> None:
    """A sample: no wrong data, no silently different epochs, no empty reads, no synced byte destroyed."""
    assert failures(sample()) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_no_random_damage_breaks_a_promise_many_times(part: int) -> None:
    """Some thousands of other cases."""
    start = FIRST_OF_SLOW + part * 400
    assert failures(fates(range(start, start + 400))) == []


def test_the_cases_are_of_many_kinds() -> None:
    """Folders that open, partitions that stay closed, refusals; with several kinds of damage each."""
    assert {"read", "closed", "closed and read", "read and read in part"} <= {fate for _, fate in sample()}


@contextmanager
def planted(owner: Any, name: str, value: object) -> Iterator[None]:
    before = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
        store_cases.truth.cache_clear()


def destroys(fs: Any, directory: str, name: str) -> str:
    fs.unlink(f"{directory}/{name}")
    return name


def believes_sizes(self: Segment) -> None:
    self._is_checked = True


def cuts_what_is_damaged(self: Survey, kind: Kind, file: str, text: str) -> None:
    self.findings.append(survey.Finding(Kind.TAIL if kind is Kind.DAMAGE else kind, file, text))
    self.cut += [s for s in self.segments if s.name == file and s not in self.cut and kind is Kind.DAMAGE]


def without_sums(self: Segment, sums: object) -> object:
    data = [segment.read_file(self._fs, self._path(suffix)) for suffix in segment.INDEX_SUFFIXES]
    index, times = segment.OffsetIndex.decode(data[0], 1 << 40), segment.TimeIndex.decode(data[1])
    return None if index is None or times is None else (index, times)


FLAWS: tuple[tuple[str, Any, str, Callable[..., object]], ...] = (
    ("segments are never compared", Segment, "verify", believes_sizes),
    ("what is set aside is gone", recovery, "set_aside", destroys),
    ("tails are cut without a copy", recovery, "keep_copy", lambda *_: None),
    ("damage is cut like a tail", Survey, "note", cuts_what_is_damaged),
    ("the chain is not compared", Segment, "_compare", lambda self: ""),
    ("headers always vouch", survey, "has_chain", lambda *_: True),
    ("epochs of a tail are believed", epochs.EpochWalk, "_fits", lambda self, header: True),
    ("epochs of the checkpoint are believed", survey, "between", lambda entries, start, end: tuple(entries)),
    ("an index of any content is taken", Segment, "_load_indexes", without_sums),
    ("a start believes batches without their CRCs", epochs, "check_crc", lambda *_: None),
    ("a cut that the manifest does not know", PartitionLog, "_note_cut", lambda self, left: None),
)


@pytest.mark.parametrize(("owner", "name", "value"), [f[1:] for f in FLAWS], ids=[f[0] for f in FLAWS])
def test_the_oracle_finds_a_planted_flaw(owner: Any, name: str, value: Callable[..., object]) -> None:
    """Each of these would accept damage; some hundred cases show it."""
    with planted(owner, name, value):
        found = next((number for number in range(1500) if failures(fates(range(number, number + 1)))), None)
    assert found is not None
