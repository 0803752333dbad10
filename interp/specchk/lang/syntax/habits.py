"""Habits from TLA+, Quint, P or Python, and their equivalents here.

A habit is recognized by the first word of its declaration and by the text of its line before and behind
the place where the parser stopped.  It decides nothing but the hint of a diagnostic.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import NamedTuple

# Patterns search: in a very long line they would be slow, and such a line is not a habit.
MAX_BEFORE = 300

_GUARD = "a guard is `require e`"
_PRIME = "the value after the step has a prime: `{name}' = e`"
_PAIRS = "a type of pairs is `(A, B)`; the pairs of two sets are `{{ (x, y) for x in S, y in T }}`"
_APART = "a tuple is taken apart by names, `let (x, y) = p`; parts that have names are a record's"
_IF = "a choice of values is `if c then a else b`"
_COMMENT = "a comment starts with `#`"
_PARAMETER = "a parameter has a type: `{name}: T`"
_ENUM = "names are listed by `type Name = enum {{a, b}}`; the fields of a record have types, `{{ a: T }}`"
_TYPE = "a type is not an expression: name it, `type Any = ...`; then `var x : Any in Any` has any value"

# the first word of a declaration in another language -> how it is written here
_DECLARATIONS = MappingProxyType(
    {
        "declare a variable a line: `var x : T = e`": "variable variables VARIABLE VARIABLES state vars",
        "what the constants of every model satisfy is `assume: e`": "ASSUME ASSUMPTION",
        "declare a constant a line: `const N : int`": "constant constants CONSTANT CONSTANTS param",
        "`extends file` is for other specs; numbers and sets are part of the language": "EXTENDS open use",
        "a file is one spec, which starts with `spec name`": "module MODULE machine process package class",
        "write `type Name = enum {a, b}`": "enum ENUM datatype",
        "there is no next-state relation: a step is any action that is enabled": "next Next step_ any",
        "write `init: e`, where equality is `==`; or a first value, `var x : T = e`": "Init INIT initial",
        "write `invariant name: e`, or `liveness name: P leadsto Q`": "property temporal always eventually",
        "write `invariant name: e`; what a model must satisfy is in its `expect`": "assert check theorem",
        "write `def name(x: T) = e`": "val fun function pure operator let define macro",
        "a recursive definition has a measure: `def f(s: T): U decreases len(s) = e`": "RECURSIVE rec",
        "weak fairness is `fair a`, strong fairness `strong fair a`": "weak WF WF_vars SF fairness",
        "messages are values: `type Message = Request(n: 0..3) | Reply`": "event message",
    }
)
_DECLARED = MappingProxyType({word: hint for hint, words in _DECLARATIONS.items() for word in words.split()})


class _Habit(NamedTuple):
    """Patterns for the first word of the declaration, and for the line before and after the place."""

    declaration: str
    before: str
    after: str
    hint: str


# the first word of a statement in another language -> what to write
_STATEMENTS = MappingProxyType(
    {
        "a conditional step is `when c:` with `else:`; `if c then a else b` is a value": "if",
        "write `else:` and a `when` below it": "elif elsif",
        "by cases is `match e:`, with a line for each; by a condition is `when c:`": "case switch match",
        "all at once is a map: `x' = { r: ... for r in Replica }`; any one is `any r in Replica:`": "for",
        "a loop is an action that is enabled while there is something to do": "while loop",
        "a definition is its value: `def f(x: T) = e`": "return",
        "a guard is `require e`; what always holds is an `invariant`": "assert",
        "the conditions of an action are lines: `require e`": "and or",
        "a guard is `require e`": "requires guard await assume assuming pre where enabled",
        "the empty statement is `skip`": "pass noop",
        "omit it: variables that are not assigned keep their values": "unchanged UNCHANGED",
        "any element of a set is `any x in S:`, with a block below it": "exists forall with choose pick",
        "a name for a value is `let x = e`": "var val const",
        "a message in flight is an item of a set: `net' = net union {m}`": "send raise announce",
        "a step assigns variables, such as the place in a program: `pc' = busy`": "goto",
    }
)
_STATED = MappingProxyType({word: hint for hint, words in _STATEMENTS.items() for word in words.split()})

_ASSIGNED = re.compile(r":?=(?!=)|[-+*]=")  # behind a variable that has such a word as its name
_CALLED = re.compile(r"\s+(\w+)\s*\(")
_STATEMENT = r"(?:^\s+|;\s*)(?P<name>\w+)\s*\Z"
_HABITS = tuple(
    _Habit(*row)
    for row in (
        # Statements.
        ("action", r"^\s+(?P<word>any)\s*\Z", r"\{",
         "one of several steps is `either:` and `or:`, each with a block"),
        ("action", r"^\s+(?P<word>all)\s*\Z", r"\{", "all statements of a block hold: write one a line"),
        ("action", r"^\s+(?:any|when)\b[^:]*\Z", r"\n",
         "a block follows: end the line with `:`, and indent the lines below it; a guard is `require c`"),
        ("action", r"^\s+match\b[^{]*\Z", r"\{",
         "end the line with `:`, with a line for each case: `Fetch f: x' = 1`"),
        ("action", r"=\s*any\s+\Z", r"", "any element of a set is `any x in S:`, with a block below it"),
        ("action", r"^\s+let\s+\w+\s*\Z", r"in\b",
         "any element of a set is `any x in S:` and a block; `let x = e` names one value"),
        ("action", r"^\s+let\s+\w+\s*=.*\bin\b.*\Z", r"=(?!=)",
         "`let x = e` is a line of its own, without `in`"),
        ("action", r"^\s+\w+'\s*=?\Z", r"=", "`=` assigns: `x' = e`"),
        ("action", r"^\s+\w+'\s*\Z", r"[-+*]", "the new value is written out: `x' = x + 1`"),
        ("action", _STATEMENT, r"\[[^=]*\]\s*'", "the prime follows the variable: `{name}'[k] = e`"),
        ("action", _STATEMENT, r"\[[^=]*\]\s*:?=(?!=)",
         "the value after the step has a prime: `{name}'[k] = e`"),
        ("action", _STATEMENT, r"(?:\.\w+)+\s*:?=(?!=)",
         "the value after the step has a prime: `{name}'.f = e`"),
        ("action", _STATEMENT, r"(?:[-+*]=|\+\+|--)", "the new value is written out: `{name}' = {name} + 1`"),
        ("action", _STATEMENT, r"\[[^=]*\]\s*[-+*]=",
         "the new value is written out: `{name}'[k] = {name}[k] + 1`"),
        ("action", _STATEMENT, r":?=(?!=)", _PRIME),
        ("action", _STATEMENT, r"\.\w+\(", "a step assigns a new value, which is written out: `{name}' = e`"),
        ("action", _STATEMENT, r"==|!=|<|>|(?:in|not|is|and|or|subset|implies)\b|[-+*%.\[]",
         _GUARD + ": `require {name} ...`"),
        ("action", r"^\s+(?P<name>\w+)\(.*\)\s*\Z",
         r"==|!=|<|>|(?:in|not|is|and|or|subset|implies|iff)\b|[-+*%.\[]",
         _GUARD + ": `require {name}(...) ...`"),
        # Declarations.
        ("", r"^helper\s+\Z", r"\w", "write `helper action name():`"),
        ("", r"^(?:strong )?fair\s+action\s+\Z", r"",
         "fairness is a line of its own below the action: `fair go`"),
        ("", r"^action\s+helper\s+\Z", r"\w", "write `helper action name():`"),
        ("", r"^(?:(?:helper\s+)?action|def)\s+\w+\((?:.*,)?\s*(?P<name>\w+)\s*\Z", r"[,)]", _PARAMETER),
        ("", r"^(?:helper\s+)?action\s+(?P<name>\w+)\s*\Z", r"=",
         "write `action {name}():` and its statements below it, one a line: all of them hold"),
        ("", r"^(?:helper\s+)?action\s+(?P<name>\w+)\s*\Z", r"[:{]",
         "parameters are in parentheses, also where there are none: `action {name}():`"),
        ("", r"^(?:helper\s+)?action\s+(?P<name>\w+)\(.*\)\s*\Z", r"[={]",
         "a colon opens the block, and indented lines are in it: `action {name}():`"),
        ("", r"^def\s+(?P<name>\w+)\s*\Z", r"[:=]",
         "parameters are in parentheses, also where there are none: `def {name}() = e`"),
        ("", r"^(?:var|sort|const|type)\s+\w+\s*\Z", r",", "write one declaration a line"),
        ("", r"^var\s+(?P<name>\w+)\s*\Z", r"=|in\b|\n", "a variable has a type: `var {name} : 0..3 = 0`"),
        ("", r"^const\s+(?P<name>\w+)\s*\Z", r"=|in\b|\n", "a constant has a type: `const {name} : int`"),
        ("", r"^sort\s+(?P<name>\w+)\s*\Z", r"[=:{]",
         "a model sizes a sort: `{name} = 3`, `{name} = {{a, b}}`; fixed names are `enum {{a, b}}`"),
        ("", r"^assume\s+\w*\s*\Z", r"", "write `assume: e`, or a block of conditions below `assume:`"),
        ("", r"^init\s*\Z", r"\(|=", "write `init: e`, or a block of conditions below `init:`"),
        ("model", r"^\s+expect\s+\Z", r"(?:fail\w*|violat\w+|errors?|false|not|counterexample)\b",
         "write `expect violates name`, or for a witness `expect unreachable name`"),
        ("model", r"^\s+expect\s+\Z", r"(?:ok|pass\w*|success|true|valid|safe|correct|hold|no|none)\b",
         "write `expect holds`"),
        ("model", r"^\s+expect\s+\Z", r"reach\w*\b",
         "`expect holds` includes that each witness is reached; the opposite is `expect unreachable name`"),
        ("model", r"^\s+(?P<word>invariant)\s*\Z", r"\w",
         "declare it in column 1, before the models; the line `properties name` chooses in a model"),
        ("model", r"^\s+(?P<word>const|invariants?|propert\w+|check)\s*\Z", r"",
         "a model has `N = 3`, `properties p, q`, `actions a, b` and `expect holds`"),
        ("model", r"^\s+\w+\s*=?\Z", r"[:=]", "a model binds a constant with `=`: `N = 3`"),
        ("model", r"^\s+(?P<word>expects)\s*\Z", r"", "write `expect`"),
        ("model", r"^model\s+\w+.*:\s*\Z", r"\w", "the lines of a model are indented below it"),
        ("model|scenario|view", r"^(?:model|scenario|view)\b[^:]*\Z", r"\{",
         "a colon opens the block, and indented lines are in it"),
        # Before the types, as a variable's initial value has its type before it.
        ("", r"\[(?:[^][]|\[[^][]*\])*\Z", r"for\b",
         "a sequence is `fold(S, [], (acc, x) => acc ++ [e])`, item by item; a set is `{{ e for x in S }}`"),
        # Types.
        ("", r"\b(?i:set)\s*\Z", r"[<\[(]", "a type of sets is `set[T]`; all subsets of S are `subsets(S)`"),
        ("", r"\b(?i:seq|list|sequence|array|queue|fifo)\s*\Z", r"[<\[(]",
         "a type of sequences is `seq[T] upto 4`: it has a limit"),
        ("", r"\b(?i:bag|multiset)\s*\Z", r"[<\[(]", "a type of bags is `bag[T] upto 4`: it has a limit"),
        ("", r"\b(?i:map|dict|function)\s*\Z", r"[<\[(]",
         "a type of maps is `K -> V`, or `map[K, V]` where some keys have no value"),
        ("", r"\bmap\[[^\]]*\Z", r"\]|->",
         "a map from K to V, where some keys have no value, is `map[K, V]`"),
        ("", r"\b(?i:option|optional|maybe)\s*\Z", r"[<\[(]", "a type of options is `T?`"),
        ("", r"\b(?P<name>seq|bag)\[.*\]\s*\Z", r"", "it has a limit: `{name}[T] upto 4`"),
        ("", r"\bnat\s*\Z", r"",
         "numbers have a bound: `0..9`, or `nat upto 9` where larger ones exist but are not searched"),
        ("", r"\b(?:record|struct|Record)\s*\Z", r"\{", "a type of records is `{{ f: T, g: U }}`"),
        ("", r"^(?:type\b[^=]*=|var\b[^=]*:|const\b[^=]*:)\s*\Z", r"\[",
         "a type of records is `{{ f: T, g: U }}`, one of maps `K -> V`"),
        ("", r"^(?:type\s+\w+\s*=|var\b[^=]*:)\s*\{\s*\w+\s*\Z", r"[,}]", _ENUM),
        ("", r"^(?:var|const)\b[^=]*:[^={]*\Z", r"\|", "variants need a name: `type T = A | B`, then `T`"),
        ("", r"^type\b[^=]*=.*\w\([^)]*\Z", r"[-\d,)]|\.\.",
         "the parts of a variant have names: `Request(value: 0..3)`"),
        ("", r"^(?:type|var|action|def|const)\b.*[:=\[(]\s*\w+\s*\*\s*\w+\s*\Z", r"[\])=\n,]", _PAIRS),
        ("var", r"\bin\b[^=]*\Z", r"=(?!=)",
         "a variable starts with one value, `= e`, or with any of a set, `in S`"),
        ("var", r"\bin\b.*\Z", r"->|\?|set\b|seq\b|bag\b|nat\b|enum\b", _TYPE),
        ("", r"^(?:var|type|const|def|action)\b.*[:(,>]\s*\(\s*[A-Z]\w*\s*\)\s*\Z", r"\?|->|=",
         "the name of a type is written without parentheses"),
        ("liveness", r"^\s*\Z", r"\s*(?:always|eventually)\b",
         "a block begins after the property's name; in it each formula has its own `forall x in S:`"),
        ("def", r"\)\s*:\s*[^=(]+\Z", r":", "the definition follows `=`: `def f(x: T): T = e`"),
        ("action|helper|def", r"^[^()]*\([^()]*:[^()]*\Z", r":",
         "the parenthesis of the parameters is not closed: `)`"),
        # Expressions.
        ("", r"", r"<<", "a tuple is `(a, b)`, a sequence `[a, b]`"),
        ("", r"[\w)\]']\.\Z", r"\d", _APART),
        ("", r"\blet\s+\w+\s*\Z", r",", _APART),
        ("", r"\b(?:forall|exists|choose|filter|any|for)\s*\(\s*\w+\s*\Z", r"in\b|:|\)",
         "names are bound without parentheses, each in a set: `forall a in A, b in B: p`"),
        ("", r"\b(?:forall|exists|choose|filter)\s+[\w, ]+\Z", r":",
         "a name is bound in a set: `forall x in S: p`"),
        ("", r"\b(?:forall|exists|choose|filter)\s+\w+ in [^:]*\Z", r"",
         "the body follows a colon: `forall x in S: p`"),
        ("", r"(?:^|[:(=]|\band|\bor|\bnot)\s*(?P<word>all|each|every|some|any)\s+\Z", r"\w",
         "write `forall x in S: p` or `exists x in S: p`"),
        ("", r"\[\s*\w+\s*\Z", r"EXCEPT\b",
         "one part changes with `m'[k] = e`; the changed value is `{{ m with [k]: e }}`"),
        ("", r"", r"with\b", "a changed value is in braces: `{{ m with [k]: e }}`"),
        ("", r"", r"\|->|\[\s*\w+\s*\|->", "a map is `{{ k: e for k in K }}`, a record `{{ f: e }}`"),
        ("", r"\{[^}]*\Z", r"\||where\b", "a set by a condition is `{{ e for x in S if c }}`"),
        ("", r"[\w)\]}]\s*\Z", r"\|", "the union of sets is `union`, of truth values it is `or`"),
        ("", r"", r"\|", "the number of elements is `card(S)`, the length of a sequence `len(s)`"),
        ("", r"\{\s*(?:.*,)?\s*\w+\s*\Z", r"=(?!=)", "a record gives its fields with colons: `{{ f: e }}`"),
        ("", r"\{[^}]*[\w)\]}]\s+\Z", r"\w", "items are separated by commas: `{{a, b}}`"),
        ("", r"\{[^}]*\Z", r";", "items are separated by commas: `{{ a: x, b: y }}`"),
        ("", r"<\Z", r">", "inequality is `!=`; `eventually p` belongs in `liveness`"),
        ("", r"", r"<>", "write `eventually p`, in `liveness`"),
        ("", r"\[\]\s*\Z", r"[\w(]", "write `always p`, in `liveness`"),
        ("", r"", r"<=>", "equivalence is `iff`"),
        ("", r"\w\(.*,\s*(?P<name>\w+)\s*\Z", r"=>",
         "the parameters of an operator are in parentheses: `({name}) => e`"),
        ("", r"", r"=>", "implication is `implies`"),
        ("", r"", r"=<", "write `<=`"),
        ("def", r"\)\s*\Z", r"->", "the result type follows a colon: `def f(x: T): T = e`"),
        ("invariant|step|reachable|liveness|def|action|init|constraint", r"", r"->",
         "implication is `implies`"),
        ("", r"\*\Z", r"\*", "there are no powers: multiply"),
        ("", r"[\w)\]]\s*\Z", r"mod\b", "the remainder is `%`"),
        ("", r"[\w)\]]\s*\Z", r"div\b", "integer division is `//`"),
        ("", r"\b(?P<name>tail|head|len|card|min|max|last|some|get|sum|elements|subsets)\s+\Z", r"\w",
         "arguments are in parentheses: `{name}(...)`"),
        ("", r"\w\[[^\]]*\Z", r":", "a part of a sequence is `prefix(s, n)`, `suffix(s, n)` or `tail(s)`"),
        ("", r"\.\.\Z", r"\.", "a range is `a..b`, both ends included"),
        ("", r"\.\Z", r"(?:union|intersect|subset|in)\b",
         "operators are written between their operands: `a union b`"),
        ("", r"\blet\s+\w+\s*=.*\bin\b.*\Z", r"", "a named value is `let x = e: body`"),
        ("", r"", r"\?", _IF),
        ("", r"\bif\b(?!.*\bthen\b).*\Z", r"", _IF),
        ("", r"\bif\b.*\bthen\b(?!.*\belse\b).*\Z", r"\n",
         _IF + "; a condition without `else` is `c implies p`"),
        ("", r"[\w)\]]\s*\Z", r"if\b", _IF),
        # Marks of other languages.
        ("", r"^\s*\Z", r"(?:={4}|-{4})", "nothing ends a file: omit the line"),
        ("", r"", r"//", _COMMENT),
        ("", r"//.*\Z", r"\w", _COMMENT + "; `//` divides"),
        ("", r"", r"\(\*", _COMMENT),
        ("", r"", r":=", "`=` defines and assigns"),
        ("", r"", r";", "a line ends without `;`"),
        ("", r";\s*\Z", r"\n", "a line ends without `;`"),
    )
)  # fmt: skip


def declaration_hint(word: str, line: str) -> str | None:
    """The remedy for a line in column 1 whose first word does not start a declaration."""
    if re.match(r"\w+\s*'|(?:require|let|any|either|or|when|else|skip)\b", line):
        return "statements are indented below their action"
    if re.match(r"(?:expect|properties|actions)\b|\w+\s*=[^=]", line):
        return "the lines of a model are indented below it"
    return _DECLARED.get(word)


def statement_hint(word: str) -> str | None:
    """The equivalent of another language's statement that begins with this word."""
    return _STATED.get(word)


