"""`specchk init` and `specchk bind`: what they write works at once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from docs.blocks import ROOT, Workplace, agrees, play, rewritten, with_output
from specchk.cli.commands.bind import PROCESSES
from specchk.cli.commands.bind import command as bind
from specchk.cli.commands.init import KINDS, STARTERS, WORKFLOW
from specchk.cli.commands.init import command as init
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import mistakes
from specchk.conform.contract.load import load_binding
from specchk.conform.contract.values import raw
from specchk.lang.frontend import check

TOOLS = {"javascript": "node", "go": "go", "java": "javac"}
SPECS = sorted([*(ROOT / "spec").rglob("*.spec"), *(ROOT / "docs").rglob("*.spec")])


class Folder(Workplace):
    """A folder with nothing but what `specchk init` writes."""

    def __init__(self, place: Path) -> None:
        self.place, self.code, self.sourced = place, 0, ""
        search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = {"PATH": search, "HOME": os.environ.get("HOME", str(place)), "NO_COLOR": "1"}


def given(command, *words: str) -> Result:
    return CliRunner().invoke(command, words)


@pytest.mark.system
@pytest.mark.parametrize("kind", KINDS)
def test_the_commands_of_a_starter_end_well_and_its_flaw_is_detected(kind: str, tmp_path: Path, request):
    """From an empty folder: run, test and conform exit with 0, and each output is that of the README."""
    place = Folder(tmp_path)
    assert "wrote README.md" in place.run(f"specchk init {kind}")
    place.run("specchk fmt --check .")
    assert place.code == 0
    readme = STARTERS / kind / "README.md"
    text = readme.read_text(encoding="utf-8")
    played, codes = [], []
    for command, lines in play(text, place):
        played.append((command, lines))
        codes.append(place.code)
    if request.config.getoption("--rewrite"):
        readme.write_text(
            with_output(text, [rewritten(c.shown, lines) for c, lines in played]), encoding="utf-8"
        )
        return
    assert codes == [0] * 6
    for command, lines in played:
        assert agrees(command.shown, lines), f"$ {command.text}\n" + "\n".join(lines)
    assert played[4][1][0].startswith("!! "), "the flaw is a divergence"


@pytest.mark.system
def test_the_workflow_of_a_starter_runs(tmp_path: Path):
    """Each `run:` line, as the build server has it after the action; it is the same for all starters."""
    place = Folder(tmp_path)
    place.run("specchk init queue")
    workflow = (tmp_path / ".github/workflows/specchk.yml").read_text(encoding="utf-8")
    runs = re.findall(r"- run: (.+)", workflow)
    assert len(runs) == 3
    for line in runs:
        output = place.run(line)
        assert place.code == 0, output


@pytest.mark.parametrize("kind", KINDS)
def test_init_writes_all_files_or_none(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A second run, and a run beside one file of the user's, changes nothing and exits with 2."""
    monkeypatch.chdir(tmp_path)
    spec = next(file.name for file in (STARTERS / kind).glob("*.spec"))
    Path(spec).write_text("mine", encoding="utf-8")
    refused = CliRunner().invoke(init, [kind])
    assert refused.exit_code == 1  # of click; `specchk` makes it 2
    assert refused.output == f"Error: {spec} exists already, so nothing was written; choose another folder\n"
    assert [path.name for path in tmp_path.iterdir()] == [spec]
    Path(spec).unlink()
    assert given(init, kind).exit_code == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.name for path in before} >= {spec, "binding.py", "README.md", "specchk.yml"}
    assert len(before) == 5
    assert given(init, kind).exit_code == 1
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_every_starter_can_be_chosen():
    """A folder of starters is a kind; the workflow is shared."""
    assert {path.name for path in STARTERS.iterdir()} == {*KINDS, WORKFLOW}


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_a_skeleton_fits_its_spec(spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """For any spec with a model: the binding can be loaded, and binds and projects all that it has to."""
    models = list(check(str(spec)).spec.models)
    if not models:
        pytest.skip("there is no model")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert given(bind, str(spec)).exit_code == 0
    program = instantiate(check(str(spec)), models[0]).program
    binding = load_binding(Path("binding.py"))
    assert mistakes(binding, program) == ()
    start = binding(program)
    seen = getattr(start, binding.marked("project") or "")(start.start())
    assert all(raw(seen[variable.name], variable.type) is not None for variable in program.variables)


@pytest.mark.system
@pytest.mark.parametrize("language", ["python", *PROCESSES])
def test_a_skeleton_runs_and_shows_the_first_step_to_bind(language: str, tmp_path: Path):
    """It starts in the spec's initial state; then its first action is not bound yet."""
    if language in TOOLS and shutil.which(TOOLS[language]) is None and not os.environ.get("CI"):
        pytest.skip(f"{TOOLS[language]} is not installed")
    place = Folder(tmp_path)
    place.run("specchk init queue")
    place.run(f"specchk bind queue.spec --language {language} --into mine")
    assert place.code == 0
    output = place.run("specchk conform mine/binding.py")
    assert place.code == 13
    assert output[-2:] == ("!! step 1: put(j1)", "!! the implementation says: not bound yet")
    assert (
        "already, so nothing was written"
        in place.run(f"specchk bind queue.spec --language {language} --into mine")[0]
    )
    assert place.code == 2


def test_the_action_of_github_installs_this_repository(tmp_path: Path):
    """Its one command; .ci/run installs the same way, and runs a starter with what is installed."""
    (line,) = re.findall(r"- run: (.+)", (ROOT / "action.yml").read_text(encoding="utf-8"))
    recorded = subprocess.run(
        ["bash", "-c", f"pip() {{ printf '%s\\n' \"$@\"; }}; {line}"],
        env={"GITHUB_ACTION_PATH": "/a b"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert recorded.stdout == "install\n/a b\n"
    assert "uses: specchk/specchk@" in (STARTERS / WORKFLOW).read_text(encoding="utf-8")


@pytest.mark.system
def test_the_hooks_of_pre_commit_do_their_work(tmp_path: Path):
    """Each runs on the files that pre-commit gives it: one formats, the other fails for an error."""
    hooks = re.findall(r"entry: specchk (.+)", (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hooks == ["fmt", "check"]
    place = Folder(tmp_path)
    (tmp_path / "a.spec").write_text("spec a\nvar x:0..1=0\n", encoding="utf-8")
    (tmp_path / "b.spec").write_text("spec b\nvar x : 0..1 = y\n", encoding="utf-8")
    assert place.run("specchk fmt a.spec b.spec") == ("formatted: a.spec",)
    assert any("S201" in line for line in place.run("specchk check a.spec b.spec"))
    assert place.code == 30
