"""What is on the disks of a cluster, read again as restarting processes would read it."""

from __future__ import annotations

from replog.core.log.epochs import EpochCache
from replog_cluster import Cluster


def reopened(cluster: Cluster) -> Cluster:
    """Return the cluster with the log and the epoch cache of every running broker as its disk has them.

    HW stays: on disk is what was last checkpointed.  So do epochs that have no record yet, which a
    recovery drops.
    """
    found = cluster.copy()
    for node in found.nodes:
        if node.process is None:
            continue
        disk = node.storage.copy()
        disk.crash()
        log = disk.recover().log
        state = node.process.state
        empty = [entry for entry in state.log.epochs.entries if entry[1] >= log.leo]
        kept = [entry for entry in log.epochs.entries if entry[1] < log.leo]
        log.epochs = EpochCache((*kept, *empty))
        log.hw = state.log.hw
        state.log = log
    return found
