"""Candidates for lemmas: atoms that exclude each other, for all keys, in the enumerated states.

A clause is represented by what it forbids: literals that are never true together for the same keys.  Only
minimal clauses are candidates: if fewer literals exclude each other, more are redundant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations, product
from math import comb

from msgspec import Struct
from msgspec.structs import replace

from specchk.symbolic.induction.templates import Atom, filled, named_keys

# For each choice of keys, by the length of clauses: all combinations of the literals are tried.
MAX_LITERALS = (0, 4_000, 600, 160)
Masks = Mapping[Atom, Mapping[bool, Mapping[tuple[int, ...], int]]]


class Literal(Struct, frozen=True):
    """An atom that is true, or false, for some of a clause's keys."""

    atom: Atom
    keys: tuple[int, ...]
    positive: bool

    def text(self, named: Mapping[str, str]) -> str:
        """The text of the literal."""
        return filled(self.atom.text if self.positive else self.atom.negation, named)

    @property
    def family(self) -> str:
        """The place whose value the atom gives; literals of one family exclude each other in any case."""
        return filled(self.atom.family, self._renumbered) if self.positive else ""

    @property
    def options(self) -> tuple[str, ...]:
        """The options to whose contents the atom refers."""
        return tuple([filled(option, self._renumbered) for option in self.atom.options])

    @property
    def _renumbered(self) -> dict[str, str]:
        return {f"k{number}": f"$k{key}" for number, key in enumerate(self.keys)}


class Exclusion(Struct, frozen=True):
    """For all keys in `domains`, distinct within a domain: not all of the literals are true."""

    domains: tuple[str, ...]
    literals: tuple[Literal, ...]

    def text(self, names: Sequence[str]) -> str:
        """The clause as an invariant's body."""
        unused = list(names)
        keys = [_named(domain, unused) for domain in self.domains]
        contents: dict[str, str] = {}
        pairs = combinations(zip(keys, self.domains, strict=True), 2)
        premises = [f"{a} != {b}" for (a, domain), (b, other) in pairs if domain == other]
        inside = list[tuple[Literal, Mapping[str, str]]]()
        outside = list[tuple[Literal, Mapping[str, str]]]()
        for literal in self.literals:
            named = named_keys([keys[key] for key in literal.keys])
            for number, option in enumerate(literal.atom.options):
                at = filled(option, named)
                if at not in contents:
                    contents[at] = _named("message", unused)
                named[f"m{number}"] = contents[at]
            (inside if literal.atom.options else outside).append((literal, named))
        if inside:
            premises += [literal.text(named) for literal, named in outside]
            body = _implication([], inside)
            for option, content in reversed(contents.items()):
                body = f"(match {option} {{ some {content}: {body}, none: true }})"
            body = f"{' and '.join(premises)} implies {body}" if premises else body
        else:
            body = _implication(premises, outside)
        ranges = ", ".join(f"{key} in {domain}" for key, domain in zip(keys, self.domains, strict=True))
        return f"forall {ranges}: {body}" if ranges else body


def _named(thing: str, unused: list[str]) -> str:
    """Remove an unused name from the list and return it: preferably the initial of its domain."""
    initial = thing[0].lower()
    name = initial if initial in unused else unused[0]
    unused.remove(name)
    return name


def _implication(premises: list[str], literals: list[tuple[Literal, Mapping[str, str]]]) -> str:
    """The text that the literals are not all true, as an implication from all but one of them."""
    concluded = max(literals, key=lambda pair: (pair[0].atom.relation == "<=", not pair[0].positive))
    others = [literal.text(named) for literal, named in literals if literal is not concluded[0]]
    literal, named = concluded
    conclusion = replace(literal, positive=not literal.positive).text(named)
    return f"{' and '.join([*premises, *others])} implies {conclusion}" if premises or others else conclusion


def frames(atoms: Sequence[Atom]) -> list[tuple[str, ...]]:
    """The choices of keys for clauses, those with the fewest first."""
    single = list(dict.fromkeys([domain for atom in atoms for domain in atom.domains]))
    pairs = [(a, b) for a, b in product(single, single) if single.index(a) <= single.index(b)]
    return [(), *[(domain,) for domain in single], *pairs]


def minimal(masks: Masks, sizes: Mapping[str, int], length: int) -> tuple[list[Exclusion], int]:
    """The minimal clauses of one to three literals, and the number of combinations tried.

    `masks` has, for each atom, true and false, and each choice of its keys, a bit for each state; `sizes` has
    the numbers of keys of the domains.
    """
    clauses, tried = list[Exclusion](), 0
    for domains in frames(list(masks)):
        chosen = rows(domains, sizes)
        literals = _literals(masks, domains, chosen) if chosen else []
        if length > 2:
            # Two literals that are always true together exclude the same; pairs state their equivalence.
            literals = list({bits: (literal, bits) for literal, bits in reversed(literals)}.values())[::-1]
        literals = literals[: MAX_LITERALS[length]]
        tried += comb(len(literals), length)
        clauses += [
            Exclusion(domains, together) for together in _excluding(literals, length)
            if _is_informative(together) and _uses_all(domains, together)
        ]  # fmt: skip
    return clauses, tried


