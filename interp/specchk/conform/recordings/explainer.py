"""The work of one process on recordings: explaining each, and its corrupted copies."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter
from random import Random
from time import perf_counter

from msgspec import Struct

from specchk.compile.instantiate import instantiate_steps
from specchk.conform.contract.binding import BindingError, Mistake
from specchk.conform.contract.log_tracing import LogTracing
from specchk.conform.contract.recording import BadRecording, Recording, Unreadable, asked
from specchk.conform.contract.tracing import Tracing
from specchk.conform.recordings.contradiction import Contradiction, contradiction_of
from specchk.conform.recordings.corrupt import KINDS, spoil
from specchk.conform.recordings.explanation import explanation_of
from specchk.conform.recordings.orders import explained_in_order
from specchk.conform.recordings.result import Copy, RecordingResult
from specchk.conform.recordings.validate import Explained, Validator
from specchk.lang.frontend import CheckedSpec
from specchk.lang.text.diagnostics import nearest
from specchk.meaning.undefined import Undefined

LEAST_COPIES = 20  # of which 95 in 100 are not all
MOST_COPIED = 1_000  # events, in copies beyond one of each kind
YOUNG = 100_000  # objects that are new at a collection: those of some ten recordings
MOST_CONTRADICTIONS = 3  # each may take seconds, and a reader begins with the first


class CampaignOptions(Struct, frozen=True):
    """Settings of a campaign: `power` corrupts accepted recordings, `partial` accepts a few of many.

    Of so many blocked recordings, the first ones, the smallest contradiction is searched for.  Where the
    number of `recordings` is small and they are short, more copies are made of each.
    """

    workers: int = 1
    power: bool = True
    partial: bool = False
    seed: int = 1
    recordings: int = LEAST_COPIES
    contradictions: int = MOST_CONTRADICTIONS


def constants_of(cls: type[Tracing], recording: Recording) -> dict[str, str]:
    """The constants that a recording needs; raises `BadRecording` if the tracing cannot compute them."""
    if recording.header["format"] != cls.reads:
        wrong = recording.header["format"]
        raise BadRecording(f"{recording.name}:1: the format is {wrong}, not {cls.reads}")
    with asked(f"{recording.name}: its constants cannot be computed"):
        return dict(cls.constants(recording))


@contextmanager
def rare_collections() -> Iterator[None]:
    """A context in which the garbage collector looks rarely, and never at what there was before.

    Programs of some ten thousand objects last, and events are freed by their reference counts alone.
    """
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(YOUNG, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


class RecordingExplainer:
    """Explains recordings; programs are shared by recordings that need the same constants."""

    def __init__(self, cls: type[Tracing], checked: CheckedSpec, wanted: CampaignOptions) -> None:
        self.cls, self.checked, self.wanted = cls, checked, wanted
        self._validators: dict[tuple[tuple[str, str], ...], Validator] = {}

    def result(self, name: str, read: Callable[[], Recording]) -> RecordingResult:
        """Explain the recording that a function reads, and its corrupted copies."""
        try:
            return self.explained(read())
        except BadRecording as error:
            return RecordingResult(name, bad=str(error))

    def explained(self, recording: Recording) -> RecordingResult:
        """Explain a recording and its corrupted copies; raises `BadRecording` for one without a program."""
        validator = self.validator(recording)
        begun = perf_counter()
        try:
            explained, recording = self.explain(validator, recording)
        except BadRecording as error:
            return RecordingResult(recording.name, bad=str(error), unmapped=recording.unmapped)
        seconds = perf_counter() - begun
        kinds = Counter(map(itemgetter("event"), recording.events[: explained.consumed]))
        values = {name: frozenset(known) for name, known in explained.seen.items()}
        bad = f"{recording.name}: {explained.gave_up}" if explained.gave_up else ""
        by = explained.by or validator
        blocked = None
        if explained.blocked is not None:
            blocked = explanation_of(by.closed, recording, explained.blocked)
        accepted = not bad and blocked is None
        copies = self._copies(validator, recording) if self.wanted.power and accepted else ()
        return RecordingResult(
            recording.name, len(recording.events), explained.consumed, explained.most, explained.total,
            explained.silent, explained.acted, explained.is_idle, seconds, kinds, values, copies, bad,
            blocked, recording.unmapped, recording.settings,
        )  # fmt: skip

    def contradiction(self, read: Callable[[], Recording], number: int) -> Contradiction | None:
        """The smallest contradiction of a recording that is blocked at an event.

        None where an order of the writers was searched for: lines contradict one another in that order only.
        """
        try:
            recording = read()
            validator = self.validator(recording)
        except BadRecording:
            return None  # it was whole, and is no longer
        explained, recording = self.explain(validator, recording)
        if explained.blocked is not None and explained.blocked.others:
            return None
        validator = explained.by or validator
        return contradiction_of(validator, self.cls(validator.program, recording), recording, number)

    def explain(self, validator: Validator, recording: Recording) -> tuple[Explained, Recording]:
        """What explains a recording, and its lines in the order in which they are explained."""
        tracing = self.cls(validator.program, recording)
        if isinstance(tracing, LogTracing) and tracing.per_writer:
            return explained_in_order(validator, tracing, recording)
        return validator.explain(tracing, recording), recording

    def validator(self, recording: Recording) -> Validator:
        """The validator for a recording's constants; raises `BadRecording`."""
        constants = constants_of(self.cls, recording)
        key = tuple(sorted(constants.items()))
        if key not in self._validators:
            instance = instantiate_steps(self.checked, self.cls.model, constants)
            actions = [action.name for action in instance.program.actions]
            for name in sorted({*self.cls.silent} - {*actions}):
                message, hint = (
                    f"`silent` has `{name}`, which is no action of the spec",
                    nearest(name, actions),
                )
                raise BindingError((Mistake(message, hint or "name an action", self.cls.__name__),))
            try:
                self._validators[key] = Validator(instance)
            except Undefined as undefined:
                where = f"`init`, {undefined.span.where}: {undefined}"
                raise BadRecording(f"{recording.name}: the spec is undefined in {where}") from None
            gc.freeze()
        return self._validators[key]

    def _is_refused(self, validator: Validator, recording: Recording) -> bool:
        try:
            return self.explain(validator, recording)[0].blocked is not None
        except (Unreadable, BindingError):
            return True

    def _copies(self, validator: Validator, recording: Recording) -> tuple[Copy, ...]:
        # A seed for each recording, so that its copies do not depend on the others, nor on how they are
        # shared out.
        random = Random(f"{self.wanted.seed}/{recording.name}")  # noqa: S311 - repeatable chance is wanted
        copies = []
        few = -(-LEAST_COPIES // (len(KINDS) * self.wanted.recordings))
        for kind in KINDS * max(1, min(few, MOST_COPIED // max(1, len(recording.events)))):
            spoiled = spoil(recording, kind, random, self.cls(validator.program, recording))
            if spoiled is None:
                continue
            # Where the lines have no order, by their times or messages, any spec would refuse it.
            with suppress(BadRecording):
                copies.append(Copy(kind, spoiled.what, self._is_refused(validator, spoiled.recording)))
        return tuple(copies)
