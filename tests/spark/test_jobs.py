"""Pieces of work on executors: results, exceptions, and reports equal to those of one machine."""

from __future__ import annotations

import json
import operator
import os
import re
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
from specchk.cli.commands import conform, mutate
from specchk.conform.contract.load import load_binding
from specchk.search.engine import Unavailable
from specchk.spark.jobs import PieceResult, Remote, came, reason_of, started, team, values_of
from specchk.spark.reasons import NO_JAVA, has_java

ROOT = SPEC.parent
CONFORMANCE = ROOT / "conformance"
TOY = """
from pathlib import Path
from typing import ClassVar

from helper import START, step
from specchk.conform.contract.binding import Accepted, At, Binding, Refused, action, project


class Counter:
    def __init__(self):
        self.n = START


class CounterBinding(Binding):
    spec, model = "counter.spec", "small"
    gate: ClassVar = (At(), At(bounds={"Most": "5"}, suite="edges"), At(suite="walks"))

    def start(self):
        return Counter()

    @action("up")
    def up(self, counter):
        if counter.n == self.constants["Most"]:
            return Refused("full")
        step(counter)
        return Accepted()

    @project
    def state(self, counter):
        return {"n": counter.n}
"""
HELPER = """
import os
from pathlib import Path

START = 0


def step(counter):
    counter.n += 1


if "TOLD" in os.environ:
    Path(os.environ["TOLD"]).write_text(__file__)
"""
MUTANTS = {
    "stuck": "pass",
    "hangs": "\\n    while True: pass",
    "dies": "os._exit(3)",
    "same": "counter.n = counter.n + 1",
}
COUNTER = """spec counter
const Most : int = 3
var n : 0..9 = 0
action up():
    require n < Most
    n' = n + 1
model small:
    expect holds
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A binding with a neighbour; both are in a place that no other process searches."""
    (tmp_path / "counter.spec").write_text(COUNTER)
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "binding.py").write_text(TOY)
    return tmp_path / "binding.py"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Bindings are imported here with their neighbours; the next test has others of the same name."""
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name in ("helper", "binding"):
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


def test_a_module_that_a_binding_lacks_there_is_named(tmp_path: Path) -> None:
    """A binding's loader wraps the error; the missing module is reported nevertheless."""
    binding = tmp_path / "binding.py"
    binding.write_text("import no_such_module_here\n")
    with pytest.raises(Unavailable, match="has no module `no_such_module_here`: install it"):
        values_of([came(0, lambda: load_binding(binding))])


def test_what_spark_says_of_a_failed_job_is_a_line() -> None:
    """The line of the exception, not the trace of the virtual machine."""
    text = "An error occurred\n: org.apache.spark.SparkException: Job aborted due to stage failure\n\tat x"
    assert reason_of(RuntimeError(text)) == "Job aborted due to stage failure"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--conf", "a=b"), "--conf requires --master"),
        (("--master", "local[2]", "--conf", "nothing"), "not of the form NAME=VALUE"),
        (("--master", "local[2]", "--list"), "--list cannot be combined with --master"),
        (("--master", "local[2]", "--case", "abc"), "--case cannot be combined with --master"),
    ],
)
def test_options_that_do_not_go_together_are_refused(toy: Path, args: tuple[str, ...], words: str) -> None:
    """No option is silently ignored."""
    found = CliRunner().invoke(conform.command, [str(toy), *args])
    assert found.exit_code == 2
    assert words in " ".join(found.output.split())


