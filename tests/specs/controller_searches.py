"""A plain search of the protocol of spec/controller_log.spec, for comparing counts and lengths.

Written from the rules, with Python's own values: nothing of specchk is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

Brokers = frozenset[int]
CONTROLLERS = (0, 1, 2)


class Image(NamedTuple):
    leader: int
    epoch: int
    isr: Brokers
    version: int


class Record(NamedTuple):
    term: int
    image: Image


class Controller(NamedTuple):
    term: int
    active: bool
    log: tuple[Record, ...]
    hw: int = 1

    @property
    def image(self) -> Image:
        return self.log[-1].image


class Broker(NamedTuple):
    known: Image
    proposal: Brokers | None = None
    newest: int = 1

    @property
    def maximal_isr(self) -> Brokers:
        return self.known.isr | (self.proposal or frozenset())


class State(NamedTuple):
    controllers: tuple[Controller, ...]
    brokers: tuple[Broker, ...]
    has: Brokers = frozenset()
    acked: bool = False

    def with_controller(self, c: int, new: Controller) -> State:
        return self._replace(controllers=(*self.controllers[:c], new, *self.controllers[c + 1 :]))

    def with_broker(self, b: int, new: Broker) -> State:
        return self._replace(brokers=(*self.brokers[:b], new, *self.brokers[b + 1 :]))


@dataclass(frozen=True, slots=True)
class Rules:
    """Bounds and rules, with the names of the spec."""

    brokers: int = 2
    max_term: int = 2
    max_log: int = 3
    answered_early: bool = False
    applied_early: bool = False
    own_record: bool = True
    newest_only: bool = True
    learns_first: bool = True


def initial(rules: Rules) -> Iterator[State]:
    """Any controller is active, and any broker leads."""
    for first in range(rules.brokers):
        image = Image(first, 1, frozenset(range(rules.brokers)), 1)
        for active in CONTROLLERS:
            yield State(
                tuple(Controller(1, c == active, (Record(1, image),)) for c in CONTROLLERS),
                (Broker(image),) * rules.brokers,
            )


def successors(state: State, rules: Rules) -> Iterator[State]:
    """All steps of the quorum, the brokers, and the data."""
    for c in CONTROLLERS:
        for d in CONTROLLERS:
            if c != d:
                yield from elected(state, rules, c, d)
                yield from fetched(state, rules, c, d)
        yield from failed_over(state, rules, c)
        for b in range(rules.brokers):
            yield from answered(state, rules, c, b)
    for b, broker in enumerate(state.brokers):
        if broker.known.leader == b:
            yield from led(state, rules, b, broker)


def elected(state: State, rules: Rules, c: int, voter: int) -> Iterator[State]:
    mine, other = state.controllers[c], state.controllers[voter]
    term = max(mine.term, other.term) + 1
    has_all = (mine.log[-1].term, len(mine.log)) >= (other.log[-1].term, len(other.log))
    if not has_all or term > rules.max_term or (rules.own_record and len(mine.log) == rules.max_log):
        return
    log = (*mine.log, Record(term, mine.image)) if rules.own_record else mine.log
    won = state.with_controller(c, mine._replace(term=term, active=True, log=log))
    yield won.with_controller(voter, other._replace(term=term, active=False))


def fetched(state: State, rules: Rules, c: int, d: int) -> Iterator[State]:
    source, to = state.controllers[c], state.controllers[d]
    news = (to.log, to.term, to.hw) != (source.log, source.term, source.hw)
    if source.active and to.term <= source.term and news:
        # Its answer has the HW to which a fetch of the term has counted, that of what both have.
        shared = 0
        while source.log[: shared + 1] == to.log[: shared + 1] and shared < min(len(source.log), len(to.log)):
            shared += 1
        counts = source.term == to.term or shared < len(to.log)
        if rules.own_record and source.log[shared - 1].term != source.term:
            counts = False
        told = max(source.hw, shared) if counts else source.hw
        told = max(told, min(to.hw, len(source.log)))
        after = state.with_controller(d, Controller(source.term, False, source.log, told))
        yield after.with_controller(c, source._replace(hw=len(source.log)))


def decides(controller: Controller, rules: Rules) -> bool:
    own = controller.log[controller.hw - 1].term == controller.term
    return controller.active and (own or not rules.own_record)


def written(state: State, rules: Rules, c: int, image: Image) -> Iterator[State]:
    controller = state.controllers[c]
    if decides(controller, rules) and len(controller.log) < rules.max_log:
        log = (*controller.log, Record(controller.term, image))
        yield state.with_controller(c, controller._replace(log=log))


def failed_over(state: State, rules: Rules, c: int) -> Iterator[State]:
    old = state.controllers[c].image
    rest = old.isr - {old.leader}
    for b in rest:
        yield from written(state, rules, c, Image(b, old.epoch + 1, rest, old.version + 1))


def answered(state: State, rules: Rules, c: int, b: int) -> Iterator[State]:
    """The exchanges between a controller and a broker: metadata, a request, a grant, a refusal."""
    controller, old = state.controllers[c], state.brokers[b]
    if not rules.learns_first and controller.active and old.proposal and old.known == controller.image:
        wanted = old.known._replace(isr=old.proposal, version=old.known.version + 1)
        yield from written(state, rules, c, wanted)
    if not controller.active or (rules.newest_only and controller.term < old.newest):
        return
    broker = old._replace(newest=max(old.newest, controller.term))
    for record in controller.log[: None if rules.applied_early else controller.hw]:
        if record.image.version > broker.known.version:
            yield state.with_broker(b, broker._replace(known=record.image, proposal=None))
    if broker.proposal is None:
        return
    wanted = broker.known._replace(isr=broker.proposal, version=broker.known.version + 1)
    if broker.known == controller.image:
        yield from written(state.with_broker(b, broker), rules, c, wanted)
        if decides(controller, rules):
            yield state.with_broker(b, broker._replace(proposal=None))
    answerable = controller.log if rules.answered_early else controller.log[: controller.hw]
    if Record(controller.term, wanted) in answerable:
        yield state.with_broker(b, broker._replace(known=wanted, proposal=None))


def led(state: State, rules: Rules, b: int, leader: Broker) -> Iterator[State]:
    """The steps of a leader, and its followers' fetches."""
    everybody = range(rules.brokers)
    if leader.proposal is None:
        for size in range(1, rules.brokers + 1):
            for isr in map(frozenset, combinations(everybody, size)):
                joining = isr - leader.known.isr
                if b in isr and isr != leader.known.isr and (b not in state.has or joining <= state.has):
                    yield state.with_broker(b, leader._replace(proposal=isr))
    if not state.acked and not state.has:
        yield state._replace(has=frozenset({b}))
    if not state.acked and leader.maximal_isr <= state.has:
        yield state._replace(acked=True)
    for f in everybody:
        follows = state.brokers[f].known[:2] == leader.known[:2]
        if f != b and follows and (b in state.has) != (f in state.has):
            yield state._replace(has=state.has ^ {f})


