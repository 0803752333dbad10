"""The check of a model's `ignore` lines: no constraint and no temporal property may depend on them.

Of states that differ in ignored variables only the first is searched.  So a step may lead to a state that is
skipped, in whose place another one is: a path of the search is a behaviour, but a loop of it need not be.
And a constraint has to hold for all states that are searched as one, or for none of them.

Not here: what engines and exports refuse, and whether ignored variables decide anything (`ir/ignored`).
"""

from __future__ import annotations

from collections.abc import Iterator

from specchk.ir.footprint import of_property
from specchk.ir.program import Program, nowhere
from specchk.lang.text.diagnostics import Diagnostic, SpecError

_SELECT = "select others (`properties ...`, --property), or declare a model of its own for this one"


def check_ignored(program: Program) -> None:
    """Raise `SpecError` where variables cannot be ignored."""
    if program.ignored:
        place = program.ignored_at or nowhere(program)
        if refused := [Diagnostic("S513", message, place, hint) for message, hint in _refused(program)]:
            raise SpecError(refused)


def _refused(program: Program) -> Iterator[tuple[str, str]]:
    if len(program.ignored) == len(program.variables):
        yield "this model ignores every variable, so that all states are one", "leave a variable"
    for prop in program.constraints:
        for slot in sorted(of_property(prop).reads & set(program.ignored)):
            name = program.variables[slot].name
            message = f"the constraint `{prop.name}` reads `{name}`, which this model ignores"
            yield message, f"do not ignore `{name}`"
    for claim in program.temporal:
        yield (
            f"`{claim.name}` is about behaviours, and not checked by a model that ignores variables",
            _SELECT,
        )
