"""Derives the session log's rows; publishes MEMORY.md, then the log's pages that differ from them, and DREAMS.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from signet_sync.errors import SignetSyncError, reason
from signet_sync.formats import managed_block
from signet_sync.formats.body import text_sha256
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import (
    DEFAULT_AGENT,
    SETTINGS,
    day_page,
    dream_page,
    head_page,
    log_pages,
    month_page,
    page_agent,
)
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.formats.timestamps import DAY, day_of
from signet_sync.graph import stage as graph_stage
from signet_sync.graph.stage import Graph
from signet_sync.graph.store import nodes
from signet_sync.memories.score import day_start
from signet_sync.pages import conflict_copies, dreams_page, others, page_files
from signet_sync.pages.memory_page import LEAST_ROW, Projection, Rendered, render
from signet_sync.pages.page_files import block_of_ours, signature_at, vault_is_away
from signet_sync.pages.session_log import add_headless, compose, day_text, month_text
from signet_sync.pages.store import pages, views
from signet_sync.pages.store.pages import PageState
from signet_sync.pages.store.views import warnings
from signet_sync.settings import model
from signet_sync.storage import files, writing
from signet_sync.storage.database.connection import Database
from signet_sync.sync import deriving
from signet_sync.sync.index_records import MANIFEST, SESSION, Change, Source
from signet_sync.sync.manifests import follow_page
from signet_sync.sync.store import counts as counts_store
from signet_sync.sync.store import passes
from signet_sync.sync.workspace import Alive, Deriver, PageOutcome, Pass, Publisher, Workspace

_INDEX_MONTHS = 24
_MEMORY = late(r"\^m-[a-z2-7]{4,12}$")


class SessionLog(Deriver):
    """Derives the lines of the session log, after the graph, which has the sentence of a session."""

    name = "session log"
    tables = ("ledger_rows", "ledger_days")
    kinds = frozenset({SESSION, MANIFEST})
    after = (Graph.name,)

    def sources(self, database: Database) -> Iterable[Source]:
        """Yields every session."""
        return graph_stage.sessions(database)

    def update(self, database: Database, prepared: Sequence[Source], alive: Alive) -> Change:
        """Composes the lines of sessions again; pages of the days that change become stale."""
        change = Change()
        sessions = sorted({one.session for one in prepared})
        places, before = nodes.places_of(database, sessions), pages.rows_of(database, sessions)
        after = {}
        for session, parts in pages.session_parts(database, sessions):
            place = places.get(session)
            row = compose(*session[:2], parts, place and place.sentence)
            if row is not None and not (row.line and place is None):
                after[session] = row
        moved = [one for one in sessions if before.get(one) != after.get(one)]
        for session in moved:
            days = {(session[0], rows[session].day) for rows in (before, after) if session in rows}
            change.days |= days
            change.agents.add(session[0])
        gone = [one for one in moved if one not in after]
        pages.store_rows(database, gone, [after[one] for one in moved if one in after], sorted(change.days))
        return change


class MemoryPages(Publisher):
    """Keeps each agent's MEMORY.md, and the manifests that depend on it, equal to the rows.

    A page is composed when its agent's rows or its file changed, and in every full pass: also when a row enters or
    leaves the window, and when a UTC day begins, because scores are computed per day.
    """

    name = "MEMORY.md"
    early = True

    def stale(self, run: Pass) -> list[str]:
        """Returns the pages that may differ from their rows, or whose files were touched."""
        agents = _agents(run)
        if agents:
            run.outcome.held = others.holds(run.workspace)
        return [head_page(agent) for agent in agents]

    def publish(self, run: Pass, key: str) -> None:
        """Makes a page equal to its rows; of a halt it only says so, and is not created."""
        workspace, outcome, halted, path = run.workspace, run.outcome, _halt_message(run), key
        agent_id = page_agent(path) or DEFAULT_AGENT
        rendered, in_window, next_us = compose_page(workspace, agent_id, run.request.now_us, halted)
        page = PageOutcome(path, False, in_window, rendered.rows, rendered.clipped, rendered.tokens)
        outcome.pages[agent_id] = page
        gone = in_window == 0 and agent_id not in counts_store.agents(run.database)
        if outcome.held:
            # Signet's daemon writes this page; a removal must not wait for that.
            ours = None if halted else block_of_ours(workspace.root, path)
            writes = ours is not None and page_files.shows_removed(workspace, agent_id, ours)
        else:
            writes = not gone and (not halted or signature_at(workspace.root, path) is not None)
        if writes:
            changed = _write(run, agent_id, rendered.text, next_us)
            outcome.pages[agent_id] = page._replace(changed=changed)
        if outcome.held:
            return
        if gone:
            page_files.withdraw(workspace, path)
        if not halted:
            rewritten, trouble = follow_page(
                workspace, agent_id, rendered.shown, lambda: gone or _shows(workspace, path, rendered.text)
            )
            outcome.rewritten.update(rewritten)
            outcome.trouble += trouble


def compose_page(workspace: Workspace, agent_id: str, now_us: int, halted: str = "") -> tuple[Rendered, int, int]:
    """Returns an agent's page as text, the number of sessions in its window, and the next instant that changes it."""
    database, settings = workspace.database, workspace.settings
    budget, days = settings.budget_tokens, settings.window_days
    found = warnings(database, agent_id, halted)
    # Only the workspace's settings file counts: user settings differ between machines, but the page is shared.
    if not found and model.list_broken_values(workspace.root):
        found.append(f"{SETTINGS} is broken, its last good settings or defaults count: signet-sync doctor")
    seen = projection(database, agent_id, now_us, budget, days, "; ".join(found))
    rendered = render(seen, budget)
    midnight = day_start(now_us) + DAY  # scores are computed per UTC day
    moved = pages.next_change(database, agent_id, now_us, days * DAY)
    return rendered, seen.in_window, midnight if moved is None else min(midnight, moved)


