"""A lock with a lease: the implementation of lock.spec.

A method returns whether it was done; where it returns False, nothing has changed.
"""

from collections import deque


class Lock:
    """A lock that one client has at a time, and the clients that wait for it."""

    def __init__(self) -> None:
        self.holder: str | None = None
        self.queue: deque[str] = deque()

    def acquire(self, client: str) -> bool:
        """Take the lock if it is free."""
        if self.holder is not None:
            return False
        self.holder = client
        return True

    def enqueue(self, client: str) -> bool:
        """Wait for a lock that another client has."""
        if self.holder in (None, client) or client in self.queue:
            return False
        self.queue.append(client)
        return True

    def release(self, client: str) -> bool:
        """Give the lock back; a client whose lease has ended no longer has it."""
        return self.holder == client and self._hand_over()

    def expire(self) -> bool:
        """End the lease."""
        return self.holder is not None and self._hand_over()

    def _hand_over(self) -> bool:
        self.holder = self.queue.popleft() if self.queue else None
        return True
