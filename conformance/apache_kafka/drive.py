"""A cluster taken through a run of replication.spec, step by step, and compared with it after each.

Everything that brokers send one another is held at gates, and an action of the spec is what lets it through:

| action | on the cluster |
|---|---|
| `produce(l)` | a client sends a record to broker l, acks=all |
| `send_fetch(f)` | f's request is at the gate, with the offset and epoch that the spec has |
| `serve_fetch(l, f)` | the request goes on; the response is at the gate |
| `apply_response(f)` | the response goes on; f's next request is at the gate |
| `lose_fetch(f)` | the connection is cut |
| `truncate_to_leader(f)` | OffsetForLeaderEpoch goes on, and its response |
| `elect(b)` | a reassignment to the same replicas in another order, and a preferred election |
| `become_leader(b, e)`, `become_follower(b, e)` | metadata goes on to b, up to the decision of epoch e |
| `shrink_isr(l, f)` | f does not fetch for replica.lag.time.max.ms; l's proposal is at the gate |
| `alter_partition(l)`, `apply_alter_reply(l)` | the proposal goes on; its response goes on |
| `fence_broker(b)`, `unfence_broker(b)` | heartbeats are held until the session ends, or go on |
| `crash(b)`, `power_loss(b)`, `restart(b)` | SIGKILL, or the unflushed records lost with it; a new process |
| `list_latest(b, o)`, `checkpoint_hw(b)` | a client's request; waiting for the file |

Compared after each step: each running replica's records with their epochs, its HW, the controller's leader
and ISR, and which records have been acknowledged.  Offsets and epochs are exact; a leader epoch of the spec
is the cluster's that the same decision began.

Not here: which runs, on which clusters (stories).
"""

from __future__ import annotations

import itertools
import select
import time
from collections.abc import Callable, Mapping

from conformance.apache_kafka.batches import Producer, batch_of, old_message_of, parse_batches
from conformance.apache_kafka.cluster import ZOOKEEPER_CONTROLLER, Cluster
from conformance.apache_kafka.deciding import Refusal, deciding
from conformance.apache_kafka.gates import metadata_gate
from conformance.apache_kafka.links import ZOOKEEPER, Direction, Frame, Pattern
from conformance.apache_kafka.metadata_log import Decision
from conformance.apache_kafka.nodes import NotYet, wait_for
from conformance.apache_kafka.probe import (
    ReplicaState,
    StoredRecord,
    consumed,
    is_in_epoch,
    latest_offset,
    replica_state,
)
from conformance.apache_kafka.releases import Metadata
from conformance.apache_kafka.schemas import Fields
from conformance.apache_kafka.texts import View, answer_text, controller_text, error_text, isr_text, read_text
from conformance.apache_kafka.traces import Run, SpecState
from conformance.apache_kafka.wire import Api, Connection, decode_request, decode_response

TOPIC, COMPANION = "orders", "other"
_SETTLE_S = 15  # how long a cluster has to reach the spec's state, once a step's last frame has arrived
_PROPOSAL_S = 20
_FETCHES = (Api.FETCH, Api.OFFSET_FOR_LEADER_EPOCH)
_SESSION_ERRORS = (70, 71)


class Differs(Exception):
    """The cluster does something else than the spec's step; the message says what."""


class NotDrivable(Exception):
    """The step cannot be brought about on this cluster; the message has the reason."""


