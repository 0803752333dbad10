"""Random well-typed specs as text: every type, every operator, small state spaces.

Whether what they say is defined is left to chance: an engine has to find out, and all engines have
to find the same.
"""

from __future__ import annotations

from random import Random

from agreement.random_exprs import Writer
from agreement.random_types import (
    BOOL,
    INT,
    NODE,
    PARAMETERS,
    PEER,
    SMALL,
    TYPES,
    WIDER,
    WITH_ALL,
    T,
    bound,
    number,
    option,
)


class SpecWriter(Writer):
    """Writes statements, too.

    `state` are the variables and constants, `definitions` lines that what it writes uses.
    """

    def __init__(self, random: Random, types: tuple[T, ...] = TYPES) -> None:
        super().__init__(random, types)
        self.state: list[tuple[str, T]] = []
        self.definitions: list[str] = []

    def block(self, indent: int, free: list[tuple[str, T]], depth: int) -> list[str]:
        """Statements that assign each of the free variables at most once on a path."""
        pad, lines, mark = "    " * indent, [], len(self.scope)
        for _ in range(self.random.randint(0, 2)):
            lines += self.statement(pad)
        if free and depth > 0 and self.chance(45):
            lines += self.nested(indent, free, depth)
        for name, kind in free:
            if self.chance(60):
                lines.append(pad + self.assignment(name, kind))
        del self.scope[mark:]
        return lines or [f"{pad}skip"]

    def statement(self, pad: str) -> list[str]:
        form = self.random.randrange(4)
        if form == 0:
            return [f"{pad}require {self.expr(BOOL, 3)}"]
        kind = self.pick(self.items)
        name = self.binder(kind)
        value = self.named(option(kind) if form == 1 else kind, 3)
        self.scope += bound(name, kind)
        return [f"{pad}let {name} = {value}{' else skip' if form == 1 else ''}"]

    def nested(self, indent: int, free: list[tuple[str, T]], depth: int) -> list[str]:
        pad = "    " * indent
        mine = [free.pop(self.random.randrange(len(free))) for _ in range(min(len(free), 1))]
        form = self.random.randrange(3)
        if form == 0:
            kind = self.pick(self.items)
            name = self.binder(kind)
            head = f"{pad}any {name} in {self.domain(kind, 3)}:"
            return [head, *self.within_block(name, kind, indent + 1, mine, depth)]
        heads = ("either:", "or:") if form == 1 else (f"when {self.expr(BOOL, 2)}:", "else:")
        return [
            pad + heads[0], *self.block(indent + 1, list(mine), depth - 1),
            pad + heads[1], *self.block(indent + 1, list(mine), depth - 1),
        ]  # fmt: skip

    def within_block(
        self, name: str, kind: T, indent: int, mine: list[tuple[str, T]], depth: int
    ) -> list[str]:
        entries = bound(name, kind)
        self.scope += entries
        lines = self.block(indent, list(mine), depth - 1)
        self.scope = [entry for entry in self.scope if entry not in entries]
        return lines

    def assignment(self, name: str, kind: T) -> str:
        form = self.random.randrange(4)
        if form == 0 and kind.kind in ("map", "pmap"):
            key, value = self.expr(kind.parts[0], 1), self.stored(kind.parts[1])
            return f"{name}'[{key}] = {value}"
        if form == 0 and kind.kind == "seq":
            return f"{name}'[{self.expr(number(0, 1), 1)}] = {self.stored(kind.parts[0])}"
        if form <= 1 and kind.kind == "record" and kind.names:
            index = self.random.randrange(len(kind.names))
            return f"{name}'.{kind.names[index]} = {self.stored(kind.parts[index])}"
        if form == 1 and kind.kind in ("enum", "sort", "int"):
            return f"{name}' in {self.domain(kind, 2)}"
        return f"{name}' = {self.stored(kind)}"

    def stored(self, kind: T) -> str:
        """A value to store: usually one that fits."""
        text = self.expr(kind, self.random.randint(1, 3))
        if kind.kind == "int" and self.chance(80):
            return f"max({kind.low}, min({kind.high}, {text}))"
        return text


