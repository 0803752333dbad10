"""The tables of an export, and their columns."""

from __future__ import annotations

import pyarrow as pa

from specchk.export.columns import column_of, distinct
from specchk.ir.program import Program

ID, LEVEL, EXPANDED = "id", "level", "expanded"
_STATE = ((ID, pa.int64()), (LEVEL, pa.int32()), (EXPANDED, pa.bool_()))
_TRACE = (
    ("kind", pa.string()), ("property", pa.string()), ("step", pa.int32()), ("action", pa.string()),
    ("args", pa.list_(pa.string())), (ID, pa.int64()),
)  # fmt: skip

EDGES = pa.schema([
    ("source", pa.int64()), ("target", pa.int64()), ("action", pa.dictionary(pa.int32(), pa.string())),
    ("args", pa.list_(pa.string())),
])  # fmt: skip
LEVELS = pa.schema([
    ("level", pa.int32()), ("states", pa.int64()), ("expanded", pa.int64()), ("edges", pa.int64()),
])  # fmt: skip
COVERAGE = pa.schema([
    ("kind", pa.string()), ("owner", pa.string()), ("label", pa.string()), ("place", pa.string()),
    ("text", pa.string()), ("count", pa.int64()),
])  # fmt: skip
VIOLATIONS = pa.schema([
    ("kind", pa.string()), ("property", pa.string()), ("steps", pa.int32()), ("place", pa.string()),
    ("text", pa.string()),
])  # fmt: skip
RUN = pa.schema([
    ("spec", pa.string()), ("path", pa.string()), ("model", pa.string()),
    ("constants", pa.map_(pa.string(), pa.string())), ("fingerprint", pa.string()),
    ("engine", pa.string()), ("symmetry", pa.string()), ("verdict", pa.string()), ("reason", pa.string()),
    ("complete", pa.bool_()), ("states", pa.int64()), ("expanded", pa.int64()), ("initial", pa.int64()),
    ("edges", pa.int64()), ("generated", pa.int64()), ("depth", pa.int32()), ("seconds", pa.float64()),
    ("version", pa.string()),
])  # fmt: skip


def variable_columns(program: Program) -> list[str]:
    """The names of the variables' columns, distinct from those of the other columns."""
    taken = [name for name, _ in (*_STATE, *_TRACE)]
    return distinct((variable.name for variable in program.variables), taken)


def states_schema(program: Program) -> pa.Schema:
    """The columns of `states`."""
    return _with_variables(program, _STATE)


def traces_schema(program: Program) -> pa.Schema:
    """The columns of `traces`."""
    return _with_variables(program, _TRACE)


def _with_variables(program: Program, first: tuple[tuple[str, pa.DataType], ...]) -> pa.Schema:
    kinds = [column_of(variable.type).type for variable in program.variables]
    return pa.schema([*first, *zip(variable_columns(program), kinds, strict=True)])
