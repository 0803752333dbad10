"""One expression as compiled code, and the operators whose code differs from their meaning."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import llvmlite.binding as llvm
from msgspec.structs import replace

from laws.operators import Signature, cases, on_constants, tried
from specchk.codegen import ir
from specchk.ir.nodes import Apply, Expr
from specchk.ir.ops import Op
from specchk.ir.types import Bag, Int, Map, Option, Record, Seq, Set, Type, Union
from specchk.ir.typing import result_type
from specchk.native.machine.asm import I64, PTR, Asm
from specchk.native.machine.layout import WORD, BitRange, StateLayout, Unsupported, decode, width
from specchk.native.values.expressions import ExpressionEmitter
from specchk.native.values.totality import ExpressionFacts

OVERFLOW = object()  # instead of a value: a set had no room
Compiled = Callable[[tuple[Any, ...]], Any]


def layout_of(kinds: Sequence[Type]) -> StateLayout:
    """One variable after the other."""
    places, offset = [], 0
    for slot, kind in enumerate(kinds):
        places.append(BitRange(f"x{slot}", kind, offset, width(kind)))
        offset += width(kind)
    return StateLayout(tuple(places), max(1, -(-offset // WORD)))


def emit(module: ir.IRModule, name: str, expr: Expr, layout: StateLayout) -> ir.Function:
    """`name(state, out)`: 1 and the code of the value in `out`, 0 if there is none, 2 on an overflow."""
    function = ir.Function(module, ir.FunctionType(I64, [PTR, PTR]), name)
    asm = Asm(function)
    state, out = function.args
    asm.overflow = asm.cell(I64)
    emitter = ExpressionEmitter(asm, layout, ExpressionFacts(), None)
    emitter.before = [asm.load(state, index) for index in range(layout.words)]
    code = emitter.codes.code(expr.type, emitter.value(expr))
    for index in range(words_of(expr.type)):
        asm.store(asm.resize(asm.shr(code, WORD * index), I64), out, index)
    # What comes after an overflow may be undefined, and means nothing either.
    asm.b.ret(asm.add(1, asm.b.load(asm.overflow)))
    asm.enter(emitter.undefined)
    asm.b.ret(asm.shl(asm.b.load(asm.overflow), 1))
    asm.finish()
    return function


def words_of(kind: Type) -> int:
    return max(1, -(-width(kind) // WORD))


def compiled(
    exprs: Sequence[Expr], kinds: Sequence[Type], tier: ir.Tier = ir.Tier.OPTIMISED
) -> list[Compiled]:
    """The functions of expressions over variables of these types; None is no value."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    layout, module = layout_of(kinds), ir.IRModule(tier)
    for index, expr in enumerate(exprs):
        emit(module, f"f{index}", expr, layout)
    target = llvm.Target.from_default_triple().create_target_machine(opt=0)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), target)
    engine.finalize_object()
    return [_function(engine, f"f{index}", expr, layout) for index, expr in enumerate(exprs)]


def _function(engine: llvm.ExecutionEngine, name: str, expr: Expr, layout: StateLayout) -> Compiled:
    kind = expr.type
    call = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)(
        engine.get_function_address(name)
    )
    state, out = (ctypes.c_uint64 * layout.words)(), (ctypes.c_uint64 * words_of(kind))()

    def run(values: tuple[Any, ...]) -> Any:
        state[:] = layout.pack(values)
        outcome = call(ctypes.addressof(state), ctypes.addressof(out))
        if outcome != 1:
            return OVERFLOW if outcome else None
        assert engine is not None  # owns the code
        return decode(
            kind, sum(word << WORD * index for index, word in enumerate(out)) & (1 << width(kind)) - 1
        )

    return run


def miscompiled(op: Op) -> list[str]:
    """The arguments for which the code of an operator gives another value than its meaning."""
    return [
        line for expr, kinds in cases(op) if is_supported(expr, kinds) for line in _miscompiled(expr, kinds)
    ]


def _miscompiled(expr: Apply, kinds: Signature) -> Iterator[str]:
    wanted = list(tried(expr, kinds))
    plain, stored = compiled([expr, replace(expr, type=wider(expr.type))], kinds)
    (looped,) = compiled([expr], kinds, ir.Tier.QUICK)
    folded = compiled([on_constants(expr, given) for given, _ in wanted], ())
    for (given, value), constant in zip(wanted, folded, strict=True):
        for how, found in (
            ("", plain(given)),
            (" in quick code", looped(given)),
            (" of a wider type", stored(given)),
            (" folded", constant(())),
        ):
            if found != value:
                yield f"{expr.op.name}{how} of {given} in {kinds} is {found}, not {value}"


def is_supported(expr: Expr, kinds: Signature) -> bool:
    try:
        compiled([expr], kinds)
    except Unsupported:
        return False
    return True


def misjudged(op: Op) -> list[str]:
    """Operators whose code visits items one by one: it has a loop, or grows with its arguments' limits."""
    *_, (expr, kinds) = cases(op)
    (few, _), (many, has_loop) = _size(expr, kinds, 3), _size(expr, kinds, 7)
    loops = few < many or has_loop
    return [] if loops == op.card.loops else [f"{op.name} {'loops' if loops else 'does not loop'}"]


def _size(expr: Apply, kinds: Signature, limit: int) -> tuple[int, bool]:
    """The number of lines of code, and whether there is a loop."""
    kinds = tuple(resized(kind, limit) for kind in kinds)
    args = tuple(replace(arg, type=kind) for arg, kind in zip(expr.args, kinds, strict=True))
    literal = expr.op.card.result is None
    kind = resized(expr.type, limit) if literal else result_type(expr.op, args, expr.data)
    code = emit(ir.IRModule(), "f", replace(expr, type=kind, args=args), layout_of(kinds))
    return sum(len(block.lines) for block in code.blocks), _has_loop(code)


def _has_loop(code: ir.Function) -> bool:
    after = {one.text: {other.text for other in code.blocks if _leads(one, other)} for one in code.blocks}
    while ends := {text for text, others in after.items() if not others}:
        after = {text: others - ends for text, others in after.items() if text not in ends}
    return bool(after)


def _leads(one: ir.Block, other: ir.Block) -> bool:
    label = re.compile(rf"label {re.escape(other.text)}\b")
    return any(label.search(line) for line in one.lines if isinstance(line, str))  # a phi is written later


def wider(kind: Type) -> Type:
    """A type with more room, as that of a place where a value is stored."""
    return _changed(kind, lambda n: Int(n.low - 1, n.high + 2), lambda limit: limit + 1)


def resized(kind: Type, limit: int) -> Type:
    """A type of the same shape with this many items."""
    return _changed(kind, lambda _: Int(0, limit), lambda _: limit)


def _changed(kind: Type, number: Callable[[Int], Int], limit: Callable[[int], int]) -> Any:
    def go(part: Type) -> Any:
        return _changed(part, number, limit)

    match kind:
        case Int():
            return number(kind)
        case Option() | Set():
            return replace(kind, item=go(kind.item))
        case Seq() | Bag():
            return replace(kind, item=go(kind.item), limit=limit(kind.limit))
        case Map():
            return Map(kind.key, go(kind.value))
        case Record():
            return Record(tuple((name, go(part)) for name, part in kind.fields))
        case Union():
            return Union(kind.name, tuple((tag, go(part)) for tag, part in kind.variants))
    return kind
