"""Composes MEMORY.md from rows and writes it under the page lease, only if its bytes differ."""

from __future__ import annotations

from collections.abc import Callable

from signet_sync import __version__
from signet_sync.formats import managed_block
from signet_sync.formats.body import text_sha256
from signet_sync.formats.paths import SETTINGS, head_page
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.formats.timestamps import DAY
from signet_sync.memories.score import day_start
from signet_sync.pages import page_files, sections, signet_daemon, signet_texts
from signet_sync.pages.board import Line
from signet_sync.pages.kept_copies import keep_copy
from signet_sync.pages.memory_page import LEAST_LINE, Projection, Rendered, render, shares, window
from signet_sync.pages.other_machine import lines_of_rows
from signet_sync.pages.page_lease import page_lease
from signet_sync.pages.session_log import with_headless
from signet_sync.pages.store import candidates as candidates_store
from signet_sync.pages.store import pages
from signet_sync.pages.store.pages import PageState
from signet_sync.pages.store.warnings import warnings
from signet_sync.settings import model
from signet_sync.storage import files
from signet_sync.storage.clock import now_us
from signet_sync.sync.missing_manifests import follow_page
from signet_sync.sync.request import PageOutcome, Pass
from signet_sync.sync.store import counts as counts_store
from signet_sync.sync.store import passes
from signet_sync.sync.store.passes import Composed
from signet_sync.sync.workspace import Workspace

INDEX_MONTHS = 24


def update(run: Pass, agent_id: str, halted: str) -> None:
    """Makes an agent's MEMORY.md, and the manifests that depend on it, equal to the rows; records it in the outcome.

    `halted` is why passes are halted, or "": then the page only says so, and is not created.
    """
    workspace, database, outcome = run.workspace, run.database, run.outcome
    path, at_us, held = head_page(agent_id), run.request.now_us, bool(run.outcome.held)
    stamp = _stamp(workspace, agent_id, halted)
    fresh = None if held or agent_id in outcome.change.agents else _fresh(workspace, agent_id, stamp, at_us)
    if fresh is not None:
        outcome.pages[agent_id] = fresh
        return
    rendered, in_window, next_us = compose(workspace, agent_id, at_us, halted)
    figures = in_window, rendered.rows, rendered.clipped, rendered.tokens
    page = PageOutcome(path, False, *figures)
    if held:
        # Signet's daemon writes this page; a removal must not wait for that.
        ours = None if halted else page_files.block_of_ours(workspace.root, path)
        if ours is not None and page_files.shows_removed(workspace, agent_id, ours):
            unknown = Composed("", at_us, 0, 0, 0, 0)
            page = page._replace(
                changed=_write(
                    workspace, agent_id, rendered.text, next_us, unknown, lambda: False, must_exist=True, yields=False
                ),
            )
        outcome.pages[agent_id] = page
        return
    gone = in_window == 0 and agent_id not in counts_store.agents(database)

    def follow() -> bool:
        if halted:
            return False
        rewritten, trouble = follow_page(
            workspace, agent_id, rendered.shown, lambda: gone or _shows(workspace, path, rendered.text)
        )
        outcome.rewritten.update(rewritten)
        outcome.trouble += trouble
        return not trouble

    if gone:
        page_files.withdraw(workspace, path)
        follow()
        return
    known, yields = Composed(stamp, at_us, *figures), page_files.yields_to_others(run)
    changed = _write(workspace, agent_id, rendered.text, next_us, known, follow, must_exist=bool(halted), yields=yields)
    outcome.pages[agent_id] = page._replace(changed=changed)


def is_current(workspace: Workspace, agent_id: str) -> bool:
    """Returns whether an agent's pages equal what its rows give now, or are held back anyway."""
    database = workspace.database
    if signet_daemon.holds(workspace, [agent_id]):
        return True
    if any(state.inputs_sha256 == "" for state in pages.page_states(database, agent_id).values()):
        return False
    stamp = _stamp(workspace, agent_id, passes.halt_message(database))
    return _fresh(workspace, agent_id, stamp, now_us()) is not None


def _stamp(workspace: Workspace, agent_id: str, halted: str) -> str:
    """Names the inputs of MEMORY.md other than rows; a transaction that moves rows clears the stored stamp."""
    settings = workspace.settings
    inputs = __version__, warning(workspace, agent_id, halted), settings.budget_tokens, settings.window_days
    return text_sha256(repr(inputs))


def _fresh(workspace: Workspace, agent_id: str, stamp: str, now_us: int) -> PageOutcome | None:
    """Returns the known outcome of a MEMORY.md if neither its inputs, its file nor the rows in the window changed."""
    path, before = head_page(agent_id), passes.page_inputs(workspace.database, agent_id)
    if before is None or before.stamp != stamp or before.at_us > now_us:
        return None
    state = pages.page_state(workspace.database, path)
    if state is None or state.inputs_sha256 == "" or not now_us < (state.next_us or 1 << 62):
        return None
    if state.signature is None or state.signature != page_files.signature_at(workspace.root, path):
        return None
    return PageOutcome(path, False, before.sessions_in_window, before.rows_rendered, before.rows_clipped, before.tokens)


