"""A cluster of real files and sockets, taken through a run of replication.spec while a client uses it.

    records, followers' fetches and their answers, metadata -> a gate at each broker
    the run's next step -> what it lets through -> compared with its state -> ... -> the gates are open

`produce` lets a client's own request through.  What is unlike the run is noted, and the replay goes on: under
rules that the run does not follow, that is its purpose.  The run is as `specchk run --json` prints it.
"""

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from replog.core.broker.replica import Replica
from replog.core.effects import Effect, Event, Received, Send
from replog.core.messages import (
    ElectRequest,
    FetchReply,
    FetchRequest,
    ForPartition,
    HeartbeatRequest,
    Message,
    MetadataUpdate,
    ProduceRequest,
    ReassignRequest,
)
from replog.core.protocol import Protocol
from replog.core.types import CONTROLLER, NO_LEADER, MetadataImage, PartitionImage
from replog.run.serve.adversary import Adversary, listed
from replog.run.serve.controlling import OPERATOR, Controlling
from replog.run.serve.host import Host
from replog.run.serve.judging import judge
from replog.run.serve.rehearsal import PARTITION, Client, Run, committed, together
from replog.run.serve.service import Service
from replog.run.serve.topics import Address

POLL_S, SETTLED_S, STEP_S, CLIENT_S = 0.002, 0.2, 5.0, 60.0
"""How often something is looked for; how long a step's state, the step, and the client are waited for."""
BROKERS = ("b1", "b2", "b3")
STEERED = {
    *("produce", "send_fetch", "serve_fetch", "apply_response", "lose_fetch"),
    *("elect", "fence_broker", "become_leader", "become_follower"),
}


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a run: its action, brokers and numbers as arguments, and the state that it leads to."""

    action: str
    text: str
    args: tuple[int, ...]
    after: Any

    @property
    def leader(self) -> int:
        """Return who leads then, by the controller."""
        leader = self.after["meta"][str(self.after["current"])]["leader"]
        return NO_LEADER if leader is None else _number(leader["some"])

    @property
    def tells_new_hw(self) -> bool:
        """Return whether the answer has the HW that the leader has after the request."""
        if self.action != "serve_fetch":
            return False
        leader, follower = (f"b{broker + 1}" for broker in self.args)
        body = self.after["fetch"][follower]["some"]["body"]
        return bool(body.get("hw") == self.after["hw"][leader])


@dataclass(frozen=True, slots=True)
class Trace:
    """A run for a cluster: how many brokers must have a record, and its steps."""

    min_isr: int
    steps: tuple[Step, ...]


def trace_of(run: Any) -> Trace:
    """Return a counterexample; raises `ValueError`, with all steps of other kinds."""
    try:
        steps = tuple(
            Step(
                s["action"], f"{s['action']}({', '.join(s['args'])})", (*map(_number, s["args"]),), s["state"]
            )
            for s in run["trace"][1:]
        )
        first, min_isr = run["trace"][0]["state"], run["constants"]["min_isr"]
        is_new = first["meta"]["0"]["leader"] == {"some": "b1"} and first["hw"] == dict.fromkeys(BROKERS, 0)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"no counterexample of replication.spec: {error!r}") from error
    if not is_new:
        raise ValueError("the run does not begin with a new topic of three brokers that b1 leads")
    if others := [f"{n} {step.text}" for n, step in enumerate(steps, 1) if step.action not in STEERED]:
        raise ValueError(f"a cluster is not taken through these steps: {', '.join(others)}")
    return Trace(min_isr, steps)


def _number(text: str) -> int:
    """Return an argument: `b1` is broker 0."""
    return int(text[1:]) - 1 if text.startswith("b") else int(text)


class Gate:
    """Between a broker and all others: keeps what the run has not let through yet."""

    def __init__(self, hand: "Steering", host: Host) -> None:
        self._hand, self.host = hand, host
        self.message = ""
        self.held: dict[str, Callable[[], None]] = {}
        self.produces: deque[Callable[[], None]] = deque()
        self.images: dict[int, MetadataImage] = {}
        self.is_silent = self._lets = self.tells_new_hw = False

    def handle(self, event: Event, now_ms: int, perform: Callable[[Effect], None]) -> None:
        """Have the broker handle an event, unless it waits for its step."""
        if not self._lets and not self._hand.is_over and isinstance(event, Received) and self._keeps(event):
            return
        for effect in self.host.broker.handle(event, now_ms):
            self._perform(effect, perform)

    def _keeps(self, event: Received) -> bool:
        name, inner = Host.named(event.message)
        goes_on = partial(self.let, event.source, event.message)
        if isinstance(inner, MetadataUpdate) and self._hand.epoch >= 0:
            self.images |= {image.version: image for image in inner.images}
        elif isinstance(inner, ProduceRequest) and name == PARTITION:
            self.produces.append(goes_on)
        elif isinstance(inner, FetchReply) and name == PARTITION:
            self.held["apply_response"] = goes_on
        else:
            return False
        return True

    def _perform(self, effect: Effect, perform: Callable[[Effect], None]) -> None:
        name, inner = Host.named(effect.message) if isinstance(effect, Send) else ("", None)
        if isinstance(inner, FetchRequest) and name == PARTITION and not self._hand.is_over:
            asked = partial(self._ask, perform, effect.to, inner)
            self.held["send_fetch"] = lambda: self.held.update(serve_fetch=asked)
        elif not (self.is_silent and isinstance(inner, HeartbeatRequest)):
            perform(effect)

    def _ask(self, perform: Callable[[Effect], None], to: int, fetch: FetchRequest) -> None:
        """Fetch, and wait just as long as gives the HW that the run tells, from after or before it (I7)."""
        now = replace(fetch, max_wait_ms=int(self.tells_new_hw))
        perform(Send(to, ForPartition(PARTITION, now)))

    def let(self, source: int, message: Message) -> None:
        """Have the broker handle a message now."""
        self._lets = True
        self.host.receive(source, message)
        self._lets = False

    def apply(self, epoch: int) -> None:
        """Take the newest metadata up to a leader epoch, as a broker does that reads several at once."""
        images = [i for i in self.images.values() if i.partitions[PARTITION].leader_epoch <= epoch]
        # What it asks then is of the new epoch.
        self.held.pop("send_fetch", None)
        self.host.broker.membership.coalesces = True
        self.let(CONTROLLER, MetadataUpdate((max(images, key=lambda image: image.version),)))

    def recovered(self, replica: Replica) -> None:
        """Follow the rules of the hand."""
        replica.state.protocol = self._hand.protocol

    def checkpointed(self) -> None:
        """Nothing follows."""


class Steering(Adversary):
    """The hand that takes a cluster through a run; `say` is told of each step."""

    def __init__(self, trace: Trace, protocol: Protocol, say: Callable[[int, str], None]) -> None:
        super().__init__(listed(()), lambda broker, each: None)
        self.protocol, self.say = protocol, say
        self.steps, self.gates, self.epoch, self.is_over = deque(trace.steps), {}, -1, False

    def watch(self, process: Host | Controlling) -> None:
        super().watch(process)
        if isinstance(process, Host):
            process.watcher = self.gates[process.settings.broker_id] = Gate(self, process)
        else:
            process.state.protocol = self.protocol

    def service(self, host: Host, addresses: Mapping[int, Address]) -> Service:
        return Service(host, addresses)

    @property
    def image(self) -> PartitionImage:
        return self.controlling.state.partitions[PARTITION]

    async def play(self) -> None:
        """Bring one step after the other about, once a client has sent a record; then open the gates."""
        self.epoch = self.image.leader_epoch
        await until(lambda: any(gate.produces for gate in self.gates.values()))
        while self.steps and await self._is_taken(self.steps[0]):
            self.steps.popleft()
        self.is_over = True
        for gate in self.gates.values():
            gate.is_silent = False
            gate.apply(sys.maxsize)
            for produce in gate.produces:
                produce()

    async def _is_taken(self, step: Step) -> bool:
        try:
            async with asyncio.timeout(STEP_S):
                await self._take(step)
        except TimeoutError:
            self.say(step.args[0], f"{step.text}: did not come about")
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLED_S):
                await until(lambda: not self.unlike(step))
        self.say(step.args[0], ": ".join(filter(None, (step.text, self.unlike(step)))))
        return True

    async def _take(self, step: Step) -> None:
        first, last = step.args[0], step.args[-1]
        gate = self.gates[first]
        match step.action:
            case "elect":
                self._prefer(first)
                self.controlling.receive(OPERATOR, ElectRequest(0, PARTITION))
            case "fence_broker":
                if step.leader not in (NO_LEADER, self.image.leader):
                    self._prefer(step.leader)
                gate.is_silent = True
                self.controlling.expire(first)
            case "become_leader" | "become_follower":
                await until(lambda: self.controlling.state.version in gate.images)
                gate.apply(self.epoch + last)
            case "produce":
                await until(lambda: gate.produces)
                gate.produces.popleft()()
            case "lose_fetch":
                # The follower asks again when it has waited for long enough, or has another leader.
                for message in ("serve_fetch", "apply_response"):
                    gate.held.pop(message, None)
            case action:
                gate = self.gates[last]
                gate.tells_new_hw = step.tells_new_hw
                await until(lambda: action in gate.held)
                gate.held.pop(action)()
                await until(lambda: action != "serve_fetch" or "apply_response" in gate.held)

    def _prefer(self, broker: int) -> None:
        target = (broker, *(other for other in self.image.replicas if other != broker))
        self.controlling.receive(OPERATOR, ReassignRequest(0, PARTITION, target))

    def unlike(self, step: Step) -> str:
        """Return what is unlike the state of the run."""
        pairs = [("leader", self.image.leader, step.leader)]
        for broker, gate in self.gates.items():
            log, name = gate.host.broker.replicas[PARTITION].state.log, f"b{broker + 1}"
            # A batch for each record of the run, whatever the client has put into it.
            ends = [batch.next_offset for batch in log.batches]
            pairs.append((f"end of {name}", len(ends), max(step.after["log"][name]["ends"].values())))
            pairs.append((f"HW of {name}", sum(end <= log.hw for end in ends), step.after["hw"][name]))
        return ", ".join(f"{name} is {here}, not {there}" for name, here, there in pairs if here != there)


async def until(is_done: Callable[[], object]) -> None:
    """Wait until something has happened in the cluster."""
    while not is_done():
        await asyncio.sleep(POLL_S)


async def replayed(path: str, trace: Trace, protocol: Protocol, client: Client) -> Run:
    """Run a client once on a cluster that is taken through a run, and judge it."""
    run = Run()
    hand = Steering(trace, protocol, lambda *each: run.events.append(each))
    async with together(path, hand, trace.min_isr) as servers:
        playing = asyncio.ensure_future(hand.play())
        async with asyncio.timeout(CLIENT_S):
            await client(servers, run.say)
            await playing
        log = await committed(hand.hosts)
    run.findings += judge([text for lane, text in run.events if lane < 0], {0: log})
    return run
