"""The VS Code extension: its grammar has the words that the parser has.

The test runs VS Code's own tokenizer, two packages of npm; where they cannot be had, it is skipped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from specchk.lang.syntax.parse import parse_tokens
from specchk.lang.text.diagnostics import Report
from specchk.lang.text.source import Source

ROOT = Path(__file__).resolve().parents[2]
EXTENSION = ROOT / "editors" / "vscode"
TOKENIZER = ("vscode-oniguruma", "vscode-textmate")
pytestmark = pytest.mark.system


@pytest.fixture
def extension(tmp_path: Path) -> Path:
    """A copy of what the test of the grammar reads, with the tokenizer of the extension."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    for part in ("syntaxes", "test"):
        shutil.copytree(EXTENSION / part, tmp_path / part)
    locked = json.loads((EXTENSION / "package-lock.json").read_text())["packages"]
    packages = [f"{name}@{locked[f'node_modules/{name}']['version']}" for name in TOKENIZER]
    words = [
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        "--fetch-retries=0",
        "--prefix",
        str(tmp_path),
        *packages,
    ]
    if subprocess.run(words, check=False, capture_output=True).returncode != 0:
        pytest.skip("packages of npm cannot be had")
    return tmp_path


def tokens(path: Path) -> tuple[str, str, list[tuple[int, int, int, str]]]:
    """A spec's words as the parser reads them, with lines and columns from 0."""
    source = Source(path.name, path.read_text("utf-8"))
    found = []

    def add(start: int, length: int, kind: str) -> None:
        line, column = source.position(start)
        found.append((line - 1, column - 1, length, kind))

    for offset, stream in parse_tokens(source, Report()):
        for token in stream:
            text = str(token)
            # `bool` as the set of its values is a name, and coloured as the type.
            if text != "bool" and (text[:1].isalnum() or text[:1] == "_"):
                kind = "name" if token.type == "NAME" else "number" if text[0].isdigit() else "keyword"
                add(offset + (token.start_pos or 0), len(text), kind)
    for match in re.finditer("#.*", source.text):
        add(match.start(), len(match[0]), "comment")
    return str(path.relative_to(ROOT)), source.text, found


@pytest.mark.parametrize("files", ["replication.spec", pytest.param("**/*.spec", marks=pytest.mark.slow)])
def test_every_word_of_a_bundled_spec_has_its_scope(extension: Path, files: str) -> None:
    file = extension / "tokens.json"
    specs = sorted((ROOT / "spec").glob(files))
    file.write_text(json.dumps([tokens(path) for path in specs]))
    done = subprocess.run(
        ["node", "--test", "test/grammar.test.mjs"], cwd=extension, capture_output=True, text=True,
        check=False, env={**os.environ, "SPECCHK_TOKENS": str(file)},
    )  # fmt: skip
    assert done.returncode == 0, [line for line in done.stdout.splitlines() if " is " in line][:20]
    assert re.search(rf"pass {len(specs)}$", done.stdout, re.MULTILINE)
