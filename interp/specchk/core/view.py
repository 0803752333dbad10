"""What pictures show of a state: lanes, logs, marks, labels and messages.

A spec's `view` says it; without one, lanes are the elements of the sort that most variables are
mapped over, and the log is the first sequence in a lane.  Values are computed here, by the meaning
of the spec, so that the report rooms only draw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specchk.core.evaluate import Evaluator
from specchk.core.instantiate import Instance
from specchk.core.undefined import Undefined
from specchk.core.values import State, show, universe
from specchk.core.verdict import Step
from specchk.ir.nodes import Const, Expr
from specchk.ir.scope import Scope
from specchk.ir.types import Int, Map, Record, Seq, Sort, Type
from specchk.lang import decls, tree

_EPOCH_FIELDS = ("epoch", "leader_epoch", "term")


@dataclass(frozen=True, slots=True)
class Cell:
    """One record of a log: its text, and the number its colour stands for (its epoch)."""

    text: str
    color: int


class Viewer:
    """Looks at states of an instance the way its view says."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.program = instance.program
        spec = instance.lowering.spec
        self.view: decls.View | None = spec.views[0] if spec.views else None
        self.sort = self._sort()
        self.hidden = frozenset(name.text for name in self.view.hidden) if self.view else frozenset()
        self._evaluator = Evaluator(len(self.program.variables))

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes' names; none for a spec whose state is not per element of a sort."""
        return self.sort.members if self.sort is not None else ()

    def _sort(self) -> Sort | None:
        sorts = {sort.name: sort for sort in self.program.sorts}
        if self.view is not None:
            return sorts.get(self.view.sort.full)
        keys = [v.type.key for v in self.program.variables if isinstance(v.type, Map)]
        counts = Counter(key.name for key in keys if isinstance(key, Sort))
        return sorts[counts.most_common(1)[0][0]] if counts else None

    def is_lane_variable(self, slot: int) -> bool:
        """Whether a variable has one value for each lane."""
        kind = self.program.variables[slot].type
        return isinstance(kind, Map) and kind.key == self.sort

    def log(self, state: State, lane: int) -> tuple[Cell, ...] | None:
        """The records of a lane's log, or None where the spec has no logs."""
        if self.view is not None and self.view.log is not None:
            value, kind = self._value(self.view.log, state, lane)
            return cells(value, kind)
        for slot, variable in enumerate(self.program.variables):
            kind = variable.type
            if self.is_lane_variable(slot) and isinstance(kind, Map) and isinstance(kind.value, Seq):
                items: Any = state[slot]
                return cells(items[lane], kind.value)
        return None

    def marks(self, state: State, lane: int) -> dict[str, int]:
        """Offsets to mark at a lane's log."""
        found = {}
        for mark in self.view.marks if self.view else ():
            value, _ = self._value(mark.value, state, lane)
            if isinstance(value, int):
                found[mark.name] = value
        return found

    def labels(self, state: State, lane: int) -> dict[str, str]:
        """Values to show in a lane."""
        found = {}
        for label in self.view.labels if self.view else ():
            value, kind = self._value(label.value, state, lane)
            found[label.name] = show(value, kind)
        return found

    def _value(self, node: tree.Expr, state: State, lane: int) -> tuple[Any, Type]:
        assert self.view is not None
        assert self.sort is not None
        here = Const(self.sort, node.span, lane)
        return self._evaluate(node, state, {self.view.lane: here})

    def _evaluate(self, node: tree.Expr, state: State, names: dict[str, Expr]) -> tuple[Any, Type]:
        lowering = self.instance.lowering
        lowering.next_local = 0
        body = lowering.lower(node, Scope(lowering.spec, names))
        env: list[Any] = [*state, *state, *([0] * (lowering.next_local + 1))]
        try:
            return self._evaluator.compile(body)(env), body.type
        except Undefined:
            return (), body.type

    def arrow(self, before: State, step: Step) -> tuple[int, int] | None:
        """From which lane to which a step sends something, if it does.

        Without an `arrow` for the action: from its first lane argument to its second.
        """
        action = next(a for a in self.program.actions if a.name == step.action)
        values = [_parse(text, param.type) for text, param in zip(step.args, action.params, strict=True)]
        declared = [arrow for arrow in (self.view.arrows if self.view else ()) if arrow.action == step.action]
        if declared:
            constants = [Const(p.type, p.span, value) for p, value in zip(action.params, values, strict=True)]
            names: dict[str, Expr] = dict(zip(declared[0].params, constants, strict=True))
            ends = [self._lane(node, before, names) for node in (declared[0].source, declared[0].target)]
        else:
            ends = [v for v, p in zip(values, action.params, strict=True) if p.type == self.sort][:2]
        if len(ends) == 2 and isinstance(ends[0], int) and isinstance(ends[1], int) and ends[0] != ends[1]:
            return ends[0], ends[1]
        return None

    def _lane(self, node: tree.Expr, state: State, names: dict[str, Expr]) -> Any:
        value, kind = self._evaluate(node, state, names)
        if isinstance(kind, Sort):
            return value
        return value[0] if value else None


def _parse(text: str, kind: Type) -> Any:
    """The value that `show` wrote as `text`."""
    return next(value for value in universe(kind) if show(value, kind) == text)


def cells(value: Any, kind: Type) -> tuple[Cell, ...]:
    """A log as cells: a sequence of records, the end offset of each epoch, or just a length."""
    match kind:
        case Seq():
            draw = _record_cell(kind.item)
            return tuple(draw(item) for item in value)
        case Map(key=Int()):
            return _epoch_cells(value, kind)
        case Int():
            return tuple(Cell(str(offset), 0) for offset in range(value))
    return ()


def _epoch_cells(ends: tuple[int, ...], kind: Map) -> tuple[Cell, ...]:
    found: list[Cell] = []
    for epoch, end in zip(sorted(universe(kind.key)), ends, strict=True):
        assert isinstance(epoch, int)
        found += [Cell(f"e{epoch}", epoch)] * (end - len(found))
    return tuple(found)


def _record_cell(kind: Type) -> Callable[[Any], Cell]:
    if not isinstance(kind, Record):
        return lambda item: Cell(show(item, kind), item if isinstance(item, int) else 0)
    names = [name for name, _ in kind.fields]
    epoch = next((names.index(name) for name in _EPOCH_FIELDS if name in names), None)

    def cell(item: Any) -> Cell:
        others = [
            show(v, t) for i, ((_, t), v) in enumerate(zip(kind.fields, item, strict=True)) if i != epoch
        ]
        color = item[epoch] if epoch is not None else 0
        text = " ".join(others)
        return Cell(f"{text} e{color}" if epoch is not None else text, color)

    return cell
