"""The parts of a state that pictures show: lanes, logs, marks, labels and messages.

They are declared by a spec's `view`s; without one, lanes are the elements of the sort or enum that most
variables are mapped over, and the log is the first sequence in a lane.  Values are computed here, by the
meaning of the spec, so that the report rooms only draw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from specchk.compile.instantiate import Instance
from specchk.explore.written import value_of
from specchk.ir.nodes import Const, Expr
from specchk.ir.types import Enum, Int, Map, Option, Record, Seq, Sort, Type, of_shape
from specchk.lang.syntax import decls, tree
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State, show, universe
from specchk.search.verdict import Step

Lanes = Sort | Enum  # the type whose values are the lanes
Compiled = tuple[Callable[[State], Any], Type]  # of an expression
NONE, UNDEFINED = ABSENT = ("none", "undefined")  # texts of labels that have no value
_EPOCH_FIELDS = ("epoch", "leader_epoch", "term")


class Cell(Struct, frozen=True):
    """One record of a log: its text, and the number of its colour (by epoch)."""

    text: str
    color: int


class Marked(Struct, frozen=True):
    """An expression of a view for one lane; `name` is its label."""

    name: str
    lane: str
    value: tree.Expr


class Viewer:
    """Projects states of an instance by the spec's views.

    All views of one spec, those of its `extends` first, are one: arrows, hidden variables,
    labels and marks add up, and the last declaration of how something is shown applies.  A part that is
    undefined in a state, or `none`, is not drawn there.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.program = instance.program
        views = instance.lowering.spec.views
        self.sort = self._sort(views)
        mine = [view for view in views if self.sort is not None and view.sort.full == self.sort.name]
        self._marks = _named((view.lane, item) for view in mine for item in view.marks)
        self._labels = _named((view.lane, item) for view in mine for item in view.labels)
        self._logs = [Marked("log", view.lane, log.value) for view in mine for log in view.logs]
        self._arrows = {arrow.action: arrow for view in mine for arrow in view.arrows}
        self._guessed_log = None if mine else self._first_log()
        hidden = {name.text for view in views for name in view.hidden}
        if self._guessed_log is not None:  # already shown by the cells
            hidden.add(self.program.variables[self._guessed_log].name)
        self.hidden = frozenset(hidden)
        self._evaluator = Evaluator(len(self.program.variables))
        self._known: dict[tuple[int, int], Compiled] = {}

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes' names; none for a spec whose state is not indexed by a sort."""
        return self.sort.members if self.sort is not None else ()

    def _sort(self, views: Sequence[decls.View]) -> Lanes | None:
        sorts = {sort.name: sort for sort in self.program.sorts}
        if views:
            name = views[-1].sort.full
            return sorts[name] if name in sorts else self._enum(name)
        keys = [v.type.key for v in self.program.variables if isinstance(v.type, Map)]
        # Sorts before enums; of equally frequent ones the first, as `Counter` keeps their order.
        counts = Counter(key for kind in (Sort, Enum) for key in keys if isinstance(key, kind))
        return counts.most_common(1)[0][0] if counts else None

    def _enum(self, name: str) -> Enum | None:
        """The declared enum with this name."""
        lowering = self.instance.lowering
        declared = lowering.spec.types.get(name)
        if declared is None:
            return None
        kind = lowering.ground.declared(declared, lowering.spec)
        return kind if isinstance(kind, Enum) else None

    def _first_log(self) -> int | None:
        kinds = [(slot, variable.type) for slot, variable in enumerate(self.program.variables)]
        maps = [(slot, kind) for slot, kind in kinds if isinstance(kind, Map) and self.is_lane_variable(slot)]
        return next((slot for slot, kind in maps if isinstance(kind.value, Seq)), None)

    def is_lane_variable(self, slot: int) -> bool:
        """Whether a variable has one value for each lane."""
        kind = self.program.variables[slot].type
        return isinstance(kind, Map) and kind.key == self.sort

    def log(self, state: State, lane: int) -> tuple[Cell, ...] | None:
        """The records of a lane's log, or None if the spec has no logs."""
        if self._logs:
            value, kind = self._shown(self._logs[-1], state, lane)
            return cells(value, kind) if value is not None else None
        if self._guessed_log is None:
            return None
        kind = of_shape(self.program.variables[self._guessed_log].type, Map)
        items: Any = state[self._guessed_log]
        return cells(items[lane], kind.value)

    def marks(self, state: State, lane: int) -> dict[str, int]:
        """The offsets to mark at a lane's log."""
        offsets = {mark.name: self._shown(mark, state, lane)[0] for mark in self._marks}
        return {name: value for name, value in offsets.items() if isinstance(value, int)}

    def labels(self, state: State, lane: int) -> dict[str, str]:
        """The texts of all labels in a lane, including those without a value (`ABSENT`)."""
        return {label.name: self._text(label, state, lane) for label in self._labels}

    def _text(self, label: Marked, state: State, lane: int) -> str:
        """The value of a label, or the content of an option, as text."""
        try:
            value, kind = self._content(self._in_lane(label, lane), state)
        except Undefined:
            return UNDEFINED
        return NONE if value is None else show(value, kind)

    def _shown(self, item: Marked, state: State, lane: int) -> tuple[Any, Type]:
        """The value, or the content of an option; None if there is nothing to show."""
        return self._run(self._in_lane(item, lane), state)

    def _in_lane(self, item: Marked, lane: int) -> Compiled:
        # By identity, which needs no walk through the tree; the trees live as long as this object.
        key = (id(item.value), lane)
        if key not in self._known:
            assert self.sort is not None
            # The lane is put in as a constant and compiled once for each: a view is evaluated for every
            # state of a trace.
            here = Const(self.sort, item.value.span, lane)
            self._known[key] = self._compiled(item.value, {item.lane: here})
        return self._known[key]

    def _compiled(self, node: tree.Expr, names: dict[str, Expr]) -> Compiled:
        body, locals_ = self.instance.lowering.expression(node, names)
        return self._evaluator.of_state(body, locals_), body.type

    def _run(self, compiled: Compiled, state: State) -> tuple[Any, Type]:
        """As `_shown`, for a compiled expression."""
        # A view describes most states, and a picture is still of use where one part has no value.
        with suppress(Undefined):
            return self._content(compiled, state)
        return None, compiled[1]

    def _content(self, compiled: Compiled, state: State) -> tuple[Any, Type]:
        """As `_run`; raises `Undefined`."""
        function, kind = compiled
        value: Any = function(state)
        if not isinstance(kind, Option):
            return value, kind
        return (value[0] if value else None), kind.item

    def arrow(self, before: State, step: Step) -> tuple[int, int] | None:
        """The lanes from which and to which a step sends a message, if it does.

        The declared arrows; without any `arrow`, from the first lane argument to the second.
        """
        action = next(a for a in self.program.actions if a.name == step.action)
        declared = self._arrows.get(step.action)
        if self._arrows and declared is None:
            return None
        values = [value_of(text, param.type) for text, param in zip(step.args, action.params, strict=True)]
        if declared is not None:
            constants = [Const(p.type, p.span, value) for p, value in zip(action.params, values, strict=True)]
            names: dict[str, Expr] = dict(zip(declared.params, constants, strict=True))
            sides = (declared.source, declared.target)
            ends = [self._run(self._compiled(node, names), before)[0] for node in sides]
        else:
            ends = [v for v, p in zip(values, action.params, strict=True) if p.type == self.sort][:2]
        if len(ends) == 2 and isinstance(ends[0], int) and isinstance(ends[1], int) and ends[0] != ends[1]:
            return ends[0], ends[1]
        return None


def _named(items: Iterable[tuple[str, decls.Shown]]) -> tuple[Marked, ...]:
    """The entries with each name once; the last entry with a name counts."""
    return tuple({item.name: Marked(item.name, lane, item.value) for lane, item in items}.values())


def cells(value: Any, kind: Type) -> tuple[Cell, ...]:
    """A log as cells: from a sequence of records, the end offset of each epoch, or just a length."""
    match kind:
        case Seq():
            draw = _record_cell(kind.item)
            return tuple(draw(item) for item in value)
        case Map(key=Int(), value=Int()):
            return _epoch_cells(value, kind)
        case Int():
            return tuple(Cell(str(offset), 0) for offset in range(value))
    return ()


def _epoch_cells(ends: tuple[int, ...], kind: Map) -> tuple[Cell, ...]:
    drawn: list[Cell] = []
    for epoch, end in zip(sorted(universe(kind.key)), ends, strict=True):
        assert isinstance(epoch, int)
        drawn += [Cell(f"e{epoch}", epoch)] * (end - len(drawn))
    return tuple(drawn)


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
