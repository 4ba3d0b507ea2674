"""What waits in the outbox for idle time: removed sessions leave it, clocks may be set, and a death loses none of it.

Where an operation is killed between two batches, or in the midst of one, is told by `test_crash_points.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import artifacts_fixture as made
import pytest
from invariants import holding
from test_engine import NOW_US, request
from workbench import Vault, numbered, sampled

from signet_sync.app.workspace import opened
from signet_sync.formats.timestamps import DAY
from signet_sync.settings.model import Settings
from signet_sync.sync import engine
from signet_sync.sync.engine import run_pass, work_off
from signet_sync.sync.store import passes
from signet_sync.sync.workspace import Request, Workspace


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setattr(engine, "FEW_SOURCES", 1)
    found = Vault(tmp_path / "vault")
    for number in range(1, 12):
        found.session(number)
    return found


@pytest.fixture
def workspace(vault: Vault) -> Iterator[Workspace]:
    with opened(str(vault.root), Settings()) as found:
        yield found


def pages(vault: Vault) -> dict[str, bytes]:
    places = [vault / "MEMORY.md", *sorted(vault.root.glob("ledger/**/*.md"))]
    return {str(place.relative_to(vault.root)): place.read_bytes() for place in places}


@pytest.mark.parametrize("since_days", [5, 400], ids=["while it waits", "when all has followed"])
def test_a_session_whose_tombstone_arrives_leaves_the_outbox_and_no_word(
    vault: Vault, workspace: Workspace, since_days: int
) -> None:
    """Another machine removed it; rows of it, of other derivers too, still wait here."""
    words = "Zanzibar keeps the spare lantern below the stairs."
    who = vault.session(12, body=f"# Zanzibar\n\n## Decisions\n\n- {words}\n", memory_sentence=f"In lantern: {words}")
    run_pass(workspace, request(since_us=NOW_US - since_days * DAY))
    token = who["summary"].split("--")[1]
    waiting = workspace.database.value("select count(*) from outbox where session_token = ?", (token,))
    assert bool(waiting) == (since_days == 5)
    vault.put(made.tombstone(session_id=numbered(12)["session_id"]), "memory/tombstones")
    run_pass(workspace, request(since_us=NOW_US - since_days * DAY))
    assert not workspace.database.value("select count(*) from outbox where session_token = ?", (token,))
    while work_off(workspace, request()):
        pass
    run_pass(workspace, request())
    assert holding(vault, [b"anzibar", b"spare lantern"]) == []
    assert vault.dump() == vault.dump_from_scratch()


@pytest.mark.parametrize("days", sampled([-400, -10, -1, 10, 400]))
def test_a_clock_that_is_set_back_or_ahead_while_sessions_wait_leaves_none_behind(
    vault: Vault, workspace: Workspace, days: int
) -> None:
    """Sessions lie in the future then, or all of them are old: each follows in the end, and pages are those of now."""
    other = NOW_US + days * DAY
    run_pass(workspace, request(since_us=NOW_US - 5 * DAY))
    vault.session(13)
    run_pass(workspace, Request(now_us=other, since_us=other - 5 * DAY))
    while work_off(workspace, Request(now_us=other)):
        pass
    run_pass(workspace, Request(now_us=other))
    assert not passes.anything_waits(workspace.database)
    run_pass(workspace, request())
    assert vault.dump() == vault.dump_from_scratch()
    after = pages(vault)
    vault.reindex("--full")
    assert pages(vault) == after
