"""Defines what commands and tools ask of a memory: plain values in, one JSON document out.

The agent does it for them if it is there (`ask.operation`), else they do it themselves: same functions, same answer.
Each imports only what it needs, for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from signet_sync.sync.read_only import IndexPlace, count_ids, open_index
from signet_sync.sync.store import counts

if TYPE_CHECKING:
    from signet_sync.capture.harness_files import HarnessFile
    from signet_sync.storage.database.connection import Database

Document = dict[str, Any]
_LISTED = ("session_token", "session_id", "session_key", "day", "project", "harness", "sentence", "membership_us")


def recall(
    place: IndexPlace,
    agent: str,
    *,
    query: str,
    limit: int,
    now_us: int,
    period: list[int] | None = None,
    project: str | None = None,
    shared: bool = False,
    counted: bool = True,
) -> Document:
    """Finds what answers a question; with `shared` in memories that are not private alone.

    `counted`: running sessions are read first, and the hits count as recalled.
    """
    from signet_sync.capture import spool
    from signet_sync.recall import operations as recall_operations
    from signet_sync.recall.store.rows import Period, Within

    if counted and spool.markers(place.state().spool):
        from signet_sync.capture.live_transcript import catch_up  # a session runs

        catch_up(place, agent)
    within = Within(agent, shared, Period(*period) if period else None, project)
    with open_index(place) as database:
        beside = _harness_files(place, database, agent) if project is None and not shared else ()
        hits = recall_operations.recall(database, query, within, limit=limit, beside=beside)
        unknown = "" if hits else _explain_unknown(database, agent)
    if counted:
        recall_operations.count_hits(place, agent, query, hits, now_us)
    return {"hits": [hit._asdict() for hit in hits], "unknown": unknown}


def _harness_files(place: IndexPlace, database: Database, agent: str) -> Iterable[HarnessFile]:
    """Returns what harnesses give to the agent's sessions; an index that was made elsewhere names no place here."""
    from signet_sync.capture import store

    if not store.has_any(database) or (place.chosen is not None and place.chosen != place.state().database):
        return ()
    from signet_sync.capture.harness_files import harness_files

    return harness_files(database, agent, place.root)


def find_files(
    place: IndexPlace,
    agent: str,
    *,
    query: str,
    limit: int,
    period: list[int] | None,
    project: str | None,
    commit: str = "",
    file: str = "",
) -> Document:
    """Finds files of sessions that contain every word, or transcripts of those that made a commit or changed a file."""
    from signet_sync.recall.store.rows import Period, Within
    from signet_sync.recall.store.session_list import files_with, find_transcripts

    within = Within(agent, period=Period(*period) if period else None, project=project)
    with open_index(place) as database:
        if commit or file:
            files = find_transcripts(database, within, commit=commit, file=file, limit=limit)
        else:
            files = files_with(database, query, within, limit=limit)
        unknown = "" if files else _explain_unknown(database, agent)
    return {"files": [file._asdict() for file in files], "unknown": unknown}


def _explain_unknown(database: Database, agent: str) -> str:
    error = counts.make_unknown_error(database, agent)
    return "" if error is None else f"{error.message} — {error.hint}"


def expand(place: IndexPlace, agent: str, *, handle: str, budget: int, counted: bool = True) -> Document:
    """Follows a handle to its node, the surroundings, and its words in the transcript."""
    from signet_sync.recall.expand import expand as follow

    with open_index(place) as database:
        found = follow(database, agent, handle, budget)
    if counted and found["node"]["kind"] != "live":
        count_ids(place, agent, [found["node"]["id"]])
    return found


def open_session(place: IndexPlace, agent: str, *, session: str) -> Document:
    """Describes a session with its segments, paths and lineage."""
    from signet_sync.recall.open_session import describe

    with open_index(place) as database:
        return describe(database, agent, session)


def list_sessions(place: IndexPlace, agent: str, *, limit: int) -> Document:
    """Lists the newest sessions."""
    from signet_sync.recall.store import session_list

    with open_index(place) as database:
        found, more = session_list.page(database, agent, limit=limit)
    sessions = [{name: getattr(one, name) for name in _LISTED} for one in found]
    return {"sessions": sessions, "more": more}


def context(place: IndexPlace, agent: str, *, now_us: int | None = None, **given: Any) -> Document:
    """Composes the context of a session's start: `pages.operations.compose_at_start`."""
    from signet_sync.pages.operations import compose_at_start
    from signet_sync.storage.files import require_root

    require_root(place.root)
    return compose_at_start(place, agent, now=now_us, **given)


def handoff(place: IndexPlace, agent: str, **given: Any) -> Document:
    """Composes what another agent needs to go on with a session: `pages.operations.handoff`."""
    from signet_sync.pages import operations as pages_operations

    return pages_operations.handoff(place, agent, **given)


def remember(place: IndexPlace, agent: str, *, text: str, tags: Sequence[str], **given: Any) -> Document:
    """Remembers a text; `waiting` says why no page shows it yet, `events` what happened on the way."""
    from signet_sync.memories import operations as memories_operations

    with place.open_workspace() as workspace:
        done = memories_operations.remember(workspace, agent, text, tags=tuple(tags), **given)
        document = memories_operations.describe_remembered(done)
        return {"memory": document, "waiting": done.waiting, "events": list(workspace.events)}


OPERATIONS: Mapping[str, Callable[..., Document]] = {
    act.__name__: act for act in (recall, find_files, expand, open_session, list_sessions, context, handoff, remember)
}
