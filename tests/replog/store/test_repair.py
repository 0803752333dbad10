"""Repairs: the part kept, the part cut and copied, and that a start then succeeds."""

from contextlib import suppress
from random import Random

import pytest
from store_support import CONFIG, EPOCHS, FOLDER, KEY, LARGE, contents, flip, names, reopened, stopped

from replog.sim.disks.disk import CrashedError, SimFs
from replog.store.checkpoints.manifest import MANIFEST_FILE
from replog.store.files.errors import DamagedLogError
from replog.store.files.fs import read_file, replace_file
from replog.store.recovery.repair import Plan, Repairer
from replog.store.segments.batch import iterate_headers
from replog.store.segments.records import Record, decode_batch, encode_batch

LOG = f"{FOLDER}/{0:020d}.log"


def repaired(fs: SimFs, adopts: bool = False) -> Plan:
    """Repair the partition, which must be damaged, and return the plan."""
    repairer = Repairer(fs, "data", adopts)
    plan = repairer.plan(KEY)
    assert plan is not None
    repairer.apply(KEY)
    assert Repairer(fs, "data").plan(KEY) is None
    return plan


def values(fs: SimFs) -> list[bytes | None]:
    """Start, and read the first record of every batch."""
    log = reopened(fs, LARGE).logs[KEY]
    found = [decode_batch(log.read(header.base_offset, 1))[0].value for header in log.headers()]
    assert log.epochs == tuple(entry for entry in EPOCHS if entry[1] < log.log_end)
    assert log.append_as_leader(encode_batch([Record(b"after")]), 9).base_offset == log.log_end - 1
    return found


def test_a_flipped_bit_costs_what_is_behind_it() -> None:
    """The intact beginning stays, the rest is beside the log to the last byte."""
    fs = stopped(config=LARGE, synced=True)
    content = read_file(fs, LOG)
    position, header = list(iterate_headers(content))[12]
    flip(fs, LOG, position + 70)
    with pytest.raises(DamagedLogError):
        reopened(fs, LARGE).log(*KEY)
    fs.process_crash()
    plan = repaired(fs)
    assert (plan.kept, plan.promised) == ((0, header.base_offset), 60)
    assert read_file(fs, LOG) == content[:position]
    (copy,) = (c for path, c in contents(fs).items() if "quarantine" in path)
    assert len(copy) == len(content) - position
    assert copy[71:] == content[position + 71 :]
    assert values(fs) == [b"%d" % i for i in range(12)]


def test_a_plan_changes_nothing() -> None:
    """Planning has no effect."""
    fs = stopped(config=LARGE, synced=True)
    flip(fs, LOG, 900)
    before, changes = contents(fs), fs.changes
    assert Repairer(fs, "data").plan(KEY) is not None
    assert (contents(fs), fs.changes) == (before, changes)


