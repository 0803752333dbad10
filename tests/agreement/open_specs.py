"""Random specs that choose offsets: from all of them, from ranges, as arguments, inside records and options.

Some end in states in which every choice is refused, at a horizon or for good; `deadlock ok` stands in
half of them, with or without a condition.
"""

from __future__ import annotations

import re
from random import Random

HEAD = """\
spec choosing
sort Node
const H : int
type Offset = nat upto H
type Reply = { end: Offset, last: bool }
type Maybe = Offset?
type Note = Empty | Carries(at: Offset)
"""
VARIABLES = {
    "a": "var a : Offset = 0",
    "b": "var b : Offset = {b}",
    "m": "var m : Node -> Offset = {{ n: 0 for n in Node }}",
    "o": "var o : Offset? = none",
    "s": "var s : set[Offset] = {{}}",
    "k": "var k : Note = Empty",
    "f": "var f : bool = false",
    "c": "var c : 0..2 = 0",
}
TERMS = (
    "a", "b", "m[n]", "get(o, b)", "max(a, b)", "min(a, m[n])", "a + 1", "b + 1", "m[n] + 1", "0", "b - 1",
    "max(m[x] for x in Node)", "(if f then a else b)", "(match k { Carries w: w.at, Empty: b })",
)  # fmt: skip
TESTS = (
    "a < b", "a <= m[n]", "a == b", "b != m[n]", "f", "not f", "o == none", "o != some(a)", "a in s", "c < 2",
    "k is Empty", "a - b > 1", "b - m[n] <= 0", "m[n] < a + 2", "card(s) < 2", "c == 1", "a > 2", "b <= 1",
    "exists x in Node: m[x] < a", "forall x in Node: m[x] >= b", "s == { a }",
)  # fmt: skip
WRITES = (
    "a' = {t}", "b' = {t}", "m'[n] = {t}", "o' = some({t})", "o' = none", "s' = {{}}",
    "s' = s union {{ {t} }}", "k' = Carries(at: {t})", "k' = Empty", "f' = not f", "c' = 1",
    "c' = (c + 1) % 3", "c' = min(c + 1, 2)",
)  # fmt: skip
CHOICES = (
    "any p in Offset:", "any p in a..b:", "any p in b..max(a, m[n]):", "any p in 0..m[n]:", "any p in s:",
    "any p in a + 1..b + 1:", "any p in { m[x] for x in Node }:",
)  # fmt: skip
OF_CHOICE = (
    "p > a", "p < b", "p == m[n]", "p != a", "p <= b", "p > a and p < b", "p in s",
    "p > a or f", "p >= a + 2",
)  # fmt: skip
ENDS = ("", "", "deadlock ok", "deadlock ok when {t}", "deadlock ok when not ({t})")
DEEPER = " " * 8


def open_spec(random: Random) -> str:
    """A spec of two to five actions; its model `one` sets the horizon `H`."""
    return _Writer(random).spec()


class _Writer:
    """Writes with a subset of the variables, so that no engine must refuse most specs."""

    def __init__(self, random: Random) -> None:
        self.random = random
        extra = random.sample("mosk", random.randint(0, 4))
        self.names = [name for name in VARIABLES if name in "abfc" or name in extra]

    def pick(self, options: tuple[str, ...]) -> str:
        """A construct with declared variables only."""
        absent = set(VARIABLES) - set(self.names)
        return self.random.choice([text for text in options if absent.isdisjoint(re.findall(r"\w+", text))])

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def spec(self) -> str:
        first = self.random.choice("0012")
        lines = [HEAD, *[VARIABLES[name].format(b=first) for name in self.names]]
        for number in range(self.random.randint(2, 5)):
            lines += [f"action act{number}{self.action()}"]
        tests = " or ".join(f"({self.pick(TESTS)})" for _ in range(self.random.randint(2, 4)))
        lines.append(f"invariant safe: forall n in Node: {tests}")
        if self.chance(0.6):
            lines.append(f"reachable wit: exists n in Node: {self.pick(TESTS)}")
        if self.chance(0.3):
            lines.append(f"step invariant on: a' >= a or {self.pick(('f', 'b == a', 'o == none'))}")
        if self.chance(0.15):
            lines.append(f"constraint near: {self.pick(('a <= 1', 'b < 2 or f', 'c < 2'))}")
        lines.append(self.random.choice(ENDS).format(t=f"exists n in Node: {self.pick(TESTS)}"))
        return "\n".join([*lines, "model one:", "    Node = 2, H = 2", ""])

    def action(self) -> str:
        """An action after its name; half of them choose an offset, in one of the possible ways."""
        guard = [f"    require {self.pick(TESTS)}"] * self.chance(0.4)
        form = self.random.randrange(8)
        if form == 0:
            return "\n".join(["(n: Node, p: Offset):", *guard, *self.chosen("    ")])
        return "\n".join(["(n: Node):", *guard, *self.body(form)])

    def body(self, form: int) -> list[str]:
        if form == 1:
            last = f"{DEEPER}require r.last == f"
            return ["    any r in Reply:", f"{DEEPER}let p = r.end", last, *self.chosen(DEEPER)]
        if form == 2:
            return ["    any u in Maybe:", f"{DEEPER}let p = u else skip", *self.chosen(DEEPER)]
        if form == 3:
            return [f"    {self.pick(CHOICES)}", *self.chosen(DEEPER)]
        if form == 4:
            guards = [f"{DEEPER}require {self.pick(TESTS)}" for _ in range(2)]
            return [
                "    either:", guards[0], *self.writes(DEEPER), "    or:", guards[1], *self.writes(DEEPER)
            ]  # fmt: skip
        if form == 5:
            return [f"    when {self.pick(TESTS)}:", *self.writes(DEEPER), "    else:", *self.writes(DEEPER)]
        return self.writes("    ")

    def chosen(self, pad: str) -> list[str]:
        guard = [f"{pad}require {self.pick(OF_CHOICE)}"] * self.chance(0.8)
        return [*guard, *self.writes(pad, (*TERMS, *("p", "p + 1", "p") * 4))]

    def writes(self, pad: str, terms: tuple[str, ...] = TERMS) -> list[str]:
        found = []
        for name in self.random.sample(self.names, self.random.randint(1, 2)):
            write = self.pick(tuple([one for one in WRITES if one.startswith(f"{name}'")]))
            found.append(pad + write.format(t=self.pick(terms)))
        return found
