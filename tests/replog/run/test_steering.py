"""Counterexamples of replication.spec on the wire: whose rules lose what a client was acknowledged."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
import small_client
from steering import replayed, trace_of

from replog.core.protocol import preset
from replog.run.serve.rehearsal import lanes
from specchk.compile.instantiate import instantiate
from specchk.explore.scenario import run_scenario
from specchk.lang.frontend import check
from specchk.report.json import model_json, trace_json

STORIES = Path(__file__).parents[3] / "spec" / "kafka_stories.spec"


def told(story: str) -> dict:
    """Return a story's run, in the form of a counterexample."""
    checked = check(str(STORIES))
    written = checked.spec.scenarios[story]
    instance = instantiate(checked, written.model.text)
    run = run_scenario(instance, written).trace
    return {**model_json(instance.program), "trace": trace_json(instance.program, run)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("story", "rules", "is_lost"),
    # The second one's run ends where b2, which lacks the record, may be elected.
    [
        ("b21", "kafka-4.1-as-is", True),
        ("b21_fenced", "kafka-4.1-as-is", False),
        ("s29", "hw-truncation", True),
    ],
)
def test_a_story_loses_a_clients_record_under_its_rules_only(tmp_path, story, rules, is_lost):
    async def scenario():
        trace, client = trace_of(told(story)), partial(small_client.work, rounds=1)
        flawed = await replayed(str(tmp_path / "flawed"), trace, preset(rules), client)
        steps = [text for lane, text in flawed.events if lane >= 0]
        # Each has led to the run's state.
        assert steps == [step.text for step in trace.steps], lanes(flawed)
        lost = ["lost: r0 was acknowledged, and is not in the log"]
        assert [str(finding) for finding in flawed.findings] == (lost if is_lost else [])
        repaired = await replayed(str(tmp_path / "repaired"), trace, preset("kafka-4.1"), client)
        assert repaired.findings == [], lanes(repaired)
        assert any(" is 0, not 1" in text or " is 1, not 0" in text for _, text in repaired.events)

    asyncio.run(scenario())


def test_a_run_with_other_steps_is_refused_with_all_of_them():
    state = {"meta": {"0": {"leader": {"some": "b1"}}}, "hw": {"b1": 0, "b2": 0, "b3": 0}}
    steps = [("produce", ["b1"]), ("shrink_isr", ["b1", "b2"]), ("crash", ["b1"])]
    run = [{"state": state}, *({"action": a, "args": b, "state": state} for a, b in steps)]
    with pytest.raises(ValueError, match=r"these steps: 2 shrink_isr\(b1, b2\), 3 crash\(b1\)$"):
        trace_of({"constants": {"min_isr": 2}, "trace": run})
    trace = trace_of({"constants": {"min_isr": 2}, "trace": run[:2]})
    assert (trace.min_isr, [step.args for step in trace.steps]) == (2, [(0,)])
    state["hw"]["b3"] = 1
    with pytest.raises(ValueError, match="a new topic of three brokers"):
        trace_of({"constants": {"min_isr": 2}, "trace": run})
    for other in ({"trace": None}, {"constants": {}, "trace": run}, []):
        with pytest.raises(ValueError, match="no counterexample"):
            trace_of(other)
