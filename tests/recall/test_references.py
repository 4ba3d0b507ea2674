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

from benchmarks import corpus
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


def follow_handle(vault: Vault, database: Database, agent: str, handle: str) -> None:
    """What a handle leads to says something, and the files that it names are there; `test_expand` follows the rest."""
    document = expand(database, agent, handle)
    transcript = document["transcript"] or {"excerpt": "", "path": None}
    assert (document["node"]["text"] + transcript["excerpt"]).strip(), handle
    for path in filter(None, (document["node"].get("path"), transcript["path"])):
        assert (vault / path).is_file(), (handle, path)


def follow(vault: Vault, database: Database, agent: str, line: str) -> None:
    """One line of a page: by its handle, else by its links."""
    handle = HANDLE.search(line)
    links = targets(line)
    assert handle or links or "no in-window sessions" in line, line
    for link in links:
        assert (vault / link).is_file(), link
    if handle:
        follow_handle(vault, database, agent, handle[1])
    for link in links:
        if link.startswith("memory/"):
            follow_handle(vault, database, agent, f"[[{link}]]")
        else:
            follow_page(vault, database, agent, link, set())


def follow_page(vault: Vault, database: Database, agent: str, page: str, seen: set[str]) -> None:
    """A ledger page leads on to days, and they to sessions."""
    if page in seen:
        return
    seen.add(page)
    for line in lines_of(vault.page(page)):
        for link in targets(line):
            if link.startswith("memory/"):
                follow_handle(vault, database, agent, link)
            else:
                follow_page(vault, database, agent, link, seen)


def follow_all(vault: Vault) -> int:
    """Follows every line of every agent's page; gives how many handles there were."""
    count = 0
    with vault.database() as database:
        for agent in counts.agents(database):
            lines = lines_of(vault.page(head_page(agent)))
            handles = [found[1] for line in lines if (found := HANDLE.search(line))]
            assert len(set(handles)) == len(handles), "a block id stands once on a page"
            for line in lines:
                follow(vault, database, agent, line)
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
        follow(vault, database, "default", line)
    return told


def test_every_line_of_the_demo_and_its_contexts_even_after_a_rebuild(tmp_path: Path) -> None:
    assert call("demo", tmp_path / "demo", "--yes").code == 0
    vault, now = Vault(tmp_path / "demo"), iso(time_ns() // 1_000)
    told = []
    for words in ((), ("--full",)):
        vault.reindex(*words, now=now)
        with vault.database() as database:
            told.append([vault.page(), *contexts_of(vault, database, now)])
    assert follow_all(vault) > 20 and len(told[0]) == 4
    assert told[0] == told[1]


@pytest.mark.slow
def test_every_line_of_a_real_vault(vault: Vault) -> None:
    if not SHARED.is_dir():
        pytest.skip("the reference folder is not beside this checkout")
    shutil.copytree(SHARED / "memory", vault.memory, dirs_exist_ok=True)
    vault.reindex()
    assert follow_all(vault) > 20


def test_every_line_of_a_small_vault(vault: Vault) -> None:
    for agent in AGENTS:
        fill(vault, agent)
    vault.reindex()
    assert vault.call("remember", "The lens is ground on Thursdays.", "--type", "decision").code == 0
    assert vault.call("remember", "The lamp belongs to Jo.", "--type", "person", "--session", SUMMARY_ONLY).code == 0
    pinned = vault.rows("select id from session_summaries where agent_id = 'default' and depth = 1 limit 1")[0][0]
    assert vault.call("pin", pinned).code == 0
    vault.reindex()
    page = vault.page()
    assert "ground on Thursdays" in page and f"^{pinned[:8]}" in page
    assert follow_all(vault) > 15


def test_every_line_of_a_clipped_page(vault: Vault) -> None:
    corpus.write_corpus(vault.root, 60, per_day=6, agents=1)
    assert vault.reindex()["agents"]["default"]["rows_clipped"]
    assert follow_all(vault) > 20
