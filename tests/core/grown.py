"""Grown expressions: well-typed texts of every type, by Hypothesis, over one spec with every type in it.

`expression(draw, kind, depth)` writes a text; every operator and form of the language can occur.
Values are compared in the form of `naive`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any

from hypothesis import strategies as st
from naive_values import Dict, counted

from specchk.compile.instantiate import Instance, instantiate
from specchk.ir.types import Bag, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.lang.frontend import CheckedSpec, check
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.values import Values

SPEC = """\
spec grown
sort R
type E = enum { ea, eb, ec }
type Digit = 0..3
type Rec = { x: 0..3, y: bool }
type Msg = Fetch(o: -1..2, r: R) | Ping

var i : -2..4 = 0
var n : nat upto 3 = 0
var b : bool = false
var e : E = ea
var r : R = r1
var s : set[0..3] = {}
var t : set[R] = {}
var q : seq[0..3] upto 3 = []
var g : bag[0..2] upto 3 = {}
var o : Digit? = none
var c : Rec = { x: 0, y: false }
var u : Msg = Ping
var m : R -> 0..3 = { z: 0 for z in R }
var k : 0..2 -> bool = { z: false for z in 0..2 }
var d : R -> Rec = { z: { x: 0, y: true } for z in R }

def twice(a: int): int = a + a
def pick(z: R, w: R -> 0..3): int =
    let first_one = w[z]
    first_one * 2
def never(a: int): int = a // 0

action stay():
    skip
model two:
    R = 2