def test_damage_to_a_later_segment_keeps_the_earlier_ones_and_puts_the_rest_aside() -> None:
    """A log has no holes: whole segments after the damage are removed from it, as separate files."""
    fs = stopped(clean=True)
    paths = names(fs, ".log")
    last = read_file(fs, paths[2])
    flip(fs, paths[1], 100)
    plan = repaired(fs)
    assert plan.kept[1] == int(paths[1].rpartition("/")[2][:20])
    assert read_file(fs, f"{paths[2]}.quarantine1") == last
    assert values(fs) == [b"%d" % i for i in range(plan.kept[1] // 2)]


def test_a_missing_first_segment_leaves_an_empty_log_and_all_files() -> None:
    """Nothing of a log can be kept without its beginning; the broker fetches all of it again."""
    fs = stopped()
    paths = names(fs, ".log")
    fs.unlink(paths[0])
    left = [read_file(fs, path) for path in paths[1:]]
    assert repaired(fs).kept == (0, 0)
    assert [read_file(fs, f"{path}.quarantine1") for path in paths[1:]] == left
    assert values(fs) == []


def test_changed_epochs_cost_what_is_behind_them_and_no_more() -> None:
    """The chain shows that all other headers are right."""
    fs = stopped(config=LARGE, synced=True)
    position, header = list(iterate_headers(read_file(fs, LOG)))[20]
    flip(fs, LOG, position + 14, 3)
    assert repaired(fs).kept == (0, header.base_offset)
    assert values(fs) == [b"%d" % i for i in range(20)]


def test_records_that_only_their_crcs_vouch_for_are_kept_on_request() -> None:
    """A changed header breaks the chain of its segment: the part before it may be another log's."""
    for adopts, kept in ((False, 0), (True, 24)):
        fs = stopped(config=LARGE, synced=True)
        position, _ = list(iterate_headers(read_file(fs, LOG)))[12]
        flip(fs, LOG, position + 7)
        plan = repaired(fs, adopts)
        assert (plan.kept, plan.adoptable) == ((0, kept), (0, 24))
        assert values(fs) == [b"%d" % i for i in range(kept // 2)]


@pytest.mark.parametrize("damage", ["lost", "struck", "another's"])
def test_without_a_manifest_records_are_kept_on_request_only(damage: str) -> None:
    """CRCs do not identify the log of a batch."""
    for adopts in (False, True):
        fs = stopped(synced=True)
        path = f"{FOLDER}/{MANIFEST_FILE}"
        if damage == "lost":
            fs.unlink(path)
        elif damage == "struck":
            flip(fs, path, 20)
        else:
            directory = reopened(fs)
            directory.log("other", 0)
            fs.process_crash()
            replace_file(fs, FOLDER, MANIFEST_FILE, read_file(fs, f"data/other-0/{MANIFEST_FILE}"))
        logs = [read_file(fs, log) for log in names(fs, ".log")]
        plan = repaired(fs, adopts)
        assert (plan.kept[1], plan.adoptable) == (60 * adopts, (0, 60))
        assert [read_file(fs, log) for log in names(fs, ".log" if adopts else ".log.quarantine1")] == logs
        assert values(fs) == [b"%d" % i for i in range(30 * adopts)]


def test_a_missing_folder_becomes_an_empty_log() -> None:
    """The directory records that there was one."""
    fs = stopped(synced=True)
    for path in names(fs, ""):
        fs.unlink(path)
    fs.rmdir(FOLDER)
    plan = repaired(fs)
    assert (plan.kept, plan.promised) == ((0, 0), 60)
    assert values(fs) == []


def test_a_repair_lowers_what_the_directory_says_of_the_log() -> None:
    """Recovery point and high watermark: no later start misses the cut records."""
    fs = stopped(config=LARGE, synced=True)
    flip(fs, LOG, 400)
    end = repaired(fs).kept[1]
    directory = reopened(fs, LARGE)
    assert directory.high_watermarks[KEY] == end < 50
    assert not directory.notes
    assert read_file(fs, "data/recovery-point-offset-checkpoint") == b"0\n1\nt 0 %d\n" % end


@pytest.mark.parametrize("moment", range(0, 40, 2))
def test_a_repair_that_dies_can_be_done_again(moment: int) -> None:
    """At whatever change of the disk: the next one ends with the same log, and no byte is lost."""
    fs = stopped(synced=True)
    paths = names(fs, ".log")
    flip(fs, paths[1], 150)
    logs = b"".join(read_file(fs, path) for path in paths[1:])
    repairer = Repairer(fs, "data")
    fs.faults.crash_in = moment
    with suppress(CrashedError):
        repairer.apply(KEY)
    fs.power_loss(Random(moment).randrange)
    again = Repairer(fs, "data")
    if again.plan(KEY) is not None:
        again.apply(KEY)
    end = int(paths[1].rpartition("/")[2][:20])
    assert values(fs)[: end // 2] == [b"%d" % i for i in range(end // 2)]
    everything = b"".join(contents(fs).values())
    assert all(batch in everything for batch in batches_of(logs))


def batches_of(content: bytes) -> list[bytes]:
    return [content[p : p + header.size_bytes] for p, header in iterate_headers(content)]


def test_a_whole_partition_needs_no_repair() -> None:
    """Nor does one that a start repairs: a torn tail, an index, the epoch checkpoint."""
    fs = stopped(config=CONFIG)
    flip(fs, names(fs, ".index")[0], 3)
    flip(fs, f"{FOLDER}/leader-epoch-checkpoint", 4)
    assert Repairer(fs, "data").plan(KEY) is None
