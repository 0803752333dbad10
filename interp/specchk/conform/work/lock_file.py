"""`specchk.lock`: what people have reviewed about a binding, as one TOML file beside it.

    [gate]        the figures of the last reviewed run: spec, suites, controls, mutants, implementation
    [choices]     which of the choices that the spec leaves the implementation makes, and which never
    [conditions]  the conditions of the spec that decide in no model of the gate
    [behaviour]   beside the runs of `specchk behaviour`: digests of the behaviour that was accepted

Each section is written by a command of its own, which leaves the others as they are.  A number that was
changed by hand, by a merge or by a disk would silently weaken a gate, so a file whose seal does not fit is
refused.  The seal is a digest of the contents: comments, layout and line ends do not count, nor do the texts
called `reason`, which people fill in.

Invariants: the same contents give the same bytes on every machine; `read` is the inverse of `write`.
Not here: what the sections mean (`gate.lock`, `gate.choices`, `gate.conditions`, `behaviour.symbols`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from msgspec import Struct, field

from specchk import kept
from specchk.identity import Identified

NAME = "specchk.lock"
VERSION = 4
DIGITS = 16  # of the seal: against accidents and careless edits; a forger can compute it as well
REASON = "reason"
WIDTH = 100
HEAD = """\
# What was reviewed about this binding, in sections that specchk writes, each by a command of its own:
#   [gate]        `specchk conform BINDING --update-lock`; a number that falls here is a gate that sees less
#   [choices]     `... --update-choices`; what the spec allows, and this implementation never does
#   [conditions]  `... --update-conditions`; what decides in no model of the gate, so code may lack it
#   [behaviour]   `specchk behaviour FILE --update-lock`; what was accepted, which is no verdict
# `reason` is for people to fill in.
"""


class Numbers(Struct, frozen=True, omit_defaults=True):
    """The figures of one suite: the spec's graph, its classes, and the covered ones.

    Not how many cases there are: fewer that cover as much are better.  `never` are the classes that the
    implementation is known never to take (`choices`), of those that were not covered.
    """

    suite: str
    states: int
    edges: int = 0
    classes: int = 0
    covered: int = 0
    refusals: int = 0
    refused: int = 0
    never: int = 0


class Kills(Struct, frozen=True):
    """Mutants of one kind: their number, the number killed, and a digest of all names."""

    killed: int
    all: int
    names: str

    def __str__(self) -> str:
        return f"{self.killed} of {self.all}"


class ConditionCounts(Struct, frozen=True):
    """The number of conditions not fixed by the models of a gate, and of those that decide in none.

    `possible`: of these, how many are not shown to be impossible.
    """

    all: int
    undecided: int
    possible: int

    @property
    def decided(self) -> int:
        """The number of conditions that decide in some model."""
        return self.all - self.undecided

    def __str__(self) -> str:
        return f"{self.undecided} of {self.all} undecided, {self.possible} of these possible"

    def is_below(self, lock: ConditionCounts) -> bool:
        """Whether more are undecided, fewer decide, or fewer are proved impossible."""
        # Fewer decide, and none more is undecided, where the constants of the models decide the others.
        is_fewer = self.undecided > lock.undecided or self.decided < lock.decided
        return is_fewer or self.possible > lock.possible


class GateFigures(Struct, frozen=True, omit_defaults=True):
    """What a gate rests on: `spec` and `actions` are fingerprints of meanings.

    `judges` has a digest of each function that judges the implementation (`work.judges`), by file;
    `unnoticed` are the planted flaws that these do not notice.
    """

    binding: str
    spec: str
    unobserved: tuple[str, ...]
    controls: tuple[str, ...]
    implementation: str  # not compared: a changed implementation is what the gate is for
    files: int
    actions: Mapping[str, str]
    suites: Mapping[str, Numbers]
    judges: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unnoticed: tuple[str, ...] = ()
    conditions: ConditionCounts | None = None
    mutants: Mapping[str, Kills] = field(default_factory=dict)


class ChosenPath(Struct, frozen=True):
    """A path from one of the initial states (in ascending order) that the implementation follows.

    Each step has the action, its arguments, and the number of the choice.
    """

    start: int
    steps: tuple[tuple[str | int, ...], ...]


class Listed(Struct, frozen=True, omit_defaults=True):
    """The result of exploring the whole product of one model; `never` has each class's id and description.

    `model` is a fingerprint of the model with its constants; `ways` are paths with classes that no case of
    the suite reaches.
    """

    model: str
    states: int
    steps: int
    reason: str
    never: Mapping[str, str] = field(default_factory=dict)
    ways: tuple[ChosenPath, ...] = ()


class Choices(Struct, frozen=True):
    """The choices of an implementation; both fingerprints are those of the time of exploration."""

    spec: str
    implementation: str
    suites: Mapping[str, Listed]


class UndecidedCondition(Identified, frozen=True, omit_defaults=True):
    """A condition that decides in no model, identified by texts only, since line numbers change.

    `unbounded` counts the models in which it is impossible for all offsets; `bounded` are the other models,
    which were only searched up to their bounds.
    """

    incidental: ClassVar = frozenset({"reason", "unbounded", "bounded"})
    owner: str  # the action or the property
    effect: str
    within: str  # the declaration that has the text
    text: str
    reason: str
    unbounded: int = 0
    bounded: tuple[str, ...] = ()

    @property
    def is_impossible(self) -> bool:
        """Whether the condition is proved impossible in each model for all offsets."""
        return self.unbounded > 0 and not self.bounded


class GateConditions(Struct, frozen=True):
    """The conditions of a gate: `spec` and each model's text are fingerprints, `all` counts conditions."""

    spec: str
    all: int
    models: Mapping[str, str]
    undecided: tuple[UndecidedCondition, ...]

    @property
    def counts(self) -> ConditionCounts:
        """The figures for the gate's section."""
        possible = [condition for condition in self.undecided if not condition.is_impossible]
        return ConditionCounts(self.all, len(self.undecided), len(possible))