def wide_invariant(random: Random, writer: SpecWriter) -> str:
    """A claim about numbers as wide as a machine's, or slightly wider (only for the reference engine)."""
    wide = random.choice((-1, 1)) * (1 << random.choice((60, 61, 62, 63, 64))) + random.randint(-2, 1)
    number_ = f"({writer.expr(INT, 2)})"
    total = f"sum({number_} + {wide} // 4 for i in 0..{random.randint(0, 3)})"
    side = random.choice((number_, total, f"({number_} + {wide})", f"max({number_}, {wide})"))
    return f"invariant wide: {side} {random.choice(('<', '<=', '==', '!='))} {random.choice((wide, 10))}"


def spec_with_maps(random: Random) -> str:
    """Like `random_spec`, with partial maps, tuples and a union of sorts among its types."""
    return random_spec(random, WITH_ALL)


def wider_spec(random: Random) -> str:
    """Like `random_spec`, with values of several machine words, and parameters of all kinds of types."""
    return random_spec(random, WIDER, parameters=PARAMETERS)


def random_spec(
    random: Random,
    types: tuple[T, ...] = TYPES,
    make: type[SpecWriter] = SpecWriter,
    parameters: tuple[T, ...] = SMALL,
) -> str:
    """A spec with one model `m`, by a writer of some kind."""
    writer = make(random, types)
    kinds = [writer.pick(types) for _ in range(random.randint(2, 4))]
    variables = [(f"x{index}", kind) for index, kind in enumerate(kinds)]
    lines = [
        "spec random_spec", "type Colour = enum {red, green, blue}", "sort Node", "const home : Node",
        "type Message = Ping(at: 0..2, who: Node) | Tick(n: -1..1) | Stop",
        "type Flag = bool", "type Maybe = Node?",
        "type Key = -1..1", "type Pair = (Node, bool)",
        *(["sort Peer", "const away : Peer", "type Party = Node | Peer"] if types is not TYPES else []),
        *(f"var {name} : {kind.text} = {writer.literal(kind)}" for name, kind in variables),
    ]  # fmt: skip
    writer.scope = [*variables, ("home", NODE), *([("away", PEER)] if types is not TYPES else [])]
    writer.state = list(writer.scope)
    for index in range(random.randint(2, 3)):
        params = [(writer.name(), writer.pick(parameters)) for _ in range(random.randint(0, 2))]
        mark = len(writer.scope)
        writer.scope += params
        shown = ", ".join(f"{name}: {kind.text}" for name, kind in params)
        lines += [f"action act{index}({shown}):", *writer.block(1, list(variables), 2)]
        del writer.scope[mark:]
    lines += [f"invariant inv{i}: {writer.expr(BOOL, 4)}" for i in range(random.randint(0, 2))]
    lines.append(f"reachable wit: {writer.expr(BOOL, 3)}")
    if random.randrange(3) == 0:
        lines.append(f"constraint con: {writer.expr(BOOL, 2)} or {writer.expr(BOOL, 2)}")
    if random.randrange(2) == 0:
        name = variables[0][0]
        lines.append(f"step invariant step: {name}' == {name} or {writer.expr(BOOL, 3)}")
    if random.randrange(3):
        lines.append(random.choice(("deadlock ok", f"deadlock ok when {writer.expr(BOOL, 2)}")))
    if random.randrange(10) == 0:
        lines.append(wide_invariant(random, writer))
    lines += [f"def {name}(): {text} = {value}" for text, (name, value) in writer.given_values.items()]
    lines += writer.definitions
    more = ", Peer = 3, away = first" if types is not TYPES else ""
    return "\n".join([*lines, "model m:", f"    Node = 3, home = first{more}", ""])
