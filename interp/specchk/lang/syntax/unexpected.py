"""Messages for syntax errors: the habit behind one where it is recognized, else the possible tokens.

Most syntax errors in specs are good TLA+ or good Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lark import Token

from specchk.lang.text.diagnostics import nearest

DECLARATIONS = (
    "spec", "import", "extends", "sort", "const", "type", "var", "init", "def", "action",
    "invariant", "step", "reachable", "liveness", "constraint", "deadlock", "fair", "strong",
    "refines", "model", "scenario",
)  # fmt: skip
MAX_EXPECTED = 12

# text that no token of the language starts with -> what to write, longest first
_INSTEAD = MappingProxyType(
    {
        "/\\": "conjunction is `and`",
        "\\/": "disjunction is `or`",
        "\\A": "write `forall x in S: ...`",
        "\\E": "write `exists x in S: ...`",
        "\\in": "membership is `in`",
        "\\union": "write `union`",
        "\\cup": "write `union`",
        "\\cap": "write `intersect`",
        "\\subseteq": "write `subset`",
        "\\": "operators are words: `and`, `or`, `in`, `union`; set difference is `-`",
        "/": "integer division is `//`, inequality is `!=`",
        "&": "conjunction is `and`",
        "!": "negation is `not`, inequality is `!=`",
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

# the first word of a line that goes on wrongly -> what to write
_HABITS = MappingProxyType(
    {
        "if": "a conditional step is `when c:` with `else:`; `if c then a else b` is a value",
        "elif": "write `else:` and a `when` below it",
        "for": "all at once is a map: `x' = { r: ... for r in Replica }`; any one is `any r in Replica:`",
        "while": "a loop is an action that is enabled while there is something to do",
        "return": "a definition is its value: `def f(x: T) = e`",
        "assert": "a guard is `require e`; what always holds is an `invariant`",
        "pass": "the empty statement is `skip`",
    }
)


def strange_text(text: str, at: int) -> tuple[str, str | None]:
    """The characters at an offset that have no meaning, and their replacement."""
    # Longest first, since `\` alone begins many of them.
    for strange in sorted(_INSTEAD, key=len, reverse=True):
        if text.startswith(strange, at):
            return strange, _INSTEAD[strange]
    return text[at], None


def shown(token: Token) -> str:
    """A token as a message names it."""
    named = {"_NEWLINE": "the end of the line", "_INDENT": "this deeper indentation",
             "_DEDENT": "the end of the block"}  # fmt: skip
    return named.get(token.type, f"`{token}`")


def habit_hint(before: str) -> str | None:
    """The replacement of a statement of another language; `before` is the line so far."""
    return _HABITS.get(before.strip())


def bare_hint(word: str) -> str:
    """The remedy for a quantifier, `if` or `let` as an operand."""
    return f"put parentheses around `{word} ...`: as an operand its end would be unclear"


def token_hint(token: Token, expected: set[str], names: Mapping[str, str]) -> str | None:
    """The remedy for an unexpected token.

    `expected` are the names of the terminals that may stand there, `names` the texts of those that
    have one text.
    """
    # At the beginning of a chunk any word is a misspelt declaration.
    if token.start_pos == 0 and token.type == "NAME":
        return nearest(str(token), DECLARATIONS) or f"declarations start with {', '.join(DECLARATIONS)}"
    # Where `and` may stand an expression has just ended: the second comparison is the one that is too many.
    if token.type == "COMPARE" and "AND" in expected:
        return "comparisons do not chain: write `a <= b and b <= c`"
    if token.type == "EQUAL" and "COMPARE" in expected:
        return "`=` defines and assigns; equality is `==`"
    if token.type == "_INDENT":
        return "no line above opens a block; a line continues inside brackets or with an operator"
    if token.type == "EQUAL" and "'" in {names.get(name) for name in expected}:
        return "the value after the step has a prime: `x' = e`"
    if str(token) == "->" and "COLON" in expected:
        return "the result type follows a colon: `def f(x: T): T = e`"
    return expectation(expected, names)


def expectation(expected: set[str], names: Mapping[str, str]) -> str | None:
    """A list of the possible tokens, when it is short enough to help."""
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
