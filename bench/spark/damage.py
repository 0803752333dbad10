"""Damage what searches keep on disk, and see that none of it is believed: `python bench/spark/damage.py`.

A seed chooses what happens to which file: a flipped bit, 512 B or 4 KiB of zeroes, a cut, bytes more, two
files swapped, one copied over another, a file of another run in its place, a file removed. Then a search
goes on with it, and what it says is compared with the undamaged answer:

    refused    a sentence, and no answer
    right      the undamaged answer: recomputed, or the damage was where nothing counts
    ACCEPTED   another answer
    CRASHED    an exception, a signal, a hang

Kinds: `checkpoint` (native engine), `caches` (compiled code, parse tables), `ledger` (Spark, resumed),
`scratch` (tables of visited states, damaged while Spark makes levels). The exit code is 1 where anything was
accepted or crashed; each is a line with its command.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.lang.syntax import parse, reading
from specchk.native import engine
from specchk.search.budget import Budget, Progress
from specchk.search.verdict import Inconclusive, Outcome
from specchk.spark import engine as spark_engine
from specchk.spark.session import session

SPEC = Path(__file__).resolve().parents[2] / "spec"
PATIENCE_S = 120.0  # for one search; longer is a hang
REFUSED, RIGHT, ACCEPTED, CRASHED = "refused", "right", "ACCEPTED", "CRASHED"
HELD = ("kafka/kip320.spec", "small", (("Replicas", "3"), ("MaxLeaderEpoch", "1"), ("MaxRecords", "1")))
BROKEN = ("kafka/kip101.spec", "fast_failover", ())
OTHER = ("kafka/kip320.spec", "small", (("Replicas", "3"), ("MaxLeaderEpoch", "1"), ("MaxRecords", "2")))
SMALL = ("examples/lag.spec", None, ())
Model = tuple[str, str | None, tuple[tuple[str, str], ...]]
UNUSABLE = (
    "specchk.search.engine.Unusable",
    "specchk.native.checkpoint.Unusable",  # of earlier versions
)


def program(model: Model) -> Program:
    file, name, constants = model
    return instantiate(check(str(SPEC / file)), name, dict(constants)).program


def said(outcome: Outcome) -> dict[str, Any]:
    """All that a reader takes from an outcome, as plain values."""
    counts = replace(outcome.statistics, seconds=0.0, prepared_s=0.0)
    witnesses = sorted(outcome.witnesses, key=lambda pair: pair[0])
    return {"verdict": repr(outcome.verdict), "statistics": repr(counts), "coverage": outcome.coverage,
            "witnesses": repr(witnesses)}  # fmt: skip


def files_below(place: Path) -> list[Path]:
    """All files with something in them, claims and locks aside."""
    return sorted(
        path for path in place.rglob("*") if path.is_file() and path.stat().st_size and path.name != "claim"
    )


def changed(chance: Random, file: Path, change: Callable[[bytearray, int], None]) -> None:
    data = bytearray(file.read_bytes())
    change(data, chance.randrange(len(data)))
    file.write_bytes(data)


def flip(chance: Random, file: Path, _: Path) -> None:
    def at(data: bytearray, where: int) -> None:
        data[where] ^= 1 << chance.randrange(8)

    changed(chance, file, at)


def zero(size: int) -> Callable[[Random, Path, Path], None]:
    def zeroed(chance: Random, file: Path, _: Path) -> None:
        def at(data: bytearray, where: int) -> None:
            first = where // size * size
            data[first : first + size] = bytes(len(data[first : first + size]))

        changed(chance, file, at)

    return zeroed


def cut(chance: Random, file: Path, _: Path) -> None:
    os.truncate(file, chance.choice((0, chance.randrange(file.stat().st_size), file.stat().st_size - 1)))


def append(chance: Random, file: Path, _: Path) -> None:
    with file.open("ab") as out:
        out.write(chance.choice((b"\0", bytes(8), bytes(4096), chance.randbytes(16), file.read_bytes())))


def neighbour(chance: Random, file: Path, place: Path) -> Path:
    """Another file, of the same kind where there is one."""
    others = [path for path in files_below(place) if path != file]
    alike = [path for path in others if path.suffix == file.suffix]
    return chance.choice(alike or others or [file])


def swap(chance: Random, file: Path, place: Path) -> None:
    other = neighbour(chance, file, place)
    mine, its = file.read_bytes(), other.read_bytes()
    file.write_bytes(its)
    other.write_bytes(mine)


def double(chance: Random, file: Path, place: Path) -> None:
    file.write_bytes(neighbour(chance, file, place).read_bytes())


def remove(_: Random, file: Path, __: Path) -> None:
    file.unlink()


DAMAGES: dict[str, Callable[[Random, Path, Path], None]] = {
    "bit": flip, "512 B of zeroes": zero(512), "4 KiB of zeroes": zero(4096), "cut": cut, "longer": append,
    "swapped": swap, "doubled": double, "removed": remove,
}  # fmt: skip


def damage(chance: Random, place: Path, foreign: Path | None) -> str:
    """Something happens to a place; what it was."""
    files = files_below(place)
    if not files:
        return "nothing there"
    file, kinds = chance.choice(files), list(DAMAGES)
    kind = chance.choice([*kinds, "bit", *(["of another run"] if foreign is not None else [])])
    if kind == "of another run" and foreign is not None:
        alike = [path for path in files_below(foreign) if path.suffix == file.suffix]
        same = [path for path in alike if path.parts[-2:] == file.parts[-2:]]
        file.write_bytes(chance.choice(same or alike or files_below(foreign)).read_bytes())
    else:
        DAMAGES[kind](chance, file, place)
    return f"{kind}: {file.relative_to(place)}"


@dataclass(frozen=True)
class Campaign:
    """What is damaged, with its undamaged answer; `go_on` says what comes of a damaged copy."""

    expected: Any
    go_on: Callable[[Random, Path], tuple[str, str]]  # what happened, and what came of it
    in_child: bool = True


def verdict_of(expected: Any, go_on: Callable[[], Any]) -> str:
    """What came of going on."""
    try:
        found = go_on()
    except Exception as error:
        name = f"{type(error).__module__}.{type(error).__qualname__}"
        return f"{REFUSED if name in UNUSABLE else CRASHED} {name}: {error}"
    if isinstance(found, Outcome):
        verdict = found.verdict
        if isinstance(verdict, Inconclusive):
            told = "the ledger is damaged: " in verdict.reason
            return f"{REFUSED if told else CRASHED} {verdict.reason}"
        found = said(found)
    return RIGHT if found == expected else f"{ACCEPTED} {difference(expected, found)}"


def difference(expected: Any, found: Any) -> str:
    if not isinstance(expected, dict):
        return str(found)[:200]
    return "; ".join(f"{key} {str(found[key])[:150]}" for key in expected if found[key] != expected[key])


@contextmanager
def fresh(folder: Path) -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def native_options(place: Path | None = None) -> engine.NativeOptions:
    return engine.NativeOptions(Budget(max_seconds=PATIENCE_S), symmetry=False, workers=2, checkpoint=place)


def checkpoints(folder: Path) -> Campaign:
    """Halves of searches, one that holds and one that is violated."""
    halves, answers = [], []
    for number, model in enumerate((HELD, BROKEN, OTHER)):
        place = folder / f"checkpoint {number}"
        cut_off = replace(native_options(place), checkpoint_every_s=0.0, budget=Budget(max_states=400))
        assert isinstance(engine.search(program(model), cut_off).verdict, Inconclusive)
        halves.append(place)
        answers.append(said(engine.search(program(model), native_options())))

    def go_on(chance: Random, place: Path) -> tuple[str, str]:
        which = chance.randrange(2)
        shutil.copytree(halves[which], place / "place")
        happened = damage(chance, place / "place", halves[2 - which] if which == 0 else halves[0])
        wanted = replace(native_options(place / "place"), resume=True)
        model = (HELD, BROKEN)[which]
        return happened, verdict_of(answers[which], lambda: engine.search(program(model), wanted))

    return Campaign(answers, go_on)


def caches(folder: Path) -> Campaign:
    """Compiled code and parse tables, of two specs."""
    filled, models = folder / "caches", (SMALL, BROKEN)
    os.environ["XDG_CACHE_HOME"] = str(filled)
    parse.parser.cache_clear()
    answers = [said(engine.search(program(model), native_options())) for model in models]

    def go_on(chance: Random, place: Path) -> tuple[str, str]:
        shutil.copytree(filled, place / "caches")
        happened = damage(chance, place / "caches", None)
        os.environ["XDG_CACHE_HOME"] = str(place / "caches")
        which = chance.randrange(2)
        parse.parser.cache_clear()  # in this forked process the parser is not there yet
        reading._parsed.cache_clear()
        return happened, verdict_of(
            answers[which], lambda: said(engine.search(program(models[which]), native_options()))
        )

    return Campaign(answers, go_on)


def spark_options(place: Path | None = None, **kinds: Any) -> spark_engine.SparkOptions:
    budget = Budget(max_seconds=PATIENCE_S)
    return replace(spark_engine.SparkOptions(budget, symmetry=False, partitions=2, handover=30,
                                  ledger=str(place) if place else None), **kinds)  # fmt: skip


def ledgers(folder: Path) -> Campaign:
    """Halves of searches that Spark goes on with."""
    halves, answers = [], []
    for number, model in enumerate((HELD, BROKEN, HELD)):
        place = folder / f"ledger {number}"
        cut_off = spark_options(place, budget=Budget(max_states=400))
        assert isinstance(spark_engine.search(program(model), cut_off).verdict, Inconclusive)
        halves.append(place)
        answers.append(said(engine.search(program(model), native_options())))

    def go_on(chance: Random, place: Path) -> tuple[str, str]:
        which = chance.randrange(2)
        shutil.copytree(halves[which], place / "place")
        happened = damage(chance, place / "place", halves[2] if which == 0 else halves[0])
        wanted = spark_options(place / "place", resume=True)
        model = (HELD, BROKEN)[which]
        return happened, verdict_of(answers[which], lambda: spark_engine.search(program(model), wanted))

    return Campaign(answers, go_on, in_child=False)


def while_running(_: Path) -> Campaign:
    """Files of a search that runs: tables of visited states."""
    answers = [said(engine.search(program(model), native_options())) for model in (HELD, BROKEN)]

    def go_on(chance: Random, place: Path) -> tuple[str, str]:
        which, wait = chance.randrange(2), chance.randrange(8)
        happened: list[str] = []

        def progress(at: Progress) -> None:
            if at.note and len(happened) <= wait:
                try:
                    happened.append(damage(chance, place, None) if len(happened) == wait else "")
                except FileNotFoundError:  # a task was faster, and has removed it
                    return

        wanted = spark_options(scratch=str(place), partitions=3, handover=1)
        model = (HELD, BROKEN)[which]
        came = verdict_of(answers[which], lambda: spark_engine.search(program(model), wanted, progress))
        return happened[-1] if happened else "nothing", came

    return Campaign(answers, go_on, in_child=False)


CAMPAIGNS: dict[str, Callable[[Path], Campaign]] = {
    "checkpoint": checkpoints, "caches": caches, "ledger": ledgers, "scratch": while_running,
}  # fmt: skip


ON_SPARK = ("ledger", "scratch")


def on_spark() -> AbstractContextManager[Any]:
    return session("local[2]", {"spark.ui.enabled": "false"})


def one(kind: str, campaign: Campaign, seed: int, folder: Path) -> tuple[str, str]:
    """What happened with a seed, and what came of it."""
    chance = Random(f"{kind} {seed}")
    with fresh(folder) as place:
        if not campaign.in_child:
            return campaign.go_on(chance, place)
        ours, theirs = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.get_context("fork").Process(
            target=lambda: theirs.send(campaign.go_on(chance, place))
        )
        child.start()
        theirs.close()
        try:
            told = ours.recv() if ours.poll(2 * PATIENCE_S) else ("?", f"{CRASHED} it hung")
        except EOFError:
            told = ("?", f"{CRASHED} a signal")
        if child.is_alive() and told[1].endswith("hung"):
            child.kill()
        child.join()
        return (told[0], f"{told[1]} {child.exitcode}") if told[1].endswith("signal") else told


def seeds_of(text: str) -> range:
    first, dots, last = text.partition("..")
    return range(int(first), int(last) + 1) if dots else range(int(first), int(first) + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kinds", default=",".join(CAMPAIGNS))
    parser.add_argument("--seeds", default="0..199", help="one, or FIRST..LAST; for each kind")
    parser.add_argument("--verbose", action="store_true", help="a line for each seed")
    args = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="specchk-damage-") as name:
        for kind in args.kinds.split(","):
            with on_spark() if kind in ON_SPARK else nullcontext():
                wrong += campaign_of(kind, seeds_of(args.seeds), Path(name), verbose=args.verbose)
    sys.exit(wrong > 0)


def campaign_of(kind: str, seeds: range, folder: Path, *, verbose: bool) -> int:
    """Run a campaign; how many were accepted or crashed."""
    assert kind in CAMPAIGNS, f"{kind} is none of {', '.join(CAMPAIGNS)}"
    campaign, began = CAMPAIGNS[kind](folder), time.monotonic()
    came: Counter[str] = Counter()
    for seed in seeds:
        happened, told = one(kind, campaign, seed, folder)
        came[told.split()[0]] += 1
        if verbose or told.startswith((ACCEPTED, CRASHED)):
            again = f"python bench/spark/damage.py --kinds {kind} --seeds {seed}"
            print(f"{again}  # {happened}: {told}", flush=True)
    counts = ", ".join(f"{came[word]} {word}" for word in (REFUSED, RIGHT, ACCEPTED, CRASHED))
    print(f"{kind}: {len(seeds)} damages: {counts}; {time.monotonic() - began:.0f} s", flush=True)
    return came[ACCEPTED] + came[CRASHED]


if __name__ == "__main__":
    main()
