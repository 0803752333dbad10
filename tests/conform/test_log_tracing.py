"""A log that somebody else writes is a recording: by a mapping, and in any order of its writers' lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from time import tzset
from typing import Any, ClassVar

import click
import pytest
from bank import SPEC, bank
from hypothesis import given
from hypothesis import strategies as st

from specchk.cli.commands.validate import recorded_files
from specchk.conform.contract.binding import BindingError
from specchk.conform.contract.log_tracing import LogTracing
from specchk.conform.contract.recording import BadRecording, Event, Recording
from specchk.conform.contract.tracing import ANY, Call, Seen, Ways, event
from specchk.conform.recordings.campaign import Campaign, run_campaign
from specchk.conform.recordings.explainer import CampaignOptions
from specchk.conform.recordings.orders import explained_in_order
from specchk.conform.recordings.validate import Validator
from specchk.conform.report.campaign_report import as_json, text, verdict
from specchk.lang.frontend import check

VALIDATOR = Validator(bank())


class Tills(LogTracing):
    """Coins that are moved between two accounts, as two tills of a shop would say it."""

    spec, model, reads = "bank.spec", "small", "tills"
    kind: ClassVar[str] = "what.said"
    names: ClassVar[Mapping[str, str]] = {"alice": "a1", "bob": "a2"}
    ignored: ClassVar[Mapping[str, str]] = {"opened": "no step"}

    @event("moved", "gave")
    def moved(self, found: Event) -> Call:
        return Call("transfer", (found["from"], found.get("to", ANY)))

    def after(self, found: Event) -> Iterable[Seen]:
        return [Seen("left", f"balance[{found['from']}]", found["left"])] if "left" in found else []


class Apart(Tills):
    """Each till has a file; a coin that is given has a number, and times are boxes."""

    per_writer: ClassVar[bool] = True
    sends: ClassVar[Mapping[str, tuple[str, ...]]] = {"gave": ("coin",)}
    receives: ClassVar[Mapping[str, tuple[str, ...]]] = {"moved": ("coin",)}

    time, within = "t", 1.0


def line(kind: str, **fields: Any) -> dict[str, Any]:
    return {"what": {"said": kind}, **fields}


def written(folder: Path, **files: Sequence[Mapping[str, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, lines in files.items():
        (folder / f"{name}.ndjson").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return folder


def validated(cls: type[LogTracing], *paths: Path) -> Campaign:
    return run_campaign(cls, check("bank.spec", SPEC), paths, CampaignOptions())


def test_lines_of_any_shape_are_events_with_their_places(tmp_path):
    """A field is renamed where an event has its own of that name; what is no step is counted."""
    rows = [line("opened"), line("moved", at="noon", **{"from": "alice"}), line("moved", **{"from": "bob"})]
    path = written(tmp_path / "day", till=rows) / "till.ndjson"
    path.write_text("\n" + path.read_text())
    recording = Tills.read(path)
    assert recording.unmapped == {"opened": 1}
    first, second = recording.events
    own = {"at": "till", "seq": 1, "event": "moved", "place": f"{path}:3"}
    assert first == {"what": {"said": "moved"}, "at_": "noon", "from": "a1", **own}
    assert (second["from"], second["seq"], recording.place(2)) == ("a2", 2, f"{path}:4")
    path.write_text("{} nonsense")
    with pytest.raises(BadRecording, match=r"till\.ndjson:1: this line is not a JSON object"):
        Tills.read(path)


def test_lines_that_nobody_maps_prove_nothing(tmp_path):
    """They are named with their number, whatever the other lines are; and without a step there is no pass."""
    rows = [line("moved", **{"from": "alice", "to": "bob"}), line("closed"), line("closed"), line("opened")]
    campaign = validated(Tills, written(tmp_path / "day", till=rows) / "till.ndjson")
    assert verdict(campaign) == "vacuous"
    assert "no method reads the lines `closed` (2): write a method for each" in campaign.vacuous[0]
    assert "  unmapped    3 lines, 2 kinds: `closed` 2, `opened` 1" in text(campaign)
    assert as_json(campaign, 21)["unmapped"] == {"closed": 2, "opened": 1}
    nothing = validated(Tills, written(tmp_path / "night", till=[line("opened")]) / "till.ndjson")
    assert (verdict(nothing), nothing.vacuous) == ("vacuous", ("no event was explained",))
    assert "  power       not measured" in text(nothing)


def test_a_line_that_is_not_explained_is_reported_as_it_is_read(tmp_path):
    """Where both agree, the line with its place, what the spec allows, and what forbids the line."""
    rows = [line("moved", **{"from": "alice", "to": "bob"}) for _ in range(3)]
    report = text(validated(Tills, written(tmp_path / "day", till=rows) / "till.ndjson"))
    parts = [
        "the explained events before it", "a state of the spec before the event:", "  balance[a1] = 0",
        "the unexplained event, ", "till.ndjson:3:", "what the spec allows there: ", "transfer(a2, a1)",
        "why the spec does not allow it", "transfer(a1, a2) is not enabled", "the smallest contradiction",
    ]  # fmt: skip
    places = [report.index(part) for part in parts]
    assert places == sorted(places), report


def test_messages_and_boxes_order_the_lines_of_several_files(tmp_path):
    """Bob has no third coin to give before he is given one; the files alone allow that."""
    give = line("gave", **{"from": "alice", "to": "bob", "coin": 7})
    bob = [line("gave", **{"from": "bob", "to": "alice"}) for _ in range(3)]
    free = written(tmp_path / "free", a=bob, b=[give])
    explained = validated(Apart, free)
    assert explained.tally.accepted == 1, text(explained)
    # Here she gives hers after his third has arrived.
    hers = [line("moved", **{"from": "alice", "to": "bob", "coin": 3})]
    his = [*bob[:2], line("gave", **{"from": "bob", "to": "alice", "coin": 3})]
    assert validated(Apart, written(tmp_path / "late", a=his, b=hers)).tally.blocked.count == 1
    timed = written(
        tmp_path / "timed", a=[{**one, "t": 1 + n} for n, one in enumerate(bob)], b=[{**give, "t": 9}]
    )
    assert validated(Apart, timed).tally.blocked.count == 1
    early = written(
        tmp_path / "early", a=[{**one, "t": 4 + n} for n, one in enumerate(bob)], b=[{**give, "t": 0}]
    )
    assert validated(Apart, early).tally.accepted == 1


def test_lines_that_have_no_order_have_no_verdict(tmp_path):
    """Each till received the other's coin before it gave its own."""
    moved, gave = ({"from": "alice", "coin": n} for n in (1, 2)), ({"from": "bob", "coin": n} for n in (1, 2))
    (m1, m2), (g1, g2) = ([line("moved", **one) for one in moved], [line("gave", **one) for one in gave])
    campaign = validated(Apart, written(tmp_path / "cycle", a=[m1, g2], b=[m2, g1]))
    assert verdict(campaign) == "vacuous"
    a, b = (tmp_path / "cycle" / name for name in ("a.ndjson", "b.ndjson"))
    pairs = f"{a}:1 is after {b}:2, {b}:1 is after {a}:2"
    assert campaign.vacuous[0] == f"cycle: messages or time boxes contradict the files: {pairs}"
    apart = [{**line("moved", **{"from": "alice"}), "t": time} for time in (9, 1)]
    campaign = validated(Apart, written(tmp_path / "boxes", a=apart, b=[{**apart[0], "t": 5}]))
    assert "a.ndjson:1 is after" in campaign.vacuous[0]
    assert "b.ndjson:1 (its box begins 2 later than that ends)" in campaign.vacuous[0]
    late = validated(Apart, written(tmp_path / "late", a=[{**m1, "t": "soon"}], b=[]))
    assert "late: the times or messages of its lines cannot be read: ValueError" in late.vacuous[0]


