"""Keeps facts and topics equal to what artifacts state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from signet_sync.facts.store import facts, statements
from signet_sync.facts.store.statements import ArtifactStatements
from signet_sync.graph import nodes_stage
from signet_sync.graph.nodes_stage import WEEK, SessionDerivation
from signet_sync.storage.database.batches import Session
from signet_sync.storage.database.connection import Database
from signet_sync.sync.stages import SESSION, Alive, Change, Deriver, Source
from signet_sync.text import digest_mark

# The kind of source by which later derivers process facts.
FACT = "fact"
# Changes whenever the same artifacts would give other facts.
VERSION = f"8 digest {digest_mark.VERSION}"


class Facts(Deriver):
    """Derives facts and topics from sessions."""

    name = "facts"
    tables = statements.TABLES
    kinds = frozenset({SESSION})
    after = (nodes_stage.Graph.name,)

    @property
    def version(self) -> str:  # type: ignore[override]
        """Names the version of the rules."""
        return VERSION

    def sources(self, database: Database) -> Iterable[Source]:
        """Yields every session."""
        return nodes_stage.sessions(database)

    def prepare(
        self, database: Database, sources: Sequence[Source], earlier: Mapping[str, Any], alive: Alive
    ) -> tuple[list[Session], list[ArtifactStatements]]:
        """Returns what the artifacts of sessions state."""
        derived: Mapping[Session, SessionDerivation] = earlier.get(nodes_stage.Graph.name, {})
        stated: list[ArtifactStatements] = []
        for one in nodes_stage.with_progress(sources, alive):
            derivation = derived.get(one.session) or nodes_stage.derive_stored(database, one.session)
            stated += derivation.stated
        return [one.session for one in sources], stated

    def update(
        self, database: Database, prepared: tuple[list[Session], list[ArtifactStatements]], alive: Alive
    ) -> Change:
        """Replaces what sessions stated before."""
        settled = facts.settle(database, *statements.replace(database, *prepared))
        change = Change({Source(FACT, *key) for key in settled})
        # The summary of a thread shows only what is current.
        change.sources |= {Source(WEEK, *week) for week in facts.weeks(database, settled)}
        return change
