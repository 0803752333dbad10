"""Temporal properties and exports of states with sets that list their items."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import check
from specchk.native.engine import NativeOptions
from specchk.native.engine import search as native
from specchk.native.machine.layout import is_sparse
from specchk.native.machine.rooms import first_room, with_room
from specchk.search.reference import search
from specchk.search.verdict import Holds, Violated

# 4 096 messages are no bits of a state; the sets that the property makes are larger than a walk shows.
MANY = """\
spec many
type Id = 0..63
type Message = { from: Id, to: Id }
var sent : set[Message] = {}
var n : 0..40 = 0
action send():
    require n < 40
    sent' = sent union { { from: n, to: (n * 7) % 64 } }
    n' = n + 1
fair send
liveness all_go: eventually card({ m.to for m in sent if m.to != 3 }) >= LEAST
deadlock ok
model m:
    expect holds
"""


@pytest.mark.parametrize(("least", "verdict"), [(39, Holds), (41, Violated)])
def test_predicates_make_sets_as_large_as_they_need(least: int, verdict: type, tmp_path: Path) -> None:
    file = tmp_path / "many.spec"
    file.write_text(MANY.replace("LEAST", str(least)), encoding="utf-8")
    program = instantiate(check(str(file))).program
    roomy = with_room(program, first_room(program))
    assert is_sparse(roomy.variables[0].type)
    compiled, expected = native(program, NativeOptions()), search(program)
    assert isinstance(compiled.verdict, verdict)
    assert compiled.verdict == expected.verdict
