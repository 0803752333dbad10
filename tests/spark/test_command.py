"""`specchk run --engine spark` where Spark cannot be used: one sentence, exit code 2, nothing searched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark import SparkConf, SparkContext

from hang import HANG_S
from spark.cluster import wait_for
from spark.small import SPEC
from specchk.cli.commands.run import command
from specchk.search.budget import Budget, watched
from specchk.search.engine import Unavailable
from specchk.spark.session import session

KIP320 = str(SPEC / "kafka" / "kip320.spec")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--master", "local[2]"), "--master is for --engine spark"),
        (("--conf", "a=b"), "--conf is for --engine spark"),
        (("--engine", "spark", "--resume"), "--resume needs --ledger"),
        (("--engine", "spark", "--workers", "2"), "--workers is for the native"),
        (("--engine", "spark", "--checkpoint", "dir"), "for the native engine"),
        (("--engine", "spark", "--conf", "nothing"), "not of the form NAME=VALUE"),
    ],
)
def test_options_that_do_not_go_together_are_refused(args: tuple[str, ...], words: str) -> None:
    """No option is silently ignored."""
    found = CliRunner().invoke(command, [KIP320, *args])
    assert found.exit_code == 2
    assert words in found.output


def test_without_java_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence with the package's name, before a search."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = CliRunner().invoke(command, [KIP320, "--engine", "spark"])
    assert found.exit_code == 2
    assert "apt install openjdk-17-jre-headless" in found.output


def test_without_pyspark_it_says_what_to_install() -> None:
    """One sentence with the command that installs it."""
    script = (
        "import sys; sys.modules['pyspark'] = None; "
        "from specchk.cli.main import main; "
        f"sys.argv = ['specchk', 'run', {KIP320!r}, '--engine', 'spark']; main()"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "pip install 'specchk[spark]'" in found.stderr


@pytest.mark.slow
def test_an_interrupt_while_java_starts_leaves_nothing() -> None:
    """Neither a trace of PySpark's nor a process of Java's, whose pipes would stay open here."""
    line = [sys.executable, "-m", "specchk", "run", KIP320, "--engine", "spark"]
    run = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True
    )

    def has_java() -> bool:
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        return any(Path(f"/proc/{child}/comm").read_text() == "java\n" for child in children)

    try:
        wait_for(has_java)
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does: every process of the command
        out, errors = run.communicate(timeout=HANG_S)
    finally:
        run.kill()
    assert (run.returncode, out) == (21, "")
    assert "Traceback" not in errors
    assert errors.splitlines()[-1] == "interrupted"


def test_a_limit_does_not_interrupt_the_start_of_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark would remove the directory that Java writes to, which then prints a trace and never ends."""

    def made(_: SparkConf) -> None:
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            pass
        raise OSError("started in peace")

    monkeypatch.setattr(SparkContext, "getOrCreate", made)
    with (
        watched(Budget(max_seconds=0.05), str),
        pytest.raises(Unavailable, match="started in peace"),
        session(None, {}),
    ):
        pass