def test_a_message_orders_lines_only_if_its_sender_is_certain(tmp_path):
    """Lines without a number have no message, and of two senders none comes first."""
    hers, his = {"from": "alice", "to": "bob"}, {"from": "bob", "to": "alice"}
    # Hers come before his last one, for which he has no coin otherwise.
    bare = [line("moved", **his), line("moved", **his), line("gave", **his)]
    assert validated(Apart, written(tmp_path / "bare", a=bare, b=[line("moved", **hers)])).tally.accepted == 1
    first = [*[line("moved", **his)] * 3, line("gave", coin=1, **his)]
    received, second = line("moved", coin=1, **hers), line("gave", coin=1, **hers)
    both = written(tmp_path / "both", a=first, b=[received], c=[second])
    assert validated(Apart, both).tally.accepted == 1


def test_lines_that_order_others_are_read(tmp_path):
    """A kind in `receives` that has no method would order nothing."""

    class Unread(Apart):
        receives: ClassVar[Mapping[str, tuple[str, ...]]] = {"taken": ("coin",)}

    (mistake,) = Unread.mistakes()
    assert mistake.message == "`receives` has `taken`, which no method reads"
    assert mistake.hint == "write a method for it, which may return ()"


def test_a_copy_that_any_spec_would_refuse_does_not_count(tmp_path):
    """Swapped lines have swapped times, which contradict the files: that shows nothing of the spec."""
    times = {"a": (0, 10, 20, 30), "b": (5, 15, 25, 35)}
    rows = {name: [line("moved", t=t, **{"from": "alice"}) for t in ts] for name, ts in times.items()}

    class Anything(Apart):
        @event("moved", "gave")
        def moved(self, found: Event) -> Ways:  # type: ignore[override]
            return Ways(((), (Call("transfer", (found["from"], ANY)),)))

    copies = validated(Anything, written(tmp_path / "day", **rows)).tally.copies
    assert copies["drop", False] > 0
    assert copies["swap", True] == 0


