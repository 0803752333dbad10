"""A bug to plant in replog: switches of the protocol, replaced functions, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from replog.core.protocol import Protocol, preset
from replog.sim.faults.profiles import profile

Patch = tuple[object, str, Any]


@dataclass(frozen=True)
class Planted:
    """One bug: its origin, how to plant it, and where to find it."""

    name: str
    mirrors: str
    oracle: str
    switches: Mapping[str, Any] = field(default_factory=dict)
    patches: Callable[[], list[Patch]] = list
    profile: str = "all"
    seed: int = 0

    @property
    def whole(self) -> Protocol:
        return preset(profile(self.profile).protocol)

    @property
    def rules(self) -> Protocol:
        return replace(self.whole, **self.switches)


@contextmanager
def planted(bug: Planted) -> Iterator[Protocol]:
    """Replace the right functions by a bug's while the block runs."""
    patches = bug.patches()
    before = [(owner, name, owner.__dict__[name]) for owner, name, _ in patches]
    for owner, name, value in patches:
        setattr(owner, name, value)
    try:
        yield bug.rules
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
