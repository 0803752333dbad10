"""A run that holds fits on a screen, whatever the size of its spec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

MANY = 12
LARGE = "\n".join([
    "spec large", "var x : 0..1 = 0",
    *[f"const option_number_{n} : bool = false" for n in range(MANY)],
    *[f"const given_{n} : bool" for n in range(2)],
    "action step():", "    x' = if given_0 and x > 0 then 0 else 1",
    *[f"    let unused_{n} = if x > {n + 1} then 0 else 1" for n in range(MANY)],
    f"    require {' + '.join(f'unused_{n}' for n in range(MANY))} > 0",
    *[f"action never_{n}():\n    require x > {n + 1}\n    x' = 0" for n in range(MANY)],
    *[f"invariant named_property_{n}: x > {n + 1} implies x == 0" for n in range(MANY)],
    "model m:", "    given_0 = true", "    given_1 = true", "",
])  # fmt: skip


@pytest.fixture(autouse=True)
def large(here: Path) -> None:
    (here / "large.spec").write_text(LARGE, encoding="utf-8")


def test_a_run_that_holds_prints_at_most_twenty_lines(specchk: Any) -> None:
    said = specchk("run", "large.spec")
    assert said.code == 0
    lines = said.out.splitlines()
    assert len(lines) <= 20, said.out
    assert "  constants: given_0 = true, given_1 = true; 12 more have their default values" in lines
    assert "  invariants: named_property_0, named_property_1, named_property_2, and 9 more" in lines
    hint = "; --html shows them in the spec, --json lists them"
    assert {f"warning: 12 {fault}{hint}" for fault in (
        "branches are never taken", "actions are never enabled", "antecedents are never true",
    )} <= set(lines)  # fmt: skip


def test_the_json_and_the_page_have_the_rest(specchk: Any, here: Path) -> None:
    report = json.loads(specchk("run", "large.spec", "--json").out)
    assert len(report["constants"]) == len(report["checked"]["invariants"]) + 2 == MANY + 2
    assert len(report["warnings"]) == 3 * MANY
    specchk("run", "large.spec", "--html", "large.html")
    page = (here / "large.html").read_text(encoding="utf-8")
    assert "option_number_11 = false" in page
    assert "named_property_11" in page


def test_three_of_a_kind_are_shown(specchk: Any, here: Path) -> None:
    """Defaults, and warnings."""
    constants = "".join(f"const c{n} : bool = true\n" for n in range(3))
    actions = "".join(f"action never_{n}():\n    require x > {n + 1}\n" for n in range(3))
    head, step = "spec small\nvar x : 0..1 = 0\n", "action step():\n    x' = 1 - x\n"
    text = f"{head}{constants}{step}{actions}model m:\n    expect holds\n"
    (here / "small.spec").write_text(text, encoding="utf-8")
    said = specchk("run", "small.spec").out
    assert "  constants: c0 = true, c1 = true, c2 = true\n" in said
    assert said.count("is never enabled") == 3
