"""What follows from old sessions waits for idle time; commands wait for all of it, and a death loses none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Vault

from signet_sync.app.workspace import opened
from signet_sync.formats.timestamps import DAY, parse_instant
from signet_sync.settings.model import Settings
from signet_sync.storage.database.connection import Database
from signet_sync.sync import deriving, engine
from signet_sync.sync.engine import run_pass, work_off
from signet_sync.sync.index_records import SESSION
from signet_sync.sync.store import passes
from signet_sync.sync.workspace import Request, Workspace

NOW_US = parse_instant(NOW) or 0


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setattr(engine, "FEW_SOURCES", 1)
    made = Vault(tmp_path / "vault")
    for number in range(1, 13):
        made.session(number)
    return made


@pytest.fixture
def workspace(vault: Vault) -> Iterator[Workspace]:
    with opened(str(vault.root), Settings()) as found:
        yield found


def request(**given: Any) -> Request:
    return Request(now_us=NOW_US, **given)


def pages(vault: Vault) -> dict[str, bytes]:
    return {str(path.relative_to(vault.root)): path.read_bytes() for path in sorted(vault.root.glob("ledger/**/*.md"))}


def test_the_page_comes_first_and_log_pages_once_nothing_waits(vault: Vault, workspace: Workspace) -> None:
    run_pass(workspace, request(since_us=NOW_US - 5 * DAY))
    assert "step number 1 bounded" in vault.page() and not pages(vault)
    assert vault.hits("bounded"), "artifacts are found at once"
    assert vault.call("status", "--json").json["backlog"] == passes.count_waiting(workspace.database) > 0
    assert "backlog" in vault.call("status").out
    for deriver in workspace.pipeline.derivers:
        assert deriving.waits(workspace.database, workspace.pipeline, deriver.name) == (SESSION in deriver.kinds)
    while work_off(workspace, request()):
        pass
    run_pass(workspace, request())
    assert vault.call("status", "--json").json["backlog"] == 0
    assert "step number 12 bounded" in "".join(page.decode() for page in pages(vault).values())
    assert vault.dump() == vault.dump_from_scratch()


def test_a_rebuild_in_idle_time_takes_no_page_away(vault: Vault, workspace: Workspace) -> None:
    vault.reindex()
    before, page = pages(vault), vault.page()
    workspace.database.execute("update derivers set version = 'older'")
    run_pass(workspace, request(since_us=NOW_US - 5 * DAY))
    assert passes.anything_waits(workspace.database) and pages(vault) == before
    while work_off(workspace, request()):
        pass
    run_pass(workspace, request())
    assert pages(vault) == before and vault.page() == page
    assert vault.dump() == vault.dump_from_scratch()


def test_a_command_finishes_what_the_agent_left(vault: Vault, workspace: Workspace) -> None:
    run_pass(workspace, request(since_us=NOW_US - 5 * DAY))
    assert passes.anything_waits(workspace.database)
    assert vault.call("remember", "Lamps need oil.").code == 0
    assert not passes.anything_waits(workspace.database)
    vault.reindex()
    assert vault.dump() == vault.dump_from_scratch()


def test_a_removal_waits_for_all_that_tells_of_the_session(vault: Vault, workspace: Workspace) -> None:
    who = vault.session(20, body="# Zanzibar\n\n## Decisions\n\n- Zanzibar is an island.\n")
    run_pass(workspace, request(since_us=NOW_US - 5 * DAY))
    token = who["summary"].split("--")[1]
    assert vault.call("remove", token, "--yes", "--reason", "asked for").code == 0
    assert not passes.anything_waits(workspace.database)
    assert "anzibar" not in repr(vault.dump())
    vault.reindex()
    assert vault.dump() == vault.dump_from_scratch()


def test_the_newest_sources_come_first_whatever_their_kind() -> None:
    database = Database(":memory:")
    rows = [
        (deriver, kind, "default", f"{number:016}", "s", passes.AT_ONCE if kind == "week" else number // 2)
        for deriver, kinds in (("graph", ("manifest", "session", "week")), ("threads", ("week",)))
        for kind in kinds
        for number in range(6 if deriver == "graph" else 9, 12)
    ]
    assert passes.list_waiting(database) == {} and passes.list_newest(database, "graph", 5) == []
    database.executemany("insert or replace into outbox values(?, ?, ?, ?, ?, ?)", rows)
    kept = database.execute("select deriver, kind, max(at_us) from outbox group by 1, 2")
    assert passes.list_waiting(database) == {(deriver, kind): at_us for deriver, kind, at_us in kept}
    for since_us, limit in ((0, 100), (0, 4), (4, 100), (passes.AT_ONCE, 2)):
        asked = (
            "select kind, agent_id, session_token, session_id from outbox where deriver = 'graph' and at_us >= ?"
            " order by at_us desc, 1, 2, 3, 4 limit ?"
        )
        assert passes.list_newest(database, "graph", limit, since_us) == list(
            database.execute(asked, (since_us, limit))
        )
