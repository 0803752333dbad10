"""`--export DIR`: write the states and steps of a search as data, for `specchk sql` and other tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import click
from msgspec import Struct

from specchk.cli.engines import EngineSettings, loaded
from specchk.cli.groups import option
from specchk.cli.output import echo
from specchk.search.verdict import Outcome

NO_PARQUET = "`--export` needs pyarrow: pip install 'specchk[data]'"


@dataclass(frozen=True, slots=True)
class ExportChoice:
    """The directory of an export, a path or URI."""

    heading: ClassVar[str] = "State space as data"
    export: str | None = option(
        "--export", metavar="DIR",
        help="Write states, edges, levels, coverage and violations to DIR as Parquet, for `specchk sql`.",
    )  # fmt: skip

    def check(self, engine: str, *, proves: bool) -> None:
        """Reject incompatible options, and a directory that cannot be created; called before a search."""
        if self.export is None:
            return
        if proves or engine == "symbolic":
            raise click.UsageError(
                "--export is for engines that search states: not --engine symbolic or --prove"
            )
        refused = loaded("specchk.export.parts", NO_PARQUET).place_refused(self.export)
        if refused is not None:
            raise click.UsageError(f"--export: {refused}")

    def applied(self, engine: EngineSettings) -> tuple[EngineSettings, ExportResult]:
        """The engine, which exports at its end, and the result of the export."""
        result = ExportResult()
        if self.export is None:
            return engine, result
        target = result.wanted = self.export.rstrip("/") or self.export
        room = loaded("specchk.export.export", NO_PARQUET)
        unwritten: type[Exception] = loaded("specchk.export.parts", NO_PARQUET).Unwritten

        def write(found: Any, outcome: Outcome) -> None:
            # The verdict of hours must not be lost with a full disk.
            try:
                room.export(found, outcome, target)
                result.place = target
            except unwritten as error:
                result.refusal = f"--export: cannot write {error}"
            except (OSError, MemoryError) as error:
                result.refusal = f"--export: cannot write {target}: {error or type(error).__name__}"

        return engine.set(on_end=write), result


class ExportResult(Struct):
    """The place of the written export, or the reason why it was not written."""

    wanted: str | None = None
    place: str | None = None
    refusal: str | None = None

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Report the export after the verdict; raises `UsageError` if it was not written."""
        try:
            yield
        finally:
            if self.refusal is not None:
                raise click.UsageError(self.refusal)
            if self.wanted is not None and self.place is None:
                raise click.UsageError(f"--export: {self.wanted} was not written: the search did not begin")
            if self.place is not None:
                echo(f"wrote {self.place}", err=True)
