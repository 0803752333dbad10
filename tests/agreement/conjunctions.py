"""Random actions as lines in any order, and what docs/language.md says of them, computed line by line.

Nothing of specchk is used: an expression is a text with a function of its own, and `Reading` follows the
rules of "Actions" in the language's document.  Many actions share one spec: the variable `turn` selects the
one that may step, so that a fault of one hides no other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random
from typing import Any

State = dict[str, Any]
Names = dict[str, Any]
HEAD = """\
spec conjunctions
const H : int = 1
var turn : 0..{last} in 0..{last}
var x : nat upto H = 0
var y : 0..1 in {{0, 1}}
var b : bool in {{false, true}}
var o : (0..1)? in {{none, some(1)}}
var m : 0..1 -> nat upto H = {{ k: 0 for k in 0..1 }}
var q : seq[0..1] upto 1 in {{[], [0]}}
var s : set[0..1] in {{{{}}, {{0}}}}
deadlock ok
"""
HORIZON = 1
NONE: tuple[int, ...] = ()


class Undefined(Exception):
    """An expression has no value."""


class Cut(Exception):
    """A value is above a horizon."""


@dataclass(frozen=True)
class Expr:
    """An expression: its text, its value, and the names that it reads."""

    text: str
    value: Callable[[State, Names], Any]
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Line:
    """A statement; `kind` is its word, and `blocks` are those below it."""

    kind: str
    target: str = ""
    key: Expr | None = None
    expr: Expr | None = None
    blocks: tuple[tuple[Line, ...], ...] = ()

    @property
    def reads(self) -> frozenset[str]:
        """The names that the line needs to be bound above it."""
        own = frozenset().union(*(part.names for part in (self.key, self.expr) if part is not None))
        inner = frozenset().union(*(line.reads for block in self.blocks for line in block))
        bound = {self.target} if self.kind == "any" else set()
        for block in self.blocks:
            bound |= {line.target for line in block if line.kind in ("let", "unwrap")}
        return frozenset(own | (inner - bound))

    @property
    def is_change(self) -> bool:
        """Whether the line is an assignment, or has nothing to decide."""
        return self.kind in ("assign", "skip")


Block = tuple[Line, ...]


def divided(a: int, c: int) -> int:
    if c == 0:
        raise Undefined
    return a // c


def at(items: Sequence[Any], index: int) -> Any:
    if not 0 <= index < len(items):
        raise Undefined
    return items[index]


def content(option: tuple[int, ...]) -> int:
    if not option:
        raise Undefined
    return option[0]


NEAR = (
    Expr("0", lambda s, _: 0),
    Expr("1", lambda s, _: 1),
    Expr("y", lambda s, _: s["y"]),
    Expr("x", lambda s, _: s["x"]),
    Expr("1 - y", lambda s, _: 1 - s["y"]),
    Expr("m[y]", lambda s, _: s["m"][s["y"]]),
)
FAR = (
    Expr("x + 1", lambda s, _: s["x"] + 1),
    Expr("x + y", lambda s, _: s["x"] + s["y"]),
    Expr("m[1 - y] + 1", lambda s, _: s["m"][1 - s["y"]] + 1),
    Expr("2", lambda s, _: 2),
)
RISKY = (
    Expr("2", lambda s, _: 2),
    Expr("y - 1", lambda s, _: s["y"] - 1),
    Expr("1 // y", lambda s, _: divided(1, s["y"])),
    Expr("get(o)", lambda s, _: content(s["o"])),
    Expr("q[y]", lambda s, _: at(s["q"], s["y"])),
)


class Maker:
    """Makes random actions; `names` are counted, so that no name is bound twice."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.made = 0
        self.keys: set[str] = (
            set()
        )  # of `m` in the present action: the same one twice is an error of the text

    def name(self) -> str:
        self.made += 1
        return f"n{self.made}"

    def number(self, names: Sequence[str], *, far: bool = False) -> Expr:
        """A number; some are undefined or out of range, and most `far` ones above a horizon."""
        if names and self.random.random() < 0.3:
            name = self.random.choice(names)
            if self.random.random() < 0.5:
                return Expr(f"{name} + 1", lambda _, n: n[name] + 1, frozenset({name}))
            return Expr(name, lambda _, n: n[name], frozenset({name}))
        return self.random.choice(RISKY if self.random.random() < 0.2 else FAR if far else NEAR)

    def truth(self, names: Sequence[str]) -> Expr:
        """A condition."""
        pick = self.random.randrange(9)
        if pick >= 5:
            left, right = self.number(names), self.number(names)
            word, test = self.random.choice(
                (("==", lambda a, c: a == c), ("<", lambda a, c: a < c), ("<=", lambda a, c: a <= c))
            )
            return Expr(
                f"{left.text} {word} {right.text}",
                lambda s, n: test(left.value(s, n), right.value(s, n)),
                left.names | right.names,
            )
        return (
            Expr("b", lambda s, _: s["b"]),
            Expr("not b", lambda s, _: not s["b"]),
            Expr("o != none", lambda s, _: s["o"] != NONE),
            Expr("y in s", lambda s, _: s["y"] in s["s"]),
            Expr("false", lambda s, _: False),
        )[pick]

    def _open(self, names: Sequence[str]) -> Expr:
        """A condition that no constants decide: a branch that they exclude has no coverage."""
        condition = self.truth(names)
        while not set("xybomqs") & set(re.findall(r"\w+", condition.text)):
            condition = self.truth(names)
        return condition

    def option(self, names: Sequence[str]) -> Expr:
        """An option, for `let ... else skip`."""
        if self.random.randrange(3):
            return Expr("o", lambda s, _: s["o"])
        inner = self.number(names)
        return Expr(f"some({inner.text})", lambda s, n: (inner.value(s, n),), inner.names)

    def items(self, names: Sequence[str]) -> Expr:
        """A set, for a choice."""
        pick = self.random.randrange(4)
        if pick == 0:
            return Expr("s", lambda s, _: s["s"])
        if pick == 1:
            return Expr("s - {y}", lambda s, _: s["s"] - {s["y"]})
        one = self.number(names)
        if pick == 2:
            return Expr(f"{{{one.text}}}", lambda s, n: frozenset({one.value(s, n)}), one.names)
        return Expr(f"0..{one.text}", lambda s, n: frozenset(range(one.value(s, n) + 1)), one.names)

    def assign(self, free: list[str], names: Sequence[str]) -> Line:
        """An assignment of a variable that no other one assigns, or of a part of `m`."""
        target = free.pop(self.random.randrange(len(free)))
        value = self.number(names, far=target in ("x", "m"))
        key = None
        match target:
            case "b":
                value = self.truth(names)
            case "o":
                value = self.option(names)
            case "m":
                key = self.number(names)
                while key.text in self.keys:
                    key = self.number(names)
                self.keys.add(key.text)
                if self.random.randrange(3) and len(self.keys) < 3:
                    free.append("m")
            case "q":
                inner = self.number(names)
                value = Expr(f"[{inner.text}]", lambda s, n: (inner.value(s, n),), inner.names)
                if self.random.randrange(3) == 0:
                    return Line("assign", "q", self.number(names), inner)
                if self.random.randrange(3) == 0:
                    value = Expr(
                        f"q ++ [{inner.text}]", lambda s, n: (*s["q"], inner.value(s, n)), inner.names
                    )
            case "s":
                value = self.items(names)
        return Line("assign", target, key, value)

    def block(self, size: int, depth: int, free: list[str], names: list[str]) -> Block:
        lines: list[Line] = []
        names = list(names)
        for _ in range(size):
            lines.append(self.line(depth, free, names))
            if lines[-1].kind in ("let", "unwrap"):
                names.append(lines[-1].target)
        return tuple(lines)

    def line(self, depth: int, free: list[str], names: Sequence[str]) -> Line:
        kinds = ["require", "require", "let", "unwrap", "in"]
        if free:
            kinds += ["assign"] * 4
        if depth:
            kinds += ["any", "either", "when", "when"]
        match self.random.choice(kinds):
            case "assign":
                return self.assign(free, names)
            case "require":
                return Line("require", expr=self.truth(names))
            case "let":
                return Line("let", self.name(), expr=self.number(names))
            case "unwrap":
                return Line("unwrap", self.name(), expr=self.option(names))
            case "in" if "y" in free:
                free.remove("y")
                return Line("in", "y", expr=self.items(names))
            case "any":
                name, domain = self.name(), self.items(names)
                body = self.block(self.random.randrange(1, 3), depth - 1, free, [*names, name])
                return Line("any", name, expr=domain, blocks=(body,))
            case "either" | "when" as kind:
                # Each branch may assign what the other does.
                left, right = list(free), list(free)
                blocks = (
                    self.block(self.random.randrange(1, 3), depth - 1, left, list(names)),
                    self.block(self.random.randrange(1, 3), depth - 1, right, list(names)),
                )
                free[:] = [name for name in free if name in left and name in right]
                return Line(kind, expr=self._open(names) if kind == "when" else None, blocks=blocks)
        return Line("skip")

    def action(self) -> Block:
        """The lines of an action."""
        free = ["x", "m", "y", "b", "o", "q", "s"]
        self.keys.clear()
        return self.block(self.random.randrange(2, 6), 2, free, [])

    def reordered(self, block: Block, *, protects: bool = True) -> Block:
        """The same lines in another order that keeps each name above its uses.

        Conditions keep their order where one may protect those below it (`protects`).
        """
        lines = [
            replace(line, blocks=tuple(self.reordered(inner, protects=protects) for inner in line.blocks))
            for line in block
        ]
        return tuple(self._shuffled(lines, protects))

    def _shuffled(self, lines: list[Line], protects: bool) -> Iterator[Line]:
        left = list(lines)
        while left:
            waiting = {line.target for line in left if line.kind in ("let", "unwrap")}
            ready = [line for line in left if not line.reads & waiting]
            if protects and not all(line.is_change for line in left):
                first = next(line for line in left if not line.is_change)
                ready = [line for line in ready if line.is_change or line is first]
            line = self.random.choice(ready)
            left.remove(line)
            yield line


