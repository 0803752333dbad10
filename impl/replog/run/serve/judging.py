"""The oracle of the opponent: what a client says that it did, held against the log, and against its promises.

A client says one thing a line; other lines are ignored, and so are words after these:

    promises NAME...            what it is held to, besides the rest: idempotent, exactly-once
    sent VALUE                  a record goes to the library, in the order that it shall have
    acked VALUE                 the library says that it is stored; a value names one record
    got PARTITION OFFSET VALUE  a record reaches the application
    done PARTITION OFFSET       the application has processed it
    committed PARTITION OFFSET  the library says that the position is stored

Theory: S61 to S64 of the project's Kafka reference.  Pure: lines and records in, findings out.

    lost          a record was acknowledged and is not in the log
    twice         idempotent: the log has a record twice
    order         idempotent: acknowledged records are in another order than they were sent
    invented      the application got what is not in the log at this offset
    skipped       a committed position, or a later record, passed a record that was never processed (S62)
    position      a consumer began before its committed position, which was therefore lost (S61)
    repeated      exactly-once: a record was processed twice (S63)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

IDEMPOTENT, EXACTLY_ONCE = "idempotent", "exactly-once"


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that a client has broken, and how."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


@dataclass(slots=True)
class _Reading:
    """What has been said of one partition: values by offset as they came, positions, and processed values."""

    got: dict[int, str] = field(default_factory=dict)
    committed: int = 0
    done: list[str] = field(default_factory=list)


def judge(lines: Iterable[str], logs: Mapping[int, Sequence[str]]) -> list[Finding]:
    """Return what a client did wrong; `logs` have the committed records of each partition."""
    promises: set[str] = set()
    sent: list[str] = []
    acked: list[str] = []
    readings: dict[int, _Reading] = {}
    findings: list[Finding] = []
    for line in lines:
        match line.split():
            case ["promises", *names]:
                promises |= set(names)
            case ["sent", value, *_]:
                sent.append(value)
            case ["acked", value, *_]:
                acked.append(value)
            case ["got" | "done" | "committed" as word, partition, offset, *rest] if (
                partition.isdecimal() and offset.isdecimal()
            ):
                reading = readings.setdefault(int(partition), _Reading())
                findings += _read(word, int(offset), rest, reading, logs.get(int(partition), ()))
    stored = [value for log in logs.values() for value in log]
    findings += [
        Finding("lost", f"{v} was acknowledged, and is not in the log") for v in acked if v not in stored
    ]
    if IDEMPOTENT in promises:
        findings += [Finding("twice", f"{value} is in the log twice") for value in _repeated(stored)]
        for log in logs.values():
            findings += _order(log, [value for value in sent if value in acked])
    for number, reading in readings.items():
        findings += _processed(number, reading, logs.get(number, ()), EXACTLY_ONCE in promises)
    return findings


def _read(
    word: str, offset: int, rest: Sequence[str], reading: _Reading, log: Sequence[str]
) -> Iterable[Finding]:
    """Take one line about a partition."""
    if word == "got":
        value = rest[0] if rest else ""
        reading.got[offset] = value
        if not offset < len(log) or log[offset] != value:
            yield Finding("invented", f"{value} came from offset {offset}, which does not have it")
        if offset < reading.committed:
            yield Finding("position", f"offset {offset} came again, and {reading.committed} was committed")
    elif word == "committed":
        reading.committed = offset
    else:
        reading.done.append(reading.got.get(offset, ""))


def _processed(number: int, reading: _Reading, log: Sequence[str], is_once: bool) -> Iterable[Finding]:
    """Judge what was processed of a partition: all up to the last position or record, and how often."""
    processed = set(reading.done)
    last = max((n for n, value in enumerate(log) if value in processed), default=-1)
    for offset, value in enumerate(log[: max(last + 1, reading.committed)]):
        if value not in processed:
            yield Finding("skipped", f"{value}, offset {offset} of partition {number}, was never processed")
    if is_once:
        for value in _repeated(reading.done):
            yield Finding("repeated", f"{value} was processed twice")


def _order(log: Sequence[str], wanted: Sequence[str]) -> Iterable[Finding]:
    first = {value: len(log) - n for n, value in enumerate(reversed(log))}
    places = [(first[value], value) for value in wanted if value in first]
    for (at, before), (then, value) in pairwise(places):
        if then < at:
            yield Finding("order", f"{before} was sent before {value}, and comes after it")


def _repeated(values: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return sorted({value for value in values if value in seen or seen.add(value)})  # type: ignore[func-returns-value]
