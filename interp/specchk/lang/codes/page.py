"""The page of one diagnostic code."""

from __future__ import annotations

from textwrap import dedent, fill, indent

from msgspec import Struct

WIDTH = 80


class Page(Struct, frozen=True):
    """The page of one code: the error, the reason for the rule, the remedy, and an example.

    `example` is a spec file (bytes that are not UTF-8 are represented by surrogates) that yields this code
    and no other: when it is checked, or, with `needs_model`, when a model's constants are applied,
    or, with `needs_engine`, when the symbolic engine runs it.  It is None for the one code that
    needs no file.  `others` are the files beside it.  `shown` replaces an example that cannot be
    printed.
    """

    code: str
    title: str
    meaning: str
    remedy: str
    example: str | None
    others: tuple[tuple[str, str], ...] = ()
    shown: str = ""
    needs_model: bool = False
    needs_engine: bool = False

    def render(self) -> str:
        """The page as text for a terminal, 80 columns wide."""
        listing = self.listing()
        example = f"For example:\n\n{indent(listing, '    ')}" if listing else ""
        return "\n".join([self.heading, "", *_prose(self.meaning), "", *_prose(self.remedy), "", example])

    @property
    def heading(self) -> str:
        """The heading, such as `S201: an unknown name`."""
        return f"{self.code}: {self.title}"

    def listing(self) -> str:
        """The example as shown, followed by the files that it needs; empty if there is none."""
        parts = [self.shown or self.example or ""]
        parts += [f"# file {name}\n{text}" for name, text in self.others]
        return "\n\n".join(part.strip("\n") for part in parts if part)


def _prose(text: str) -> list[str]:
    paragraphs = dedent(text).strip().split("\n\n")
    lines = []
    for paragraph in paragraphs:
        lines += [
            "",
            fill(" ".join(paragraph.split()), WIDTH, break_long_words=False, break_on_hyphens=False),
        ]
    return lines[1:]
