"""The promises about a damaged folder, for `bench/replog/fuzz.py`: each broken one is a sentence.

    read        every record read is the one that was written at its offset, in its epoch; a read below the
                log end returns records or raises
    start       a log that opens has all its synced records, unless log and manifest were struck both
    epochs      the epochs of a log that opens are those of its records
    bytes       a value that was synced, and is still in some file after the damage, is in some file after the
                start, and after the repair
    errors      nothing is raised but the store's errors
    dump        reports damage to synced records and to the epoch checkpoint; after a repair and a clean stop
                it finds nothing
    repair      leaves only logs that open and can be read to their ends, and keeps of each what is before the
                first segment that was struck, or before the first batch, if all headers are as they were
    no alarm    a partition of which only indexes and the epoch checkpoint were struck opens with all it had

Behind the last flush that the manifest knows, after an unclean stop, only its CRC vouches for a batch: one of
another log, or an older one, whole and in its place, is read. That is no failure, but counted (`unsynced`).

The truth is what the undamaged folder gives when it is opened, which is held to the history first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from store_history import FOLDER, Content, Files, History, Key, disk_of, files_of

from replog.dump import Dump
from replog.sim.disks.disk import SimFs
from replog.store.checkpoints.checkpoint import CLEAN_SHUTDOWN_FILE, EPOCH_FILE, read_epochs
from replog.store.checkpoints.manifest import MANIFEST_FILE, parse
from replog.store.checkpoints.registry import REGISTRY_FILE
from replog.store.directory import LogDirectory
from replog.store.files.errors import ForeignVersionError, StoreError
from replog.store.partition import PartitionLog
from replog.store.recovery.repair import Plan, Repairer
from replog.store.segments.batch import CRC_START, iterate_headers
from replog.store.segments.epochs import between, epoch_at
from replog.store.segments.records import Record, decode_batch, encode_batch


class BrokenError(Exception):
    """A promise was broken; the text names it."""


@dataclass(frozen=True, slots=True)
class Log:
    """The contents of one partition in the undamaged folder."""

    start: int
    end: int
    flushed: int
    content: Content
    epochs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """The contents of the undamaged folder."""

    history: History
    logs: dict[Key, Log]
    high_watermarks: dict[Key, int]
    broker_epoch: int | None


def expect(holds: bool, text: str) -> None:
    if not holds:
        raise BrokenError(text)


def read_all(log: PartitionLog, random: Random | None = None, is_patient: bool = False) -> Content:
    """Read a log from its start to its end, or to the damage if `is_patient`."""
    found: Content = {}
    offset = log.log_start
    while offset < log.log_end:
        try:
            data = log.read(offset, 1 if random is None else random.choice([1, 100, 1000]))
            expect(bool(data), f"an empty read at {offset}, below the log end {log.log_end}")
            offset = note_batches(data, found, log.log_start, offset)
        except StoreError:
            if not is_patient:
                raise
            offset += 1
    return found


def note_batches(data: bytes, into: Content, start: int, asked: int) -> int:
    """Add the records of a read and return the offset after them; `CorruptBatchError`, as in a client."""
    end = asked
    for position, header in list(iterate_headers(data)):
        for record in decode_batch(data[position : position + header.size_bytes]):
            if record.offset >= start:
                entry = header.leader_epoch, record.value or b""
                expect(into.setdefault(record.offset, entry) == entry, f"offset {record.offset} read twice")
            end = max(end, record.offset + 1)
    expect(end > asked, f"a read at {asked} returns nothing at or after it")
    return end


def truth_of(history: History) -> Truth:
    """Open the undamaged folder, which must be possible and give the written records."""
    fs = disk_of(history.files, history.folders)
    dump = Dump(False, False, fs)
    shown = [line for line in dump.lines(FOLDER) if line.startswith("!")]
    if history.is_clean:
        expect(not shown, f"undamaged, stopped cleanly: dump says {shown}")
    directory = LogDirectory.open(fs, FOLDER, history.config)
    expect(not directory.damaged, f"undamaged: {directory.damaged}")
    expect(directory.was_clean == history.is_clean, "undamaged: the marker is not believed")
    if history.is_clean:
        expect(not directory.notes, f"undamaged, stopped cleanly: notes {directory.notes}")
    logs = {key: undamaged_log(directory.log(*key), history, key) for key in history.written}
    return Truth(history, logs, directory.high_watermarks, directory.broker_epoch)


def undamaged_log(log: PartitionLog, history: History, key: Key) -> Log:
    written = history.written[key]
    content = read_all(log)
    for offset, entry in content.items():
        expect(entry in written.ever.get(offset, ()), f"undamaged: {key} has {entry} at {offset}")
    for offset, entry in written.content.items():
        if log.log_start <= offset < written.flushed:
            expect(content.get(offset) == entry, f"undamaged: {key} lost {entry} at {offset}")
    epochs = tuple(tuple(entry) for entry in log.epochs)
    check_epochs(log, content, str(key))
    return Log(log.log_start, log.log_end, min(written.flushed, log.log_end), content, epochs)


def check_epochs(log: PartitionLog, content: Content, where: str) -> None:
    """The epochs by offset must be those of the records, and each must begin where its records do."""
    for offset, (epoch, _) in content.items():
        known = epoch_at(log.epochs, offset)
        expect(known == epoch, f"{where}: epoch {known} at {offset}, whose record has {epoch}")
    for entry in log.epochs:
        is_inside = log.log_start <= entry.start_offset < log.log_end
        expect(is_inside, f"{where}: an epoch that begins at {entry.start_offset}, outside the log")


def check(truth: Truth, files: Files, random: Random) -> str:
    """Start, use, dump and repair a damaged folder; return the result, or raise `BrokenError`."""
    folders = {f for f in sorted(truth.history.folders) if f == FOLDER or random.random() < 0.5}
    fs = disk_of(files, frozenset(folders))
    kept = values_in(files, truth)
    check_dump(truth, files, fs)
    fate = check_start(truth, files, disk_of(files, frozenset(folders)), random, kept)
    check_repair(truth, files, fs, random, kept)
    return fate


def values_in(files: Files, truth: Truth) -> dict[bytes, int]:
    """Return the synced values contained in some file, and how often."""
    everything = b"\0".join(files.values())
    found = {}
    for log in truth.logs.values():
        for offset, (_, value) in log.content.items():
            if offset < log.flushed and value in everything:
                found[value] = 1
    return found


def check_bytes(fs: SimFs, kept: dict[bytes, int], when: str) -> None:
    everything = b"\0".join(files_of(fs)[0].values())
    gone = [value for value in kept if value not in everything]
    expect(not gone, f"{when}: {len(gone)} synced values are gone, first {gone[:1]}")


def check_dump(truth: Truth, files: Files, fs: SimFs) -> None:
    before = fs.snapshot()
    dump = Dump(False, False, fs)
    shown = [line for line in dump.lines(FOLDER) if line.startswith("!")]
    changes = fs.changes
    fs.restore(before)
    expect(changes == fs.changes, "a dump changed something")
    for key, log in truth.logs.items():
        folder = f"{FOLDER}/{key[0]}-{key[1]}/"
        manifest = folder + MANIFEST_FILE
        is_struck = files.get(manifest) != truth.history.files[manifest]
        for path, content in truth.history.files.items():
            synced = [v for o, (_, v) in log.content.items() if o < log.flushed and v in content]
            is_hit = path.startswith(folder) and path.endswith(".log") and not is_struck
            if is_hit and any(value not in files.get(path, b"") for value in synced):
                expect(bool(shown), f"dump says nothing about {path}")
        is_struck |= is_log_struck(truth, files, key)
        if not is_struck and files.get(folder + EPOCH_FILE) != truth.history.files.get(folder + EPOCH_FILE):
            expect(
                bool(shown) or has_epochs(fs, folder, log), f"dump says nothing about {folder}{EPOCH_FILE}"
            )


def has_epochs(fs: SimFs, folder: str, log: Log) -> bool:
    """Return whether an epoch checkpoint is correct for a log, apart perhaps from its end."""
    try:
        return between(read_epochs(fs, folder) or (), log.start, log.end) == log.epochs
    except StoreError:
        return False


def is_struck_lightly(truth: Truth, files: Files, key: Key) -> bool:
    """Return whether no file was damaged that a partition requires."""
    folder, before = f"{FOLDER}/{key[0]}-{key[1]}/", truth.history.files
    paths = [path for path in {**before, **files} if path.startswith(folder)]
    vital = [path for path in paths if path.endswith((".log", MANIFEST_FILE))]
    own = f"{FOLDER}/{REGISTRY_FILE}", f"{FOLDER}/{CLEAN_SHUTDOWN_FILE}"
    return all(files.get(path) == before.get(path) for path in (*vital, *own))


def check_start(truth: Truth, files: Files, fs: SimFs, random: Random, kept: dict[bytes, int]) -> str:
    """Open the folder and use the partitions that open."""
    try:
        directory = LogDirectory.open(fs, FOLDER, truth.history.config)
    except StoreError as error:
        check_bytes(fs, kept, f"a start refused with {type(error).__name__}")
        return f"refused: {type(error).__name__}"
    check_root(truth, directory)
    fates = {check_log(truth, files, directory, key, random) for key in truth.logs}
    check_bytes(fs, kept, "after a start")
    check_later(truth, directory, fs)
    check_bytes(fs, kept, "after a second start")
    return " and ".join(sorted(fates))


def check_root(truth: Truth, directory: LogDirectory) -> None:
    for key, high_watermark in directory.high_watermarks.items():
        right = truth.high_watermarks.get(key, 0)
        is_right = high_watermark == right or (high_watermark == 0 and directory.notes)
        is_before = not truth.history.is_clean and high_watermark in truth.history.high_watermarks[key]
        expect(bool(is_right) or is_before, f"high watermark {high_watermark} of {key} instead of {right}")
    if directory.was_clean:
        expect(truth.history.is_clean, "an unclean stop is taken for a clean one")
        expect(directory.broker_epoch == truth.broker_epoch, f"broker epoch {directory.broker_epoch}")


def check_log(truth: Truth, files: Files, directory: LogDirectory, key: Key, random: Random) -> str:
    """Compare one partition with the truth; return the result."""
    right = truth.logs[key]
    try:
        log = directory.log(*key)
    except StoreError as error:
        expect(key in directory.damaged, f"{key} cannot be used and is not noted as damaged")
        expect(not is_struck_lightly(truth, files, key), f"{key} was not struck, and is closed: {error}")
        return "closed"
    where = f"{key[0]}-{key[1]}"
    content = read_all(log, random, is_patient=True)
    if is_struck_lightly(truth, files, key):
        expect(content == right.content, f"{where} was not struck, and has lost records")
    has_others = compare(content, truth, files, key)
    vouched = min(right.flushed, manifest_end(files, key))
    for offset in range(log.log_start, vouched if has_others else log.log_end):
        entry = right.content.get(offset)
        if entry is not None:
            known = epoch_at(log.epochs, offset)
            expect(known == entry[0], f"{where}: epoch {known} at {offset}, which was written in {entry[0]}")
    manifest = f"{FOLDER}/{where}/{MANIFEST_FILE}"
    is_struck = files.get(manifest) != truth.history.files.get(manifest)
    is_later = log.log_end > right.end
    may_be_later = is_struck or may_have_others(truth, files, key)
    expect(may_be_later or not is_later, f"{where} ends at {log.log_end}, not {right.end}")
    if log.log_end < right.flushed:
        text = f"{where} ends at {log.log_end}, and {right.flushed} were synced"
        expect(is_struck and (bool(directory.notes) or is_log_struck(truth, files, key)), text)
    if log.log_start != right.start:
        expect(is_struck, f"{where} starts at {log.log_start} instead of {right.start}")
    if has_others or is_later:
        return "unsynced"
    return "read" if len(content) == log.log_end - log.log_start else "read in part"


def compare(content: Content, truth: Truth, files: Files, key: Key) -> bool:
    """Check that every record is the written one; return whether others follow the synced part."""
    log, ever = truth.logs[key], truth.history.written[key].ever
    vouched = min(log.flushed, manifest_end(files, key))
    has_others = False
    for offset, entry in content.items():
        right = log.content.get(offset)
        is_right = entry in ever.get(offset, ()) if right is None else entry == right
        if not is_right and offset >= vouched and may_have_others(truth, files, key):
            has_others = True
            continue
        expect(is_right, f"{key} has {entry} at {offset} instead of {right}")
    return has_others


def manifest_end(files: Files, key: Key) -> int:
    """Return the end of the manifest's guarantee, which may be an older copy."""
    try:
        return parse(files.get(f"{FOLDER}/{key[0]}-{key[1]}/{MANIFEST_FILE}", b"")).manifest.flushed
    except StoreError:
        return 0


