"""Random specs and changed texts over all engines: python bench/campaigns.py specs | pairs | sparse.

    specs   every engine on each random spec, and what their answers owe each other
    pairs   a random spec and a change of its text that must change nothing, or what the change says
    sparse  the native engine and the reference on sets, bags and maps that list their items

Each seed is one spec (`specs`, `sparse`) or one change of one spec (`pairs`).  A disagreement prints the
command that repeats it; the exit code is 1 if there was any.  Spark (`--spark`, not for `sparse`) needs Java;
each process starts one of its own.
"""

from __future__ import annotations

import argparse
import os
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

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / part) for part in ("", "core", "symbolic")]

from linear_specs import linear_spec  # noqa: E402
from offset_specs import offset_spec  # noqa: E402
from spec_texts import small_spec  # noqa: E402

from agreement.both import differences, program_of  # noqa: E402
from agreement.every_engine import OnSpark, compare  # noqa: E402
from agreement.metamorphic import CHANGES  # noqa: E402
from agreement.open_specs import open_spec  # noqa: E402
from agreement.pairs import ENGINES, disagreement  # noqa: E402
from agreement.random_specs import random_spec, spec_with_maps  # noqa: E402
from agreement.sparse_specs import random_sparse_spec  # noqa: E402
from specchk.ir.types import Room  # noqa: E402
from specchk.search.budget import Budget  # noqa: E402

GENERATORS: tuple[Callable[[Random], str], ...] = (
    open_spec, random_spec, small_spec, offset_spec, linear_spec,
)  # fmt: skip
SPARK_EVERY = 4  # seeds; Spark takes seconds for what the others do in one
Result = tuple[Counter[str], list[str]]

# From the room that is guessed down to one item, and with lists for all sets of more than one value.
ROOMS = (None, Room(3, 256), Room(1, 1), Room(2, 2), Room(8, 1))


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
    try:
        counts, found = one(seed, spark)
    except Exception:
        counts, found = Counter({"exceptions": 1}), [traceback.format_exc(limit=-3)]
    again = f"python bench/campaigns.py {campaign} --count 1 --first {seed}{' --spark' if spark else ''}"
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


def of_sparse(seed: int, _: bool) -> Result:
    """A random spec whose collections list their items, on the reference and the native engine."""
    random = Random(seed)
    # Of three, one is a spec of every type and operator, with lists for bits.
    make = spec_with_maps if seed % 3 == 2 else random_sparse_spec
    text, room = make(random), random.choice(ROOMS)
    with tempfile.TemporaryDirectory() as folder:
        program = program_of(text, Path(folder))
        if program is None:
            return Counter({f"{make.__name__}: rejected": 1}), []
        found = differences(
            program, symmetry=random.random() < 0.5, keep_going=random.random() < 0.5,
            workers=random.choice((1, 2)), limit=Budget(max_states=1500), room=room,
        )  # fmt: skip
    if found is None:
        return Counter({f"{make.__name__}: too large, or not compiled": 1}), []
    wrong = [f"{room}: {what}: {a} | {b}" for what, (a, b) in found.items()]
    return Counter({f"{make.__name__}: compared": 1}), wrong


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
}


if __name__ == "__main__":
    sys.exit(main())
