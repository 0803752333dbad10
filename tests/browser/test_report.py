"""The HTML report in a browser: stepping, links, no JavaScript, dark, print, no network."""

from __future__ import annotations

import re
from pathlib import Path

from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

STEPS = 9


def shown(browser: Chrome) -> list[str]:
    """The headings of the visible steps."""
    return [head.text for head in browser.find_elements(By.CSS_SELECTOR, ".step h3") if head.is_displayed()]


def press(browser: Chrome, *keys: str) -> None:
    ActionChains(browser).send_keys(*keys).perform()


def test_the_report_opens_at_the_violation(browser: Chrome, report: Path):
    """The report opens at the last state, the most relevant one."""
    browser.get(report.as_uri())
    assert shown(browser) == ["9: become_follower_truncate_to_high_watermark(r2, 1)"]


def test_keys_step_through_the_counterexample(browser: Chrome, report: Path):
    """Arrows, Home and End; past the ends nothing changes; the picture marks the step."""
    browser.get(report.as_uri())
    press(browser, Keys.HOME, Keys.LEFT)
    assert shown(browser) == ["0: initial state"]
    press(browser, Keys.RIGHT, Keys.RIGHT, Keys.RIGHT, Keys.RIGHT)
    assert shown(browser) == ["4: leader_write(r1)"]
    marked = browser.find_elements(By.CSS_SELECTOR, ".lanes g.here title")
    assert {title.get_attribute("textContent") for title in marked} == {"step4", "s4l0"}
    press(browser, Keys.END, Keys.RIGHT)
    assert len(shown(browser)) == 1
    assert shown(browser)[0].startswith("9:")


def test_the_slider_and_the_buttons_step_too(browser: Chrome, report: Path):
    """With the pointer, or with the keyboard on the control itself: one step per key, not two."""
    browser.get(report.as_uri())
    slider = browser.find_element(By.ID, "slider")
    slider.send_keys(Keys.LEFT)
    assert shown(browser)[0].startswith("8:")
    browser.find_element(By.ID, "back").click()
    assert shown(browser)[0].startswith("7:")
    browser.find_element(By.ID, "forth").send_keys(Keys.ENTER)
    assert shown(browser)[0].startswith("8:")


def test_a_step_has_a_link(browser: Chrome, report: Path):
    """`#step-7` can be shared; stepping keeps the address up to date; nonsense opens the last step."""
    browser.get(report.as_uri() + "#step-7")
    assert shown(browser)[0].startswith("7:")
    press(browser, Keys.LEFT)
    assert browser.current_url.endswith("#step-6")
    browser.get("about:blank")
    browser.get(report.as_uri() + "#step-700")
    assert shown(browser)[0].startswith("9:")


def test_without_javascript_all_steps_are_listed(browser: Chrome, report: Path):
    """And no control without effect is shown."""
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(report.as_uri())
    assert len(shown(browser)) == STEPS + 1
    assert not browser.find_element(By.CLASS_NAME, "controls").is_displayed()


def test_paper_has_all_steps(browser: Chrome, report: Path):
    """Printing includes the steps that JavaScript hides."""
    browser.get(report.as_uri())
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert len(shown(browser)) == STEPS + 1
    assert not browser.find_element(By.CLASS_NAME, "controls").is_displayed()


def test_the_report_is_dark_where_the_reader_is(browser: Chrome, report: Path):
    """The system's preference decides."""
    browser.get(report.as_uri())
    colors = []
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        colors.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert colors == ["rgb(255, 255, 255)", "rgb(23, 23, 26)"]


def test_the_report_asks_nothing_of_the_network(browser: Chrome, report: Path):
    """One file: nothing was loaded, and it contains no address to load from."""
    browser.get(report.as_uri())
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert loaded == []
    text = report.read_text(encoding="utf-8")
    assert not re.search(r'(?:src|href)="(?!#)', text)
    assert not re.search(r"url\(|@import", text)
