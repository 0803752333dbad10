"""A spec whose table has several words, and a misreading of it by an earlier native engine."""

from __future__ import annotations

from typing import Any

import pytest

from specchk.native.machine.asm import Asm

_SPEC = """\
spec deep
type Key = 0..19
const weights : Key -> 0..31
var key : Key = 0
var far : 0..40 = 0
action next():
    key' = if key < 19 then key + 1 else 0
action on():
    require far < 40
    far' = far + 1
invariant light: weights[key] < 31 or far < {far}
step invariant onward: far' >= far
deadlock ok
model one:
    weights = {{ k: {weight} for k in Key }}
"""


def deep(weight: str = "k", far: int = 20) -> str:
    """A spec of 820 states, in which `light` fails from `far` on if a weight is 31."""
    return _SPEC.format(weight=weight, far=far)


def misread_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut constants to one word; nothing is taken from the cache or kept there."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    real = Asm.bits

    def cut(self: Asm, value: Any, *rest: Any) -> Any:
        return real(self, value & (1 << 64) - 1 if isinstance(value, int) else value, *rest)

    monkeypatch.setattr(Asm, "bits", cut)
