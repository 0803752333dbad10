"""Many recordings explained in one run, with guards against having explained nothing.

A campaign is vacuous, and no success, unless

- every recording is complete (`recording` refuses others) and every event of it was consumed,
- every line of a log is mapped to actions, or of a kind that is ignored for a reason,
- every field that a setting of the tracing names was seen,
- every kind of event that the tracing supports was seen, except for those it lists as rare,
- every field had at least two values,
- no recording is explained by silent steps alone, and all together need no more of them than they have events
  that are steps: silence explains anything,
- candidate sets stayed small: a spec that could be anywhere agrees with anything,
- of the corrupted copies (`corrupt`) at least 95 in 100 were rejected.

The same recordings and seed give the same result, on any number of processes, here or anywhere
(`by_crew`).  Here a process explains recordings that need the same program, as far as that is possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from time import perf_counter

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.contract.binding import BindingError
from specchk.conform.contract.recording import BadRecording, Recording, header_of
from specchk.conform.contract.tracing import Tracing
from specchk.conform.recordings.contradiction import Contradiction
from specchk.conform.recordings.explainer import (
    CampaignOptions,
    RecordingExplainer,
    constants_of,
    rare_collections,
)
from specchk.conform.recordings.result import Firsts, RecordingResult, Tally, tally_of
from specchk.conform.work.forks import each
from specchk.lang.frontend import CheckedSpec
from specchk.lang.text.diagnostics import SpecError

# Not 1: some corrupted copies are behaviours of the spec as well (`corrupt`).
POWER = 0.95
# Beyond these the spec could be nearly anywhere, and agrees with any recording.
MOST_MEAN, MOST_AT_ONCE = 8.0, 512
PASSING = (BindingError, SpecError)


class Campaign(Struct, frozen=True):
    """The tally of all recordings, and the reasons why they prove nothing, if so.

    `results` are those of each recording, in order; a campaign that is done elsewhere has none.
    """

    tracing: str
    spec: str
    tally: Tally
    seconds: float
    workers: int
    vacuous: tuple[str, ...] = ()
    results: tuple[RecordingResult, ...] = ()


def run_campaign(
    cls: type[Tracing], checked: CheckedSpec, paths: Sequence[Path], wanted: CampaignOptions
) -> Campaign:
    """Explain all recordings in processes; raises `SpecError` if the model is too small for one.

    Raises `BindingError` for a tracing that names something that the spec does not have.
    """
    begun = perf_counter()
    workers = max(1, min(wanted.workers, len(paths)))
    wanted = replace(wanted, recordings=len(paths))
    parts = _explained(cls, checked, paths, shares_of(cls, paths, workers), wanted)
    # As the files are, whichever process has explained which.
    results = tuple(result for _, result in sorted(chain.from_iterable(parts), key=itemgetter(0)))
    tally = tally_of(results)
    chosen = to_contradict(tally, wanted)
    contradictions = _contradictions(
        cls, checked, {number: paths[number] for number, _ in chosen}, chosen, wanted
    )
    results = tuple(contradicted(number, result, contradictions) for number, result in enumerate(results))
    tally = all_contradicted(tally, contradictions)
    return concluded(cls, tally, wanted, perf_counter() - begun, workers, results)


def concluded(
    cls: type[Tracing], tally: Tally, wanted: CampaignOptions, seconds: float, workers: int,
    results: tuple[RecordingResult, ...] = (),
) -> Campaign:  # fmt: skip
    """A campaign, with the reasons why it proves nothing."""
    reasons = _vacuous(cls, tally, wanted)
    return Campaign(cls.__name__, cls.spec, tally, seconds, workers, reasons, results)


def _explained(
    cls: type[Tracing], checked: CheckedSpec, paths: Sequence[Path], shares: Sequence[Sequence[int]],
    wanted: CampaignOptions,
) -> list[list[tuple[int, RecordingResult]]]:  # fmt: skip
    def explained(share: Sequence[int]) -> list[tuple[int, RecordingResult]]:
        with rare_collections():
            explainer = RecordingExplainer(cls, checked, wanted)
            return [(n, explainer.result(paths[n].name, partial(cls.read, paths[n]))) for n in share]

    return each([partial(explained, share) for share in shares], len(shares), PASSING)


Contradictions = Mapping[int, Contradiction | None]


def to_contradict(tally: Tally, wanted: CampaignOptions) -> list[tuple[int, int]]:
    """The recordings whose smallest contradiction is to be found, by number, with their events."""
    pairs = [(number, result.blocked) for number, result in tally.blocked.kept[: wanted.contradictions]]
    return [(number, blocked.number) for number, blocked in pairs if blocked and not blocked.invariant]


def contradicted(
    number: int, result: RecordingResult, contradictions: Contradictions
) -> RecordingResult:  # fmt: skip
    """A result with its smallest contradiction, if there is one."""
    if result.blocked is None or number not in contradictions:
        return result
    return replace(result, blocked=replace(result.blocked, contradiction=contradictions[number]))


def all_contradicted(tally: Tally, contradictions: Contradictions) -> Tally:
    """A tally with the smallest contradictions of its blocked recordings."""
    kept = tuple(
        (number, contradicted(number, result, contradictions)) for number, result in tally.blocked.kept
    )
    return replace(tally, blocked=Firsts(tally.blocked.count, kept))


def _contradictions(
    cls: type[Tracing], checked: CheckedSpec, paths: Mapping[int, Path], chosen: Sequence[tuple[int, int]],
    wanted: CampaignOptions,
) -> Contradictions:  # fmt: skip
    workers = max(1, min(wanted.workers, len(chosen)))
    shares = [chosen[number::workers] for number in range(workers)]

    def share(mine: Sequence[tuple[int, int]]) -> dict[int, Contradiction | None]:
        explainer = RecordingExplainer(cls, checked, wanted)
        return {n: explainer.contradiction(partial(cls.read, paths[n]), at) for n, at in mine}

    parts = each([partial(share, mine) for mine in shares], workers, PASSING) if chosen else []
    return {n: contradiction for part in parts for n, contradiction in part.items()}


def _vacuous(cls: type[Tracing], tally: Tally, wanted: CampaignOptions) -> tuple[str, ...]:
    """All reasons why the campaign shows nothing."""
    reasons = [*_unread(cls, tally), *sorted(filter(None, tally.settings.values())), *tally.bad.items]
    if tally.bad.left:
        reasons.append(f"{tally.bad.left} more recordings have no verdict")
    # Alone: that nothing was compared follows from it, and would hide it among ten lines.
    if not tally.consumed:
        return (*reasons, "no event was explained")
    # Of a recording that is not explained the rest was not read.
    if not wanted.partial and not tally.blocked.count:
        missing = sorted(set(cls.events()) - set(tally.kinds) - set(cls.rare))
        if missing:
            reasons.append(f"no recording has the events {', '.join(missing)}")
        constant = sorted(name for name, known in tally.values.items() if len(known) < 2)
        if constant:
            reasons.append(f"always the same, so not compared: {', '.join(constant)}")
    reasons += _silent_only(tally)
    mean = tally.total / tally.consumed
    if mean > MOST_MEAN or tally.most > MOST_AT_ONCE:
        large = f"{mean:.1f} states on average, at most {tally.most}"
        reasons.append(f"candidate sets are large: {large}; log more")
    power = tally.power()
    if power is not None and power < POWER and not wanted.partial:
        reasons.append(
            f"only {power:.1%} of the corrupted copies were rejected; at least {POWER:.0%} is required: "
            "log or map more (`--json` has the others in `missed`)"
        )
    return tuple(reasons)


def _unread(cls: type[Tracing], tally: Tally) -> list[str]:
    """The reason, if there are lines of which the tracing does not say what they are."""
    kinds = [
        f"`{kind}` ({count})"
        for kind, count in sorted(tally.unmapped.items())
        if kind not in cls.ignored and not any(fnmatchcase(kind, pattern) for pattern in cls.ignored)
    ]
    if not kinds:
        return []
    what = "write a method for each, or name it in `ignored` with the reason why it is no step"
    return [f"no method reads the lines {', '.join(kinds)}: {what}"]


def _silent_only(tally: Tally) -> list[str]:
    """The reason, if recordings are explained by steps that they do not show."""
    why = "no action that leaves an event is needed to explain it"
    reasons = [f"{name}: {why}" for name in tally.idle.items]
    if tally.idle.left:
        reasons.append(f"{tally.idle.left} more recordings: {why}")
    if tally.silent > tally.acted:
        acted = f"{tally.acted} events that are steps"
        reasons.append(f"{tally.silent} silent steps explain {acted}; log more of what happens")
    return reasons


def shares_of(cls: type[Tracing], paths: Sequence[Path], workers: int) -> list[list[int]]:
    """The numbers of recordings for each process: about as many bytes, and few programs.

    A program takes as long as thousands of events, and to read all events for the rest of its constants
    as long as a few programs: so `constants` is given the header, and no event.
    """
    shares: list[list[int]] = [[] for _ in range(workers)]
    sizes = [1 + _size(path) for path in paths]
    ordered = (
        range(len(paths))
        if workers == 1
        else sorted(range(len(paths)), key=lambda number: _constants(cls, paths[number]))
    )
    before = 0
    for number in ordered:
        shares[before * workers // sum(sizes)].append(number)
        before += sizes[number]
    return shares


def _size(path: Path) -> int:
    """The size of a file, 0 if there is none: another process may have removed it since it was listed."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _constants(cls: type[Tracing], path: Path) -> str:
    """The constants that a header needs, as text; empty if it is invalid for the tracing, or insufficient."""
    # A pipe, as a shell's `<(...)` is one, can be read only once: it is left to its explainer.
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            header = header_of(path.name, file.readline())
        return repr(sorted(constants_of(cls, Recording(path.name, header, ())).items()))
    except (OSError, BadRecording):
        return ""  # reported where it is explained
