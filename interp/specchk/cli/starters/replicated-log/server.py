"""A server that keeps a copy of a replicated log: the implementation of replicated_log.spec.

Servers know of each other by messages alone, which the caller delivers. A method returns whether it was done;
where it returns False, nothing has changed.
"""

from dataclasses import dataclass, field


@dataclass
class Disk:
    """What outlives a process; the value of an entry is the epoch in which it was appended."""

    epoch: int = 0
    log: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class VoteRequest:
    """A candidate's request: its epoch, and how new its log is."""

    candidate: str
    epoch: int
    last: tuple[int, int]


@dataclass(frozen=True)
class Copy:
    """A leader's log, and the number of its entries that are committed."""

    epoch: int
    log: tuple[int, ...]
    committed: int


class Server:
    """The process of a server."""

    def __init__(self, name: str, servers: int, disk: Disk) -> None:
        self.name, self.servers, self.disk = name, servers, disk
        self.votes: set[str] = set()
        self.leads = False
        self.committed = 0

    @property
    def last(self) -> tuple[int, int]:
        """The epoch of the last entry, and the log's length: of two logs the newer one has more."""
        return (self.disk.log[-1] if self.disk.log else 0, len(self.disk.log))

    def stand(self) -> None:
        """Become a candidate in the next epoch."""
        self._follow(self.disk.epoch + 1)
        self.votes = {self.name}

    def request(self) -> VoteRequest | None:
        """What a candidate sends to the others."""
        return VoteRequest(self.name, self.disk.epoch, self.last) if self.votes else None

    def vote(self, request: VoteRequest) -> bool:
        """Vote, once in an epoch, for a candidate whose log is not older."""
        if request.epoch <= self.disk.epoch or request.last < self.last:
            return False
        self._follow(request.epoch)
        return True

    def count(self, voter: str, epoch: int) -> None:
        """Receive a vote."""
        if self.votes and epoch == self.disk.epoch:
            self.votes.add(voter)

    def lead(self) -> bool:
        """Become the leader, with the votes of a majority."""
        if self.leads or not self._is_majority(len(self.votes)):
            return False
        self.leads = True
        return True

    def append(self) -> bool:
        """Append an entry."""
        if self.leads:
            self.disk.log.append(self.disk.epoch)
        return self.leads

    def copy(self) -> Copy | None:
        """What a leader sends to the others."""
        return Copy(self.disk.epoch, tuple(self.disk.log), self.committed) if self.leads else None

    def receive(self, copy: Copy) -> bool:
        """Replace the log by the leader's, unless that leader is of an earlier epoch or there is no news."""
        has_news = tuple(self.disk.log) != copy.log or self.committed < copy.committed
        if copy.epoch < self.disk.epoch or not has_news:
            return False
        self._follow(copy.epoch)
        self.disk.log = list(copy.log)
        self.committed = max(self.committed, copy.committed)
        return True

    def commit(self, copies: int) -> bool:
        """Commit the log if a majority has the same in this epoch, and its last entry is of this epoch."""
        is_new = self.committed < len(self.disk.log) and self.last[0] == self.disk.epoch
        if not self.leads or not is_new or not self._is_majority(copies):
            return False
        self.committed = len(self.disk.log)
        return True

    def _follow(self, epoch: int) -> None:
        self.disk.epoch, self.votes, self.leads = epoch, set(), False

    def _is_majority(self, count: int) -> bool:
        return 2 * count > self.servers
