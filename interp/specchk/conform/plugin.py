"""The entry point of the pytest plugin: `pytest --specchk conformance/` makes each case of a binding a test.

Loaded by every pytest where specchk is installed, so it imports nothing until it is asked for; what
it does then is in `items`.
"""

from __future__ import annotations

import pytest

TIERS = ("smoke", "gate", "exhaustive")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("specchk", "conformance to a spec")
    group.addoption("--specchk", action="store_true", help="Collect each case of binding.py files as a test.")
    group.addoption("--specchk-tier", choices=TIERS, default="gate", help="Tier of the binding to run.")


def pytest_configure(config: pytest.Config) -> None:
    """Load the collector of cases if it is needed."""
    if config.getoption("--specchk"):
        config.pluginmanager.import_plugin("specchk.conform.items")
