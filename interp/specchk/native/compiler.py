"""From a program to a loaded kernel: emit, optimise, compile, cache.

The object code is kept on disk (`kept`) under a name made of everything it depends on: the program, the
renamings, the mode, the sources of these rooms, LLVM and the CPU.  A second run only links it.
"""

from __future__ import annotations

from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

from msgspec import Struct, field

from specchk import kept
from specchk.codegen import ir
from specchk.codegen.objects import machine_name, optimised, quick
from specchk.ir.program import Program
from specchk.native.kernel import predicates
from specchk.native.kernel.canonical import emit_canonical
from specchk.native.kernel.edge_kernel import EdgeKernel, RankedSteps
from specchk.native.kernel.exchange_kernel import ExchangeKernel
from specchk.native.kernel.labels import LabelledSteps
from specchk.native.kernel.region_kernel import RegionKernel
from specchk.native.kernel.search_kernel import Kernel
from specchk.native.kernel.steps import Steps
from specchk.native.kernel.table_kernel import Parts, TableKernel
from specchk.native.machine.asm import I64, PTR, Asm
from specchk.native.machine.layout import StateLayout
from specchk.native.machine.loaded import EXCHANGE, Entries, Loaded, ObjectCode, loaded
from specchk.native.values.totality import ExpressionFacts
from specchk.search.symmetry import Renaming

ROOMS = (*kept.SPEC_ROOMS, "codegen", "native")  # whose sources decide what a kernel is
MANY_STATES = 1 << 20  # of a search whose number is kept; fewer states cost 0.02 s of growing


def emit_successors(
    module: ir.IRModule, program: Program, layout: StateLayout, facts: ExpressionFacts, steps: type[Steps]
) -> ir.Function:
    """`successors(state, out, counts, cuts)`, as `steps` emits it."""
    kind = ir.FunctionType(I64, [PTR, PTR, PTR, PTR])
    successors = ir.Function(module, kind, "successors")
    successors.linkage = "internal"
    # The largest function of a kernel, called from several loops: compiled once.
    successors.attributes.append("noinline")
    for arg in successors.args:
        # True of all four: coverage and cuts are different words of the thread's block, and the batch
        # contains no state that is expanded.  So storing a successor interferes with no load and no counter.
        arg.attributes.append("noalias")
    steps(Asm(successors), program, layout, facts).emit()
    return successors


class KernelSource(Struct, frozen=True, dict=True):
    """The source of a search's kernel; its subclasses are other kernels of the same program."""

    program: Program
    layout: StateLayout
    renamings: list[Renaming] = field(default_factory=list)
    compact: bool = False
    kind: ClassVar[str] = ""  # in the name of its object code
    steps: ClassVar[type[Steps]] = Steps
    kernel: ClassVar[type[TableKernel]] = Kernel
    entries: ClassVar[Entries] = (
        ("work", 2), ("add", 3), ("rehash", 3), ("precede", 6), ("resting", 4),
    )  # fmt: skip

    def module(self, tier: ir.Tier = ir.Tier.OPTIMISED) -> ir.IRModule:
        """The LLVM module, emitted for a tier."""
        program, layout, facts = self.program, self.layout, ExpressionFacts()
        module = ir.IRModule(tier)
        self.emit_note(module)
        new = partial(predicates.Predicates, module, program, layout, facts)
        parts = Parts(
            emit_successors(module, program, layout, facts, self.steps),
            self.emit_check(new),
            predicates.emit_check_step(new, program) if program.step_invariants else None,
            predicates.emit_may_end(new, program),
            # With only the identity there is nothing to compare.
            emit_canonical(module, layout, self.renamings) if len(self.renamings) > 1 else None,
            constrained=bool(program.constraints),
        )
        self.kernel(module, program, layout, parts, compact=self.compact).emit()
        return module

    def emit_note(self, module: ir.IRModule) -> None:
        """Emit the function that is called if a property fails."""
        predicates.emit_note(module, self.layout.words)

    def emit_check(self, new: predicates.NewPredicates) -> ir.Function:
        """Emit the function that checks a new state."""
        return predicates.emit_check(new, self.program)

    def text(self, tier: ir.Tier = ir.Tier.OPTIMISED) -> str:
        """The LLVM IR, emitted for a tier."""
        return str(self.module(tier))

    def path(self, kind: str = "") -> Path | None:
        """The cache path of its object code; compiling cached IR would take as long as a search."""
        return kept.place("kernels", f"{self._key}{self.kind}{kind}.o")

    @cached_property
    def _key(self) -> str:
        return kernel_key(self.program, self.renamings, compact=self.compact)

    def code(self) -> bytes:
        """Its optimised object code, cached or newly compiled."""
        code = kept.read(self.path())
        if code is None:
            code = optimised(self.text())
            kept.write(self.path(), code)
        return code

    def cached(self) -> Loaded | None:
        """The optimised kernel, if it is in the cache."""
        code = kept.read(self.path())
        return None if code is None else self.linked(code)

    def linked(self, code: bytes) -> Loaded:
        """The kernel from optimised object code."""
        return loaded(code, self.entries)

    def keep(self, code: bytes) -> Loaded:
        """The kernel from newly optimised object code, which is cached."""
        kept.write(self.path(), code)
        return self.linked(code)

    def quick(self) -> Loaded:
        """The kernel without optimisation, cached or newly compiled."""
        code = kept.read(self.path("-quick"))
        if code is None:
            code = quick(self.text(ir.Tier.QUICK))
            kept.write(self.path("-quick"), code)
        return loaded(code, self.entries, is_optimised=False)

    def note_states(self, states: int) -> None:
        """Keep the number of states that a search had at its end, for the next one.

        Kip320 3/2/2/3, with 10 million states, takes a fifth longer if its table has to grow.
        """
        if states >= MANY_STATES and states != self.expected_states():
            kept.write(self.path("-states"), b"%d" % states)

    def expected_states(self, limit: int | None = None) -> int:
        """The number of states that the last search had, up to a limit; 0 if they were not many."""
        # It decides the size of a table and no result, so a search with other initial states may use it, too.
        found = kept.read(self.path("-states")) or b""
        states = int(found) if found.isdigit() else 0
        return states if limit is None else min(states, limit)


