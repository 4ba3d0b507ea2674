"""Keeps the session log's one line per session, and the sessions per day, equal to artifacts and graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from signet_sync.graph import nodes_stage
from signet_sync.graph.nodes_stage import Graph
from signet_sync.graph.store import nodes
from signet_sync.pages.session_log import LedgerRow, compose
from signet_sync.storage.database.connection import Database
from signet_sync.sync.stages import MANIFEST, SESSION, Alive, Change, Deriver, Source
from signet_sync.sync.store import artifacts


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
