"""The folder of a process: the binding's, or a private copy with a mistake, built if necessary.

    folder/            the implementation's files are copied, one of them with the mistake;
      ...              all other files are linked
    build/             the output of the binding's `build`, `{build}` in its commands

Only files of the `implementation` are copied, and all of them: a language that follows links (as Node does)
would otherwise find the right code beside the mistaken one.  Compiled modules of Python are omitted.

Invariants: the binding's folder is only read; a private folder goes with the last process that uses it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from select import select
from tempfile import mkdtemp
from time import monotonic

from msgspec import Struct

from specchk.conform.adapter.link import CHUNK, KEPT_ERRORS, TICK_S, Launch
from specchk.conform.contract.binding import BindingError, Mistake
from specchk.conform.contract.known_bad import BadFile, BadStart, NoSuchText
from specchk.guardian import KILL_GROUP, REMOVE, Guardian
from specchk.processes import own_needs

BUILD = "{build}"
BYTECODE = "__pycache__"
LAST_LINES = 12  # of a failed build


class Workshop(Struct, weakref=True):
    """A launch, and its private folder, if it needs one."""

    launch: Launch
    _end: weakref.finalize[..., object] | None = None


def workshop(
    launch: Launch, build: Sequence[str], patterns: Sequence[str], build_timeout_s: float,
    mistake: BadFile | BadStart | None = None,
) -> Workshop:  # fmt: skip
    """The workshop for a launch in the binding's folder, with a control's mistake.

    `patterns` are the binding's `implementation`.  Raises `NoSuchText` and `BindingError`.
    """
    command, folder, environment = launch.command, launch.folder, launch.environment
    if isinstance(mistake, BadStart):
        command, environment = (*command, *mistake.arguments), {**environment, **mistake.environment}
    made = Workshop(Launch(command, folder, environment))
    if not build and not isinstance(mistake, BadFile):
        return made
    private = Path(mkdtemp(prefix="specchk-"))
    made._end = weakref.finalize(made, Guardian(REMOVE, str(private)).dismiss)
    if isinstance(mistake, BadFile):
        folder = _copied(folder, patterns, mistake, private / "folder")
    output = private / "build"
    output.mkdir()
    if build:
        _build(_placed(build, output), folder, environment, build_timeout_s, mistake)
    made.launch = Launch(_placed(command, output), folder, environment)
    return made


def _placed(words: Sequence[str], build: Path) -> tuple[str, ...]:
    return tuple(word.replace(BUILD, str(build)) for word in words)


def implementation_files(folder: Path, patterns: Sequence[str]) -> set[Path]:
    """The files that match some patterns."""
    return {path.resolve() for one in patterns for path in folder.glob(one) if path.is_file()}


def _copied(folder: Path, patterns: Sequence[str], mistake: BadFile, target: Path) -> Path:
    """A copy of the folder with the mistake; raises `NoSuchText`."""
    own = folder.resolve()
    files = implementation_files(own, patterns)
    wrong = (own / mistake.file).resolve()
    if wrong not in files:
        raise NoSuchText(f"`{mistake.name}` is in {mistake.file}, which is not a file of `implementation`")
    text = wrong.read_text(encoding="utf-8")
    count = text.count(mistake.was)
    if count != 1:
        raise NoSuchText(f"`{mistake.was}` occurs {count} times in {mistake.file}, not once")
    base = Path(os.path.commonpath([own, *(path.parent for path in files)]))
    _mirror(base, target, files)
    copy = target / wrong.relative_to(base)
    copy.chmod(0o700)
    copy.write_text(text.replace(mistake.was, mistake.now), encoding="utf-8")
    return target / own.relative_to(base)


def _mirror(source: Path, target: Path, files: set[Path]) -> None:
    """Copy some files below a folder, and link all others in their folders."""
    target.mkdir(parents=True)
    for entry in sorted(source.iterdir()):
        # Python keeps compiled modules there, and recognizes them by the second and the size of their source:
        # of two mistakes the second would run as the first, and both would be left in the user's folder.
        if entry.name == BYTECODE:
            continue
        if entry in files:
            shutil.copy2(entry, target / entry.name)
        elif entry.is_dir() and any(path.is_relative_to(entry) for path in files):
            _mirror(entry, target / entry.name, files)
        else:
            (target / entry.name).symlink_to(entry)


def _build(
    command: tuple[str, ...], folder: Path, environment: Mapping[str, str], timeout_s: float,
    mistake: BadFile | BadStart | None,
) -> None:  # fmt: skip
    """Build the implementation; raises `BindingError` with the last output of the build."""
    planted = "" if mistake is None else f" with the control `{mistake.name}`"
    try:
        with own_needs():
            code, output = _run(command, folder, environment, timeout_s)
    except OSError as error:
        raise _unbuilt(f"{error}", planted, f"install {command[0]}, or correct `build`") from None
    lines = output.decode("utf-8", "backslashreplace").splitlines()[-LAST_LINES:]
    if code is None:
        why = "\n".join([f"no end after {timeout_s:g} s", *(f"  {line}" for line in lines)])
        raise _unbuilt(why, planted, "raise `build_timeout_s`")
    if code != 0:
        why = "\n".join([f"exit code {code}", *(f"  {line}" for line in lines)])
        raise _unbuilt(why, planted, "correct what the build reports")


def _run(
    command: tuple[str, ...], folder: Path, environment: Mapping[str, str], timeout_s: float
) -> tuple[int | None, bytes]:
    """The exit code of a command, None after its time, and the end of its output; its children end, too."""
    ends, output = monotonic() + timeout_s, b""
    guardian = Guardian(KILL_GROUP)
    try:
        # Without standard input: a build that prompts would otherwise hang until its time is over.
        process = subprocess.Popen(  # noqa: S603 - the binding's own command
            command, cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, bufsize=0,
        )  # fmt: skip
    except OSError:
        guardian.dismiss()
        raise
    guardian.say(str(process.pid))
    assert process.stdout is not None
    try:
        while (left := ends - monotonic()) > 0:
            if select([process.stdout], [], [], min(left, TICK_S))[0]:
                data = process.stdout.read(CHUNK)
                output = (output + data)[-KEPT_ERRORS:]
                if not data:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(left)
                    break
            elif process.poll() is not None:  # a child of it has the output, and will not end
                break
        return process.poll(), output
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        guardian.dismiss()


def _unbuilt(why: str, planted: str, hint: str) -> BindingError:
    return BindingError((Mistake(f"the implementation{planted} was not built: {why}", hint),))
