"""Derives the session log's rows; publishes MEMORY.md, then the log's pages that differ from them, and DREAMS.md."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from signet_sync.errors import SignetSyncError, reason
from signet_sync.formats.paths import DEFAULT_AGENT, day_page, dream_page, head_page, log_pages, month_page, page_agent
from signet_sync.graph import nodes_stage
from signet_sync.graph.nodes_stage import Graph
from signet_sync.graph.store import nodes
from signet_sync.pages import conflict_copies, dreams_page, memory_page_writer, others, page_files
from signet_sync.pages.page_files import block_of_ours, signature_at, vault_is_away
from signet_sync.pages.session_log import LedgerRow, compose, day_text, month_text
from signet_sync.pages.store import pages
from signet_sync.pages.store.pages import PageState
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.sync import deriving
from signet_sync.sync.index_records import MANIFEST, SESSION, Change, Source
from signet_sync.sync.store import artifacts, passes
from signet_sync.sync.store import counts as counts_store
from signet_sync.sync.workers import Alive
from signet_sync.sync.workspace import Deriver, Pass, Publisher, Workspace


class SessionLog(Deriver):
    """Derives the lines of the session log, after the graph, which has the sentence of a session."""

    name = "session log"
    tables = ("ledger_rows", "ledger_days")
    kinds = frozenset({SESSION, MANIFEST})
    after = (Graph.name,)

    def sources(self, database: Database) -> Iterable[Source]:
        """Yields every session."""
        return nodes_stage.sessions(database)

    def update(self, database: Database, prepared: Sequence[Source], alive: Alive) -> Change:
        """Composes the lines of sessions again; pages of the days that change become stale."""
        change = Change()
        sessions = sorted({one.session for one in prepared})
        sentences = nodes.sentences(database, sessions)
        rows_before = artifacts.ledger_of(database, sessions)
        rows: list[LedgerRow] = []
        gone: list[tuple[str, str, str]] = []
        for agent_id, token, session_id, parts in artifacts.session_parts(database, sessions):
            session = (agent_id, token, session_id)
            row = compose(agent_id, token, parts, sentences.get(session))
            if row is not None and row.line and session not in sentences:
                row = None
            before = rows_before.get(session)
            if row == before:
                continue
            if row is not None:
                rows.append(row)
                change.days.add((agent_id, row.day))
            if before is not None:
                change.days.add((agent_id, before.day))
                if row is None:
                    gone.append(session)
            change.agents.add(agent_id)
        artifacts.store_ledger(database, gone, rows)
        artifacts.count_days(database, sorted(change.days))
        return change


def update(run: Pass, agent_id: str) -> None:
    """Writes day and month pages: those of the days that changed or, in a full pass, all that are not as we left them.

    Where Signet's daemon holds pages back, none is created and existing ones are updated. The transaction that moved a
    session also marked its pages stale, so neither a crash nor a hold loses them. Paths that are no regular files are
    reported; other pages are written anyway.
    """
    workspace, database = run.workspace, run.database
    if deriving.waits(database, workspace.pipeline, SessionLog.name):
        return  # no page may be partial or removed too early: wait until the last row is derived
    counts: dict[str, int] = {}
    if run.outcome.full:
        counts = pages.days(database, agent_id)
        states = pages.page_states(database, agent_id)
        days = _stale_days(workspace, agent_id, counts, states)
        gone = states.keys() - log_pages(agent_id, counts) - {head_page(agent_id), dream_page(agent_id)}
    else:
        days = sorted({day for agent, day in run.outcome.change.days if agent == agent_id}, reverse=True)
        for month in {day[:7] for day in days}:
            counts |= pages.days(database, agent_id, month)
        gone = set()
    folders: set[str] = set()
    written: dict[str, PageState] = {}
    for path, text in (*_texts(workspace, agent_id, days, counts), *((path, None) for path in gone)):
        status = files.status_of(workspace.root, path)
        if status is not None and not stat.S_ISREG(status.st_mode):
            kind = files.kind_of(status.st_mode)
            run.outcome.trouble.append(f"{path}: the page could not be written: there is a {kind} at its path")
            run.outcome.deferred = True
        elif status is None and run.outcome.held:
            continue
        elif text is None:
            page_files.withdraw(workspace, path)
        else:
            stays = partial(_is_fuller, ours=text)
            written[path], _ = page_files.publish(run, agent_id, path, text, folders, stays=stays)
    files.sync_folders(workspace.root, folders)
    if written:
        with database.transaction():
            for path, state in written.items():
                pages.store_page(database, path, state)


def _stale_days(
    workspace: Workspace, agent_id: str, counts: Mapping[str, int], states: Mapping[str, PageState]
) -> list[str]:
    """Returns the days whose page or month page is stale, missing, or not the file that we left."""
    present = files.signatures(workspace.root, states)

    def fits(path: str) -> bool:
        before = states.get(path)
        return before is not None and before.inputs_sha256 != "" and before.signature == present.get(path)

    months = {month: fits(month_page(agent_id, month)) for month in {day[:7] for day in counts}}
    return [day for day in counts if not fits(day_page(agent_id, day)) or not months[day[:7]]]


def _texts(
    workspace: Workspace, agent_id: str, days: Iterable[str], counts: Mapping[str, int]
) -> Iterator[tuple[str, str | None]]:
    """Yields paths and texts of some days' pages, then of their months; None for a page without sessions."""
    for day in days:
        if day not in counts:
            yield day_page(agent_id, day), None
            continue
        lines = pages.day_lines(workspace.database, agent_id, day)
        yield day_page(agent_id, day), day_text(agent_id, day, *lines)
    for month in sorted({day[:7] for day in days}, reverse=True):
        inside = [(day, count) for day, count in counts.items() if day[:7] == month]
        yield month_page(agent_id, month), month_text(agent_id, month, inside) if inside else None


