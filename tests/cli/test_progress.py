"""Progress on a terminal: one line that is replaced, and removed at the end."""

from __future__ import annotations

from contextlib import redirect_stderr
from io import StringIO

from specchk.cli.engines import shown_progress
from specchk.cli.output import survived
from specchk.search.budget import Progress


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_replaces_the_one_before_and_is_removed():
    """As `main` sets the streams up: they write control characters of other people's texts as escapes."""
    with redirect_stderr(Terminal()) as screen, survived(), shown_progress() as show:
        assert show is not None
        show(Progress(12, 30, 2, 3, 0.0, 1 << 20))
        show(Progress(120, 300, 4, 5, 1.0, 1 << 20))
    begun, first, second, removed, left = screen.getvalue().split("\r")
    assert (begun, first[:10], second[:10]) == ("", "12 states ", "120 states")
    assert (removed.strip(), left) == ("", "")
    assert len(removed) >= len(second.rstrip())


def test_other_streams_have_no_progress():
    with redirect_stderr(StringIO()), survived(), shown_progress() as show:
        assert show is None
