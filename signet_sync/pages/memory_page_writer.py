"""Composes MEMORY.md from rows and writes it under the page lease, only if its bytes differ."""

from __future__ import annotations

from signet_sync.formats import managed_block
from signet_sync.formats.body import text_sha256
from signet_sync.formats.paths import SETTINGS, head_page
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.formats.timestamps import DAY
from signet_sync.memories.score import day_start
from signet_sync.pages import page_files, sections
from signet_sync.pages.board import Line
from signet_sync.pages.conflict_copies import keep_copy
from signet_sync.pages.memory_page import LEAST_ROW, Projection, Rendered, render, shares, window
from signet_sync.pages.others import lines_of_rows
from signet_sync.pages.page_files import PageLease
from signet_sync.pages.session_log import add_headless
from signet_sync.pages.store import candidates as candidates_store
from signet_sync.pages.store import pages
from signet_sync.pages.store.project_inputs import warnings
from signet_sync.settings import model
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.sync.manifests import follow_page
from signet_sync.sync.store import counts as counts_store
from signet_sync.sync.workspace import PageOutcome, Pass, Workspace

INDEX_MONTHS = 24


def update(run: Pass, agent_id: str, halted: str) -> None:
    """Makes an agent's MEMORY.md, and the manifests that depend on it, equal to the rows; records it in the outcome.

    `halted` is why passes are halted, or "": then the page only says so, and is not created.
    """
    workspace, database, outcome = run.workspace, run.database, run.outcome
    path, at_us = head_page(agent_id), run.request.now_us
    rendered, in_window, next_us = compose(workspace, agent_id, at_us, halted)
    page = PageOutcome(path, False, in_window, rendered.rows, rendered.clipped, rendered.tokens)
    outcome.pages[agent_id] = page
    if outcome.held:
        # Signet's daemon writes this page; a removal must not wait for that.
        ours = None if halted else page_files.block_of_ours(workspace.root, path)
        if ours is not None and page_files.shows_removed(workspace, agent_id, ours):
            outcome.pages[agent_id] = page._replace(changed=_write(run, agent_id, rendered.text, next_us))
        return
    gone = in_window == 0 and agent_id not in counts_store.agents(database)
    if gone:
        page_files.withdraw(workspace, path)
    elif not halted or page_files.signature_at(workspace.root, path) is not None:
        outcome.pages[agent_id] = page._replace(changed=_write(run, agent_id, rendered.text, next_us))
    if not halted:
        rewritten, trouble = follow_page(
            workspace, agent_id, rendered.shown, lambda: gone or _shows(workspace, path, rendered.text)
        )
        outcome.rewritten.update(rewritten)
        outcome.trouble += trouble


def compose(workspace: Workspace, agent_id: str, now_us: int, halted: str = "") -> tuple[Rendered, int, int | None]:
    """Returns an agent's page as text, the number of sessions in its window, and the next instant that changes it."""
    database, settings = workspace.database, workspace.settings
    budget, days = settings.budget_tokens, settings.window_days
    seen = projection(database, agent_id, now_us, budget, days, warning(workspace, agent_id, halted))
    rendered = render(seen, shares(budget))
    changes = [
        pages.next_change(database, agent_id, now_us, days * DAY),
        candidates_store.next_change(database, agent_id, now_us),
        # Scores are computed per UTC day.
        day_start(now_us) + DAY if rendered.scored else None,
    ]
    return rendered, seen.in_window, min((instant for instant in changes if instant is not None), default=None)


def projection(
    database: Database, agent_id: str, now_us: int, budget: int, days: int = 30, warning: str = ""
) -> Projection:
    """Returns what a page of so many tokens shows of so many days."""
    first, last = window(now_us, days)

    def candidates(limit: int) -> tuple[list[Line], sections.SectionInputs]:
        seen = candidates_store.section_inputs(database, agent_id, now_us, limit)
        return sections.candidates(seen, now_us), seen

    rows = pages.window_rows(database, agent_id, first, last, budget // LEAST_ROW + 2)
    return Projection(
        agent_id,
        warning,
        candidates,
        pages.count_in_window(database, agent_id, first, last),
        pages.window_months(database, agent_id, first, last),
        add_headless(rows, pages.headless_projects(database, agent_id, first, last), agent_id),
        pages.months(database, agent_id, INDEX_MONTHS),
        candidates_store.lineage(database, agent_id, now_us, condensed=True),
        candidates_store.lineage(database, agent_id, now_us, condensed=False),
        day_start(now_us),
    )


def warning(workspace: Workspace, agent_id: str, halted: str = "") -> str:
    """Returns the warning line about a halt, open violations and drifted entities; empty when there are none."""
    found = warnings(workspace.database, agent_id, halted)
    # Only the workspace's settings file counts: user settings differ between machines, but the page is shared.
    if not found and model.broken_values(workspace.root):
        found.append(f"{SETTINGS} is broken, its last good settings or defaults count: signet-sync doctor")
    return "; ".join(found)


def _write(run: Pass, agent_id: str, text: str, next_us: int | None) -> bool:
    """Writes MEMORY.md under its lease if it differs; returns True if bytes were written. Raises `LeaseBusy`."""
    workspace, database, path = run.workspace, run.database, head_page(agent_id)
    before, inputs = pages.page_state(database, path), text_sha256(text)
    if before is not None and before[1:3] == (page_files.signature_at(workspace.root, path), inputs):
        if before.next_us != next_us:
            with database.transaction():
                pages.store_page(database, path, before._replace(next_us=next_us))
        return False
    lease = PageLease(workspace, agent_id)
    try:
        if before is None:
            _keep_other_rows(workspace, agent_id, run.request.now_us)
        folders: set[str] = set()
        state, changed = page_files.publish(run, agent_id, path, text, folders, lease=lease)
        files.sync_folders(workspace.root, folders)
        lease.content_hash = inputs if changed else None
        with database.transaction():
            lease.require()
            pages.store_page(database, path, state._replace(next_us=next_us))
            lease.release()
    except BaseException:
        with database.transaction():
            lease.release()
        raise
    return changed


def _keep_other_rows(workspace: Workspace, agent_id: str, now_us: int) -> None:
    """Keeps beside a page, which we write for the first time, its lines of another machine's memories.

    They are in no file, so that a workspace that was copied has them nowhere else.
    """
    found = files.read(workspace.root, head_page(agent_id), PAGE_LIMIT)
    text = managed_block.read_generated(found.raw) if isinstance(found, Found) else None
    if text is None or not pages.is_without_rows(workspace.database, agent_id):
        return
    shown = "".join(f"{line}\n" for line in lines_of_rows(text)).encode()
    kept = page_files.drop_removed(workspace, head_page(agent_id), shown)
    if kept.strip() and not page_files.shows_removed(workspace, agent_id, kept):
        keep_copy(workspace, head_page(agent_id), "user", kept, now_us)


def _shows(workspace: Workspace, path: str, text: str) -> bool:
    """Returns whether a page shows this text, and not another machine's, from other rows or another clock."""
    found = files.read(workspace.root, path, PAGE_LIMIT)
    return isinstance(found, Found) and managed_block.merge(found.raw, text) == managed_block.Merge(found.raw)