def test_equal_lines_are_not_swapped(tmp_path):
    """They differ in their places, and show the same: the copy would be the same recording."""
    rows = [line("moved", **{"from": "alice", "to": "bob"}) for _ in range(2)]
    copies = validated(Tills, written(tmp_path / "day", till=rows) / "till.ndjson").tally.copies
    assert copies["drop", False] > 0
    assert copies["swap", False] == 0


def test_a_field_that_is_not_read_is_not_flipped(tmp_path):
    """Whatever its name; a copy with another value of it would show the same."""
    row = {"from": "alice", "to": "bob", "left": 1, "after": {"coffee": 3}}
    copies = validated(
        Tills, written(tmp_path / "day", till=[line("moved", **row)]) / "till.ndjson"
    ).tally.copies
    assert copies["flip", True] > 0
    assert copies["flip", False] == 0


def test_a_writers_file_is_no_run(tmp_path):
    """The others may contradict it; a file with several writers is one."""
    file = str(written(tmp_path / "day", a=[line("moved", **{"from": "alice", "to": "bob"})]) / "a.ndjson")
    with pytest.raises(click.UsageError, match="is one writer's file; with `per_writer` name them all"):
        recorded_files([file], Apart)

    class Named(Apart):
        writer = "till"

    assert recorded_files([file], Named) == [Path(file)]


TIME = st.none() | st.integers(0, 9)
MOVE = st.tuples(st.sampled_from(["a1", "a2"]), st.booleans(), st.integers(0, 2), st.integers(0, 1), TIME)