def text_of(block: Block, indent: int = 4) -> str:
    """The text of a block."""
    space, out = " " * indent, []
    for line in block:
        expr = line.expr.text if line.expr is not None else ""
        key = f"[{line.key.text}]" if line.key is not None else ""
        match line.kind:
            case "require":
                out.append(f"{space}require {expr}\n")
            case "let":
                out.append(f"{space}let {line.target} = {expr}\n")
            case "unwrap":
                out.append(f"{space}let {line.target} = {expr} else skip\n")
            case "assign":
                out.append(f"{space}{line.target}'{key} = {expr}\n")
            case "in":
                out.append(f"{space}{line.target}' in {expr}\n")
            case "skip":
                out.append(f"{space}skip\n")
            case "any":
                out.append(f"{space}any {line.target} in {expr}:\n{text_of(line.blocks[0], indent + 4)}")
            case "either" | "when" as kind:
                words = ("either", "or") if kind == "either" else (f"when {expr}", "else")
                for word, inner in zip(words, line.blocks, strict=True):
                    out.append(f"{space}{word}:\n{text_of(inner, indent + 4)}")
    return "".join(out)


def spec_of(actions: Sequence[Block]) -> str:
    """A spec in which `turn` selects an action, with witnesses that it is enabled and that it is not."""
    parts = [HEAD.format(last=len(actions) - 1)]
    for number, block in enumerate(actions):
        parts.append(f"action act{number}():\n    require turn == {number}\n{text_of(block)}")
        parts.append(f"reachable on{number}: turn == {number} and enabled(act{number})\n")
        parts.append(f"reachable off{number}: turn == {number} and not enabled(act{number})\n")
    return "".join(parts)


