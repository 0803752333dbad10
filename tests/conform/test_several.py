"""`specchk conform` for several bindings: each report as if alone, and one exit code for all of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from laws.sources import ROOT

HERE = Path(__file__).parent
SOUND = """
import bank


class SoundBinding(bank.BankBinding):
    model = "small"
"""
ENDS = """
import os, signal
import bank

class EndingBinding(bank.BankBinding):
    model = "small"

    def start(self):
        print("about to end", flush=True)
        os.kill(os.getpid(), signal.{signal})
"""

pytestmark = pytest.mark.system


@pytest.fixture
def sound(lossy: Path) -> Path:
    """A bank that loses nothing, beside the one that does."""
    path = lossy.with_name("sound.py")
    path.write_text(SOUND)
    return path


def conform(*words: object) -> subprocess.CompletedProcess[str]:
    """A run of `specchk conform`."""
    places = [str(ROOT / "interp"), str(HERE)]
    return subprocess.run(
        [sys.executable, "-m", "specchk", "conform", *map(str, words)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def untimed(text: str) -> str:
    """A report without its durations."""
    return re.sub(r"\d+\.\d+ s\b", "S", text)


@pytest.mark.parametrize("options", [("--suite", "product"), ("--tier", "gate")])
def test_each_report_is_that_of_the_binding_alone(sound: Path, lossy: Path, options: tuple[str, ...]):
    """Under a heading, in the given order; 13, since one diverges."""
    alone = [conform(path, *options) for path in (lossy, sound)]
    both = conform(lossy, sound, *options)
    assert [one.returncode for one in alone] == [13, 0]
    assert (both.returncode, both.stderr) == (13, "")
    parts = "".join(f"== {path}\n{one.stdout}" for path, one in zip((lossy, sound), alone, strict=True))
    assert untimed(both.stdout) == untimed(f"{parts}== 2 bindings, {lossy} (13) failed\n")


def test_all_that_conform_are_a_success(sound: Path):
    """0, and none failed."""
    other = sound.with_name("other.py")
    other.write_text(SOUND)
    both = conform(sound, other, "--tier", "smoke")
    assert (both.returncode, both.stderr) == (0, "")
    assert both.stdout.endswith("== 2 bindings, none failed\n")


@pytest.mark.parametrize(("ending", "code", "said"), [
    ("SIGSEGV", 13, "diverges: the implementation ended the process that ran it: SIGSEGV"),
    ("SIGKILL", 21, "inconclusive: a process that ran the implementation was killed"),
])  # fmt: skip
def test_a_process_that_ends_does_not_end_the_others(sound: Path, ending: str, code: int, said: str):
    """It is reported with its output so far, and the others run to their ends."""
    ends = sound.with_name("ends.py")
    ends.write_text(ENDS.format(signal=ending))
    both = conform(ends, sound, "--suite", "product")
    assert both.returncode == code
    assert f"== {ends}\n{said}" in both.stdout
    assert "about to end" in both.stderr
    assert f"== {sound}\nconforms: bank" in both.stdout
    assert both.stdout.endswith(f"== 2 bindings, {ends} ({code}) failed\n")


def test_a_divergence_comes_before_what_could_not_be_run(sound: Path, lossy: Path):
    """13 even after a file that is not a binding; without a divergence the first code that is not 0."""
    nothing = sound.with_name("nothing.py")
    nothing.write_text("x = 1\n")
    both = conform(nothing, lossy, "--tier", "smoke")
    assert both.returncode == 13
    assert f"== 2 bindings, {nothing} (2), {lossy} (13) failed\n" in both.stdout
    assert "nothing.py" in both.stderr
    assert conform(sound, nothing, "--tier", "smoke").returncode == 2


def test_json_is_one_object_with_every_report(sound: Path, lossy: Path):
    """The objects that each prints alone; for a file that is not a binding its output as an error."""
    nothing = sound.with_name("nothing.py")
    nothing.write_text("x = 1\n")
    both = conform(sound, lossy, nothing, "--suite", "product", "--json")
    found = json.loads(both.stdout)
    assert (both.returncode, found["schema"], found["exit_code"]) == (13, "specchk.several/1", 13)
    assert [one["binding"] for one in found["bindings"]] == [str(sound), str(lossy), str(nothing)]
    assert [one["exit_code"] for one in found["bindings"]] == [0, 13, 2]
    first, second, third = (one["report"] for one in found["bindings"])
    assert (first["verdict"], second["verdict"], third) == ("conforms", "diverges", None)
    assert second["divergence"]["step"] == "transfer(a1, a2)"
    assert "nothing.py" in found["bindings"][2]["errors"]


def test_junit_is_a_file_for_each(sound: Path, lossy: Path, tmp_path: Path):
    """Named by the path of the binding."""
    folder = tmp_path / "made" / "here"
    conform(lossy, sound, "--tier", "gate", "--junit", folder)
    files = sorted(folder.iterdir())
    assert [one.name.rpartition("-")[2] for one in files] == ["lossy.xml", "sound.xml"]
    failed = [len(ElementTree.parse(one).findall(".//failure")) for one in files]
    assert failed[0] > 0
    assert failed[1] == 0


def test_a_folder_that_cannot_be_made_is_reported_before_the_run(sound: Path, lossy: Path):
    """One sentence, and nothing was run."""
    done = conform(sound, lossy, "--junit", sound)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"cannot write to {sound}" in done.stderr


@pytest.mark.parametrize(("words", "said"), [
    (("--case", "x"), "--case applies to one binding"), (("--list",), "--list applies to one binding"),
    (("--html", "x.html"), "--html applies to one binding"),
    (("--draw", "x.svg"), "--draw applies to one binding"),
])  # fmt: skip
def test_what_is_about_one_binding_is_refused(sound: Path, lossy: Path, words: tuple[str, ...], said: str):
    """Before anything is run."""
    done = conform(sound, lossy, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_binding_that_is_named_twice_is_refused(sound: Path):
    """Its files would be written twice, at the same time."""
    done = conform(sound, sound)
    assert (done.returncode, done.stdout) == (2, "")
    assert "named twice" in done.stderr
