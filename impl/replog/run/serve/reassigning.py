"""The requests about reassignments: AlterPartitionReassignments, ListPartitionReassignments (KIP-455).

A request is answered when the controller has accepted it, and not when the replicas are replaced.

Not here: what a reassignment does (`core.controller.reassignment`).
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType

from replog.core.controller import reassignment
from replog.core.messages import ReassignRequest
from replog.core.protocol import CURRENT
from replog.core.types import Error, MetadataImage, PartitionImage
from replog.run.partitions import key_of
from replog.run.serve.codec import Body
from replog.run.serve.host import Host
from replog.run.serve.records import PLAIN, Place, Shape
from replog.run.serve.topics import INVALID_REPLICATION_FACTOR, Begun, decided

TEXTS = MappingProxyType(
    {
        Error.UNKNOWN_TOPIC_OR_PARTITION: "there is no such partition",
        Error.INVALID_REPLICA_ASSIGNMENT: "the replicas must be brokers of the cluster, each once; a"
        " reassignment is not cancelled while only added replicas are in the ISR",
        INVALID_REPLICATION_FACTOR: "the number of replicas would change, which the request does not allow",
        Error.NO_REASSIGNMENT_IN_PROGRESS: "no reassignment of the partition is in progress",
        Error.REQUEST_TIMED_OUT: "the controller has not decided yet",
    }
)


def _target(image: PartitionImage) -> tuple[int, ...]:
    """Return the replicas that a partition has, or will have when its reassignment is complete."""
    return tuple(replica for replica in image.replicas if replica not in image.removing)


async def alter(host: Host, request: Body) -> Body:
    """Start, replace or cancel reassignments."""
    shape = Shape(answered_topics="responses")
    wanted = list(shape.places(request))
    may_change = request.get("allow_replication_factor_change", True)
    begun = [_begun(host, place, place.body["replicas"], may_change) for place in wanted]
    errors = zip(wanted, await decided(host, begun), strict=True)
    answers = ((place, {"error_code": e, "error_message": TEXTS.get(e)}) for place, e in errors)
    return {**shape.response(answers), "allow_replication_factor_change": may_change}


def _begun(host: Host, place: Place, target: tuple[int, ...] | None, may_change: bool) -> Begun:
    """Return what the controller is asked for a partition, or why it would refuse it."""
    image = host.image.partitions.get(place.partition)
    if image is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    error = reassignment.check(image, target, host.image.brokers, CURRENT)
    if error is not Error.NONE:
        return error
    if not may_change and target is not None and len(target) != len(_target(image)):
        return INVALID_REPLICATION_FACTOR
    wish = partial(_is_accepted, place.partition, target)
    return ReassignRequest(host.number(), place.partition, target), wish


def _is_accepted(name: str, target: tuple[int, ...] | None, image: MetadataImage) -> bool:
    now = image.partitions.get(name)
    return now is None or (not now.is_reassigning if target is None else _target(now) == target)


async def listed(host: Host, request: Body) -> Body:
    """List the reassignments in progress, of all partitions or of some."""
    wanted = request["topics"]
    names = None if wanted is None else {(t["name"], n) for t in wanted for n in t["partition_indexes"]}
    answers: list[tuple[Place, Body]] = []
    for name, image in sorted(host.image.partitions.items()):
        topic, number = key_of(name)
        if image.is_reassigning and (names is None or (topic, number) in names):
            answer = {
                "replicas": image.replicas,
                "adding_replicas": image.adding,
                "removing_replicas": image.removing,
            }
            answers.append((Place(topic, number, {}), answer))
    return PLAIN.response(answers)
