"""The worst input: a located diagnostic in bounded time and memory, never a traceback, never a hang.

Nothing here asserts on time: a hang would be a test that never ends.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specchk.lang.format.formatter import format_source
from specchk.lang.syntax.build import MAX_DEPTH
from specchk.lang.syntax.parse import parse
from specchk.lang.text.diagnostics import MAX_FOUND, Diagnostic, Report, SpecError, render
from specchk.lang.text.source import MAX_LINE, Source

Diagnose = Callable[..., tuple[Diagnostic, ...]]


def many(text: str, times: int, per_line: int = 200) -> str:
    """A repeated text, in lines that are not too long."""
    line = text * per_line
    return "\n ".join([line] * (times // per_line))


def garbage(size: int) -> bytes:
    return random.Random(0).randbytes(size)


def printable_garbage(size: int) -> str:
    rng = random.Random(0)
    return "".join(chr(rng.randrange(32, 127)) if rng.random() < 0.98 else "\n" for _ in range(size))


NESTED = {
    "parentheses": "invariant p: " + many("(", 10_000) + "x" + many(")", 10_000),
    "nots": "invariant p: " + many("not ", 10_000) + "true",
    "signs": "invariant p: 1 == " + many("- ", 10_000) + "1",
    "primes": "step invariant p: x" + many("'", 3_000),
    "sums": "invariant p: 1 == " + many("1 + ", 10_000) + "1",
    "implications": "invariant p: " + many("true implies ", 10_000) + "true",
    "options": "var x : bool" + many("?", 3_000) + " = none",
    "maps": "var x : " + many("bool -> ", 10_000) + "bool = none",
    "indices": "invariant p: x" + many("[0]", 1_200),
    "fields": "invariant p: x" + many(".a", 1_200),
    "conditions": "invariant p: " + many("if true then true else ", 3_000, 100) + "true",
    "lets": "invariant p: " + many("let a = true: ", 3_000) + "true",
    "quantifiers": "invariant p: " + many("forall x in {1}: ", 3_000) + "true",
    "blocks": "action a():\n" + "".join(f"{' ' * n}when true:\n" for n in range(1, 1_200)),
    "branches": "action a():\n" + "".join(f"{' ' * n}any x{n} in bool:\n" for n in range(1, 900))
    + " " * 900 + "skip\n",
    "braces": "invariant p: " + "{" * 99 + "}" * 99,
    "definitions": "".join(f"def f{n}(): int = f{n + 1}()\n" for n in range(3_000))
    + "def f3000(): int = 1\n",
    "circular definitions": "".join(f"def f{n}(): int = f{(n + 1) % 3000}()\n" for n in range(3_000)),
    "definitions, innermost first": "def f80(): bool = true\n"
    + "".join(f"def f{n}(): bool = {'not ' * 10}f{n + 1}()\n" for n in reversed(range(80)))
    + "var x : bool = true\ninvariant p: f0()\nmodel m:\n    expect holds\n",
    "constants": "".join(f"const c{n} : int = c{n + 1}\n" for n in range(3_000))
    + "const c3000 : int = 3\nvar x : 0..c0 = 0\nmodel m:\n    expect holds\n",
    "types": "".join(f"type T{n} = T{n + 1}?\n" for n in range(3_000))
    + "type T3000 = bool\nvar x : T0 = none\n",
    "exploding types": "".join(f"type T{n} = {{ a: T{n + 1}, b: T{n + 1} }}\n" for n in range(40))
    + "type T40 = bool\nvar x : T0 in T0\n",
    "circular models": "".join(f"model m{n} extends m{(n + 1) % 1000}\n" for n in range(1_000)),
}  # fmt: skip

MANY = {
    "syntax errors": "".join("var x : : bool\n" for _ in range(5_000)),
    "unknown names": "".join(f"var x{n} : bool = y{n}\n" for n in range(1_000)),
    "double names": "var x : bool = true\n" * 3_000,
    "printable garbage": printable_garbage(100_000),
}

ODD = {
    "nul bytes": ("spec a\nvar x\0 : bool = true\n", "S106"),
    "a lone carriage return": ("spec a\rvar x : bool = true\n", "S106"),
    "a form feed": ("spec a\n\fvar x : bool = true\n", "S101"),
    "a tab that indents": ("action a():\n\tskip\n", "S107"),
    "letters that are not ASCII": ("var \u03bb : bool = true\n", "S106"),
    "digits that are not ASCII": ("var x : \uff11..3 = 0\n", "S106"),
    "a line that is too long": ("# " + "x" * MAX_LINE, "S004"),
    "a number with 5000 digits": ("const N : int = " + "9" * 5_000, "S004"),
    "an unterminated everything": ("action a(\nvar x : seq[\ninvariant p: {\nmodel m:\n", "S103"),
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_deep_nesting_is_a_diagnostic(text: str, findings: Callable[[str], tuple[Diagnostic, ...]]) -> None:
    """No recursion of ours reaches the end of Python's stack."""
    found = findings(text)
    assert found
    for diagnostic in found:
        assert render(diagnostic).startswith("a.spec:")


@pytest.mark.parametrize("text", MANY.values(), ids=MANY)
def test_thousands_of_errors_end_at_the_hundredth(
    text: str, findings: Callable[[str], tuple[Diagnostic, ...]]
) -> None:
    """All errors of a run, up to a useful number."""
    assert len(findings(text)) == MAX_FOUND


