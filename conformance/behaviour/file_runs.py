"""Runs on the operating system's files: the result of each call of `OsFs`, and the store on it.

Each has its own folder; paths are recorded relative to that folder.  Not here: effects of a crash, which
only a simulated disk can show.
"""

from __future__ import annotations

from contextlib import closing
from random import Random
from tempfile import TemporaryDirectory

from observed_files import ObservedFs, note_files

from replog.store.checkpoints.checkpoint import HIGH_WATERMARK_FILE, LOG_START_FILE
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.errors import StoreError
from replog.store.files.fs import File, OsFs, file_size, make_directory, read_file
from replog.store.recovery.repair import Repairer, set_strangers_aside, strangers
from replog.store.segments.records import Record, encode_batch
from specchk.conform.contract.behaviours import RunWatch

FILES = "operating system"
NAMES = ("a", "b", "c/d")
CALLS = 120


def calls(seed: int, watch: RunWatch) -> None:
    """Call all functions of the file system in random order, and note the contents of files."""
    random, fs = Random(seed), OsFs()  # noqa: S311  # chance that must be repeatable
    with TemporaryDirectory() as root:
        make_directory(fs, f"{root}/c")
        handles: dict[str, File] = {}
        for _ in range(CALLS):
            name = random.choice(NAMES)
            path = f"{root}/{name}"
            watch.step(name)
            try:
                if name in handles and random.random() < 0.7:
                    _use(watch, random, handles[name])
                else:
                    _change_names(watch, random, fs, root, name, handles)
            except OSError as error:
                watch.note(FILES, "fails", error=type(error).__name__)
            make_directory(fs, f"{root}/c")
            watch.note(FILES, "exists", path=name, exists=fs.exists(path), is_dir=fs.is_dir(path))
            if fs.exists(path):
                watch.note(FILES, "content", path=name, size=file_size(fs, path), data=read_file(fs, path))
            watch.note(FILES, "names", top=fs.listdir(root), below=fs.listdir(f"{root}/c"))
        for file in handles.values():
            file.close()


def _use(watch: RunWatch, random: Random, file: File) -> None:
    """Write, read, cut or sync an open file."""
    data = bytes(random.randrange(97, 123) for _ in range(random.randrange(12)))
    draw = random.random()
    if draw < 0.4:
        file.append(data, b"|", memoryview(data)[::1])
    elif draw < 0.55:
        file.pwrite(data, random.randrange(30))
    elif draw < 0.7:
        file.truncate(random.randrange(40))
    elif draw < 0.8:
        file.fsync()
    else:
        offset = random.randrange(40)
        watch.note(FILES, "read", data=file.pread(random.randrange(60), offset), size=file.size())


def _change_names(
    watch: RunWatch, random: Random, fs: OsFs, root: str, name: str, handles: dict[str, File]
) -> None:
    """Create, open, rename, remove, lock or sync."""
    path, draw = f"{root}/{name}", random.random()
    if draw < 0.35:
        handles[name] = fs.create(path)
    elif draw < 0.6:
        handles[name] = fs.open(path)
    elif draw < 0.7:
        fs.rename(path, f"{root}/{random.choice(NAMES)}")
    elif draw < 0.75:
        fs.unlink(path)
    elif draw < 0.85:
        fs.fsync_dir(f"{root}/c")
    elif draw < 0.93:
        fs.mkdir(f"{root}/e")
        fs.rmdir(f"{root}/e")
        # Refused where it is not empty.
        fs.rmdir(f"{root}/c")
    else:
        with closing(fs.lock(f"{root}/lock")):
            # Of the same process, too: the lock belongs to the open file.
            watch.note(FILES, "lock", is_taken=_is_taken(fs, f"{root}/lock"))
        watch.note(FILES, "lock", is_taken=_is_taken(fs, f"{root}/lock"))


def _is_taken(fs: OsFs, path: str) -> bool:
    try:
        fs.lock(path).close()
    except BlockingIOError:
        return True
    return False


def store(seed: int, watch: RunWatch) -> None:
    """Use the store on real files: append, cut, flush, stop cleanly and start again."""
    random = Random(seed)  # noqa: S311  # chance that must be repeatable
    config = LogConfig(segment_bytes=400, index_interval_bytes=100, flush_messages=random.choice((None, 3)))
    with TemporaryDirectory() as root:
        fs = ObservedFs(OsFs(), watch, FILES, root)
        for life in range(4):
            watch.step(f"life {life}")
            directory = LogDirectory.open(fs, f"{root}/data", config)
            watch.note(FILES, "opened", was_clean=directory.was_clean, notes=tuple(directory.notes))
            try:
                LogDirectory.open(fs, f"{root}/data", config)
            except StoreError as error:
                watch.note(FILES, "second process", error=type(error).__name__)
            log = directory.log("t", 0)
            for turn in range(25):
                watch.step(f"turn {turn}")
                draw = random.random()
                if draw < 0.7:
                    body = encode_batch([Record(b"v" * random.randrange(60))] * random.choice((1, 2)))
                    watch.note(FILES, "append", header=tuple(log.append_as_leader(body, life)))
                elif draw < 0.85:
                    end = log.truncate_to(max(log.log_end - random.randrange(4), log.log_start))
                    watch.note(FILES, "truncate", end=end)
                else:
                    log.flush()
                offset = random.randrange(log.log_start, log.log_end + 1)
                watch.note(FILES, "read", offset=offset, data=log.read(offset, 150))
            directory.checkpoint({("t", 0): log.log_end})
            if life % 2:
                directory.abandon()
            else:
                directory.shut_down({("t", 0): log.log_end}, 7 + life)
        watch.step("the end")
        note_files(watch, FILES, OsFs(), f"{root}/data", root)


def no_files(watch: RunWatch) -> None:
    """Folders in place of files are set aside, and a checkpoint of another version is named."""
    with TemporaryDirectory() as root:
        fs = ObservedFs(OsFs(), watch, FILES, root)
        path = f"{root}/data"
        directory = LogDirectory.open(fs, path, LogConfig())
        directory.log("t", 0).append_as_leader(encode_batch([Record(b"v")]), 0)
        directory.checkpoint({("t", 0): 1})
        directory.shut_down({("t", 0): 1}, 7)
        for name in (HIGH_WATERMARK_FILE, f"t-0/{0:020d}.log"):
            fs.rename(f"{path}/{name}", f"{root}/away")
            fs.mkdir(f"{path}/{name}")
        with closing(fs.create(f"{path}/{LOG_START_FILE}")) as file:
            file.append(b"9\n0\n")
        watch.step("strangers")
        names = strangers(fs, path)
        watch.note(FILES, "strangers", names=tuple(names))
        watch.note(FILES, "set aside", notes=tuple(set_strangers_aside(fs, path, names)))
        watch.step("another version")
        watch.note(FILES, "foreign", reasons=tuple(Repairer(fs, path).foreign()))
        note_files(watch, FILES, OsFs(), path, root)