def habit_hint(declaration: str, before: str, after: str) -> tuple[str | None, tuple[int, int]]:
    """The replacement for a habit from another language at the place of a syntax error; None if unknown.

    `declaration` is the first word of the declaration, `before` and `after` are the line up to the place
    and from it on, its line end included. The second result is the place of the habit in `before`, empty
    if the habit is at the place itself: the parser takes a foreign keyword for a name, and stops behind
    it.
    """
    if len(before) > MAX_BEFORE:
        return None, (0, 0)
    declaration = {"helper": "action"}.get(declaration, declaration)  # statements are the same in both
    word = before.strip()
    if declaration == "action" and word in _STATED and not _ASSIGNED.match(after):
        return _STATED[word], (before.index(word), len(before.rstrip()))
    called = _CALLED.match(before)  # as in `if (x > 0) y' = 1`
    if declaration == "action" and called and called[1] in _STATED:
        return _STATED[called[1]], called.span(1)
    for habit in _HABITS:
        if habit.declaration and not re.fullmatch(habit.declaration, declaration):
            continue
        match = re.search(habit.before, before)
        if match and re.match(habit.after, after):
            return habit.hint.format(**match.groupdict()), match.span(
                "word"
            ) if "word" in match.groupdict() else (0, 0)
    return None, (0, 0)
