"""Keeps the table of what is known equal to what artifacts state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from signet_sync.graph import nodes_stage
from signet_sync.graph.nodes_stage import OUTCOME, WEEK, SessionDerivation
from signet_sync.graph.quotes_stage import Quotes
from signet_sync.statements.store import rows
from signet_sync.statements.store.rows import Key, Moved, StatedItems
from signet_sync.storage.database.batches import Session
from signet_sync.storage.database.connection import Database
from signet_sync.sync.stages import SESSION, Alive, Change, Deriver, Source
from signet_sync.text import digest_mark

# The kind of source by which later derivers process statements.
STATEMENT = "statement"
# Changes whenever the same artifacts would give other statements.
VERSION = f"10 digest {digest_mark.VERSION}"

_Prepared = tuple[list[Session], list[StatedItems], set[Key]]


class Statements(Deriver):
    """Derives statements from sessions, and which of them still hold."""

    name = "statements"
    tables = ("statements",)
    kinds = frozenset({SESSION, OUTCOME})
    after = (Quotes.name,)

    @property
    def version(self) -> str:  # type: ignore[override]
        """Names the version of the rules."""
        return VERSION

    def sources(self, database: Database) -> Iterable[Source]:
        """Yields every session, and every thread for what its sessions came to."""
        return nodes_stage.sessions_and_threads(database)

    def prepare(
        self, database: Database, sources: Sequence[Source], earlier: Mapping[str, Any], alive: Alive
    ) -> _Prepared:
        """Returns sessions, what their artifacts state, and the threads in which another outcome may end something."""
        derived: Mapping[Session, SessionDerivation] = earlier.get(nodes_stage.Graph.name, {})
        sessions = [one.session for one in sources if one.kind == SESSION]
        stated: list[StatedItems] = []
        for session in nodes_stage.with_progress(sessions, alive):
            stated += (derived.get(session) or nodes_stage.derive_stored(database, session)).stated
        return sessions, stated, {(one.agent_id, one.id) for one in sources if one.kind == OUTCOME}

    def update(self, database: Database, prepared: _Prepared, alive: Alive) -> Change:
        """Replaces what sessions stated before; what still holds in their threads is settled once for all of them."""
        sessions, stated, threads = prepared
        moved = rows.renew(database, rows.replace(database, sessions, stated))
        change = _followed(database, moved.ids | rows.settle(database, threads), moved)
        change.sources |= {Source(OUTCOME, *thread) for thread in moved.threads - threads}
        return change


def settled(database: Database, moved: Moved) -> Change:
    """Settles what moved at once; returns what follows."""
    moved = rows.renew(database, moved)
    return _followed(database, moved.ids | rows.settle(database, moved.threads), moved)


def _followed(database: Database, changed: set[Key], moved: Moved) -> Change:
    """Returns what follows from changed statements: their lines, and the weeks that list what still holds."""
    change = Change({Source(STATEMENT, *key) for key in changed})
    change.sources |= {Source(WEEK, *week) for week in rows.weeks(database, changed, moved.sessions)}
    return change
