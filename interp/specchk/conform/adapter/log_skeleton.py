"""What a sample of a log has: its kinds of lines with their fields, for the skeleton of a tracing.

A sample is JSON lines of any shape.  The field that says what happened, and the one that says where, are
guessed by their names, and by their values.

Not here: the spec's part of a skeleton, and how a template is filled (`skeleton`).
"""

from __future__ import annotations

import json
import keyword
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from specchk.conform.adapter.skeleton import Row
from specchk.conform.contract.log_tracing import LogTracing, field_of, lines_of, writer_of
from specchk.conform.contract.recording import BadRecording, read_bytes
from specchk.ir.program import Action, Program
from specchk.ir.types import Sort

# Names of fields, the likeliest first; a mark before the name, as in `@message`, does not count.
KINDS = ("event", "kind", "type", "action", "op", "msg", "message", "name")
WRITERS = ("at", "node", "node_id", "nodeid", "server", "server_id", "replica", "host", "hostname", "process",
           "pid")  # fmt: skip
TIMES = ("time", "timestamp", "ts", "t", "datetime", "date")
ACTORS = (*WRITERS, "client", "worker", "actor", "owner", "user", "from")
_ENDING = re.compile(r"([-_.][a-z]|[-_.]?[0-9]+)$", re.IGNORECASE)
MOST_KINDS, MOST_WIDTH, MOST_VALUES = 60, 40, 4


class LogSample(Struct, frozen=True):
    """The lines of a sample with their places; `kind` and `writer` are fields, the latter empty for the file.

    `actor` says in some lines who acts; `format` is that of recordings with a header, empty for other logs.
    """

    lines: tuple[tuple[str, Mapping[str, Any]], ...]
    kind: str
    writer: str = ""
    actor: str = ""
    format: str = ""


def parts_of_sample(
    paths: Sequence[Path], kind: str | None, program: Program
) -> tuple[Row, dict[str, list[Row]]]:
    """The words and lists of a skeleton that a sample gives; raises `BadRecording` for one without a kind."""
    found = [sorted(path.glob("*.ndjson")) if path.is_dir() else [path] for path in paths]
    files = [file for inside in found for file in inside]
    if not files:
        raise BadRecording(f"there is no *.ndjson in {', '.join(map(str, paths))}; name its files")
    placed = [(f"{file}:{n}", line) for file in files for n, line in lines_of(file.name, read_bytes(file))]
    sample = _sample(placed, kind, len(files))
    base = "Tracing" if sample.format else "LogTracing"
    words = {"base": base, "format": sample.format or f"{program.spec}-log/1"}
    return words, _lists(sample, program, len(files))


def _sample(placed: Sequence[tuple[str, Mapping[str, Any]]], kind: str | None, files: int) -> LogSample:
    header = placed[0][1].get("format") if placed else None
    if isinstance(header, str) and placed[-1][1].get("end") is True:
        return LogSample(tuple(item for item in placed if "seq" in item[1]), "event", "at", "at", header)
    lines = [line for _, line in placed]
    kind = kind or _likeliest(lines, KINDS) or _enumeration(lines)
    if not any(field_of(line, kind) is not None for line in lines):
        says = f"no line of the sample has the field `{kind}`" if kind else "no field says what a line is"
        raise BadRecording(f"{says}; name that field with --kind")
    if files > 1:
        return LogSample(tuple(placed), kind)
    writer = _likeliest(lines, WRITERS)
    return LogSample(tuple(placed), kind, writer, writer or _likeliest(lines, ACTORS, 0))


def _likeliest(lines: Sequence[Mapping[str, Any]], names: Sequence[str], share: float = 0.9) -> str:
    """The first of some names that such a share of all lines has as a field with several scalar values."""
    fields = Counter(
        path for line in lines for path, _, value in _paths(line) if isinstance(value, str | int)
    )
    for name in names:
        for path, count in fields.items():
            values = {str(field_of(line, path)) for line in lines} - {"None"}
            if (
                path.lower().strip("@_$") == name
                and count >= share * len(lines)
                and 1 < len(values) <= MOST_KINDS
            ):
                return path
    return ""


def _enumeration(lines: Sequence[Mapping[str, Any]]) -> str:
    """The field with the fewest texts, but several, that all lines have."""
    texts = [path for path, _, value in _paths(lines[0] if lines else {}) if isinstance(value, str)]
    values = {path: {str(field_of(line, path)) for line in lines} for path in texts}
    several = {path: one for path, one in values.items() if 1 < len(one) <= MOST_KINDS and "None" not in one}
    return min(several, key=lambda path: len(several[path]), default="")


def _paths(line: Mapping[str, Any], before: str = "", of: str = "e") -> Iterator[tuple[str, str, Any]]:
    """The fields of a line, and those of objects in it with a dot: each with its Python text and value."""
    for key, value in line.items():
        text = f"{of}[{json.dumps(key)}]"
        if isinstance(value, Mapping):
            yield from _paths(value, f"{before}{key}.", text)
        else:
            yield before + key, text, value


