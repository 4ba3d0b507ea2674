"""Derives what is known of threads: statements and quotes of sessions, arcs, epochs, summaries.

Quotes are kept of the newest sessions of each thread: contexts and statements look at no others. The cost of the
others is proportional to the weeks and quarters that moved.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, cast

from signet_sync.formats.timestamps import quarter_of, quarter_span
from signet_sync.graph import nodes_stage, rollups, threads
from signet_sync.graph.nodes_stage import OUTCOME, SEGMENTS, WEEK, Graph, SessionDerivation, every_week, report_progress
from signet_sync.graph.store import nodes, quotes
from signet_sync.graph.threads import Thread
from signet_sync.statements import store as statements_store
from signet_sync.statements.store import LIVE, Key, Moved, StatedItems
from signet_sync.storage.database import batches
from signet_sync.storage.database.batches import Session
from signet_sync.storage.database.connection import Database
from signet_sync.sync.index_records import SESSION, Change, Source
from signet_sync.sync.workers import Alive
from signet_sync.sync.workspace import Deriver
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
    version = f"2 digest {digest_mark.VERSION}"

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
        """Keeps what sessions said that moved or are among the newest now, and no longer that of others.

        Returns the threads whose deeds may end other statements now.
        """
        sessions, derived, threads = prepared
        change = Change()
        places = nodes.threads(database, sessions)
        older = set(batches.numbers(database, sessions).values())
        for agent_id, thread_id in sorted(threads.union((session[0], one) for session, one in places.items())):
            newest, known = (
                quotes.newest(database, agent_id, thread_id),
                quotes.list_known(database, agent_id, thread_id),
            )
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
            for session, transcripts in nodes_stage.report_progress(texts, alive):
                said = (derived[session].records if session in derived else ()) or transcripts[-SEGMENTS:]
                words = words_of(said, quoted=asked[session]) if said else None
                if quotes.store(database, newest[session], agent_id, thread_id, words, quoted=asked[session]):
                    change.sources.add(Source(OUTCOME, agent_id, thread_id))
        quotes.drop(database, older)
        return change


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
        for session in nodes_stage.report_progress(sessions, alive):
            stated += (derived.get(session) or nodes_stage.derive_stored(database, session)).stated
        return sessions, stated, {(one.agent_id, one.id) for one in sources if one.kind == OUTCOME}

    def update(self, database: Database, prepared: _Prepared, alive: Alive) -> Change:
        """Replaces what sessions stated before; what still holds in their threads is settled once for all of them."""
        sessions, stated, threads = prepared
        moved = statements_store.renew(database, statements_store.replace(database, sessions, stated))
        change = _list_followers(database, moved.ids | statements_store.settle(database, threads), moved)
        change.sources |= {Source(OUTCOME, *thread) for thread in moved.threads - threads}
        return change


def settle_moved(database: Database, moved: Moved) -> Change:
    """Settles what moved at once; returns what follows."""
    moved = statements_store.renew(database, moved)
    return _list_followers(database, moved.ids | statements_store.settle(database, moved.threads), moved)


def _list_followers(database: Database, changed: set[Key], moved: Moved) -> Change:
    """Returns what follows from changed statements: their lines, and the weeks that list what still holds."""
    change = Change({Source(STATEMENT, *key) for key in changed})
    change.sources |= {Source(WEEK, *week) for week in statements_store.weeks(database, changed, moved.sessions)}
    return change


class Threads(Deriver):
    """Derives arcs, epochs and summaries of threads from the weeks in which they have sessions."""

    name = "threads"
    version = "4"
    tables = ("memory_thread_heads",)
    kinds = frozenset({WEEK})
    after = (Graph.name, Statements.name, LIVE)
    batch = 5000

    def sources(self, database: Database) -> Iterable[Source]:
        """Yields every week of every thread."""
        return every_week(database)

    def clear(self, database: Database) -> None:
        """Deletes condensations and thread summaries."""
        nodes.clear_threads(database)

    def update(self, database: Database, prepared: Sequence[Source], alive: Alive) -> Change:
        """Derives weeks and their quarters again, then the summaries of their threads."""
        by_thread = groupby(sorted(prepared), key=lambda week: (week.agent_id, week.id))
        for (agent_id, thread_id), some in report_progress(by_thread, alive):
            thread, weeks = _thread(database, agent_id, thread_id), [week.session_id for week in some]
            for week in weeks:
                sessions = nodes.sessions_of(database, agent_id, thread_id, week)
                stated = statements_store.list_of_sessions(database, agent_id, thread_id, [one[:3] for one in sessions])
                arc = rollups.arc(thread, week, sessions, stated) if len(sessions) > 1 else None
                # Edges to every segment and compaction of its sessions, not only to the best of each.
                below = {one.node_id for one in sessions} if arc else set()
                below.update(nodes.summaries_and_compactions(database, agent_id, thread_id, week) if arc else ())
                nodes.store_condensation(database, agent_id, rollups.arc_id(thread, week), arc, below)
            for quarter in {quarter_of(week) for week in weeks}:
                arcs = nodes.arcs(database, agent_id, thread_id, *quarter_span(quarter))
                epoch, epoch_id = rollups.epoch(thread, quarter, arcs), rollups.epoch_id(thread, quarter)
                nodes.store_condensation(database, agent_id, epoch_id, epoch, {one.id for one in arcs} if epoch else ())
            newest = nodes.newest_sessions(database, agent_id, thread_id, threads.SUMMARY_SESSIONS)
            extent = nodes.extent(database, agent_id, thread_id)
            head = threads.summarize(thread, newest, *extent) if newest else None
            if head is not None:
                status = statements_store.read_status(database, agent_id, head.node_id, head.status)
                head = head._replace(status=cast(threads.Status, status))
            nodes.store_summary(database, agent_id, thread_id, head)
        return Change()


def _thread(database: Database, agent_id: str, thread_id: str) -> Thread:
    """Returns a thread from its summary, or from any of its sessions; if it has neither, only its id is set."""
    head = nodes.summary_of(database, agent_id, thread_id)
    if head is not None:
        return Thread(agent_id, thread_id, head.thread_key, head.label, head.project, head.session_key)
    for place in nodes.newest_sessions(database, agent_id, thread_id, 1):
        session = (agent_id, place.session_token, place.session_id)
        found = threads.thread_of(nodes.sources(database, session))
        if found is not None:
            return found
    return Thread(agent_id, thread_id, "", "", None, None)
