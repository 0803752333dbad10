"""`--certificate FILE`: write the reasons for `holds`, for `specchk recheck`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import click
from msgspec.structs import replace

from specchk.cli.common import ModelChoice, write_text
from specchk.cli.engines import EngineSettings, loaded
from specchk.cli.groups import option
from specchk.cli.output import echo
from specchk.cli.written import OutputFile
from specchk.compile.instantiate import Instance
from specchk.search.proof import Proof
from specchk.search.verdict import Holds, Outcome, Verdict

R = TypeVar("R", Outcome, Proof)


@dataclass(frozen=True, slots=True)
class CertificateChoice:
    """The file of a certificate."""

    heading: ClassVar[str] = "Unbounded offsets"
    certificate: str | None = option(
        "--certificate", type=OutputFile(), metavar="FILE",
        help="Write a certificate of the verdict `holds` to FILE, for `specchk recheck`; turns symmetry off.",
    )  # fmt: skip

    def check(self, engine: str, *, proves: bool, k: int | None) -> None:
        """Reject incompatible options."""
        if self.certificate is None:
            return
        if not proves and engine != "symbolic":
            raise click.UsageError("--certificate is for --engine symbolic and for --prove")
        if proves and (k or 1) > 1:
            raise click.UsageError("--certificate is for induction from one state: without --k")

    def applied(self, engine: EngineSettings, parts: list[Any]) -> EngineSettings:
        """The engine, which adds its zones to `parts` if a certificate is to be written."""
        return engine if self.certificate is None else engine.set(on_fixpoint=parts.extend)

    def of_search(
        self, choice: ModelChoice, instance: Instance, outcome: Outcome, parts: Sequence[Any]
    ) -> AbstractContextManager[Outcome]:
        """A context with the outcome and its certificate; a failure to write it is raised at its end."""
        return self._written(outcome, choice, instance, parts=tuple(parts))

    def of_proof(
        self, choice: ModelChoice, instance: Instance, proof: Proof
    ) -> AbstractContextManager[Proof]:  # fmt: skip
        """As `of_search`, for a proof."""
        suggested = proof.suggestion.lemmas if proof.suggestion is not None else ()
        lemmas = {prop.name: text for prop, text in suggested}
        return self._written(proof, choice, instance, invariants=proof.proved, lemmas=lemmas)

    @contextmanager
    def _written(self, result: R, choice: ModelChoice, instance: Instance, **content: Any) -> Iterator[R]:
        failure: click.ClickException | None = None
        if self._is_due(result.verdict):
            try:
                self._write(choice, instance, **content)
                result = replace(result, certificate=self.certificate)
            except click.ClickException as error:  # which does not cost the verdict of a search of hours
                failure = error
        try:
            yield result
        finally:
            if failure is not None:
                raise failure

    def _is_due(self, verdict: Verdict) -> bool:
        """Whether a certificate is to be written; reports if one was requested but is not written."""
        if self.certificate is None or isinstance(verdict, Holds):
            return self.certificate is not None
        echo(f"no certificate was written to {self.certificate}: the verdict is not `holds`", err=True)
        return False

    def _write(self, choice: ModelChoice, instance: Instance, **content: Any) -> None:
        assert self.certificate is not None
        form = loaded("specchk.symbolic.certificates.format")
        lines = loaded("specchk.symbolic.zones.certify").written
        model = instance.program.model
        certificate = form.Certificate(choice.file, model, choice.table, choice.properties, **content)
        write_text(Path(self.certificate), "".join([f"{line}\n" for line in lines(certificate)]))
