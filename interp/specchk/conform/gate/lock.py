"""The lock of a gate: the figures of its last reviewed run, as a TOML file beside the binding.

    [spec]                  its fingerprint, and one for each action, of their meaning (`canonical`)
    [suites."MODEL BOUNDS"] for each suite: states and edges of the spec's graph, classes of steps and of
                            refusals, and how many of them were covered; for walks and products states
    unobserved, controls    the unobserved variables, the controls that were detected
    [conditions]            all, and those that decide in no model of the gate (`conditions`)
    [mutants]               killed and all, for each kind, where they are known, and a digest of their names
    [layers]                for each kind, those that each layer of the checks kills alone, in a sample
    [implementation]        its fingerprint

A number that is lower than the lock's, a suite or a control that was removed, another variable that is
not observed: each is a `Lowered`, and so is a spec that is not the lock's, since its numbers have another
meaning.  Another implementation is the purpose of the gate, and is only reported.

Invariants: the same gate gives the same bytes on every machine; `read` is the inverse of `write`, and
refuses other content (`seal`).
Not here: running the gate, printing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field, to_builtins

from specchk.conform.work import seal
from specchk.lang.check.spec import Spec
from specchk.lang.frontend import CheckedSpec
from specchk.lang.syntax.canonical import canonical

NAME = "specchk.lock"
VERSION = 3
MEND = "restore the reviewed file, or write a new one with --update-lock"
DIGITS = 12
HEAD = """\
# What the gate of this binding rests on.  Written by `specchk conform BINDING --update-lock`, reviewed
# like code: a number that falls here is a gate that sees less.
"""


class Numbers(Struct, frozen=True):
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


class Kills(Struct, frozen=True, omit_defaults=True):
    """Mutants of one kind: their number, the number killed, and a digest of all names.

    `names` is empty in a lock from before they were kept.
    """

    killed: int
    all: int
    names: str = ""

    def __str__(self) -> str:
        return f"{self.killed} of {self.all}"


class LayerKills(Struct, frozen=True):
    """Mutants of one kind killed by each layer of the checks, as if it were the only one.

    `sampled` of `all` were run, drawn by `seed`; `names` is a digest of their names.  `killed` has also
    groups, of what any of some layers kills; `only`, for the layers of a group, what no other layer of it
    kills.
    """

    sampled: int
    all: int
    seed: int
    names: str
    killed: Mapping[str, int]
    only: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        drawn = "" if self.sampled == self.all else f", sampled of {self.all} with seed {self.seed}"
        return f"of {self.sampled}{drawn}"

    def of(self, layer: str) -> str:
        """The figures of a layer, as text."""
        only = f", {self.only[layer]} by it only" if layer in self.only else ""
        return f"{self.killed[layer]} of {self.sampled}{only}"


class ConditionCounts(Struct, frozen=True, omit_defaults=True):
    """The number of conditions not fixed by the models of a gate, and of those that decide in none.

    `possible`: of these, how many are not shown to be impossible; None in a lock that was written before.
    """

    all: int
    undecided: int
    possible: int | None = None

    @property
    def decided(self) -> int:
        """The number of conditions that decide in some model."""
        return self.all - self.undecided

    def __str__(self) -> str:
        possible = "" if self.possible is None else f", {self.possible} of these possible"
        return f"{self.undecided} of {self.all} undecided{possible}"

    def is_below(self, lock: ConditionCounts) -> bool:
        """Whether more are undecided, fewer decide, or fewer are proved impossible."""
        # Fewer decide, and none more is undecided, where the constants of the models decide the others.
        is_fewer = self.undecided > lock.undecided or self.decided < lock.decided
        if self.possible is None or lock.possible is None:
            return is_fewer
        return is_fewer or self.possible > lock.possible


class Lock(Struct, frozen=True):
    """The contents of the file."""

    binding: str
    spec: str
    actions: Mapping[str, str]
    suites: Mapping[str, Numbers]
    unobserved: tuple[str, ...]
    controls: tuple[str, ...]
    implementation: str
    files: int
    mutants: Mapping[str, Kills] = field(default_factory=dict)
    layers: Mapping[str, LayerKills] = field(default_factory=dict)
    conditions: ConditionCounts | None = None


class Lowered(Struct, frozen=True):
    """A figure in which a gate is below its lock."""

    place: str
    locked: str
    found: str

    def __str__(self) -> str:
        return f"{self.place}: the lock has {self.locked}, this run {self.found}"


class BadLock(Exception):
    """A file that is not a lock."""


def lowered(lock: Lock, current: Lock) -> tuple[Lowered, ...]:
    """All figures in which a gate is below its lock."""
    decided = _fewer_decided(lock.conditions, current.conditions)
    return (*_other_spec(lock, current), *_fewer(lock, current), *_lower(lock, current), *decided)


def raised(lock: Lock, current: Lock) -> tuple[Lowered, ...]:
    """The figures that are above the lock's, and suites and controls that the lock does not have."""
    decided = _fewer_decided(current.conditions, lock.conditions)
    return (*_lower(current, lock), *_fewer_suites(current, lock), *decided)