def compose(workspace: Workspace, agent_id: str, now_us: int, halted: str = "") -> tuple[Rendered, int, int | None]:
    """Returns an agent's page as text, the number of sessions in its window, and the next instant that changes it."""
    database, settings = workspace.database, workspace.settings
    first, last = window(now_us, settings.window_days)
    in_window = pages.count_in_window(database, agent_id, first, last)
    headless = pages.headless_projects(database, agent_id, first, last)

    def candidates(best: int) -> tuple[list[Line], sections.SectionInputs]:
        most = max(settings.budget_tokens // LEAST_LINE, 1)
        seen = candidates_store.section_inputs(database, agent_id, now_us, most, best)
        return sections.candidates(seen, now_us), seen

    projection = Projection(
        agent_id,
        warning(workspace, agent_id, halted),
        candidates,
        in_window,
        pages.window_months(database, agent_id, first, last),
        lambda limit: with_headless(pages.window_rows(database, agent_id, first, last, limit), headless, agent_id),
        pages.months(database, agent_id, INDEX_MONTHS),
        lambda limit: candidates_store.lineage(database, agent_id, now_us, limit),
        day_start(now_us),
    )
    rendered = render(projection, shares(settings.budget_tokens))
    changes = [
        pages.next_change(database, agent_id, now_us, settings.window_days * DAY),
        candidates_store.next_change(database, agent_id, now_us),
        # Scores are computed per UTC day.
        day_start(now_us) + DAY if rendered.scored else None,
    ]
    next_us = min((instant for instant in changes if instant is not None), default=None)
    return rendered, in_window, next_us


def warning(workspace: Workspace, agent_id: str, halted: str = "") -> str:
    """Returns the warning line about a halt, open violations and drifted entities; empty when there are none."""
    found = warnings(workspace.database, agent_id, halted)
    # Only the workspace's settings file counts: user settings differ between machines, but the page is shared.
    if not found and model.broken_values(workspace.root):
        found.append(f"{SETTINGS} is broken, its last good settings or defaults count: signet-sync doctor")
    return "; ".join(found)


def _write(
    workspace: Workspace,
    agent_id: str,
    text: str,
    next_us: int | None,
    known: Composed,
    follow: Callable[[], bool],
    *,
    must_exist: bool,
    yields: bool,
) -> bool:
    """Writes MEMORY.md under its lease if it differs; returns True if bytes were written. Raises `LeaseBusy`.

    `follow` updates what depends on the page, before the page counts as `known`, and returns whether all of it
    succeeded. With `yields`, another machine's page stays if ours would repeat what it said last.
    """
    database, path = workspace.database, head_page(agent_id)
    before = pages.page_state(database, path)
    signature = page_files.signature_at(workspace.root, path)
    if must_exist and signature is None:
        return False
    inputs = text_sha256(text)
    same = before is not None and before.inputs_sha256 == inputs
    if before is not None and same and before.signature == signature:
        followed = follow()
        with database.transaction():
            pages.store_page(database, path, before._replace(next_us=next_us))
            passes.store_page_inputs(database, agent_id, known if followed else None)
        return False
    with page_lease(workspace, agent_id, known.at_us) as lease:
        found = files.read(workspace.root, path, PAGE_LIMIT)
        changed = False
        if isinstance(found, Found) and (
            managed_block.merge(found.raw, text) == managed_block.Merge(found.raw)
            or (
                yields
                and same
                and managed_block.is_generated(found.raw)
                and not page_files.shows_removed(workspace, agent_id, found.raw)
            )
        ):
            signature = found.signature
        else:
            if before is None and isinstance(found, Found):
                _keep_other_rows(workspace, agent_id, found.raw, known.at_us)
            folders: set[str] = set()
            signature, changed = page_files.write(workspace, path, text, known.at_us, folders, lease)
            files.sync_folders(workspace.root, folders)
            lease.content_hash = inputs
        followed = follow()
        with database.transaction():
            lease.require()
            pages.store_page(database, path, PageState(agent_id, signature, inputs, next_us))
            passes.store_page_inputs(database, agent_id, known if followed else None)
            lease.release()
    return changed


def _keep_other_rows(workspace: Workspace, agent_id: str, page: bytes, now_us: int) -> None:
    """Keeps beside a page, which we write for the first time, its lines of another machine's memories and pins.

    They are in no file, so that a workspace that was copied has them nowhere else.
    """
    text = managed_block.generated(page)
    if text is None or not pages.is_without_rows(workspace.database, agent_id):
        return
    shown = "".join(f"{line}\n" for line in lines_of_rows(text)).encode()
    kept = signet_texts.without_removed(workspace, head_page(agent_id), shown)
    if kept.strip() and not page_files.shows_removed(workspace, agent_id, kept):
        keep_copy(workspace, head_page(agent_id), "user", kept, now_us)


def _shows(workspace: Workspace, path: str, text: str) -> bool:
    """Returns whether a page shows this text, and not another machine's, from other rows or another clock."""
    found = files.read(workspace.root, path, PAGE_LIMIT)
    return isinstance(found, Found) and managed_block.merge(found.raw, text) == managed_block.Merge(found.raw)
