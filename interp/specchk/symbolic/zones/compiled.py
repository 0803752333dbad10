"""Expansion of zones by kernels: equivalent to `expand`, the reference in Python.

Decision trees are mirrored in an array (`TreeCode`), node by node as a walk reaches them; a place where no
run was recorded stops the kernel, a run is recorded there (`trees`), and the walk continues.  A zone with
sums, an undefined step, a state that may have no steps, numbers beyond `kernels.matrices.CAP`: whatever a
kernel refuses is left to Python, before anything is counted.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from specchk.meaning.paths import Rows
from specchk.symbolic.kernels import walking
from specchk.symbolic.kernels.loading import Kernels, compiled
from specchk.symbolic.kernels.matrices import CAP
from specchk.symbolic.recording import trees
from specchk.symbolic.recording.trees import Classes, Recorder, Tree, TreeNode, TreeWalker
from specchk.symbolic.zones.controls import Control
from specchk.symbolic.zones.images import Buffer, Images, Start
from specchk.symbolic.zones.leaves import Checks, Effect, Leaf, PredicateValue, Question
from specchk.symbolic.zones.zones import Zone

WORK = 1 << 16  # words for the matrices of a walk,
LARGEST_WORK = 1 << 22  # and at most; a zone that needs more is left to Python


class TreeCode:
    """Decision trees as nodes in an array; see `kernels.walking`."""

    def __init__(self, recorder: Recorder) -> None:
        self.nodes = Buffer(1 << 12)
        self.leaves = Buffer(1 << 10)
        self.hit = Buffer(1 << 10)  # the leaves that were reached: their count, and which
        self.of: list[Leaf] = []
        self._recorder = recorder
        self._used = 1  # 0 is no node
        self._places: dict[int, tuple[TreeNode, int]] = {}  # of each child: its node, and the answer

    def top(self, tree: Tree) -> int:
        """The position of a tree's first child."""
        if not tree.top.place:
            self._enter(tree.top)
            self._link(tree.top.place + walking.CHILD)
        return tree.top.place + walking.CHILD

    def record(self, tree: Tree, child: int, classes: Classes, rows: Rows) -> None:
        """Record the continuation after an answer, as taken by a zone."""
        node, side = self._places[child]
        if node.after[side] is None:
            self._recorder.record(tree, (node, side), classes, rows)
        self._link(child)

    def take_hits(self) -> list[tuple[Leaf, int]]:
        """The number of times that leaves were reached since the last call."""
        hit, leaves = self.hit.words, self.leaves.words
        found = []
        for number in hit[1 : 1 + hit[0]]:
            found.append((self.of[number], leaves[number * walking.LEAF + 1]))
            leaves[number * walking.LEAF + 1] = 0
        hit[0] = 0
        return found

    def _enter(self, node: TreeNode) -> None:
        place = self._used
        self._used += walking.CHILD + len(node.after)
        self.nodes.hold(self._used)
        node.place = place
        self.nodes.words[place : place + walking.CHILD] = array("q", _code_of(node))
        for side in range(len(node.after)):
            self._places[place + walking.CHILD + side] = node, side

    def _link(self, child: int) -> None:
        """Copy the records below a child to the array."""
        left = [child]
        while left:
            place = left.pop()
            node, side = self._places[place]
            after = node.after[side]
            if isinstance(after, TreeNode):
                if not after.place:
                    self._enter(after)
                    left += [after.place + walking.CHILD + answer for answer in range(len(after.after))]
                self.nodes.words[place] = after.place
            elif after is not None:
                self.nodes.words[place] = -1 - self._number(after)

    def _number(self, leaf: Leaf) -> int:
        if leaf.number < 0:
            leaf.number = len(self.of)
            self.of.append(leaf)
            self.leaves.hold(len(self.of) * walking.LEAF)
            self.hit.hold(len(self.of) + 1)
            self.leaves.words[leaf.number * walking.LEAF] = _kind_of(leaf)
        return leaf.number


def _code_of(node: TreeNode) -> tuple[int, int, int, int]:
    match node:
        # A bound that is too large for kernels is refused, like a definition.
        case trees.Ask(i=i, j=j, bound=bound) if abs(bound) <= CAP:
            return walking.ASK, i, j, bound
        case trees.Alternative():
            return walking.ALTERNATIVE, len(node.after), 0, 0
        case trees.Fresh():
            return walking.FRESH, 0, 0, 0
    return (walking.TOP if node.up is None else walking.DEFINE), 0, 0, 0


def _kind_of(leaf: Leaf) -> int:
    match leaf:
        case Effect():
            return walking.FAULT if leaf.after is None else walking.STEP
        case PredicateValue(value=bool(value)):
            return walking.YES if value else walking.NO
        case PredicateValue():
            return walking.UNDEFINED
    return walking.CUT if leaf.cuts else walking.IDLE


