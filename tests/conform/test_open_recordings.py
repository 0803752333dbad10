"""Numbers that no event shows may be any: a horizon decides nothing about a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any, ClassVar

import pytest

from specchk.compile.instantiate import instantiate
from specchk.conform.contract.recording import Event, Recording, renumbered
from specchk.conform.contract.tracing import ANY, Call, Seen, Tracing, event
from specchk.conform.recordings import validate
from specchk.conform.recordings.contradiction import contradiction_of
from specchk.conform.recordings.events import open_states
from specchk.conform.recordings.explainer import CampaignOptions, RecordingExplainer
from specchk.conform.recordings.validate import Explained, Validator
from specchk.lang.frontend import check

HEAD = """spec counted
const MaxOffset : int
type Offset = nat upto MaxOffset
var n : Offset = 0
var m : Offset = 0
var small : 0..3 = 0
"""
MODEL = "model m:\n    MaxOffset = 2\n    expect holds\n"
FAR = 24  # more than the least numbers that explain a drawn recording


class CountedTracing(Tracing):
    """Each event has the arguments that it shows, and some variables."""

    spec, model, reads = "counted.spec", "m", "counted/1"
    silent: ClassVar[tuple[str, ...]] = ()

    @event("act")
    def act(self, found: Event) -> Call:
        return Call(found["action"], tuple(ANY if arg is None else arg for arg in found["args"]))

    def after(self, found: Event) -> Iterable[Seen]:
        for text, value in found.get("shown", {}).items():
            yield Seen(text, text, value)


class SilentTracing(CountedTracing):
    """The last action leaves no event."""

    silent: ClassVar[tuple[str, ...]] = ("quietly",)


def validator(actions: str, constants: dict[str, str] | None = None) -> Validator:
    return Validator(instantiate(check("counted.spec", HEAD + actions + MODEL), "m", constants or {}))


def recorded(events: Iterable[dict[str, Any]]) -> Recording:
    lines = renumbered({"at": 0, "event": "act", "args": (), **one} for one in events)
    return Recording("drawn", {"format": "counted/1"}, lines)


def explained(by: Validator, *events: dict[str, Any], tracing: type[Tracing] = CountedTracing) -> Explained:
    recording = recorded(events)
    return by.explain(tracing(by.program, recording), recording)


PICK = """action pick(k: Offset):
    require k > n
    n' = k
action mark():
    any k in Offset:
        require k > n + 1
        m' = k
action twice(k: Offset):
    n' = n + k
action every():
    require forall k in Offset: k <= n + 2
    m' = 1
action keep(k: Offset):
    small' = k
action quietly():
    any k in Offset:
        require k > n
        n' = k
