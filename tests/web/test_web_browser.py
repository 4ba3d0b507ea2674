"""The page as a person meets it: a browser clicks through every view, and complains of nothing."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import artifacts_fixture as made
import pytest
from workbench import ROOT, Vault

pytest.importorskip("starlette", reason="the extra `ui` is not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
pytest.importorskip("axe_playwright_python", reason="axe is not installed: pip install axe-playwright-python")

from browsers import Visit, browser
from playwright.sync_api import Browser, Page, expect

from signet_sync.web.app import collected

# Where one goes from where one is: the view, the link to it, what its title says.
JOURNEY = (
    ("page", 'main a[href^="/page"]', "MEMORY.md"),
    ("sessions", '.views a[href^="/sessions"]', "Sessions"),
    ("session", 'main a[href^="/sessions/"]', ""),
    ("graph", '.views a[href^="/graph"]', "Graph"),
    ("node", 'main .who a[href^="/graph/"]', ""),
    ("network", 'main a[href^="/graph/network"]', "Network"),
    ("violations", '.views a[href^="/violations"]', "Problems"),
    ("violation", 'main a[href^="/violations/show"]', ""),
    ("recall", '.views a[href^="/recall"]', "Recall"),
    ("memory", 'main a[href^="/recall/"]', ""),
    ("entities", '.views a[href^="/entities"]', "Entities"),
    ("entity", 'main a[href^="/entities/"]', ""),
    ("overview", ".head .name", "Overview"),
)
EVIL = "<script>window.__pwned=1</script><img src=x onerror=window.__pwned=2>\"'><svg/onload=window.__pwned=3>"
MALLORY = {"agent_id": "mallory", "project": f"/x/{EVIL}", "harness": "codex"}


@dataclass(frozen=True)
class World:
    """The workspace that is served, the machine it lives on, the address, and the browser."""

    vault: Vault
    machine: dict[str, str]
    address: str
    browser: Browser

    @contextmanager
    def visit(self, agent: str = "", **given: Any) -> Iterator[Visit]:
        """Somebody who comes with the token, and for one agent."""
        visit = Visit(self.browser, self.address + (f"&agent={agent}" if agent else ""), **given)
        try:
            yield visit
        finally:
            visit.context.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One workspace with everything in it, one server, one browser."""
    folder = tmp_path_factory.mktemp("browser")
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
            vault = furnished(folder / "home" / "notes")
        with process(vault, machine, "ui", "--json", "--no-open") as server:
            assert server.stdout is not None
            told = "".join(iter(server.stdout.readline, "}\n")) + "}"
            yield World(vault, machine, json.loads(told)["url"], chromium)


