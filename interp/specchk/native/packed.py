"""The step graph of a program, by compiled code: the reference engine's, state by state and step by step.

States are packed, in a table of Python's, numbered as `search.liveness.explored` numbers them.  Only what
compiled code cannot decide is left to the reference stepper: predicates, constraints, and replay.
"""

from __future__ import annotations

import ctypes
import struct
from sys import byteorder

from specchk.ir.program import Property
from specchk.ir.types import Room
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.initial import initial_states
from specchk.meaning.values import State
from specchk.native.compiler import load_labels
from specchk.native.kernel.labels import COUNT, CUT, OVERFLOW, TRUE, UNDEFINED, judged_predicates
from specchk.native.machine.frames import most_successors
from specchk.native.machine.layout import NoRoom, layout_of
from specchk.native.machine.rooms import with_room
from specchk.native.memory import Region, Words
from specchk.search.liveness.explored import Look, Truths
from specchk.search.liveness.graph import EVERY, StepGraph

OUTSIDE = -1
MAX_UNPACKED = 1 << 20  # states that are kept unpacked, too


class PackedExplored:
    """States and steps, found breadth first."""

    def __init__(self, fair: FairSteps, room: Room) -> None:
        program = with_room(fair.program, room)
        self.fair = fair
        self.graph = StepGraph()
        self.layout = layout_of(program)
        self.size = 8 * self.layout.words
        self._format = struct.Struct(f"={self.layout.words}Q")
        self._kernel = load_labels(program, self.layout)
        self._points = len(fair.stepper.counts)
        self._room = most_successors(program) + 1
        self._packed: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self._labels: dict[int, int] = {}
        self._unpacked: dict[int, State] = {}
        self._predicates = {prop: at for at, prop in enumerate(judged_predicates(program))}
        self._truths = bytearray()  # of each state, of each predicate
        for state in initial_states(program):
            self._number(self._format.pack(*self.layout.pack(state)), -1, 0)
        self.graph.initial = len(self._packed)

    def state(self, number: int) -> State:
        """A state by its number."""
        found = self._unpacked.get(number)
        if found is None:
            found = self._state_of(self._packed[number])
            if len(self._unpacked) < MAX_UNPACKED:
                self._unpacked[number] = found
        return found

    def truths(self, prop: Property) -> Truths:
        """Whether a predicate is true in a state; None where the reference has to decide."""
        at, width, known = self._predicates.get(prop), len(self._predicates), self._truths

        def truth(number: int) -> bool | None:
            found = known[number * width + at] if at is not None else UNDEFINED
            return None if found == UNDEFINED else found == TRUE

        return truth

    def run(self, look: Look) -> None:
        """Explore everything."""
        graph, stride = self.graph, self.size + 8
        labelled, judged = self._kernel.call["labelled"], self._kernel.call["judged"]
        truths = Words(len(self._predicates))
        # Regions get pages when they are used.
        out = Region(stride * self._room)
        try:
            counts, cuts = Words(self._points), Words(OVERFLOW + 1)
            before = ctypes.create_string_buffer(self.size)
            here = ctypes.addressof(before)
            for number, packed in enumerate(self._packed):  # grows while it is walked
                if number % EVERY == 0:
                    look(number, len(graph.target), len(self._packed) - number)
                before.raw = packed
                judged(here, truths.address, counts.address, cuts.address)
                self._truths += bytes(truths.read(0, len(self._predicates)))
                labelled(here, out.address, counts.address, cuts.address)
                if cuts[OVERFLOW]:
                    raise NoRoom("a set of the step graph")
                # Without a sign in the word: the position of an undefined action is far above any count.
                count = cuts[COUNT]
                if count > self._room:
                    self._undefined()
                else:
                    self._steps(number, packed, bytes(out.view(0, stride * count)), cuts[CUT])
        finally:
            out.release()

    def _undefined(self) -> None:
        """A state with an undefined step has none, and owes everything (`FairSteps.outgoing`)."""
        self.graph.start.append(len(self.graph.target))
        self.graph.enabled.append(self.fair.all)
        self.graph.cut.append(self.fair.all)

    def _steps(self, number: int, packed: bytes, found: bytes, cut: int) -> None:
        graph, size, level = self.graph, self.size, self.graph.level[number] + 1
        steps: dict[tuple[int, int], None] = {}
        taken = 0
        for at in range(0, len(found), size + 8):
            after = found[at : at + size]
            if after == packed:
                continue
            mask = int.from_bytes(found[at + size : at + size + 8], byteorder)
            reached = self._number(after, number, level)
            if reached == OUTSIDE:
                cut |= mask
            else:
                taken |= mask
                steps[reached, mask] = None
        for reached, mask in steps:
            graph.target.append(reached)
            graph.label.append(self._label(mask))
        graph.start.append(len(graph.target))
        graph.enabled.append(taken | cut)
        graph.cut.append(cut & ~taken)

    def _number(self, packed: bytes, parent: int, level: int) -> int:
        found = self._numbers.get(packed)
        if found is None:
            if self.fair.program.constraints and not self.fair.is_inside(self._state_of(packed)):
                found = self._numbers[packed] = OUTSIDE
                return found
            found = self._numbers[packed] = len(self._packed)
            self._packed.append(packed)
            self.graph.parent.append(parent)
            self.graph.level.append(level)
        return found

    def _state_of(self, packed: bytes) -> State:
        return self.layout.unpack(self._format.unpack(packed))

    def _label(self, mask: int) -> int:
        if mask not in self._labels:
            self._labels[mask] = len(self.graph.masks)
            self.graph.masks.append(mask)
        return self._labels[mask]
