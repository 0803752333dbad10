"""Many recordings explained at once, and the guards against having explained nothing.

A campaign is vacuous, and no success, unless

- every recording is whole (`recording` refuses others) and every event of it was consumed,
- every kind of event that the tracing understands was seen, but for those it calls rare,
- every field had at least two values,
- no recording is explained by silent steps alone, and all together need no more of them than they have events
  that are steps: what leaves no event explains anything,
- candidate sets stayed small: a spec that could be anywhere agrees with anything,
- of the copies that were spoiled (`corrupt`) at least 95 in 100 were rejected.

The same recordings and seed give the same result, on any number of processes, here or anywhere.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

from specchk.compile.instantiate import instantiate
from specchk.conform.contract.recording import BadRecording, Recording, decode, read_bytes
from specchk.conform.contract.tracing import Tracing
from specchk.conform.recordings.contradiction import Contradiction, contradiction_of
from specchk.conform.recordings.corrupt import KINDS, spoil
from specchk.conform.recordings.dealing import dealt_by_program
from specchk.conform.recordings.explanation import Explanation, told
from specchk.conform.recordings.validate import Explained, Validator
from specchk.conform.work.crews import Crew
from specchk.conform.work.forks import each
from specchk.lang.frontend import CheckedSpec, check

# Not 1: some spoiled copies are behaviours of the spec as well (`corrupt`).
POWER = 0.95
PER_HAND = 4  # shares of the recordings for each hand of a crew
# Beyond these the spec could be nearly anywhere, and agrees with whatever is recorded.
MOST_MEAN, MOST_AT_ONCE = 8.0, 512
MOST_CONTRADICTIONS = 3  # each may take seconds, and a reader begins with the first


@dataclass(frozen=True, slots=True)
class Copy:
    """A spoiled copy, and whether it was rejected."""

    kind: str
    what: str
    rejected: bool


@dataclass(frozen=True, slots=True)
class RecordingResult:
    """The result of one recording."""

    name: str
    events: int = 0
    consumed: int = 0
    most: int = 0
    total: int = 0
    silent: int = 0
    acted: int = 0
    is_idle: bool = False
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    values: dict[str, frozenset[str]] = field(default_factory=dict)
    copies: tuple[Copy, ...] = ()
    bad: str = ""
    blocked: Explanation | None = None

    @property
    def accepted(self) -> bool:
        """Whether a behaviour of the spec explains all of it."""
        return not self.bad and self.blocked is None


@dataclass(frozen=True, slots=True)
class Campaign:
    """All results, in the order of the recordings, and why they prove nothing, if they do not."""

    tracing: str
    spec: str
    results: tuple[RecordingResult, ...]
    seconds: float
    workers: int
    vacuous: tuple[str, ...] = ()

    @property
    def kinds(self) -> Counter[str]:
        """How often each event was consumed."""
        return sum((result.kinds for result in self.results), Counter())

    @property
    def copies(self) -> list[Copy]:
        """All spoiled copies."""
        return [copy for one in self.results for copy in one.copies]

    def power(self, kind: str | None = None) -> float | None:
        """The share of spoiled copies that were rejected; None if there were none."""
        rejected = [copy.rejected for copy in self.copies if kind in (None, copy.kind)]
        return sum(rejected) / len(rejected) if rejected else None


@dataclass(frozen=True, slots=True)
class CampaignOptions:
    """How a campaign is run: `power` spoils accepted recordings, `partial` is a few of many.

    Of so many blocked recordings, the first ones, the smallest contradiction is searched for.
    """

    workers: int = 1
    power: bool = True
    partial: bool = False
    seed: int = 1
    contradictions: int = MOST_CONTRADICTIONS


@dataclass(frozen=True, slots=True)
class Sheet:
    """A recording's file to be sent: its name and packed bytes, or why it cannot be read."""

    name: str
    packed: bytes
    bad: str = ""

    def data(self) -> bytes:
        """The file's bytes; raises `BadRecording`."""
        if self.bad:
            raise BadRecording(self.bad)
        return zlib.decompress(self.packed)


@dataclass(frozen=True, slots=True)
class Explaining:
    """A `crews.Job` that explains recordings, several at a time; `spec` is what its file is called."""

    wanted: CampaignOptions
    spec: str

    def begin(self, cls: Any, folder: Path) -> Callable[[Sequence[Sheet]], list[RecordingResult]]:
        """Explains by the spec of a tracing, which is named by its original path."""
        there = str(folder / cls.spec)
        explainer = _RecordingExplainer(cls, check(there), self.wanted)
        names = str(Path(there).parent), str(Path(self.spec).parent)
        return lambda sheets: [_renamed(explainer.result(sheet.name, sheet.data), *names) for sheet in sheets]


