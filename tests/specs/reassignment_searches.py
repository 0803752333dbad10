"""A plain search of the protocol of spec/reassignment.spec, for comparing counts and lengths.

Written from the rules, with Python's own values: a log is the tuple of its records' epochs, and nothing of
specchk is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

Brokers = frozenset[int]
Log = tuple[int, ...]
NONE: Brokers = frozenset()


@dataclass(frozen=True, slots=True)
class Rules:
    """Bounds and rules, with the names of the spec."""

    brokers: int
    first_replicas: Brokers
    reassignments: int = 1
    fences: int = 0
    offsets: int = 1
    min_isr: int = 1
    expands_on_fetch: bool = True
    reset_remote: bool = True
    removal_bumps_epoch: bool = True
    removed_leave_elr: bool = True
    first_partition: bool = True

    @property
    def all(self) -> Brokers:
        return frozenset(range(self.brokers))


@dataclass(frozen=True, slots=True)
class Meta:
    leader: int | None
    epoch: int
    isr: Brokers
    elr: Brokers
    replicas: Brokers
    adding: Brokers = NONE
    removing: Brokers = NONE


@dataclass(frozen=True, slots=True)
class Replica:
    """A broker: metadata applied, log and HW; as a leader LEOs of followers and its proposal."""

    applied: int = 0
    log: Log = ()
    hw: int = 0
    remote: tuple[int | None, ...] = ()
    alter: Brokers | None = None


@dataclass(frozen=True, slots=True)
class State:
    metas: tuple[Meta, ...]
    replicas: tuple[Replica, ...]
    fetches: tuple[tuple[object, ...] | None, ...]
    fenced: Brokers = NONE
    reassigned: int = 0
    fences: int = 0
    committed: Log = ()
    target: Brokers = NONE


def first_state(rules: Rules) -> State:
    first = min(rules.first_replicas)
    meta = Meta(first, 0, rules.first_replicas, NONE, rules.first_replicas)
    replica = Replica(remote=(None,) * rules.brokers)
    return State(
        (meta,), (replica,) * rules.brokers, (None,) * rules.brokers, target=rules.first_replicas
    )  # fmt: skip


def count(rules: Rules) -> tuple[int, int]:
    """The number of states and of levels."""
    seen = frontier = {first_state(rules)}
    depth = 0
    while frontier:
        depth += 1
        frontier = {after for state in frontier for after in successors(rules, state)} - seen
        seen = seen | frontier
    return len(seen), depth


def steps_to(rules: Rules, fails: Callable[[State], bool]) -> int | None:
    """The length of the shortest path to a state that fails."""
    seen = frontier = {first_state(rules)}
    steps = 0
    while frontier:
        if any(map(fails, frontier)):
            return steps
        steps += 1
        frontier = {after for state in frontier for after in successors(rules, state)} - seen
        seen = seen | frontier
    return None


def incomplete(state: State, members: Brokers) -> bool:
    return any(
        state.replicas[b].log[: len(state.committed)] != state.committed for b in members
    )  # fmt: skip


def lacks_a_record_in_isr(state: State) -> bool:
    return incomplete(state, state.metas[-1].isr)


def lacks_a_record_in_leader(state: State) -> bool:
    leader = state.metas[-1].leader
    return leader is not None and incomplete(state, frozenset({leader}))


def successors(rules: Rules, state: State) -> Iterator[State]:
    yield from controller(rules, state)
    for b, replica in enumerate(state.replicas):
        for version in range(replica.applied + 1, len(state.metas)):
            yield applied(rules, state, b, version)
        meta = state.metas[replica.applied]
        if meta.leader == b:
            yield from leader(rules, state, b, meta)
        elif meta.leader is not None and b in meta.replicas:
            yield from follower(state, b, meta)
        if state.fetches[b] is not None:
            yield with_fetch(state, b, None)


def controller(rules: Rules, state: State) -> Iterator[State]:
    """The controller's actions on an operator's request, a leader's proposal or the end of a session."""
    yield from requests(rules, state)
    for b, replica in enumerate(state.replicas):
        if replica.alter is not None:
            yield from altered(rules, state, b, replica, replica.alter)
        if b in state.fenced:
            yield unfenced(rules, state, b)
        elif state.fences < rules.fences:
            yield from fenced(rules, state, b)


