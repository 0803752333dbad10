"""replication.spec and replog: the event of the implementation for each action, and the meaning of its state.

replog runs by its defaults, `Protocol()`: no rule of it is switched off or on here.

A handler delivers one message, or lets one timer ring, and reports what the implementation did.  A handler's
own refusal is `Impossible`: there is no such message, process or budget.
"""

from __future__ import annotations

from dataclasses import replace

from replog.core import messages
from replog.core.broker.isr import is_eligible, maximal_isr
from replog.core.effects import Send, Timer
from replog.core.log.logview import LogView
from replog.core.types import BATCH_OVERHEAD_BYTES, NO_EPOCH, NO_LEADER, Error, Role
from replog.sim.recording.record_state import late_followers
from replog_cluster import Cluster
from replog_controlled import CLIENT, LONG_AGO_MS, NOW_MS, OPERATOR, PARTITION, date_fetch, sent, taken_or
from replog_machines import DOWN, MachinesBinding, candidates
from replog_rules import CONTROLS, EXHAUSTIVE, GATE, SMOKE
from specchk.conform.contract.binding import Accepted, Answer, Impossible, Refused, action, never

AT_ONCE, WAITING = "at once", "after waiting"


class ReplogBinding(MachinesBinding):
    """All actions of spec/replication.spec on replog's cores and the simulator's disk."""

    spec, model = "../spec/replication.spec", "two_brokers"
    companions = ("tracing.py", "on_files.py", "../impl/replog/sim/recording/*.py")
    smoke, gate, exhaustive, controls = SMOKE, GATE, EXHAUSTIVE, CONTROLS

    @action("serve_fetch", ways=(AT_ONCE, WAITING))
    def serve_fetch(self, cluster: Cluster, leader: str, follower: str, way: str) -> Answer:
        """The fetch arrives; without records to send, the leader answers at once or when the wait is over."""
        slot = self.request_of(cluster, follower, leader)
        if slot is None:
            return Impossible("no such request is on its way to this broker")
        state = cluster.state(slot.to)
        if state is None:
            return DOWN
        wait_ms = 0 if way == AT_ONCE else state.config.fetch_wait_ms
        room = self._room(state.log, slot.request.fetch_offset)
        request = replace(slot.request, max_bytes=room, max_wait_ms=wait_ms)
        # A late follower fetches seldom: the branch of I10 that uses the previous fetch is not in the spec.
        if state.leading is not None and self.id(follower) in late_followers(state, NOW_MS):
            self.let_be(cluster, slot.to, self.id(follower), is_late=True)
        reply = self.served(cluster, slot.to, self.id(follower), request)
        if reply.error is not Error.NONE:
            return Refused(reply.error.name)
        cluster.put_fetch(self.id(follower), replace(slot, reply=reply))
        return Accepted()

    def _room(self, log: LogView, offset: int) -> int:
        """Return a byte limit for the number of records in the spec's response: one, or all of one epoch."""
        epochs = [epoch for epoch, _ in log.cells()][offset:]
        records = 1 if self.constants["one_record"] else sum(epoch == epochs[0] for epoch in epochs)
        return max(records, 1) * BATCH_OVERHEAD_BYTES

    # By today's rules a follower truncates in the step in which it receives the answer.
    apply_diverging_hw = never("apply_diverging_hw", "truncation and its HW are one step")

    @action("truncate_to_leader")
    def truncate_to_leader(self, cluster: Cluster, follower: str) -> Answer:
        """Request the end of the own last epoch from the leader; a follower that fetches never does so."""
        broker = self.id(follower)
        state = cluster.state(broker)
        if state is None or broker in cluster.fetches:
            return DOWN if state is None else Impossible("it is fetching")
        questions = [e for e in cluster.fire(broker, Timer.SEND_FETCH) if isinstance(e, Send)]
        question = questions[0] if questions else None
        cluster.take_fetch(broker)
        if question is None or not isinstance(question.message, messages.EpochEndRequest):
            return Refused("it does not ask")
        if cluster.state(question.to) is None:
            return DOWN
        (reply,) = sent(cluster.receive(question.to, broker, question.message), messages.EpochEndReply)
        cluster.receive(broker, question.to, reply)
        return taken_or(reply.error is Error.NONE, reply.error.name)

    @action("read")
    def read(self, cluster: Cluster, broker: str, start: int, end: int) -> Answer:
        """A consumer fetches from a leader or a follower, without an epoch; all visible records fit."""
        if cluster.state(self.id(broker)) is None or not self.constants["consumers"]:
            return DOWN
        request = messages.FetchRequest(1, messages.CONSUMER, NO_EPOCH, start)
        (reply,) = sent(cluster.receive(self.id(broker), CLIENT, request), messages.FetchReply)
        read = [offset for batch in reply.batches for offset in range(batch.base_offset, batch.next_offset)]
        is_right = reply.error is Error.NONE and start <= end and read == list(range(start, end))
        return taken_or(is_right, f"{reply.error.name}, with the offsets {read}")

    @action("list_latest")
    def list_latest(self, cluster: Cluster, broker: str, latest: int) -> Answer:
        """A consumer requests the end of the visible records."""
        leader = self.id(broker)
        if cluster.state(leader) is None or not self.constants["consumers"]:
            return DOWN
        request = messages.ListOffsetsRequest(1, messages.CONSUMER, NO_EPOCH, messages.LATEST)
        (reply,) = sent(cluster.receive(leader, CLIENT, request), messages.ListOffsetsReply)
        is_right = reply.error is Error.NONE and reply.offset == latest
        return taken_or(is_right, f"{reply.error.name}, {reply.offset}")

    @action("shrink_isr")
    def shrink_isr(self, cluster: Cluster, leader: str, follower: str) -> Answer:
        """The leader checks its ISR; this follower was last caught up long ago, all others just now."""
        if cluster.spent.shrinks == self.constants["MaxShrinks"]:
            return Impossible("no more laggards in this model")
        broker = self.id(leader)
        state = cluster.state(broker)
        if state is None:
            return DOWN
        members = () if state.leading is None else state.leading.isr
        before = late_followers(state, NOW_MS)
        for member in members:
            self.let_be(cluster, broker, member, is_late=member == self.id(follower))
        if not any(isinstance(effect, Send) for effect in cluster.fire(broker, Timer.ISR_CHECK)):
            for member in members:
                self.let_be(cluster, broker, member, is_late=member in before)
            return Refused("no proposal is sent")
        cluster.spent = replace(cluster.spent, shrinks=cluster.spent.shrinks + 1)
        return Accepted()

    @action("fall_behind")
    def fall_behind(self, cluster: Cluster, leader: str, follower: str) -> Answer:
        """Time passes in which a follower outside the ISR does not catch up."""
        broker, other = self.id(leader), self.id(follower)
        state = cluster.state(broker)
        if state is None or state.leading is None or other == broker:
            return Impossible("no leader with such a follower")
        if other in maximal_isr(state, state.leading):
            return Impossible("in the ISR that is for `shrink_isr`")
        is_late = other in late_followers(state, NOW_MS)
        if is_late or not is_eligible(state, other, state.leading.remotes[other]):
            return Impossible("HW does not wait for it")
        self.let_be(cluster, broker, other, is_late=True)
        return Accepted()

    def let_be(self, cluster: Cluster, leader: int, follower: int, *, is_late: bool) -> None:
        """Set a follower's last fetch at the log's end to long ago or just now: each has a clock."""
        process = cluster.nodes[leader].process
        assert process is not None
        if follower != leader:
            date_fetch(process, follower, LONG_AGO_MS if is_late else NOW_MS)

    @action("alter_partition")
    def alter_partition(self, cluster: Cluster, leader: str) -> Answer:
        """The proposal reaches the controller.

        Where it answers that the metadata has moved on, its leader stays as it was: no step of the spec.
        """
        slot = cluster.alters.get(self.id(leader))
        if slot is None or slot.reply is not None:
            return Impossible("no proposal is on its way")
        reply = cluster.decide(self.id(leader), slot.request)
        assert isinstance(reply, messages.AlterPartitionReply)
        if reply.error not in (Error.NONE, Error.INELIGIBLE_REPLICA):
            return Refused(reply.error.name)
        cluster.put_alter(self.id(leader), replace(slot, reply=reply))
        return Accepted()

    @action("apply_alter_reply")
    def apply_alter_reply(self, cluster: Cluster, leader: str) -> Answer:
        """The controller's decision arrives, if its receiver still exists."""
        broker = self.id(leader)
        slot = cluster.alters.get(broker)
        if slot is None or slot.reply is None:
            return Impossible("no verdict is on its way")
        cluster.take_alter(broker)
        if cluster.state(broker) is not None:
            cluster.receive(broker, -1, slot.reply)
        return Accepted()

    @action("elect")
    def elect(self, cluster: Cluster, broker: str) -> Answer:
        """An operator requests this leader: it is made the preferred one for the time of the election."""
        if cluster.image.leader_epoch == self.epochs[-1]:
            return Impossible("no more elections in this model")
        return self.elect_as(cluster, self.id(broker))

    def elect_as(self, cluster: Cluster, broker: int, *, is_unclean: bool = False) -> Answer:
        """Hold an operator's election with this broker as the first replica."""
        replicas = cluster.image.replicas
        ordered = (broker, *(other for other in replicas if other != broker))
        partitions = cluster.controller.state.partitions
        partitions[PARTITION] = replace(cluster.image, replicas=ordered)
        reply = cluster.decide(OPERATOR, messages.ElectRequest(1, PARTITION, is_unclean))
        partitions[PARTITION] = replace(cluster.image, replicas=replicas)
        assert isinstance(reply, messages.ElectReply)
        return taken_or(reply.error is Error.NONE, reply.error.name)

    # By today's defaults only an operator requests it, and this operator does not.
    elect_unclean = never("elect_unclean", "nobody asks for an unclean election")

    @action("fence_broker")
    def fence_broker(self, cluster: Cluster, broker: str) -> Answer:
        """The session of a broker expires, because the broker died or is slow."""
        number = self.id(broker)
        is_alive = cluster.state(number) is not None
        if is_alive and cluster.spent.fences == self.constants["MaxFences"]:
            return Impossible("no more suspicions in this model")
        if cluster.image.leader == number and cluster.image.leader_epoch == self.epochs[-1]:
            return Impossible("no more elections in this model")
        if cluster.is_fenced(number):
            return Impossible("its session is over already")
        cluster.expire_session(number)
        cluster.spent = replace(cluster.spent, fences=cluster.spent.fences + is_alive)
        return taken_or(cluster.is_fenced(number), "it is not fenced")

    @action("unfence_broker")
    def unfence_broker(self, cluster: Cluster, broker: str) -> Answer:
        """A heartbeat reports that the broker has applied the metadata of its registration."""
        number = self.id(broker)
        image = cluster.image
        if cluster.state(number) is None:
            return DOWN
        leads = image.leader == NO_LEADER and number in candidates(image.isr, image.elr, image)
        if leads and image.leader_epoch == self.epochs[-1]:
            return Impossible("no more elections in this model")
        was_fenced = cluster.is_fenced(number)
        cluster.heartbeat(number)
        return taken_or(was_fenced and not cluster.is_fenced(number), "it stays as it was")

    @action("change_min_isr")
    def change_min_isr(self, cluster: Cluster) -> Answer:
        """An operator sets another min.insync.replicas."""
        least = self.constants["new_min_isr"]
        if cluster.image.min_isr or least == self.constants["min_isr"]:
            return Impossible("no such change in this model, or no more of them")
        reply = cluster.decide(OPERATOR, messages.ConfigureRequest(1, PARTITION, least))
        assert isinstance(reply, messages.ConfigureReply)
        return taken_or(reply.error is Error.NONE, reply.error.name)

    hear_of_min_isr = never("hear_of_min_isr", "it comes with the partition's metadata")

    @action("become_leader")
    def become_leader(self, cluster: Cluster, broker: str, epoch: int) -> Answer:
        """Metadata arrives in which this broker leads."""
        return self._hear(cluster, self.id(broker), epoch, Role.LEADER)

    @action("become_follower")
    def become_follower(self, cluster: Cluster, broker: str, epoch: int) -> Answer:
        """Metadata arrives in which another broker leads, or none."""
        return self._hear(cluster, self.id(broker), epoch, Role.FOLLOWER)

    def _hear(self, cluster: Cluster, broker: int, epoch: int, role: Role) -> Answer:
        """Apply an image; it is new if it changes the role, the epoch, or the ISR data that a leader uses."""
        state = cluster.state(broker)
        if state is None:
            return DOWN
        known = cluster.metadata.get(epoch)
        if known is None or (known.partitions[PARTITION].leader == broker) != (role is Role.LEADER):
            return Impossible("no such metadata was written")
        if state.role is Role.NONE and epoch < cluster.nodes.seen[broker].registered_at:
            return Impossible("it is told nothing from before its registration")
        state = cluster.running(broker)
        before = (state.role, state.leader_epoch, role is Role.LEADER and state.partition_epoch)
        # Without a change of the partition, `hear_of_brokers` delivers the changes of brokers.
        is_news = known.partitions[PARTITION].partition_epoch > state.partition_epoch
        (cluster.apply_metadata if is_news else cluster.apply_partition)(broker, epoch)
        after = (state.role, state.leader_epoch, role is Role.LEADER and state.partition_epoch)
        return taken_or(before != after, "it is not news")

    @action("hear_of_brokers")
    def hear_of_brokers(self, cluster: Cluster, leader: str) -> Answer:
        """Metadata arrives that contains no change of the partition."""
        broker = self.id(leader)
        state = cluster.state(broker)
        if state is None or state.role is not Role.LEADER:
            return DOWN if state is None else Impossible("it does not lead")
        known = cluster.metadata[state.leader_epoch].partitions[PARTITION]
        if known.partition_epoch > state.partition_epoch:
            return Impossible("the metadata is news on the partition, too")
        state = cluster.running(broker)
        before = state.brokers
        cluster.apply_metadata(broker, state.leader_epoch)
        return taken_or(state.brokers != before, "it is not news")
