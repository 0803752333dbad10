"""Random names and literals, the leaves of random expressions (`random_exprs`)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from agreement.random_types import ALL_ITEMS, ITEMS, PEER, TYPES, T


class Leaves:
    """Draws, names and literals."""

    def __init__(self, random: Random, types: tuple[T, ...] = TYPES) -> None:
        self.random = random
        self.types = types
        self.items = ITEMS if types is TYPES else ALL_ITEMS
        self.scope: list[tuple[str, T]] = []
        self.made = 0
        self.given_values: dict[str, tuple[str, str]] = {}

    def pick(self, options: tuple[T, ...] | list[T]) -> T:
        return options[self.random.randrange(len(options))]

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def name(self) -> str:
        self.made += 1
        return f"v{self.made}"

    def binder(self, kind: T) -> str:
        """The bound name, or the names for the parts of a tuple."""
        if kind.kind == "tuple" and self.chance(70):
            return "(" + ", ".join(self.binder(part) for part in kind.parts) + ")"
        return self.name()

    def literal(self, kind: T) -> str:
        """A literal of a type."""
        match kind.kind:
            case "bool":
                return self.random.choice(("true", "false"))
            case "int":
                return f"({self.random.randint(kind.low, kind.high)})"
            case "enum":
                return self.random.choice(kind.names)
            case "sort":
                return "away" if kind is PEER else "home"
            case "sorts":
                return self.random.choice(("home", "away"))
            case "option":
                return "none" if self.chance(40) else f"some({self.literal(kind.parts[0])})"
            case "record":
                fields = zip(kind.names, kind.parts, strict=True)
                return "{ " + ", ".join(f"{name}: {self.literal(part)}" for name, part in fields) + " }"
            case "tuple":
                return "(" + ", ".join(self.literal(part) for part in kind.parts) + ")"
            case "union":
                return self.variant(kind, lambda part: self.literal(part))
            case "map":
                name = self.name()
                return f"{{ {name}: {self.literal(kind.parts[1])} for {name} in {self.keys(kind)} }}"
            case "pmap":
                key, value = kind.parts
                return "{}" if self.chance(40) else f"{{ {self.literal(key)}: {self.literal(value)} }}"
            case "set" | "bag":
                items = [self.literal(kind.parts[0]) for _ in range(self.random.randint(0, 2))]
                return "{" + ", ".join(items) + "}"
        return (
            "["
            + ", ".join(self.literal(kind.parts[0]) for _ in range(self.random.randint(0, min(2, kind.high))))
            + "]"
        )

    def keys(self, kind: T) -> str:
        key = kind.parts[0]
        if key.kind == "bool":
            return "Flag"
        if key.kind == "option":
            return "Maybe"
        return "Key" if key.kind == "int" else key.text

    def variant(self, kind: T, write: Callable[[T], str]) -> str:
        index = self.random.randrange(len(kind.parts))
        fields = zip(kind.parts[index].names, kind.parts[index].parts, strict=True)
        return f"{kind.names[index]}(" + ", ".join(f"{name}: {write(part)}" for name, part in fields) + ")"
