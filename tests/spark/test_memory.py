"""What a worker needs of memory: one partition's table, whatever all of them have together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from spark.small import SPEC

HEADROOM_MB, EACH = 16, 240_000

# A worker with a limit on its address space, in which files that are mapped count, too.
WORKER = f"""\
import re, resource, sys
from pathlib import Path
from specchk.core.instantiate import instantiate
from specchk.lang.frontend import check
from specchk.native.compiler import exchange_code, load_exchange
from specchk.native.exchange import address_of, exchange_worker
from specchk.native.layout import layout_of
from specchk.native.visited import Visited

partitions, states, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
program = instantiate(check({str(SPEC / "kafka" / "kip320.spec")!r}), "small", {{}}).program
layout = layout_of(program)
size = 8 * layout.words
kernel = load_exchange(program, layout, [], exchange_code(program, layout, []))
at_once = 12_000
taken = int(re.search(r"VmSize:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
limit = taken + ({HEADROOM_MB} << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
found = 0
try:
    for level in range(2):
        for partition in range(partitions):
            visited = Visited(folder / str(partition), layout.words, kernel)
            worker = exchange_worker(program, layout)
            visited.begin()
            for first in range(level * states // 2, (level + 1) * states // 2, at_once):
                numbers = range(first, first + at_once)
                own = (n * partitions + partition for n in numbers)
                block = bytearray(b"".join(n.to_bytes(size, "little") for n in own))
                visited.absorb(worker, address_of(block), at_once)
                worker.end_run()
                del block
            visited.commit()
            found += visited.used - level * states // 2
            visited.close()
            worker.release()
except (MemoryError, OSError) as error:
    sys.exit(f"out of memory: {{error}}")
print(found, sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) >> 20)
"""


def limited(partitions: int, states: int, folder: Path) -> subprocess.CompletedProcess[str]:
    """A worker that keeps so many states in each of its partitions, in turn."""
    line = [sys.executable, "-c", WORKER, str(partitions), str(states), str(folder)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_a_visited_set_larger_than_a_worker_s_memory_is_kept_by_partitions(tmp_path: Path) -> None:
    """Ten partitions of three times the limit together fit; the same states as one partition do not."""
    told = limited(10, EACH, tmp_path / "ten")
    assert told.returncode == 0, told.stderr
    states, megabytes = map(int, told.stdout.split())
    assert states == 10 * EACH
    assert megabytes > 3 * HEADROOM_MB
    alone = limited(1, 10 * EACH, tmp_path / "one")
    assert alone.returncode != 0
    assert "out of memory" in alone.stderr
