"""Layout: values and states as numbers, in the fewest 64-bit words that their types allow.

Every value of a type is one number of `width(kind)` bits, its *code*:

| type | code |
|---|---|
| bool, int, enum, sort | position in the type's range |
| T? | 0 for none; T a scalar: 1 + code, else a tag bit above the item's code |
| record, map | the parts' codes side by side, the first part highest |
| union | the variant's position above its record's code |
| set of few values | one bit for each value of the item type, the least value lowest |
| seq, bag, any other set | the slots, the first highest, empty ones 0; below them the length |

Codes are canonical, so equality is equality of numbers, and (sets aside) their order is the order
of values in `meaning.values`.  A state is the variables' codes at fixed bit offsets; a variable
straddles words only if it is wider than one or the fewest words would not suffice otherwise.

A *sparse* set is one over more values than its `Room` has bits for.  It has as many slots as the room has
items; a set with more of them raises `NoRoom`, and the search restarts with larger rooms (`machine.rooms`).

Whatever the native engine has no code for (a set whose items take more than a word, a state over `MAX_WORDS`
words, a number of more than `MAX_NUMBER_BITS` bits, a range that may be too large to be listed, since ranges
here are two bounds and never undefined) raises `Unsupported`: the caller reports it and uses the reference
engine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property, lru_cache, partial
from itertools import accumulate, chain, repeat
from operator import or_
from typing import Any

from msgspec import Struct

from specchk.ir.nodes import Apply, Collect, Expr, Gather, Let, Local
from specchk.ir.ops import Op
from specchk.ir.program import Program, Variable
from specchk.ir.totality import is_partial
from specchk.ir.types import (
    MAX_LISTED_BITS,
    Bag,
    Bool,
    Enum,
    Int,
    Map,
    Option,
    Record,
    Seq,
    Set,
    Sort,
    Type,
    Union,
    cardinality,
    numbers,
    of_shape,
    show,
)
from specchk.ir.walk import searched
from specchk.meaning.values import State, positions, universe
from specchk.search.engine import Placing, Unsupported

MAX_WORDS = 64
WORD = 64
# Of 64 bits, one is for the sign, and one keeps differences of two numbers, as of a number and its type's
# lowest, within a word.
MAX_NUMBER_BITS = 62


def is_scalar(kind: Type) -> bool:
    """Whether the code is a position: from 0 up to the number of values, without gaps."""
    return isinstance(kind, Bool | Int | Enum | Sort) or (isinstance(kind, Option) and is_scalar(kind.item))


def bits_for(count: int) -> int:
    """The number of bits needed to distinguish `count` values."""
    return max(0, count - 1).bit_length()


@lru_cache(maxsize=4096)
def width(kind: Type) -> int:
    """The number of bits in the code of a type."""
    if is_scalar(kind):
        # An option of a scalar is one, too: `(0..2)?` takes two bits, with a tag of its own three.
        return bits_for(cardinality(kind))
    match kind:
        case Option():
            return 1 + width(kind.item)
        case Record():
            return sum(width(item) for _, item in kind.fields)
        case Union():
            # All variants share the bits below the tag; the rest of a shorter one is 0, so that equal
            # values have equal codes.
            return bits_for(len(kind.variants)) + payload_width(kind)
        case Map():
            return key_count(kind) * width(kind.value)
        case Set() if not is_sparse(kind):
            return set_size(kind)
        case Set() | Seq() | Bag():
            return slots_of(kind) * width(kind.item) + length_bits(kind)
    raise AssertionError(kind)


def payload_width(kind: Union) -> int:
    """The number of bits below the tag."""
    return max((width(record) for _, record in kind.variants), default=0)


class NoRoom(Exception):
    """A set has more items than this search has slots for."""


def is_sparse(kind: Set) -> bool:
    """Whether a set's code lists its items; `Unsupported` if neither a list nor a bit set is possible."""
    size = cardinality(kind.item)
    if size <= kind.room.dense:
        return False
    if not kind.room.items:
        raise Unsupported(f"a set over {show(kind.item)} would need {size} bits")
    if width(kind.item) > WORD:
        raise Unsupported(f"an item of a set over {show(kind.item)} would need {width(kind.item)} bits")
    return True


def is_enumerated(domain: Expr) -> bool:
    """Whether the items of a set are sets that are visited without building it."""
    match domain:
        case Apply(op=Op.SUBSETS | Op.MAPS):
            return True
        case Let(body=body):
            return _is_large(domain) and is_enumerated(body)
        case Collect(gather=Gather.SET, binders=((local, listed),), body=body):
            return _is_large(domain) and body == local and is_enumerated(listed)
    return False


def _is_large(domain: Expr) -> bool:
    kind = of_shape(domain.type, Set)
    return cardinality(kind.item) > kind.room.dense


def set_size(kind: Set) -> int:
    """The number of values of the item type of a set stored as bits."""
    if is_sparse(kind):
        raise Unsupported(f"a bit for each value of {show(kind.item)}")
    return cardinality(kind.item)