def levels(rules: Rules) -> Iterator[set[State]]:
    """The new states of each level."""
    frontier = set(initial(rules))
    seen = set(frontier)
    while frontier:
        yield frontier
        frontier = {after for state in frontier for after in successors(state, rules)} - seen
        seen |= frontier


def count(rules: Rules) -> tuple[int, int]:
    """The number of states and of levels."""
    sizes = [len(level) for level in levels(rules)]
    return sum(sizes), len(sizes)


def steps_to(rules: Rules, fails: Callable[[State], bool]) -> int | None:
    """The steps to the first state with a property."""
    return next((at for at, level in enumerate(levels(rules)) if any(map(fails, level))), None)


def forgets_what_is_known(state: State) -> bool:
    """Some controller that a broker would follow lacks metadata that the broker has."""
    return any(
        controller.active
        and controller.term >= broker.newest
        and broker.known not in [record.image for record in controller.log]
        for broker in state.brokers
        for controller in state.controllers
    )


def forgets_what_is_committed(state: State) -> bool:
    """Some controller that is active later lacks records that another knows to be committed."""
    return any(
        c.active and c.term >= d.term and c.log[: d.hw] != d.log[: d.hw]
        for c in state.controllers
        for d in state.controllers
    )


def two_lead(state: State) -> bool:
    """Two brokers lead in one leader epoch."""
    epochs = [broker.known.epoch for b, broker in enumerate(state.brokers) if broker.known.leader == b]
    return len(epochs) != len(set(epochs))


def lacks_what_is_acked(state: State) -> bool:
    """The leader of the newest epoch known to a broker lacks the acknowledged record."""
    newest = max(broker.known.epoch for broker in state.brokers)
    return state.acked and any(
        broker.known.leader == b and broker.known.epoch == newest and b not in state.has
        for b, broker in enumerate(state.brokers)
    )


def waits_for_too_few(state: State) -> bool:
    """A leader in office does not wait for a member of the ISR that the newest controller has."""
    newest = max(controller.term for controller in state.controllers)
    return any(
        controller.active
        and controller.term == newest
        and controller.log[controller.hw - 1].term == newest
        and broker.known.leader == b
        and controller.image.epoch == broker.known.epoch
        and not controller.image.isr <= broker.maximal_isr
        for controller in state.controllers
        for b, broker in enumerate(state.brokers)
    )
