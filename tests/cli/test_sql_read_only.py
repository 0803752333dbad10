"""`specchk sql` reads the tables of its exports, and nothing else; it writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from export.exported import exported, program
from specchk.cli.sql import command

SECRET = "words of another file"
# {E} is the export, {W} the folder of the user, who has a file `secret` there.  A
# statement is refused, or answered without another file.
STATEMENTS = """
refused  copy edges to '{W}/new.csv'
refused  explain copy edges to '{W}/new.csv'; copy edges to '{W}/new.csv'
refused  explain analyze copy edges to '{W}/new.csv'
refused  explain analyze copy edges to '{E}/edges/part-0-00000.parquet'
refused  explain analyze copy edges to '{E}/edges/part-0-00000.parquet' (format parquet, use_tmp_file false)
refused  explain analyze copy edges to '{E}/new.parquet' (format parquet)
refused  explain analyze copy edges to 'export://0/edges/part-0-00000.parquet' (format parquet)
refused  explain analyze copy edges to 'export://0/edges/part-0-00000.parquet' (use_tmp_file false)
refused  explain analyze copy edges to 'export://0/new.parquet' (format parquet)
refused  explain analyze copy edges to 'export://0/new' (format parquet, partition_by (action))
refused  explain analyze copy edges to 'export://{W}/new.csv'
refused  explain (analyze, format json) copy edges to '{W}/new.csv'
refused  with x as (copy (select 1) to '{W}/new.csv') from x
refused  with x as (copy (select 1) to '{E}/edges/part-0-00000.parquet' (use_tmp_file false)) from x
refused  with x as (copy (select 1) to 'export://0/edges/part-0-00000.parquet' (use_tmp_file false)) from x
refused  explain analyze with x as (copy (select 1) to '{W}/new.csv') from x
refused  from query('copy (select 1) to ''{W}/new.csv''')
refused  copy (select 1) to '/dev/stdout'
refused  attach '{W}/new.db'
refused  attach '{E}/manifest.json' as other (type sqlite)
refused  explain analyze attach '{W}/new.db'
refused  detach memory
refused  install httpfs
refused  load httpfs
refused  load '{W}/secret'
refused  explain analyze install httpfs
refused  explain analyze load '{W}/secret'
refused  explain analyze update extensions
refused  pragma enable_profiling
refused  pragma profiling_output = '{W}/new.json'
refused  from enable_profiling(save_location = '{W}/new.json')
refused  call enable_logging(storage = 'file', storage_path = '{W}/new')
refused  from enable_logging(storage = 'file')
refused  set enable_external_access = true
refused  set allowed_directories = ['/']
refused  set temp_directory = '{W}/new'
refused  set lock_configuration = false
refused  explain analyze set lock_configuration = false
refused  reset allowed_directories
refused  export database '{W}/new'
refused  import database '{W}/new'
refused  explain analyze import database '{W}/new'
refused  create table new as from edges
refused  create persistent secret new (type s3, key_id 'x')
refused  explain analyze create persistent secret new (type s3, key_id 'x')
refused  drop view edges
refused  insert into edges values (1)
refused  with x as (insert into edges values (1) returning *) from x
refused  checkpoint; vacuum
refused  from read_csv('{W}/secret')
refused  from '{W}/secret'
refused  from read_text('{W}/secret')
refused  from read_blob('{E}/../secret')
refused  from read_text('{E}/manifest.json')
refused  from read_json('file://{E}/manifest.json')
refused  from read_parquet('{E}/*/*.parquet')
refused  from sniff_csv('{W}/secret')
refused  from parquet_metadata('{E}/edges/part-0-00000.parquet')
answered from read_text('export://{W}/secret')
refused  from read_parquet('http://127.0.0.1:1/x.parquet')
refused  from read_parquet('s3://bucket/x.parquet')
refused  from glob('{W}/*')
refused  select getenv('SECRET')
refused  from exports
refused  from duckdb_secrets()
refused  from arrow_scan(1, 2, 3)
answered from read_text('export://0/*')
answered from glob('export://**')
answered explain analyze select count(*) from edges
answered select current_setting('home_directory')
answered from checkpoint()
answered select write_log('new')
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("user")
    exported(program("kafka/kip101.spec", "small"), "native", folder / "export")
    (folder / "secret").write_text(SECRET)
    return folder


def contents(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("line", STATEMENTS.strip().splitlines())
def test_a_statement_changes_no_byte_and_reads_no_other_file(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its kind: what writes, what loads or sets, and every function that takes a file's name."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("SECRET", SECRET)
    before = contents(folder)
    end, _, text = line.partition(" ")
    statement = text.strip().replace("{E}", f"{folder}/export").replace("{W}", str(folder))
    result = CliRunner().invoke(command, ["export", statement])
    assert contents(folder) == before
    assert SECRET not in result.output
    assert result.exit_code == (0 if end == "answered" else 2), result.output
    assert "Traceback" not in result.output


def test_a_result_larger_than_memory_leaves_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit into memory goes to the system's folder for temporary files, and is removed."""
    monkeypatch.chdir(folder)
    (folder / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder / "temporary"))
    before = contents(folder)
    assert (
        "temporary/specchk-sql-"
        in CliRunner().invoke(command, ["export", "select current_setting('temp_directory')"]).output
    )
    assert contents(folder) == before