def requests(rules: Rules, state: State) -> Iterator[State]:
    old = state.metas[-1]
    sizes = range(1, rules.brokers + 1) if state.reassigned < rules.reassignments else ()
    for target in (frozenset(chosen) for size in sizes for chosen in combinations(rules.all, size)):
        if target != state.target:
            adding, removing = target - old.replicas, old.replicas - target
            new = replace(old, replicas=old.replicas | target, adding=adding, removing=removing)
            for meta in changes(rules, old, new, state.fenced):
                if meta.leader != old.leader and meta.leader in adding:
                    continue  # its directory is not known yet: the request fails
                after = replace(state, metas=(*state.metas, meta), target=target)
                yield replace(after, reassigned=state.reassigned + 1)
    if (old.adding or old.removing) and old.isr - old.adding:
        originals = old.replicas - old.adding
        new = replace(old, replicas=originals, isr=old.isr - old.adding, adding=NONE, removing=NONE)
        for meta in changes(rules, old, new, state.fenced):
            yield replace(state, metas=(*state.metas, meta), target=originals)


def altered(rules: Rules, state: State, b: int, replica: Replica, proposed: Brokers) -> Iterator[State]:
    old = state.metas[-1]
    if replica.applied != len(state.metas) - 1 or old.leader != b:
        return
    if proposed & state.fenced:
        yield with_replica(state, b, replace(replica, alter=None))
    else:
        for meta in changes(rules, old, replace(old, isr=proposed), state.fenced):
            yield replace(state, metas=(*state.metas, meta))


def fenced(rules: Rules, state: State, b: int) -> Iterator[State]:
    old = state.metas[-1]
    gone = replace(state, fenced=state.fenced | {b}, fences=state.fences + 1)
    if b in old.isr or old.leader == b:
        for meta in changes(rules, old, replace(old, isr=old.isr - {b}), gone.fenced):
            yield replace(gone, metas=(*gone.metas, meta))
    else:
        yield gone


def unfenced(rules: Rules, state: State, b: int) -> State:
    old = state.metas[-1]
    free = replace(state, fenced=state.fenced - {b})
    leads = old.leader is None and b in (old.isr or old.elr) & old.replicas
    return replace(free, metas=(*free.metas, led(rules, old, old, b))) if leads else free


def changes(rules: Rules, old: Meta, new: Meta, gone: Brokers) -> Iterator[Meta]:
    """The controller's result of a change: the end of a reassignment, ELR, an election."""
    stays = new.replicas - new.removing
    isr = new.isr - new.removing
    if (new.adding or new.removing) and isr and stays and stays <= isr:
        new = replace(new, replicas=stays, isr=isr, adding=NONE, removing=NONE)
    replicas = len(old.replicas) if rules.first_partition else rules.min_isr
    if len(new.isr) >= min(rules.min_isr, replicas):
        elr = NONE
    else:
        elr = (old.elr | old.isr) - new.isr
        elr = elr & new.replicas if rules.removed_leave_elr else elr
    new = replace(new, elr=elr)
    able = ((new.isr or new.elr) & new.replicas) - gone
    for n in [old.leader] if old.leader in able else sorted(able) or [None]:
        yield led(rules, old, new, n)


def led(rules: Rules, old: Meta, new: Meta, leader: int | None) -> Meta:
    removes = rules.removal_bumps_epoch and not old.replicas <= new.replicas
    epoch = old.epoch + (leader != old.leader or removes)
    new = replace(new, leader=leader, epoch=epoch)
    if leader is not None and not new.isr:
        return replace(new, isr=frozenset({leader}), elr=new.elr - {leader})
    return new


def with_replica(state: State, b: int, replica: Replica) -> State:
    return replace(state, replicas=(*state.replicas[:b], replica, *state.replicas[b + 1 :]))


def with_fetch(state: State, f: int, fetch: tuple[object, ...] | None) -> State:
    return replace(state, fetches=(*state.fetches[:f], fetch, *state.fetches[f + 1 :]))


