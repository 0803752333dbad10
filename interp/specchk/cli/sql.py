"""`specchk sql`: query an export written by `specchk run --export`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from math import isfinite
from typing import Any

import click

from specchk.cli.common import print_json
from specchk.cli.engines import loaded
from specchk.cli.output import echo
from specchk.export.pairs import Pairs

NO_DUCKDB = "`specchk sql` needs duckdb: pip install 'specchk[data]'"
MOST_ROWS = 1000  # of a table for people; its last line reports that there are more
AT_ONCE = 4096  # rows of CSV that are printed at once


@click.command("sql")
@click.argument("directories", nargs=-1, required=True, metavar="DIR...")
@click.argument("query", metavar="QUERY")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with lists, maps and structs as JSON.")
def command(directories: tuple[str, ...], query: str, *, as_json: bool, as_csv: bool) -> None:
    """Query the state space in DIR, written by `specchk run --export DIR`.

    QUERY is one read-only SQL statement in DuckDB's dialect. Tables: run, states, edges, levels, coverage,
    violations, traces. With several directories, each is a schema with the directory's name; a table
    without a schema belongs to the first.
    """
    if as_json and as_csv:
        raise click.UsageError("--json and --csv both write to standard output")
    room, manifest = loaded("specchk.export.query", NO_DUCKDB), loaded("specchk.export.manifest", NO_DUCKDB)
    try:
        exports = [manifest.opened(directory) for directory in directories]
        with room.answered(exports, query) as answer:
            form = _json if as_json else _csv if as_csv else _table
            form(answer.columns, answer.rows)
    except (manifest.NoExport, room.BadQuery) as reason:
        raise click.UsageError(str(reason)) from None
    # Behind the answer, where it is still seen below a long table.
    for export in exports:
        if export.warning is not None:
            echo(f"note: {export.warning}", err=True)


def _json(columns: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> None:
    print_json(
        {"schema": "specchk.sql/1", "columns": columns, "rows": [list(map(_plain, row)) for row in rows]}
    )


def _csv(columns: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    # In pieces, so that a result may be larger than memory.
    while some := list(islice(rows, AT_ONCE)):
        writer.writerows([[_cell(value, _compact) for value in row] for row in some])
        echo(text.getvalue(), nl=False)
        text.seek(0)
        text.truncate()
    echo(text.getvalue(), nl=False)


def _table(columns: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> None:
    shown = list(islice(rows, MOST_ROWS))
    cells = [[_cell(value, show) for value in row] for row in shown]
    numeric = [bool(shown) and all(_is_number(row[i]) for row in shown) for i in range(len(columns))]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for line in ([*columns], ["-" * width for width in widths], *cells):
        pairs = zip(line, widths, numeric, strict=True)
        echo("  ".join([text.rjust(w) if right else text.ljust(w) for text, w, right in pairs]).rstrip())
    if next(rows, None) is not None:
        echo(f"... more than {MOST_ROWS} rows: add a limit, or use --csv")


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))


def _cell(value: Any, nested: Callable[[Any], str]) -> str:
    """The text of a value in a cell; empty for null."""
    if value is None:
        return ""
    return nested(value) if isinstance(value, dict | list | tuple | bool | Pairs) else str(value)


def _compact(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    """A value in JSON form; maps with keys other than strings are lists of pairs."""
    match value:
        case Pairs(items=items, is_named=False):
            return [[_plain(key), _plain(item)] for key, item in items]
        case Pairs(items=items):
            return {key: _plain(item) for key, item in items}
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case Decimal() if value == value.to_integral_value():
            return int(value)
        case float() if not isfinite(value):  # no number of JSON
            return str(value)
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def show(value: Any) -> str:
    """A value as written in a spec, as far as its type is known: `{ r1: [1, 2], r2: none }`."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case dict() | Pairs():
            pairs = value.items() if isinstance(value, dict) else value.items
            texts = [f"{show(key)}: {show(item)}" for key, item in pairs]
            return "{ " + ", ".join(texts) + " }" if texts else "{}"
        case list() | tuple():
            return "[" + ", ".join(map(show, value)) + "]"
    return str(value)
