"""Documents and program output avoid the phrases that STYLE.md lists: its two tables are the list.

A document is read without fenced blocks (code, and output that is checked here at its source) and inline
code.  Output is read at its source: the help of each command, the string literals of specchk's files,
and the first lines of their docstrings.  `exceptions.toml` counts what is left, by folder; it only shrinks.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest

from laws.sources import ROOT, Module, modules
from laws.test_sizes import check
from specchk.cli.main import cli

STYLE = ROOT / "STYLE.md"
NAMES = ("README.md", "STYLE.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")
DOCUMENTS = [*(ROOT / name for name in NAMES), *sorted((ROOT / "docs").glob("*.md"))]
_ROW = re.compile(r"^\| ([^|]+) \|", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_VERBS = "is was are were has have had a it they the can cannot does needs".replace(" ", "|")
_CLAUSE = re.compile(
    rf"(?:^(?:[-|*] |\d\. )?|[.;:|] )((?:What|Who) (?:{_VERBS})\b)(?=[^?]*?[.:;|])", re.MULTILINE
)
_NEGATED = re.compile(
    r"(?<!there )\b(?:is|are|was|were|be) no (?!longer\b|more\b|less\b)[a-z`]+", re.IGNORECASE
)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def table(heading: str) -> list[str]:
    """The first column of the table of STYLE.md with these headings."""
    return _ROW.findall(STYLE.read_text(encoding="utf-8").split(heading, 1)[1].split("\n\n", 1)[0])


WORDS = [word.strip() for row in table("| avoid | write |") for word in row.split(",")]
PHRASES = table("| instead of | write |")
_WORDS = re.compile(rf"\b(?:{'|'.join(map(re.escape, WORDS))})\b", re.IGNORECASE)
_PHRASES = re.compile("|".join(map(re.escape, PHRASES)), re.IGNORECASE)


def sources() -> Iterator[Module]:
    """The modules of specchk."""
    return (module for module in modules() if module.name.startswith("specchk."))


def prose(text: str) -> str:
    """A document without code, and without the tables of STYLE.md; its lines keep their numbers."""
    text = _FENCED.sub(lambda found: "\n" * found[0].count("\n"), text)
    for heading in ("| avoid | write |", "| instead of | write |"):
        if heading in text:
            rows = text.split(heading, 1)[1].split("\n\n", 1)[0]
            text = text.replace(rows, "\n" * rows.count("\n"))
    return re.sub(r"`[^`\n]*`", "`", text)


def avoided(text: str) -> list[tuple[int, str]]:
    """Each phrase of the lists, with its line; a phrase may cross the end of a line."""
    text = prose(text)
    flat = text.replace("\n", " ")
    found = [match for pattern in (_WORDS, _PHRASES, _NEGATED) for match in pattern.finditer(flat)]
    found += _CLAUSE.finditer(text)
    return sorted((text[: match.start()].count("\n") + 1, match[0].strip()) for match in found)


def helps(command: click.Command, *path: str) -> Iterator[tuple[str, str]]:
    """The help of a command and of those below it, unwrapped."""
    yield " ".join(path), command.get_help(click.Context(command, max_content_width=10_000))
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), name)
            assert below is not None
            yield from helps(below, *path, name)


def contracts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The first line of each docstring of a file, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node)) is not None:
            yield node.body[0].lineno, text.partition("\n")[0]


def literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The string literals of a file with their lines; of a formatted one, its fixed parts."""
    nodes = list(ast.walk(tree))
    parts = {node.value for node in nodes if isinstance(node, ast.Expr)}
    parts.update(part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values)
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            texts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(map(str, texts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield node.lineno, node.value


def found_in(module: Module, texts: Iterable[tuple[int, str]]) -> list[str]:
    """Where texts of a file have a phrase of the lists; single words are names, not texts."""
    return [
        f"{module.shown}:{line}: {phrase}"
        for line, text in texts
        if " " in text.strip()
        for _, phrase in avoided(text)
    ]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_a_document_avoids_the_phrases_of_the_list(path: Path):
    """Programs report and check; a clause is not a noun."""
    found = [f"{path.name}:{line}: {phrase}" for line, phrase in avoided(path.read_text(encoding="utf-8"))]
    assert not found, "see the tables of STYLE.md"


def test_the_help_of_all_commands_avoids_them():
    """An option is described as in a manual."""
    found = [
        f"{name} --help: {phrase}" for name, text in helps(cli, "specchk") for _, phrase in avoided(text)
    ]
    assert not found, "see the tables of STYLE.md"


def test_the_strings_of_sources_avoid_them():
    """Messages, reports and pages are read like documents."""
    found = [line for module in sources() for line in found_in(module, literals(module.tree))]
    assert not found, "see the tables of STYLE.md"


def test_the_first_lines_of_docstrings_avoid_them(request):
    """All but the listed ones, by folder; the list only shrinks."""
    counts = Counter(module.folder for module in sources() for _ in found_in(module, contracts(module.tree)))
    check(dict(counts), "dialect", request.config.getoption("--rewrite"))


def test_the_lists_are_found_and_find():
    """Planted phrases are found, across lines too, and code is left out."""
    assert {"told", "taken for"} <= set(WORDS)
    assert "opened again from disk" in PHRASES
    assert avoided("The user is\ntold.\n") == [(2, "told")]
    assert avoided("It was opened again\nfrom disk.") == [(1, "opened again from disk")]
    assert [line for line, _ in avoided("One.\n\nWhat is lower ends.\nNext. What was it?\n")] == [3]
    assert avoided("A suite\nis no proof.\n") == [(2, "is no proof")]
    assert not avoided("There is no proof, it is no longer one, and it is no less.\n")
    assert not avoided("`told`\n\n```text\ntold\n```\n")


def test_texts_of_sources_are_found():
    """Planted: a docstring, a message in two pieces, a formatted one; no names, no further lines."""
    tree = ast.parse(
        '''
def tell(asked):
    """The user is told.

    Asked."""
    raise ValueError("it is "
                     "asked")
print(f"{1} is gone on from", "told", {"asked": 1})
'''
    )
    assert list(contracts(tree)) == [(3, "The user is told.")]
    texts = [text for _, text in literals(tree) if " " in text]
    assert sorted(texts) == ["it is asked", "{} is gone on from"]
    assert [phrase for text in sorted(texts) for _, phrase in avoided(text)] == ["asked", "is gone"]


def test_the_help_of_every_command_is_read():
    """All commands are there, with the texts of their options."""
    texts = dict(helps(cli, "specchk"))
    assert {"specchk run", "specchk conform", "specchk mutate"} <= texts.keys()
    assert "--no-symmetry" in texts["specchk run"]
