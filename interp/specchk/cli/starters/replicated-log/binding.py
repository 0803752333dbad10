"""replicated_log.spec and server.py: which call is which action, and what servers mean in the spec."""

from typing import Any

from server import Disk, Server

from specchk import Accepted, Answer, At, BadCode, BadSpec, Binding, Impossible, Refused, action, project

World = dict[str, Server]


class ReplicatedLogBinding(Binding[World]):
    """The network is the binding's: it delivers a message at once, or never."""

    spec, model = "replicated_log.spec", "three"
    gate = (At("three"), At("one_epoch"))  # the models whose steps the implementation takes
    # Errors that the gate must detect: a model with a flaw, and a wrong line in the implementation.
    controls = (
        BadSpec("votes without a comparison of logs", "any_vote"),
        BadCode("half is a majority", Server._is_majority, "2 * count >", "2 * count + 1 >=", "three"),
    )

    def start(self) -> World:
        """A system in the spec's initial state."""
        names = next(sort.members for sort in self.program.sorts if sort.name == "Server")
        return {name: Server(name, len(names), Disk()) for name in names}

    @project
    def state(self, world: World) -> dict[str, Any]:
        """All variables of the spec."""
        return {
            "epoch": {name: server.disk.epoch for name, server in world.items()},
            "log": {name: tuple(server.disk.log) for name, server in world.items()},
            "votes": {name: server.votes for name, server in world.items()},
            "leads": {name for name, server in world.items() if server.leads},
            "committed": {name: server.committed for name, server in world.items()},
        }

    @action("stand")
    def stand(self, world: World, name: str) -> Answer:
        """A server has not heard of a leader for some time."""
        if world[name].disk.epoch == self.constants["MaxEpoch"]:
            return Impossible("the model has no further epochs")
        world[name].stand()
        return Accepted()

    @action("vote")
    def vote(self, world: World, voter: str, candidate: str) -> Answer:
        """A candidate's request is delivered, and so is the reply."""
        request = world[candidate].request()
        if request is None:
            return Impossible("it is not a candidate")
        if not world[voter].vote(request):
            return Refused("the server does not vote for it")
        world[candidate].count(voter, request.epoch)
        return Accepted()

    @action("lead")
    def lead(self, world: World, name: str) -> Answer:
        """A candidate counts its votes."""
        return answer(world[name].lead())

    @action("append_entry")
    def append_entry(self, world: World, name: str) -> Answer:
        """A client sends an entry."""
        if len(world[name].disk.log) == self.constants["MaxLength"]:
            return Impossible("the model has no longer logs")
        return answer(world[name].append())

    @action("copy")
    def copy(self, world: World, follower: str, leader: str) -> Answer:
        """A leader's log is delivered."""
        copy = world[leader].copy()
        if copy is None or follower == leader:
            return Impossible("only a leader sends its log, to others")
        return answer(world[follower].receive(copy))

    @action("commit")
    def commit(self, world: World, name: str) -> Answer:
        """A leader counts the copies of its log; in this epoch a server has it from this leader."""
        disk = world[name].disk
        return answer(world[name].commit(sum(server.disk == disk for server in world.values())))

    @action("restart")
    def restart(self, world: World, name: str) -> Answer:
        """A process ends, and a new one starts with what is on disk."""
        world[name] = Server(name, len(world), world[name].disk)
        return Accepted()


def answer(is_done: bool) -> Answer:
    """Report whether the implementation took the step; it also gets steps that the spec forbids."""
    return Accepted() if is_done else Refused("the server refuses it")
