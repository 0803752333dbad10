"""`specchk test`, `check`, `explain`, `repl`: their output and their exit codes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from specchk.cli.commands.repl import Session
from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import check


def test_test_holds_every_model_and_scenario_to_its_word(specchk: Any) -> None:
    """0 if all are as expected, with a line for each and their number."""
    said = specchk("test", "shop.spec")
    assert (said.code, said.err) == (0, "")
    assert [line.split(":")[0].split() for line in said.out.splitlines()[:-1]] == [
        ["ok", "shop.spec", "good"], ["ok", "shop.spec", "bad"], ["ok", "shop.spec", "scenario", "walk"],
    ]  # fmt: skip
    assert said.out.splitlines()[-1] == "3 as expected, 0 not"


def test_test_ends_with_10_where_something_is_not_as_expected(specchk: Any) -> None:
    """A folder is tested whole; both the expectation and the result are reported."""
    said = specchk("test", ".")
    assert said.code == 10
    assert "expected to hold" in said.out
    assert "unexpected: deadlock in 2 steps" in said.out
    assert "3 as expected, 1 not" in said.out


def test_test_in_json_has_every_result(specchk: Any) -> None:
    """One object with all results, passed or not."""
    said = specchk("test", ".", "--json")
    found = json.loads(said.out)
    assert found["schema"] == "specchk.test/1"
    assert found["exit_code"] == said.code == 10
    assert [result["passed"] for result in found["results"]] == [True, True, True, False]


def test_testing_no_model_is_a_usage_error(specchk: Any) -> None:
    """A name that no model has tests nothing, which is an error."""
    said = specchk("test", "shop.spec", "--model", "nobody")
    assert said.code == 2
    assert said.err == "nothing was tested: no model has that name\n"
    said = specchk("test", "shop.spec", "--model", "nobody", "--json")
    assert json.loads(said.out)["exit_code"] == said.code == 2


def test_an_empty_file_is_reported_as_one(specchk: Any, tmp_path: Path) -> None:
    """It is valid for the parser, so each command states what is missing."""
    empty = tmp_path / "empty.spec"
    empty.write_text("")
    assert specchk("test", str(empty)).err == "nothing was tested: no file has a model\n"
    for command in ("run", "check"):
        said = specchk(command, str(empty))
        assert "the spec has no variables: it has one state" in said.out + said.err


def test_a_model_that_a_budget_stops_is_not_as_expected(specchk: Any) -> None:
    """Inconclusive is a failure of the test."""
    said = specchk("test", "shop.spec", "--model", "good", "--max-states", "1")
    assert said.code == 10
    assert "inconclusive" in said.out


def test_check_finds_all_mistakes_of_all_files(specchk: Any, here: Path) -> None:
    """Findings of every file, not of the first; 0 and a line a file without any."""
    assert specchk("check", "shop.spec", "stuck.spec").code == 0
    (here / "one.spec").write_text("spec one\nvar x : 0..3 = y\n", encoding="utf-8")
    (here / "two.spec").write_text("spec two\nvar x : bool = 3\n", encoding="utf-8")
    said = specchk("check", "one.spec", "two.spec")
    assert said.code == 30
    assert "one.spec:2:16" in said.err
    assert "two.spec:2:16" in said.err
    found = json.loads(specchk("check", "--json", "one.spec", "two.spec").out)
    assert {d["path"] for d in found["diagnostics"]} == {"one.spec", "two.spec"}


def sarif(specchk: Any, here: Path, *files: str) -> dict[str, Any]:
    """The run in the log of `check --sarif`."""
    specchk("check", *files, "--sarif", "out.sarif")
    (run,) = json.loads((here / "out.sarif").read_text(encoding="utf-8"))["runs"]
    return run


def test_sarif_has_the_regions_of_the_json(specchk: Any, here: Path) -> None:
    """Ends are behind the last character, also on a later line; and a log without results closes alerts."""
    text = "spec a\nvar z : 0..3 = 0\ninvariant p: z +\n    1\ninvariant q: zz\n"
    (here / "a b.spec").write_text(text, encoding="utf-8")
    run = sarif(specchk, here, "a b.spec")
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert {place["artifactLocation"]["uri"] for place in places} == {"a%20b.spec"}
    diagnostics = json.loads(specchk("check", "a b.spec", "--json").out)["diagnostics"]
    assert [tuple(place["region"].values()) for place in places] == [
        tuple(item[name] for name in ("line", "column", "end_line", "end_column")) for item in diagnostics
    ]
    assert (diagnostics[0]["line"], diagnostics[0]["end_line"], diagnostics[0]["end_column"]) == (3, 4, 6)
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {item["code"] for item in diagnostics}
    assert sarif(specchk, here, "shop.spec")["results"] == []


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("set_to", ["Most = 99", "Most = Most", "Most = 4 // 0"])
def test_check_looks_at_the_constants_of_every_model(
    specchk: Any, here: Path, number: int, set_to: str
) -> None:
    """Not only of the first: a model whose constants are out of range cannot be run."""
    models = ["model a:\n    Most = 1\n", f"model z:\n    {set_to}\n"]
    text = "spec s\nconst Most : 0..9\nvar x : 0..Most = 0\naction up():\n    x' = Most\ndeadlock ok\n"
    (here / "s.spec").write_text(text + "".join(models if number else models[::-1]), encoding="utf-8")
    said = specchk("check", "s.spec")
    assert (said.code, set_to.split(" = ")[1] in said.err) == (30, True), said.err


REJECTED = {
    "view n in Node:\n    label same: of == { k: 0 for k in {0, 1} }\n": "S309",
    "scenario way on m:\n    assert of == { k: 0 for k in {0, 1} }\n": "S309",
    "scenario way on other:\n    put(0) where of == { k: 0 for k in {0, 1} }\n": "S309",
    "scenario way on other:\n    put(card({ { k: 0 for k in {0, 1} } }))\n": "S309",
    "liveness ends: eventually of[0] == 1 or always of[0] == 0\n": "S601",
    "liveness ends: forall k, n in Key: eventually of[k] == n\n": "S604",
}


@pytest.mark.parametrize("line", REJECTED)
def test_check_is_not_content_with_what_another_command_rejects(specchk: Any, here: Path, line: str) -> None:
    """`run`, `draw` or `test`, once the model is known."""
    text = """spec s
