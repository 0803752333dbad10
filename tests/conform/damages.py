"""Damage by disks, merges and manual edits: a file's content becomes another one."""

from __future__ import annotations

from random import Random


def damaged(random: Random, data: bytes, other: bytes) -> bytes:
    """Content that differs from before: in a bit, a block, an end, or all of it from the `other` file."""
    ways = (_flipped, _zeroed, _cut, _longer, _doubled, _swapped, _edited)
    while True:
        found = random.choice(ways)(random, data) if random.random() < 0.95 else random.choice((other, b""))
        if found != data:
            return found


def _flipped(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def _zeroed(random: Random, data: bytes) -> bytes:
    at, size = random.randrange(len(data)), random.choice((1, 16, 512, 4096))
    return data[:at] + bytes(len(data[at : at + size])) + data[at + size :]


def _cut(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data))]


def _longer(random: Random, data: bytes) -> bytes:
    return data + random.randbytes(random.randint(1, 9))


def _doubled(random: Random, data: bytes) -> bytes:
    at, to = sorted(random.randrange(len(data) + 1) for _ in range(2))
    return data[:to] + data[at:]


def _swapped(random: Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _edited(random: Random, data: bytes) -> bytes:
    """Change a digit, like an editor who wants a green gate."""
    digits = [at for at, byte in enumerate(data) if chr(byte).isdigit()]
    if not digits:
        return data
    at = random.choice(digits)
    return data[:at] + str(random.randrange(10)).encode() + data[at + 1 :]