def _other_spec(lock: Lock, current: Lock) -> Iterator[Lowered]:
    if lock.spec == current.spec:
        return
    if lock.spec == seal.OLDER:
        yield Lowered("spec", seal.OLDER, f"{current.spec}; write the lock with --update-lock")
        return
    names = sorted({*lock.actions, *current.actions})
    changed = [name for name in names if lock.actions.get(name) != current.actions.get(name)]
    what = f"action {', '.join(changed)}" if changed else "a declaration other than an action"
    yield Lowered("spec", lock.spec, f"{current.spec}; changed: {what}")


def _fewer(lock: Lock, current: Lock) -> Iterator[Lowered]:
    if lock.binding != current.binding:
        yield Lowered("binding", lock.binding, current.binding)
    yield from _fewer_suites(lock, current)
    # More unobserved variables are less that is compared; fewer are an improvement, and not reported.
    more = sorted(set(current.unobserved) - set(lock.unobserved))
    if more:
        yield Lowered("unobserved", ", ".join(lock.unobserved) or "none", f"also {', '.join(more)}")
    gone = sorted(set(lock.controls) - set(current.controls))
    if gone:
        yield Lowered("controls", ", ".join(lock.controls), f"no {', '.join(gone)}")


def _fewer_suites(lock: Lock, current: Lock) -> Iterator[Lowered]:
    for name in lock.suites:
        if name not in current.suites:
            yield Lowered(f'suite "{name}"', f"{lock.suites[name].states} states", "no such suite")


def _lower(lock: Lock, current: Lock) -> Iterator[Lowered]:
    for name, numbers in lock.suites.items():
        present = current.suites.get(name)
        for key in _KEYS if present is not None else ():
            if getattr(present, key) < getattr(numbers, key):
                yield Lowered(f"{name}: {key}", f"{getattr(numbers, key)}", f"{getattr(present, key)}")
    for kind, kills in lock.mutants.items():
        score = current.mutants.get(kind)
        # Shares compared without division: more mutants at the same share are no loss.
        if score is not None and score.killed * kills.all < kills.killed * score.all:
            yield Lowered(f"mutants: {kind}", str(kills), str(score))
    for kind, locked in lock.layers.items():
        by_layer = current.layers.get(kind)
        if by_layer is not None:
            yield from _lower_layers(kind, locked, by_layer)


def _lower_layers(kind: str, locked: LayerKills, current: LayerKills) -> Iterator[Lowered]:
    """The layers with a lower share, and those that were not run."""
    for layer, count in locked.killed.items():
        own = current.killed.get(layer)
        if own is None or own * locked.sampled < count * current.sampled:
            of_run = "not run" if own is None else current.of(layer)
            yield Lowered(f"mutants: {kind}, by {layer} alone", locked.of(layer), of_run)


def _fewer_decided(lock: ConditionCounts | None, current: ConditionCounts | None) -> Iterator[Lowered]:
    """A line if more conditions are undecided or fewer decide, or if their number is not known."""
    if lock is not None and (current is None or current.is_below(lock)):
        yield Lowered(
            "conditions", str(lock), "none of this spec and models" if current is None else str(current)
        )


_KEYS = tuple(key for key in Numbers.__struct_fields__ if key != "suite")