@given(st.lists(MOVE, max_size=6))
def test_an_order_is_found_exactly_if_there_is_one(moves):
    """All orders, tried one by one, give the same answer."""
    events: list[dict[str, Any]] = []
    for n, (source, shows, left, writer, time) in enumerate(moves):
        fields = {"from": source, "to": "a2" if source == "a1" else "a1", "place": f"{n}"}
        timed = {} if time is None else {"t": time}
        seen = {"left": left} if shows else {}
        events.append({"at": writer, "seq": 0, "event": "moved", **fields, **seen, **timed})
    recording = Recording("drawn", {"format": "tills"}, tuple(events))
    tracing = Apart(VALIDATOR.program, recording)

    def is_allowed(order: Sequence[int]) -> bool:
        place = {number: n for n, number in enumerate(order)}
        return all(
            (events[a]["at"] != events[b]["at"] or a > b or place[a] < place[b])
            and ("t" not in events[a] or "t" not in events[b] or events[a]["at"] == events[b]["at"]
                 or events[a]["t"] + 1 >= events[b]["t"] - 1 or place[a] < place[b])
            for a, b in permutations(order, 2)
        )  # fmt: skip

    def is_explained(order: Sequence[int]) -> bool:
        ordered = Recording("drawn", recording.header, tuple(events[n] for n in order))
        return VALIDATOR.explain(tracing.again(), ordered).blocked is None

    orders = [order for order in permutations(range(len(events))) if is_allowed(order)]
    if not orders:
        with pytest.raises(BadRecording):
            explained_in_order(VALIDATOR, tracing, recording)
        return
    found, ordered = explained_in_order(VALIDATOR, tracing, recording)
    assert (found.blocked is None) == any(map(is_explained, orders))
    assert is_allowed([int(one["place"]) for one in ordered.events])


def test_a_setting_that_can_match_nothing_is_a_mistake_of_the_mapping():
    """A misspelt kind, a text in place of a tuple, and an order of writers where there is one file."""

    class Wrong(Apart):
        ignored: ClassVar[Mapping[str, str]] = {"closed": "no step", "": "banners", "**": "the rest"}
        sends: ClassVar[Mapping[str, tuple[str, ...]]] = {"gavee": ("coin",)}
        receives: ClassVar[Mapping[str, Any]] = {"moved": "coin"}
        per_writer = False

    assert Apart.mistakes() == ()
    every, kind, fields, apart = Wrong.mistakes()
    assert every.message == "`ignored` has the pattern `**`, which is every kind"
    assert "`sends` has `gavee`, which no method reads" in kind.message
    assert kind.hint == "did you mean `gave`? Or write a method for it, which may return ()"
    assert (fields.message, fields.hint) == ("`receives` has a text for `moved`", "write ('coin',)")
    assert "`per_writer`" in apart.message


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("time", "tt", "no line has the field `tt` of `time`; did you mean `t`?"),
        ("time", "deep", "no line has the field `deep` of `time`; did you mean `so.deep`?"),
        ("writer", "til", "no line has the field `til` of `writer`; did you mean `till`?"),
        (
            "sends",
            {"gave": ("coins",)},
            "no line `gave` has the field `coins` of `sends`; did you mean `coin`?",
        ),
    ],
)
def test_a_field_that_no_line_has_is_no_verdict(tmp_path, monkeypatch, setting, value, reason):
    """The log would be explained without it, by more orders than the mapping allows."""
    give = line("gave", **{"from": "alice", "to": "bob", "coin": 7, "t": 1, "till": "x", "so": {"deep": 1}})
    folder = written(tmp_path / "day", a=[give], b=[])
    assert validated(Apart, folder).tally.accepted == 1
    monkeypatch.setattr(Apart, setting, value)
    campaign = validated(Apart, folder)
    assert (verdict(campaign), campaign.vacuous[0]) == ("vacuous", reason)


def test_lines_without_the_fields_of_a_message_have_no_order(tmp_path):
    """Two lines that both lack a number are not the same message."""
    receive, give = line("moved", **{"from": "alice"}), line("gave", **{"from": "alice", "to": "bob"})
    numbered = line("gave", **{"from": "bob", "to": "alice", "coin": 1})
    first = [receive, {**receive, "coin": 3}]
    assert validated(Apart, written(tmp_path / "a", a=[*first, numbered], b=[give])).tally.bad.count == 0


