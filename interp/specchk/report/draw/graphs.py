"""Graphs in DOT: the states of a small model, which action enables which, a trace as a chain."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from specchk.core.graph import StateGraph
from specchk.core.values import State
from specchk.core.verdict import Trace
from specchk.ir.program import Program
from specchk.report.diff import changes, parts

_HEAD = (
    '  graph [bgcolor="white", rankdir=TB];\n'
    '  node [shape=box, style="rounded,filled", fillcolor="#f4f6fa", color="#888888", '
    'fontname="Helvetica", fontsize=10];\n'
    '  edge [fontname="Helvetica", fontsize=9, color="#555555", arrowsize=0.7];'
)


def states_dot(graph: StateGraph) -> str:
    """Every state with its whole value, one cluster a level, edges labelled by actions."""
    lines = ["digraph states {", _HEAD]
    for level in range(max(graph.levels, default=-1) + 1):
        members = [index for index, found in enumerate(graph.levels) if found == level]
        lines.append(f'  subgraph cluster_{level} {{ label="level {level + 1}"; color="#dddddd"; fontsize=9;')
        lines += [
            f"    s{index} [label=<{_state(graph.program, graph.states[index])}>];" for index in members
        ]
        lines.append("  }")
    labels: dict[tuple[int, int], list[str]] = {}
    for edge in graph.edges:
        labels.setdefault((edge.source, edge.target), []).append(edge.label)
    for (source, target), found in labels.items():
        text = "<BR/>".join(escape(label) for label in found)
        lines.append(f"  s{source} -> s{target} [label=<{text}>];")
    return "\n".join([*lines, "}"]) + "\n"


def _state(program: Program, state: State) -> str:
    return "".join(
        f'{escape(name)} = {escape(value)}<BR ALIGN="LEFT"/>' for name, value in parts(program, state)
    )


def actions_dot(program: Program, enables: Mapping[tuple[int, int], int]) -> str:
    """An edge from an action to each that it can enable, with how many steps do."""
    lines = ["digraph actions {", _HEAD]
    lines += [f'  a{index} [label="{action.name}"];' for index, action in enumerate(program.actions)]
    for (source, target), count in enables.items():
        lines.append(f'  a{source} -> a{target} [label="{count}"];')
    return "\n".join([*lines, "}"]) + "\n"


def trace_dot(program: Program, trace: Trace) -> str:
    """A trace as a chain: the first state whole, then what each step changed."""
    lines = ["digraph trace {", _HEAD, f"  s0 [label=<{_state(program, trace.initial)}>];"]
    before = trace.initial
    for number, step in enumerate(trace.steps, 1):
        found = changes(program, before, step.state)
        text = "".join(
            f'{escape(c.path)}: {escape(c.before)} → {escape(c.after)}<BR ALIGN="LEFT"/>' for c in found
        )
        lines.append(f"  s{number} [label=<{text or 'nothing changes'}>];")
        lines.append(f"  s{number - 1} -> s{number} [label=<{number}: {escape(str(step))}>];")
        before = step.state
    return "\n".join([*lines, "}"]) + "\n"
