"""Keeps statements equal to what running sessions have said since their last artifact."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from signet_sync.formats.handle import id_of
from signet_sync.formats.ids import token_of
from signet_sync.formats.statement import Item
from signet_sync.formats.timestamps import parse_instant
from signet_sync.graph.nodes import make_place
from signet_sync.graph.stage import VERSION, Statements, report_progress, settle_moved
from signet_sync.graph.store.quotes import Projects
from signet_sync.sessions.live import store as live
from signet_sync.sessions.live.store import RUNNING, RunningSession
from signet_sync.sessions.live.turns import SpokenTurn, render
from signet_sync.statements import store as statements_store
from signet_sync.statements.store import StatedItems
from signet_sync.storage.database.batches import Session
from signet_sync.storage.database.connection import Database
from signet_sync.sync.index_records import SESSION, Change, Source
from signet_sync.sync.store import artifacts
from signet_sync.sync.workspace import Alive, Deriver


def distil_turns(said: Sequence[SpokenTurn]) -> list[tuple[int, Item]]:
    """Returns what (sanitized) turns state, each with the index of the turn that says it.

    By the rules that write a summary. What the agent states waits for the transcript: only that has the results of
    tools, which tell whether it repeats a page.
    """
    # Not for a pass without live turns.
    from signet_sync.digest.outcome import outcome
    from signet_sync.statements.sections import list_stated
    from signet_sync.text.sanitizer import sanitize_counted

    texts = [render([turn]) for turn in said]
    found = outcome("\n\n".join(texts))
    found = found._replace(items=tuple(item for item in found.items if item.who == "person"))
    # Each turn begins two lines below the last line of the one before.
    begins = list(accumulate((text.count("\n") + 2 for text in texts[:-1]), initial=1))
    # Rules may have become stricter since the turns were stored.
    items = (item._replace(text=sanitize_counted(item.text)[0]) for item in list_stated(found))
    return [(max(bisect_right(begins, item.line) - 1, 0), item) for item in items]


# Characters of the newest turns that are distilled: some thousand turns, half a second.
MOST_DISTILLED = 400_000

# The sessions that moved, and what they state.
_Prepared = tuple[list[Session], list[StatedItems]]
_Running = Mapping[Session, Sequence[RunningSession]]


class LiveStatements(Deriver):
    """Derives statements from the live turns of running sessions.

    What artifacts hold is theirs: an artifact of a session covers all that was said up to its end.
    """

    name = statements_store.LIVE
    tables = ()
    kinds = frozenset({SESSION, RUNNING})
    after = (Statements.name,)

    @property
    def version(self) -> str:  # type: ignore[override]
        """Names the version of the rules."""
        return f"2 statements {VERSION}"

    def sources(self, database: Database) -> Iterable[Source]:
        """Yields every running session; what they state follows from these alone."""
        return (Source(RUNNING, *one[:3]) for one in live.list_running(database))

    def prepare(
        self, database: Database, sources: Sequence[Source], earlier: Mapping[str, Any], alive: Alive
    ) -> _Prepared:
        """Distils the sessions whose turns, artifacts or projects changed, by the names that their files will have."""
        running: dict[Session, list[RunningSession]] = {}
        for agent_id in sorted({one.agent_id for one in sources}):
            for one in live.list_running(database, agent_id):
                session = agent_id, token_of(agent_id, one.session_key), one.name
                running.setdefault(session, []).append(one)  # one may have two names
        projects = Projects(database)
        changed = _list_changed(database, sources, running, projects)
        stated: list[StatedItems] = []
        for session in report_progress(changed, alive):
            if some := [one for one in running.get(session, ()) if not one.noise]:
                stated += _distil_session(database, session, some, _project(some[0], projects))
        return changed, stated

    def update(self, database: Database, prepared: _Prepared, alive: Alive) -> Change:
        """Replaces what the sessions stated before."""
        sessions, stated = prepared
        if not sessions:
            return Change()
        change = settle_moved(database, statements_store.replace(database, sessions, stated, running=True))
        change.agents |= {source.agent_id for source in change.sources}
        return change


def _list_changed(
    database: Database, sources: Sequence[Source], running: _Running, projects: Projects
) -> list[Session]:
    """Returns the sessions to distil: those whose turns moved, and those that artifacts moved."""
    found = {
        (one.agent_id, token_of(one.agent_id, one.id), one.session_id or one.id)
        for one in sources
        if one.kind == RUNNING
    }
    of_artifacts = {one.session[:2] for one in sources if one.kind == SESSION}
    if of_artifacts:
        for session, project in statements_store.projects_of(database, running).items():
            # Another session's artifact may name the repository that this one works in.
            if session[:2] in of_artifacts or project != _project(running[session][0], projects):
                found.add(session)
    return sorted(found)


def _project(one: RunningSession, projects: Projects) -> str:
    place = make_place(one.place.project, one.place.repository_root, one.place.repository_origin)
    return projects.find(one.agent_id, place)


def _distil_session(
    database: Database, session: Session, some: Sequence[RunningSession], project: str
) -> list[StatedItems]:
    """Returns what a session has said since its last artifact, by instants."""
    agent_id, token, session_id = session
    # Under a key that sessions share, the files of each cover what was said without an id.
    covered = artifacts.find_covered_until(database, agent_id, token, session_id if some[0].session_id else None)
    turns = sorted(turn for one in some for turn in live.newest(database, *one[:3], MOST_DISTILLED))
    said = [(turn, at_us) for turn in turns if (at_us := parse_instant(turn.at) or 0) > covered]
    if not said:
        return []
    name = ("project", project) if project else ("session", session_id, token)
    thread = id_of("t", agent_id, *name)
    parts: dict[int, list[Item]] = {}
    for place, item in distil_turns([SpokenTurn(turn.role, turn.content, turn.at) for turn, _ in said]):
        turn, at_us = said[place]
        parts.setdefault(at_us, []).append(item._replace(line=turn.turn))
    return [StatedItems(session, thread, project, "", at_us, tuple(items)) for at_us, items in sorted(parts.items())]
