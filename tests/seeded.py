"""Seeds of random specs: a few in `make test`, all in CI."""

from __future__ import annotations

from collections.abc import Sequence

import pytest


def few_of(seeds: Sequence[int], few: int = 1) -> list[object]:
    """Parameters of a test: the first seeds in its own part, the others in the part `system`."""
    return [*seeds[:few], *(pytest.param(seed, marks=pytest.mark.system) for seed in seeds[few:])]
