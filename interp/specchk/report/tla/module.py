"""The module and the configuration of a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import factorial

from msgspec import Struct

from specchk.ir import nodes
from specchk.ir.footprint import steps_list_horizon
from specchk.ir.program import Clause, Form, Program, Property, Refinement, allows_any_end
from specchk.ir.types import fits, has_horizon, item_of
from specchk.ir.walk import assignments, inside
from specchk.meaning.initial import Draw, DrawMap, Named, Part, Solve, SolveMap, Tested, plan
from specchk.meaning.values import show
from specchk.report.tla.expressions import Expressions, Scope
from specchk.report.tla.layout import (
    Tight,
    Tla,
    at_least,
    atom,
    bracketed,
    call,
    clause,
    compared,
    definition,
    infix,
    junction,
    let,
    listed,
    quantified,
)
from specchk.report.tla.names import TlaNames
from specchk.report.tla.steps import NextRelation
from specchk.report.tla.types import Types
from specchk.search.symmetry import symmetry_of

VARIANTS = """\
---- MODULE Variants ----
\\* Tagged values, for TLC: what specchk uses of Apalache's module of this name.  Apalache has its own.
UNIT == "U_OF_UNIT"
\\* A tuple, of which TLC compares the tags first: values with different tags need not be comparable.
Variant(tag, value) == <<tag, value>>
VariantTag(variant) == variant[1]
VariantGetUnsafe(tag, variant) == variant[2]
====
"""


class Exported(Struct, frozen=True):
    """A module and its configuration, with the name of the module.

    `notes` are what a reader has to know: each is in the module, too.
    """

    name: str
    module: str
    configuration: str
    has_unions: bool
    notes: tuple[str, ...]


def exported(program: Program, name: str, *, symmetry: bool = True) -> Exported:
    """A program in TLA+; raises `SpecError` for what has no form there."""
    return _Module(program, name, symmetry=symmetry).text()


class _Module:
    def __init__(self, program: Program, name: str, *, symmetry: bool) -> None:
        self.program = program
        self.name = name
        self.names = TlaNames()
        self.types = Types(program, self.names)
        self.variables = tuple(self.names.new(variable.name) for variable in program.variables)
        self.expressions = Expressions(self.types, self.variables)
        self.steps = NextRelation(program, self.expressions)
        self.notes: list[str] = []
        self.symmetry = symmetry
        self.config: dict[str, list[str]] = {}  # the sections of the configuration

    def text(self) -> Exported:
        """All parts; those that use a helper come before the helpers are written."""
        parts = [
            self._init(), *self.steps.definitions(), self._next(), self._fairness(),
            self._invariants(), self._step_claims(), self._liveness(), self._witnesses(),
            self._symmetry(wanted=self.symmetry), self._view(),
        ]  # fmt: skip
        body = [line for part in parts if part for line in (*part, "")]
        lines = [f"---- MODULE {self.name} ----", *self._heading(), *self._extends(), ""]
        lines += [*self.types.helpers.lines, *self._declarations(), "", *body[:-1], "===="]
        return Exported(
            self.name,
            "\n".join(lines) + "\n",
            self._configuration(),
            "Variants" in self.types.helpers.modules,
            tuple(self.notes),
        )

    # The beginning

    def _heading(self) -> Iterator[str]:
        program = self.program
        model = f", model {program.model}" if program.model else ""
        yield f"\\* {program.spec}{model}: written by `specchk export-tla` from {program.path}."
        for constant in program.constants:
            yield f"\\* {constant.name} = {show(constant.value, constant.type)}"
        yield from [f"\\* Note: {note}" for note in self.notes]

    def _extends(self) -> list[str]:
        return [", ".join(["EXTENDS Integers, Sequences, FiniteSets, TLC", *self.types.helpers.modules])]

    def _declarations(self) -> list[str]:
        lines = []
        elements = [name for sort in self.program.sorts for name in self.types.elements[sort.name]]
        if elements:
            lines += ["CONSTANTS", *_annotated([(name, "Str") for name in elements]), ""]
        for sort in self.program.sorts:
            members = [atom(name) for name in self.types.elements[sort.name]]
            lines += definition(self.types.sorts[sort.name], bracketed("{", members, "}"))
        lines += self.types.definitions()
        lines += [""] * (bool(lines) and lines[-1] != "")
        kinds = [self.types.annotation(variable.type) for variable in self.program.variables]
        if kinds:
            lines += ["VARIABLES", *_annotated(list(zip(self.variables, kinds, strict=True))), ""]
        return [*lines, *definition("vars", bracketed("<<", [atom(name) for name in self.variables], ">>"))]

    # Behaviour

    def _init(self) -> tuple[str, ...]:
        given = [
            compared(atom(name), "=", self._expr(start.value))
            for name, start in zip(self.variables, self.program.starts, strict=True)
            if start.value is not None
        ]  # fmt: skip
        planned = list(plan(self.program))
        body = self._planned([part for _, part in planned], {}, given)
        return definition("Init", body)

    def _planned(self, parts: Sequence[Part], scope: Scope, done: list[Tla]) -> Tla:
        for number, part in enumerate(parts):
            if isinstance(part, Named):
                name, inner = self.expressions.bind(part.local, scope)
                rest = self._planned(parts[number + 1 :], inner, [])
                return junction(
                    "/\\", [*done, let(name, self.expressions.expr(part.value, scope), rest)], "TRUE"
                )
            done += self._started(part, scope)
        return junction("/\\", done, "TRUE")

    def _started(self, part: Draw | Solve | SolveMap | DrawMap | Tested, scope: Scope) -> list[Tla]:
        """The conjuncts by which a variable gets its values, or the condition."""
        if isinstance(part, Tested):
            return self.expressions.condition(part.condition, scope)
        variable, start = self.program.variables[part.slot], self.program.starts[part.slot]
        name = atom(self.variables[part.slot])
        kind, choices = variable.type, None if start.choices is None else self._expr(start.choices)
        among = choices if choices is not None else self.types.all_of(kind)
        within = [_in(name, among)]
        match part:
            case Draw(among=None):
                return within
            case Draw():
                assert part.among is not None
                is_sure = choices is None and fits(item_of(part.among.type), kind)
                return [_in(name, self.expressions.expr(part.among, scope)), *([] if is_sure else within)]
            case Solve():
                is_sure = choices is None and fits(part.value.type, kind)
                value = self.expressions.expr(part.value, scope)
                return [compared(name, "=", value), *([] if is_sure else within)]
        key, inner = self.expressions.bind(part.key, scope)
        keys = self.types.all_of(part.key.type)
        if isinstance(part, SolveMap):
            value = self.expressions.expr(part.value, inner)
            made = clause([(f"[{key} \\in ", keys), ("|-> ", value)], "]", Tight.ATOM)
            return [compared(name, "=", made), *within]
        items = self.expressions.expr(part.among, inner)
        every = clause([("UNION {", items), (f": {key} \\in ", keys)], "}", Tight.ATOM)
        maps = clause([("[", keys), ("-> ", every)], "]", Tight.ATOM)
        place = Tla((f"{self.variables[part.slot]}[{key}]",))
        each = quantified(f"\\A {key} \\in ", keys, _in(place, items))
        return [_in(name, maps), each, *within]

    def _next(self) -> list[str]:
        tests, lines = self._horizon_tests(), []
        if tests:
            lines += ["\\* A step above a horizon is not taken."]
            lines += [*definition("InHorizon", junction("/\\", tests, "")), ""]
        return [*lines, *definition("Next", self.steps.each(" /\\ InHorizon'" if tests else ""))]

    def _horizon_tests(self) -> list[Tla]:
        """For each variable in which a step may store a number above its horizon, that it has none."""
        slots = {
            assign.slot for action in self.program.actions for assign in assignments(action.body)
            if any(isinstance(node, nodes.Narrow) and has_horizon(node.type) for node in inside(assign.value))
        }  # fmt: skip
        tests = [
            self.types.inside(
                self.program.variables[slot].type, atom(self.variables[slot]), (), horizons=True
            )
            for slot in sorted(slots)
        ]
        return [test for test in tests if test is not None]

    def _fairness(self) -> list[str]:
        """The fairness that a temporal property may assume, and the whole specification."""
        if not self.program.fairness:
            return ["Spec == Init /\\ [][Next]_vars"]
        conditions = [text for fair in self.program.fairness for text in self.steps.fair(fair)]
        lines = definition("Fairness", listed("/\\", conditions, "TRUE"))
        return [*lines, "", "Spec == Init /\\ [][Next]_vars /\\ Fairness"]

    # Properties

    def _invariants(self) -> list[str]:
        kinds = zip(self.program.variables, self.variables, strict=True)
        typed = [self.types.inside(variable.type, atom(name), ()) for variable, name in kinds]
        lines = ["\\* A value outside its declared range is undefined in the spec.", "TypeOK =="]
        lines += ["    " + line for line in listed("/\\", [t for t in typed if t is not None], "TRUE").lines]
        self._configure("INVARIANTS", "TypeOK")
        for prop in self.program.invariants:
            lines += ["", *self._predicate(prop, "INVARIANTS")]
        for prop in self.program.constraints:
            lines += [
                "",
                "\\* The search does not continue from other states.",
                *self._predicate(prop, "CONSTRAINTS"),
            ]
        return [*lines, *self._deadlock()]

    def _predicate(self, prop: Property, section: str) -> tuple[str, ...]:
        name = self.names.new(prop.name)
        self._configure(section, name)
        return definition(name, self.expressions.expr(prop.body, {}))

    def _deadlock(self) -> list[str]:
        """Deadlocks are TLC's where any is allowed or none, and nothing has a horizon; else an invariant."""
        fine, has_horizons = self.program.deadlock_ok, bool(self._horizon_tests())
        is_simple = fine is None and not has_horizons
        self.config["CHECK_DEADLOCK"] = ["TRUE" if is_simple else "FALSE"]
        if is_simple or allows_any_end(self.program):
            return []
        if steps_list_horizon(self.program):
            self._note("deadlocks are not checked: actions try all numbers up to a horizon, not larger ones")
            return []
        lines = ["", *definition("Steps", self.steps.each())]
        allowed = [Tla(("ENABLED Steps",), Tight.NOT)]
        if fine is not None:
            allowed.insert(0, self.expressions.expr(fine.body, {}))
        allowed += [
            at_least(self.expressions.expr(prop.body, {}), Tight.ATOM).behind("~", Tight.NOT)
            for prop in self.program.constraints
        ]
        self._configure("INVARIANTS", "NoDeadlock")
        return [*lines, "", *definition("NoDeadlock", junction("\\/", allowed, ""))]

    def _step_claims(self) -> list[str]:
        lines: list[str] = []
        for prop in self.program.step_invariants:
            name = self.names.new(prop.name)
            self._configure("PROPERTIES", name)
            if isinstance(prop, Refinement):
                lines += [*self._refinement(prop, name), ""]
                continue
            body = self._expr(prop.body).behind("[][", Tight.ATOM).closed("]_vars")
            lines += [*definition(name, body), ""]
        return lines[:-1]

    def _refinement(self, prop: Refinement, name: str) -> list[str]:
        """The other spec's behaviour over what its variables are here: primes apply to definitions, too."""
        abstract = prop.abstract
        if abstract.fairness:
            self._note(
                f"the fairness of `{prop.name}` ({prop.span.where}) is not claimed: TLC cannot check it"
            )
        images = [self.names.new(f"{name}_{variable.name}") for variable in abstract.variables]
        lines = [f"\\* The variables of `{prop.name}`, which this spec refines."]
        for image, value in zip(images, prop.images, strict=True):
            lines += definition(image, self._expr(value))
        steps = NextRelation(abstract, Expressions(self.types, tuple(images)), f"{name}_")
        for own in steps.definitions():
            lines += ["", *own]
        begins, takes, all_ = (self.names.new(f"{name}_{word}") for word in ("Init", "Next", "vars"))
        lines += ["", *definition(begins, self._expr(prop.initial.body))]
        lines += ["", *definition(takes, steps.each()), ""]
        lines += definition(all_, bracketed("<<", list(map(atom, images)), ">>"))
        return [*lines, "", f"{name} == {begins} /\\ [][{takes}]_{all_}"]

    def _liveness(self) -> list[str]:
        lines: list[str] = []
        for prop in self.program.liveness:
            name = self.names.new(prop.name)
            self._configure("PROPERTIES", name)
            lines += [*definition(name, listed("/\\", list(map(self._clause, prop.clauses)), "TRUE")), ""]
        return lines[:-1]

    def _clause(self, clause_: Clause) -> Tla:
        goal = at_least(self.expressions.expr(clause_.goal.body, {}), Tight.ATOM)
        match clause_.form:
            case Form.LEADS_TO:
                assert clause_.trigger is not None
                trigger = at_least(self.expressions.expr(clause_.trigger.body, {}), Tight.ATOM)
                return infix(trigger, "~>", goal, Tight.COMPARED, Tight.ATOM)
            case Form.EVENTUALLY:
                return goal.behind("<>", Tight.NOT)
            case Form.ALWAYS_EVENTUALLY:
                return goal.behind("[]<>", Tight.NOT)
            case Form.EVENTUALLY_ALWAYS:
                return goal.behind("<>[]", Tight.NOT)

    def _witnesses(self) -> list[str]:
        """TLC has no form for a state that should be reached: an invariant that it should violate."""
        lines: list[str] = []
        for prop in self.program.witnesses:
            name = self.names.new(prop.name)
            never = self.names.new(f"{name}_is_never_reached")
            self._note(
                f"to see that `{prop.name}` is reached, check the invariant {never}, which must be violated"
            )
            test = at_least(self.expressions.expr(prop.body, {}), Tight.ATOM)
            lines += [*definition(never, test.behind("~", Tight.NOT)), ""]
        return lines[:-1]

    # The configuration

    def _symmetry(self, *, wanted: bool) -> list[str]:
        """The renamings that specchk searches with, where they are all of some elements of each sort."""
        found = symmetry_of(self.program)[0] if wanted else None
        if found is None:
            return []
        groups, count = [], 1
        for sort in self.program.sorts:
            names = self.types.elements[sort.name]
            moved = [
                n for at, n in enumerate(names) if any(one[sort.name][at] != at for one in found.renamings)
            ]
            if moved:
                whole = atom(self.types.sorts[sort.name])
                of = whole if len(moved) == len(names) else bracketed("{", list(map(atom, moved)), "}")
                groups.append(call("Permutations", of))
                count *= factorial(len(moved))
        if count != len(found.renamings):
            self._note("no symmetry: the constants keep only some of the renamings of these elements")
            return []
        self._configure("SYMMETRY", "Symmetry")
        union = groups[0]
        for group in groups[1:]:
            union = infix(union, "\\union", group, Tight.INFIX, Tight.INFIX)
        return list(definition("Symmetry", union))

    def _view(self) -> list[str]:
        """Of states with the same view, TLC keeps the first."""
        if not self.program.ignored:
            return []
        self._configure("VIEW", "View")
        seen = [atom(name) for slot, name in enumerate(self.variables) if slot not in self.program.ignored]
        return list(definition("View", bracketed("<<", seen, ">>")))

    def _configure(self, section: str, name: str) -> None:
        self.config.setdefault(section, []).append(name)

    def _configuration(self) -> str:
        lines = ["SPECIFICATION Spec"]
        for sort in self.program.sorts:
            for name in self.types.elements[sort.name]:
                self._configure("CONSTANTS", f"{name} = {name}")
        order = ("CONSTANTS", "INVARIANTS", "PROPERTIES", "CONSTRAINTS", "SYMMETRY", "VIEW", "CHECK_DEADLOCK")
        for section in order:
            names = self.config.get(section, [])
            if section in ("SYMMETRY", "VIEW", "CHECK_DEADLOCK"):
                lines += [f"{section} {name}" for name in names]
            elif names:
                lines += [section, *["    " + name for name in names]]
        return "\n".join(lines) + "\n"

    def _note(self, text: str) -> None:
        self.notes.append(text)

    def _expr(self, expr: nodes.Expr) -> Tla:
        """An expression without locals around it."""
        return self.expressions.expr(expr, {})


def _in(item: Tla, items: Tla) -> Tla:
    return compared(item, "\\in", items)


def _annotated(names: Sequence[tuple[str, str]]) -> list[str]:
    """Names with the annotations of their types."""
    lines = []
    for number, (name, kind) in enumerate(names, 1):
        lines += [f"    \\* @type: {kind};", f"    {name}{',' if number < len(names) else ''}"]
    return lines
