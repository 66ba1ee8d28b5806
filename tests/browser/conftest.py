"""The system's Chromium, signed in at the console of an installation where much has happened."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright

from tests.installations import Installation, installed
from tests.scenes import STEPS, play

_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_WAIT_MS = 40_000


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--keep-pictures", action="store_true", help="write the pictures into docs/pictures"
    )


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is missing, and CI looks at the console with it")
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """One for all looks at it: what a test changes is its own."""
    folder: Path = tmp_path_factory.mktemp("console")
    with installed(folder, steps=STEPS) as installation:
        play(installation)
        yield installation


@dataclass
class Desk:
    """A page in a browser, and what went wrong on it."""

    page: Page
    running: Installation
    wrong: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        self.page.goto(f"{self.running.server.url}/console{path}")

    def sign_in(self) -> None:
        """With the keyboard alone: the field has the focus."""
        self.go("/sign-in")
        # The page gives the focus a moment after it is there; what is typed before is lost.
        self.page.locator("input:focus").wait_for()
        self.page.keyboard.type(self.running.token())
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def tab_to(self, name: str, *, nth: int = 1) -> None:
        """Press Tab until what has this name is reached."""
        for _ in range(250):
            self.page.keyboard.press("Tab")
            if self.page.evaluate(_FOCUSED) == name:
                nth -= 1
                if nth == 0:
                    return
        pytest.fail(f"{name!r} is not reached by Tab on {self.page.url}")

    def press(self, name: str, *, nth: int = 1) -> None:
        """Reach it by Tab and press Enter."""
        self.tab_to(name, nth=nth)
        self.page.keyboard.press("Enter")

    def follow(self, name: str) -> None:
        """Press what leads to another page, and wait for that."""
        self.tab_to(name)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def say(self, text: str) -> None:
        """Type into the next field and send its form."""
        self.page.keyboard.press("Tab")
        self.page.keyboard.type(text)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    @property
    def text(self) -> str:
        return self.page.inner_text("main")


_FOCUSED = """() => {
  const at = document.activeElement;
  return (at.labels?.[0]?.innerText || at.getAttribute("aria-label") || at.innerText || "").trim();
}"""


def watch(desk: Desk) -> None:
    """Note every error of the page, every dialog, and what its policy had to stop."""

    def spoke(dialog: Dialog) -> None:
        desk.wrong.append(dialog.message)
        dialog.dismiss()

    def said(line: ConsoleMessage) -> None:
        if "Content Security" in line.text:
            desk.wrong.append(line.text)

    desk.page.on("pageerror", lambda error: desk.wrong.append(str(error)))
    desk.page.on("dialog", spoke)
    desk.page.on("console", said)


@pytest.fixture
def open_desk(browser: Browser, running: Installation) -> Iterator[Any]:
    """Opens desks; a page that complains of anything fails the test."""
    desks: list[Desk] = []

    def opened(**wishes: Any) -> Desk:
        context = browser.new_context(**({"locale": "en-GB"} | wishes))
        context.set_default_timeout(_WAIT_MS)
        context.set_default_navigation_timeout(_WAIT_MS)
        page = context.new_page()
        desk = Desk(page, running)
        watch(desk)
        desks.append(desk)
        return desk

    yield opened
    for desk in desks:
        desk.page.context.close()
    assert [wrong for desk in desks for wrong in desk.wrong] == []
