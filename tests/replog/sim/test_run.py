"""Whole runs: repeatable, without a broken promise under every profile, and reported with their command."""

from __future__ import annotations

import pytest

from replog.core import leader
from replog.core.protocol import preset
from replog.sim.profiles import PowerRule, profile, profile_names
from replog.sim.run import simulate, simulate_many

SAMPLE = {
    "calm": 2,
    "network": 12,
    "all": 60,
    "elr": 15,
    "flush": 15,
    "stale": 15,
    "store": 15,
    "coalesce": 10,
}


def test_every_profile_is_sampled():
    """No profile is left out of this file."""
    assert set(SAMPLE) == set(profile_names())


@pytest.mark.parametrize("name", SAMPLE)
def test_all_oracles_hold_under_every_profile(name):
    """A sample of seeds: no promise is broken, faults do happen, and records are acknowledged."""
    reports = simulate_many(0, SAMPLE[name], name)
    assert [report.text() for report in reports if report.is_failure] == []
    assert sum(report.figures.acknowledged for report in reports) > 100 * len(reports)
    if profile(name).weights:
        faults = {fault for report in reports for fault in report.faults}
        kinds = {kind.value for kind in profile(name).weights}
        assert kinds - faults <= {"power-loss", "disk-error"}
        assert sum(report.figures.elections for report in reports) > len(reports)


def test_all_kinds_of_faults_are_injected_by_the_full_profile():
    """Every kind of fault strikes within a few seeds, also those that need a fitting moment."""
    faults = {fault for report in simulate_many(0, 20, "all") for fault in report.faults}
    kinds = {kind.value for kind in profile("all").weights}
    network = {"message-loss", "message-duplication", "message-delay", "message-cut-off"}
    assert kinds | network | {"records-lost"} <= faults


@pytest.mark.parametrize("name", ["all", "store"])
def test_a_seed_is_a_run(name):
    """The same seed gives the same report to the last figure; another seed another one."""
    assert simulate(5, name) == simulate(5, name)
    assert simulate(5, name).steps != simulate(6, name).steps


def test_a_failing_seed_prints_the_command_that_repeats_it():
    """The report of a broken promise ends with seed, profile and protocol."""
    report = next(r for r in simulate_many(0, 20, "all", "no-truncation") if r.is_failure)
    assert report.text().splitlines()[-1] == f"  repeat: {report.command}"
    assert report.command == f"replog sim --seed {report.seed} --profile all --protocol no-truncation"
    again = simulate(report.seed, report.profile, report.protocol)
    assert (again.oracle, again.detail) == (report.oracle, report.detail)


def test_an_exception_in_a_core_is_a_failure_of_the_run(monkeypatch):
    """A core that raises is reported like a broken oracle, with the same command."""

    def raise_it(*_):
        raise RuntimeError("planted")

    monkeypatch.setattr(leader, "on_produce", raise_it)
    report = simulate(1, "calm")
    assert (report.oracle, report.detail) == ("no-exception", "RuntimeError: planted")


def test_unknown_names_are_refused():
    """A profile or protocol that does not exist is a KeyError with those that do."""
    with pytest.raises(KeyError, match="network"):
        profile("sunshine")
    with pytest.raises(KeyError, match="kip966"):
        simulate(0, "calm", "kip9")


def test_lossy_power_losses_are_limited_where_kafka_does_not_survive_them():
    """The profile says what is excluded: nothing for flushed logs, one copy for ELR, else one at a time."""
    rules = {name: profile(name).power for name in profile_names()}
    assert rules["all"] is PowerRule.ONE_AT_A_TIME
    assert rules["elr"] is PowerRule.KEEPS_ONE_COPY
    assert rules["flush"] is PowerRule.ANY
    assert preset(profile("elr").protocol).elr


@pytest.mark.slow
def test_a_thousand_seeds_hold_with_all_faults_on():
    """The nightly version of the sample (ten thousand were run for the figures in the report)."""
    assert [r.text() for r in simulate_many(1_000, 1_000, "all") if r.is_failure] == []


@pytest.mark.slow
def test_a_thousand_seeds_hold_on_the_real_store():
    """The same on real files over a simulated disk."""
    assert [r.text() for r in simulate_many(1_000, 1_000, "store") if r.is_failure] == []
