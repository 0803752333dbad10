"""`specchk bind`: the skeleton of a binding, or of a tracing of a log."""

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
from specchk.conform.adapter.log_skeleton import parts_of_sample
from specchk.conform.adapter.skeleton import filled, lists_of, words_of
from specchk.conform.contract.recording import BadRecording
from specchk.explore.walk import NoStart, started

SKELETONS = Path(__file__).parents[1] / "skeletons"
BINDING, TRACING = "binding.py", "tracing.py"
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
@click.argument("sample", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--recording", is_flag=True, help="Write a tracing of the log in SAMPLE: files or folders.")
@click.option("--kind", metavar="FIELD", help="With --recording: the field that says what a line is.")
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
def command(
    choice: ModelChoice, sample: tuple[Path, ...], recording: bool, kind: str | None, language: str, into: str
) -> None:
    """Write the skeleton of a binding to the spec FILE, and that of an adapter for another language.

    With --recording it is the skeleton of a tracing, which maps the lines of a log to the spec's actions.
    """
    if recording != bool(sample) or (kind is not None and not recording):
        raise click.UsageError("--recording needs a log, SAMPLE; SAMPLE and --kind need --recording")
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
    names, then = {BINDING: "binding.py.txt"}, f"specchk conform {quote(str(Path(into) / BINDING))}"
    if recording:
        with refusals(BadRecording):
            more, rows = parts_of_sample(sample, kind, program)
        words, lists, names = {**words, **more}, lists | rows, {TRACING: "tracing.py.txt"}
        then = " ".join(["specchk validate", quote(str(Path(into) / TRACING)), *map(quote, map(str, sample))])
    elif language in PROCESSES:
        adapter, launch = PROCESSES[language]
        words |= {"program": adapter, "launch": "\n    ".join(launch), "pattern": f"*{Path(adapter).suffix}"}
        names = {BINDING: "process.py.txt", adapter: f"{adapter}.txt"}
    texts = {name: (SKELETONS / template).read_text(encoding="utf-8") for name, template in names.items()}
    put_new(Path(into), {name: filled(text, words, lists) for name, text in texts.items()}, then)
