"""Names of TLA+: those of the spec where possible; never a word of TLA+ or of a module, nor one in use."""

from __future__ import annotations

import re
from collections.abc import Collection

from specchk.report.tla.helpers import HELPERS, MODULES

# Words of the language, and what the extended modules define.
_WORDS = """
    ACTION ASSUME ASSUMPTION AXIOM BY CASE CHOOSE CONSTANT CONSTANTS COROLLARY DEF DEFINE DEFS DOMAIN ELSE
    ENABLED EXCEPT EXTENDS HAVE HIDE IF IN INSTANCE LAMBDA LEMMA LET LOCAL MODULE NEW OBVIOUS OMITTED ONLY
    OTHER PICK PROOF PROPOSITION PROVE QED RECURSIVE STATE SUBSET SUFFICES TAKE TEMPORAL THEN THEOREM
    UNCHANGED UNION USE VARIABLE VARIABLES WITH WITNESS TRUE FALSE BOOLEAN STRING
    Nat Int Seq Len Append Head Tail SubSeq SelectSeq IsFiniteSet Cardinality
    Print PrintT Assert JavaTime TLCGet TLCSet Permutations SortSeq RandomElement Any ToString TLCEval
    IsABag BagToSet SetToBag BagIn EmptyBag BagOfAll BagUnion SubBag BagCardinality CopiesIn Sum
    UNIT Variant VariantTag VariantFilter VariantGetOrElse VariantGetUnsafe
    Init Next Spec Steps Fairness TypeOK InHorizon NoDeadlock View Symmetry vars
"""


def cleaned(name: str) -> str:
    """A spec's name with the characters of TLA+ only, which begins as a name does."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name).strip("_") or "x"
    return plain if plain[0].isalpha() and not plain.startswith(("WF_", "SF_")) else f"n_{plain}"


class TlaNames:
    """The names that a module defines; each is given once."""

    def __init__(self) -> None:
        self._used = {*_WORDS.split(), *HELPERS, *MODULES}

    def new(self, name: str) -> str:
        """A name for the whole module."""
        free = self.local(name, ())
        self._used.add(free)
        return free

    def local(self, name: str, around: Collection[str]) -> str:
        """A name for a part of the module, where the names `around` are bound."""
        plain = free = cleaned(name)
        number = 1
        while free in self._used or free in around:
            number += 1
            free = f"{plain}_{number}"
        return free
