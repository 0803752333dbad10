"""Random specs and changed texts over all engines: python bench/engines/campaigns.py CAMPAIGN.

    specs   every engine on each random spec, and what their answers owe each other
    pairs   a random spec and a change of its text that must change nothing, or what the change says
    sparse  the native engine and the reference on sets, bags and maps that list their items
    linear  every engine but Spark on sums of offsets, batches and windows, at growing horizons
    time    the engines that check temporal properties, and a naive checker, under weak and strong fairness
    lines   5 actions, each in three orders of its lines, on the engines that enumerate: all together, one
            alone, and for some seeds one on every engine: what docs/language.md says of them, computed
            without specchk

Each seed is one spec, or one change of one spec (`pairs`).  A disagreement prints the command that repeats
it; the exit code is 1 if there was any.  Spark (`--spark`, for `specs`, `pairs` and `time`) needs Java; each
process starts one of its own.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / part) for part in ("", "core", "symbolic", "temporal")]

from linear_specs import linear_spec, windowed_spec  # noqa: E402
from naive_time import matched  # noqa: E402
from offset_specs import offset_spec  # noqa: E402
from random_temporal import random_temporal  # noqa: E402
from spec_texts import small_spec  # noqa: E402

from agreement.both import first_levels, program_of  # noqa: E402
from agreement.every_engine import OnSpark, compare  # noqa: E402
from agreement.gathered_specs import gathered_spec  # noqa: E402
from agreement.metamorphic import CHANGES  # noqa: E402
from agreement.open_specs import open_spec  # noqa: E402
from agreement.pairs import ENGINES, disagreement  # noqa: E402
from agreement.random_specs import random_spec, spec_with_maps  # noqa: E402
from agreement.reordered import alone, compared, reordered, text_alone  # noqa: E402
from agreement.sparse_specs import random_sparse_spec  # noqa: E402
from specchk.compile.instantiate import instantiate  # noqa: E402
from specchk.ir.types import Room  # noqa: E402
from specchk.lang.frontend import check  # noqa: E402
from specchk.native import engine as native  # noqa: E402
from specchk.search import reference  # noqa: E402
from specchk.search.budget import Budget  # noqa: E402
from specchk.search.engine import Unsupported  # noqa: E402

GENERATORS: tuple[Callable[[Random], str], ...] = (
    open_spec, random_spec, small_spec, offset_spec, linear_spec, gathered_spec,
)  # fmt: skip
EVERYWHERE_EVERY = 40  # seeds of `lines`; solvers take longer than everything else
SPARK_EVERY = 4  # seeds; Spark takes seconds for what the others do in one
Result = tuple[Counter[str], list[str]]

# From the room that is guessed down to one item, and with lists for all sets of more than one value.
ROOMS = (None, Room(3, 256), Room(1, 1), Room(2, 2), Room(8, 1))
MOST = 150  # states, after which the level is the last that is compared
FEW_ZONES = Budget(max_states=300, max_seconds=60.0)
WITHOUT_SPARK = (
    "native",
    "native, horizon + 1",
    "native, horizon + 2",
    "symbolic",
    "hulls",
    "depth",
    "prove",
)
LINEAR_PARTS = {
    "sums": re.compile(r"[abc] \+ [abc]\b"), "multiples": re.compile(r"2 \* a|3 \* b"),
    "remainders": re.compile("%"), "quotients": re.compile("//"), "sums over sets": re.compile("sum"),
    "batches": re.compile(r"\+ p\b|2 \* p"), "far thresholds": re.compile(r"\b(7|40|1000)\b"),
    "open choices": re.compile("in Offset|p: Offset"),
}  # fmt: skip
SIZE = re.compile(r"over .*|\d+")  # what reasons differ in
PARTS = {"bags": "net'", "partial maps": "box'", "maps of maps": "at'", "lists": "line", "folds": "fold(",
         "folds in definitions": "terms(", "operators": "holds_in(", "helper actions": "    enqueue(",
         "computed bounds": "votes", "sets of sets": "parts'", "wide numbers": "numbers'"}  # fmt: skip


def main() -> int:
    """Run a campaign; 1 where something disagreed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("campaign", choices=CAMPAIGNS)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--spark", action="store_true", help=f"Spark, too, for one seed of {SPARK_EVERY}")
    asked = parser.parse_args()
    os.environ["XDG_CACHE_HOME"] = os.devnull  # thousands of kernels that nobody asks for again
    one = CAMPAIGNS[asked.campaign]
    began, compared, wrong = time.monotonic(), Counter[str](), 0
    seeds = range(asked.first, asked.first + asked.count)
    for number, (counts, found) in enumerate(_results(one, seeds, asked.jobs, asked.spark), 1):
        compared += counts
        wrong += bool(found)
        for text in found:
            print(text, flush=True)
        if number % 100 == 0:
            print(f"{number} seeds, {wrong} disagree, {time.monotonic() - began:.0f} s", file=sys.stderr)
    print(f"{asked.campaign}: seeds {seeds.start}..{seeds.stop - 1}, {wrong} disagree")
    for what, count in sorted(compared.items()):
        print(f"  {count:6} {what}")
    return int(wrong > 0)


