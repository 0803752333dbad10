"""Progress of long operations: one line on a terminal, rewritten in place; nothing in a pipe."""

from __future__ import annotations

from typing import TextIO

from specchk.search.budget import Progress


def line(progress: Progress) -> str:
    """The line: states, rate, depth, frontier, memory, time, and the engine's note."""
    rate = progress.states / progress.seconds if progress.seconds > 0 else 0
    more = f"; {progress.note}" if progress.note else ""
    return (
        f"{progress.states} states ({rate:.0f}/s), depth {progress.depth}, frontier {progress.frontier}, "
        f"{progress.memory_bytes / (1 << 20):.0f} MB, {progress.seconds:.0f} s{more}"
    )


class TerminalProgress:
    """Shows progress if a stream is a terminal, and removes it afterwards."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.width = 0

    def __call__(self, progress: Progress) -> None:
        """Show the progress of the search."""
        text = line(progress)
        # Padded to the last line's width, or its end would stay visible.
        self.stream.write("\r" + text.ljust(self.width))
        self.stream.flush()
        self.width = len(text)

    def clear(self) -> None:
        """Remove the line."""
        if self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()
            self.width = 0
