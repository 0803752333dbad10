"""two_phase.spec and two_phase.py: which call is which action, and what the processes' state means."""

from dataclasses import dataclass, field
from typing import Any

from two_phase import UNDECIDED, Coordinator, Log, Participant

from specchk import Accepted, Answer, At, BadCode, BadSpec, Binding, Impossible, Refused, action, project

LEADER = "coordinator"


@dataclass
class World:
    """The processes, None where one is down; their logs; and the votes on the network."""

    logs: dict[str, Log]
    processes: dict[str, Any]
    voted: set[str] = field(default_factory=set)
    crashes: int = 0


class TwoPhaseBinding(Binding[World]):
    """Every variable is observed; of a process that is down, what the next one will find on disk."""

    spec, model = "two_phase.spec", "two"
    gate = (At("two"), At("three"))
    controls = (
        BadSpec("nobody waits for votes", "hasty_coordinator"),
        BadCode("prepared in memory only", Participant._enter, "self.log.force()", "pass", "two"),
    )

    def start(self) -> World:
        """Everybody works, nobody has voted."""
        logs = {name: Log() for name in (*self.program.sorts[0].members, LEADER)}
        return World(logs, {name: self.process(logs, name) for name in logs})

    def process(self, logs: dict[str, Log], name: str) -> Participant | Coordinator:
        """Make a process of what is on its disk."""
        return Coordinator(set(logs) - {LEADER}, logs[name]) if name == LEADER else Participant(logs[name])

    @project
    def state(self, world: World) -> dict[str, object]:
        """Return the spec's variables."""
        seen = {name: one or self.process(world.logs, name) for name, one in world.processes.items()}
        leader = seen.pop(LEADER)
        return {
            "state": {name: one.state for name, one in seen.items()},
            "alive": {name for name in seen if world.processes[name] is not None},
            "voted": world.voted, "heard": leader.votes, "decision": leader.decision,
            "leads": world.processes[LEADER] is not None, "crashes": world.crashes,
        }  # fmt: skip

    @action("prepare")
    def prepare(self, world: World, name: str) -> Answer:
        """A yes goes to the network."""
        answer = self.ask(world, name, "prepare")
        world.voted |= {name} if answer == Accepted() else set()
        return answer

    @action("give_up")
    def give_up(self, world: World, name: str) -> Answer:
        """The participant's timer rings."""
        return self.ask(world, name, "give_up")

    @action("hear")
    def hear(self, world: World, name: str) -> Answer:
        """The network delivers a vote, perhaps not for the first time."""
        return self.ask(world, LEADER, "receive", name) if name in world.voted else Impossible("no such vote")

    @action("decide_commit")
    def decide_commit(self, world: World) -> Answer:
        """The coordinator looks whether it has all votes."""
        return self.ask(world, LEADER, "commit")

    @action("decide_abort")
    def decide_abort(self, world: World) -> Answer:
        """The coordinator's timer rings."""
        return self.ask(world, LEADER, "abort")

    @action("learn")
    def learn(self, world: World, name: str) -> Answer:
        """A participant hears of the decision."""
        leader = world.processes[LEADER]
        if leader is None or leader.decision == UNDECIDED:
            return Impossible("nobody can tell")
        return self.ask(world, name, "learn", leader.decision)

    @action("crash")
    def crash(self, world: World, name: str) -> Answer:
        """A process dies."""
        if world.processes[name] is None or world.crashes == self.constants["MaxCrashes"]:
            return Impossible("no process, or no more crashes in this model")
        world.processes[name], world.crashes = None, world.crashes + 1
        return Accepted()

    @action("restart")
    def restart(self, world: World, name: str) -> Answer:
        """A new process starts with what is on disk."""
        if world.processes[name] is not None:
            return Impossible("it is running")
        world.processes[name] = self.process(world.logs, name)
        return Accepted()

    @action("crash_coordinator")
    def crash_coordinator(self, world: World) -> Answer:
        """The coordinator's process dies."""
        return self.crash(world, LEADER)

    @action("restart_coordinator")
    def restart_coordinator(self, world: World) -> Answer:
        """A new one starts, and decides if it finds no decision."""
        answer = self.restart(world, LEADER)
        if answer == Accepted():
            world.processes[LEADER].recover()
        return answer

    def ask(self, world: World, name: str, call: str, *args: str) -> Answer:
        """Call a process, if there is one."""
        process = world.processes[name]
        if process is None:
            return Impossible("no process runs there")
        return Accepted() if getattr(process, call)(*args) else Refused("it says no")