def _renamed(result: RecordingResult, here: str, there: str) -> RecordingResult:
    """A result that names a spec's files by another folder."""
    if result.blocked is None:
        return result
    misses = tuple(
        {
            **miss,
            "guards": [{**guard, "where": _moved(guard["where"], here, there)} for guard in miss["guards"]],
        }
        for miss in result.blocked.misses
    )
    return replace(result, blocked=replace(result.blocked, misses=misses))


def _moved(where: str, here: str, there: str) -> str:
    return there + where.removeprefix(here) if where.startswith(here) else where


def run_campaign(
    cls: type[Tracing],
    checked: CheckedSpec,
    paths: Sequence[Path],
    wanted: CampaignOptions,
    crew: Crew | None = None,
) -> Campaign:
    """Explain all recordings, here or by a crew; raises `SpecError` if the spec has no room for one."""
    begun = perf_counter()
    workers = max(1, min(wanted.workers if crew is None else crew.hands, len(paths)))
    dealt: Sequence[Sequence[int]]
    if crew is None:
        dealt = dealt_by_program(cls, paths, workers)
        parts = _here(cls, checked, [[paths[number] for number in mine] for mine in dealt], wanted)
    else:
        count = min(PER_HAND * workers, len(paths))
        # In turn, since recordings beside each other are often of the same length.
        dealt = [range(number, len(paths), count) for number in range(count)]
        about = f"{cls.__name__}: {len(paths)} recordings"
        work = Explaining(wanted, checked.spec.source.path)
        parts = crew.each(work, [tuple(_sheet(paths[n]) for n in mine) for mine in dealt], about)
    # Put back as they were dealt, so that results have the order of the files.
    pairs = chain.from_iterable(zip(mine, part, strict=True) for mine, part in zip(dealt, parts, strict=True))
    results = tuple(one for _, one in sorted(pairs, key=itemgetter(0)))
    results = _contradicted(cls, checked, paths, results, wanted)
    campaign = Campaign(cls.__name__, cls.spec, results, perf_counter() - begun, workers)
    return replace(campaign, vacuous=_vacuous(cls, campaign, wanted))


def _here(
    cls: type[Tracing], checked: CheckedSpec, shares: Sequence[Sequence[Path]], wanted: CampaignOptions
) -> list[list[RecordingResult]]:
    def explained(share: Sequence[Path]) -> list[RecordingResult]:
        explainer = _RecordingExplainer(cls, checked, wanted)
        return [explainer.result(path.name, partial(read_bytes, path)) for path in share]

    return each([partial(explained, share) for share in shares], len(shares))


def _contradicted(
    cls: type[Tracing], checked: CheckedSpec, paths: Sequence[Path], results: tuple[RecordingResult, ...],
    wanted: CampaignOptions,
) -> tuple[RecordingResult, ...]:  # fmt: skip
    """The results, with the smallest contradictions of the first that are blocked; always on this machine."""
    chosen = [n for n, one in enumerate(results) if one.blocked is not None][: wanted.contradictions]
    workers = max(1, min(wanted.workers, len(chosen)))
    shares = [chosen[number::workers] for number in range(workers)]

    def share(mine: Sequence[int]) -> dict[int, Contradiction | None]:
        one = _RecordingExplainer(cls, checked, wanted)
        return {n: one.contradiction(paths[n], results[n]) for n in mine}

    tasks: list[Callable[[], dict[int, Contradiction | None]]] = [partial(share, mine) for mine in shares]
    parts = each(tasks, workers) if chosen else []
    known = {n: one for part in parts for n, one in part.items()}
    return tuple(
        one if one.blocked is None else replace(one, blocked=replace(one.blocked, contradiction=known.get(n)))
        for n, one in enumerate(results)
    )


def _sheet(path: Path) -> Sheet:
    try:
        return Sheet(path.name, zlib.compress(read_bytes(path), 1))
    except BadRecording as error:
        return Sheet(path.name, b"", str(error))


