"""Random actions in several orders of their lines: what engines report, and what the rules say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random

from agreement.both import program_of
from agreement.conjunctions import Block, Maker, Reading, Result, spec_of, starts
from agreement.every_engine import OnSpark
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.engine import Options
from specchk.search.verdict import Outcome, violations_of


def reordered(seed: int, actions: int, orders: int) -> list[list[Block]]:
    """Some random actions, each in several orders of its lines.

    The last order is any one; in the others conditions have kept their places among each other.
    """
    maker = Maker(Random(seed))
    made = [maker.action() for _ in range(actions)]
    protecting = [True] * (orders - 2) + [False]
    return [
        [action, *[maker.reordered(action, protects=protects) for protects in protecting]] for action in made
    ]


def compared(
    seed: int, actions: int, orders: int, folder: Path, on_spark: OnSpark | None = None
) -> tuple[Counter[str], list[str]]:
    """What was compared, and the disagreements: of orders, and of the engines that enumerate."""
    blocks = reordered(seed, actions, orders)
    results = [[Reading(block).result(starts()) for block in each] for each in blocks]
    wrong = [f"an order of action {n} decides" for n, each in enumerate(results) if not _equal(each)]
    program = program_of(spec_of([block for each in blocks for block in each]), folder)
    if program is None:
        return Counter({"rejected": 1}), ["the spec is rejected"]
    outcomes = {
        "reference": reference.search(program, Options(symmetry=False, keep_going=True)),
        "native": native.search(program, native.NativeOptions(symmetry=False, keep_going=True, workers=1)),
    }
    if on_spark is not None:
        outcomes["spark"] = on_spark(program, False, True)
    expected = [result for each in results for result in each]
    wrong += [
        f"{name}: {text}" for name, outcome in outcomes.items() for text in differences(outcome, expected)
    ]
    counts = Counter({f"{name}: actions": actions * orders for name in outcomes})
    counts["actions, without their orders"] = actions
    counts["actions in any order"] = sum(each[0].is_defined and each[-1].is_defined for each in results)
    for is_so, text in (
        ("on", "enabled somewhere"), ("off", "disabled somewhere"), ("is_undefined", "undefined somewhere"),
        ("cuts", "cut off somewhere"), ("steps", "with steps"),
    ):  # fmt: skip
        counts[f"actions {text}"] = sum(bool(getattr(each[0], is_so)) for each in results)
    return counts, wrong


def _equal(results: Sequence[Result]) -> bool:
    """Whether all orders do the same; the last one does if nothing is undefined in it, nor in the others."""
    *kept, free = results
    is_comparable = kept[0].is_defined and free.is_defined
    return kept == kept[:1] * len(kept) and (not is_comparable or free == kept[0])


def differences(outcome: Outcome, results: Sequence[Result]) -> list[str]:
    """What an engine reports otherwise than the rules."""
    violated = {(violation.kind, violation.name) for violation in violations_of(outcome.verdict)}
    reached = {name for name, _ in outcome.witnesses}
    points = defaultdict(list)
    for point, count in zip(outcome.program.points, outcome.coverage, strict=True):
        points[point.owner].append((point.label, count))
    out = []
    for number, result in enumerate(results):
        name = f"act{number}"
        seen = {
            "undefined": ("undefined", name) in violated,
            "on": f"on{number}" in reached,
            "off": f"off{number}" in reached,
            "unknown": ("undefined", f"on{number}") in violated,
            "coverage": sorted(points[name]),
        }
        expected = {
            "undefined": result.is_undefined,
            "on": result.on,
            "off": result.off,
            "unknown": result.unknown,
            "coverage": sorted([(name, result.steps + result.cuts), *result.labels]),
        }
        out += [
            f"{name} {key}: {seen[key]}, not {expected[key]}" for key in seen if seen[key] != expected[key]
        ]
    initial = len(results) * len(starts())
    totals = {
        "distinct": (outcome.statistics.distinct, sum(result.states for result in results)),
        "generated": (outcome.statistics.generated, initial + sum(result.steps for result in results)),
        "cuts": (outcome.statistics.horizon_cuts, sum(result.cuts for result in results)),
    }
    return out + [f"{key}: {a}, not {b}" for key, (a, b) in totals.items() if a != b]


def alone(block: Block, folder: Path) -> list[str]:
    """What engines report of one action otherwise than the rules: its deadlocks, too."""
    result = Reading(block).result(starts())
    expected = {("undefined", "act0")} if result.is_undefined else set()
    expected |= {("deadlock", "deadlock")} if result.has_deadlock else set()
    program = program_of(text_alone(block), folder)
    if program is None:
        return ["an action alone is rejected"]
    outcomes = {
        "reference": reference.search(program, Options(symmetry=False, keep_going=True)),
        "native": native.search(program, native.NativeOptions(symmetry=False, keep_going=True, workers=1)),
    }
    out = []
    for name, outcome in outcomes.items():
        seen = {(violation.kind, violation.name) for violation in violations_of(outcome.verdict)}
        seen = {each for each in seen if each[1] not in ("on0", "off0")}
        out += [f"{name}, alone: {sorted(seen)}, not {sorted(expected)}"] if seen != expected else []
    return out


def text_alone(block: Block) -> str:
    """A spec of one action, whose deadlocks are violations."""
    return spec_of([block]).replace("deadlock ok\n", "")
