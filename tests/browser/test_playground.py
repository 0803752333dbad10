"""The playground, built and served as files: its size, verdicts, errors, Stop, links, work without a network.

It consists of packages of npm and PyPI; where these cannot be had, these tests are skipped.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import check
from specchk.native.engine import NativeOptions, search
from specchk.search.budget import Budget
from specchk.search.verdict import Inconclusive, name_of

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
MOST_BYTES = 15_000_000
SMALL, COMPARED = 2000, 30  # states of a model; models
COUNTING = """spec counting

var n : 0..10000000 = 0

action up():
    require n < 10000000
    n' = n + 1

invariant small: n >= 0

deadlock ok
"""


class Served(SimpleHTTPRequestHandler):
    """Files, with a count of the bytes that were sent, which nothing compresses."""

    sent: ClassVar[list[int]] = []

    def log_message(self, *_: object) -> None:
        pass

    def copyfile(self, source: Any, outputfile: Any) -> None:
        data = source.read()
        self.sent.append(len(data))
        outputfile.write(data)


@pytest.fixture(scope="module")
def folder() -> Path:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    if subprocess.run(["make", "playground-parts"], cwd=ROOT, check=False, capture_output=True).returncode:
        pytest.skip("packages of npm or PyPI cannot be had")
    words = ["node", "playground/build.mjs"]
    made = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-2000:]
    return ROOT / "playground/dist"


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ThreadingHTTPServer]:
    """A server of the folder, at an address of which the browser has no files yet."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Served, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    closed(server)


def closed(server: ThreadingHTTPServer) -> None:
    server.shutdown()
    server.server_close()


@pytest.fixture
def page(browser: Chrome, server: ThreadingHTTPServer) -> Chrome:
    address = f"http://127.0.0.1:{server.server_port}/"
    # Drafts of other tests are kept there.
    kept = {"origin": address, "storageTypes": "local_storage"}
    browser.execute_cdp_cmd("Storage.clearDataForOrigin", kept)
    browser.get(address)
    wait(browser, lambda: said(browser, "ready") == "Ready, also without a network.")
    wait(browser, lambda: said(browser, "checked") == "no errors")
    return browser


def wait(browser: Chrome, condition: Callable[[], object]) -> None:
    WebDriverWait(browser, 120, poll_frequency=0.1).until(lambda _: condition())


def said(browser: Chrome, name: str) -> str:
    return str(browser.find_element(By.ID, name).text)


def choose(browser: Chrome, name: str, value: str) -> None:
    Select(browser.find_element(By.ID, name)).select_by_value(value)


def write(browser: Chrome, text: str) -> None:
    at = browser.find_element(By.ID, "text")
    browser.execute_script("arguments[0].value = arguments[1]", at, text)
    browser.execute_script("arguments[0].dispatchEvent(new Event('input'))", at)


def opened(browser: Chrome, spec: str) -> None:
    choose(browser, "specs", spec)
    wait(browser, lambda: said(browser, "checked") == "no errors")


def verdict(browser: Chrome) -> str:
    browser.find_element(By.ID, "run").click()
    wait(browser, lambda: not browser.find_element(By.ID, "stop").is_enabled())
    return said(browser, "status")


def small_models() -> list[tuple[str, str, str, int, int]]:
    """Models of bundled examples, with the verdict, states and depth of the default engine."""
    found = []
    for file in sorted((ROOT / "spec/examples").glob("*.spec")):
        checked = check(str(file))
        for model in checked.spec.models:
            outcome = search(instantiate(checked, model).program, NativeOptions(Budget(max_states=SMALL)))
            if not isinstance(outcome.verdict, Inconclusive):
                numbers = outcome.statistics
                found.append((file.name, model, name_of(outcome.verdict), numbers.distinct, numbers.depth))
                break
        if len(found) == COMPARED:
            break
    return found


def test_thirty_models_have_the_default_engines_verdicts_and_counts(page: Chrome):
    models = small_models()
    assert len(models) == COMPARED
    for spec, model, expected, states, depth in models:
        opened(page, f"examples/{spec}")
        choose(page, "models", model)
        found = re.match(r"([a-z ]+).*, (\d+) states, depth (\d+), [\d.]+ s$", verdict(page))
        assert found is not None, (spec, model, said(page, "status"))
        told = found[1], int(found[2]), int(found[3])
        assert told == (expected.replace("_", " "), states, depth), (spec, model)


