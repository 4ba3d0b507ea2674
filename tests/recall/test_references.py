"""Every line of every MEMORY.md and context leads to its words, by its handle or (in the ledger) by its links.

No line dangles: what it names is there and says something.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from time import time_ns

import pytest
from sample_graph import AGENTS, SUMMARY_ONLY, fill
from workbench import Vault, call

from signet_sync.formats.paths import head_page, targets
from signet_sync.formats.timestamps import iso
from signet_sync.recall.expand import expand
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import counts

SHARED = Path(__file__).resolve().parents[3] / "shared" / "vaults" / "signet-small"
HANDLE = re.compile(r" (\^(?:m-[a-z2-7]{12}|[a-z]-[a-z2-7]{6}))$")


def lines_of(page: str) -> list[str]:
    """The bullet lines of the generated block."""
    block = page.partition("<!-- signet:begin -->")[2].partition("<!-- signet:end")[0]
    return [line for line in block.split("\n") if line.startswith("- ")]


def follow(vault: Vault, database: Database, agent: str, line: str, seen: set[str]) -> None:
    """One line of a page by its handle and its links: what they lead to says something, files that it names are there.

    A page of the session log leads on to days, and they to sessions. `test_expand` follows the rest.
    """
    handle, links = HANDLE.search(line), targets(line)
    assert handle or links or "no in-window sessions" in line, line
    for link in links:
        assert (vault / link).is_file(), link
        if not link.startswith("memory/") and link not in seen:
            seen.add(link)
            for below in lines_of(vault.page(link)):
                follow(vault, database, agent, below, seen)
    artifacts = [f"[[{link}]]" for link in links if link.startswith("memory/")]
    for one in ([handle[1]] if handle else []) + artifacts:
        document = expand(database, agent, one)
        transcript = document["transcript"] or {"excerpt": "", "path": None}
        # A summary without a word is told by its label.
        assert (document["node"]["text"] + transcript["excerpt"] + document["node"].get("label", "")).strip(), one
        for path in filter(None, (document["node"].get("path"), transcript["path"])):
            assert (vault / path).is_file(), (one, path)


def follow_all(vault: Vault) -> int:
    """Follows every line of every agent's page; gives how many handles there were."""
    count, seen = 0, set[str]()
    with vault.database() as database:
        for agent in counts.agents(database):
            lines = lines_of(vault.page(head_page(agent)))
            handles = [found[1] for line in lines if (found := HANDLE.search(line))]
            assert len(set(handles)) == len(handles), "a block id stands once on a page"
            for line in lines:
                follow(vault, database, agent, line, seen)
            count += len(handles)
    return count


def contexts_of(vault: Vault, database: Database, now: str) -> list[str]:
    """The context of each project of the demo's agent; every line of them is followed."""
    projects = [
        row[0]
        for row in database.execute(
            "select distinct project from thread_sessions t join memory_artifacts"
            " using (agent_id, session_token, session_id) where project is not null order by 1"
        )
    ]
    told = [vault.call("context", "--project", project, "--now", now).out for project in projects]
    for line in (line for text in told for line in text.split("\n") if line.startswith("- ")):
        assert HANDLE.search(line), line
        follow(vault, database, "default", line, set())
    return told


def test_every_line_of_the_demo_and_its_contexts(tmp_path: Path) -> None:
    assert call("demo", tmp_path / "demo", "--yes").code == 0
    vault = Vault(tmp_path / "demo")
    with vault.database() as database:
        assert len(contexts_of(vault, database, iso(time_ns() // 1_000))) == 3
    assert follow_all(vault) > 20


@pytest.mark.slow
def test_every_line_of_a_real_vault(vault: Vault) -> None:
    if not SHARED.is_dir():
        pytest.skip("the reference folder is not beside this checkout")
    shutil.copytree(SHARED / "memory", vault.memory, dirs_exist_ok=True)
    vault.reindex()
    assert follow_all(vault) > 20


def test_every_line_of_a_clipped_page(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNET_PROJECTION_BUDGET_TOKENS", "600")
    for agent in AGENTS:
        fill(vault, agent)
    for number in range(1, 16):
        vault.session(number)
    vault.reindex()
    assert vault.call("remember", "The lens is ground on Thursdays.", "--type", "decision").code == 0
    assert vault.call("remember", "The lamp belongs to Jo.", "--type", "person", "--session", SUMMARY_ONLY).code == 0
    pinned = vault.rows("select thread_id from memory_thread_heads where agent_id = 'default' limit 1")[0][0]
    assert vault.call("pin", pinned).code == 0
    assert vault.reindex("--full")["agents"]["default"]["rows_clipped"] and f"^{pinned[:8]}" in vault.page()
    assert follow_all(vault) > 5
