"""Random specs with random types, and with the whole language in their expressions.

Beyond `random_specs`: values of any width, tables as constants, several initial states, and what
`further_exprs` writes.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from agreement.further_exprs import FurtherWriter
from agreement.further_types import FurtherTypes, values_of
from agreement.random_types import BOOL, NODE, PARAMETERS, PEER, T, mapping, number, option, seq_of, set_of

HEAD = """\
spec further
type Colour = enum {red, green, blue}
type Lone = enum {lone}
sort Node
sort Peer
const home : Node
const away : Peer
type Message = Ping(at: 0..2, who: Node) | Tick(n: -1..1) | Stop
type Flag = bool
type Maybe = Node?
type Key = -1..1
type Pair = (Node, bool)
type Party = Node | Peer
"""


Further = Callable[[Random, FurtherWriter], list[str]]


def further_spec(random: Random, more: Further = lambda *_: []) -> str:
    """A spec with one model `m`; two of three are tame.  `more` writes further declarations."""
    drawn = FurtherTypes(random)
    depth = random.choice((1, 2, 2, 3))
    kinds = [drawn.drawn(depth) for _ in range(random.randint(2, 5))]
    others = [drawn.drawn(1) for _ in range(4)]
    writer = FurtherWriter(random, drawn, [*kinds, *others], tame=random.random() < 0.67)
    tables = [(f"c{place}", _table(random, drawn)) for place in range(random.randint(0, 2))]
    variables = [(f"x{place}", kind) for place, kind in enumerate(kinds)]
    lines = [f"const {name} : {kind.text} = {writer.literal(kind)}" for name, kind in tables]
    lines += [line for name, kind in variables for line in _begun(random, writer, name, kind)]
    writer.state = [*variables, *tables, ("home", NODE), ("away", PEER)]
    writer.scope = [*writer.state]
    for place in range(random.randint(2, 3)):
        lines += _action(random, writer, f"act{place}", variables, kinds)
    lines += _properties(random, writer)
    lines += more(random, writer)
    lines += [f"def {name}(): {text} = {value}" for text, (name, value) in writer.given_values.items()]
    sizes = (
        f"Node = {random.choice((1, 2, 3, 3))}, home = first, Peer = {random.choice((1, 2))}, away = first"
    )
    return "\n".join([HEAD, *drawn.declarations, *lines, *writer.definitions, "model m:", f"    {sizes}", ""])


def _table(random: Random, drawn: FurtherTypes) -> T:
    """The type of a constant: a long table, or any type."""
    value = random.choice((drawn.scalar(), number(0, 31), BOOL, option(number(0, 2)), set_of(NODE)))
    form = random.randrange(4)
    if form == 0:
        return drawn.drawn(2)
    if form < 3:
        return mapping(drawn.named(number(0, random.choice((19, 29, 39)))), value)
    return seq_of(value, random.choice((12, 20, 33)))


def _begun(random: Random, writer: FurtherWriter, name: str, kind: T) -> list[str]:
    """The declaration of a variable, with its initial values."""
    if values_of(kind) <= 12 and random.random() < 0.3:
        return [f"var {name} : {kind.text}", f"init: {name} == {name}"]
    keys = kind.parts[0] if kind.kind == "map" else kind
    is_short = kind.kind == "map" and keys.kind in ("sort", "enum", "int") and values_of(keys) <= 4
    if is_short and random.random() < 0.3:
        items = f"{{{writer.literal(kind.parts[1])}, {writer.literal(kind.parts[1])}}}"
        return [f"var {name} : {kind.text}", f"init: forall k in {keys.text}: {name}[k] in {items}"]
    if random.random() < 0.15:
        return [f"var {name} : {kind.text} in {{{writer.literal(kind)}, {writer.literal(kind)}}}"]
    return [f"var {name} : {kind.text} = {writer.literal(kind)}"]


def _action(
    random: Random, writer: FurtherWriter, name: str, variables: list[tuple[str, T]], kinds: list[T]
) -> list[str]:
    """The lines of an action; later actions may use whether it is enabled."""
    drawn = [
        random.choice((random.choice(PARAMETERS), random.choice(kinds))) for _ in range(random.randint(0, 2))
    ]
    params = [(writer.name(), kind) for kind in drawn if values_of(kind) <= 20 and "map[" not in kind.text]
    mark = len(writer.scope)
    writer.scope += params
    shown = ", ".join(f"{param}: {kind.text}" for param, kind in params)
    lines = [f"action {name}({shown}):", *writer.block(1, [*variables], 2)]
    del writer.scope[mark:]
    writer.actions.append((name, [kind for _, kind in params]))
    return lines


def _properties(random: Random, writer: FurtherWriter) -> list[str]:
    def claim(depth: int) -> str:
        return writer.expr(BOOL, depth)

    lines = [f"invariant inv{place}: {claim(3)}" for place in range(random.randint(0, 2))]
    lines += [f"reachable wit{place}: {claim(3)}" for place in range(random.randint(1, 3))]
    if random.random() < 0.25:
        lines.append(f"constraint con: {claim(2)} or {claim(2)}")
    if random.random() < 0.6:
        lines.append(f"step invariant step: {random.choice(('', 'not '))}({claim(3)})' or {claim(2)}")
    return [*lines, random.choice(("deadlock ok", "deadlock ok", f"deadlock ok when {claim(2)}"))]
