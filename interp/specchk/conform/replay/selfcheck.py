"""Self-check of the harness: a case of a binding's own suite, with each of the named sabotages.

    the start is another state             initial      an enabled step is refused          refused
    the last step leads elsewhere          state        a forbidden step is taken           accepted
    a handler does nothing and accepts     state        a refused step changes the state    changed
                                                        saved state is lost                 restored

A saboteur is a class derived from the binding that tells one lie.  The harness must name each lie
correctly, and must find nothing in the unchanged binding: a comparison that is always true, a suite
without steps, probes that are skipped, a projection taken from the spec do not pass both.

Invariant: the sabotaged places are found by running the binding, so this works for any binding.  Not
here: mistakes of an implementation (`known_bad`, `mutants`), and breaking the harness (`harness`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from specchk.compile.instantiate import Instance
from specchk.conform.contract import Accepted, Answer, Binding, Refused, action, project
from specchk.conform.contract.binding import restore, unchanged
from specchk.conform.covers.cases import Suite, SuiteCase
from specchk.conform.replay.place import Place
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import after_step, run_suite

Handler = Callable[..., Any]
Plain = Mapping[str, Any]
Given = tuple[Any, ...]
AT_THE_END = (
    "the last step leads elsewhere",
    "a handler does nothing and accepts",
    "an enabled step is refused",
)


class NothingToSabotage(Exception):
    """The suite has no case in which a sabotage is possible."""


class Detection(Struct, frozen=True):
    """A sabotage, the expected kind of divergence, and the reported one (empty: none)."""

    lie: str
    wanted: str
    found: str

    @property
    def is_right(self) -> bool:
        """Whether the harness reported the expected kind."""
        return self.wanted == self.found

    def __str__(self) -> str:
        reported, expected = self.found or "no divergence", self.wanted or "no divergence"
        return f"{self.lie}: " + (reported if self.is_right else f"expected {expected}, found {reported}")


class _Scene(Struct, frozen=True):
    """A case, and the implementation's states at its start, before its last step, and at its end.

    Where it looks like `where` it refuses the action `refused`.
    """

    case: SuiteCase
    first: Plain
    before: Plain
    last: Plain
    action: str
    args: Given
    where: Plain
    refused: str


def self_check(cls: type[Binding[Any]], instance: Instance, suite: Suite) -> Iterator[Detection]:
    """Run the suite unchanged, then one of its cases with each sabotage."""
    result = run_suite(Replayer(cls(instance.program)), suite)
    missed = result.coverage.missed if result.coverage is not None else ()
    kind = "" if result.divergence is None else result.divergence.kind
    kind = kind or result.vacuous or (f"{len(missed)} classes missed" if missed else "")
    yield Detection("none", "", kind)
    if kind:
        return  # of a case that diverges anyway the kind would show nothing
    scene = _scene(cls(instance.program), suite)
    for lie, wanted, changes in _lies(cls, scene):
        # Derived under the same name: reports of a sabotaged run look like any other.
        saboteur = type(cls.__name__, (cls,), changes)
        replayer = Replayer(saboteur(instance.program))
        divergence = run_suite(replayer, suite, cases=[scene.case]).divergence
        reported = "" if divergence is None else divergence.kind
        early = 0 if divergence is None else len(scene.case.steps) - len(divergence.trace.steps) - 1
        # The right kind at another step is of another cause than the lie.
        if early and lie in AT_THE_END:
            reported += f", {early} steps too early"
        yield Detection(lie, wanted, reported)


def _scene(binding: Binding[Any], suite: Suite) -> _Scene:
    """The shortest suitable case; `NothingToSabotage` if there is none."""
    replayer = Replayer(binding)
    # The shortest suitable case: each lie runs it again.
    for case in sorted(suite.cases, key=lambda one: (len(one.steps), one.id)):
        places = _places(replayer, case)
        states = [place.state for place in places]
        # Lies concern one state of the case: it must be met once, and differ from the others.
        if len(states) < 3 or states[-1] in states[:-1] or states[0] == states[1]:
            continue
        looks = [_look(binding, place) for place in places]
        refused = _refused(replayer, places)
        if refused is not None:
            where, action_name = refused
            taken = places[-1].step
            assert taken is not None
            args = replayer.spec.instance(taken).plain
            return _Scene(
                case, looks[0], looks[-2], looks[-1], case.steps[-1].action, args, looks[where], action_name
            )
    raise NothingToSabotage("the suite has no case of two steps with a refusal on the way")


def _places(replayer: Replayer[Any], case: SuiteCase) -> list[Place[Any]]:
    """The places along a case; fewer if the implementation chooses otherwise."""
    places = [replayer.begin()]
    for step in case.steps:
        after = after_step(replayer, places[-1], step)
        if after is None:
            break
        places.append(after)
    return places


def _method(binding: Binding[Any], mark: str) -> Handler:
    method: Handler = getattr(binding, type(binding).marked(mark) or "")
    return method


def _look(binding: Binding[Any], place: Place[Any]) -> Plain:
    state: Plain = _method(binding, "project")(_method(binding, "restore")(place.kept))
    return state


def _refused(replayer: Replayer[Any], places: Sequence[Place[Any]]) -> tuple[int, str] | None:
    """The first place in which the implementation itself refuses an action, and that action."""
    handlers = {one.action: one.method for one in type(replayer.binding).actions()}
    for number, place in enumerate(places):
        for instance in replayer.spec.options(place.state)[1]:
            system = _method(replayer.binding, "restore")(place.kept)
            ask = getattr(replayer.binding, handlers[instance.label.action])
            way = instance.ways[0]
            # The implementation itself must refuse it; a step that the binding calls impossible cannot be
            # lied about.
            if isinstance(ask(system, *instance.plain, *([way] if way else [])), Refused):
                return number, instance.label.action
    return None


def _lies(cls: type[Binding[Any]], scene: _Scene) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each sabotage with the expected kind of divergence, and the methods that implement it."""
    yield "the start is another state", "initial", _seen(cls, scene.first, scene.last)
    yield AT_THE_END[0], "state", _seen(cls, scene.last, scene.first)
    name, before, args = scene.action, scene.before, scene.args
    yield AT_THE_END[1], "state", _answers(cls, name, before, lambda _: Accepted(), args)
    yield AT_THE_END[2], "refused", _answers(cls, name, before, lambda _: Refused("a lie"), args)
    yield "a forbidden step is taken", "accepted", _answers(cls, scene.refused, scene.where, _agree)
    yield "a refused step changes the state", "changed", _tainting(cls, scene)
    back = cls.marked("restore") or ""
    yield "what was kept is forgotten", "restored", {back: restore(lambda self, kept: self.start())}


