"""The step graph of a search that lost a state, and the cost of reading a large component."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specchk.native import engine as native
from specchk.native.engine import NativeOptions
from specchk.native.kernel import table_kernel
from specchk.native.kernel.fair_components import AGAIN
from specchk.native.lanes import Lanes
from specchk.native.machine.asm import Asm
from specchk.native.machine.frames import Lane, Owing, SharedWord
from specchk.native.regions import RegionOfStates, StepsOfSearch
from specchk.native.store import Store
from specchk.search.liveness import lassos
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Inconclusive, Outcome
from temporal.checked import program_of, verdict

ROUND, STOPS = "always eventually at == 0", "eventually always at == 0"
RING = f"""
spec ring
const Size : int
var at : 0..Size = 0
var on : bool = false
action turn():
    at' = (at + 1) % (Size + 1)
action blink():
    on' = not on
fair turn
liveness l: {ROUND}
model m:
    Size = 40
    expect holds
"""


def searched(folder: Path, liveness: str = ROUND, size: int = 40, **options: object) -> Outcome:
    program = program_of(RING.replace("Size = 40", f"Size = {size}").replace(ROUND, liveness), folder)
    return native.search(program, NativeOptions(workers=2, **options))  # type: ignore[arg-type]


def test_a_collision_of_hashes_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `--compact`, if the steps of a known state lead to an unknown one: it was not searched."""
    whole = table_kernel.hash_words

    def weak(asm: Asm, words: list[Any]) -> Any:
        return asm.band(whole(asm, words), 31)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert verdict(searched(tmp_path, compact=True)) == "holds"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "weak"))
    monkeypatch.setattr(table_kernel, "hash_words", weak)
    assert verdict(searched(tmp_path)) == "holds"  # whole states are compared
    found = searched(tmp_path, compact=True).verdict
    assert isinstance(found, Inconclusive)
    assert "share a hash" in found.reason
    assert "--compact" in found.reason


def test_a_state_that_an_exact_search_lost_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no such state; if there were, no verdict would be right."""
    begun = StepsOfSearch.__init__

    def emptied(steps: StepsOfSearch, fair: Any, roomy: Any, store: Store, *more: Any, **rest: Any) -> None:
        begun(steps, fair, roomy, store, *more, **rest)
        store._new_table(store.slots)

    monkeypatch.setattr(StepsOfSearch, "__init__", emptied)
    with pytest.raises(ReplayFailed, match="did not keep"):
        searched(tmp_path)


class _Seen(Exception):
    """The attributes that a test needs."""


def test_one_large_component_is_left_when_the_budget_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All states are in one: workers on it are watched, and visit no other member once they are to stop."""
    watched: list[str] = []
    each, run_all = Lanes._each, Store.run_all

    def noted(lanes: Lanes, name: str, *more: Any, **rest: Any) -> None:
        watched.append(name)
        each(lanes, name, *more, **rest)

    def waited(store: Store, *rest: Any) -> None:
        watched[-1] += ", watched"
        run_all(store, *rest)

    def stopped(region: RegionOfStates, _: set[int]) -> bool:
        lanes, block = region.source.lanes, region.source.lanes.blocks[0]
        assert lanes.region[Owing.COMPONENTS] == 1
        for name in ("judge", "survive"):
            region._arrays[Owing.JUDGEMENTS].view(0, 1)[0] = AGAIN
            for stop in (1, 0):
                block[Lane.COUNT], lanes.store.control[SharedWord.STOP] = 1 << 40, stop
                lanes.kernel.call[name](block.address, 0, 1)
                assert (block[Lane.COUNT] == 1 << 40) == bool(stop)
        raise _Seen(*watched)

    monkeypatch.setattr(Lanes, "_each", noted)
    monkeypatch.setattr(Store, "run_all", waited)
    monkeypatch.setattr(RegionOfStates, "_add_fair", stopped)
    with pytest.raises(_Seen) as seen:
        searched(tmp_path, STOPS, size=3000)
    assert seen.value.args[-1] == "judge, watched"


def test_the_memory_of_a_region_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of its arrays is never more than reported."""
    found: list[tuple[int, int]] = []
    fair = RegionOfStates._fair

    def counted(region: RegionOfStates, **rest: bool) -> set[int]:
        components = fair(region, **rest)
        held = 4 * region.source.lanes.region[Owing.NEXT_EDGE]
        for word, array in region._arrays.items():
            held += len(bytes(array.view(0, array.size)).rstrip(b"\0")) if word != Owing.EDGES else 0
        found.append((held, region.source.memory_bytes))
        return components

    monkeypatch.setattr(RegionOfStates, "_fair", counted)
    monkeypatch.setattr(lassos, "MAX_PAIRS", 1 << 10)  # the loop that is shown is another test's
    assert verdict(searched(tmp_path, STOPS, size=3000)) == "violated"
    assert found
    assert all(held <= said for held, said in found)
