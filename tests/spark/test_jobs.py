"""Pieces of work on executors: results, exceptions, and reports equal to those of one machine."""

from __future__ import annotations

import json
import operator
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyspark
import pytest
from click.testing import CliRunner
from pyspark import SparkContext

from replog.sim.recording.record_run import record
from spark.cluster import Cluster, standalone
from spark.small import SPEC
from specchk.cli.commands import validate
from specchk.conform.contract.load import load_tracing
from specchk.search.engine import Unavailable
from specchk.spark.jobs import PieceResult, Remote, came, reason_of, started, team, values_of
from specchk.spark.reasons import NO_JAVA, has_java

ROOT = SPEC.parent
CONFORMANCE = ROOT / "conformance"
TOY = """
from helper import explained
from specchk.conform.contract.tracing import Call, Seen, Tracing, event


class CounterTracing(Tracing):
    spec, model, reads = "counter.spec", "small", "counter/1"

    @event("up")
    def up(self, found):
        return Call("up", explained(()))

    def after(self, found):
        return [Seen("n", "n", found["after"])]
"""
HELPER = """
import os
from pathlib import Path


def explained(arguments):
    return arguments


if "TOLD" in os.environ:
    Path(os.environ["TOLD"]).write_text(__file__)
"""
COUNTER = """spec counter
const Most : int = 3
var n : 0..9 = 0
action up():
    require n < Most
    n' = n + 1
model small:
    expect holds
"""
RECORDING = """{"format": "counter/1"}
{"at": "counter", "seq": 1, "event": "up", "after": 1}
{"at": "counter", "seq": 2, "event": "up", "after": 2}
{"end": true, "events": 2}
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A tracing with a neighbour and a recording; they are in a place that no other process searches."""
    (tmp_path / "counter.spec").write_text(COUNTER)
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "tracing.py").write_text(TOY)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "counted.ndjson").write_text(RECORDING)
    return tmp_path / "tracing.py"


def explain(toy: Path) -> list[str]:
    """The command line, without `validate`, that explains the recording of `toy`."""
    return [str(toy), str(toy.parent / "in"), "--partial", "--json"]


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Tracings are imported here with their neighbours; the next test has others of the same name."""
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name in ("helper", "tracing"):
        sys.modules.pop(name, None)


def timeless(text: str) -> Any:
    """A report's JSON without the parts that depend on time and on the number of workers."""
    found = json.loads(text)
    for one in (found, *found.get("suites", ())):
        for name in ("seconds", "events_per_second", "workers"):
            one.pop(name, None)
    return found


def test_values_come_in_the_order_of_the_pieces() -> None:
    """Whatever was finished first."""
    assert values_of([PieceResult(2, "c"), PieceResult(0, "a"), PieceResult(1, "b")]) == ["a", "b", "c"]


def test_the_first_exception_is_raised_as_it_was() -> None:
    """By the pieces' order, with the executor's traceback as its cause."""

    def fails() -> None:
        raise LookupError("of the second")

    found = [PieceResult(2, error=ValueError("of the third")), came(1, fails), PieceResult(0, "fine")]
    with pytest.raises(LookupError, match="of the second") as caught:
        values_of(found)
    assert isinstance(caught.value.__cause__, Remote)
    assert "in fails" in str(caught.value.__cause__)


def test_an_exception_that_cannot_be_sent_is_told() -> None:
    """Its name and its words remain."""

    class Local(Exception):
        pass

    def fails() -> None:
        raise Local("of a class that nobody else has")

    with pytest.raises(RuntimeError, match="Local: of a class"):
        values_of([came(0, fails)])


def test_a_module_that_executors_lack_is_named() -> None:
    """The answer names it, the host, and the remedy."""

    def fails() -> None:
        __import__("no_such_module_here")

    with pytest.raises(Unavailable, match="has no module `no_such_module_here`: install it"):
        values_of([came(0, fails)])


def test_a_module_that_a_tracing_lacks_there_is_named(tmp_path: Path) -> None:
    """A tracing's loader wraps the error; the missing module is reported nevertheless."""
    tracing = tmp_path / "tracing.py"
    tracing.write_text("import no_such_module_here\n")
    with pytest.raises(Unavailable, match="has no module `no_such_module_here`: install it"):
        values_of([came(0, lambda: load_tracing(tracing))])


def test_what_spark_says_of_a_failed_job_is_a_line() -> None:
    """The line of the exception, not the trace of the virtual machine."""
    text = "An error occurred\n: org.apache.spark.SparkException: Job aborted due to stage failure\n\tat x"
    assert reason_of(RuntimeError(text)) == "Job aborted due to stage failure"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--conf", "a=b"), "--conf requires --master"),
        (("--master", "local[2]", "--conf", "nothing"), "not of the form NAME=VALUE"),
        (("--master", "local[2]", "--workers", "2"), "--workers cannot be combined with --master"),
    ],
)
def test_options_that_do_not_go_together_are_refused(toy: Path, args: tuple[str, ...], words: str) -> None:
    """No option is silently ignored."""
    found = CliRunner().invoke(validate.command, [*explain(toy), *args])
    assert found.exit_code == 2
    assert words in " ".join(found.output.split())


