"""The oracles of a cluster with several partitions: each promise is checked for each partition.

A broken one names its partition.  Not here: the promises (`promises`), and how each is checked (`oracles`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import fields

from replog.sim.cluster.node import Node
from replog.sim.cluster.views import NodeView, PartitionView
from replog.sim.cluster.world import Observer, World
from replog.sim.oracles.oracles import Figures, Oracles
from replog.sim.oracles.promises import ViolationError


class SeveralOracles(Observer):
    """The oracles of each partition, by name."""

    def __init__(self, partitions: Iterable[str], min_isr: int) -> None:
        self.parts = {name: Oracles(min_isr) for name in partitions}
        self._views: dict[str, PartitionView] = {}

    def view(self, world: World, partition: str) -> PartitionView:
        """Return the world restricted to this partition."""
        if partition not in self._views:
            self._views[partition] = PartitionView(world, partition)
        return self._views[partition]

    def _each(self, world: World, check: Callable[[Oracles, PartitionView], None]) -> None:
        for name, oracles in self.parts.items():
            try:
                check(oracles, self.view(world, name))
            except ViolationError as error:
                raise ViolationError(error.oracle, f"{name}: {error.detail}") from error

    def changed(self, world: World, node: Node) -> None:
        """Check a node that has handled an event."""
        self._each(world, lambda oracles, view: oracles.changed(view, view.nodes[node.broker_id]))

    def decided(self, world: World) -> None:
        """Check the controller's decision, if there is a new one."""
        self._each(world, lambda oracles, view: oracles.decided(view))

    def compare_logs(self, world: World) -> None:
        """Compare all pairs of logs of a partition."""
        self._each(world, lambda oracles, view: oracles.compare_logs(view))

    def check_disks(self, world: World) -> None:
        """Check that every disk would recover the state of its process."""
        self._each(world, lambda oracles, view: oracles.check_disks(view))

    def promise_of(self, node: Node) -> Callable[[], None]:
        """Return the check that an imminent power loss loses no flushed record."""
        checks = [oracles.promise_of(NodeView(node, name)) for name, oracles in self.parts.items()]

        def check_all() -> None:
            for check in checks:
                check()

        return check_all

    @property
    def lossy(self) -> dict[int, int]:
        """Return the nodes that have lost data: none, since several partitions are flushed."""
        return {}

    @property
    def checks(self) -> Counter[str]:
        """Return the number of checks by each oracle, over all partitions."""
        return sum((oracles.checks for oracles in self.parts.values()), Counter())

    @property
    def figures(self) -> Figures:
        """Return the history of the cluster, over all partitions."""
        parts = [oracles.figures for oracles in self.parts.values()]
        return Figures(*(sum(getattr(part, field.name) for part in parts) for field in fields(Figures)))
