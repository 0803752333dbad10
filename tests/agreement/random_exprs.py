"""Random well-typed expressions.

A `Writer` writes expressions of a wanted type over the names in scope, from the leaves up; what it
writes is well typed by construction.  Whether it is defined is left to chance.
"""

from __future__ import annotations

from collections.abc import Callable

from agreement.random_leaves import Leaves
from agreement.random_types import (
    BOOL,
    COLOUR,
    INT,
    ITEMS,
    MESSAGE,
    NODE,
    PARTY,
    PEER,
    PING,
    SCALARS,
    TYPES,
    T,
    bag_of,
    bound,
    mapping,
    number,
    option,
    partial_map,
    record,
    same_shape,
    seq_of,
    set_of,
)  # fmt: skip

FOLDS = ("min", "max", "sum", "card")


class Writer(Leaves):
    """Writes expressions."""

    def expr(self, kind: T, depth: int) -> str:
        """An expression of a type."""
        known = [text for text, found in self.reach() if same_shape(found, kind)]
        if depth <= 0 or self.chance(15):
            if known and self.chance(75):
                return known[self.random.randrange(len(known))]
            return self.literal(kind)
        if self.chance(20) and known:
            return known[self.random.randrange(len(known))]
        forms: list[Callable[[], str]] = [
            lambda: "(if {} then {} else {})".format(*(self.expr(k, depth - 1) for k in (BOOL, kind, kind))),
            lambda: self.let(kind, depth),
            *getattr(self, f"forms_{kind.kind}", lambda k, d: [])(kind, depth),
        ]
        generic = self.generic(kind, depth)
        if self.chance(15):
            forms = generic
        return forms[self.random.randrange(len(forms))]()

    def reach(self) -> list[tuple[str, T]]:
        """Names in scope and the places that they reach without further operands."""
        out = []
        for name, kind in self.scope:
            out.append((name, kind))
            if kind.kind == "record":
                out += [(f"{name}.{field}", part) for field, part in zip(kind.names, kind.parts, strict=True)]
        return out

    def within(self, name: str, kind: T, write: Callable[[], str]) -> str:
        mark = len(self.scope)
        self.scope += bound(name, kind)
        text = write()
        del self.scope[mark:]
        return text

    def let(self, kind: T, depth: int) -> str:
        inner = self.pick(self.items)
        name = self.binder(inner)
        value = self.named(inner, depth)
        return f"(let {name} = {value}: {self.within(name, inner, lambda: self.expr(kind, depth - 1))})"

    def generic(self, kind: T, depth: int) -> list[Callable[[], str]]:
        """Ways to get a value of any type out of a value that contains it."""
        wider = self.widened(kind)
        if self.types is not TYPES and self.chance(30):
            key = self.pick(SCALARS)
            table = self.named(partial_map(key, kind), depth)
            return [lambda: f"{table}[{self.expr(key, depth - 1)}]",
                    lambda: f"get({table}, {self.expr(key, depth - 1)}, {self.expr(kind, 1)})"]  # fmt: skip
        return [
            lambda: f"get({self.named(option(wider), depth)}, {self.expr(kind, depth - 1)})",
            lambda: f"get({self.named(option(kind), depth)})",
            lambda: f"{self.named(mapping(COLOUR, wider), depth)}[{self.expr(COLOUR, depth - 1)}]",
            lambda: f"head({self.named(seq_of(kind, 2), depth)})",
            lambda: f"last({self.named(seq_of(kind, 2), depth)})",
            lambda: f"{self.named(seq_of(kind, 2), depth)}[{self.expr(INT, depth - 1)}]",
            lambda: self.chosen(kind, depth),
            lambda: self.matched(kind, depth),
            lambda: f"{self.named(record(a=BOOL, q=wider), depth)}.q",
        ]

    def widened(self, kind: T) -> T:
        return kind

    def named(self, kind: T, depth: int) -> str:
        """A value of a type that needs no context to be typed: a name in scope or an `if` with one."""
        known = [text for text, found in self.reach() if same_shape(found, kind)]
        if known and self.chance(70):
            return known[self.random.randrange(len(known))]
        given = self.given(kind)
        if depth > 2 and self.chance(60):
            return f"(if {self.expr(BOOL, depth - 3)} then {given} else {self.expr(kind, depth - 2)})"
        return given

    def given(self, kind: T) -> str:
        """A definition with a declared type, created at its first use."""
        if kind.text not in self.given_values:
            mark, self.scope = self.scope, []
            self.given_values[kind.text] = (f"given{len(self.given_values)}", self.literal(kind))
            self.scope = mark
        return f"{self.given_values[kind.text][0]}()"

    def chosen(self, kind: T, depth: int) -> str:
        name = self.binder(kind)
        domain = self.domain(kind, depth)
        return f"(choose {name} in {domain}: {self.within(name, kind, lambda: self.expr(BOOL, depth - 1))})"

    def matched(self, kind: T, depth: int) -> str:
        name = self.name()
        if self.chance(50):
            item = self.pick(self.items)
            some = self.within(name, item, lambda: self.expr(kind, depth - 1))
            subject = self.named(option(item), depth)
            return f"(match {subject} {{ some {name}: {some}, none: {self.expr(kind, depth - 1)} }})"
        if self.chance(25):
            members = self.random.sample(COLOUR.names, self.random.randint(1, len(COLOUR.names)))
            arms = [f"{member}: {self.expr(kind, depth - 1)}" for member in members]
            arms += [f"_: {self.expr(kind, depth - 1)}"] * (len(members) < len(COLOUR.names))
            return f"(match {self.named(COLOUR, depth)} {{ {', '.join(arms)} }})"
        if self.items is not ITEMS and self.chance(40):
            side, other = self.random.sample((NODE, PEER), 2)
            body = self.within(name, side, lambda: self.expr(kind, depth - 1))
            rest = self.random.choice(("_", other.text))
            party = self.named(PARTY, depth)
            return f"(match {party} {{ {side.text} {name}: {body}, {rest}: {self.expr(kind, depth - 1)} }})"
        ping = self.within(name, PING, lambda: self.expr(kind, depth - 1))
        rest = f"_: {self.expr(kind, depth - 1)}"
        if self.chance(40):
            rest = f"Tick: {self.expr(kind, depth - 1)}, Stop: {self.expr(kind, depth - 1)}"
        return f"(match {self.named(MESSAGE, depth)} {{ Ping {name}: {ping}, {rest} }})"

    def domain(self, kind: T, depth: int) -> str:
        """A set to range over."""
        if kind.kind in ("sort", "enum", "sorts") and self.chance(50):
            return kind.text
        if kind.kind == "int" and self.chance(40):
            return f"{self.expr(number(-1, 1), depth - 2)}..{self.expr(number(0, 2), depth - 2)}"
        if self.types is not TYPES and self.chance(30):
            table = partial_map(kind, self.pick(SCALARS))
            known = [
                text
                for text, found in self.reach()
                if found.kind == "pmap" and same_shape(found.parts[0], kind)
            ]
            return known[self.random.randrange(len(known))] if known else f"keys({self.named(table, depth)})"
        for wanted in (seq_of(kind, 2), bag_of(kind, 2)):
            known = [text for text, found in self.reach() if same_shape(found, wanted)]
            if known and self.chance(50):
                return known[self.random.randrange(len(known))]
        if kind.kind == "set" and self.chance(50):
            return f"subsets({self.named(kind, depth)})"
        return self.named(set_of(kind), depth)

    def forms_bool(self, _: T, depth: int) -> list[Callable[[], str]]:
        d = depth - 1
        e = self.expr
        return [
            lambda: f"({e(INT, d)} {self.random.choice(('<', '<=', '>', '>=', '==', '!='))} {e(INT, d)})",
            lambda: f"({e(BOOL, d)} {self.random.choice(('and', 'or', 'implies', 'iff'))} {e(BOOL, d)})",
            lambda: f"(not {e(BOOL, d)})",
            lambda: self.quantified(depth),
            lambda: self.quantified(depth),
            lambda: self.compared(depth),
            lambda: self.member(depth) if self.items is ITEMS or self.chance(70) else self.of_party(depth),
            lambda: f"({self.named(MESSAGE, depth)} is {self.random.choice(MESSAGE.names)})",
            lambda: f"({self.named(set_of(NODE), depth)} subset {e(set_of(NODE), d)})",
        ]

    def of_party(self, depth: int) -> str:
        """The sort of a value of the union."""
        party, side = self.named(PARTY, depth), self.pick((NODE, PEER))
        return self.random.choice((
            f"({party} is {side.text})", f"({party} in {side.text})",
            f"({party} not in {self.named(set_of(side), depth)})",
            f"({self.named(side, depth)} {self.random.choice(('==', '!='))} {party})",
            f"({self.named(set_of(side), depth)} subset {self.named(set_of(PARTY), depth)})",
        ))  # fmt: skip

    def quantified(self, depth: int) -> str:
        kind = self.pick(self.items)
        name = self.binder(kind)
        domain = self.domain(kind, depth)
        body = self.within(name, kind, lambda: self.expr(BOOL, depth - 1))
        return f"({self.random.choice(('forall', 'exists'))} {name} in {domain}: {body})"

    def compared(self, depth: int) -> str:
        kind = self.pick(self.types)
        return f"({self.named(kind, depth)} {self.random.choice(('==', '!='))} {self.expr(kind, depth - 2)})"

    def member(self, depth: int) -> str:
        kind = self.pick(self.items)
        if self.types is not TYPES and self.chance(30):
            return (
                f"({self.named(kind, depth)} in {self.named(partial_map(kind, self.pick(SCALARS)), depth)})"
            )
        container = self.pick((set_of(kind), seq_of(kind, 2), bag_of(kind, 2)))
        word = self.random.choice(("in", "not in"))
        return f"({self.named(kind, depth)} {word} {self.named(container, depth)})"

    def forms_int(self, kind: T, depth: int) -> list[Callable[[], str]]:
        d, e = depth - 1, self.expr
        items = self.pick(self.items)
        return [
            lambda: f"({e(INT, d)} {self.random.choice(('+', '-', '*', '//', '%'))} {e(kind, d)})",
            lambda: f"({e(INT, d)} {self.random.choice(('//', '%'))} {self.random.choice((-2, -3, 2, 3))})",
            lambda: f"(-{e(kind, d)})",
            lambda: f"{self.random.choice(('min', 'max'))}({e(kind, d)}, {e(kind, d)})",
            lambda: f"{self.random.choice(FOLDS)}({self.named(set_of(number(-1, 2)), depth)})",
            lambda: f"card({self.named(set_of(items), depth)})",
            lambda: f"len({self.named(seq_of(items, 2), depth)})",
            lambda: f"count({self.named(bag_of(NODE, 2), depth)}, {e(NODE, d)})",
            lambda: f"count({self.named(bag_of(number(0, 3), 3), depth)}, {e(INT, d)})",
            lambda: self.folded(depth),
        ]

    def folded(self, depth: int) -> str:
        kind = self.pick(self.items)
        name = self.binder(kind)
        domain = self.domain(kind, depth)
        body = self.within(name, kind, lambda: self.expr(INT, depth - 1))
        test = self.within(name, kind, lambda: self.expr(BOOL, depth - 2))
        clause = f" if {test}" if self.chance(50) else ""
        return f"{self.random.choice(('sum', 'min', 'max'))}({body} for {name} in {domain}{clause})"

    def forms_option(self, kind: T, depth: int) -> list[Callable[[], str]]:
        return [lambda: f"some({self.expr(kind.parts[0], depth - 1)})"]

    def forms_record(self, kind: T, depth: int) -> list[Callable[[], str]]:
        def literal() -> str:
            fields = zip(kind.names, kind.parts, strict=True)
            return "{ " + ", ".join(f"{name}: {self.expr(part, depth - 1)}" for name, part in fields) + " }"

        forms = [literal]
        if kind.names:
            index = self.random.randrange(len(kind.names))
            forms.append(
                lambda: (
                    f"{{ {self.named(kind, depth)} with "
                    f"{kind.names[index]}: {self.expr(kind.parts[index], depth - 1)} }}"
                )
            )
        return forms

    def forms_tuple(self, kind: T, depth: int) -> list[Callable[[], str]]:
        return [lambda: "(" + ", ".join(self.expr(part, depth - 1) for part in kind.parts) + ")"]

    def forms_sorts(self, kind: T, depth: int) -> list[Callable[[], str]]:
        return [lambda: self.expr(self.pick(kind.parts), depth - 1)]

    def forms_union(self, kind: T, depth: int) -> list[Callable[[], str]]:
        return [lambda: self.variant(kind, lambda part: self.expr(part, depth - 1))]

    def forms_map(self, kind: T, depth: int) -> list[Callable[[], str]]:
        def comprehension() -> str:
            name = self.binder(kind.parts[0])
            body = self.within(name, kind.parts[0], lambda: self.expr(kind.parts[1], depth - 1))
            return f"{{ {name}: {body} for {name} in {self.keys(kind)} }}"

        def changed() -> str:
            key, value = self.expr(kind.parts[0], depth - 2), self.expr(kind.parts[1], depth - 1)
            return f"{{ {self.named(kind, depth)} with [{key}]: {value} }}"

        return [comprehension, changed]

    def forms_set(self, kind: T, depth: int) -> list[Callable[[], str]]:
        d, e, item = depth - 1, self.expr, kind.parts[0]

        def comprehension() -> str:
            source = self.pick(self.items)
            name = self.binder(source)
            domain = self.domain(source, depth)
            body = self.within(name, source, lambda: e(item, d))
            test = self.within(name, source, lambda: e(BOOL, depth - 2))
            return f"{{ {body} for {name} in {domain} if {test} }}"

        def filtered() -> str:
            name = self.binder(item)
            domain = self.domain(item, depth)
            return f"(filter {name} in {domain}: {self.within(name, item, lambda: e(BOOL, d))})"

        forms = [
            lambda: f"({e(kind, d)} {self.random.choice(('union', 'intersect', '-'))} {e(kind, d)})",
            lambda: "{" + ", ".join(e(item, d) for _ in range(self.random.randint(1, 3))) + "}",
            comprehension,
            filtered,
            lambda: f"elements({self.named(self.pick((seq_of(item, 2), bag_of(item, 2))), depth)})",
        ]
        if item.kind == "set":
            forms.append(lambda: f"subsets({e(item, d)})")
        return forms

    def forms_seq(self, kind: T, depth: int) -> list[Callable[[], str]]:
        d, e, item = depth - 1, self.expr, kind.parts[0]
        return [
            lambda: f"append({self.named(kind, depth)}, {e(item, d)})",
            lambda: f"({self.named(kind, depth)} ++ {self.named(kind, depth)})",
            lambda: f"prefix({self.named(kind, depth)}, {e(number(0, 2), d)})",
            lambda: f"tail({self.named(kind, depth)})",
            lambda: f"{{ {self.named(kind, depth)} with [{e(number(0, 1), d)}]: {e(item, d)} }}",
            lambda: "[" + ", ".join(e(item, d) for _ in range(self.random.randint(1, 2))) + "]",
        ]

    def forms_pmap(self, kind: T, depth: int) -> list[Callable[[], str]]:
        d, e, (key, value) = depth - 1, self.expr, kind.parts

        def comprehension() -> str:
            name = self.binder(key)
            domain = self.domain(key, depth)
            return f"{{ {name}: {self.within(name, key, lambda: e(value, d))} for {name} in {domain} }}"

        return [
            comprehension,
            lambda: f"{{ {self.named(kind, depth)} with [{e(key, d)}]: {e(value, d)} }}",
            lambda: (
                f"{{ {self.named(kind, d)} with [{e(key, d)}]: {e(value, 1)}, [{e(key, 1)}]: {e(value, 1)} }}"
            ),
            lambda: f"remove({self.named(kind, depth)}, {e(key, d)})",
            lambda: f"{{ {e(key, d)}: {e(value, d)} }}",
        ]

    def forms_bag(self, kind: T, depth: int) -> list[Callable[[], str]]:
        d, e, item = depth - 1, self.expr, kind.parts[0]
        return [
            lambda: f"add({self.named(kind, depth)}, {e(item, d)})",
            lambda: f"add({self.named(kind, depth)}, {e(item, d)})",
            lambda: f"remove({self.named(kind, depth)}, {e(item, d)})",
        ]