"""
SPEC = SPEC.replace("var r : R = r1", "var r : R in R")
Scope = tuple[tuple[str, str], ...]  # names in scope with their types
VARIABLES = {
    "int": ["i", "n"], "bool": ["b"], "E": ["e"], "R": ["r", "r1", "r2"], "set": ["s"], "names": ["t", "R"],
    "seq": ["q"], "bag": ["g"], "opt": ["o"], "rec": ["c"], "msg": ["u"], "map": ["m"], "flags": ["k"],
    "recs": ["d"],
}  # fmt: skip
# each form by the type it has; {name} is a hole of that type, {x:T|...} see `fill`
FORMS: dict[str, list[str]] = {
    "int": [
        "({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} // {int})", "({int} % {int})",
        "(-{int})", "min({int}, {int})", "max({int}, {int}, {int})", "min({set})", "max({set})", "sum({set})",
        "card({set})", "card({names})", "card({bag})", "len({seq})", "head({seq})", "last({seq})",
        "{map}[{R}]", "{seq}[{int}]", "get({opt})", "get({opt}, {int})", "{rec}.x", "{recs}[{R}].x",
        "count({bag}, {int})", "(if {bool} then {int} else {int})", "(let @ = {int}: {int:int})",
        "(match {opt} {{ some @: {int:int}, none: {int} }})", "(match {msg} {{ Fetch @: @.o, Ping: {int} }})",
        "(match {msg} {{ Ping: {int}, _: {int} }})", "(choose @ in {set}: {bool:int})",
        "sum({int:int} for @ in {set} if {bool:int})", "min({int:int} for @ in {set})",
        "max({int:R} for @ in {names} if {bool:R})", "sum({int:int} for @ in elements({seq}))",
        "twice({int})", "pick({R}, {map})", "never({int})", "card(subsets({set}))",
        "sum({int:int} for @, other in {set})",
    ],
    "bool": [
        "(not {bool})", "({bool} and {bool})", "({bool} or {bool})", "({bool} implies {bool})",
        "({bool} iff {bool})", "({bool} and {bool} and {bool})", "({int} == {int})", "({int} != {int})",
        "({int} < {int})", "({int} <= {int})", "({int} > {int})", "({int} >= {int})", "({set} == {set})",
        "({seq} == {seq})", "({bag} != {bag})", "({opt} == {opt})", "({rec} == {rec})", "({msg} == {msg})",
        "({map} == {map})", "({E} == {E})",
        "({map} == {{ r2: {int}, r1: {int} }})", "({R} != {R})", "({names} == {names})", "({recs} == {recs})",
        "({opt} == none)", "({msg} == Ping)", "({int} in {set})", "({int} not in {seq})", "({int} in {bag})",
        "({R} in {names})", "({set} subset {set})", "({names} subset {names})", "({msg} is Fetch)",
        "{flags}[{int}]", "{rec}.y", "(if {bool} then {bool} else {bool})", "(let @ = {set}: {bool:set})",
        "(forall @ in {set}: {bool:int})", "(exists @ in {names}: {bool:R})",
        "(forall @, other in {set}: {bool:int})",
        "(exists @ in subsets({set}): {bool:set})", "(forall @ in {bag}: {bool:int})", "({flags} == {flags})",
        "(forall @ in Rec: {bool:rec})", "({set} in subsets({set}))", "(exists @ in Msg: {bool:msg})",
        "(match {msg} {{ Fetch @: @.r == {R}, Ping: {bool} }})",
    ],
    "E": ["(if {bool} then {E} else {E})", "(match {opt} {{ some @: {E:int}, none: {E} }})"],
    "R": ["(if {bool} then {R} else {R})", "(choose @ in {names}: {bool:R})"],
    "set": [
        "{{{int}, {int}}}", "{{{int}}}", "({int} .. {int})", "({set} union {set})", "({set} intersect {set})",
        "({set} - {set})", "{{ {int:int} for @ in {set} }}", "{{ {int:int} for @ in {set} if {bool:int} }}",
        "(filter @ in {set}: {bool:int})", "elements({seq})", "elements({bag})",
        "(if {bool} then {set} else {set})", "{{ {int:R} for @ in {names} }}", "({set} union {{}})",
        "(choose @ in subsets({set}): {bool:set})",
    ],
    "names": [
        "{{{R}}}", "{{{R}, {R}}}", "({names} union {names})", "({names} intersect {names})",
        "({names} - {names})",
        "(filter @ in {names}: {bool:R})", "({names} - {{}})",
    ],
    "seq": [
        "[{int}, {int}]", "[{int}]", "({seq} ++ {seq})", "append({seq}, {int})", "tail({seq})",
        "prefix({seq}, {int})", "suffix({seq}, {int})", "{{ {seq} with [{int}]: {int} }}", "({seq} ++ [])",
        "(if {bool} then {seq} else {seq})",
    ],
    "bag": ["add({bag}, {int})", "remove({bag}, {int})", "({bag} union {bag})",
            "(if {bool} then {bag} else {bag})"],
    "opt": ["some({int})", "(if {bool} then {opt} else none)", "(if {bool} then {opt} else {opt})"],
    "rec": [
        "{{ x: {int}, y: {bool} }}", "{{ {rec} with x: {int} }}", "{{ {rec} with y: {bool}, x: {int} }}",
        "{recs}[{R}]", "(choose @ in Rec: {bool:rec})",
    ],
    "msg": ["Fetch(o: {int}, r: {R})", "Fetch(r: {R}, o: {int})", "Ping", "(if {bool} then {msg} else Ping)"],
    "map": [
        "{{ @: {int:R} for @ in R }}", "{{ {map} with [{R}]: {int} }}",
        "{{ {map} with [{R}]: {int}, [{R}]: {int} }}",
    ],
    "flags": ["{{ {flags} with [{int}]: {bool} }}", "(if {bool} then {flags} else {flags})"],
    "recs": [
        "{{ {recs} with [{R}].x: {int} }}", "{{ {recs} with [{R}]: {rec} }}", "{{ @: {rec:R} for @ in R }}",
        "{{ {recs} with [{R}].x: {int}, [{R}].y: {bool} }}",
    ],
}  # fmt: skip


@cache
def grown() -> tuple[CheckedSpec, Instance]:
    """The spec above, and its instance."""
    checked = check("grown.spec", SPEC)
    return checked, instantiate(checked)


@st.composite
def expressions(draw: st.DrawFn, kind: str = "", depth: int = 3) -> str:
    """An expression of a type (any by default)."""
    return _grow(draw, kind or draw(st.sampled_from(sorted(FORMS))), depth, (), count())


def _grow(draw: st.DrawFn, kind: str, depth: int, scope: Scope, names: Iterator[int]) -> str:
    atoms = VARIABLES[kind] + [name for name, of in scope if of == kind]
    if kind == "int":
        atoms = [*atoms, "0", "1", "2", "3"]
    elif kind == "E":
        atoms = [*atoms, "ea", "eb", "ec"]
    if depth == 0:
        return draw(st.sampled_from(atoms))
    return _fill(draw, draw(st.sampled_from([*atoms[:1], *FORMS[kind]])), depth, scope, names)


def _fill(draw: st.DrawFn, form: str, depth: int, scope: Scope, names: Iterator[int]) -> str:
    """A form with its holes filled; `@` is a fresh name, of type T in the holes `{kind:T}`."""
    fresh = f"v{next(names)}"
    out, rest = "", form.replace("@", fresh).replace("other", fresh + "b")
    while rest:
        if rest.startswith(("{{", "}}")):
            out, rest = out + rest[0], rest[2:]
        elif rest[0] == "{":
            hole, rest = rest[1:].split("}", 1)
            kind, _, bound = hole.partition(":")
            inner = (*scope, (fresh, bound)) if bound else scope
            out += _grow(draw, kind, depth - 1, inner, names)
        else:
            out, rest = out + rest[0], rest[1:]
    return out


@st.composite
def states(draw: st.DrawFn, instance: Instance) -> tuple[Any, ...]:
    """Any state, reachable or not."""
    values = Values()
    return tuple(draw(st.sampled_from(values.values(v.type))) for v in instance.program.variables)


def plain(value: Any, kind: Type) -> Any:
    """A core value as `naive` has it."""
    match kind:
        case Enum() | Sort():
            return kind.members[value]
        case Option():
            return ("some", plain(value[0], kind.item)) if value else ()
        case Record():
            return Dict({name: plain(v, item) for (name, item), v in zip(kind.fields, value, strict=True)})
        case Union():
            name, record = kind.variants[value[0]]
            return (name, plain(value[1], record))
        case Map():
            keys = [plain(key, kind.key) for key in Values().values(kind.key)]
            return Dict(zip(keys, [plain(v, kind.value) for v in value], strict=True))
        case Set():
            return frozenset(plain(v, kind.item) for v in value)
        case Seq():
            return tuple(plain(v, kind.item) for v in value)
        case Bag():
            return counted(plain(v, kind.item) for v in value)
    return value


def plain_state(instance: Instance, state: tuple[Any, ...]) -> Dict:
    """A core state as `naive` has it."""
    pairs = zip(instance.program.variables, state, strict=True)
    return Dict({variable.name: plain(value, variable.type) for variable, value in pairs})


def is_value(value: Any, kind: Type) -> bool:
    """Whether a core value is a canonical value of its type: in range, in order, nothing twice."""
    match kind:
        case Int():
            return isinstance(value, int) and kind.low <= value <= kind.high
        case Enum() | Sort():
            return 0 <= value < len(kind.members)
        case Option():
            return isinstance(value, tuple) and len(value) <= 1 and all(is_value(v, kind.item) for v in value)
        case Record():
            pairs = zip(kind.fields, value, strict=True)
            return isinstance(value, tuple) and all(is_value(v, item) for (_, item), v in pairs)
        case Union():
            return is_value(value[1], kind.variants[value[0]][1])
        case Map():
            return len(value) == len(Values().values(kind.key)) and all(
                is_value(v, kind.value) for v in value
            )
        case Set():
            return list(value) == sorted(set(value)) and all(is_value(v, kind.item) for v in value)
        case Seq():
            return len(value) <= kind.limit and all(is_value(v, kind.item) for v in value)
        case Bag():
            ordered = list(value) == sorted(value) and len(value) <= kind.limit
            return ordered and all(is_value(v, kind.item) for v in value)
    return value in (False, True)


class Watching(Evaluator):
    """An evaluator that demands of every value, at every node, that it is one of the node's type."""

    def compile(self, expr: Any) -> Any:
        inner = super().compile(expr)

        def watched(env: list[Any]) -> Any:
            value = inner(env)
            assert is_value(value, expr.type), (expr.span.text, value, expr.type)
            return value

        return watched
