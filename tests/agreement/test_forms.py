"""Forms of expressions that the random specs don't have: the reference, compiled code and the encoding."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from agreement.both import differences, program_of, states_found
from agreement.forms import FORMS, UNENCODABLE, of_state, spec_of
from specchk.ir.program import Program
from specchk.search.engine import Options, Search, explore
from specchk.search.reference import ReferenceEngine
from symbolic.relation import Relation, some_states


def program(kind: str, begun: str, form: str, folder: Path) -> Program:
    found = program_of(spec_of(kind, begun, form), folder)
    assert found is not None
    return found


@pytest.mark.parametrize(("kind", "begun", "form"), FORMS + UNENCODABLE)
def test_compiled_code_reaches_the_states_of_the_reference(
    kind: str, begun: str, form: str, tmp_path: Path
) -> None:
    found = program(kind, begun, form, tmp_path)
    engine = ReferenceEngine(Search(found, Options(symmetry=False)))
    explore(engine)
    assert len(engine.parents) >= 3 * 3 * 8
    assert differences(found) == {}
    assert states_found(found) == set(engine.parents)


@pytest.mark.parametrize(("kind", "begun", "form"), FORMS)
def test_the_encoding_allows_the_steps_of_the_reference(
    kind: str, begun: str, form: str, tmp_path: Path
) -> None:
    found = program(kind, begun, of_state(form), tmp_path)
    relation = Relation(found)
    for state in some_states(found, 100, Random(1))[:2]:
        assert relation.differences(state) == []
