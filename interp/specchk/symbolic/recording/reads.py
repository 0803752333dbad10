"""Reads of a control part by the runs of actions and properties: variables, single places of maps.

    action serve(l: Broker, f: Broker):        serve(b1, b2) reads log[b1], epoch[b1], fetch[b2], all of meta
        require meta[epoch[l]].leader == some(l) and fetch[f] != none and leo(log[l]) > 0

Control parts with equal places have equal runs, up to the first comparison.  Equal parts of shapes have the
same number, so that reads are compared as a few numbers, not as large tuples.

Not here: the use of these reads (`zones.controls`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any

from specchk.ir.nodes import Apply, Expr, Local, Var
from specchk.ir.ops import Op
from specchk.ir.program import Action, Program
from specchk.ir.types import Map, cardinality
from specchk.ir.verify import parts
from specchk.ir.walk import roots
from specchk.meaning.texts.places import is_position

Pick = Callable[[Sequence[int]], Any]  # selects, from the numbers of a shape, those of what is read
Read = tuple[int, int | None]  # a variable, and the parameter at which it is read; None for all of it


class PartNumbers:
    """Numbers the parts of the shapes of a program, and selects those that are read."""

    def __init__(self, program: Program) -> None:
        kinds = [variable.type for variable in program.variables]
        self._known: dict[Any, int] = {}
        self._maps = [slot for slot, kind in enumerate(kinds) if isinstance(kind, Map)]
        sizes = [cardinality(kind.key) for kind in kinds if isinstance(kind, Map)]
        # After the number 0 and those of the variables.
        starts = accumulate(sizes, initial=1 + len(kinds))
        self._first = dict(zip(self._maps, starts, strict=False))

    def of(self, shape: Sequence[Any]) -> list[int]:
        """The numbers of a shape's parts: 0, one for each variable, and one for each place of a map."""
        known = self._known
        numbers = [0, *[known.setdefault(part, len(known)) for part in shape]]
        for slot in self._maps:
            numbers += [known.setdefault(part, len(known)) for part in shape[slot]]
        return numbers

    def variables(self, slots: Iterable[int]) -> Pick:
        """A selector of the numbers of variables."""
        return itemgetter(0, *[1 + slot for slot in slots])

    def instance(self, action: Action, args: Sequence[Any]) -> Pick:
        """A selector of the numbers of everything that an action with these arguments reads first."""
        reads = {read for root in roots(action.body) for read in _read(root, len(action.params))}
        whole = {slot for slot, at in reads if at is None}
        single = {self._first[slot] + args[at] for slot, at in reads if at is not None and slot not in whole}
        return itemgetter(0, *sorted([1 + slot for slot in whole]), *sorted(single))


def _read(expr: Expr, params: int) -> Iterator[Read]:
    match expr:
        case Apply(op=Op.MAP_GET, args=(Var(primed=False, type=Map() as kind) as base, Local() as key)):
            # Parameters are the first local names; a key that is not a position may have no place in the map.
            if key.slot < params and is_position(kind.key, key.type):
                yield base.slot, key.slot
                return
        case Var():
            yield expr.slot, None
    for part in parts(expr):
        yield from _read(part, params)
