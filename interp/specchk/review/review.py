"""The review of a spec: one table of what its models, properties and scenarios do not say.

It joins what other rooms find: coverage and vacuity (`search.coverage`), conditions (`explore.conditions`),
mutants of the text, the states of small models, and recordings (`recorded`).  A row is a fact about the
searches that were made; whether it is a mistake is for the reader to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from specchk.explore.conditions import Decided
from specchk.ir.program import Program
from specchk.lang.frontend import CheckedSpec
from specchk.report.conditions import EFFECTS, undecided
from specchk.report.json import run_json
from specchk.report.uncovered import never_taken, never_true
from specchk.review.mutants import SpecMutant, harsh_mutants, mutants
from specchk.review.rows import KINDS, ReviewRow
from specchk.review.searches import (
    Search,
    Searched,
    TriedMutant,
    chosen,
    expected_violations,
    failing_scenarios,
    searched,
    selected,
    tried,
)
from specchk.review.states import MOST_LISTED, ListedStates, listed, missing_values, unchanged

Decide = Callable[[Program], Decided]
MOST_LISTED_MODELS = 6
WIDTH = 60  # characters of a quoted text


class Most(Struct, frozen=True):
    """Limits of a review: states of each search, and changes of the spec that are tried."""

    states: int
    changes: int


class Review(Struct, frozen=True):
    """The rows of a review, and what was searched for them; `limits` are texts on what was not."""

    path: str
    rows: tuple[ReviewRow, ...]
    models: tuple[Searched, ...]
    tried: tuple[TriedMutant, ...]
    limits: tuple[str, ...]

    def with_rows(self, rows: Iterable[ReviewRow], limits: Iterable[str]) -> Review:
        """The review with further rows, in their order among the others."""
        order = list(KINDS)
        every = sorted((*self.rows, *rows), key=lambda row: order.index(row.kind))
        return replace(self, rows=tuple(every), limits=(*self.limits, *limits))


def reviewed(path: str, checked: CheckedSpec, search: Search, decide: Decide, most: Most) -> Review:
    """Review a spec, without recordings; raises `SpecError` for a model that is rejected."""
    models = list(searched(checked, search, most.states))
    small = chosen(models)
    first = sorted(models, key=lambda model: model.outcome.statistics.distinct)[:MOST_LISTED_MODELS]
    few = [model.instance for model in first if model.outcome.statistics.distinct <= MOST_LISTED]
    lists = [states for instance in few if (states := listed(instance)) is not None]
    changes = list(mutants(checked.spec)) if small else []
    results = [tried(path, mutant, small, search) for mutant in spread(changes, most.changes)]
    is_all = len(results) == len(changes)
    found = [
        *_expectations(path, checked, models), *_coverage(path, models),
        *_states(checked, lists, is_all=len(lists) == len(models)),
        *_properties(checked, small, _violated(path, checked, models, results, search) if is_all else None),
        *_unchecked(path, checked, models), *_unnoticed(results), *_idle_steps(checked, lists),
        *_conditions(path, [decide(model.instance.program) for model in small]),
    ]  # fmt: skip
    limits = tuple(_limits(models, small, lists, len(changes) - len(results)))
    return Review(path, (), tuple(models), tuple(results), limits).with_rows(found, ())


def spread(changes: Sequence[SpecMutant], most: int) -> list[SpecMutant]:
    """At most so many of the changes, from all over the spec."""
    if len(changes) <= most:
        return list(changes)
    return [changes[number * len(changes) // most] for number in range(most)]


def quoted(text: str) -> str:
    """A text of a spec on one line, cut."""
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."


def _expectations(path: str, checked: CheckedSpec, models: Sequence[Searched]) -> Iterator[ReviewRow]:
    for model in models:
        decl = checked.spec.models[model.name]
        for problem in model.problems:
            yield ReviewRow(
                "expectation", decl.span.where, f"model `{model.name}`: {problem}",
                f"specchk run {path} --model {model.name}",
            )  # fmt: skip
    for name, reason in failing_scenarios(checked, list(checked.spec.models)).items():
        at = checked.spec.scenarios[name].span.where
        yield ReviewRow("expectation", at, f"scenario `{name}`: {reason}", f"specchk test {path}")


def _coverage(path: str, models: Sequence[Searched]) -> Iterator[ReviewRow]:
    results = [run_json(model.outcome, 0) for model in models]
    is_whole = not any(model.is_cut for model in models)
    for point in never_taken(path, results):
        owner = f" of `{point.owner}`" if point.kind == "branch" else ""
        text = f"no model takes the {point.kind} `{point.label}`{owner}"
        # A fallback in a `match` is there for what does not occur.
        is_certain = is_whole and point.label != "_"
        yield ReviewRow(
            "idle", point.at, text, "correct its guard, add a model that takes it, or remove it", is_certain
        )
    for warning in never_true(path, results):
        at, _, text = warning.partition(": ")
        yield ReviewRow("vacuous", at, text, "add a model in which it is true, or correct it", is_whole)


def _violated(
    path: str,
    checked: CheckedSpec,
    models: Sequence[Searched],
    results: Sequence[TriedMutant],
    search: Search,
) -> set[str]:
    """The properties that a model or a mutant violates; harsh mutants are tried while there are others."""
    violated = expected_violations(models).union(*[result.properties for result in results])
    small = chosen(models)
    wanted = {prop.name for prop in selected(small)}
    for mutant in harsh_mutants(checked.spec) if small else ():
        if wanted <= violated:
            break
        violated |= tried(path, mutant, small, search).properties
    return violated


def _properties(
    checked: CheckedSpec, small: Sequence[Searched], violated: Collection[str] | None
) -> Iterator[ReviewRow]:
    """Properties that nothing violates; `violated` is None if not all changes were tried."""
    for prop in selected(small):
        decl = checked.spec.properties.get(prop.name)
        if (
            violated is not None
            and prop.name not in violated
            and decl is not None
            and decl.span.source is checked.spec.source
        ):
            yield ReviewRow(
                "unviolated", decl.span.where,
                f"`{prop.name}` holds in every model, and in every variant of the spec that was tried",
                "write a model with a flaw that violates it, or make it stronger",
            )  # fmt: skip


def _states(checked: CheckedSpec, lists: list[ListedStates], *, is_all: bool) -> Iterator[ReviewRow]:
    assigned = {
        mutant.changes[0][0].text.split("'")[0].strip()
        for mutant in mutants(checked.spec)
        if mutant.kind == "assignment"
    }
    still = unchanged(lists)
    for name in still:
        if name not in assigned and checked.spec.variables[name].initial is None:
            continue  # chosen at the start, it is a parameter
        at = checked.spec.variables[name].span.where
        yield ReviewRow("constant", at, f"no step changes `{name}`", "add the action that does", is_all)
    for name, member in missing_values(lists):
        if name not in still:
            at = checked.spec.variables[name].span.where
            text = f"`{name}` is never `{member}`"
            yield ReviewRow("constant", at, text, "add the action that makes it so", is_all)


def _unchecked(path: str, checked: CheckedSpec, models: Sequence[Searched]) -> Iterator[ReviewRow]:
    spec = checked.spec
    top = f"{path}:1:1"
    if not models:
        yield ReviewRow(
            "unchecked", top, "there is no model, so nothing is searched", "declare a model with the sizes"
        )
    chosen_names = {name.text for model in models for name in model.instance.model.properties or ()}
    is_all = any(model.instance.model.properties is None for model in models)
    for prop in spec.properties.values():
        if models and not is_all and prop.name not in chosen_names:
            yield ReviewRow(
                "unchecked", prop.span.where, f"no model selects `{prop.name}`", "select it in a model"
            )
    if models and not any(prop.kind != "reachable" for prop in spec.properties.values()) and not spec.refines:
        yield ReviewRow("unchecked", top, "no property states what must never happen", "write an invariant")


def _unnoticed(results: Sequence[TriedMutant]) -> Iterator[ReviewRow]:
    for result in results:
        if result.result == "unnoticed":
            mutant = result.mutant
            what = "without the guard" if mutant.kind == "guard" else "without"
            yield ReviewRow(
                "unnoticed", mutant.span.where,
                f"`{mutant.owner}` {what} `{quoted(mutant.span.text)}`: no property fails",
                "state what it protects as a property, or what it must do as a scenario",
            )  # fmt: skip


def _conditions(path: str, decided: Sequence[Decided]) -> Iterator[ReviewRow]:
    if not decided:
        return
    silent = set.intersection(*[set(model.never_taken) for model in decided])
    for condition in undecided(decided):
        if condition.owner not in silent and condition.span.source.path == path:
            yield ReviewRow(
                "condition", condition.span.where,
                f"in `{condition.owner}` {EFFECTS[condition.effect]}: `{quoted(condition.span.text)}`",
                f"specchk conditions {path} --propose",
            )  # fmt: skip


def _idle_steps(checked: CheckedSpec, lists: Sequence[ListedStates]) -> Iterator[ReviewRow]:
    for name in dict.fromkeys(name for states in lists for name in sorted(states.idle)):
        at = checked.spec.actions[name].span.where
        yield ReviewRow(
            "stutter",
            at,
            f"`{name}` can be taken where it changes nothing",
            "add the guard that is missing, if so",
        )


def _limits(
    models: Sequence[Searched], small: Sequence[Searched], lists: Sequence[ListedStates], left: int
) -> Iterator[str]:
    cut = [model.name for model in models if model.is_cut]
    if cut:
        yield f"not searched to the end: {', '.join(cut)}; what is missing there may be reached"
    if not small:
        yield "no model holds and is searched to the end, so no change of the spec was tried"
    if len(lists) < len(models):
        yield f"states were listed of {len(lists)} of {len(models)} models"
    if left:
        yield f"{left} changes of the spec were not tried (--changes)"
