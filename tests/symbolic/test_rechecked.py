"""A recheck by a reader of the certificate alone: its rejections, and its report of the proof."""

from __future__ import annotations

import json

import pytest
from test_certificates import FETCH, outcome_of, recheck, run

LEADING = """\
spec leading
type Offset = nat upto 3
const n : int = 3
var a : Offset = 0
var b : Offset = 0
{line}
action go():
    any p in Offset:
        require p > a
        b' = p
invariant low: a <= b
invariant high: b >= 0
model one:
    expect holds
"""
ZONES = {"schema": "specchk.certificate/2", "kind": "zones", "model": "one", "constants": {},
         "properties": [], "invariants": None, "lemmas": {}, "parts": 0}  # fmt: skip
INVARIANTS = ZONES | {"kind": "invariants", "invariants": ["low", "high"]}


def test_a_choice_of_any_offset_that_may_end_in_a_deadlock_is_certified(tmp_path):
    """That nothing can be done has a quantifier then, which differences cannot decide."""
    file, proof = tmp_path / "leading.spec", str(tmp_path / "leading.cert")
    file.write_text(LEADING.format(line=""), encoding="utf-8")
    assert outcome_of(run, str(file), "--engine", "symbolic", "--certificate", proof).exit_code == 0
    assert outcome_of(recheck, proof).exit_code == 0
    # With nothing that can be done when both are 0.
    file.write_text(LEADING.format(line="").replace("p > a", "p > a and b > 0"), encoding="utf-8")
    done = outcome_of(recheck, proof)
    assert done.exit_code == 21
    assert "nothing can be done" in done.stdout


def test_a_set_of_offsets_is_rejected_with_its_place(tmp_path):
    """The search holds, and the check has no encoding for it."""
    file, proof = tmp_path / "leading.spec", str(tmp_path / "leading.cert")
    text = LEADING.format(line="var s : set[Offset] = {}").replace("b' = p", "b' = p\n        s' = {p}")
    file.write_text(text, encoding="utf-8")
    assert outcome_of(run, str(file), "--engine", "symbolic", "--certificate", proof).exit_code == 0
    done = outcome_of(recheck, proof)
    assert done.exit_code == 1
    assert "leading.spec:6:1: offsets are kept in a set or a bag" in done.stderr


@pytest.mark.parametrize("certificate", [ZONES, INVARIANTS])
@pytest.mark.parametrize(("line", "problem"), [
    ("init: n > 3", "no state satisfies `init`"), ("init: n // (n - 3) > 3", "`init` is undefined: div"),
    ("constraint far: a > 3", "every initial state is outside `far`"),
    ("var c : 0..3 = 4", "`init` is undefined"), ("var c : 0..9000\ninit: 1 // (c - 8000) < 2", "undefined"),
])  # fmt: skip
def test_a_certificate_of_no_initial_state_proves_nothing(line, problem, certificate, tmp_path):
    """A run would be inconclusive, or report that `init` is undefined."""
    file, proof = tmp_path / "leading.spec", tmp_path / "leading.cert"
    file.write_text(LEADING.format(line=line), encoding="utf-8")
    proof.write_text(json.dumps(certificate | {"spec": str(file)}), encoding="utf-8")
    done = outcome_of(recheck, str(proof))
    assert done.exit_code == 21
    assert problem in done.stdout


def test_the_report_has_the_constants_and_properties_that_the_certificate_names(tmp_path):
    """These are in the hands of its author: a certificate of less must not look like one of all."""
    proof = tmp_path / "fetch.cert"
    assert outcome_of(run, FETCH, "--engine", "symbolic", "--certificate", str(proof)).exit_code == 0
    whole = json.loads(outcome_of(recheck, str(proof), "--json").stdout)
    assert (whole["left_out"], whole["constants"]["MaxOffset"]) == (["converges"], 3)
    assert len(whole["properties"]) == 5
    head, *rest = proof.read_text(encoding="utf-8").splitlines()
    less = json.loads(head) | {"properties": ["hw_monotonic"], "constants": {"MaxOffset": "1"}}
    proof.write_text("\n".join([json.dumps(less), *rest]), encoding="utf-8")
    done = outcome_of(recheck, str(proof))
    assert done.exit_code == 0
    assert "  properties: hw_monotonic\n" in done.stdout
    assert "MaxOffset = 1" in done.stdout
    assert "omitted by the model: hw_within_leo" in done.stdout


@pytest.mark.parametrize(
    "options", [["--engine", "symbolic"], ["--engine", "symbolic", "--json"], ["--prove"]]
)
def test_a_certificate_that_cannot_be_written_does_not_cost_the_verdict(options, tmp_path):
    """It comes first, and the failure is the exit code's."""
    file = tmp_path / "leading.spec"
    file.write_text(LEADING.format(line=""), encoding="utf-8")
    done = outcome_of(run, str(file), *options, "--certificate", "/dev/full/leading.cert")
    assert done.exit_code == 2  # no such folder, which is known before the search
    done = outcome_of(run, str(file), *options, "--certificate", "/dev/full")
    assert done.exit_code == 1
    assert "holds" in done.stdout
    assert "/dev/full" not in done.stdout
    assert "cannot write /dev/full" in done.stderr
