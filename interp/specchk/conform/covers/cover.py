"""Covers: a few paths that contain every class, or every edge, of a model's state graph.

`classes`: for each class of steps two of its edges, of those nearest to the start, and for each class
of refusals a state of those nearest to the start that have it.  Paths are shortest ways, so they form
a tree: the deepest classes choose first, and each later one what adds least to the tree.  Two edges,
so that what one of them hides (a value that is right by chance) the other may show.

If the graph is small, tours are added that contain every edge, or every sequence of some edges: the
longest sequences of which there are at most `MOST_SEQUENCES`.  A state of the spec is then reached by many
paths, so state that an implementation remembers of its path, and the projection does not show, has effects.
After the classes of a larger graph a few steps are added (`suffixes`).

`edges`: every edge, by tours alone (`tours`).
`lassos`: loops, several rounds of each (`lassos`).

Invariants: a function of the program alone; every case is a path of the graph from an initial state.
Not here: taking the steps (`runner`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from specchk.conform.covers.cases import MADE_OF_CASES, CaseStep, Probe, Suite, SuiteCase, case_id, label_of
from specchk.conform.covers.graph import ClassGraph, ClassifiedEdge, Refusal, explore
from specchk.conform.covers.lassos import ROUNDS, Lasso, classes_of, lassos
from specchk.conform.covers.suffixes import suffixed
from specchk.conform.covers.tours import MOST_SEQUENCES, Path, Unfolding, tours, unfold
from specchk.ir.program import Program
from specchk.meaning.values import show

EDGES_PER_CLASS = 2
# More than one place: a refusal of an implementation may depend on more than the state of the spec.
PROBES_PER_CLASS = 3


class NoSuchSuite(Exception):
    """A kind of suite that does not consist of cases."""


def build_suite(
    program: Program,
    kind: str = "classes",
    bounds: Sequence[tuple[str, str]] = (),
    max_states: int | None = None,
    sequences: int = MOST_SEQUENCES,
    rounds: int = ROUNDS,
) -> Suite:
    """The suite of a program; `bounds` are its overrides, used only for its name.

    With `max_states` only the part seen from the first states; then it is not complete.  Beside the
    classes at most `sequences` sequences are taken; with 0 only classes.  Lassos have `rounds` rounds.
    """
    if kind not in MADE_OF_CASES:
        raise NoSuchSuite(kind)
    graph = explore(program, max_states, keep_edges=kind != "classes")
    if kind == "lassos":
        return _suite_of_lassos(graph, bounds, lassos(graph), rounds)
    suffixes: list[Path] = []
    if kind == "classes":
        covering, unfolding = _class_paths(graph), unfold(graph, sequences)
        # Of a graph that a limit has cut the classes are all that there is time for.
        if unfolding is None and graph.complete and sequences:
            suffixes = suffixed(graph, covering)
        more = () if unfolding is None else set(tours(unfolding)) - set(covering)
        # Neighbours beside each other, so that shared steps are taken once; and divergences on the
        # short paths of classes are shown by them.
        paths = [*sorted({*covering, *suffixes}), *sorted(more)]
    else:
        unfolding = Unfolding.of(graph, 1)
        paths = list(tours(unfolding))
    return replace(
        _suite(graph, kind, bounds, paths),
        order=0 if unfolding is None else unfolding.order,
        sequences=0 if unfolding is None else unfolding.sequences,
        suffixes=len(suffixes),
    )


def _suite(graph: ClassGraph, kind: str, bounds: Sequence[tuple[str, str]], paths: Sequence[Path]) -> Suite:
    """The suite for some paths, measured by all classes of the graph."""
    program, described = graph.program, graph.classifier
    label = label_of(program.model, bounds)
    return Suite(
        kind, program.model, tuple(bounds), tuple(_case(graph, label, path) for path in paths),
        tuple(described.described(key) for key in graph.classes.keys),
        tuple(described.described_refusal(key) for key in graph.refusals.keys),
        tuple(_probes(graph, paths)), len(graph.states), graph.edges, graph.complete,
    )  # fmt: skip


def _suite_of_lassos(
    graph: ClassGraph, bounds: Sequence[tuple[str, str]], chosen: Sequence[Lasso], rounds: int
) -> Suite:
    """The suite for some lassos, measured by the classes in their loops; only the last round counts."""
    paths = sorted((lasso.path(rounds), len(lasso.loop)) for lasso in chosen)
    whole = _suite(graph, "lassos", bounds, [path for path, _ in paths])
    numbers = {number: at for at, number in enumerate(classes_of(graph, chosen))}
    cases = []
    for case, (_, last_round) in zip(whole.cases, paths, strict=True):
        before = len(case.steps) - last_round
        last = [tuple(numbers[number] for number in classes) for classes in case.classes[before:]]
        cases.append(replace(case, classes=(*[()] * before, *last)))
    # A refusal that no lasso meets is for other suites.
    probed = {number: at for at, number in enumerate(sorted({probe.of for probe in whole.probes}))}
    return replace(
        whole, cases=tuple(cases), classes=tuple(whole.classes[number] for number in numbers),
        probe_classes=tuple(whole.probe_classes[number] for number in probed),
        probes=tuple(replace(probe, of=probed[probe.of]) for probe in whole.probes),
        loops=len(cases), rounds=rounds,
    )  # fmt: skip


def _case(graph: ClassGraph, label: str, path: Path) -> SuiteCase:
    start, edges = path
    actions = graph.program.actions
    steps = tuple(
        CaseStep(actions[edge.action].name, _shown(graph.program, edge), edge.choice) for edge in edges
    )
    classes = tuple(graph.edges_of(edge.source)[edge] for edge in edges)
    return SuiteCase(case_id(label, start, steps), steps, classes, start)


def _shown(program: Program, at: ClassifiedEdge | Refusal) -> tuple[str, ...]:
    params = program.actions[at.action].params
    return tuple(show(arg, param.type) for arg, param in zip(at.args, params, strict=True))


def _probes(graph: ClassGraph, paths: Sequence[Path]) -> Iterator[Probe]:
    """For each class of refusals, the first few places of the cases in which it occurs."""
    left = dict.fromkeys(range(len(graph.refusals.keys)), PROBES_PER_CLASS)
    seen: set[int] = set()
    # A state on several cases' ways is probed in the first of them only.
    for case, (start, edges) in enumerate(paths):
        for step, state in enumerate([start, *(edge.target for edge in edges)]):
            if state in seen:
                continue
            seen.add(state)
            for number, refusal in graph.refused_in(state).items():
                if left[number]:
                    left[number] -= 1
                    name = graph.program.actions[refusal.action].name
                    yield Probe(case, step, name, _shown(graph.program, refusal), number)


class _Tree(Struct):
    """Shortest paths to some states, and edges at their ends; `covered` counts the edges of each class."""

    graph: ClassGraph
    states: set[int] = field(default_factory=set)
    ends: dict[ClassifiedEdge, None] = field(default_factory=dict)
    covered: Counter[int] = field(default_factory=Counter)
    refused: set[int] = field(default_factory=set)

    def cost(self, state: int) -> int:
        """The number of states that a path to a state would add."""
        cost = 0
        while state not in self.states:
            cost += 1
            step = self.graph.first[state]
            if step is None:
                break
            state = step.source
        return cost

    def grow_to(self, state: int) -> None:
        """Add the path to a state."""
        for edge in self.graph.way_to(state):
            if edge.target not in self.states:
                self._enter(edge.target)
                self.covered.update(self.graph.edges_of(edge.source)[edge])
        if self.graph.first[state] is None:
            self._enter(state)

    def _enter(self, state: int) -> None:
        self.states.add(state)
        self.refused.update(self.graph.refused_in(state))

    def has(self, edge: ClassifiedEdge) -> bool:
        """Whether an edge is in the tree."""
        return edge in self.ends or (edge.target in self.states and self.graph.first[edge.target] == edge)

    def grow_by(self, edge: ClassifiedEdge) -> None:
        """Add an edge, with the path to its source."""
        self.grow_to(edge.source)
        # The edge that reached its target first is a branch of the tree of shortest ways. Any other ends its
        # path: there is a shorter way on from its target.
        if self.graph.first[edge.target] == edge:
            self.grow_to(edge.target)
        else:
            self.ends[edge] = None
            self.covered.update(self.graph.edges_of(edge.source)[edge])

    def paths(self) -> list[Path]:
        """The paths to all leaves, with neighbours adjacent."""
        # A path that ends inside another one is a part of it, and not a separate case.
        inner = {edge.source for edge in self.ends}
        inner |= {step.source for state in self.states if (step := self.graph.first[state]) is not None}
        ways = [tuple(self.graph.way_to(state)) for state in self.states - inner]
        ways += [(*self.graph.way_to(edge.source), edge) for edge in self.ends]
        return sorted((path[0].source, path) for path in ways if path)


def _class_paths(graph: ClassGraph) -> list[Path]:
    tree = _Tree(graph)
    depths = graph.depth
    # Deepest first: a long way passes through many classes on the way, so that shallow ones are then there
    # already.
    deepest = sorted(
        range(len(graph.classes.keys)),
        key=lambda number: (-depths[graph.classes.examples[number][0].source], number),
    )
    for number in deepest:
        edges: list[ClassifiedEdge] = graph.classes.examples[number]
        # Of the nearest examples first, so that paths stay shortest; farther ones only where these are too
        # few.
        near = [edge for edge in edges if depths[edge.source] == depths[edges[0].source]]
        for among in (near, edges):
            left = [edge for edge in among if not tree.has(edge)]
            while left and tree.covered[number] < EDGES_PER_CLASS:
                # Greedily the way that adds least: the smallest tree is a Steiner tree, which is NP-hard to
                # find.
                tree.grow_by(min(left, key=lambda edge: tree.cost(edge.source)))
                left = [edge for edge in left if not tree.has(edge)]
    for number, refusals in enumerate(graph.refusals.examples):
        if number not in tree.refused:
            states = [refusal.state for refusal in refusals]
            nearest = [state for state in states if depths[state] == depths[states[0]]]
            tree.grow_to(min(nearest, key=tree.cost))
    return tree.paths()
