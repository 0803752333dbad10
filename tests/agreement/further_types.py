"""Random types: of any shape, with numbers up to 2 ** 61, and of exactly one word, two, or a few more bits.

Unions and the keys of maps are types that a spec has to name: they are declared as they are drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from random import Random

from agreement.random_types import (
    BOOL,
    COLOUR,
    NODE,
    PARTY,
    PEER,
    WITH_ALL,
    T,
    bag_of,
    horizon,
    mapping,
    number,
    option,
    partial_map,
    record,
    seq_of,
    set_of,
    tuple_of,
)

HALF = number(0, 2**32 - 1)
FAR = (
    number(0, 2**31), number(-(2**31), 2**31 - 1), HALF, number(-5, 2**40), number(2**45, 2**45 + 3),
    number(-(2**59), 2**59), number(2**61 - 3, 2**61), number(-(2**33), 5 - 2**33), number(0, 2**16),
    number(250, 260),
)  # fmt: skip
LONE = (number(3, 3), number(-2, -2), T("enum", "Lone", names=("lone",)))  # no bit is needed for these
FULL = set_of(number(0, 63))  # a word
# Around one word, two and four; numbers of as many bits, whose sets are not of as many words.
WIDTHS = (
    *[seq_of(BOOL, limit) for limit in (57, 58, 59)],
    *[set_of(number(*ends)) for ends in ((0, 62), (0, 63), (-1, 63), (1, 64), (0, 127), (0, 128), (-64, 64))],
    *[set_of(number(0, high)) for high in (190, 255, 256, 300)], set_of(number(2**45, 2**45 + 3)),
    *[seq_of(number(0, 255), limit) for limit in (7, 8, 16)], seq_of(number(0, 3), 30), seq_of(NODE, 61),
    seq_of(number(5, 5), 3), bag_of(number(7, 7), 3), bag_of(number(0, 255), 15), bag_of(number(0, 127), 17),
    seq_of(set_of(number(0, 31)), 4), seq_of(FULL, 2), seq_of(option(set_of(number(0, 62))), 2),
    record(a=HALF, b=HALF), record(a=HALF, b=HALF, c=BOOL), option(record(a=HALF, b=HALF)), option(FULL),
    option(option(set_of(number(0, 62)))), option(option(option(NODE))), set_of(option(option(BOOL))),
    tuple_of(FULL, FULL), tuple_of(BOOL, FULL), tuple_of(FULL, BOOL), option(number(2**61 - 3, 2**61)),
)  # fmt: skip
MANY = 10**6
MOST_KEYS = 40
MOST_LISTED = 20  # items of which all sets or sequences are counted
LONGEST = 160  # characters of a type


def values_of(kind: T) -> int:
    """The number of values of a type, or `MANY`."""
    if kind.kind == "int":
        return min(MANY, kind.high - kind.low + 1)
    fixed = {"bool": 2, "enum": len(kind.names), "sort": 3, "sorts": 5}
    if kind.kind in fixed:
        return fixed[kind.kind]
    parts = [values_of(part) for part in kind.parts]
    if kind.kind in ("record", "tuple"):
        return reduce(lambda a, b: min(MANY, a * b), parts, 1)
    if kind.kind in ("option", "union"):
        return min(MANY, sum(parts) + (kind.kind == "option"))
    if max(parts[0], kind.high) > MOST_LISTED:
        return MANY
    if kind.kind in ("map", "pmap"):
        return min(MANY, (parts[1] + (kind.kind == "pmap")) ** parts[0])
    counts = {"set": 2 ** parts[0], "seq": sum(parts[0] ** size for size in range(kind.high + 1))}
    return min(MANY, counts.get(kind.kind, counts["seq"]))


class FurtherTypes:
    """Draws types, and stores the declarations of those that need a name."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.declarations: list[str] = []
        self.keys: list[T] = []
        self.unions: list[T] = []
        self.made = 0

    def scalar(self) -> T:
        """A number, or another value without parts."""
        low = self.random.randint(-5, 3)
        near = number(low, low + self.random.choice((0, 1, 2, 3, 6, 7, 8, 15)))
        kinds = (BOOL, COLOUR, NODE, PEER, PARTY, number(-1, 1), near, horizon(self.random.randint(0, 3)))
        return self.random.choice((*kinds, self.random.choice(FAR), self.random.choice(LONE)))

    def drawn(self, depth: int) -> T:
        """A type with at most this many levels."""
        for _ in range(MOST_KEYS):
            kind = self._drawn(depth)
            if len(kind.text) <= LONGEST:
                return kind
        return BOOL

    def _drawn(self, depth: int) -> T:
        random, inner = self.random, lambda: self.drawn(depth - 1)
        forms: tuple[Callable[[], T], ...] = (
            self.scalar,
            lambda: option(inner()),
            lambda: record(**{name: inner() for name in random.sample("abcde", random.randint(1, 3))}),
            lambda: tuple_of(*[inner() for _ in range(random.randint(2, 3))]),
            lambda: set_of(inner()),
            lambda: seq_of(inner(), random.choice((0, 1, 1, 2, 2, 3, 7))),
            lambda: bag_of(inner(), random.choice((0, 1, 2, 2, 3))),
            *[lambda: mapping(self.key(), self._value(depth))] * 2,
            lambda: partial_map(inner(), inner()),
            lambda: self.union(depth),
            lambda: random.choice(WIDTHS),
            lambda: random.choice(WITH_ALL),
        )
        return random.choice(forms)() if depth > 0 else self.scalar()

    def _value(self, depth: int) -> T:
        # A map of maps would have to be written with parentheses.
        kind = self.drawn(depth - 1)
        return BOOL if kind.kind == "map" else kind

    def key(self) -> T:
        """The type of the keys of a map."""
        if self.keys and self.random.random() < 0.5:
            return self.random.choice(self.keys)
        kind = self.drawn(2)
        if "map[" in kind.text or values_of(kind) > MOST_KEYS:
            return NODE
        return self.named(kind)

    def named(self, kind: T) -> T:
        """A type with a name, as the keys of a map require."""
        if kind.kind in ("sort", "enum", "union", "sorts"):
            return kind
        name = f"Key{len(self.keys)}"
        self.declarations.append(f"type {name} = {kind.text}")
        self.keys.append(replace(kind, text=name))
        return self.keys[-1]

    def union(self, depth: int) -> T:
        """A union of two to four variants."""
        if self.unions and self.random.random() < 0.6:
            return self.random.choice(self.unions)
        self.made += 1
        name, random = f"Union{self.made}", self.random
        fields = [random.sample("fgh", random.randint(0, 2)) for _ in range(random.randint(2, 4))]
        variants = [record(**{part: self.drawn(depth - 2) for part in parts}) for parts in fields]
        tags = tuple(f"V{name[5:]}{'abcd'[place]}" for place in range(len(variants)))
        texts = [
            tag + ("(" + variant.text.removeprefix("{ ").removesuffix(" }") + ")" if variant.names else "")
            for tag, variant in zip(tags, variants, strict=True)
        ]
        self.declarations.append(f"type {name} = {' | '.join(texts)}")
        self.unions.append(T("union", name, tuple(variants), names=tags))
        return self.unions[-1]
