"""A member of a gate: recordings of the implementation, each of which its spec must explain.

    Recorded("recordings", "tracing.py", record, range(40))    each seed is a test

`record` makes a recording's lines from a seed; the tracing is in a file beside the binding.  The
programs that explain recordings are computed with the unchanged implementation, and shared: a mutant's
recording that needs other constants has its own program.

Invariant: a recording without events explains nothing, so it fails.  Not here: how a recording is
explained (`validate`), and campaigns of recordings in files (`campaign`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from specchk.compile.instantiate import instantiate_steps
from specchk.conform.contract.load import only_class
from specchk.conform.contract.recording import BadRecording, Recording, parse
from specchk.conform.contract.tracing import Tracing
from specchk.conform.mutation.members import Bench, Reporter, load
from specchk.conform.recordings.validate import Validator
from specchk.conform.work.effort import TooMuch
from specchk.lang.frontend import check


class Recorded(Struct, frozen=True):
    """Runs that are recorded, and explained by the spec of a tracing; `file` contains the tracing."""

    name: str
    file: str
    record: Callable[[int], Sequence[str]]
    seeds: range

    def prepare(self, bench: Bench) -> None:
        """Compute the programs for recordings of the unchanged implementation."""
        tracing = self._tracing(bench)
        for seed in self.seeds:
            self._validator(bench, tracing, self._recording(seed))

    def hold(self, bench: Bench, modules: Sequence[str], reporter: Reporter) -> bool:
        """Record and explain as long as more are needed; False if the recordings do not use the modules."""
        if modules and sys.modules.keys().isdisjoint(modules):
            return False
        # Before the tracing is loaded: its own imports are not executed by the recordings.
        tracing = self._tracing(bench)
        reporter.check_each(
            ((f"seed {seed}", seed) for seed in self.seeds), partial(self._wrong, bench, tracing)
        )
        return True

    def _recording(self, seed: int) -> Recording:
        return parse(f"seed {seed}", list(self.record(seed)))

    def _wrong(self, bench: Bench, tracing: type[Tracing], seed: int) -> str:
        """The reason why the spec does not explain a recording; empty if it does.  `TooMuch` if undecided."""
        try:
            recording = self._recording(seed)
            validator = self._validator(bench, tracing, recording)
            # A mutant's recording may need other constants (more epochs, say) than any of the unchanged
            # implementation.
            explained = validator.explain(tracing(validator.program, recording), recording)
        except BadRecording as error:
            return str(error)
        if explained.blocked is not None:
            what, reason = explained.blocked.event.get("event"), explained.blocked.reason
            return f"event {explained.blocked.number} ({what}) is not explained {reason}".strip()
        if explained.gave_up:  # no verdict of the spec, but more work than any recording as it is
            raise TooMuch(explained.gave_up)
        # Nothing blocked and not all consumed would be a validator that skips events.
        if not explained.consumed or explained.consumed != len(recording.events):
            return f"{explained.consumed} of {len(recording.events)} events were explained"
        return ""

    def _tracing(self, bench: Bench) -> type[Tracing]:
        """The tracing class of the file."""
        module = load(bench.folder / self.file)
        return only_class(vars(module), Tracing, module.__name__, self.file)

    def _validator(self, bench: Bench, tracing: type[Tracing], recording: Recording) -> Validator:
        constants = dict(tracing.constants(recording))
        key = repr((tracing.spec, tracing.model, sorted(constants.items())))
        if key not in bench.validators:
            path = str((bench.folder / tracing.spec).resolve())
            if path not in bench.specs:
                bench.specs[path] = check(path)
            bench.validators[key] = Validator(instantiate_steps(bench.specs[path], tracing.model, constants))
        return bench.validators[key]
