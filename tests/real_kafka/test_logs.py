"""Logs of real brokers, explained by kafka_recorded.spec; and with one line changed, refused.

`recording/chaos.log.gz` is the beginning of a run of bench/kafka/chaos.py on 4.4.0 (seed 120), without the
lines that nothing is read from; each line begins with its node.  It has elections, a reassignment, a
truncation and changes of the ISR.
"""

from __future__ import annotations

import gzip
import re
from functools import cache, partial
from pathlib import Path

import pytest
from conformance.apache_kafka.logs import Unread, read_logs
from conformance.apache_kafka.recordings import TRACING, write_recordings
from conformance.apache_kafka.settings import PATTERN, RECORDED

from laws.sources import ROOT
from specchk.conform.contract.load import load_tracing
from specchk.conform.recordings.explainer import CampaignOptions, RecordingExplainer
from specchk.lang.frontend import check

RECORDING = Path(__file__).parent / "recording" / "chaos.log.gz"


def lines() -> list[str]:
    return gzip.decompress(RECORDING.read_bytes()).decode().splitlines()


@cache
def explainer() -> RecordingExplainer:
    cls = load_tracing(TRACING)
    checked = check(str(TRACING.parent / cls.spec))
    return RecordingExplainer(cls, checked, CampaignOptions(power=False))


def result(changed: list[str], folder: Path):
    """The logs as files of their nodes, read and explained."""
    for node in ("1", "2", "3", "101"):
        own = [line.partition(" ")[2] for line in changed if line.startswith(f"{node} ")]
        (folder / f"{node}.log").write_text("\n".join(own), encoding="utf-8")
    (into,) = write_recordings(sorted(folder.glob("*.log")), folder / "recordings", 0.02)
    return explainer().result(into.name, partial(explainer().cls.read, into))


def test_real_logs_are_explained(tmp_path):
    explained = result(lines(), tmp_path)
    assert (explained.bad, explained.blocked) == ("", None)
    assert explained.consumed == explained.events > 300


def plus(number: int):
    """Add to the number that a pattern has last."""
    return lambda found: f"{found[1]}{int(found[2]) + number}"


# What is wrong, the line (the last one that has the pattern), and what replaces the pattern; None drops it.
CORRUPTIONS = {
    "a fetch is noted for another follower": (
        r"(Recorded replica )(\d+)",
        lambda found: f"{found[1]}{5 - int(found[2])}",
    ),
    "a fetch is noted at another offset": (r"(Recorded replica .* position )(\d+)", plus(1)),
    "a truncation is not done": (r"Truncating partition .* due to leader epoch", None),
    "a truncation goes further": (r"(Truncating partition .*TruncationState\(offset=)(\d+)", plus(-1)),
    "the leader's HW is too high": (r"(High watermark updated from .* to \(offset=)(\d+)", plus(1)),
    "a follower's HW is too high": (r"(updated replica high watermark to )(\d+)", plus(1)),
    "a fetch has another offset": (r"(fetchData=.*fetchOffset=)(\d+)", plus(1)),
    "a fetch has another last epoch": (r"(lastFetchedEpoch=Optional\[)(\d+)", plus(1)),
    "an answer has another HW": (r"(Received .* and leader hw )(\d+)", plus(1)),
    "an answer has one record more": (r"(Follower has replica log end offset )(\d+)(?= after)", plus(1)),
    "a leader has another ISR": (
        r"(Leader orders-0 .*ISR \[1,)(2)",
        lambda found: found[1].removesuffix(","),
    ),
    "a broker follows in another epoch": (r"(Follower orders-0 .*starts at leader epoch )(\d+)", plus(1)),
    "a record is not appended": (r"handler-\d\] .*Appended message set", None),
    "a broker begins with more": (
        r"(Follower orders-0 .* from offset )(\d+)(?= with partition epoch [1-9].*Previous leader None)",
        plus(1),
    ),
    "the controller grants another ISR": (
        r"(partition change for .*isr: \[\d, \d\] -> \[1, 2)(, 3)",
        lambda found: found[1],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_changed_line_is_refused(name, tmp_path):
    pattern, replace = CORRUPTIONS[name]
    changed = lines()
    number = max(n for n, line in enumerate(changed) if re.search(pattern, line))
    line = changed[number]
    changed[number] = re.sub(pattern, replace, line) if replace else ""
    assert changed[number] != line
    refused = result(changed, tmp_path)
    assert refused.bad or refused.blocked is not None


def test_the_page_has_the_logging_that_is_read():
    page = (ROOT / "docs" / "check-your-cluster.md").read_text(encoding="utf-8")
    assert f'pattern="{PATTERN}"' in page
    for name, level in RECORDED.items():
        assert f'<Logger name="{name}" level="{level}"/>' in page


def test_logs_that_begin_too_late_are_refused():
    late = {"1.log": ["[2026-11-29 17:00:00,000] INFO [main] [Broker id=1] starting (state.change.logger)"]}
    with pytest.raises(Unread, match="begin the logs before that"):
        read_logs(late, "orders-0", 0.02)
    with pytest.raises(Unread, match="no line names its node"):
        read_logs({"1.log": ["hello"]}, "orders-0", 0.02)
