"""The binding on replog's real store: every disk effect becomes bytes in files, read back after a crash.

As `binding.py`, with `replog.store` on the simulator's file system under each broker.  So what the
protocol believes of its log and what the files say are compared at every crash and restart.

Not observed: `flushed`.  A store may sync more than the spec asks for (it does when it truncates, and
when it seals a segment), so models with power losses are not for this binding; the simulator's
oracles, which cut unsynced bytes, look after them.
"""

from __future__ import annotations

from types import MappingProxyType

from binding import BROKER_RULES, ReplogBinding
from replog.core.protocol import CURRENT
from replog.sim.stored import KEY, StoreStorage
from replog_cluster import Cluster, Rules, new_cluster
from specchk.conform.binding import BindingError, Mistake, project
from specchk.ir.program import Program


class FilesStorage(StoreStorage):
    """A disk with a Kafka log directory, and its HW checkpoint to be seen."""

    __slots__ = ()

    @property
    def hw_checkpoint(self) -> int:
        """Return the HW in replication-offset-checkpoint, or 0."""
        return self._opened().high_watermarks.get(KEY, 0)

    def copy(self) -> FilesStorage:
        """Return a copy that opens its files anew."""
        return self.onto(FilesStorage())


class FilesBinding(ReplogBinding):
    """replog's cores on replog's files."""

    unobserved = MappingProxyType({"flushed": "a store may sync more than the spec asks for"})

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        if self.constants["MaxPowerLosses"]:
            hint = "choose a model with `MaxPowerLosses` 0: this binding does not see what is synced"
            raise BindingError((Mistake("the model has power losses", hint),))

    def start(self) -> Cluster:
        """Return a new cluster on empty disks."""
        leader = self.id(self.constants["first_leader"])
        rules = Rules(
            len(self.names), leader, self.constants["min_isr"], BROKER_RULES, CURRENT, FilesStorage
        )
        return new_cluster(rules)

    @project
    def seen(self, cluster: Cluster) -> dict[str, object]:
        """Return every variable of the spec but `flushed`."""
        state = self.state(cluster)
        del state["flushed"]
        return state