def _agree(ask: Callable[[], Answer]) -> Answer:
    answer = ask()
    return Accepted() if isinstance(answer, Refused) else answer


def _seen(cls: type[Binding[Any]], true: Plain, lie: Plain) -> dict[str, Any]:
    """A projection that shows one state as another."""
    name = cls.marked("project") or ""
    right = getattr(cls, name)

    def look(self: Binding[Any], system: Any) -> Plain:
        state: Plain = right(self, system)
        return lie if state == true else state

    return {name: project(look)}


def _answers(
    cls: type[Binding[Any]], name: str, where: Plain, reply: Callable[[Callable[[], Answer]], Answer],
    args: Given | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A handler that answers otherwise in one state, for some or all arguments."""
    bound = next(one for one in cls.actions() if one.action == name)
    right, look = getattr(cls, bound.method), getattr(cls, cls.marked("project") or "")

    def handle(self: Binding[Any], system: Any, *arguments: Any) -> Answer:
        def ask() -> Answer:
            answer: Answer = right(self, system, *arguments)
            return answer

        # The way, where there is one, comes after the arguments.
        is_meant = args is None or arguments[: len(args)] == args
        return reply(ask) if is_meant and look(self, system) == where else ask()

    return {bound.method: action(name, bound.ways)(handle)}


def _tainting(cls: type[Binding[Any]], scene: _Scene) -> dict[str, Any]:
    """A handler that refuses, but changes something."""
    tainted: list[bool] = []
    name, back = cls.marked("project") or "", cls.marked("restore") or ""
    look, again = getattr(cls, name), getattr(cls, back)

    def spoil(ask: Callable[[], Answer]) -> Answer:
        answer = ask()
        if isinstance(answer, Refused):
            tainted.append(True)
        return answer

    def seen(self: Binding[Any], system: Any) -> Plain:
        state: Plain = look(self, system)
        # Any state but the true one.
        return (scene.last if state == scene.first else scene.first) if tainted else state

    def restored(self: Binding[Any], kept: Any) -> Any:
        # A restored system is unspoilt, as a real one would be; else every later comparison would fail.
        tainted.clear()
        return again(self, kept)

    def as_kept(self: Binding[Any], kept: Any) -> Callable[[Any], bool]:
        is_as = compare(self, kept)
        return lambda system: not tainted and is_as(system)

    comparison = cls.comparison() or ""
    compare: Any = getattr(cls, comparison, None)
    changes = _answers(cls, scene.refused, scene.where, spoil)
    changes |= {name: project(seen), back: restore(restored)}
    return {**changes, comparison: unchanged(as_kept)} if comparison else changes
