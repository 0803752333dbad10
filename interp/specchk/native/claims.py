"""Claims: each directory of a kept search is used by one search at a time.

A claim is a lock on the file `claim` there.  The system drops it with the process that has it, however that
ends, so claims are never stale.  On NFS it is the server's lock.  The file remains, since a lock on a removed
file would exclude no other process.

Without locks, or with locks that other machines do not see (some mounts of network file systems, object
stores), files alone must suffice, in a directory whose listing shows every file written before:

    bid-X     X wants the claim; stays until X gives it up
    held-X    X has it

A process that wants the claim writes a bid, and only then reads the others.  It gives way to any claim that
is held and to a bid with a smaller name, waits while larger bids give way, and holds the claim once there is
no other bid.  Two cannot hold it: one of them would have read after the other had written its bid.  A killed
process leaves its claim behind: it is dropped if that process was of this very system and has ended;
otherwise the refusal names the files to remove.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from msgspec import MsgspecError, Struct
from msgspec.json import decode, encode

from specchk import kept
from specchk.ir.program import Program
from specchk.search.engine import Unusable

_NAME = "claim"
# Mount options of NFS, Lustre and CIFS with which a lock holds on this machine only.
_LOCAL_LOCKS = frozenset({"nolock", "local_lock=all", "local_lock=flock", "localflock", "nobrl"})
# The errors of file systems without locks; ENOLCK is NFS without its lock service.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
_NAMED = 4  # properties that a purpose names
PATIENCE_S = 10.0  # for another process between two of its steps
_PAUSE_S = 0.01


class Holder(Struct, frozen=True):
    """A process that has a claim; `system` and `started` distinguish it from others with the same id."""

    host: str
    process: int
    since: str
    purpose: str
    system: str  # this boot of this machine, and the name space of process numbers
    started: str

    @classmethod
    def this(cls, purpose: str) -> Holder:
        """The current process."""
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return cls(os.uname().nodename, os.getpid(), since, purpose, _system(), _started(os.getpid()))

    @property
    def is_gone(self) -> bool:
        """Whether the process has certainly ended."""
        # Certain only on this boot and in this name space of process numbers: elsewhere the number may be
        # that of another process, or of none although the holder lives.  The start time distinguishes it from
        # a later process of the same number.
        return bool(self.system) and self.system == _system() and self.started != _started(self.process)

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, since {self.since}, for {self.purpose}"


def _system() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(process: int) -> str:
    """The start time of a process, in ticks since boot; "" if there is no such process."""
    with suppress(OSError):
        line = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        # A command's name may have blanks and parentheses, so fields are counted from the last one; a zombie
        # no longer holds a lock.  The start is field 22 of proc(5).
        state, *words = line.rpartition(")")[2].split()
        return "" if state == "Z" else words[18]
    return ""


def _holder(text: bytes) -> Holder | None:
    try:
        return decode(text, type=Holder)
    except MsgspecError:
        return None


def purpose_of(program: Program) -> str:
    """The purpose of a search, as reported to other processes."""
    names = [p.name for p in (*program.invariants, *program.step_invariants, *program.witnesses)]
    if len(names) > _NAMED:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} more"]
    return f"{program.spec}, model {program.model}: {', '.join(names) or 'no properties'}"


def held_by(what: str, holder: Holder | None, remedy: str = "") -> Unusable:
    """The refusal of a claim that another process has."""
    who = f"{holder}" if holder is not None else "an unnamed process"
    return Unusable(f"{what} is held by another search ({who}): wait for it, or choose another place{remedy}")


@contextmanager
def claimed(directory: Path, purpose: str) -> Iterator[None]:
    """Claim a directory for this search alone, creating it if necessary.

    `Unusable` if another one has it, or if it cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = os.open(directory / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise Unusable(f"{directory} cannot be written: {error.strerror}") from error
    try:
        # `yield from` keeps the generator in the `try`: the lock is released only after the name was removed.
        if _has_locks(directory) and _locked(file, directory):
            yield from _named(file, directory, purpose)
        else:
            with bid(BidFolder.at(directory), str(directory), purpose):
                yield
    finally:
        os.close(file)


def _has_locks(directory: Path) -> bool:
    """Whether a lock there is effective on all machines that mount the directory, as far as is known."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    place, best, options = directory.resolve(), "", ""
    for line in mounts.splitlines():
        words = line.split()
        # Blanks and backslashes are octal there; everything else, UTF-8 included, is unchanged.
        at = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), words[4])
        # The longest mount point is the innermost; of two at the same place the later line is the one on
        # top.
        if place.is_relative_to(at) and len(at) >= len(best):
            best, options = at, f"{words[5]},{words[-1]}"
    return not _LOCAL_LOCKS & set(options.split(","))


def _locked(file: int, directory: Path) -> bool:
    """Lock a file; returns whether locks are supported.  `Unusable` if another process has the lock."""
    # Not wall time, which may be set back while this process waits.
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            holder = _present(file)  # None: a process that begins or ends just now
            # Between the lock and the name, and between emptying the file and the end of the lock, there is
            # no name to report: such a moment is waited out.
            if holder is not None or time.monotonic() > end:
                raise held_by(str(directory), holder) from None
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return False
            raise Unusable(f"{directory} cannot be claimed: {error.strerror}") from error
        time.sleep(_PAUSE_S)


def _present(file: int) -> Holder | None:
    """The holder of the lock, by its name in the file; a lock left by a killed process does not count."""
    holder = _holder(os.pread(file, 1 << 16, 0))
    return None if holder is None or holder.is_gone else holder


def _named(file: int, directory: Path, purpose: str) -> Iterator[None]:
    """Write this process's name to a locked file for the duration of the context."""
    try:
        # Emptied, not removed: a process that has the file open already would lock one that no other can
        # find.
        os.ftruncate(file, 0)
        os.pwrite(file, encode(Holder.this(purpose)), 0)
    except OSError as error:
        raise Unusable(f"{directory} cannot be written: {error.strerror}") from error
    try:
        yield
    finally:
        with suppress(OSError):
            os.ftruncate(file, 0)


class BidFolder(NamedTuple):
    """The folder of bids, as functions that raise `OSError`: small files, each written as a whole.

    A listing, `names`, shows all files that were written before it.
    """

    write: Callable[[str, bytes], None]
    read: Callable[[str], bytes]
    names: Callable[[], list[str]]
    remove: Callable[[str], None]

    @classmethod
    def at(cls, root: Path) -> BidFolder:
        """A directory used as the folder of bids."""
        return cls(
            write=lambda name, data: kept.replace(root / name, data),
            read=lambda name: (root / name).read_bytes(),
            names=lambda: [path.name for path in root.iterdir()],
            remove=lambda name: (root / name).unlink(missing_ok=True),
        )


@contextmanager
def bid(place: BidFolder, what: str, purpose: str, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Claim a place by files alone; `Unusable` if another process has it, or if it cannot be written."""
    own = uuid.uuid4().hex
    packed = encode(Holder.this(purpose))
    try:
        try:
            # Bid before looking, as in Lamport's bakery: of two that bid at once at least one sees the
            # other.
            place.write(f"bid-{own}", packed)
            _await(place, what, own, patience_s)
            place.write(f"held-{own}", packed)
        except OSError as error:
            raise Unusable(f"{what} cannot be claimed: {error.strerror or error}") from error
        yield
    finally:
        # In this order: a claim that is held refuses others at once, while a bid is waited for.
        for name in (f"held-{own}", f"bid-{own}"):
            with suppress(OSError):
                place.remove(name)


def _await(place: BidFolder, what: str, own: str, patience_s: float) -> None:
    """Wait until there are no other bids; `Unusable` if one has precedence, or remains."""
    end = time.monotonic() + patience_s
    while others := _others(place, own):
        # Claims that are held before bids, then by name: a holder always wins, and of bids the smallest.
        first = min(others, key=lambda name: (name.startswith("bid-"), name))
        # Names are random, so no process always has the smaller one; it only matters that all compare them
        # alike.
        gives_way = first.startswith("bid-") and first > f"bid-{own}"
        if not gives_way or time.monotonic() > end:
            # For a person to remove: only a person can find out that a process of another machine is dead.
            files = " and ".join(others)
            raise held_by(what, _reader(place, first), f"; if it has ended, remove {files} there")
        time.sleep(_PAUSE_S)


def _others(place: BidFolder, own: str) -> list[str]:
    """The marks of other processes, except those left by processes that have ended."""
    marks = []
    for name in sorted(place.names()):
        if name.startswith(("bid-", "held-")) and not name.endswith(own):
            holder = _reader(place, name)
            # Only of this very system and boot, as in `is_gone`: a mark of another machine may be of a living
            # process.
            if holder is not None and holder.is_gone:
                with suppress(OSError):  # another process may have removed it
                    place.remove(name)
            else:
                marks.append(name)
    return marks


def _reader(place: BidFolder, name: str) -> Holder | None:
    with suppress(OSError):
        return _holder(place.read(name))
    return None