class Plan:
    """Trees that are walked with a zone, in order: those of questions, and of instances."""

    __slots__ = ("address", "decided", "questions", "trees", "words")

    def __init__(self, code: TreeCode, questions: Checks, instances: Sequence[Tree] | None = None) -> None:
        self.questions = questions
        self.trees = [*[tree for _, tree in questions], *(instances or ())]
        self.decided: frozenset[str] = frozenset()
        head = [len(self.trees)]
        places: list[int] = []
        for number, tree in enumerate(self.trees):
            # Of a step, the first finding of a question is enough.
            is_asked = number < len(questions)
            flags = _flags_of(questions[number][0], first=instances is None) if is_asked else 0
            # Places follow the trees; a tree of all places has none.
            at = 0 if tree.places is None else 1 + walking.PLANNED * len(self.trees) + len(places)
            head += [code.top(tree), at, flags]
            places += [] if tree.places is None else [len(tree.places), *tree.places]
        self.words = array("q", [*head, *places])
        self.address = self.words.buffer_info()[0]

    def skip(self, decided: frozenset[str]) -> None:
        """Leave out the questions that are already decided."""
        for number, (question, _) in enumerate(self.questions):
            at = 1 + walking.PLANNED * number + 2
            skipped = walking.SKIPPED if question.last in decided else 0
            self.words[at] = self.words[at] & ~walking.SKIPPED | skipped
        self.decided = decided


def _flags_of(question: Question, *, first: bool) -> int:
    """The flags of a question's results: its first finding, or one failure and each undefined case."""
    flags = walking.WANTED if question.wanted else 0
    if first:
        return flags | walking.ENDS_WANTED | walking.ENDS_UNDEFINED
    return flags if question.kind == "reached" else flags | walking.ENDS_WANTED


class PlanWalk:
    """A walk over a plan's trees, and its results."""

    def __init__(self, kernels: Kernels, code: TreeCode, work: Buffer) -> None:
        self._kernels = kernels
        self._code = code
        self.work = work
        self._job = Buffer(walking.STACK + walking.ITEM * (walking.MOST + 2))
        self._ends = Buffer(walking.END * (walking.MOST + 2))
        self._met = Buffer(walking.MOST + 2)
        self.job = self._job.words

    @property
    def ends(self) -> list[int]:
        """The results of the walk, each as `END` numbers."""
        return self._ends.words[: self.job[walking.ENDS] * walking.END].tolist()

    def load(self, zone: Zone) -> bool:
        """Start with a zone; returns False if a kernel refuses it."""
        self.job[walking.CAPACITY] = len(self.work.words)
        status = self._kernels.load(zone.words, self.work.address, self._job.address)
        return status == walking.DONE or (status == walking.FULL and self._grow() and self.load(zone))

    def start_at(self, start: Start, room: int) -> None:
        """Start with part of a zone in the same memory, of which this much is used."""
        job = self.job
        job[walking.BASE_ROWS : walking.BASE_COUNT + 1] = array("q", start)
        job[walking.ROOM] = room
        job[walking.CAPACITY] = len(self.work.words)

    def run(self, plan: Plan) -> bool:
        """Walk all trees of a plan; returns False if a kernel refuses one, or runs out of memory."""
        self._kernels.start(self._job.address)
        while True:
            code = self._code
            status = self._kernels.walk(
                plan.address, code.nodes.address, code.leaves.address, self.work.address, self._job.address,
                self._ends.address, self._met.address,
            )  # fmt: skip
            if status == walking.DONE:
                return True
            if status != walking.UNKNOWN:
                if status == walking.FULL:
                    self._grow()  # for the next zone; Python handles this one
                return False
            item = walking.STACK + (self.job[walking.DEPTH] - 1) * walking.ITEM
            child, a, b, c, d = self.job[item : item + 5]
            code.record(plan.trees[self.job[walking.TREE]], child, *self.known((a, b, c, d)))

    def count(self) -> None:
        """Count the leaves that were reached."""
        code = self._code
        self._kernels.count_hits(code.leaves.address, self._job.address, self._met.address, code.hit.address)

    def known(self, start: Start) -> tuple[Classes, Rows]:
        """The classes and rows known in the part of the zone."""
        rows, size, classes, count = start
        words = self.work.words
        pairs = words[classes : classes + 2 * count].tolist()
        numbers = words[rows : rows + size * size].tolist()
        return list(zip(pairs[::2], pairs[1::2], strict=True)), [
            numbers[row : row + size] for row in range(0, size * size, size)
        ]

    def _grow(self) -> bool:
        if len(self.work.words) >= LARGEST_WORK:
            return False
        self.work.hold(2 * len(self.work.words))
        return True


class CompiledTrees:
    """The trees of an expander, walked by kernels."""

    def __init__(self, recorder: Recorder) -> None:
        self.code, kernels = TreeCode(recorder), compiled()
        work = Buffer(WORK)
        self.walk = PlanWalk(kernels, self.code, work)
        self.steps = PlanWalk(kernels, self.code, work)
        self.images = Images(kernels, work)

    def walked(self, zone: Zone, control: Control, decided: frozenset[str]) -> list[int] | None:
        """The results for a zone in the trees of its control part; None if they are left to Python."""
        plan = control.plan
        if plan is None:
            plan = control.plan = Plan(self.code, control.questions, control.instances)
        if plan.decided is not decided and plan.decided != decided:
            plan.skip(decided)
        walk = self.walk
        if not walk.load(zone) or not walk.run(plan) or walk.job[walking.FAULTS]:
            return None
        return walk.ends

    def stepped(self, effect: Effect, start: Start) -> list[int] | None:
        """The findings in the step invariants for a step from part of a zone; None as for `walked`."""
        if not effect.steps:
            return []
        if effect.plan is None:
            effect.plan = Plan(self.code, effect.steps)
        walk = self.steps
        walk.start_at(start, self.walk.job[walking.ROOM])
        return walk.ends if walk.run(effect.plan) else None

    def count(self, walk: PlanWalk, walker: TreeWalker) -> None:
        """Count the leaves that a walk reached, and its answers."""
        walk.count()
        walker.forks += walk.job[walking.FORKS]
        walker.known += walk.job[walking.KNOWN]
