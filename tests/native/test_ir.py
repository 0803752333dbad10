"""Emitted IR: what is written of a function, and what its code computes."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from typing import Any

import pytest

from specchk.codegen.ir import IRModule
from specchk.codegen.objects import initialize, linked, quick
from specchk.native.machine.asm import I64, PTR, Asm, Val

WORDS = 4
Shape = tuple[Any, ...]


def function(build: Callable[[Asm], Val]) -> Asm:
    """`f(words)`, which returns what is built."""
    asm = Asm.of(IRModule(), "f", [PTR], I64, internal=False)
    asm.b.ret(build(asm))
    asm.finish()
    return asm


def lines(build: Callable[[Asm], Val]) -> list[str]:
    return str(function(build).function.module).splitlines()


def test_what_is_read_from_memory_is_read_again():
    """A store in between may have changed it."""

    def build(asm: Asm) -> Val:
        words = asm.function.args[0]
        before = asm.load(words, 0)
        asm.store(asm.add(before, 1), words, 0)
        return asm.add(before, asm.load(words, 0))

    assert run(function(build), quick, [4, 0, 0, 0]) == 9


def test_a_block_that_only_decided_jumps_lead_to_is_left_out():
    """Constants decide while the code is built, and excluded parts are not compiled."""

    def build(asm: Asm) -> Val:
        out = asm.block()
        asm.leave_if(True, out)
        asm.store(7, asm.function.args[0], 0)
        asm.fall_into(out)
        return asm.load(asm.function.args[0], 0)

    assert not any("store" in line for line in lines(build))


def test_a_block_of_a_complete_function_has_an_end():
    """A block to which control may come is left by its last instruction."""
    asm = Asm.of(IRModule(), "f", [PTR], I64, internal=False)
    asm.finish()
    with pytest.raises(AssertionError, match="is left"):
        str(asm.function.module)


def run(asm: Asm, compiled: Callable[[str], bytes], words: list[int]) -> int:
    """The number that the function returns."""
    initialize()
    library = linked(compiled(str(asm.function.module)), ["f"])
    given = (ctypes.c_uint64 * WORDS)(*words)
    result: int = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(library.at["f"])(ctypes.addressof(given))
    assert library.keeper is not None
    return result


def shape(draw: random.Random, depth: int) -> Shape:
    """A random expression: bits of a word, sums, alternatives, sums over a loop."""
    kind = draw.choice(("bits", "add", "if", "loop")) if depth else "bits"
    if kind == "bits":
        return kind, draw.randrange(WORDS), draw.randrange(0, 12, 4)
    parts = 3 if kind == "if" else 2
    return kind, *(shape(draw, depth - 1) for _ in range(parts))


def emitted(asm: Asm, words: list[Val], expr: Shape) -> Val:
    match expr:
        case "bits", index, offset:
            return asm.bits(words[index], offset, 4)
        case "add", a, b:
            return asm.add(emitted(asm, words, a), emitted(asm, words, b))
        case "if", a, b, c:
            condition = asm.cmp("<", emitted(asm, words, a), 7)
            return asm.pick(I64, condition, lambda: emitted(asm, words, b), lambda: emitted(asm, words, c))
        case _, a, b:
            total = asm.cell(I64)
            last = asm.band(emitted(asm, words, a), 3)
            asm.loop(0, last, lambda index: asm.advance(total, asm.add(index, emitted(asm, words, b))))
            return asm.b.load(total)


def computed(words: list[int], expr: Shape) -> int:
    match expr:
        case "bits", index, offset:
            return words[index] >> offset & 15
        case "add", a, b:
            return computed(words, a) + computed(words, b)
        case "if", a, b, c:
            return computed(words, b if computed(words, a) < 7 else c)
        case _, a, b:
            return sum(index + computed(words, b) for index in range((computed(words, a) & 3) + 1))


@pytest.mark.parametrize("seed", range(12))
def test_random_functions_compute_what_they_mean(seed: int):
    """Nested branches and loops, over few different values, so that most of them are shared."""
    draw = random.Random(seed)
    expr = shape(draw, 6)
    asm = Asm.of(IRModule(), "f", [PTR], I64, internal=False)
    asm.b.ret(emitted(asm, [asm.load(asm.function.args[0], index) for index in range(WORDS)], expr))
    asm.finish()
    for _ in range(5):
        words = [draw.getrandbits(16) for _ in range(WORDS)]
        assert run(asm, quick, words) == computed(words, expr)
