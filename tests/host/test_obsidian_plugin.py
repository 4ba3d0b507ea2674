"""The plugin for Obsidian, which cannot run here: held to the published types, and run in a browser on a stand-in."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from browsers import browser
from playwright.sync_api import Page
from workbench import Vault

PLUGIN = files("signet_sync.host").joinpath("obsidian_plugin")
STAND_IN = Path(__file__).parents[1] / "support/obsidian_stand_in.js"
MARKUP = "The queue drains <img src=x onerror=alert(1)> at night."


@contextmanager
def machine(folder: Path) -> Iterator[None]:
    """One machine for all tests of this module, which share a vault."""
    with pytest.MonkeyPatch.context() as here:
        here.setenv("HOME", str(folder / "home"))
        here.setenv("SIGNET_STATE", str(folder / "state"))
        here.setenv("SIGNET_CONFIG", str(folder / "config.toml"))
        yield


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    """A vault in which one summary changed after it was sealed; a decision holds markup."""
    folder = tmp_path_factory.mktemp("plugin")
    found = Vault(folder / "vault")
    with machine(folder):
        for number in (1, 2):
            found.session(number, body=f"# Queue {number}\n\n## Decisions\n\n- {MARKUP}\n")
        found.reindex()
        (changed, *_) = sorted(found.memory.glob("*--summary.md"))
        changed.write_bytes(changed.read_bytes() + b"mine\n")
        assert found.reindex()["counts"]["violation"] == 1
    return found


@pytest.fixture(scope="module")
def page(vault: Vault) -> Iterator[Page]:
    """A page with the plugin loaded; what it runs is the real command line, on the vault."""
    with browser() as chromium:
        opened = chromium.new_page()
        opened.set_default_timeout(30_000)
        ran: list[list[str]] = []

        def run(program: str, words: list[str]) -> list[Any]:
            ran.append([program, *words])
            if program == "signet-sync":
                return ["ENOENT", "", ""]
            assert words[:2] == ["--workspace", "/vault"]
            with machine(vault.root.parent):
                answer = vault.call(*words[2:])
            return [answer.code, answer.out, answer.err]

        opened.expose_function("execFile", run)
        opened.expose_function("ran", lambda: ran)
        opened.set_content("<div id=note><p>text</p></div><div id=pane></div>")
        opened.add_script_tag(content=STAND_IN.read_text())
        opened.add_script_tag(content=f"(() => {{{PLUGIN.joinpath('main.js').read_text()}}})()")
        opened.evaluate("async () => { window.plugin = new module.exports(app); await plugin.onload(); }")
        yield opened


def test_the_manifest_is_of_the_published_form() -> None:
    manifest = json.loads(PLUGIN.joinpath("manifest.json").read_text())
    assert manifest.keys() == {
        "id", "name", "version", "minAppVersion", "description", "author", "isDesktopOnly",
    }  # fmt: skip
    assert (manifest["id"], manifest["isDesktopOnly"]) == ("signet-sync", True)
    assert re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"]) and manifest["description"].endswith(".")


def test_it_writes_no_html_and_starts_no_shell() -> None:
    code = PLUGIN.joinpath("main.js").read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|\beval\b|new Function|\bexec\(|spawn|shell:", code)
    assert re.findall(r"require\('([a-z_]+)'\)", code) == ["obsidian", "child_process", "os"]


@pytest.mark.system
def test_memory_is_searched_in_a_pane_and_shown_as_text(page: Page) -> None:
    page.evaluate("() => plugin.commands.search.callback()")
    page.get_by_label("Search memory").fill("--queue drains")
    page.get_by_label("Search memory").press("Enter")
    hit = page.locator(".signet-sync-hit-text", has_text="The queue drains")
    hit.first.wait_for()
    assert page.locator("#pane img").count() == 0
    page.locator("#pane a").first.click()
    (opened,) = page.evaluate("() => app.opened")
    assert opened.startswith("memory/")
    # Looked for where desktops do not look, with an argument list.
    assert page.evaluate("() => ran()")[1] == [
        "/home/ada/.local/bin/signet-sync", "--workspace", "/vault", "recall", "--json", "--", "--queue drains",
    ]  # fmt: skip


@pytest.mark.system
def test_handles_open_in_the_pane_and_errors_are_said(page: Page, vault: Vault) -> None:
    (handle, *_) = re.findall(r"\^f-[a-z0-9]+", (vault / "MEMORY.md").read_text())
    page.evaluate(
        "(handle) => { const note = document.getElementById('note');"
        " note.innerHTML = `<p>See ${handle} now. <code>${handle}</code></p>"
        "<a class=internal-link data-href='MEMORY#${handle}'>it</a>`; plugin.postProcessor(note); }",
        handle,
    )
    assert page.locator("#note p").inner_text() == f"See {handle} now. {handle}"
    assert page.locator("#note .signet-sync-handle").count() == 2
    page.locator("#note .signet-sync-handle").first.click()
    page.locator(".signet-sync-hit-text", has_text="The queue drains").wait_for()
    page.evaluate("() => plugin.open('^f-nosuchthing')")
    page.get_by_text("nothing of agent default is called").wait_for()
    line = "{getCursor: () => ({line: 0}), getLine: () => 'no handle'}"
    page.evaluate(f"() => plugin.commands['open-handle'].editorCallback({line})")
    assert page.evaluate("() => noticed") == "there is no handle in this line"


@pytest.mark.system
def test_a_changed_session_has_a_banner_and_others_have_none(page: Page, vault: Vault) -> None:
    changed, other = sorted(vault.memory.glob("*--summary.md"))
    for file, count in ((changed, 1), (changed, 1), (other, 0)):
        page.evaluate("(path) => { app.active = new MarkdownView(path); }", f"memory/{file.name}")
        page.evaluate("() => plugin.banner()")
        banner = page.get_by_role("status")
        assert banner.count() == count
        if count:
            assert "changed after it was sealed" in banner.inner_text()


@pytest.mark.slow
@pytest.mark.system
def test_its_calls_are_those_that_obsidian_publishes(tmp_path: Path) -> None:
    """https://www.npmjs.com/package/obsidian has the types of its API."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm")
    wanted = ["obsidian@1", "typescript@5", "@types/node@20"]
    done = subprocess.run(["npm", "install", "--silent", *wanted], cwd=tmp_path, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("npm cannot install the types")
    (tmp_path / "main.js").write_text(PLUGIN.joinpath("main.js").read_text())
    options = "--allowJs --checkJs --noEmit --skipLibCheck --target es2022 --module nodenext --types node".split()
    check = subprocess.run(
        ["npx", "tsc", *options, "main.js"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (check.returncode, check.stdout) == (0, "")
