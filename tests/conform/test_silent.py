"""Silent steps and repeated ones: what they explain, and when they explain too much."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from bank import SPEC, bank
from bank_tracing import BankTracing, moved, recorded

from specchk.compile.instantiate import instantiate
from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import Call, Repeated, Seen, Tracing, Ways, event
from specchk.conform.recordings import validate as module
from specchk.conform.recordings.campaign import Campaign, run_campaign
from specchk.conform.recordings.explainer import CampaignOptions
from specchk.conform.recordings.nearmiss import near_misses
from specchk.conform.recordings.validate import Explained, Haste, Trail, Validator
from specchk.conform.report.campaign_report import verdict
from specchk.lang.frontend import check

FORKS = """spec forks
var left : 0..1 = 0
var right : 0..2 = 0
var gone : bool = false
action go_left():
    require left == 0 and right == 0
    left' = 1
action go_right():
    require left == 0 and right == 0
    right' = 1
action hidden():
    require right == 1
    right' = 2
action leave():
    require left == 1 or right == 2
    gone' = true
model only:
    expect holds
"""
VALIDATOR = Validator(bank())


class ForksTracing(Tracing):
    """The chosen branch is not recorded."""

    silent: ClassVar[tuple[str, ...]] = ("hidden",)

    @event("chose")
    def chose(self, found: Event) -> Ways:
        return Ways(((Call("go_left"),), (Call("go_right"),)))

    @event("left")
    def left(self, found: Event) -> Call:
        return Call("leave")

    def after(self, found: Event) -> Iterable[Seen]:
        for name, value in found.get("after", {}).items():
            yield Seen(name, name, value)


def test_a_silent_step_that_only_the_right_candidate_needs_is_taken():
    """One candidate leaves without a silent step; the next event shows that it was the other."""
    validator = Validator(instantiate(check("forks.spec", FORKS)))
    recording = recorded({"event": "chose"}, {"event": "left", "after": {"gone": True}})
    showing = recorded(*recording.events, {"event": "left", "after": {"right": 2}})
    tracing = ForksTracing(validator.program, showing)
    assert validator.follow(tracing, showing, Haste.LAZY, Trail()).blocked is not None
    found = validator.explain(tracing, showing)
    assert (found.blocked, found.consumed) == (None, 3)
    assert validator.explain(ForksTracing(validator.program, recording), recording).silent == 0


@pytest.mark.parametrize(("most", "is_explained"), [(0, False), (1, False), (2, True)])
def test_silent_steps_are_bounded_by_the_tracing(most, is_explained):
    """Two days need two steps in a row."""

    class Short(BankTracing):
        most_silent: ClassVar[int] = most

    recording = recorded({"event": "looked", "after": {"days": 2}})
    found = VALIDATOR.explain(Short(VALIDATOR.program, recording), recording)
    assert (found.blocked is None) is is_explained


class PayingTracing(BankTracing):
    """A line may be up to two payments."""

    least: ClassVar[int] = 1

    @event("paid")
    def paid(self, found: Event) -> Repeated:
        return Repeated(Call("transfer", ("a1", "a2")), self.least, 2)


class IdlyPayingTracing(PayingTracing):
    """It may be none, too."""

    least: ClassVar[int] = 0


def paid(*events: dict[str, Any], by: type[Tracing] = PayingTracing) -> Explained:
    recording = recorded({"event": "paid"}, *events)
    return VALIDATOR.explain(by(VALIDATOR.program, recording), recording)


@pytest.mark.parametrize(
    ("balance", "by", "is_explained"),
    [
        (2, PayingTracing, False), (1, PayingTracing, True), (0, PayingTracing, True),
        (2, IdlyPayingTracing, True), (1, IdlyPayingTracing, True), (3, IdlyPayingTracing, False),
    ],
)  # fmt: skip
def test_a_repeated_line_is_as_many_steps_as_it_may_be(balance, by, is_explained):
    """Each number of steps within the bounds, and no other."""
    looked = {"event": "looked", "after": {"a1": balance}}
    assert (paid(looked, by=by).blocked is None) is is_explained


def test_a_repeated_line_is_no_more_steps_than_its_bound():
    """Four coins moved need two lines of two."""
    assert paid(moved("a2", "a1"), moved("a2", "a1", a1=3)).blocked is None
    assert paid(moved("a2", "a1", a1=0)).blocked is not None


class OverdrawingTracing(BankTracing):
    """A line has more payments than there are coins, after no step or one by another account."""

    @event("paid")
    def paid(self, found: Event) -> Ways:
        payment = Call("transfer", ("a1", "a2"))
        return Ways(((Repeated(Call("transfer", ("a2", "a1")), 0, 1), Repeated(payment, 4, 5)),))


def test_the_nearest_miss_of_a_repeated_line_is_the_call_that_was_blocked():
    """Two or three payments were taken; in the state after them there is no coin left."""
    found = paid(by=OverdrawingTracing)
    assert found.blocked is not None
    misses = near_misses(VALIDATOR, found.blocked)
    assert {miss.call for miss in misses} == {"transfer(a1, a2)"}
    assert {(blame.text, *blame.values) for miss in misses for blame in miss.guards} == {
        ("balance[a] > 0", ("balance[a]", "0"))
    }
    assert all(miss.guards for miss in misses)


@pytest.mark.parametrize(("least", "most"), [(-1, 2), (3, 2), (0, 0)])
def test_bounds_of_a_repeated_step_have_an_order(least, most):
    """An event that could be no step at all is written `()`."""
    with pytest.raises(ValueError, match="cannot be repeated"):
        Repeated(Call("sleep"), least, most)


def test_a_recording_explained_by_silence_is_idle():
    """Until an event must be a step."""
    slept = {"event": "looked", "after": {"days": 1}}
    alone = recorded(slept, slept)
    assert VALIDATOR.explain(BankTracing(VALIDATOR.program, alone), alone).is_idle
    moving = recorded(slept, moved("a1"), slept)
    found = VALIDATOR.explain(BankTracing(VALIDATOR.program, moving), moving)
    assert (found.is_idle, found.acted) == (False, 1)


def test_a_line_that_may_be_no_step_is_not_idle_where_its_step_shows():
    """`perhaps` may be nothing; a balance shows that it was not."""
    perhaps, two = {"event": "perhaps"}, {"event": "looked", "after": {"a1": 2}}
    for after, is_idle in ((two, True), ({"event": "looked", "after": {"a1": 1}}, False)):
        recording = recorded(perhaps, after)
        found = VALIDATOR.explain(BankTracing(VALIDATOR.program, recording), recording)
        assert (found.blocked, found.is_idle) == (None, is_idle)
    assert paid().is_idle is False
    assert paid(by=IdlyPayingTracing).is_idle


def campaign(folder: Path, *recordings: Recording, by: type[Tracing] = BankTracing) -> Campaign:
    paths = []
    for number, one in enumerate(recordings):
        lines = [one.header, *one.events, {"end": True, "events": len(one.events)}]
        paths.append(folder / f"{number}.ndjson")
        paths[-1].write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return run_campaign(by, check("bank.spec", SPEC), paths, CampaignOptions(power=False, partial=True))


def test_a_campaign_with_an_idle_recording_is_vacuous(tmp_path):
    """Its name is given; the others do not hide it."""
    idle = recorded({"event": "looked", "after": {"a1": 2}})
    found = campaign(tmp_path, recorded(moved("a1", "a2")), idle)
    assert found.vacuous == ("1.ndjson: no action that leaves an event is needed to explain it",)
    assert verdict(found) == "vacuous"
    assert campaign(tmp_path, recorded(moved("a1", "a2")), recorded(moved("a1"))).vacuous == ()


def test_a_campaign_of_silent_steps_is_vacuous(tmp_path):
    """More of them than of events that are steps."""
    found = campaign(tmp_path, recorded(moved("a1"), {"event": "looked", "after": {"days": 2}}))
    assert found.vacuous == ("2 silent steps explain 1 events that are steps; log more of what happens",)


def test_too_many_candidates_are_no_divergence(tmp_path, monkeypatch):
    """A search that was not completed may have missed a behaviour."""
    monkeypatch.setattr(module, "MOST_CANDIDATES", 1)
    found = campaign(tmp_path, recorded(moved("a1")), recorded({"event": "tossed"}))
    assert verdict(found) == "vacuous"
    assert found.results[1].blocked is None
    assert "event 1 (tossed): 2 states of the spec match so far" in found.vacuous[0]
