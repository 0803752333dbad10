"""Not permitted outside the programs: output, an exit, and catching everything."""

from __future__ import annotations

import ast

from laws.sources import modules

PROGRAMS = (
    "specchk.cli", "replog.cli", "replog.cluster", "replog.dump", "replog.serve", "replog.simulate",
    "replog.demo",
)  # fmt: skip
# Modules of a room that also run with `python -m`, in their `main`.
ALSO_RUN = ("replog.sim.scenario",)
# Where everything is caught outside of a program, with the reason.
CATCHES = {
    "specchk.conform.contract.load": "a user's file may raise anything, which is reported with its line",
    "replog.sim.run": "a core that raises, whatever it is sent, is what this oracle looks for",
    "specchk.spark.jobs": "an executor hands what a piece of work raises to the driver, which raises it",
    "specchk.parallel": "another process hands what it raises to the one that began it, which raises it",
    "specchk.symbolic.workers": "a forked process hands what it raises to its parent, which raises it",
}


def test_only_programs_print_and_exit():
    """Output, exit and the standard streams belong to the programs; a room returns values."""
    names = {module.name for module in modules()}
    assert names.issuperset(ALSO_RUN)
    found = [
        f"{module.shown}:{node.lineno}: {ast.unparse(node)}"
        for module in modules()
        if not module.name.startswith((*PROGRAMS, *ALSO_RUN)) and not module.name.endswith("__main__")
        for node in ast.walk(module.tree)
        if _prints_or_exits(node)
    ]
    assert not found


def _prints_or_exits(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="print" | "input" | "exit" | "quit")):
            return True
        case ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr" | "stdin" | "exit"):
            return True
    return False


def test_only_programs_catch_everything():
    """`except Exception` elsewhere hides a bug, unless it raises again; no reason here is outdated."""
    broad = {"Exception", "BaseException"}
    found = {
        module.name
        for module in modules()
        if not module.name.startswith(PROGRAMS)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)} & broad)
        and not (isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None)
    }
    assert found == set(CATCHES)
