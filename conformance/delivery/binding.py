"""delivery.spec and replog: the messages that clients' retries and commits lose or duplicate.

The system is a broker that leads two partitions alone, the messages and `__consumer_offsets`; an idempotent
producer of replog on a connection that keeps the order; and a consumer, whose order of processing and
committing is the model's, with replog's groups.  A commit is a record of its partition, written with acks=all
before it counts.  `reopen` is another coordinator: it must find the first one's state in the log.

Here and not in replog: the application, which sends one message at a time and gives up after a number of
tries, and an output that stores its own offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from delivery_parties import (
    BROKER,
    NOW_MS,
    PRODUCER,
    READER,
    Acknowledged,
    Parties,
    apply_minimum,
    leader_of,
    messages_of,
    produced,
)

from replog.core.broker.groups import Commit, Generation, Groups, from_body
from replog.core.effects import Timer
from replog.core.log.producer import ProducerTable, check_sequence, find_duplicate
from replog.core.messages import CONSUMER, FetchReply, FetchRequest, ProduceRequest
from replog.core.types import NO_EPOCH, Batch, Error
from replog.sim.cluster.clients import Producer
from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    At,
    Impossible,
    Refused,
    action,
    project,
    reopen,
)
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.conform.contract.ruled import CopyingBinding

MESSAGES, COMMITS, GROUP = "t-0", "__consumer_offsets-0", "g"
COMMIT_FIRST, PROCESS_FIRST = {"consumer": "commit_first"}, {"consumer": "process_first"}
TODAY = MappingProxyType({
    "idempotent": True, "window": 5, "first_alone": True, "recognises": False, "fences_generations": True,
})  # fmt: skip


class DeliveryBinding(CopyingBinding[Parties]):
    """The spec's clients on replog's clients."""

    spec, model = "../../spec/delivery.spec", "exactly_once"
    smoke = (At("exactly_once", {"Tries": "1"}),)
    gate = (
        At("idempotent_producer"),
        At("exactly_once"),
        At("exactly_once", COMMIT_FIRST),
        At("exactly_once", PROCESS_FIRST),
        At("former_owner"),
    )
    controls = (
        BadSpec("the broker knows no producer", "exactly_once", {"idempotent": "false", "inflight": "1"}),
        BadSpec("the first messages may go together", "idempotent_producer", {"first_alone": "false"}),
        BadCode("a retry is not recognised", find_duplicate, "seen.first_seq == batch.first_seq and",
                "False and", "exactly_once"),
        BadCode("gaps are accepted", check_sequence, "batch.first_seq == expected", "True",
                "idempotent_producer"),
        BadCode("the last batch alone is recognised", ProducerTable.update, "[-WINDOW:]", "[-1:]",
                "idempotent_producer"),
        BadCode("the first batches go together", Producer.fire, "WINDOW if self.has_begun else 1", "WINDOW",
                "idempotent_producer"),
        BadCode("an error settles a batch", Producer._settle, "is Error.NONE", "is not None", "exactly_once"),
        BadCode("a commit is forgotten", Groups.commit, "self.take(commit)", "pass",
                "exactly_once", PROCESS_FIRST),
        BadCode("the group continues one record later", Groups.position, "else commit.offset",
                "else commit.offset + 1", "exactly_once", COMMIT_FIRST),
        BadCode("another coordinator finds no commit", Groups.replay.__func__, "rebuilt.take(record)",
                "isinstance(record, Commit) or rebuilt.take(record)", "exactly_once", PROCESS_FIRST),
        BadCode("another coordinator finds no generation", Groups.replay.__func__, "rebuilt.take(record)",
                "isinstance(record, Generation) or rebuilt.take(record)", "former_owner"),
        BadCode("generations are not counted on", Groups.take,
                "group.generation, group.member = record.number, ", "group.member = ", "former_owner"),
        BadCode("a former owner commits", Groups.owner_error, "if generation != group.generation:",
                "if False:", "former_owner"),
    )  # fmt: skip
    rules = TODAY

    def also_other(self) -> Iterator[str]:
        """Fewer requests in flight than the five of KIP-98, or than the number of messages."""
        if self.constants["inflight"] < min(5, self.constants["Messages"]):
            yield "inflight"

    def start(self) -> Parties:
        """Nothing was sent, or one message by this producer."""
        known = Acknowledged()
        # It sends to the one broker, and waits for the least time, not for a random one.
        producer = Producer(PRODUCER, -1, True, 0, lambda: BROKER, lambda _: 0, known)
        parties = Parties(leader_of(MESSAGES), leader_of(COMMITS), known, producer)
        self._join(parties)
        if self.constants["one_stored"]:
            # By replog's own calls, so that its producer and broker treat this message as any other.
            self.send(parties, 0)
            self.handle_request(parties)
            self.receive_answer(parties, 0)
            parties.tries.clear()
        return parties

    @action("send")
    def send(self, parties: Parties, message: int) -> Answer:
        """The application hands over a message; the producer sends it if it has room."""
        if message != parties.producer.next_number:
            return Impossible("the application keeps the order")
        return self._fire(parties, message)

    @action("retry")
    def retry(self, parties: Parties, message: int) -> Answer:
        """The producer has waited too long for the answer to this message, and for no other answer."""
        if self._status(parties, message) != "failed" or parties.tries[message] == self.constants["Tries"]:
            return Impossible("the producer waits for no answer, or has given up")
        # The model has no clock: the request is made old, and replog's own timer does the rest.
        for waiting in parties.producer.outstanding:
            if waiting.number == message:
                waiting.sent_ms = -1
        return self._fire(parties, message)

    def _fire(self, parties: Parties, message: int) -> Answer:
        producer = parties.producer
        # The application is the limit: the producer sends only the messages that it received from it.
        limit = producer.limit
        producer.limit = max(limit, message + 1)
        sent = messages_of(producer.fire(Timer.SEND_FETCH, 0, NOW_MS), ProduceRequest)
        if not sent:
            producer.limit = limit
            return Refused("the producer sends nothing")
        parties.connection.extend((request.batch.first_seq, request) for request in sent)
        parties.tries[message] = parties.tries.get(message, 0) + 1
        return Accepted()

    @action("receive_answer")
    def receive_answer(self, parties: Parties, message: int) -> Answer:
        """The broker's answer arrives."""
        reply = parties.answers.pop(message, None)
        if reply is None:
            return Impossible("no answer is on its way")
        parties.producer.receive(reply, NOW_MS)
        self._give_up(parties, message)
        return Accepted()

    @action("lose_answer")
    def lose_answer(self, parties: Parties, message: int) -> Answer:
        """The answer to a message that is in the log is lost."""
        if self._status(parties, message) != "appended":
            return Impossible("no such answer is on its way")
        del parties.answers[message]
        self._give_up(parties, message)
        return Accepted()

    def _give_up(self, parties: Parties, message: int) -> None:
        """After the last try the application makes the producer abandon the message."""
        if self._status(parties, message) == "failed" and parties.tries[message] == self.constants["Tries"]:
            kept = [waiting for waiting in parties.producer.outstanding if waiting.number != message]
            parties.producer.outstanding = kept

    @action("handle_request")
    def handle_request(self, parties: Parties) -> Answer:
        """The oldest request arrives."""
        if not parties.connection:
            return Impossible("nothing is on the connection")
        message, request = parties.connection.pop(0)
        parties.answers[message] = produced(parties.messages, request)
        return Accepted()

    @action("refuse_request")
    def refuse_request(self, parties: Parties) -> Answer:
        """A request arrives while too few replicas are in sync."""
        apply_minimum(parties.messages, min_isr=2)
        answer = self.handle_request(parties)
        apply_minimum(parties.messages, min_isr=1)
        return answer

    @action("poll")
    def poll(self, parties: Parties) -> Answer:
        """Fetch the next record."""
        if parties.stage != "idle":
            return Impossible("the consumer is busy")
        request = FetchRequest(1, CONSUMER, NO_EPOCH, parties.position)
        (reply,) = messages_of(parties.messages.receive(READER, request, NOW_MS), FetchReply)
        if not reply.batches:
            return Refused("there is no record")
        parties.position, parties.stage = parties.position + 1, "polled"
        return Accepted()

    @action("commit")
    def commit(self, parties: Parties) -> Answer:
        """The coordinator writes the position to its log, then applies it."""
        if not self._may(parties, "commit_first", "process_first"):
            return Impossible("not now, by the consumer's order")
        return _taken(parties, Commit(GROUP, MESSAGES, parties.position), parties.generation)

    @action("process")
    def process(self, parties: Parties) -> Answer:
        """The application processes a record."""
        if not self._may(parties, "process_first", "commit_first"):
            return Impossible("not now, by the consumer's order")
        self._take_effect(parties)
        return Accepted()

    def _may(self, parties: Parties, begins: str, ends: str) -> bool:
        """Switch between the halves of the cycle, if this consumer's first or second half is next."""
        # `begins` is the consumer for which this is the first half, `ends` the one for which it is the
        # second.
        order = {("polled", begins): "half_done", ("half_done", ends): "idle"}
        after = order.get((parties.stage, self.constants["consumer"]))
        parties.stage = after or parties.stage
        return after is not None

    def _take_effect(self, parties: Parties) -> None:
        offset = parties.position - 1
        # Up to twice, as in the spec: more often is no other outcome.
        parties.output[offset] = min(2, parties.output.get(offset, 0) + 1)

    @action("process_and_commit")
    def process_and_commit(self, parties: Parties) -> Answer:
        """The output stores the offset with it."""
        if self.constants["consumer"] != "atomic" or parties.stage != "polled":
            return Impossible("not this consumer, or not now")
        self._take_effect(parties)
        parties.output_offset, parties.stage = parties.position, "idle"
        return Accepted()

    @action("crash")
    def crash(self, parties: Parties) -> Answer:
        """Another process of the consumer joins, and starts at the committed position of the group."""
        if parties.stage == "idle" and parties.position == self._committed(parties):
            return Impossible("nothing would be lost")
        self._join(parties)
        return Accepted()

    @action("take_over")
    def take_over(self, parties: Parties) -> Answer:
        """Another process joins while a commit of this one is in flight."""
        committing = ("commit_first", "polled"), ("process_first", "half_done")
        if not self.constants["takes_over"] or parties.late is not None:
            return Impossible("no former owner's commit is to be late, or one is already")
        if (self.constants["consumer"], parties.stage) not in committing:
            return Impossible("it has nothing to commit now")
        parties.late = Commit(GROUP, MESSAGES, parties.position), parties.generation
        self._join(parties)
        return Accepted()

    @action("receive_late_commit")
    def receive_late_commit(self, parties: Parties) -> Answer:
        """The commit arrives, with the generation known to its sender."""
        if parties.late is None:
            return Impossible("no former owner's commit is on its way")
        late, parties.late = parties.late, None
        # The answer is for a process that the group no longer has.
        _taken(parties, *late)
        return Accepted()

    @action("change_coordinator")
    def change_coordinator(self, parties: Parties) -> Answer:
        """The next steps use another coordinator, with the state that it has read."""
        if not self.constants["takes_over"]:
            return Impossible("the coordinator stays")
        parties.groups = self.fail_over(parties).groups
        return Accepted()

    def _join(self, parties: Parties) -> None:
        generation = parties.groups.join(GROUP, READER)
        _written(parties, generation)
        parties.generation = generation.number
        parties.position, parties.stage = self._committed(parties), "idle"

    def _committed(self, parties: Parties) -> int:
        if self.constants["consumer"] == "atomic":
            return parties.output_offset
        return parties.groups.position(GROUP, MESSAGES) or 0

    @reopen
    def fail_over(self, parties: Parties) -> Parties:
        """Another coordinator reads the log of groups, with their owners and generations."""
        records = parties.commits.state.log.batches
        return replace(parties, groups=Groups.replay(from_body(batch.body) for batch in records))

    def _status(self, parties: Parties, message: int) -> str:
        if message in parties.known.numbers:
            return "acked"
        if message >= parties.producer.next_number:
            return "unsent"
        if any(number == message for number, _ in parties.connection):
            return "requested"
        reply = parties.answers.get(message)
        # No answer is under way: it was lost, or it was an error, and has arrived.
        return "failed" if reply is None else "refused" if reply.error else "appended"

    @project
    def state(self, parties: Parties) -> dict[str, Any]:
        """A message is its sequence number."""
        messages = range(self.constants["Messages"])
        slots = range(self.constants["Messages"] * self.constants["Tries"])
        return {
            "status": {message: self._status(parties, message) for message in messages},
            "tries": {message: parties.tries.get(message, 0) for message in messages},
            "connection": [message for message, _ in parties.connection],
            "log": [batch.first_seq for batch in parties.messages.state.log.batches],
            "position": parties.position, "committed": self._committed(parties), "stage": parties.stage,
            "processed": {slot: parties.output.get(slot, 0) for slot in slots},
            "late": None if parties.late is None else parties.late[0].offset,
        }  # fmt: skip


def _taken(parties: Parties, commit: Commit, generation: int) -> Answer:
    """Let the coordinator check a commit, write it to its log, and apply it."""
    error = parties.groups.check(commit, READER, generation)
    if error is Error.NONE:
        error = _written(parties, commit) or parties.groups.commit(commit, READER, generation)
    return Accepted() if error is Error.NONE else Refused(error.name)


def _written(parties: Parties, record: Commit | Generation) -> Error:
    """Append a record to the log of groups."""
    request = ProduceRequest(1, Batch(0, -1, 1, body=record.to_body()), -1, 1_000)
    return produced(parties.commits, request).error
