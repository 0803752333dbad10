"""The arrays of kernels, and what kernels do with them besides reading and writing elements.

Each function here is an instruction in a compiled kernel.  In Python an address becomes an array over the
very memory that compiled code has there, and nothing is atomic.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, MutableSequence
from types import MappingProxyType
from typing import Any

from specchk.codegen.builder import IRBuilder, pointee
from specchk.codegen.ir import IntType, Value

Words = MutableSequence[int]
Halves = MutableSequence[int]
Octets = MutableSequence[int]
WIDTHS: Mapping[str, int] = MappingProxyType({"Words": 64, "Halves": 32, "Octets": 8})
_END = 1 << 40  # elements of an array whose end nobody knows


def words(address: int) -> Words:
    """The 64-bit words at an address."""
    return _array(ctypes.c_uint64, "Q", address)


def halves(address: int) -> Halves:
    """The 32-bit words at an address."""
    return _array(ctypes.c_uint32, "I", address)


def octets(address: int) -> Octets:
    """The bytes at an address."""
    return _array(ctypes.c_uint8, "B", address)


def _array(kind: Any, letter: str, address: int) -> Words:
    whole: Any = memoryview((kind * _END).from_address(address)).cast("B")
    array: Words = whole.cast(letter)
    return array


def below(a: int, b: int) -> int:
    """Whether a < b, as numbers without a sign."""
    return a < b


def prefetch(array: Words, index: int) -> None:
    """Prefetch the cache line of an element; an address without a page is no fault."""


def peek(array: Words, index: int) -> int:
    """An element that other workers may write meanwhile; orders nothing."""
    return array[index]


def poke(array: Words, index: int, value: int) -> None:
    """Write an element that other workers may read or write meanwhile; orders nothing."""
    array[index] = value


def draw(array: Words, index: int, count: int) -> int:
    """Increase a word that workers share; its previous value."""
    array[index] += count
    return array[index] - count


def swap(array: Words, index: int, old: int, new: int) -> int:
    """Replace an element if it is `old`: whether it was.  Of several workers one succeeds."""
    if array[index] != old:
        return 0
    array[index] = new
    return 1


def _address(width: int) -> Callable[[IRBuilder, Value], Value]:
    return lambda b, address: b.inttoptr(address, IntType(width).as_pointer())


def _draw(b: IRBuilder, array: Value, index: Value, count: Value) -> Value:
    return b.atomic_rmw("add", b.gep(array, [index]), count, "monotonic")


def _prefetch(b: IRBuilder, array: Value, index: Value) -> Value:
    b.prefetch(b.gep(array, [index]))
    return index


def _peek(b: IRBuilder, array: Value, index: Value) -> Value:
    place = b.gep(array, [index])
    return b.load_atomic(place, "monotonic", pointee(place).width // 8)


def _poke(b: IRBuilder, array: Value, index: Value, value: Value) -> Value:
    place = b.gep(array, [index])
    kind = pointee(place)
    b.store_atomic(b.trunc(value, kind), place, "monotonic", kind.width // 8)
    return value


def _swap(b: IRBuilder, array: Value, index: Value, old: Value, new: Value) -> Value:
    place = b.gep(array, [index])
    kind = pointee(place)
    pair = b.cmpxchg(place, b.trunc(old, kind), b.trunc(new, kind), "monotonic", "monotonic")
    return b.extract_value(pair, 1)


INSTRUCTIONS: Mapping[str, Callable[..., Value]] = MappingProxyType({
    "words": _address(64), "halves": _address(32), "octets": _address(8),
    "max": lambda b, a, c: b.select(b.icmp_signed("<", a, c), c, a),
    "min": lambda b, a, c: b.select(b.icmp_signed("<", c, a), c, a),
    "below": lambda b, a, c: b.icmp_unsigned("<", a, c),
    "prefetch": _prefetch, "peek": _peek, "poke": _poke, "draw": _draw, "swap": _swap,
})  # fmt: skip
