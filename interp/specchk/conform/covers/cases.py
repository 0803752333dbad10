"""Cases: paths through a spec's state graph for an implementation to take, and suites of them.

A case starts in the initial state.  Its id is made of the model, the bounds and the path, so it is
the same on every machine and in every run, and changes exactly when the path does.  Where the spec
leaves a choice, `choice` is which of an instance's successors (ascending) is meant; an
implementation that chooses another one is right too, and the case ends there.

Invariants: a suite is a value; `from_json` is the inverse of `as_json`.  Not here: which paths a
suite has (`cover`), taking them (`runner`), keeping them (`cache`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

MADE_OF_CASES = ("classes", "edges", "lassos")  # kinds of suites; others choose their steps while they run
# 40 bits: that two of five thousand cases share an id has a chance of one in a hundred thousand.
ID_DIGITS = 10


class CaseStep(Struct, frozen=True):
    """One step: the action, its arguments as written in the spec, and the intended successor."""

    action: str
    args: tuple[str, ...]
    choice: int = 0

    def __str__(self) -> str:
        which = f" #{self.choice}" if self.choice else ""
        return f"{self.action}({', '.join(self.args)}){which}"


class SuiteCase(Struct, frozen=True):
    """A path, with the positions in `Suite.classes` of the effect classes of its steps.

    `start` is which of the spec's initial states (ascending) it starts in.
    """

    id: str
    steps: tuple[CaseStep, ...]
    classes: tuple[tuple[int, ...], ...]
    start: int = 0

    @property
    def name(self) -> str:
        """The id, and the last action of the case: `5c04bb6c35-write`."""
        return f"{self.id}-{self.steps[-1].action}" if self.steps else self.id

    def __str__(self) -> str:
        return "; ".join(map(str, self.steps))


class EffectClass(Struct, frozen=True):
    """Equivalent edges: action, branches taken, signs of comparisons, and kinds of changes.

    For a probe: the action, and how its guard fails.  `id` is stable like a case's.
    """

    id: str
    action: str
    branches: tuple[str, ...]
    signs: tuple[str, ...]
    effect: tuple[str, ...]

    def __str__(self) -> str:
        said = ", ".join((*self.branches, *self.effect)) or "changes nothing"
        return f"{self.action}: {said}"


class Probe(Struct, frozen=True):
    """A disabled instance to be tried after the step `step` of a case.

    `of` is the position of its class in `Suite.probe_classes`.
    """

    case: int
    step: int
    action: str
    args: tuple[str, ...]
    of: int


class Suite(Struct, frozen=True):
    """Cases for one model and its bounds, and the reachable classes by which they are measured.

    `complete`: whether `states` and `edges` are the whole graph's, so that no class is missing.
    `never` are the positions of classes that the implementation is known never to take (`choices`).
    """

    kind: str
    model: str
    bounds: tuple[tuple[str, str], ...]
    cases: tuple[SuiteCase, ...]
    classes: tuple[EffectClass, ...]
    probe_classes: tuple[EffectClass, ...]
    probes: tuple[Probe, ...]
    states: int
    edges: int
    complete: bool
    never: tuple[int, ...] = ()
    order: int = 0
    """The length of the sequences of edges that the cases have all of; 0 where they have classes alone."""
    sequences: int = 0
    """The number of these sequences."""
    suffixes: int = 0
    """The number of cases that go on behind their classes."""
    loops: int = 0
    """The number of cases that end in a loop,"""
    rounds: int = 0
    """and how many times each of these takes it."""

    @property
    def cover(self) -> str:
        """The cover in words: `all 28 edges`, `52 suffixes`, `9 loops, 3 rounds each` or `classes alone`."""
        if self.rounds:
            loops, rounds = ("" if number == 1 else "s" for number in (self.loops, self.rounds))
            return f"{self.loops} loop{loops}, {self.rounds} round{rounds} each"
        if self.order == 0:
            return f"{self.suffixes} suffixes" if self.suffixes else "classes alone"
        return f"all {self.sequences} " + ("edges" if self.order == 1 else f"sequences of {self.order} edges")

    @property
    def label(self) -> str:
        """The model and its bounds, as in `two_brokers MaxOffset=1`."""
        return label_of(self.model, self.bounds)

    def case(self, wanted: str) -> SuiteCase | None:
        """The case with an id or a name, or the only one whose id has this prefix."""
        # Any beginning that is unique, as with commits of git.
        digits = wanted.partition("-")[0]
        fitting = [case for case in self.cases if case.id.startswith(digits)]
        return fitting[0] if len(fitting) == 1 else None


def label_of(model: str, bounds: Sequence[tuple[str, str]]) -> str:
    """A model and its bounds in one line."""
    return " ".join([model, *(f"{name}={value}" for name, value in bounds)])


_ITEMS: tuple[tuple[str, type[EffectClass | Probe]], ...] = (
    ("classes", EffectClass), ("probe_classes", EffectClass), ("probes", Probe),
)  # fmt: skip
_PLAIN = tuple(sorted({*Suite.__struct_fields__} - {"cases", *(name for name, _ in _ITEMS)}))


def case_id(label: str, start: int, steps: Sequence[CaseStep]) -> str:
    """The stable id of a path."""
    return stable_id([label, str(start), *map(str, steps)])


def stable_id(parts: Sequence[str]) -> str:
    """A short name for some words, the same on every machine."""
    # NUL cannot be in a name, so that no two lists of parts join to the same text.
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:ID_DIGITS]


def as_json(suite: Suite) -> str:
    """A suite as one line of JSON."""
    # A suite of thousands of cases is read at every run, so each distinct step is written once, and values
    # without the names of their fields.
    steps = {step: at for at, step in enumerate(dict.fromkeys(s for case in suite.cases for s in case.steps))}
    data = {
        **{name: getattr(suite, name) for name in _PLAIN},
        "steps": [astuple(step) for step in steps],
        "cases": [(case.id, [steps[step] for step in case.steps], case.classes, case.start)
                  for case in suite.cases],
        **{name: [astuple(item) for item in getattr(suite, name)] for name, _ in _ITEMS},
    }  # fmt: skip
    return json.dumps(data, separators=(",", ":"))


def from_json(text: str) -> Suite:
    """The suite written by `as_json`; no other data are valid, and a sealed file (`kept`) has no others."""
    data: dict[str, Any] = json.loads(text)
    steps = [CaseStep(action, tuple(args), choice) for action, args, choice in data.pop("steps")]
    data["cases"] = tuple(
        SuiteCase(case, tuple([steps[at] for at in path]), tuple(map(tuple, classes)), start)
        for case, path, classes, start in data["cases"]
    )
    for name, kind in _ITEMS:
        data[name] = tuple(kind(*map(_tuples, item)) for item in data[name])
    return Suite(**{**data, "bounds": _tuples(data["bounds"]), "never": tuple(data["never"])})


def _tuples(data: Any) -> Any:
    """JSON data with lists converted to tuples."""
    return tuple(map(_tuples, data)) if isinstance(data, list) else data
