"""Recordings in which log starts move are behaviours of their spec, and those with a flaw are not."""

from __future__ import annotations

import json
from functools import cache
from itertools import product

import pytest
from click.testing import CliRunner

from laws.sources import ROOT
from replog.core.broker import deletion, follower, isr, leader
from replog.core.log.epochs import EpochCache
from replog.core.log.logview import LogView
from replog.sim.recording.start_run import WEATHERS, record_starts
from replog.store.partition import PartitionLog
from specchk.cli.commands.validate import command
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.known_bad import BadCode, planted
from specchk.conform.contract.load import load_tracing
from specchk.conform.contract.recording import parse
from specchk.conform.contract.tracing import Tracing
from specchk.conform.recordings.validate import Explained, Validator
from specchk.lang.frontend import check

TRACING = ROOT / "conformance" / "log_start" / "start_tracing.py"
PROFILES = tuple(WEATHERS)


@cache
def tracing() -> type[Tracing]:
    return load_tracing(TRACING)


@cache
def validator(constants: tuple[tuple[str, str], ...]) -> Validator:
    checked = check(str(ROOT / "spec" / "recorded_start.spec"))
    return Validator(instantiate(checked, tracing().model, dict(constants)))


def explained(lines: list[str]) -> Explained:
    recording = parse("a run", lines)
    one = validator(tuple(sorted(tracing().constants(recording).items())))
    return one.explain(tracing()(one.program, recording), recording)


@pytest.mark.parametrize(("profile", "seed"), list(product(PROFILES, range(4))))
def test_a_run_that_deletes_records_is_a_behaviour_of_the_spec(profile, seed):
    """Every event is explained, by few candidates, and some log starts have moved."""
    lines = record_starts(seed, profile)
    found = explained(lines)
    assert found.blocked is None
    assert found.consumed == len(lines) - 2 > 50  # all but the header and the trailer
    assert found.most <= 16
    starts = {json.loads(line).get("after", {}).get("start", 0) for line in lines}
    assert len(starts) > 3


def test_the_same_seed_writes_the_same_recording():
    """A recording is a function of its profile and seed, byte for byte."""
    assert record_starts(3, "delete") == record_starts(3, "delete") != record_starts(3, "retain")


FLAWS = {
    "a client deletes what is not committed": BadCode(
        "", deletion.on_request, "offset <= log.hw", "offset <= log.leo", ""
    ),
    "a client is answered at once": BadCode(
        "", deletion.low_watermark, "min((state.log.log_start, *others))", "state.log.log_start", ""
    ),
    "a log start is not written": BadCode(
        "", deletion.advance_start, "out.append(AdvanceStart(state.log.log_start))", "pass", ""
    ),
    "the epoch of the log start is forgotten": BadCode(
        "", EpochCache.truncate_from_start, "if covering:", "if False:", ""
    ),
    "the leader's log start is not adopted": BadCode(
        "", follower.on_fetch_reply, "advance_start(state, reply.log_start, out)", "pass", ""
    ),
    "a follower keeps what does not touch the leader's log": BadCode(
        "", follower.on_list_offsets, "elif reply.offset > state.log.leo:", "elif False:", ""
    ),
    "a fetch below the log start is served": BadCode(
        "",
        leader.check_fetch,
        "if not log.log_start <= request.fetch_offset",
        "if not 0 <= request.fetch_offset",
        "",
    ),
    "who joins need not have the log start": BadCode(
        "", isr.may_join, "remote.log_start < state.log.log_start", "False", ""
    ),
    "HW stays below a log start": BadCode("", LogView.__init__, "max(hw, log_start)", "hw", ""),
    "the store forgets its log start": BadCode(
        "", PartitionLog.advance_log_start, "offset <= self.log_start", "True", ""
    ),
}
# The profile and seed of a recording that shows it, and the event that is not explained: the flawed one, or
# the first that shows the state of a broker again which has restarted.
SEEDS = {
    "a client deletes what is not committed": ("delete", 5, "delete"),
    "a client is answered at once": ("delete", 0, "delete"),
    "a log start is not written": ("delete", 2, "follow"),
    "the epoch of the log start is forgotten": ("delete", 0, "delete"),
    "the leader's log start is not adopted": ("delete", 0, "apply"),
    "a follower keeps what does not touch the leader's log": ("delete", 0, "apply"),
    "a fetch below the log start is served": ("delete", 1, "serve"),
    "who joins need not have the log start": ("delete", 5, "serve"),
    "HW stays below a log start": ("delete", 4, "follow"),
    "the store forgets its log start": ("retain", 0, "follow"),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_run_of_a_flawed_implementation_is_not_explained(flaw):
    """Each flaw leaves, for some seed, a recording that is not explained, and the event is the right one."""
    profile, seed, event = SEEDS[flaw]
    with planted(FLAWS[flaw]):
        lines = record_starts(seed, profile)
    blocked = explained(lines).blocked
    assert blocked is not None
    assert blocked.event["event"] == event
    assert explained(record_starts(seed, profile)).blocked is None


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
def test_a_campaign_of_log_starts_is_explained_with_power(tmp_path, profile):
    """Fifty seeds: no false alarm, every event except the other profile's, corrupted copies rejected."""
    for seed in range(50):
        lines = "\n".join(record_starts(seed, profile))
        (tmp_path / f"seed-{seed}.ndjson").write_text(lines, encoding="utf-8")
    result = CliRunner().invoke(
        command, [str(TRACING), str(tmp_path), "--partial", "--json", "--workers", "1"]
    )
    found = json.loads(result.output)
    others = {"delete": 1, "retain": 2}[profile]
    assert (result.exit_code, found["accepted"], found["kinds_seen"]) == (0, 50, 18 - others)
    assert found["power"] >= 0.95
