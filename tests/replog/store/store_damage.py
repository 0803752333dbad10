"""Random damage to the files of a folder for `bench/replog/fuzz.py`: by disks, file systems and people.

Each blow changes the dictionary of files and returns what it did in a few words.
"""

from collections.abc import Callable
from random import Random

from store_history import FOLDER, KEYS, Files, History

from replog.store.files.errors import CorruptBatchError
from replog.store.segments.batch import HEADER_BYTES, iterate_headers

Blow = Callable[[Random, Files, History], str]

FIELDS = {"base offset": (0, 8), "length": (8, 4), "epoch": (12, 4), "magic": (16, 1), "CRC": (17, 4),
          "attributes": (21, 2), "last offset delta": (23, 4), "record count": (57, 4)}  # fmt: skip


def strike(random: Random, files: Files, history: History) -> list[str]:
    """Apply one to five kinds of damage."""
    blows = random.choice([1, 1, 1, 1, 2, 2, 3, 5])
    return [random.choice(BLOWS)(random, files, history) for _ in range(blows)]


def pick(random: Random, files: Files, ends: tuple[str, ...] = ("",)) -> str:
    """Choose a file: a log more often than others."""
    paths = sorted(path for path in files if path.endswith(ends)) or sorted(files) or [f"{FOLDER}/none"]
    logs = [path for path in paths if path.endswith(".log")]
    path = random.choice(logs if logs and random.random() < 0.4 else paths)
    files.setdefault(path, b"")
    return path


def flip_bit(random: Random, files: Files, _history: History) -> str:
    path = pick(random, files)
    content = bytearray(files[path])
    if content:
        at, bit = random.randrange(len(content)), random.randrange(8)
        content[at] ^= 1 << bit
        files[path] = bytes(content)
        return f"flip bit {bit} of byte {at} of {path}"
    return f"nothing to flip in {path}"


def set_bytes(random: Random, files: Files, _history: History) -> str:
    path = pick(random, files)
    at = random.randint(0, len(files[path]))
    size = random.choice([1, 4, 16, 64])
    files[path] = files[path][:at] + random.randbytes(size) + files[path][at + size :]
    return f"{size} random bytes at {at} of {path}"


def zero_block(random: Random, files: Files, _history: History) -> str:
    path = pick(random, files)
    size = random.choice([8, 61, 128, 512])
    at = random.randint(0, len(files[path])) // size * size
    end = min(at + size, len(files[path]))
    files[path] = files[path][:at] + bytes(end - at) + files[path][end:]
    return f"bytes {at}..{end} of {path} are zero"


def double_block(random: Random, files: Files, _history: History) -> str:
    path = pick(random, files)
    size = random.choice([16, 100, 512])
    source, at = (random.randint(0, len(files[path])) for _ in range(2))
    block = files[path][source : source + size]
    rest = at if random.random() < 0.5 else at + size
    files[path] = files[path][:at] + block + files[path][rest:]
    return f"block {source}+{size} again at {at} of {path}"


def drop_block(random: Random, files: Files, _history: History) -> str:
    path = pick(random, files)
    at, size = random.randint(0, len(files[path])), random.choice([1, 16, 200])
    files[path] = files[path][:at] + files[path][at + size :]
    return f"{size} bytes gone at {at} of {path}"


def truncate(random: Random, files: Files, _history: History) -> str:
    path = pick(random, files)
    size = random.choice([0, random.randint(0, len(files[path]))])
    files[path] = files[path][:size]
    return f"{path} cut to {size} bytes"


def truncate_between(random: Random, files: Files, _history: History) -> str:
    """Truncate without a visible trace in the file itself: between batches, or between lines."""
    path = pick(random, files)
    ends = [n + 1 for n, byte in enumerate(files[path]) if byte == 10]
    if path.endswith(".log"):
        ends = [at for at, _ in batches(files[path])]
    size = random.choice(ends or [0])
    files[path] = files[path][:size]
    return f"{path} cut to {size} bytes, between its parts"


def extend(random: Random, files: Files, _history: History) -> str:
    path = pick(random, files)
    size = random.choice([1, 30, 600])
    more = random.choice([bytes(size), random.randbytes(size), files[path][-size:], files[path][:size]])
    files[path] += more
    return f"{len(more)} bytes more in {path}"


def delete(random: Random, files: Files, _history: History) -> str:
    path = pick(random, files)
    del files[path]
    return f"{path} deleted"


def other_name(random: Random, files: Files) -> str:
    """Choose a name in some partition: of a segment, an index, or none at all."""
    folder = pick(random, files).rpartition("/")[0]
    offset = random.choice([0, random.randint(0, 40), random.randint(0, 10**6)])
    names = [f"{offset:020d}{suffix}" for suffix in (".log", ".index", ".timeindex")]
    return (
        f"{folder}/{random.choice([*names, names[0], 'backup.log', 'x.tmp', f'{offset:020d}.log.deleted'])}"
    )


