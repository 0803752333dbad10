"""Expressions of forms that the random specs don't have, each in a spec of its own.

A step takes two numbers and a set, and keeps them beside the value of the form, so that a wrong value is
another state.
"""

from __future__ import annotations

import re

SPEC = """\
spec forms
type Held = Nobody | Few(items: set[0..1], by: 0..1) | Many(by: 0..5)
type Far = 0..999999
var x : 0..2 = 0
var y : 0..2 = 0
var s : set[0..2] = {}
var out : TYPE = BEGUN
action take(a: 0..2, b: 0..2):
    any c in subsets(0..2):
        x' = a
        y' = b
        s' = c
        out' = FORM
deadlock ok
"""
TRUTHS = (
    "a in 1..b", "a not in b..2", "a + b in 1 - a..b",
    "c in subsets({a, b})", "{a - 1} in subsets(c union {5})",
    "a * 1000 in {0, 1000, 77777, 3000000}", "some(a * 1000) in { some(1000), none, some(999999) }",
    "a * 1000 + b in { n * 1001 for n in 0..9 }",
    "exists u in subsets(c): card(u) == a", "forall u in subsets({a, b}): u subset c or 1 in u",
)  # fmt: skip
NUMBERS = (
    "(if c == {} then 50 else min(p * 3 + q for p in c, q in {a, b}))",
    "(if c == {} then 50 else max(p * 3 - q + 9 for p in c, q in 0..b))",
    "(if a == b then 0 else min(p + q for p in {a, b}, q in {a, b} if p != q))",
    "sum(p * q for p in c, q in {a, b} if p != 1)", "sum({ p + b for p in c })",
    "card({ p + q for p in c, q in 0..b })", "card({ u for u in subsets(c) if card(u) == a })",
)  # fmt: skip
FORMS = (
    *(("bool", "false", text) for text in TRUTHS),
    *(("0..99", "0", text) for text in NUMBERS),
    ("0..20 -> 0..2", "{ p: 0 for p in 0..20 }", "{ p: if p in c then a else b for p in 0..20 }"),
    ("set[0..2]", "{}", "{ p for p in { a * 1000, b } if p < 3 }"),
    ("set[0..2]", "{}", "{ a * 1000, b } intersect c"),
    ("set[0..2]", "{}", "(if a * 1000 in { b * 1000 } then { a * 1000 } else c) - {1000, 2000}"),
    ("bag[Held] upto 3", "{}", "{ Few(items: filter p in c: p < 2, by: min(a, 1)), Many(by: b), Nobody }"),
    (
        "Held",
        "Nobody",
        "if a == b then Nobody else if a in c then Many(by: a + b) else Few(items: {}, by: 1)",
    ),
    ("seq[0..2] upto 3", "[]", "(if a in c then [a, b, 1] else [b]) ++ []"),
    ("seq[0..2] upto 3", "[]", "suffix([a, b, 1], min(card(c), a))"),
    ("bag[0..2] upto 2", "{}", "if a in c then add({ a }, b) else { b }"),
    ("(0..2, Held)?", "none", "if a in c then some((b, Many(by: a + b))) else none"),
    (
        "0..2 -> 0..2",
        "{ p: 0 for p in 0..2 }",
        "{ (if 1 in c then { p: a for p in 0..2 } else { p: p for p in 0..2 }) with [b]: a }",
    ),
)
UNENCODABLE = (  # their types have more values than the encoding lists
    ("set[Far]", "{}", "{ a * 1000, b } union c"),
    ("bag[set[0..2]?] upto 3", "{}", "{ some(c), none, some({a}) }"),
    ("set[(Far, set[0..2])]", "{}", "{ (a * 1000, c), (b * 1000, {a}) }"),
)


def spec_of(kind: str, begun: str, form: str) -> str:
    """The spec of a form: its type, a value of that to begin with, and its text."""
    return SPEC.replace("TYPE", kind).replace("BEGUN", begun).replace("FORM", form)


def of_state(form: str) -> str:
    """A form of the numbers and the set that the step before has kept."""
    return re.sub(r"\b[abc]\b", lambda name: {"a": "x", "b": "y", "c": "s"}[name[0]], form)
