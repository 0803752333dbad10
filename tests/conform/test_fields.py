"""Data kept from event to event change no verdict: values, calls, functions, events read ahead."""

from __future__ import annotations

import gc
import weakref
from typing import ClassVar

import pytest
from bank import bank
from bank_tracing import BankTracing, moved, recorded

from specchk.compile.instantiate import instantiate
from specchk.conform.contract.recording import Event, Unreadable
from specchk.conform.contract.tracing import Call, Seen, SeenTogether
from specchk.conform.contract.values import Table
from specchk.conform.recordings.events import fields as fields_module
from specchk.conform.recordings.events import reading as reading_module
from specchk.conform.recordings.events.fields import OFTEN, Fields, ShownTogether
from specchk.conform.recordings.events.reading import CalledInstances
from specchk.conform.recordings.validate import Compared, Validator
from specchk.lang.frontend import check
from specchk.meaning.initial import initial_states

INSTANCE = bank()
START = tuple(initial_states(INSTANCE.program))
CHOSEN = """spec chosen
sort Account
var chosen : set[Account] = {}
action select(among: set[Account]):
    chosen' = among
model two:
    Account = 2
"""
BALANCES = "{ a: balance[a] for a in Account }"


def shown(**values: object) -> list[Seen]:
    return [
        Seen(name, name if name == "days" else f"balance[{name}]", value) for name, value in values.items()
    ]


def test_fields_agree_alike_as_one_function_and_as_many():
    """However often the same fields were shown, the same values agree; an undefined one never does."""
    fields = Fields(INSTANCE)
    undefined = Seen("none", "1 // days", 0)
    for _ in range(2 * OFTEN):
        assert fields.agree(START[0], shown(a1=2, a2=2, days=0))
        assert not fields.agree(START[0], shown(a1=2, a2=3, days=0))
        assert not fields.agree(START[0], shown(a1=2, a2=2, days=False))
        assert not fields.agree(START[0], [*shown(a1=2), undefined])
    assert all(fields.agree(state, []) for state in START)


def test_as_many_kinds_of_fields_as_there_are_do_not_pile_up(monkeypatch):
    """If the fields differ in every event, the kept data are bounded."""
    monkeypatch.setattr(fields_module, "MOST_TOGETHER", 3)
    fields = Fields(INSTANCE)
    for count in range(1, 9):
        assert fields.agree(START[0], shown(a1=2) * count)
        assert len(fields._together) <= 3


@pytest.mark.parametrize("kind", [dict, list])
def test_a_value_that_a_tracing_changes_is_read_again(kind):
    """The same object with other contents is another value."""
    fields = Fields(INSTANCE)
    value = {"a1": 2, "a2": 2}
    expression, given = (BALANCES, value) if kind is dict else ("[balance[a1]]", [2])
    assert fields.agree(START[0], [Seen("all", expression, given)])
    given["a1" if kind is dict else 0] = 3
    assert not fields.agree(START[0], [Seen("all", expression, given)])


def test_an_object_that_does_not_change_is_read_once(monkeypatch):
    """The purpose of a table: the second time nothing of it is read."""
    fields = Fields(INSTANCE)
    table = Table({"a1": 2, "a2": 2}.items())
    assert fields.agree(START[0], [Seen("all", BALANCES, table)])
    monkeypatch.setattr(fields_module, "_key", None)
    assert fields.agree(START[0], [Seen("all", BALANCES, table)])


def test_another_object_at_the_address_of_one_that_is_gone_is_read(monkeypatch):
    """Facts stored by address apply to the present object only; and to a limited number of objects."""
    monkeypatch.setattr(fields_module, "MOST_SAME", 3)
    fields = Fields(INSTANCE)
    for count in range(2, 30):
        balance = 2 + count % 2
        given = Seen("all", BALANCES, Table({"a1": balance, "a2": 2}.items()))
        assert fields.agree(START[0], [given]) is (balance == 2)
        assert len(fields.expression(BALANCES).same) <= 3


def test_a_plain_value_is_read_by_the_type_of_its_expression():
    """Expressions of one type share the values read, and those of others do not."""
    fields = Fields(INSTANCE)
    of_set, of_sequence = "{ balance[a] for a in Account }", "[balance[a1], balance[a2]]"
    for _ in range(2):
        assert fields.agree(START[0], [Seen("set", of_set, [2, 2]), Seen("sequence", of_sequence, [2, 2])])
        assert not fields.agree(START[0], [Seen("sequence", of_sequence, [2])])


def test_a_call_whose_arguments_change_is_another_call(tmp_path):
    """Facts stored by the address of a call apply only while nothing of it changes."""
    spec = tmp_path / "chosen.spec"
    spec.write_text(CHOSEN)
    called = CalledInstances(instantiate(check(str(spec))).program)
    names = {"a1"}
    call = Call("select", (names,))
    alone, twice = ((call,),), ((call, call),)
    assert called.of(call) == (0, [((0,),)])
    assert called.of_ways(alone)[0] == (((0, [((0,),)]),),)
    assert called.of_ways(twice)[0] == (((0, [((0,),)]),) * 2,)
    names.add("a2")
    assert called.of(call) == (0, [((0, 1),)])
    assert called.of_ways(alone)[0] == (((0, [((0, 1),)]),),)
    assert called.of_ways(twice)[0] == (((0, [((0, 1),)]),) * 2,)
    fixed = Call("select", (frozenset({"a2"}),))
    assert called.of(fixed) == called.of(fixed) == (0, [((1,),)])


