"""Damage broker folders at random, and hold starts, dumps and repairs of them to an oracle.

    python bench/store_fuzz.py --cases 20000 [--seed 0] [--jobs 2]
    python bench/store_fuzz.py --case 1234                        one case again, with what was done

A case is a history (`store_history.py`), some damage (`store_damage.py`), and the checks (`store_oracle.py`),
all from its number; ten cases share a history. A failure prints the command that repeats it. Exit code 1 if
there is one.
"""

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from random import Random

from store_damage import strike
from store_history import Writer
from store_oracle import BrokenError, Truth, check, truth_of

CASES_A_HISTORY = 10
PIECE = 500


@lru_cache(maxsize=2)
def truth(number: int) -> Truth:
    return truth_of(Writer(number).run())


def run_case(number: int) -> tuple[str, list[str]]:
    """Return what became of a case, a failure as `! reason`, and what was done to the folder."""
    done: list[str] = []
    try:
        right = truth(number // CASES_A_HISTORY)
        files = dict(right.history.files)
        random = Random(number)
        done = strike(random, files, right.history)
        return check(right, files, random), done
    except BrokenError as error:
        return f"! {error}", done
    except Exception as error:  # whatever it is, it is not one of the store's errors
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"! {type(error).__name__}: {error} ({last.name}, line {last.lineno})", done


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
            print(f"python bench/store_fuzz.py --case {number}    {fate}", flush=True)
        fates["FAILED" if fate.startswith("!") else fate] += 1
    taken = time.perf_counter() - start
    for fate, count in fates.most_common():
        print(f"{count:8} {fate}")
    print(f"{options.cases} cases, {fates['FAILED']} failed, {options.cases / taken * 60:.0f} a minute")
    sys.exit(fates["FAILED"] > 0)


if __name__ == "__main__":
    main()
