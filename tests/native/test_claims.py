"""Claims: one search at a time, however many try at once, and none that outlives its process."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from threading import Barrier

import pytest
from pyarrow import fs

from specchk.export.arrow import ArrowStorage
from specchk.native import claims
from specchk.native.claims import BidFolder, Holder, bid, claimed
from specchk.search.engine import Unusable

KINDS = ["lock", "no locks", "arrow"]
HOLD = (
    "import sys, time; from pathlib import Path; from specchk.native.claims import claimed\n"
    "with claimed(Path(sys.argv[1]), 'a long search'): print('has it', flush=True); time.sleep(600)"
)


def claim(kind: str, place: Path) -> AbstractContextManager[None]:
    if kind == "lock":
        return claimed(place, "a search")
    if kind == "arrow":
        return ArrowStorage(fs.LocalFileSystem(), str(place)).claim("a search")
    if place.parent.is_dir():
        place.mkdir(exist_ok=True)
    return bid(BidFolder.at(place), str(place), "a search")


class Other:
    """A process that has a directory."""

    def __init__(self, place: Path) -> None:
        line = [sys.executable, "-c", HOLD, str(place)]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "has it\n"

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def mark(place: Path, name: str, holder: Holder) -> None:
    place.mkdir(exist_ok=True)
    (place / name).write_text(json.dumps({name: getattr(holder, name) for name in Holder.__slots__}))


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_is_one_s_until_it_is_given_up(kind: str, tmp_path: Path) -> None:
    """The second is told the owner and the purpose; the third, afterwards, gets it."""
    place = tmp_path / "place"
    with claim(kind, place), pytest.raises(Unusable) as refused:
        claim(kind, place).__enter__()
    assert f"{place} is held by another search (process {os.getpid()} on " in str(refused.value)
    assert "for a search)" in str(refused.value)
    with claim(kind, place):
        pass


@pytest.mark.parametrize("kind", KINDS)
def test_of_twenty_at_once_one_has_it(kind: str, tmp_path: Path) -> None:
    """Repeatedly, and never two, never none."""
    many, place = 20, tmp_path / "place"
    start, end = Barrier(many), Barrier(many)

    def attempt(_: int) -> str:
        with ExitStack() as stack:
            start.wait()
            try:
                stack.enter_context(claim(kind, place))
                return "has it"
            except Unusable as reason:
                return str(reason)
            finally:
                end.wait()

    with ThreadPoolExecutor(many) as pool:
        for _ in range(10):
            said = list(pool.map(attempt, range(many)))
            assert said.count("has it") == 1
            assert sum("is held by another search" in text for text in said) == many - 1


def test_a_killed_process_leaves_no_claim(tmp_path: Path) -> None:
    """The system drops its lock; the name that it left is not reported for the next one."""
    other = Other(tmp_path)
    with pytest.raises(Unusable, match=f"process {other.process.pid} on .* for a long search"):
        claimed(tmp_path, "a search").__enter__()
    other.kill()
    with claimed(tmp_path, "a search"), pytest.raises(Unusable, match=f"process {os.getpid()} on"):
        claimed(tmp_path, "another").__enter__()


def test_a_search_that_ends_meanwhile_is_no_reason_to_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had the lock, and has neither lock nor name when they are read: the claim is free."""
    file = os.open(tmp_path / "claim", os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)

    def ends(_: int) -> None:
        os.close(file)

    monkeypatch.setattr(claims, "_present", ends)
    with claimed(tmp_path, "a search"):
        assert list(tmp_path.iterdir())


def test_a_child_does_not_keep_its_parent_s_claim(tmp_path: Path) -> None:
    """Java, which outlives a killed driver for a while, does not inherit the lock."""
    with claimed(tmp_path, "a search"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with claimed(tmp_path, "another"):
        child.kill()
        child.communicate()


def test_files_of_a_killed_process_are_no_claim(tmp_path: Path) -> None:
    """Without locks, the files of an ended process of this system are removed."""
    other = Other(tmp_path / "elsewhere")
    gone = Holder("here", other.process.pid, "now", "x", claims._system(), claims._started(other.process.pid))
    place = tmp_path / "place"
    for name in ("bid-0", "held-0"):
        mark(place, name, gone)
    with pytest.raises(Unusable, match="is held by"):
        claim("no locks", place).__enter__()
    other.kill()
    with claim("no locks", place):
        assert not (place / "held-0").exists()


@pytest.mark.parametrize("left", [("bid-0",), ("bid-f",), ("bid-f", "held-f")])
def test_files_of_another_machine_are_believed_and_named(left: tuple[str, ...], tmp_path: Path) -> None:
    """Whether that process is alive is unknown here: the refusal states what to remove if it is not."""
    for name in left:
        mark(tmp_path, name, Holder("elsewhere", 7, "then", "a search", "another boot", "1"))
    with pytest.raises(Unusable) as refused:
        bid(BidFolder.at(tmp_path), str(tmp_path), "a search", patience_s=0.1).__enter__()
    told = str(refused.value)
    assert "process 7 on elsewhere, since then, for a search): wait for it" in told
    assert f"if it has ended, remove {' and '.join(left)} there" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(left)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_files_do(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without locks is claimed nevertheless."""

    def none(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", none)
    with claimed(tmp_path, "a search"):
        assert any(path.name.startswith("held-") for path in tmp_path.iterdir())
        with pytest.raises(Unusable, match="is held by another search"):
            claimed(tmp_path, "another").__enter__()


@pytest.mark.parametrize("name", ["share", "our share", "größe"])
def test_locks_that_other_machines_do_not_see_are_not_enough(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An NFS mount with `nolock` has locks, which are this machine's own; blanks are escaped in the table."""
    shown = str(tmp_path / name).replace(" ", "\\040")
    mounts = (
        "22 1 0:2 / / rw,relatime - ext4 /dev/sda1 rw\n"
        f"23 1 0:3 / {shown} rw,relatime - nfs server:/share rw,vers=3,nolock,local_lock=all\n"
    )
    real = Path.read_text

    def read_text(self: Path, *args: str, **kinds: str) -> str:
        return mounts if self == Path("/proc/self/mountinfo") else real(self, *args, **kinds)

    monkeypatch.setattr(Path, "read_text", read_text)
    assert not claims._has_locks(tmp_path / name / "ledger")
    assert claims._has_locks(Path("/somewhere/else"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_place_that_cannot_be_is_refused(kind: str, tmp_path: Path) -> None:
    """A file in its place: a sentence with the name, not a system error."""
    (tmp_path / "file").touch()
    with pytest.raises(Unusable, match="file/place cannot be"):
        claim(kind, tmp_path / "file" / "place").__enter__()


def test_a_zombie_is_gone() -> None:
    """A process that ended and was not waited for has no claims."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    holder = Holder("here", process.pid, "now", "x", claims._system(), "5")
    assert holder.is_gone
    process.wait()
