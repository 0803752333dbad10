"""Operators that a module defines for what TLA+ lacks; a module has those that it uses."""

from __future__ import annotations

import re
from types import MappingProxyType

# Each uses earlier ones only, and none a name that a module declares: they come before all of these.
_TEXT = r"""
\* An option is a sequence of at most one item.
\* @type: () => Seq(a);
None == <<>>

\* @type: a => Seq(a);
Some(item) == <<item>>

\* @type: Set(a) => Set(Seq(a));
OptionOf(S) == {None} \union {Some(item) : item \in S}

Min(m, n) == IF n < m THEN n ELSE m

Max(m, n) == IF n > m THEN n ELSE m

SetMin(S) == CHOOSE m \in S : \A n \in S : m <= n

SetMax(S) == CHOOSE m \in S : \A n \in S : n <= m

\* The sum of the values of a function: natural numbers, counted, so that no recursion is needed.
\* @type: (a -> Int) => Int;
SumOf(f) == Cardinality(UNION {{x} \X (1..f[x]) : x \in DOMAIN f})

\* The sum of the values of a function, which may be negative.
\* @type: (a -> Int) => Int;
SumOfInts(f) ==
    Cardinality(UNION {{x} \X (1..f[x]) : x \in DOMAIN f})
      - Cardinality(UNION {{x} \X (1..(-f[x])) : x \in DOMAIN f})

\* @type: (Seq(a), Int) => Seq(a);
Prefix(s, n) == SubSeq(s, 1, n)

\* @type: (Seq(a), Int) => Seq(a);
Suffix(s, n) == SubSeq(s, n + 1, Len(s))

\* @type: Seq(a) => Set(a);
Items(s) == {s[i] : i \in DOMAIN s}

SeqsUpTo(S, n) == UNION {[1..size -> S] : size \in 0..n}

BagsUpTo(S, n) == {b \in UNION {[items -> 1..n] : items \in SUBSET S} : BagCardinality(b) <= n}

\* A partial map is a set of pairs; these are the ones with just the keys S.
MapsOf(S, T) == {{[key |-> k, value |-> f[k]] : k \in S} : f \in [S -> T]}

PartialMaps(S, T) == UNION {MapsOf(keys, T) : keys \in SUBSET S}
"""
_NAME = re.compile(r"^(\w+).* ==", re.MULTILINE)
HELPERS = MappingProxyType({_NAME.findall(block)[0]: block for block in _TEXT.strip().split("\n\n")})
MODULES = ("Bags", "Variants")  # extended where they are used


class Helpers:
    """The helpers and modules that a module uses."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def use(self, name: str) -> str:
        """The name of a helper or module, which is then there with those that it needs."""
        if name not in self._used:
            self._used.add(name)
            for other in re.findall(r"\w+", HELPERS.get(name, "")):
                if other in HELPERS:
                    self.use(other)
            if name == "BagsUpTo":
                self.use("Bags")
        return name

    @property
    def modules(self) -> list[str]:
        """The modules to extend, beside those of every spec."""
        return [name for name in MODULES if name in self._used]

    @property
    def lines(self) -> list[str]:
        """The definitions of the helpers."""
        return [
            line for name, block in HELPERS.items() if name in self._used for line in (*block.split("\n"), "")
        ]
