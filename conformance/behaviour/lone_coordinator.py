"""Runs of one group coordinator alone: requests of members, elections, fetches, records of another leader.

Broker 0 and a follower, or a leader, simulated by a seed.  Timers of the coordinator ring late or twice, and
its messages to itself arrive in any order with the rest.
"""

from __future__ import annotations

from random import Random

from observed_world import note_effect

from replog.core import messages
from replog.core.broker.coordinator import GroupReplica
from replog.core.broker.groups import Commit, Generation
from replog.core.broker.state import Config, ReplicaState
from replog.core.effects import Effect, Send, Timer
from replog.core.protocol import preset
from replog.core.types import (
    Batch,
    BrokerImage,
    BrokerState,
    EpochEnd,
    Error,
    MetadataImage,
    PartitionImage,
)
from specchk.conform.contract.behaviours import RunWatch

PARTITION, ME, OTHER, NOW_MS = "groups-0", 0, 1, 1_000_000
TIMERS = (Timer.COMPLETE_COMMITS, Timer.RESIGN)


class LoneCoordinator:
    """One run: the replica, and the messages that it has sent to itself."""

    def __init__(self, watch: RunWatch, seed: int, protocol: str) -> None:
        self.watch = watch
        self.random = Random(seed)  # noqa: S311  # chance that must be repeatable
        self.replica = GroupReplica(ReplicaState(ME, PARTITION, Config(min_isr=1), preset(protocol)))
        self.to_itself: list[messages.GroupLog] = []
        self.joins: dict[int, messages.JoinGroupRequest] = {}
        self.owners: dict[str, tuple[int, int]] = {}
        """Of each group the member that has joined last, and its generation."""
        self.epoch = self.version = self.correlation = 0
        self._elect()

    def run(self, actions: int) -> None:
        """Take this many steps."""
        ways, weights = zip(
            (self._request, 40), (self._fetch, 30), (self._ring, 30), (self._load, 20), (self._follow, 20),
            (self._elect, 3), (self._replace, 2), strict=True,
        )  # fmt: skip
        for way in self.random.choices(ways, weights, k=actions):
            way()

    def _note(self, effects: list[Effect]) -> None:
        for effect in effects:
            note_effect(self.watch, "coordinator", effect)
            if isinstance(effect, Send) and isinstance(effect.message, messages.GroupLog):
                self.to_itself.append(effect.message)
            elif isinstance(effect, Send) and isinstance(effect.message, messages.JoinGroupReply):
                join = self.joins.get(effect.message.correlation)
                if join is not None and effect.message.error is Error.NONE:
                    self.owners[join.group] = join.member, effect.message.generation

    def _receive(self, source: int, message: messages.Message) -> list[Effect]:
        self.watch.step(message)
        effects = self.replica.receive(source, message, NOW_MS)
        self._note(effects)
        return effects

    def _request(self) -> None:
        self.correlation += 1
        self._receive(-self.random.randrange(10, 13), self._any_request())

    def _any_request(self) -> messages.GroupRequest:
        random, number = self.random, self.correlation
        group, partition = random.choice("gh"), random.choice(("t-0", "t-1"))
        member, generation = random.randrange(2), random.randrange(1, 6)
        if random.random() < 0.8:
            member, generation = self.owners.get(group, (member, generation))
        self.joins[number] = messages.JoinGroupRequest(number, group, member)
        requests = (
            self.joins[number],
            messages.CommitRequest(number, group, partition, random.randrange(-1, 9), member, generation),
            messages.PositionRequest(number, group, partition, member, generation),
        )
        return random.choices(requests, (1, 5, 3))[0]

    def _fetch(self) -> None:
        """Let the follower fetch, usually from the end of the log."""
        log = self.replica.state.log
        offset = log.leo if self.random.random() < 0.7 else self.random.randrange(log.leo + 1)
        last = self.epoch if offset else -1
        self._receive(OTHER, messages.FetchRequest(0, OTHER, self.epoch, offset, last, broker_epoch=2))

    def _ring(self) -> None:
        timer = self.random.choice(TIMERS)
        self.watch.step(timer)
        self._note(self.replica.fire(timer, 0, NOW_MS))

    def _load(self) -> None:
        """Deliver a message that it has sent to itself, perhaps again, or from another sender."""
        if self.to_itself:
            source = ME if self.random.random() < 0.9 else OTHER
            self._receive(source, self.random.choice(self.to_itself[-2:]))

    def _follow(self) -> None:
        """Let it fetch from a leader that has the same log, a shorter one, or a longer one."""
        log = self.replica.state.log
        self.watch.step("it fetches")
        effects = self.replica.fire(Timer.SEND_FETCH, 0, NOW_MS)
        self._note(effects)
        for effect in effects:
            if not isinstance(effect, Send) or not isinstance(effect.message, messages.FetchRequest):
                continue
            request = effect.message
            if log.leo > log.hw and self.random.random() < 0.4:
                diverging = EpochEnd(log.last_epoch - 1, self.random.randrange(log.hw, log.leo))
                reply = messages.FetchReply(request.correlation, Error.NONE, log.hw, 0, (), diverging)
            else:
                record = self.random.choice((Generation("g", 4, 1), Commit("h", "t-0", 3)))
                batch = Batch(request.fetch_offset, self.epoch, 1, body=record.to_body())
                high = self.random.randrange(log.hw, batch.next_offset + 1)
                reply = messages.FetchReply(request.correlation, Error.NONE, high, 0, (batch,))
            self._receive(OTHER, reply)

    def _elect(self) -> None:
        """Make either broker the leader of the next epoch."""
        self.epoch += 1
        self.version += 1
        leader = self.random.choice((ME, ME, OTHER))
        image = PartitionImage((ME, OTHER), leader, self.epoch, self.version, (ME, OTHER))
        brokers = {ME: BrokerImage(1, BrokerState.ACTIVE), OTHER: BrokerImage(2, BrokerState.ACTIVE)}
        self.watch.step(f"broker {leader} leads epoch {self.epoch}")
        self._note(self.replica.apply(MetadataImage(self.version, {PARTITION: image}, brokers), 1, NOW_MS))

    def _replace(self) -> None:
        """Continue with a copy, which must be equal to the original."""
        self.replica = self.replica.copy()
