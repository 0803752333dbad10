"""A cluster that loses executors, shuffle files and its driver gives the answer of one without losses.

All tests share one standalone master with two workers on loopback.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark.cluster import Cluster, Driver, standalone, wait_for
from spark.small import SPEC
from specchk.spark.reasons import NO_JAVA, has_java
from temporal.test_regions import COUNTERS, STUCK

pytestmark = pytest.mark.slow

MODEL = (str(SPEC / "kafka" / "kip320.spec"), "--no-symmetry", "--set", "Replicas=3", "--set",
         "MaxLeaderEpoch=1", "--partitions", "3")  # fmt: skip
BROKEN = (str(SPEC / "kafka" / "kip101.spec"), "--model", "fast_failover", "--partitions", "2")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    assert has_java(), NO_JAVA
    with standalone(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def natively(*args: str) -> dict[str, Any]:
    """The native engine's answer to the same question."""
    own = [part for part in args if part != "--partitions" and not part.isdigit()]
    line = [sys.executable, "-m", "specchk", "run", *own, "--json"]
    found: dict[str, Any] = json.loads(subprocess.run(line, capture_output=True, check=False).stdout)
    return found


def said(answer: dict[str, Any]) -> dict[str, Any]:
    """The whole answer except for the engine's name and the time."""
    return {key: value for key, value in answer.items() if key not in ("engine", "seconds", "statistics")} | {
        key: value for key, value in answer.get("statistics", {}).items() if "second" not in key
    }


def test_a_cluster_says_what_one_machine_does(cluster: Cluster, tmp_path: Path) -> None:
    """The same counterexample, by executors that got the package from the driver."""
    answer = Driver(cluster, tmp_path / "ledger", *BROKEN).answer()
    assert answer["engine"] == "spark"
    assert said(answer) == said(natively(*BROKEN))


def test_killed_executors_change_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """An executor killed in the middle of a level, and its successor a few levels later."""
    driver = Driver(cluster, tmp_path / "ledger", *MODEL)
    for level in (6, 11):
        driver.at_level(level)
        os.kill(wait_for(cluster.executors)[0], signal.SIGKILL)
    assert said(driver.answer()) == said(natively(*MODEL))


def test_a_killed_driver_is_resumed_to_the_same_answer(cluster: Cluster, tmp_path: Path) -> None:
    """The ledger has all that a new driver needs."""
    driver = Driver(cluster, tmp_path / "ledger", *MODEL)
    driver.at_level(9)
    driver.kill()
    resumed = Driver(cluster, tmp_path / "ledger", *MODEL, "--resume").answer()
    assert said(resumed) == said(natively(*MODEL))


def test_time_is_judged_after_executors_and_drivers_were_killed(cluster: Cluster, tmp_path: Path) -> None:
    """The native engine's lasso, state by state."""
    spec = tmp_path / "counters.spec"
    spec.write_text(COUNTERS.replace("LIVENESS", STUCK), encoding="utf-8")
    timed = (str(spec), "--partitions", "3")
    driver = Driver(cluster, tmp_path / "ledger", *timed)
    driver.at_level(4)
    os.kill(wait_for(cluster.executors)[0], signal.SIGKILL)
    driver.at_level(9)
    driver.kill()
    resumed = Driver(cluster, tmp_path / "ledger", *timed, "--resume").answer()
    assert {violation["kind"] for violation in resumed["violations"]} == {"liveness"}
    assert said(resumed) == said(natively(*timed))


def test_lost_shuffle_files_are_made_again(cluster: Cluster, tmp_path: Path) -> None:
    """Three partitions on two cores: when files are lost as the first is done, the third still needs them."""
    driver = Driver(cluster, tmp_path / "ledger", *MODEL)
    for level in (6, 12):
        driver.at_level(level)
        assert cluster.lose_shuffle_files()
    assert said(driver.answer()) == said(natively(*MODEL))


def test_a_worker_without_a_library_is_named_before_the_search(cluster: Cluster, tmp_path: Path) -> None:
    """One sentence, exit code 2, and no search in the ledger."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    driver = Driver(cluster, tmp_path / "ledger", *MODEL, env={"PYSPARK_PYTHON": str(bare)})
    words = driver.words()
    assert driver.process.returncode == 2, words
    assert "lacks crc32c and llvmlite and msgspec and pyarrow" in words
    assert [path.name for path in (tmp_path / "ledger").iterdir()] == ["claim"]


def packed_environment(folder: Path) -> Path:
    """The archive of a virtual environment, whose libraries are those of this one."""
    venv.create(folder / "environment", symlinks=True)
    (packages,) = (folder / "environment").glob("lib/python*/site-packages")
    own = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "of_this_one.pth").write_text("\n".join(own))
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        archive.add(folder / "environment", ".")
    return folder / "environment.tar.gz"


def test_workers_run_the_python_of_a_packed_environment(cluster: Cluster, tmp_path: Path) -> None:
    """Spark unpacks the archive beside each executor; the driver has no such program."""
    packed = ("--conf", f"spark.archives={packed_environment(tmp_path)}#environment")
    there = {"PYSPARK_PYTHON": "./environment/bin/python"}
    answer = Driver(cluster, tmp_path / "ledger", *BROKEN, *packed, env=there).answer()
    assert said(answer) == said(natively(*BROKEN))
    assert list(cluster.local.parent.glob("work/*/*/environment/bin/python"))
