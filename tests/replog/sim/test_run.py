"""Whole runs: repeatable, without a broken promise under every profile, and reported with their command."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from replog.core.broker import leader
from replog.core.controller import election
from replog.core.protocol import preset
from replog.sim.cluster.world import START_MS, Observer
from replog.sim.faults.profiles import Fault, PowerRule, Profile, profile, profile_names
from replog.sim.oracles.promises import OF_QUORUMS, ORACLES, ViolationError
from replog.sim.recording.record_run import record
from replog.sim.run import Report, Simulation, simulate

SAMPLE = {
    "calm": 2,
    "network": 12,
    "all": 20,
    "elr": 20,
    "upgraded": 20,
    "flush": 16,
    "blackout": 15,
    "stale": 15,
    "store": 20,
    "coalesce": 6,
    "reassign": 15,
    "delete": 10,
    "retain": 12,
    "topics": 26,
    "groups": 12,
    "controllers": 60,
}
IDLE = {
    "calm": {"leader-complete", "flushed-survives"},
    "network": {"flushed-survives"},
    "blackout": {"flushed-survives"},
    "coalesce": {"flushed-survives"},
    "groups": {"flushed-survives"},
}
"""Oracles that have nothing to check where nobody is elected anew, or no power fails."""


ONLY_CLEAN = {"coalesce"}
"""Profiles under which no broker is fenced, so that only members of the ISR are elected."""


def network_faults(weather: Profile) -> set[str]:
    """Those in the profile's share, and messages over links that are cut."""
    shares = {
        "message-loss": weather.loss,
        "message-duplication": weather.duplication,
        "message-delay": weather.tail,
    }
    return {"message-cut-off", *(name for name, share in shares.items() if share)}


def simulate_many(first_seed: int, count: int, name: str = "all", protocol: str = "") -> list[Report]:
    """Consecutive seeds; every one is independent of the others."""
    return [simulate(seed, name, protocol) for seed in range(first_seed, first_seed + count)]


def test_every_profile_is_sampled():
    """No profile is left out of this file."""
    assert set(SAMPLE) == set(profile_names())


@pytest.mark.parametrize("name", SAMPLE)
def test_all_oracles_hold_under_every_profile(name):
    """A sample of seeds: no promise is broken, each was checked, every kind of fault occurred."""
    reports = simulate_many(0, SAMPLE[name], name)
    assert [report.text() for report in reports if report.is_failure] == []
    assert sum(report.figures.acknowledged for report in reports) > 50 * len(reports)
    checks = sum((report.checks for report in reports), Counter())
    idle = IDLE.get(name, set()) | ({"commits-kept"} if not profile(name).groups else set())
    idle |= OF_QUORUMS if profile(name).controllers == 1 else set()
    assert set(ORACLES) - set(checks) == idle
    if profile(name).weights:
        faults = sum((report.faults for report in reports), Counter())
        assert {kind.value for kind in profile(name).weights} <= set(faults)
        assert set(faults) >= network_faults(profile(name))
        assert sum(report.figures.elections for report in reports) > len(reports)
        kinds = [(r.figures.elr_elections > 0, r.figures.unclean_elections > 0) for r in reports]
        is_elr = preset(profile(name).protocol).elr
        assert (any(eligible for eligible, _ in kinds), any(unclean for _, unclean in kinds)) == (
            is_elr and name not in ONLY_CLEAN,
            name not in ("network", "elr", "upgraded", *ONLY_CLEAN),
        )
        assert ("records-lost" in faults) == (profile(name).power is not PowerRule.NEVER)


@pytest.mark.parametrize("name", ["kafka-4.1", "kafka-4.1-upgraded"])
@pytest.mark.parametrize("weather", ["blackout", "flush"])
def test_a_cluster_that_died_as_a_whole_is_led_again_and_keeps_what_was_acknowledged(weather, name):
    """Every process killed, or all power cut with flushed logs: the last member, or last leader, leads."""
    reports = simulate_many(100, 8, weather, name)
    assert [report.text() for report in reports if report.is_failure] == []
    assert sum(report.faults["blackout"] for report in reports) > len(reports)
    unclean = sum(report.figures.unclean_elections for report in reports)
    assert (unclean > 0) == (name == "kafka-4.1")


