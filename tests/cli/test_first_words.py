"""A wrong first word, and Tab behind a right one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("help", "--help"), ("verify", "run"), ("lock.spec", "run lock.spec"), ("rnu", "run"),
        ("my lock.spec", "run 'my lock.spec'"), ("prove", "run FILE --prove"),
    ],
)  # fmt: skip
def test_a_word_that_is_no_command_has_a_suggestion(specchk: Any, word: str, meant: str) -> None:
    said = specchk(word)
    assert said.code == 2
    assert f"Error: No such command '{word}'. Did you mean 'specchk {meant}'?\n" in said.err


def test_a_word_like_no_other_has_none(specchk: Any) -> None:
    said = specchk("xyzzy")
    assert said.code == 2
    assert "Error: No such command 'xyzzy'.\n" in said.err


def test_a_spec_in_place_of_a_binding_is_named(specchk: Any) -> None:
    said = specchk("conform", "shop.spec")
    assert said.code == 2
    assert "Error: shop.spec is a spec, not a Python file: name its binding, or `run` it\n" in said.err


def test_two_constants_in_one_option_are_taken_apart(specchk: Any) -> None:
    said = specchk("run", "shop.spec", "--set", "Clerk=3,Most=2")
    assert said.code == 2
    assert "one constant each: --set Clerk=3 --set Most=2" in " ".join(said.err.split())


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("specchk ex", ["plain,explore", "plain,export-tla", "plain,explain"]),
        ("specchk test --stri", ["plain,--strict"]),
        ("specchk run lo", ["file,lo"]), ("specchk test lo", ["file,lo"]),
    ],
)  # fmt: skip
def test_the_shell_completes_words(here: Path, line: str, completed: list[str]) -> None:
    words = line.split()
    asked = {"_SPECCHK_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    program = Path(sys.executable).with_name("specchk")
    done = subprocess.run(
        [program], env={**os.environ, **asked}, cwd=here, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == completed
