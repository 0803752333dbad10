"""replog's recordings are behaviours of its spec, and those of a replog with a flaw are not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache
from unittest.mock import patch

import pytest
from click.testing import CliRunner

from laws.sources import ROOT
from replog.core.broker import follower, isr, leader
from replog.core.controller import election
from replog.core.log import epochs, logview
from replog.core.protocol import CURRENT, MaximalIsr, Protocol
from replog.core.types import Error
from replog.sim.recording.record_run import record
from specchk.cli.commands.validate import command
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.recording import parse
from specchk.conform.recordings.validate import Explained, Validator
from specchk.lang.frontend import check
from tracing import ReplogTracing

TRACING = str(ROOT / "conformance" / "tracing.py")


@cache
def validator(constants: tuple[tuple[str, str], ...]) -> Validator:
    checked = check(str(ROOT / "spec" / "recorded.spec"))
    return Validator(instantiate(checked, ReplogTracing.model, dict(constants)))


def explained(lines: list[str]) -> Explained:
    recording = parse("a run", lines)
    constants = tuple(sorted(ReplogTracing.constants(recording).items()))
    one = validator(constants)
    return one.explain(ReplogTracing(one.program, recording), recording)


@pytest.mark.parametrize("seed", range(8))
def test_a_run_with_faults_is_a_behaviour_of_the_spec(seed):
    """Every event is explained, by few candidates."""
    lines = list(record(seed))
    found = explained(lines)
    assert found.blocked is None
    assert found.consumed == len(lines) - 2 > 50  # all but the header and the trailer
    assert found.most <= 16


@pytest.mark.system
def test_a_report_has_its_sets_in_the_words_of_the_spec_in_every_process(tmp_path):
    """For any hashes of names; this event is read as two steps with a set of brokers."""
    lines = record(9)
    spoiled = json.loads(lines[76])
    assert spoiled["late"] == spoiled["gone"] == [1, 2]
    spoiled["after"]["hw"] = 100
    (tmp_path / "one.ndjson").write_text("\n".join([*lines[:76], json.dumps(spoiled), *lines[77:]]) + "\n")
    calls, reports = "pass_time(b1, {b2, b3}) then shrink_isr_by(b1, {b2, b3})", []
    for seed in ("1", "4"):  # with opposite orders in sets of these names
        done = subprocess.run(
            [sys.executable, "-m", "specchk", "validate", TRACING, "one.ndjson", "--json", "--no-power"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "interp"), "PYTHONHASHSEED": seed},
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        report = json.loads(done.stdout)
        assert calls in report["blocked"][0]["calls"]
        reports.append({**report, "seconds": 0, "events_per_second": 0})
    assert all(report == reports[0] for report in reports)


def test_the_same_seed_writes_the_same_recording():
    """A recording is a function of its seed, byte for byte."""
    assert record(3) == record(3) != record(4)


def _hw_without_min(state, reply):
    state.log.hw = max(reply.high_watermark, 0)


def _cuts_one_less(state, end, right=follower.truncation_point):
    offset, is_last = right(state, end)
    return min(offset + 1, state.log.leo), is_last


def _counts_the_response(state, remote, offset, leo, now_ms, right=isr.note_fetch):
    return right(state, remote, min(offset + 1, leo), leo, now_ms)


def _hw_falls(log, offset):
    target = min(offset, log.leo)
    moved, log.hw = target != log.hw, target
    return moved


def _no_bump(old, *others, right=election.next_image):
    return replace(right(old, *others), leader_epoch=max(old.leader_epoch, 0))


FLAWS = {
    "truncation off by one": lambda: patch.object(follower, "truncation_point", _cuts_one_less),
    "remote LEO is the response's end": lambda: patch.object(isr, "note_fetch", _counts_the_response),
    "HW is the own LEO: ack before HW": lambda: patch.object(
        leader, "candidate_hw", lambda state, leading, now_ms: state.log.leo
    ),
    "HW falls on a leader": lambda: patch.object(logview.LogView, "raise_hw", _hw_falls),
    "min.insync.replicas unchecked": lambda: patch.object(leader, "check_produce", lambda *_: Error.NONE),
    "epoch cache not truncated": lambda: patch.object(
        epochs.EpochCache, "truncate_from_end", lambda cache_, offset: False
    ),
    "election without a new epoch": lambda: patch.object(election, "next_image", _no_bump),
    "leaders propose who is fenced": lambda: patch.object(isr, "is_eligible", lambda *_: True),
}
OTHER_RULES = {
    "joins without the epoch's start": replace(CURRENT, expand_needs_leso=False),
    "joins below HW": replace(CURRENT, expand_needs_hw=False),
    "remote LEOs kept over a missed epoch": replace(CURRENT, keeps_remote_leo=True),
    "HW over the committed ISR": replace(CURRENT, maximal_isr=MaximalIsr.NONE),
    "HW moves under min ISR": replace(CURRENT, hw_under_min_isr=True),
    "HW from a diverging answer": replace(CURRENT, hw_on_diverge=True),
    "HW stays when the ISR changes": replace(CURRENT, hw_on_alter_ok=False),
    "an answer of another epoch is taken": replace(CURRENT, checks_response=False),
    "a diverging fetch counts": replace(CURRENT, updates_on_diverge=True),
    "no fencing of fetches": replace(CURRENT, fences_fetch=False),
    "HW runs away from who is caught up": replace(CURRENT, waits_for_caught_up=False),
}
SEEDS = {
    "truncation off by one": 3, "remote LEO is the response's end": 0,
    "HW is the own LEO: ack before HW": 0, "HW falls on a leader": 0, "min.insync.replicas unchecked": 0,
    "epoch cache not truncated": 0, "election without a new epoch": 0, "joins without the epoch's start": 0,
    "joins below HW": 1, "remote LEOs kept over a missed epoch": 3, "HW over the committed ISR": 1,
    "HW moves under min ISR": 0, "HW from a diverging answer": 2, "HW stays when the ISR changes": 10,
    "an answer of another epoch is taken": 2, "a diverging fetch counts": 2, "no fencing of fetches": 30,
    "leaders propose who is fenced": 1, "HW runs away from who is caught up": 1,
}  # fmt: skip


@pytest.mark.parametrize("flaw", SEEDS)
def test_a_run_of_a_flawed_implementation_is_not_explained(flaw):
    """At some seed each flaw leaves a recording that no behaviour of the spec explains."""
    context: AbstractContextManager[object] = FLAWS[flaw]() if flaw in FLAWS else nullcontext()
    rules: Protocol = OTHER_RULES.get(flaw, CURRENT)
    with context:
        lines = record(SEEDS[flaw], rules)
    assert explained(lines).blocked is not None
    assert explained(record(SEEDS[flaw])).blocked is None


def test_a_follower_hw_beyond_its_log_ends_the_run():
    """Replog's own assertion notices it before there is a recording."""
    with (
        patch.object(follower, "update_hw", _hw_without_min),
        pytest.raises(AssertionError, match="HW is in the log"),
    ):
        record(0, CURRENT)