def test_an_intact_log_on_the_real_store_survives_the_death_of_the_whole_cluster():
    """Kills of every process under KIP-966 on real files, without power losses and failing disks."""
    calm = {
        kind: weight for kind, weight in profile("blackout").weights.items() if kind is not Fault.DISK_ERROR
    }
    weather = replace(profile("blackout"), uses_store=True, batches=20, duration_ms=20_000, weights=calm)
    reports = [Simulation(seed, weather).run() for seed in range(12)]
    assert [report.text() for report in reports if report.is_failure] == []
    assert sum(report.figures.unclean_elections for report in reports) > len(reports) // 2


def test_coalesce_finds_the_remote_leo_that_kafka_keeps_within_fifty_seeds():
    """The finding of A18 (model remote_leo_kept): HW passes a cut record, unless LEOs are forgotten."""
    kafka = preset("kafka-4.1-as-is")
    runs = (Simulation(seed, profile("coalesce"), rules=kafka).run() for seed in range(50))
    report = next(run for run in runs if run.is_failure)
    assert report.oracle in ("isr-complete", "committed-copies"), report.text()
    safe = replace(kafka, keeps_remote_leo=False)
    assert not Simulation(report.seed, profile("coalesce"), rules=safe).run().is_failure


def test_figures_count_what_their_names_say():
    """Truncations, ISR changes and elections of a run are those counted by an observer."""
    run = Simulation(9, profile("all"))
    watch = Onlooker(run.oracles)
    run.world.observer = watch
    report = run.run()
    assert not report.is_failure
    assert report.counters.truncations == watch.truncations > 0
    assert report.figures.isr_changes == watch.isr_changes > 0
    assert report.figures.elections == len(watch.epochs) > 1


class Onlooker(Observer):
    """Counts independently the events that it passes on to the oracles."""

    def __init__(self, oracles):
        self.oracles = oracles
        self.ends: dict[tuple[int, int], int] = {}
        self.isr: tuple[int, ...] | None = None
        self.epochs: set[int] = set()
        self.truncations = self.isr_changes = 0

    def changed(self, world, node):
        life, end = (node.broker_id, node.incarnation), node.broker.state.log.leo
        self.truncations += end < self.ends.get(life, 0)
        self.ends[life] = end
        self.oracles.changed(world, node)

    def decided(self, world):
        image = world.image
        self.isr_changes += self.isr is not None and sorted(self.isr) != sorted(image.isr)
        self.isr = image.isr
        self.epochs |= {image.leader_epoch} - ({image.leader_epoch} if image.leader < 0 else set())
        self.oracles.decided(world)


def test_a_fault_is_counted_when_it_happens():
    """A death between effects that never occurs, and a cut that existed already, are not faults."""
    run = Simulation(0, profile("all"))
    for _ in run.pace.until(START_MS + 1_000):
        pass
    counted = Counter(run.network.faults)
    node = run.world.nodes[0]
    assert run.injector._inject(Fault.CRASH_MID_EFFECTS, node)
    assert run.injector._inject(Fault.SHUTDOWN, node)
    everything = {(a, b) for a in (-1, 0, 1, 2) for b in (-1, 0, 1, 2)}
    run.network.cut |= everything
    for kind in (Fault.PARTITION, Fault.LINK, Fault.MISSED_METADATA):
        assert not run.injector._inject(kind, node)
    assert not run.injector._inject(Fault.PREFERRED_ELECTION, node)
    assert run.network.faults == counted
    assert run.report("", "").faults == counted


def test_a_run_that_takes_too_many_events_is_broken_and_says_how_to_repeat_it():
    """A limit on events ends what a time limit would not."""
    report = simulate(1, "calm", max_events=500)
    assert (report.oracle, report.detail.split(" in ")[0]) == ("step-limit", "500 events")
    assert report.command.endswith("--protocol kafka-4.1 --max-events 500")
    with pytest.raises(ViolationError, match="step-limit"):
        record(1, max_events=50)


