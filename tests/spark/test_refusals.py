"""Unsupported requests are refused in one sentence, with exit code 2, before anything is searched."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hang import HANG_S
from spark.cluster import Cluster, free_port, standalone
from spark.small import SPEC
from specchk.cli.commands.run import command
from specchk.export import places, storage
from specchk.spark import reach
from specchk.spark.reasons import NO_JAVA, check_settings, has_java, refuse_connect

KIP320 = str(SPEC / "kafka" / "kip320.spec")
SPARK = ("--engine", "spark", "--conf", "spark.ui.enabled=false")


def refusal(*args: str, cwd: Path | None = None, **environment: str) -> str:
    """The final line of a command; it exits with 2, and has neither traceback nor report."""
    own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-m", "specchk", "run", KIP320, *SPARK, *args], cwd=cwd, capture_output=True,
        text=True, check=False, timeout=HANG_S, env={**os.environ, **own, **environment},
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout
    return done.stderr.splitlines()[-1].removeprefix("Error: ")


@pytest.mark.parametrize(
    ("args", "environment", "words"),
    [
        ((), {"JAVA_HOME": "/nowhere"}, "JAVA_HOME is /nowhere, without a program bin/java"),
        ((), {"PYSPARK_PYTHON": "/nowhere/python"}, "PYSPARK_PYTHON is /nowhere/python, which is not"),
        (("--conf", "spark.driver.memory=lots"), {}, "spark.driver.memory=lots is not a size; write"),
        (("--conf", "spark.executor.memory=4gg"), {}, "spark.executor.memory=4gg is not a size"),
        (("--conf", "spark.driver.memory=1m"), {}, "spark.driver.memory=1m is too small: Spark needs 465m"),
        (("--conf", "spark.driver.memory=464m"), {}, "Spark needs 465m at least"),
        (("--conf", "spark.executor.memory=449m"), {}, "Spark needs 450m at least"),
        (("--master", "yarn"), {"HADOOP_CONF_DIR": "", "YARN_CONF_DIR": ""}, "yarn needs HADOOP_CONF_DIR or"),
        (("--master", "cluster"), {}, "--master cluster is not a master URL of Spark: local[N], spark://HOST:PORT"),
        (("--master", "spark://here:x"), {}, "--master spark://here:x: here:x is not HOST:PORT"),
        (("--master", "sc://here"), {}, "--master sc://here is Spark Connect, which has no RDDs"),
        (("--conf", "spark.remote=sc://here"), {}, "spark.remote=sc://here is Spark Connect"),
        (("--conf", "spark.api.mode=connect"), {}, "spark.api.mode=connect is Spark Connect"),
        ((), {"SPARK_REMOTE": "sc://here"}, "SPARK_REMOTE=sc://here is Spark Connect"),
        ((), {"SPARK_API_MODE": "connect"}, "SPARK_API_MODE=connect is Spark Connect"),
        (("--master", "local-cluster[2,1,1024]"), {}, "on a cluster the search needs a ledger (--ledger)"),
    ],
)  # fmt: skip
def test_settings_that_spark_cannot_start_with_are_refused(
    args: tuple[str, ...], environment: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with its own sentence, and without a Java trace: no JVM is started."""
    monkeypatch.setattr("specchk.spark.session.is_submitted", lambda: False)
    monkeypatch.setattr("specchk.spark.session.SparkContext.getOrCreate", None)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = CliRunner().invoke(command, [KIP320, "--engine", "spark", *args])
    assert found.exit_code == 2, found.output
    assert words in " ".join(found.output.split())


def test_classic_spark_is_named_and_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark 4's own name for anything but Connect, in the environment and as a setting."""
    monkeypatch.setenv("SPARK_API_MODE", "classic")
    refuse_connect("local[2]", {"spark.api.mode": "classic"})


