"""The cases of a gate that a change can affect: those with actions that run a changed function.

Once all cases have run with every call recorded, a `CallMap` has the functions run by each action, and
their texts.  From then on:

    a function's text is not that of the revision, or not that of the map     its actions are affected
    it also runs outside actions, for example in an import, or was never seen to run;
    something outside functions changed;
    a file was added or removed; the spec, specchk, or any file of another kind changed;
    cases change values that outlive them (`lasting`), and so may affect one another;
    there is no map                                                           everything is

A case whose steps and whose refusals (those that represent a class) are all of other actions has the
same calls as at the revision, so it is left out.  A change with unclear effects affects everything.

Not here: running cases, and the proof that nothing was left out wrongly (`since_run`).
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from specchk import kept
from specchk.conform.covers.cases import Suite, SuiteCase
from specchk.conform.gate.calls import LASTING, REST, Function, Texts, actions_of, texts
from specchk.conform.work.installed import installed
from specchk.conform.work.sources import shown

# `choices.lock` is harmless although it adds cases to suites: the name of the map depends on the cases
# (`since_run._about`), so with other cases there is no map, and all of them run.
HARMLESS = (".md", ".txt", ".lock", ".rst")  # read by people, or written by the gate
SPECCHK = Path(__file__).parents[2]
ROOMS = (*kept.SPEC_ROOMS, "conform")  # whose sources determine the calls of a run


class NoRevision(Exception):
    """A revision unknown to git, or a folder outside a repository."""


class CallMap(Struct, frozen=True):
    """The record of a whole run: the functions that each action ran, and all texts at that time."""

    calls: Mapping[str, tuple[Function, ...]]
    texts: Texts


class SincePlan(Struct, frozen=True):
    """The actions that a change affects; None for all, with the `reason`."""

    actions: frozenset[str] | None
    reason: str
    changed: frozenset[Function] = frozenset()


def plan(known: CallMap | None, then: Texts, now: Texts) -> SincePlan:
    """The effect of a change from `then` to `now`, by a map of calls that may be older or newer than them."""
    changed = _differing(then, now)
    if known is None:
        return SincePlan(None, "the functions that each action calls are not recorded yet", changed)
    if _files(then) != _files(now):
        return SincePlan(None, "files were added or removed", changed)
    if _files(known.texts) != _files(now):
        return SincePlan(None, "files were added or removed since the calls were recorded", changed)
    lasting = sorted(name for ran in known.calls.values() for file, name in ran if file == LASTING)
    if lasting:
        more = f" and {len(lasting) - 3} more" if len(lasting) > 3 else ""
        reason = f"cases change values that outlive them: {', '.join(lasting[:3])}{more}"
        return SincePlan(None, reason, changed)
    unknown = sorted({file for ran in known.calls.values() for file, _ in ran} - _files(now))
    if unknown:
        return SincePlan(None, f"code runs that the binding does not import: {', '.join(unknown)}", changed)
    # Against the revision and against the map: a function that changed since the map may call others by
    # now.
    later = _differing(known.texts, now)
    for differing, when in ((changed, ""), (later, " since the calls were recorded")):
        rests = sorted(file for file, function in differing if function == REST)
        if rests:
            return SincePlan(None, f"code outside functions changed in {', '.join(rests)}{when}", changed)
    unseen = (changed | later).difference(*known.calls.values())
    if unseen:
        names = ", ".join(sorted(function for _, function in unseen))
        return SincePlan(None, f"no call of the changed functions was recorded: {names}", changed)
    actions = actions_of(known.calls, changed | later)
    # Code that runs outside actions (importing, starting, projecting) is a part of every case.
    if REST in actions:
        return SincePlan(None, "a function that runs outside actions changed", changed)
    names = ", ".join(sorted({function for _, function in changed})) or "no function"
    return SincePlan(actions, f"changed: {names}", changed)


def _differing(before: Texts, after: Texts) -> frozenset[Function]:
    return frozenset(name for name in {*before, *after} if before.get(name) != after.get(name))


def _files(known: Texts) -> frozenset[str]:
    return frozenset(file for file, _ in known)


def concerned(suite: Suite, actions: frozenset[str]) -> list[SuiteCase]:
    """The cases with a step of one of some actions, or with a refusal of a class of one."""
    probing = {probe.case for probe in suite.probes if probe.action in actions}
    return [case for number, case in enumerate(suite.cases)
            if number in probing or any(step.action in actions for step in case.steps)]  # fmt: skip


class Revision(Struct, frozen=True):
    """A revision of the repository that contains a folder."""

    folder: Path
    name: str

    def sources(self, files: Sequence[Path]) -> dict[str, str]:
        """The text of each file in the revision, by its shown path; files that it lacks are omitted."""
        top = Path(self._git("rev-parse", "--show-toplevel").strip())
        sources = {}
        for path in files:
            if path.is_relative_to(top):
                text = self._git_or_none("show", f"{self.name}:{path.relative_to(top).as_posix()}")
                if text is not None:
                    sources[shown(path, self.folder)] = text
        return sources

    def changed(self) -> list[Path]:
        """All files that differ from the revision, including new ones."""
        top = Path(self._git("rev-parse", "--show-toplevel").strip())
        # With `-z`, since git otherwise quotes names that have other characters than ASCII.
        names = self._git("diff", "--name-only", "-z", self.name, "--").split("\0")
        # `git diff` does not list untracked files.
        new = self._git("ls-files", "--others", "--exclude-standard", "--full-name", "-z", ":/").split("\0")
        return [top / name for name in [*names, *new] if name]

    def check(self) -> None:
        """Raise `NoRevision` if git does not have it."""
        self._git("rev-parse", "--verify", "--quiet", f"{self.name}^{{commit}}")

    def _git(self, *args: str) -> str:
        text = self._git_or_none(*args)
        if text is None:
            raise NoRevision(f"there is no git revision {self.name} in {self.folder}")
        return text

    def _git_or_none(self, *args: str) -> str | None:
        command = ["git", "-C", str(self.folder), *args]
        try:
            done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - no shell
        except OSError:
            return None
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def unclear_files(changed: Iterable[Path], known: Iterable[Path]) -> Iterator[Path]:
    """The changed files whose effect is unknown: specs, specchk's own, other kinds.

    Python files that the implementation does not import are clear: they are not run.
    """
    implementation = {path.resolve() for path in known}
    for path in changed:
        if path.resolve() in implementation or path.suffix in HARMLESS or "__pycache__" in path.parts:
            continue
        if path.suffix != ".py" or path.resolve().is_relative_to(SPECCHK):
            yield path


def plan_since(
    folder: Path, revision: str, files: Sequence[Path], known: CallMap | None, now: Mapping[str, str]
) -> SincePlan:
    """The plan for the changes since a revision; raises `NoRevision`."""
    then = Revision(folder, revision)
    then.check()
    try:
        before, after = texts(then.sources(files)), texts(now)
    # Also in the old revision, where a file may never have been valid: what changed in it is unclear.
    except SyntaxError as error:
        return SincePlan(None, f"a file is not valid Python: {error}")
    unclear = sorted(shown(path, folder) for path in unclear_files(then.changed(), files))
    if unclear:
        more = f" and {len(unclear) - 3} more" if len(unclear) > 3 else ""
        return SincePlan(None, f"{', '.join(unclear[:3])}{more} changed", _differing(before, after))
    return plan(known, before, after)


def map_path(binding: Path, about: str) -> Path | None:
    """The path of a binding's map; `about` is everything else on which it depends."""
    versions = (kept.sources(*ROOMS), installed())
    return kept.place("calls", f"{kept.name_of(str(binding.resolve()), about, versions)}.json")


def read_map(path: Path | None) -> CallMap | None:
    """The map in a file; None if there is no file."""
    known = kept.read_json(path)
    if known is None:
        return None
    calls = {action: tuple((file, name) for file, name in ran) for action, ran in known["calls"].items()}
    return CallMap(calls, {(file, name): text for file, name, text in known["texts"]})


def write_map(path: Path | None, known: CallMap) -> None:
    """Write a map, if possible."""
    calls = {action: sorted(ran) for action, ran in sorted(known.calls.items())}
    kept.write_json(
        path, {"calls": calls, "texts": [[*name, text] for name, text in sorted(known.texts.items())]}
    )
