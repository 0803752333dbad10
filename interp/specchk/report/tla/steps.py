"""The actions of a program, what it takes to take one, and its next steps."""

from __future__ import annotations

from collections.abc import Mapping

from specchk.ir.program import Fairness, Program
from specchk.report.tla.expressions import Expressions, Scope
from specchk.report.tla.layout import (
    Tight,
    Tla,
    at_least,
    atom,
    call,
    definition,
    junction,
    listed,
    quantified,
)
from specchk.report.tla.statements import Relations


class NextRelation:
    """The actions of a program as operators of a module, whose names begin with `prefix`."""

    def __init__(self, program: Program, expressions: Expressions, prefix: str = "") -> None:
        self.program = program
        self.expressions = expressions
        self.types = expressions.types
        self.names = [self.types.names.new(prefix + action.name) for action in program.actions]

    def definitions(self) -> list[tuple[str, ...]]:
        """The operators."""
        relations, made = Relations(self.expressions), []
        for name, action in zip(self.names, self.program.actions, strict=True):
            scope: Scope = {}
            for param in action.params:
                _, scope = self.expressions.bind(param, scope)
            head = f"{name}({', '.join(self.expressions.around(scope))})" if scope else name
            made.append(definition(head, relations.action(action.body, scope)))
        return made

    def each(self, behind: str = "") -> Tla:
        """That an instance of some action is taken; `behind` is a further conjunct."""
        every = [self.instances(index, {}, behind) for index in range(len(self.names))]
        return listed("\\/", every, "FALSE")

    def instances(self, index: int, given: Mapping[int, Tla], behind: str = "") -> Tla:
        """That some instance of an action is taken, with the parameters that are given."""
        taken: list[Tla] = []
        scope: Scope = {}
        bound: list[tuple[str, Tla]] = []
        for at, param in enumerate(self.program.actions[index].params):
            if at in given:
                taken.append(given[at])
                continue
            name, scope = self.expressions.bind(param, scope)
            taken.append(atom(name))
            bound.append((f"{name} \\in ", at_least(self.types.all_of(param.type), Tight.INFIX)))
        text = call(self.names[index], *taken).closed(behind).at(Tight.JUNCTION if behind else Tight.ATOM)
        if all(domain.flat is not None for _, domain in bound) and bound:
            (head, first), rest = bound[0], [name + domain.lines[0] for name, domain in bound[1:]]
            return quantified(f"\\E {head}", atom(", ".join([first.lines[0], *rest])), text)
        for head, domain in reversed(bound):
            text = quantified(f"\\E {head}", domain, text)
        return text

    def fair(self, fair: Fairness) -> list[Tla]:
        """The conditions of a declaration."""
        texts = []
        for row in fair.rows:
            ways = []
            for (index, kept), values in zip(fair.actions, row, strict=True):
                params = self.program.actions[index].params
                given = {
                    at: self.types.value(value, params[at].type)
                    for at, value in zip(kept, values, strict=True)
                }
                ways.append(self.instances(index, given))
            of = junction("\\/", ways, "FALSE")
            texts.append(of.behind(f"{'SF' if fair.strong else 'WF'}_vars(", Tight.ATOM).closed(")"))
        return texts
