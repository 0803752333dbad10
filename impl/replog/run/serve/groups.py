"""The requests of consumer groups, between clients, the members of each group, and the core.

    JoinGroup, SyncGroup, Heartbeat, LeaveGroup   -> `rebalance.Group`, and a generation of the core
    OffsetCommit, OffsetFetch                     -> the core, in the name of the group's generation

To the core a group has one owner: this coordinator, in the generation that its members have agreed on.  A
generation is a record of the log of groups, so a coordinator that was replaced can commit nothing.  What it
commits is for a partition as it was created once: a topic of the same name begins without offsets.

Each request is answered by the leader of the log of groups, the others by NOT_COORDINATOR.  Metadata of a
commit is not kept, and groups that nobody uses are forgotten here, not in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from replog.core.broker.coordinator import GroupReplica
from replog.core.messages import (
    CommitReply,
    CommitRequest,
    JoinGroupReply,
    JoinGroupRequest,
    PositionReply,
    PositionRequest,
)
from replog.core.types import NO_EPOCH, Error
from replog.run.partitions import key_of
from replog.run.serve.codec import Body
from replog.run.serve.frames import Api, Request
from replog.run.serve.host import GROUPS, Host
from replog.run.serve.rebalance import REBALANCE_IN_PROGRESS, Answer, ClassicGroup, Join, Phase, refused_join
from replog.run.serve.records import PLAIN, Place
from replog.run.serve.topics import Address

INVALID_GROUP_ID = 24
INVALID_SESSION_TIMEOUT = 26
TRANSACTIONS_REFUSED = 53
"""TRANSACTIONAL_ID_AUTHORIZATION_FAILED: the error that every client reports at once."""
LONGEST_SESSION_MS = 1_800_000
MOST_GROUPS = 10_000
EXPIRY_S = 0.25
STATES = MappingProxyType(
    {
        Phase.EMPTY: "Empty",
        Phase.PREPARING: "PreparingRebalance",
        Phase.WRITING: "CompletingRebalance",
        Phase.COMPLETING: "CompletingRebalance",
        Phase.STABLE: "Stable",
    }
)
"""Kafka's words."""
COMMIT_S = 5.0
"""Kafka's offsets.commit.timeout.ms: how long a commit waits for the other replicas of the log of groups."""


