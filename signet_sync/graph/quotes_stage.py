"""Keeps what the newest sessions of each thread said and did: contexts and statements look at no others."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from signet_sync.graph import nodes_stage
from signet_sync.graph.nodes_stage import OUTCOME, SEGMENTS, Graph, SessionDerivation
from signet_sync.graph.store import nodes, quotes
from signet_sync.storage.database import batches
from signet_sync.storage.database.batches import Session
from signet_sync.storage.database.connection import Database
from signet_sync.sync.stages import SESSION, Alive, Change, Deriver, Source
from signet_sync.text import digest_mark


class _Asked(NamedTuple):
    """The sessions that moved, what is derived of them, and the threads whose newest sessions may be others now."""

    sessions: set[Session]
    derived: Mapping[Session, SessionDerivation]
    threads: set[tuple[str, str]]


class Quotes(Deriver):
    """Derives quotes and deeds of the newest sessions of a thread, once it is known which ones they are."""

    name = "quotes"
    tables = ("session_quotes", "session_notes")
    kinds = frozenset({SESSION, OUTCOME})
    after = (Graph.name,)
    version = f"1 digest {digest_mark.VERSION}"

    def sources(self, database: Database) -> Iterable[Source]:
        """Yields every session and every thread."""
        return nodes_stage.sessions_and_threads(database)

    def prepare(
        self, database: Database, sources: Sequence[Source], earlier: Mapping[str, Any], alive: Alive
    ) -> _Asked:
        """Tells what moved."""
        sessions = {one.session for one in sources if one.kind == SESSION}
        threads = {(one.agent_id, one.id) for one in sources if one.kind == OUTCOME}
        return _Asked(sessions, earlier.get(Graph.name, {}), threads)

    def update(self, database: Database, prepared: _Asked, alive: Alive) -> Change:
        """Keeps what sessions said that moved or are among the newest now, and no longer that of others."""
        sessions, derived, threads = prepared
        places = nodes.threads(database, sessions)
        older = set(batches.numbers(database, sessions).values())
        for agent_id, thread_id in sorted(threads.union((session[0], one) for session, one in places.items())):
            newest, known = quotes.newest(database, agent_id, thread_id), quotes.known(database, agent_id, thread_id)
            older -= set(newest.values())
            asked: dict[Session, bool] = {}  # whether it is to be quoted
            for place, (session, number) in enumerate(newest.items()):
                quoted, held = place < quotes.QUOTED, known.get(number)
                if session in sessions or held is None or quoted > held:
                    asked[session] = quoted
                elif held > quoted:
                    quotes.unquote(database, number)
            quotes.drop(database, known.keys() - newest.values())
            if asked:
                from signet_sync.digest.quotes import words_of  # slow import, not needed for summaries alone
            texts = nodes.transcripts(database, asked, digest_mark.SINCE_US)
            for session, transcripts in nodes_stage.with_progress(texts, alive):
                said = (derived[session].records if session in derived else ()) or transcripts[-SEGMENTS:]
                words = words_of(said, quoted=asked[session]) if said else None
                quotes.store(database, newest[session], agent_id, thread_id, words, quoted=asked[session])
        quotes.drop(database, older)
        return Change()
