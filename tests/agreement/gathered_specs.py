"""Random specs whose offsets are collected in computed sets, sequences and bags, and compared.

Offsets that are equal in some states differ in others, so the items of such a collection, their number and
their order are not known while it is encoded.  Beyond `open_specs`: sums, cardinalities, folds, filters, sets
of sequences and of sets, options and variants with computed offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

HEAD = """\
spec gathered
sort Node
const H : int
const kp : Node
const kr : Node
type Offset = nat upto H
type Note = Empty | Carries(at: Offset, by: Node)
var a : Offset = 0
var b : Offset = 1
var m : Node -> Offset = { n: 0 for n in Node }
var q : seq[Offset] upto 2 = []
var o : Offset? = none
var u : Note = Empty
var f : bool = false
var c : 0..2 = 0
def three(x: int, y: int, z: int): bag[int] upto 3 = add(add({x}, y), z)
"""
LEAVES = ("a", "b", "0", "1", "c", "m[kp]", "m[kr]", "get(o, a)", "get(o, 2)", "(if f then a else b)")
GUARDS = ("a < 3", "b < 3", "a + b < 4", "m[n] < 2", "c < 2", "f", "not f")
WRITES = (
    "a' = a + 1", "b' = b + 1", "m'[n] = a", "m'[n] = m[n] + 1", "o' = some(b)", "o' = none", "f' = not f",
    "u' = Carries(at: a, by: n)", "c' = (c + 1) % 3", "a' = b", "b' = a",
    "q' = if len(q) == 2 then tail(q) else append(q, b)", "q' = if len(q) == 2 then [] else append(q, a)",
)  # fmt: skip
FEW_SETS = ("{ m[x] for x in Node }", "{a, b}", "{b, m[kr]}", "elements(q)", "{c}")
# Each is written with numbers {0} and {1}, a set {S}, a sequence {Q}, a bag {B}, a test {T} and a name {x} of
# an item; a number and a test about that name are {i} and {t}.
NUMBERS = (
    "({0} + {1})", "({0} + 1)", "max({0}, {1})", "min({0}, {1})", "card({S})", "sum({S})",
    "sum({i} for {x} in {S})", "sum({i} for {x} in {S} if {t})", "(if {T} then {0} else {1})",
    "(let {x} = {S}: if {x} == {{}} then {0} else max({x}))", "count({B}, {0})", "len({Q})",
    "(match u {{ Carries {x}: {x}.at + 1, Empty: {0} }})", "({0} - {1})",
    "fold({Q}, {0}, ({x}, other) => {x} + other)",
)  # fmt: skip
SETS = (
    "{{{0}}}", "{{{0}, {1}}}", "{{{0}, {1}, b}}", "({S} union {R})", "({S} intersect {R})", "({S} - {R})",
    "{{ {i} for {x} in {S} }}", "{{ {i} for {x} in {S} if {t} }}", "(filter {x} in {S}: {t})",
    "elements({Q})", "elements({B})", "{{ m[{x}] + {0} for {x} in Node }}",
)  # fmt: skip
SEQUENCES = (
    "q", "append(q, {0})", "({Q} ++ {P})", "(if {T} then {Q} else q)",
    "(let {x} = {Q}: if {x} == [] then q else tail({x}))",
)  # fmt: skip
TESTS = (
    "({0} < {1})", "({0} <= {1})", "({0} == {1})", "({0} != {1})", "({0} in {S})", "({0} not in {S})",
    "({S} == {R})", "({S} != {R})", "({S} subset {R})", "({S} in {{ {R}, {{{0}}} }})", "({Q} == {P})",
    "(forall {x} in {S}: {t})", "(exists {x} in {S}: {t})", "({T} and {U})", "({T} or {U})",
    "({T} implies {U})", "(not {T})", "({B} == {A})", "({Q} in {{ {P}, q }})", "(o == some({0}))",
    "(u != Carries(at: {0}, by: kp))",
)  # fmt: skip


def gathered_spec(random: Random) -> str:
    """A spec of two to four actions; its model `one` sets the horizon `H`."""
    writer = _Writer(random)
    lines = [HEAD]
    for number in range(random.randint(2, 4)):
        lines += writer.action(f"act{number}")
    for number in range(random.choice((1, 2, 4))):
        # In two of three the initial state satisfies it, or most would be violated there.
        begun = random.choice(("", "a == 0 and b == 1 and q == [] or ", "a == 0 and b == 1 and q == [] or "))
        lines.append(f"invariant i{number}: {begun}{writer.test(random.choice((2, 3, 4)))}")
    lines += [f"step invariant s: {writer.test(2)} or {writer.test(2)}'", f"reachable w: {writer.test(3)}"]
    lines += ["deadlock ok", "model one:", "    Node = {x, y}, H = 3, kp = x, kr = y", ""]
    return "\n".join(lines)


class _Writer:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.names = 0
        self.bound: list[str] = []  # numbers that are bound here

    def action(self, name: str) -> list[str]:
        lines = [f"action {name}(n: Node):", f"    require {self.random.choice(GUARDS)}"]
        if self.random.random() < 0.3:
            lines.append(f"    require {self.test(2)}")
        writes = {text[0]: text for text in self.random.sample(WRITES, self.random.randint(1, 2))}
        return [*lines, *(f"    {text}" for text in writes.values())]

    def number(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.3:
            return self.random.choice((*LEAVES, *self.bound))
        return self._filled(self.random.choice(NUMBERS), depth)

    def test(self, depth: int) -> str:
        return self._filled(self.random.choice(TESTS[:4] if depth <= 0 else TESTS), depth)

    def _set(self, depth: int) -> str:
        return self.random.choice(FEW_SETS) if depth <= 0 else self._filled(self.random.choice(SETS), depth)

    def _sequence(self, depth: int) -> str:
        return "q" if depth <= 0 else self._filled(self.random.choice(SEQUENCES), depth)

    def _bag(self, depth: int) -> str:
        return f"three({', '.join(self.number(depth) for _ in range(3))})"

    def _filled(self, form: str, depth: int) -> str:
        self.names += 1
        name = f"v{self.names}"

        def within(write: Callable[[int], str]) -> str:
            self.bound.append(name)
            text = write(depth - 1)
            self.bound.pop()
            return text

        writes: dict[str, Callable[[int], str]] = {
            "S": self._set, "R": self._set, "Q": self._sequence, "P": self._sequence, "B": self._bag,
            "A": self._bag, "T": self.test, "U": self.test,
        }  # fmt: skip
        given = {key: write(depth - 1) for key, write in writes.items() if f"{{{key}}}" in form}
        for key, write in (("i", self.number), ("t", self.test)):
            if f"{{{key}}}" in form:
                given[key] = within(write)
        numbers = [self.number(depth - 1) if f"{{{place}}}" in form else "" for place in (0, 1)]
        return form.format(*numbers, **given, x=name)
