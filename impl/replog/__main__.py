"""The entry point of `replog` and `python -m replog`: the rest is imported where Ctrl-C has an answer."""

import sys


def main() -> None:
    """Run the program; interrupted at any point of its start, it ends as it does later: 130, one line."""
    # Importing click takes a tenth of a second, in which Python would answer Ctrl-C with a traceback.
    try:
        from replog import starting

        starting.begin()
        from replog.cli import main as program

        try:
            program()
        finally:
            starting.leave()
    except KeyboardInterrupt:  # between two of these lines, or while the last lines of a command are written
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
