"""Every place that makes code or objects of bytes: who may have written these."""

from __future__ import annotations

import ast

from laws.sources import last_name, modules

# Calls that run code, or make objects of any class, from bytes or from a file.
LOADS = {
    "pickle": {"load", "loads", "Unpickler", "_Unpickler"},
    "marshal": {"load", "loads"},
    "runpy": {"run_path", "run_module"},
    "util": {"spec_from_file_location"},
    "ctypes": {"CDLL", "PYFUNCTYPE", "CFUNCTYPE"},
    "": {"exec", "eval"},
    "anything": {"exec_module", "add_object_img", "addPyFile"},
}
# None of them reads a file that another user, or another run, may have written, except for the cache: object
# code, whose folder and files are this user's (`kept.refusal`, `kept.read`).
WRITERS = {
    "specchk.codegen.objects": "the cache, or this process",
    "specchk.native.machine.loaded": "only addresses of code that `codegen` linked",
    "specchk.symbolic.kernels.loading": "the cache, or this process",
    "specchk.meaning.texts.joined": "rules of this package",
    "specchk.native.tiers": "the process that started this one",
    "specchk.native.machine.memory": "the C library of this process",
    "specchk.processes": "the C library of this process",
    "specchk.symbolic.zones.members": "another member of the crew, through its parent's pipes",
    "specchk.symbolic.joins.member": "another member of the crew, through its parent's pipes",
    "specchk.conform.contract.load": "the user: the binding named on the command line",
    "specchk.conform.contract.known_bad": "the user: a function of that binding, changed",
    "specchk.conform.mutation.patches": "the user: the implementation's source, patched",
    "specchk.spark.jobs": "the driver and executors of one application, through Spark",
    "specchk.spark.parcel": "the driver of this application, through Spark",
    "specchk.spark.states.rows": "executors of this application, through Spark's shuffle",
    "specchk.spark.session": "the driver: an archive of this package, in a folder of its own",
}


def loaders() -> set[str]:
    """The modules that have such a call, or such a base class."""
    return {
        module.name
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Name | ast.Attribute) and module.name.startswith("specchk.") and _loads(node)
    }


def _loads(node: ast.Name | ast.Attribute) -> bool:
    if isinstance(node, ast.Name):
        return node.id in LOADS[""]
    return node.attr in LOADS["anything"] | LOADS.get(last_name(node.value), set())


def test_every_loader_has_a_writer_who_may_run_code() -> None:
    """A new place that loads code or objects from bytes is listed above, with who wrote these."""
    assert loaders() == set(WRITERS)
