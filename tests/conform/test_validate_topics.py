"""Each of several partitions is a behaviour of the spec, and one that another has disturbed is not."""

from __future__ import annotations

from functools import cache

import pytest

from laws.sources import ROOT
from replog.core.broker.broker import Broker
from replog.sim.cluster.several import SeveralStorage
from replog.sim.recording.topic_run import TopicRun, record_topic
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.known_bad import BadCode, planted
from specchk.conform.contract.recording import parse
from specchk.conform.recordings.validate import Explained, Validator
from specchk.lang.frontend import check
from tracing import ReplogTracing


@cache
def validator(constants: tuple[tuple[str, str], ...]) -> Validator:
    checked = check(str(ROOT / "spec" / "recorded.spec"))
    return Validator(instantiate(checked, ReplogTracing.model, dict(constants)))


def explained(lines: list[str]) -> Explained:
    recording = parse("a run", lines)
    one = validator(tuple(sorted(ReplogTracing.constants(recording).items())))
    return one.explain(ReplogTracing(one.program, recording), recording)


@pytest.mark.parametrize("seed", range(6))
def test_each_partition_is_a_behaviour_of_the_spec(seed):
    """Seed n records partition n: every event is explained, as in a run with that partition alone."""
    lines = record_topic(seed)
    found = explained(lines)
    assert found.blocked is None
    assert found.consumed == len(lines) - 2 > 20  # all but the header and the trailer


def test_the_partitions_take_turns():
    """Six seeds record the six partitions, and in each run all of them have records."""
    runs = [TopicRun(seed) for seed in range(6)]
    assert [run.world.first for run in runs] == ["t-0", "t-1", "t-2", "u-0", "u-1", "u-2"]
    runs[0].run()
    running = [node.broker for node in runs[0].world.running() if node.broker is not None]
    for name in runs[0].world.partitions:
        assert max(broker.replicas[name].state.log.hw for broker in running) > 0


FIRST = "next(iter(self.parts.values()))"
ALL = "self.replicas.items()"
FLAWS = {
    "messages reach the first replica": (Broker._receive, "replica.receive(", "self.replica.receive("),
    "metadata passes the first replica by": (Broker._update, ALL, f"[*{ALL}][1:]"),
    "one disk for all partitions": (SeveralStorage.perform, "self.parts[effect.partition]", FIRST),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_partition_that_another_disturbs_is_not_explained(flaw):
    """Each flaw between partitions leaves a recording that is not explained."""
    with planted(BadCode(flaw, *FLAWS[flaw], "")):
        lines = record_topic(0)
    assert explained(lines).blocked is not None


@pytest.mark.slow
def test_sixty_recordings_of_partitions_are_explained():
    """Ten of each partition: no false alarm."""
    for seed in range(60):
        lines = record_topic(seed)
        found = explained(lines)
        assert (seed, found.blocked, found.consumed) == (seed, None, len(lines) - 2)