class Coordination:
    """The consumer groups that this broker coordinates."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._groups: dict[str, ClassicGroup] = {}
        self._epoch = NO_EPOCH
        self._writes: set[asyncio.Task[None]] = set()
        self._is_ticking = False

    async def answer(self, client: int, request: Request, addresses: Mapping[int, Address]) -> Body:
        """Return the response to a request."""
        body = request.body
        if request.api is Api.FIND_COORDINATOR:
            return self._find(body, addresses)
        if request.api is Api.LIST_GROUPS:
            return self._list(body)
        error = self._availability(body["group_id"])
        match request.api:
            case Api.JOIN_GROUP:
                return await self._join(request, error)
            case Api.SYNC_GROUP:
                return await self._sync(body, error)
            case Api.HEARTBEAT:
                group = self._groups.get(body["group_id"])
                if group is not None and not error:
                    error = group.heartbeat(body["member_id"], body["generation_id"], self._host.now_ms())
                return {"error_code": error or (Error.UNKNOWN_MEMBER_ID if group is None else 0)}
            case Api.LEAVE_GROUP:
                return self._leave(body, error)
            case Api.OFFSET_COMMIT:
                return await self._commit(client, body, error)
            case _:
                assert request.api is Api.OFFSET_FETCH
                return await self._offsets(client, body, error)

    def _find(self, body: Body, addresses: Mapping[int, Address]) -> Body:
        """Return the address of the coordinator, which is the same for all groups."""
        image = self._host.image.partitions.get(GROUPS)
        error, leader = 0, -1 if image is None else image.leader
        if body.get("key_type", 0) != 0:
            error = TRANSACTIONS_REFUSED
        elif leader not in addresses:
            error = Error.COORDINATOR_NOT_AVAILABLE
        if error:
            return {"error_code": error, "error_message": None, "node_id": -1, "host": "", "port": -1}
        host, port = addresses[leader]
        return {"error_message": None, "node_id": leader, "host": host, "port": port}

    def _list(self, body: Body) -> Body:
        """List the groups that this broker coordinates: those with members, or with offsets."""
        error = self._availability("")
        if error in (Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS):
            # Another broker lists them.
            return {"error_code": 0 if error == Error.NOT_COORDINATOR else error, "groups": ()}
        written = self._replica().coordinator.written.groups
        names = {name for name, group in self._groups.items() if group.members}
        names |= {name for name, group in written.items() if any(map(self._is_current, group.committed))}
        listed: list[Body] = []
        for name in sorted(names):
            group = self._groups.get(name)
            state = STATES[Phase.EMPTY if group is None else group.phase]
            if not body.get("states_filter") or state in body["states_filter"]:
                kind = "" if group is None else group.protocol_type
                listed.append({"group_id": name, "protocol_type": kind, "group_state": state})
        return {"error_code": 0, "groups": tuple(listed)}

    def _is_current(self, key: str) -> bool:
        """Return whether a name to the core is of a partition that there is."""
        return self._key(key.partition("@")[0]) == key

    def _replica(self) -> GroupReplica:
        replica = self._host.broker.replicas[GROUPS]
        assert isinstance(replica, GroupReplica)
        return replica

    def _availability(self, name: str) -> int:
        """Return why a group cannot be served here now, 0 if it can; forget what is of an earlier epoch."""
        replica = self._replica()
        epoch = NO_EPOCH if replica.state.leading is None else replica.state.leader_epoch
        if epoch != self._epoch:
            self._epoch = epoch
            for group in self._groups.values():
                group.resign(Error.NOT_COORDINATOR, self._host.now_ms())
            self._groups = {}
        if epoch == NO_EPOCH:
            return Error.NOT_COORDINATOR
        if not replica.coordinator.is_loaded:
            return Error.COORDINATOR_LOAD_IN_PROGRESS
        if name not in self._groups and len(self._groups) >= MOST_GROUPS:
            return Error.COORDINATOR_NOT_AVAILABLE
        return 0 if name else INVALID_GROUP_ID

    def _group(self, name: str) -> ClassicGroup:
        if name not in self._groups:
            self._groups[name] = ClassicGroup(lambda: self._begin_write(name))
            if not self._is_ticking:
                self._is_ticking = True
                asyncio.get_running_loop().call_later(EXPIRY_S, self._tick)
        return self._groups[name]

    def _tick(self) -> None:
        """End the sessions that are due, and forget groups without members."""
        now_ms = self._host.now_ms()
        for name, group in list(self._groups.items()):
            group.expire(now_ms)
            if group.phase is Phase.EMPTY and not group.reserved:
                del self._groups[name]
        self._is_ticking = bool(self._groups) and not self._host.stopped.done()
        if self._is_ticking:
            asyncio.get_running_loop().call_later(EXPIRY_S, self._tick)

    def _begin_write(self, name: str) -> None:
        task = asyncio.ensure_future(self._write(name, self._groups[name]))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def _write(self, name: str, group: ClassicGroup) -> None:
        reply = await self._next_generation(name)
        group.written(reply.generation, reply.error, self._host.now_ms())

    async def _next_generation(self, name: str) -> JoinGroupReply:
        request = JoinGroupRequest(self._host.number(), name, self._owner())
        # Of no client: who asked for it may be gone when it is written.
        reply = await self._host.ask(self._host.client(), GROUPS, request)
        assert isinstance(reply, JoinGroupReply)
        return reply

    def _owner(self) -> int:
        """Return the name under which this process owns groups: its broker epoch."""
        return self._host.broker.membership.broker_epoch

    async def _join(self, request: Request, error: int) -> Body:
        body = request.body
        session_ms = body["session_timeout"]
        if not error and not 1 <= session_ms <= LONGEST_SESSION_MS:
            error = INVALID_SESSION_TIMEOUT
        if error:
            return refused_join(error, body["member_id"])
        join = Join(
            body["member_id"],
            request.client_id,
            body.get("group_instance_id"),
            body["protocol_type"],
            tuple((each["name"], each["metadata"]) for each in body["protocols"]),
            session_ms,
            min(max(body.get("rebalance_timeout", session_ms), 1), LONGEST_SESSION_MS),
            # KIP-394: a client that never joins with its id takes no place in the group.
            request.version >= 4,
        )
        return await _answer_to(partial(self._group(body["group_id"]).join, join, self._host.now_ms()))

    async def _sync(self, body: Body, error: int) -> Body:
        group = self._groups.get(body["group_id"])
        if group is None or error:
            return {"error_code": error or Error.UNKNOWN_MEMBER_ID}
        assignments = {each["member_id"]: each["assignment"] for each in body["assignments"]}
        now_ms = self._host.now_ms()
        return await _answer_to(
            partial(group.sync, body["member_id"], body["generation_id"], assignments, now_ms)
        )

    def _leave(self, body: Body, error: int) -> Body:
        if error:
            return {"error_code": error}
        group = self._groups.get(body["group_id"])
        now_ms = self._host.now_ms()

        def leave(name: str) -> int:
            return Error.UNKNOWN_MEMBER_ID if group is None else group.leave(name, now_ms)

        # From version 3 on several may leave at once.
        if "members" not in body:
            return {"error_code": leave(body["member_id"])}
        left = [{**member, "error_code": leave(member["member_id"])} for member in body["members"]]
        return {"members": left}

    async def _commit(self, client: int, body: Body, error: int) -> Body:
        name = body["group_id"]
        wanted = list(PLAIN.places(body))
        generation = -1
        if not error:
            error, generation = await self._committer(name, body)
        begun = [self._begin_commit(client, name, place, generation, error) for place in wanted]
        waiting = [begin for begin in begun if isinstance(begin, asyncio.Future)]
        if waiting:
            await asyncio.wait(waiting, timeout=COMMIT_S)
        answers: list[tuple[Place, Body]] = []
        for place, begin in zip(wanted, begun, strict=True):
            code = begin
            if isinstance(begin, asyncio.Future):
                # One without an answer may be committed later: the client repeats it.
                code = Error.COORDINATOR_NOT_AVAILABLE
                if not begin.cancel():
                    reply = begin.result()
                    assert isinstance(reply, CommitReply)
                    code = reply.error
            answers.append((place, {"error_code": code}))
        return PLAIN.response(answers)

    async def _committer(self, name: str, body: Body) -> tuple[int, int]:
        """Return why a commit is refused, 0 if it is not, and the generation that it is made in."""
        group = self._group(name)
        number = body.get("generation_id_or_member_epoch", -1)
        if number < 0 and not group.members:
            # A client that assigns itself its partitions: it is alone, and takes the group over.
            return await self._own(name, group)
        error = group.check(body["member_id"], number)
        if not error and group.phase in (Phase.WRITING, Phase.COMPLETING):
            error = REBALANCE_IN_PROGRESS
        return error, group.generation

    async def _own(self, name: str, group: ClassicGroup) -> tuple[int, int]:
        """Return an error code, 0 if there is none, and the generation of a group, begun if there is none."""
        if group.generation < 0:
            try:
                async with asyncio.timeout(COMMIT_S):
                    reply = await self._next_generation(name)
            except TimeoutError:
                return Error.COORDINATOR_NOT_AVAILABLE, -1
            if reply.error is not Error.NONE:
                return reply.error, -1
            group.generation = max(group.generation, reply.generation)
        return 0, group.generation

    def _begin_commit(self, client: int, name: str, place: Place, generation: int, error: int) -> Any:
        """Hand a commit to the core; return what it will answer, or the reason why it was not asked."""
        if error:
            return error
        if place.partition not in self._host.image.partitions:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        offset, key = place.body["committed_offset"], self._key(place.partition)
        request = CommitRequest(self._host.number(), name, key, offset, self._owner(), generation)
        return self._host.ask(client, GROUPS, request)

    def _key(self, partition: str) -> str:
        """Return the name of a partition to the core: another one than before its topic was deleted."""
        image = self._host.image.partitions.get(partition)
        if image is None:
            return ""
        # Catalogs before 2026-12 have no version.
        return f"{partition}@{image.created}" if image.created else partition

    async def _offsets(self, client: int, body: Body, error: int) -> Body:
        name, topics = body["group_id"], body["topics"]
        known = self._replica().coordinator.written.groups.get(name)
        generation = -1
        if not error and known is not None:
            error, generation = await self._own(name, self._group(name))
        if topics is None:
            keys = () if known is None else sorted(known.committed)
            held = [key.partition("@")[0] for key in keys if self._is_current(key)]
            wanted = [Place(*key_of(partition), {}) for partition in held]
        else:
            wanted = [Place(topic["name"], n, {}) for topic in topics for n in topic["partition_indexes"]]
        answers: list[tuple[Place, Body]] = []
        for place in wanted:
            offset, code = -1, error
            # A group that has committed nothing needs no generation to say so.
            if not error and generation >= 0:
                key = self._key(place.partition)
                position = PositionRequest(self._host.number(), name, key, self._owner(), generation)
                reply = self._host.now(client, GROUPS, position, PositionReply)
                # The next generation is being written, and what is committed in it is not known yet.
                code = Error.COORDINATOR_LOAD_IN_PROGRESS if reply.error is not Error.NONE else Error.NONE
                offset = reply.offset
            answers.append((place, {"committed_offset": offset, "error_code": code}))
        return {**PLAIN.response(answers), "error_code": error}


async def _answer_to(ask: Callable[[Answer], None]) -> Body:
    """Return what a group answers to a request, at once or later."""
    answer: asyncio.Future[Body] = asyncio.get_running_loop().create_future()
    # Who waits for it may be gone.
    ask(lambda body: None if answer.done() else answer.set_result(body))
    return await answer
