"""One search, and searches that differ from it in one thing each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check

HALF = 100  # states after which a search is cut off
GRID = """\
spec grid
sort Token
const Start : int
const Limit : int
const Far : int
const spare : int = 0
type Count = nat upto Far

var at : Token -> 0..9 = { t: Start for t in Token }
var sent : Count = 0
var turn : 0..3 = 0

action move(t: Token):
    require at[t] < Limit
    at'[t] = at[t] + 1
action send():
    require turn < 3
    sent' = sent + 1
action spin():
    require sent < Far
    turn' = (turn + 1) % 4

constraint near: sent <= 9
invariant low: sent + turn < 30
invariant bounded: (forall t in Token: at[t] <= 9)
step invariant onward: sent' >= sent
reachable top: (exists t in Token: at[t] == Limit)
deadlock ok

model small:
    Token = 3; Start = 0; Limit = 4; Far = 4
    properties low, onward, top
model twin extends small:
    properties low, onward, top
model other extends small:
    Limit = 3
"""


SPIN = "action spin():\n    require sent < Far\n    turn' = (turn + 1) % 4\n"


@dataclass(frozen=True)
class Variant:
    """Edits of the spec, the model, `--set`, `--property`, and options by name."""

    edits: tuple[tuple[str, str], ...] = ()
    model: str = "small"
    constants: tuple[tuple[str, str], ...] = ()
    properties: tuple[str, ...] = ()
    options: dict[str, bool] = field(default_factory=dict)

    def program(self, folder: Path) -> Program:
        text = GRID
        for old, new in self.edits:
            assert old in text
            text = text.replace(old, new)
        file = folder / "grid.spec"
        file.write_text(text, encoding="utf-8")
        return instantiate(check(str(file)), self.model, dict(self.constants), self.properties).program


def edited(old: str, new: str) -> Variant:
    return Variant(((old, new),))


# What the same half may be gone on with, as the answer does not depend on it; everything else decides it.
ALIKE = ("as it is", "workers", "a comment more", "strict")
VARIANTS = {
    "as it is": Variant(),
    "workers": Variant(options={"workers": True}),
    "a comment more": edited("spec grid\n", "spec grid\n# a comment\n"),
    "strict": Variant(options={"strict": True}),
    "initial value": edited("var turn : 0..3 = 0", "var turn : 0..3 = 1"),
    "initial choice": edited("var turn : 0..3 = 0", "var turn : 0..3 in {0, 2}"),
    "init": edited("var turn : 0..3 = 0", "var turn : 0..3\ninit: turn == 1"),
    "--set of an initial value": Variant(constants=(("Start", "1"),)),
    "--set of a guard": Variant(constants=(("Limit", "3"),)),
    "--set of a horizon": Variant(constants=(("Far", "3"),)),
    "--set of a sort": Variant(constants=(("Token", "2"),)),
    "--set of what is not used": Variant(constants=(("spare", "1"),)),
    "ignore": edited("onward, top\nmodel twin", "onward, top\n    ignore turn\nmodel twin"),
    "model": Variant(model="other"),
    "model of another name": Variant(model="twin"),
    "--property": Variant(properties=("low",)),
    "another --property": Variant(properties=("bounded",)),
    "another property of the name": edited("sent + turn < 30", "(forall t in Token: at[t] + sent < 8)"),
    "another step invariant of the name": edited("sent' >= sent", "sent' + turn' >= sent"),
    "another witness of the name": edited("at[t] == Limit)", "at[t] == Limit + 1)"),
    "constraint": edited("sent <= 9", "sent <= 2"),
    "deadlock": edited("deadlock ok\n", ""),
    "deadlock when": edited("deadlock ok\n", "deadlock ok when turn == 0\n"),
    "horizon instead of range": edited("0..9 = {", "0..5 = {"),
    "name of an action": edited("action spin", "action turn_on"),
    "order of actions": Variant(((SPIN, ""), ("action move", f"{SPIN}action move"))),
    "--no-symmetry": Variant(options={"symmetry": False}),
    "--keep-going": Variant(options={"keep_going": True}),
    "--compact": Variant(options={"compact": True}),
}  # fmt: skip


def pairs(*, compact: bool) -> Iterator[tuple[str, str]]:
    """All ordered pairs; those of `--compact` only where an engine has it."""
    names = [name for name in VARIANTS if compact or name != "--compact"]
    yield from permutations(names, 2)