def _is_fuller(theirs: str, ours: str) -> bool:
    """Returns whether a page that another machine's agent wrote is to stay in the place of ours.

    The page with more lines wins, then the one with more characters, then the one that sorts later: every machine keeps
    the same page, also if a sealed file arrived damaged at one of them.
    """
    return (theirs.count("\n"), len(theirs), theirs) > (ours.count("\n"), len(ours), ours)


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
            others.note_end(run.workspace)
            run.outcome.held = others.holds(run.workspace, sorted(agents))
        return [head_page(agent) for agent in agents]

    def publish(self, run: Pass, key: str) -> None:
        """Makes a page equal to its rows."""
        memory_page_writer.update(run, page_agent(key) or DEFAULT_AGENT, _halted(run))


class LogPages(Publisher):
    """Keeps the session log pages and DREAMS.md equal to the rows; they are less urgent than MEMORY.md."""

    name = "session log"

    def mark(self, database: Database, change: Change) -> None:
        """Marks the pages of the days that changed as stale."""
        pages.mark_stale(database, change.days)

    def stale(self, run: Pass) -> list[str]:
        """Returns the MEMORY.md paths of the agents whose other pages may differ from their rows."""
        return [] if _halted(run) else [head_page(agent) for agent in _agents(run)]

    def publish(self, run: Pass, key: str) -> None:
        """Makes the agent's session log pages and DREAMS.md equal to their rows."""
        agent_id = page_agent(key) or DEFAULT_AGENT
        update(run, agent_id)
        path = dream_page(agent_id)
        try:
            if not run.outcome.held or signature_at(run.workspace.root, path) is not None:
                dreams_page.update(run, agent_id)
        except OSError as error:
            raise SignetSyncError(reason(error), path=path) from error


class ConflictCopies(Publisher):
    """Clears conflict copies of pages and manifests, after the pass has written what they are copies of."""

    name = "conflict copies"

    def stale(self, run: Pass) -> list[str]:
        """Returns a key in a full pass."""
        return [self.name] if run.outcome.full and not _halted(run) else []

    def publish(self, run: Pass, key: str) -> None:
        """Clears them."""
        joined, trouble = conflict_copies.merge_copies(run.workspace)
        run.outcome.rewritten |= joined
        run.outcome.trouble += [*trouble, *conflict_copies.clear(run.workspace)]


def _agents(run: Pass) -> list[str]:
    """Returns the agents whose pages may have to change."""
    outcome, database = run.outcome, run.database
    if not _halted(run) and vault_is_away(run.workspace):
        return []
    if outcome.full:
        former = (state.agent_id for state in pages.page_states(database).values())
        wanted = {*counts_store.agents(database), *former}
    else:
        wanted = outcome.change.agents | {agent for agent, _ in outcome.change.days}
        touched = {path: agent for path in run.request.paths or () if (agent := page_agent(path)) is not None}
        known = counts_store.agents(database) if not wanted.issuperset(touched.values()) else ()
        for path, agent in touched.items():
            if (
                agent in known
                or pages.page_state(database, path) is not None
                or block_of_ours(run.workspace.root, path) is not None
            ):
                wanted.add(agent)
    return sorted(wanted, key=lambda agent: (agent != DEFAULT_AGENT, agent))


def _halted(run: Pass) -> str:
    """Returns why passes are halted, or "". A pass over some paths cannot lift a halt set by a full pass."""
    if run.outcome.cliff is not None:
        return run.outcome.cliff.message
    return "" if run.outcome.full else passes.halt_message(run.database)
