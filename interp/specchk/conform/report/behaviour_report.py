"""The report of changed behaviour: the run, the step, the observation, its values, and the remedy.

None of it is a verdict: a spec may allow the old behaviour and the new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from specchk.conform.behaviour.comparison import Difference
from specchk.conform.behaviour.running import Behaved

MOST_RUNS = 8
MOST_SEEN = 12
WIDTH = 300
NO_VERDICT = (
    "This is not a verdict against a spec, which may allow both: it shows that behaviour changed, not that "
    "it is wrong."
)


def text(name: str, behaved: Behaved, lock: str, command: str) -> str:
    """Return the whole report."""
    if not behaved.is_compared:
        return f"behaviour of {name}: {_sizes(behaved)}; there is no lock to compare with\nnext: {command}"
    if behaved.is_accepted:
        return f"accepted: {name} behaves as {lock} has it\n  {_sizes(behaved)}"
    return "\n".join([*_head(name, behaved, lock), *_first(behaved), *_others(behaved), "", NO_VERDICT,
                      f"accept it, if it is intended: {command}"])  # fmt: skip


def _sizes(behaved: Behaved) -> str:
    return f"{len(behaved.runs)} runs, {behaved.steps} steps, {behaved.observations} observations"


def _head(name: str, behaved: Behaved, lock: str) -> list[str]:
    lines = [f"changed: {name} behaves otherwise than {lock} has it"]
    if behaved.differences:
        steps = sum(each.steps for each in behaved.differences)
        runs = f"{len(behaved.differences)} of {len(behaved.runs)} runs"
        lines.append(f"  {runs} differ, in {steps} of {behaved.steps} steps")
    for names, words in ((behaved.unknown, "not in the lock"), (behaved.lacking, "in the lock alone")):
        if names:
            lines.append(f"  runs {words}: {_listed(names)}")
    return lines


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_RUNS} more" if len(names) > MOST_RUNS else ""
    return ", ".join(names[:MOST_RUNS]) + more


def earliest(differences: Sequence[Difference]) -> Difference:
    """Return the difference preceded by the fewest steps."""
    return min(differences, key=lambda each: each.number)


def _first(behaved: Behaved) -> list[str]:
    """The run in which the first difference comes earliest: the step, and the outputs in it."""
    if not behaved.differences:
        return []
    first = earliest(behaved.differences)
    lines = ["", f"run `{first.run}`, step {first.number} of {first.all - 1}: {_short(first.about)}"]
    # Around the difference: a step may have hundreds of observations.
    begin = max(0, (first.observation or 0) - MOST_SEEN // 2)
    for at, seen in enumerate(first.seen[begin : begin + MOST_SEEN], begin):
        mark = "!" if at == first.observation and first.kind != "missing" else " "
        lines.append(f"  {mark} {_short(', '.join(seen))}")
    left = len(first.seen) - begin - MOST_SEEN
    lines += [f"    ... and {left} more"] if left > 0 else []
    return [*lines, f"  {first.place}", *_values(first)]


def _values(first: Difference) -> list[str]:
    lines = []
    if first.after is not None:
        lines.append(f"    now: {_short(first.after)}")
    if first.before is not None:
        lines.append(f"    was: {_short(first.before)}")
    elif first.kind != "added":
        lines.append("    was: not kept on this machine, which has digests of it alone")
    return lines


def _short(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[:WIDTH]} ... ({len(text)} characters)"


def _others(behaved: Behaved) -> list[str]:
    """The first differences of all other runs, counted by kind."""
    if len(behaved.differences) < 2:
        return []
    places = Counter(each.place for each in behaved.differences)
    lines = ["", "the first difference of each run:"]
    lines += [
        f"  {count:4} {place}"
        for place, count in sorted(places.items(), key=lambda e: (-e[1], e[0]))[:MOST_RUNS]
    ]
    names = [f"{each.run} (step {each.number})" for each in behaved.differences]
    return [*lines, f"  runs: {_listed(names)}"]


def json(name: str, behaved: Behaved, lock: str, command: str, code: int) -> dict[str, Any]:
    """Return the report as a JSON object."""
    return {
        "schema": "specchk.behaviour/1",
        "verdict": _verdict(behaved),
        "implementation": name,
        "lock": lock,
        "runs": len(behaved.runs),
        "steps": behaved.steps,
        "observations": behaved.observations,
        "differences": [_as_json(each) for each in behaved.differences],
        "unknown": list(behaved.unknown),
        "lacking": list(behaved.lacking),
        "accept": command,
        "exit_code": code,
    }


def _verdict(behaved: Behaved) -> str:
    if not behaved.is_compared:
        return "uncompared"
    return "accepted" if behaved.is_accepted else "changed"


def _as_json(each: Difference) -> dict[str, Any]:
    return {
        "run": each.run, "step": each.number, "event": each.about, "kind": each.kind,
        "observation": each.observation, "field": each.field, "before": each.before, "after": each.after,
        "seen": [", ".join(seen) for seen in each.seen], "steps": each.steps,
    }  # fmt: skip


def junit(name: str, behaved: Behaved, lock: str, command: str) -> str:
    """Return the runs as JUnit XML, with a test for each run."""
    root = Element("testsuites")
    suite = SubElement(root, "testsuite", name="behaviour", tests=str(len(behaved.runs)))
    differing = {each.run: each for each in behaved.differences}
    for run in behaved.runs:
        case = SubElement(suite, "testcase", name=run, classname="behaviour")
        if run in differing or run in behaved.unknown:
            what = differing[run].place if run in differing else "not in the lock"
            failure = SubElement(case, "failure", message=f"changed: {what}")
            failure.text = text(name, behaved, lock, command)
    failures = len({*differing, *behaved.unknown})
    suite.set("failures", str(failures))
    return tostring(root, encoding="unicode") + "\n"
