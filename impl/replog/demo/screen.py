"""The demo's output: lines that scroll by as things happen, above one table that is kept up to date.

    on a terminal   the table is redrawn in place, paced against the real clock
    in a pipe       plain lines; the table appears at the end of each chapter

Every line fits 80 columns. Not here: what happens (`story.py`).
"""

import time
from collections.abc import Sequence
from typing import TextIO

WIDTH = 79
FRAME_MS = 100


class Screen:
    """Writes lines to a stream; on a terminal, `speed` simulated seconds pass in a real one."""

    def __init__(self, stream: TextIO, speed: float, is_live: bool, width: int = WIDTH) -> None:
        self._stream = stream
        self._speed = speed
        self._is_live = is_live
        self._width = width
        self._drawn = 0
        self._next_frame_ms = 0
        self._table: Sequence[str] = ()

    def say(self, line: str = "") -> None:
        """Print a line above the table."""
        self._erase()
        self._stream.write(line[: self._width] + "\n")
        self._draw()

    def frame(self, now_ms: int, table: Sequence[str]) -> None:
        """Redraw the table, if the stream is a terminal and a frame is due, and let real time pass."""
        self._table = table
        if not self._is_live or now_ms < self._next_frame_ms:
            return
        self._next_frame_ms = now_ms + FRAME_MS
        self._erase()
        self._draw()
        if self._speed > 0:
            time.sleep(FRAME_MS / 1000 / self._speed)

    def keep(self, table: Sequence[str]) -> None:
        """Print the table permanently, at the end of a chapter."""
        self._erase()
        self._table = ()
        for line in (*table, ""):
            self._stream.write(line[: self._width].rstrip() + "\n")
        self._stream.flush()

    def _erase(self) -> None:
        if self._drawn:
            self._stream.write(f"\033[{self._drawn}F\033[J")
            self._drawn = 0

    def _draw(self) -> None:
        if self._is_live:
            for line in self._table:
                self._stream.write(line[: self._width] + "\n")
            self._drawn = len(self._table)
        self._stream.flush()
