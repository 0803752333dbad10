"""Seeds of random specs, and models: a few in `make test`, all in CI."""

from __future__ import annotations

from collections.abc import Sequence

import pytest


def few_of(values: Sequence[object], few: int = 1) -> list[object]:
    """Parameters of a test: the first values in its own part, the others in the part `system`."""
    return [*values[:few], *(pytest.param(value, marks=pytest.mark.system) for value in values[few:])]
