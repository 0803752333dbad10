"""The types of random specs, each with its text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class T:
    """A type: its kind, its parts, and its text in a spec."""

    kind: str
    text: str
    parts: tuple[T, ...] = ()
    low: int = 0
    high: int = 0
    names: tuple[str, ...] = ()


BOOL = T("bool", "bool")
COLOUR = T("enum", "Colour", names=("red", "green", "blue"))
NODE = T("sort", "Node", names=())


def number(low: int, high: int) -> T:
    return T("int", f"{low}..{high}", low=low, high=high)


def horizon(high: int) -> T:
    return T("int", f"nat upto {high}", low=0, high=high)


def option(item: T) -> T:
    text = f"({item.text})" if item.kind in ("map", "seq", "bag") else item.text
    return T("option", f"{text}?", (item,))


def record(**fields: T) -> T:
    names = tuple(sorted(fields))
    text = "{ " + ", ".join(f"{name}: {fields[name].text}" for name in names) + " }"
    return T("record", text, tuple(fields[name] for name in names), names=names)


def tuple_of(*parts: T, text: str = "") -> T:
    return T("tuple", text or "(" + ", ".join(part.text for part in parts) + ")", parts)


def mapping(key: T, value: T) -> T:
    return T("map", f"{key.text} -> {value.text}", (key, value))


def set_of(item: T) -> T:
    return T("set", f"set[{item.text}]", (item,))


def seq_of(item: T, limit: int) -> T:
    return T("seq", f"seq[{item.text}] upto {limit}", (item,), high=limit)


def bag_of(item: T, limit: int) -> T:
    return T("bag", f"bag[{item.text}] upto {limit}", (item,), high=limit)


def partial_map(key: T, value: T) -> T:
    return T("pmap", f"map[{key.text}, {value.text}]", (key, value))


PING = record(at=number(0, 2), who=NODE)
MESSAGE = T("union", "Message", (PING, record(n=number(-1, 1)), record()), names=("Ping", "Tick", "Stop"))
SCALARS = (BOOL, COLOUR, NODE, number(0, 2), number(-2, 1), horizon(2), number(3, 3))
ITEMS = (
    *SCALARS,
    option(NODE),
    option(number(0, 1)),
    record(a=number(0, 1), b=COLOUR),
    MESSAGE,
    set_of(NODE),
)
TYPES = (
    *SCALARS, option(NODE), option(option(BOOL)), option(record(a=BOOL, b=number(-1, 1))), PING, MESSAGE,
    mapping(NODE, number(0, 2)), mapping(COLOUR, BOOL), mapping(number(-1, 1), NODE),
    mapping(NODE, option(NODE)),
    mapping(BOOL, set_of(NODE)), mapping(option(NODE), BOOL), mapping(NODE, seq_of(number(0, 1), 2)),
    mapping(NODE, record(x=number(0, 1), y=set_of(NODE))), record(m=mapping(NODE, BOOL), z=horizon(1)),
    set_of(NODE), set_of(number(-1, 2)), set_of(option(COLOUR)), set_of(record(a=BOOL, b=NODE)),
    set_of(set_of(NODE)), seq_of(NODE, 2), seq_of(number(-1, 1), 3), seq_of(record(a=BOOL, b=COLOUR), 2),
    seq_of(set_of(NODE), 2), bag_of(NODE, 2), bag_of(MESSAGE, 2), bag_of(number(0, 3), 3),
    bag_of(record(a=number(-1, 0), b=NODE), 2), bag_of(set_of(NODE), 2),
)  # fmt: skip
WITH_MAPS = (
    *TYPES, partial_map(NODE, number(0, 2)), partial_map(number(-1, 2), BOOL),
    partial_map(COLOUR, option(NODE)),
    partial_map(record(a=BOOL, b=NODE), set_of(NODE)), mapping(NODE, partial_map(NODE, COLOUR)),
    partial_map(MESSAGE, number(0, 1)), set_of(partial_map(BOOL, BOOL)), option(partial_map(NODE, NODE)),
    partial_map(BOOL, partial_map(BOOL, number(0, 1))), partial_map(number(0, 300), seq_of(NODE, 2)),
    record(m=partial_map(NODE, BOOL), z=horizon(1)), partial_map(NODE, horizon(2)),
    bag_of(partial_map(BOOL, NODE), 2),
)  # fmt: skip
PAIR = tuple_of(NODE, BOOL, text="Pair")  # keys of a map have a type with a name
TUPLES = (
    PAIR, tuple_of(number(0, 1), NODE), tuple_of(PAIR, COLOUR), tuple_of(BOOL, option(NODE), number(-1, 1)),
    tuple_of(set_of(NODE), number(0, 2)), tuple_of(horizon(1), NODE), mapping(PAIR, number(0, 1)),
    set_of(PAIR), set_of(tuple_of(NODE, NODE)), seq_of(PAIR, 2), bag_of(tuple_of(number(0, 2), NODE), 2),
    option(PAIR), partial_map(tuple_of(NODE, NODE), BOOL), partial_map(NODE, PAIR), record(p=PAIR, q=BOOL),
    mapping(NODE, tuple_of(BOOL, COLOUR)),
)  # fmt: skip
PEER = T("sort", "Peer")
PARTY = T("sorts", "Party", (NODE, PEER))  # a union of sorts
PARTIES = (
    PEER, PARTY, set_of(PARTY), mapping(PARTY, number(0, 2)), mapping(NODE, PARTY), option(PARTY),
    tuple_of(PARTY, BOOL), record(p=PARTY, s=set_of(PEER)), seq_of(PARTY, 2), bag_of(PARTY, 2),
    partial_map(PARTY, NODE), set_of(tuple_of(PARTY, PARTY)), set_of(set_of(PARTY)), mapping(PARTY, PARTY),
)  # fmt: skip
WITH_ALL = (*WITH_MAPS, *TUPLES, *PARTIES)
# With values of several machine words.
WIDER = (
    *TYPES, seq_of(number(0, 9), 20), mapping(NODE, seq_of(number(0, 30), 15)), set_of(number(0, 90)),
    seq_of(set_of(number(0, 40)), 2), record(a=seq_of(NODE, 30), b=mapping(COLOUR, bag_of(number(0, 9), 9))),
    option(bag_of(number(-9, 9), 15)), set_of(bag_of(NODE, 2)), mapping(NODE, set_of(bag_of(BOOL, 2))),
)  # fmt: skip
SMALL = (NODE, COLOUR, number(0, 2), BOOL)  # parameters of actions
# Of all kinds, each with few values.
PARAMETERS = (
    *SMALL, horizon(2), option(NODE), option(number(-1, 0)), PING, MESSAGE, record(a=BOOL, b=number(-1, 1)),
    set_of(NODE), set_of(COLOUR), set_of(option(BOOL)), option(set_of(NODE)), set_of(seq_of(BOOL, 1)),
    mapping(NODE, BOOL), mapping(BOOL, number(0, 2)), record(m=mapping(BOOL, BOOL), n=BOOL), seq_of(BOOL, 2),
    seq_of(NODE, 2), bag_of(NODE, 2), bag_of(BOOL, 3), option(bag_of(COLOUR, 1)),
)  # fmt: skip
ALL_ITEMS = (*ITEMS, *TUPLES[:4], tuple_of(NODE, NODE), *PARTIES[:3], PARTY, set_of(PEER))
INT = number(-9, 9)


def same_shape(a: T, b: T) -> bool:
    """Whether a value of one type can be written where the other is expected (bounds aside)."""
    if a.kind != b.kind or a.names != b.names or len(a.parts) != len(b.parts):
        return False
    if a.kind in ("enum", "sort", "union", "sorts"):
        return a.text == b.text
    if a.kind == "map" and a.parts[0].text != b.parts[0].text:
        return False
    return all(same_shape(x, y) for x, y in zip(a.parts, b.parts, strict=True))


def bound(binder: str, kind: T) -> list[tuple[str, T]]:
    """The names that a binder brings, `v` or `(v, w)`, with their types."""
    if not binder.startswith("("):
        return [(binder, kind)]
    names, rest = [], binder[1:-1]
    for part in kind.parts:
        end = rest.find(")") + 1 if rest.startswith("(") else rest.find(",") if "," in rest else len(rest)
        names += bound(rest[:end], part)
        rest = rest[end:].removeprefix(", ")
    return names
