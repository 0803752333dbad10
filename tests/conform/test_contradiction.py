"""The smallest contradiction of a blocked recording: it is one, and none of its claims can be omitted."""

from __future__ import annotations

import pytest
from bank import bank
from bank_tracing import BankTracing, moved, recorded
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from specchk.conform.contract.recording import Recording
from specchk.conform.contract.tracing import Meaning
from specchk.conform.recordings import contradiction as module
from specchk.conform.recordings.contradiction import Contradiction, contradiction_of
from specchk.conform.recordings.explanation import explanation_of, render
from specchk.conform.recordings.validate import Haste, Validator

VALIDATOR = Validator(bank())
EVENTS = st.sampled_from(
    [moved("a1"), moved("a2", "a1"), moved("a1", "a2", a1=1), {"event": "tossed"}, {"event": "perhaps"}]
    + [{"event": "looked", "after": {"a1": balance}} for balance in range(4)]
)


def looked(**after: object) -> dict[str, object]:
    return {"event": "looked", "after": after}


def smallest(recording: Recording) -> Contradiction | None:
    tracing = BankTracing(VALIDATOR.program, recording)
    blocked = VALIDATOR.explain(tracing, recording).blocked
    assert blocked is not None
    return contradiction_of(VALIDATOR, tracing, recording, blocked.number)


def claims(found: Contradiction | None) -> list[tuple[int, bool, dict[str, str]]]:
    assert found is not None
    assert found.is_minimal
    return [(one.number, one.step, dict(one.fields)) for one in found.lines]


def test_a_step_and_a_field_may_contradict_each_other():
    """A coin left a1, so it cannot have both; the events in between are not needed."""
    found = smallest(recorded(moved("a1", "a2"), looked(a1=1), {"event": "tossed"}, looked(a1=2)))
    assert claims(found) == [(1, True, {}), (4, True, {"a1": "2"})]


def test_two_fields_may_contradict_each_other():
    """A coin shows one side; its owner, and the time, are not needed."""
    found = smallest(recorded({"event": "tossed"}, looked(coin="heads"), moved("a1"), looked(coin="tails")))
    assert claims(found) == [(2, False, {"coin": "heads"}), (4, True, {"coin": "tails"})]


def test_a_line_may_contradict_the_spec_alone():
    """There are four coins, whatever happened before; the days are irrelevant."""
    found = smallest(recorded(moved("a1"), moved("a2"), looked(a1=3, a2=3, days=0)))
    assert claims(found) == [(3, True, {"a1": "3", "a2": "3"})]


def test_a_guard_needs_no_field():
    """Only the steps that made a1 poor."""
    found = smallest(recorded(moved("a1", "a2", a2=3), moved("a1", "a2"), moved("a1", "a2", a1=0)))
    assert claims(found) == [(1, True, {}), (2, True, {}), (3, True, {})]


def _explained(recording: Recording, meanings: list[Meaning]) -> bool:
    tracing, states = BankTracing(VALIDATOR.program, recording), VALIDATOR.initial
    for meaning in meanings[: len(recording.events)]:
        states = VALIDATOR.onward(tracing, meaning, states, Haste.EAGER).after
    return bool(states)


@settings(deadline=None)
@given(st.lists(EVENTS, max_size=8))
def test_every_claim_of_a_contradiction_is_needed_and_no_other(events):
    """By the definition: with all else open the lines are not explained, with one claim less they are."""
    recording = recorded(*events, looked(a1=4, a2=1))
    found = smallest(recording)
    assert found is not None
    last = found.lines[-1].number
    tracing = BankTracing(VALIDATOR.program, recording)
    full = [tracing.meaning(event) for event in recording.events[:last]]
    kept = [Meaning((*one.ways, ()), ()) for one in full]
    for line in found.lines:
        meaning = full[line.number - 1]
        seen = tuple(one for one in meaning.seen if one.field in line.fields)
        ways = meaning.ways if line.step else (*meaning.ways, ())
        kept[line.number - 1] = Meaning(ways, seen)
    assert found.given == 0
    assert not _explained(recording, kept)
    for line in found.lines:
        at = line.number - 1
        weaker = [
            kept[at]._replace(seen=tuple(one for one in kept[at].seen if one.field != name))
            for name in line.fields
        ]
        if line.step and line.number != last:
            weaker.append(kept[at]._replace(ways=(*kept[at].ways, ())))
        for one in weaker:
            assert _explained(recording, [*kept[:at], one, *kept[at + 1 :]])


def test_a_bound_is_reported(monkeypatch):
    """With too many candidates, the earlier lines are assumed as recorded, and this is reported."""
    monkeypatch.setattr(module, "MOST_OPEN", 9)
    recording = recorded(*[moved("a1", "a2"), moved("a2", "a1")] * 3, looked(coin="heads"))
    found = smallest(recording)
    assert found is not None
    assert not found.is_minimal
    assert 0 < found.given < 6
    assert [line.number for line in found.lines] == [7]
    blocked = VALIDATOR.explain(BankTracing(VALIDATOR.program, recording), recording).blocked
    assert blocked is not None
    explanation = replace(explanation_of(VALIDATOR, recording, blocked), contradiction=found)
    text = render("r", 7, explanation)
    assert f"the smallest contradiction after the first {found.given} events: this line alone" in text
    assert "a bound ended the search: less may be enough" in text


@pytest.mark.parametrize("event", [{"event": "eaten"}, {"event": "looked", "broken": True}])
def test_what_the_tracing_refuses_has_no_contradiction(event):
    """The spec is not involved."""
    assert smallest(recorded(moved("a1"), event)) is None
