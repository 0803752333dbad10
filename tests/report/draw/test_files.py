"""Pictures as files: golden texts and SVG, other fonts, no Graphviz, traces of files and scenarios."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from report.draw.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden" / "draw"
PICTURES = {
    "loss": ["spec/kafka/truncate_to_hw.spec"],
    "divergence": ["spec/kafka/truncate_to_hw.spec", "--model", "divergence"],
    "two_rounds": ["spec/two_round_fetch.spec", "--scenario", "two_rounds_behind"],
    "die_hard": ["spec/examples/die_hard.spec"],
}
# Some proportional font in place of the monospaced one.
NARROW = """<fontconfig><include ignore_missing="yes">/etc/fonts/fonts.conf</include><match target="pattern">
<edit name="family" mode="assign" binding="strong">
<string>Liberation Sans</string><string>DejaVu Sans Condensed</string></edit></match></fontconfig>"""
needs_dot = pytest.mark.skipif(
    shutil.which("dot") is None and not os.environ.get("CI"), reason="Graphviz is not installed"
)


def draw(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "specchk", "draw", *args],
        check=False, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **env},
    )  # fmt: skip


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_told_as_before(name: str, request: pytest.FixtureRequest):
    """The text form, read in tests/golden/draw."""
    path = GOLDEN / f"{name}.txt"
    said = draw(*PICTURES[name]).stdout
    if request.config.getoption("--rewrite"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(said, encoding="utf-8")
    assert said == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PICTURES)
def test_the_dot_file_is_as_before(name: str, request: pytest.FixtureRequest, tmp_path: Path):
    """The same trace gives the same bytes."""
    path, found = GOLDEN / f"{name}.dot", tmp_path / "found.dot"
    draw(*PICTURES[name], "-o", str(found))
    if request.config.getoption("--rewrite"):
        path.write_bytes(found.read_bytes())
    assert found.read_bytes() == path.read_bytes()


@needs_dot
def test_the_drawing_does_not_depend_on_the_font(tmp_path: Path):
    """Every size is given: another font of the usual widths (up to 0.62 em) gives the same bytes."""
    fonts = tmp_path / "fonts.conf"
    fonts.write_text(NARROW, encoding="utf-8")
    for name, env in (("a.svg", {}), ("b.svg", {"FONTCONFIG_FILE": str(fonts)})):
        done = draw(*PICTURES["loss"], "-o", str(tmp_path / name), **env)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@needs_dot
@pytest.mark.parametrize(("kind", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_every_format_is_written(kind: str, begins: bytes, tmp_path: Path):
    """The ending of the file decides; the command says what it wrote, Graphviz nothing."""
    done = draw(*PICTURES["die_hard"], "-o", str(tmp_path / f"found.{kind}"))
    assert (done.returncode, done.stderr) == (0, f"wrote {tmp_path}/found.{kind}\n")
    assert (tmp_path / f"found.{kind}").read_bytes().startswith(begins)


def test_without_graphviz_there_is_the_dot_file_and_one_sentence(tmp_path: Path):
    """Nothing is lost, and the exit code is that of a success."""
    done = draw(*PICTURES["loss"], "-o", str(tmp_path / "found.svg"), PATH="")
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "install Graphviz" in done.stderr
    assert (tmp_path / "found.dot").read_text(encoding="utf-8").startswith("digraph trace {")
    assert not (tmp_path / "found.svg").exists()


def test_a_format_that_is_none_is_a_usage_error(tmp_path: Path):
    """With the supported formats."""
    done = draw(*PICTURES["die_hard"], "-o", str(tmp_path / "found.jpg"))
    assert done.returncode == 2
    assert ".svg" in done.stderr


@pytest.mark.parametrize("form", ["json", "itf"])
def test_a_trace_file_is_drawn_as_its_run_was(form: str, tmp_path: Path):
    """Model, constants and property come from the file; the picture is the same."""
    path = tmp_path / "found.json"
    run = [
        "run",
        "--optimal",
        "spec/kafka/truncate_to_hw.spec",
        "--model",
        "divergence",
        "--set",
        "MaxRecords=3",
    ]
    how = ["--json"] if form == "json" else ["--itf", str(path)]
    done = subprocess.run(
        [sys.executable, "-m", "specchk", *run, *how], check=False, capture_output=True, cwd=ROOT
    )
    if form == "json":
        path.write_bytes(done.stdout)
    direct = draw("spec/kafka/truncate_to_hw.spec", "--model", "divergence", "--set", "MaxRecords=3")
    assert direct.returncode == 0
    assert draw(str(path)).stdout == direct.stdout


def test_a_trace_that_is_no_behaviour_is_refused(tmp_path: Path):
    """With the step that cannot be taken; no picture of an impossible history."""
    path = tmp_path / "found.json"
    run = [sys.executable, "-m", "specchk", "run", "spec/kafka/truncate_to_hw.spec", "--json"]
    text = subprocess.run(run, check=False, capture_output=True, text=True, cwd=ROOT).stdout
    for old, new, wanted in (
        ('"hw": 1', '"hw": 0', "does not lead from state"),
        ('"hw": 0', '"hw": 7', "is not a value of type"),
        ('"trace"', '"track"', "no trace in it"),
        ('"quorum_state"', '"quorum"', "has no variable quorum_state"),
        ("{", "[", "is not JSON text"),
    ):
        path.write_text(text.replace(old, new), encoding="utf-8")
        done = draw(str(path))
        assert done.returncode == 2
        assert wanted in done.stderr
        assert "Traceback" not in done.stderr


CORNER = """\
spec corner
var x : 0..5 in 0..5
action inc():
    require x < {end}
    x' = x + 1