def of_spec(checked: CheckedSpec) -> tuple[str, dict[str, str]]:
    """A short name of everything on which steps depend, and one of each action; layout does not count."""
    spec = checked.spec
    # Only what steps depend on: another invariant or model changes none of the lock's numbers.
    constraints = {name: decl for name, decl in spec.properties.items() if decl.kind == "constraint"}
    imported = {alias: _by_name(**_library(library)) for alias, library in spec.imports.items()}
    declared = _by_name(
        **_library(spec), variables=spec.variables, actions=spec.actions, helpers=spec.helpers,
        constraints=constraints, imported=imported,
    )  # fmt: skip
    used = declared.get("helpers", {})
    actions = {name: short_name((decl, used)) for name, decl in sorted(spec.actions.items())}
    return short_name((declared, spec.inits)), actions


def _library(spec: Spec) -> dict[str, dict[str, Any]]:
    """The declarations that a spec contributes when it is imported."""
    return {"sorts": spec.sorts, "consts": spec.consts, "types": spec.types, "defs": spec.defs}


def _by_name(**tables: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    # In order of names, so that moving a declaration changes nothing; only where there are any, so that a
    # kind of declarations that is added to the language changes nothing, either.
    return {kind: dict(sorted(table.items())) for kind, table in tables.items() if table}


def short_name(what: object) -> str:
    """A short name of trees, independent of layout, comments and the place of the file."""
    return hashlib.sha256(canonical(what).encode()).hexdigest()[:DIGITS]


def digest_of(names: Iterable[str]) -> str:
    """A short name of the names of mutants, independent of their order."""
    return hashlib.sha256(repr(sorted(names)).encode()).hexdigest()[:DIGITS]


def write(path: Path, lock: Lock) -> None:
    """Write a lock."""
    seal.write(path, _lines(lock))


def _lines(lock: Lock) -> Iterator[str]:
    yield from HEAD.split("\n")
    head = {"version": VERSION, "binding": lock.binding}
    yield from seal.entries({**head, "unobserved": lock.unobserved, "controls": lock.controls})
    yield from seal.table("spec", {"fingerprint": lock.spec})
    yield from seal.table("spec.actions", seal.named(sorted(lock.actions.items())))
    for name, numbers in sorted(lock.suites.items()):
        yield from seal.table(f"suites.{seal.quoted(name)}", to_builtins(numbers))
    for name, kills in sorted(lock.mutants.items()):
        yield from seal.table(f"mutants.{seal.quoted(name)}", to_builtins(kills))
    for name, layers in sorted(lock.layers.items()):
        heading, figures = f"layers.{seal.quoted(name)}", to_builtins(layers)
        counts = {key: figures.pop(key) for key in ("killed", "only")}
        yield from seal.table(heading, figures)
        for key, own in counts.items():
            yield from seal.table(f"{heading}.{key}", seal.named(own.items()))
    if lock.conditions is not None:
        yield from seal.table("conditions", to_builtins(lock.conditions))
    yield from ("", "# Not compared: a changed implementation is what the gate is for.", "[implementation]")
    yield from seal.entries({"fingerprint": lock.implementation, "files": lock.files})


def read(path: Path) -> Lock | None:
    """The lock in a file, None if there is no file; raises `BadLock`."""
    return seal.load(path, _lock, version=VERSION, people="", mend=MEND, error=BadLock)


def _lock(table: Mapping[str, Any]) -> Lock:
    counts = table.get("conditions")
    spec, actions = table["spec"]["fingerprint"], dict(table["spec"]["actions"])
    if table["version"] < VERSION:
        spec, actions = seal.OLDER, {}
    return Lock(
        table["binding"], spec, actions,
        {name: Numbers(**one) for name, one in table.get("suites", {}).items()},
        tuple(table["unobserved"]), tuple(table["controls"]),
        table["implementation"]["fingerprint"], table["implementation"]["files"],
        {name: Kills(**one) for name, one in table.get("mutants", {}).items()},
        {name: LayerKills(**one) for name, one in table.get("layers", {}).items()},
        None if counts is None else ConditionCounts(**counts),
    )  # fmt: skip
