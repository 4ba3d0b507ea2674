"""A browser under test: the system's Chromium, a page on which all that goes wrong is written down, and what to see."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from workbench import ROOT, Vault

WIDE, NARROW = {"width": 1440, "height": 1000}, {"width": 390, "height": 844}
_LOOK = Path(__file__).with_name("page_faults.js").read_text("utf-8")
_QUIET = (
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
    "--disable-default-apps", "--disable-dev-shm-usage", "--disable-gpu",
)  # fmt: skip
# What somebody has to do something with needs a name, and so does a picture that is not hidden.
_NAMED = {
    "link", "button", "textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "Date", "DisclosureTriangle",
    "image", "img", "SvgRoot", "dialog", "navigation", "table figure",
}  # fmt: skip


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium without windows; skips where there is none."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("there is no browser: install chromium")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=[*root, *_QUIET])
        try:
            yield found
        finally:
            found.close()


class Visit:
    """A visit to one origin; `faults` is what a visitor should never meet."""

    def __init__(self, browser: Browser, address: str, **given: Any) -> None:
        self.address = address
        self.origin = "{0.scheme}://{0.netloc}".format(urlsplit(address))
        self.faults: list[str] = []
        self.asked: list[str] = []
        self.context: BrowserContext = browser.new_context(
            viewport=WIDE, reduced_motion="reduce", locale="en-GB", timezone_id="UTC", **given
        )
        self.context.set_default_timeout(90_000)
        self.page: Page = self.context.new_page()
        self._listen(self.page)

    def _listen(self, page: Page) -> None:
        tell = self.faults.append
        page.on("console", lambda said: said.type in ("error", "warning") and tell(f"console: {said.text}"))
        page.on("pageerror", lambda error: tell(f"script: {error}"))
        page.on("dialog", lambda dialog: (tell(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("popup", lambda other: tell(f"window: {other.url}"))
        page.on("download", lambda one: tell(f"download: {one.url}"))
        page.on("request", lambda one: self._asks(one.url))
        page.on("response", lambda one: one.status >= 400 and tell(f"{one.status}: {one.url}"))
        # What a page still asked for when it is left is aborted: its icon now and then.
        page.on("requestfailed", lambda one: "ABORTED" not in str(one.failure) and tell(f"{one.failure}: {one.url}"))

    def _asks(self, url: str) -> None:
        self.asked.append(url)
        if not url.startswith((f"{self.origin}/", "data:")):
            self.faults.append(f"foreign: {url}")

    def enter(self) -> Page:
        """Opens the page with its token."""
        self.page.goto(self.address)
        return self.page

    def click(self, selector: str) -> None:
        """Follows the first link that is seen."""
        with self.page.expect_navigation():
            self.page.locator(selector).locator("visible=true").first.click()

    def nameless(self) -> list[str]:
        """What a person who cannot see the page would not hear, from the accessibility tree."""
        session = self.context.new_cdp_session(self.page)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        session.detach()
        return [
            f"no name: {node['role']['value']} {node['nodeId']}"
            for node in nodes
            if not node.get("ignored")
            and node.get("role", {}).get("value") in _NAMED
            and not node.get("name", {}).get("value", "").strip()
        ]

    def look(self) -> list[str]:
        """What is wrong with the page as it is shown now."""
        return [*self.page.evaluate(_LOOK)]

    def barriers(self) -> list[str]:
        """What axe-core finds that keeps people from reading or using the page."""
        from axe_playwright_python.sync_playwright import Axe

        return [
            f"axe {one['impact']}: {one['id']}: {[node['html'][:120] for node in one['nodes'][:3]]}"
            for one in Axe().run(self.page, options={"resultTypes": ["violations"]}).response["violations"]
        ]

    def grid(self, *, whole: bool = False, axe: bool = False) -> list[str]:
        """What is wrong with it wide and light, narrow and dark; `whole`: wide and dark, narrow and light, too."""
        found = self.nameless()
        looks = [(WIDE, "light"), (NARROW, "dark")] + ([(NARROW, "light"), (WIDE, "dark")] if whole else [])
        for size, scheme in looks:
            self.page.set_viewport_size(size)
            self.page.emulate_media(color_scheme=scheme)
            faults = [*self.look(), *(self.barriers() if axe or whole else [])]
            found += [f"{size['width']} {scheme}: {fault}" for fault in faults]
        self.page.set_viewport_size(WIDE)
        self.page.emulate_media(color_scheme="light")
        return found

    def words(self) -> str:
        """What is read on the page."""
        return self.page.locator("main").inner_text()


@dataclass(frozen=True)
class World:
    """The workspace that is served, the machine it lives on, the address, and the browser."""

    vault: Vault
    machine: dict[str, str]
    address: str
    browser: Browser

    @contextmanager
    def visit(self, path: str = "", agent: str = "", **given: Any) -> Iterator[Visit]:
        """Somebody who comes with the token, for one agent, and goes to a path at once."""
        visit = Visit(self.browser, self.address + (f"&agent={agent}" if agent else ""), **given)
        try:
            if path:
                visit.enter()
                visit.page.goto(visit.origin + path)
            yield visit
        finally:
            visit.context.close()


@contextmanager
def served(folder: Path, furnish: Callable[[Path], Vault]) -> Iterator[World]:
    """One workspace, one server, one browser."""
    machine = {
        "HOME": str(folder / "home"),
        "XDG_CONFIG_HOME": str(folder / "home/.config"),
        "SIGNET_STATE": str(folder / "state"),
        "SIGNET_CONFIG": str(folder / "config.toml"),
    }
    with browser() as chromium:
        with pytest.MonkeyPatch.context() as here:
            for name, value in machine.items():
                here.setenv(name, value)
            vault = furnish(folder / "home" / "notes")
        command = [sys.executable, "-m", "signet_sync", "--workspace", str(vault.root), "ui", "--json", "--no-open"]
        environ = {**os.environ, **machine, "PYTHONPATH": str(ROOT), "TZ": "UTC"}
        with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                told = "".join(iter(server.stdout.readline, "}\n")) + "}"
                yield World(vault, machine, json.loads(told)["url"], chromium)
            finally:
                server.terminate()
