"""The HTML report as a text: complete, escaped, self-contained, and folded where nothing changes."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import check
from specchk.report.page.frame import coded
from specchk.report.page.html import page
from specchk.search.engine import Options
from specchk.search.reference import search
from specchk.search.verdict import Outcome

SPEC = """\
spec shop
# <script>alert("in a comment")</script> & more
sort Clerk
var stock : 0..3 = 0
var watched : 0..3 = 0
var forgotten : 0..3 = 0
var prices : Clerk -> 0..3 = { c: 0 for c in Clerk }
action add(c: Clerk):
    require stock < 3
    stock' = stock + 1
action never():
    require forgotten > 2
    forgotten' = 0
deadlock ok
invariant few: stock < 3 and watched < 3
invariant fewer: stock < 2
model bad:
    Clerk = 2
model good:
    Clerk = 2
    actions never
"""
VOID = {"meta", "input", "br", "link", "hr"}


class Balanced(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.scripts += tag == "script"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def outcome(model: str) -> Outcome:
    return search(instantiate(check("shop.spec", SPEC), model).program, Options(keep_going=True))


@pytest.mark.parametrize("model", ["bad", "good"])
def test_the_page_is_well_formed(model: str):
    """Elements are closed, ids are unique, and nothing of the spec becomes a script."""
    parser = Balanced()
    parser.feed(page(outcome(model), None))
    assert parser.open == []
    assert len(set(parser.ids)) == len(parser.ids)
    assert parser.scripts == 1


def test_what_never_changes_and_is_not_read_is_folded():
    """Once, in a fold; a variable that the property reads stays in every step."""
    text = page(outcome("bad"), None)
    folded = re.search(r"<details><summary>(\d+) variables never change.*?</details>", text, re.DOTALL)
    assert folded is not None
    assert {"forgotten", "prices"} <= set(re.findall(r"<td>(\w+)</td>", folded[0]))
    steps = "".join(re.findall(r'<section class="step".*?</section>', text, re.DOTALL))
    assert "forgotten" not in steps
    assert "stock" in steps


def test_a_report_that_holds_has_no_counterexample():
    """Verdict, constants and coverage only."""
    text = page(outcome("good"), None)
    assert 'class="step"' not in text
    assert "Coverage" in text


def test_code_in_a_message_has_no_backticks():
    """What is between them is marked as code; everything is escaped."""
    assert coded("`a < b` in 3 steps") == "<code>a &lt; b</code> in 3 steps"
    assert coded("a ` b") == "a ` b"
