"""The page as a person meets it: a browser clicks through every view, and complains of nothing."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import artifacts_fixture as made
import pytest
from workbench import ROOT, Vault

pytest.importorskip("starlette", reason="the extra `ui` is not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
pytest.importorskip("axe_playwright_python", reason="axe is not installed: pip install axe-playwright-python")

from browsers import Visit, World, served
from playwright.sync_api import Page, expect

from signet_sync.web.app import VIEWS

pytestmark = pytest.mark.slow  # `test_web_actions_browser` has the quick one

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
EVIL = "<script>window.__pwned=1</script><img src=x onerror=window.__pwned=2>\"'><svg/onload=window.__pwned=3>"
MALLORY = {"agent_id": "mallory", "project": f"/x/{EVIL}", "harness": "codex"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A workspace with everything in it."""
    with served(tmp_path_factory.mktemp("browser"), furnished) as found:
        yield found


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
    assert {*shown} == {name for _, name, _ in VIEWS}
    assert [one for one in shown.values() if one.faults] == []
    assert len({one.title for one in shown.values()}) == len(shown)
    for view, _, words in JOURNEY:
        assert words in shown[view].title and shown[view].title.endswith(" · notes")
        assert "token=" not in shown[view].url


def test_every_view_is_well_at_every_width_in_every_scheme(world: World) -> None:
    for agent in ("", "mallory"):
        with world.visit(agent=agent) as visit:
            for view in travel(visit):
                assert (faults := visit.grid(whole=True)) == [] == visit.faults, (view, faults, visit.faults)


def test_without_scripts_every_view_shows_the_same(world: World, shown: dict[str, Shown]) -> None:
    def lasting(words: str) -> str:
        dropped = r"Copy|just now|\d+ \w+ ago"
        return " ".join(re.sub(rf"\b({dropped})\b", "", words).split())

    with world.visit(java_script_enabled=False) as visit:
        for view in travel(visit):
            assert lasting(visit.words()) == lasting(shown[view].words), view
        assert visit.faults == []


def test_what_files_say_is_text_and_never_runs(world: World) -> None:
    with world.visit(agent="mallory") as visit:
        for view in travel(visit):
            assert visit.page.evaluate("window.__pwned") is None and len(visit.page.frames) == 1, view
            assert view == "settings" or "__pwned" in visit.page.locator("body").inner_text(), view
            assert "agent=mallory" in visit.page.url, view
        for path in (f"/sessions?q={EVIL}&from={EVIL}", f"/threads?q={EVIL}", f"/?agent={EVIL}"):
            visit.page.goto(visit.origin + path)
            assert visit.page.evaluate("window.__pwned") is None
        # An agent that is none is not found; else nothing happened.
        unknown = [fault for fault in visit.faults if "404" in fault]
        assert len(unknown) == 2 and visit.faults == unknown, visit.faults


# ── what a person does ──


def focused(page: Page, what: str) -> Any:
    """Something of the element that has the focus."""
    return page.evaluate(f"(() => {{ const at = document.activeElement; return {what}; }})()")


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
        assert visit.faults == []


def test_commands_are_copied(world: World) -> None:
    with world.visit() as visit:
        visit.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=visit.origin)
        page = visit.enter()
        button = page.get_by_role("button", name=re.compile("^Copy: ")).first
        button.click()
        expect(button).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()").startswith("signet-sync")
        assert visit.faults == []
