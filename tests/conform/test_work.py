"""Work is counted equally on every machine, and counting does not change the code's results."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

from laws.sources import ROOT
from specchk.conform.mutation.members import Kill, Reporter
from specchk.conform.mutation.patches import Counted, Patch, StalePatch, forget, install
from specchk.conform.work.effort import ENDLESS, TICK, TooMuch, WorkMeter, counted

CORE = sorted(
    path for path in (ROOT / "impl" / "replog" / "core").rglob("*.py") if path.name != "__init__.py"
)


def run(text: str, meter: WorkMeter) -> ModuleType:
    module = ModuleType("made")
    vars(module)[TICK] = meter.tick
    exec(counted(text, "made.py"), vars(module))
    return module


@pytest.mark.parametrize(
    ("body", "work"),
    [
        ("return 1", 1),
        ("for _ in range(5): pass", 6),
        ("n = 3\n    while n: n -= 1", 4),
        ("return [x for x in range(5)]", 6),
        ("return {x: y for x in range(3) for y in range(2)}", 1 + 3 + 6),
        ("return sum(x for x in range(5) if x > 3)", 6),
        ("return f(n - 1) if n else 0", 4),
        ("'only words'", 0),
        ("'words'\n    return 1", 1),
        ("return (lambda: 1)()", 1),
    ],
)
def test_calls_times_round_and_items_are_counted(body: str, work: int) -> None:
    """Each of them once, whatever it takes."""
    meter = WorkMeter()
    made = run(f"def f(n=3):\n    {body}\n", meter)
    made.f()
    assert meter.done == work


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass", "for _ in iter(int, 1): pass", "[None for _ in iter(int, 1)]",
        "sum(1 for _ in iter(int, 1))",
        "while True:\n            try: f(0)\n            except Exception: pass",
        "while True:\n            try: f(0)\n            except BaseException: pass",
        "list(g())",
    ],
)  # fmt: skip
def test_what_never_ends_ends_when_its_work_is_done(body: str) -> None:
    """At the same place in every run, also if everything is caught; and it runs freely afterwards."""
    text = f"def g():\n    while True: yield 1\n\ndef f(n=1):\n    if n:\n        {body}\n"
    meter, ends = WorkMeter(), []
    made = run(text, meter)
    for _ in range(2):
        with pytest.raises(TooMuch, match="it did not end within 1000 loops and calls"), meter.giving(1000):
            made.f()
        ends.append(meter.left)
    assert ends == [ENDLESS, ENDLESS]
    made.f(0)


def functions(code: CodeType) -> dict[str, set[int]]:
    """The lines of each function of some code."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    found = {
        f"{one.co_qualname} {one.co_firstlineno}": {line for *_, line in one.co_lines() if line}
        for one in inner
    }
    return {**found, **{name: lines for one in inner for name, lines in functions(one).items()}}


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.stem)
def test_lines_stay_where_they_are(path: Path) -> None:
    """The executed lines of replog of a member are the same with and without counting."""
    text = path.read_text(encoding="utf-8")
    assert functions(counted(text, str(path))) == functions(compile(text, str(path), "exec"))


def test_a_test_that_catches_its_own_end_has_failed_all_the_same() -> None:
    """Its budget is used up, so it did not pass."""
    kills: list[Kill] = []
    reporter = Reporter(0, {"m": 10}, kills.append, member="m")
    made = run(
        "def f():\n    try:\n        while True: pass\n    except BaseException: pass\n", reporter.meter
    )
    reporter.check("catches", lambda: made.f() or "")
    reporter.check("ends", lambda: "")
    assert [(one.test, one.is_endless) for one in kills] == [("catches", True)]
    assert reporter.most == 11


def test_packages_are_counted_from_their_import_on(tmp_path: Path, monkeypatch: Any) -> None:
    """With their patches, and nothing else is; a loaded module is not patched silently."""
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "__init__.py").write_text("")
    (tmp_path / "shelf" / "book.py").write_text("def read():\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    meter = WorkMeter()
    patches = [Patch("shelf.book", "return 1", "return sum(1 for _ in range(4))")]
    patcher = install(patches, Counted(frozenset({"shelf"}), meter))
    try:
        from shelf import book

        assert (book.read(), meter.done) == (4, 5)
        with pytest.raises(StalePatch, match="is loaded already"):
            install(patches)
    finally:
        sys.meta_path.remove(patcher)
        forget(["shelf"])