def rename(random: Random, files: Files, _history: History) -> str:
    path = pick(random, files)
    target = random.choice([other_name(random, files), pick(random, files)])
    files[target] = files.pop(path)
    return f"{path} renamed to {target}"


def copy(random: Random, files: Files, _history: History) -> str:
    path = pick(random, files)
    target = random.choice([other_name(random, files), pick(random, files)])
    files[target] = files[path]
    return f"{path} copied to {target}"


def swap(random: Random, files: Files, _history: History) -> str:
    one, other = pick(random, files), pick(random, files)
    files[one], files[other] = files[other], files[one]
    return f"{one} and {other} swapped"


def of_another_partition(random: Random, files: Files, _history: History) -> str:
    """Replace a file by another partition's of the same name, or all its files."""
    one, other = (f"{FOLDER}/{topic}-{number}/" for topic, number in random.sample(KEYS, 2))
    names = sorted(path.removeprefix(one) for path in files if path.startswith(one))
    if random.random() < 0.8:
        names = [random.choice(names)] if names else []
    for name in names:
        files[other + name] = files[one + name]
    return f"{' '.join(names)} of {one} in {other}"


def exchange_partitions(random: Random, files: Files, _history: History) -> str:
    one, other = (f"{FOLDER}/{topic}-{number}/" for topic, number in random.sample(KEYS, 2))
    moved = {path: content for path, content in files.items() if path.startswith((one, other))}
    for path in moved:
        del files[path]
    for path, content in moved.items():
        here, there = (one, other) if path.startswith(one) else (other, one)
        files[there + path.removeprefix(here)] = content
    return f"{one} and {other} exchanged"


def delete_partition(random: Random, files: Files, _history: History) -> str:
    topic, number = random.choice(KEYS)
    folder = f"{FOLDER}/{topic}-{number}/"
    for path in [path for path in files if path.startswith(folder)]:
        del files[path]
    return f"{folder} deleted"


def old_copy(random: Random, files: Files, history: History) -> str:
    """Replace a file by an older copy, also if it was removed."""
    if not history.copies:
        return "no older copy"
    older = random.choice(history.copies)
    path = pick(random, dict(older)) if random.random() < 0.3 else pick(random, files)
    if path not in older:
        return f"no older copy of {path}"
    files[path] = older[path]
    return f"older copy of {path}"


def change_digit(random: Random, files: Files, _history: History) -> str:
    path = pick(random, files, ("checkpoint", "manifest", "cleanshutdown"))
    digits = [n for n, byte in enumerate(files[path]) if 48 <= byte < 58]
    if not digits:
        return f"no digit in {path}"
    at, digit = random.choice(digits), random.randrange(10)
    files[path] = files[path][:at] + b"%d" % digit + files[path][at + 1 :]
    return f"digit {digit} at {at} of {path}"


def change_header(random: Random, files: Files, _history: History) -> str:
    """Change a field of a batch, by a bit or completely."""
    path = pick(random, files, (".log",))
    found = batches(files[path])
    if not found:
        return f"no batch in {path}"
    at, _ = random.choice([*found, found[-1]])
    name, (start, size) = random.choice(list(FIELDS.items()))
    content = bytearray(files[path])
    if random.random() < 0.7:
        content[at + start + random.randrange(size)] ^= 1 << random.randrange(8)
    else:
        content[at + start : at + start + size] = random.choice([bytes(size), random.randbytes(size)])
    files[path] = bytes(content)
    return f"{name} of the batch at {at} of {path}"


def change_batch(random: Random, files: Files, _history: History) -> str:
    """Replace a batch by another whole one, with a right CRC."""
    path, source = pick(random, files, (".log",)), pick(random, files, (".log",))
    found, others = batches(files[path]), batches(files[source])
    if not found or not others:
        return f"no batch in {path} or {source}"
    number = random.randrange(len(found))
    (at, size), (start, length) = found[number], others[min(number, len(others) - 1)]
    files[path] = files[path][:at] + files[source][start : start + length] + files[path][at + size :]
    return f"batch at {start} of {source} in place of the one at {at} of {path}"


def batches(content: bytes) -> list[tuple[int, int]]:
    """Return (position, bytes) of the batches at the beginning of a log."""
    found = []
    try:
        for position, header in iterate_headers(content):
            found.append((position, header.size_bytes))
    except CorruptBatchError:
        pass
    return [entry for entry in found if entry[1] >= HEADER_BYTES]


BLOWS: tuple[Blow, ...] = (
    flip_bit, flip_bit, flip_bit, set_bytes, zero_block, double_block, drop_block, truncate, truncate_between,
    extend, delete, rename, copy, swap, of_another_partition, of_another_partition, exchange_partitions,
    delete_partition, old_copy, old_copy, change_digit, change_header, change_header, change_batch,
)  # fmt: skip