sort Node
type Key = 0..69
var of : Key -> 0..1 = { k: 0 for k in Key }
action put(k: Key):
    of'[k] = 1
deadlock ok
model m:
    Node = 2
model other extends m:
    actions put
"""
    (here / "s.spec").write_text(text, encoding="utf-8")
    assert specchk("check", "s.spec").code == 0
    (here / "s.spec").write_text(text + line, encoding="utf-8")
    said = specchk("check", "s.spec")
    assert (said.code, said.err.count("error"), REJECTED[line] in said.err) == (30, 2, True), said.err


LATER = {
    "    properties ends\n": "S601",
    "    properties pairs\n    Last = 69\n": "S604",
    "    actions put, several\n    Last = 20\n": "S510",
    "    ignore of\n": "S513",
}


@pytest.mark.parametrize("line", LATER)
def test_check_rejects_what_only_a_later_model_selects(specchk: Any, here: Path, line: str) -> None:
    """Temporal formulas, fairness and instances; the errors of another model are no reason to omit them."""
    text = """spec s
const Last : 0..99
type Key = 0..Last
var of : Key -> 0..1 = { k: 0 for k in Key }
action put(k: Key):
    of'[k] = 1
action several(a: Key, b: Key, c: Key, d: Key, e: Key):
    of'[a] = of[b] * of[c] * of[d] * of[e]
liveness keeps: eventually of[0] == 1
liveness pairs: forall k, n in Key: eventually of[k] == n
liveness ends: eventually of[0] == 1 or always of[0] == 0
constraint small: sum(of[k] for k in Key) < 3
deadlock ok
fair put(k)
model m:
    Last = 1
    actions put
    properties keeps
model n extends m:
"""
    (here / "s.spec").write_text(text + "    Last = 2\n", encoding="utf-8")
    assert specchk("check", "s.spec").code == 0
    (here / "s.spec").write_text(text + line, encoding="utf-8")
    said = specchk("check", "s.spec")
    assert (said.code, LATER[line] in said.err) == (30, True), said.err


UNTIDY = "spec s\nvar  x:0..3=0\n"


def test_fmt_prints_a_difference_and_exits_with_1(specchk: Any, here: Path) -> None:
    """Like `diff`; nothing is changed, and `--check` keeps its exit code."""
    (here / "untidy.spec").write_text(UNTIDY)
    said = specchk("fmt", "--diff", "untidy.spec")
    assert (said.code, "+var x : 0..3 = 0" in said.out) == (1, True)
    assert specchk("fmt", "--check", "untidy.spec").code == 10
    assert (here / "untidy.spec").read_text() == UNTIDY
    assert specchk("fmt", "untidy.spec").code == specchk("fmt", "--diff", "untidy.spec").code == 0


def test_specs_are_read_from_standard_input(
    specchk: Any, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`check -` and `run -`, with places in `stdin`; base specs are in the current directory."""
    text = (here / "stuck.spec").read_text()
    for given in (text, "spec more\nextends stuck\nmodel m:\n    expect holds\n"):
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        said = specchk("run", "-", "--engine", "reference")
        assert (said.code, "deadlock in 2 steps" in said.out, "next:" in said.out) == (11, True, False)
    monkeypatch.setattr(sys, "stdin", io.StringIO(UNTIDY + "var y : 0..3 = z\n"))
    said = specchk("check", "-")
    assert (said.code, said.err.splitlines()[0]) == (30, "stdin:3:16: error S201: no name `z` is known here")