class Symbols(Struct, frozen=True):
    """The digests of a run (`behaviour.symbols`)."""

    digest: str
    trace: str

    @property
    def steps(self) -> int:
        """The number of steps of the run."""
        return len(self.trace)


class AcceptedBehaviour(Struct, frozen=True):
    """Accepted behaviour: the digests of each run, and the words of all sentences in them."""

    texts: tuple[str, ...]
    runs: Mapping[str, Symbols]


class LockFile(Struct, frozen=True, omit_defaults=True):
    """The contents of a file; None for a section that it does not have."""

    gate: GateFigures | None = None
    choices: Choices | None = None
    conditions: GateConditions | None = None
    behaviour: AcceptedBehaviour | None = None


class BadLock(Exception):
    """A file that is not a lock, or not as it was written."""


def read(path: Path) -> LockFile:
    """The contents of a file, no section if there is none; raises `BadLock`, which names the file."""
    try:
        table = msgspec.toml.decode(path.read_bytes())
        # Before anything else is read: another version may have the same keys with another meaning.
        version, seal = table.pop("version", None), table.pop("seal", None)
        if version != VERSION:
            raise BadLock(f"{path} has version {version}; this specchk reads {VERSION}; {_MEND}")
        if seal != _seal(table):
            raise BadLock(f"{path} was edited, merged or damaged after it was written; {_MEND}")
        return msgspec.convert(table, LockFile)
    except FileNotFoundError:
        return LockFile()
    except OSError as failed:
        raise BadLock(f"{path}: {failed.strerror or failed}") from failed
    except (msgspec.MsgspecError, ValueError, RecursionError) as failed:
        raise BadLock(f"{path} is not a lock: {failed}; {_MEND}") from failed


_MEND = "restore the reviewed file, or delete it and write a new one"


def write(path: Path, contents: LockFile) -> None:
    """Write a file, completely or not at all."""
    table = msgspec.json.decode(msgspec.json.encode(contents, order="deterministic"))
    lines = [HEAD, f"version = {VERSION}", f"seal = {_toml(_seal(table))}", *_lines((), table)]
    kept.replace(path, ("\n".join(lines) + "\n").encode())


def _seal(table: Mapping[str, Any]) -> str:
    """A digest of everything but the texts that people fill in."""
    text = msgspec.json.encode(_without_reasons(table), order="deterministic")
    return hashlib.sha256(text).hexdigest()[:DIGITS]


def _without_reasons(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _without_reasons(item)
            for key, item in value.items() if not (key == REASON and isinstance(item, str))
        }  # fmt: skip
    return [_without_reasons(item) for item in value] if isinstance(value, list) else value


def _lines(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a table: its values, then the tables in it, each below a heading."""
    # Tables that are alike, such as the suites, have a line each, so that a diff shows what has changed.
    inner = {} if all(map(_is_row, table.values())) else dict(filter(_has_headings, table.items()))
    yield from (f"{_key(name)} = {_toml(value)}" for name, value in table.items() if name not in inner)
    for name, value in inner.items():
        heading = ".".join(map(_key, (*path, name)))
        if isinstance(value, dict):
            lines = [*_lines((*path, name), value)]
            yield from (("", f"[{heading}]") if not lines or lines[0] else ())
            yield from lines
        else:
            for item in value:
                yield from ("", f"[[{heading}]]", *_lines((*path, name), item))


def _has_headings(item: tuple[str, Any]) -> bool:
    """Whether a value of a table is one itself, or a list of tables."""
    _, value = item
    return isinstance(value, dict) or (isinstance(value, list) and isinstance(next(iter(value), None), dict))


def _is_row(value: object) -> bool:
    if not isinstance(value, dict) or REASON in value:
        return False
    return not any(isinstance(item, dict | list) for item in value.values())


def _key(name: str) -> str:
    """A key of TOML: bare where it is a plain word."""
    return name if name.isascii() and name.replace("_", "").isalnum() else _toml(name)


def _toml(value: Any) -> str:
    """A text, a number, a list or a table as one value of TOML; a long list has a line for each item."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_toml(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list):
        items = [_toml(item) for item in value]
        if sum(map(len, items)) <= WIDTH:
            return f"[{', '.join(items)}]"
        return "[\n" + "".join(f"  {item},\n" for item in items) + "]"
    # JSON's texts are TOML's, except for one character that it leaves as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
