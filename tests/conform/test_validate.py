"""A recording is accepted exactly if some behaviour of the spec has all recorded values."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from random import Random

import bank_tracing
import pytest
from bank import SPEC, bank
from bank_tracing import BankTracing, moved, recorded
from hypothesis import given
from hypothesis import strategies as st

from laws.sources import ROOT
from specchk.conform.contract.binding import BindingError
from specchk.conform.contract.recording import (
    BadRecording,
    Recording,
    Unreadable,
    decode,
    parse,
    shown_after,
)
from specchk.conform.contract.tracing import Call, Meaning, Seen, Tracing
from specchk.conform.contract.values import Table
from specchk.conform.recordings.corrupt import KINDS, spoil
from specchk.conform.recordings.events.fields import Fields
from specchk.conform.recordings.events.steps import MOST_COMPARED, distinct
from specchk.conform.recordings.explanation import explanation_of, miss_lines, render
from specchk.conform.recordings.validate import Explained, Validator

VALIDATOR = Validator(bank())
STEPS = st.lists(st.tuples(st.sampled_from(["a1", "a2"]), st.booleans(), st.booleans()), max_size=12)


def explained(recording: Recording) -> Explained:
    return VALIDATOR.explain(BankTracing(VALIDATOR.program, recording), recording)


def told_of(recording: Recording) -> str:
    found = explained(recording)
    assert found.blocked is not None
    return render(recording.name, len(recording.events), explanation_of(VALIDATOR, recording, found.blocked))


def walk(steps: list[tuple[str, bool, bool]]) -> list[dict]:
    """A bank's run, with some of its arguments and balances."""
    balance, events = {"a1": 2, "a2": 2}, []
    for source, tells_to, tells_after in steps:
        to = "a2" if source == "a1" else "a1"
        if balance[source]:
            balance = {source: balance[source] - 1, to: balance[to] + 1}
            events.append(moved(source, to if tells_to else None, **(balance if tells_after else {})))
    return events


@given(STEPS)
def test_what_the_spec_allows_is_accepted_however_little_is_told(steps):
    """Omitting arguments and fields never makes a behaviour unexplained."""
    recording = recorded(*walk(steps))
    found = explained(recording)
    assert found.blocked is None
    assert found.consumed == len(recording.events)


@given(STEPS, st.integers(min_value=1, max_value=4))
def test_a_wrong_balance_at_the_end_is_never_accepted(steps, more):
    """Whatever was omitted before, recorded values must be the spec's."""
    events = walk(steps)
    right = 2 + sum(1 if one["from"] == "a2" else -1 for one in events)
    wrong = {"event": "looked", "after": {"a1": (right + more) % 5}}
    assert explained(recorded(*events, wrong)).blocked is not None


def test_an_open_choice_is_two_candidates_until_something_shows_it():
    """A toss that shows no coin leaves both; observing it leaves one."""
    toss, heads = {"event": "tossed"}, {"event": "looked", "after": {"coin": "heads"}}
    assert explained(recorded(toss)).most == 2
    found = explained(recorded(toss, heads, heads))
    assert (found.most, found.total, found.blocked) == (2, 4, None)
    assert (
        explained(recorded(toss, heads, {"event": "looked", "after": {"coin": "tails"}})).blocked is not None
    )


def test_an_event_may_be_one_of_several_steps_or_none():
    """Each possibility is followed, also that of no step."""
    assert explained(recorded({"event": "perhaps"})).most == 3


def test_silent_steps_are_taken_only_where_nothing_else_explains():
    """Nights are not recorded; as many are assumed as needed, and no more in a row than the tracing has."""
    assert explained(recorded(moved("a1"), moved("a2"))).silent == 0
    slept = explained(recorded(moved("a1"), {"event": "looked", "after": {"days": 2}}))
    assert (slept.silent, slept.blocked) == (2, None)
    assert explained(recorded({"event": "looked", "after": {"days": 4}})).blocked is not None


def test_a_guard_in_the_way_is_named_with_its_values():
    """The report has the false conjunct of the action that the event names."""
    text = told_of(recorded(moved("a1"), moved("a1"), moved("a1", "a2")))
    assert "explains event 3 of 3" in text
    assert "balance[a] > 0 is false  (balance[a] = 0)" in text
    assert "transfer(a1, a2) is not enabled" in text


def test_a_guard_below_a_not_is_shown_as_true_and_a_reason_as_it_is():
    """Never "x is none is false"."""
    truths = {"x == 1": True, "m != none": False, "no branch is enabled": None}
    guards = [
        {"text": text, "truth": truth, "where": "s:1:1", "values": {}} for text, truth in truths.items()
    ]
    lines = [line.strip() for line in miss_lines({"step": "go()", "guards": guards, "fields": []})]
    assert lines[1::2] == ["x == 1 is true", "m != none is false", "no branch is enabled"]


