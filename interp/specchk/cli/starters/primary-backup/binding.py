"""primary_backup.spec and node.py: which call is which action, and what nodes mean in the spec's words."""

from dataclasses import dataclass, field
from typing import Any

from node import Node

from specchk import Accepted, Answer, At, BadCode, BadSpec, Binding, Impossible, Refused, action, project


@dataclass
class World:
    """The disks, the processes of the nodes that are up, and what the client has written and heard."""

    disks: dict[str, list[int]]
    nodes: dict[str, Node]
    written: int = 0
    acked: set[int] = field(default_factory=set)

    def lengths(self, name: str) -> list[int]:
        """The lengths of the logs of all other nodes that are up."""
        return [len(node.log) for other, node in self.nodes.items() if other != name]

    @property
    def primary(self) -> str | None:
        """The node that leads."""
        return next((name for name, node in self.nodes.items() if node.leads), None)


class PrimaryBackupBinding(Binding[World]):
    """The network, the client and the detector of crashes are the binding's."""

    spec, model = "primary_backup.spec", "two"
    gate = (At("two"), At("three"))  # the models whose steps the implementation takes
    # Errors that the gate must detect: a model with a flaw, and a wrong line in the implementation.
    controls = (
        BadSpec("any backup takes over", "any_backup"),
        BadCode("one backup is enough", Node.acknowledged, "min(lengths", "max(lengths", "three"),
    )

    def start(self) -> World:
        """A system in the spec's initial state."""
        disks: dict[str, list[int]] = {name: [] for name in self.names}
        return World(disks, {name: Node(disk) for name, disk in disks.items()})

    @property
    def names(self) -> tuple[str, ...]:
        """The elements of the spec's sort `Node`."""
        return next(sort.members for sort in self.program.sorts if sort.name == "Node")

    @project
    def state(self, world: World) -> dict[str, Any]:
        """All variables of the spec; the log of a node that is down is read from its disk."""
        return {
            "up": set(world.nodes), "primary": world.primary,
            "log": {name: tuple(disk) for name, disk in world.disks.items()},
            "written": world.written, "acked": world.acked,
        }  # fmt: skip

    @action("take_over")
    def take_over(self, world: World, name: str) -> Answer:
        """A node detects that there is no primary."""
        if world.primary is not None or name not in world.nodes:
            return Impossible("there is a primary, or the node is down")
        return answer(world.nodes[name].take_over(world.lengths(name)))

    @action("write")
    def write(self, world: World, name: str) -> Answer:
        """A client sends the next write to a node."""
        if name not in world.nodes or world.written == self.constants["MaxWrites"]:
            return Impossible("the node is down, or the model has no further writes")
        is_done = world.nodes[name].write(world.written + 1)
        world.written += is_done
        return answer(is_done)

    @action("replicate")
    def replicate(self, world: World, primary: str, backup: str) -> Answer:
        """The primary sends the next write, and the backup stores it."""
        if primary not in world.nodes or backup not in world.nodes:
            return Impossible("a node is down")
        position = len(world.nodes[backup].log)
        value = world.nodes[primary].following(position)
        return answer(value is not None and world.nodes[backup].store(position, value))

    @action("acknowledge")
    def acknowledge(self, world: World, name: str, write: int) -> Answer:
        """A node replies to the client."""
        if name not in world.nodes or write in world.acked:
            return Impossible("the node is down, or has replied already")
        is_done = write in world.nodes[name].acknowledged(world.lengths(name))
        world.acked |= {write} if is_done else set()
        return answer(is_done)

    @action("crash")
    def crash(self, world: World, name: str) -> Answer:
        """The process of a node ends."""
        if name not in world.nodes or len(world.nodes) == 1:
            return Impossible("the node is down, or the last one")
        del world.nodes[name]
        return Accepted()

    @action("rejoin")
    def rejoin(self, world: World, name: str, primary: str) -> Answer:
        """A new process starts with a copy of the primary's log."""
        if name in world.nodes or primary != world.primary:
            return Impossible("the node is up, or there is no such primary")
        world.disks[name] = list(world.disks[primary])
        world.nodes[name] = Node(world.disks[name])
        return Accepted()


def answer(is_done: bool) -> Answer:
    """Report whether the implementation took the step; it also gets steps that the spec forbids."""
    return Accepted() if is_done else Refused("the node refuses it")
