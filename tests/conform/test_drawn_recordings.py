"""Recordings of random specs are explained up to the event at which no possible state is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agreement.further_specs import further_spec
from agreement.random_specs import spec_with_maps, wider_spec
from specchk.compile.instantiate import Instance, instantiate
from specchk.conform.contract.recording import Event, Recording, renumbered
from specchk.conform.contract.tracing import ANY, Call, Repeated, Seen, Tracing, Ways, event
from specchk.conform.contract.values import plain
from specchk.conform.recordings.validate import Validator
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Properties
from specchk.meaning.step import Stepper
from specchk.meaning.values import State, universe
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.verdict import Violated

SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
RANDOMS = st.randoms(use_true_random=False)
FEW = Options(Budget(max_states=150), symmetry=False, keep_going=True)
MOST_CALLS = 200
SILENT = 2  # silent steps in a row
KINDS = ("one", "one", "one", "repeated", "perhaps", "two")
Args = tuple[Any, ...]  # of each argument a tuple with its value, or None where it is unknown


class Possible:
    """The sets of possible states of a spec, computed plainly."""

    def __init__(self, program: Program, silent: int | None) -> None:
        self.program, self.silent = program, silent
        self.stepper = Stepper(program)
        self.properties = Properties(program, self.stepper)
        self.calls = [
            (at, args) for at, one in enumerate(program.actions)
            for args in product(*(sorted(universe(param.type)) for param in one.params))
        ]  # fmt: skip

    def taken(self, states: Iterable[State], action: int, args: Args | None) -> set[State]:
        """The states after an action, with arguments that are partly known or unknown."""
        known = args or (None,) * len(self.program.actions[action].params)
        fitting = [
            call for at, call in self.calls
            if at == action and all(one in (None, (arg,)) for one, arg in zip(known, call, strict=True))
        ]  # fmt: skip
        return {
            after for state in states for call in fitting
            for _, _, after in self.stepper.of_action(state, action, call)
        }  # fmt: skip

    def before(self, states: set[State]) -> set[State]:
        """The states reached by silent steps, too."""
        reached = set(states)
        for _ in range(SILENT if self.silent is not None else 0):
            reached |= self.taken(reached, self.silent or 0, None)
        return reached

    def after(self, states: set[State], found: Event) -> set[State]:
        """The states after an event."""
        before, act = self.before(states), (found["action"], found["args"])
        once = self.taken(before, *act)
        twice = self.taken(once, *act)
        reached = {
            "one": once, "two": twice, "perhaps": once | before,
            "repeated": once | twice | self.taken(twice, *act),
        }[found["kind"]]  # fmt: skip
        return {state for state in reached if all(state[at] == value for at, value in found["shown"].items())}

    def explained(self, events: list[dict[str, Any]]) -> tuple[int, str]:
        """The number of events that a behaviour explains, up to one after which an invariant is false."""
        states = set(initial_states(self.program))
        for number, found in enumerate(events):
            states = self.after(states, found)
            if not states:
                return number, ""
            for prop, _ in self.properties.invariants:
                if not any(self.may_hold(prop.name, state) for state in states):
                    return number + 1, prop.name
        return len(events), ""

    def may_hold(self, name: str, state: State) -> bool:
        """Whether an invariant is true in a state, or undefined."""
        env = self.properties.environment(state)
        failed = self.properties.failed(env, self.properties.invariants)
        return not any(prop.name == name and kind == "invariant" for prop, kind, _ in failed)


def tracing_of(program: Program, silent: int | None) -> type[Tracing]:
    """A tracing with an event for each action; its events have the spec's own values."""

    class Own(Tracing):
        spec, reads = "random.spec", "own/1"
        most_silent: ClassVar[int] = SILENT

        def after(self, found: Event) -> Iterable[Seen]:
            for at, value in found["shown"].items():
                variable = program.variables[at]
                yield Seen(variable.name, variable.name, plain(value, variable.type))

    def reading(_: Any, found: Event) -> Any:
        action = program.actions[found["action"]]
        args = zip(found["args"], action.params, strict=True)
        call = Call(action.name, tuple(ANY if one is None else plain(one[0], p.type) for one, p in args))
        forms = {"repeated": Repeated(call, 1, 3), "perhaps": Ways(((call,), ())), "two": (call, call)}
        return forms.get(found["kind"], call)

    for one in program.actions:
        setattr(Own, f"read_{one.name}", event(one.name)(lambda tracing, found: reading(tracing, found)))
    Own.silent = () if silent is None else (program.actions[silent].name,)
    return Own


