"""The page in a browser, as a person meets it: every view without complaint, actions by mouse and keys."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from workbench import ROOT, Vault, numbered

# Playwright takes its time to import, which only who runs these tests should pay.
if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

for needed in ("starlette", "playwright", "axe_playwright_python"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed", allow_module_level=True)

EVIL = "<script>window.__pwned=1</script><img src=x onerror=window.__pwned=2>\"'><svg/onload=window.__pwned=3>"
WIDE, NARROW = {"width": 1440, "height": 1000}, {"width": 390, "height": 844}
# One heading, and nothing that makes the page scroll sideways.
_LOOK = """() => [
  ...(document.querySelectorAll('h1').length === 1 ? [] : ['not one h1']),
  ...(document.documentElement.scrollWidth > document.documentElement.clientWidth ? ['scrolls sideways'] : []),
]"""
_QUIET = (
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
    "--disable-default-apps", "--disable-dev-shm-usage", "--disable-gpu",
)  # fmt: skip


def expect(what: Page | Locator) -> Any:
    """Playwright's assertions, which wait."""
    from playwright.sync_api import expect

    return expect(what)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Chromium without windows; skips where there is none."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("there is no browser: install chromium")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=[*root, *_QUIET])
        yield found
        found.close()


class Visit:
    """A visit to one origin; `faults` is what a visitor should never meet."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.address = address
        self.origin = "{0.scheme}://{0.netloc}".format(urlsplit(address))
        self.faults: list[str] = []
        self.asked: list[str] = []
        self.context: BrowserContext = browser.new_context(
            viewport=WIDE, reduced_motion="reduce", locale="en-GB", timezone_id="UTC"
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

    def barriers(self) -> list[str]:
        """What axe-core finds that keeps people from reading or using the page."""
        from axe_playwright_python.sync_playwright import Axe

        return [
            f"axe {one['impact']}: {one['id']}: {[node['html'][:120] for node in one['nodes'][:3]]}"
            for one in Axe().run(self.page, options={"resultTypes": ["violations"]}).response["violations"]
        ]

    def grid(self, *, whole: bool = False) -> list[str]:
        """What is wrong with it wide and light, narrow and dark; `whole`: wide and dark, narrow and light, too."""
        found = []
        looks = [(WIDE, "light"), (NARROW, "dark")] + ([(NARROW, "light"), (WIDE, "dark")] if whole else [])
        for size, scheme in looks:
            self.page.set_viewport_size(size)
            self.page.emulate_media(color_scheme=scheme)
            self.page.wait_for_selector("h1")  # an action may still lead to its page
            faults = [*self.page.evaluate(_LOOK), *self.barriers()]
            found += [f"{size['width']} {scheme}: {fault}" for fault in faults]
        self.page.set_viewport_size(WIDE)
        self.page.emulate_media(color_scheme="light")
        return found


@dataclass(frozen=True)
class World:
    """The workspace that is served, the machine it lives on, the address, and the browser."""

    vault: Vault
    machine: dict[str, str]
    address: str
    browser: Browser

    @contextmanager
    def visit(self, path: str = "") -> Iterator[Visit]:
        """Somebody who comes with the token, and goes to a path at once."""
        visit = Visit(self.browser, self.address)
        try:
            if path:
                visit.enter()
                visit.page.goto(visit.origin + path)
            yield visit
        finally:
            visit.context.close()


@contextmanager
def served(folder: Path, furnish: Callable[[Path], Vault], chromium: Browser) -> Iterator[World]:
    """One workspace and one server."""
    machine = {
        "HOME": str(folder / "home"),
        "XDG_CONFIG_HOME": str(folder / "home/.config"),
        "SIGNET_STATE": str(folder / "state"),
        "SIGNET_CONFIG": str(folder / "config.toml"),
    }
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


# ── actions ──


@pytest.fixture(scope="module")
def acted(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[World]:
    with served(tmp_path_factory.mktemp("acting"), furnish_actions, chromium) as found:
        yield found


@pytest.fixture
def acting(acted: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A small workspace; commands of a test work on the state that the server works on."""
    for name, place in acted.machine.items():
        monkeypatch.setenv(name, place)
    return acted