def test_run_may_be_clicked_before_python_is_there(browser: Chrome, server: ThreadingHTTPServer):
    """The answer of the first check is waited for, and is not taken for errors."""
    browser.get(f"http://127.0.0.1:{server.server_port}/")
    browser.find_element(By.ID, "run").click()
    wait(browser, lambda: said(browser, "status").startswith("holds"))
    assert said(browser, "checked") == "no errors"


def test_all_that_is_loaded_is_small(page: Chrome):
    assert verdict(page).startswith("holds, 80 states")
    assert 1_000_000 < sum(Served.sent) <= MOST_BYTES


def test_a_counterexample_is_a_page_with_lanes(page: Chrome):
    opened(page, "kafka/truncate_to_hw.spec")
    assert verdict(page).startswith("violated: strong_isr in 9 steps")
    page.switch_to.frame("page")
    assert page.find_element(By.ID, "shown").text == "9 / 9"
    assert len(page.find_elements(By.CSS_SELECTOR, ".lanes svg")) == 1
    page.find_element(By.ID, "back").click()
    assert page.find_element(By.ID, "shown").text == "8 / 9"
    page.switch_to.default_content()


def test_the_explorer_takes_steps_and_jumps(page: Chrome):
    opened(page, "examples/die_hard.spec")
    page.find_element(By.ID, "explore").click()
    wait(page, lambda: page.find_element(By.ID, "walk").is_displayed())
    page.switch_to.frame("walk")
    wait(page, lambda: page.find_elements(By.CSS_SELECTOR, "#steps button"))
    Select(page.find_element(By.ID, "jump")).select_by_value("never_four")
    wait(page, lambda: said(page, "status") == "never_four: 6 steps")
    wait(page, lambda: page.find_elements(By.CSS_SELECTOR, "#lanes svg"))
    page.switch_to.default_content()


def test_errors_have_places_and_hints(page: Chrome):
    opened(page, "examples/die_hard.spec")
    text = page.find_element(By.ID, "text").get_property("value")
    write(page, str(text).replace("small", "smal", 1))
    wait(page, lambda: re.match(r"\d+ errors?$", said(page, "checked")))
    assert "hint: did you mean `smal`?" in said(page, "errors")
    assert page.find_elements(By.CSS_SELECTOR, "#lines .wrong")
    assert not page.find_element(By.ID, "run").is_enabled()
    # Deeper than the stack of a browser: Python would end, and not say why.
    nested = "".join(f"def f{level}() = f{level - 1}() + 1\n" for level in range(1, 900))
    write(page, f"spec deep\nvar n : 0..1 = 0\ndef f0() = n\n{nested}invariant i: f899() >= 0\n")
    wait(page, lambda: said(page, "checked") == "no errors")
    assert verdict(page) == "rejected"
    assert "nest too deeply" in said(page, "said")


def test_a_search_shows_progress_and_is_stopped(page: Chrome):
    write(page, COUNTING)
    wait(page, lambda: said(page, "checked") == "no errors")
    states = page.find_element(By.ID, "states")
    states.clear()
    states.send_keys("100000000")
    page.find_element(By.ID, "run").click()
    wait(page, lambda: re.match(r"\d+ states \(", said(page, "status")))
    page.find_element(By.ID, "stop").click()
    wait(page, lambda: said(page, "status") == "stopped: there is no verdict")
    states.clear()
    # The spec with the text's name that is bundled has fewer.
    states.send_keys("100")
    wait(page, lambda: said(page, "checked") == "no errors")
    assert verdict(page).startswith("inconclusive")


def test_a_link_has_the_spec_and_a_loaded_page_needs_no_network(page: Chrome, server: ThreadingHTTPServer):
    write(page, COUNTING.replace("10000000", "7"))
    page.find_element(By.ID, "share").click()
    wait(page, lambda: "#spec=" in page.current_url)
    link = page.current_url
    page.execute_script("localStorage.clear()")
    closed(server)
    page.get("about:blank")
    page.get(link)
    wait(page, lambda: said(page, "checked") == "no errors")
    assert "var n : 0..7 = 0" in str(page.find_element(By.ID, "text").get_property("value"))
    assert verdict(page).startswith("holds, 8 states, depth 8")
