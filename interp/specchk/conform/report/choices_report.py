"""The status of a gate's choices: the entries of the file beside the binding, and the errors in it.

never taken   the spec allows these classes; the whole product has shown that no step has them
WRONG         one of them was taken by this very run
stale         shown for another spec, or for a model that has changed: it does not count
another implementation   it counts, since this run has not refuted it, and it is reported
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from specchk.conform.covers.cases import EffectClass
from specchk.conform.gate.choices import Choices, Listed
from specchk.conform.gate.gate import BoundSpec
from specchk.conform.gate.lock import of_spec
from specchk.conform.gate.tiers import Part
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.work.seal import OLDER
from specchk.conform.work.sources import files_of, fingerprint

REFRESH = "run --update-choices"


class Standing(Struct, frozen=True):
    """The entries of a file and the valid ones among them; `path` as a person would write it.

    `counted` has by suite how many classes are never taken; `wrong` those that were.
    """

    path: Path
    choices: Choices
    is_of_spec: bool
    is_of_implementation: bool
    listed: Mapping[str, Listed]
    counted: Mapping[str, int]
    wrong: tuple[tuple[str, EffectClass], ...]
    written: bool = False
    title: ClassVar[str] = "Choices"

    @property
    def is_wrong(self) -> bool:
        """Whether this run has refuted an entry."""
        return bool(self.wrong)

    @property
    def stale(self) -> tuple[str, ...]:
        """The suites for which the file is outdated."""
        return tuple(sorted(set(self.choices.suites) - set(self.listed)))

    @property
    def never(self) -> int:
        """The number of classes that are provably never taken."""
        return sum(self.counted.values())

    def lines(self) -> Iterator[str]:
        """The lines below a gate's report."""
        if not self.is_of_spec:
            why = f"has {OLDER}" if self.choices.spec == OLDER else "belongs to another spec"
            yield f"choices: {self.path} {why} and is ignored; {REFRESH}"
            return
        written = f"{self.path} written; " if self.written else ""
        yield f"choices: {written}{self.never} allowed classes are never taken by the implementation"
        for label, listed in self.listed.items():
            yield (f"  {label}: {self.counted[label]}, of {listed.states} states, {listed.steps} steps; "
                   f"{len(listed.ways)} way{'s' * (len(listed.ways) != 1)} added")  # fmt: skip
        for reason in dict.fromkeys(listed.reason for listed in self.listed.values() if listed.reason):
            yield f"  because {reason}"
        for label in self.stale:
            yield f"  {label}: STALE, of another model or no suite of the gate, so ignored; {REFRESH}"
        for label, taken in self.wrong:
            yield f"  {label}: WRONG: listed as never taken, but taken: {taken.id} {taken}"
        if not self.is_of_implementation:
            yield f"  explored with another implementation; this run has not refuted it; {REFRESH}"

    def json(self) -> dict[str, object]:
        """The same as a member of the report's JSON object."""
        suites = [
            {"label": label, "never": self.counted[label], "states": listed.states, "steps": listed.steps,
             "ways": len(listed.ways), "reason": listed.reason}
            for label, listed in self.listed.items()
        ]  # fmt: skip
        return {
            "choices": {
                "never": self.never,
                "suites": suites,
                "stale": list(self.stale),
                "wrong": [
                    {"label": label, "id": taken.id, "class": str(taken)} for label, taken in self.wrong
                ],
                "of_this_spec": self.is_of_spec,
                "of_this_implementation": self.is_of_implementation,
            }
        }


def standing(
    path: Path, choices: Choices, bound: BoundSpec, parts: Sequence[Part], results: Sequence[SuiteResult], *,
    written: bool = False,
) -> Standing:  # fmt: skip
    """The status of a gate's choices after a run."""
    listed, counted, wrong = {}, {}, []
    for part, result in zip(parts, results, strict=True):
        if part.listed is not None and result.coverage is not None:
            listed[part.label] = part.listed
            counted[part.label] = len(result.coverage.never)
            wrong += [(part.label, taken) for taken in result.coverage.wrong]
    is_same = choices.implementation == implementation_of(bound)
    is_of_spec = choices.spec == of_spec(bound.checked)[0]
    return Standing(path, choices, is_of_spec, is_same, listed, counted, tuple(wrong), written)


def implementation_of(bound: BoundSpec) -> str:
    """The fingerprint of the explored model."""
    return fingerprint(files_of(bound.path, bound.cls.implementation), bound.path.resolve().parent)
