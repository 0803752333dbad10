"""`--watch`: a change of a spec, or of one that it imports, runs the command again; Ctrl-C ends it."""

from __future__ import annotations

import signal
import subprocess

import pytest
from cli_process import process

LIBRARY = "spec library\ndef half(n: int): int = n // 2\n"
SPEC = """\
spec a
import lib.library as l
var x : 0..3 = 3
action down():
    x' = l.half(x)
model m:
    expect holds
"""
MAPPING = """\
from specchk.conform.contract.log_tracing import LogTracing
from specchk.conform.contract.tracing import Call, event


class Log(LogTracing):
    spec, model = "a.spec", "m"

    @event("down")
    def down(self, e):
        return Call("down")
"""


def until(running: subprocess.Popen[bytes], words: str) -> str:
    """The output up to a line with these words."""
    assert running.stdout is not None
    said = ""
    for line in running.stdout:
        said += line.decode()
        if words in said:
            return said
    raise AssertionError(said)


def test_a_change_of_an_imported_file_runs_the_command_again(here):
    """A broken one, too; the exit code at Ctrl-C is that of the last run."""
    (here / "lib").mkdir()
    (here / "lib" / "library.spec").write_text(LIBRARY)
    (here / "a.spec").write_text(SPEC)
    with process("check", "--watch", "a.spec", stderr=subprocess.STDOUT) as running:
        try:
            assert "ok: a.spec" in until(running, "Ctrl-C ends it")
            (here / "lib" / "library.spec").write_text(LIBRARY.replace("half", "third"))
            said = until(running, "Ctrl-C ends it")
            assert "library.spec changed" in said
            assert "no definition `half`" in said, said
            running.send_signal(signal.SIGINT)
            assert running.wait() == 30
            assert running.stdout is not None
            assert running.stdout.read() == b""
        finally:
            running.kill()


def test_what_cannot_change_is_not_watched(specchk):
    """Standard input is read once."""
    said = specchk("run", "--watch", "-")
    assert (said.code, "--watch needs a spec file" in said.err) == (2, True)


def test_a_usage_error_ends_it(specchk):
    """There is nothing to wait for: no change of a file mends a command line."""
    assert specchk("run", "--watch", "shop.spec", "--modle", "good").code == 2


@pytest.mark.slow
def test_another_line_of_a_log_validates_it_again(here):
    """The log, its mapping and the mapping's spec are read; a folder is read again for new files."""
    (here / "a.spec").write_text(SPEC.replace("import lib.library as l\n", "").replace("l.half(x)", "x // 2"))
    (here / "map.py").write_text(MAPPING)
    (here / "logs").mkdir()
    (here / "logs" / "a.ndjson").write_text('{"event": "down"}\n')
    with process("validate", "--watch", "map.py", "logs", "--partial", stderr=subprocess.STDOUT) as running:
        try:
            assert "1 of 1 consumed" in until(running, "Ctrl-C ends it")
            (here / "logs" / "b.ndjson").write_text('{"event": "up"}\n')
            said = until(running, "Ctrl-C ends it")
            assert "b.ndjson changed" in said
            assert "no method reads the lines `up` (1)" in said
            running.send_signal(signal.SIGINT)
            assert running.wait() == 21
        finally:
            running.kill()
