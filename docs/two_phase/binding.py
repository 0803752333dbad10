"""two_phase.spec and two_phase.py: which call is which action, and what the processes' state means."""

from dataclasses import dataclass, field

from two_phase import UNDECIDED, Coordinator, Log, Participant

from specchk.conform.binding import Accepted, Answer, Binding, Impossible, Refused, action, project

DOWN = Impossible("no process runs there")


@dataclass
class World:
    """The processes, None where one is down; their logs; and the votes on the network."""

    logs: dict[str, Log]
    participants: dict[str, Participant | None]
    coordinator_log: Log
    coordinator: Coordinator | None
    voted: set[str] = field(default_factory=set)
    crashes: int = 0


class TwoPhaseBinding(Binding[World]):
    """Every variable is observed; of a process that is down, what the next one will find on disk."""

    spec, model = "two_phase.spec", "two"

    def start(self) -> World:
        """Everybody works, nobody has voted."""
        names = self.program.sorts[0].members
        logs, log = {name: Log() for name in names}, Log()
        return World(logs, {n: Participant(logs[n]) for n in names}, log, Coordinator(set(names), log))

    @project
    def state(self, world: World) -> dict[str, object]:
        """Return the spec's variables."""
        seen = {name: one or Participant(world.logs[name]) for name, one in world.participants.items()}
        known = world.coordinator or Coordinator(set(seen), world.coordinator_log)
        return {
            "state": {name: one.state for name, one in seen.items()},
            "alive": {name for name, one in world.participants.items() if one is not None},
            "voted": world.voted, "heard": known.votes, "decision": known.decision,
            "leads": world.coordinator is not None, "crashes": world.crashes,
        }  # fmt: skip

    @action("prepare")
    def prepare(self, world: World, name: str) -> Answer:
        """A yes goes to the network."""
        answer = self.ask(world.participants[name], "prepare")
        world.voted |= {name} if answer == Accepted() else set()
        return answer

    @action("give_up")
    def give_up(self, world: World, name: str) -> Answer:
        """The participant's timer rings."""
        return self.ask(world.participants[name], "give_up")

    @action("hear")
    def hear(self, world: World, name: str) -> Answer:
        """The network delivers a vote, perhaps not for the first time."""
        if name not in world.voted:
            return Impossible("there is no such vote")
        return self.ask(world.coordinator, "receive", name)

    @action("decide_commit")
    def decide_commit(self, world: World) -> Answer:
        """The coordinator looks whether it has all votes."""
        return self.ask(world.coordinator, "commit")

    @action("decide_abort")
    def decide_abort(self, world: World) -> Answer:
        """The coordinator's timer rings."""
        return self.ask(world.coordinator, "abort")

    @action("learn")
    def learn(self, world: World, name: str) -> Answer:
        """A participant hears of the decision."""
        if world.coordinator is None or world.coordinator.decision == UNDECIDED:
            return Impossible("nobody can tell")
        return self.ask(world.participants[name], "learn", world.coordinator.decision)

    @action("crash")
    def crash(self, world: World, name: str) -> Answer:
        """A participant's process dies."""
        if world.participants[name] is None or world.crashes == self.constants["MaxCrashes"]:
            return Impossible("no process, or no more crashes in this model")
        world.participants[name], world.crashes = None, world.crashes + 1
        return Accepted()

    @action("restart")
    def restart(self, world: World, name: str) -> Answer:
        """A new process starts with what is on disk."""
        if world.participants[name] is not None:
            return Impossible("it is running")
        world.participants[name] = Participant(world.logs[name])
        return Accepted()

    @action("crash_coordinator")
    def crash_coordinator(self, world: World) -> Answer:
        """The coordinator's process dies."""
        if world.coordinator is None or world.crashes == self.constants["MaxCrashes"]:
            return Impossible("no process, or no more crashes in this model")
        world.coordinator, world.crashes = None, world.crashes + 1
        return Accepted()

    @action("restart_coordinator")
    def restart_coordinator(self, world: World) -> Answer:
        """A new one starts, and decides if it finds no decision."""
        if world.coordinator is not None:
            return Impossible("it is running")
        world.coordinator = Coordinator(set(world.participants), world.coordinator_log)
        world.coordinator.recover()
        return Accepted()

    def ask(self, process: object | None, call: str, *args: str) -> Answer:
        """Call a process, if there is one."""
        if process is None:
            return DOWN
        return Accepted() if getattr(process, call)(*args) else Refused("it says no")