def may_have_others(truth: Truth, files: Files, key: Key) -> bool:
    """Return whether an uncleanly stopped log was damaged."""
    marks = f"{FOLDER}/{CLEAN_SHUTDOWN_FILE}", f"{FOLDER}/{REGISTRY_FILE}"
    is_clean = truth.history.is_clean and all(files.get(path) == truth.history.files[path] for path in marks)
    return not is_clean and is_log_struck(truth, files, key)


def is_log_struck(truth: Truth, files: Files, key: Key) -> bool:
    folder, before = f"{FOLDER}/{key[0]}-{key[1]}/", truth.history.files
    paths = [path for path in {**before, **files} if path.startswith(folder) and path.endswith(".log")]
    return any(files.get(path) != before.get(path) for path in paths)


def check_later(truth: Truth, directory: LogDirectory, fs: SimFs) -> None:
    """Write to the opened partitions, restart after the death of the process, and find everything."""
    before: dict[Key, Content] = {}
    for key in truth.logs:
        if key in directory.damaged:
            continue
        log = directory.log(*key)
        epoch = max([entry.epoch for entry in log.epochs], default=0)
        try:
            log.append_as_leader(encode_batch([Record(b"later")]), epoch + 1)
            log.flush()
            before[key] = read_all(log, is_patient=True)
        except StoreError:
            continue
    directory.checkpoint({})
    fs.process_crash()
    again = LogDirectory.open(fs, FOLDER, truth.history.config)
    for key, content in before.items():
        if key in again.damaged:
            continue  # what was not read at the first start is now
        expect(read_all(again.log(*key), is_patient=True) == content, f"{key} changed at a second start")
    again.abandon()


