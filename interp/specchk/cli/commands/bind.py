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
from specchk.conform.adapter.log_skeleton import lists_of_sample, sample_of
from specchk.conform.adapter.skeleton import filled, lists_of, words_of
from specchk.conform.contract.recording import BadRecording, read_bytes
from specchk.explore.walk import NoStart, started
from specchk.ir.program import Program
from specchk.lang.frontend import CheckedSpec
from specchk.meaning.values import State

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
@click.option(
    "--recording", is_flag=True, help="Write a tracing for the logs SAMPLE: files or a folder of JSON lines."
)
@click.option(
    "--kind", metavar="FIELD", help="With --recording: the field that says what happened in a line."
)
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
        raise click.UsageError(
            "--recording needs the log's files, SAMPLE; and SAMPLE and --kind need --recording"
        )
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
    if recording:
        _write_tracing(choice.file, checked, program, initial, sample, kind, into)
        return
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


def _write_tracing(
    file: str, checked: CheckedSpec, program: Program, initial: State, sample: tuple[Path, ...],
    kind: str | None, into: str,
) -> None:  # fmt: skip
    """Write the skeleton of a tracing for the logs in some files and folders."""
    paths = [
        path for given in sample for path in (sorted(given.glob("*.ndjson")) if given.is_dir() else [given])
    ]
    with refusals(BadRecording):
        seen = sample_of({path.name: read_bytes(path) for path in paths}, kind)
    words = words_of(program, initial, os.path.relpath(file, into))
    words |= {
        "base": "Tracing" if seen.format else "LogTracing",
        "format": seen.format or f"{program.spec}-log/1",
    }
    lists = lists_of(program, checked.spec, initial) | lists_of_sample(seen, program, len(paths))
    template = (SKELETONS / "tracing.py.txt").read_text(encoding="utf-8")
    given = " ".join(quote(str(path)) for path in sample)
    put_new(Path(into), {TRACING: filled(template, words, lists)},
            f"specchk validate {quote(str(Path(into) / TRACING))} {given}")  # fmt: skip
