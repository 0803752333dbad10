"""What `specchk review` names: weaknesses planted in bundled specs, and its alarms on the specs as they are.

    .venv/bin/python bench/gate/weaknesses.py [ROWS.json] [--alarms spec/examples/*.spec]

In each of ten specs three weaknesses are planted, by rule and not by hand: a guard that is dropped (chosen
by the spec's name; one whose absence changes no step is no weakness), its first invariant in a weaker form
(where no model that holds fails then), and a fault that is missing; or, where no fault can be removed, an
action that is never enabled.  A weakness is named if the review has a row, of any kind, that it does not
have without it.  Rows that are weaknesses on an unchanged spec count as false alarms, whether or not they
are right.  With --alarms only these are counted, on other specs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from specchk.cli.deciding import decided_conditions
from specchk.cli.engines import EngineSettings, explore
from specchk.explore.conditions import Decided
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.review.mutants import mutants
from specchk.review.review import Most, Review, reviewed
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.verdict import Outcome

ROOT = Path(__file__).parents[2]
STARTERS = "interp/specchk/cli/starters"
SPECS = (
    f"{STARTERS}/lock/lock.spec", f"{STARTERS}/queue/queue.spec",
    f"{STARTERS}/primary-backup/primary_backup.spec", f"{STARTERS}/replicated-log/replicated_log.spec",
    "docs/lock_service/lock_service.spec", "docs/two_phase/two_phase.spec",
    "spec/examples/leases.spec", "spec/examples/lossy_channel.spec",
    "spec/examples/two_phase_commit.spec", "spec/examples/readers_writers.spec",
)  # fmt: skip
MOST = Most(states=20_000, changes=60)
FAULTS = ("crash", "lose", "expire", "restart", "drop", "fail", "duplicate", "give_up", "abort", "late")
# Of these the first that occurs in a property makes it weaker.
WEAKER = ((" implies ", " implies true or "), ("forall ", "exists "), (" and ", " or "), (" <= ", " <= 1 + "),
          (" == ", " <= "))  # fmt: skip


def search(program: Program, options: Options) -> Outcome:
    most = options.budget.max_states
    name = "reference" if most is not None and most <= 2500 else "native"
    return explore(program, options, engine=EngineSettings(name), quiet=True)


def decide(program: Program) -> Decided:
    return decided_conditions(program, Budget(max_states=MOST.states), quiet=True)


def review_of(path: str, text: str | None = None) -> Review:
    return reviewed(path, check(path, text), search, decide, MOST)


def rows_of(review: Review) -> Counter[tuple[str, str, bool]]:
    """The rows without their places, which a planted line moves."""
    return Counter((row.kind, re.sub(r"\d+:\d+", "", row.text), row.is_note) for row in review.rows)


def block(text: str, name: str) -> str:
    """The lines of an action."""
    lines = text.splitlines(keepends=True)
    start = next(n for n, line in enumerate(lines) if re.match(rf"action {name}\(", line))
    end = start + 1
    while end < len(lines) and (lines[end].startswith((" ", "\t")) or not lines[end].strip()):
        end += 1
    return "".join(lines[start:end])


def without_guard(path: str, text: str) -> Iterator[tuple[str, str]]:
    guards = [mutant for mutant in mutants(check(path).spec) if mutant.kind == "guard"]
    Random(Path(path).stem).shuffle(guards)
    for mutant in guards:
        yield f"`{mutant.owner}` without `{mutant.span.text}`", mutant.text


def weakened(path: str, text: str) -> Iterator[tuple[str, str]]:
    for prop in check(path).spec.properties.values():
        body = prop.span.text
        for old, new in WEAKER:
            if prop.kind.endswith("invariant") and old in body:
                yield f"`{prop.name}` with `{new.strip()}`", text.replace(body, body.replace(old, new, 1), 1)


def without_fault(path: str, text: str) -> Iterator[tuple[str, str]]:
    names = list(check(path).spec.actions)
    for name in [name for fault in FAULTS for name in names if fault in name]:
        rest = text.replace(block(text, name), "")
        yield (
            f"without the action `{name}`",
            re.sub(rf"^(strongly )?fair {name}\n", "", rest, flags=re.MULTILINE),
        )


def unused(path: str, text: str) -> Iterator[tuple[str, str]]:
    for name in reversed(check(path).spec.actions):
        lines = block(text, name)
        variable = next(iter(check(path).spec.variables))
        head, rest = lines.split("\n", 1)
        yield (
            f"`{name}` is never enabled",
            text.replace(lines, f"{head}\n    require {variable} != {variable}\n{rest}"),
        )


def planted(path: str, text: str) -> Iterator[tuple[str, str, Review]]:
    """The first of each kind of weakness that makes a valid spec, and changes a step."""
    before = review_of(path)
    for kind, ways in (("guard", (without_guard,)), ("invariant", (weakened,)),
                       ("fault", (without_fault, unused))):  # fmt: skip
        for name, changed in (way for ways_of in ways for way in ways_of(path, text)):
            try:
                review = review_of(path, changed)
            except SpecError:
                continue
            is_stronger = any("expected to hold" in row.text for row in review.rows)
            if (
                counts(review) != counts(before)
                if kind == "guard"
                else kind != "invariant" or not is_stronger
            ):
                yield kind, name, review
                break


def counts(review: Review) -> list[tuple[int, int]]:
    numbers = [model.outcome.statistics for model in review.models]
    return [(each.distinct, each.generated) for each in numbers]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="?", help="file for the rows, as JSON")
    parser.add_argument("--alarms", nargs="+", metavar="SPEC", help="count weaknesses on these specs only")
    given = parser.parse_args()
    if given.alarms:
        alarms = [(path, row) for path in given.alarms for row in review_of(path).rows if not row.is_note]
        for path, row in alarms:
            print(f"{path}: {row.kind}: {row.text}")
        print(f"{len(alarms)} weaknesses on {len(given.alarms)} specs")
        return
    rows, alarms_of = [], Counter[str]()
    for path in SPECS:
        shown = str(ROOT / path)
        text = Path(shown).read_text(encoding="utf-8")
        before = rows_of(review_of(shown))
        alarms_of[path] = sum(count for (_, _, is_note), count in before.items() if not is_note)
        print(f"{path}: {alarms_of[path]} weaknesses, {sum(before.values()) - alarms_of[path]} notes")
        for kind, name, review in planted(shown, text):
            new = rows_of(review) - before
            weak = [row for row in new if not row[2]]
            how = "weakness" if weak else "note" if new else "not named"
            first = next(iter(weak or new), ("", "", False))
            rows.append({"spec": path, "kind": kind, "planted": name, "named": how, "row": first[1]})
            print(f"    {kind:9} {how:9} {name}: {first[0]} {first[1]}")
    named = Counter((row["kind"], row["named"]) for row in rows)
    print(f"planted {len(rows)}, named {sum(row['named'] != 'not named' for row in rows)}; {dict(named)}")
    print(f"false alarms on {len(SPECS)} specs: {sum(alarms_of.values())}")
    if given.rows:
        Path(given.rows).write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.setrecursionlimit(20_000)
    main()
