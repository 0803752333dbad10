"""The status of a gate's choices: the entries of the file beside the binding, and the errors in it.

never taken   the spec allows these classes; the whole product has shown that nothing takes them
WRONG         one of them was taken by this very run
stale         shown of another spec, or of a model that is another now: it does not count
another implementation   it counts, since this run has not refuted it, and it is told
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from specchk.conform.gate.choices import Choices, Listed
from specchk.conform.gate.gate import BoundSpec
from specchk.conform.gate.lock import of_spec
from specchk.conform.gate.tiers import Part
from specchk.conform.replay.cases import EffectClass
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.work.sources import files_of, fingerprint

REFRESH = "run --update-choices"


@dataclass(frozen=True, slots=True)
class Standing:
    """The entries of a file and the valid ones among them; `path` as a person writes it.

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

    @property
    def stale(self) -> tuple[str, ...]:
        """The suites in the file for which it does not count."""
        return tuple(sorted(set(self.choices.suites) - set(self.listed)))

    @property
    def never(self) -> int:
        """The number of classes that are provably never taken."""
        return sum(self.counted.values())


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
            wrong += [(part.label, one) for one in result.coverage.wrong]
    is_same = choices.implementation == implementation_of(bound)
    is_of_spec = choices.spec == of_spec(bound.checked)[0]
    return Standing(path, choices, is_of_spec, is_same, listed, counted, tuple(wrong), written)


def implementation_of(bound: BoundSpec) -> str:
    """The fingerprint of the explored model."""
    return fingerprint(files_of(bound.path, bound.cls.implementation), bound.path.resolve().parent)


def render_standing(found: Standing) -> Iterator[str]:
    """The lines below a gate's report."""
    if not found.is_of_spec:
        yield f"choices: {found.path} belongs to another spec and is ignored; {REFRESH}"
        return
    written = f"{found.path} written; " if found.written else ""
    yield f"choices: {written}{found.never} allowed classes are never taken by the implementation"
    for label, listed in found.listed.items():
        yield (f"  {label}: {found.counted[label]}, of {listed.states} states, {listed.steps} steps; "
               f"{len(listed.ways)} way{'s' * (len(listed.ways) != 1)} added")  # fmt: skip
    for reason in dict.fromkeys(listed.reason for listed in found.listed.values() if listed.reason):
        yield f"  because {reason}"
    for label in found.stale:
        yield f"  {label}: STALE, of another model or no suite of the gate, so ignored; {REFRESH}"
    for label, one in found.wrong:
        yield f"  {label}: WRONG: listed as never taken, but taken: {one.id} {one}"
    if not found.is_of_implementation:
        yield f"  explored with another implementation; this run has not refuted it; {REFRESH}"


def standing_json(found: Standing) -> dict[str, object]:
    """The same as a member of a report's JSON object."""
    suites = [
        {"label": label, "never": found.counted[label], "states": one.states, "steps": one.steps,
         "ways": len(one.ways), "reason": one.reason}
        for label, one in found.listed.items()
    ]  # fmt: skip
    return {
        "choices": {
            "never": found.never,
            "suites": suites,
            "stale": list(found.stale),
            "wrong": [{"label": label, "id": one.id, "class": str(one)} for label, one in found.wrong],
            "of_this_spec": found.is_of_spec,
            "of_this_implementation": found.is_of_implementation,
        }
    }


def standing_section(found: Standing) -> str:
    """The same as HTML."""
    rows = "".join(f"<li>{escape(line)}</li>" for line in render_standing(found))
    mark = ' class="violated"' if found.wrong else ""
    return f"<h2>Choices</h2><ul{mark}>{rows}</ul>"
