"""S0xx: files that cannot be read, and files that need each other."""

from __future__ import annotations

from specchk.lang.codes.page import Page
from specchk.lang.text.source import MAX_BYTES, MAX_LINE

PAGES = (
    Page(
        "S001", "a file that cannot be read",
        """The named file does not exist, is a directory, or cannot be opened; the message
        gives the reason.""",
        """Check the path; it is relative to the directory where the command runs.  If that
        directory has a file of a similar name, the hint names it.""",
        None,
    ),
    Page(
        "S002", "a file that is not text",
        """Specs are UTF-8 text.  The message gives the position of the first invalid byte,
        counted from 0, and its line.""",
        """Usually the wrong file was named.  Convert a spec in another encoding with
        `iconv -f LATIN1 -t UTF-8`.""",
        "spec latin1\n# na\udcefve\n",
        shown="spec latin1\n# na\N{REPLACEMENT CHARACTER}ve        <- one byte, 0xEF",
    ),
    Page(
        "S003", "a file that is too large",
        f"""A spec is a text for people to read, so a file of more than {MAX_BYTES} bytes is
        treated as a mistake and not read to the end.""",
        """Name the right file, or split the spec with `extends` and `import`.""",
        "spec large\n" + "# 60 characters a line, and too many lines of this .........\n" * 20_000,
        shown="spec large\n# ... and 20 000 lines more",
    ),
    Page(
        "S004", "a line that is too long",
        f"""A line may have at most {MAX_LINE} characters: a message could not show a longer
        one.""",
        """Break the line; it continues inside brackets, and after or before a binary operator.""",
        "spec long\n# " + "x" * (MAX_LINE + 1) + "\n",
        shown=f"spec long\n# xxxxxxxxxxxxxxxxxxxxxxxxxxxx ... {MAX_LINE + 1} of them",
    ),
    Page(
        "S005", "files that need each other",
        """Following `extends` and `import` from file to file leads back to a file that is still
        being read.  The meaning of such files would depend on where the reading starts.""",
        """Move the common part into a third file that both files extend or import.""",
        "spec chicken\nextends egg\nvar x : bool = false\n",
        (("egg.spec", "spec egg\nextends chicken\n"),),
    ),
    Page(
        "S006", "a missing file in extends, import or refines",
        """`extends base` reads `base.spec` in the directory of the extending file, and
        `extends kafka.base` reads `kafka/base.spec` below it.  There is no such file.""",
        """Correct the name, or put the file into the expected place.  Nothing else is checked
        until then, since all names of the file would be missing.""",
        "spec lonely\nextends bass\nvar x : bool = false\n",
        (("base.spec", "spec base\n"),),
    ),
    Page(
        "S007", "an import of a file that imports",
        """Imported names stay one level deep: `log.truncate` is a name, `a.b.truncate` is not.
        Therefore an imported file may extend other files, but not import any.""",
        """Import both files in this one, or let the imported file extend the other.""",
        "spec top\nimport middle\nvar x : bool = false\n",
        (
            ("middle.spec", "spec middle\nimport bottom\ndef two(): int = 1 + bottom.one()\n"),
            ("bottom.spec", "spec bottom\ndef one(): int = 1\n"),
        ),
    ),
)  # fmt: skip