def test_a_field_in_the_way_is_named_with_both_values():
    """If the step is possible, the report has the values in which it differs."""
    text = told_of(recorded(moved("a1", "a2", a1=0)))
    assert "balance[a1] is 1; the recording has a1 0" in text


def test_a_step_that_would_explain_the_event_is_suggested():
    """Another action after which all values agree is reported as such."""
    text = told_of(recorded(moved("a1", "a2", a1=3, a2=1)))
    assert "steps that lead to a state like the event's: transfer(a2, a1)" in text


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"event": "eaten"}, "no method reads the event `eaten`"),
        ({"event": "looked", "broken": True}, "it is broken"),
    ],
)
def test_an_event_that_cannot_be_read_is_not_explained(event, reason):
    """An event without a meaning is reported as such, and never skipped."""
    assert reason in told_of(recorded(event))


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"event": "moved"}, "moved`) cannot be read: KeyError: 'from', in `moved` (bank_tracing.py:"),
        (moved("a7", "a1"), "'a7' is not a value of Account; give it a name of the spec in `names`"),
    ],
)
def test_an_event_that_the_mapping_cannot_express_is_no_verdict(event, reason):
    """The system is not blamed for it; and a corrupted copy with it is refused."""
    with pytest.raises(Unreadable) as refused:
        explained(recorded(event))
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("calls", "shows", "message", "hint"),
    [
        ((Call("tosss"),), (), "the spec has no action `tosss`", "did you mean `toss`?"),
        ((Call("transfer", ("a1",)),), (), "`transfer` takes 2 arguments, not 1", "give (a, b), or `ANY`"),
        (
            (),
            (Seen("coin", "cion == 1", 1),),
            "no name `cion` is known here, in `cion == 1`",
            "did you mean `coin`?",
        ),
    ],
)
def test_what_the_spec_does_not_have_is_a_mistake_of_the_tracing(calls, shows, message, hint, monkeypatch):
    """With the event and its method, also from another process."""
    monkeypatch.setattr(BankTracing, "meaning", lambda *_: Meaning((calls,), shows))
    with pytest.raises(BindingError) as refused:
        explained(recorded({"event": "tossed"}))
    (mistake,) = pickle.loads(pickle.dumps(refused.value)).mistakes
    assert message in mistake.message
    assert mistake.hint.startswith(hint)
    assert "the event `tossed` (`BankTracing.tossed`)" in mistake.at


@pytest.mark.parametrize("args", [1, "a1"])
def test_arguments_that_are_no_tuple_are_refused(args):
    """`("a1")` is a text, and `(1)` a number."""
    with pytest.raises(TypeError, match=r"the arguments of `toss` are .*, and not a tuple"):
        Call("toss", args)


class OddError(Exception):
    """A tracing's own."""


@pytest.mark.parametrize("error", [OddError("planted"), AssertionError("planted"), SystemExit(0)], ids=repr)
def test_whatever_a_tracing_raises_is_of_its_event(error, monkeypatch):
    """No exception ends a campaign (it takes `BadRecording`), and no `sys.exit` ends it with success."""

    def fails(*_):
        raise error

    monkeypatch.setattr(BankTracing, "after", fails)
    with pytest.raises(Unreadable, match=rf"cannot be read: {type(error).__name__}: {error}"):
        explained(recorded(moved("a1", "a2")))


def test_a_value_outside_the_spec_is_not_explained():
    """A balance that the spec cannot express equals none."""
    assert explained(recorded({"event": "looked", "after": {"a1": 99}})).blocked is not None


def lines(*events: dict, header: object = None, events_written: int | None = None) -> list[str]:
    count = len(events) if events_written is None else events_written
    return [json.dumps(one) for one in (header or {"format": "x"}, *events, {"end": True, "events": count})]


ONE, TWO = {"at": 1, "seq": 1, "event": "e"}, {"at": 1, "seq": 2, "event": "e"}


@pytest.mark.parametrize(
    ("given_", "reason"),
    [
        ([], "is not a header"),
        (lines(ONE, header={"seed": 1}), "is not a header"),
        (lines(ONE, TWO)[:-1], "ends without its trailer"),
        (lines(ONE, events_written=2), "2 events were written, 1 were read"),
        (lines(TWO), "event 2 of 1 is out of order; expected 1"),
        (lines(TWO, ONE), "event 2 of 1 is out of order; expected 1"),
        (lines({"at": 1, "seq": 1}), "needs `at`, `seq` and `event`"),
        (lines({**ONE, "seq": True}), "needs `at`, `seq` and `event`"),
        (lines({**ONE, "seq": 1.0}), "needs `at`, `seq` and `event`"),
        (lines({**ONE, "at": True}), "needs `at`, `seq` and `event`"),
        (["{", *lines()], "is not a JSON object"),
    ],
)
def test_a_recording_that_is_not_whole_is_refused(given_, reason):
    """A lost line, at the end too, is detected before anything is explained."""
    with pytest.raises(BadRecording, match=reason):
        parse("r", given_)


