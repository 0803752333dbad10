"""A campaign's mutants, run by a crew: each in a forked process of the crew, with a deadline.

Data that no mutant changes are sent once: the files (`kit_for`), and the suites that members replay.  A
piece is a mutant with the members that could detect it, or a member of the survey; the output of its process,
and how it ended, is returned.  Pieces are sent in waves, so that outcomes are kept in between.

Invariant: the caches of a campaign stay with the caller.  Not here: the campaign (`mutate`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.contract.binding import Binding
from specchk.conform.covers.cases import Suite
from specchk.conform.mutation.members import Bench, listed, members_of
from specchk.conform.mutation.mutate import By, MutationCampaign, Settings, Subject
from specchk.conform.mutation.other_gates import files_of
from specchk.conform.work import lock_file
from specchk.conform.work.crews import Crew
from specchk.conform.work.forks import Ended, run_all
from specchk.conform.work.kit import Kit, kit_of
from specchk.conform.work.sources import shown
from specchk.lang.frontend import check

WAVE = 4  # pieces for each worker between two checks of the results


class Holding(Struct, frozen=True):
    """A `crews.Job` that runs a campaign's members against mutants.

    `main` is the binding's path from `base`, where the files come from; `mutants` is their folder's path
    from the binding's.
    """

    main: str
    base: str
    mutants: str
    packages: tuple[str, ...]
    settings: Settings
    suites: tuple[tuple[str, Suite], ...]
    seconds: float

    def __call__(self, cls: Any, folder: Path) -> Callable[[Subject], Ended]:
        """The function that runs one; loads the unchanged implementation, and prepares common data."""
        spec = (folder / cls.spec).resolve()
        # Suites come along: computing them would take longer than most mutants.
        bench = Bench(folder, Path(self.main).name, spec, check(str(spec)), suites=dict(self.suites))
        campaign = MutationCampaign(bench, (folder / self.mutants).resolve(), self.packages, self.settings)
        for member in campaign.members:
            member.prepare(bench)
        # The folder that corresponds to `base` there: as many levels above the binding as its path from
        # `base` has.
        place = str([folder, *folder.parents][len(Path(self.main).parts) - 1])
        # In its own process there, too: a mutant must not corrupt the executor for the next
        # one.
        return lambda asked: _named(run_all([campaign.task(asked)], 1, self.seconds)[0], place, self.base)


def _named(ended: Ended, place: str, base: str) -> Ended:
    """A text with files named by their original paths."""
    said = [
        ("kill", replace(message[1], reason=message[1].reason.replace(place, base)))
        if message[0] == "kill"
        else message
        for message in ended.said
    ]
    return replace(ended, said=said, why=ended.why.replace(place, base))


def kit_for(bench: Bench, mutants: Path, cls: type[Binding[Any]]) -> Kit:
    """The kit of a campaign: its binding's, with the folder of mutants, watched files, and all specs."""
    more = {
        *bench.spec.parent.rglob("*.spec"),
        *mutants.rglob("*.py"),
        *mutants.rglob("*.toml"),
        *listed(mutants, "WATCHED"),
        *files_of(members_of(mutants, bench), bench),
        *bench.folder.glob(lock_file.NAME),
    }
    return kit_of(bench.folder / bench.main, cls, bench.checked, more)


def by_crew(crew: Crew, kit: Kit) -> By:
    """A value for `MutationCampaign.by`: `done` receives each result, in order, when its wave is finished."""

    def run(
        campaign: MutationCampaign,
        todo: Sequence[Subject],
        seconds: float,
        done: Callable[[int, Ended], None],
    ) -> list[Ended]:
        bench = campaign.bench
        work = Holding(
            kit.main, kit.base, shown(campaign.folder, bench.folder), campaign.packages,
            replace(campaign.settings, workers=1), tuple(bench.suites.items()), seconds,
        )  # fmt: skip
        results: list[Ended] = []
        size = WAVE * crew.hands
        # In waves, since a crew returns its results together: an interrupted campaign loses one wave.
        for first in range(0, len(todo), size):
            wave = todo[first : first + size]
            about = f"{bench.main}: mutants {first + 1} to {first + len(wave)} of {len(todo)}"
            for ended in crew.each(work, wave, about):
                done(len(results), ended)
                results.append(ended)
        return results

    return run
