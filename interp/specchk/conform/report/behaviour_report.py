"""The report of changed behaviour: the run, the step, the observation, its values, and the remedy.

None of it is a verdict: a spec may allow the old behaviour and the new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from specchk.conform.behaviour.comparison import Difference
from specchk.conform.behaviour.running import Behaved
from specchk.conform.behaviour.texts import plain

MOST_RUNS = 8
MOST_KINDS = 3  # of differences that are shown with an example
MOST_SEEN = 12
WIDTH = 300
_NUMBER = re.compile(r"\d+")
AROUND = 60  # characters before and behind what differs in two long texts
NO_VERDICT = "not a verdict against a spec, which may allow both: it shows what changed, not that it is wrong"


def text(name: str, behaved: Behaved, lock: str, command: str) -> str:
    """Return the whole report."""
    if not behaved.is_compared:
        return f"behaviour of {name}: {_sizes(behaved)}; there is no lock to compare with\nnext: {command}"
    if behaved.is_accepted:
        return f"accepted: {name} behaves as {lock} has it\n  {_sizes(behaved)}"
    ending = ["", "find out what changed it; where that is intended, say so in the commit and accept it:",
              f"  {command}"]  # fmt: skip
    if behaved.differences:
        again = command.replace("--update-lock", f"--lock --run {quote(earliest(behaved.differences).run)}")
        ending.append(f"the shortest run alone: {again}")
    return "\n".join([*_head(name, behaved, lock), *_kinds(behaved), *_texts(behaved), *ending])


def _sizes(behaved: Behaved) -> str:
    return f"{len(behaved.runs)} runs, {behaved.steps} steps, {behaved.observations} observations"


def _head(name: str, behaved: Behaved, lock: str) -> list[str]:
    lines = [f"changed: {name} behaves otherwise than {lock} has it", f"  {NO_VERDICT}"]
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


def _kinds(behaved: Behaved) -> Iterator[str]:
    """Each kind of first difference, the most frequent first, with the run in which it comes earliest."""
    kinds: dict[str, list[Difference]] = {}
    for each in behaved.differences:
        kinds.setdefault(_NUMBER.sub("#", each.place), []).append(each)  # of any broker
    ordered = sorted(kinds.items(), key=lambda kind: (-len(kind[1]), kind[0]))
    for place, own in ordered[:MOST_KINDS]:
        begin = "1 run begins" if len(own) == 1 else f"{len(own)} runs begin"
        yield from ("", f"{begin} to differ in: {place}", *_shown(earliest(own)))
    if len(ordered) > MOST_KINDS:
        yield from ("", "other first differences:")
        yield from (f"  {len(own):4} {place}" for place, own in ordered[MOST_KINDS:][:MOST_RUNS])


def _shown(first: Difference) -> Iterator[str]:
    """A difference: the events before it, the step, and the outputs in it."""
    yield f"  run `{first.run}`, step {first.number} of {first.all - 1}: {_short(first.about)}"
    yield from (f"    before that: {_short(event)}" for event in reversed(first.earlier))
    # Around the difference: a step may have hundreds of observations.
    begin = max(0, (first.observation or 0) - MOST_SEEN // 2)
    for at, seen in enumerate(first.seen[begin : begin + MOST_SEEN], begin):
        mark = "!" if at == first.observation and first.kind != "missing" else " "
        yield f"  {mark} {_short(plain(', '.join(seen)))}"
    left = len(first.seen) - begin - MOST_SEEN
    if left > 0:
        yield f"    ... and {left} more"
    before, after = apart(first.before, first.after)
    if after is not None:
        yield f"    now: {after}"
    if before is not None:
        yield f"    was: {before}"
    elif first.kind != "added":
        yield "    was: not kept on this machine; run it once with the code that was accepted, then again"


def apart(before: str | None, after: str | None) -> tuple[str | None, str | None]:
    """Two texts, of long ones the part in which they differ."""
    if before is None or after is None or max(len(before), len(after)) <= 2 * AROUND:
        return before, after
    shorter = min(len(before), len(after))
    same = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    behind = next((at for at in range(shorter - same) if before[-1 - at] != after[-1 - at]), shorter - same)
    begin = max(0, same - AROUND)
    cut = [text[begin : len(text) - behind + AROUND] for text in (before, after)]
    tail = "..." if behind > AROUND else ""
    lead = "..." if begin else ""
    return f"{lead}{_short(cut[0])}{tail}", f"{lead}{_short(cut[1])}{tail}"


def _short(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[:WIDTH]} ... ({len(text)} characters)"


def _texts(behaved: Behaved) -> Iterator[str]:
    """The sentences that are new and those that are gone, each once for all runs."""
    if not (behaved.new or behaved.gone):
        return
    yield from ("", f"sentences, without their numbers: {len(behaved.new)} new, {len(behaved.gone)} gone")
    most = MOST_KINDS if behaved.differences else MOST_RUNS  # most follow from the differences
    yield from (f"  - {_short(words)}" for words in behaved.gone[:most])
    for words in behaved.new[:most]:
        runs = behaved.texts[words]
        yield f"  + {_short(words)}    ({len(runs)} of {len(behaved.runs)} runs, as `{runs[0]}`)"


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
        "new_texts": {words: list(behaved.texts[words]) for words in behaved.new},
        "gone_texts": list(behaved.gone),
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
        "earlier": list(each.earlier), "seen": [plain(", ".join(seen)) for seen in each.seen],
        "steps": each.steps,
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
    if behaved.new or behaved.gone:
        case = SubElement(suite, "testcase", name="sentences", classname="behaviour")
        SubElement(case, "failure", message=f"{len(behaved.new)} new, {len(behaved.gone)} gone")
    failures = len(suite.findall("testcase/failure"))
    suite.set("failures", str(failures))
    return tostring(root, encoding="unicode") + "\n"