def test_a_spec_without_models_or_variables_is_no_silent_ok(specchk: Any, here: Path) -> None:
    """`check` has a note for each, `run` a warning, or the model that is missing."""
    (here / "empty.spec").write_text("spec empty\n")
    _, models, variables = specchk("check", "empty.spec").out.splitlines()
    assert models.startswith("note: empty.spec: no model")
    assert variables.startswith("note: empty.spec: the spec has no variables")
    assert "warning: the spec has no variables" in specchk("run", "empty.spec").out
    (here / "open.spec").write_text("spec open\nsort R\nconst N : int\nvar x : 0..N = 0\n")
    said = specchk("run", "open.spec")
    assert (said.code, "there is no model that sizes sort `R`" in said.err) == (30, True)
    said = specchk("run", "open.spec", "--set", "R=2")
    assert "there is no model that fixes constant `N`" in said.err


def test_test_overrides_constants(specchk: Any) -> None:
    """In each model and its scenarios, and the line names them."""
    said = specchk("test", "shop.spec", "--model", "bad", "--set", "Most=2")
    assert said.code == 10
    assert said.out.startswith("FAILED shop.spec bad (Most = 2): holds")
    assert specchk("test", "shop.spec", "--set", "Many=2").code == 30


def test_the_page_is_not_suggested_once_it_is_written(specchk: Any) -> None:
    """`next:` is a command that was not run yet."""
    assert "next: specchk run" in specchk("run", "stuck.spec").out
    assert "next:" not in specchk("run", "stuck.spec", "--html", "page.html").out


def test_explain_knows_its_codes_and_their_neighbours(specchk: Any) -> None:
    """A page for a code in either case; an unknown code is a usage error."""
    assert specchk("explain", "s201").out == specchk("explain", "S201").out != ""
    assert "S201" in specchk("explain").out
    assert specchk("explain", "S999").code == 2


def repl(specchk: Any, monkeypatch: pytest.MonkeyPatch, *lines: str, file: str = "shop.spec") -> list[str]:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines) + "\n"))
    said = specchk("repl", file)
    assert (said.code, said.err) == (0, "")
    return said.out.splitlines()


