"""Ledgers and checkpoints that several searches want, and that have no room: `python bench/spark/ledger.py`.

`--together N --rounds R`: N searches started at once with one `--ledger`, R times, `--property` in turn.  One
has to answer as the native engine does, and the others are refused in a sentence with exit code 2.  The
same with `--checkpoint`.

`--full SIZE,...`: a ledger on a file system of so many KiB (a tmpfs; root, or user name spaces), for
searches that hand over early and late.  Each has to answer, or to end with path and cause and exit code 20;
what is left is then offered to a search with other constants, which has to find its own answer or refuse.

`--bids N --rounds R`: N threads that claim a directory by files alone, with pauses by lot between steps.

The exit code is 1 where anything else happened.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from typing import Any

from specchk.native.claims import BidFolder, bid
from specchk.search.engine import Unusable

KAFKA = Path(__file__).resolve().parents[2] / "spec" / "kafka"
RUN = (sys.executable, "-m", "specchk", "run")
PROPERTIES = ("leader_in_isr", "log_match", "weak_isr", "strong_isr")
DIVERGENCE = (str(KAFKA / "truncate_to_hw.spec"), "--model", "committed_divergence", "--json")
SPARK = ("--engine", "spark", "--conf", "spark.ui.enabled=false")
KIP320 = (
    str(KAFKA / "kip320.spec"),
    "--no-symmetry",
    "--json",
    "--set",
    "Replicas=3",
    "--set",
    "MaxLeaderEpoch=1",
)
OTHER = (*KIP320, "--set", "MaxRecords=1")
SAYS = ("verdict", "states_distinct", "coverage", "violations")
SMALL = (
    'mount -t tmpfs -o size="$1"k none "$2/small" || exit 1; at="$2"; shift 2\n'
    '"$@"; code=$?; cp -r "$at/small/." "$at/left"; exit $code'
)


def answer_of(out: str) -> dict[str, Any]:
    found = json.loads(out)
    return {part: found[part] for part in SAYS}


def natively(*line: str) -> dict[str, Any]:
    return answer_of(subprocess.run([*RUN, *line], capture_output=True, text=True, check=False).stdout)


@dataclass(frozen=True)
class Ended:
    """A search that was a process: what it was asked, what it printed, and its exit code."""

    asked: str
    out: str
    errors: str
    code: int

    @property
    def refusal(self) -> str:
        """Why it was refused, in a word; "" where it was not."""
        words = {
            "is held by another search (process": "held",
            ": use --resume, or choose another": "there already",
        }
        found = [word for text, word in words.items() if text in self.errors and self.code == 2]
        return found[0] if found and "Traceback" not in self.errors else ""


def at_once(line: Sequence[str], names: Sequence[str]) -> list[Ended]:
    """Searches that were started together, one for each property."""
    running = [
        subprocess.Popen([*line, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name in names
    ]
    return [Ended(name, *p.communicate(), p.returncode) for name, p in zip(names, running, strict=True)]


def together(many: int, rounds: int, place: str) -> int:
    """Searches of one place; how many rounds went otherwise."""
    alone = {name: natively(*DIVERGENCE, "--property", name) for name in PROPERTIES}
    own = [*SPARK, "--handover", "1"] if place == "--ledger" else ["--every", "0"]
    wrong = 0
    for number in range(rounds):
        names = [PROPERTIES[at % len(PROPERTIES)] for at in range(many)]
        random.Random(number).shuffle(names)
        with tempfile.TemporaryDirectory() as folder:
            ended = at_once([*RUN, *DIVERGENCE, *own, place, f"{folder}/place", "--property"], names)
        refused = Counter(one.refusal for one in ended if one.refusal)
        answers = [one for one in ended if not one.refusal]
        right = len(answers) == 1 and answer_of(answers[0].out) == alone[answers[0].asked]
        wrong += not right
        word = "" if right else f" WRONG {answers}"
        print(f"{place} round {number}: {len(answers)} answer, refused: {dict(refused)}{word}", flush=True)
    return wrong


def full(sizes: list[int]) -> int:
    """Ledgers without room; how many searches said something else."""
    first, second = natively(*KIP320), natively(*OTHER)
    wrong = 0
    for size in sizes:
        for handover in ("1", "2500"):
            with tempfile.TemporaryDirectory() as folder:
                told, is_right = on_small(size, handover, Path(folder), first)
                line = [*RUN, *OTHER, *SPARK, "--handover", "1", "--ledger"]
                (again,) = at_once(line, [f"{folder}/left/L"])
            right = is_right and (bool(again.refusal) or answer_of(again.out) == second)
            wrong += not right
            after = again.refusal or f"exit {again.code}"
            print(f"{size} KiB, handover {handover}: {told}; then another search: {after}"
                  f"{'' if right else ' WRONG'}", flush=True)  # fmt: skip
    return wrong


def on_small(size: int, handover: str, folder: Path, answer: dict[str, Any]) -> tuple[str, bool]:
    """What a search says on a small file system, and whether it may; what it leaves goes to `left`."""
    for name in ("small", "left"):
        (folder / name).mkdir()
    search = [*RUN, *KIP320, *SPARK, "--handover", handover, "--ledger", f"{folder}/small/L"]
    line = ["unshare", "--map-root-user", "--mount", "sh", "-c", SMALL, "sh", str(size), str(folder), *search]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return "an answer", answer_of(done.stdout) == answer
    told = json.loads(done.stdout)["reason"] if done.stdout else done.stderr.splitlines()[-1]
    is_sentence = f"{folder}/small/L" in told and "No space left" in told and "Traceback" not in done.stderr
    shown = told.replace(str(folder), "")
    return f"exit {done.returncode}, {shown}", is_sentence and done.returncode in (2, 20)


def slow(root: Path, chance: random.Random) -> BidFolder:
    """A folder whose steps take a while, by lot."""
    folder = BidFolder.at(root)

    def pause() -> None:
        time.sleep(chance.random() ** 4 / 50)

    def write(name: str, data: bytes) -> None:
        pause()
        folder.write(name, data)

    def names() -> list[str]:
        pause()
        found = folder.names()
        pause()
        return found

    return folder._replace(write=write, names=names)


def bids(many: int, rounds: int) -> int:
    """Claims by files alone; how many rounds had not one holder."""
    wrong, start, end = 0, Barrier(many), Barrier(many)

    def attempt(place: BidFolder) -> bool:
        start.wait()
        try:
            with bid(place, "it", "a search"):
                end.wait()
                return True
        except Unusable:
            end.wait()
            return False

    with ThreadPoolExecutor(many) as pool, tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            chance = random.Random(number)
            held = sum(pool.map(attempt, [slow(Path(folder), chance) for _ in range(many)]))
            wrong += held != 1
    print(f"bids: {rounds} rounds of {many}, {wrong} without one holder", flush=True)
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--together", type=int, default=0)
    parser.add_argument("--bids", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--full", default="")
    args = parser.parse_args()
    wrong = 0
    if args.together:
        for place in ("--ledger", "--checkpoint"):
            wrong += together(args.together, args.rounds, place)
    if args.bids:
        wrong += bids(args.bids, args.rounds)
    if args.full:
        wrong += full([int(size) for size in args.full.split(",")])
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
