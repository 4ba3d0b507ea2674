"""Keeps the temporal graph equal to the artifacts: nodes by session, then weeks, quarters and the head of each thread.

The cost is that of the session and its thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from signet_sync.contracts import digests
from signet_sync.contracts.sentences import flatten, is_template
from signet_sync.facts.distil import distil
from signet_sync.facts.items import slot_of
from signet_sync.facts.records import Distilled, Item
from signet_sync.index import nodes, wordings
from signet_sync.index.database import Database
from signet_sync.index.facts import Stated
from signet_sync.index.nodes import Session
from signet_sync.sync.stages import SESSION, Change, Source
from signet_sync.temporal import condense, threads
from signet_sync.temporal.nodes import Edge, Node, SessionNodes, best_of, of_session
from signet_sync.temporal.nodes import Source as Artifact
from signet_sync.temporal.threads import Thread, ThreadHead, ThreadSession, Told

if TYPE_CHECKING:
    from signet_sync.digest.retelling import Retold

_Thing = TypeVar("_Thing")

# Kinds of sources that the graph gives to the derivers behind it: condensations and threads, by id.
NODE, THREAD = "node", "thread"
# Another one where the same artifacts give another graph.
VERSION = f"2 digest {digests.VERSION}"
# Sessions or threads from one sign of life to the next: a few hundredths of a second each way.
_STRIDE = 25


@dataclass(frozen=True, slots=True)
class TellsOf:
    """What one session gives: nodes, its place in a thread, what its artifacts state."""

    session: Session
    thread: Thread | None
    nodes: SessionNodes
    place: ThreadSession | None
    stated: tuple[Stated, ...]


@dataclass(slots=True)
class _Moved:
    """Threads that a change concerns, and for each the weeks."""

    threads: dict[str, Thread] = field(default_factory=dict)
    weeks: dict[str, set[str]] = field(default_factory=dict)

    def add(self, thread: Thread, week: str) -> None:
        self.threads[thread.id] = thread
        self.weeks.setdefault(thread.id, set()).add(week)


class Graph:
    """Derives nodes, edges, places and heads of threads from sessions."""

    name = "graph"
    tables = nodes.GRAPH
    kinds = frozenset({SESSION})
    after = ()
    batch = 500

    @property
    def version(self) -> str:
        """Names the rules."""
        return VERSION

    def sources(self, database: Database) -> Iterable[Source]:
        """Gives every session, newest first."""
        return sessions(database)

    def clear(self, database: Database) -> None:
        """Empties the graph."""
        nodes.clear(database)

    def prepare(
        self, database: Database, sources: Sequence[Source], earlier: Mapping[str, Any], alive: Callable[[], None]
    ) -> dict[Session, TellsOf]:
        """Reads sessions and says what each gives."""
        return {one.session: tell(one.session, nodes.sources(database, one.session)) for one in heard(sources, alive)}

    def update(self, database: Database, prepared: dict[Session, TellsOf], alive: Callable[[], None]) -> Change:
        """Stores what sessions give, then sums up the weeks and threads of which something moved."""
        moved = _Moved()
        for one in prepared.values():
            _store(database, one, moved)
        change = Change()
        for thread_id, thread in heard(moved.threads.items(), alive):
            condensed = _settle_thread(database, thread, moved.weeks[thread_id])
            change.sources.update(Source(NODE, thread.agent_id, node_id) for node_id in condensed)
            change.sources.add(Source(THREAD, thread.agent_id, thread_id))
        return change

    def finish(self, database: Database, change: Change | None) -> None:
        """Drops a model's words of what condensations tell no longer."""
        told = None if change is None else {(one.agent_id, one.id) for one in change.sources if one.kind == NODE}
        wordings.drop_stale(database, told)


def sessions(database: Database) -> Iterable[Source]:
    """Gives every session that has an artifact, newest first."""
    return [Source(SESSION, *session) for session in nodes.sessions(database)]


def heard(things: Iterable[_Thing], alive: Callable[[], None]) -> Iterator[_Thing]:
    """Gives the same things, with a sign of life every few of them."""
    for number, thing in enumerate(things):
        if number % _STRIDE == 0:
            alive()
        yield thing


# ── one session ──


def tell(session: Session, sources: Sequence[Artifact]) -> TellsOf:
    """Says what a session gives, by its content artifacts, oldest first."""
    thread = threads.thread_of(sources)
    again = _retold(sources) if thread is not None else None
    if again is not None and again.says_nothing and _is_ours(sources):
        thread = None
    made = of_session(sources, thread.id if thread is not None else None)
    if thread is None:
        return TellsOf(session, None, made, None, ())
    distilled = {source.source_path: distil(source.content, project=source.project) for source in _telling(sources)}
    told = None
    if again is not None:
        _tell_anew(distilled, sources, again)
        told = _better(sources, again)
    place = threads.session_of(sources, thread, made, {path: one.items for path, one in distilled.items()}, told)
    stated = tuple(
        Stated(
            source.agent_id,
            source.session_token,
            source.session_id,
            thread.id,
            source.project,
            source.source_path,
            source.membership_us,
            distilled[source.source_path],
        )
        for source in sources
        if source.source_path in distilled
    )
    return TellsOf(session, thread, made, place, stated)


