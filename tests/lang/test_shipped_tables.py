"""The shipped parse tables are those of the grammar: `--rewrite` writes them again.

Lark numbers states and tokens differently in each process, so two sets of tables are compared as automata,
from their start states on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lark import Lark

from specchk.lang.syntax import tables
from specchk.lang.syntax.layout import LayoutFilter

FOLDER = Path(tables.__file__).parent


@pytest.fixture(scope="module")
def grammar() -> str:
    """The grammar of the language."""
    return (FOLDER / "grammar.lark").read_text(encoding="utf-8")


def automaton(parser: Lark) -> Any:
    """The states of a parser in the order in which they are met, each with its actions by token."""
    table: Any = parser.parser.parser._parse_table  # type: ignore[attr-defined]
    order = [table.start_states[name] for name in sorted(table.start_states)]
    numbers = {state: number for number, state in enumerate(order)}
    found = []
    for state in order:
        actions = []
        for token, (kind, to) in sorted(table.states[state].items()):
            if isinstance(to, int):
                if to not in numbers:
                    numbers[to] = len(order)
                    order.append(to)
                actions.append((token, str(kind), numbers[to]))
            else:
                actions.append((token, str(kind), (str(to), to.alias, to.order, repr(to.options))))
        found.append(actions)
    ends = {name: numbers[state] for name, state in table.end_states.items()}
    terminals = sorted(
        (t.name, repr(t.pattern), sorted(t.pattern.flags), t.priority) for t in parser.terminals
    )
    return found, ends, terminals, sorted(parser.lexer_conf.ignore)


def test_shipped_tables_are_those_of_the_grammar(
    grammar: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, rewrite: bool
) -> None:
    """The loaded automaton is the one that Lark builds, without any cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = tables.build(grammar, LayoutFilter())
    if rewrite:
        (FOLDER / tables.SHIPPED).write_bytes(tables.shipped_file(grammar, tables.packed_tables(built)))
    loaded = tables.load_parser(grammar, LayoutFilter())
    assert not list(tmp_path.iterdir())
    assert automaton(loaded) == automaton(built)


def test_tables_of_another_grammar_are_not_loaded(
    grammar: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grammar that has changed has no shipped tables: its own are built, and kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    changed = grammar.replace('"sort"', '"kind"', 1)
    assert changed != grammar
    assert automaton(tables.load_parser(changed, LayoutFilter())) != automaton(
        tables.load_parser(grammar, LayoutFilter())
    )
    assert len(list((tmp_path / "specchk" / "grammars").iterdir())) == 1
