"""A horizon ends searches, not recordings: numbers above it are explained."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from specchk.compile.instantiate import instantiate
from specchk.conform.contract.recording import Event, Recording, renumbered
from specchk.conform.contract.tracing import ANY, Call, Seen, Tracing, event
from specchk.conform.recordings.explainer import CampaignOptions, RecordingExplainer
from specchk.conform.recordings.validate import Explained, Validator
from specchk.lang.frontend import check

SPEC = """spec counted
type Offset = nat upto 2
var n : Offset = 0
var top : Offset? = none
var log : seq[Offset] upto 4 = []
action up():
    n' = n + 1
action add(k: Offset):
    require k > 0
    n' = n + k
action keep():
    require len(log) < 4
    log' = append(log, n)
    top' = some(max(n, get(top, 0)))
action pick():
    any k in Offset:
        require k > n
        n' = k
model m:
    expect holds
"""


class CountedTracing(Tracing):
    """Each event shows what it has of the variables."""

    spec, model, reads = "counted.spec", "m", "counted/1"

    @event("up")
    def up(self, found: Event) -> Call:
        return Call("up")

    @event("add")
    def add(self, found: Event) -> Call:
        return Call("add", (found.get("k", ANY),))

    @event("keep")
    def keep(self, found: Event) -> Call:
        return Call("keep")

    @event("pick")
    def pick(self, found: Event) -> Call:
        return Call("pick")

    def after(self, found: Event) -> Iterable[Seen]:
        for name in ("n", "top", "log"):
            if name in found:
                yield Seen(name, name, found[name])


CHECKED = check("counted.spec", SPEC)
VALIDATOR = Validator(instantiate(CHECKED))


def recorded(events: Iterable[dict[str, Any]]) -> Recording:
    return Recording("drawn", {"format": "counted/1"}, renumbered({"at": 0, **one} for one in events))


def explained(*events: dict[str, Any]) -> Explained:
    recording = recorded(events)
    return VALIDATOR.explain(CountedTracing(VALIDATOR.program, recording), recording)


@pytest.mark.parametrize(
    "events",
    [
        [{"event": "up"}] * 3,
        [{"event": "up"}, {"event": "up", "n": 2}, {"event": "up", "n": 3}],
        [{"event": "add", "k": 3, "n": 3}, {"event": "keep", "top": 3, "log": [3]}],
        [{"event": "add"}, {"event": "add"}, {"event": "add", "n": 5}],
        [{"event": "up"}, {"event": "add", "k": 7}, {"event": "keep", "log": [8]}],
    ],
)
def test_a_behaviour_beyond_a_horizon_is_explained(events: list[dict[str, Any]]) -> None:
    """The spec has the steps that a search does not take."""
    outcome = explained(*events)
    assert (outcome.blocked, outcome.gave_up, outcome.consumed) == (None, "", len(events))


@pytest.mark.parametrize(
    "events",
    [
        [{"event": "up"}, {"event": "up"}, {"event": "up", "n": 4}],
        [{"event": "add", "k": 3}, {"event": "keep", "top": 2}],
        [{"event": "keep"}] * 5,
        [{"event": "add", "k": 0}],
        [{"event": "add", "k": -3}],
        [{"event": "up", "n": True}],
    ],
)
def test_what_no_number_explains_diverges(events: list[dict[str, Any]]) -> None:
    """The last event is none of the spec, whatever its horizon is."""
    outcome = explained(*events)
    assert outcome.blocked is not None
    assert outcome.blocked.number == len(events)


@pytest.mark.parametrize(
    "events",
    [[{"event": "pick", "n": 3}], [{"event": "add", "n": 3}], [{"event": "up"}] * 3 + [{"event": "pick"}]],
)
def test_a_number_that_is_listed_up_to_a_horizon_may_be_larger(events: list[dict[str, Any]]) -> None:
    """A larger one was chosen."""
    outcome = explained(*events)
    assert (outcome.blocked, outcome.gave_up, outcome.consumed) == (None, "", len(events))


def test_a_divergence_beyond_a_horizon_is_reported_with_its_field() -> None:
    """The reason and the smallest contradiction are those of the spec, not of the horizon."""
    explainer = RecordingExplainer(CountedTracing, CHECKED, CampaignOptions(power=False))
    recording = recorded([{"event": "up"}, {"event": "up"}, {"event": "up"}, {"event": "up", "n": 9}])
    result = explainer.explained(recording)
    assert result.blocked is not None
    differs = [one for miss in result.blocked.misses for one in miss["fields"]]
    assert [(one["recorded"], one["spec"]) for one in differs] == [("9", "4")]


@pytest.mark.parametrize("seed", range(60))
def test_horizons_decide_nothing(seed: int) -> None:
    """The explained events are those of a counter without any bound."""
    random = Random(seed)
    events, n, log, wanted = list[dict[str, Any]](), 0, list[int](), None
    for number in range(random.randint(1, 7)):
        found: dict[str, Any] = {"event": random.choice(("up", "add", "keep"))}
        is_enabled = True
        if found["event"] == "up":
            n += 1
        elif found["event"] == "add":
            found["k"] = random.randint(0, 4)
            is_enabled = found["k"] > 0
            n += found["k"]
        else:
            is_enabled = len(log) < 4
            log = [*log, n]
        top = max(log) if log else None
        state = {"n": n, "top": top, "log": log}
        shown = {name: value for name, value in state.items() if random.random() < 0.4}
        if "n" in shown and random.random() < 0.2:
            shown["n"] += random.choice((-1, 1, 5))
            is_enabled = False
        events.append({**found, **shown})
        if not is_enabled and wanted is None:
            wanted = number
    outcome = explained(*events)
    assert outcome.gave_up == ""
    assert outcome.consumed == (len(events) if wanted is None else wanted)
