"""Plain searches of puzzles and protocols of the gallery for which TLC's figures are not published.

Written from the puzzles and the TLA+ modules, with Python's own sets: nothing of specchk is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, permutations, product
from typing import Any

State = Any


def count(initial: Iterable[State], successors: Callable[[State], Iterable[State]]) -> tuple[int, int, int]:
    """The number of states, of transitions (initial states included) and of levels."""
    frontier = list(dict.fromkeys(initial))
    seen, transitions, depth = set(frontier), len(frontier), 0
    while frontier:
        depth += 1
        after = [new for state in frontier for new in successors(state)]
        transitions += len(after)
        frontier = [new for new in dict.fromkeys(after) if new not in seen]
        seen.update(frontier)
    return len(seen), transitions, depth


def put(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return (*values[:index], value, *values[index + 1 :])


def missionaries(couples: int) -> tuple[int, int, int]:
    """The people on the first bank, and whether the boat is there."""
    people = frozenset(product("mc", range(couples)))

    def is_safe(bank: frozenset[tuple[str, int]]) -> bool:
        cannibals = sum(kind == "c" for kind, _ in bank)
        return len(bank) in (0, cannibals) or 2 * cannibals <= len(bank)

    def cross(state: State) -> Iterator[State]:
        here, boat = state
        for some in (
            set(some) for size in (1, 2) for some in combinations(here if boat else people - here, size)
        ):
            after = here - some if boat else here | some
            if is_safe(after) and is_safe(people - after):
                yield after, not boat

    return count([(people, True)], cross)


def queens(size: int) -> tuple[int, int, int]:
    """Partial solutions and solutions."""

    def place(state: State) -> Iterator[State]:
        todo, solutions = state
        for board in todo:
            row = len(board)
            more = {
                (*board, column)
                for column in range(size)
                if all(board[i] != column and abs(board[i] - column) != row - i for i in range(row))
            }
            if row + 1 == size:
                yield todo - {board}, solutions | more
            else:
                yield (todo - {board}) | more, solutions

    return count([(frozenset([()]), frozenset())], place)


def einstein() -> tuple[int, int, int]:
    """Five attributes, placed one after the other; a house for each value."""

    def placed(names: str) -> Iterator[dict[str, int]]:
        return (dict(zip(names.split(), houses, strict=True)) for houses in permutations(range(1, 6)))

    def beside(a: int, b: int) -> bool:
        return abs(a - b) == 1

    steps: list[tuple[str, Callable[[dict[str, int]], bool]]] = [
        ("brit swede dane norwegian german", lambda h: h["norwegian"] == 1),
        ("red white blue green yellow",
         lambda h: h["blue"] == 2 and h["white"] == h["green"] + 1 and h["brit"] == h["red"]),
        ("beer coffee milk tea water",
         lambda h: h["milk"] == 3 and h["dane"] == h["tea"] and h["green"] == h["coffee"]),
        ("blend bluemaster dunhill pall_mall prince",
         lambda h: h["yellow"] == h["dunhill"] and h["bluemaster"] == h["beer"]
         and h["german"] == h["prince"] and beside(h["blend"], h["water"])),
        ("bird cat dog fish horse",
         lambda h: h["swede"] == h["dog"] and h["pall_mall"] == h["bird"]
         and beside(h["blend"], h["cat"]) and beside(h["horse"], h["dunhill"])),
    ]  # fmt: skip

    def place(state: State) -> Iterator[State]:
        known = dict(state)
        if len(known) < 25:
            names, fits = steps[len(known) // 5]
            yield from (tuple({**known, **more}.items()) for more in placed(names) if fits({**known, **more}))

    return count([()], place)


def one_switch(prisoners: int) -> tuple[int, int, int]:
    """Prisoners and a light whose initial state is unknown."""

    def visit(state: State) -> Iterator[State]:
        number, announced, signalled, light, visited = state
        for p in range(prisoners):
            there = visited | {p}
            if p == 0:
                now = number + light
                yield now, now >= 2 * prisoners - 1, signalled, False, there
            elif not light and signalled[p] < 2:
                yield number, announced, put(signalled, p, signalled[p] + 1), True, there
            else:
                yield number, announced, signalled, light, there

    return count([(1, False, (0,) * prisoners, light, frozenset()) for light in (False, True)], visit)


def spanning_tree(edges: set[tuple[int, int]], far: int) -> tuple[int, int, int]:
    """Mothers and distances of five nodes; the root is 0."""
    both = edges | {(m, n) for n, m in edges}

    def come_nearer(state: State) -> Iterator[State]:
        mother, distance = state
        for n, m in both:
            for nearer in range(distance[m] + 1, distance[n]):
                yield put(mother, n, m), put(distance, n, nearer)

    return count([((0, 1, 2, 3, 4), (0, far, far, far, far))], come_nearer)


def termination_ring(nodes: int, *, parts: bool) -> tuple[int, int, int]:
    """EWD 840; with `parts`, passing the token counts once for each true part of its guard, as in TLC."""
    ring = range(nodes)

    def step(state: State) -> Iterator[State]:
        active, black, token, is_black = state
        whys = [is_black, black[0]] if token == 0 else [not active[token], black[token], is_black]
        passed = (
            active,
            put(black, token, False),
            (token - 1) % nodes,
            token != 0 and (is_black or black[token]),
        )
        yield from [passed] * (sum(whys) if parts else any(whys))
        for i in filter(active.__getitem__, ring):
            yield put(active, i, False), black, token, is_black
            for j in ring:
                if j != i:
                    yield put(active, j, True), put(black, i, black[i] or j > i), token, is_black

    booleans = list(product((False, True), repeat=nodes))
    return count(product(booleans, booleans, ring, [True]), step)


def shared_steps(replicas: int, longest: int) -> tuple[int, int, int]:
    """The leader, the logs with 1 for a deposit and -1 for a withdrawal, the committed part, the balance."""

    def committed(leader: int, logs: State, done: int, balance: int) -> State:
        if 2 * sum(len(log) > done for log in logs) > replicas:
            return leader, logs, done + 1, max(0, balance + logs[leader][done])
        return leader, logs, done, balance

    def step(state: State) -> Iterator[State]:
        leader, logs, done, balance = state
        if len(logs[leader]) < longest:
            for entry in (1, -1):
                yield committed(leader, put(logs, leader, (*logs[leader], entry)), done, balance)
        for one, log in enumerate(logs):
            if len(log) < len(logs[leader]):
                yield committed(leader, put(logs, one, (*log, logs[leader][len(log)])), done, balance)
            if one != leader and 2 * sum(len(other) <= len(log) for other in logs) > replicas:
                yield one, put(tuple([other[:done] for other in logs]), one, log), done, balance

    return count([(leader, ((),) * replicas, 0, 0) for leader in range(replicas)], step)


def leases(clients: int, epochs: int, in_flight: int) -> tuple[int, int, int]:
    """The sorted messages, the epochs granted; of each client the epoch lent, held, and had last, or 0."""

    def with_one(bag: State, message: State) -> State:
        return tuple(sorted((*bag, message)))

    def without(bag: State, message: State) -> State:
        at = bag.index(message)
        return bag[:at] + bag[at + 1 :]

    def step(state: State) -> Iterator[State]:
        bag, granted, lent, held, last = state
        has_room = len(bag) < in_flight
        for c in range(clients):
            if held[c] == 0 and has_room:
                yield with_one(bag, ("ask", c, 0)), granted, lent, held, last
            if held[c] > 0 and has_room:
                yield with_one(bag, ("release", c, held[c])), granted, lent, put(held, c, 0), last
        for message in dict.fromkeys(bag):
            kind, c, epoch = message
            rest = without(bag, message)
            yield rest, granted, lent, held, last  # lost
            if has_room:
                yield with_one(bag, message), granted, lent, held, last
            if kind == "ask" and not any(lent) and granted < epochs:
                answered = with_one(rest, ("grant", c, granted + 1))
                yield answered, granted + 1, put(lent, c, granted + 1), held, last
            if kind == "grant" and held[c] == 0 and epoch > last[c]:
                yield rest, granted, lent, put(held, c, epoch), put(last, c, epoch)
            if kind == "release":
                yield rest, granted, (0,) * clients if lent[c] == epoch else lent, held, last

    nothing = (0,) * clients
    return count([((), 0, nothing, nothing, nothing)], step)