def _results(one: Callable[[int, bool], Result], seeds: range, jobs: int, spark: bool) -> Iterator[Result]:
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_guarded, [one] * len(seeds), seeds, [spark] * len(seeds))


def _guarded(one: Callable[[int, bool], Result], seed: int, spark: bool) -> Result:
    """One seed; an exception is a disagreement, too."""
    campaign = next(name for name, known in CAMPAIGNS.items() if known is one)
    # Searches are cyclic garbage, and they turn off its collection while they run: without this a process
    # of symbolic searches has more than a gigabyte after 200 seeds.
    gc.collect()
    try:
        counts, found = one(seed, spark)
    except Exception:
        counts, found = Counter({"exceptions": 1}), [traceback.format_exc(limit=-3)]
    options = f"--count 1 --first {seed}{' --spark' if spark else ''}"
    again = f"python bench/engines/campaigns.py {campaign} {options}"
    return counts, [f"{again}\n    {text}" for text in found]


def of_spec(seed: int, spark: bool) -> Result:
    """A random spec on every engine."""
    random, make = Random(seed), GENERATORS[seed % len(GENERATORS)]
    on_spark = _spark() if spark and seed // len(GENERATORS) % SPARK_EVERY == 0 else None
    with tempfile.TemporaryDirectory() as folder:
        found = compare(
            make(random), Path(folder), symmetry=random.random() < 0.5, keep_going=random.random() < 0.5,
            workers=random.choice((1, 2)), on_spark=on_spark,
        )  # fmt: skip
    if found is None:
        return Counter({f"{make.__name__}: rejected": 1}), []
    return Counter({f"{make.__name__}: compared": 1}) + found.compared, found.wrong


def of_pair(seed: int, spark: bool) -> Result:
    """A random spec and a change of it, on the reference and on one more engine."""
    random, make = Random(seed), GENERATORS[seed % len(GENERATORS)]
    name = random.choice(sorted(CHANGES))
    text = make(random)
    changed = CHANGES[name](random, text)
    if changed is None:
        return Counter({f"{name}: no place": 1}), []
    use_spark = spark and seed // len(GENERATORS) % SPARK_EVERY == 0
    engines = ["reference", "spark" if use_spark else random.choice(ENGINES[1:4])]
    way = {"symmetry": random.random() < 0.5, "keep_going": random.random() < 0.5}
    counts, wrong = Counter[str](), []
    for engine in engines:
        on_spark = _spark() if engine == "spark" else None
        with tempfile.TemporaryDirectory() as folder:
            texts, relation = (text, changed[0]), changed[1]
            found = disagreement(engine, texts, relation, Path(folder), **way, on_spark=on_spark)
        counts[f"{engine}: {'not comparable' if found is None else 'compared'}"] += 1
        counts[f"{name}: compared"] += found is not None and engine == "reference"
        wrong += [f"{name}, {engine}: {text}" for text in found or ()]
    return counts, wrong


def of_linear(seed: int, _: bool) -> Result:
    """A random spec with linear arithmetic, batches and windows, on every engine but Spark."""
    random = Random(seed)
    text = windowed_spec(random)
    with tempfile.TemporaryDirectory() as folder:
        found = compare(
            text, Path(folder), symmetry=random.random() < 0.5, keep_going=random.random() < 0.5,
            workers=random.choice((1, 2)), most_zones=FEW_ZONES,
        )  # fmt: skip
    if found is None:
        return Counter({"rejected": 1}), []
    counts = Counter({"specs": 1, "compared by all": all(found.compared[name] for name in WITHOUT_SPARK)})
    counts += Counter({f"specs with {name}": 1 for name, part in LINEAR_PARTS.items() if part.search(text)})
    return counts + found.compared, found.wrong


