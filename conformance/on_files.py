"""The binding to replog's real store: every disk effect writes bytes to files, which are read after a crash.

Like `binding.py`, with `replog.store` on the simulator's file system under each broker.  So the
protocol's view of its log and the files are compared at every crash and restart.

Not observed: `flushed`.  A store may sync more than the spec requires (it does when it truncates, and
when it seals a segment), so models with power losses are not for this binding; the simulator's
oracles, which cut unsynced bytes, check them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType

from binding import ReplogBinding
from replog.sim.cluster.storage import StorageError
from replog.sim.disks.disk import CrashedError
from replog.sim.disks.stored import StoreStorage
from replog_cluster import Cluster, Rules
from specchk.conform.contract.binding import Answer, BindingError, Mistake, interruption, project
from specchk.ir.program import Program


class FilesBinding(ReplogBinding):
    """replog's cores on replog's files."""

    unobserved = MappingProxyType({"flushed": "a store may sync more than the spec asks for"})

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        if self.constants["MaxPowerLosses"]:
            hint = "choose a model with `MaxPowerLosses` 0: this binding does not see what is synced"
            raise BindingError((Mistake("the model has power losses", hint),))

    def cluster_rules(self) -> Rules:
        """Return the rules with empty disks for replog's store."""
        return replace(super().cluster_rules(), disk=StoreStorage)

    @interruption("crash", aside=("committed", "acked"))
    def dies(self, cluster: Cluster, broker: str, moment: int, step: Callable[[], Answer]) -> str:
        """Execute a step in which a broker's machine dies in its `moment`-th change of its disk.

        What clients have seen of that step is aside: nothing yet, though the spec has it seen at once.
        """
        number = self.id(broker)
        disk = cluster.nodes[number].storage
        assert isinstance(disk, StoreStorage)
        if cluster.state(number) is None:
            return ""
        disk.open()
        disk.fs.faults.crash_in = moment
        with suppress(StorageError, CrashedError):
            step()
        if not disk.fs.is_dead:
            return ""
        where = disk.fs.died_in
        self.crash(cluster, broker)
        return f"in `{where}`"

    @project
    def seen(self, cluster: Cluster) -> dict[str, object]:
        """Return every variable of the spec except `flushed`."""
        state = self.state(cluster)
        del state["flushed"]
        return state
