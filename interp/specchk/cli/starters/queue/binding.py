"""queue.spec and work_queue.py: which call is which action, and what a queue means in the spec's words."""

from dataclasses import dataclass, field
from typing import Any

from work_queue import Claim, WorkQueue

from specchk import Accepted, Answer, At, BadCode, BadSpec, Binding, Impossible, Refused, action, project


@dataclass
class World:
    """The queue, and what the workers have in their hands, whom the binding plays."""

    queue: WorkQueue = field(default_factory=WorkQueue)
    hands: dict[str, Claim] = field(default_factory=dict)


class QueueBinding(Binding[World]):
    """Each action of the spec is one call, except `drop`, which the queue does not see."""

    spec, model = "queue.spec", "two"
    gate = (At("two"), At("one_worker"))  # the models whose steps the implementation takes
    # Errors that the gate must detect: a model with a flaw, and a wrong line in the implementation.
    controls = (
        BadSpec("late acknowledgements count", "late_acknowledgement"),
        BadCode("any worker's claim will do", WorkQueue.acknowledge,
                "self.claims.get(claim.job) != claim", "claim.job not in self.claims", "two"),
    )  # fmt: skip

    def start(self) -> World:
        """A system in the spec's initial state."""
        return World()

    @project
    def state(self, world: World) -> dict[str, Any]:
        """All variables of the spec; the receipts are not among them."""
        queue = world.queue
        return {
            "waiting": tuple(queue.waiting),
            "claims": {job: claim.worker for job, claim in queue.claims.items()},
            "done": queue.done,
            "works_on": {w: world.hands[w].job if w in world.hands else None for w in self.workers},
        }

    @property
    def workers(self) -> tuple[str, ...]:
        """The elements of the spec's sort `Worker`."""
        return next(sort.members for sort in self.program.sorts if sort.name == "Worker")

    @action("put")
    def put(self, world: World, job: str) -> Answer:
        """A client adds a job."""
        return answer(world.queue.put(job))

    @action("claim")
    def claim(self, world: World, worker: str) -> Answer:
        """A worker requests a job."""
        if worker in world.hands:
            return Impossible("a worker that has a job does not request another")
        claim = world.queue.claim(worker)
        if claim is not None:
            world.hands[worker] = claim
        return answer(claim is not None)

    @action("expire")
    def expire(self, world: World, job: str) -> Answer:
        """The timer of a claim rings."""
        return answer(world.queue.expire(job))

    @action("acknowledge")
    def acknowledge(self, world: World, worker: str, job: str) -> Answer:
        """A worker reports that it is done, perhaps too late."""
        claim = world.hands.get(worker)
        if claim is None or claim.job != job:
            return Impossible("the worker does not have this job")
        is_done = world.queue.acknowledge(claim)
        if is_done:
            del world.hands[worker]
        return answer(is_done)

    @action("drop")
    def drop(self, world: World, worker: str) -> Answer:
        """A worker forgets its job."""
        if world.hands.pop(worker, None) is None:
            return Impossible("the worker has no job")
        return Accepted()


def answer(is_done: bool) -> Answer:
    """Report whether the implementation took the step; it also gets steps that the spec forbids."""
    return Accepted() if is_done else Refused("the queue refuses it")