class Driver:
    """A cluster and a run; `take` performs one step after the other."""

    def __init__(self, cluster: Cluster, run: Run, companions: bool) -> None:
        self.cluster, self.relay, self.run = cluster, cluster.relay, run
        self.replicas = run.initial.brokers
        self.controller, self.gate = deciding(cluster, TOPIC), metadata_gate(cluster, TOPIC)
        self.notes: list[str] = []  # what was answered in the last step
        self._companions = companions
        self._preferred = run.initial.leader(0) or self.replicas[0]
        self._decisions: dict[int, Decision] = {}  # the last one of each epoch of the spec
        self._requests: dict[int, Frame] = {}
        self._responses: dict[int, Frame] = {}
        self._producing: list[tuple[int, Connection]] = []
        self._acked = 0
        self._done = 0  # steps up to this one have happened with an earlier one
        release = cluster.plan.release
        self._is_kraft = release.metadata is Metadata.KRAFT
        self._has_proposals = release.numbers >= (2, 7)
        self._proposals_to = cluster.controllers[0] if self._is_kraft else ZOOKEEPER_CONTROLLER

    def begin(self, configs: Mapping[str, str]) -> None:
        """Bring the cluster into the run's initial state: a new topic, applied by all, and all links held."""
        replicas = self.run.initial.brokers
        if self._companions:
            for leader in replicas:
                order = [leader, *(other for other in replicas if other != leader)]
                self.cluster.create_topic(f"{COMPANION}-{leader}", [order], {})
        pairs = itertools.permutations(replicas, 2)
        self.relay.hold(*(Pattern(*pair, api) for pair in pairs for api in _FETCHES))
        self.relay.hold(*(Pattern(b, self._proposals_to, Api.ALTER_PARTITION) for b in replicas))
        order = [self._preferred, *(other for other in replicas if other != self._preferred)]
        self.cluster.create_topic(TOPIC, [order], configs)
        self._decisions[0] = wait_for(self.controller.latest, "the topic is created")
        wait_for(lambda: all(self._has_applied(broker, 0) for broker in replicas), "all have the topic")
        for broker in replicas:
            self.gate.close(broker)
            decision = self._decisions[0]
            self.gate.applied[broker] = decision.place if self._is_kraft else decision.epoch
        self._prefer_first_elected()

    def _prefer_first_elected(self) -> None:
        """With ZooKeeper a reassignment waits for all replicas in the ISR: the first comes before the run."""
        elected = [step.arguments[0] for step in self.run.steps if step.action == "elect"]
        if elected and not self._is_kraft:
            self._reorder(elected[0])
            self._decisions[0] = self.controller.latest()
            for broker in self.replicas:
                self.gate.let(broker, self._decisions[0])

    def _reorder(self, first: int) -> None:
        if self._preferred != first:
            self.controller.reorder([first, *(other for other in self.replicas if other != first)])
            self._preferred = first

    def take(self, index: int) -> list[View]:
        """Perform a step, and compare.  Raises Differs, NotDrivable, TimeoutError, OSError."""
        step = self.run.steps[index]
        before = self.run.steps[index - 1].state if index else self.run.initial
        self.notes = []
        if index >= self._done:
            if step.action in _DECIDING:
                self._capture(index, before)
            action = _ACTIONS.get(step.action)
            if action is None:
                raise NotDrivable(f"nothing brings {step.action} about")
            action(self, index)
        return self._compared(index)

    def pending(self) -> list[str]:
        """What followers have at their gates, for a report."""
        texts = []
        for frame in self.relay.at_gate(Pattern()):
            asks = "asks where its epoch ends" if frame.api == Api.OFFSET_FOR_LEADER_EPOCH else "fetches"
            if _is_fetch(frame) and frame.destination in self.replicas and not frame.orphaned:
                texts.append(f"b{frame.source} {asks} from b{frame.destination}")
        return texts

    # What is compared.

    def _compared(self, index: int) -> list[View]:
        step = self.run.steps[index]
        if self._happens_with_next(index):
            return []
        end = time.monotonic() + _SETTLE_S
        while True:
            views = self._views(step.state)
            if all(view.agrees for view in views):
                return views
            if time.monotonic() > end:
                raise Differs(
                    "; ".join(f"{view.kafka}, and not {view.spec}" for view in views if not view.agrees)
                )
            time.sleep(0.1)

    def _happens_with_next(self, index: int) -> bool:
        """Whether the next step happens with this one: an ISR change of an old leader, all of a start."""
        following = self.run.steps[index + 1] if index + 1 < len(self.run.steps) else None
        fused = () if self._has_proposals else ("alter_partition", "apply_alter_reply")
        return index + 1 < self._done or (following is not None and following.action in fused)

    def _views(self, state: SpecState) -> list[View]:
        views = [self._view(broker, state) for broker in self.replicas if state.is_up(broker)]
        decision = self.controller.latest()
        leader, isr = state.leader(state.current), state.isr(state.current)
        has = (decision.leader if decision.leader >= 0 else None, decision.isr)
        views.append(View(0, controller_text(leader, isr), controller_text(*has)))
        views.append(View(0, f"{state.acked} acknowledged", f"{self._acknowledged()} acknowledged"))
        if leader is not None and state.is_up(leader) and state.applied(leader) == state.current:
            committed = enumerate(state.log(leader)[: state.hw(leader)])
            values = [_value(offset, epoch) for offset, epoch in committed]
            views.append(View(0, read_text(leader, values), self._read_text(leader)))
        return views

    def _read_text(self, leader: int) -> str:
        try:
            return read_text(leader, consumed(self.cluster, leader, TOPIC))
        except (NotYet, OSError) as error:
            return f"a consumer reads nothing from b{leader}: {error}"

    def _view(self, broker: int, state: SpecState) -> View:
        epochs = state.log(broker)
        stored = tuple(
            StoredRecord(offset, self._decisions[epoch].epoch, _value(offset, epoch))
            for offset, epoch in enumerate(epochs)
        )
        expected = self._text(broker, ReplicaState(stored, state.hw(broker)))
        try:
            actual = self._text(broker, replica_state(self.cluster, broker, TOPIC))
        except (NotYet, OSError) as error:
            actual = f"b{broker} {error}"
        return View(broker, expected, actual)

    def _text(self, broker: int, replica: ReplicaState) -> str:
        records = " ".join(self._record_text(record) for record in replica.records)
        return f"b{broker} [{records}] LEO {replica.leo} HW {replica.hw}"

    def _record_text(self, record: StoredRecord) -> str:
        """A record by its value, which has the spec's offset and epoch; what contradicts it is shown."""
        offset, _, epoch = record.value.decode(errors="replace").partition("@")
        wrong_place = "" if str(record.offset) == offset else f" at {record.offset}"
        decision = self._decisions.get(int(epoch)) if epoch.isdigit() else None
        is_right = record.epoch is None or (decision is not None and record.epoch == decision.epoch)
        return f"{offset}@{epoch}{wrong_place}{'' if is_right else f' in epoch {record.epoch}'}"

    def _acknowledged(self) -> int:
        for end, connection in list(self._producing):
            if select.select([connection.socket], [], [], 0)[0]:
                answer = connection.receive(Api.PRODUCE, self._produce_version)
                code = answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"]
                self._producing.remove((end, connection))
                connection.close()
                if code:
                    self.notes.append(f"the producer of record {end - 1} is answered {error_text(code)}")
                else:
                    self._acked = max(self._acked, end)
        return self._acked

    # Records and fetches.

    @property
    def _produce_version(self) -> int:
        return 2 if self.cluster.plan.release.numbers < (0, 11) else 3

    def _produce(self, index: int) -> None:
        step = self.run.steps[index]
        (leader,) = step.arguments
        log = step.state.log(leader)
        value, now_ms = _value(len(log) - 1, log[-1]), int(time.time() * 1000)
        is_old = self._produce_version == 2
        data = old_message_of(value, now_ms) if is_old else batch_of([value], Producer(), now_ms)
        topics = [{"Name": TOPIC, "PartitionData": [{"Index": 0, "Records": data}]}]
        connection = self.cluster.connect(leader)
        request = {"Acks": -1, "TimeoutMs": 600000, "TopicData": topics}
        connection.send(Api.PRODUCE, self._produce_version, request)
        self._producing.append((len(log), connection))

    def _send_fetch(self, index: int) -> None:
        step = self.run.steps[index]
        (follower,) = step.arguments
        epoch = step.state.applied(follower)
        leader, offset = step.state.leader(epoch), step.state.fetch_offset(follower)
        assert leader is not None
        link = Pattern(follower, leader)
        stale = 0
        while True:
            frame = self.relay.expect(link, lambda each: each.api in _FETCHES)
            if frame.direction is Direction.RESPONSE:  # to a request from before the links were held
                self.relay.forward(frame)
                continue
            if frame.api == Api.OFFSET_FOR_LEADER_EPOCH:
                self.notes.append(f"b{follower} asks b{leader} where its epoch ends: {self._exchange(frame)}")
                continue
            partition = self._partition(frame)
            if partition is None and self._companions:
                self._exchange(frame)
            elif partition is None or self._is_of(partition, offset, self._decisions[epoch].epoch):
                self._requests[follower] = frame
                return
            else:
                stale += 1
                if stale > 3:
                    has = partition["FetchOffset"]
                    raise Differs(f"b{follower} fetches from offset {has}, and not {offset}")
                self.relay.drop(frame)
                self.relay.cut(link)

    def _rest(self, follower: int, leader: int) -> None:
        """Let responses through until the follower's next request is at the gate."""
        while True:
            frame = self.relay.expect(Pattern(follower, leader), lambda each: each.api in _FETCHES)
            if frame.direction is Direction.REQUEST:
                return
            self.relay.forward(frame)

    @staticmethod
    def _is_of(partition: Fields, offset: int, epoch: int) -> bool:
        has_epoch = partition.get("CurrentLeaderEpoch", -1)
        return partition["FetchOffset"] == offset and has_epoch in (epoch, -1)

    def _serve_fetch(self, index: int) -> None:
        leader, follower = self.run.steps[index].arguments
        answer = self._served(leader, follower)
        while answer["ErrorCode"] in _SESSION_ERRORS:  # the fetcher sends the same as a new session
            self.relay.forward(self._responses.pop(follower))
            self._requests[follower] = self.relay.expect(Pattern(follower, leader), _is_fetch)
            answer = self._served(leader, follower)
        partition = self._partition_of(answer, "Responses")
        if partition is not None and partition["ErrorCode"]:
            raise Differs(f"b{leader} answers b{follower} {error_text(partition['ErrorCode'])}")
        self.notes.append(f"b{leader} answers b{follower}: {answer_text(partition)}")

    def _served(self, leader: int, follower: int) -> Fields:
        request = self._requests.pop(follower)
        self.relay.forward(request)
        data = self.relay.await_answer(request, 60)
        if data is None:
            raise TimeoutError(f"b{leader} does not answer b{follower}")
        if not request.orphaned:
            link = Pattern(follower, leader, Api.FETCH, Direction.RESPONSE)
            self._responses[follower] = self.relay.expect(link)
        return {"ErrorCode": 0, **decode_response(self.cluster.schemas, Api.FETCH, request.version, data)}

    def _apply_response(self, index: int) -> None:
        (follower,) = self.run.steps[index].arguments
        response = self._responses.pop(follower, None)
        if response is None or response not in self.relay.at_gate(Pattern(follower)):
            raise Differs(f"b{follower} has closed the connection, and takes no response from it")
        self.relay.forward(response)
        self.relay.expect(
            Pattern(follower), lambda each: _is_fetch(each) and each.destination in self.replicas
        )

    def _lose_fetch(self, index: int) -> None:
        (follower,) = self.run.steps[index].arguments
        frame = self._responses.pop(follower, None) or self._requests.pop(follower, None)
        if frame is not None:
            self.relay.cut(Pattern(follower, frame.destination))

    def _abandon_fetches(self, broker: int) -> None:
        """End fetches that are at gates and not the spec's: old brokers do not change their role before."""
        for frame in self.relay.at_gate(Pattern(broker)):
            if frame.api in _FETCHES and frame.destination in self.replicas:
                self.relay.drop(frame)
                self.relay.cut(Pattern(broker, frame.destination))

    def _truncate_to_leader(self, index: int) -> None:
        step = self.run.steps[index]
        (follower,) = step.arguments
        leader = step.state.leader(step.state.applied(follower))
        frame = self.relay.expect(Pattern(follower, leader), _is_fetch)
        if frame.api == Api.FETCH:
            raise Differs(f"b{follower} fetches from b{leader} without asking where its epoch ends")
        self.notes.append(f"b{follower} asks b{leader} where its epoch ends: {self._exchange(frame)}")
        self.relay.expect(Pattern(follower, leader), _is_fetch)

    def _exchange(self, request: Frame) -> str:
        """Let a request and its response through; the answer, as text."""
        self.relay.forward(request)
        link = Pattern(request.source, request.destination, request.api, Direction.RESPONSE)
        response = self.relay.expect(link)
        self.relay.forward(response)
        answer = decode_response(self.cluster.schemas, response.api, response.version, response.data)
        partition = self._partition_of(answer, "Responses" if request.api == Api.FETCH else "Topics")
        return answer_text(partition)

    def _partition(self, request: Frame) -> Fields | None:
        fields = decode_request(self.cluster.schemas, request.data)
        return self._partition_of(fields, "Topics")

    def _partition_of(self, fields: Fields, topics: str) -> Fields | None:
        """What a message has of the partition: topics are named, or, since 3.1, have an id."""
        for topic in fields[topics]:
            is_named = topic.get("Topic", topic.get("TopicName")) == TOPIC
            if is_named or topic.get("TopicId", 0) == self.controller.topic_id:
                return dict(topic["Partitions"][0])
        return None

    # Decisions and metadata.

    def _capture(self, index: int, before: SpecState) -> None:
        """Have each broker fetch what it is to apply, before the controller decides again."""
        for broker in self.replicas:
            following = self.run.steps[index + 1 :]
            applies = (s for s in following if s.action in _APPLYING and s.arguments[0] == broker)
            step = next(applies, None)
            decision = None if step is None else self._decisions.get(step.arguments[1])
            if decision is not None and before.is_up(broker):
                self.gate.capture(broker, decision)

    def _decided(self, state: SpecState) -> None:
        """Wait until the controller has decided as the spec has, and note its epoch."""
        leader, isr = state.leader(state.current), state.isr(state.current)

        def is_decided() -> bool:
            decision = self.controller.latest()
            return (decision.leader if decision.leader >= 0 else None, decision.isr) == (leader, isr)

        try:
            wait_for(is_decided, "the controller decides")
        except TimeoutError:
            decision = self.controller.latest()
            has = controller_text(decision.leader if decision.leader >= 0 else None, decision.isr)
            raise Differs(f"{has}, and not {controller_text(leader, isr)}") from None
        self._decisions[state.current] = self.controller.latest()

    def _elect(self, index: int) -> None:
        step = self.run.steps[index]
        try:
            self._reorder(step.arguments[0])
            self.controller.elect_preferred()
        except Refusal as refusal:
            raise Differs(str(refusal)) from None
        self._decided(step.state)

    def _elect_unclean(self, index: int) -> None:
        step = self.run.steps[index]
        try:
            self.controller.elect_unclean()
        except Refusal as refusal:
            raise Differs(str(refusal)) from None
        self._decided(step.state)

    @property
    def _elects_uncleanly_by_itself(self) -> bool:
        return self.cluster.plan.release.numbers < (2, 4)

    def _apply_metadata(self, index: int) -> None:
        step = self.run.steps[index]
        broker, epoch = step.arguments
        if step.state.leader(epoch) is None and not self._is_kraft:
            return  # such a decision is not sent to brokers
        if not self._is_kraft and not step.state.has_fetch(broker):
            self._abandon_fetches(broker)
        self.gate.let(broker, self._decisions[epoch])
        wait_for(lambda: self._has_applied(broker, epoch), f"b{broker} is in epoch {epoch}")

    def _has_applied(self, broker: int, epoch: int) -> bool:
        if self.cluster.plan.release.numbers >= (2, 4):
            return is_in_epoch(self.cluster, broker, TOPIC, self._decisions[epoch].epoch)
        replica_state(self.cluster, broker, TOPIC)
        return True

    # The ISR.

    def _shrink_isr(self, index: int) -> None:
        step = self.run.steps[index]
        leader, follower = step.arguments
        isr = step.state.isr(step.state.current)
        flowing = [Pattern(other, leader, api) for other in isr - {leader, follower} for api in _FETCHES]
        self.relay.release(*flowing)  # who does not fetch at all is late as well
        try:
            if self._has_proposals:
                self._proposal(leader, step.state.proposed_isr(leader), 180)
            else:
                self._decided(self.run.steps[index + 1].state)
        finally:
            self.relay.hold(*flowing)
        for other in isr - {leader, follower}:
            self._rest(other, leader)

    def _proposal(self, leader: int, isr: frozenset[int], limit_s: float) -> Frame:
        link = Pattern(leader, self._proposals_to, Api.ALTER_PARTITION, Direction.REQUEST)
        try:
            return self.relay.expect(link, lambda frame: self._proposed(frame) == isr, limit_s)
        except TimeoutError:
            raise Differs(f"b{leader} does not propose the ISR {isr_text(isr)}") from None

    def _proposed(self, request: Frame) -> frozenset[int]:
        partition = decode_request(self.cluster.schemas, request.data)["Topics"][0]["Partitions"][0]
        with_epochs = (member["BrokerId"] for member in partition.get("NewIsrWithEpochs", ()))
        return frozenset(partition.get("NewIsr") or with_epochs)

    def _alter_partition(self, index: int) -> None:
        step = self.run.steps[index]
        (leader,) = step.arguments
        if self._has_proposals:
            before = self.run.steps[index - 1].state
            self.relay.forward(self._proposal(leader, before.proposed_isr(leader), _PROPOSAL_S))
            self._reply(leader)
        self._decided(step.state)

    def _reply(self, leader: int) -> Frame:
        link = Pattern(leader, self._proposals_to, Api.ALTER_PARTITION, Direction.RESPONSE)
        return self.relay.expect(link)

    def _apply_alter_reply(self, index: int) -> None:
        if self._has_proposals:
            self.relay.forward(self._reply(self.run.steps[index].arguments[0]))

    # Faults.

    def _session(self, broker: int) -> Pattern:
        if self._is_kraft:
            return Pattern(broker, self.cluster.controllers[0], Api.BROKER_HEARTBEAT)
        return Pattern(broker, ZOOKEEPER)

    def _fence(self, index: int) -> None:
        step = self.run.steps[index]
        (broker,) = step.arguments
        self.relay.hold(self._session(broker))
        wait_for(lambda: self.controller.is_fenced(broker), f"b{broker} is fenced", 180)
        following = self.run.steps[index + 1 : index + 2]
        if self._elects_uncleanly_by_itself and following and following[0].action == "elect_unclean":
            self._done = index + 2
            self._decided(following[0].state)
        else:
            self._decided(step.state)

    def _unfence(self, index: int) -> None:
        step = self.run.steps[index]
        (broker,) = step.arguments
        self.relay.release(self._session(broker))
        wait_for(lambda: not self.controller.is_fenced(broker), f"b{broker} is no longer fenced", 180)
        self._decided(step.state)

    def _crash(self, index: int) -> None:
        (broker,) = self.run.steps[index].arguments
        self.cluster.nodes[broker].kill()

    def _power_loss(self, index: int) -> None:
        step = self.run.steps[index]
        (broker,) = step.arguments
        self.cluster.nodes[broker].kill()
        kept = len(step.state.log(broker))
        # What was not flushed is lost: the file ends earlier, and its indexes are older than it.
        for path in (self.cluster.log_folder(broker) / f"{TOPIC}-0").glob("*.log"):
            lost = (batch.position for batch in parse_batches(path.read_bytes()) if batch.base >= kept)
            first = next(lost, None)
            if first is not None:
                with path.open("r+b") as file:
                    file.truncate(first)

    def _restart(self, index: int) -> None:
        """Start a broker.

        It registers, applies metadata and is unfenced: the steps that follow and do so are done with this
        one.
        """
        (broker,) = self.run.steps[index].arguments
        last = index
        for number, step in enumerate(self.run.steps[index + 1 :], index + 1):
            if step.action not in (*_APPLYING, "unfence_broker") or step.arguments[0] != broker:
                break
            last = number
        self._done = last + 1
        self.gate.open(broker)
        self.relay.release(self._session(broker))
        self.cluster.nodes[broker].start()
        self.cluster.nodes[broker].wait_until_listening()
        wait_for(lambda: not self.controller.is_fenced(broker), f"b{broker} is registered", 180)
        state = self.run.steps[last].state
        self._decided(state)
        epoch = state.applied(broker)
        wait_for(lambda: self._has_applied(broker, epoch), f"b{broker} is in epoch {epoch}")

    # What clients and files show.

    def _list_latest(self, index: int) -> None:
        broker, offset = self.run.steps[index].arguments
        code, latest = latest_offset(self.cluster, broker, TOPIC)
        if code or latest != offset:
            answer = error_text(code) if code else latest
            raise Differs(f"b{broker} gives {answer} as the latest offset, and not {offset}")

    def _checkpoint_hw(self, index: int) -> None:
        step = self.run.steps[index]
        (broker,) = step.arguments
        line = f"{TOPIC} 0 {step.state.hw(broker)}"
        path = self.cluster.log_folder(broker) / "replication-offset-checkpoint"
        wait_for(lambda: path.exists() and line in path.read_text().splitlines(), f"{line} in {path}")


