"""One controller of a quorum: votes, the metadata log, and the decisions of the active controller.

    node = ControllerNode(-1, (-1, -2, -3), config, protocol, 1, [first])
    out = node.handle(Received(-2, MetadataFetch(...)), now_ms)

Theory: KIP-500 and KIP-595 (QuorumController, KafkaRaftClient), A36 of the project's Kafka reference;
spec/controller_log.spec.  The active controller is a `Controller` whose every change becomes a record.  It
decides the next request by all records that it has appended; its answer waits until they are committed, and
brokers get committed metadata only:

    request -> Controller.handle -> record appended -> fetched by a majority -> answer, metadata to brokers

What no majority has fetched may be lost with it, and its successor decides again, with the same versions.

Invariants: at most one active controller in a term; a vote, and records, are stored before the message that
promises them; HW never passes a record of an earlier term before one of the own term (`own_record`); a
controller that is not active, or has not committed its own first record, decides nothing.

Two things beyond the spec.  An active controller without the fetches of a majority resigns, so that held-back
replies do not wait forever.  And a request that depends on the broker's view (an ISR proposal) needs
this controller's term: otherwise its sender would accept a refusal by an older one, after this one
granted it.
Left out of Kafka: snapshots of the log (it keeps all records), fetches that wait for records, the vote before
a vote (KIP-996), observers, changes of the quorum.

Not here: the decisions (`controller`), and the log as such (`records`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from replog.core import messages
from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig
from replog.core.effects import Effect, Event, Fired, Received, Send, SetTimer, StoreRecords, StoreVote, Timer
from replog.core.messages import Message, OfTerm
from replog.core.protocol import Protocol, RecordIs
from replog.core.quorum import records
from replog.core.quorum_messages import (
    MetadataFetch,
    MetadataFetchReply,
    NotController,
    VoteReply,
    VoteRequest,
)
from replog.core.types import MetadataRecord

NOBODY = 0
"""No controller's address."""
TICK_MS = 200
ELECTION_MS = 1_500
STAGGER_MS = 500
"""How much later the next controller stands for election: the core draws no lots."""


