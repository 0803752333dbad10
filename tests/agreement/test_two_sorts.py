"""Symmetry over two sorts: the least renaming is by one order, whichever variables a renaming changes."""

from __future__ import annotations

from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import check
from specchk.native import engine
from specchk.search.engine import Options
from specchk.search.reference import search

# `left` is renamed by one sort, `right` by the other, `both` by either; 12 renamings, which are unrolled.
TEXT = """\
spec two_sorts
sort Broker
sort Client
var left : set[Broker] = {}
var right : set[Client] = {}
var both : Broker -> set[Client] = { b: {} for b in Broker }
action join(b: Broker):
    left' = left union {b}
action call(c: Client):
    right' = right union {c}
action ask(b: Broker, c: Client):
    both'[b] = both[b] union {c}
model m:
    Broker = 3
    Client = 2
    expect holds
"""


def test_both_engines_have_the_same_classes_of_states() -> None:
    """A state for each class: no renaming of a representative is another one."""
    program = instantiate(check("two_sorts.spec", TEXT), "m").program
    expected = search(program, Options(symmetry=True)).statistics
    mine = engine.search(program, engine.NativeOptions(symmetry=True)).statistics
    assert (mine.distinct, mine.levels) == (expected.distinct, expected.levels)
