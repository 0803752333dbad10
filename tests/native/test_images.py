"""Kernels in memory without LLVM: placed unchanged, and equal to those that LLVM links."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from specchk.codegen.images import image_of, processor_name
from specchk.codegen.llvm import optimised, quick
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.native import compiler
from specchk.native.compiler import KernelSource
from specchk.native.engine import NativeOptions, search
from specchk.native.machine.layout import layout_of
from specchk.native.machine.loaded import placed
from specchk.native.machine.rooms import FIRST_ROOM, with_room
from specchk.search.symmetry import Symmetry

SPEC = Path(__file__).resolve().parents[2] / "spec"
pytestmark = pytest.mark.skipif(not processor_name(), reason="images are for Linux on x86-64")
# Constants of 8 and 16 bytes, a table, and a switch that LLVM makes a table of places in the code.
CONSTANTS = """
@t = private unnamed_addr constant [8 x i64] [i64 3, i64 1, i64 4, i64 1, i64 5, i64 9, i64 2, i64 6]
define i64 @chosen(i64 %x) noinline {
  %i = and i64 %x, 7
  switch i64 %i, label %z [ i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %d i64 4, label %e ]
a: %a1 = mul i64 %x, 3 ret i64 %a1
b: %b1 = xor i64 %x, 77 ret i64 %b1
c: %c1 = udiv i64 %x, 5 ret i64 %c1
d: %d1 = shl i64 %x, 3 ret i64 %d1
e: %e1 = sub i64 1000, %x ret i64 %e1
z: ret i64 9
}
define i64 @f(i64 %x) {
  %i = and i64 %x, 7
  %p = getelementptr [8 x i64], ptr @t, i64 0, i64 %i
  %v = load i64, ptr %p
  %w = call i64 @chosen(i64 %x)
  %r = mul i64 %v, %w
  ret i64 %r
}
"""
TABLE = (3, 1, 4, 1, 5, 9, 2, 6)


def meant(x: int) -> int:
    """The value that `f` computes."""
    chosen = {0: 3 * x, 1: x ^ 77, 2: x // 5, 3: 8 * x, 4: 1000 - x}.get(x % 8, 9)
    return TABLE[x % 8] * chosen


@pytest.mark.parametrize("compiled", [quick, optimised])
def test_constants_are_placed_beside_the_code(compiled: Callable[[str], bytes]) -> None:
    """References of the code are resolved, from any section."""
    code = compiled(CONSTANTS)
    assert b".rodata" in code
    image = image_of(code, ["f"])
    assert image is not None
    loaded = placed(image, (("f", 1),))
    address = ctypes.cast(loaded.call["f"], ctypes.c_void_p).value
    f = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(address)
    assert [f(x) for x in range(40)] == [meant(x) for x in range(40)]


def test_code_lives_as_long_as_one_of_its_functions() -> None:
    """And no longer: a process creates thousands of kernels, and a call of freed code crashes it."""
    image = image_of(optimised(CONSTANTS), ["f", "chosen"])
    assert image is not None
    loaded = placed(image, (("f", 1), ("chosen", 1)))
    code, f = weakref.ref(loaded.keeper), loaded.call["f"]
    del loaded
    assert code() is not None
    f(3)
    del f
    assert code() is None


KERNELS = [
    ("kafka/kip320.spec", "small"), ("elr.spec", None), ("replication.spec", None),
    ("examples/raft.spec", None), ("examples/sliding_block.spec", None), ("examples/fifo.spec", None),
]  # fmt: skip


def program_of(name: str, model: str | None) -> Program:
    return instantiate(check(str(SPEC / name)), model).program


@pytest.mark.parametrize(("name", "model"), KERNELS)
def test_every_kernel_has_an_image(name: str, model: str | None) -> None:
    """Without one, a run would silently use LLVM's linker and start slowly."""
    program = with_room(program_of(name, model), FIRST_ROOM)
    source = KernelSource(program, layout_of(program), Symmetry(program).renamings)
    names = [entry for entry, _ in source.entries]
    assert image_of(quick(source.text()), names) is not None


def test_a_machine_without_images_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same outcome, however the code was loaded; also if a page cannot be made executable."""
    program, options = program_of("kafka/kip320.spec", "small"), NativeOptions(workers=2)
    ways: list[str] = []
    linked, put = compiler.linked, compiler.placed

    def linking(*args: object) -> object:
        ways.append("linked")
        return linked(*args)  # type: ignore[arg-type]

    def placing(*args: object, **more: object) -> object:
        ways.append("placed")
        return put(*args, **more)  # type: ignore[arg-type]

    def refused(*_: object, **__: object) -> object:
        raise PermissionError

    monkeypatch.setattr(compiler, "linked", linking)
    monkeypatch.setattr(compiler, "placed", placing)
    found = [search(program, options)]
    monkeypatch.setattr(compiler, "placed", refused)
    found.append(search(program, options))
    monkeypatch.setattr(compiler, "processor_name", lambda: "")
    found.append(search(program, options))
    assert {"placed", "linked"} == {*ways}
    assert ways.count("linked") == 2 * ways.count("placed")
    assert len({(repr(o.verdict), repr(o.coverage), repr(o.statistics.levels)) for o in found}) == 1


RUN = """
import sys
from specchk.cli.main import main
sys.argv = ["specchk", "run", {spec!r}, "--engine", "native", "--workers", "1", "--json"]
try:
    main()
except SystemExit as ended:
    print(ended.code, "llvmlite" in sys.modules, file=sys.stderr)
"""


def test_a_run_whose_code_was_kept_imports_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run uses kept code, quick or optimised; only compiling needs LLVM."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def run() -> str:
        program = RUN.format(spec=str(SPEC / "kafka" / "kip320.spec"))
        done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
        return done.stderr.splitlines()[-1]

    assert [run(), run()] == ["0 True", "0 False"]
    (tmp_path / "specchk" / "kernels").rename(tmp_path / "elsewhere")
    assert run() == "0 True"