def projection(database: Database, agent_id: str, now_us: int, budget: int, days: int, warning: str) -> Projection:
    """Returns what a page of so many tokens shows of so many days."""
    first, last = now_us - days * DAY, now_us
    rows = pages.window_rows(database, agent_id, first, last, budget // LEAST_ROW + 2)
    of_month, days_of_all = Counter[str](), pages.days(database, agent_id)
    for day, count in days_of_all.items():
        of_month[day[:7]] += count
    window = [day[:7] for day in days_of_all if day_of(first) <= day <= day_of(last)]
    return Projection(
        agent_id,
        warning,
        partial(views.page_inputs, database, agent_id, now_us),
        pages.count_in_window(database, agent_id, first, last),
        [*dict.fromkeys(window)],
        add_headless(rows, pages.count_headless(database, agent_id, first, last), agent_id),
        [*of_month.items()][:_INDEX_MONTHS],
        lambda condensed, before_us: views.lineage(database, agent_id, min(before_us, now_us + 1), condensed=condensed),
        day_start(now_us),
    )


def _write(run: Pass, agent_id: str, text: str, next_us: int) -> bool:
    """Writes MEMORY.md under its lease if it differs; returns True if bytes were written. Raises `LeaseBusy`."""
    workspace, database, path = run.workspace, run.database, head_page(agent_id)
    before, inputs = pages.page_state(database, path), text_sha256(text)
    if before is not None and before[1:3] == (signature_at(workspace.root, path), inputs):
        if before.next_us != next_us:
            with database.transaction():
                pages.store_page(database, path, before._replace(next_us=next_us))
        return False
    lease = pages.take_lease(database, agent_id)
    if before is None:
        _keep_other_rows(run, agent_id)
    folders: set[str] = set()
    state, changed = page_files.publish(run, agent_id, path, text, folders, lease=lease)
    writing.sync_folders(workspace.root, folders)
    with database.transaction():
        lease.require()
        pages.store_page(database, path, state._replace(next_us=next_us))
        lease.release(inputs if changed else None)
    return changed


def _keep_other_rows(run: Pass, agent_id: str) -> None:
    """Keeps beside a page, which we write for the first time, its lines of another machine's memories.

    They are in no file, so that a workspace that was copied has them nowhere else.
    """
    workspace, path = run.workspace, head_page(agent_id)
    found = files.read(workspace.root, path, PAGE_LIMIT)
    text = managed_block.read_generated(found.raw) if isinstance(found, Found) else None
    if text is None or not pages.is_without_rows(workspace.database, agent_id):
        return
    shown = "".join(f"{line}\n" for line in text.split("\n") if _MEMORY.search(line)).encode()
    if shown and not page_files.shows_removed(workspace, agent_id, shown):
        conflict_copies.keep_copy(workspace, path, "user", shown, run.request.now_us)
        how = "signet-sync backup create FILE there, then signet-sync backup restore FILE here"
        run.outcome.trouble.append(f"{path} showed memories of another machine, which are not here: {how}")


def _shows(workspace: Workspace, path: str, text: str) -> bool:
    """Returns whether a page shows this text, and not another machine's, from other rows or another clock."""
    found = files.read(workspace.root, path, PAGE_LIMIT)
    return isinstance(found, Found) and managed_block.merge(found.raw, text) == managed_block.Merge(found.raw)


class LogPages(Publisher):
    """Keeps the session log pages and DREAMS.md equal to the rows; they are less urgent than MEMORY.md."""

    name = "session log"

    def mark(self, database: Database, change: Change) -> None:
        """Marks the pages of the days that changed as stale."""
        pages.mark_stale(database, change.days)

    def stale(self, run: Pass) -> list[str]:
        """Returns the MEMORY.md paths of the agents whose other pages may differ from their rows."""
        return [] if _halt_message(run) else [head_page(agent) for agent in _agents(run)]

    def publish(self, run: Pass, key: str) -> None:
        """Makes the agent's session log pages and DREAMS.md equal to their rows."""
        agent_id = page_agent(key) or DEFAULT_AGENT
        # No page may be partial or removed too early: it waits until the last row is derived.
        if SessionLog.name not in deriving.find_unfinished(run.database, run.workspace.pipeline):
            _write_log(run, agent_id)
        path = dream_page(agent_id)
        try:
            if not run.outcome.held or signature_at(run.workspace.root, path) is not None:
                dreams_page.update(run, agent_id)
        except OSError as error:
            raise SignetSyncError(reason(error), path=path) from error


def _write_log(run: Pass, agent_id: str) -> None:
    """Writes day and month pages: those whose rows moved and, in a full pass, all that are not as we left them.

    Where Signet's daemon holds pages back, none is created and existing ones are updated. The transaction that moved a
    session also marked its pages stale, so neither a crash nor a hold loses them.
    """
    workspace, database = run.workspace, run.database
    counts = pages.days(database, agent_id)
    expected = log_pages(agent_id, counts)
    if run.outcome.full:
        states = pages.page_states(database, agent_id)
        present = files.signatures(workspace.root, states)
        fit = {path for path, state in states.items() if state.inputs_sha256 and state.signature == present.get(path)}
        stale, gone = expected - fit, states.keys() - expected - {head_page(agent_id), dream_page(agent_id)}
    else:
        moved = log_pages(agent_id, {day for agent, day in run.outcome.change.days if agent == agent_id})
        stale, gone = moved & expected, moved - expected
    texts: dict[str, str] = {}
    for day in counts:
        if (path := day_page(agent_id, day)) in stale:
            texts[path] = day_text(agent_id, day, *pages.day_lines(database, agent_id, day))
    for month in sorted({day[:7] for day in counts}, reverse=True):
        if (path := month_page(agent_id, month)) in stale:
            inside = [(day, count) for day, count in counts.items() if day[:7] == month]
            texts[path] = month_text(agent_id, month, inside)
    folders: set[str] = set()
    written: dict[str, PageState] = {}
    for path in (*texts, *sorted(gone)):
        if run.outcome.held and files.status_of(workspace.root, path) is None:
            continue
        if path in gone:
            page_files.withdraw(workspace, path)
        else:
            written[path], _ = page_files.publish(run, agent_id, path, texts[path], folders)
    writing.sync_folders(workspace.root, folders)
    if written:
        with database.transaction():
            for path, state in written.items():
                pages.store_page(database, path, state)


class ConflictCopies(Publisher):
    """Clears conflict copies of pages and manifests, after the pass has written what they are copies of."""

    name = "conflict copies"

    def stale(self, run: Pass) -> list[str]:
        """Returns a key in a full pass."""
        return [self.name] if run.outcome.full and not _halt_message(run) else []

    def publish(self, run: Pass, key: str) -> None:
        """Clears them."""
        gone, trouble = conflict_copies.clear(run.workspace)
        run.outcome.rewritten |= gone
        run.outcome.trouble += trouble


def _agents(run: Pass) -> list[str]:
    """Returns the agents whose pages may have to change."""
    outcome, database = run.outcome, run.database
    if not _halt_message(run) and vault_is_away(run.workspace):
        return []
    if outcome.full:
        former = (state.agent_id for state in pages.page_states(database).values())
        wanted = {*counts_store.agents(database), *former}
    else:
        wanted = outcome.change.agents | {agent for agent, _ in outcome.change.days}
        touched = {path: agent for path in run.request.paths or () if (agent := page_agent(path)) is not None}
        known = counts_store.agents(database) if not wanted.issuperset(touched.values()) else ()
        for path, agent in touched.items():
            is_ours = pages.page_state(database, path) or block_of_ours(run.workspace.root, path)
            if agent in known or is_ours is not None:
                wanted.add(agent)
    return sorted(wanted, key=lambda agent: (agent != DEFAULT_AGENT, agent))


def _halt_message(run: Pass) -> str:
    """Returns why passes are halted, or "". A pass over some paths cannot lift a halt set by a full pass."""
    if run.outcome.cliff is not None:
        return run.outcome.cliff.message
    return "" if run.outcome.full else passes.halt_message(run.database)
