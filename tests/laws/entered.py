"""Runs tests and prints the functions of replog entered by each: `python entered.py FILE::TEST ...`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType

import pytest


class Entered:
    """A pytest plugin that watches calls while a test runs."""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Print each function once, with the test's name without its parameters."""
        names: set[str] = set()

        def watch(frame: FrameType, event: str, _: object) -> None:
            module = frame.f_globals.get("__name__", "")
            if event == "call" and module.startswith("replog."):
                names.add(f"{module}.{frame.f_code.co_qualname}")

        sys.setprofile(watch)
        yield
        sys.setprofile(None)
        test = item.nodeid.partition("[")[0]
        sys.stdout.write("".join(f"\nentered {test} {name}\n" for name in sorted(names)))


if __name__ == "__main__":
    options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--slow"]
    sys.exit(pytest.main([*options, *sys.argv[1:]], plugins=[Entered()]))
