"""Derives the graph from artifacts: projects and nodes of sessions, their quotes and statements, and their threads.

Quotes and deeds are kept of the newest sessions of each thread: contexts and statements look at no others. What the
rest costs is proportional to the weeks and quarters that moved.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from signet_sync.formats.statement import Item
from signet_sync.formats.timestamps import quarter_of, quarter_span
from signet_sync.graph import threads
from signet_sync.graph.nodes import ArtifactText, SessionNodes, best_of, make_nodes
from signet_sync.graph.store import nodes, quotes
from signet_sync.graph.threads import Thread, ThreadSession
from signet_sync.statements import store as statements_store
from signet_sync.statements.sections import items
from signet_sync.statements.store import LIVE, Key, Moved, StatedItems
from signet_sync.statements.word_files import OUTCOME
from signet_sync.storage.database import batches
from signet_sync.storage.database.batches import Session
from signet_sync.storage.database.connection import Database
from signet_sync.sync.index_records import MANIFEST, SESSION, Change, Source
from signet_sync.sync.workspace import Alive, Deriver
from signet_sync.text import digest_mark
from signet_sync.text.sentences import is_template

if TYPE_CHECKING:
    from signet_sync.digest.summary import DerivedDigest

_Thing = TypeVar("_Thing")

# Kinds of sources that the graph moves, beside threads for what their sessions came to: a week of one, a statement.
WEEK, STATEMENT = "week", "statement"
# Changes whenever the same artifacts would give another graph, or other statements.
VERSION = f"12 digest {digest_mark.VERSION}"
SEGMENTS = 12  # of a session that are looked at: the newest
# Sessions or threads between two calls of `alive`: a few hundredths of a second each.
_STRIDE = 25


def sessions(database: Database) -> Iterable[Source]:
    """Yields every session that has an artifact."""
    return (Source(SESSION, *session) for session in nodes.sessions(database))


def report_progress(things: Iterable[_Thing], alive: Alive) -> Iterator[_Thing]:
    """Yields the same items, calling `alive` every few of them."""
    for number, thing in enumerate(things):
        if number % _STRIDE == 0:
            alive()
        yield thing


class SessionProjects(Deriver):
    """Derives where each session worked, and its project; the graph follows.

    A session whose files name no origin belongs to the repository whose root its folder is at or below, if any session
    names that root. So a root that appears, disappears or changes its origin moves other sessions.
    """

    name = "projects"
    version = "2"
    tables = ("session_projects",)
    kinds = frozenset({SESSION, MANIFEST})  # a manifest alone may name the folder

    def sources(self, database: Database) -> Iterable[Source]:
        """Yields every session."""
        return sessions(database)

    def update(self, database: Database, prepared: Sequence[Source], alive: Alive) -> Change:
        """Updates the rows of sessions; returns the sessions that roots moved."""
        sessions = sorted({one.session for one in prepared})
        before, after = quotes.read_rows(database, sessions), quotes.make_rows(database, sessions)
        if before == after:
            return Change()
        roots = sorted({(row[0], row[4]) for row in before ^ after if row[4]})
        known = [quotes.find_only_origin(database, *root) for root in roots]
        quotes.replace(database, before - after, after - before)
        moved: set[Session] = set()
        for root, origin in zip(roots, known, strict=True):
            alive()
            if quotes.find_only_origin(database, *root) != origin:
                moved |= quotes.find_moved(database, *root)
        return Change(Source(SESSION, *session) for session in moved.difference(sessions))


class Graph(Deriver):
    """Derives nodes, edges and places in threads from sessions."""

    name = "graph"
    version = VERSION
    tables = ("session_summaries", "session_summary_children", "thread_sessions")
    kinds = frozenset({SESSION})
    after = (SessionProjects.name,)

    def sources(self, database: Database) -> Iterable[Source]:
        """Yields every session."""
        return sessions(database)

    def prepare(
        self, database: Database, sources: Sequence[Source], earlier: Mapping[str, Any], alive: Alive
    ) -> dict[Session, "SessionDerivation"]:
        """Reads sessions and derives the content of each."""
        return _derive(database, (one.session for one in sources), alive)

    def update(self, database: Database, prepared: dict[Session, "SessionDerivation"], alive: Alive) -> Change:
        """Stores what sessions yield; returns the weeks of threads that moved, and the threads for their outcomes."""
        given = {session: (*one.nodes[:2], one.place) for session, one in prepared.items()}
        moved = nodes.store_sessions(database, given)
        weeks = {Source(WEEK, place.agent_id, place.thread_id, place.week) for place in moved}
        return Change(weeks | {Source(OUTCOME, place.agent_id, place.thread_id) for place in moved})


class _OfSessionsAndThreads(Deriver):
    """Derives from sessions, and from threads for what their sessions came to."""

    kinds = frozenset({SESSION, OUTCOME})

    def sources(self, database: Database) -> Iterable[Source]:
        yield from sessions(database)
        yield from {Source(OUTCOME, agent_id, thread_id) for agent_id, thread_id, _ in nodes.weeks(database)}


class Quotes(_OfSessionsAndThreads):
    """Derives quotes and deeds of the newest sessions of a thread, once it is known which ones they are."""

    name = "quotes"
    version = f"4 digest {digest_mark.VERSION}"
    tables = ("session_notes",)
    after = (Graph.name,)

    def update(self, database: Database, prepared: Sequence[Source], alive: Alive) -> Change:
        """Keeps what sessions said that moved or are among the newest now, and no longer that of others.

        Returns the threads whose deeds may end other statements now.
        """
        change = Change()
        sessions = {one.session for one in prepared if one.kind == SESSION}
        older = set(batches.numbers(database, sessions).values())
        asked_of = {(one.agent_id, one.id) for one in prepared if one.kind == OUTCOME}
        asked_of |= {(one.agent_id, one.thread_id) for one in nodes.places_of(database, sessions).values()}
        for agent_id, thread_id in sorted(asked_of):
            newest = quotes.newest(database, agent_id, thread_id)
            known = quotes.list_known(database, agent_id, thread_id)
            older -= set(newest.values())
            asked = [one for one, number in newest.items() if one in sessions or number not in known]
            quotes.drop(database, known.difference(newest.values()))
            if asked:
                from signet_sync.digest.quotes import words_of  # slow import, not needed for summaries alone
            texts = nodes.transcripts(database, asked, digest_mark.SINCE_US)
            for session, said in report_progress(texts, alive):
                words = words_of(said[-SEGMENTS:]) if said else None
                if quotes.store(database, newest[session], agent_id, thread_id, words):
                    change.sources.add(Source(OUTCOME, agent_id, thread_id))
        quotes.drop(database, older)
        return change


_Prepared = tuple[list[Session], list[StatedItems], set[Key]]


class Statements(_OfSessionsAndThreads):
    """Derives statements from sessions, and which of them still hold."""

    name = "statements"
    version = VERSION
    tables = ("statements",)
    after = (Quotes.name,)

    def prepare(
        self, database: Database, sources: Sequence[Source], earlier: Mapping[str, Any], alive: Alive
    ) -> _Prepared:
        """Returns sessions, what their artifacts state, and the threads in which another outcome may end something."""
        derived: dict[Session, SessionDerivation] = dict(earlier.get(Graph.name, {}))
        sessions = [one.session for one in sources if one.kind == SESSION]
        derived |= _derive(database, (one for one in sessions if one not in derived), alive)
        stated = [one for session in sessions for one in derived[session].stated]
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
    version = "7"
    tables = ("memory_thread_heads",)
    kinds = frozenset({WEEK})
    after = (Graph.name, Statements.name, LIVE)
    batch = 5000

    def sources(self, database: Database) -> Iterable[Source]:
        return (Source(WEEK, *week) for week in nodes.weeks(database))

    def clear(self, database: Database) -> None:
        nodes.clear_threads(database)

    def update(self, database: Database, prepared: Sequence[Source], alive: Alive) -> Change:
        """Derives weeks and their quarters again, then the summaries of their threads."""
        by_thread = groupby(sorted(prepared), key=lambda week: (week.agent_id, week.id))
        for (agent_id, thread_id), some in report_progress(by_thread, alive):
            thread, weeks = _find_thread(database, agent_id, thread_id), [week.session_id for week in some]
            for week in weeks:
                sessions = nodes.sessions_of(database, agent_id, thread_id, week)
                stated = statements_store.list_of_sessions(database, agent_id, thread_id, [one[:3] for one in sessions])
                arc = threads.arc(thread, week, sessions, stated)
                below = {one.node_id for one in sessions}
                nodes.store_condensation(database, agent_id, threads.roll_up_id(thread, week), arc, below)
            for quarter in {quarter_of(week) for week in weeks}:
                arcs = nodes.arcs(database, agent_id, thread_id, *quarter_span(quarter))
                epoch, epoch_id = threads.epoch(thread, quarter, arcs), threads.roll_up_id(thread, quarter)
                nodes.store_condensation(database, agent_id, epoch_id, epoch, {one.id for one in arcs} if epoch else ())
            head = None
            for newest in nodes.newest_sessions(database, agent_id, thread_id, 1):
                head = threads.summarize(thread, newest, *nodes.extent(database, agent_id, thread_id))
                status = statements_store.read_status(database, agent_id, head.node_id, head.status)
                head = head._replace(status=cast(threads.Status, status))
            nodes.store_summary(database, agent_id, thread_id, head)
        return Change()


def _find_thread(database: Database, agent_id: str, thread_id: str) -> Thread:
    """Returns a thread from its summary, or from any of its sessions; if it has neither, only its id is set."""
    head = nodes.summary_of(database, agent_id, thread_id)
    if head is not None:
        return Thread(agent_id, thread_id, head.label, head.project, head.session_key)
    for place in nodes.newest_sessions(database, agent_id, thread_id, 1):
        for _, texts in nodes.artifact_texts(database, [place[:3]]):
            if (found := threads.thread_of(texts)) is not None:
                return found
    return Thread(agent_id, thread_id, "", None, None)


# ── one session ──


class SessionDerivation(NamedTuple):
    """What one session yields: nodes, its place in a thread, what its artifacts state."""

    nodes: SessionNodes
    place: ThreadSession | None
    stated: tuple[StatedItems, ...]


def _derive(database: Database, wanted: Iterable[Session], alive: Alive) -> dict[Session, SessionDerivation]:
    found = nodes.artifact_texts(database, report_progress(wanted, alive))
    return {session: derive_session(session, texts) for session, texts in found}


def derive_session(session: Session, sources: Sequence[ArtifactText]) -> SessionDerivation:
    """Derives what a session yields from its content artifacts, oldest first.

    Statements of segments to tell, and a sentence that is a form, are made again by today's rules.
    """
    thread, best = threads.thread_of(sources), best_of(sources)
    digest, retold = None, _find_segments_to_tell(sources)
    transcripts = [source for source in sources if source.source_kind == "transcript"]
    if thread is not None and best is not None and transcripts and (retold or is_template(best.sentence)):
        from signet_sync.digest.summary import derive_digest  # slow import, not needed for summaries alone

        digest = derive_digest(transcripts)
        if digest.says_nothing and len(transcripts) == len(sources):
            thread = None
    if thread is None or best is None:
        return SessionDerivation(make_nodes(sources, None), None, ())
    made = make_nodes(sources, thread.id)
    said_in = dict(_list_items(sources, transcripts, retold, digest))
    telling = _find_telling(sources, best)
    derived = status = None
    if digest is not None and telling is None:
        derived = digest.sentence if is_template(best.sentence) else None
        status = digest.status if max(one.captured_us for one in sources) in retold else None
    place = threads.session_of(sources, thread, made, said_in, derived, telling, status)
    stated = tuple(
        StatedItems(session, thread.id, thread.project or "", one.source_path, one.membership_us, found)
        for one in sources
        if (found := said_in.get(one.source_path))
    )
    return SessionDerivation(made, place, stated)


def _find_segments_to_tell(sources: Sequence[ArtifactText]) -> set[int]:
    """Returns the segments, by instant, whose statements are made again from their transcripts.

    Those of sessions since `digest_mark.SINCE_US` without a summary, or with one of other rules, or with a form that
    lists nothing.
    """
    if max((source.membership_us for source in sources), default=0) < digest_mark.SINCE_US:
        return set()
    stand = {
        one.captured_us
        for one in sources
        if one.source_kind == "summary"
        and not digest_mark.is_of_other_rules(one.content)
        and (not is_template(one.sentence) or items(one.content))
    }
    return {one.captured_us for one in sources if one.source_kind == "transcript"} - stand


def _list_items(
    sources: Sequence[ArtifactText],
    transcripts: Sequence[ArtifactText],
    retold: set[int],
    digest: "DerivedDigest | None",
) -> Iterator[tuple[str, tuple[Item, ...]]]:
    """Yields path and statements of the artifacts that state something.

    A transcript states what today's rules find in it, or nothing: its headings are not labels of a summary.
    """
    for one in sources:
        if one.source_kind != "transcript" and not (one.source_kind == "summary" and one.captured_us in retold):
            yield one.source_path, items(one.content, own=digest_mark.end_of(one.content) > 0)
    for one, found in zip(transcripts[-SEGMENTS:], digest.outcomes if digest else (), strict=False):
        if one.captured_us in retold:
            from signet_sync.statements.sections import list_stated  # slow import, not needed for summaries alone

            yield one.source_path, list_stated(found)


def _find_telling(sources: Sequence[ArtifactText], best: ArtifactText) -> ArtifactText | None:
    """Returns the newest summary with a sentence of its own, if that of the best artifact, a summary, is a form."""
    if best.source_kind != "summary" or not is_template(best.sentence):
        return None
    told = (one for one in sources if one.source_kind == "summary" and not one.noise and not is_template(one.sentence))
    return max(told, key=lambda one: (one.captured_us, one.source_path), default=None)
