"""The page of a suite: complete, escaped, self-contained, with the two states side by side at the end."""

from __future__ import annotations

import re

import pytest
from bank import BankBinding, bank
from broken import BROKEN, LosesMoney
from click.testing import CliRunner

from report.page.test_html import Balanced
from specchk.cli.commands.conform import command
from specchk.conform.contract.binding import At
from specchk.conform.gate.tiers import Part
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.suites import run_product
from specchk.conform.report.page import page

BANK = bank()


def page_of(cls: type[BankBinding], *sections: str) -> str:
    binding = cls(BANK.program)
    return page(Part(At(), BANK, binding), run_product(Replayer(binding)), None, sections)


@pytest.mark.parametrize("cls", [BankBinding, *(one[0] for one in BROKEN)], ids=lambda cls: cls.__name__)
def test_every_page_is_whole(cls):
    """Elements close, ids are unique, nothing is loaded; the slider has one place for each step."""
    text = page_of(cls)
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    assert parser.scripts == 1
    assert not re.search(r'(?:src|href)="(?!#)', text)
    steps = [one for one in parser.ids if one.startswith("step-")]
    slider = re.search(r'max="(\d+)"', text)
    assert len(steps) == (int(slider[1]) + 1 if slider else 0)


def test_the_last_step_has_both_states():
    """Each variable in the spec and in the implementation, marked if they differ."""
    last = page_of(LosesMoney).split('id="step-3"')[1]
    assert "the implementation instead, after transfer(a1, a2)" in last
    assert (
        '<td>balance</td><td class="differs">{ a1: 0, a2: 4 }</td><td class="differs">{ a1: 0, a2: 3 }</td>'
        in last
    )
    assert "<td>coin</td><td>unseen</td><td>unseen</td>" in last


def test_a_page_without_a_divergence_has_the_counts():
    """The accepted, refused and impossible steps, by action; an action never taken is marked."""
    text = page_of(BankBinding)
    assert "<td><code>toss</code></td>" in text
    assert 'class="step"' not in text
    assert '<tr class="never">' not in text
    binding = BankBinding(BANK.program)
    few = page(Part(At(), BANK, binding), run_product(Replayer(binding), 1), None)
    assert few.count('<tr class="never">') == 0
    assert "conforms so far" in few


def test_further_sections_are_put_in():
    """Unchanged, between the actions and the foot."""
    text = page_of(BankBinding, "<h2>Classes</h2>")
    assert text.index("never chosen") < text.index("<h2>Classes</h2>") < text.index("<footer>")


def test_the_command_writes_the_page(lossy, tmp_path):
    """With its picture if Graphviz is installed; the exit code stays that of the verdict."""
    target = tmp_path / "found.html"
    result = CliRunner().invoke(command, [str(lossy), "--suite", "product", "--html", str(target)])
    assert result.exit_code == 13
    assert f"wrote {target}" in result.output
    assert "diverges: " in target.read_text(encoding="utf-8")