@dataclass(slots=True)
class ControllerNode:
    """The state of one controller process; the data written by `StoreVote` and `StoreRecords` outlive it."""

    address: int
    voters: tuple[int, ...]
    config: ControllerConfig
    protocol: Protocol
    term: int
    log: list[MetadataRecord]
    vote: int = NOBODY
    hw: int = 0
    """How many records are committed, as it knows."""
    is_active: bool = False
    active: int = NOBODY
    """The active controller of the term, as it knows."""
    controller: Controller | None = None
    """What decides; None unless this controller does."""
    heard_ms: int = 0
    votes: set[int] = field(default_factory=set)
    ends: dict[int, int] = field(default_factory=dict)
    """How many records each other controller has, as it has reported in this term."""
    fetched_ms: dict[int, int] = field(default_factory=dict)
    held: list[tuple[int, Send]] = field(default_factory=list)
    """Answers, and how many records have to be committed first."""
    published: int = -1
    """The newest version that was sent to brokers in this term."""

    def copy(self) -> ControllerNode:
        """Return a snapshot that can be run on its own."""
        controller = None if self.controller is None else self.controller.copy()
        return ControllerNode(
            self.address, self.voters, self.config, self.protocol, self.term, [*self.log], self.vote, self.hw,
            self.is_active, self.active, controller, self.heard_ms, {*self.votes}, {**self.ends},
            {**self.fetched_ms}, [*self.held], self.published,
        )  # fmt: skip

    def start(self, now_ms: int) -> list[Effect]:
        """Wait for an active controller, with the timeout that applies after the loss of one."""
        self.heard_ms = now_ms
        return [SetTimer(Timer.QUORUM, TICK_MS)]

    @property
    def decides(self) -> bool:
        """Return whether it decides requests: it is active, and its own first record is committed."""
        return self.controller is not None

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle one event; the effects are to be performed in order."""
        out: list[Effect] = []
        match event:
            case Fired(Timer.QUORUM):
                self._tick(now_ms, out)
            case Fired(Timer.SESSION_CHECK, token):
                # One that an earlier term has set would be a second timer.
                if token == self.term:
                    self._decide(event, now_ms, out)
            case Received(source, VoteRequest() as request):
                self._vote(source, request, now_ms, out)
            case Received(source, VoteReply() as reply):
                self._count(source, reply, now_ms, out)
            case Received(source, MetadataFetch() as fetch):
                self._serve(source, fetch, now_ms, out)
            case Received(source, MetadataFetchReply() as reply):
                self._take(source, reply, now_ms, out)
            case Received(source, OfTerm(term, message)):
                self._receive(source, term, message, now_ms, out)
            case Received():  # from an operator, who follows the addressed controller
                self._decide(event, now_ms, out)
        return out

    def stand(self, now_ms: int) -> list[Effect]:
        """Stand for election in a new term; an active controller resigns first."""
        out: list[Effect] = []
        self._adopt(self.term + 1, out, vote=self.address)
        self.heard_ms, self.votes = now_ms, {self.address}
        request = VoteRequest(self.term, records.end_of(self.log))
        out.extend(Send(peer, request) for peer in self._peers())
        self._activate_if_elected(now_ms, out)
        return out

    def activate(self, now_ms: int) -> list[Effect]:
        """Become the active controller of the term, after winning its election."""
        out: list[Effect] = []
        self.is_active, self.active, self.votes = True, self.address, set()
        self.fetched_ms = dict.fromkeys(self._peers(), now_ms)
        last = self.log[-1]
        if self.protocol.own_record and last.term != self.term:
            self._append(MetadataRecord(self.term, last.image, last.incarnations), out)
        self._advance(now_ms, out)
        self._begin_if_committed(now_ms, out)
        return out

    def fetch(self) -> list[Effect]:
        """Request the records after the own log from the active controller, or from all if it is unknown."""
        request = MetadataFetch(self.term, records.end_of(self.log))
        peers = self._peers() if self.active == NOBODY else (self.active,)
        return [Send(peer, request) for peer in peers]

    def _peers(self) -> tuple[int, ...]:
        return tuple(voter for voter in self.voters if voter != self.address)

    def _is_majority(self, controllers: int) -> bool:
        return 2 * controllers > len(self.voters)

    def _tick(self, now_ms: int, out: list[Effect]) -> None:
        out.append(SetTimer(Timer.QUORUM, TICK_MS))
        if self.is_active:
            near = sum(now_ms - at <= 2 * ELECTION_MS for at in self.fetched_ms.values())
            if not self._is_majority(1 + near):
                self._resign()
                self.heard_ms = now_ms
        elif now_ms - self.heard_ms > self._patience_ms():
            out.extend(self.stand(now_ms))
        else:
            out.extend(self.fetch())

    def _patience_ms(self) -> int:
        """Return how long it waits for an active controller; in each term another one waits least."""
        rank = (self.voters.index(self.address) + self.term) % len(self.voters)
        return ELECTION_MS + STAGGER_MS * rank

    def _adopt(self, term: int, out: list[Effect], vote: int = NOBODY) -> None:
        """Enter a newer term, without being active in it; it is stored before anything shows it."""
        if term <= self.term:
            return
        self._resign()
        self.term, self.vote, self.votes = term, vote, set()
        out.append(StoreVote(term, vote))

    def _resign(self) -> None:
        """Resign as the active controller: drop pending replies, and keep only the log."""
        self.is_active, self.active, self.controller = False, NOBODY, None
        self.ends, self.fetched_ms, self.held, self.published = {}, {}, [], -1

    # Votes.

    def _vote(self, source: int, request: VoteRequest, now_ms: int, out: list[Effect]) -> None:
        self._adopt(request.term, out)
        is_free = self.vote in (NOBODY, source) and self.active == NOBODY
        is_new = records.is_as_new(request.log, records.end_of(self.log))
        is_granted = request.term == self.term and is_free and is_new
        if is_granted and self.vote == NOBODY:
            self.vote = source
            # Before the reply: a second vote in the term would elect a second controller.
            out.append(StoreVote(self.term, source))
        if is_granted:
            self.heard_ms = now_ms
        out.append(Send(source, VoteReply(self.term, is_granted)))

    def _count(self, source: int, reply: VoteReply, now_ms: int, out: list[Effect]) -> None:
        self._adopt(reply.term, out)
        if reply.is_granted and reply.term == self.term and self.votes:
            self.votes.add(source)
            self._activate_if_elected(now_ms, out)

    def _activate_if_elected(self, now_ms: int, out: list[Effect]) -> None:
        if self._is_majority(len(self.votes)):
            out.extend(self.activate(now_ms))

    # The log.

    def _append(self, record: MetadataRecord, out: list[Effect]) -> None:
        out.append(StoreRecords(len(self.log), (record,)))
        self.log.append(record)

    def _serve(self, source: int, fetch: MetadataFetch, now_ms: int, out: list[Effect]) -> None:
        """Answer a fetch of another controller, which acknowledges the records it has."""
        self._adopt(fetch.term, out)
        if not self.is_active:
            return
        self.fetched_ms[source] = now_ms
        if not records.has(self.log, fetch.log):
            diverging = records.end_of_term(self.log, fetch.log.term)
            out.append(Send(source, MetadataFetchReply(self.term, fetch.log, (), self.hw, diverging)))
            return
        # Since an earlier term it may have voted for a candidate with fewer records.
        if fetch.term == self.term:
            self.ends[source] = fetch.log.end
            self._advance(now_ms, out)
        news = tuple(self.log[fetch.log.end :])
        out.append(Send(source, MetadataFetchReply(self.term, fetch.log, news, self.hw)))

    def _take(self, source: int, reply: MetadataFetchReply, now_ms: int, out: list[Effect]) -> None:
        """Append the active controller's records to the own log, or replace the log's tail with them."""
        self._adopt(reply.term, out)
        if reply.term != self.term or self.is_active:
            return
        self.active, self.heard_ms = source, now_ms
        # A late or repeated reply for another log could cut records acknowledged since.
        if reply.log != records.end_of(self.log):
            return
        start, committed = len(self.log), reply.committed
        if reply.diverging is not None:
            own = records.end_of_term(self.log, reply.diverging.epoch)
            start = min(reply.diverging.end_offset, own.end_offset)
            # The rest may still be another log, of which nothing is known to be committed.
            committed = min(self.hw, start)
        if start < len(self.log) or reply.records:
            self.log[start:] = reply.records
            out.append(StoreRecords(start, reply.records))
            # At once: the next fetch acknowledges the fetched records.
            out.extend(self.fetch())
        # It may know of more than the active one does, whose predecessor has committed that.
        self.hw = min(max(self.hw, committed), len(self.log))

    def _advance(self, now_ms: int, out: list[Effect]) -> None:
        """Raise HW to a majority's end, once that includes a record of the own term (KAFKA-12619)."""
        ends = sorted([len(self.log), *(self.ends.get(peer, 0) for peer in self._peers())])
        # As many controllers as a majority have the log up to here, or more.
        end = ends[(len(self.voters) - 1) // 2]
        is_own = end > 0 and self.log[end - 1].term == self.term
        if end > self.hw and (is_own or not self.protocol.own_record):
            self.hw = end
            self._begin_if_committed(now_ms, out)
            self._release(out)

    def _begin_if_committed(self, now_ms: int, out: list[Effect]) -> None:
        """Start deciding, from the log alone, and notify the brokers."""
        is_own = self.hw > 0 and self.log[self.hw - 1].term == self.term
        if self.controller is not None or not (is_own or not self.protocol.own_record):
            return
        state = records.restored(self.log[-1], self.config, self.protocol, now_ms)
        self.controller = Controller(state)
        self._address_timers(self.controller.start(), out)
        self._publish(out)

    # Decisions.

    def _receive(self, source: int, term: int, message: Message, now_ms: int, out: list[Effect]) -> None:
        """Process a broker's request, which carries the newest term known to the broker."""
        if not self.is_active:
            if self.active != NOBODY:
                out.append(Send(source, OfTerm(self.term, NotController(self.active))))
            return
        # A refusal of an older controller may follow, which its sender must not accept: so it must learn of
        # this term before its proposal is decided.
        if self.protocol.newest_only and term < self.term and _is_proposal(message):
            out.append(Send(source, OfTerm(self.term, messages.MetadataUpdate(()))))
            return
        if isinstance(message, messages.MetadataRequest):
            self._send_metadata(source, message.after_version, out)
            return
        self._decide(Received(source, message), now_ms, out)
        if isinstance(message, messages.HeartbeatRequest):
            self._send_metadata(source, message.metadata_version, out, answers=False)

    def _send_metadata(self, to: int, after_version: int, out: list[Effect], answers: bool = True) -> None:
        images = records.images_of(self._applicable(), after_version)
        if images or answers:
            out.append(Send(to, OfTerm(self.term, messages.MetadataUpdate(images))))

    def _decide(self, event: Event, now_ms: int, out: list[Effect]) -> None:
        """Let the controller handle an event; its change is a record, whose commit its answers wait for."""
        if self.controller is None:
            return
        effects = self.controller.handle(event, now_ms)
        if self.controller.state.version > self.log[-1].image.version:
            self._append(records.record_of(self.controller.state, self.term), out)
        self._address_timers(effects, out)
        # A majority of one has it already.
        self._advance(now_ms, out)
        self._release(out)

    def _address_timers(self, effects: list[Effect], out: list[Effect]) -> None:
        """Arm timers for this term, and hold back the other effects; metadata is published from the log."""
        is_early = self.protocol.answered_when is RecordIs.APPENDED
        for effect in effects:
            if isinstance(effect, SetTimer):
                out.append(SetTimer(effect.timer, effect.delay_ms, self.term))
            elif isinstance(effect, Send) and not isinstance(effect.message, messages.MetadataUpdate):
                is_operator = effect.to < 0
                answer = effect if is_operator else Send(effect.to, OfTerm(self.term, effect.message))
                # Also without a change: the answer may depend on an earlier record that is not committed yet.
                self.held.append((0 if is_early else len(self.log), answer))

    def _release(self, out: list[Effect]) -> None:
        """Send the replies whose records are now committed, and their metadata."""
        out.extend(answer for end, answer in self.held if end <= self.hw)
        self.held = [(end, answer) for end, answer in self.held if end > self.hw]
        if self.controller is not None:
            self._publish(out)

    def _applicable(self) -> list[MetadataRecord]:
        """Return the records that brokers may already apply."""
        return self.log if self.protocol.applied_when is RecordIs.APPENDED else self.log[: self.hw]

    def _publish(self, out: list[Effect]) -> None:
        """Send new metadata to every registered broker; at first the newest only, to announce the term."""
        applicable = self._applicable()
        images = records.images_of(applicable, self.published)
        if not images:
            return
        self.published = images[-1].version
        update = OfTerm(self.term, messages.MetadataUpdate(images))
        out.extend(Send(broker, update) for broker in sorted(images[-1].brokers))


def _is_proposal(message: Message) -> bool:
    inner = message.message if isinstance(message, messages.ForPartition) else message
    return isinstance(inner, messages.AlterPartitionRequest)