class _RecordingExplainer:
    """One process's work; programs are shared by recordings that need the same constants."""

    def __init__(self, cls: type[Tracing], checked: CheckedSpec, wanted: CampaignOptions) -> None:
        self.cls, self.checked, self.wanted = cls, checked, wanted
        self._validators: dict[tuple[tuple[str, str], ...], Validator] = {}

    def result(self, name: str, data: Callable[[], bytes]) -> RecordingResult:
        """Explain the recording in a file's bytes, and its spoiled copies."""
        try:
            recording = decode(name, data())
        except BadRecording as error:
            return RecordingResult(name, bad=str(error))
        if recording.header["format"] != self.cls.reads:
            wrong = recording.header["format"]
            return RecordingResult(name, bad=f"{name}:1: the format is {wrong}, not {self.cls.reads}")
        return self._explained(recording)

    def _explained(self, recording: Recording) -> RecordingResult:
        validator = self._validator(recording)
        begun = perf_counter()
        explained = self._explain(validator, recording)
        seconds = perf_counter() - begun
        kinds = Counter(str(event["event"]) for event in recording.events[: explained.consumed])
        values = {name: frozenset(known) for name, known in explained.seen.items()}
        bad = f"{recording.name}: {explained.gave_up}" if explained.gave_up else ""
        blocked = None if explained.blocked is None else told(validator, recording, explained.blocked)
        accepted = not bad and blocked is None
        copies = self._copies(validator, recording) if self.wanted.power and accepted else ()
        return RecordingResult(
            recording.name, len(recording.events), explained.consumed, explained.most, explained.total,
            explained.silent, explained.acted, explained.is_idle, seconds, kinds, values, copies, bad,
            blocked,
        )  # fmt: skip

    def contradiction(self, path: Path, result: RecordingResult) -> Contradiction | None:
        """The smallest contradiction of a blocked recording."""
        assert result.blocked is not None
        if result.blocked.reason:
            return None  # the tracing refused the event by itself
        recording = decode(path.name, read_bytes(path))
        validator = self._validator(recording)
        tracing = self.cls(validator.program, recording)
        return contradiction_of(validator, tracing, recording, result.blocked.number)

    def _explain(self, validator: Validator, recording: Recording) -> Explained:
        return validator.explain(self.cls(validator.program, recording), recording)

    def _validator(self, recording: Recording) -> Validator:
        constants = dict(self.cls.constants(recording))
        key = tuple(sorted(constants.items()))
        if key not in self._validators:
            instance = instantiate(self.checked, self.cls.model, constants)
            self._validators[key] = Validator(instance)
        return self._validators[key]

    def _copies(self, validator: Validator, recording: Recording) -> tuple[Copy, ...]:
        # A seed for each recording, so that its copies do not depend on the others, nor on how they are
        # shared out.
        random = Random(f"{self.wanted.seed}/{recording.name}")  # noqa: S311 - repeatable chance is wanted
        copies = []
        for kind in KINDS:
            spoiled = spoil(recording, kind, random)
            if spoiled is not None:
                explained = self._explain(validator, spoiled.recording)
                copies.append(Copy(kind, spoiled.what, explained.blocked is not None))
        return tuple(copies)


def _vacuous(cls: type[Tracing], campaign: Campaign, wanted: CampaignOptions) -> tuple[str, ...]:
    """Every reason why the campaign shows nothing."""
    reasons = [result.bad for result in campaign.results if result.bad]
    # Alone: that nothing was compared follows from it, and would hide it among ten lines.
    if not sum(result.consumed for result in campaign.results):
        return (*reasons, "no event was explained")
    if not wanted.partial:
        missing = sorted(set(cls.events()) - set(campaign.kinds) - set(cls.rare))
        if missing:
            reasons.append(f"no recording has the events {', '.join(missing)}")
        constant = _constant(campaign.results)
        if constant:
            reasons.append(f"always the same, so not compared: {', '.join(constant)}")
    reasons += _silent_only(campaign.results)
    reasons += _too_large(campaign.results)
    power = campaign.power()
    if power is not None and power < POWER and not wanted.partial:
        reasons.append(
            f"only {power:.1%} of the spoiled copies were rejected; at least {POWER:.0%} is required"
        )
    return tuple(reasons)


def _constant(results: Sequence[RecordingResult]) -> list[str]:
    """The fields that never had a second value."""
    values: dict[str, set[str]] = {}
    for result in results:
        for name, known in result.values.items():
            values.setdefault(name, set()).update(known)
    return sorted(name for name, known in values.items() if len(known) < 2)


def _silent_only(results: Sequence[RecordingResult]) -> list[str]:
    """Why recordings are explained by what they do not show."""
    found = [f"{one.name}: no action that leaves an event is needed to explain it"
             for one in results if one.accepted and one.is_idle]  # fmt: skip
    silent, acted = (
        sum(numbers) for numbers in zip(*((one.silent, one.acted) for one in results), strict=True)
    )
    if silent > acted:
        found.append(f"{silent} silent steps explain {acted} events that are steps; log more of what happens")
    return found


def _too_large(results: Sequence[RecordingResult]) -> list[str]:
    consumed = sum(result.consumed for result in results)
    mean = sum(result.total for result in results) / max(consumed, 1)
    most = max(result.most for result in results)
    if mean > MOST_MEAN or most > MOST_AT_ONCE:
        return [f"candidate sets are large: {mean:.1f} states on average, at most {most}; log more"]
    return []
