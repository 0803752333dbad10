"""S1xx: text that is not in the language."""

from __future__ import annotations

from specchk.lang.codes.page import Page

_DEEP = "spec deep\nvar x : bool = false\ninvariant p: " + "(" * 101 + "x" + ")" * 101 + "\n"

PAGES = (
    Page(
        "S101", "an unexpected token",
        """The text up to the caret can begin a declaration, but no declaration
        continues with the token at the caret.  Each declaration is parsed by itself, so that
        one mistake does not hide the next.""",
        """The hint lists the tokens that are possible at the caret, if they are few, or names a
        common mistake: `=` for `==`, a chained comparison, `&&` for `and`, a quantifier that
        needs parentheses as an operand.  The language reference has the whole grammar.""",
        """
spec equals
var leo : 0..3 = 0
action reset():
    require leo = 3
    leo' = 0
""",
    ),
    Page(
        "S102", "a line whose indentation fits no block",
        """Indentation forms blocks, as in Python.  A line that is indented less than the one
        above it must line up with a block that is still open.""",
        """Line it up; `specchk fmt` indents by 4.""",
        """
spec ragged
var x : 0..3 = 0
action a():
    when x == 0:
            x' = 1
      else:
            x' = 0
""",
    ),
    Page(
        "S103", "brackets that do not match",
        """A bracket is never closed, was never opened, or is closed by a bracket of another
        kind.  A line in column 1 starts a new declaration, and so ends all open brackets.""",
        """Close the bracket at the caret.  Lines inside brackets may break anywhere, but must
        be indented.""",
        """
spec open_ended
var x : 0..3 = 0
invariant low: (x <= 3
invariant high: x >= 0
""",
    ),
    Page(
        "S104", "an expression nested too deeply",
        """Brackets, operators and blocks may nest about a hundred levels deep.  No reader can
        follow more, and the limit protects the checker from failing.""",
        """Name the inner parts with `def` or `let`.""",
        _DEEP,
        shown="spec deep\nvar x : bool = false\ninvariant p: (((((((((( ... x ... ))))))))))",
    ),
    Page(
        "S105", "a name that is a word of the language",
        """A word of the language, such as `set` or `model`, cannot be a name, so its meaning
        is never ambiguous.""",
        """Choose another name.""",
        """
spec words
type set = 0..3
""",
    ),
    Page(
        "S106", "an illegal character",
        """Outside comments, only ASCII letters, digits, `_` and the operators of the language
        have a meaning.""",
        """Remove the character or spell it out: conjunction is `and`, negation is `not`, and a
        definition needs no `$` or `;` at its end.""",
        """
spec money
const price : int = 3$
""",
    ),
    Page(
        "S107", "a tab that indents",
        """A tab is as wide as each editor makes it, so a block indented with tabs may look
        different from its meaning.  Tabs are
        rejected where they would determine a block.""",
        """Indent with spaces, 4 for each level.""",
        """
spec tabs
var x : 0..3 = 0
action a():
\tx' = 1
""",
    ),
)  # fmt: skip
