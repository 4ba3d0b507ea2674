"""Derives nodes of the temporal graph, and which thread a session belongs to, from artifacts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from signet_sync.formats.statement import Item
from signet_sync.graph import threads
from signet_sync.graph.nodes import ArtifactText as Artifact
from signet_sync.graph.nodes import SessionNodes, best_of, make_nodes
from signet_sync.graph.store import nodes
from signet_sync.graph.store.nodes import Session
from signet_sync.graph.store.projects import Projects
from signet_sync.graph.threads import Thread, ThreadSession
from signet_sync.statements.sections import items
from signet_sync.statements.store import StatedItems
from signet_sync.storage.database.connection import Database
from signet_sync.sync.index_records import SESSION, Change, Source
from signet_sync.sync.workers import Alive
from signet_sync.sync.workspace import Deriver, Work
from signet_sync.text import digest_mark
from signet_sync.text.sentences import is_template

if TYPE_CHECKING:
    from signet_sync.digest.record import Record
    from signet_sync.digest.summary import DerivedDigest


from signet_sync.graph.store import projects
from signet_sync.sync.index_records import MANIFEST

_Thing = TypeVar("_Thing")

# Kinds of sources that the graph moves: a week of a thread, and a thread for what its sessions came to.
WEEK, OUTCOME = "week", "outcome"
# Changes whenever the same artifacts would give another graph.
VERSION = f"10 digest {digest_mark.VERSION}"
# Characters of the longest segment that may be small talk, and segments of a session that are looked at.
SLIGHT, SEGMENTS = 400, 12
# Sessions or threads between two calls of `alive`: a few hundredths of a second each.
_STRIDE = 25


class SessionDerivation(NamedTuple):
    """What one session yields: nodes, its place in a thread, what its artifacts state; what was read of it, if kept."""

    session: Session
    thread: Thread | None
    nodes: SessionNodes
    place: ThreadSession | None
    stated: tuple[StatedItems, ...]
    records: "tuple[Record, ...]" = ()


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
        return (Source(SESSION, *session) for session in nodes.sessions(database))

    def update(self, database: Database, prepared: Sequence[Source], alive: Alive) -> Change:
        """Updates the rows of sessions; returns the sessions that roots moved."""
        sessions = sorted({one.session for one in prepared})
        before, after = projects.read_rows(database, sessions), projects.make_rows(database, sessions)
        if before == after:
            return Change()
        roots = sorted({(row[0], row[4]) for row in before ^ after if row[4]})
        known = [projects.only_origin(database, *root) for root in roots]
        projects.replace(database, before - after, after - before)
        moved: set[Source] = set()
        for root, origin in zip(roots, known, strict=True):
            alive()
            if projects.only_origin(database, *root) != origin:
                moved.update(Source(SESSION, *session) for session in projects.find_moved(database, *root))
        return Change({one for one in moved if one.session not in sessions})


class Graph(Deriver):
    """Derives nodes, edges and places in threads from sessions."""

    name = "graph"
    tables = ("session_summaries", "session_summary_children", "thread_sessions")
    kinds = frozenset({SESSION})
    after = (SessionProjects.name,)

    @property
    def version(self) -> str:  # type: ignore[override]
        """Names the version of the rules."""
        return VERSION

    def sources(self, database: Database) -> Iterable[Source]:
        """Yields every session."""
        return sessions(database)

    def work(self, database: Database, sources: Sequence[Source]) -> Work:
        """Returns the work of deriving each session, for workers."""
        projects = Projects(database)
        return Work(
            _derive_row,
            (
                (Source(SESSION, *one[0]), one)
                for one in nodes.list_stored_artifacts(database, _sessions(sources), projects)
            ),
        )

    def prepare(
        self, database: Database, sources: Sequence[Source], earlier: Mapping[str, Any], alive: Alive
    ) -> dict[Session, SessionDerivation]:
        """Reads sessions and derives the content of each."""
        from_workers: Mapping[Source, SessionDerivation] = earlier.get(self.name, {})
        found = {one.session: derivation for one, derivation in from_workers.items()}
        left = [session for session in _sessions(sources) if session not in found]
        stored = nodes.list_stored_artifacts(database, left, Projects(database))
        read = _read_row if len(left) == 1 else _derive_row  # what was read of many would take much memory
        return found | {row[0]: read(row) for row in report_progress(stored, alive)}

    def update(self, database: Database, prepared: dict[Session, SessionDerivation], alive: Alive) -> Change:
        """Stores what sessions yield; returns the weeks of threads that moved, and the threads for their outcomes."""
        moved = nodes.store_sessions(
            database, {session: (one.nodes.nodes, one.nodes.edges, one.place) for session, one in prepared.items()}
        )
        weeks = {Source(WEEK, place.agent_id, place.thread_id, place.week) for place in moved}
        return Change(weeks | {Source(OUTCOME, place.agent_id, place.thread_id) for place in moved})


def sessions(database: Database) -> Iterable[Source]:
    """Yields every session that has an artifact."""
    return (Source(SESSION, *session) for session in nodes.sessions(database))


def sessions_and_threads(database: Database) -> Iterable[Source]:
    """Yields every session, and every thread for what its sessions came to."""
    yield from sessions(database)
    yield from {Source(OUTCOME, agent_id, thread_id) for agent_id, thread_id, _ in nodes.weeks(database)}


def every_week(database: Database) -> Iterable[Source]:
    """Yields every week of every thread."""
    return (Source(WEEK, *week) for week in nodes.weeks(database))


def _sessions(sources: Iterable[Source]) -> Iterator[Session]:
    return (one.session for one in sources)


def report_progress(things: Iterable[_Thing], alive: Alive) -> Iterator[_Thing]:
    """Yields the same items, calling `alive` every few of them."""
    for number, thing in enumerate(things):
        if number % _STRIDE == 0:
            alive()
        yield thing


# ── one session ──


def derive_session(session: Session, sources: Sequence[Artifact]) -> SessionDerivation:
    """Derives what a session yields from its content artifacts, oldest first."""
    thread = threads.thread_of(sources)
    digest, records = _read(sources) if thread is not None else (None, ())
    if digest is not None and digest.says_nothing and all(one.source_kind == "transcript" for one in sources):
        thread = None
    made = make_nodes(sources, thread.id if thread is not None else None)
    if thread is None:
        return SessionDerivation(session, None, made, None, ())
    said_in = dict(_items_of(sources, digest))
    telling = _telling(sources, said_in)
    derived = status = None
    if digest is not None and telling is None:
        best = best_of(sources)
        derived = digest.sentence if best is not None and is_template(best.sentence) else None
        status = digest.status if max(one.captured_us for one in sources) in _find_segments_to_tell(sources) else None
    place = threads.session_of(sources, thread, made, said_in, derived, telling, status)
    stated = tuple(
        StatedItems(session, thread.id, thread.project or "", one.source_path, one.membership_us, found)
        for one in sources
        if (found := said_in.get(one.source_path))
    )
    return SessionDerivation(session, thread, made, place, stated, records)


def derive_stored(database: Database, session: Session) -> SessionDerivation:
    """Derives what a session yields from its stored artifacts."""
    return derive_session(session, nodes.sources(database, session))


def _read_row(given: tuple[Session, Sequence[Sequence[Any]]]) -> SessionDerivation:
    session, kept = given
    return derive_session(session, [nodes.source_of(row) for row in kept])


def _derive_row(given: tuple[Session, Sequence[Sequence[Any]]]) -> SessionDerivation:
    return _read_row(given)._replace(records=())


def _read(sources: Sequence[Artifact]) -> "tuple[DerivedDigest | None, tuple[Record, ...]]":
    """Returns what today's rules derive of a session whose sentence is a form, or that is to tell; else None."""
    transcripts = [source for source in sources if source.source_kind == "transcript"]
    best = best_of(sources)
    if not transcripts or best is None or not (is_template(best.sentence) or _find_segments_to_tell(sources)):
        return None, ()
    from signet_sync.digest.record import Record  # slow imports, not needed for summaries alone
    from signet_sync.digest.summary import derive_digest

    records = tuple(Record(one.content) for one in transcripts[-SEGMENTS:])
    return derive_digest(transcripts, records), records if is_recent(sources) else ()  # older ones are not quoted


