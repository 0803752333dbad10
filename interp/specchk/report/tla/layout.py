r"""TLA+ text in lines: an expression on one line where it fits, else broken by its form.

TLA+ reads the columns of `/\` and `\/` lists.  So a text that is put behind another one is indented by the
length of that, and nothing is ever moved to the left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from msgspec import Struct

WIDTH = 88  # of a line, without its indentation


class Tight(IntEnum):
    """How tightly a text holds together: an operand needs parentheses if it is looser than its place."""

    OPEN = 0  # a quantifier, `IF`, `LET`, `CHOOSE`: they extend as far as they can
    IMPLIES = 1
    JUNCTION = 2  # conjunctions and disjunctions, which do not mix
    NOT = 3
    COMPARED = 4
    INFIX = 5  # of numbers, sets, sequences; the many precedences of TLA+ are not used
    ATOM = 6


class Tla(Struct, frozen=True):
    """Lines of TLA+; the first has no indentation.  Of a `LET` also the lines of its names, and its body."""

    lines: tuple[str, ...]
    level: Tight = Tight.ATOM
    names: tuple[tuple[str, ...], ...] = ()
    body: Tla | None = None

    @property
    def flat(self) -> str | None:
        """The text, if it is a single line."""
        return self.lines[0] if len(self.lines) == 1 else None

    def at(self, level: Tight) -> Tla:
        """The same lines, as loose as `level`."""
        return Tla(self.lines, level)

    def closed(self, end: str) -> Tla:
        """The text with an end behind its last line."""
        return Tla((*self.lines[:-1], self.lines[-1] + end), self.level)

    def behind(self, prefix: str, level: Tight | None = None) -> Tla:
        """The text behind a prefix, as tight as before unless `level` is given."""
        return Tla(hang(prefix, self), self.level if level is None else level)


def atom(line: str) -> Tla:
    """A text on one line that never needs parentheses."""
    return Tla((line,))


def hang(prefix: str, text: Tla) -> tuple[str, ...]:
    """The lines of a text behind a prefix."""
    indent = " " * len(prefix)
    return (prefix + text.lines[0], *[indent + line for line in text.lines[1:]])


def at_least(text: Tla, level: Tight) -> Tla:
    """The text, in parentheses if it is looser than `level`."""
    if text.level >= level:
        return text
    lines = hang("(", text)
    return Tla((*lines[:-1], lines[-1] + ")"))


def _fits(parts: Iterable[Tla], around: int) -> bool:
    flat = [part.flat for part in parts]
    return None not in flat and sum(len(line or "") for line in flat) + around <= WIDTH


def infix(left: Tla, word: str, right: Tla, level: Tight, operands: Tight) -> Tla:
    """`left word right`."""
    left, right = at_least(left, operands), at_least(right, operands)
    if _fits((left, right), len(word) + 2):
        return Tla((f"{left.flat} {word} {right.flat}",), level)
    return Tla((*left.lines, *hang(f"  {word} ", right)), level)


def compared(left: Tla, word: str, right: Tla) -> Tla:
    """A relation of two values."""
    return infix(left, word, right, Tight.COMPARED, Tight.INFIX)


def combined(left: Tla, word: str, right: Tla) -> Tla:
    """A value made of two."""
    return infix(left, word, right, Tight.INFIX, Tight.ATOM)


def implied(left: Tla, right: Tla) -> Tla:
    """An implication."""
    return infix(left, "=>", right, Tight.IMPLIES, Tight.NOT)


def junction(word: str, parts: Sequence[Tla], empty: str) -> Tla:
    """A list of conjuncts or disjuncts; `empty` if there are none."""
    if not parts:
        return atom(empty)
    if len(parts) == 1:
        return parts[0]
    closed = [at_least(part, Tight.NOT) for part in parts]
    if _fits(closed, 4 * len(parts)):
        return Tla((f" {word} ".join(part.lines[0] for part in closed),), Tight.JUNCTION)
    return Tla(tuple(line for part in parts for line in hang(f"{word} ", part)), Tight.JUNCTION)


def bracketed(begin: str, parts: Sequence[Tla], end: str) -> Tla:
    """Parts with commas between brackets."""
    if _fits(parts, len(begin) + len(end) + 2 * len(parts)):
        return atom(begin + ", ".join(part.lines[0] for part in parts) + end)
    inside = [line for part in parts[:-1] for line in part.closed(",").lines]
    inside += parts[-1].closed(end).lines
    return Tla(hang(begin, Tla(tuple(inside))))


def indexed(base: Tla, key: Tla) -> Tla:
    """`base[key]`."""
    of = at_least(base, Tight.ATOM)
    head, last = of.lines[:-1], of.lines[-1]
    inside = bracketed(f"{last}[", (key,), "]")
    return Tla((*head, *inside.lines))


def field(base: Tla, name: str) -> Tla:
    """`base.name`."""
    of = at_least(base, Tight.ATOM)
    return Tla((*of.lines[:-1], f"{of.lines[-1]}.{name}"))


def call(name: str, *args: Tla) -> Tla:
    """`name(args)`; the name alone if there are none."""
    return bracketed(f"{name}(", args, ")") if args else atom(name)


def clause(parts: Sequence[tuple[str, Tla]], end: str = "", level: Tight = Tight.OPEN) -> Tla:
    """Texts behind words: on one line, or each on lines of its own."""
    words = sum(len(word) for word, _ in parts)
    if _fits([text for _, text in parts], words + len(parts) + len(end)):
        return Tla((" ".join(word + text.lines[0] for word, text in parts) + end,), level)
    (first, begin), *rest = parts
    inner = [line for word, text in rest for line in hang(" " * len(end) + word, text)]
    lines = [*hang(first, begin), *inner]
    return Tla((*lines[:-1], lines[-1] + end), level)


def quantified(head: str, domain: Tla, body: Tla) -> Tla:
    """`head domain : body`, the body on lines of its own unless all fits on one."""
    if _fits((domain, body), len(head) + 3):
        return Tla((f"{head}{domain.flat} : {body.flat}",), Tight.OPEN)
    return Tla((*domain.behind(head).closed(" :").lines, *body.behind("    ").lines), Tight.OPEN)


def let(name: str, value: Tla, body: Tla) -> Tla:
    """`LET name == value IN body`; one `LET` for names in a row."""
    names = (hang(f"{name} == ", value), *body.names)
    inner = body.body or body
    if len(names) == 1 and value.flat is not None and _fits((value, inner), len(name) + 12):
        line = f"LET {name} == {value.flat} IN {inner.flat}"
        return Tla((line,), Tight.OPEN, names, inner)
    defined = [line for own in names for line in own]
    lines = ("LET " + defined[0], *["    " + line for line in defined[1:]], *hang("IN  ", inner))
    return Tla(lines, Tight.OPEN, names, inner)


def definition(head: str, body: Tla) -> tuple[str, ...]:
    """`head == body`, the body on lines of its own unless it fits."""
    if body.flat is not None and len(head) + len(body.flat) + 4 <= WIDTH:
        return (f"{head} == {body.flat}",)
    return (f"{head} ==", *["    " + line for line in body.lines])


def listed(word: str, parts: Sequence[Tla], empty: str) -> Tla:
    """A list with each part on lines of its own."""
    if len(parts) < 2:
        return junction(word, parts, empty)
    return Tla(tuple(line for part in parts for line in part.behind(f"{word} ").lines), Tight.JUNCTION)
