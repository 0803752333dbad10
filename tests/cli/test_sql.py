"""`specchk sql`: forms of output, and errors that name the valid choices."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from export.exported import exported, of_text, program
from specchk.cli.sql import MOST_ROWS, command, show
from specchk.search.budget import Budget
from specchk.search.engine import Options

TABLES = "coverage, edges, levels, run, states, traces, violations"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    exported(program("kafka/kip320.spec", "small"), "native", folder / "kip320")
    part = Options(Budget(max_states=500))
    exported(program("kafka/kip101.spec", "small"), "native", folder / "a part", part)
    return folder


def run(place: Path, query: str, *options: str) -> Result:
    return CliRunner().invoke(command, [str(place / "kip320"), query, *options])


def test_a_table_for_people(place: Path) -> None:
    """Numbers to the right, text to the left, values as a spec writes them, nothing for null."""
    found = run(place, "select level, quorum_state, null as n from states where level < 2")
    assert found.exit_code == 0
    assert found.output.splitlines() == [
        "level  quorum_state                                       n",
        "-----  -------------------------------------------------  -",
        "    1  { isr: [r1, r2], leader: none, leader_epoch: -1 }",
    ]


def test_json_has_columns_and_rows(place: Path) -> None:
    """Structs are objects; maps with keys other than text are lists of pairs."""
    query = "select level, quorum_state, leader_and_isr_requests from states where level = 1"
    found = json.loads(run(place, query, "--json").output)
    assert found == {
        "schema": "specchk.sql/1",
        "columns": ["level", "quorum_state", "leader_and_isr_requests"],
        "rows": [
            [1, {"isr": ["r1", "r2"], "leader": None, "leader_epoch": -1}, [[0, None], [1, None], [2, None]]]
        ],
    }


def test_csv_has_json_in_its_cells(place: Path) -> None:
    """Any number of rows, a header, nothing for null."""
    found = list(
        csv.reader(io.StringIO(run(place, "select id, replica_log, null from states", "--csv").output))
    )
    assert found[0][:2] == ["id", "replica_log"]
    assert len(found) == 1 + 2987
    assert all(set(json.loads(row[1])) == {"r1", "r2"} and not row[2] for row in found[1:])
    empty = run(place, "select id from states where level = 0", "--csv")
    assert empty.output == "id\n"


def test_a_long_table_names_its_limit(place: Path) -> None:
    """Nothing is left out silently."""
    lines = run(place, "select id from states").output.splitlines()
    assert len(lines) == 2 + MOST_ROWS + 1
    assert lines[-1] == f"... more than {MOST_ROWS} rows: add a limit, or use --csv"
    assert len(run(place, f"select id from states limit {MOST_ROWS}").output.splitlines()) == 2 + MOST_ROWS


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select * from stats", f"no table stats: there are {TABLES}"),
        (
            "select lvl from states",
            "no column lvl: states has id, level, expanded, replica_log, ",
        ),
        ("select s.lvl from levels s", "no column lvl: levels has level, states, expanded, edges"),
        ("selec 1", 'Parser Error: syntax error at or near "selec" (selec 1)'),
        ("", "there are 0 statements: write one"),
        ("select 1; select 2", "there are 2 statements: write one"),
        ("drop view states", "drop is not a query: an export is read-only"),
        ("copy states to 'x.csv'", "copy is not a query: an export is read-only"),
        ("set threads = 1", "set is not a query: an export is read-only"),
        ("select * from read_text('/etc/hostname')", "Permission Error: "),
        ("select error('x') from states", "Invalid Input Error: x"),
    ],
)
def test_a_wrong_query_is_one_sentence(query: str, words: str, place: Path) -> None:
    """With the existing tables or columns, and without access to anything except the export."""
    found = run(place, query)
    assert found.exit_code == 2
    assert found.output.splitlines()[-1].startswith(f"Error: {words}")


def test_two_exports_are_schemas(place: Path) -> None:
    """Named as their directories, as far as SQL permits such names; an incomplete one is noted."""
    query = "select (select count(*) from kip320.states) a, (select count(*) from a_part.states) b"
    folders = [str(place / "kip320"), str(place / "a part")]
    found = CliRunner().invoke(command, [*folders, query])
    assert found.exit_code == 0
    first, second = map(int, found.stdout.splitlines()[-1].split())
    assert first == 2987
    assert 500 <= second < first
    reason = "the limit of 500 states (--max-states) was reached"
    assert found.stderr == f"note: {place}/a part does not have all reachable states: {reason}\n"
    wrong = CliRunner().invoke(command, [*folders, "from nothing"])
    assert (
        wrong.output.splitlines()[-1] == f"Error: no table nothing: there are {TABLES}, in kip320 and a_part"
    )


def test_a_folder_is_named_by_its_characters(place: Path, tmp_path: Path) -> None:
    """`x[1]` is not a pattern that stands for `x1`."""
    for name, number in (("x[1]", "kip320"), ("x1", "a part")):
        (tmp_path / name).symlink_to(place / number)
    counts = "select (select count(*) from x_1_.states) <> (select count(*) from x1.states) as n"
    answer = CliRunner().invoke(command, [str(tmp_path / "x[1]"), str(tmp_path / "x1"), counts])
    assert answer.output.splitlines()[2] == "true", answer.output


def test_one_form_of_output(place: Path) -> None:
    """Both would write to standard output."""
    assert run(place, "select 1", "--json", "--csv").exit_code == 2


def test_values_as_a_spec_writes_them() -> None:
    """Nested ones, too."""
    assert show({"a": [1, None, True], "b": {}}) == "{ a: [1, none, true], b: {} }"


MAPS = """\
spec maps
type Pair = (0..1, bool)
var pairs : map[Pair, 0..3] = {}
var numbers : map[0..9, bool -> 0..1] = {}
var names : map[enum_, 0..3] = {}
type enum_ = enum {key, value}
var lists : { key: seq[0..1] upto 1, value: seq[0..1] upto 1 } = { key: [], value: [] }
action fill():
    require pairs == {}
    pairs' = { (1, true): 2, (0, true): 1 }
    numbers' = { 3: { b: 0 for b in bool } }
    names' = { key: 1, value: 2 }
    lists' = { key: [1], value: [0] }
