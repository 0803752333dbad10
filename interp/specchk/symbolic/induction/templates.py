"""Candidates for lemmas, as text of a spec: comparisons of the offsets that its variables hold.

An offset is found through maps (at each key, or at a constant of the key's sort), fields of records and
options.  Two of them make a candidate, `a <= b`, for all keys: with the same keys in both, or with keys
of their own.  An option or a flag makes one alone: that it is none, true or false.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from string import ascii_lowercase

from specchk.ir.program import Program
from specchk.ir.types import Bool, Enum, Int, Map, Option, Record, Sort, Type, has_horizon

MAX_KEYS = 2  # of one place: with more, a comparison of two has too many keys for anybody's reading


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a state, as text with `{0}` and `{1}` for its keys, which range over `domains`.

    `option`: the place, as text, of the option that this one is inside of; `{m}` stands for its content.
    """

    text: str
    type: Type
    domains: tuple[str, ...] = ()
    option: str | None = None


def candidates(program: Program) -> list[str]:
    """The candidates for lemmas of a program, each once; the same ones in the same order every time."""
    places = [
        place for variable in program.variables for place in _places(program, variable.name, variable.type)
    ]
    names = _unused(program)
    offsets = [place for place in places if isinstance(place.type, Int)]
    found = [_closed([place], names, together=False, body=body) for place in places for body in _alone(place)]
    for a, b in product(offsets, offsets):
        if a != b:
            found += [_closed([a, b], names, together=True, body="{a} <= {b}")]
        if a.domains and b.domains:
            found += [_closed([a, b], names, together=False, body="{a} <= {b}")]
    return list(dict.fromkeys(found))


def _places(
    program: Program, text: str, kind: Type, domains: tuple[str, ...] = (), option: str | None = None
) -> Iterator[Site]:
    match kind:
        case Int():
            if has_horizon(kind):
                yield Site(text, kind, domains, option)
        case Bool():
            yield Site(text, kind, domains, option)
        case Record():
            for name, item in kind.fields:
                yield from _places(program, f"{text}.{name}", item, domains, option)
        case Option() if option is None:
            yield Site(text, kind, domains)
            yield from _places(program, "{m}", kind.item, domains, text)
        case Map():
            keys = [constant.name for constant in program.constants if constant.type == kind.key]
            for key in keys if isinstance(kind.key, Sort) else ():
                yield from _places(program, f"{text}[{key}]", kind.value, domains, option)
            domain = _domain(kind.key)
            if domain is not None and option is None and len(domains) < MAX_KEYS:
                at = f"{text}[{{{len(domains)}}}]"
                yield from _places(program, at, kind.value, (*domains, domain), option)
        case _:  # sets, sequences and unions are not looked into
            pass


def _domain(kind: Type) -> str | None:
    match kind:
        case Sort() | Enum():
            return kind.name
        case Int() if not has_horizon(kind):
            return f"{kind.low}..{kind.high}"
    return None


def _alone(place: Site) -> tuple[str, ...]:
    match place.type:
        case Option():
            return ("{a} == none",)
        case Bool():
            return ("{a}", "not {a}")
    return ()


def _unused(program: Program) -> list[str]:
    """Names for keys and contents of options: none that has a meaning, because a spec cannot hide one."""
    taken = {thing.name for things in (program.variables, program.constants) for thing in things}
    taken |= {member for sort in program.sorts for member in sort.members}
    return [letter for letter in ascii_lowercase if letter not in taken]


def _closed(places: Sequence[Site], names: Sequence[str], *, together: bool, body: str) -> str:
    """A predicate of some places, for all keys and for the contents of options that have some."""
    unused, bound = list(names), list[tuple[str, str]]()
    texts, options = [], dict[str, str]()
    for place in places:
        # Together, the keys of the second are those of the first, as far as they have the same domains.
        keys = [key for key, _ in bound] if together else []
        same = [domain for _, domain in bound][: len(place.domains)] == list(place.domains)[: len(bound)]
        keys = keys[: len(place.domains)] if same else []
        for domain in place.domains[len(keys) :]:
            bound.append((_named(domain, unused), domain))
            keys.append(bound[-1][0])
        content = ""
        if place.option is not None:
            of = place.option.format(*keys)
            content = options[of] if of in options else options.setdefault(of, _named("message", unused))
        texts.append(place.text.format(*keys, m=content))
    text = body.format(**dict(zip("ab", texts, strict=False)))
    for of, content in reversed(options.items()):
        text = f"(match {of} {{ some {content}: {text}, none: true }})"
    ranges = ", ".join(f"{key} in {domain}" for key, domain in bound)
    return f"forall {ranges}: {text}" if ranges else text


def _named(thing: str, unused: list[str]) -> str:
    """Remove an unused name from the list and return it: preferably the initial of a thing."""
    initial = thing[0].lower()
    name = initial if initial in unused else unused[0]
    unused.remove(name)
    return name