def slots_of(kind: Set | Seq | Bag) -> int:
    """The number of items for which there is room."""
    return min(kind.room.items, cardinality(kind.item)) if isinstance(kind, Set) else kind.limit


def key_count(kind: Map) -> int:
    """The number of keys of a map."""
    size = cardinality(kind.key)
    # A map's code has its value once for each key, and a state has 4096 bits at most.
    if size > 1 << 16:
        raise Unsupported(f"a map over {show(kind.key)} has {size} keys")
    return size


def field_offset(kind: Record, index: int) -> int:
    """The offset of a field's code, in bits from the record's lowest."""
    return sum(width(item) for _, item in kind.fields[index + 1 :])


def length_bits(kind: Set | Seq | Bag) -> int:
    """The number of bits of the length, below the slots."""
    return bits_for(slots_of(kind) + 1)


Parts = tuple[tuple[int, Type], ...]


@lru_cache(maxsize=4096)
def parts_of(kind: Type) -> Parts:
    """The offsets and types of the codes inside a code, in the order of the values; of slots, all of them."""
    match kind:
        case Option():
            return ((0, kind.item),)
        case Record():
            return tuple([(field_offset(kind, i), item) for i, (_, item) in enumerate(kind.fields)])
        case Map():
            size = width(kind.value)
            return tuple([(at * size, kind.value) for at in reversed(range(key_count(kind)))])
        case Set() | Seq() | Bag():
            size, below = width(kind.item), length_bits(kind)
            return tuple([(below + at * size, kind.item) for at in reversed(range(slots_of(kind)))])
    return ()


def encode(kind: Type, value: Any) -> int:
    """The code of a value."""
    match kind:
        case Bool() | Enum() | Sort():
            return int(value)
        case Int():
            return int(value) - kind.low
        case Option():
            if not value:
                return 0
            item = encode(kind.item, value[0])
            return 1 + item if is_scalar(kind) else 1 << width(kind.item) | item
        case Record() | Map():
            return _joined(parts_of(kind), value)
        case Union():
            tag, record = value
            return int(tag) << payload_width(kind) | encode(kind.variants[tag][1], record)
        case Set() if not is_sparse(kind):
            table = positions(kind.item)
            ranks: list[int] = [table[item] for item in value]
            return sum(1 << rank for rank in ranks)
        case Set() | Seq() | Bag():
            if len(value) > slots_of(kind):
                raise NoRoom(f"{len(value)} items of {show(kind)}")
            # Empty slots are 0 and the length is lowest, so that codes of sequences have the order of the
            # sequences: the first difference decides, and of a sequence and its beginning the shorter one
            # is less.
            return _joined(parts_of(kind)[: len(value)], value) | len(value)


def _joined(parts: Parts, values: Iterable[Any]) -> int:
    """The codes of values side by side."""
    return sum([encode(part, value) << at for (at, part), value in zip(parts, values, strict=True)])


def decode(kind: Type, code: int) -> Any:
    """The value of a code: the inverse of `encode`."""
    match kind:
        case Bool():
            return bool(code)
        case Enum() | Sort():
            return code
        case Int():
            return code + kind.low
        case Option():
            if code == 0:
                return ()
            return (decode(kind.item, code - 1 if is_scalar(kind) else code & mask(width(kind.item))),)
        case Record() | Map():
            return _taken_apart(parts_of(kind), code)
        case Union():
            tag, rest = code >> payload_width(kind), code & mask(payload_width(kind))
            return (tag, decode(kind.variants[tag][1], rest))
        case Set() if not is_sparse(kind):
            return tuple([item for rank, item in enumerate(sorted(universe(kind.item))) if code >> rank & 1])
        case Set() | Seq() | Bag():
            return _taken_apart(parts_of(kind)[: code & mask(length_bits(kind))], code)


def _taken_apart(parts: Parts, code: int) -> tuple[Any, ...]:
    return tuple([decode(part, code >> at & mask(width(part))) for at, part in parts])


def mask(size: int) -> int:
    """The number with the lowest `size` bits set."""
    return (1 << size) - 1


class BitRange(Struct, frozen=True):
    """The bits of a variable: `offset` counts from bit 0 of word 0."""

    name: str
    type: Type
    offset: int
    width: int