class RegionSource(KernelSource, frozen=True, dict=True):
    """The source of the kernel of regions of the step graph."""

    kind: ClassVar = "-regions"
    steps: ClassVar = LabelledSteps
    kernel: ClassVar = RegionKernel
    entries: ClassVar = (
        ("begins", 3), ("gather", 3), ("spread", 4), ("components", 5), ("judge", 3), ("survive", 3),
        ("leading", 5), ("follow", 2), ("survey", 3), ("rehash", 3),
    )  # fmt: skip


class EdgeSource(KernelSource, frozen=True, dict=True):
    """The source of the kernel that lists steps and names states."""

    kind: ClassVar = "-edges"
    steps: ClassVar = RankedSteps
    kernel: ClassVar = EdgeKernel
    entries: ClassVar = (
        ("edges", 4), ("identify", 3), ("share_names", 4), ("repeats", 3), ("represent", 1),
    )  # fmt: skip


class ExchangeSource(KernelSource, frozen=True, dict=True):
    """The source of the kernel of an engine that exchanges states."""

    kind: ClassVar = "-exchange"
    kernel: ClassVar = ExchangeKernel
    entries: ClassVar = EXCHANGE


def exchange_code(program: Program, layout: StateLayout, renamings: list[Renaming]) -> ObjectCode:
    """The kernel of an exchanging engine as object code, from the cache or newly compiled."""
    return ObjectCode(ExchangeSource(program, layout, renamings).code(), machine_name())


def load_exchange(
    program: Program, layout: StateLayout, renamings: list[Renaming], shipped: ObjectCode
) -> Loaded:
    """The kernel from shipped object code, or compiled here on a machine of another kind."""
    source = ExchangeSource(program, layout, renamings)
    # Instructions of the driver's processor may be missing here; a signal would end the executor.
    fits = shipped.machine == machine_name()
    return loaded(shipped.code if fits else optimised(source.text()), source.entries)


def kernel_key(program: Program, renamings: list[Renaming], *, compact: bool) -> str:
    """A name that determines all dependencies of a kernel."""
    compiler = (kept.sources(*ROOMS), kept.library("llvmlite"), machine_name())
    return kept.name_of(*compiler, compact, renamings, _essence(program))


def _essence(program: Program) -> tuple[object, ...]:
    """The dependencies of a kernel, without spans and names of models."""
    # Nor initial states: they are computed by the interpreter, and packed for the kernel.
    return (
        program.sorts, program.variables, program.actions, program.invariants, program.step_invariants,
        program.witnesses, program.constraints, program.deadlock_ok, program.fairness, program.liveness,
        program.ignored, len(program.points),
    )  # fmt: skip
