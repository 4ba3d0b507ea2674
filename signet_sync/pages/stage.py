"""Registers the publishers of pages: MEMORY.md first, then the session log and DREAMS.md."""

from __future__ import annotations

from signet_sync.errors import SignetSyncError, reason
from signet_sync.formats.paths import DEFAULT_AGENT, dream_page, head_page, page_agent
from signet_sync.pages import (
    dreams_page_writer,
    memory_page_writer,
    session_log_writer,
    signet_daemon,
)
from signet_sync.pages.page_files import block_of_ours, signature_at, vault_is_away
from signet_sync.pages.store import pages
from signet_sync.storage.database.connection import Database
from signet_sync.sync.request import Pass
from signet_sync.sync.stages import Change, Publisher
from signet_sync.sync.store import counts as counts_store
from signet_sync.sync.store import passes


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
            signet_daemon.note_end(run.workspace)
            run.outcome.held = signet_daemon.holds(run.workspace, sorted(agents))
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
        session_log_writer.update(run, agent_id)
        path = dream_page(agent_id)
        try:
            if not run.outcome.held or signature_at(run.workspace.root, path) is not None:
                dreams_page_writer.update(run, agent_id)
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
        from signet_sync.pages import conflict_copies  # of full passes only

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
