"""Random expressions of random types (`further_types`), with the whole language.

Beyond `random_exprs`: folds, definitions with operators as parameters, `enabled`, entries of tables,
quantifiers over several sets, `maps`.  In a tame spec what may have no value has a test before it, so
that its states are many.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from agreement.further_types import FurtherTypes, values_of
from agreement.random_types import (
    ALL_ITEMS,
    BOOL,
    INT,
    NODE,
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
)
from agreement.recursive_specs import RecursiveWriter

MOST_LISTED = 64  # values of a type, of which all or all subsets are gone through
MOST_DEFINED = 6
Form = Callable[[], str]


class FurtherWriter(RecursiveWriter):
    """Writes expressions with the whole language; `tame` ones are nearly always defined."""

    def __init__(self, random: Random, drawn: FurtherTypes, kinds: list[T], *, tame: bool) -> None:
        super().__init__(random, (*kinds, BOOL, NODE, number(0, 2)))
        self.drawn = drawn
        self.tame = tame
        self.items = (*self.types, *ALL_ITEMS[:8])
        self.actions: list[tuple[str, list[T]]] = []
        self.operators: list[tuple[str, list[T], T, tuple[T, T] | None]] = []
        self.named_operators = 0
        self.folds = 0  # around what is written now

    def literal(self, kind: T) -> str:
        pick = self.random.choice
        if kind.kind == "int" and kind.high - kind.low > MOST_LISTED:
            return f"({pick((kind.low, kind.low + 1, kind.high - 1, kind.high))})"
        if kind.kind == "map" and self.chance(70):
            name, key = self.name(), self.literal(kind.parts[0])
            test = f"{name} {'<' if kind.parts[0].kind == 'int' and self.chance(60) else '=='} {key}"
            value, other = self.least(kind.parts[1]), self.literal(kind.parts[1])
            return f"{{ {name}: (if {test} then {value} else {other}) for {name} in {self.keys(kind)} }}"
        if kind.kind == "bag" and kind.high < 2:
            return "{" + ", ".join(self.literal(kind.parts[0]) for _ in range(kind.high)) + "}"
        if kind.kind == "seq" and kind.high > 5 and self.chance(60):
            size = pick((kind.high, kind.high - 1, kind.high // 2))
            return "[" + ", ".join(self.literal(kind.parts[0]) for _ in range(size)) + "]"
        return super().literal(kind)

    def least(self, kind: T) -> str:
        """Usually the least value, all of whose bits are 0."""
        least = {
            "int": f"({kind.low})",
            "bool": "false",
            "option": "none",
            "set": "{}",
            "bag": "{}",
            "seq": "[]",
        }
        return least.get(kind.kind, self.literal(kind)) if self.chance(70) else self.literal(kind)

    def keys(self, kind: T) -> str:
        return kind.parts[0].text if kind.parts[0] in self.drawn.keys else super().keys(kind)

    def reach(self) -> list[tuple[str, T]]:
        """Also entries of maps, at keys that are in scope."""
        found = super().reach()
        for text, kind in found[:]:
            keys = [key for key, of in found if kind.kind == "map" and same_shape(of, kind.parts[0])]
            if keys and "[" not in text:
                key = self.random.choice(keys)
                found.append((f"{text}[{self.clamped(kind.parts[0], key)}]", kind.parts[1]))
        return found

    def domain(self, kind: T, depth: int) -> str:
        if kind.kind == "int" and self.chance(40):
            low, high = self.expr(number(-1, 1), depth - 2), self.expr(number(0, 2), depth - 2)
            return f"max(-2, {low})..min(3, {high})"
        if kind.kind == "pmap" and values_of(kind) < MOST_LISTED and self.chance(50):
            keys, values = (self.named(set_of(part), depth - 1) for part in kind.parts)
            return f"maps({keys}, {values})"
        if kind.kind == "set" and values_of(kind) > MOST_LISTED:
            return self.named(set_of(kind), depth)
        if kind in self.drawn.keys and self.chance(40):
            return kind.text
        return super().domain(kind, depth)

    def generic(self, kind: T, depth: int) -> list[Form]:
        d, key = depth - 1, self.pick(self.items)
        forms: list[Form] = [
            lambda: self.end_of(kind, depth),
            lambda: self.item_of(kind, depth, self.named(seq_of(kind, 2), depth)),
            lambda: self.first_of(kind, depth),
            lambda: self.entry_of(kind, key, depth),
            lambda: f"get({self.named(option(kind), depth)}, {self.expr(kind, d)})",
            lambda: f"{self.named(record(a=BOOL, q=kind), depth)}.q",
            *[
                lambda: self.folding(kind, depth),
                lambda: self.call(kind, depth),
                lambda: self.any_match(kind, depth),
            ]
            * 2,
        ]
        for text, found in self.reach():
            if found.kind == "map" and same_shape(found.parts[1], kind):
                forms += [lambda t=text, k=found.parts[0]: f"{t}[{self.clamped(k, self.expr(k, d))}]"] * 4
            if found.kind == "seq" and same_shape(found.parts[0], kind):
                far = self.random.randint(0, max(0, found.high - 2))
                forms += [lambda t=text, far=far: self.item_of(kind, depth, t, far)] * 4
        if self.drawn.keys:
            of = self.pick(self.drawn.keys)
            forms.append(lambda: f"{self.named(mapping(of, kind), depth)}[{self.expr(of, d)}]")
        return forms if self.tame else forms + super().generic(kind, depth)

    def unless(self, kind: T, depth: int, value: str, absent: str, then: Callable[[str], str]) -> str:
        """A value of a collection with a name, or another value if `absent` is true."""
        name = self.name()
        other = self.expr(kind, depth - 1)
        return f"(let {name} = {value}: if {absent.format(name)} then {other} else {then(name)})"

    def end_of(self, kind: T, depth: int) -> str:
        end = self.random.choice(("head({0})", "last({0})", "{0}[len({0}) - 1]"))
        return self.unless(kind, depth, self.named(seq_of(kind, 2), depth), "{} == []", end.format)

    def item_of(self, kind: T, depth: int, items: str, far: int = 0) -> str:
        index, other = self.name(), self.expr(kind, depth - 1)
        place = f"{self.expr(number(0, 2), depth - 1)} + {far}"
        test = f"0 <= {index} and {index} < len({items})"
        return f"(let {index} = {place}: if {test} then {items}[{index}] else {other})"

    def first_of(self, kind: T, depth: int) -> str:
        name = self.name()
        body = self.within(name, kind, lambda: self.expr(BOOL, depth - 2))
        fitting = f"(filter {name} in {self.domain(kind, depth)}: {body})"
        least = self.name()
        return self.unless(kind, depth, fitting, "{} == {{}}", lambda s: f"(choose {least} in {s}: true)")

    def entry_of(self, kind: T, key: T, depth: int) -> str:
        table, name = self.named(partial_map(key, kind), depth), self.name()
        return self.unless(
            kind, depth, self.named(key, depth - 1), "{} not in " + name, lambda k: f"{name}[{k}]"
        ).replace("(let ", f"(let {name} = {table}: let ", 1)

    def any_match(self, kind: T, depth: int) -> str:
        unions = [found for found in self.types if found.kind == "union"]
        if not unions:
            return self.matched(kind, depth)
        union, arms = self.pick(unions), []
        places = self.random.sample(range(len(union.names)), self.random.randint(1, len(union.names)))
        for place in places:
            name = self.name() if union.parts[place].names else ""
            body = self.within(name, union.parts[place], lambda: self.expr(kind, depth - 1))
            arms.append(f"{union.names[place]} {name}: {body}")
        if len(places) < len(union.names):
            arms.append(f"_: {self.expr(kind, depth - 1)}")
        return f"(match {self.named(union, depth)} {{ {', '.join(arms)} }})"

    def folding(self, kind: T, depth: int) -> str:
        """A fold, never inside another one, whose steps would multiply."""
        if self.folds:
            return self.expr(kind, depth - 1)
        self.folds += 1
        item = self.pick(self.items)
        is_set = values_of(item) <= MOST_LISTED and self.chance(50)
        source = self.named(set_of(item) if is_set else seq_of(item, 2), depth)
        before, name = self.name(), self.binder(item)
        mark = len(self.scope)
        self.scope += [(before, kind), *bound(name, item)]
        body = self.expr(kind, depth - 1)
        del self.scope[mark:]
        self.folds -= 1
        if kind.kind == "int":
            body = f"max(-9, min(9, {body}))"
        return f"fold({source}, {self.named(kind, depth - 1)}, ({before}, {name}) => {body})"

    def call(self, kind: T, depth: int) -> str:
        """A call of a definition, which may have an operator as its last parameter."""
        known = [made for made in self.operators if same_shape(made[2], kind)]
        if not known and len(self.operators) >= MOST_DEFINED:
            return self.expr(kind, depth - 1)
        name, params, _, operator = self.random.choice(known) if known else self.operator(kind)
        args = [self.expr(param, depth - 2) for param in params]
        if operator is not None:
            x = self.name()
            args.append(f"({x}) => {self.within(x, operator[0], lambda: self.expr(operator[1], depth - 2))}")
        return f"{name}({', '.join(args)})"

    def operator(self, kind: T) -> tuple[str, list[T], T, tuple[T, T] | None]:
        """A definition that calls no other one."""
        self.named_operators += 1
        name, p = f"op{self.named_operators}", self.name()
        params = [(self.name(), self.pick(self.items)) for _ in range(self.random.randint(0, 2))]
        operator = (self.pick(self.items), self.pick(self.items)) if self.chance(50) else None
        kept = self.scope, self.operators, self.is_inside, self.folds
        self.scope, self.operators, self.is_inside, self.folds = [*self.state, *params], [], True, 1
        shown = [f"{param}: {of.text}" for param, of in params]
        if operator is not None:
            shown.append(f"{p}: ({operator[0].text}) => {operator[1].text}")
            self.scope += [(f"{p}({self.expr(operator[0], 1)})", operator[1]) for _ in range(2)]
        self.definitions.append(f"def {name}({', '.join(shown)}): {kind.text} = {self.expr(kind, 2)}")
        self.scope, self.operators, self.is_inside, self.folds = kept
        self.operators.append((name, [of for _, of in params], kind, operator))
        return self.operators[-1]

    def forms_bool(self, kind: T, depth: int) -> list[Form]:
        few = [found for found in self.items if values_of(found) <= 8]
        item, small = self.pick(self.items), self.pick(few)
        words = ("subset", "==", "!=")

        def sets(of: T) -> str:
            return self.named(set_of(of), depth)

        forms = [
            lambda: self.over_two(depth),
            lambda: f"({sets(item)} {self.random.choice(words)} {sets(item)})",
            lambda: f"({sets(small)} in subsets({sets(small)}))",
        ]
        return [*super().forms_bool(kind, depth), *forms, *[self.possible] * bool(self.actions)]

    def over_two(self, depth: int) -> str:
        """A quantifier over two sets, the second of which depends on the first."""
        mark, binders = len(self.scope), []
        for _ in range(2):
            item = self.pick(self.items)
            name = self.binder(item)
            binders.append(f"{name} in {self.domain(item, depth - 1)}")
            self.scope += bound(name, item)
        body = self.expr(BOOL, depth - 1)
        del self.scope[mark:]
        return f"({self.random.choice(('forall', 'exists'))} {', '.join(binders)}: {body})"

    def possible(self) -> str:
        """Whether an earlier action is enabled."""
        name, params = self.random.choice(self.actions)
        if not params or self.chance(30):
            return f"enabled({name})"
        args = ["_" if self.chance(40) else self.expr(kind, 1) for kind in params]
        return f"enabled({name}({', '.join(args)}))"

    def forms_int(self, kind: T, depth: int) -> list[Form]:
        forms, d = super().forms_int(kind, depth), depth - 1
        item, other = self.pick(self.items), self.pick(self.items)
        sizes = (bag_of(item, 2), partial_map(item, other), set_of(item))
        over, by = self.random.choice(("min", "max", "sum")), self.random.choice(("//", "%"))
        digits = set_of(number(0, 9))

        def divided(divisor: str) -> str:
            return f"{self.expr(kind, d)} {by} {divisor}"

        if self.tame:  # without division by what may be 0
            forms = [
                lambda: f"({self.expr(INT, d)} {self.random.choice('+-')} {self.expr(kind, d)})",
                *forms[2:],
            ]
        return [
            *forms,
            lambda: self.unless(kind, depth, self.expr(INT, d), "{} == 0", divided),
            lambda: self.unless(kind, depth, self.named(digits, d), "{} == {{}}", lambda s: f"{over}({s})"),
            lambda: f"card({self.named(self.random.choice(sizes), depth)})",
            lambda: f"count({self.named(bag_of(item, 2), depth)}, {self.expr(item, d)})",
        ]

    def forms_seq(self, kind: T, depth: int) -> list[Form]:
        forms, d = super().forms_seq(kind, depth), depth - 1
        s, i = self.name(), self.name()
        cut = self.random.choice(("prefix({0}, {1})", "suffix({0}, {1})", "{{ {0} with [{1}]: {2} }}"))
        item = self.expr(kind.parts[0], d) if "with" in cut else ""

        def changed() -> str:
            index, size = self.expr(number(0, 2), d), f"len({s})" if "with" not in cut else f"len({s}) - 1"
            test = f"0 <= {i} and {i} <= {size}"
            values = f"let {s} = {self.named(kind, depth)}: let {i} = {index}"
            return f"({values}: if {test} then {cut.format(s, i, item)} else {s})"

        forms = forms[:2] + forms[5:] if self.tame else forms
        return [
            *forms,
            changed,
            lambda: f"(let {i} = {self.named(kind, depth)}: if {i} == [] then {i} else tail({i}))",
        ]

    def forms_bag(self, kind: T, depth: int) -> list[Form]:
        forms = super().forms_bag(kind, depth)
        return [
            *(forms[:2] if self.tame else forms),
            lambda: self.with_or_without(kind, depth, "add({0}, {1})"),
            lambda: f"({self.named(kind, depth)} union {self.named(kind, depth - 1)})",
        ]

    def with_or_without(self, kind: T, depth: int, added: str) -> str:
        """A bag or partial map without an item, or key, that it may contain."""
        c, x = self.name(), self.name()
        values = f"let {c} = {self.named(kind, depth)}: let {x} = {self.named(kind.parts[0], depth - 1)}"
        return f"({values}: if {x} in {c} then remove({c}, {x}) else {added.format(c, x)})"

    def forms_pmap(self, kind: T, depth: int) -> list[Form]:
        forms = super().forms_pmap(kind, depth)
        forms = [*forms[:3], *forms[4:]] if self.tame else forms
        return [*forms, lambda: self.with_or_without(kind, depth, "{0}")]

    def forms_set(self, kind: T, depth: int) -> list[Form]:
        (item,), other = kind.parts, self.pick(self.items)
        forms = super().forms_set(kind, depth)
        if item.kind == "set" and values_of(item) > MOST_LISTED:
            forms = forms[:-1]
        return [*forms, lambda: f"keys({self.named(partial_map(item, other), depth)})"]

    def stored(self, kind: T) -> str:
        text = self.expr(kind, self.random.randint(1, 3))
        return self.clamped(kind, text) if self.chance(95) else text

    def clamped(self, kind: T, text: str) -> str:
        """A value that fits its place, as far as a short expression can guarantee it."""
        name = self.name()
        if kind.kind == "int":
            return f"max({kind.low}, min({kind.high}, {text}))"
        if text[0] in "[{" or not any(word in kind.text for word in ("..", "upto")):
            return text
        if kind.kind == "set":
            return f"{{ {self.clamped(kind.parts[0], name)} for {name} in {text} }}"
        if kind.kind in ("seq", "bag"):
            size, other = ("len", f"prefix({name}, {kind.high})") if kind.kind == "seq" else ("card", "{}")
            return f"(let {name} = {text}: if {size}({name}) <= {kind.high} then {name} else {other})"
        return text
