"""Stories of the ledger, and what each release makes of them.

A story is a scenario of spec/kafka_stories.spec, taken step by step on a cluster (drive).  The verdict:

- *reproduced*: the cluster was where the spec is after every step, and so violates what the spec violates;
- *prevented at step i*: it did something else there, and what that was;
- *not drivable*: the step cannot be brought about on this release, and why;
- *undecided*: a time limit, or a process that failed; never evidence of either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path

from conformance.apache_kafka.cluster import Cluster, Plan
from conformance.apache_kafka.drive import TOPIC, Differs, Driver, NotDrivable
from conformance.apache_kafka.nodes import StartFailed
from conformance.apache_kafka.releases import Metadata, Release
from conformance.apache_kafka.settings import Elr
from conformance.apache_kafka.texts import View
from conformance.apache_kafka.traces import Run, Step, scenario_run
from msgspec import Struct

_FIRST_ELR = (4, 0)
_HOUR_MS = "3600000"
_LAG_MS = "12000"  # of a leader whose follower is to be late
_SESSION_MS, _LONG_SESSION_MS = "9000", "90000"


class Story(Struct, frozen=True):
    """A story: the flaw, its scenario, and what its cluster needs."""

    name: str
    title: str
    scenario: str
    companions: bool = False  # another partition keeps each fetcher alive
    needs_elr: bool = False


STORIES = {
    story.name: story
    for story in (
        Story("B21", "remote LEO kept by a leader that missed an epoch", "b21"),
        Story("B21-fenced", "the same, the leader in between fenced", "b21_fenced"),
        Story("S29", "B1: a follower truncates to its own HW (KIP-101)", "s29"),
        Story("S31", "logs diverge after an unclean election (KIP-101)", "s31"),
        Story("B3", "fast failover (KIP-279, KAFKA-6361)", "b3"),
        Story("B4", "undefined epoch (KAFKA-7415)", "b4"),
        Story("B5", "joins the ISR before the epoch's start (KAFKA-7128)", "b5"),
        Story("B11", "the last replica of the ISR loses the page cache, without ELR (KIP-966)", "b11"),
        Story("B11-ELR", "the same with ELR, if an unclean stop were overlooked", "b11_elr", needs_elr=True),
        Story("B16", "unclean election, by design (KIP-106)", "b16"),
        Story("B20", "the latest offset falls (KIP-207)", "b20"),
        Story("KAFKA-18991", "a diverging answer of an earlier epoch is taken", "stale", companions=True),
    )
}


class Outcome(Enum):
    """The kind of a verdict."""

    REPRODUCED = "reproduced"
    PREVENTED = "prevented"
    NOT_DRIVABLE = "not drivable"
    UNDECIDED = "undecided"


class Verdict(Struct, frozen=True):
    """What came of a story; `step` counts from 1, of `steps`."""

    outcome: Outcome
    step: int
    steps: int
    action: str
    reason: str = ""
    log: tuple[str, ...] = ()  # lines of brokers that say more

    def __str__(self) -> str:
        if self.outcome is Outcome.REPRODUCED:
            return f"reproduced, {self.steps} steps"
        return f"{self.outcome.value} at step {self.step} of {self.steps}, {self.action}: {self.reason}"


Show = Callable[[int, Step, "list[View]", "list[str]"], None]


def run_story(story: Story, release: Release, agent: Path | None = None, show: Show | None = None) -> Verdict:
    """Start a cluster and take it through a story; each step is given to `show` once it has been compared."""
    run = scenario_run(story.scenario)
    if story.needs_elr and release.numbers < _FIRST_ELR:
        reason = "this release has no eligible leader replicas"
        return Verdict(Outcome.NOT_DRIVABLE, 1, len(run.steps), run.steps[0].text, reason)
    plan = plan_of(story, run, release, agent)
    with Cluster(plan) as cluster:
        cluster.wait_until_ready()
        driver = Driver(cluster, run, story.companions)
        driver.begin(topic_configs(run, release))
        return take_steps(driver, show)


def take_steps(driver: Driver, show: Show | None) -> Verdict:
    """Take the steps of a run until the cluster differs, or to the end."""
    steps = driver.run.steps
    for index, step in enumerate(steps):
        try:
            views = driver.take(index)
        except Differs as difference:
            lines = _telling_lines(driver.cluster, step)
            reason = "; ".join([str(difference), *driver.notes, *driver.pending()[:2]])
            return Verdict(Outcome.PREVENTED, index + 1, len(steps), step.text, reason, lines)
        except NotDrivable as reason:
            return Verdict(Outcome.NOT_DRIVABLE, index + 1, len(steps), step.text, str(reason))
        except (TimeoutError, OSError, StartFailed) as failure:
            return Verdict(Outcome.UNDECIDED, index + 1, len(steps), step.text, str(failure))
        if show is not None:
            show(index + 1, step, views, driver.notes)
    return Verdict(Outcome.REPRODUCED, len(steps), len(steps), steps[-1].text)


def plan_of(story: Story, run: Run, release: Release, agent: Path | None) -> Plan:
    """A cluster in which nothing happens by a time limit, except where a step of the story waits for one."""
    actions = [step.action for step in run.steps]
    has_faults = any(action in ("fence_broker", "crash", "power_loss") for action in actions)
    session = _SESSION_MS if has_faults else _LONG_SESSION_MS
    patient = (
        "replica.lag.time.max.ms",
        "replica.socket.timeout.ms",
        "request.timeout.ms",
        "controller.socket.timeout.ms",
    )
    settings = dict.fromkeys(patient, _HOUR_MS)
    of: dict[int, Mapping[str, str]] = {
        step.arguments[0]: {"replica.lag.time.max.ms": _LAG_MS}
        for step in run.steps
        if step.action == "shrink_isr"
    }
    if release.metadata is Metadata.KRAFT:
        settings["controller.quorum.request.timeout.ms"] = _HOUR_MS
        settings["controller.quorum.fetch.timeout.ms"] = _HOUR_MS
        of[101] = {"broker.session.timeout.ms": session}
    else:
        settings["zookeeper.session.timeout.ms"] = session
    is_chosen = release.numbers >= _FIRST_ELR and (story.needs_elr or not run.constants["elr"])
    elr = Elr(story.needs_elr if is_chosen else None)
    return Plan(release, settings=settings, settings_of=of, elr=elr, agent=agent)


def topic_configs(run: Run, release: Release) -> dict[str, str]:
    """The configuration of a story's topic."""
    configs = {"min.insync.replicas": str(run.constants["min_isr"])}
    if run.constants["unclean_election"] and release.numbers < (2, 4):
        configs["unclean.leader.election.enable"] = "true"
    return configs


def _telling_lines(cluster: Cluster, step: Step) -> tuple[str, ...]:
    """The last lines of the step's broker on the partition."""
    words = ("runcat", "starts at leader epoch", "FENCED", "iverging", "out of sync", "shrink", "xpand")
    lines = [line for line in cluster.log_lines(step.arguments[-1]) if f"{TOPIC}-0" in line]
    return tuple(line[:300] for line in lines if any(word in line for word in words))[-3:]
