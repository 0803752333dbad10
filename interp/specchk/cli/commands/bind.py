"""`specchk bind`: the skeleton of a binding."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from types import MappingProxyType

import click

from specchk.cli.common import ModelChoice, load, refusals, rejections
from specchk.cli.groups import takes
from specchk.cli.written import put_new
from specchk.compile.instantiate import instantiate
from specchk.conform.adapter.skeleton import filled, lists_of, words_of
from specchk.explore.walk import NoStart, started

SKELETONS = Path(__file__).parents[1] / "skeletons"
BINDING = "binding.py"
# language -> (program, how the binding starts it)
PROCESSES = MappingProxyType({
    "javascript": ("adapter.js", ('command = ("node", "adapter.js")',)),
    "go": ("adapter.go", ('build = ("go", "build", "-o", "{build}/adapter", "adapter.go")',
                          'command = ("{build}/adapter",)')),
    "java": ("Adapter.java", ('build = ("javac", "-d", "{build}", "Adapter.java")',
                              'command = ("java", "-cp", "{build}", "Adapter")')),
})  # fmt: skip


@click.command("bind")
@takes(choice=ModelChoice)
@click.option(
    "--language", type=click.Choice(["python", *PROCESSES]), default="python", show_default=True,
    help="Language of the implementation.",
)  # fmt: skip
@click.option(
    "--into",
    type=click.Path(),
    metavar="DIR",
    default=".",
    show_default=True,
    help="Write into the folder DIR.",
)
def command(choice: ModelChoice, language: str, into: str) -> None:
    """Write the skeleton of a binding to the spec FILE, and that of an adapter for another language."""
    if choice.file == "-":
        raise click.BadParameter(
            "the binding names the spec's file, so it cannot be standard input", param_hint="FILE"
        )
    with rejections():
        checked = load(choice.file)
        instance = instantiate(checked, choice.model, choice.table, choice.properties)
    with refusals(NoStart):
        initial = started(instance).initial[0]
    program = instance.program
    words = words_of(program, initial, os.path.relpath(choice.file, into))
    lists = lists_of(program, checked.spec, initial)
    names = {BINDING: "binding.py.txt"}
    if language in PROCESSES:
        adapter, launch = PROCESSES[language]
        words |= {"program": adapter, "launch": "\n    ".join(launch), "pattern": f"*{Path(adapter).suffix}"}
        names = {BINDING: "process.py.txt", adapter: f"{adapter}.txt"}
    texts = {name: (SKELETONS / template).read_text(encoding="utf-8") for name, template in names.items()}
    skeletons = {name: filled(text, words, lists) for name, text in texts.items()}
    put_new(Path(into), skeletons, f"specchk conform {quote(str(Path(into) / BINDING))}")
