"""lock.spec and lock.py: which call is which action, and what a lock means in the spec's words."""

from typing import Any

from lock import Lock

from specchk import Accepted, Answer, At, BadCode, BadSpec, Binding, Refused, action, project


class LockBinding(Binding[Lock]):
    """Each action of the spec is one call."""

    spec, model = "lock.spec", "two"
    gate = (At("two"), At("three"))  # the models whose steps the implementation takes
    # Errors that the gate must detect: a model with a flaw, and a wrong line in the implementation.
    controls = (
        BadSpec("the lock is not handed over", "kept_free"),
        BadCode("the last in the queue is served first", Lock._hand_over, "popleft()", "pop()", "three"),
    )

    def start(self) -> Lock:
        """A system in the spec's initial state."""
        return Lock()

    @project
    def state(self, lock: Lock) -> dict[str, Any]:
        """All variables of the spec; an option is None or the value."""
        return {"holder": lock.holder, "queue": tuple(lock.queue)}

    @action("acquire")
    def acquire(self, lock: Lock, client: str) -> Answer:
        """A client calls while the lock is free."""
        return answer(lock.acquire(client))

    @action("enqueue")
    def enqueue(self, lock: Lock, client: str) -> Answer:
        """A client calls while another one has the lock."""
        return answer(lock.enqueue(client))

    @action("release")
    def release(self, lock: Lock, client: str) -> Answer:
        """A client gives the lock back."""
        return answer(lock.release(client))

    @action("expire")
    def expire(self, lock: Lock) -> Answer:
        """The timer of the lease rings."""
        return answer(lock.expire())


def answer(is_done: bool) -> Answer:
    """Report whether the implementation took the step; it also gets steps that the spec forbids."""
    return Accepted() if is_done else Refused("the lock refuses it")
