"""The placement of the replicas of a new topic on brokers: the seeds' rule and Kafka's.

Theory: S56, I19 and example F7 of the project's Kafka reference
(AdminUtils.assignReplicasToBrokersRackUnaware).

    first replica   (partition + start_index) mod n
    replica j >= 1  (first + 1 + (shift + j - 1) mod (n - 1)) mod n;   shift + 1 after each full pass

With start_index 0 and shift 0 the first n partitions are placed according to S56: (i + j) mod n.  Kafka draws
both at random; here they are parameters, because the core is deterministic.  Not here: racks.
"""

from __future__ import annotations

from collections.abc import Sequence


def assign_simple(brokers: Sequence[int], partitions: int, replication: int) -> tuple[tuple[int, ...], ...]:
    """Place replica j of partition i on broker (i + j) mod n, in order of broker id (S56)."""
    ordered = _checked(brokers, replication)
    n = len(ordered)
    return tuple(tuple(ordered[(i + j) % n] for j in range(replication)) for i in range(partitions))


def assign(
    brokers: Sequence[int], partitions: int, replication: int, start_index: int = 0, shift: int = 0
) -> tuple[tuple[int, ...], ...]:
    """Place partitions as Kafka does (F7); ValueError if there are fewer brokers than replicas."""
    ordered = _checked(brokers, replication)
    n = len(ordered)
    placed: list[tuple[int, ...]] = []
    for partition in range(partitions):
        # Without the shift every pass would repeat the same pairs of brokers, and the load of a failed leader
        # would always move to the same neighbour.
        if partition and partition % n == 0:
            shift += 1
        first = (partition + start_index) % n
        others = ((first + 1 + (shift + j) % (n - 1)) % n for j in range(replication - 1))
        placed.append(tuple(ordered[index] for index in (first, *others)))
    return tuple(placed)


def _checked(brokers: Sequence[int], replication: int) -> list[int]:
    """Return the distinct brokers in order; ValueError if there are too few."""
    ordered = sorted(set(brokers))
    if not 1 <= replication <= len(ordered):
        raise ValueError(f"{replication} replicas need as many brokers; there are {len(ordered)}")
    return ordered