deadlock ok
"""


def test_maps_are_not_mistaken_for_structs(tmp_path: Path) -> None:
    """Those without pairs, and those whose keys are structs: lists of pairs, or the pairs as in a spec."""
    exported(of_text(MAPS, tmp_path), "native", tmp_path / "maps")
    query = [str(tmp_path / "maps"), "select pairs, numbers, names, lists from states order by level"]
    rows = json.loads(CliRunner().invoke(command, [*query, "--json"]).output)["rows"]
    assert rows == [
        [[], [], {}, {"key": [], "value": []}],
        [
            [[{"_1": 0, "_2": True}, 1], [{"_1": 1, "_2": True}, 2]], [[3, [[False, 0], [True, 0]]]],
            {"key": 1, "value": 2}, {"key": [1], "value": [0]},
        ],
    ]  # fmt: skip
    cells = list(csv.reader(io.StringIO(CliRunner().invoke(command, [*query, "--csv"]).output)))[1:]
    assert [[json.loads(cell) for cell in line] for line in cells] == rows
    shown = CliRunner().invoke(command, query).output.splitlines()[2:]
    assert [line.split("  ")[0] for line in shown] == [
        "{}",
        "{ { _1: 0, _2: true }: 1, { _1: 1, _2: true }: 2 }",
    ]


WIDE = """\
spec wide
var x : 0..100000000000000000000 = 99999999999999999999
var far : seq[0..10 ** 40] upto 1 = []
action up():
    require far == []
    x' = x + 1
    far' = [10000000000000000000000000000000000000000]
deadlock ok
""".replace("10 ** 40", str(10**40))


def test_numbers_beyond_64_bits_are_exported(tmp_path: Path) -> None:
    """As decimals, which queries compute with, and beyond 38 digits as text; JSON has the numbers."""
    exported(of_text(WIDE, tmp_path), "reference", tmp_path / "wide")
    query = [str(tmp_path / "wide"), "select x, x - 1 as y, far from states order by x"]
    rows = json.loads(CliRunner().invoke(command, [*query, "--json"]).output)["rows"]
    assert rows == [[10**20 - 1, 10**20 - 2, []], [10**20, 10**20 - 1, [str(10**40)]]]
    assert CliRunner().invoke(command, query).output.splitlines()[-1].split() == [
        str(10**20), str(10**20 - 1), f"[{10**40}]",
    ]  # fmt: skip


def test_json_has_no_infinite_numbers(place: Path) -> None:
    """They are text, since other readers would reject the whole answer."""
    found = run(place, "select 1e0 / 0, 0e0 / 0, 1.5, 0.5e0", "--json").output
    assert json.loads(found, parse_constant=pytest.fail)["rows"] == [["inf", "nan", "1.5", 0.5]]
