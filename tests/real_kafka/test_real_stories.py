"""Stories on real brokers: what is lost, and what prevents it."""

from __future__ import annotations

import pytest
from conformance.apache_kafka.agents import agent_jar
from conformance.apache_kafka.releases import NEWEST, Unavailable
from conformance.apache_kafka.stories import STORIES, Outcome, run_story

LOSES = [("0.10.2.2", "S29"), ("0.10.2.2", "S31"), ("1.1.1", "B3"), ("1.1.1", "B4"), ("1.1.1", "B5")]
LOSES += [("1.1.1", "B20"), ("4.0.0", "KAFKA-18991"), ("4.4.0", "B11"), ("4.4.0", "B16")]
PREVENTS = [("0.11.0.3", "S29"), ("0.11.0.3", "S31"), ("2.4.1", "B3"), ("2.4.1", "B4"), ("2.4.1", "B5")]
PREVENTS += [("2.4.1", "B20"), ("4.1.1", "KAFKA-18991"), ("4.4.0", "B11-ELR")]


@pytest.fixture
def repair():
    try:
        return agent_jar("Repair")
    except Unavailable as unavailable:
        pytest.skip(str(unavailable))


@pytest.mark.parametrize("release", [NEWEST.version], indirect=True)
def test_the_newest_release_loses_an_acknowledged_record(release):
    """B21 by clean elections alone: after each step the cluster is where the spec is, up to the loss."""
    seen = []
    verdict = run_story(STORIES["B21"], release, show=lambda number, step, views, notes: seen.append(views))
    assert verdict.outcome is Outcome.REPRODUCED, str(verdict)
    assert len(seen) == verdict.steps
    assert all(view.agrees for views in seen for view in views)
    last = [view.kafka for view in seen[-1]]
    assert last[-2:] == ["1 acknowledged", "a consumer reads nothing from b2"]


@pytest.mark.slow
@pytest.mark.parametrize("release", ["4.4.0", "4.1.1", "4.0.0", "3.9.1"], indirect=True)
def test_the_repair_prevents_the_loss(release, repair):
    """With unknown LEOs in each new epoch HW waits, and nothing is acknowledged that an ISR member lacks."""
    verdict = run_story(STORIES["B21"], release, repair)
    assert verdict.outcome is Outcome.PREVENTED, str(verdict)
    assert verdict.action == "serve_fetch(b1, b3)"
    assert "0 acknowledged, and not 1" in verdict.reason


@pytest.mark.slow
@pytest.mark.parametrize(("release", "story"), LOSES, indirect=["release"])
def test_a_release_with_the_flaw_shows_it(release, story):
    verdict = run_story(STORIES[story], release)
    assert verdict.outcome is Outcome.REPRODUCED, str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize(("release", "story"), PREVENTS, indirect=["release"])
def test_a_release_without_it_does_not(release, story):
    verdict = run_story(STORIES[story], release)
    assert verdict.outcome is Outcome.PREVENTED, str(verdict)
