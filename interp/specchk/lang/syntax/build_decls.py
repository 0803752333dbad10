"""From grammar rules to declarations, models and scenarios (see lang/syntax/build.py)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any as Child

from lark import Token

from specchk.lang.syntax import decls, tree
from specchk.lang.syntax.build import Extent, Statements, group, joined, leaf, present


def _conjoined(kind: Callable[..., Child], *leading: str) -> Child:
    """The rule for a list of conjuncts, which may have a name."""

    def rule(self: Statements, at: Extent, c: list[Child]) -> Child:
        *name, (lets, conjuncts) = c
        return kind(self.span(at), *leading, *map(str, name), lets, conjuncts)

    return rule


def _with_params(kind: Callable[..., Child]) -> Child:
    def rule(self: Statements, at: Extent, c: list[Child]) -> Child:
        return kind(self.span(at), str(c[0]), c[1] or (), c[2])

    return rule


def _of_file(kind: Callable[..., Child]) -> Child:
    """The rule for a line that names another file, and gives values to some of its names."""

    def rule(self: Statements, at: Extent, c: list[Child]) -> Child:
        return kind(self.span(at), c[0], str(c[1]) if c[1] is not None else c[0][-1], present(c[2:]))

    return rule


def _tagged(tag: str, rule: Child) -> Child:
    """The rule for a line of a view, with its place in the view."""
    return lambda self, at, c: (tag, rule(self, at, c))


def _expectation(kind: str) -> Child:
    def rule(self: Statements, at: Extent, c: list[Child]) -> Child:
        # Name and number are optional, each by itself, so positions among the children do not decide.
        name = next((child for child in c if isinstance(child, tree.Name)), None)
        number = next((int(child) for child in c if isinstance(child, Token)), None)
        return decls.Expect(self.span(at), kind, name, number)

    return rule


class Builder(Statements):
    """The complete builder: declarations here; statements, types and expressions in its base classes."""

    init = _conjoined(decls.Init)
    assume = _conjoined(decls.Assume)
    invariant = _conjoined(decls.Property, "invariant")
    step_invariant = _conjoined(decls.Property, "step invariant")
    reachable = _conjoined(decls.Property, "reachable")
    liveness = _conjoined(decls.Property, "liveness")
    constraint = _conjoined(decls.Property, "constraint")
    expect_holds = _expectation("holds")
    expect_violates = _expectation("violates")
    expect_deadlock = _expectation("deadlock")
    expect_undefined = _expectation("undefined")
    expect_unreachable = _expectation("unreachable")
    expect_states = _expectation("states")
    expect_transitions = _expectation("transitions")
    expect_depth = _expectation("depth")
    header = leaf(decls.Header)
    path = group
    import_ = _of_file(decls.Import)
    refines = _of_file(decls.Refines)
    extends = leaf(decls.Extends)
    sort = leaf(decls.Sort)
    const = leaf(decls.Const)
    typedecl = leaf(decls.TypeDecl)
    # One declaration: a variable with an initial value, with none, or (`var_choice`) with a set of them.
    var_initial = leaf(partial(decls.Var, choices=None))
    var_open = leaf(partial(decls.Var, initial=None, choices=None))
    action = _with_params(decls.Action)
    helper = _with_params(decls.Helper)
    params = group
    param = leaf(decls.Param)
    def_params = group

    def operator_param(self, at: Extent, c: list[Child]) -> Child:
        return decls.OperatorParam(self.span(at), str(c[0]), tuple(c[2:-1]), c[-1])

    deadlock = leaf(decls.DeadlockOk)
    fair = leaf(decls.Fair, False)
    strong_fair = leaf(decls.Fair, True)
    fair_conditions = group
    fair_either = leaf(lambda at, *actions: decls.FairEither(at, (), actions))
    fair_each = leaf(decls.FairEither, rest=1)
    fair_action = leaf(decls.FairAction, rest=1)
    names = group
    model_same = leaf(partial(decls.Model, items=()))
    bindings = group
    binding = leaf(decls.ModelBinding)
    only_actions = leaf(decls.Selection, "actions")
    only_properties = leaf(decls.Selection, "properties")
    ignored_variables = leaf(decls.Selection, "ignore")
    expectations = group
    scenario_line = group
    assert_ = leaf(decls.Assert)
    view_log = _tagged("log", leaf(decls.Shown, "log"))
    view_mark = _tagged("mark", leaf(decls.Shown))
    view_label = _tagged("label", leaf(decls.Shown))
    view_hide = _tagged("hide", lambda self, at, c: c[0])

    def var_choice(self, at: Extent, c: list[Child]) -> Child:
        return decls.Var(self.span(at), str(c[0]), c[1], None, c[2])

    def conjuncts(self, _: Extent, c: list[Child]) -> Child:
        lets = tuple(child for child in c if isinstance(child, decls.Let))
        return lets, tuple(child for child in c if not isinstance(child, decls.Let))

    def def_(self, at: Extent, c: list[Child]) -> Child:
        lets, value = c[4]
        return decls.Def(self.span(at), str(c[0]), c[1] or (), c[2], lets, value, c[3])

    def def_body(self, _: Extent, c: list[Child]) -> Child:
        return tuple(c[:-1]), c[-1]

    def model(self, at: Extent, c: list[Child]) -> Child:
        return decls.Model(self.span(at), str(c[0]), c[1], joined(c[2:]))

    def model_line(self, _: Extent, c: list[Child]) -> Child:
        return joined(c)

    def scenario(self, at: Extent, c: list[Child]) -> Child:
        return decls.Scenario(self.span(at), str(c[0]), c[1], joined(c[2:]))

    def take_step(self, at: Extent, c: list[Child]) -> Child:
        call = tree.CallExpr(self.span(at), c[0], c[1] or ())
        return decls.TakeStep(self.span(at), call, c[2], refused=False)

    def refused_step(self, at: Extent, c: list[Child]) -> Child:
        call = tree.CallExpr(self.span(at), c[0], c[1] or ())
        return decls.TakeStep(self.span(at), call, None, refused=True)

    def view_arrow(self, at: Extent, c: list[Child]) -> Child:
        params = tuple(str(name) for name in c[1:-2] if name is not None)
        return ("arrow", decls.Arrow(self.span(at), str(c[0]), params, c[-2], c[-1]))

    def view(self, at: Extent, c: list[Child]) -> Child:
        logs, marks, labels, hidden, arrows = (
            tuple(item for kind, item in c[2:] if kind == tag)
            for tag in ("log", "mark", "label", "hide", "arrow")
        )
        return decls.View(self.span(at), str(c[0]), c[1], logs, marks, labels, joined(hidden), arrows)
