"""Actions as a person meets them: in a browser, by mouse and keys, with and without scripts, twice, late."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Vault, numbered

pytest.importorskip("starlette", reason="the extra `ui` is not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")

from browsers import World, served
from playwright.sync_api import Locator, Page, expect

from signet_sync.app.workspace import opened
from signet_sync.entities import operations
from signet_sync.formats.timestamps import parse_instant
from signet_sync.settings.model import Settings

NOW_US = parse_instant(NOW) or 0
EVIL = "<script>window.__pwned=1</script><img src=x onerror=window.__pwned=2>\"'>"
SAID = "the harbour office counts every crate twice before the night ferry leaves for the islands in the north"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A small workspace; each test acts on something of its own."""
    with served(tmp_path_factory.mktemp("acting"), furnished) as found:
        yield found


@pytest.fixture(autouse=True)
def on_its_machine(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of the tests work on the state that the server works on."""
    for name, place in world.machine.items():
        monkeypatch.setenv(name, place)


def furnished(root: Path) -> Vault:
    """Eight sessions, of which the first four summaries changed; an entity with two proposals."""
    vault = Vault(root)
    for number in range(1, 9):
        body = f"# Session {number}\n\n## Decisions\n\n- Lantern keeps its word number{number}x.\n"
        vault.session(number, body=body + (f"\nJo says that {SAID}.\n" if number in (5, 6) else ""))
    vault.reindex()
    with opened(str(vault.root), Settings()) as workspace:
        jo = operations.create(workspace, "default", "user", f"Jo {EVIL}", now_us=NOW_US).id
        operations.set_section(workspace, "default", jo, "preferences", "Prose.", now_us=NOW_US)
        operations.guard("pin", workspace, "default", jo, now_us=NOW_US)
        for section in ("preferences", "goals"):
            operations.set_section(workspace, "default", jo, section, f"Tables {EVIL}", propose=True, now_us=NOW_US)
    for number in range(1, 5):
        spoil(vault, number)
    vault.reindex()
    return vault


def summary(vault: Vault, number: int) -> Path:
    return next(vault.memory.glob(f"{numbered(number)['captured_at'].replace(':', '-')}--*--summary.md"))


def spoil(vault: Vault, number: int, word: str = "breaks") -> None:
    place = summary(vault, number)
    place.write_text(place.read_text("utf-8").replace("keeps", word).replace("breaks", word), "utf-8")


def confirmed(page: Page, button: str) -> None:
    """Confirms what is shown, and waits for the result."""
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.get_by_role("status")).to_be_visible()


def test_a_file_is_restored_by_mouse_after_a_cancel_and_one_accepted_by_keys(world: World) -> None:
    def way(number: int, label: str) -> Locator:
        name = summary(world.vault, number).name
        return page.locator("article", has_text=name).get_by_role("link", name=label)

    with world.visit("/violations") as visit:
        page = visit.page
        way(1, "Restore…").click()
        assert visit.grid(axe=True) == []
        page.get_by_role("link", name="Cancel").click()
        page.wait_for_url("**/violations")
        assert "breaks" in summary(world.vault, 1).read_text("utf-8")
        way(1, "Restore…").click()
        confirmed(page, "Restore")
        expect(page.get_by_role("heading", level=1)).to_have_text("Restored 1 file")
        assert visit.grid(axe=True) == [] and "keeps" in summary(world.vault, 1).read_text("utf-8")
        page.goto(visit.origin + "/violations")
        way(2, "Accept…").focus()
        page.keyboard.press("Enter")
        page.get_by_role("textbox", name="Reason").focus()
        page.keyboard.type(f"it is right {EVIL}")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_text("Accepted 1 file")
        assert visit.faults == []
    log = world.vault.state / "logs" / "ui.log"
    assert oct(log.stat().st_mode)[-3:] == "600" and oct(log.parent.stat().st_mode)[-3:] == "700"
    assert f"INFO accept memory/{summary(world.vault, 2).name} of default: done\n" in log.read_text("utf-8")
    assert EVIL not in log.read_text("utf-8") and "restore" in world.vault.call("logs", "ui").out


@pytest.mark.slow
def test_a_double_click_remembers_once_and_the_memory_is_pinned_and_forgotten(world: World) -> None:
    with world.visit("/recall") as visit:
        page = visit.page
        page.get_by_role("link", name="Remember something…").click()
        assert visit.grid(axe=True) == []
        page.get_by_role("textbox", name="What to remember").fill(f"Double {EVIL}")
        page.get_by_role("radio", name="decision").check()
        page.get_by_role("textbox", name="Tags").fill("ferry, crates")
        page.get_by_role("button", name="Remember", exact=True).dblclick(no_wait_after=True)
        expect(page.get_by_role("status")).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_text("Remembered")
        assert len(world.vault.rows("select id from memories")) == 1
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("Remembered")
        for action, button in (("Pin…", "Pin it"), ("Unpin…", "Remove the pin")):
            page.get_by_role("link", name="The memory").click()
            page.get_by_role("link", name=action).click()
            assert visit.grid(axe=True) == []
            confirmed(page, button)
            expect(page.get_by_role("heading", level=1)).to_have_text("Noted")
        page.get_by_role("link", name="The memory").click()
        page.get_by_role("link", name="Forget…").click()
        expect(page.locator("main")).to_contain_text(f"Double {EVIL}")
        confirmed(page, "Forget it for good")
        assert world.vault.rows("select id from memories") == []
        assert page.evaluate("window.__pwned") is None
        assert [fault for fault in visit.faults if "ERR_ABORTED" not in fault] == []


@pytest.mark.slow
def test_proposals_are_approved_and_rejected_without_scripts(world: World) -> None:
    with world.visit("/entities", java_script_enabled=False) as visit:
        page = visit.page
        page.locator("main h3 a").click()
        page.get_by_role("link", name="Approve…").first.click()
        expect(page.locator("main")).to_contain_text(f"Tables {EVIL}")
        confirmed(page, "Approve")
        page.get_by_role("link", name="The entity").click()
        page.get_by_role("link", name="Reject…").click()
        page.get_by_role("textbox", name="Reason").fill("not so")
        confirmed(page, "Reject")
        page.get_by_role("link", name="The entity").click()
        expect(page.get_by_role("link", name="Approve…")).to_have_count(0)
        expect(page.locator("main")).to_contain_text("not so")
        assert visit.faults == []


@pytest.mark.slow
def test_another_page_of_this_machine_cannot_act(world: World) -> None:
    """A form at another port comes with the strict cookie, because ports are one site, and is refused."""
    with world.visit("/do/remember") as visit:
        hidden = {
            str(one.get_attribute("name")): str(one.get_attribute("value"))
            for one in visit.page.locator("input[type=hidden]").all()
        }
        fields = "".join(
            f'<input name="{name}" value="{value}">'
            for name, value in (hidden | {"text": "Forged", "type": "note"}).items()
        )
        body = f'<form method="post" action="{visit.origin}/do/remember">{fields}<button>Go</button></form>'.encode()

        class Other(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        with HTTPServer(("127.0.0.1", 0), Other) as other:
            threading.Thread(target=other.serve_forever, daemon=True).start()
            page = visit.context.new_page()
            page.goto(f"http://127.0.0.1:{other.server_port}/")
            page.get_by_role("button", name="Go").click()
            expect(page.locator("body")).to_contain_text("The request came from another page.")
            other.shutdown()
        assert world.vault.rows("select count(*) from memories where content = 'Forged'") == [(0,)]
