"""The loop over Lark's LALR tables, building the nodes of the tree as rules are reduced.

Lark creates a tree of its own with the position of each rule in lines and columns, and a second pass converts
it to ours.  Here a rule is a method of the builder, called with the rule's extent and its parts; an
entry of the stack is a token, or a pair of an extent and the built value.

Operator precedence is a ladder of rules with one part, `?sum: term`, and four of five reductions climb
it.  The end of such a climb depends only on the state below, the rule and the next token: it is computed once
(`Plans.top`).  States, tokens and errors are those of Lark's own loop: a climb leaves its last state on the
stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from lark import Lark, Token
from lark.grammar import Rule
from lark.parsers.lalr_analysis import Shift
from lark.parsers.lalr_parser import _Parser
from lark.parsers.lalr_parser_state import ParseConf, ParserState
from msgspec import Struct, field

from specchk.lang.syntax.lexing import TokenReader

Extent = tuple[int, int]  # the offsets of a rule's text in its chunk
Entry = Any  # of the stack: a token, or an extent's start and end with the built value
Made = Callable[[Extent, list[Any]], Any]
Plan = tuple[
    int, str, Callable[[list[Entry]], Entry]
]  # of a rule: its size, its name, the entry of its parts


class Plans(Struct):
    """The rules of a parser in the form that its loop needs, with chains of single-part rules shortened."""

    states: Any
    builder: object
    rules: dict[int, Plan] = field(default_factory=dict)  # by identity: rules are hashed by all their symbols
    tops: dict[tuple[Any, str, str], Any] = field(default_factory=dict)

    def rule(self, rule: Rule) -> Plan:
        """The plan of a rule."""
        assert rule.expansion  # of an empty text there would be no place
        plan = self.rules[id(rule)] = len(rule.expansion), rule.origin.name, _entry_of(rule, self.builder)
        return plan

    def top(self, below: Any, origin: str, token: str) -> Any:
        """The state after a rule of this name is reduced, and all single-part rules that the token allows."""
        state = self.states[below][origin][1]
        # The state of a whole text has no actions.
        while True:
            action, rule = self.states[state].get(token, (Shift, None))
            if action is Shift or not _is_rung(rule):
                break
            state = self.states[below][rule.origin.name][1]
        self.tops[below, origin, token] = state
        return state


class _State(ParserState[Any]):
    """Lark's parser state, with tokens processed by the plans of the rules."""

    __slots__ = ("plans",)
    plans: Plans

    def feed_token(self, token: Token, is_end: bool = False) -> Any:
        """Reduce what the token completes, and shift it; at the end, return the whole."""
        plans, states = self.plans, self.parse_conf.states
        rules, tops = plans.rules, plans.tops
        stack, entries, kind = self.state_stack, self.value_stack, token.type
        while True:
            step = states[stack[-1]].get(kind)
            if step is None:
                return ParserState.feed_token(self, token, is_end)  # raises, with the expected terminals
            action, to = step
            if action is Shift:
                stack.append(to)
                entries.append(token)
                return None
            size, origin, entry = rules.get(id(to)) or plans.rule(to)
            parts = entries[-size:]
            del entries[-size:], stack[-size:]
            below = stack[-1]
            state = tops.get((below, origin, kind))
            if state is None:
                state = plans.top(below, origin, kind)
            stack.append(state)
            entries.append(entry(parts))
            if is_end and state == self.parse_conf.end_state:
                return entries[-1]


class _Loop(_Parser):
    """Lark's loop over the tokens of a chunk, which feeds a `_State`."""

    plans: Plans

    def parse(self, lexer: Any, start: str, *_: Any, **__: Any) -> Any:
        """The entry of the whole text."""
        state = _State(ParseConf(self.parse_table, self.callbacks, start), lexer)
        state.plans = self.plans
        return self.parse_from_state(state)


def build_while_parsing(parser: Lark, builder: object) -> None:
    """Make a parser return the results of the builder's methods, one per rule, instead of a tree."""
    frontend = cast("Any", parser.parser)
    larks = frontend.parser.parser
    loop = _Loop(larks.parse_table, larks.callbacks)
    loop.plans = Plans(larks.parse_table.states, builder)
    frontend.parser.parser = loop
    # The layout's connection to the lexer, which stays.
    frontend.lexer.lexer = TokenReader(frontend.lexer.lexer)


def _is_rung(rule: Rule) -> bool:
    """Whether a rule has one part and returns it unchanged."""
    part = rule.expansion[0]
    return rule.options.expand1 and not rule.alias and len(rule.expansion) == 1 and not _is_left_out(part)


def _is_left_out(symbol: Any) -> bool:
    return bool(symbol.is_term and symbol.filter_out)


def _parts_of(rule: Rule) -> Iterable[tuple[int, int, bool]]:
    """The parts that a rule keeps: index, number of absent optional parts before it, whether it is a list.

    Absent parts at the end are a last row, with a negative number.
    """
    # One letter a symbol, after a `1` for each optional part that this expansion does not have.
    places = "".join("01"[is_absent] for is_absent in rule.options.empty_indices) or "0" * len(rule.expansion)
    absent = [len(ones) for ones in places.split("0")]
    waiting = 0
    for number, symbol in enumerate(rule.expansion):
        waiting += absent[number]
        if not _is_left_out(symbol):
            yield number, waiting, not symbol.is_term and symbol.name.startswith("_")
            waiting = 0
    if waiting + absent[-1]:
        yield -1, waiting + absent[-1], False


def _entry_of(rule: Rule, builder: object) -> Callable[[list[Entry]], Entry]:
    """The function of a rule, from the entries of its parts to its own entry."""
    parts = tuple(_parts_of(rule))
    passes = rule.options.expand1 and not rule.alias
    # Rules as `?atom: "(" expr ")"` always pass their part, and need no method.
    always = passes and [(absent, is_spliced) for _, absent, is_spliced in parts] == [(0, False)]
    is_list = always or rule.origin.name.startswith("_")
    made: Made = _list if is_list else getattr(builder, rule.alias or rule.origin.name)

    def entry(entries: list[Entry]) -> Entry:
        kept: list[Any] = []
        for number, absent, is_spliced in parts:
            if absent:
                kept += [None] * absent
            if number < 0:
                break
            part = entries[number]
            value = part[2] if type(part) is tuple else part
            if not is_spliced:
                kept.append(value)
            elif kept:
                kept += value
            else:
                kept = value  # which no other entry has: lists grow in place
        first, last = entries[0], entries[-1]
        start = first[0] if type(first) is tuple else first.start_pos
        end = last[1] if type(last) is tuple else last.end_pos
        if passes and len(kept) == 1:
            # A token has its own place; the extent of a value includes parentheses around it.
            return kept[0] if isinstance(kept[0], Token) else (start, end, kept[0])
        return start, end, made((start, end), kept)

    return entry


def _list(_: Extent, parts: list[Any]) -> list[Any]:
    """The parts of a rule whose name begins with `_`: they are inlined where it is used."""
    return parts
