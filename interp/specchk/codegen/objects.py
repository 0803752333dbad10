"""From LLVM IR to object code for this machine, and from object code to functions.

Not here: keeping object code between runs.  Those who compile do that, under a name that has `machine_name`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache

import llvmlite
import llvmlite.binding as llvm
from msgspec import Struct

VERSION: str = llvmlite.__version__  # from here, since the metadata of packages take long to load


class Linked(Struct, frozen=True):
    """The functions loaded into this process: name to address."""

    at: dict[str, int]
    keeper: object  # what owns the code: who can call it keeps this


@cache
def initialize() -> None:
    """Initialize LLVM for this machine; calling it again has no effect."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if joins_conditions():
        llvm.set_option("specchk", "-x86-br-merging-base-cost=4")


def joins_conditions() -> bool:
    """Whether a condition of several cheap parts becomes one branch here; otherwise LLVM makes one per part.

    Which part of a guard fails is as good as random, and a branch that is not foreseen takes longer than many
    parts: kip320 takes 9 % less time so, replication_large 4 %.  (`-jump-is-expensive`, for conditions of any
    size, does as much for kip320, and replication_large takes 7 % more.)
    """
    # An option that LLVM has not ends the process, and only of these versions it is known.
    is_known = bool(20 <= llvm.llvm_version_info[0] <= 22)
    return is_known and llvm.get_default_triple().startswith("x86_64")


def machine(level: int = 2) -> llvm.TargetMachine:
    """The target machine for this process, with an optimisation level of the code generator."""
    initialize()
    target = llvm.Target.from_default_triple()
    made: llvm.TargetMachine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=level,
        reloc="pic",
        codemodel="small",
    )
    return made


def version() -> str:
    """The versions of LLVM and of the package that contains it."""
    return f"{VERSION} {llvm.llvm_version_info}"


def processor() -> str:
    """LLVM's name for the kind of CPU of this machine."""
    return str(llvm.get_host_cpu_name())


def machine_name() -> str:
    """The dependencies of object code besides its source: LLVM, the CPU and its features."""
    features = hashlib.sha256(llvm.get_host_cpu_features().flatten().encode()).hexdigest()[:12]
    return f"{llvm.get_default_triple()} {llvm.llvm_version_info} {llvm.get_host_cpu_name()} {features}"


def optimised(text: str) -> bytes:
    """Optimised object code from LLVM IR."""
    return _object_code(text, code_level=2, passes_level=1)  # -O2 and -O3 make no faster code here


def quick(text: str) -> bytes:
    """Object code from LLVM IR, compiled as fast as possible."""
    return _object_code(text, code_level=0, passes_level=0)


def _object_code(text: str, *, code_level: int, passes_level: int) -> bytes:
    target = machine(code_level)
    module = llvm.parse_assembly(text)
    # Invalid IR is an error here, and a crash or worse once it is compiled.
    module.verify()
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=passes_level)
    # Loops here run over few words or end early: vectorising has little to gain and takes time to compile.
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)
    code: bytes = target.emit_object(module)
    return code


def linked(code: bytes, names: Iterable[str]) -> Linked:
    """The functions with these names in object code."""
    names = list(names)
    jit = llvm.create_lljit_compiler(machine())
    library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in names:
        library.export_symbol(name)
    tracker = library.link(jit, "kernel")
    # The code is freed with these two.
    return Linked({name: tracker[name] for name in names}, (jit, tracker))
