"""Atoms for lemmas, as spec text: predicates of variables and definitions, key by key.

Places are found through maps (at each key, or at a constant of the key's sort), fields of records and
options; a definition whose parameters have few values is a place, too.  An atom is about one place or two: a
flag, an option that is none, a value of the place, a member of its set, a comparison of two numbers.

In texts, `$k0`, `$k1`, ... stand for keys, `$m0`, `$m1`, ... for the contents of options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from string import Template, ascii_lowercase

from msgspec import Struct, field
from msgspec.structs import replace

from specchk.ir import types
from specchk.ir.program import Program
from specchk.ir.types import Type, has_horizon

MAX_KEYS = 2  # of an atom and of a lemma: with more it would be unreadable
MAX_ATOMS = 400
MAX_VALUES = 8  # of a type whose values are written out, or of a range as the domain of a key


class Vocabulary(Struct, frozen=True):
    """The names available to atoms: types, and definitions with the types of parameters and result."""

    types: Mapping[Type, str] = field(default_factory=dict)
    definitions: Sequence[tuple[str, tuple[Type, ...], Type]] = ()


class Site(Struct, frozen=True):
    """A place in a state, with a domain for each key; `option`: the option whose content it is."""

    text: str
    type: Type
    domains: tuple[str, ...] = ()
    option: str | None = None


class Atom(Struct, frozen=True):
    """A predicate over keys, distinct if their domains are the same, and over contents of options.

    If one of the options is none, the atom is neither true nor false.  At most one atom of a `family` is true
    for the same keys.  `is_value`: if it is false, another one of its family is true.
    """

    left: str
    relation: str = ""  # empty for a flag
    right: str = ""
    domains: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    family: str = ""
    is_value: bool = False

    @property
    def text(self) -> str:
        """The text of the atom."""
        return f"{self.left} {self.relation} {self.right}" if self.relation else self.left

    @property
    def negation(self) -> str:
        """The text of its negation."""
        match self.relation:
            case "<=":
                return f"{self.right} < {self.left}"
            case "==":
                return f"{self.left} != {self.right}"
            case "in":
                return f"{self.left} not in {self.right}"
        return f"not {self.left}"

    def table(self, names: Sequence[str], *, negated: bool = False) -> str:
        """An expression for a map of maps with the truth, or falsehood, for each choice of keys."""
        keys, contents = names[: len(self.domains)], names[len(self.domains) :]
        named = {**named_keys(keys), **{f"m{n}": name for n, name in enumerate(contents)}}
        body = filled(self.negation if negated else self.text, named)
        for option, content in reversed(list(zip(self.options, contents, strict=False))):
            body = f"(match {filled(option, named)} {{ some {content}: {body}, none: false }})"
        for key, domain in reversed(list(zip(keys, self.domains, strict=True))):
            body = f"{{ {key}: {body} for {key} in {domain} }}"
        return body


def filled(text: str, named: Mapping[str, str]) -> str:
    """A text with names substituted; those without a substitute are kept."""
    return Template(text).safe_substitute(named)


def named_keys(names: Sequence[str]) -> dict[str, str]:
    """The names for the keys of a text, in order."""
    return {f"k{number}": name for number, name in enumerate(names)}


def unused_names(program: Program) -> list[str]:
    """Unused names for keys and contents of options, because a spec cannot hide a name."""
    taken = {thing.name for things in (program.variables, program.constants) for thing in things}
    taken |= {member for sort in program.sorts for member in sort.members}
    return [letter for letter in ascii_lowercase if letter not in taken]


class Templates(Struct, frozen=True):
    """The atoms of a program, using the names of its spec."""

    program: Program
    vocabulary: Vocabulary = Vocabulary()

    def atoms(self) -> list[Atom]:
        """The distinct atoms in a fixed order: those of variables, then those of definitions."""
        variables = [Site(variable.name, variable.type) for variable in self.program.variables]
        called = [
            Site(f"{name}({', '.join(texts)})", result, domains)
            for name, params, result in self.vocabulary.definitions
            for texts, domains in self._arguments(params, 0)
        ]
        atoms: dict[Atom, None] = {}
        for sites in (variables, called):
            places = [place for site in sites for place in self._places(site)]
            kinds = [atom for place in places for atom in self._alone(place)]
            numbers = [place for place in places if isinstance(place.type, types.Int)]
            kinds += [
                _comparison(a, b) for a, b in product(numbers, numbers)
                if (a != b or a.domains) and (has_horizon(a.type) or has_horizon(b.type))
            ]  # fmt: skip
            atoms |= dict.fromkeys([same for atom in kinds for same in _identified(atom)])
        return list(atoms)[:MAX_ATOMS]

    def _places(self, at: Site) -> Iterator[Site]:
        """A place and the places inside it."""
        yield at
        match at.type:
            # Parts of a tuple have no names in expressions.
            case types.Record(fields, is_tuple=False):
                for name, item in fields:
                    yield from self._places(replace(at, text=f"{at.text}.{name}", type=item))
            case types.Option(item) if at.option is None:
                if isinstance(item, types.Record) or has_horizon(item):
                    yield from self._places(Site("$m0", item, at.domains, at.text))
            case types.Map(key, value):
                constants = [constant.name for constant in self.program.constants if constant.type == key]
                for name in constants if isinstance(key, types.Sort) else ():
                    yield from self._places(replace(at, text=f"{at.text}[{name}]", type=value))
                for text, domains in self._terms(key, len(at.domains)) if at.option is None else ():
                    if len(at.domains) + len(domains) <= MAX_KEYS:
                        inner = Site(f"{at.text}[{text}]", value, (*at.domains, *domains))
                        yield from self._places(inner)
            case types.Seq(_, limit):
                yield replace(at, text=f"len({at.text})", type=types.Int(0, limit, horizon=True))
            case _:  # sets and unions are not entered
                pass

    def _arguments(self, kinds: Sequence[Type], first: int) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Texts for values of some types, with the domains of their keys, numbered from `first` on."""
        rows: list[tuple[tuple[str, ...], tuple[str, ...]]] = [((), ())]
        for kind in kinds:
            rows = [
                ((*texts, text), (*domains, *more))
                for texts, domains in rows
                for text, more in self._terms(kind, first + len(domains))
            ]
        return rows

    def _terms(self, kind: Type, first: int) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Texts for all values of a type, with keys for elements of sorts and ranges; none if too many."""
        match kind:
            case types.Bool():
                yield from (("true", ()), ("false", ()))
            case types.Enum(_, members) if len(members) <= MAX_VALUES:
                yield from ((member, ()) for member in members)
            case types.Sort(name, _):
                yield f"$k{first}", (name,)
            case types.Int(low, high) if high - low < MAX_VALUES and not has_horizon(kind):
                if kind in self.vocabulary.types:
                    yield f"$k{first}", (self.vocabulary.types[kind],)
            case types.Option(item):
                yield "none", ()
                yield from ((f"some({text})", domains) for text, domains in self._terms(item, first))
            case types.Record(fields):
                for texts, domains in self._arguments([item for _, item in fields], first):
                    text = f"({', '.join(texts)})" if kind.is_tuple else f"{{ {_with_names(kind, texts)} }}"
                    yield text, domains
            case types.Union(_, variants):
                for tag, record in variants:
                    if record.element is not None:
                        yield from self._terms(record.element, first)
                        continue
                    for texts, domains in self._arguments([item for _, item in record.fields], first):
                        yield (f"{tag}({_with_names(record, texts)})" if texts else tag), domains
            case _:  # numbers without an upper end, and collections
                pass

    def _alone(self, place: Site) -> Iterator[Atom]:
        """The atoms of one place, with as many keys as needed."""
        at, keys = place.text, place.domains
        options = () if place.option is None else (place.option,)
        match place.type:
            case types.Bool():
                yield Atom(at, domains=keys, options=options)
            case types.Set(item) | types.Bag(item):
                members = at if isinstance(place.type, types.Set) else f"elements({at})"
                for text, domains in self._terms(item, len(keys)):
                    yield Atom(text, "in", members, (*keys, *domains), options)
                yield Atom(f"card({at})", "==", "0", keys, options)
            case types.Option(item):
                yield Atom(at, "==", "none", keys, options, family=at)
                for text, domains in self._terms(item, len(keys)):
                    yield Atom(at, "==", f"some({text})", (*keys, *domains), options, family=at)
            case _:
                for text, domains in self._terms(place.type, len(keys)):
                    yield Atom(at, "==", text, (*keys, *domains), options, family=at, is_value=not domains)


def _with_names(kind: types.Record, texts: Sequence[str]) -> str:
    return ", ".join(f"{name}: {text}" for (name, _), text in zip(kind.fields, texts, strict=True))


def _comparison(a: Site, b: Site) -> Atom:
    """The atom that one term is at most the other; keys of the second follow those of the first."""
    moved = {f"k{number}": f"$k{len(a.domains) + number}" for number in range(len(b.domains))}
    options = tuple([option for option in (a.option, b.option and filled(b.option, moved)) if option])
    right = filled(b.text, {**moved, "m0": f"$m{len(options) - 1}"})
    return Atom(a.text, "<=", right, (*a.domains, *b.domains), options)


def _identified(atom: Atom) -> Iterator[Atom]:
    """The variants of an atom with keys equal or distinct, except those with too many keys."""
    for ways in product(*[range(min(number + 1, MAX_KEYS)) for number in range(len(atom.domains))]):
        domains = dict(zip(reversed(ways), reversed(atom.domains), strict=True))
        fits = all(domains[way] == domain for way, domain in zip(ways, atom.domains, strict=True))
        # Keys are numbered in the order in which they appear, so that each variant is tried once.
        if not fits or list(dict.fromkeys(ways)) != list(range(len(domains))):
            continue
        named = {f"k{number}": f"$k{way}" for number, way in enumerate(ways)}
        options = [filled(option, named) for option in atom.options]
        kept = list(dict.fromkeys(options))
        named |= {f"m{number}": f"$m{kept.index(option)}" for number, option in enumerate(options)}
        left, right = filled(atom.left, named), filled(atom.right, named)
        if left != right:
            yield replace(
                atom, left=left, right=right, options=tuple(kept), family=filled(atom.family, named),
                domains=tuple([domains[way] for way in range(len(domains))]),
            )  # fmt: skip
