"""The entry point of `specchk` and `python -m specchk`: the rest is imported where Ctrl-C has an answer.

Not here: the end of a command that is interrupted later (`cli.ends`).
"""

from __future__ import annotations

import sys
import time


def main() -> None:
    """Run the program; interrupted at any point of its start, it ends as it does later: 21, one line."""
    began = time.monotonic()  # limits of time are for all of the command
    # Importing click takes a tenth of a second, in which Python would answer Ctrl-C with a traceback.
    try:
        from specchk.cli import starting

        starting.begin()
        from specchk.cli.main import main as program

        try:
            program(began)
        finally:
            starting.leave()
    except KeyboardInterrupt:  # between two of these lines, or while the last lines of a command are written
        sys.stderr.write("interrupted\n")
        sys.exit(21)


if __name__ == "__main__":
    main()
