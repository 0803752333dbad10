"""The page of a divergence in a browser: it opens at the implementation's state, and has steps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser.conftest import ROOT
from browser.test_report import press, shown

BINDING = """
import os, sys
sys.path.insert(0, {bank!r})
import broken

class Lossy(broken.LosesMoney):
    model = "small"
"""


@pytest.fixture(scope="module")
def diverged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a bank that loses money."""
    folder, tests = tmp_path_factory.mktemp("diverged"), ROOT / "tests" / "conform"
    (folder / "lossy.py").write_text(BINDING.format(bank=str(tests)))
    script = f"import sys; sys.path.insert(0, {str(tests)!r}); import bank; print(bank.SPEC)"
    spec = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    (folder / "bank.spec").write_text(spec)
    path = folder / "report.html"
    done = subprocess.run(
        [sys.executable, "-m", "specchk", "conform", str(folder / "lossy.py"), "--suite", "product",
         "--html", str(path)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 13, done.stderr
    return path


def test_it_opens_at_the_implementation(browser: Chrome, diverged: Path):
    """The wrong state, with the differing cell in both columns."""
    browser.get(diverged.as_uri())
    assert shown(browser) == ["the implementation instead, after transfer(a1, a2)"]
    marked = [cell.text for cell in browser.find_elements(By.CSS_SELECTOR, ".step.now td.differs")]
    assert marked == ["{ a1: 0, a2: 4 }", "{ a1: 0, a2: 3 }"]
    here = browser.find_elements(By.CSS_SELECTOR, ".lanes g.here title")
    assert {title.get_attribute("textContent") for title in here} >= {"step3", "s3l1"}


def test_it_is_stepped_through(browser: Chrome, diverged: Path):
    """With keys, and by a link to a step."""
    browser.get(diverged.as_uri())
    press(browser, Keys.LEFT)
    assert shown(browser) == ["2: transfer(a1, a2)"]
    press(browser, Keys.HOME)
    assert shown(browser) == ["0: initial state"]
    browser.get(diverged.as_uri() + "#step-1")
    assert shown(browser)[0].startswith("1: ")


def test_without_javascript_all_is_listed(browser: Chrome, diverged: Path):
    """The spec's states and the implementation's."""
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(diverged.as_uri())
    assert len(shown(browser)) == 4
