"""Recorded chaos of brokers in one loop, in simulated time, and its validation."""

import asyncio
import json
import selectors
from contextlib import suppress
from functools import cache, partial
from random import Random
from unittest.mock import patch

from clusters import BROKERS, Cluster
from serving import batch

from laws.sources import ROOT
from live_tracing import LiveTracing
from replog.core.broker.state import Config
from replog.core.types import CONTROLLER, BrokerState
from replog.live import merging
from replog.live.recorder import watch
from replog.run.serve import host
from replog.run.serve.host import GROUPS
from replog.run.serve.links import decode, encode
from specchk.compile.instantiate import instantiate_steps
from specchk.conform.contract.recording import Recording, parse
from specchk.conform.recordings.validate import Explained, Validator
from specchk.lang.frontend import check

CONFIG = partial(Config, lag_ms=700, hw_checkpoint_ms=400, fetch_wait_ms=150, fetch_timeout_ms=500)
TOPICS = ("t-0", "u-0")


class Skipping(selectors.SelectSelector):
    """A selector that waits for nothing: time goes on at once to when the next timer is due."""

    now = 0.0

    def select(self, timeout=None):
        ready = super().select(0)
        if not ready and timeout:
            self.now += timeout
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    """A loop with the time of its selector."""

    def __init__(self):
        self.selector = Skipping()
        super().__init__(self.selector)

    def time(self):
        return self.selector.now


