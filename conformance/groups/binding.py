"""groups.spec and replog: a coordinator of one group, on a replica that leads, follows, and leads again.

The system is the replica, its messages to itself, and the timers that it has set.  A committed offset shows
who has committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from replog.core import messages
from replog.core.broker.coordinator import Coordinator, GroupReplica
from replog.core.broker.groups import Commit, Groups, from_body
from replog.core.broker.state import ReplicaState
from replog.core.effects import Effect, Send, SetTimer, Timer
from replog.core.messages import GroupLog
from replog.core.types import (
    Batch,
    BrokerImage,
    BrokerState,
    EpochEnd,
    Error,
    MetadataImage,
    PartitionImage,
)
from specchk.conform.contract.binding import Accepted, Answer, At, Impossible, Refused, action, project
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.conform.contract.ruled import CopyingBinding

ME, OTHER, OWNER, NOW_MS = 0, 1, -100, 1_000_000
LOG, GROUP, PARTITION, PLACES = "groups-0", "g", "t-0", 10
BROKERS = MappingProxyType({b: BrokerImage(b + 1, BrokerState.ACTIVE) for b in (ME, OTHER)})
ERRORS = MappingProxyType({
    Error.NOT_COORDINATOR: "not_coordinator", Error.COORDINATOR_LOAD_IN_PROGRESS: "loading",
    Error.UNKNOWN_MEMBER_ID: "unknown_member", Error.ILLEGAL_GENERATION: "illegal_generation",
})  # fmt: skip
Owner = dict[str, int]


@dataclass(slots=True)
class Server:
    """A replica of the log of groups; `mail` has its messages to itself, by their epochs."""

    replica: GroupReplica
    mail: dict[int, GroupLog] = field(default_factory=dict)
    timers: set[Timer] = field(default_factory=set)
    out: tuple[Any, ...] = ()

    def copy(self) -> Server:
        """Return an independent copy."""
        return Server(self.replica.copy(), self.mail.copy(), self.timers.copy(), self.out)

    def perform(self, effects: list[Effect]) -> None:
        """Note answers, messages to itself, and timers."""
        sends = [effect for effect in effects if isinstance(effect, Send)]
        self.timers |= {effect.timer for effect in effects if isinstance(effect, SetTimer)}
        self.mail |= {s.message.leader_epoch: s.message for s in sends if isinstance(s.message, GroupLog)}
        self.out = tuple(answer_of(sent.message) for sent in sends if sent.to == OWNER)

    @property
    def epoch(self) -> int:
        """Return its leader epoch."""
        return self.replica.state.leader_epoch

    def receive(self, source: int, message: messages.Message) -> None:
        """Let the replica handle a message."""
        self.perform(self.replica.receive(source, message, NOW_MS))

    def appoint(self, leader: int, epoch: int) -> None:
        """Make a broker the leader."""
        image = PartitionImage((ME, OTHER), leader, epoch, epoch, (ME, OTHER))
        self.perform(self.replica.apply(MetadataImage(epoch, {LOG: image}, BROKERS), 1, NOW_MS))

    def fetched(self, **reply: Any) -> None:
        """Let the replica, which follows, fetch, and answer it."""
        (fetch,) = (e.message for e in self.replica.fire(Timer.SEND_FETCH, 0, NOW_MS) if isinstance(e, Send))
        assert isinstance(fetch, messages.FetchRequest)
        self.receive(OTHER, messages.FetchReply(fetch.correlation, Error.NONE, **reply))


class GroupsBinding(CopyingBinding[Server]):
    """Requests of members, elections, and a log that is loaded late."""

    spec, model = "../../spec/groups.spec", "one_term"
    smoke = (At("one_term", {"MaxRecords": "1"}),)
    gate = (At("one_term"), At("leads_again"))
    controls = (
        BadSpec("commits are judged by what is committed", "one_term", {"judges_by_written": "false"}),
        BadSpec("positions that are not committed", "one_term", {"tells_committed": "false"}),
        BadSpec("any log is loaded", "leads_again", {"own_log": "false"}),
        BadCode("generations count from what is committed", Coordinator.receive,
                "self.written.next_generation", "self.committed.next_generation", "one_term"),
        BadCode("the number of a generation is not compared", Groups.owner_error,
                "generation != group.generation", "False", "one_term"),
        BadCode("nobody is told of the end of a term", Coordinator.follow,
                "self._arm(Timer.RESIGN, state.config.resign_ms, out)", "pass", "leads_again"),
    )  # fmt: skip
    rules = MappingProxyType({"judges_by_written": True, "tells_committed": True, "own_log": True})

    def start(self) -> Server:
        """It leads epoch 0, and has not read its log."""
        server = Server(GroupReplica(ReplicaState(ME, LOG)))
        server.appoint(ME, 0)
        return server

    def _request(self, server: Server, request: messages.Message) -> Answer:
        server.receive(OWNER, request)
        room, waiting = self.constants["MaxRecords"], server.replica.coordinator.waiting
        if max(len(server.replica.state.log.batches), len(waiting)) > room:
            return Impossible("no more records, or waiting members, in this model")
        return Accepted()

    @action("join")
    def join(self, server: Server, member: int) -> Answer:
        """A member wants to own the group."""
        return self._request(server, messages.JoinGroupRequest(1, GROUP, member))

    @action("commit")
    def commit(self, server: Server, by: Owner) -> Answer:
        """A member commits, in a generation."""
        place = by["number"] * PLACES + by["member"]
        request = messages.CommitRequest(1, GROUP, PARTITION, place, by["member"], by["number"])
        return self._request(server, request)

    @action("ask")
    def ask(self, server: Server, by: Owner) -> Answer:
        """A member requests its position."""
        request = messages.PositionRequest(1, GROUP, PARTITION, by["member"], by["number"])
        return self._request(server, request)

    @action("acknowledge")
    def acknowledge(self, server: Server, records: int) -> Answer:
        """The follower fetches behind so many records."""
        state = server.replica.state
        if state.leading is None or not state.log.hw < records <= state.log.leo:
            return Impossible("there are not so many records, or they are committed")
        last = state.log.batches[records - 1].epoch
        server.receive(OTHER, messages.FetchRequest(0, OTHER, server.epoch, records, last, broker_epoch=2))
        return Accepted()

    @action("complete")
    def complete(self, server: Server) -> Answer:
        """The timer for answers whose records are committed rings."""
        return self._ring(server, Timer.COMPLETE_COMMITS)

    @action("resign")
    def resign(self, server: Server) -> Answer:
        """The timer for answers of an earlier term rings."""
        return self._ring(server, Timer.RESIGN)

    def _ring(self, server: Server, timer: Timer) -> Answer:
        trial = server.copy()
        trial.perform(trial.replica.fire(timer, 0, NOW_MS))
        # A timer that finds nobody to answer is no step of the spec.
        if timer not in server.timers or not trial.out:
            return Refused("no timer is set, or it answers nobody")
        server.timers.discard(timer)
        server.perform(server.replica.fire(timer, 0, NOW_MS))
        return Accepted()

    @action("follow")
    def follow(self, server: Server, records: int) -> Answer:
        """The other broker leads, whose log has so many records of this one's."""
        log = server.replica.state.log
        is_over = server.epoch == self.constants["MaxEpoch"] or server.replica.state.leading is None
        if is_over or not log.hw <= records <= log.leo:
            return Impossible("no more elections in this model, or there are no such records")
        server.appoint(OTHER, server.epoch + 1)
        if records < log.leo:
            server.fetched(diverging=EpochEnd(log.last_epoch, records))
        return Accepted()

    @action("replicate")
    def replicate(self, server: Server, member: int) -> Answer:
        """A record of the other coordinator: a member has joined there."""
        log = server.replica.state.log
        if server.replica.state.leading is not None or log.leo == self.constants["MaxRecords"]:
            return Impossible("it leads, or no more records in this model")
        groups = Groups.replay(from_body(batch.content) for batch in log.batches)
        body = groups.next_generation(GROUP, member).to_body()
        batch = Batch(log.leo, server.epoch, 1, body=body)
        server.fetched(high_watermark=batch.next_offset, log_start=0, batches=(batch,))
        return Accepted()

    @action("lead")
    def lead(self, server: Server) -> Answer:
        """It leads again."""
        if server.replica.state.leading is not None or server.epoch == self.constants["MaxEpoch"]:
            return Impossible("no more elections in this model, or it leads")
        server.appoint(ME, server.epoch + 1)
        return Accepted()

    @action("load")
    def load(self, server: Server, epoch: int) -> Answer:
        """A message that it has sent to itself arrives."""
        if epoch not in server.mail:
            return Impossible("it has not led then")
        server.receive(ME, server.mail[epoch])
        return Accepted()

    @project
    def state(self, server: Server) -> dict[str, Any]:
        """The log, what is on its way, and what was answered; `known` is the log, once it is loaded."""
        state, coordinator = server.replica.state, server.replica.coordinator
        log = records_of(state.log.batches)
        sent: dict[int, Any] = dict.fromkeys(range(self.constants["MaxEpoch"] + 1))
        waiting = coordinator.waiting
        return {
            "log": log, "hw": state.log.hw, "epoch": server.epoch, "leads": state.leading is not None,
            "known": log if coordinator.is_loaded else None, "out": server.out,
            "mail": sent | {epoch: records_of(mail.batches) for epoch, mail in server.mail.items()},
            "waiting": [{"at": w.end, "epoch": w.epoch, "answer": answer_of(w.reply)} for w in waiting],
        }  # fmt: skip


def owner_at(place: int) -> Owner | None:
    """Return who has committed an offset, None for none."""
    return None if place < 0 else {"number": place // PLACES, "member": place % PLACES}


def records_of(batches: Iterable[Batch]) -> list[Any]:
    """Return a log in the spec's words."""
    found = [from_body(batch.content) for batch in batches]
    return [
        ("Committed", {"by": owner_at(record.offset)}) if isinstance(record, Commit)
        else ("Joined", {"by": {"number": record.number, "member": record.member}}) for record in found
    ]  # fmt: skip


def answer_of(message: Any) -> Any:
    """Return an answer in the spec's words."""
    if message.error is not Error.NONE:
        return ("Failed", {"error": ERRORS.get(message.error, message.error.name)})
    match message:
        case messages.JoinGroupReply(generation=number):
            return ("Owns", {"number": number})
        case messages.PositionReply(offset=offset):
            return ("Position", {"of": owner_at(offset)})
    return ("Stored", {})
