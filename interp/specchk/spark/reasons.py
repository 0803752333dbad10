"""Why a search on Spark ended without an answer of its own, in words.

A task's exception reaches the driver as text only: the traces of Java and Python, with the cause last.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace

from specchk.search.verdict import Inconclusive, Outcome
from specchk.spark.slices import SpoiledSlice
from specchk.spark.stages import SPARK_FAILED
from specchk.spark.storage import Unwritable

_OF_THE_LEDGER = tuple(f"{kind.__module__}.{kind.__qualname__}: " for kind in (SpoiledSlice, Unwritable))


def given_up(error: Exception, level: int) -> Inconclusive:
    """Why Spark made no more levels: `level` is the one that it did not make."""
    cause = _cause(error)
    if cause.startswith(_OF_THE_LEDGER):
        kind, _, told = cause.partition(": ")
        return not_written(told) if kind.endswith(Unwritable.__qualname__) else unread(told)
    return Inconclusive(f"Spark failed at level {level} ({cause})", budget=False)


def _cause(error: Exception) -> str:
    with suppress(*SPARK_FAILED):  # the text of an error of Java's comes from Java, which may be gone
        if not isinstance(error, ConnectionError):
            return root_cause(str(error))
    return "its process ended"


def not_written(told: str) -> Inconclusive:
    """The end of a search whose ledger has no room."""
    return Inconclusive(f"the ledger cannot be written ({told})", budget=True)


def unread(told: str) -> Inconclusive:
    """The end of a search whose ledger is damaged."""
    return Inconclusive(f"the ledger is damaged: {told}", budget=False)


def root_cause(text: str) -> str:
    """The line of an error with its traces, Java's and Python's, that has the cause: the last one.

    What the ledger's own files are blamed for goes first: tasks that wait for others fail after that.
    """
    lines = [line.strip() for line in text.splitlines()]
    ledger = [line for line in lines if line.startswith(_OF_THE_LEDGER)]
    told = [line for line in lines if re.search("Error|Exception", line) and not line.startswith("at ")]
    # The innermost cause of a program that does not start is a number of the system's, without its name.
    program = [line for line in told if "Cannot run program" in line]
    # The last line of a trace is the innermost cause, in Python as in Java's "Caused by".
    return (ledger or program or told or [text])[-1]


def native_alone(outcome: Outcome, handover: int) -> Outcome:
    """The native engine's answer to a search that never was large."""
    note = f"the native engine did the whole search: it expanded no level of {handover} states (--handover)"
    return replace(outcome, warnings=(note, *outcome.warnings))