def furnish_actions(root: Path) -> Vault:
    """Two sessions whose summaries changed."""
    vault = Vault(root)
    for number in (1, 2):
        vault.session(number, body=f"# {number}\n\n## Decisions\n\n- Lantern keeps its word number{number}x.\n")
    vault.reindex()
    for number in (1, 2):
        place = summary(vault, number)
        place.write_text(place.read_text("utf-8").replace("keeps", "breaks"), "utf-8")
    vault.reindex()
    return vault


def summary(vault: Vault, number: int) -> Path:
    return next(vault.memory.glob(f"{numbered(number)['captured_at'].replace(':', '-')}--*--summary.md"))


def test_a_file_is_restored_by_mouse_after_a_cancel_and_one_accepted_by_keys(acting: World) -> None:
    def way(number: int, label: str) -> Locator:
        name = summary(acting.vault, number).name
        return page.locator("article", has_text=name).get_by_role("link", name=label)

    with acting.visit("/violations") as visit:
        page = visit.page
        way(1, "Restore…").click()
        assert visit.grid() == []
        page.get_by_role("link", name="Cancel").click()
        page.wait_for_url("**/violations")
        assert "breaks" in summary(acting.vault, 1).read_text("utf-8")
        way(1, "Restore…").click()
        page.get_by_role("button", name="Restore", exact=True).click()
        expect(page.get_by_role("status")).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_text("Restored")
        assert visit.grid() == [] and "keeps" in summary(acting.vault, 1).read_text("utf-8")
        page.goto(visit.origin + "/violations")
        way(2, "Accept…").focus()
        page.keyboard.press("Enter")
        page.get_by_role("textbox", name="Reason").focus()
        page.keyboard.type(f"it is right {EVIL}")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_text("Accepted")
        assert visit.faults == []


# ── every view: slow, the first of the actions is the quick one ──

# Where one goes from where one is: the view, the link to it, what its title says.
JOURNEY = (
    ("recall", 'main a[href="/recall"], main a[href^="/recall?"]', "Search"),
    ("overview", ".head .name", "Overview"),
    ("page", 'main a[href^="/page"]', "MEMORY.md"),
    ("sessions", '.views a[href^="/sessions"]', "Sessions"),
    ("session", 'main a[href^="/sessions/"]', ""),
    ("threads", '.views a[href^="/threads"]', "Threads"),
    ("node", 'main a[href^="/threads/"]', ""),
    ("violations", '.views a[href^="/violations"]', "Problems"),
    ("entities", '.views a[href^="/entities"]', "Entities"),
    ("entity", 'main a[href^="/entities/"]', ""),
    ("settings", '.foot a[href^="/settings"]', "Settings"),
    ("overview", ".head .name", "Overview"),
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[World]:
    """A workspace with everything in it."""
    with served(tmp_path_factory.mktemp("browser"), furnished, chromium) as found:
        yield found


def furnished(root: Path) -> Vault:
    """The workspace of the pictures."""
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures" / "workspace.py")
    assert spec and spec.loader
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    root.parent.mkdir(parents=True)
    pictures.furnish(str(root), datetime.now(UTC))
    return Vault(root)


def travel(visit: Visit) -> Iterator[tuple[str, str, str]]:
    """Follows links from the overview through every view, and names the one that is shown."""
    visit.enter()
    for one in JOURNEY:
        visit.click(one[1])
        yield one


@pytest.mark.slow
def test_every_view_is_reached_by_links_and_well_at_every_width_in_every_scheme(world: World) -> None:
    from signet_sync.web.app import VIEWS

    titles: dict[str, str] = {}
    with world.visit() as visit:
        for view, _, words in travel(visit):
            titles[view] = visit.page.title()
            assert words in titles[view] and titles[view].endswith(" · notes") and "token=" not in visit.page.url
            assert (faults := visit.grid(whole=True)) == [] == visit.faults, (view, faults, visit.faults)
    assert {*titles} == {name for _, name, _ in VIEWS} and len({*titles.values()}) == len(titles)