def _lists(sample: LogSample, program: Program, files: int) -> dict[str, list[Row]]:
    kinds: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for place, line in sample.lines:
        value = field_of(line, sample.kind)
        kinds.setdefault("" if value is None else str(value), []).append((place, line))
    is_log = not sample.format
    names = {
        str(field_of(line, sample.actor)) if sample.actor else writer_of(place.rpartition(":")[0])
        for place, line in sample.lines
    } - {"None"}
    taken = set(dir(LogTracing))
    every = [path for _, line in sample.lines[:1] for path, _, _ in _paths(line)]
    time = next((path for path in every if path.lower().rpartition(".")[2].strip("@_$") in TIMES), "")
    return {
        "events": [_event(kind, lines, sample, program, taken) for kind, lines in kinds.items()],
        "names": [{"names": ", ".join(_names(sorted(names), program))}] if is_log else [],
        "constants": [{"constants": ", ".join(_constants(program))}],
        "kinds": [{"kind": sample.kind}] if is_log else [],
        "writer": [{"writer": sample.writer}] if is_log and sample.writer else [],
        "files": [{}] if is_log and files > 1 else [],
        "times": [{"time": time}] if is_log and files > 1 and time else [],
        "logs": [{}] if is_log else [],
    }


def _event(
    kind: str, lines: Sequence[tuple[str, Mapping[str, Any]]], sample: LogSample, program: Program,
    taken: set[str],
) -> Row:  # fmt: skip
    method = re.sub(r"\W+", "_", kind).strip("_").lower() or "line"
    method = f"on_{method}" if method[0].isdigit() else method
    while method in taken or keyword.iskeyword(method):
        method += "_"
    taken.add(method)
    values: dict[str, dict[str, None]] = {}
    for _, line in lines:
        for path, text, value in _paths(line):
            if path != sample.kind:
                values.setdefault(text, {})[json.dumps(value)] = None
    facts = []
    for text, every in values.items():
        first = next(iter(every))
        shown = first[:MOST_WIDTH] + "..." * (len(first) > MOST_WIDTH)
        few = len(every) <= MOST_VALUES and max(map(len, every)) <= MOST_WIDTH // MOST_VALUES
        more = f"  ({len(every) - 1} more)" if len(every) > 1 else ""
        facts.append(f"\n    #   {text} = {' | '.join(every) if few else shown + more}")
    return {"event": json.dumps(kind), "count": str(len(lines)), "place": lines[0][0], "method": method,
            "fields": "".join(facts), "call": _call(kind, list(values), sample.actor, program)}  # fmt: skip


def _call(kind: str, fields: Sequence[str], actor: str, program: Program) -> str:
    """The likeliest action for a kind of line, with the arguments that its fields may be."""
    actions: dict[str, Action] = {action.name: action for action in program.actions}
    words = _words(kind)
    shared = {name: len(_words(name) & words) for name in actions}
    # The most words in common, and then the shortest name: fewer words of it are not in the kind.
    like = min(actions, key=lambda name: (-shared[name], len(_words(name)), name))
    if not shared[like]:
        return '"an action", ()'
    args: list[str] = []
    for param in actions[like].params:
        same = [text for text in fields if text.lower().endswith(f'["{param.name.lower()}"]')]
        if isinstance(param.type, Sort) and not args:
            same += [text for text in fields if text == f"e[{json.dumps(actor)}]"] + ['e["at"]']
        args.append(same[0] if same else "ANY")
    return f'"{like}", ({", ".join(args)}{"," * (len(args) == 1)})'


def _words(name: str) -> set[str]:
    """The words of a name, each by its beginning, so that `acquired` is `acquire`."""
    return {word[:4] for word in re.findall(r"[a-z]+", re.sub(r"([A-Z])", r" \1", name).lower())}


def _names(writers: Sequence[str], program: Program) -> Iterator[str]:
    """Each writer's name with one of the spec's first sort, as if that had enough; or with itself.

    Where several names differ in a number or letter alone, as `worker-a`, only those: a server is no client.
    """
    stems = Counter(_ENDING.sub("", writer) for writer in writers)
    like, most = max(stems.items(), key=lambda item: item[1], default=("", 0))
    if program.sorts and most > 1:
        writers = [writer for writer in writers if _ENDING.sub("", writer) == like]
    stem = program.sorts[0].members[0].rstrip("0123456789") if program.sorts else ""
    for number, writer in enumerate(writers, 1):
        yield f"{json.dumps(writer)}: {json.dumps(f'{stem}{number}' if stem else writer)}"


def _constants(program: Program) -> Iterator[str]:
    """The sizes and numbers of the model, as overrides."""
    yield from (f'"{sort.name}": "{len(sort.members)}"' for sort in program.sorts)
    yield from (f'"{one.name}": "{one.value}"' for one in program.constants if type(one.value) is int)
