"""Forty wrong inputs by somebody who had not read the messages: wrong_inputs.txt, and what is said to each.

A block is a title, the files after `--- NAME`, and a command after `$`; `shop.spec` is there for each.  With
`--rewrite` wrong_inputs_said.txt is written anew; rate what changes: the place, and a hint that is the fix.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

INPUTS = Path(__file__).with_name("wrong_inputs.txt")
SAID = INPUTS.with_name("wrong_inputs_said.txt")
BLOCKS = re.split(r"^## ", INPUTS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
LONG = "38 a method that does not return"  # four seconds


def written(block: str, folder: Path) -> list[str]:
    """Write the files of a block; returns its command."""
    *files, command = re.split(r"^(?:--- |\$ )", block, flags=re.MULTILINE)[1:]
    for file in files:
        name, text = file.split("\n", 1)
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(text.replace("\\xff\\xfe\\x00", "\xff\xfe\0").encode("latin-1"))
    return command.split()


@pytest.mark.parametrize("block", [
    pytest.param(block, id=block.split("\n", 1)[0], marks=[pytest.mark.slow][: block.startswith(LONG)])
    for block in BLOCKS
])  # fmt: skip
def test_a_wrong_input_is_answered_as_agreed(specchk, here, block, request):
    """The text and the exit code, without times and the name of the folder."""
    title, command = block.split("\n", 1)[0], written(block, here)
    said = specchk(*command)
    text = re.sub(r"\d+\.\d+ s\b", "T s", f"{said.out}{said.err}".replace(str(here), "HERE"))
    text = text.replace("python -m pytest.specchk", "specchk")  # as click names a command of one process
    now = f"{title}\n$ specchk {' '.join(command)}\n{text.rstrip()}\nexit {said.code}\n\n"
    agreed = SAID.read_text(encoding="utf-8").split("## ") if SAID.exists() else [""]
    if request.config.getoption("--rewrite"):
        others = [one for one in agreed if not one.startswith(f"{title}\n")]
        SAID.write_text("## ".join(sorted([*others, now])), encoding="utf-8")
    else:
        assert now in agreed
