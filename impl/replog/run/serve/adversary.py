"""The opponent of clients: a hand in the cluster that misbehaves as far as Kafka allows, repeatably.

    request -> the n-th of its API in the cluster -> the schedule's act for it -> the service, the answer

A schedule says what happens to which request: "PRODUCE 3: cut-after".  That of a seed is a function of the
seed, the API and n, and of no clock.  Requests of brokers are not counted, and of fetches only those that
return records: how often a client asks in vain depends on its clock.

Nothing is answered that a cluster without an opponent could not answer.  An act that the request does not
allow, or the cluster at this moment, is left out; so is what TCP excludes: a second answer, or answers in
another order.  Records that were acknowledged are lost by the act `unclean` alone, which is in one profile.

Not here: whether the client was right (`judging`), and the cluster around it (`rehearsal`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from types import MappingProxyType
from typing import Any

from replog.core.messages import ElectRequest
from replog.core.types import NO_LEADER, BrokerState, Error, MetadataImage
from replog.run.serve.codec import Body
from replog.run.serve.controlling import OPERATOR, Controlling
from replog.run.serve.frames import Api, Request
from replog.run.serve.host import GROUPS, Host
from replog.run.serve.records import SHAPES, replica_of
from replog.run.serve.service import Service
from replog.run.serve.topics import Address, metadata


class Act(StrEnum):
    """What can happen to a request."""

    CUT_BEFORE = "cut-before"
    """The connection ends, and the request was not executed."""
    CUT_AFTER = "cut-after"
    """The connection ends in place of the answer."""
    LATE = "late"
    THROTTLE = "throttle"
    REFUSE = "refuse"
    """Not executed, with an error that passes."""
    UNCERTAIN = "uncertain"
    """Executed, and answered with an error that leaves this open."""
    MOVE = "move"
    """Executed; then another leader is elected, and the answer says that this one leads no more."""
    LOSE = "lose"
    """Appended by the leader, and by no follower when another is elected, which truncates the record."""
    EMPTY = "empty"
    """No partition at all and a throttle time, as from a broker whose quota is used up (KIP-219)."""
    STALE = "stale"
    """Metadata of before the last election, from a broker that has told nobody of it."""
    UNCLEAN = "unclean"
    """The leader commits alone; once it is read, or more written, a follower without it is elected."""


COORDINATED = (Act.CUT_BEFORE, Act.CUT_AFTER, Act.LATE, Act.REFUSE, Act.MOVE)
ACTS: Mapping[Api, tuple[Act, ...]] = MappingProxyType(
    {
        Api.PRODUCE: (*COORDINATED, Act.THROTTLE, Act.UNCERTAIN, Act.LOSE, Act.UNCLEAN),
        Api.FETCH: (Act.CUT_AFTER, Act.LATE, Act.THROTTLE, Act.REFUSE, Act.MOVE, Act.EMPTY),
        Api.METADATA: (Act.CUT_BEFORE, Act.LATE, Act.STALE),
        Api.INIT_PRODUCER_ID: (Act.CUT_BEFORE, Act.CUT_AFTER, Act.LATE, Act.REFUSE),
        Api.LIST_OFFSETS: (Act.CUT_AFTER, Act.LATE, Act.REFUSE),
        Api.FIND_COORDINATOR: (Act.CUT_BEFORE, Act.LATE, Act.REFUSE),
        Api.JOIN_GROUP: COORDINATED,
        Api.SYNC_GROUP: COORDINATED,
        Api.HEARTBEAT: COORDINATED,
        Api.OFFSET_FETCH: COORDINATED,
        Api.OFFSET_COMMIT: (*COORDINATED, Act.UNCERTAIN),
    }
)
GROUP_APIS = frozenset(
    {Api.JOIN_GROUP, Api.SYNC_GROUP, Api.HEARTBEAT, Api.OFFSET_FETCH, Api.OFFSET_COMMIT, Api.FIND_COORDINATOR}
)
PROFILES: Mapping[str, frozenset[Act]] = MappingProxyType(
    {
        "all": frozenset(Act) - {Act.UNCLEAN},
        "network": frozenset({Act.CUT_BEFORE, Act.CUT_AFTER, Act.LATE, Act.THROTTLE}),
        "leaders": frozenset({Act.MOVE, Act.LOSE, Act.STALE, Act.UNCERTAIN}),
        "unclean": frozenset({Act.UNCLEAN, Act.CUT_AFTER, Act.MOVE}),
    }
)
TOP_LEVEL_ERROR = 2
"""From this version on OffsetFetch has a place for an error."""
LAST = 12
"""Of an API's requests, the last to which a seed does something: then every client gets through."""
RATE = 0.3
DELAYS_MS = (50, 300, 1_200)
MOVE_S = 3.0
"""How long a change of leaders is waited for."""
PASSING = Error.COORDINATOR_NOT_AVAILABLE
REFUSALS = MappingProxyType(
    {
        Api.PRODUCE: Error.NOT_ENOUGH_REPLICAS,
        Api.FETCH: Error.KAFKA_STORAGE_ERROR,
        Api.LIST_OFFSETS: Error.KAFKA_STORAGE_ERROR,
        Api.OFFSET_FETCH: Error.COORDINATOR_LOAD_IN_PROGRESS,
        Api.INIT_PRODUCER_ID: Error.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
UNKNOWN = "base_offset", "offset", "timestamp", "high_watermark", "last_stable_offset", "log_start_offset"
"""What a response with an error does not say of a partition."""


@dataclass(frozen=True, slots=True)
class Intervention:
    """What happens to the `n`-th request of an API, the first being 1; `ms` is for acts that take time."""

    api: Api
    n: int
    act: Act
    ms: int = 0

    def fields(self) -> dict[str, Any]:
        """Return the intervention as a line of JSON has it."""
        return {"api": self.api.name, "n": self.n, "act": str(self.act), "ms": self.ms}

    def __str__(self) -> str:
        return f"{self.api.name} {self.n}: {self.act}" + (f" {self.ms} ms" if self.ms else "")


Schedule = Callable[[Api, int], Intervention | None]


def drawn(seed: int, acts: frozenset[Act]) -> Schedule:
    """Return the schedule of a seed."""

    def choose(api: Api, n: int) -> Intervention | None:
        chance = Random(f"{seed} {api.name} {n}")  # noqa: S311  # repeatable, and no secret
        # The same numbers are drawn whatever is chosen, so that a profile does not change the others' times.
        is_chosen, pick, ms = chance.random() < RATE, chance.random(), chance.choice(DELAYS_MS)
        may = [act for act in ACTS.get(api, ()) if act in acts]
        if not is_chosen or n > LAST or not may:
            return None
        act = may[int(pick * len(may))]
        return Intervention(api, n, act, ms if act in (Act.LATE, Act.THROTTLE) else 0)

    return choose


def listed(interventions: tuple[Intervention, ...]) -> Schedule:
    """Return the schedule that has these interventions and no others."""
    known = {(each.api, each.n): each for each in interventions}
    return lambda api, n: known.get((api, n))


@dataclass(slots=True)
class Adversary:
    """The hand of a cluster: its schedule, what it has seen and done, and those it acts through."""

    schedule: Schedule
    note: Callable[[int, Intervention], None]
    """Is told of each intervention as it begins, with the broker."""
    controlling: Controlling = field(init=False)
    hosts: dict[int, Host] = field(default_factory=dict)
    before: MetadataImage | None = None
    """The metadata of before the last election that the hand has caused."""
    seen: Counter[Api] = field(default_factory=Counter)

    def watch(self, process: Host | Controlling) -> None:
        """Take a broker, or the controller, of the cluster."""
        if isinstance(process, Host):
            self.hosts[process.settings.broker_id] = process
        else:
            self.controlling = process

    def service(self, host: Host, addresses: Mapping[int, Address]) -> Service:
        """Return the service of one broker under this hand."""
        return Steered(host, addresses, self)

    def next_of(self, api: Api) -> Intervention | None:
        """Count a request, and return what happens to it."""
        self.seen[api] += 1
        return self.schedule(api, self.seen[api])


class Steered(Service):
    """The answers of a broker whose cluster has an opponent."""

    def __init__(self, host: Host, addresses: Mapping[int, Address], hand: Adversary) -> None:
        super().__init__(host, addresses)
        self._hand = hand
        self._held: set[str] = set()
        """Partitions whose followers get nothing."""
        self._doomed: set[str] = set()
        """Partitions that another one leads as soon as a client has read from them, or writes again."""
        self._told = -1
        """The version of the metadata of which a client may know from this broker."""

    async def ready(self, client: int, request: Request) -> int:
        """Wait until a fetch has records, unless it is a follower's that gets none."""
        self._is_of_follower(request)
        return await super().ready(client, request)

    def _is_of_follower(self, request: Request) -> bool:
        """Return whether another broker asks; raises `ConnectionError` if it gets nothing now."""
        is_follower = replica_of(self.host, request.body) >= 0
        if is_follower and partition_of(request) in self._held:
            raise ConnectionError("the hand keeps the follower back")
        return is_follower

    async def answer(self, client: int, request: Request) -> Body | None:
        """Return the response that the schedule allows; raises `ConnectionError` where it is to be none."""
        if self._is_of_follower(request):
            return await super().answer(client, request)
        answer = await self._steered(client, request)
        if request.api in (Api.METADATA, Api.PRODUCE, Api.FETCH, Api.LIST_OFFSETS):
            self._told = self.host.image.version
        return answer

    async def _steered(self, client: int, request: Request) -> Body | None:
        if request.api is not Api.FETCH:
            return await self._under(self._hand.next_of(request.api), client, request)
        partition = partition_of(request)
        answer = await super().answer(client, request)
        assert answer is not None, "every fetch is answered"
        if not any(part["records"] for topic in answer["responses"] for part in topic["partitions"]):
            return answer
        if partition in self._doomed:
            await self._usurp(partition)
        return await self._under(self._hand.next_of(request.api), client, request, answer)

    async def _under(
        self, chosen: Intervention | None, client: int, request: Request, done: Body | None = None
    ) -> Body | None:
        """Answer a request under an intervention; `done` is the answer, if there is one already."""
        if request.api is Api.PRODUCE and partition_of(request) in self._doomed:
            await self._usurp(partition_of(request))
        if chosen is None or not self._allows(chosen.act, request):
            return await super().answer(client, request) if done is None else done
        self._hand.note(self.host.settings.broker_id, chosen)
        match chosen.act:
            case Act.CUT_BEFORE:
                raise ConnectionError(str(chosen))
            case Act.REFUSE:
                return refusal(request, REFUSALS.get(request.api, PASSING))
            case Act.EMPTY:
                return {"throttle_time": DELAYS_MS[0], "responses": ()}
            case Act.STALE:
                view = copy(self.host)
                view.image = self._hand.before or view.image
                return await metadata(view, self.addresses, request.body, request.version, False)
            case Act.LOSE:
                return await self._lost(client, request)
            case Act.UNCLEAN:
                await self._alone(partition_of(request))
        answer = await super().answer(client, request) if done is None else done
        return await self._instead(chosen, request, answer)

    async def _instead(self, chosen: Intervention, request: Request, answer: Body | None) -> Body | None:
        """Return what the client gets of the answer to a request that was executed."""
        is_group = request.api in GROUP_APIS
        match chosen.act:
            case Act.CUT_AFTER:
                raise ConnectionError(str(chosen))
            case Act.LATE:
                await asyncio.sleep(chosen.ms / 1_000)
                return answer
            case Act.THROTTLE:
                return answer and {**answer, "throttle_time": chosen.ms}
            case Act.MOVE:
                await self._move(partition_of(request))
                error = Error.NOT_COORDINATOR if is_group else Error.NOT_LEADER_OR_FOLLOWER
            case Act.UNCLEAN:
                return answer
            case _:
                error = PASSING if is_group else Error.REQUEST_TIMED_OUT
        is_final = answer is None or has_error(answer) or not waits(request)
        return answer if is_final else refusal(request, error)

    def _allows(self, act: Act, request: Request) -> bool:
        """Return whether a cluster could do this to this request now."""
        if request.api is Api.OFFSET_FETCH and request.version < TOP_LEVEL_ERROR:
            return act in (Act.CUT_BEFORE, Act.CUT_AFTER, Act.LATE)
        if act is Act.STALE:
            return self._hand.before is not None and self._told <= self._hand.before.version
        if act is Act.UNCERTAIN or (act is Act.REFUSE and request.api is Api.PRODUCE):
            return waits(request)
        if act not in (Act.MOVE, Act.LOSE, Act.UNCLEAN):
            return True
        partition = partition_of(request)
        image = self.host.image.partitions.get(partition)
        return (
            partition not in self._doomed
            and image is not None
            and image.leader == self.host.settings.broker_id
        )

    async def _move(self, partition: str) -> None:
        """Fence the leader until another is elected that has all committed records."""
        me = self.host.settings.broker_id
        replicas = self.host.image.partitions[partition].replicas
        # Who is elected then has the acknowledged records, and the same broker each time.
        await self._until(lambda image: set(image.partitions[partition].isr) == set(replicas))
        self._hand.before = self.host.image
        self._hand.controlling.expire(me)
        await self._until(lambda image: image.partitions[partition].leader not in (me, NO_LEADER))
        self._told = self.host.image.version
        self.host.beat()

    async def _until(self, is_done: Callable[[MetadataImage], bool]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(MOVE_S):
                await self.host.until(is_done)

    async def _lost(self, client: int, request: Request) -> Body | None:
        """Let the leader append what no follower gets before another leads."""
        partition = partition_of(request)
        self._held.add(partition)
        try:
            answer = asyncio.ensure_future(super().answer(client, request))
            # It is appended in the task's first step.
            await asyncio.sleep(0)
            await self._move(partition)
            return await answer
        finally:
            self._held.discard(partition)

    async def _alone(self, partition: str) -> None:
        """Let the leader commit alone from now on: no follower gets anything, or is waited for."""
        self._held.add(partition)
        self._doomed.add(partition)
        for other in self._others(partition):
            self._hand.controlling.expire(other)
        await self._until(lambda image: image.partitions[partition].isr == (self.host.settings.broker_id,))

    def _others(self, partition: str) -> set[int]:
        return set(self.host.image.partitions[partition].replicas) - {self.host.settings.broker_id}

    async def _usurp(self, partition: str) -> None:
        """Have a follower elected that lacks what this leader has committed alone."""
        me, controlling, others = (
            self.host.settings.broker_id,
            self._hand.controlling,
            self._others(partition),
        )
        for other in others:
            self._hand.hosts[other].beat()
        active = BrokerState.ACTIVE
        await self._until(lambda image: all(image.brokers[other].state is active for other in others))
        controlling.expire(me)
        controlling.receive(OPERATOR, ElectRequest(self.host.number(), partition, is_unclean=True))
        await self._until(lambda image: image.partitions[partition].leader not in (me, NO_LEADER))
        self._doomed.discard(partition)
        self._held.discard(partition)
        self.host.beat()


def partition_of(request: Request) -> str:
    """Return the partition that decides who answers: the first of a request, or that of all groups."""
    if request.api in GROUP_APIS:
        return GROUPS
    shape = SHAPES.get(request.api)
    return "" if shape is None else next((place.partition for place in shape.places(request.body)), "")


def waits(request: Request) -> bool:
    """Return whether the answer waits for other brokers, and may leave open if the request was executed."""
    acks: int = request.body.get("acks", -1)
    return acks == -1


def has_error(answer: Any) -> bool:
    """Return whether there is an error anywhere in a response."""
    if isinstance(answer, Mapping):
        return bool(answer.get("error_code")) or any(map(has_error, answer.values()))
    return isinstance(answer, tuple) and any(map(has_error, answer))


def refusal(request: Request, error: Error) -> Body:
    """Return the response that says nothing but an error."""
    body = request.body
    shape = SHAPES.get(request.api)
    if shape is None:
        nothing = {"generation_id": -1, "member_id": body.get("member_id", ""), "node_id": -1, "port": -1}
        return {**nothing, "error_code": error, "producer_id": -1, "producer_epoch": -1}
    nothing = {**dict.fromkeys(UNKNOWN, -1), "records": b"", "error_code": error}
    return shape.response((place, nothing) for place in shape.places(body))