def check_repair(truth: Truth, files: Files, fs: SimFs, random: Random, kept: dict[bytes, int]) -> None:
    """Repair the folder; then all logs open and can be read, and the dump of a clean stop finds nothing."""
    try:
        for _ in range(2):
            repairer = Repairer(fs, FOLDER)
            plans = [plan for key in repairer.partitions() if (plan := repairer.plan(key)) is not None]
            for plan in plans:
                check_plan(plan, truth, files)
                repairer.apply(plan.key)
            check_bytes(fs, kept, "after a repair")
        expect(not plans, f"a second repair has more to do: {plans}")
        directory = LogDirectory.open(fs, FOLDER, truth.history.config)
    except ForeignVersionError:
        return
    expect(not directory.damaged, f"after a repair: {directory.damaged}")
    for key in truth.logs:
        log = directory.log(*key)
        content = read_all(log, random)
        compare(content, truth, files, key)
        check_epochs(log, content, f"{key} after a repair")
    check_bytes(fs, kept, "after a repair and a start")
    directory.shut_down({})
    shown = list(problems_of(fs))
    expect(not shown, f"after a repair and a clean stop, dump says {shown}")


def check_plan(plan: Plan, truth: Truth, files: Files) -> None:
    """Check that a repair keeps everything before the first damage, if the manifest is intact."""
    folder, before = f"{FOLDER}/{plan.key[0]}-{plan.key[1]}/", truth.history.files
    needed = folder + MANIFEST_FILE, f"{FOLDER}/{REGISTRY_FILE}"
    if plan.key not in truth.logs or any(files.get(path) != before[path] for path in needed):
        return
    marks = parse(before[folder + MANIFEST_FILE]).manifest.marks
    for mark in marks:
        path = f"{folder}{mark.base_offset:020d}.log"
        good, found = before.get(path, b"")[: mark.size], files.get(path, b"")[: mark.size]
        if found != good:
            least = first_struck(good, found, mark.base_offset)
            expect(plan.kept[1] >= least, f"{plan} keeps less than the records before {least}")
            return
        expect(
            plan.kept[1] >= mark.next_offset, f"{plan} keeps less than the records before {mark.next_offset}"
        )


def first_struck(good: bytes, found: bytes, base: int) -> int:
    """Return the offset of the first damaged batch, or the segment's, if headers were damaged too."""
    struck = base
    for position, header in reversed(list(iterate_headers(good))):
        if good[position : position + CRC_START] != found[position : position + CRC_START]:
            return base
        end = position + header.size_bytes
        struck = header.base_offset if good[position:end] != found[position:end] else struck
    return struck if len(found) == len(good) else base


def problems_of(fs: SimFs) -> Iterator[str]:
    """Yield the problems in a dump, except for high watermarks of records that were never synced."""
    lines = Dump(False, False, fs).lines(FOLDER)
    return (line for line in lines if line.startswith("!") and "high watermark" not in line)