def of_sparse(seed: int, _: bool) -> Result:
    """The first levels of a random spec whose collections list their items, on two engines."""
    random = Random(seed)
    # Of five, one is a spec of every type and operator, with lists for bits.
    make = spec_with_maps if seed % 5 == 4 else random_sparse_spec
    text, room = make(random), random.choice(ROOMS)
    way = {"symmetry": random.random() < 0.5, "keep_going": random.random() < 0.75}
    with tempfile.TemporaryDirectory() as folder:
        program = program_of(text, Path(folder))
        if program is None:
            return Counter({f"{make.__name__}: rejected": 1}), []
        os.environ["XDG_CACHE_HOME"] = folder  # compiled once for both numbers of threads
        try:
            found = first_levels(program, **way, workers=(1, 2), most=MOST, room=room)
        except Unsupported as reason:
            return Counter({f"{make.__name__}: not compiled: {SIZE.sub('N', str(reason))}": 1}), []
        finally:
            os.environ["XDG_CACHE_HOME"] = os.devnull
    if found is None:
        return Counter({f"{make.__name__}: too slow": 1}), []
    counts = Counter({f"{make.__name__}: compared": 1, f"{make.__name__}: states": found.states})
    counts[f"{make.__name__}: compared, of more than 10 states"] += found.states > 10
    counts[f"{make.__name__}: compared, its first levels only"] += found.is_cut
    if make is random_sparse_spec:
        body = text.split("\naction ", 1)[1]
        counts += Counter({f"compared, with {name}": 1 for name, part in PARTS.items() if part in body})
        counts += Counter({f"compared, {name}": 1 for name, is_on in way.items() if is_on})
    return counts, [f"{room}: {text}" for text in found.wrong]


def of_time(seed: int, spark: bool) -> Result:
    """A random graph with a temporal property: verdicts, lengths and warnings, on Spark every state."""
    text, counts, wrong = random_temporal(Random(seed)), Counter[str](), []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "time.spec")
        file.write_text(text, encoding="utf-8")
        program = instantiate(check(str(file))).program
        expected = reference.search(program)
        natively = native.search(program, native.NativeOptions(workers=1 + seed % 2))
        outcomes = {"reference": expected, "native": natively}
        if spark and expected.statistics.distinct:  # without any state the native engine answers alone
            outcomes["spark"] = _spark()(program, True, False)
            if outcomes["spark"].verdict != natively.verdict:
                wrong.append("spark: another verdict or counterexample than native")
    for name, outcome in outcomes.items():
        try:
            counts[f"{name}: {matched(program, outcome, text)}"] += 1
        except AssertionError:
            wrong.append(f"{name}: not the naive checker's verdict and length")
        counts[f"{name}: compared"] += 1
        if (outcome.warnings, outcome.statistics.owed_at_horizon) != (
            expected.warnings, expected.statistics.owed_at_horizon,
        ):  # fmt: skip
            wrong.append(f"{name}: other warnings than the reference engine")
    return counts, wrong


def of_lines(seed: int, spark: bool) -> Result:
    """Random actions in orders of their lines, against the rules: all in one spec, then one alone."""
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        on_spark = _spark() if spark and seed % SPARK_EVERY == 0 else None
        counts, wrong = compared(seed, 5, 3, Path(folder), on_spark)
        wrong += alone(random.choice(random.choice(reordered(seed, 5, 3))), Path(folder))
        if seed % EVERYWHERE_EVERY:
            return counts, wrong
        text = text_alone(random.choice(reordered(seed, 1, 3)[0]))
        found = compare(text, Path(folder), symmetry=False, keep_going=True, on_spark=on_spark)
    if found is None:
        return counts, [*wrong, "an action alone is rejected"]
    return counts + Counter({f"alone: {name}": n for name, n in found.compared.items()}), wrong + found.wrong


@cache
def _spark() -> OnSpark:
    """A function that has this process's own Spark answer."""
    from pyspark import SparkConf, SparkContext

    from specchk.spark.engine import SparkOptions, search

    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = SparkConf().setMaster("local[2]").set("spark.driver.memory", "1g")
    conf.set("spark.ui.enabled", "false").set("spark.ui.showConsoleProgress", "false")
    SparkContext.getOrCreate(conf).setLogLevel("OFF")

    def on_spark(program: Any, symmetry: bool, keep_going: bool) -> Any:
        return search(
            program, SparkOptions(symmetry=symmetry, keep_going=keep_going, handover=1, partitions=2)
        )

    return on_spark


CAMPAIGNS: dict[str, Callable[[int, bool], Result]] = {
    "specs": of_spec,
    "pairs": of_pair,
    "sparse": of_sparse,
    "linear": of_linear,
    "time": of_time,
    "lines": of_lines,
}


if __name__ == "__main__":
    sys.exit(main())