@contextmanager
def process(vault: Vault, machine: dict[str, str], *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command that serves until it is told to end."""
    command = [sys.executable, "-m", "signet_sync", "--workspace", str(vault.root), *words]
    environ = {**os.environ, **machine, "PYTHONPATH": str(ROOT), "TZ": "UTC"}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.terminate()


def furnished(root: Path) -> Vault:
    """The workspace of the pictures, and an agent whose every word is an attack."""
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures" / "workspace.py")
    assert spec and spec.loader
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    root.parent.mkdir(parents=True)
    pictures.furnish(str(root), datetime.now(UTC))
    vault = Vault(root)
    paths = vault.session(
        1,
        **MALLORY,
        session_key=EVIL,
        body=f"# {EVIL}\n\n## Decisions\n\n- Keep {EVIL} [go](javascript:window.__pwned=4) in src/queue.py\n",
        memory_sentence=f"In {EVIL} step one bounded the retry loop of src/queue.py so that it always ends.",
    )
    vault.put(made.transcript(**MALLORY, session_id="5e5510ee-0000-4000-8000-000000000001", body=f"User: {EVIL}\n"))
    vault.put({"<img src=x onerror=window.__pwned=5>.md": EVIL.encode()})
    for command in (
        ("reindex",),
        ("remember", f"Remember {EVIL}", "--tag", "lantern", "--agent", "mallory"),
        ("recall", f"remember {EVIL}", "--agent", "mallory"),
        ("entity", "create", "part", f"Part {EVIL}", "--agent", "mallory"),
    ):
        answer = vault.call(*command)
        assert answer.code in (0, 1), answer
    summary = vault / paths["summary"]
    summary.write_text(summary.read_text("utf-8").replace("Keep", f"Drop {EVIL}"), "utf-8")
    assert vault.call("reindex").code == 0
    return vault


def travel(visit: Visit) -> Iterator[str]:
    """Follows links from the overview through every view, and names the one that is shown."""
    visit.enter()
    for view, link, _ in JOURNEY:
        visit.click(link)
        yield view


# ── every view ──


class Shown(NamedTuple):
    """A view as it was shown: where, its title, what is read on it, what is wrong with it."""

    url: str
    title: str
    words: str
    faults: list[str]


@pytest.fixture(scope="module")
def shown(world: World) -> dict[str, Shown]:
    """Every view, looked at once."""
    found = {}
    with world.visit() as visit:
        for view in travel(visit):
            words = visit.words()
            faults = [*(visit.grid(axe=True) if view == "session" else ()), *visit.faults]
            found[view] = Shown(visit.page.url, visit.page.title(), words, faults)
            visit.faults.clear()
    return found


def test_every_view_is_reached_by_links_and_has_nothing_to_complain_of(shown: dict[str, Shown]) -> None:
    assert {*shown} == {name for _, name, _ in collected()} - {"choices"}  # a list beside a field
    assert [one for one in shown.values() if one.faults] == []
    assert len({one.title for one in shown.values()}) == len(shown)
    for view, _, words in JOURNEY:
        assert words in shown[view].title and shown[view].title.endswith(" · notes")
        assert "token=" not in shown[view].url


@pytest.mark.slow
def test_every_view_is_well_at_every_width_in_every_scheme(world: World) -> None:
    for agent in ("", "mallory"):
        with world.visit(agent) as visit:
            for view in travel(visit):
                assert (faults := visit.grid(whole=True)) == [] == visit.faults, (view, faults, visit.faults)


@pytest.mark.slow
def test_without_scripts_every_view_shows_the_same(world: World, shown: dict[str, Shown]) -> None:
    def lasting(words: str) -> str:
        dropped = r"Copy|just now|\d+ \w+ ago|Drag over the bars to choose days|or drag over the calendar"
        return " ".join(re.sub(rf"\b({dropped})\b", "", words).split())

    with world.visit(java_script_enabled=False) as visit:
        for view in travel(visit):
            with_scripts, without = lasting(shown[view].words), lasting(visit.words())
            assert with_scripts.endswith(without.partition("The same as a list")[2]), view
            assert view == "network" or without == with_scripts, view
        assert visit.faults == []


@pytest.mark.slow
def test_what_files_say_is_text_and_never_runs(world: World) -> None:
    with world.visit("mallory") as visit:
        for view in travel(visit):
            assert visit.page.evaluate("window.__pwned") is None and len(visit.page.frames) == 1, view
            assert "__pwned" in visit.page.locator("body").inner_text(), view
            assert "agent=mallory" in visit.page.url, view
        for path in (f"/sessions?q={EVIL}&from={EVIL}", f"/graph?q={EVIL}", f"/?agent={EVIL}"):
            visit.page.goto(visit.origin + path)
            assert visit.page.evaluate("window.__pwned") is None
        # An agent that is none is not found; else nothing happened.
        unknown = [fault for fault in visit.faults if "404" in fault]
        assert len(unknown) == 2 and visit.faults == unknown, visit.faults


# ── what a person does ──


def focused(page: Page, what: str) -> Any:
    """Something of the element that has the focus."""
    return page.evaluate(f"(() => {{ const at = document.activeElement; return {what}; }})()")


@pytest.mark.slow
def test_keys_lead_through_the_page_and_the_focus_is_seen(world: World) -> None:
    with world.visit() as visit:
        page = visit.enter()
        expect(page.locator(".foot")).to_contain_text("~/notes")
        page.keyboard.press("Tab")
        skip = page.get_by_role("link", name="Skip to the content")
        expect(skip).to_be_focused()
        expect(skip).to_be_in_viewport()
        for _ in range(12):
            assert focused(page, "getComputedStyle(at).outlineStyle") != "none", focused(page, "at.outerHTML")
            page.keyboard.press("Tab")
        skip.focus()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        assert visit.look() == []
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
        page.keyboard.press("/")
        field = page.get_by_role("combobox", name="Recall")
        expect(field).to_be_focused()
        page.keyboard.type("gs?/")
        expect(field).to_have_value("gs?/")
        page.get_by_role("heading", level=1).click()
        for key, view in (("g", "/graph"), ("s", "/sessions")):
            page.keyboard.press("g")
            page.keyboard.press(key)
            page.wait_for_url(f"**{view}")
        assert visit.faults == []


@pytest.mark.slow
def test_searching_while_one_types_narrows_the_list_and_back_leads_back(world: World) -> None:
    with world.visit() as visit:
        visit.enter()
        visit.click('.views a[href^="/sessions"]')
        page, shown = visit.page, visit.page.locator("#found .session:has(.at)")
        every, field = shown.count(), visit.page.locator("main").get_by_role("searchbox")
        field.press_sequentially("priya")
        expect(page.locator("[data-tally]")).to_have_text(re.compile(r"^\s*\d session"))
        assert 0 < shown.count() < every and page.url.endswith("/sessions?q=priya")
        expect(page.locator("#found mark").first).to_have_text(re.compile("priya", re.IGNORECASE))
        expect(field).to_be_focused()
        page.go_back()
        expect(shown).to_have_count(every)
        expect(field).to_have_value("")
        assert visit.faults == []


@pytest.mark.slow
def test_answers_come_while_one_types_and_arrows_lead_to_them(world: World) -> None:
    with world.visit() as visit:
        page = visit.enter()
        page.keyboard.press("/")
        page.keyboard.type("millimetres")
        field, options = page.get_by_role("combobox", name="Recall"), page.locator("#find-choices [role=option]")
        expect(options.first).to_contain_text("Priya counts in millimetres")
        assert visit.grid(axe=True) == []
        page.keyboard.press("ArrowUp")
        expect(options.last).to_have_attribute("aria-selected", "true")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        expect(options.first).to_have_attribute("aria-selected", "true")
        assert field.get_attribute("aria-activedescendant") == options.first.get_attribute("id")
        page.keyboard.press("Escape")
        expect(options.first).to_be_hidden()
        expect(field).to_have_value("millimetres")
        page.keyboard.press("ArrowDown")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        expect(page.locator("blockquote.words")).to_have_text("Priya counts in millimetres, never in inches")
        with page.expect_navigation():
            page.get_by_role("combobox", name="Recall").fill("who reviews lantern")
            page.keyboard.press("Enter")
        expect(page.locator(".answers li").first).to_contain_text("Jo")
        assert visit.faults == []


@pytest.mark.slow
def test_a_change_reaches_the_page_and_disturbs_neither_field_nor_list(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in world.machine.items():
        monkeypatch.setenv(name, value)
    with world.visit("scribe") as visit:
        assert world.vault.call("remember", "Ink dries in a minute", "--agent", "scribe").code == 0
        page = visit.enter()
        with page.expect_event("request", lambda one: "/events" in one.url):
            page.goto(f"{visit.origin}/recall?agent=scribe")
        number = page.locator(".numbers dd").first
        expect(number).to_have_text("1")
        page.keyboard.press("/")
        page.keyboard.type("ink")
        options = page.locator("#find-choices [role=option]")
        expect(options).to_have_count(1)
        page.keyboard.press("ArrowDown")
        assert world.vault.call("remember", "Paper comes on Mondays", "--agent", "scribe").code == 0
        expect(number).to_have_text("2", timeout=30_000)
        expect(options.first).to_have_attribute("aria-selected", "true")
        expect(page.get_by_role("combobox", name="Recall")).to_be_focused()
        # What is typed within the view waits for its end.
        field = page.locator("main").get_by_role("searchbox")
        field.fill("paper")
        assert world.vault.call("remember", "Pens are in the drawer", "--agent", "scribe").code == 0
        page.wait_for_timeout(3_000)
        expect(field).to_have_value("paper")
        expect(number).to_have_text("2")
        assert visit.faults == []


@pytest.mark.slow
def test_the_palette_leads_anywhere_and_copies_commands(world: World) -> None:
    with world.visit() as visit:
        visit.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=visit.origin)
        page = visit.enter()
        page.keyboard.press("Control+k")
        palette = page.get_by_role("dialog", name="Go to")
        expect(palette.get_by_role("option", name="Overview")).to_have_attribute("aria-selected", "true")
        assert visit.grid(axe=True) == []
        page.keyboard.type("check all")
        palette.get_by_role("option", name="Check all files").click()
        expect(palette).to_be_hidden()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("signet-sync") and copied.endswith(" check")
        page.keyboard.press("Control+k")
        page.keyboard.type("mira")
        expect(palette.get_by_role("option").first).to_contain_text("Mira")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Mira")
        # One Escape closes it, whatever is typed; the next key is for the page again.
        page.keyboard.press("Control+k")
        page.keyboard.type("remember")
        expect(palette.get_by_role("option", name="Remember something…")).to_be_visible()
        page.keyboard.press("Escape")
        expect(palette).to_be_hidden()
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        assert visit.faults == []


@pytest.mark.slow
def test_by_touch_a_button_opens_the_palette_and_fields_choose_the_days(world: World) -> None:
    with world.visit(has_touch=True, is_mobile=True) as visit:
        visit.page.set_viewport_size({"width": 390, "height": 844})
        page = visit.enter()
        for name in ("From", "To"):
            expect(page.locator(".days").get_by_label(name, exact=True)).to_be_visible()
        expect(page.get_by_text("or tap a day of the calendar")).to_be_visible()
        page.get_by_role("button", name="Go to").first.tap()
        page.keyboard.type("remember")
        with page.expect_navigation():
            page.get_by_role("option", name="Remember something…").tap()
        assert page.url.endswith("/do/remember") and visit.faults == []
        page.goto(f"{visit.origin}/sessions")
        expect(page.get_by_text("Choose days with From and To")).to_be_visible()


@pytest.mark.slow
def test_dragging_over_the_bars_chooses_days_and_so_does_the_calendar(world: World) -> None:
    def drag(first: Any, last: Any) -> None:
        for place, press in ((first, page.mouse.down), (last, page.mouse.up)):
            box = place.bounding_box()
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
            press()

    with world.visit() as visit:
        page = visit.enter()
        squares = page.locator(".days [data-from]")
        given = [squares.nth(squares.count() - 20), squares.nth(squares.count() - 5)]
        days = [one.get_attribute("data-from") for one in given]
        with page.expect_navigation():
            drag(*reversed(given))
        assert page.url.endswith(f"/sessions?from={days[0]}&to={days[1]}")
        page.evaluate("window.stayed = true")
        bars = page.locator(".timeline [data-from]")
        one = bars.nth(bars.count() - 2)
        drag(one.locator(".ground"), bars.last.locator(".ground"))
        page.wait_for_url(f"**/sessions?from={one.get_attribute('data-from')}&to={bars.last.get_attribute('data-to')}")
        expect(page.locator(".timeline [data-from]:not(.outside)")).to_have_count(2)
        page.get_by_label("To", exact=True).fill(one.get_attribute("data-to") or "")
        expect(page.locator(".timeline [data-from]:not(.outside)")).to_have_count(1)
        assert page.evaluate("window.stayed") and visit.faults == []


@pytest.mark.slow
def test_the_network_grows_from_picture_and_list_within_the_page(world: World) -> None:
    with world.visit() as visit:
        page = visit.enter()
        page.goto(f"{visit.origin}/graph/network")
        items = page.locator("#nodes li")
        before = items.count()
        page.evaluate("window.stayed = true")
        page.get_by_role("link", name=re.compile("neighbours of lantern")).first.focus()
        page.keyboard.press("Enter")
        expect(page.locator(".chosen")).to_contain_text("added")
        assert items.count() > before and page.evaluate("window.stayed")
        assert page.locator("style").count() == 0 and visit.grid(axe=True) == [] == visit.faults


@pytest.mark.slow
def test_a_session_that_ends_stands_on_the_open_page_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in world.machine.items():
        monkeypatch.setenv(name, value)
    with world.visit("researcher") as visit:
        page = visit.enter()
        heading = page.get_by_role("heading", level=1)
        before = int(heading.inner_text().split()[0])
        with page.expect_event("request", lambda one: "/events" in one.url):
            page.reload()
        page.evaluate("window.stayed = true")
        page.locator(".days summary").click()
        given = world.vault.root.parent / "ended.json"
        said = {"session_id": "live-1", "agent_id": "researcher", "transcript": "User: Does it stand there at once?\n"}
        given.write_text(json.dumps(said))
        assert world.vault.call("session", "end", "--input", str(given)).code == 0
        expect(heading).to_contain_text(f"{before + 1} sessions", timeout=30_000)
        assert page.evaluate("window.stayed") and page.locator(".days details").get_attribute("open") is not None
        assert visit.faults == []


@pytest.mark.slow
def test_an_open_page_follows_the_agent_that_runs(world: World) -> None:
    with world.visit() as visit:
        badge = visit.enter().locator(".head .badge")
        expect(badge).to_have_text("Agent: stopped")
        visit.page.evaluate("window.stayed = true")
        with process(world.vault, world.machine, "run"):
            expect(badge).to_have_text("Agent: watching", timeout=60_000)
            world.vault.session(9)
            expect(visit.page.locator("main")).to_contain_text("14 sessions", timeout=60_000)
        expect(badge).to_have_text("Agent: stopped", timeout=60_000)
        assert visit.page.evaluate("window.stayed") and visit.faults == []