@pytest.fixture
def runs(tmp_path):
    """A folder with the recordings of a few seeds."""
    for seed in range(3):
        (tmp_path / f"seed-{seed}.ndjson").write_text("\n".join(record(seed)), encoding="utf-8")
    return tmp_path


def validate(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(command, [TRACING, *map(str, arguments), "--workers", "1"])
    return result.exit_code, result.output


def test_a_few_recordings_are_explained(runs):
    """0, with the figures."""
    code, text = validate(runs, "--partial", "--no-power")
    assert code == 0
    assert text.startswith("explained: 3 of 3 recordings are behaviours of ../spec/recorded.spec")


def test_a_recording_through_a_pipe_is_that_of_a_file(runs):
    """As of `<(command)`: also its corrupted copies, for which it is read again."""
    path = runs / "pipe.ndjson"
    os.mkfifo(path)
    with subprocess.Popen(["/bin/sh", "-c", f"cat {runs}/seed-1.ndjson > {path}"]):
        piped = validate(path, "--partial")
    assert piped == validate(runs / "seed-1.ndjson", "--partial")
    assert piped[0] == 0


def test_a_campaign_that_shows_no_variety_is_vacuous(runs):
    """21 if an event was never seen, or a field had only one value, unless it is declared partial."""
    code, text = validate(runs / "seed-2.ndjson", "--no-power")
    assert code == 21
    assert "vacuous: no recording has the events power-loss, settle, shrink" in text
    assert "vacuous: always the same, so not compared: " in text


def test_a_recording_that_was_cut_off_is_vacuous(runs):
    """21: the missing part could have been anything."""
    path = runs / "seed-1.ndjson"
    lines = path.read_text().splitlines()[:-1]
    path.write_text("\n".join(lines))
    code, text = validate(runs, "--partial", "--no-power")
    assert code == 21
    assert f"seed-1.ndjson:{len(lines)}: the recording ends without its trailer" in text


def test_a_recording_that_is_not_explained_has_its_own_exit_code(runs):
    """13, with the event, in text and JSON."""
    path = runs / "seed-1.ndjson"
    lines = path.read_text().splitlines()
    event = json.loads(lines[40])
    assert "hw" in event["after"]
    event["after"]["hw"] += 1
    lines[40] = json.dumps(event)
    path.write_text("\n".join(lines))
    code, text = validate(runs, "--partial", "--no-power")
    assert code == 13
    assert text.startswith("seed-1.ndjson: no behaviour of the spec explains event 40 of")
    code, text = validate(runs, "--partial", "--no-power", "--json")
    found = json.loads(text)
    assert (code, found["verdict"], found["accepted"], found["blocked"][0]["number"]) == (
        13,
        "diverges",
        2,
        40,
    )


@pytest.mark.slow
def test_a_campaign_is_explained_with_power_on_any_number_of_processes(tmp_path):
    """Forty seeds: no false alarm, every kind of event, every field, corrupted copies rejected."""
    for seed in range(40):
        (tmp_path / f"seed-{seed}.ndjson").write_text("\n".join(record(seed)), encoding="utf-8")
    code, text = validate(tmp_path, "--json")
    found = json.loads(text)
    assert (code, found["accepted"], found["kinds_seen"]) == (0, 40, 19)
    assert found["power"] >= 0.95
    assert found["candidates_mean"] < 2
    result = CliRunner().invoke(command, [TRACING, str(tmp_path), "--workers", "3", "--json"])
    again = json.loads(result.output)
    times = ("seconds", "workers", "events_per_second")
    assert {k: v for k, v in again.items() if k not in times} == {
        k: v for k, v in found.items() if k not in times
    }
