"""Guardians: shells that act when the process that created them ends, however it ends.

A guardian waits on a pipe whose other end only the checker has open.  The kernel closes it with the last
owner, so that a SIGKILL of the checker counts as an end as well, without any signal handler or `atexit`.
A fork of the checker has the pipe open, too: the guardian acts after the last of them.

Invariants: a guardian that was dismissed does nothing; none is left behind.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from shutil import rmtree
from tempfile import mkdtemp

SHELL = "/bin/sh"
# An orderly process ends when its input does; a second later nothing of its group is left.
KILL_GROUP = (
    'read -r group || exit 0; [ "$group" != end ] || exit 0; read -r end && exit 0; sleep 1; '
    'kill -s KILL -- "-$group"'
)
REMOVE = 'read -r end; rm -rf -- "$1"'


class Guardian:
    """A shell that runs a script reading from the checker's pipe."""

    def __init__(self, script: str, *args: str) -> None:
        theirs, self._ours = os.pipe()
        self._owner = os.getpid()
        try:
            # In a session of its own, or Ctrl-C would end it with the checker; in no folder that may be
            # removed.
            self._shell = subprocess.Popen(  # noqa: S603 - a fixed script
                [SHELL, "-c", script, SHELL, *args], stdin=theirs, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True, cwd="/",
            )  # fmt: skip
        except OSError:
            os.close(self._ours)
            raise
        finally:
            os.close(theirs)

    def say(self, word: str) -> None:
        """Send a line to the script."""
        with suppress(OSError):  # a guardian that was killed protects nothing, which affects no verdict
            os.write(self._ours, f"{word}\n".encode())

    def dismiss(self) -> None:
        """Let the shell end now; the script reads `end`."""
        if os.getpid() == self._owner:
            self.say("end")
            os.close(self._ours)
            self._shell.wait()
        else:
            os.close(self._ours)
            # It is no child of a fork, which must neither wait for it nor warn that it still runs.
            self._shell.returncode = 0


@contextmanager
def temporary_folder(prefix: str = "specchk-") -> Iterator[str]:
    """A folder that is removed with the context, and with the process, however that ends."""
    folder = mkdtemp(prefix=prefix)
    try:
        guardian = Guardian(REMOVE, folder)
        try:
            yield folder
        finally:
            guardian.dismiss()
    finally:
        rmtree(folder, ignore_errors=True)  # a guardian that was killed removes nothing