@pytest.mark.parametrize("ahead", [1, 2, 512])
def test_an_event_that_cannot_be_read_is_reported_where_it_is_reached(ahead, monkeypatch):
    """However many events are read ahead, the first unexplained one is reported."""
    monkeypatch.setattr(reading_module, "READ_AHEAD", ahead)
    validator = Validator(INSTANCE)
    broken, wrong = {"event": "looked", "broken": True}, {"event": "looked", "after": {"a1": 4}}
    unknown = {"event": "moved", "from": "a1", "to": "nobody"}
    for events, number, reason in (
        ((moved("a1"), wrong, unknown), 2, ""),
        ((moved("a1"), wrong, broken), 2, ""),
        ((moved("a1"), moved("a2"), broken, wrong), 3, "it is broken"),
    ):
        recording = recorded(*events)
        blocked = validator.explain(BankTracing(validator.program, recording), recording).blocked
        assert (blocked.number, blocked.reason) == (number, reason)
    recording = recorded(moved("a1"), unknown, wrong)
    with pytest.raises(Unreadable, match=r"transfer\(a1, nobody\): 'nobody' is not a value of Account"):
        validator.explain(BankTracing(validator.program, recording), recording)


class RunningTracing(BankTracing):
    """Shows the same mapping in each event, which it changes."""

    balances: ClassVar[dict[str, int]] = {}

    def after(self, found: Event) -> list[Seen]:
        self.balances.update(found.get("after", {}))
        return [Seen("all", BALANCES, self.balances)]


def test_a_value_that_a_later_event_changes_is_compared_before_it_does():
    """Changes made by a tracing for a later event are not compared with an earlier state."""
    validator = Validator(INSTANCE)
    recording = recorded(moved("a1", a1=1, a2=3), moved("a1", a1=0, a2=4), moved("a2", a1=1, a2=3))
    found = validator.explain(RunningTracing(validator.program, recording), recording)
    assert (found.consumed, found.blocked) == (3, None)
    recording = recorded(moved("a1", a1=2, a2=2), moved("a1", a1=0, a2=4))
    blocked = validator.explain(RunningTracing(validator.program, recording), recording).blocked
    assert (blocked.number, blocked.meaning.seen[0].value) == (1, {"a1": 2, "a2": 2})


class TogetherTracing(BankTracing):
    """Shows its fields together."""

    def after(self, found: Event) -> SeenTogether:
        return SeenTogether.of(super().after(found))


def test_fields_shown_together_are_those_of_a_list():
    """The same verdicts, values and reports, whichever form a tracing uses."""
    validator = Validator(INSTANCE)
    good = recorded(moved("a1", a1=1, a2=3), moved("a2", a1=2, a2=2), moved("a1", a1=1))
    bad = recorded(moved("a1", a1=1, a2=3), moved("a2", a1=2, a2=3))
    for recording in (good, bad):
        listed, together = (
            validator.explain(kind(validator.program, recording), recording)
            for kind in (BankTracing, TogetherTracing)
        )
        assert (listed.consumed, listed.seen, listed.total) == (
            together.consumed,
            together.seen,
            together.total,
        )
        assert (listed.blocked is None) == (together.blocked is None)
        if listed.blocked is not None:
            assert list(listed.blocked.meaning.seen) == list(together.blocked.meaning.seen) != []
    seen = shown(a1=2, a2=1, days=0)
    together = SeenTogether.of(seen)
    assert (list(together), together[1:], together[-1]) == (seen, seen[1:], seen[-1])


def test_two_values_are_kept_of_a_field_that_changes():
    """The first and the next different one, with any other fields; 1 and true are two."""
    seen: dict[str, set[object]] = {}
    compared, one, two = (
        Compared(seen), ShownTogether(("x", "y"), [], None), ShownTogether(("y", "x"), [], None)
    )  # fmt: skip
    for together, values in ((one, [1, 5]), (two, [5, 1]), (one, [True, 5]), (two, [6, 2]), (one, [3, 7])):
        compared.add(together, values)
    assert seen == {"x": {"1", "True"}, "y": {"5", "6"}}


def test_a_tracing_is_freed_without_the_collector():
    """It does not refer to itself: none of thousands of recordings is kept until a collection."""
    gc.disable()
    try:
        tracing = BankTracing(INSTANCE.program, recorded(moved("a1")))
        tracing.meaning(tracing.recording.events[0])
        freed = weakref.ref(tracing)
        del tracing
        assert freed() is None
    finally:
        gc.enable()
