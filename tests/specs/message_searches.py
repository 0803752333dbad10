"""Plain searches of the examples with sets of messages, for comparing counts.

Written from the papers and TLA+ modules, with Python's own sets: nothing of specchk is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Any

State = Any


def count(initial: State, successors: Callable[[State], Iterable[State]]) -> tuple[int, int]:
    """The number of states and of levels."""
    seen, frontier, depth = {initial}, [initial], 0
    while frontier:
        depth += 1
        new = {after for state in frontier for after in successors(state)} - seen
        seen |= new
        frontier = list(new)
    return len(seen), depth


def put(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return (*values[:index], value, *values[index + 1 :])


BOARD = ("abbc", "abbc", "deef", "dghf", "i..j")


def sliding_block() -> tuple[int, int]:
    """All boards, by moves of one block by one cell."""
    names = sorted(set("".join(BOARD)) - {"."})
    cells = {
        n: frozenset((x, y) for y, row in enumerate(BOARD) for x, c in enumerate(row) if c == n)
        for n in names
    }
    return count(frozenset(cells.values()), _slides)


def _slides(board: frozenset[frozenset[tuple[int, int]]]) -> Iterator[State]:
    for block in board:
        taken = frozenset(cell for other in board if other != block for cell in other)
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            moved = frozenset((x + dx, y + dy) for x, y in block)
            if all(0 <= x < 4 and 0 <= y < 5 for x, y in moved) and not moved & taken:
                yield (board - {block}) | {moved}


def paxos(acceptors: int, values: int, ballots: int) -> tuple[int, int]:
    """Lamport's Paxos: (promised, voted, sent)."""
    people = range(acceptors)
    quorums = [
        frozenset(q) for n in range(acceptors + 1) for q in combinations(people, n) if 2 * n > acceptors
    ]

    def successors(state: State) -> Iterator[State]:
        promised, voted, sent = state
        for b in range(ballots):
            yield promised, voted, sent | {("1a", b)}
            for a in people:
                if ("1a", b) in sent and b > promised[a]:
                    yield put(promised, a, b), voted, sent | {("1b", a, b, voted[a])}
            if not any(m[0] == "2a" and m[1] == b for m in sent):
                for v in free_values(b, sent):
                    yield promised, voted, sent | {("2a", b, v)}
            for v in range(values):
                for a in people:
                    if ("2a", b, v) in sent and b >= promised[a]:
                        yield put(promised, a, b), put(voted, a, (b, v)), sent | {("2b", a, b, v)}

    def free_values(b: int, sent: frozenset[Any]) -> set[int]:
        found: set[int] = set()
        for quorum in quorums:
            answers = [m for m in sent if m[0] == "1b" and m[2] == b and m[1] in quorum]
            if {m[1] for m in answers} == quorum:
                last = max((m[3] for m in answers if m[3] is not None), default=None)
                found |= set(range(values)) if last is None else {last[1]}
        return found

    return count(((-1,) * acceptors, (None,) * acceptors, frozenset()), successors)


