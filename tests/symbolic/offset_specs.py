"""Random specs about offsets: comparing, copying and unbounded advancing."""

from __future__ import annotations

from random import Random

HEAD = """\
spec offsets
sort Node
type Offset = nat upto {horizon}
type Note = Empty | Carries(at: Offset, by: Node)
var a : Offset = 0
var b : Offset = 0
var m : Node -> Offset = {{ n: 0 for n in Node }}
var o : Offset? = none
var s : set[Offset] = {{}}
var k : Note = Empty
var f : bool = false
"""
TERMS = ["a", "b", "m[n]", "get(o, b)", "max(a, b)", "min(a, m[n])", "a + 1", "b + 1", "m[n] + 1", "0",
         "max(m[x] for x in Node)", "(if f then a else b)", "get(o, a) + 1",
         "(match k { Carries c: c.at, Empty: b })", "max(s union { a })"]  # fmt: skip
TESTS = ["a < b", "a <= m[n]", "a == b", "b != m[n]", "f", "not f", "o == none", "o != some(a)", "a in s",
         "k is Empty", "a - b > 1", "b - m[n] <= 0", "m[n] < a + 2", "card(s) < 2",
         "exists x in Node: m[x] < a", "forall x in Node: m[x] >= b", "s == { a }"]  # fmt: skip
WRITES = ["a' = {t}", "b' = {t}", "m'[n] = {t}", "o' = some({t})", "o' = none", "s' = s union {{ {t} }}",
          "s' = {{}}", "k' = Carries(at: {t}, by: n)", "k' = Empty", "f' = not f"]  # fmt: skip


def offset_spec(random: Random, horizon: int = 2) -> str:
    """A spec of two or three actions and an invariant, over open numbers in every kind of place."""
    lines = [HEAD.format(horizon=horizon)]
    for number in range(random.randint(2, 3)):
        lines.append(f"action act{number}(n: Node):")
        lines += [f"    require {random.choice(TESTS)}" for _ in range(random.randint(0, 1))]
        lines += _writes(random, "    ")
        if random.random() < 0.3:
            lines += ["    either:", *_writes(random, "        ", ("f",)), "    or:", "        skip"]
    if random.random() < 0.3:
        lines += ["action some_offset(n: Node):", "    any p in Offset:", "        require p > a or p <= b",
                  f"        {random.choice(['a', 'b'])}' = p"]  # fmt: skip
    lines.append(f"invariant safe: forall n in Node: ({random.choice(TESTS)}) or ({random.choice(TESTS)})")
    lines.append(f"reachable wit: exists n in Node: {random.choice(TESTS)}")
    if random.random() < 0.3:
        lines.append(f"step invariant on: a' >= a or {random.choice(['f', 'b == a', 'o == none'])}")
    if random.random() < 0.8:
        lines.append("deadlock ok")
    return "\n".join([*lines, "model one:", "    Node = 2", ""])


def _writes(random: Random, pad: str, only: tuple[str, ...] = ("a", "b", "m", "o", "s", "k")) -> list[str]:
    chosen = random.sample(only, random.randint(1, min(3, len(only))))
    found = []
    for name in chosen:
        write = random.choice([one for one in WRITES if one.startswith(f"{name}'")])
        found.append(pad + write.format(t=random.choice(TERMS)))
    return found