@given(STEPS.filter(lambda steps: len(walk(steps)) > 2), st.sampled_from(KINDS), st.integers())
def test_a_spoiled_copy_is_whole_and_differs(steps, kind, seed):
    """A copy is refused for its contents, not for its numbering."""
    right = recorded(*walk(steps))
    spoiled = spoil(right, kind, Random(seed))
    if spoiled is not None:
        copy = spoiled.recording
        assert copy.events != right.events
        again = parse("copy", lines(*copy.events, header=dict(copy.header)))
        assert again.events == copy.events


def test_what_an_event_shows_need_not_be_an_object():
    """A recorder may show one number: it is spoiled like a field, and printed as one."""
    for value in (1, 0):
        shown = {"at": 1, "seq": 1, "event": "up", "after": value}
        spoiled = spoil(Recording("r", {}, (shown,)), "flip", Random(1))
        assert spoiled is not None
        assert spoiled.recording.events[0]["after"] in (value - 1, value + 1)
        assert spoiled.what.startswith("after of event 1 (up) is ")
    assert shown_after({"after": {}}) == shown_after({}) == {}


def test_a_tracing_understands_what_it_marks():
    """The table of events is that of the marked methods, inherited ones included."""

    class Derived(BankTracing):
        pass

    assert set(Derived.events()) == {"moved", "tossed", "perhaps", "looked"}
    assert Tracing.events() == {}


def test_a_string_may_have_other_ends_of_lines() -> None:
    """JSON escapes neither U+0085 nor U+2028; a line ends at its newline, which the last may lack."""
    text = "\u0085 and \u2028"
    event = json.dumps({"at": 1, "seq": 1, "event": "a", "text": text}, ensure_ascii=False)
    lines = "\n".join(['{"format": "f"}', event, '{"end": true, "events": 1}'])
    for data in (lines, f"{lines}\n", lines.replace("\n", "\r\n")):
        assert decode("r", data.encode()).events[0]["text"] == text


@pytest.mark.parametrize("data", ["[" * 100_000, "", "\n", "{}", "1" * 5_000])
def test_what_is_no_recording_is_refused(data: str) -> None:
    """For any unreadable content."""
    with pytest.raises(BadRecording, match=r"^r:1: "):
        decode("r", data.encode())


@pytest.mark.system
def test_a_tracing_that_ends_its_process_explains_nothing(tmp_path):
    """`os._exit(0)` determines neither specchk's exit code nor its output."""
    text = Path(bank_tracing.__file__).read_text().replace('return Call("toss")', "os._exit(0)")
    (tmp_path / "tracing.py").write_text(text.replace("from __future__ import annotations", "import os"))
    (tmp_path / "bank.spec").write_text(SPEC)
    lines = [{"format": "bank/1"}, {"at": 0, "seq": 1, "event": "tossed"}, {"end": True, "events": 1}]
    (tmp_path / "one.ndjson").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    done = subprocess.run(
        [sys.executable, "-m", "specchk", "validate", "tracing.py", "one.ndjson", "--partial", "--no-power"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "interp")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (21, "")
    assert "SystemExit: 0" in done.stdout


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=2 * MOST_COMPARED))
def test_states_are_kept_once_and_in_their_order(states: list[tuple[int, bool]]) -> None:
    """Compared in pairs or by hash, depending on their number, the same states are kept."""
    assert list(distinct(states)) == list(dict.fromkeys(states))


@pytest.mark.parametrize(
    "shown",
    [(1, True), ({1, 2}, {True, 2}), tuple(Table([("a1", n), ("a2", 0)]) for n in (1, True))],
)
def test_equal_values_of_other_types_are_not_mistaken_for_each_other(shown: tuple[object, object]) -> None:
    """Values read for 1 are not those read for True, which are equal in Python; nor inside others."""
    kinds = {int: "days", set: "{1, 2}", Table: "{ a: days for a in Account }"}
    number, truth = shown
    for first, second in (shown, shown[::-1]):
        expression = Fields(bank()).expression(kinds[type(number)])
        read = [expression.wanted(first), expression.wanted(second)]
        assert [isinstance(one, str) for one in read] == [first is truth, second is truth]
        assert number == truth
