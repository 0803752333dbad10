"""Random values of types."""

from __future__ import annotations

from random import Random

from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.meaning.values import positions
from specchk.native.machine.layout import encode, slots_of


def value_of(kind: Type, random: Random) -> object:
    """A value of a type."""
    match kind:
        case Bool():
            return random.randrange(2)
        case Int():
            return random.randint(kind.low, kind.high)
        case Enum() | Sort():
            return random.randrange(len(kind.members))
        case Option():
            return random.choice([(), (value_of(kind.item, random),)])
        case Record():
            return tuple(value_of(part, random) for _, part in kind.fields)
        case Union():
            tag = random.randrange(len(kind.variants))
            return tag, value_of(kind.variants[tag][1], random)
        case Map():
            return tuple(value_of(kind.value, random) for _ in positions(kind.key))
        case Set():
            items = sorted(positions(kind.item))
            if kind.keyed:  # one of each key
                of_key: dict[object, object] = {item[0]: item for item in items if random.random() < 0.5}
                items = sorted(of_key.values())
            chosen = random.sample(items, random.randint(0, min(len(items), slots_of(kind))))
            return tuple(sorted(chosen))
        case Seq():
            return tuple(value_of(kind.item, random) for _ in range(random.randint(0, kind.limit)))
        case Bag():
            items = [value_of(kind.item, random) for _ in range(random.randint(0, kind.limit))]
            return tuple(sorted(items, key=lambda item: encode(kind.item, item)))
