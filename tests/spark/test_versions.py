"""pyspark 3.5, the oldest accepted version; every other test uses the newest one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hang import HANG_S
from spark.coins import RIGHT, WRONG
from spark.small import SPEC

OLDEST = "3.5"
OF_THE_ENGINE = ("engine", "seconds")  # members of a report that differ between engines

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which pyspark is the oldest one, for drivers and executors."""
    folder = str(tmp_path_factory.mktemp("pyspark"))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, f"pyspark=={OLDEST}.*"]
    subprocess.run(install, check=True, timeout=HANG_S)
    own = {"PYTHONPATH": folder, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return {**os.environ, **own}


def specchk(environment: dict[str, str], *args: str, code: int = 0) -> dict[str, Any]:
    """The report of a command in its own process."""
    line = [sys.executable, "-m", "specchk", *args, "--json"]
    done = subprocess.run(
        line, capture_output=True, text=True, check=False, timeout=HANG_S, env=environment
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return {name: value for name, value in report.items() if name not in OF_THE_ENGINE}


def test_the_environment_has_the_oldest_version(environment: dict[str, str]) -> None:
    """Otherwise the other tests would use the newest one again."""
    line = [sys.executable, "-c", "import pyspark; print(pyspark.__version__)"]
    version = subprocess.run(line, capture_output=True, text=True, check=True, env=environment).stdout
    assert version.startswith(f"{OLDEST}.")


def test_the_oldest_version_gives_the_native_verdict(environment: dict[str, str], tmp_path: Path) -> None:
    """With levels, coverage and counts; a ledger is begun, continued, and the states exported."""
    spec, spark = (
        str(SPEC / "kafka" / "kip320.spec"),
        ("--engine", "spark", "--master", "local[2]", "--handover", "1"),
    )
    ledger, exported = str(tmp_path / "ledger"), str(tmp_path / "states")
    begun = specchk(environment, "run", spec, *spark, "--ledger", ledger, "--max-states", "500", code=20)
    assert begun["verdict"] == "inconclusive"
    native = specchk(environment, "run", spec, "--engine", "native")
    assert specchk(environment, "run", spec, *spark, "--export", exported) == native
    assert specchk(environment, "run", spec, *spark, "--ledger", ledger, "--resume") == native
    count = specchk(environment, "sql", exported, "select count(*) as n from states")
    assert count["rows"] == [[native["states_distinct"]]]


def test_the_oldest_version_validates_recordings(
    environment: dict[str, str], bank: Path, tmp_path: Path
) -> None:
    """In executors, with tables; the report of one process."""
    for name, text in (("right", RIGHT), ("wrong", WRONG)):
        (bank / "in" / f"{name}.ndjson").write_text(text)
    judge = ("validate", str(bank / "tracing.py"), str(bank / "in"), "--partial")
    spark = ("--master", "local[2]", "--tables", str(tmp_path / "tables"))
    alone = specchk(environment, *judge, code=13)
    judged = specchk(environment, *judge, *spark, code=13)
    volatile = {"events_per_second": 0, "workers": 0}
    assert {**judged, **volatile} == {**alone, **volatile}
