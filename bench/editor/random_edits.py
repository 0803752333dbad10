"""Random edits of a spec through the protocol: no exception, and nothing stale.

    python bench/editor/random_edits.py [--edits 2000] [--every 50] [SPEC]

After each edit the diagnostics of its version are awaited; after every so many, and at the end, they are
compared with those of a new check of the text.  tests/lsp/test_edits.py does so after each edit of small
specs.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HERE / "tests" / "lsp"), str(HERE / "tests")]

from lsp_client import Client  # noqa: E402
from test_edits import edit  # noqa: E402

from specchk.lang.frontend import check  # noqa: E402
from specchk.lang.text.diagnostics import SpecError  # noqa: E402


def fresh(path: Path, text: str) -> list[tuple[int, str]]:
    """Line and code of each error that a new check reports."""
    try:
        check(str(path), text)
    except SpecError as error:
        return sorted((item.span.line if item.span else 1, item.code) for item in error.diagnostics)
    return []


def main() -> None:
    """Print how many edits there were and how many comparisons; fail at the first difference."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("spec", nargs="?", type=Path, default=HERE / "spec" / "replication.spec")
    options.add_argument("--edits", type=int, default=2000)
    options.add_argument("--every", type=int, default=50)
    chosen = options.parse_args()
    path = chosen.spec.resolve()
    sys.setrecursionlimit(20_000)
    original = text = path.read_text()
    client, random, compared, began = Client(path.parent), Random(1), 0, time.perf_counter()
    client.open(path)
    for number in range(1, chosen.edits + 1):
        text = original if number % 25 == 0 else edit(text, random)
        diagnostics = client.replace(path, text)
        if number % chosen.every in (0, chosen.every - 1) or number == chosen.edits:
            shown = sorted((item["range"]["start"]["line"] + 1, str(item["code"])) for item in diagnostics)
            if shown != fresh(path, text):
                sys.exit(f"edit {number}: {shown} instead of {fresh(path, text)}")
            compared += 1
    assert client.stop() == 0
    seconds = time.perf_counter() - began
    print(f"{chosen.edits} edits of {path.name}, {compared} compared, {seconds:.0f} s")


if __name__ == "__main__":
    main()
