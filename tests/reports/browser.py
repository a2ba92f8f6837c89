"""A real Chromium for tests: the distribution's, or one named by MEMASSAY_CHROMIUM."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Dialog, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MISSING = "no Chromium: install the distribution's (Debian: chromium), or name one in MEMASSAY_CHROMIUM"


def executable() -> str | None:
    """Where it is; None when there is none."""
    named = os.environ.get("MEMASSAY_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def launched(path: str) -> Generator[Browser]:
    """The browser, with a fresh profile; root may not use its sandbox."""
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *sandbox])
        yield browser
        browser.close()


class Visit:
    """One tab, and what it said and asked for meanwhile: messages of errors, dialogs, addresses that were loaded."""

    def __init__(self, context: BrowserContext, folder: Path) -> None:
        self.folder = folder
        self.page: Page = context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _dialog(self, dialog: Dialog) -> None:
        self.errors.append("a dialog")
        dialog.dismiss()

    def open(self, address: str) -> Page:
        """A file of the site, with what follows it in the address."""
        file, mark, rest = address.partition("#")
        self.page.goto((self.folder / file).as_uri() + mark + rest)
        return self.page

    def violations(self) -> list[Any]:
        """What axe has against the page as it is now."""
        axe: Any = import_module("axe_playwright_python.sync_playwright")  # comes without types
        return axe.Axe().run(self.page).response["violations"]

    def text(self, selector: str) -> list[str]:
        """What can be seen of all that match."""
        return [found.inner_text() for found in self.page.locator(selector).all() if found.is_visible()]

    def draw(self) -> None:
        """Come near every chart, and wait until it is drawn."""
        for box in self.page.locator("[data-chart]").all():
            box.scroll_into_view_if_needed()
        expect(self.page.locator("[data-chart]:not([data-drawn])")).to_have_count(0, timeout=15_000)
