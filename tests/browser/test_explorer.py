"""The explorer in a browser: walk, undo, jump, link, bookmark, export, keyboard only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from browser.conftest import ROOT
from hang import HANG_S


@pytest.fixture
def page(browser: Chrome, explorer: str) -> Chrome:
    """The explorer at the initial state."""
    browser.get(explorer)
    settled(browser, "0 steps taken")
    return browser


def settled(page: Chrome, said: str) -> None:
    """Wait until the page shows a message and has drawn it."""
    WebDriverWait(page, HANG_S).until(lambda _: said in status(page), said)
    taken = len(trace(page))
    WebDriverWait(page, HANG_S).until(
        lambda _: (
            page.execute_script("return document.querySelectorAll('#lanes g[id]').length") > 0
            and f"{taken - 1:>3}  "
            in page.execute_script("return document.getElementById('words').textContent")
        )
    )


def status(page: Chrome) -> str:
    said: str = page.execute_script("return document.getElementById('status').innerText")
    return said


def trace(page: Chrome) -> list[str]:
    """The labels of the path, read at once: the page may redraw at any time."""
    labels = "return Array.from(document.querySelectorAll('#trace button'), item => item.innerText)"
    found: list[str] = page.execute_script(labels)
    return found


def press(page: Chrome, *keys: str) -> None:
    ActionChains(page).send_keys(*keys).perform()


def test_a_step_is_taken_and_undone(page: Chrome):
    """A click takes it; Undo and the browser's Back revert it."""
    page.find_elements(By.CSS_SELECTOR, "#steps button")[0].click()
    settled(page, "1 steps taken")
    assert len(trace(page)) == 2
    page.find_element(By.ID, "undo").click()
    settled(page, "0 steps taken")
    assert trace(page) == ["initial state"]
    page.back()
    settled(page, "1 steps taken")


def test_all_can_be_done_with_keys_alone(page: Chrome):
    """Digits take steps, arrows choose among them, u, r and b have their documented effects."""
    press(page, "1")
    settled(page, "1 steps taken")
    press(page, Keys.DOWN, Keys.DOWN, Keys.ENTER)
    settled(page, "2 steps taken")
    press(page, "u")
    settled(page, "1 steps taken")
    press(page, "r")
    settled(page, "0 steps taken")
    reached = set()
    for _ in range(20):
        press(page, Keys.TAB)
        reached.add(page.switch_to.active_element.get_attribute("id"))
    assert {"restart", "jump", "bookmark", "bookmarks", "scenario", "itf"} <= reached


def test_a_state_has_a_link(page: Chrome, explorer: str):
    """The address leads back to the same state, in another tab as well; a wrong one gives a message."""
    press(page, "1")
    settled(page, "1 steps taken")
    link, taken = page.current_url, trace(page)
    assert "#path=" in link
    page.get("about:blank")
    page.get(link)
    settled(page, "1 steps taken")
    assert trace(page) == taken


def test_one_jumps_to_a_violation(page: Chrome):
    """The shortest path to it, with the violated property and the reason."""
    Select(page.find_element(By.ID, "jump")).select_by_visible_text("violation of strong_isr")
    settled(page, "strong_isr: 9 steps")
    assert len(trace(page)) == 10
    assert "strong_isr" in page.find_element(By.CSS_SELECTOR, "#failed .failed").text


def test_each_property_has_its_present_truth_and_the_way_to_a_violation_is_shown(page: Chrome):
    """In every state; of a jump each step back offers the next step towards its end."""
    holding = "return Array.from(document.querySelectorAll('#truths li'), item => item.innerText)"
    Select(page.find_element(By.ID, "jump")).select_by_visible_text("violation of strong_isr")
    settled(page, "strong_isr: 9 steps")
    assert [item for item in page.execute_script(holding) if not item.startswith("✓")] == ["✗ strong_isr"]
    steps = trace(page)[1:]
    page.find_element(By.ID, "restart").click()  # the list of jumps has the focus, and takes keys
    settled(page, "0 steps taken")
    assert "✓ strong_isr" in page.execute_script(holding)
    (button,) = page.find_elements(By.CSS_SELECTOR, "#steps button:has(strong)")
    assert button.text.startswith(steps[0])
    assert button.text.endswith("next towards strong_isr")
    button.click()
    settled(page, "1 steps taken")
    assert trace(page)[1:] == steps[:1]
    assert len(page.find_elements(By.CSS_SELECTOR, "#steps strong")) == 1