@pytest.mark.parametrize("scheme", ["spark://", "k8s://", "k8s://https://"])
def test_a_master_that_cannot_be_reached_is_named(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By address and reason, from the first connection that it refuses; Spark itself tries for a minute."""
    monkeypatch.setattr("specchk.spark.session.is_submitted", lambda: False)
    port = free_port()
    found = CliRunner().invoke(
        command, [KIP320, "--engine", "spark", "--master", f"{scheme}127.0.0.1:{port}"]
    )
    assert found.exit_code == 2, found.output
    assert f"cannot be reached from {os.uname().nodename} (127.0.0.1:{port}: Connection refused)" in " ".join(
        found.output.split()
    )


def test_of_several_masters_one_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A standby master refuses connections, or does not run."""
    tried = []

    def connect(address: tuple[str, int], _: float) -> object:
        tried.append(address)
        if address[0] == "first":
            raise OSError(errno.ECONNREFUSED, "Connection refused")
        return Path(os.devnull).open("rb")

    monkeypatch.setattr("specchk.spark.reasons.socket.create_connection", connect)
    check_settings("spark://first:7077,second:7078", {})
    assert tried == [("first", 7077), ("second", 7078)]


def test_a_full_disk_is_refused_before_spark_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Host, path and cause; without the claim of a search that did not start."""

    def write_fully(file: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(storage, "write_fully", write_fully)
    monkeypatch.setattr("specchk.spark.engine.session", None)
    found = CliRunner().invoke(command, [KIP320, "--engine", "spark", "--ledger", str(tmp_path / "L")])
    assert found.exit_code == 2, found.output
    words = " ".join(found.output.split())
    assert f"--ledger: {os.uname().nodename} cannot write {tmp_path}/L/reach/" in words
    assert words.endswith(": No space left on device")
    assert not (tmp_path / "L" / "reach").exists()


def test_a_scratch_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """Before the search, by host and path; it was a failure of Spark in some level."""
    (tmp_path / "file").touch()
    words = refusal("--scratch", str(tmp_path / "file"), "--handover", "1")
    said = f"--scratch: {os.uname().nodename} cannot write {tmp_path}/file: "
    assert words in (f"{said}File exists", f"{said}Not a directory")


def test_a_worker_reads_what_the_driver_wrote(tmp_path: Path) -> None:
    """The check itself: the same directory, another one in its place, none, and a full one."""
    own = places.storage_at(str(tmp_path))
    with reach.token_in(own, str(tmp_path), None) as token:
        assert list(token([3])) == [(os.uname().nodename, "", "")]
        assert any(name.name.endswith("-3") for name in (tmp_path / "reach").iterdir())
        (tmp_path / "reach" / token.name).write_text("another")
        assert next(token([3])).ledger == f"has another directory at {tmp_path}"  # type: ignore[attr-defined]
        shutil.rmtree(tmp_path / "reach")
        assert next(token([3])).ledger.startswith(f"has no {tmp_path}: ")  # type: ignore[attr-defined]
    assert not (tmp_path / "reach").exists()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    assert has_java(), NO_JAVA
    with standalone(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.mark.slow
def test_a_ledger_that_the_executors_do_not_see_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """A path that names another directory in each process, like a local disk on each machine."""
    conf = ("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=512m")
    own = ("--master", cluster.master, "--handover", "1", *conf)
    words = refusal(*own, "--ledger", "/proc/self/cwd/L", cwd=tmp_path)
    assert words == (
        f"--ledger: the worker on {os.uname().nodename} has no /proc/self/cwd/L: "
        "all machines need the same directory under that name"
    )
    assert [path.name for path in (tmp_path / "L").iterdir()] in ([], ["claim"])
    (tmp_path / "file").touch()
    words = refusal(*own, "--ledger", str(tmp_path / "M"), "--scratch", str(tmp_path / "file"))
    assert (
        words == f"--scratch: the worker on {os.uname().nodename} cannot write {tmp_path}/file: File exists"
    )


@pytest.mark.slow
def test_a_relative_ledger_is_the_drivers(cluster: Cluster, tmp_path: Path) -> None:
    """Executors have another working directory, so they get the whole name."""
    conf = ("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=512m")
    line = [sys.executable, "-m", "specchk", "run", KIP320, *SPARK, "--master", cluster.master, *conf,
            "--handover", "1", "--ledger", "L"]  # fmt: skip
    own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        line, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG_S,
        env={**os.environ, **own},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "L" / "ledger.json").exists()


@pytest.mark.slow
def test_a_cluster_without_room_for_executors_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """Spark would wait for workers of that size forever."""
    own = ("--master", cluster.master, "--handover", "1", "--conf", "spark.driver.host=127.0.0.1")
    words = refusal(*own, "--conf", "spark.executor.memory=900g", "--ledger", str(tmp_path / "L"))
    assert words.startswith(f"no executor of {cluster.master} began a task in 90 s: workers are busy, or")


@pytest.mark.slow
def test_workers_without_that_python_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    """The program that they cannot run is in the sentence."""
    own = ("--master", cluster.master, "--handover", "1", "--conf", "spark.driver.host=127.0.0.1")
    conf = ("--conf", "spark.executor.memory=512m", "--conf", "spark.pyspark.python=/nowhere/python")
    words = refusal(*own, *conf, "--ledger", str(tmp_path / "L"), PYSPARK_PYTHON="/nowhere/python")
    assert words.startswith("Spark's workers cannot run a task: ")
    assert 'Cannot run program "/nowhere/python"' in words


TWICE = """
import sys
from pathlib import Path
from click.testing import CliRunner
from pyspark import SparkConf, SparkContext
from specchk.cli.main import cli
master, spec, place = sys.argv[1:]
conf = SparkConf().setMaster(master).setAppName("notebook").set("spark.driver.host", "127.0.0.1")
context = SparkContext(conf=conf.set("spark.executor.memory", "512m").set("spark.ui.enabled", "false"))
for name in ("one", "two"):
    args = ["run", spec, "--engine", "spark", "--handover", "1", "--ledger", f"{place}/{name}", "--json"]
    done = CliRunner().invoke(cli, args)
    print(done.exit_code, done.output if done.exit_code else "", context._jsc is not None)
"""


@pytest.mark.slow
def test_a_session_on_a_cluster_serves_several_searches(cluster: Cluster, tmp_path: Path) -> None:
    """A notebook's: it has the package from the first one, and Spark accepts no second file of that name."""
    own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", TWICE, cluster.master, KIP320, str(tmp_path)], capture_output=True, text=True,
        check=False, timeout=HANG_S, env={**os.environ, **own},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["0  True", "0  True"], done.stderr[-2000:]
