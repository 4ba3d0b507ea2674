"""Keeps facts equal to what running sessions have said since their last artifact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from signet_sync.facts.store import facts, live_sources, statements
from signet_sync.facts.store.live_sources import LiveSource
from signet_sync.facts.store.statements import ArtifactStatements
from signet_sync.formats.fact import Distilled
from signet_sync.formats.paths import RUNNING as PATH
from signet_sync.formats.session_token import token_of
from signet_sync.formats.timestamps import parse_instant
from signet_sync.graph.facts_stage import FACT, VERSION, Facts
from signet_sync.graph.nodes_stage import WEEK, with_progress
from signet_sync.graph.projects import Project, make_place, rebased
from signet_sync.graph.store.projects import Projects
from signet_sync.sessions.live_turns import SpokenTurn
from signet_sync.sessions.store import live
from signet_sync.sessions.store.live import RUNNING, RunningSession
from signet_sync.storage.database.batches import Session
from signet_sync.storage.database.connection import Database
from signet_sync.sync.stages import SESSION, Alive, Change, Deriver, Source
from signet_sync.sync.store import artifacts

# Characters of the newest turns that are distilled: some thousand turns, half a second.
MOST_DISTILLED = 400_000


# Of the sessions that moved: their sources (None: they state nothing), and what they state.
_Prepared = tuple[dict[Session, LiveSource | None], list[ArtifactStatements]]


class LiveFacts(Deriver):
    """Derives facts from the live turns of running sessions.

    What artifacts hold is theirs: an artifact of a session covers all that was said up to its end.
    """

    name = live_sources.LIVE_FACTS
    tables = ("live_sources",)
    kinds = frozenset({SESSION, RUNNING})
    after = (Facts.name,)

    @property
    def version(self) -> str:  # type: ignore[override]
        """Names the version of the rules."""
        return f"1 facts {VERSION}"

    def sources(self, database: Database) -> Iterable[Source]:
        """Yields every running session; what they state follows from these alone."""
        return (Source(RUNNING, *one[:3]) for one in live.running(database))

    def prepare(
        self, database: Database, sources: Sequence[Source], earlier: Mapping[str, Any], alive: Alive
    ) -> _Prepared:
        """Distils the sessions whose turns, artifacts or projects changed."""
        found: dict[Session, LiveSource | None] = {}
        stated: list[ArtifactStatements] = []
        projects = Projects(database)
        running = _running(database, {one.agent_id for one in sources})
        for session in with_progress(_changed(database, sources, running, projects), alive):
            some = [one for one in running.get(session, ()) if not one.noise]
            said = _stated(database, session, some, projects) if some else []
            found[session] = LiveSource(said[0].source_path, said[0].project or "") if said else None
            stated += said
        return found, stated

    def update(self, database: Database, prepared: _Prepared, alive: Alive) -> Change:
        """Replaces what the sessions stated before."""
        found, stated = prepared
        if not found:
            return Change()
        moved = live_sources.replace(database, {one: source for one, source in found.items() if source is not None})
        touched = statements.replace(database, found, stated, running=True)
        # A source goes last: while it exists, its facts are found by it.
        moved |= live_sources.replace(database, {one: None for one, source in found.items() if source is None})
        settled = facts.settle(database, *touched)
        change = Change({Source(FACT, *key) for key in settled}, agents={one[0] for one in (*moved, *settled)})
        change.sources |= {Source(WEEK, *week) for week in facts.weeks(database, settled)}
        return change


_Running = Mapping[Session, Sequence[RunningSession]]


def _running(database: Database, agents: Iterable[str]) -> _Running:
    """Returns the running sessions of some agents as their artifacts will name them; one may have two names."""
    found: dict[Session, list[RunningSession]] = {}
    for agent_id in sorted(agents):
        for one in live.running(database, agent_id):
            found.setdefault(_session(one), []).append(one)
    return found


def _session(one: RunningSession) -> Session:
    return one.agent_id, token_of(one.agent_id, one.session_key), one.name


def _changed(database: Database, sources: Sequence[Source], running: _Running, projects: Projects) -> list[Session]:
    """Returns the sessions to distil: those whose turns moved, and those that artifacts moved."""
    found = {
        (one.agent_id, token_of(one.agent_id, one.id), one.session_id or one.id)
        for one in sources
        if one.kind == RUNNING
    }
    if any(one.kind == SESSION for one in sources):
        of_artifacts = {one.session[:2] for one in sources if one.kind == SESSION}
        stored = live_sources.stored(database, running)
        for session, source in stored.items():
            # Another session's artifact may name the repository that this one works in.
            if session[:2] in of_artifacts or source.project != _project(running[session][0], projects).identity:
                found.add(session)
    return sorted(found)


def _project(one: RunningSession, projects: Projects) -> Project:
    place = make_place(one.place.project, one.place.repository_root, one.place.repository_origin)
    return projects.find(one.agent_id, place, one.place.repository_path)


def _stated(
    database: Database, session: Session, some: Sequence[RunningSession], projects: Projects
) -> list[ArtifactStatements]:
    """Returns what a session has said since its last artifact, by instants."""
    agent_id, token, session_id = session
    # Under a key that sessions share, the files of each cover what was said without an id.
    covered = artifacts.covered_until(database, agent_id, token, session_id if some[0].session_id else None)
    turns = sorted(turn for one in some for turn in live.newest(database, *one[:3], MOST_DISTILLED))
    said = [(turn, at_us) for turn in turns if (at_us := parse_instant(turn.at) or 0) > covered]
    if not said:
        return []
    # Not for a pass without live turns.
    from signet_sync.sessions.distilled_turns import distil_turns

    project = _project(some[0], projects)
    items = distil_turns([SpokenTurn(turn.role, turn.content, turn.at) for turn, _ in said], project.top)
    parts: dict[int, Distilled] = {}
    for place, item in items:
        turn, at_us = said[place]
        part = parts.setdefault(at_us, Distilled((), ()))
        parts[at_us] = part._replace(items=(*part.items, item._replace(line=turn.turn)))
    return [
        ArtifactStatements(
            agent_id, token, session_id, None, project.identity, f"{PATH}{session_id}", at_us,
            rebased(part, project),
        )
        for at_us, part in sorted(parts.items())
    ]  # fmt: skip
