"""Messages for syntax errors: the habit behind the error if it is recognized, else the possible tokens.

Most syntax errors in specs are good TLA+ or good Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lark import Token

from specchk.lang.syntax.habits import declaration_hint
from specchk.lang.text.diagnostics import nearest

DECLARATIONS = (
    "spec", "import", "extends", "sort", "const", "assume", "type", "var", "init", "def", "action", "helper",
    "invariant", "step", "reachable", "liveness", "constraint", "deadlock", "fair", "strong",
    "refines", "model", "scenario", "view",
)  # fmt: skip
MAX_EXPECTED = 12

# text that no token of the language starts with -> what to write, longest first
_INSTEAD = MappingProxyType(
    {
        "/\\": "conjunction is `and`",
        "\\/": "disjunction is `or`",
        "\\*": "a comment starts with `#`",
        "\\X": "pairs are two names, `forall a in A, b in B`; their set is `{ (a, b) for a in A, b in B }`",
        "\\A": "write `forall x in S: ...`",
        "\\E": "write `exists x in S: ...`",
        "\\in": "membership is `in`",
        "\\union": "write `union`",
        "\\cup": "write `union`",
        "\\cap": "write `intersect`",
        "\\subseteq": "write `subset`",
        "\\": "operators are words: `and`, `or`, `in`, `union`; set difference is `-`",
        "/*": "a comment starts with `#`",
        "/": "integer division is `//`, inequality is `!=`",
        "&": "conjunction is `and`, the intersection of sets `intersect`",
        "!": "negation is `not`, inequality is `!=`",
        "~>": "write `P leadsto Q`, in `liveness`",
        "~": "negation is `not`",
        "^": "there are no powers: multiply",
        "@": "a new value is written out: `x' = x + 1`",
        "$": "names have letters, digits and `_`",
        '"': "there are no strings: declare `type Name = enum {a, b}`",
        "\N{NOT SIGN}": "negation is `not`",
        "\N{LOGICAL AND}": "conjunction is `and`",
        "\N{LOGICAL OR}": "disjunction is `or`",
        "\N{ELEMENT OF}": "membership is `in`",
        "\N{LESS-THAN OR EQUAL TO}": "write `<=`",
        "\N{GREATER-THAN OR EQUAL TO}": "write `>=`",
        "\N{NOT EQUAL TO}": "write `!=`",
        "\N{RIGHTWARDS ARROW}": "write `->`",
        "\N{FOR ALL}": "write `forall x in S: ...`",
        "\N{THERE EXISTS}": "write `exists x in S: ...`",
        "\N{NO-BREAK SPACE}": "write a plain space",
    }
)


def strange_text(text: str, at: int) -> tuple[str, str | None]:
    """The characters at an offset that are not in the language, and their replacement."""
    # Longest first, since `\` alone begins many of them.
    for strange in sorted(_INSTEAD, key=len, reverse=True):
        if text.startswith(strange, at):
            return strange, _INSTEAD[strange]
    if text[at].isalpha():
        return text[at], "names have the letters a to z and A to Z, digits and `_`"
    return text[at], None


def shown(token: Token) -> str:
    """A token as named in a message."""
    named = {"_NEWLINE": "the end of the line", "_INDENT": "this deeper indentation",
             "_DEDENT": "the end of the block"}  # fmt: skip
    return named.get(token.type, f"`{token}`")


def first_word_hint(word: str, line: str) -> str:
    """The remedy for a line in column 1 that does not start a declaration."""
    return (
        declaration_hint(word, line)
        or nearest(word, DECLARATIONS)
        or f"declarations start with {', '.join(DECLARATIONS)}"
    )


def token_hint(token: Token, expected: set[str], names: Mapping[str, str]) -> str | None:
    """The remedy for an unexpected token.

    `expected` are the names of the terminals that are allowed there, `names` the texts of those that
    have one text.
    """
    # Where `and` is allowed an expression has just ended: the second comparison is the unexpected one.
    if token.type == "COMPARE" and "AND" in expected:
        return "comparisons do not chain: write `a <= b and b <= c`"
    if token.type == "EQUAL" and "COMPARE" in expected:
        return "`=` defines and assigns; equality is `==`"
    if token.type == "_INDENT":
        return (
            "no line above opens a block; a line continues inside brackets or with an operator, "
            "and a declaration starts in column 1"
        )
    return expectation(expected, names)


def expectation(expected: set[str], names: Mapping[str, str]) -> str | None:
    """A list of the possible tokens, if it is short enough to help."""
    words = sorted(filter(None, (_described(name, names) for name in expected)))
    # In the middle of an expression dozens of tokens may follow, and a list of them helps no reader.
    if not words or len(words) > MAX_EXPECTED:
        return None
    return f"expected {', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else f"expected {words[0]}"


def _described(name: str, names: Mapping[str, str]) -> str:
    special = {"NAME": "a name", "INT": "a number", "_NEWLINE": "the end of the line",
               "_INDENT": "an indented block", "COMPARE": "a comparison"}  # fmt: skip
    if name in special:
        return special[name]
    return f"`{names[name]}`" if name in names else ""
