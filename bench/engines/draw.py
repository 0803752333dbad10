"""How long a 30-step trace takes to draw, and how large a report is.

    python bench/engines/draw.py

A walk of 30 steps through spec/replication.spec (model three_brokers), drawn in each form; and the
report of a run that finds a violation.  Times are the best of five, in milliseconds, loading of the
spec apart; Graphviz runs in a process of its own and is part of the time of SVG and PNG.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from specchk.compile.instantiate import Instance, instantiate
from specchk.explore.view import Viewer
from specchk.explore.walk import Walker
from specchk.lang.frontend import check
from specchk.report.draw import lanes
from specchk.report.draw.picture import picture
from specchk.report.draw.render import svg_element, write
from specchk.report.draw.text import text
from specchk.report.page.html import page
from specchk.search.reference import search
from specchk.search.verdict import Step, Trace, Violated

ROOT = Path(__file__).parents[2]
STEPS = 30


def behaviour(instance: Instance) -> Trace:
    """Thirty steps: always the enabled one that is furthest from the one before in the list."""
    walker = Walker(instance)
    trace = Trace(walker.initial[0], ())
    for number in range(STEPS):
        enabled: list[Step] = walker.enabled(trace.last)
        trace = Trace(trace.initial, (*trace.steps, enabled[(number * 7) % len(enabled)]))
    return trace


def best(work: Callable[[], object]) -> float:
    """The shortest of five times, in milliseconds."""
    times = []
    for _ in range(5):
        begun = perf_counter()
        work()
        times.append(perf_counter() - begun)
    return min(times) * 1000


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    instance = instantiate(check(str(ROOT / "spec/replication.spec")), "three_brokers")
    trace = behaviour(instance)
    viewer = Viewer(instance)
    drawn = picture(viewer, trace, None)
    dot = lanes.dot(drawn)
    print(f"{len(trace.steps)} steps, {len(viewer.lanes)} lanes")
    with tempfile.TemporaryDirectory() as place:
        svg, png = Path(place) / "found.svg", Path(place) / "found.png"
        for name, work in (
            ("picture", lambda: picture(Viewer(instance), trace, None)),
            ("text", lambda: text(drawn)),
            ("DOT", lambda: lanes.dot(drawn)),
            ("SVG", lambda: write(dot, svg, placed=True)),
            ("PNG", lambda: write(dot, png, placed=True)),
        ):
            print(f"{name:8} {best(work):8.1f} ms")
        print(f"SVG {svg.stat().st_size / 1024:.0f} KiB, PNG {png.stat().st_size / 1024:.0f} KiB")
    loss = instantiate(check(str(ROOT / "spec/kafka/truncate_to_hw.spec")))
    outcome = search(loss.program)
    assert isinstance(outcome.verdict, Violated)
    found = outcome.verdict.violations[0]
    assert found.trace is not None
    shown = svg_element(lanes.dot(picture(Viewer(loss), found.trace, found)), placed=True)
    size = len(page(outcome, shown).encode("utf-8"))
    print(f"report of truncate_to_hw: {size / 1024:.0f} KiB, {best(lambda: page(outcome, shown)):.1f} ms")


if __name__ == "__main__":
    main()
