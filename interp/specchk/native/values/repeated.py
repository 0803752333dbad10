"""Repeated parts of a program, each emitted once, as a function of the kernel.

Definitions are inlined, so the properties of a large spec are several times as long as its text.  If code
must be available soon, and need not be fast (`Tier.QUICK`), a repeated part becomes a call, whose arguments
are the values of its free names.  Copies are identified by their place in the source, and then compared:
constants and simplification may have made them different.

Not here: optimised code, in which LLVM simplifies each copy further where it stands alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any, get_args

from msgspec import Struct

from specchk.codegen import ir
from specchk.identity import compared
from specchk.ir import nodes
from specchk.ir.types import Type
from specchk.ir.verify import bound
from specchk.ir.walk import inside
from specchk.native.machine.asm import I64, PTR, Asm, Val
from specchk.native.machine.layout import WORD, StateLayout
from specchk.native.values.codes import register
from specchk.native.values.expressions import ExpressionEmitter
from specchk.native.values.totality import ExpressionFacts

LEAST = 20  # cost of a part below which it has no function of its own
MOST_VARIANTS = 4  # of the part at one place; further ones are emitted in place
UNDEFINED, BEYOND = 1, 2  # reasons why a part has no value

Place = tuple[int, type]  # the identity of a span, and the class of the node


class PartFunction(Struct, frozen=True):
    """The function of a part; its arguments are the values of the free names, which have these types."""

    part: nodes.Expr
    names: tuple[int, ...]
    types: tuple[Type, ...]
    function: ir.Function
    may_fail: bool


class Surroundings(Struct, frozen=True):
    """The arguments of every function: the states, and the addresses of coverage counts and overflow."""

    states: tuple[ir.Value, ...]
    counts: ir.Value
    overflow: ir.Value


class RepeatedParts:
    """The functions of repeated parts of some expressions, for one function of a kernel."""

    def __init__(
        self, module: ir.IRModule, layout: StateLayout, facts: ExpressionFacts, roots: Iterable[nodes.Expr]
    ) -> None:
        self._module, self._layout, self._facts = module, layout, facts
        self._roots = tuple(roots)  # referenced, so that the identities of their spans are not reused
        self._times = Counter(
            (id(part.span), part.__class__) for root in self._roots for part in inside(root)
        )
        self._known: dict[Place, list[PartFunction]] = {}

    def serve(self, emitter: ExpressionEmitter, around: Surroundings, times: int = 1) -> None:
        """Let an emitter call functions for parts that occur more often than its own code, `times`."""
        emitter.called = lambda expr: self._value(emitter, expr, around, times)

    def _value(
        self, emitter: ExpressionEmitter, expr: nodes.Expr, around: Surroundings, times: int
    ) -> Val | None:
        """The value of a part by a call; None if it is better emitted in place."""
        place = id(expr.span), expr.__class__
        # Unrolled loops emit a part once for each item.
        here = self._times[place] * emitter.domains.copies
        if here <= times:
            return None
        found = self._found(place, emitter, expr)
        if found is None:
            found = self._added(place, emitter, expr, around, here)
        return None if found is None else self._call(emitter, *found, around)

    def _found(
        self, place: Place, emitter: ExpressionEmitter, expr: nodes.Expr
    ) -> tuple[PartFunction, list[Val]] | None:
        """The function of an equal part, and its arguments here."""
        for known in self._known.get(place, ()):
            names = renaming(known.part, expr)
            if names is not None:
                given = [emitter.locals[names[name]] for name in known.names]
                if tuple(kind for _, kind in given) == known.types:
                    return known, [value for value, _ in given]
        return None

    def _added(
        self, place: Place, emitter: ExpressionEmitter, expr: nodes.Expr, around: Surroundings, times: int
    ) -> tuple[PartFunction, list[Val]] | None:
        """A new function, and its arguments here."""
        variants = self._known.setdefault(place, [])
        if len(variants) == MOST_VARIANTS:
            # The copies differ: comparing further ones may take longer than emitting them.
            self._times[place] = 0
            return None
        if self._facts.cost(expr) < LEAST:
            return None
        names = _free(expr)
        given = [emitter.locals[name] for name in names]
        types = tuple(kind for _, kind in given)
        # Wider values have several words, which LLVM would split at every call.
        if any(register(kind).width > WORD for kind in (expr.type, *types)):
            return None
        variants.append(self._function(expr, dict(zip(names, types, strict=True)), len(around.states), times))
        return variants[-1], [value for value, _ in given]

    def _call(
        self, emitter: ExpressionEmitter, called: PartFunction, given: Sequence[Val], around: Surroundings
    ) -> Val:
        asm = emitter.asm
        args = [*around.states, around.counts, around.overflow]
        args += [asm.val(value, register(kind)) for value, kind in zip(given, called.types, strict=True)]
        if not called.may_fail:
            return asm.b.call(called.function, [*args, ir.ConstantValue(PTR, None)])
        fault = asm.cell(I64)
        value = asm.b.call(called.function, [*args, fault])
        reason = asm.b.load(fault)
        asm.leave_if(asm.cmp("==", reason, UNDEFINED), emitter.undefined)
        asm.leave_if(asm.cmp("==", reason, BEYOND), emitter.beyond)
        return value

    def _function(self, expr: nodes.Expr, names: Mapping[int, Type], states: int, times: int) -> PartFunction:
        """A part's function; its last argument is the address for the reason why there is no value."""
        shape, heads = register(expr.type), [PTR] * (states + 2)
        # Numbered as they are begun: a function is begun before those that it calls.
        name = f"part{len(self._module.globals)}"
        asm = Asm.of(self._module, name, [*heads, *map(register, names.values()), PTR], shape)
        *args, fault = asm.function.args
        around = Surroundings(tuple(args[:states]), args[states], args[states + 1])
        emitter = ExpressionEmitter(asm, self._layout, self._facts, around.counts)
        emitter.beyond = asm.block("beyond")
        emitter.before, emitter.after = self._words(asm, around, expr)
        emitter.locals.update(zip(names, zip(args[len(heads) :], names.values(), strict=True), strict=True))
        asm.overflow = around.overflow
        self.serve(emitter, around, times)
        asm.b.ret(asm.val(emitter.in_place(expr), shape))
        failures = ((emitter.undefined, UNDEFINED), (emitter.beyond, BEYOND))
        may_fail = any(block.is_reached for block, _ in failures)
        for block, reason in failures:
            asm.enter(block)
            asm.b.store(reason, fault)
            asm.b.ret(0)
        asm.finish()
        return PartFunction(expr, tuple(names), tuple(names.values()), asm.function, may_fail)

    def _words(self, asm: Asm, around: Surroundings, expr: nodes.Expr) -> tuple[list[Val], list[Val]]:
        """The words of the states before and after: loaded if the expression reads them, else 0."""
        read: set[tuple[bool, int]] = set()
        for part in inside(expr):
            if isinstance(part, nodes.Var) and (place := self._layout.places[part.slot]).width:
                last = (place.offset + place.width - 1) // WORD
                read |= {(part.primed, word) for word in range(place.offset // WORD, last + 1)}
        before, after = (
            [asm.load(state, word) if (primed, word) in read else 0 for word in range(self._layout.words)]
            for primed, state in ((False, around.states[0]), (True, around.states[-1]))
        )
        return before, after


def _free(expr: nodes.Expr) -> tuple[int, ...]:
    """The names that a part uses and does not bind."""
    used: dict[int, None] = {}
    own: set[int] = set()
    for part in inside(expr):
        if isinstance(part, nodes.Local):
            used[part.slot] = None
        else:
            own.update([local.slot for local in bound(part)])
    return tuple([name for name in used if name not in own])


def renaming(part: nodes.Expr, other: nodes.Expr) -> dict[int, int] | None:
    """The names in `other` for those in `part`, if nothing else differs."""
    names: dict[int, int] = {}
    return names if _alike(part, other, names, {}) else None


def _alike(a: Any, b: Any, there: dict[int, int], back: dict[int, int]) -> bool:
    kind = a.__class__
    if kind is not b.__class__:
        return False
    if kind is nodes.Local:
        is_same = there.setdefault(a.slot, b.slot) == b.slot and back.setdefault(b.slot, a.slot) == a.slot
        return is_same and bool(a.type == b.type)
    fields = _FIELDS.get(kind)
    if fields is None:
        return bool(a == b)
    left, right = fields(a), fields(b)
    if len(left) != len(right):
        return False
    for x, y in zip(left, right, strict=True):
        # Most fields are types, operators and numbers: comparing one takes less time than a call.
        if x.__class__ in _FIELDS or x.__class__ is nodes.Local:
            if not _alike(x, y, there, back):
                return False
        elif x is not y and x != y:
            return False
    return True


# The compared fields of whatever may contain names; everything else is compared as a whole.
_FIELDS: Mapping[type, Callable[[Any], tuple[Any, ...]]] = MappingProxyType({
    tuple: lambda items: items,
    **{
        kind: attrgetter(*compared(kind))
        for kind in get_args(nodes.Expr)
        if kind not in (nodes.Const, nodes.Var, nodes.Local)
    },
})  # fmt: skip