@dataclass
class Result:
    """What one action does in all states that it reaches."""

    states: int = 0
    steps: int = 0
    cuts: int = 0
    labels: list[tuple[str, int]] = field(default_factory=list)  # of branches, with how often each is taken
    is_undefined: bool = False
    has_deadlock: bool = False
    on: bool = False
    off: bool = False
    unknown: bool = False  # whether `enabled` has no value in some state

    @property
    def is_defined(self) -> bool:
        """Whether no state made a condition or a value undefined."""
        return not (self.is_undefined or self.unknown)


class Reading:
    """The rules of docs/language.md, for one action."""

    def __init__(self, block: Block) -> None:
        self.block = block

    def paths(self, lines: Block, state: State, names: Names) -> Iterator[tuple[list[Any], list[int]]]:
        """The paths on which all conditions hold: their changes, and the branches that they take."""
        if not lines:
            yield [], []
            return
        line, rest = lines[0], lines[1:]
        match line.kind:
            case "require":
                if line.expr.value(state, names):
                    yield from self.paths(rest, state, names)
            case "let":
                value = line.expr.value(state, names)
                yield from self.paths(rest, state, {**names, line.target: value})
            case "unwrap":
                option = line.expr.value(state, names)
                if option != NONE:
                    yield from self.paths(rest, state, {**names, line.target: option[0]})
            case "assign":
                for changes, taken in self.paths(rest, state, names):
                    yield [(line, line.expr.value, names), *changes], taken
            case "in":
                for item in sorted(line.expr.value(state, names)):
                    for changes, taken in self.paths(rest, state, names):
                        yield [(line, lambda s, n, item=item: item, names), *changes], taken
            case "skip":
                yield from self.paths(rest, state, names)
            case _:
                for block, bound, is_branch in self._alternatives(line, state, names):
                    mark = [id(block)] if is_branch else []
                    for changes, taken in self.paths(block, state, {**names, **bound}):
                        for others, further in self.paths(rest, state, names):
                            yield [*changes, *others], [*mark, *taken, *further]

    def _alternatives(self, line: Line, state: State, names: Names) -> Iterator[tuple[Block, Names, bool]]:
        """The blocks with which a line may go on, the name that each binds, and whether it is a branch."""
        match line.kind:
            case "any":
                for item in sorted(line.expr.value(state, names)):
                    yield line.blocks[0], {line.target: item}, False
            case "either":
                for block in line.blocks:
                    yield block, {}, True
            case "when":
                yield line.blocks[0 if line.expr.value(state, names) else 1], {}, True

    def enabled(self, lines: Block, state: State, names: Names) -> bool:
        """The value of `enabled`: lines are joined by `and`, alternatives by `or`."""
        for number, line in enumerate(lines):
            value = line.expr.value(state, names) if line.expr is not None and not line.is_change else None
            match line.kind:
                case "require" if not value:
                    return False
                case "let":
                    return self.enabled(lines[number + 1 :], state, {**names, line.target: value})
                case "unwrap":
                    more = lines[number + 1 :]
                    return value != NONE and self.enabled(more, state, {**names, line.target: value[0]})
                case "in" if not value:
                    return False
                case "any":
                    inner = ({**names, line.target: item} for item in sorted(value))
                    if not any(self.enabled(line.blocks[0], state, each) for each in inner):
                        return False
                case "either":
                    if not any(self.enabled(block, state, names) for block in line.blocks):
                        return False
                case "when":
                    if not self.enabled(line.blocks[0 if value else 1], state, names):
                        return False
        return True

    def after(self, changes: list[Any], state: State) -> State:
        """The state after the changes of an enabled path; raises `Undefined`, else `Cut`."""
        places: list[tuple[Any, ...]] = []
        values: dict[str, Any] = dict(state)
        is_cut = False
        for line, value, names in changes:
            place: tuple[Any, ...] = (line.target,)
            if line.key is not None:
                key = line.key.value(state, names)
                at(state[line.target], key)
                place = (line.target, key)
            if any(place[: len(other)] == other[: len(place)] for other in places):
                raise Undefined
            places.append(place)
            new = value(state, names)
            try:
                stored(line.target, new, whole=line.key is None)
            except Cut:
                is_cut = True
                continue
            if line.key is not None:
                items = list(values[line.target])
                items[place[1]] = new
                new = tuple(items)
            values[line.target] = new
        if is_cut:
            raise Cut
        return values

    def result(self, starts: Sequence[State]) -> Result:
        """What the action does from some states on."""
        out, seen, left = Result(), set(), list(starts)
        counts: Counter[int] = Counter()
        while left:
            state = left.pop()
            key = tuple(sorted(state.items(), key=lambda item: item[0]))
            if key in seen:
                continue
            seen.add(key)
            out.states += 1
            try:
                is_on = self.enabled(self.block, state, {})
                out.on, out.off = out.on or is_on, out.off or not is_on
            except Undefined:
                out.unknown = True
            try:
                paths = list(self.paths(self.block, state, {}))
            except Undefined:
                out.is_undefined = True
                continue
            assert is_on == bool(paths)
            steps, cuts = [], 0
            taken: Counter[int] = Counter()
            try:
                for changes, branches in paths:
                    try:
                        steps.append(self.after(changes, state))
                    except Cut:
                        cuts += 1
                    taken.update(branches)
            except Undefined:
                out.is_undefined = True
                continue
            out.has_deadlock |= not paths
            out.steps += len(steps)
            out.cuts += cuts
            counts.update(taken)
            left += steps
        out.labels = sorted((label, counts[key]) for key, label in _labels(self.block))
        return out