class Raft:
    """Ongaro's Raft: of each server (role, term, voted, log, commit, votes, next, matched), and messages."""

    def __init__(self, servers: int, terms: int, entries: int, in_flight: int) -> None:
        self.servers = range(servers)
        self.terms, self.entries, self.in_flight = terms, entries, in_flight

    def run(self) -> tuple[int, int]:
        """The number of states and levels."""
        zeros = (0,) * len(self.servers)
        server = ("follower", 0, None, (), 0, frozenset(), zeros, zeros)
        return count(((server,) * len(self.servers), frozenset()), self.successors)

    def successors(self, state: State) -> Iterator[State]:
        servers, sent = state
        for s in self.servers:
            for after, more in self.own_steps(s, servers[s]):
                if not more or len(sent) + len(more) <= self.in_flight:
                    yield put(servers, s, after), sent | more
            yield from self.replication(s, servers, sent)
        for m in sent:
            yield servers, sent - {m}
            yield from self.receive(m, servers, sent)

    def own_steps(self, s: int, server: Any) -> Iterator[tuple[Any, frozenset[Any]]]:
        role, term, voted, log, commit, votes, next_, matched = server
        others, nothing = [o for o in self.servers if o != s], frozenset[Any]()
        if role != "leader" and term < self.terms:
            asked = frozenset(("ask", s, o, term + 1, log[-1] if log else 0, len(log)) for o in others)
            if asked:
                yield ("candidate", term + 1, s, log, commit, frozenset({s}), next_, matched), asked
        if role == "candidate" and 2 * len(votes) > len(self.servers):
            ends, none = (len(log),) * len(self.servers), (0,) * len(self.servers)
            yield ("leader", term, voted, log, commit, votes, ends, none), nothing
        if role == "leader" and len(log) < self.entries:
            yield (role, term, voted, (*log, term), commit, votes, next_, matched), nothing
        for n in range(commit + 1, len(log) + 1) if role == "leader" else ():
            have = 1 + sum(matched[o] >= n for o in others)
            if log[n - 1] == term and 2 * have > len(self.servers):
                yield (role, term, voted, log, n, votes, next_, matched), nothing

    def replication(self, s: int, servers: Any, sent: frozenset[Any]) -> Iterator[State]:
        role, term, _, log, commit, _, next_, _ = servers[s]
        if role == "leader" and len(sent) < self.in_flight:
            for o in self.servers:
                if o != s:
                    n = next_[o]
                    entry = log[n] if n < len(log) else None
                    message = ("append", s, o, term, n, log[n - 1] if n else 0, entry, min(commit, n + 1))
                    yield servers, sent | {message}

    def receive(self, m: Any, servers: Any, sent: frozenset[Any]) -> Iterator[State]:
        kind, sender, s, term = m[:4]
        role, mine, voted, log, commit, votes, next_, matched = servers[s]
        rest = sent - {m}
        if term > mine:
            yield put(servers, s, ("follower", term, None, log, commit, votes, next_, matched)), sent
            return
        if kind == "ask":
            current = (m[4], m[5]) >= (log[-1] if log else 0, len(log))
            if term == mine and current and voted in (None, sender):
                after = (role, mine, sender, log, commit, votes, next_, matched)
                yield put(servers, s, after), rest | {("vote", s, sender, term)}
            else:
                yield servers, rest
        elif kind == "vote":
            more = votes | {sender} if term == mine and role == "candidate" else votes
            yield put(servers, s, (role, mine, voted, log, commit, more, next_, matched)), rest
        elif kind == "append":
            yield self.appended(m, servers, rest)
        elif term == mine and role == "leader":
            if m[4] is None:
                next_ = put(next_, sender, max(0, next_[sender] - 1))
            else:
                next_ = put(next_, sender, max(next_[sender], m[4]))
                matched = put(matched, sender, max(matched[sender], m[4]))
            yield put(servers, s, (role, mine, voted, log, commit, votes, next_, matched)), rest
        else:
            yield servers, rest

    def appended(self, m: Any, servers: Any, rest: frozenset[Any]) -> State:
        _, leader, s, term, after, after_term, entry, known = m
        role, mine, voted, log, commit, votes, next_, matched = servers[s]
        agrees = after <= len(log) and (log[after - 1] if after else 0) == after_term
        role = "follower" if term == mine else role
        if term < mine or not agrees:
            server = (role, mine, voted, log, commit, votes, next_, matched)
            return put(servers, s, server), rest | {("appended", s, leader, mine, None)}
        length = after + (entry is not None)
        if entry is not None and log[after:length] != (entry,):
            log = (*log[:after], entry)
        commit = max(commit, min(known, length))
        server = ("follower", mine, voted, log, commit, votes, next_, matched)
        return put(servers, s, server), rest | {("appended", s, leader, mine, length)}