def test_files_that_are_named_together_are_one_run(tmp_path):
    """As their folder is; and a line's place is the file as it was named."""
    give = line("gave", **{"from": "alice", "to": "bob", "coin": 7, "t": 1})
    folder = written(tmp_path / "day", a=[give], b=[line("moved", coin=7, t=2, **{"from": "bob"})])
    (folder / "a.ndjson").rename(folder / "a.log")
    named = [str(folder / "a.log"), str(folder / "b.ndjson")]

    class Day(Apart):
        """Of this test alone: it keeps the files."""

    (place,) = recorded_files(named, Day)
    recording = Day.read(place)
    assert (recording.name, [one["place"] for one in recording.events]) == (
        "day",
        [f"{one}:1" for one in named],
    )
    assert [one["at"] for one in recording.events] == ["a", "b"]
    assert recorded_files(named, Tills) == [Path(one) for one in named]
    assert recorded_files([str(folder)], Apart) == [folder]


def test_the_next_line_of_each_writer_is_reported(tmp_path):
    """No line alone is to blame, nor a smallest contradiction claimed: the others may be the wrong ones."""
    give = {"from": "bob", "to": "alice"}
    rows = {"a": [line("moved", **give)] * 3, "b": [line("moved", **give)]}
    waits = {"c": [line("moved", coin=4, t=90, **give)], "d": [line("gave", coin=4, **give)]}
    lock = written(tmp_path / "day", **rows, **waits)
    report = text(validated(Apart, lock))
    assert "the other writers' next lines are not explained there either:" in report
    assert f"a: moved, {lock / 'a.ndjson'}:2: transfer(a2, a1): balance[a] > 0 is false" in report
    assert f"c: moved, {lock / 'c.ndjson'}:1: waits for {lock / 'd.ndjson'}:1" in report
    assert "the smallest contradiction" not in report


def test_a_silent_action_is_one_of_the_spec(tmp_path):
    """It ended specchk with an error of its own, where a silent step was first tried."""

    class Quiet(Tills):
        silent: ClassVar[tuple[str, ...]] = ("slep",)

    folder = written(tmp_path / "day", till=[line("moved", **{"from": "alice", "to": "bob"})])
    with pytest.raises(BindingError, match=r"`silent` has `slep`, which is no action of the spec") as refused:
        validated(Quiet, folder / "till.ndjson")
    assert refused.value.mistakes[0].hint == "did you mean `sleep`?"


def test_a_time_without_a_zone_is_that_of_no_machine(monkeypatch):
    """It is read as UTC, wherever the log is validated."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    tzset()
    try:
        naive, aware = (Apart.box({"t": f"2026-11-29T13:49:10{zone}"}) for zone in ("", "+00:00"))
    finally:
        monkeypatch.undo()
        tzset()
    assert naive == aware


LETTERS = """spec letters
sort Clerk
type Letter = { to: Clerk, urgent: bool }
var last : Clerk? = none
action post(l: Letter):
    require l.urgent
    last' = some(l.to)
action share(n: Clerk -> 0..1):
    require forall c in Clerk: n[c] == 1
    last' = none
model two:
    Clerk = 2
"""


class Letters(LogTracing):
    """A name is in a record, or a key."""

    spec, model = "letters.spec", "two"

    @event("posted")
    def posted(self, found: Event) -> Call:
        return Call("post", ({"to": found["to"], "urgent": found["urgent"]},))

    @event("shared")
    def shared(self, found: Event) -> Call:
        return Call("share", (found["n"],))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"event": "posted", "to": "ann", "urgent": True}, ".to: 'ann' is not a value of Clerk"),
        ({"event": "shared", "n": {"c1": 1, "ann": 1}}, "is not a value of Clerk -> 0..1"),
        ({"event": "posted", "to": "c1", "urgent": 1}, None),
        ({"event": "shared", "n": {"c1": 1, "c2": 2}}, None),
    ],
)
def test_a_wrong_name_inside_a_value_is_a_mistake_of_the_mapping(tmp_path, said, reason):
    """Of it there is no verdict, as of a name alone; another wrong value is the system's."""
    campaign = run_campaign(
        Letters, check("letters.spec", LETTERS), (written(tmp_path, a=[said]),), CampaignOptions()
    )
    if reason is None:
        assert campaign.tally.blocked.count == 1
    else:
        assert campaign.tally.blocked.count == 0
        assert f"{reason}; give it a name of the spec in `names`" in campaign.vacuous[0]