def test_without_java_it_says_what_to_install(toy: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """One sentence, before anything is run."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = CliRunner().invoke(conform.command, [str(toy), "--master", "local[2]"])
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
@pytest.mark.parametrize("is_wrong", [False, True])
def test_a_gate_is_told_as_on_one_machine(
    context: SparkContext, toy: Path, tmp_path: Path, is_wrong: bool
) -> None:
    """JSON, JUnit and exit code, of a gate that holds and of one that diverges."""
    del context
    if is_wrong:
        toy.write_text(TOY.replace('{"n": counter.n}', '{"n": min(counter.n, 2)}'))
    here, there = tmp_path / "here.xml", tmp_path / "there.xml"
    one = CliRunner().invoke(conform.command, [str(toy), "--json", "--junit", str(here)])
    two = CliRunner().invoke(
        conform.command, [str(toy), "--json", "--junit", str(there), "--master", "local[2]"]
    )
    assert one.exit_code == two.exit_code == (13 if is_wrong else 0)
    assert timeless(one.stdout) == timeless(two.stdout)
    times = re.compile(r' time="[^"]*"|\d+\.\d\d s\b')  # the divergence's text tells the suite's seconds
    assert times.sub("", here.read_text()) == times.sub("", there.read_text())


@pytest.mark.slow
def test_an_implementation_that_exits_diverges_as_it_does_here(context: SparkContext, toy: Path) -> None:
    """`os._exit` does not end the executor's worker, which would be no answer."""
    del context
    (toy.parent / "helper.py").write_text(HELPER.replace("counter.n += 1", "os._exit(counter.n)"))
    line = [str(toy), "--json", "--suite", "edges"]
    here = CliRunner().invoke(conform.command, line)
    there = CliRunner().invoke(conform.command, [*line, "--master", "local[2]"])
    assert here.exit_code == there.exit_code == 13
    assert "SystemExit" in there.stdout
    assert timeless(here.stdout) == timeless(there.stdout)


@pytest.mark.slow
def test_mutants_on_executors_have_the_fate_that_they_have_here(context: SparkContext, toy: Path) -> None:
    """One that hangs, or dies, ends no executor; verdicts, kills and the survey are those of this machine."""
    del context
    (toy.parent / "mutants").mkdir()
    tables = [
        f'[[mutant]]\nid = "{name}"\nflaw = "none"\nstory = "A story."\nmodule = "helper"\n'
        f'old = "counter.n += 1"\nnew = "{text}"\n'
        for name, text in MUTANTS.items()
    ]
    (toy.parent / "mutants" / "all.toml").write_text("\n".join(tables))
    options = ["--no-cache", "--json"]
    here = CliRunner().invoke(mutate.command, [str(toy), *options])
    there = CliRunner().invoke(mutate.command, [str(toy), *options, "--master", "local[2]"])
    assert here.exit_code == there.exit_code == 14
    found = [json.loads(one.stdout) for one in (here, there)]
    assert fates(found[0]) == fates(found[1])
    assert {one["id"]: bool(one["kills"]) for one in found[1]["mutants"]} == {
        "stuck": True, "hangs": True, "dies": False, "same": False
    }  # fmt: skip


def fates(found: Any) -> Any:
    """The results of a campaign, except for times."""
    kills = [[{**kill, "seconds": 0} for kill in one["kills"]] for one in found["mutants"]]
    mutants = [{**one, "seconds": 0, "kills": 0} for one in found["mutants"]]
    return {**found, "seconds": 0, "mutants": mutants}, kills


@pytest.mark.slow
def test_what_only_the_driver_has_is_missing(context: SparkContext, toy: Path, monkeypatch: Any) -> None:
    """A module that is not a file of the user's is not sent, but is named."""
    del context
    monkeypatch.setitem(sys.modules, "only_the_driver_has_it", ModuleType("only_the_driver_has_it"))
    toy.write_text(f"import only_the_driver_has_it\n{TOY}")
    found = CliRunner().invoke(conform.command, [str(toy), "--master", "local[2]"])
    assert found.exit_code == 2
    assert "has no module `only_the_driver_has_it`" in found.output


KILLS_SPARK = """
def step(counter):
    above = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
    if Path(f"/proc/{above}/comm").read_text() == "java\\n":  # of a worker: its daemon's parent
        os.kill(int(above), 9)
    counter.n += 1
"""


@pytest.mark.slow
def test_a_gate_whose_spark_ends_has_no_answer(toy: Path) -> None:
    """One sentence, also as JSON, and not the exit code of a wrong option."""
    (toy.parent / "helper.py").write_text(f"{HELPER}{KILLS_SPARK}")
    line = [sys.executable, "-m", "specchk", "conform", str(toy), "--master", "local[2]", "--json"]
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
def test_a_cluster_replays_a_suite_as_one_machine_does(cluster: Cluster) -> None:
    """A suite of replog's gate, on two workers without replog, has the report of one machine."""
    replay = ("conform", str(CONFORMANCE / "binding.py"), "--model", "page_cache_lost")
    assert specchk(*replay) == specchk(*replay, *there(cluster))


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
    main = Path(conform.__file__).parents[2] / "__main__.py"
    session = ["--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
           "SPARK_HOME": str(submit.parents[1]), "TOLD": str(tmp_path / "told")}  # fmt: skip
    line = [str(submit), *session, str(main), "conform", str(toy), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert "specchk-kit-" in (tmp_path / "told").read_text()
    assert timeless(done.stdout) == specchk("conform", str(toy))
