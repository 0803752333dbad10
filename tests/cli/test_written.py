"""What a command will write is tried before its work: a mistake costs no search."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from specchk.cli.main import COMMANDS, cli
from specchk.cli.written import OutputFile, OutputFolder, file_refused, folder_refused
from specchk.report.draw.picture import FORMATS

# Options of files and folders that are not tried by their type: read, or tried in another way, where that is.
READ = {"--spec", "--mutants", "--ledger"}
TRIED_BY = {
    ("run", "--checkpoint"): "native.claims: claimed before the search",
    ("bind", "--into"): "written.put_new: refused before the first file is written, which takes no time",
    ("run", "--scratch"): "spark.homes: each worker tries it before the search",
    ("run", "--export"): "export.parts.place_refused, which knows URIs",
    ("conform", "--junit"): "GateOptions.try_outputs: with several bindings it is a folder, which is made",
    ("recheck", "--smt-lib"): "recheck._writer: made before the first query",
    ("validate", "--tables"): "spark.pipeline.tables: claimed before the first recording",
}


def parameters() -> list[tuple[str, click.Parameter]]:
    context = click.Context(cli)
    commands = [(name, cli.get_command(context, name)) for name in COMMANDS]
    return [(name, parameter) for name, command in commands if command for parameter in command.params]


def test_every_option_of_a_file_is_read_or_tried() -> None:
    """By its type, or as listed with the place."""
    of_files = {
        (name, parameter.opts[-1]): parameter.type
        for name, parameter in parameters()
        if isinstance(parameter, click.Option) and parameter.metavar in ("FILE", "DIR")
    }
    untried = {
        key for key, kind in of_files.items()
        if not isinstance(kind, OutputFile | OutputFolder) and key[1] not in READ
    }  # fmt: skip
    assert untried == set(TRIED_BY)


SHOP = ("run", "shop.spec", "--model", "good")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("line", "reason"), [
    ((*SHOP, "--html", "no/such/page.html"), "there is no folder"),
    ((*SHOP, "--itf", "no/such/trace.json"), "there is no folder"),
    ((*SHOP, "--draw", "no/such/x.svg"), "there is no folder"),
    ((*SHOP, "--draw", "x.jpg"), "ends in one of .svg, .png, .pdf, .dot"),
    ((*SHOP, "--html", "."), "it is a folder"),
    ((*SHOP, "--html", "shop.spec/x"), "is a file"),
    ((*SHOP, "--html", "x" * 300), "too long"),
    ((*SHOP, "--spill", "nosuch"), "there is no folder nosuch"),
    ((*SHOP, "--spill", "shop.spec"), "shop.spec is a file"),
    ((*SHOP, "--engine", "symbolic", "--certificate", "no/such/run.cert"), "there is no folder"),
    (("simulate", "shop.spec", "--html", "no/such/page.html"), "there is no folder"),
    (("draw", "shop.spec", "-o", "x.jpg"), "ends in one of"),
    (("draw", "shop.spec", "-o", "no/such/x.svg"), "there is no folder"),
])  # fmt: skip
def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    line: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason, as a usage error: nothing was loaded."""
    monkeypatch.setattr("specchk.cli.common.check", None)
    done = CliRunner().invoke(cli, line)
    assert done.exit_code == 2, done.output
    assert reason in " ".join(done.output.split())


def test_a_trial_leaves_nothing(tmp_path: Path) -> None:
    """Neither a new file nor a change of an old one."""
    old = tmp_path / "old.html"
    old.write_text("old", encoding="utf-8")
    assert file_refused(old) is file_refused(tmp_path / "new.html") is folder_refused(tmp_path) is None
    assert [path.name for path in tmp_path.iterdir()] == ["old.html"]
    assert old.read_text(encoding="utf-8") == "old"


def test_a_device_can_be_written(tmp_path: Path) -> None:
    """And a link to a file of another folder, through which that is replaced."""
    assert file_refused(Path(os.devnull)) is None
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "gone" / "file")
    assert "there is no folder" in (file_refused(link) or "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    """By the system's own words."""
    tmp_path.chmod(0o500)
    try:
        assert "Permission denied" in (file_refused(tmp_path / "x") or "")
    finally:
        tmp_path.chmod(0o700)


def test_all_formats_of_pictures_are_endings() -> None:
    """In the words of `--help`, too."""
    for _, parameter in parameters():
        if isinstance(parameter.type, OutputFile) and parameter.type.endings:
            assert parameter.type.endings == FORMATS
            assert isinstance(parameter, click.Option)
            assert all(f".{ending}" in (parameter.help or "") for ending in FORMATS)