_APPLYING = ("become_leader", "become_follower")
_ACTIONS: Mapping[str, Callable[[Driver, int], None]] = {
    "produce": Driver._produce,
    "send_fetch": Driver._send_fetch,
    "serve_fetch": Driver._serve_fetch,
    "apply_response": Driver._apply_response,
    "lose_fetch": Driver._lose_fetch,
    "truncate_to_leader": Driver._truncate_to_leader,
    "elect": Driver._elect,
    "elect_unclean": Driver._elect_unclean,
    "become_leader": Driver._apply_metadata,
    "become_follower": Driver._apply_metadata,
    "shrink_isr": Driver._shrink_isr,
    "alter_partition": Driver._alter_partition,
    "apply_alter_reply": Driver._apply_alter_reply,
    "fence_broker": Driver._fence,
    "unfence_broker": Driver._unfence,
    "crash": Driver._crash,
    "power_loss": Driver._power_loss,
    "restart": Driver._restart,
    "list_latest": Driver._list_latest,
    "checkpoint_hw": Driver._checkpoint_hw,
}
_DECIDING = ("elect", "elect_unclean", "alter_partition", "fence_broker", "unfence_broker", "restart")


def _value(offset: int, epoch: int) -> bytes:
    return f"{offset}@{epoch}".encode()


def _is_fetch(frame: Frame) -> bool:
    return frame.direction is Direction.REQUEST and frame.api in _FETCHES
