"""Pictures for commands: the choice of the trace, and output with clear messages on failure.

The library that runs Graphviz is loaded when a picture is written: most runs write none.
"""

from __future__ import annotations

from pathlib import Path

import click

from specchk.cli.engines import loaded
from specchk.cli.output import echo
from specchk.compile.instantiate import Instance
from specchk.explore.view import Viewer
from specchk.report.draw import lanes
from specchk.report.draw.picture import Picture, picture
from specchk.search.verdict import Trace, Violation

RENDER = "specchk.report.draw.render"


def drawing(instance: Instance, trace: Trace, violation: Violation | None, title: str = "") -> Picture:
    """The picture of a trace, by the spec's view."""
    return picture(Viewer(instance), trace, violation, title)


def write_picture(drawn: Picture, path: Path) -> None:
    """Write a picture of lanes."""
    _write(lanes.dot(drawn), path, placed=True)


def svg_of(drawn: Picture) -> str | None:
    """The picture for a page; without Graphviz, None and a sentence."""
    svg: str | None = loaded(RENDER).svg_element(lanes.dot(drawn), placed=True)
    if svg is None:
        echo("the page has no picture: install Graphviz (the `dot` program) to get one", err=True)
    return svg


def write_dot(dot: str, output: str | None) -> None:
    """Write a graph to be laid out by Graphviz; without a file, write its DOT text to standard output."""
    if output is None:
        echo(dot.rstrip())
    else:
        _write(dot, Path(output), placed=False)


def _write(dot: str, path: Path, *, placed: bool) -> None:
    """Write a picture and report it, or print one sentence on what is needed to draw it."""
    render = loaded(RENDER)
    try:
        render.write(dot, path, placed=placed)
    except render.NoGraphviz:
        beside = path.with_suffix(".dot")
        echo(f"wrote {beside}; install Graphviz (the `dot` program) to get {path.name}", err=True)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="a picture") from None
    except OSError as error:
        raise click.FileError(str(path), hint=error.strerror or str(error)) from None
    else:
        echo(f"wrote {path}", err=True)
