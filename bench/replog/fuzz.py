"""Damage broker folders at random, and hold starts, dumps and repairs of them to an oracle.

    python bench/replog/fuzz.py --cases 20000 [--seed 0] [--jobs 2]
    python bench/replog/fuzz.py --case 1234                        one case again, with what was done

A case is a history (`store_history.py`), some damage (`store_damage.py`), and the checks (`store_oracle.py`),
all from its number; ten cases share a history. A failure prints the command that repeats it. Exit code 1 if
there is one.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "replog" / "store"))

from store_cases import run_case

PIECE = 500


def run_piece(numbers: range) -> list[tuple[int, str]]:
    return [(number, run_case(number)[0]) for number in numbers]


def results(numbers: range, jobs: int) -> Iterator[tuple[int, str]]:
    pieces = [numbers[start : start + PIECE] for start in range(0, len(numbers), PIECE)]
    if jobs == 1:
        for piece in pieces:
            yield from run_piece(piece)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for found in pool.map(run_piece, pieces):
            yield from found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="one case only")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.case is not None:
        fate, done = run_case(options.case)
        print("\n".join([*done, fate]))
        sys.exit(fate.startswith("!"))
    start = time.perf_counter()
    fates: Counter[str] = Counter()
    for number, fate in results(range(options.seed, options.seed + options.cases), options.jobs):
        if fate.startswith("!"):
            print(f"python bench/replog/fuzz.py --case {number}    {fate}", flush=True)
        fates["FAILED" if fate.startswith("!") else fate] += 1
    taken = time.perf_counter() - start
    for fate, count in fates.most_common():
        print(f"{count:8} {fate}")
    print(f"{options.cases} cases, {fates['FAILED']} failed, {options.cases / taken * 60:.0f} a minute")
    sys.exit(fates["FAILED"] > 0)


if __name__ == "__main__":
    main()
