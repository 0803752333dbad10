"""A job queue that delivers at least once: the implementation of queue.spec.

A method returns what it gives, or whether it was done; where it returns None or False, nothing has changed.
"""

from collections import deque
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Claim:
    """The right to acknowledge a job, until it expires; the receipt differs from that of any other claim."""

    job: str
    worker: str
    receipt: int


@dataclass
class WorkQueue:
    """Jobs are waiting, claimed or done."""

    waiting: deque[str] = field(default_factory=deque)
    claims: dict[str, Claim] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    receipts: int = 0

    def put(self, job: str) -> bool:
        """Add a job; not one that the queue has had already."""
        if job in self.waiting or job in self.claims or job in self.done:
            return False
        self.waiting.append(job)
        return True

    def claim(self, worker: str) -> Claim | None:
        """Deliver the oldest job to a worker."""
        if not self.waiting:
            return None
        self.receipts += 1
        claim = Claim(self.waiting.popleft(), worker, self.receipts)
        self.claims[claim.job] = claim
        return claim

    def expire(self, job: str) -> bool:
        """End the claim of a job, which is then delivered again."""
        if self.claims.pop(job, None) is None:
            return False
        self.waiting.append(job)
        return True

    def acknowledge(self, claim: Claim) -> bool:
        """Note that a job is done; the worker's claim must not have expired."""
        if self.claims.get(claim.job) != claim:
            return False
        del self.claims[claim.job]
        self.done.add(claim.job)
        return True
