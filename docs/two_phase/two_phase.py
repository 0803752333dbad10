"""Two-phase commit with presumed abort: a coordinator, its participants, and the logs that outlive them.

A process is an object that is made of its log; when it dies, what was not forced is lost.
"""

WORKING, PREPARED, COMMITTED, ABORTED = "working", "prepared", "committed", "aborted"
UNDECIDED, COMMIT, ABORT = "undecided", "commit", "abort"


class Log:
    """Entries on disk, and those that wait to be written there."""

    def __init__(self) -> None:
        self.forced: list[str] = []
        self.waiting: list[str] = []

    def write(self, entry: str) -> None:
        """Add an entry; it is on disk after the next `force`."""
        self.waiting.append(entry)

    def force(self) -> None:
        """Have everything on disk."""
        self.forced += self.waiting
        self.waiting.clear()

    def recover(self, otherwise: str) -> str:
        """Return the last entry that a new process finds."""
        self.waiting.clear()
        return self.forced[-1] if self.forced else otherwise


class Participant:
    """One that may commit or abort; as long as it has not voted, it may abort on its own."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.state = log.recover(WORKING)

    def prepare(self) -> bool:
        """Vote yes, once; from then on only the coordinator decides."""
        return self.state == WORKING and self._enter(PREPARED)

    def give_up(self) -> bool:
        """Abort without a vote, if that is still possible."""
        return self.state == WORKING and self._enter(ABORTED)

    def learn(self, outcome: str) -> bool:
        """Do what the coordinator decided."""
        target = COMMITTED if outcome == COMMIT else ABORTED
        return self.state in (WORKING, PREPARED) and self._enter(target)

    def _enter(self, state: str) -> bool:
        self.log.write(state)
        self.log.force()
        self.state = state
        return True


class Coordinator:
    """Decides once: commit if all have voted yes, abort at any time before."""

    def __init__(self, participants: set[str], log: Log) -> None:
        self.participants = participants
        self.log = log
        self.votes: set[str] = set()
        self.decision = log.recover(UNDECIDED)

    def recover(self) -> None:
        """Go on after a crash: without a decision on disk nobody was told one, so it is abort."""
        self.abort()

    def receive(self, voter: str) -> bool:
        """Take a yes; it may come twice."""
        if self.decision == UNDECIDED:
            self.votes.add(voter)
        return self.decision == UNDECIDED

    def commit(self) -> bool:
        """Decide to commit, if everybody has voted."""
        return self.votes == self.participants and self._decide(COMMIT)

    def abort(self) -> bool:
        """Decide to abort: a vote took too long."""
        return self._decide(ABORT)

    def _decide(self, decision: str) -> bool:
        if self.decision != UNDECIDED:
            return False
        self.log.write(decision)
        self.log.force()
        self.decision = decision
        return True