def test_without_java_it_says_what_to_install(toy: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """One sentence, before anything is run."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = CliRunner().invoke(validate.command, [*explain(toy), "--master", "local[2]"])
    assert found.exit_code == 2
    assert "apt install openjdk-17-jre-headless" in found.output


@pytest.mark.slow
def test_pieces_see_the_files_that_were_sent(context: SparkContext) -> None:
    """Each piece is executed where the files are, and an exception is passed on unchanged."""
    start = operator.attrgetter("joinpath")
    with team(None, {}, [("folder/data.txt", b"sent")]) as found:
        assert found.hands == 2
        places = found.each(start, ["folder", "folder/data.txt"], "a test")
        assert places[1].read_text() == "sent"
        assert found.each(start, [], "nothing") == []
        with pytest.raises(TypeError):
            found.each(start, ["folder", 5], "a test")
    assert context.parallelize([1]).count() == 1
    started.cache_clear()


@pytest.mark.slow
def test_what_only_the_driver_has_is_missing(context: SparkContext, toy: Path, monkeypatch: Any) -> None:
    """A module that is not a file of the user's is not sent, but is named."""
    del context
    monkeypatch.setitem(sys.modules, "only_the_driver_has_it", ModuleType("only_the_driver_has_it"))
    toy.write_text(f"import only_the_driver_has_it\n{TOY}")
    found = CliRunner().invoke(validate.command, [*explain(toy), "--master", "local[2]"])
    assert found.exit_code == 2
    assert "has no module `only_the_driver_has_it`" in found.output


KILLS_SPARK = """
def explained(arguments):
    above = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
    if Path(f"/proc/{above}/comm").read_text() == "java\\n":  # of a worker: its daemon's parent
        os.kill(int(above), 9)
    return arguments
"""


@pytest.mark.slow
def test_a_validation_whose_spark_ends_has_no_answer(toy: Path) -> None:
    """One sentence, also as JSON, and not the exit code of a wrong option."""
    (toy.parent / "helper.py").write_text(f"{HELPER}{KILLS_SPARK}")
    line = [sys.executable, "-m", "specchk", "validate", *explain(toy), "--master", "local[2]"]
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(line, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 21, done.stderr
    assert json.loads(done.stdout) == {
        "schema": "specchk.ended/1", "verdict": "inconclusive",
        "reason": "Spark failed: its process ended", "exit_code": 21,
    }  # fmt: skip
    assert "Error: Spark failed: its process ended" in done.stderr.splitlines()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    assert has_java(), NO_JAVA
    with standalone(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def specchk(*args: str, code: int = 0) -> Any:
    """The output of a command, as JSON."""
    own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    line = [sys.executable, "-m", "specchk", *args, "--json"]
    done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, **own}, check=False)
    assert done.returncode == code, done.stderr
    return timeless(done.stdout)


def there(cluster: Cluster) -> list[str]:
    """The options that use a cluster."""
    settings = ("spark.executor.memory=512m", "spark.ui.enabled=false", "spark.driver.host=127.0.0.1")
    return ["--master", cluster.master, *(word for one in settings for word in ("--conf", one))]


@pytest.mark.slow
def test_a_cluster_explains_recordings_as_one_machine_does(cluster: Cluster, tmp_path: Path) -> None:
    """Replog's recordings, and spoiled copies of them, have the report of one machine."""
    for seed in range(6):
        (tmp_path / f"seed-{seed}.ndjson").write_text("\n".join(record(seed)))
    explain = ("validate", str(CONFORMANCE / "tracing.py"), str(tmp_path), "--partial")
    assert specchk(*explain) == specchk(*explain, *there(cluster))


@pytest.mark.slow
def test_a_submitted_session_decides_where_work_is_done(toy: Path, tmp_path: Path) -> None:
    """Under spark-submit --master is ignored: the existing session does the work."""
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    main = Path(validate.__file__).parents[2] / "__main__.py"
    session = ["--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
           "SPARK_HOME": str(submit.parents[1]), "TOLD": str(tmp_path / "told")}  # fmt: skip
    line = [str(submit), *session, str(main), "validate", *explain(toy)]
    done = subprocess.run(line, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert "specchk-kit-" in (tmp_path / "told").read_text()
    assert timeless(done.stdout) == specchk("validate", *explain(toy)[:-1])