def is_recent(sources: Sequence[Artifact]) -> bool:
    """Returns whether a session is of the months whose transcripts are read again when the rules change."""
    return max((source.membership_us for source in sources), default=0) >= digest_mark.SINCE_US


def _telling(sources: Sequence[Artifact], said_in: Mapping[str, Sequence[Item]]) -> Artifact | None:
    """Returns the summary that says what a resumed session came to, if its newest segment has no results.

    That is the newest one of a segment with results. None if the best artifact says it itself, or none does.
    """
    best = best_of(sources)
    summaries = [source for source in sources if source.source_kind == "summary" and not source.noise]
    if best is None or best not in summaries or len(summaries) == 1 or not _is_slight(best, sources, said_in):
        return None
    summaries.sort(key=lambda source: (source.captured_us, source.source_path), reverse=True)
    earlier = (one for one in summaries[1:SEGMENTS] if not is_template(one.sentence))
    return next((one for one in earlier if not _is_slight(one, sources, said_in)), None)


def _is_slight(summary: Artifact, sources: Sequence[Artifact], said_in: Mapping[str, Sequence[Item]]) -> bool:
    """Returns whether a segment is small talk, or only asks to go on: short, without items and results."""
    if said_in.get(summary.source_path):
        return False
    words = [one for one in sources if one.source_kind == "transcript" and one.captured_us == summary.captured_us]
    if not words or any(len(one.content) > SLIGHT for one in words):
        return False
    from signet_sync.digest.summary import derive_digest  # slow import, needed for few sessions

    found = derive_digest(words)
    return is_template(summary.sentence) or (found.status is not None and not found.has_results)


def _find_segments_to_tell(sources: Sequence[Artifact]) -> set[int]:
    """Returns the segments, by instant, whose statements are made again from their transcripts.

    Those of sessions since `digest_mark.SINCE_US` without a summary, or with one of other rules, or with a form that
    lists nothing.
    """
    if not is_recent(sources):
        return set()
    stand = {
        one.captured_us
        for one in sources
        if one.source_kind == "summary"
        and not digest_mark.is_of_other_rules(one.content)
        and (not is_template(one.sentence) or items(one.content))
    }
    return {one.captured_us for one in sources if one.source_kind == "transcript"} - stand


def _items_of(sources: Sequence[Artifact], digest: "DerivedDigest | None") -> Iterator[tuple[str, tuple[Item, ...]]]:
    """Yields path and statements of the artifacts that state something.

    A transcript states what today's rules find in it, or nothing: its headings are not labels of a summary.
    """
    told = _find_segments_to_tell(sources)
    paths = [one.source_path for one in sources if one.source_kind == "transcript"]
    outcomes = dict(zip(paths[-SEGMENTS:], digest.outcomes, strict=True)) if digest else {}
    for one in sources:
        if one.source_kind != "transcript":
            if one.source_kind != "summary" or one.captured_us not in told:
                yield one.source_path, items(one.content, own=digest_mark.end_of(one.content) > 0)
        elif one.captured_us in told and (found := outcomes.get(one.source_path)) is not None:
            from signet_sync.statements.sections import list_stated  # slow import, not needed for summaries alone

            yield one.source_path, list_stated(found)
