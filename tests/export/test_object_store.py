"""An export in an object store, and unusable stores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from export.exported import SPEC, exported, program
from export.stores import object_store
from spark.cluster import free_port
from specchk.cli.commands.run import command
from specchk.cli.sql import command as sql
from specchk.export.manifest import opened
from specchk.export.parts import RemoteDraft
from specchk.export.places import storage_at

KIP320 = str(SPEC / "kafka" / "kip320.spec")
QUERY = "select id, level, replica_state from states order by id"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with object_store(tmp_path_factory.mktemp("store") / "log") as found:
        yield found


@pytest.fixture
def store(server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.items():
        monkeypatch.setenv(name, value)


def printed(place: str, text: str = QUERY) -> str:
    found = CliRunner().invoke(sql, [place, text, "--json"])
    assert found.exit_code == 0, found.output
    return found.stdout


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_an_export_in_an_object_store_is_that_of_a_directory(
    scheme: str, store: None, tmp_path: Path
) -> None:
    """By Hadoop's name of the scheme, too: the same rows for `specchk sql`, and it is not overwritten."""
    place = f"{scheme}://bucket/{scheme}/kip320"
    found = CliRunner().invoke(command, [KIP320, "--engine", "native", "--export", f"{place}/"])
    assert found.exit_code == 0, found.output
    assert found.output.splitlines()[-1] == f"wrote {place}"
    exported(program("kafka/kip320.spec"), "native", tmp_path / "kip320")
    assert printed(place) == printed(str(tmp_path / "kip320"))
    joined = "select count(*) as n from kip320.states join edges on id = source"
    assert printed(place, joined) == printed(str(tmp_path / "kip320"), joined)
    again = CliRunner().invoke(command, [KIP320, "--export", place])
    assert again.exit_code == 2
    assert f"--export: {place} is there, and is not empty" in " ".join(again.output.split())


def refusal(place: str) -> str:
    """The final sentence of a failed query."""
    found = CliRunner().invoke(sql, [place, "select 1"])
    assert found.exit_code == 2
    return found.output.splitlines()[-1].removeprefix("Error: ")


def test_without_its_manifest_it_is_no_export(store: None) -> None:
    """An abandoned one leaves no file, and a finished one stays."""
    place = "s3://bucket/half"
    draft = RemoteDraft(place)
    draft.write("states/part", [b"1234", memoryview(b"9")])
    assert draft.has("states/part")
    with storage_at(place).open("states/part") as file:
        assert file.read() == b"12349"
    assert refusal(place) == f"{place} is not an export: it has no manifest.json, which is written last"
    draft.abandon()
    assert not draft.has("states/part")
    assert refusal(place) == f"{place} is not an export: there is no such directory"
    draft.finish(b"{}")
    draft.abandon()
    assert refusal(place) == f"{place} is not an export of this version of specchk (specchk.export/1)"


def test_a_damaged_export_in_a_store_is_refused_by_file(store: None) -> None:
    """A truncated part, and a lost one."""
    place = "s3://bucket/damaged"
    exported(program("two_round_fetch.spec", "small"), "native", place)
    (part, *_), stored = opened(place).files["states"], storage_at(place)
    size = stored.size(part)
    stored.write(part, [b"1234"])
    assert refusal(place) == f"bucket/damaged/{part} has 4 bytes instead of {size}: export again"
    stored.remove_file(part)
    assert refusal(place) == f"bucket/damaged/{part} is missing (No such file or directory): export again"


def test_a_bucket_that_is_not_there_is_a_sentence(store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search is not started for an export without a place."""
    monkeypatch.setattr("specchk.cli.commands.run.explore", None)
    found = CliRunner().invoke(command, [KIP320, "--export", "s3://nowhere/x"])
    assert found.exit_code == 2
    assert "--export: s3://nowhere/x cannot be written (" in " ".join(found.output.split())


@pytest.mark.parametrize(
    ("place", "variable"),
    [
        ("s3://bucket/x", "AWS_ENDPOINT_URL"), ("s3a://bucket/x", "AWS_ENDPOINT_URL_S3"),
        ("gs://bucket/x", "STORAGE_EMULATOR_HOST"), ("hdfs://127.0.0.1:{port}/x", "UNUSED"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("option", ["--export", "--ledger"])
def test_a_store_that_cannot_be_reached_is_named(
    place: str, variable: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a search, from the first refused connection: its client tries for minutes."""
    port = free_port()
    place = place.format(port=port)
    monkeypatch.setenv(variable, f"http://127.0.0.1:{port}")
    monkeypatch.setattr("specchk.spark.engine.session", None)
    found = CliRunner().invoke(command, [KIP320, "--engine", "spark", option, place])
    assert found.exit_code == 2, found.output
    words = f"{place} cannot be reached from {os.uname().nodename} (127.0.0.1:{port}: Connection refused)"
    assert words in " ".join(found.output.split())
    if option == "--export":
        assert refusal(place) == words


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("nosuch://bucket/x", "nosuch://bucket/x: Unrecognized filesystem type in URI: nosuch://bucket/x"),
        ("viewfs:///x", "it needs Hadoop's client: HADOOP_HOME, CLASSPATH (`hadoop classpath --glob`) and"),
    ],
)
@pytest.mark.parametrize("option", ["--export", "--ledger"])
def test_a_store_without_a_client_is_a_sentence(
    option: str, place: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown scheme, and HDFS without Hadoop."""
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    monkeypatch.setattr("specchk.spark.engine.session", None)
    found = CliRunner().invoke(command, [KIP320, "--engine", "spark", option, place])
    assert found.exit_code == 2, found.output
    assert words in " ".join(found.output.split())
