"""Steps of a spec on an implementation: accepted ones, refused ones, and their results.

    in the spec          the implementation must
    initial state        start in it, as far as it is observed
    enabled step         accept it, and then be in one of its successors: that one is followed
    disabled instance    refuse it (a negative probe), and not change
    beyond a horizon     nothing: the spec does not determine it, so it is not tried

A difference is a value, `Divergence`, with the spec's behaviour that leads to it.

Invariants: only projections are compared; every projection is compared whole, over all
observed variables; a saved system is checked again before and after it is used, so that a
`restore` that loses state is detected.  Not here: the choice of steps (`product`, `walks`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from specchk.conform.contract import Accepted, Answer, Binding, Impossible, Refused
from specchk.conform.contract.binding import BindingError, Interruption, Mistake, mistakes, written_at
from specchk.conform.contract.failures import FAILURES, LEAVING, Hang, ImplementationFailure
from specchk.conform.contract.values import NotAValue, reader, remembered
from specchk.conform.replay.place import (
    OBSERVING,
    SAVING,
    Blame,
    Diverged,
    DivergedBeyond,
    Divergence,
    Found,
    Place,
    ReplayTally,
    at_place,
    failed,
    is_finding,
)
from specchk.conform.replay.spec_side import ActionCall, SpecSide
from specchk.ir.nodes import Value
from specchk.lang.text.diagnostics import nearest
from specchk.meaning.values import State
from specchk.search.verdict import Step, Trace

S = TypeVar("S")
T = TypeVar("T")
FAILING = (*FAILURES, ImplementationFailure, Hang)
ANSWERS = (Accepted, Refused, Impossible)
UNCHECKED = 15  # answers of a binding's `@unchanged` that are trusted, one after another


class Replayer(Generic[S]):
    """Takes the steps of a spec on the implementation of one binding; raises `BindingError`, then `Diverged`.

    `spec` is the side of the same program in another replayer, with its results so far.
    """

    def __init__(self, binding: Binding[S], spec: SpecSide | None = None) -> None:
        wrong = mistakes(type(binding), binding.program)
        if wrong:
            raise BindingError(wrong)
        self.binding = binding
        self.program = binding.program
        self.tally = ReplayTally()
        self.spec = SpecSide(binding) if spec is None else spec
        self._slots = [i for i, v in enumerate(self.program.variables) if v.name not in binding.unobserved]
        self._observed = {self.program.variables[slot].name for slot in self._slots}
        self._seen: Callable[[Any], Any] = itemgetter(*self._slots) if self._slots else lambda _: ()
        self._readers = [remembered(reader(variable.type)) for variable in self.program.variables]
        cls = type(binding)
        self._project = getattr(binding, cls.marked("project") or "")
        self._keep = getattr(binding, cls.marked("snapshot") or "")
        self._back: Callable[[Any], S] = getattr(binding, cls.marked("restore") or "")
        again = cls.marked("reopen")
        self._again = getattr(binding, again) if again is not None else None
        unchanged = cls.comparison()
        self._as_kept = None if unchanged is None else getattr(binding, unchanged)
        self._probed: Place[S] | None = None
        self._is_as_kept: Callable[[S], bool] = lambda _: False  # at that place
        self._trusted = 0  # how often it was not checked
        self._handlers = {action.action: getattr(binding, action.method) for action in cls.actions()}
        self.blind_to: tuple[str, ...] = ()

    def begin(self) -> Place[S]:
        """The implementation's initial state, which must be one of the spec's."""
        states = self.spec.initial
        empty = Trace(states[0], ())
        blank = partial(Divergence, "outside", empty, None, "", "")
        system: S = self._call(blank, "at the start", self.binding.start)
        found = self._state(system, blank)
        allowed = [state for state in states if self.same(state, found)]
        if not allowed:
            reason = "the implementation starts in another state than the spec"
            raise Diverged(Divergence("initial", empty, None, "", reason, states, found))
        self._only_one(allowed, partial(Divergence, "ambiguous", empty, None, "", "", states, found))
        self.blind_to = self._blind_spots(found)
        return Place(allowed[0], self._call(blank, SAVING, lambda: self._keep(system)))

    def _blind_spots(self, found: Found) -> tuple[str, ...]:
        """The control of every run: the observed variables whose corruption is not detected, ideally none."""
        blind = []
        for slot in self._slots:
            # A value of no type of a spec: a comparison that accepts it compares nothing.
            corrupted = (*found[:slot], ("corrupted",), *found[slot + 1 :])
            if self.same(found, corrupted):
                blind.append(self.program.variables[slot].name)
        return tuple(blind)

    def check_kept(self, place: Place[S]) -> None:
        """Check that a saved system is restored to its state."""
        found = self._state(self._rewound(place), partial(at_place, place, "outside"))
        if not self.same(place.state, found):
            reason = "`restore` returns a system in another state than the saved one"
            raise Diverged(at_place(place, "restored", reason, (place.state,), found))
        # Now, before any step from there: one that also changes the saved system must not look like one that
        # changes nothing.
        self._look_at(place)

    def _look_at(self, place: Place[S]) -> None:
        """Have the binding remember the system kept at a place, if it compares systems with it."""
        as_kept = self._as_kept
        if as_kept is None or self._probed is place:
            return
        blank = partial(at_place, place, "outside")
        self._is_as_kept = self._call(blank, OBSERVING, lambda: as_kept(place.kept))
        self._probed = place

    def check_reopened(self, place: Place[S]) -> None:
        """Check that the state on disk is the same, if the binding can reopen it."""
        if self._again is None:
            return
        blank = partial(at_place, place, "reopened", expected=(place.state,))
        self._look_at(place)
        try:
            # On a restored system, so that reopening cannot disturb the one that is used further.
            system = self._again(self._rewound(place))
            found = place.state if self._is_unchanged(system) else self._state(system, blank)
        except LEAVING as error:  # the code under test is foreign; its failing is a finding
            if is_finding(error):
                raise Diverged(blank(reason=f"{type(error).__name__}: {error}")) from error
            raise
        self.tally.reopened += 1
        if not self.same(place.state, found):
            reason = "a restart would find another state on disk"
            raise Diverged(blank(reason=reason, found=found))

    def take(self, place: Place[S], instance: ActionCall, successors: tuple[State, ...]) -> list[Place[S]]:
        """Take an enabled step in each way; returns the places reached within horizons."""
        reached: dict[State, Place[S]] = {}
        for way in instance.ways:
            try:
                after = self._take(place, instance, way, successors)
            except DivergedBeyond as diverged:
                if not self.spec.may_reach(place.state, instance, diverged.shown):
                    raise
            else:
                reached.setdefault(after.state, after)
        self.tally.left[instance.label.action] += len(successors) - len(reached)
        return list(reached.values())

    def _take(self, place: Place[S], instance: ActionCall, way: str, allowed: tuple[State, ...]) -> Place[S]:
        system = self._rewound(place)
        answer = self._ask(system, place, instance, way)
        # Each step begins from the saved system, so that no step sees the effects of another one.
        if not isinstance(answer, Accepted):
            raise Diverged(self._blame(place, instance, way, "refused", answer.reason, allowed))
        blank = partial(self._blame, place, instance, way, "outside", "", allowed)
        found = self._state(system, blank)
        matching = [state for state in allowed if self.same(state, found)]
        if not matching:
            raise Diverged(self._blame(place, instance, way, "state", "", allowed, found))
        self._only_one(matching, partial(self._blame, place, instance, way, "ambiguous", "", allowed, found))
        # Of a binding that sees no change where a step has made one, a refusal would show nothing.
        is_changed = self._probed is place and not self.same(place.state, found)
        if is_changed and self._looks_unchanged(system):
            self.check_kept(place)  # which the step may have changed as well
            hint = "compare all that the projection reads"
            what = f"its @unchanged finds what `{instance.label}` has changed as it was kept"
            raise BindingError((Mistake(what, hint),))
        self.tally.taken[instance.label.action] += 1
        step = Step(instance.label.action, instance.label.args, matching[0])
        kept = self._call(blank, SAVING, lambda: self._keep(system))
        return Place(matching[0], kept, step, place, way)

    def cut_short(
        self,
        place: Place[S],
        instance: ActionCall,
        way: str,
        fault: Interruption,
        by: ActionCall,
        moment: int,
    ) -> tuple[Found, str] | None:
        """The state after a step in which a fault occurred at its `moment`-th chance; None if it did not.

        With words for where it struck, which a divergence that is raised has, too.
        """
        system = self._rewound(place)
        cut = getattr(self.binding, fault.method)
        where = f"where {by.label} struck inside {instance.label}, at its moment {moment}"
        blank = partial(self._blame, place, by, way, "outside", where)
        # Of the step, the implementation's own exceptions are for the binding: one of them may be the fault.
        step = partial(self._ask, system, place, instance, way, FAILING)
        struck = self._call(blank, where, lambda: cut(system, *by.plain, moment, step))
        if not struck:
            return None
        self.tally.struck += 1
        at = struck if isinstance(struck, str) else f"at its moment {moment}"
        inside = f"{by.label} struck inside {instance.label}, {at}"
        try:
            return self._state(system, blank), inside
        except Diverged as error:
            reason = f"{inside}\n{error.divergence.reason}"
            raise Diverged(replace(error.divergence, reason=reason)) from error

    def probe(self, place: Place[S], instances: Sequence[ActionCall]) -> list[bool]:
        """Try disabled instances in each way: they must be refused and change nothing.

        For each, whether the implementation received it; False if the binding had no request for it.
        """
        self._look_at(place)
        # Most of a gate is this loop: `_rewound` and `_ask` are spelled out.
        back, kept, handlers, impossible = self._back, place.kept, self._handlers, self.tally.impossible
        asked = []
        for instance in instances:
            action, given, was_asked = instance.label.action, instance.plain, False
            handler = handlers[action]
            for way in instance.ways:
                # Restored for each, also after an impossible one: unobserved changes by it
                # could make the implementation refuse a step that it would accept.
                try:
                    system = back(kept)
                except LEAVING as error:
                    self._blame_restoring(error, place)
                    raise
                try:
                    answer = handler(system, *given, way) if way else handler(system, *given)
                except LEAVING as error:
                    self._blame_asking(error, place, instance, way)
                    raise
                if type(answer) is Impossible:  # nothing was done, by the binding's own word
                    impossible[action] += 1
                else:
                    self._check_refused(system, place, instance, way, _answer_of(instance, handler, answer))
                    was_asked = True
            asked.append(was_asked)
        return asked

    def _check_refused(
        self, system: S, place: Place[S], instance: ActionCall, way: str, answer: Answer
    ) -> None:
        if isinstance(answer, Accepted):
            raise Diverged(self._accepted(system, place, instance, way))
        if not self._is_unchanged(system):
            found = self._state(system, partial(self._blame, place, instance, way, "outside", ""))
            if not self.same(place.state, found):
                reason = f"a refused step changed the state (refused because: {answer.reason})"
                raise Diverged(self._blame(place, instance, way, "changed", reason, (place.state,), found))
        self.tally.refused[instance.label.action] += 1

    def _is_unchanged(self, system: S) -> bool:
        """Whether the binding finds a system unchanged since it was kept; False if it must be projected."""
        if self._trusted == UNCHECKED or not self._looks_unchanged(system):
            self._trusted = 0
            return False
        self._trusted += 1
        self.tally.compared += 1
        return True

    def _looks_unchanged(self, system: S) -> bool:
        try:
            return self._is_as_kept(system)
        except LEAVING as error:
            if is_finding(error):
                # The projection describes the error.
                return False
            raise

    def _accepted(self, system: S, place: Place[S], instance: ActionCall, way: str) -> Divergence:
        """The divergence of a forbidden step that was taken, with its target if that has a name."""
        reason, found = self.spec.why_forbidden(place.state, instance), None
        try:
            found = self._state(system, partial(self._blame, place, instance, way, "outside", ""))
        except Diverged as diverged:
            # The new state may have no name in the spec; that the step was accepted is the finding.
            reason += f"\nand then: {diverged.divergence.reason}"
        return self._blame(place, instance, way, "accepted", reason, (place.state,), found)

    def _call(self, blame: Blame, when: str, call: Callable[[], T]) -> T:
        """Call a method of the binding."""
        try:
            return call()
        except LEAVING as error:
            if is_finding(error):
                raise failed(error, when, blame()) from error
            raise

    def _rewound(self, place: Place[S]) -> S:
        """The system kept at a place, restored."""
        try:
            return self._back(place.kept)
        except LEAVING as error:
            self._blame_restoring(error, place)
            raise

    def _blame_restoring(self, error: BaseException, place: Place[S]) -> None:
        """Raise the divergence, if the implementation caused the error."""
        if is_finding(error):
            blame = at_place(place, "restored", expected=(place.state,))
            raise failed(error, "when it was restored", blame) from error

    def _ask(
        self, system: S, place: Place[S], instance: ActionCall, way: str,
        failing: tuple[type[BaseException], ...] = LEAVING,
    ) -> Answer:  # fmt: skip
        handler = self._handlers[instance.label.action]
        try:
            answer = handler(system, *instance.plain, way) if way else handler(system, *instance.plain)
        except failing as error:
            self._blame_asking(error, place, instance, way)
            raise
        return _answer_of(instance, handler, answer)

    def _blame_asking(self, error: BaseException, place: Place[S], instance: ActionCall, way: str) -> None:
        """Raise the divergence, if the implementation caused the error."""
        if is_finding(error):
            allowed = self.spec.allowed(place.state, instance)
            raise failed(error, "", self._blame(place, instance, way, "raised", "", allowed)) from error

    def _blame(
        self, place: Place[S], instance: ActionCall, way: str, kind: str, reason: str,
        expected: tuple[State, ...] = (), found: Found | None = None,
    ) -> Divergence:  # fmt: skip
        trace, ways = place.trace(), place.ways()
        return Divergence(kind, trace, instance.label, way, reason, expected, found, ways)

    def _state(self, system: S, blame: Blame) -> Found:
        """The projection as values of the spec; `blame` is the reason reported if it is invalid."""
        self.tally.compared += 1
        shown = self._call(blame, OBSERVING, lambda: self._project(system))
        try:
            return self._read(shown)
        except NotAValue as error:
            outside = replace(blame(), kind="outside", reason=str(error))
            raise (DivergedBeyond(outside, shown) if error.is_beyond else Diverged(outside)) from None

    def _read(self, state: Any) -> Found:
        # Before any value: a variable too many or too few is a mistake of the binding, not of the
        # implementation.
        names, given = self._observed, set(state)
        if given != names:
            hint = "return it, or list it in `unobserved`"
            at = written_at(self._project)
            wrong = [Mistake(f"the projection does not return `{one}`", hint, at) for one in names - given]
            wrong += [Mistake(f"the projection returns `{one}`, which it should not",
                              nearest(str(one), names - given) or "remove it", at)
                      for one in given - names]  # fmt: skip
            raise BindingError(tuple(sorted(wrong, key=str)))
        found: list[Value | None] = [None] * len(self.program.variables)
        for slot in self._slots:
            name = self.program.variables[slot].name
            try:
                found[slot] = self._readers[slot](state[name])
            except NotAValue as error:
                raise error.inside(name) from None
        return tuple(found)

    def same(self, state: Sequence[object], found: Sequence[object]) -> bool:
        """Whether two states agree in every observed variable."""
        return bool(self._seen(state) == self._seen(found))

    @staticmethod
    def _only_one(matching: list[State], blame: Blame) -> None:
        if len(matching) > 1:
            reason = "the projection does not distinguish these successors; observe more"
            raise Diverged(replace(blame(), kind="ambiguous", reason=reason, expected=tuple(matching)))


def _answer_of(instance: ActionCall, handler: Any, answer: Any) -> Answer:
    if isinstance(answer, ANSWERS):
        return answer
    hint = "return Accepted(), Refused(reason) or Impossible(reason)"
    raise BindingError(
        (Mistake(f"`{instance.label.action}` returned {answer!r}", hint, written_at(handler)),)
    )