def _retold(sources: Sequence[Artifact]) -> Retold | None:
    """What today's rules tell of a session whose files hold a form or 0.1.0's digest; None where its files do."""
    best = best_of(sources)
    if best is None or not (is_template(best.sentence) or any(map(_is_of_first_rules, sources))):
        return None
    transcripts = [source for source in sources if source.source_kind == "transcript"]
    if not transcripts:
        return None
    from signet_sync.digest.retelling import retold

    return retold(transcripts)


def _is_of_first_rules(source: Artifact) -> bool:
    return source.source_kind == "summary" and digests.is_of_first_rules(source.content)


def _is_ours(sources: Sequence[Artifact]) -> bool:
    """Whether nobody but the rules of 0.1.0 summed a session up."""
    return all(source.source_kind == "transcript" or _is_of_first_rules(source) for source in sources)


def _tell_anew(distilled: dict[str, Distilled], sources: Sequence[Artifact], again: Retold) -> None:
    """Items of transcripts in the place of those that 0.1.0's digests of them list."""
    transcripts = [source for source in sources if source.source_kind == "transcript"]
    old = {source.captured_us for source in sources if _is_of_first_rules(source)}
    for source in filter(_is_of_first_rules, sources):
        if source.captured_us in {transcript.captured_us for transcript in transcripts}:
            distilled[source.source_path] = distilled[source.source_path]._replace(items=())
    for transcript, stated in zip(transcripts, again.items, strict=True):
        if transcript.captured_us in old:
            items = [Item(one.kind, flatten(one.text), one.line, slot=slot_of(one.text)) for one in stated]
            distilled[transcript.source_path] = Distilled(tuple(items), (), ())


def _better(sources: Sequence[Artifact], again: Retold) -> Told:
    best = best_of(sources)
    assert best is not None
    return Told(
        again.sentence if is_template(best.sentence) else None, again.status if _is_of_first_rules(best) else None
    )


def _telling(sources: Sequence[Artifact]) -> list[Artifact]:
    """The artifacts that facts are taken from: transcripts only where nobody summed them up."""
    summed = [source for source in sources if source.source_kind != "transcript"]
    return summed or list(sources)


# ── threads ──


_Condensed = tuple[Node, tuple[Edge, ...]]


def _store(database: Database, told: TellsOf, moved: _Moved) -> None:
    before = nodes.place_of(database, told.session)
    former = _thread_of(database, before)
    if not nodes.store_session(database, told.session, told.nodes.nodes, told.nodes.edges, told.place, before):
        return
    if before is not None and former is not None:
        moved.add(former, before.week)
    if told.thread is not None and told.place is not None:
        moved.add(told.thread, told.place.week)


def _thread_of(database: Database, place: ThreadSession | None) -> Thread | None:
    """The thread that a session belonged to, as its head tells it."""
    head = nodes.head_of(database, place.agent_id, place.thread_id) if place is not None else None
    return _thread(head) if head is not None else None


def _thread(head: ThreadHead) -> Thread:
    return Thread(
        head.agent_id, head.thread_id, head.thread_key, head.label, head.project, head.session_key, head.harness
    )


def _settle_thread(database: Database, thread: Thread, weeks: Iterable[str]) -> set[str]:
    """Arcs of the weeks, epochs of their quarters, then the head; gives the condensations."""
    agent_id = thread.agent_id
    quarters = set()
    condensed = set()
    for week in weeks:
        quarters.add(condense.quarter_of(week))
        sessions = nodes.sessions_of(database, agent_id, thread.id, week)
        below = [node_id for _, node_id in nodes.summed_up(database, agent_id, thread.id, week)]
        arc_id = condense.arc_id(thread, week)
        condensed.add(_condensed(database, agent_id, arc_id, _arc(thread, week, sessions, below)))
    for quarter in quarters:
        arcs = nodes.arcs(database, agent_id, thread.id, *condense.quarter_span(quarter))
        epoch_id = condense.epoch_id(thread, quarter)
        condensed.add(_condensed(database, agent_id, epoch_id, condense.epoch(thread, quarter, arcs)))
    _settle_head(database, thread)
    return condensed


def _arc(thread: Thread, week: str, sessions: Sequence[ThreadSession], below: Iterable[str]) -> _Condensed | None:
    """An arc and its edges: to every segment and compaction of its sessions, not only to what stands for each."""
    made = condense.arc(thread, week, sessions)
    if made is None:
        return None
    node, edges = made
    return node, (*edges, *(Edge(node.agent_id, node.id, child) for child in below))


def _settle_head(database: Database, thread: Thread) -> None:
    newest = nodes.newest_sessions(database, thread.agent_id, thread.id, threads.HEAD_SESSIONS)
    if not newest:
        nodes.drop_head(database, thread.agent_id, thread.id)
        return
    count, earliest = nodes.extent(database, thread.agent_id, thread.id)
    head = threads.head(thread, newest, count, earliest, nodes.newest_arc(database, thread.agent_id, thread.id))
    nodes.store_head(database, head)


def _condensed(database: Database, agent_id: str, node_id: str, made: _Condensed | None) -> str:
    if made is None:
        nodes.drop_nodes(database, agent_id, [node_id])
    else:
        nodes.store_condensation(database, *made)
    return node_id