"""
VALIDATOR = validator(PICK)


def act(action: str, *args: int | None, **shown: Any) -> dict[str, Any]:
    return {"action": action, "args": args, "shown": shown}


@pytest.mark.parametrize(
    "events",
    [
        [act("pick", 2), act("pick", None)],
        [act("pick", 2), act("mark")],
        [act("pick", None), act("pick", None), act("pick", None, n=3)],
        [act("pick", None), act("pick", None), act("mark", m=4), act("pick", None, n=9)],
        [act("mark", m=2), act("pick", 7), act("mark", n=7)],
        [act("twice", None, n=5), act("twice", None, n=8)],
        [act("mark"), act("keep", None, small=3)],
    ],
)
def test_a_number_beyond_the_horizon_that_no_event_shows_explains_an_event(events: list[Any]) -> None:
    """It was chosen, though it is in no event."""
    outcome = explained(VALIDATOR, *events)
    assert (outcome.blocked, outcome.gave_up, outcome.consumed) == (None, "", len(events))


@pytest.mark.parametrize(
    "events",
    [
        [act("pick", None), act("pick", None), act("pick", None, n=2)],
        [act("pick", 2), act("mark", m=3)],
        [act("mark", m=5), act("pick", 9), act("mark", m=10)],
        [act("pick", None), act("pick", None), act("keep", None, n=1)],
        [act("keep", None, small=4)],
        [act("pick", None, n="many")],
    ],
)
def test_what_no_number_at_all_explains_diverges(events: list[Any]) -> None:
    """The last event has no step, whatever was chosen before."""
    outcome = explained(VALIDATOR, *events)
    assert outcome.blocked is not None
    assert outcome.blocked.number == len(events)


@pytest.mark.parametrize(
    "events",
    [
        [act("pick", None), act("twice", None), act("twice", None, n=0)],
        [act("pick", 2), act("pick", None), act("every", m=2)],
    ],
)
def test_what_open_numbers_do_not_decide_has_no_verdict(events: list[Any]) -> None:
    """A sum of two, and a guard about all numbers: neither a divergence nor an explanation."""
    outcome = explained(VALIDATOR, *events)
    assert outcome.blocked is None
    assert "larger bounds" in outcome.gave_up


def test_a_map_with_keys_up_to_a_horizon_gives_no_verdict() -> None:
    """Whether it has a key depends on the horizon."""
    by = validator("var log : Offset -> bool = { k: true for k in Offset }\naction put(k: Offset):\n"
                   "    require log[k] and k > n\n    n' = k\n")  # fmt: skip
    assert explained(by, act("put", 2), act("put", 1)).gave_up
    assert explained(by, act("put", 2), act("put", None)).gave_up


def test_many_comparisons_of_open_numbers_give_no_verdict() -> None:
    """Ten numbers have some hundred million orders."""
    actions = (
        "var log : seq[Offset] upto 10 = []\naction put(k: Offset):\n    log' = append(log, k)\n"
        "action all():\n    require card({ k for k in log }) < 0\n"
    )
    found = explained(validator(actions, {"MaxOffset": "0"}), *[act("put", None)] * 10, act("all"))
    assert found.blocked is None
    assert "it compares many of them" in found.gave_up


def test_a_silent_step_may_choose_a_number_beyond_the_horizon() -> None:
    """No event shows it, nor even its action."""
    events = [act("pick", 2), act("pick", 4), act("mark", n=5)]
    outcome = explained(VALIDATOR, *events, tracing=SilentTracing)
    assert (outcome.blocked, outcome.gave_up, outcome.silent) == (None, "", 1)


@pytest.mark.parametrize(("shown", "is_explained"), [(1, False), (2, True), (7, True)])
def test_an_initial_value_may_be_beyond_the_horizon(shown: int, is_explained: bool) -> None:
    """Where `init` leaves it open."""
    by = validator(
        "var base : Offset\ninit: base > 1 and (base == 2 or base > 5)\naction see():\n    n' = base\n"
    )
    outcome = explained(by, act("see", n=shown))
    assert (outcome.blocked is None, outcome.gave_up) == (is_explained, "")
    assert explained(by, act("see", n=3)).blocked is not None


def test_a_shown_expression_that_lists_all_numbers_gives_no_verdict() -> None:
    """Its value ends at the horizon, where the implementation's does not."""
    outcome = explained(VALIDATOR, {**act("pick", 7), "shown": {"card({ k for k in Offset if k < n })": 7}})
    assert outcome.blocked is None
    assert "larger bounds" in outcome.gave_up


def test_the_report_on_a_divergence_has_the_fewest_lines_that_no_number_explains() -> None:
    """With numbers up to the horizon, the first two lines alone would contradict each other."""
    events = [act("pick", 2), act("pick", None), act("mark", m=1)]
    explainer = RecordingExplainer(
        CountedTracing, check("counted.spec", HEAD + PICK + MODEL), CampaignOptions(power=False)
    )
    recording = recorded(events)
    result = explainer.explained(recording)
    assert result.blocked is not None
    assert result.blocked.number == 3
    by = explained(VALIDATOR, *events).by
    assert by is not None
    found = contradiction_of(by, CountedTracing(by.program, recording), recording, 3)
    assert found is not None
    assert [line.number for line in found.lines] == [3]


GUARDS = ("k > {v}", "k > {v} + 1", "k <= {v}", "k < {v} + 2", "k == {v} + 1", "{v} > 2", "k >= 1")
STEPS = ("n' = k", "m' = k", "n' = m", "m' = n + 1", "n' = k + 1", "n' = k - 1")


