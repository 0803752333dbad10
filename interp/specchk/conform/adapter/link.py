"""A process and its three pipes: lines to it, lines from it in time, and its last output on failure.

    Link(launch)         starts it, in a session and a process group of its own
    send, receive        whole lines; receiving writes pending data, and drains stderr
    end                  kills the whole group

Invariants: nothing here waits longer than its time; no thread is made, since the checker forks; a link that
is used by a fork of its maker is an error there (`is_ours`).
Not here: what lines mean (`wire`), starting again (`remote`).
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic

from msgspec import Struct, field

from specchk.conform.adapter.wire import shown_line
from specchk.conform.contract.failures import DIED, GARBLED, HUNG, ImplementationFailure
from specchk.guardian import KILL_GROUP, Guardian

CHUNK = 1 << 16
LONGEST_LINE = 1 << 24  # bytes; a longer one is no answer
KEPT_ERRORS = 1 << 14  # bytes of stderr
LAST_LINES = 20  # of stderr, in a report
LONGEST_WORDS = 200  # characters of a line of stderr in a report
TICK_S = 1.0  # the longest wait that counts as a whole
GRACE_S = 1.0  # from the end of its output to its exit


class Launch(Struct, frozen=True):
    """The command and environment of a process to be started."""

    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)


class Link:
    """A running process; raises `OSError` if it cannot be started."""

    def __init__(self, launch: Launch) -> None:
        self._guardian = Guardian(KILL_GROUP)
        try:
            # Its own session: Ctrl-C is for the checker, and the group is killed as a whole.
            self._process = subprocess.Popen(  # noqa: S603 - the binding's own command
                launch.command, cwd=launch.folder, env={**os.environ, **launch.environment},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True, bufsize=0,
            )  # fmt: skip
        except (OSError, ValueError):
            self._guardian.dismiss()
            raise
        self._guardian.say(str(self._process.pid))
        self._owner = os.getpid()
        self._to, self._from, self._errors = (
            stream.fileno()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr)
            if stream is not None
        )
        self._unsent = bytearray()
        self._unread = bytearray()
        self._searched = 0  # bytes of `_unread` that have no line end
        self._said = bytearray()  # the end of what stderr had
        # Without a state in the kernel, which a fork would share with its parent.
        self._selector = selectors.PollSelector()
        for descriptor in (self._from, self._errors):
            self._selector.register(descriptor, selectors.EVENT_READ)
        # All three: a write to a full pipe would wait for a process that waits for its output to be read.
        for descriptor in (self._to, self._from, self._errors):
            os.set_blocking(descriptor, False)
        self.has_ended = False

    @property
    def is_ours(self) -> bool:
        """Whether the current process started it, and not the process from which it was forked."""
        return os.getpid() == self._owner

    @property
    def has_errors(self) -> bool:
        """Whether it has written to stderr, as far as stderr was read."""
        return bool(self._said)

    def send(self, lines: bytes) -> None:
        """Queue lines; they are written at the latest while an answer is awaited."""
        self._unsent += lines

    def receive(self, timeout_s: float, during: str) -> bytes:
        """The next line; raises `ImplementationFailure`, whose reason names the request (`during`)."""
        left = timeout_s
        while True:
            end = self._unread.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._unread[: end + 1])
                del self._unread[: end + 1]
                self._searched = 0
                return line
            self._searched = len(self._unread)
            if self._searched > LONGEST_LINE:
                raise self.failed(GARBLED, f"a line is longer than {LONGEST_LINE} bytes", during)
            if left <= 0:
                raise self.failed(HUNG, f"no answer after {timeout_s:g} s", during)
            # Ticks count, as in `hangs`, and not time that passed: while a machine is suspended, or a
            # container paused, no process can answer.
            tick, begun = min(left, TICK_S), monotonic()
            self._pump(tick, during)
            left -= min(monotonic() - begun, tick)

    def _pump(self, seconds: float, during: str) -> None:
        """Write and read as much as possible, waiting a limited time for the first byte."""
        if self._unsent:
            self._write()
        writing = bool(self._unsent)
        # Only while there is something to write: a pipe with room is always ready, so
        # that waiting would be a busy loop.
        if writing:
            self._selector.register(self._to, selectors.EVENT_WRITE)
        try:
            ready = {key.fd for key, _ in self._selector.select(seconds)}
        finally:
            if writing:
                self._selector.unregister(self._to)
        if self._errors in ready:
            self._listen()
        if self._from in ready:
            data = _read(self._from)
            if data == b"":
                raise self._ended(during)
            self._unread += data or b""

    def _write(self) -> None:
        try:
            sent = os.write(self._to, self._unsent)
        except BlockingIOError:
            return
        except OSError:
            # It has closed its input; its output will show the end, with all previous output.
            self._unsent.clear()
            return
        del self._unsent[:sent]

    def _listen(self) -> bool:
        """Keep the last part of stderr; returns whether there was new output."""
        data = _read(self._errors)
        if data == b"":
            self._selector.unregister(self._errors)
            self._errors = -1
        if not data:
            return False
        self._said = (self._said + data)[-KEPT_ERRORS:]
        return True

    def _ended(self, during: str) -> ImplementationFailure:
        """The failure of a process whose output has ended."""
        try:
            code = self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            return self.failed(DIED, "it closed its output and did not exit", during)
        how = f"was killed by {_signal(-code)}" if code < 0 else f"exited with code {code}"
        half = f" in the middle of a line, {shown_line(bytes(self._unread))}" if self._unread else ""
        return self.failed(DIED, f"it {how}{half}", during)

    def failed(self, kind: str, what: str, during: str) -> ImplementationFailure:
        """A failure with the process's last output; the process is ended."""
        self.end()
        words = self._said.decode("utf-8", "backslashreplace").splitlines()
        more = [f"(the last {LAST_LINES} of its lines)"] if len(words) > LAST_LINES else []
        last = [f"stderr: {line[:LONGEST_WORDS]}" for line in (*more, *words[-LAST_LINES:])]
        return ImplementationFailure(kind, "\n".join([f"{what}, {during}", *last]))

    def end(self) -> None:
        """Kill the process and its whole group; a repeated call has no effect."""
        if self.has_ended:
            return
        self.has_ended = True
        if self.is_ours:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            # The data left in the pipe were written before the end.
            while self._errors >= 0 and self._listen():
                pass
        self._guardian.dismiss()
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        if not self.is_ours:
            # It is no child of a fork, which must neither wait for it nor warn that it still runs.
            self._process.returncode = 0

    def wait(self, seconds: float) -> bool:
        """Whether it ends by itself within a time limit."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.returncode is not None


def _read(descriptor: int) -> bytes | None:
    """The bytes that can be read; None if there are none yet, empty at the end."""
    try:
        return os.read(descriptor, CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