def rows(domains: tuple[str, ...], sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
    """The choices of keys, distinct if their domains are the same."""
    is_pair = len(domains) == 2 and domains[0] == domains[1]
    every = product(*[range(sizes[domain]) for domain in domains])
    return [row for row in every if not is_pair or row[0] != row[1]]


def _literals(
    masks: Masks, domains: tuple[str, ...], rows: Sequence[tuple[int, ...]]
) -> list[tuple[Literal, int]]:
    """The literals over some keys, with a bit for each row of keys and each state."""
    width = max(
        [0, *[b.bit_length() for ways in masks.values() for bits in ways.values() for b in bits.values()]]
    )
    literals = []
    for atom, ways in masks.items():
        for positive, bits in ways.items():
            # That a place does not have a certain value excludes next to nothing, and there are as many such
            # literals as values.
            if atom.is_value and not positive:
                continue
            for keys in permutations(range(len(domains)), len(atom.domains)):
                if tuple([domains[key] for key in keys]) == atom.domains:
                    # The states of all rows side by side: one operation on integers compares two literals
                    # in every state and for every choice of keys.
                    joined = 0
                    for row in rows:
                        joined = joined << width | bits[tuple([row[key] for key in keys])]
                    literals.append((Literal(atom, keys, positive), joined))
    return literals


def _excluding(literals: Sequence[tuple[Literal, int]], length: int) -> Iterator[tuple[Literal, ...]]:
    """Sets of literals that are never all true, though all but one of them are."""
    if length == 1:
        yield from ((literal,) for literal, bits in literals if not bits)
        return
    some = [(literal, bits) for literal, bits in literals if bits]
    for place, (first, one) in enumerate(some):
        if length == 2:
            yield from ((first, second) for second, two in some[place + 1 :] if not one & two)
            continue
        meeting = [(second, two, two & one) for second, two in some[place + 1 :] if two & one]
        for number, (second, two, both) in enumerate(meeting):
            for third, three, _ in meeting[number + 1 :]:
                # `two & three`: otherwise these two exclude each other without the first, and the clause is
                # not minimal.
                if not both & three and two & three:
                    yield first, second, third


def _is_informative(literals: Sequence[Literal]) -> bool:
    """Whether the literals could be true together, as far as their atoms show, and few are comparisons."""
    families = [literal.family for literal in literals if literal.family]
    atoms = {(literal.atom, literal.keys) for literal in literals}
    compared = [literal for literal in literals if literal.atom.relation == "<="]
    if len(set(families)) < len(families) or len(atoms) < len(literals) or len(compared) > 1:
        return False
    nones = {literal.family for literal in literals if literal.positive and literal.atom.right == "none"}
    return not nones & {option for literal in literals for option in literal.options}


def _uses_all(domains: tuple[str, ...], literals: Sequence[Literal]) -> bool:
    """Whether all keys are used, and only in one of the two orders of two keys."""
    used = [key for literal in literals for key in literal.keys]
    is_first = len(set(domains)) == len(domains) or used[:1] == [0]
    return set(used) == set(range(len(domains))) and is_first


def merged(clauses: Sequence[Exclusion]) -> list[Exclusion]:
    """The clauses, with those merged that differ only in the value of one place."""
    groups: dict[tuple[object, ...], list[tuple[Exclusion, Literal]]] = {}
    for clause in clauses:
        groups.setdefault(_but_one_value(clause), []).append((clause, _value(clause)))
    merged_clauses = []
    for group in groups.values():
        clause, literal = group[0]
        if len(group) > 1:
            values = ", ".join(other.atom.right for _, other in group)
            atom = replace(literal.atom, relation="in", right=f"{{ {values} }}", is_value=False)
            literals = [replace(each, atom=atom) if each is literal else each for each in clause.literals]
            clause = Exclusion(clause.domains, tuple(literals))
        merged_clauses.append(clause)
    return merged_clauses


def _value(clause: Exclusion) -> Literal:
    """The last literal that is a value of a place, else the first."""
    return next((each for each in reversed(clause.literals) if each.atom.is_value), clause.literals[0])


def _but_one_value(clause: Exclusion) -> tuple[object, ...]:
    """The common part of clauses that differ only in a value."""
    literal = _value(clause)
    if not literal.atom.is_value:
        return (clause,)
    others = frozenset([each for each in clause.literals if each is not literal])
    return clause.domains, others, literal.family, literal.keys
