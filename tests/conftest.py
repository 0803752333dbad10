"""What all tests share: which slow ones run, how Hypothesis searches, `--rewrite` for golden texts.

- `--slow` runs every test marked `slow`.  Without it a sample of them runs, one in `SAMPLE`, chosen
  by `--sample-seed`, so that one seed always means the same tests; the header names it.
- Hypothesis runs the profile `ci` (the same examples every time) where the variable CI is set, else
  `dev`.  `--hypothesis-profile` chooses otherwise.
- `--rewrite` writes what the product says now into golden files and docs, to be read in the diff.
- Ctrl-C is heard, also where a shell started the tests in the background with it ignored: the processes
  that tests interrupt would inherit that, and never end.
"""

from __future__ import annotations

import hashlib
import os
import signal

import pytest
from hypothesis import settings

SAMPLE = 4  # one slow test in so many

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("specchk")
    group.addoption("--slow", action="store_true", help="Run every slow test, not a sample of them.")
    group.addoption("--sample-seed", default="0", help="Which slow tests the sample has.")
    group.addoption("--rewrite", action="store_true", help="Write golden files and docs anew.")


def pytest_report_header(config: pytest.Config) -> str:
    if config.getoption("--slow"):
        return "slow tests: all"
    return f"slow tests: a sample of 1 in {SAMPLE}, --sample-seed={config.getoption('--sample-seed')}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow") or (len(config.args) == 1 and "::" in config.args[0]):
        return  # a test that is named is wanted
    seed = config.getoption("--sample-seed")
    left_out = [item for item in items if item.get_closest_marker("slow") and not sampled(item.nodeid, seed)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def sampled(nodeid: str, seed: str) -> bool:
    """Whether the sample of a seed has a test; independent of the other tests there are."""
    digest = hashlib.sha256(f"{seed} {nodeid}".encode()).digest()
    return digest[0] % SAMPLE == 0
