"""Random specs with recursive definitions: over numbers, sequences and sets, alone and in pairs.

Most measures decrease; some stay, grow or pass below 0, which all engines have to find where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from agreement.random_specs import SpecWriter, random_spec
from agreement.random_types import BOOL, COLOUR, NODE, TYPES, WITH_ALL, T, number, same_shape, seq_of, set_of

MEASURED = (
    number(0, 3), number(0, 2), seq_of(number(-1, 1), 3), seq_of(NODE, 2), set_of(NODE),
    set_of(number(-1, 2)),
)  # fmt: skip
MOST = 3  # definitions, or pairs of them, in a spec: each call is as many copies as its measure allows


class RecursiveWriter(SpecWriter):
    """Writes calls of recursive definitions, which it creates at their first use."""

    def __init__(self, random: Random, types: tuple[T, ...] = TYPES) -> None:
        super().__init__(random, types)
        self.recursive: list[tuple[str, T, T, T]] = []  # names, the types of two parameters and of the result
        self.is_inside = False

    def generic(self, kind: T, depth: int) -> list[Callable[[], str]]:
        forms = super().generic(kind, depth)
        return (
            [*forms, *[lambda: self.recursion(kind, depth)] * len(forms)] if self.can_recur(kind) else forms
        )

    def can_recur(self, kind: T) -> bool:
        return not self.is_inside and (len(self.recursive) < MOST or bool(self.known(kind)))

    def known(self, kind: T) -> list[tuple[str, T, T, T]]:
        return [made for made in self.recursive if same_shape(made[3], kind)]

    def recursion(self, kind: T, depth: int) -> str:
        """A call, with an argument that is usually of the parameter's type."""
        known = self.known(kind)
        name, measured, other, _ = (
            self.random.choice(known) if known and (self.chance(60) or len(self.recursive) >= MOST)
            else self.defined(kind)
        )  # fmt: skip
        first = self.expr(measured, depth - 2)
        if measured.kind == "int":
            first = self.random.choice((f"max(0, min({measured.high}, {first}))", f"({first}) % 3"))
        return f"{name}({first}, {self.expr(other, depth - 2)})"

    def defined(self, kind: T) -> tuple[str, T, T, T]:
        """A definition, or two that call each other."""
        measured, other = self.pick(MEASURED), self.pick((BOOL, COLOUR, NODE, number(0, 2)))
        name = f"rec{len(self.recursive)}"
        made = (name, measured, other, kind)
        self.recursive.append(made)
        names = [name, f"{name}b"] if self.chance(25) else [name]
        mark, scope = self.is_inside, self.scope
        self.is_inside = True
        for own, next_ in zip(names, [*names[1:], name], strict=True):
            self.definitions.append(self.definition(own, next_, measured, other, kind, own == name))
        self.is_inside, self.scope = mark, scope
        return made

    def definition(self, own: str, called: str, measured: T, other: T, kind: T, has_measure: bool) -> str:
        a, b, rest = self.name(), self.name(), self.name()
        self.scope = [*self.state, (a, measured), (b, other)]
        measure = self.random.choice((a, f"card({a})", f"card({a}) + 1") if measured.kind == "set" else
                                     (a, f"len({a})", f"2 * len({a})") if measured.kind == "seq" else
                                     (a, f"{a} + 1", f"3 * {a}"))  # fmt: skip
        head = f"def {own}({a}: {measured.text}, {b}: {other.text}): {kind.text}"
        head += f" decreases {measure}" if has_measure or self.chance(50) else ""
        call = f"{called}({self.less(a, measured)}, {self.expr(other, 1)})"
        base = self.expr(kind, 1)
        again = call
        if self.chance(70):
            mark = len(self.scope)
            self.scope = [*self.scope, (rest, kind)]
            again = f"(let {rest} = {call}: {self.expr(kind, 2)})"
            del self.scope[mark:]
        end = {"set": f"{a} == {{}}", "seq": f"{a} == []", "int": f"{a} {self.random.choice(('==', '<='))} 0"}
        test = end[measured.kind]
        if self.chance(30):
            test = f"{test} or {self.expr(BOOL, 1)}"
        return f"{head} = if {test} then {base} else {again}"

    def less(self, a: str, measured: T) -> str:
        """An expression that is usually less than a parameter."""
        if self.chance(4):
            return a
        if measured.kind == "int":
            return self.random.choice((f"{a} - 1", f"{a} - 1", f"{a} // 2", f"{a} - 2", f"{a} + 1 - 2"))
        if measured.kind == "seq":
            return self.random.choice((f"tail({a})", f"suffix({a}, 1)", f"prefix({a}, len({a}) - 1)"))
        least = f"(choose y in {a}: true)" if measured.parts[0].kind == "sort" else f"min({a})"
        return self.random.choice((f"{a} - {{{least}}}", f"(filter x in {a}: x != {least})"))


def random_recursive_spec(random: Random) -> str:
    """A spec with one model `m`, whose expressions call recursive definitions."""
    return random_spec(random, random.choice((TYPES, WITH_ALL)), RecursiveWriter)
