"""Cases of `bench/replog/fuzz.py`: a history, damage to its folder, and the result."""

import traceback
from functools import lru_cache
from random import Random

from store_damage import strike
from store_history import Writer
from store_oracle import BrokenError, Truth, check, truth_of

CASES_A_HISTORY = 10


@lru_cache(maxsize=2)
def truth(number: int) -> Truth:
    return truth_of(Writer(number).run())


def run_case(number: int) -> tuple[str, list[str]]:
    """Return the result of a case, a failure as `! reason`, and the damage done to the folder."""
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