class StateLayout(Struct, frozen=True, dict=True):
    """The positions of all variables; a state has `words` 64-bit words."""

    places: tuple[BitRange, ...]  # in the order of the program's variables
    words: int

    def pack(self, state: State) -> tuple[int, ...]:
        """A state as words."""
        return tuple(memoryview(self.packed([state])).cast("Q"))

    def masks(self, ignored: Collection[int]) -> list[int]:
        """For each word, the bits that do not belong to some variables."""
        of_all = sum(mask(p.width) << p.offset for slot, p in enumerate(self.places) if slot in ignored)
        return [mask(WORD) & ~(of_all >> WORD * index) for index in range(self.words)]

    def packed(self, states: Sequence[State]) -> bytes:
        """The words of many states, one state after the other."""
        # A whole state is one number, then cut into words: a straddling variable needs no case of its own.
        codes: Iterable[int] = repeat(0, len(states))
        # By columns and not by states: a value that many states have is encoded once, and nothing else is
        # done for each of them by the interpreter.
        columns = zip(*states, strict=True) if states else repeat((), len(self.places))
        for place, column in zip(self.places, columns, strict=True):
            code = {value: encode(place.type, value) << place.offset for value in set(column)}
            codes = map(or_, codes, map(code.__getitem__, column))
        size = WORD // 8 * self.words
        return b"".join([code.to_bytes(size, "little") for code in codes])

    def unpack(self, words: tuple[int, ...]) -> State:
        """The state of packed words: the inverse of `pack`."""
        code = sum(word << WORD * index for index, word in enumerate(words))
        parts = zip(self._decoders, self.places, strict=True)
        return tuple([decoded(code >> p.offset & mask(p.width)) for decoded, p in parts])

    @cached_property
    def _decoders(self) -> list[Callable[[int], Any]]:
        """For each variable the function from codes to values: most states of a search share most values."""
        return [lru_cache(1 << 10)(partial(decode, place.type)) for place in self.places]


def layout_of(program: Program) -> StateLayout:
    """Place the variables in the fewest words, straddling word boundaries only if necessary."""
    _check_expressions(program)
    sizes = [_width_of(variable) for variable in program.variables]
    words = max(1, -(-sum(sizes) // WORD))
    if words > MAX_WORDS:
        widest = program.variables[sizes.index(max(sizes))]
        raise Unsupported(
            f"a state needs {words} words of 64 bits, most of them for `{widest.name}`", widest.span
        )
    # A straddling variable costs two shifts at each access, one word more costs memory for all states:
    # words first.
    offsets = _fitted(sizes, words) or list(accumulate(sizes, initial=0))
    places = [
        BitRange(v.name, v.type, offsets[slot], sizes[slot]) for slot, v in enumerate(program.variables)
    ]
    return StateLayout(tuple(places), words)


def _width_of(variable: Variable) -> int:
    with Placing(variable.span):
        return width(variable.type)


def _check_expressions(program: Program) -> None:
    """Reject ranges that may be too large to be listed, and numbers that might not fit into a register.

    Initial states are listed by the reference evaluator, which has neither limit.
    """
    declared: list[Variable | Local] = [
        *program.variables,
        *chain.from_iterable(action.params for action in program.actions),
    ]
    kinds = {one.type: one.span for one in declared}
    types: dict[int, Expr] = {}  # by identity of the type: most are shared, and hashing one walks it
    for expr in searched(program):
        types.setdefault(id(expr.type), expr)
        if isinstance(expr, Apply) and expr.op is Op.RANGE and is_partial(expr):
            reason = f"`{expr.span.text}` may have more than 2 ** {MAX_LISTED_BITS} items"
            raise Unsupported(reason, expr.span)
    kinds = {expr.type: expr.span for expr in types.values()} | kinds
    most = 1 << MAX_NUMBER_BITS
    for kind, span in kinds.items():
        if any(number.low <= -most or number.high >= most for number in numbers(kind)):
            raise Unsupported(f"numbers of more than {MAX_NUMBER_BITS} bits", span)


def _fitted(sizes: list[int], words: int) -> list[int] | None:
    """First fit, widest first; only wide variables straddle words. None if that takes more words."""
    free = [[WORD * index, WORD * (index + 1)] for index in range(words)]
    offsets = [0] * len(sizes)
    start = 0
    # First fit decreasing needs at most 11/9 of the best number of words; if it needs more words than the
    # bits require, `None` reports that, and the variables are put in a row.
    order = sorted(range(len(sizes)), key=lambda slot: (-sizes[slot], slot))
    for slot in order:
        # Wide variables come first in the order, and take the words from the start on.
        if sizes[slot] > WORD:
            offsets[slot] = start
            start += sizes[slot]
            for span in free:
                span[0] = min(span[1], max(span[0], start))
            continue
        home = next((span for span in free if span[1] - span[0] >= sizes[slot]), None)
        if home is None:
            return None
        offsets[slot] = home[0]
        home[0] += sizes[slot]
    return offsets


def render_layout(program: Program) -> str:
    """The layout as a table: word, bits, variable and type, and the free bits of each word."""
    layout = layout_of(program)
    used = sum(place.width for place in layout.places)
    lines = [f"{used} bits in {layout.words} word{'s' if layout.words > 1 else ''} of 64"]
    for place in sorted(layout.places, key=lambda p: (p.offset, p.name)):
        word, low = divmod(place.offset, WORD)
        last_word, high = divmod(max(place.offset, place.offset + place.width - 1), WORD)
        until = f"{high:>2}" if last_word == word else f"{last_word}.{high}"
        lines.append(
            f"  word {word}  bits {low:>2}-{until}  {place.width:>3}  {place.name}: {show(place.type)}"
        )
    return "\n".join(lines)
