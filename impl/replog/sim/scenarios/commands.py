"""The commands of a scenario on a cluster: each does one thing and returns what it changed.

A command may deliver messages, ring alarms, or break something.  Its output is the answers clients got, and
one line for each broker, and for the controller, whose description is not what it was before.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from replog.core.broker.state import Config
from replog.core.effects import Timer
from replog.core.messages import (
    AlterPartitionReply,
    AlterPartitionRequest,
    ConfigureReply,
    ConfigureRequest,
    ElectReply,
    ElectRequest,
    EpochEndReply,
    EpochEndRequest,
    FetchReply,
    FetchRequest,
    HeartbeatReply,
    HeartbeatRequest,
    ListOffsetsReply,
    ListOffsetsRequest,
    Message,
    MetadataRequest,
    MetadataUpdate,
    ProduceRequest,
    RegisterReply,
    RegisterRequest,
)
from replog.core.protocol import preset
from replog.core.types import CONSUMER, CONTROLLER, Batch
from replog.sim.cluster.node import Alarm, Delivery, Item
from replog.sim.cluster.world import World, WorldOptions
from replog.sim.scenarios.describe import describe_broker, describe_controller, describe_reply

CLIENT = -10
Entry = tuple[int, int, Item]

CONTROL = (
    AlterPartitionReply,
    AlterPartitionRequest,
    ConfigureReply,
    ConfigureRequest,
    ElectReply,
    ElectRequest,
    HeartbeatReply,
    HeartbeatRequest,
    MetadataRequest,
    MetadataUpdate,
    RegisterReply,
    RegisterRequest,
)
DATA_REQUESTS = (FetchRequest, EpochEndRequest, ListOffsetsRequest)
DATA_REPLIES = (FetchReply, EpochEndReply, ListOffsetsReply)


class ScenarioCluster:
    """The cluster a scenario is about, and what has been said of it so far."""

    def __init__(self) -> None:
        self.world = World(WorldOptions())
        self.held: set[int] = set()
        self.said: dict[int, str] = {}
        self.correlation = 0

    def _entries(self, wanted: Callable[[Item], bool]) -> list[Entry]:
        return [entry for entry in self.world.pending() if wanted(entry[2])]

    def _take(self, wanted: Callable[[Item], bool]) -> bool:
        """Let the first pending item of a kind happen; return whether there was one."""
        entries = self._entries(wanted)
        if entries:
            self.world.take(entries[0])
        return bool(entries)

    def _ring(self, owner: int, timer: Timer) -> bool:
        """Ring the oldest live alarm of a kind."""
        node = self.world.nodes[owner]
        return self._take(
            lambda item: (
                isinstance(item, Alarm)
                and (item.owner, item.timer, item.incarnation) == (owner, timer, node.incarnation)
            )
        )

    def _deliver(self, source: int | None, to: int | None, kinds: tuple[type[Message], ...]) -> bool:
        return self._take(
            lambda item: (
                isinstance(item, Delivery)
                and source in (None, item.source)
                and to in (None, item.to)
                and isinstance(item.message, kinds)
            )
        )

    def _settle(self) -> None:
        """Deliver everything between brokers and controller, except metadata for those it is held from."""

        def wanted(item: Item) -> bool:
            if not isinstance(item, Delivery) or not isinstance(item.message, CONTROL):
                return False
            return not (isinstance(item.message, MetadataUpdate) and item.to in self.held)

        # Until nothing is left: an answer may cause the next message.
        while self._take(wanted):
            pass

    def _changes(self) -> list[str]:
        """Return the client's answers, and the lines that are not what they were."""
        self._hear()
        lines = [describe_reply(message) for _, message in self.world.replies if describe_reply(message)]
        self.world.replies.clear()
        now = {broker: describe_broker(node) for broker, node in self.world.nodes.items()}
        now[CONTROLLER] = describe_controller(self.world.image)
        lines.extend(text for who, text in now.items() if self.said.get(who) != text)
        self.said = now
        return lines

    def _send(self, to: int, message: Message) -> None:
        self.world.send(CLIENT, to, message)
        self._deliver(CLIENT, to, (type(message),))

    def _hear(self) -> None:
        while self._take(lambda item: isinstance(item, Delivery) and item.to == CLIENT):
            pass

    def cluster(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`cluster brokers=2 min-isr=1 protocol=kafka-4.1 lag=10000 [coalesce] [follower-read]`.

        Begin a story.
        """
        config = Config(lag_ms=int(options.get("lag", "10000")), follower_read="follower-read" in words)
        self.world = World(
            WorldOptions(
                int(options.get("brokers", "2")),
                int(options.get("min-isr", "1")),
                preset(options.get("protocol", "kafka-4.1")),
                config,
                coalesces_metadata="coalesce" in words,
            )
        )
        self.said = {}
        return []

    def start(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`start [0 1]`: start the brokers in this order, and let them register."""
        del options
        for broker in map(int, words or map(str, self.world.nodes)):
            self.world.restart(broker)
            self._settle()
        return self._changes()

    def settle(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`settle`: deliver what is under way between brokers and controller."""
        del words, options
        self._settle()
        return self._changes()

    def hold(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`hold 1`: metadata does not reach these brokers for now."""
        del options
        self.held |= set(map(int, words))
        return []

    def release(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`release 1`: these brokers get their metadata now."""
        del options
        self.held -= set(map(int, words))
        self._settle()
        return self._changes()

    def skip(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`skip 1`: broker 1 gets its newest metadata only, as if it had applied many versions as one."""
        del options
        broker = int(words[0])
        waiting = self._entries(
            lambda item: (
                isinstance(item, Delivery) and item.to == broker and isinstance(item.message, MetadataUpdate)
            )
        )
        for entry in waiting[:-1]:
            self.world.drop(entry)
        return self.release(words, {})

    def produce(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`produce 0 m1 [acks=all|1|0] [count=1] [pid=7 seq=0]`: a producer sends one batch to broker 0."""
        self.correlation += 1
        acks = {"all": -1, "1": 1, "0": 0}[options.get("acks", "all")]
        pid = int(options.get("pid", "-1"))
        batch = Batch(
            0, -1, int(options.get("count", "1")), pid, 0 if pid >= 0 else -1,
            int(options.get("seq", "-1")), words[1].encode(),
        )  # fmt: skip
        self._send(int(words[0]), ProduceRequest(self.correlation, batch, acks, 30_000))
        return self._changes()

    def fetch(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`fetch 1 [times=1] [reply=lost]`: broker 1 sends a request and gets the answer (or not)."""
        broker = int(words[0])
        for _ in range(int(options.get("times", "1"))):
            self._request(broker)
            if options.get("reply") == "lost":
                for entry in self._entries(
                    lambda item: (
                        isinstance(item, Delivery)
                        and item.to == broker
                        and isinstance(item.message, DATA_REPLIES)
                    )
                ):
                    self.world.drop(entry)
            else:
                self._deliver(None, broker, DATA_REPLIES)
        return self._changes()

    def request(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`request 1`: broker 1 sends its leader a request; the answer stays under way."""
        del options
        self._request(int(words[0]))
        return self._changes()

    def reply(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`reply 1`: the answer under way to broker 1 arrives."""
        del options
        self._deliver(None, int(words[0]), DATA_REPLIES)
        return self._changes()

    def _request(self, broker: int) -> None:
        """Send and deliver a follower's request; a leader that would wait for data answers at once."""
        node = self.world.nodes[broker]
        following = None if node.broker is None else node.broker.state.following
        if following is not None and following.in_flight >= 0:
            # Its last request has no answer, so it sends a new one only after the timeout.
            self._ring(broker, Timer.FETCH_TIMEOUT)
        else:
            self._ring(broker, Timer.SEND_FETCH)
        if self._deliver(broker, None, DATA_REQUESTS) and following is not None:
            leader = node.broker.state.leader_id if node.broker is not None else -1
            # An empty fetch waits at the leader for half a second; a story shows its answer now.
            if leader >= 0:
                self._ring(leader, Timer.FETCH_WAIT)

    def consume(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`consume 0 from=0`: a consumer reads from broker 0."""
        self.correlation += 1
        offset = int(options.get("from", "0"))
        self._send(int(words[0]), FetchRequest(self.correlation, CONSUMER, -1, offset))
        return self._changes()

    def latest(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`latest 0`: a consumer requests the end of the log from broker 0."""
        del options
        self.correlation += 1
        self._send(int(words[0]), ListOffsetsRequest(self.correlation, CONSUMER, -1, -1))
        return self._changes()

    def crash(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`crash 0`: kill -9; the page cache stays."""
        del options
        self.world.crash(int(words[0]))
        return self._changes()

    def power(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`power 0 keep=1`: cut the power; of the batches not flushed, `keep` survive."""
        self.world.lose_power(int(words[0]), lambda n: min(int(options.get("keep", "0")), n - 1))
        return self._changes()

    def restart(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`restart 0`: start the process again and let it register."""
        del options
        self.world.restart(int(words[0]))
        self._settle()
        return self._changes()

    def register(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`register 0`: a started process tries to register again."""
        del options
        self._ring(int(words[0]), Timer.HEARTBEAT)
        self._settle()
        return self._changes()

    def fence(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`fence 0`: the controller finds the broker's session expired."""
        del options
        self.world.fence(int(words[0]))
        self._settle()
        return self._changes()

    def prefer(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`prefer`: an operator requests the preferred leader."""
        del words, options
        return self._operate(ElectRequest(0, "t-0"))

    def elect_unclean(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`elect-unclean`: an operator requests any leader."""
        del words, options
        return self._operate(ElectRequest(0, "t-0", is_unclean=True))

    def configure(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`configure min-isr=1`: an operator changes min.insync.replicas."""
        del words
        return self._operate(ConfigureRequest(0, "t-0", int(options["min-isr"])))

    def _operate(self, request: ElectRequest | ConfigureRequest) -> list[str]:
        self._send(CONTROLLER, request)
        self._settle()
        return self._changes()

    def shrink(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`shrink 0`: the leader's ISR check, as if the lag limit had passed; the proposal is under way."""
        del options
        self.world.now_ms += self.world.options.config.lag_ms + 1
        self._ring(int(words[0]), Timer.ISR_CHECK)
        return self._changes()

    def expire(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`expire 0`: the produces waiting at broker 0 time out."""
        del options
        # As long as `produce` lets a producer wait.
        self.world.now_ms += 30_000
        self._ring(int(words[0]), Timer.PRODUCE_TIMEOUT)
        return self._changes()

    def checkpoint(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`checkpoint 0`: broker 0 writes its HW checkpoint."""
        del options
        self._ring(int(words[0]), Timer.HW_CHECKPOINT)
        return self._changes()

    def flush(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`flush 0`: the operating system writes broker 0's page cache back."""
        del options
        self.world.nodes[int(words[0])].storage.flush()
        return self._changes()

    def wait(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`wait 5000`: time passes; nothing else happens."""
        del options
        self.world.now_ms += int(words[0])
        return []

    def lag(self, words: list[str], options: dict[str, str]) -> list[str]:
        """`lag 0`: how long ago the leader's followers were caught up (F8)."""
        del options
        broker = self.world.nodes[int(words[0])].broker
        leading = None if broker is None else broker.state.leading
        if leading is None:
            return ["not a leader"]
        now_ms = self.world.now_ms
        return [
            f"{f}: caught up {now_ms - r.last_caught_up_ms} ms ago"
            for f, r in sorted(leading.remotes.items())
        ]


COMMANDS = MappingProxyType(
    {
        name.replace("_", "-"): function
        for name, function in vars(ScenarioCluster).items()
        if callable(function) and not name.startswith("_")
    }
)