@pytest.mark.parametrize(("text", "code"), ODD.values(), ids=ODD)
def test_odd_characters_are_located(
    text: str, code: str, findings: Callable[[str], tuple[Diagnostic, ...]]
) -> None:
    """The first diagnostic names them; rendering them is safe."""
    found = findings(text)
    assert found[0].code == code
    for diagnostic in found:
        assert render(diagnostic).isprintable() or "\n" in render(diagnostic)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "# only a comment", "\n" * 100_000, "\ufeffspec a\n", "spec a\r\nvar x : bool = true\r\n"],
    ids=["nothing", "a line end", "a comment", "line ends", "a byte order mark", "CRLF"],
)
def test_odd_but_right_files_are_accepted(
    text: str, findings: Callable[[str], tuple[Diagnostic, ...]]
) -> None:
    """They have no diagnostics."""
    assert findings(text) == ()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (garbage(200_000), "S002"),
        (b"\xff\xfe", "S002"),
        (b"spec a\nvar \xed\xa0\x80 : bool = true\n", "S002"),  # a lone surrogate, encoded
        (b"# " + b"x" * 10_000_000, "S003"),
    ],
    ids=["binary garbage", "UTF-16", "a lone surrogate", "a line of 10 MB"],
)
def test_bytes_that_are_no_spec_are_refused_unread(
    data: bytes, code: str, tmp_path: Path, diagnose: Diagnose
) -> None:
    """One diagnostic, with the path as it was given."""
    path = tmp_path / "a.spec"
    path.write_bytes(data)
    (found,) = diagnose(str(path))
    assert found.code == code
    assert render(found).startswith(
        f"{path}:1:1: error" if code != "S002" or data[:1] != b"s" else f"{path}:2:1"
    )


def test_a_text_with_lone_surrogates_is_located(diagnose: Diagnose) -> None:
    """Python strings may contain what no file can; standard input is decoded so."""
    (found,) = diagnose("a.spec", "spec a\nvar \ud800 : bool = true\n")
    assert found.code == "S106"
    render(found).encode()


def test_what_is_no_readable_file_is_one_diagnostic(tmp_path: Path, diagnose: Diagnose) -> None:
    """A directory, a missing file, a path through a file, a name that no system accepts."""
    (tmp_path / "file.spec").write_text("spec a\n")
    for path in [tmp_path, tmp_path / "no.spec", tmp_path / "file.spec" / "b.spec", "a\0b", "x" * 5_000]:
        (found,) = diagnose(str(path))
        assert found.code == "S001"
        render(found).encode()


def test_a_pipe_in_place_of_a_file_is_not_missing(tmp_path: Path, diagnose: Diagnose) -> None:
    """As with `<(command)`: it exists, and the hint is standard input."""
    os.mkfifo(tmp_path / "pipe")
    for path in [tmp_path / "pipe", Path("/dev/null")]:
        (found,) = diagnose(str(path))
        assert (found.code, found.message) == ("S001", f"{path} is not a regular file")
        assert "specchk run -" in (found.hint or "")


def test_an_element_that_is_named_twice_is_named(diagnose: Diagnose) -> None:
    """The message is not that a list of names was expected, since it is one."""
    (found,) = diagnose("a.spec", "spec a\nsort R\nvar x : R in R\nmodel m:\n    R = {a, b, a}\n")
    assert (found.code, found.message) == ("S505", "`a` is named twice in this sort")


def test_files_that_need_each_other_are_one_diagnostic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, diagnose: Diagnose
) -> None:
    """Through extends, import or both, and a file that needs itself."""
    monkeypatch.chdir(tmp_path)
    Path("a.spec").write_text("extends b\n")
    Path("b.spec").write_text("import c\n")
    Path("c.spec").write_text("extends a\n")
    Path("d.spec").write_text("extends d\n")
    assert [d.code for d in diagnose("a.spec")] == ["S005"]
    assert [d.code for d in diagnose("d.spec")] == ["S005"]


def test_a_link_to_itself_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, diagnose: Diagnose
) -> None:
    """Named by a command, or by another file."""
    monkeypatch.chdir(tmp_path)
    Path("a.spec").write_text("extends b\n")
    Path("b.spec").symlink_to("b.spec")
    assert [d.code for d in diagnose("a.spec")] == ["S006"]
    assert [d.code for d in diagnose("b.spec")] == ["S001"]


@given(data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_mutated_specs_are_accepted_or_diagnosed(
    data: st.DataObject, mutated: st.SearchStrategy[tuple[Path, str]], diagnose: Diagnose
) -> None:
    """A wrong spec causes only diagnostics, each of which can be printed and sent as JSON."""
    path, text = data.draw(mutated)
    for found in diagnose(str(path), text):
        assert found.where in render(found)
        assert found.as_json()["code"] == found.code


@given(
    text=st.text(max_size=200)
    | st.binary(max_size=200).map(lambda data: data.decode("utf-8", "surrogateescape"))
)
@settings(max_examples=200)
def test_random_text_is_accepted_or_diagnosed(text: str, diagnose: Diagnose) -> None:
    """The checker and the formatter both end."""
    for found in diagnose("a.spec", text):
        render(found).encode()
    with suppress(SpecError):
        format_source(text)


def test_an_error_behind_deep_nesting_is_the_one_that_is_reported() -> None:
    """Nesting is checked where the whole declaration can be parsed, as when trees were built afterwards."""
    deep = "not " * (MAX_DEPTH + 5) + "x"
    for text, code in ((deep, "S104"), (f"{deep})", "S103"), (f"{deep} x", "S101")):
        report = Report()
        parse(Source("a.spec", f"invariant a: {text}\n"), report)
        assert [found.code for found in report.found] == [code]