def drawn_actions(random: Random) -> str:
    """Actions whose guards and steps compare and copy numbers, given, chosen or stored."""
    text = ""
    for name in ("a", "b", "c", "quietly"):
        guards = random.sample(GUARDS, random.randint(0, 2))
        lines = [f"require {guard.format(v=random.choice('nm'))}" for guard in guards]
        # A choice that is undefined for a number beyond the horizon is no step at all with a larger one.
        is_given = random.random() < 0.5 and name != "quietly"
        steps = random.sample([*STEPS, *(["small' = k"] if is_given else [])], random.randint(1, 2))
        lines += {step.split("'")[0]: step for step in steps}.values()
        if random.random() < 0.3:
            lines = [*lines[: len(guards)], "either:", *[f"    {one}" for one in lines[len(guards) :]],
                      "or:", "    small' = n"]  # fmt: skip
        if is_given:
            text += f"action {name}(k: Offset):\n" + "".join(f"    {line}\n" for line in lines)
        else:
            inside = "".join(f"        {line}\n" for line in lines)
            text += f"action {name}():\n    any k in Offset:\n{inside}"
    return text


def drawn_events(random: Random, by: Validator) -> list[dict[str, Any]]:
    """Events of any actions, some arguments and variables of which are shown."""
    events = []
    params = {action.name: len(action.params) for action in by.program.actions}
    for _ in range(random.randint(1, 5)):
        name = random.choice("abc")
        args = [random.randint(0, 4) if random.random() < 0.3 else None for _ in range(params[name])]
        shown = {
            one: random.randint(0, most) for one, most in (("n", 5), ("m", 5), ("small", 3))
            if random.random() < 0.15
        }  # fmt: skip
        events.append(act(name, *args, **shown))
    return events


def check_horizons(random: Random) -> Counter[str]:
    """Recordings are explained as far as by the same spec with a horizon that none of them reaches."""
    kinds = Counter[str]()
    actions, tracing = drawn_actions(random), random.choice((CountedTracing, SilentTracing))
    near, far = validator(actions), validator(actions, {"MaxOffset": str(FAR)})
    for _ in range(12):
        events = drawn_events(random, near)
        recording = recorded(events)
        wanted = far._explained(tracing(far.program, recording), recording)
        if wanted.gave_up:
            continue
        outcome = near.explain(tracing(near.program, recording), recording)
        if outcome.gave_up:
            kinds["none"] += 1
            continue
        assert (outcome.blocked is None, outcome.consumed) == (wanted.blocked is None, wanted.consumed)
        assert outcome.by is not None
        kind = "explained" if outcome.blocked is None else "diverges"
        kinds[f"{kind} {outcome.by.horizons.value}"] += 1
    return kinds


@pytest.mark.parametrize("seed", range(12))
def test_horizons_decide_nothing_of_what_no_event_shows(seed: int) -> None:
    """With silent steps, choices and undefined instances; without a verdict only for sums."""
    check_horizons(Random(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 200))
def test_horizons_decide_nothing_of_more(seed: int) -> None:
    """The same for more specs."""
    check_horizons(Random(seed))


def check_all(seeds: Iterable[int]) -> None:
    """Check recordings of several specs."""
    for seed in seeds:
        check_horizons(Random(seed))


def is_never_listed(*_: object) -> bool:
    """Planted: numbers that no event shows are below the horizon."""
    return False


def without_undefined(parts: Iterable[object], *_: object) -> list[object]:
    """Planted: an instance with an undefined alternative has the steps of the others."""
    return list(parts)


@pytest.mark.parametrize(
    ("place", "flaw"),
    [
        (f"{validate.__name__}.Validator._lists_horizon", is_never_listed),
        (f"{open_states.__name__}.outside", without_undefined),
    ],
    ids=["listed", "undefined"],
)
def test_a_flaw_is_noticed(place: str, flaw: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both show in these specs."""
    monkeypatch.setattr(place, flaw)
    with pytest.raises(AssertionError):
        check_all(range(40))
