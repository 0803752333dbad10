"""A stream of recordings, and the seconds from each wrong one to its alarm.

    python bench/spark/alarms.py [--files 60] [--pause 0.5] [--wrong 6]

Recordings of replog appear in a folder, one every `--pause` seconds, whole (written under another name, then
renamed); every `--wrong`-th shows a false HW.  `specchk validate --follow` validates them on `local[2]`.  The
exit code is 1 where an alarm is missing, is about another recording, or takes more than ten seconds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT / "tests")  # instead of this folder, whose `spark` is another one

from replog.sim.recording.record_run import record  # noqa: E402
from spark.test_stream import Stream, wrong  # noqa: E402

MOST_S = 10.0


def alarms(stream: Stream) -> set[str]:
    """The names of recordings that have an alarm."""
    lines = stream.errors.read_text().splitlines()
    return {Path(line.split(": ")[1]).name for line in lines if line.startswith("alarm: ")}


def look(stream: Stream, put: dict[str, float], raised: dict[str, float], until: float) -> None:
    """Note alarms as they are raised."""
    while True:
        for name in alarms(stream) - set(raised):
            raised[name] = time.monotonic() - put.get(name, 0.0)
        if time.monotonic() >= until:
            return
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--pause", type=float, default=0.5)
    parser.add_argument("--wrong", type=int, default=6)
    args = parser.parse_args()
    texts = ["\n".join(record(seed)) + "\n" for seed in range(args.files)]
    put: dict[str, float] = {}
    raised: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="specchk-bench-") as folder:
        bank = Path(folder)
        (bank / "in").mkdir()
        stream = Stream(bank, tracing=ROOT / "conformance" / "tracing.py")
        try:
            # A first one, so that Spark's start is not in the seconds.
            stream.put("first.ndjson", wrong(texts[1]))
            stream.alarm("first.ndjson")
            raised["first.ndjson"] = 0.0
            for number, text in enumerate(texts):
                is_wrong, name = number % args.wrong == args.wrong - 1, f"{number:04d}.ndjson"
                stream.put(f".{name}", wrong(text) if is_wrong else text)
                if is_wrong:
                    put[name] = time.monotonic()
                (stream.folder / f".{name}").rename(stream.folder / name)
                look(stream, put, raised, time.monotonic() + args.pause)
            look(stream, put, raised, time.monotonic() + 2 * MOST_S)
            stream.end(13)
        finally:
            stream.process.kill()
    del raised["first.ndjson"]
    seconds = sorted(raised.values())
    print(
        f"{len(put)} wrong of {args.files} recordings, {len(raised)} alarms: "
        f"{statistics.median(seconds):.1f} s (median), {seconds[-1]:.1f} s at most"
    )
    sys.exit(set(raised) != set(put) or seconds[-1] > MOST_S)


if __name__ == "__main__":
    main()