def test_the_repl_walks_through_a_pipe(specchk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Expressions, steps by name and number, undo and trace; no prompt without a terminal."""
    out = repl(specchk, monkeypatch, "stock + 1", ":take add(c2)", "by", "few and stock == 1", ":take 1",
               ":undo",
               "stock", ":quit", "never read")  # fmt: skip
    assert out == [
        "1", "stock: 0 -> 1", "by: none -> some(c2)", "some(c2)", "true", "stock: 1 -> 2",
        "by: some(c2) -> some(c1)",
        "undone: add(c1)", "1",
    ]  # fmt: skip


def test_the_repl_begins_at_the_end_of_a_trace_or_scenario(
    specchk: Any, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of `run --json`, or one that the spec has; `--json` prints the answer to each line."""
    (here / "trace.json").write_text(specchk("run", "shop.spec", "--model", "bad", "--json").out)
    for begun, stock in ((("--trace", "trace.json"), "3"), (("--scenario", "walk"), "0")):
        monkeypatch.setattr(sys, "stdin", io.StringIO("stock\n:undo\n:take nothing\n:quit\nstock\n"))
        said = specchk("repl", "shop.spec", *begun, "--json")
        report = json.loads(said.out)
        assert (said.code, report["schema"]) == (0, "specchk.repl/1")
        assert [answer["input"] for answer in report["answers"]] == ["stock", ":undo", ":take nothing"]
        assert report["answers"][0]["lines"] == [stock]
        assert report["answers"][2]["lines"] == ["no enabled step `nothing`; :steps lists them"]
    assert specchk("repl", "shop.spec", "--trace", "trace.json", "--scenario", "walk").code == 2


def test_the_server_for_agents_names_the_extra_that_it_needs(
    specchk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the SDK, one sentence and no traceback."""
    for name in ("mcp", "mcp.server"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "specchk.mcp.server", raising=False)
    said = specchk("mcp")
    assert said.code == 2
    assert "pip install 'specchk[mcp]'" in said.err


def test_the_repl_knows_the_words_of_other_programs(specchk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`help` and `?` list the commands, `quit` and `exit` end it; a name of the spec is one."""
    assert repl(specchk, monkeypatch, "help") == repl(specchk, monkeypatch, "?")
    assert ":help, :quit" in repl(specchk, monkeypatch, "help")
    for word in ("quit", "exit", ":quit", ":q"):
        assert repl(specchk, monkeypatch, word, "stock") == []
    Path("exit.spec").write_text(
        "spec exit\nvar exit : 0..1 = 1\nmodel m:\n    expect holds\n", encoding="utf-8"
    )
    assert repl(specchk, monkeypatch, "exit", file="exit.spec") == ["1"]


def test_the_repl_completes_names_and_commands(specchk: Any) -> None:
    """What is declared, elements of sorts and functions; behind a colon, commands."""
    session = Session(instantiate(check("shop.spec")))
    every = {start: [] for start in ("st", ":st", "c", "ad", "nothing")}
    for start, words in every.items():
        while (word := session.completion(start, len(words))) is not None:
            words.append(word)
    assert every["st"] == ["stock"]
    assert every[":st"] == [":start", ":state", ":steps"]
    assert {"c1", "c2", "card"} <= set(every["c"])
    assert every["ad"] == ["add"]
    assert every["nothing"] == []


def test_the_repl_answers_mistakes_and_goes_on(specchk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Diagnostics, undefined values, unknown commands and steps leave the session alive."""
    out = repl(specchk, monkeypatch, "stokc", "1 // 0", ":dance", ":take sell(c1)", ":undo", ":start 9",
               "", "# no",
               "stock")  # fmt: skip
    text = "\n".join(out)
    assert "did you mean `stock`?" in text
    assert "undefined: division by zero" in text
    assert "unknown command :dance" in text
    assert "no enabled step `sell(c1)`" in text
    assert "there is no step to undo" in text
    assert "there is only one initial state" in text
    assert out[-1] == "0"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("always few", "error S403"),
        ("few leadsto few", "error S403"),
        ("stock' == stock", "error S401"),
        ("few", "true"),
    ],
)
def test_the_repl_evaluates_in_one_state(
    line: str, answer: str, specchk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps and behaviours have no value in a state, and are refused as everywhere."""
    assert answer in repl(specchk, monkeypatch, line)[0]


@pytest.mark.parametrize("number", ["²", "0", "9", "-1", "one", "9" * 5000])
def test_the_repl_starts_in_no_state_that_is_not_there(
    number: str, specchk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number that is not an initial state's leaves the session unchanged."""
    out = repl(specchk, monkeypatch, ":take add(c1)", f":start {number}", "stock", ":start", ":start 1")
    assert out[2:4] == ["there is only one initial state", "1"]
    assert out[4:6] == out[6:8] == ["stock = 0", "by = none"]


def test_the_repl_needs_a_state_to_start_in(
    specchk: Any, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An undefined or impossible initial state is reported without a traceback."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    for start in ("var x : 0..3 = 4", "var x : 0..3\ninit: x == 9"):
        (here / "none.spec").write_text(
            f"spec none\n{start}\naction a():\n    skip\nmodel m:\n    expect holds\n"
        )
        said = specchk("repl", "none.spec")
        assert (said.code, said.out) == (2, "")
        assert "init" in said.err


def test_check_notes_what_is_stored_in_a_special_way(specchk: Any, here: Path) -> None:
    """With its place and its cost; also constructs that the native engine does not compile at all."""
    (here / "set.spec").write_text(
        "spec listed\nvar x : set[0..999] = {}\ndeadlock ok\nmodel m:\n    expect holds\n"
    )
    (here / "wide.spec").write_text(
        f"spec wide\nvar x : 0..{1 << 63} = 0\ndeadlock ok\nmodel m:\n    expect holds\n"
    )
    found = specchk("check", "set.spec", "wide.spec")
    assert found.code == 0
    listed, wide = [line for line in found.out.splitlines() if line.startswith("note: ")]
    assert listed.startswith(
        "note: set.spec:2:1: `x` lists its items: 10 bits each, at first for 4 of the 1 000"
    )
    assert wide.startswith("note: wide.spec:2:1: not compiled: numbers of more than 62 bits; the reference")
