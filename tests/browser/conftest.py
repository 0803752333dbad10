"""A headless Chromium, driven by selenium.

On a machine without `chromium` and `chromedriver` these tests are left out; where CI is set they
fail instead, for .ci/run installs both.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

ROOT = Path(__file__).parents[2]
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--window-size=1400,1000",
)  # fmt: skip
NEEDED = ("chromium", "chromedriver", "dot")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing and not os.environ.get("CI"):
        here = Path(__file__).parent
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=f"no {', '.join(missing)} on this machine"))


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """One browser for all tests, with a profile of its own."""
    options = Options()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    downloads = str(tmp_path_factory.mktemp("downloads"))
    options.add_experimental_option("prefs", {"download.default_directory": downloads})
    found = webdriver.Chrome(options, Service(shutil.which("chromedriver") or "chromedriver"))
    found.downloads = Path(downloads)
    yield found
    found.quit()


@pytest.fixture
def browser(driver: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    """The browser; what a page writes to its console fails the test."""
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    driver.get("about:blank")
    driver.get_log("browser")
    yield driver
    assert driver.get_log("browser") == []


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the loss of truncate_to_hw."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    spec = str(ROOT / "spec/kafka/truncate_to_hw.spec")
    done = subprocess.run(
        [sys.executable, "-m", "specchk", "run", spec, "--optimal", "--html", str(path)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 10, done.stderr
    return path


@pytest.fixture(scope="session")
def fetching() -> Iterator[str]:
    """The address of an explorer of two_round_fetch, which has witnesses."""
    yield from served("explore", str(ROOT / "spec/two_round_fetch.spec"))


@pytest.fixture(scope="session")
def explorer() -> Iterator[str]:
    """The address of an explorer of truncate_to_hw."""
    spec = str(ROOT / "spec/kafka/truncate_to_hw.spec")
    yield from served("explore", spec, "--property", "strong_isr")


def served(*args: str) -> Iterator[str]:
    """Run a command that serves, and give its address."""
    command = [sys.executable, "-u", "-m", "specchk", *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if re.match(r"http://127\.0\.0\.1:\d+/\S+/$", line):
                yield line.strip()
                break
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
