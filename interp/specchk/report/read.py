"""Traces read from files: the exact inverse of `report.json` and `report.itf`.

A value is read by its type, so nothing is guessed: what is not a value of the type is `Unreadable`,
with the place and what was expected.  Of ITF, all forms are read in which other tools write a value.

Which spec, model and constants a file is about is read here; loading them and checking every step is for
those who draw or replay it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from specchk.ir.nodes import Value
from specchk.ir.program import Program
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.ir.types import show as show_type
from specchk.meaning.values import State, show, universe

Read = Callable[[Any, Type], Value]
# As this tool writes them, as Quint does, and as Apalache does.
UNITS: tuple[Any, ...] = ({"#tup": []}, {}, "U_OF_UNIT")
SOME, NONE = ("some", "Some"), ("none", "None")


class Unreadable(Exception):
    """Invalid data in a file; the text describes them and gives their place."""


class TraceFile(Struct, frozen=True):
    """A trace as stored in a file: states by variable name, and the label of each step."""

    spec: str
    model: str | None
    property: str | None
    states: tuple[dict[str, Any], ...]
    labels: tuple[tuple[str | None, tuple[str, ...]], ...]  # of each state; none for the first
    itf: bool
    constants: dict[str, Any] = field(default_factory=dict)
    sorts: dict[str, list[str]] = field(default_factory=dict)
    loop: int | None = None  # the state that the last one is again, as in `search.verdict.Trace`

    def read(self, program: Program) -> list[State]:
        """The states of the trace; raises `Unreadable`."""
        value = value_from_itf if self.itf else value_from_json
        return [_state(program, data, index, value) for index, data in enumerate(self.states)]


def trace_file(data: Any, spec: str | None = None) -> TraceFile:
    """The contents of a JSON report or an ITF file, of `spec` if that is given; raises `Unreadable`."""
    if not isinstance(data, dict):
        raise Unreadable("a trace file is the JSON object of `run --json`, or an ITF trace")
    if isinstance(data.get("states"), list) and "vars" in data:
        meta = data.get("#meta")
        about = {**(meta if isinstance(meta, dict) else {}), "loop": data.get("loop")}
        return _file(data["states"], about, spec, itf=True)
    if not isinstance(data.get("trace"), list):
        raise Unreadable("there is no trace in it: neither `trace` (of `run --json`) nor `states` (ITF)")
    return _file(data["trace"], {**data, "source": data.get("spec")}, spec, itf=False)


def _file(states: list[Any], about: dict[str, Any], spec: str | None, *, itf: bool) -> TraceFile:
    if not states or not all(isinstance(state, dict) for state in states):
        raise Unreadable("a trace is a list of states, at least one")
    source = spec or about.get("source")
    if not isinstance(source, str):
        where = "`source` of `#meta`" if itf else "`spec`"
        raise Unreadable(f"it does not name its spec: give it with --spec, or add its path as {where}")
    # ITF leaves open what `#meta` is, or whether it is there: without a label any action may be the step's.
    labels = [_label(state.get("#meta") if itf else state) for state in states]
    loop = about.get("loop")
    if loop is not None and not (type(loop) is int and 0 <= loop < len(states)):
        raise Unreadable(f"`loop` is the number of a state, not {loop!r}")
    # ITF leaves the last state out where it is that of `loop` again; a step to itself means that it rests.
    if itf and loop is not None and loop < len(states) - 1 + ("loop-step" in about):
        states, labels = [*states, states[loop]], [*labels, _label(about.get("loop-step"))]
    return TraceFile(
        source, _text(about.get("model")), _text(about.get("property")),
        tuple(state if itf else _object(state.get("state"), "state") for state in states),
        tuple(labels), itf, _object(about.get("constants", {}), "constants"), _sorts(about.get("sorts", {})),
        loop,
    )  # fmt: skip


def _label(data: Any) -> tuple[str | None, tuple[str, ...]]:
    """The action of a step and its arguments; of anything else than a label None, and no arguments."""
    if not isinstance(data, dict):
        return None, ()
    args = data.get("args")
    return _text(data.get("action")), tuple(map(str, args)) if isinstance(args, list) else ()


def _sorts(data: Any) -> dict[str, list[str]]:
    sorts = _object(data, "sorts")
    if not all(isinstance(members, list) for members in sorts.values()):
        raise Unreadable("`sorts` has a sort that is not a list of names")
    return sorts


def _text(data: Any) -> str | None:
    return data if isinstance(data, str) else None


def _object(data: Any, what: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise Unreadable(f"`{what}` is not an object")
    return data


def _state(program: Program, data: Mapping[str, Any], index: int, read: Read) -> State:
    values = []
    for variable in program.variables:
        if variable.name not in data:
            raise Unreadable(f"state {index} has no variable {variable.name}")
        try:
            values.append(read(data[variable.name], variable.type))
        except Unreadable as error:
            raise Unreadable(f"state {index}, variable {variable.name}: {error}") from None
    return tuple(values)


def value_from_json(data: Any, kind: Type) -> Value:
    """The value written by `report.json.value_json`; raises `Unreadable`."""
    match kind:
        case Bool() | Int() | Enum() | Sort():
            return _scalar(data, kind)
        case Option():
            if data is None:
                return ()
            return (value_from_json(_fields(data, kind, ("some",))["some"], kind.item),)
        case Record(is_tuple=True):
            return _tuple(data, kind, value_from_json)
        case Record():
            return _record(data, kind, value_from_json)
        case Union() if isinstance(data, str):
            return _element(data, kind)
        case Union():
            if not isinstance(data, dict):
                raise _wrong(data, kind)
            rest = {name: value for name, value in data.items() if name != "tag"}
            if any(
                name == data.get("tag") and "tag" in dict(record.fields) for name, record in kind.variants
            ):
                rest = _fields(rest, kind, ("value",))["value"]
            return _variant(data.get("tag"), rest, kind, value_from_json)
        case Map() if isinstance(kind.key, Bool | Int | Enum | Sort):
            keys = [show(key, kind.key) for key in sorted(universe(kind.key))]
            table = _fields(data, kind, keys)
            return tuple(value_from_json(table[key], kind.value) for key in keys)
        case Map():
            return _map(_pairs(data, kind, kind.key, kind.value, value_from_json), kind)
        case Set(keyed=True):
            return _partial_map(_pairs(data, kind, *kind.pair, value_from_json), kind)
        case Set() | Seq() | Bag():
            return _collected([value_from_json(item, kind.item) for item in _items(data, kind)], kind)


def value_from_itf(data: Any, kind: Type) -> Value:
    """The value written by `report.itf.value_itf`; raises `Unreadable`."""
    match kind:
        # Tools write small numbers plainly, too; both forms are read.
        case Int() if isinstance(data, dict):
            digits = _fields(data, kind, ("#bigint",))["#bigint"]
            # Python would also read 3.7 and true as numbers, and "1_0".
            is_text = isinstance(digits, str) and re.fullmatch(r"-?[0-9]{1,4000}", digits) is not None
            return _scalar(int(digits) if is_text else digits, kind)
        case Enum() if isinstance(data, dict):
            return _scalar(_tag_alone(data, kind), kind)
        case Bool() | Int() | Enum() | Sort():
            return _scalar(data, kind)
        case Option():
            tagged = _fields(data, kind, ("tag", "value"))
            if tagged["tag"] not in (*SOME, *NONE):
                raise _wrong(data, kind)
            return (value_from_itf(tagged["value"], kind.item),) if tagged["tag"] in SOME else ()
        case Record(is_tuple=True):
            return _tuple(_fields(data, kind, ("#tup",))["#tup"], kind, value_from_itf)
        case Record():
            return _record(data, kind, value_from_itf)
        case Union() if isinstance(data, str):
            return _element(data, kind)
        case Union():
            tagged = _fields(data, kind, ("tag", "value"))
            value = {} if tagged["value"] in UNITS else tagged["value"]
            return _variant(tagged["tag"], value, kind, value_from_itf)
        case Map():
            return _map(_pairs_of_itf(data, kind, kind.key, kind.value), kind)
        case Set(keyed=True):
            return _partial_map(_pairs_of_itf(data, kind, *kind.pair), kind)
        case Set():
            items = _items(_fields(data, kind, ("#set",))["#set"], kind)
            # Of a set, that an item is listed twice means nothing.
            return _collected(list({value_from_itf(item, kind.item) for item in items}), kind)
        case Seq():
            return _collected([value_from_itf(item, kind.item) for item in _items(data, kind)], kind)
        case Bag():
            return _bag_of_itf(data, kind)


def _tag_alone(data: Any, kind: Type) -> Any:
    """The tag of a variant without fields, as other tools write a member of an enum."""
    tagged = _fields(data, kind, ("tag", "value"))
    if tagged["value"] not in UNITS:
        raise _wrong(data, kind)
    return tagged["tag"]


def _bag_of_itf(data: Any, kind: Bag) -> Value:
    # Within the limit: a count is refused before so many items are made of it.
    times = _pairs_of_itf(data, kind, kind.item, Int(1, kind.limit))
    if len(dict(times)) != len(times):
        raise Unreadable(f"a value of type {show_type(kind)} has two counts of an item")
    return _collected([item for item, n in times if isinstance(n, int) for _ in range(n)], kind)


def _pairs_of_itf(data: Any, kind: Type, key: Type, item: Type) -> list[tuple[Value, Value]]:
    """The pairs of a map, each once: that one is listed twice means nothing."""
    pairs = _fields(data, kind, ("#map",))["#map"]
    return list(dict.fromkeys(_pairs(pairs, kind, key, item, value_from_itf)))


def _wrong(data: Any, kind: Type) -> Unreadable:
    text = repr(data)
    return Unreadable(
        f"{text if len(text) <= 60 else text[:57] + '...'} is not a value of type {show_type(kind)}"
    )


def _scalar(data: Any, kind: Bool | Int | Enum | Sort) -> Value:
    match kind:
        case Bool() if isinstance(data, bool):
            return data
        case Int() if isinstance(data, int) and not isinstance(data, bool) and kind.low <= data <= kind.high:
            return data
        case Enum() | Sort() if data in kind.members:
            return kind.members.index(data)
    raise _wrong(data, kind)


def _fields(data: Any, kind: Type, names: Any) -> dict[str, Any]:
    if not isinstance(data, dict) or set(data) != set(names):
        raise _wrong(data, kind)
    return data


def _record(data: Any, kind: Record, read: Read) -> Value:
    table = _fields(data, kind, [name for name, _ in kind.fields])
    return tuple(read(table[name], item) for name, item in kind.fields)


def _tuple(data: Any, kind: Record, read: Read) -> Value:
    items = _items(data, kind)
    if len(items) != len(kind.fields):
        raise _wrong(data, kind)
    return tuple(read(item, part) for item, (_, part) in zip(items, kind.fields, strict=True))


def _variant(tag: Any, data: Any, kind: Union, read: Read) -> Value:
    names = [name if record.element is None else None for name, record in kind.variants]
    if tag not in names:
        raise _wrong(tag, kind)
    index = names.index(tag)
    return (index, _record(data, kind.variants[index][1], read))


def _element(data: str, kind: Union) -> Value:
    """A value of a variant that is a sort; element names are unique."""
    for index, (_, record) in enumerate(kind.variants):
        if isinstance(record.element, Sort) and data in record.element.members:
            return (index, (record.element.members.index(data),))
    raise _wrong(data, kind)


def _items(data: Any, kind: Type) -> list[Any]:
    if not isinstance(data, list):
        raise _wrong(data, kind)
    return data


def _pairs(data: Any, kind: Type, key: Type, item: Type, read: Read) -> list[tuple[Value, Value]]:
    pairs = _items(data, kind)
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise _wrong(data, kind)
    return [(read(k, key), read(v, item)) for k, v in pairs]


def _map(pairs: list[tuple[Value, Value]], kind: Map) -> Value:
    table = dict(pairs)
    keys = sorted(universe(kind.key))
    # Twice the same key leaves the table right and the pairs too many.
    if sorted(table) != keys or len(pairs) != len(keys):
        raise Unreadable(f"a value of type {show_type(kind)} has a key twice, or not all keys")
    return tuple(table[key] for key in keys)


def _partial_map(pairs: list[tuple[Value, Value]], kind: Set) -> Value:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise Unreadable(f"a value of type {show_type(kind)} has a key twice")
    return tuple(sorted(table.items()))


def _collected(items: list[Value], kind: Set | Seq | Bag) -> Value:
    """The items in order, or in canonical order; set items are distinct, and limits hold."""
    if isinstance(kind, Set):
        # A file written by hand with an item twice is no canonical value; reading it as one would hide the
        # mistake.
        if len(set(items)) != len(items):
            raise Unreadable(f"a value of type {show_type(kind)} has an item twice")
    elif len(items) > kind.limit:
        raise Unreadable(f"{len(items)} items are too many for type {show_type(kind)}")
    return tuple(items) if isinstance(kind, Seq) else tuple(sorted(items))