def walk(random: Random, possible: Possible) -> list[dict[str, Any]]:
    """The events of a behaviour, with some arguments and values omitted."""
    program, events = possible.program, list[dict[str, Any]]()
    state = random.choice(initial_states(program))
    for _ in range(random.randint(2, 6)):
        ways = [
            (at, args, after) for at, args in possible.calls
            for _, _, after in possible.stepper.of_action(state, at, args)
        ]  # fmt: skip
        if not ways:
            break
        at, args, state = random.choice(ways)
        if at == possible.silent and random.random() < 0.5:
            continue
        kind = random.choice(KINDS)
        further = sorted(possible.taken([state], at, tuple((arg,) for arg in args)))
        if kind == "two" and further:
            state = random.choice(further)
        known = tuple(None if random.random() < 0.3 else (arg,) for arg in args)
        shown = {slot: state[slot] for slot in range(len(state)) if random.random() < 0.6}
        about = {"event": program.actions[at].name, "action": at, "args": known, "shown": shown}
        events.append({**about, "kind": kind if further else "one"})
    return events


def spoiled(random: Random, events: list[dict[str, Any]], possible: Possible) -> list[dict[str, Any]]:
    """The events with one that is lost, repeated, of another kind, or with another value."""
    found = [dict(one) for one in events]
    at = random.randrange(len(found))
    form = random.choice(("lost", "repeated", "other", "other", "value", "value"))
    if form == "lost":
        del found[at]
    elif form == "repeated":
        found.insert(at, dict(found[at]))
    elif form == "other":
        action, args = random.choice(possible.calls)
        name = possible.program.actions[action].name
        found[at] |= {"event": name, "action": action, "args": tuple((arg,) for arg in args)}
    else:
        slot = random.randrange(len(possible.program.variables))
        states = possible.before(possible.taken(initial_states(possible.program), found[at]["action"], None))
        values = [state[slot] for state in sorted(states)] or [initial_states(possible.program)[0][slot]]
        found[at] |= {"shown": {**found[at]["shown"], slot: random.choice(values)}}
    return found


def drawn(random: Random, folder: Path) -> Instance | None:
    """A random spec of a few states, all of whose steps are defined and within its constraints."""
    make = random.choice((further_spec, spec_with_maps, wider_spec))
    (folder / "random.spec").write_text(make(random), encoding="utf-8")
    try:
        instance = instantiate(check(str(folder / "random.spec")))
    except SpecError:
        return None
    whole = reference.search(instance.program, FEW)
    found = whole.verdict.violations if isinstance(whole.verdict, Violated) else ()
    is_fitting = whole.stopped is None and whole.statistics.distinct > 1 and not instance.program.constraints
    return instance if is_fitting and all(one.kind != "undefined" for one in found) else None


def check_recordings(random: Random, folder: Path) -> Counter[str]:
    """Check that recordings, correct and corrupted, are explained as far as there are states."""
    kinds = Counter[str]()
    instance = drawn(random, folder)
    if instance is None:
        return kinds
    program = instance.program
    silent = random.choice((None, random.randrange(len(program.actions))))
    possible = Possible(program, silent)
    if len(possible.calls) > MOST_CALLS:
        return kinds
    own, validator = tracing_of(program, silent), Validator(instance)
    for _ in range(3):
        right = walk(random, possible)
        for events in [right, *(spoiled(random, right, possible) for _ in range(3 if right else 0))]:
            recording = Recording(
                "drawn", {"format": "own/1"}, renumbered({"at": 0, **one} for one in events)
            )
            explained = validator.explain(own(program, recording), recording)
            wanted, broken = possible.explained(events)
            blocked = explained.blocked
            assert not explained.gave_up
            assert (blocked.invariant if blocked else "", explained.consumed) == (broken, wanted)
            assert (blocked is None) == (wanted == len(events) and not broken)
            kinds["breaks" if broken else "explained" if blocked is None else "diverges"] += 1
        count, broken = possible.explained(right)
        assert broken or count == len(right)
    return kinds


@settings(max_examples=20, suppress_health_check=SHARED)
@given(random=RANDOMS)
def test_recordings_are_explained_as_far_as_there_are_states(random: Random, tmp_path: Path) -> None:
    """With silent steps, steps in a row, unknown arguments and values; correct and corrupted recordings."""
    check_recordings(random, tmp_path)


@pytest.mark.slow
@settings(max_examples=300, suppress_health_check=SHARED)
@given(random=RANDOMS)
def test_many_recordings_are_explained_as_far_as_there_are_states(random: Random, tmp_path: Path) -> None:
    """The same for more."""
    check_recordings(random, tmp_path)


@pytest.mark.parametrize(
    ("name", "flaw"),
    [("silently", lambda *_: ()), ("by_repeated", lambda *_: ())],
    ids=["silent", "repeated"],
)
def test_a_flaw_of_the_validator_is_noticed(
    name: str, flaw: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Recordings that only silent steps, or steps in a row, explain."""
    check_recordings(Random(25), tmp_path)
    monkeypatch.setattr(Validator, name, flaw)
    with pytest.raises(AssertionError):
        check_recordings(Random(25), tmp_path)