constraint low: {low}
deadlock ok
model m:
    expect holds
"""


@pytest.mark.parametrize(
    ("end", "low", "shown"),
    [
        (5, "x < 3", 3),
        (9, "x < 9", "corner.spec:5:10: a step of `inc` is undefined: 6 is outside 0..5"),
        (5, "1 // (3 - x) < 9", "corner.spec:6:17: `low` is undefined: division by zero"),
    ],
)
def test_the_state_graph_has_the_states_that_a_search_counts(
    end: int, low: str, shown: int | str, tmp_path: Path
):
    """None outside a constraint, not even initial ones; an undefined value is reported in a sentence."""
    path = tmp_path / "corner.spec"
    path.write_text(CORNER.format(end=end, low=low), encoding="utf-8")
    done = draw(str(path), "--kind", "states")
    if isinstance(shown, int):
        assert (done.returncode, done.stdout.count("x = ")) == (0, shown)
    else:
        assert (done.returncode, done.stdout) == (2, "")
        assert shown in done.stderr


def test_the_state_graph_marks_the_counterexample(tmp_path: Path):
    """Its path, each step of it, and the state that violates; in the graph of a model that holds nothing."""
    path = tmp_path / "count.spec"
    text = "spec count\nvar x : 0..3 = 0\naction up():\n    require x < 3\n    x' = x + 1\ndeadlock ok\n"
    path.write_text(f"{text}invariant low: x < 2\nmodel m:\n    expect violates low\n", encoding="utf-8")
    marked = [line for line in draw(str(path), "--kind", "states").stdout.splitlines() if "penwidth" in line]
    assert [line.split()[0] for line in marked if "->" not in line] == ["s0", "s1", "s2"]
    assert [line.split("[")[0].strip() for line in marked if "->" in line] == ["s0 -> s1", "s1 -> s2"]
    assert [line.split()[0] for line in marked if "#a02020" in line] == ["s2"]
    path.write_text(f"{text}model m:\n    expect holds\n", encoding="utf-8")
    assert "penwidth" not in draw(str(path), "--kind", "states").stdout
