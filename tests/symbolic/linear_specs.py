"""Random specs whose offsets are in sums, multiples, quotients, counts and bounded places.

Some have batches and windows, too: numbers that a step chooses, and thresholds beyond all horizons.
"""

from __future__ import annotations

import re
from random import Random

HEAD = """\
spec linear
sort Node
const H : int
type Offset = nat upto H
var a : Offset = 0
var b : Offset = 0
var c : Offset = 0
var m : Node -> Offset = { n: 0 for n in Node }
var small : 0..2 = 0
var f : bool = false
"""
SUMS = (
    "a + b", "a + m[n]", "2 * a", "a - b", "a + b + c", "2 * a - b", "3 * b + 1", "a + small", "c - a - b",
    "sum(m[x] for x in Node)", "small * a", "a // 2", "(a + b) // 3", "-a", "a % 2", "(a + 2 * b) % 3",
)  # fmt: skip
PLAIN = ("a", "b", "c", "m[n]", "0", "1", "2", "5", "small", "max(a, b)", "a + 1", "c + 2", "b + 6")
WRITES = (
    "a' = a + 1", "b' = b + 1", "c' = c + 1", "c' = c + small", "m'[n] = m[n] + 1", "a' = 0", "b' = 0",
    "c' = a + b", "c' = a", "b' = 2 * a", "a' = a // 2", "m'[n] = a + m[n]", "f' = not f", "small' = a % 3",
    "c' = sum(m[x] for x in Node)", "small' = min(2, c)", "m'[n] = 0", "a' = max(0, a - b)",
    "small' = a // 2", "small' = a - b", "small' = if a + b <= 2 then a + b else 0", "c' = a - b",
)  # fmt: skip
THRESHOLDS = ("1", "2", "3", "4", "7", "40", "1000")
BATCHES = (
    "{o}' = {o} + p", "m'[n] = m[n] + p", "{o}' = p", "{o}' = max({o}, p)", "{o}' = {o} + 2 * p",
    "small' = p % 3",
)  # fmt: skip
CHOSEN = ("1..3", "1..small + 1", "Offset", "Offset", "{o}..{o} + 2", "0..m[n]")
ORDERS = ("<", "<=", "==", "!=", ">=", ">")


def windowed_spec(random: Random) -> str:
    """A linear spec with actions of batches and windows, and an invariant of one of their thresholds."""
    far = random.choice(THRESHOLDS)
    lines = [line for _ in range(random.randint(1, 2)) for line in _windowed(random, far)]
    sums = f"{random.choice(SUMS)} <= {random.choice((far, f'b + {far}', f'c + {far}'))}"
    return linear_spec(random, more=(*lines, f"invariant near: forall n in Node: {sums} or {_test(random)}"))


def _windowed(random: Random, far: str) -> list[str]:
    """An action that chooses a number or advances one, below a threshold."""
    one, other, name = random.choice("abc"), random.choice("abc"), f"windowed{random.randrange(10**6)}"
    choice = random.choice(CHOSEN).format(o=other)
    below = random.choice((
        f"{one} - {other} < {far}", f"{one} + p <= {far}", f"2 * p + {other} <= {one} + {far}",
        f"sum(m[x] for x in Node) + p <= {far}", f"{one} + {other} + p < {far} + c",
        f"p % 2 == 0 and p <= {far}",
    ))  # fmt: skip
    write = random.choice(BATCHES).format(o=one)
    if random.random() < 0.3:
        return [f"action {name}(n: Node, p: Offset):", f"    require p > 0 and {below}", f"    {write}"]
    if random.random() < 0.3:
        write, below = write.replace("p", "1"), re.sub(r"\bp\b", "1", below)
        return [f"action {name}(n: Node):", f"    when {below}:", f"        {write}", "    else:",
                f"        {other}' = {one}"]  # fmt: skip
    guard = f"        require {random.choice(('p > 0', _test(random), 'p <= a - b'))} and {below}"
    return [f"action {name}(n: Node):", f"    any p in {choice}:", guard, f"        {write}"]


def linear_spec(random: Random, horizon: int = 2, *, ranges: bool = True, more: tuple[str, ...] = ()) -> str:
    """A spec of two or three actions, an invariant and a witness, with linear arithmetic in all places."""
    lines = [HEAD, *more]
    for number in range(random.randint(2, 3)):
        lines.append(f"action act{number}(n: Node):")
        lines += [f"    require {_test(random)}" for _ in range(random.randint(0, 2))]
        lines += _writes(random)
    if random.random() < 0.3:
        # With horizons put back a range would be listed, which takes known ends.
        domain = random.choice(("Offset", "a..c", "0..a + b")) if ranges else "Offset"
        order = random.choice(ORDERS)
        lines += ["action chosen(n: Node):", f"    any p in {domain}:",
                  f"        require p {order} {random.choice(PLAIN + SUMS)}",
                  f"        {random.choice('abc')}' = p"]  # fmt: skip
    lines.append(f"invariant safe: forall n in Node: ({_test(random)}) or ({_test(random)})")
    lines.append(f"reachable wit: exists n in Node: {_test(random)}")
    if random.random() < 0.3:
        other = random.choice(("f", "a >= c"))
        lines.append(f"step invariant on: a' + b' {random.choice(ORDERS)} c or {other}")
    if random.random() < 0.6:
        lines.append("deadlock ok")
    return "\n".join([*lines, "model one:", f"    Node = 2, H = {horizon}", ""])


def _test(random: Random) -> str:
    if random.random() < 0.15:
        return random.choice(("f", "not f", "small > 0"))
    return f"{random.choice(SUMS)} {random.choice(ORDERS)} {random.choice(PLAIN + SUMS)}"


def _writes(random: Random) -> list[str]:
    by_name = {write.split("'")[0]: write for write in random.sample(WRITES, random.randint(1, 4))}
    return [f"    {write}" for write in by_name.values()]
