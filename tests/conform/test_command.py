"""`specchk conform` says in its exit code and in JSON how it ended."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from laws.sources import ROOT
from specchk.cli.conform import command

BINDING = str(ROOT / "conformance" / "binding.py")
DIVERGING = [
    "--set",
    "MaxCrashes=2",
    "--set",
    "MaxEpoch=3",
    "--suite",
    "walks",
    "--walks",
    "300",
    "--steps",
    "80",
]


@pytest.mark.parametrize(
    ("options", "code", "first"),
    [
        (["--smoke"], 0, "conforms: replication, model two_brokers"),
        (["--set", "MaxOffset=1", "--set", "MaxCrashes=0"], 0, "conforms: replication"),
        (["--max-states", "20"], 20, "conforms so far: replication"),
        (DIVERGING, 13, "diverges: the implementation took the step"),
        (["--suite", "walks", "--walks", "1", "--steps", "1"], 0, "conforms: replication"),
    ],
)
def test_the_exit_code_and_the_first_line_agree(options, code, first):
    """A suite that a budget ended is no success, and a divergence has a code of its own."""
    result = CliRunner().invoke(command, [BINDING, *options])
    assert result.exit_code == code
    assert result.output.startswith(first)


def test_json_has_the_path_and_the_places_that_differ():
    """Everything of the text that a program may want."""
    result = CliRunner().invoke(command, [BINDING, *DIVERGING, "--json"])
    found = json.loads(result.output)
    assert (found["schema"], found["verdict"], found["exit_code"]) == ("specchk.conform/1", "diverges", 13)
    assert found["divergence"]["step"].startswith("become_leader(")
    assert found["divergence"]["path"]
    assert {one["place"].split("[")[0] for one in found["divergence"]["differences"]} == {"acked"}


def test_a_model_that_the_binding_is_not_for_is_rejected():
    """As a wrong spec is: with what is wrong and what to do."""
    result = CliRunner().invoke(command, [BINDING, "--model", "b1_truncate_to_hw"])
    assert result.exit_code == 30
    assert "the model sets `truncation`" in result.output
