"""The agreement suite catches wrong compilers: each test plants one bug, which must be detected."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agreement.both import differences, of_seed, program_of
from specchk.ir.ops import Op
from specchk.ir.program import Program
from specchk.native.kernel import steps, ways
from specchk.native.kernel.canonical import Renamed
from specchk.native.kernel.search_kernel import Kernel
from specchk.native.machine import layout
from specchk.native.machine.asm import Asm
from specchk.native.tiers import LONG
from specchk.native.values import expressions, fitting
from specchk.native.values.codes import Codes
from specchk.native.values.domains import Domains
from specchk.search.budget import Budget
from specchk.search.replay import ReplayFailed

SUITE = """
spec suite
sort Node
type Message = Ping(at: 0..2, who: Node) | Stop
var leo : Node -> nat upto 1 = { n: 0 for n in Node }
var log : Node -> seq[0..1] upto 2 = { n: [] for n in Node }
var net : bag[Message] upto 2 = {}
var low : -2..1 = -1
var seen : set[Node] = {}
action grow(n: Node):
    require n not in seen
    leo'[n] = leo[n] + 1
action write(n: Node):
    require len(log[n]) < 2 and low != 1
    log'[n] = append(log[n], leo[n])
    seen' = seen union { n }
action send(n: Node):
    require card(net) < 2
    net' = add(net, Ping(at: leo[n], who: n))
action halt():
    require card(net) < 1
    net' = add(net, Stop())
action swing():
    require card(net) == 0
    when low < 0:
        low' = 0
    else:
        low' = -1
    seen' = seen - { n for n in seen if leo[n] == 0 }
action take():
    any m in net:
        let hit = m is Stop
        net' = remove(net, m)
        when hit or (exists n in Node: leo[n] == 1):
            low' = (low - 2) % 3 - 1
        else:
            either:
                low' = low // -2
            or:
                seen' = { n for n in seen if len(log[n]) > 1 }
invariant logs: forall n in Node: len(log[n]) == 2 implies (forall o in 0..1: log[n][o] <= leo[n] + 1)
step invariant forward: forall n in Node: leo'[n] >= leo[n]
reachable full: exists n in Node: log[n] == [0, 1] or leo[n] == 1
deadlock ok
model m:
    Node = 2
"""

ENOUGH = Budget(max_states=9000)


def suite(folder: Path) -> list[Program]:
    """The programs that are run on every engine."""
    given = program_of(SUITE, folder)
    assert given is not None
    assigned_twice = program_of(
        "spec twice\nvar a : 0..1 -> 0..1 = { k: 0 for k in Key }\ntype Key = 0..1\n"
        "action both(i: 0..1, j: 0..1):\n    a'[i] = 1\n    a'[j] = 0\n"
        "deadlock ok\nmodel m:\n    expect holds\n",
        folder,
    )
    stuck = program_of(
        "spec stuck\nvar n : 0..2 = 0\naction up():\n    require n < 2\n    n' = n + 1\n"
        "model m:\n    expect deadlock\n",
        folder,
    )
    undefined = program_of(
        "spec hole\nvar s : seq[0..1] upto 2 = []\naction get():\n    s' = [s[0]]\n"
        "action put():\n    s' = [1]\ndeadlock ok\nmodel m:\n    expect undefined\n",
        folder,
    )
    random = [program for seed in range(12) if (program := of_seed(seed, folder)) is not None]
    return [given, *(p for p in (assigned_twice, stuck, undefined) if p is not None), *random]


def is_caught(folder: Path) -> bool:
    """Whether some program of the suite distinguishes the engines, by optimised code or by the other."""
    for program, symmetry, after in product(suite(folder), (False, True), (0, LONG)):
        try:
            if differences(program, symmetry=symmetry, keep_going=True, workers=1, limit=ENOUGH,
                           optimising_after=after):  # fmt: skip
                return True
        except (ReplayFailed, RuntimeError, AssertionError, IndexError):
            return True
    return False


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use an empty cache, so that no kernel of a wrong compiler is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_compiler_as_it_is_passes(tmp_path: Path) -> None:
    """Without a planted bug no difference is found."""
    assert not is_caught(tmp_path)


def one_bit_too_high(self: Any, kind: Any, record: Any, index: int) -> Any:
    return self.part(kind.fields[index][1], record, layout.field_offset(kind, index) + 1)


def truncated_mod(e: Any, expr: Any) -> Any:
    a, b = (e.asm.val(e.value(arg)) for arg in expr.args)
    return e.asm.b.srem(a, b)


def lax(self: Asm, op: str, a: Any, b: Any) -> Any:
    return REAL_CMP(self, "<=" if op == "<" else op, a, b)


REAL_CMP = Asm.cmp
REAL_MISFITS = fitting.Fitting.check
REAL_MEMBERS = Domains.members
REAL_WRITTEN = steps.Steps._written


def no_horizon(self: Any, value: Any, found: Any, wanted: Any, undefined: Any, above: Any) -> None:
    REAL_MISFITS(self, value, found, wanted, undefined, lambda outside: None)


def last_left_out(self: Any, domain: Any) -> Any:
    found = REAL_MEMBERS(self, domain)
    return found[:-1] if found and len(found) > 1 else found


def frame_lost(self: Any, slot: int, words: Any, offset: Any, size: int, code: Any) -> Any:
    return REAL_WRITTEN(self, slot, tuple(self.before), offset, size, code)


def unchecked_item(e: Any, expr: Any) -> Any:
    return e.codes.slot(expr.args[0].type, *(e.value(arg) for arg in expr.args))


REAL_SLOT = Codes.slot_offset


def upside_down(self: Any, kind: Any, index: Any) -> Any:
    if not isinstance(index, int):
        return REAL_SLOT(self, kind, index)
    return layout.length_bits(kind) + index * layout.width(kind.item)


Bug = tuple[object, str, object]
BUGS: dict[str, Bug] = {
    "a field one bit too high": (Codes, "field", one_bit_too_high),
    "`<` taken for `<=`": (Asm, "cmp", lax),
    "the sign of `%`": (expressions, "RULES", {**expressions.RULES, Op.MOD: truncated_mod}),
    "a horizon not checked": (fitting.Fitting, "check", no_horizon),
    "an index not checked": (
        expressions, "RULES",
        {**expressions.RULES, Op.SEQ_GET: unchecked_item},
    ),
    "the last item of a domain left out": (Domains, "members", last_left_out),
    "a second assignment that undoes the first": (steps.Steps, "_written", frame_lost),
    "a place assigned twice": (steps.Steps, "_claimed", lambda self, slot, keys, path: path),
    "the first way taken where two meet": (ways.Join, "_merged", lambda self, values, kind=None: values[0]),
    "branches not counted": (expressions.ExpressionEmitter, "count", lambda self, point: None),
    "deadlocks not noticed": (Kernel, "_no_successors", lambda self, *args: None),
    "bags not kept in order": (Domains, "_keys", lambda self, kind, a, b: (0, 1)),
    "a renaming that renames keys only": (Renamed, "_nibble", lambda self, number, index: index),
    "a variant's tag ignored": (Codes, "tag", lambda self, kind, union: 0),
    "slots filled from the wrong end": (
        Codes, "slot_offset", upside_down,
    ),
}  # fmt: skip


@pytest.mark.parametrize("bug", sorted(BUGS))
def test_a_planted_bug_is_caught(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that is wrong in one place disagrees with the reference engine somewhere in the suite."""
    target, name, wrong = BUGS[bug]
    monkeypatch.setattr(target, name, wrong)
    assert is_caught(tmp_path)