class Chaotic(Cluster):
    """A recorded cluster whose messages take time; they are in order on each link, as on a connection."""

    def __init__(self, path, seed):
        self.random = Random(seed)
        self.due, self.cut, self.slow, self.tasks = {}, set(), set(), set()
        self.lines, self.failed = path / "lines", []
        super().__init__(path)

    def watch(self, running):
        watch(self.lines, running)

    def carry(self, source, to, action):
        """Do something once a message can have arrived, unless a process it is for has ended."""
        loop, link = asyncio.get_running_loop(), (source, to)
        after_s = self.random.expovariate(1 / (0.6 if link in self.slow else 0.004))
        self.due[link] = max(self.due.get(link, 0.0) + 1e-6, loop.time() + after_s)
        loop.call_at(self.due[link], action)

    def _deliver(self, to, message):
        made, frame = self.brokers.get(to), encode(message)[4:]

        def arrive():
            if made is not None and self.brokers.get(to) is made and (CONTROLLER, to) not in self.cut:
                made.host.receive(CONTROLLER, decode(frame))

        self.carry(CONTROLLER, to, arrive)

    def _order(self, made, broker, order):
        if self.brokers.get(broker) is made and (CONTROLLER, broker) not in self.cut:
            frame = encode(order)[4:]
            self.carry(broker, CONTROLLER, lambda: self.controlling.receive(broker, decode(frame)))

    async def _ask(self, made, broker, to, message):
        # A link that is cut brings nothing, and its end is not noticed: the core asks again.
        if frozenset((broker, to)) not in self.cut:
            await self._trip(broker, to)
            with suppress(ConnectionError):
                await super()._ask(made, broker, to, message)

    async def _trip(self, source, to):
        arrived = asyncio.get_running_loop().create_future()
        self.carry(source, to, lambda: arrived.done() or arrived.set_result(None))
        await arrived

    def kill(self, broker):
        """Kill a process; the controller hears of it after all that it has sent."""
        self.end(self.brokers.pop(broker))
        self.carry(broker, CONTROLLER, lambda: self.controlling.expire(broker))

    def end(self, made):
        """Kill a process; one with a planted flaw may have ended by an assertion of its own."""
        try:
            made.die()
        except AssertionError as error:
            self.failed.append(error)

    def disconnect(self, broker):
        """End the connection of a broker that lives with its controller."""
        self.cut.add((CONTROLLER, broker))
        self.carry(broker, CONTROLLER, lambda: self.controlling.expire(broker))

    def connect(self, broker):
        """Connect it again."""
        self.cut.discard((CONTROLLER, broker))
        if broker in self.brokers:
            self.brokers[broker].host.beat()

    async def produce(self, topic, number):
        """Send a batch to a broker that leads, or did."""
        alive = [made for made in self.brokers.values() if topic in made.host.image.partitions]
        if alive:
            leader = self.random.choice(alive).host.image.partitions[topic].leader
            records = batch(*(f"{number}.{n}" for n in range(1 + self.random.randrange(3))))
            if leader in self.brokers:
                with suppress(ConnectionError):
                    await self.brokers[leader].produce(records, topic=topic.partition("-")[0], wait_ms=3_000)

    def spawn(self, work):
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def strike(self):
        """Do one thing to the cluster, and undo it later."""
        victim = self.random.choice(BROKERS)
        pause_s = self.random.uniform(0.05, 1.6)
        match self.random.choice(("kill", "kill", "disconnect", "cut", "cut", "slow")):
            case "kill" if victim in self.brokers:
                self.kill(victim)
                await asyncio.sleep(pause_s / 2)
                self.cut.discard((CONTROLLER, victim))
                self.start(victim)
            case "disconnect" if victim in self.brokers and (CONTROLLER, victim) not in self.cut:
                self.disconnect(victim)
                await asyncio.sleep(pause_s / 4)
                self.connect(victim)
            case "slow":
                # Of several brokers one learns late what the controller has decided, and it of this one.
                links = {(CONTROLLER, victim), (victim, CONTROLLER)}
                self.slow |= links
                await asyncio.sleep(3 * pause_s)
                self.slow -= links
            case "cut":
                link = frozenset((victim, self.random.choice([b for b in BROKERS if b != victim])))
                self.cut.add(link)
                await asyncio.sleep(pause_s)
                self.cut.discard(link)

    async def chaos(self, seconds, every_s=0.8):
        """Create topics, write to them, and disturb the cluster."""
        some = self.brokers[0].host
        await some.until(lambda image: GROUPS in image.partitions and len(image.brokers) == len(BROKERS)
                         and all(b.state is BrokerState.ACTIVE for b in image.brokers.values()))  # fmt: skip
        await self.brokers[0].create(*(name.partition("-")[0] for name in TOPICS))
        loop, number = asyncio.get_running_loop(), 0
        end, struck = loop.time() + seconds, loop.time() + 1.0
        while loop.time() < end:
            number += 1
            for name in TOPICS:
                self.spawn(self.produce(name, number))
            if every_s and loop.time() > struck:
                struck = loop.time() + self.random.expovariate(1 / every_s)
                self.spawn(self.strike())
            await asyncio.sleep(self.random.expovariate(1 / 0.05))
        for made in list(self.brokers.values()):
            self.end(made)
        for task in self.tasks:
            task.cancel()


def recorded(path, seed=0, seconds=4.0, every_s=0.8, flawed=False):
    """Return the lines of each partition's recording; unless `flawed`, no broker may have failed."""
    path.mkdir(exist_ok=True)

    async def scenario():
        cluster = Chaotic(path, seed)
        await cluster.chaos(seconds, every_s)
        assert flawed or not cluster.failed

    with (
        patch.object(host, "Config", CONFIG), patch.object(host, "CHECKPOINT_S", 0.5),
        asyncio.Runner(loop_factory=SimulatedLoop) as runner,
    ):  # fmt: skip
        runner.run(scenario())
    return [
        [json.dumps(line) for line in merging.merged(name, lines)]
        for name, lines in merging.read(path / "lines").items()
    ]


@cache
def validator(constants: tuple[tuple[str, str], ...]) -> Validator:
    checked = check(str(ROOT / "spec" / "live.spec"))
    return Validator(instantiate_steps(checked, LiveTracing.model, dict(constants)))


def explained(lines: list[str]) -> Explained:
    return explained_recording(parse("a run", lines))


def explained_recording(recording: Recording) -> Explained:
    one = validator(tuple(sorted(LiveTracing.constants(recording).items())))
    return one.explain(LiveTracing(one.program, recording), recording)
