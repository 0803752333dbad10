"""The commands of a scenario on a cluster: each performs one action and returns the changes.

A command may deliver messages, ring alarms, or break something.  Its output is the answers clients got, and
one line for each broker, and for the controller, whose description is not what it was before.  A command that
returns lines has these for its output instead.

The arguments of a method are those of its command, as words: `min-isr=2` is `min_isr="2"`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from replog.core import messages
from replog.core.broker.state import Config
from replog.core.effects import Timer
from replog.core.messages import Message
from replog.core.protocol import RecordIs, preset
from replog.core.types import CONSUMER, CONTROLLER, Batch
from replog.sim.cluster.node import Alarm, Delivery, Item
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.world import World
from replog.sim.scenarios import quorum_commands
from replog.sim.scenarios.describe import describe_broker, describe_isr, describe_reply

CLIENT = -10
Entry = tuple[int, int, Item]
DATA_REQUESTS = (messages.FetchRequest, messages.EpochEndRequest, messages.ListOffsetsRequest)
DATA_REPLIES = (messages.FetchReply, messages.EpochEndReply, messages.ListOffsetsReply)


class ScenarioCluster:
    """The cluster of a scenario, and the output so far."""

    def __init__(self, make_world: Callable[[WorldOptions], World] = World) -> None:
        self.make_world = make_world
        self.world = make_world(WorldOptions())
        self.held: set[int] = set()
        self.said: dict[int, str] = {}
        self.correlation = 0

    def __call__(self, name: str, *words: str, **options: str) -> list[str]:
        """Run one command and return its output; TypeError for unsupported arguments."""
        lines: list[str] | None = COMMANDS[name](self, *words, **options)
        return self._changes() if lines is None else lines

    def take(self, wanted: Callable[[Item], bool]) -> bool:
        """Execute the first pending item of a kind; return whether there was one."""
        entry = next((entry for entry in self.world.pending() if wanted(entry[2])), None)
        if entry is not None:
            self.world.take(entry)
        return entry is not None

    def _under_way(self, to: int, kinds: tuple[type[Message], ...]) -> list[Entry]:
        """Return the messages of some kinds in flight to a broker."""
        return [
            (due, serial, item)
            for due, serial, item in self.world.pending()
            if isinstance(item, Delivery) and item.to == to and isinstance(item.message, kinds)
        ]

    def _ring(self, owner: int, timer: Timer) -> bool:
        """Ring the oldest live alarm of a kind."""
        node = self.world.nodes[owner]
        return self.take(
            lambda item: (
                isinstance(item, Alarm)
                and (item.owner, item.timer, item.incarnation) == (owner, timer, node.incarnation)
            )
        )

    def _deliver(self, source: int | None, to: int | None, kinds: tuple[type[Message], ...]) -> bool:
        return self.take(
            lambda item: (
                isinstance(item, Delivery)
                and source in (None, item.source)
                and to in (None, item.to)
                and isinstance(item.message, kinds)
            )
        )

    def _changes(self) -> list[str]:
        """Return the client's answers, and the changed lines."""
        while self.take(lambda item: isinstance(item, Delivery) and item.to == CLIENT):
            pass
        lines = [describe_reply(message) for _, message in self.world.replies if describe_reply(message)]
        self.world.replies.clear()
        now = {broker: describe_broker(node) for broker, node in self.world.nodes.items()}
        quorum = self.world.quorum
        if quorum is None:
            now[CONTROLLER] = f"controller: {describe_isr(self.world.image)}"
        else:
            now |= quorum_commands.describe_controllers(quorum)
        lines.extend(text for who, text in now.items() if self.said.get(who) != text)
        self.said = now
        return lines

    def _send(self, to: int, message: Message) -> None:
        self.world.send(CLIENT, to, message)
        self._deliver(CLIENT, to, (type(message),))

    def cluster(
        self, *flags: str, brokers: str = "2", min_isr: str = "1", protocol: str = "kafka-4.1",
        lag: str = "10000", replicas: str = "0", controllers: str = "1", answered: str = "committed",
        applied: str = "committed", own_record: str = "yes", newest_only: str = "yes",
    ) -> list[str]:  # fmt: skip
        """`cluster brokers=2 min-isr=1 protocol=kafka-4.1 lag=10000 [replicas=1] [coalesce] [follower-read]`.

        Begin a story.  The first `replicas` brokers hold the partition, without that all.  With
        `controllers=3` also the rules `answered=committed applied=committed own-record=yes newest-only=yes`.
        """
        rules = replace(
            preset(protocol),
            answered_when=RecordIs(answered),
            applied_when=RecordIs(applied),
            own_record=own_record == "yes",
            newest_only=newest_only == "yes",
        )
        config = Config(lag_ms=int(lag), follower_read="follower-read" in flags)
        self.world = self.make_world(
            WorldOptions(
                int(brokers),
                int(min_isr),
                rules,
                config,
                coalesces_metadata="coalesce" in flags,
                replicas=int(replicas),
                controllers=int(controllers),
            )
        )
        if self.world.quorum is not None:
            quorum_commands.elect_controller(self, "1", "2")
            self._replicate()
        self.said = {}
        return []

    def start(self, *brokers: str) -> None:
        """`start [0 1]`: start the brokers in this order, and let them register."""
        for broker in map(int, brokers or self.world.nodes):
            self.world.restart(broker)
            self.settle()
            while self._replicate():
                self.settle()

    def _replicate(self) -> bool:
        """Give all controllers the state of the first one; return whether that changes anything."""
        quorum = self.world.quorum
        if quorum is None:
            return False
        before = len(quorum.committed)
        for follower in "23":
            quorum_commands.replicate(self, "1", follower)
        return len(quorum.committed) > before

    def settle(self) -> None:
        """`settle`: deliver everything between brokers and controller, except metadata that is held back."""

        def wanted(item: Item) -> bool:
            if not isinstance(item, Delivery):
                return False
            message = item.message.message if isinstance(item.message, messages.OfTerm) else item.message
            is_held = isinstance(message, messages.MetadataUpdate) and item.to in self.held
            return isinstance(message, messages.ControlMessage) and not is_held

        # Until nothing is left: an answer may cause the next message.
        while self.take(wanted):
            pass

    def hold(self, *brokers: str) -> list[str]:
        """`hold 1`: hold back metadata from these brokers for now."""
        self.held |= set(map(int, brokers))
        return []

    def release(self, *brokers: str) -> None:
        """`release 1`: deliver the metadata held back from these brokers."""
        self.held -= set(map(int, brokers))
        self.settle()

    def skip(self, broker: str) -> None:
        """`skip 1`: broker 1 gets only its newest metadata, as if it had applied many versions as one."""
        # Held metadata is still on its way: all but the newest is dropped before it can arrive.
        for entry in self._under_way(int(broker), (messages.MetadataUpdate,))[:-1]:
            self.world.drop(entry)
        self.release(broker)

    def produce(
        self, broker: str, body: str, acks: str = "all", count: str = "1", pid: str = "-1", seq: str = "-1"
    ) -> None:
        """`produce 0 m1 [acks=all|1|0] [count=1] [pid=7 seq=0]`: a producer sends one batch to broker 0."""
        self.correlation += 1
        producer = int(pid)
        epoch = 0 if producer >= 0 else -1
        # The leader sets offset and epoch: a producer knows neither.
        batch = Batch(0, -1, int(count), producer, epoch, int(seq), body.encode())
        required = {"all": -1, "1": 1, "0": 0}[acks]
        self._send(int(broker), messages.ProduceRequest(self.correlation, batch, required, 30_000))

    def fetch(self, broker: str, times: str = "1", reply: str = "") -> None:
        """`fetch 1 [times=1] [reply=lost]`: broker 1 sends a request and gets the answer (or not)."""
        for _ in range(int(times)):
            self.request(broker)
            if reply == "lost":
                for entry in self._under_way(int(broker), DATA_REPLIES):
                    self.world.drop(entry)
            else:
                self.reply(broker)

    def request(self, broker: str) -> None:
        """`request 1`: broker 1 sends its leader a request; the answer stays in flight."""
        follower = int(broker)
        node = self.world.nodes[follower]
        following = None if node.broker is None else node.broker.state.following
        if following is not None and following.in_flight >= 0:
            # Its last request has no answer, so it sends a new one only after the timeout.
            self._ring(follower, Timer.FETCH_TIMEOUT)
        else:
            self._ring(follower, Timer.SEND_FETCH)
        if self._deliver(follower, None, DATA_REQUESTS) and following is not None:
            leader = node.broker.state.leader_id if node.broker is not None else -1
            # An empty fetch waits at the leader for half a second; a story shows its answer now.
            if leader >= 0:
                self._ring(leader, Timer.FETCH_WAIT)

    def reply(self, broker: str) -> None:
        """`reply 1`: the answer in flight to broker 1 arrives."""
        self._deliver(None, int(broker), DATA_REPLIES)

    def consume(self, broker: str, **options: str) -> None:
        """`consume 0 from=0`: a consumer reads from broker 0."""
        self.correlation += 1
        offset = int(options.get("from", "0"))
        self._send(int(broker), messages.FetchRequest(self.correlation, CONSUMER, -1, offset))

    def latest(self, broker: str) -> None:
        """`latest 0`: a consumer requests the end of the log from broker 0."""
        self.correlation += 1
        self._send(int(broker), messages.ListOffsetsRequest(self.correlation, CONSUMER, -1, -1))

    def crash(self, broker: str) -> None:
        """`crash 0`: kill -9; the page cache stays."""
        self.world.crash(int(broker))

    def power(self, broker: str, keep: str = "0") -> None:
        """`power 0 keep=1`: cut the power; of the unflushed batches, `keep` survive."""
        self.world.lose_power(int(broker), lambda n: min(int(keep), n - 1))

    def restart(self, broker: str) -> None:
        """`restart 0`: start the process again and let it register."""
        self.world.restart(int(broker))
        self.settle()

    def register(self, broker: str) -> None:
        """`register 0`: a started process tries again to register."""
        self._ring(int(broker), Timer.HEARTBEAT)
        self.settle()

    def fence(self, broker: str) -> None:
        """`fence 0`: the controller finds the broker's session expired."""
        self.world.fence(int(broker))
        self.settle()

    def prefer(self) -> None:
        """`prefer`: an operator requests the preferred leader."""
        self._operate(messages.ElectRequest(0, "t-0"))

    def elect_unclean(self) -> None:
        """`elect-unclean`: an operator requests any leader."""
        self._operate(messages.ElectRequest(0, "t-0", is_unclean=True))

    def configure(self, min_isr: str) -> None:
        """`configure min-isr=1`: an operator changes min.insync.replicas."""
        self._operate(messages.ConfigureRequest(0, "t-0", int(min_isr)))

    def reassign(self, *brokers: str) -> None:
        """`reassign 1 2`: an operator requests these replicas, the preferred leader first."""
        self._operate(messages.ReassignRequest(0, "t-0", tuple(map(int, brokers))))

    def cancel_reassignment(self) -> None:
        """`cancel-reassignment`: an operator cancels the reassignment in progress."""
        self._operate(messages.ReassignRequest(0, "t-0", None))

    def _operate(self, request: Message) -> None:
        self._send(CONTROLLER, request)
        self.settle()

    def shrink(self, broker: str) -> None:
        """`shrink 0`: the leader's ISR check, as if the lag limit had passed; the proposal is in flight."""
        self.world.now_ms += self.world.options.config.lag_ms + 1
        self._ring(int(broker), Timer.ISR_CHECK)

    def expire(self, broker: str) -> None:
        """`expire 0`: the produces waiting at broker 0 time out."""
        # As long as `produce` lets a producer wait.
        self.world.now_ms += 30_000
        self._ring(int(broker), Timer.PRODUCE_TIMEOUT)

    def checkpoint(self, broker: str) -> None:
        """`checkpoint 0`: broker 0 writes its HW checkpoint."""
        self._ring(int(broker), Timer.HW_CHECKPOINT)

    def flush(self, broker: str) -> None:
        """`flush 0`: the operating system writes broker 0's page cache back."""
        self.world.nodes[int(broker)].storage.flush()

    def wait(self, ms: str) -> list[str]:
        """`wait 5000`: time passes; nothing else happens."""
        self.world.now_ms += int(ms)
        return []

    def lag(self, broker: str) -> list[str]:
        """`lag 0`: the time since the leader's followers were last caught up (F8)."""
        process = self.world.nodes[int(broker)].broker
        leading = None if process is None else process.state.leading
        if leading is None:
            return ["not a leader"]
        now_ms = self.world.now_ms
        return [
            f"{f}: caught up {now_ms - r.last_caught_up_ms} ms ago"
            for f, r in sorted(leading.remotes.items())
        ]


COMMANDS: Mapping[str, Callable[..., list[str] | None]] = MappingProxyType(
    {
        name.replace("_", "-"): function
        for name, function in vars(ScenarioCluster).items()
        if callable(function) and not name.startswith("_") and name != "take"
    }
    | {function.__name__.replace("_", "-"): function for function in quorum_commands.COMMANDS}
)