def test_one_jumps_to_a_witness(browser: Chrome, fetching: str):
    """The shortest path to it; nothing is violated there, and Undo reverts one step of the path."""
    browser.get(fetching)
    settled(browser, "0 steps taken")
    Select(browser.find_element(By.ID, "jump")).select_by_visible_text("witness two_rounds")
    settled(browser, "two_rounds: 6 steps")
    assert len(trace(browser)) == 7
    assert browser.find_elements(By.CSS_SELECTOR, "#failed .failed") == []
    browser.find_element(By.ID, "undo").click()
    WebDriverWait(browser, HANG_S).until(lambda _: len(trace(browser)) == 6)


def test_what_cannot_be_reached_is_said(browser: Chrome, fetching: str):
    """Jumping to a violation that does not exist moves nothing."""
    browser.get(fetching)
    settled(browser, "0 steps taken")
    Select(browser.find_element(By.ID, "jump")).select_by_visible_text("violation of hw_within_leo")
    WebDriverWait(browser, HANG_S).until(lambda _: "hw_within_leo: none found" in status(browser))
    assert trace(browser) == ["initial state"]


def test_bookmarks_are_kept(page: Chrome):
    """A bookmark leads back to its state, after a reload too."""
    press(page, "1")
    settled(page, "1 steps taken")
    press(page, "b")
    WebDriverWait(page, HANG_S).until(lambda _: "bookmarked" in status(page))
    press(page, "r")
    settled(page, "0 steps taken")
    page.refresh()
    settled(page, "0 steps taken")
    choices = Select(page.find_element(By.ID, "bookmarks"))
    choices.select_by_index(len(choices.options) - 1)
    settled(page, "1 steps taken")


def test_the_scenario_runs(page: Chrome, tmp_path: Path):
    """The exported scenario is accepted by `specchk test`, and follows the path."""
    Select(page.find_element(By.ID, "jump")).select_by_visible_text("violation of strong_isr")
    settled(page, "strong_isr: 9 steps")
    page.find_element(By.ID, "scenario").click()
    box = page.find_element(By.ID, "text")
    WebDriverWait(page, HANG_S).until(lambda _: box.get_attribute("value"))
    for path in (ROOT / "spec/kafka").glob("*.spec"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    spec = tmp_path / "truncate_to_hw.spec"
    text = (
        spec.read_text(encoding="utf-8") + "\n" + box.get_attribute("value") + "    assert not strong_isr\n"
    )
    spec.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "specchk", "test", str(spec), "--model", "loss"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "scenario explored: 10 lines" in done.stdout


def test_the_itf_trace_is_saved(page: Chrome, driver: Chrome):
    """A file with all states of the path."""
    press(page, "1")
    settled(page, "1 steps taken")
    page.find_element(By.ID, "itf").click()
    path: Path = driver.downloads / "explored.itf.json"
    WebDriverWait(page, HANG_S).until(lambda _: path.exists() and path.stat().st_size > 0)
    found = json.loads(path.read_text(encoding="utf-8"))
    assert [state["#meta"]["index"] for state in found["states"]] == [0, 1]
    assert found["states"][1]["#meta"]["action"] == "controller_shrink_isr"


def test_the_page_asks_only_its_own_server(page: Chrome, explorer: str):
    """Everything loaded comes from the printed address."""
    loaded = page.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert loaded
    assert all(name.startswith((explorer, "data:")) for name in loaded)