def _labels(block: Block) -> Iterator[tuple[int, str]]:
    for line in block:
        for number, inner in enumerate(line.blocks):
            if line.kind == "either":
                yield id(inner), f"either {number + 1}"
            elif line.kind == "when":
                yield id(inner), ("when", "else")[number]
            yield from _labels(inner)


def stored(name: str, value: Any, *, whole: bool) -> None:
    """Check a value against the type of its place; raises `Undefined`, else `Cut`."""
    numbers: Sequence[int]
    match name:
        case "x":
            numbers, has_horizon = [value], True
        case "m":
            numbers, has_horizon = [value], True
        case "b":
            return
        case "q":
            if whole and len(value) > 1:
                raise Undefined
            numbers, has_horizon = (value if whole else [value]), False
        case "o" | "s":
            numbers, has_horizon = list(value), False
        case _:
            numbers, has_horizon = [value], False
    if any(number < 0 or (number > HORIZON and not has_horizon) for number in numbers):
        raise Undefined
    if any(number > HORIZON for number in numbers):
        raise Cut


def starts() -> list[State]:
    """The initial states, but for `turn`."""
    columns = product((0, 1), (False, True), (NONE, (1,)), ((), (0,)), (frozenset(), frozenset({0})))
    return [{"x": 0, "y": y, "b": b, "o": o, "m": (0, 0), "q": q, "s": s} for y, b, o, q, s in columns]