def test_a_verdict_names_what_had_nothing_to_check():
    """A run without a power loss does not claim that flushed records survived one."""
    assert (
        "all oracles hold, nothing to check for leader-complete, flushed-survives"
        in simulate(0, "calm").text()
    )


def test_a_cluster_that_stays_without_a_leader_is_a_broken_promise(monkeypatch):
    """Once all is calm there is a leader: the verdict names the oracle, ISR, ELR and the last leader."""
    monkeypatch.setattr(election, "_lead_alone", lambda image, replica: replace(image, leader=-1))
    report = simulate(0, "blackout")
    assert report.oracle == "has-leader"
    assert re.fullmatch(r"ISR \(\), ELR \(\), last known leader \d", report.detail)


@pytest.mark.parametrize("name", ["all", "store"])
def test_a_seed_is_a_run(name):
    """The same seed gives exactly the same report; another seed another one."""
    assert simulate(5, name) == simulate(5, name)
    assert simulate(5, name).counters.steps != simulate(6, name).counters.steps


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
    """An unknown profile or protocol is a KeyError that lists the known ones."""
    with pytest.raises(KeyError, match="network"):
        profile("sunshine")
    with pytest.raises(KeyError, match="upgraded"):
        simulate(0, "calm", "kip9")


def test_lossy_power_losses_are_limited_where_kafka_does_not_survive_them():
    """The profile states its exclusions: none for flushed logs, one copy for ELR, otherwise one at a time."""
    rules = {name: profile(name).power for name in profile_names()}
    assert rules["blackout"] is PowerRule.NEVER
    assert rules["all"] is PowerRule.ONE_AT_A_TIME
    assert rules["upgraded"] is PowerRule.ONE_AT_A_TIME
    assert rules["elr"] is PowerRule.KEEPS_ONE_COPY
    assert rules["flush"] is PowerRule.ANY
    assert preset(profile("elr").protocol).elr


@pytest.mark.parametrize("name", ["delete", "retain"])
def test_logs_start_later_and_later_where_records_are_deleted(name):
    """A client's requests are answered, and retention needs none; the rest is not empty."""
    for seed in range(3):
        run = Simulation(seed, profile(name))
        assert not run.run().is_failure
        logs = [node.broker.replica.state.log for node in run.world.running()]
        assert min(log.log_start for log in logs) > 0
        assert all(log.log_start < log.leo for log in logs)
        assert (run.oracles.deleted > 0) == (name == "delete")
        assert run.oracles.figures.consumed > 0


def test_nothing_is_deleted_without_a_request():
    """Profiles without deletions hold every log to offset 0."""
    run = Simulation(0, profile("all"))
    assert not run.run().is_failure
    assert run.oracles.may_start == run.oracles.deleted == 0


def test_a_partition_moves_on_the_real_store():
    """Folders are deleted and created again, while disks fail and power is lost."""
    weather = replace(profile("reassign"), uses_store=True, batches=20, duration_ms=20_000)
    reports = [Simulation(seed, weather).run() for seed in range(4)]
    assert [report.text() for report in reports if report.is_failure] == []
    assert sum(report.faults["reassignment"] for report in reports) > len(reports)


@pytest.mark.slow
def test_a_thousand_seeds_hold_with_all_faults_on():
    """The nightly version of the sample (ten thousand were run for the figures in the report)."""
    assert [r.text() for r in simulate_many(1_000, 1_000, "all") if r.is_failure] == []


@pytest.mark.slow
@pytest.mark.parametrize("weather", ["blackout", "elr"])
def test_a_thousand_seeds_hold_under_kip_966(weather):
    """Leadership returns, and nothing acknowledged is lost, over many deaths of whole clusters."""
    assert [r.text() for r in simulate_many(1_000, 1_000, weather) if r.is_failure] == []


@pytest.mark.slow
def test_a_thousand_seeds_hold_on_the_real_store():
    """The same on real files over a simulated disk."""
    assert [r.text() for r in simulate_many(1_000, 1_000, "store") if r.is_failure] == []