def with_hw(rules: Rules, state: State, b: int, replica: Replica, meta: Meta, waited: Brokers) -> State:
    """The new leader b, with each HW that it may have now."""
    ends = [len(replica.log) if f == b else replica.remote[f] for f in waited | {b}]
    known = [end for end in ends if end is not None]
    if len(meta.isr) >= min(rules.min_isr, len(meta.replicas)) and len(known) == len(ends):
        replica = replace(replica, hw=max(replica.hw, min(known)))
    state = with_replica(state, b, replica)
    return replace(state, committed=max(state.committed, replica.log[: replica.hw], key=len))


def applied(rules: Rules, state: State, b: int, version: int) -> State:
    replica, meta = state.replicas[b], state.metas[version]
    before = state.metas[replica.applied]
    unknown = (None,) * rules.brokers
    if b not in meta.replicas:
        return with_replica(state, b, Replica(version, remote=unknown))
    replica_now = replace(replica, applied=version, alter=None, remote=unknown)
    if meta.leader != b:
        return with_replica(state, b, replica_now)
    if before.leader == b and not (meta.epoch > before.epoch and rules.reset_remote):
        kept = tuple(end if f in meta.replicas else None for f, end in enumerate(replica.remote))
        replica_now = replace(replica_now, remote=kept)
    return with_hw(rules, state, b, replica_now, meta, meta.isr)


def leader(rules: Rules, state: State, b: int, meta: Meta) -> Iterator[State]:
    replica = state.replicas[b]
    maximal = meta.isr | (replica.alter or NONE)
    if len(replica.log) < rules.offsets and len(meta.isr) >= min(rules.min_isr, len(meta.replicas)):
        written = replace(replica, log=(*replica.log, meta.epoch))
        yield with_hw(rules, state, b, written, meta, maximal)
    starts = sum(epoch < meta.epoch for epoch in replica.log)
    for f, fetch in enumerate(state.fetches):
        if (
            fetch is not None
            and f != b
            and f in meta.replicas
            and fetch[:1] + fetch[2:] == (meta.epoch, "asked")
        ):
            log = fetch[1]
            assert isinstance(log, tuple)
            same = next(
                n for n in range(len(log), -1, -1) if replica.log[:n] == log[:n] and n <= len(replica.log)
            )
            if same < len(log):
                yield with_fetch(state, f, (meta.epoch, log, "diverges", same))
                continue
            told = replace(replica, remote=(*replica.remote[:f], same, *replica.remote[f + 1 :]))
            waited = maximal
            if rules.expands_on_fetch and joins(replica, meta, f, same, starts):
                waited = meta.isr | {f}
                told = replace(told, alter=waited)
            after = with_hw(rules, state, b, told, meta, waited)
            hw = replica.hw if same < len(replica.log) else after.replicas[b].hw
            yield with_fetch(after, f, (meta.epoch, log, "records", replica.log, hw))
    for f, end in enumerate(replica.remote):
        remembers = not rules.expands_on_fetch and end is not None and f in meta.replicas
        if remembers and joins(replica, meta, f, end, starts):
            yield with_replica(state, b, replace(replica, alter=meta.isr | {f}))


def joins(replica: Replica, meta: Meta, f: int, reached: int | None, starts: int) -> bool:
    known = reached is not None and reached >= max(replica.hw, starts)
    return known and f not in meta.isr and replica.alter is None


def follower(state: State, f: int, meta: Meta) -> Iterator[State]:
    replica, fetch = state.replicas[f], state.fetches[f]
    if fetch is None:
        yield with_fetch(state, f, (meta.epoch, replica.log, "asked"))
    elif fetch[:2] == (meta.epoch, replica.log) and fetch[2] != "asked":
        if fetch[2] == "diverges":
            end = fetch[3]
            assert isinstance(end, int)
            log, hw = replica.log[:end], min(replica.hw, end)
        else:
            _, _, _, log, hw = fetch
            hw = min(hw, len(log))
        yield with_replica(with_fetch(state, f, None), f, replace(replica, log=log, hw=hw))
