"""Keeps the temporal graph and what is distilled in step with the artifacts: by session, then by thread.

Inside the transaction of the pass that moved the artifacts. The cost is that of the session and its thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from signet_sync import state
from signet_sync.agent import projection
from signet_sync.agent.garbage import uncollected
from signet_sync.agent.workspace import Workspace
from signet_sync.contracts import digests
from signet_sync.contracts.sentences import flatten, is_template
from signet_sync.facts.distil import distil
from signet_sync.facts.items import slot_of
from signet_sync.facts.records import Distilled, Item
from signet_sync.index import facts, gardens, lines, memories, nodes, wordings
from signet_sync.index.database import Database
from signet_sync.index.facts import Stated
from signet_sync.index.lines import Line
from signet_sync.index.nodes import Session
from signet_sync.temporal import condense, threads
from signet_sync.temporal.nodes import Edge, Node, SessionNodes, Source, best_of, of_session
from signet_sync.temporal.threads import Thread, ThreadHead, ThreadSession, Told

if TYPE_CHECKING:
    from signet_sync.digest.retelling import Retold

_Thing = TypeVar("_Thing")
_Condensed = tuple[Node, tuple[Edge, ...]]

# Another one where the same artifacts give another graph: the next full pass makes it anew.
VERSION = f"2 digest {digests.VERSION}"
_STAMP = "graph"
_BATCH = 500
# Sessions or threads from one sign of life to the next: a few hundredths of a second each way.
_STRIDE = 25


def is_stale(database: Database) -> bool:
    """Whether the graph was made by other rules than ours."""
    return database.meta(_STAMP) != VERSION


def update(
    database: Database, sessions: Collection[Session], *, whole: bool, alive: Callable[[], None] = lambda: None
) -> None:
    """The graph after some sessions moved, or (`whole`) all of it anew. In the caller's transaction.

    `alive` is called every now and then; what it raises ends the work.
    """
    if whole:
        _rebuild(database, alive)
        wordings.drop_stale(database)
    elif sessions:
        wordings.drop_stale(database, _follow(database, sorted(sessions), alive))


def rederive(workspace: Workspace, sessions: Collection[Session], now_us: int) -> None:
    """Derives sessions again whose artifacts stayed as they are, and renders the pages of their agents.

    Raises `WorkspaceError` (`busy`), `DatabaseError`.
    """
    with state.workspace_lock(workspace.state):
        with workspace.database.transaction():
            update(workspace.database, sessions, whole=False)
        agents = {agent_id for agent_id, _, _ in sessions}
        projection.project(workspace, agents=agents, days=(), touched=(), now_us=now_us)


@dataclass(frozen=True, slots=True)
class _Told:
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


def _follow(database: Database, sessions: Sequence[Session], alive: Callable[[], None]) -> set[tuple[str, str]]:
    """Gives the condensations (agent, id) that may tell something else now."""
    moved = _Moved()
    asked = nodes.any_extracted(database)
    told: list[_Told] = []
    for session in _heard(sessions, alive):
        sources = nodes.sources(database, session)
        told.append(_tell(session, sources, _extracted(database, sources) if asked else {}))
        _store(database, told[-1], moved)
    facts.settle(database, facts.replace(database, sessions, [stated for one in told for stated in one.stated]))
    condensed: set[tuple[str, str]] = set()
    for thread_id, thread in _heard(moved.threads.items(), alive):
        condensed |= _settle_thread(database, thread, moved.weeks[thread_id])
    return condensed


def _heard(things: Iterable[_Thing], alive: Callable[[], None]) -> Iterator[_Thing]:
    """The same things, with a sign of life every few of them."""
    for number, thing in enumerate(things):
        if number % _STRIDE == 0:
            alive()
        yield thing


def _extracted(database: Database, sources: Sequence[Source]) -> Mapping[str, Sequence[Item]]:
    return nodes.extracted(database, sources[0].agent_id, [s.source_path for s in sources]) if sources else {}


def _store(database: Database, told: _Told, moved: _Moved) -> None:
    before = nodes.place_of(database, told.session)
    former = _thread_of(database, before)
    if not nodes.store_session(database, told.session, told.nodes.nodes, told.nodes.edges, told.place):
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


def _tell(session: Session, sources: Sequence[Source], extracted: Mapping[str, Sequence[Item]]) -> _Told:
    thread = threads.thread_of(sources)
    again = _retold(sources) if thread is not None else None
    if again is not None and again.says_nothing and _is_ours(sources):
        thread = None
    made = of_session(sources, thread.id if thread is not None else None)
    if thread is None:
        return _Told(session, None, made, None, ())
    distilled = {source.source_path: distil(source.content, project=source.project) for source in _telling(sources)}
    told = None
    if again is not None:
        _tell_anew(distilled, sources, again)
        told = _better(sources, again)
    # A model's items are facts and nothing more: heads and condensations are the same with and without one.
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
            _with(distilled[source.source_path], extracted.get(source.source_path, ())),
        )
        for source in sources
        if source.source_path in distilled
    )
    return _Told(session, thread, made, place, stated)


def _retold(sources: Sequence[Source]) -> Retold | None:
    """What today's rules tell of a session whose files hold a form or 0.1.0's digest; None where its files do."""
    best = best_of(sources)
    if best is None or not (is_template(best.sentence) or any(map(_is_of_first_rules, sources))):
        return None
    transcripts = [source for source in sources if source.source_kind == "transcript"]
    if not transcripts:
        return None
    from signet_sync.digest.retelling import retold

    return retold(transcripts)


def _is_of_first_rules(source: Source) -> bool:
    return source.source_kind == "summary" and digests.is_of_first_rules(source.content)


def _is_ours(sources: Sequence[Source]) -> bool:
    """Whether nobody but the rules of 0.1.0 summed a session up."""
    return all(source.source_kind == "transcript" or _is_of_first_rules(source) for source in sources)


def _tell_anew(distilled: dict[str, Distilled], sources: Sequence[Source], again: Retold) -> None:
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


def _better(sources: Sequence[Source], again: Retold) -> Told:
    best = best_of(sources)
    assert best is not None
    return Told(
        again.sentence if is_template(best.sentence) else None, again.status if _is_of_first_rules(best) else None
    )


def _telling(sources: Sequence[Source]) -> list[Source]:
    """The artifacts that facts are taken from: transcripts only where nobody summed them up."""
    summed = [source for source in sources if source.source_kind != "transcript"]
    return summed or list(sources)


def _with(distilled: Distilled, more: Sequence[Item]) -> Distilled:
    if not more:
        return distilled
    # What a model has to do with is loaded only where one was asked.
    from signet_sync.wording import beside

    return distilled._replace(items=beside(distilled.items, more))


# ── threads ──


def _settle_thread(database: Database, thread: Thread, weeks: Iterable[str]) -> set[tuple[str, str]]:
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
    nodes.store_head(database, head, _line(head))


def _condensed(database: Database, agent_id: str, node_id: str, made: _Condensed | None) -> tuple[str, str]:
    if made is None:
        nodes.drop_nodes(database, agent_id, [node_id])
    else:
        nodes.store_condensation(database, *made)
    return agent_id, node_id


def _line(head: ThreadHead) -> Line:
    """What `recall` finds a thread by."""
    parts = [head.label, head.sample, head.next_action or "", *head.blockers, *head.loops]
    return Line(head.agent_id, "thread", head.thread_id, "\n".join(filter(None, parts)))


# ── all of it ──


def _rebuild(database: Database, alive: Callable[[], None]) -> None:
    with uncollected():
        _make_anew(database, alive)
    database.set_meta(_STAMP, VERSION)


def _make_anew(database: Database, alive: Callable[[], None]) -> None:
    nodes.clear(database)
    lines.clear(database)
    facts.clear(database)
    asked = nodes.any_extracted(database)
    found: dict[str, Thread] = {}
    batch: list[_Told] = []
    for session, sources in _heard(nodes.all_sources(database), alive):
        told = _tell(session, sources, _extracted(database, sources) if asked else {})
        if told.thread is not None:
            found[told.thread.id] = told.thread
        batch.append(told)
        if len(batch) == _BATCH:
            _add(database, batch)
            batch = []
    _add(database, batch)
    facts.settle(database, None)
    for thread in _heard(found.values(), alive):
        _add_thread(database, thread)
    lines.add(database, [*memories.lines(database), *gardens.lines(database)])


def _add(database: Database, batch: Sequence[_Told]) -> None:
    nodes.add_sessions(
        database,
        [node for told in batch for node in told.nodes.nodes],
        [edge for told in batch for edge in told.nodes.edges],
        [told.place for told in batch if told.place is not None],
    )
    facts.add(database, [stated for told in batch for stated in told.stated], fresh=True)


def _add_thread(database: Database, thread: Thread) -> None:
    """What `_settle_thread` would make of all weeks of a thread of which nothing stands yet."""
    sessions = nodes.sessions_of(database, thread.agent_id, thread.id)
    weeks: dict[str, list[ThreadSession]] = {session.week: [] for session in sessions}
    below: dict[str, list[str]] = {week: [] for week in weeks}
    for session in sessions:
        weeks[session.week].append(session)
    for week, node_id in nodes.summed_up(database, thread.agent_id, thread.id):
        below[week].append(node_id)
    arcs = {week: arc for week in weeks if (arc := _arc(thread, week, weeks[week], below[week])) is not None}
    quarters: dict[str, list[Node]] = {condense.quarter_of(week): [] for week in arcs}
    for week, (node, _) in arcs.items():
        quarters[condense.quarter_of(week)].append(node)
    epochs = filter(None, (condense.epoch(thread, quarter, below) for quarter, below in quarters.items()))
    newest_arc = min((node for node, _ in arcs.values()), key=lambda node: (-node.latest_us, node.id), default=None)
    head = threads.head(
        thread,
        sessions,
        len(sessions),
        min(session.earliest_us for session in sessions),
        newest_arc.id if newest_arc is not None else None,
    )
    nodes.add_thread(database, [*arcs.values(), *epochs], head, _line(head))
