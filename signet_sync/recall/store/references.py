"""Resolves a handle: an id, a path, a wikilink, a key or the beginning of one. Imports no slow module."""

from collections.abc import Sequence

from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import parse_path
from signet_sync.formats.handle import HANDLE, ID_LENGTH, row_id_of
from signet_sync.formats.paths import head_page
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import sessions
from signet_sync.sync.store.sessions import SessionRef

# By first letter of an id: the table and its column.
_PLACES: dict[str, tuple[str, str]] = {
    **dict.fromkeys("skcae", ("session_summaries", "id")),
    "t": ("memory_thread_heads", "thread_id"),
    "f": ("statements", "id"),
    "m": ("memories", "id"),
    **dict.fromkeys("upr", ("garden_files", "id")),
}
_SHOWN = 8
_LONGEST = 4_096  # characters; keys and paths are far shorter


# ── handles ──


def resolve(database: Database, agent_id: str, handle: str) -> str:
    """Returns the id that a handle means for an agent: one thing, never another agent's.

    Accepts an id of the graph, a statement, a thread, a memory or an entity file, with or without `^`, in full or its
    unambiguous beginning; the path of an artifact or an entity file, as a wikilink too; a session's key, id, token or
    unambiguous beginning, which mean the session's best node. Raises
    `UsageError` (`unknown-handle`, `ambiguous-handle`).
    """
    wanted = handle.encode("utf-8", "replace").decode("utf-8").strip()
    wanted = wanted.removeprefix("[[").removesuffix("]]").partition("|")[0].strip()
    wanted = wanted.partition("#")[2] if "#^" in wanted else wanted  # a block of a page
    if not wanted or len(wanted) > _LONGEST:
        raise refuse_unknown(agent_id, handle)
    found = _find_by_id(database, agent_id, wanted) or _find_by_path(database, agent_id, wanted)
    if not found and not wanted.startswith("^"):
        found = _find_by_session(database, agent_id, wanted)
    if not found:
        raise refuse_unknown(agent_id, handle)
    if len(found) > 1:
        raise _ambiguous(handle, found)
    return found[0]


def _find_by_id(database: Database, agent_id: str, wanted: str) -> list[str]:
    """Returns the things whose ids equal this or begin with it."""
    if HANDLE.fullmatch(wanted) is None:
        return []
    start = wanted.removeprefix("^")
    table, column = _PLACES[start[0]]
    whole = start if len(start) == ID_LENGTH else ""
    start = row_id_of(start) if whole else start
    rows = database.execute(
        # `{` sorts directly after `z`, the last letter of an id.
        f"select distinct {column} from {table} where agent_id = ?1 and {column} >= ?2 and {column} < ?2 || '{{'"
        f" order by {column} limit {_SHOWN + 1}",
        (agent_id, start),
    )
    return [whole or row[0] for row in rows]


def _find_by_path(database: Database, agent_id: str, wanted: str) -> list[str]:
    """Returns an artifact's node (of a transcript its first chunk, of a manifest its session's best), or an entity."""
    place = parse_path(wanted if wanted.endswith(".md") else f"{wanted}.md")
    if place is not None:
        return _find_by_id(database, agent_id, place.id)
    name = wanted.removeprefix("memory/")
    if "--" not in name or "/" in name:
        return []
    path = f"memory/{name}" if name.endswith(".md") else f"memory/{name}.md"
    rows = database.execute(
        "select a.agent_id, a.session_token, a.session_id, a.session_key, n.id from memory_artifacts a"
        " left join session_summaries n on n.artifact = a.id where a.source_path = ? and a.agent_id = ?",
        (path, agent_id),
    )
    found = ([own] if own is not None else best(database, SessionRef(*ref)) for *ref, own in list(rows))
    return [node for nodes in found for node in nodes]


def _find_by_session(database: Database, agent_id: str, wanted: str) -> list[str]:
    found = sessions.find(database, agent_id, wanted)
    if len(found) > 1:
        raise _ambiguous(wanted, [f"{ref.session_id} ({ref.session_token})" for ref in found])
    return [node for ref in found for node in best(database, ref)]


def refuse_unknown(agent_id: str, handle: str) -> UsageError:
    """Returns the error for a handle that refers to nothing."""
    return UsageError(
        f"nothing of agent {agent_id} is called {handle[:100]!r}",
        hint="signet-sync recall finds handles by words; --agent chooses another agent",
        code="unknown-handle",
    )


def _ambiguous(handle: str, candidates: Sequence[str]) -> UsageError:
    shown = ", ".join(candidates[:_SHOWN])
    more = " and more" if len(candidates) > _SHOWN else ""
    return UsageError(f"{handle!r} may mean {shown}{more}", hint="use one of them in full", code="ambiguous-handle")


# ── sessions and threads ──


def best(database: Database, ref: SessionRef) -> list[str]:
    """Returns the node that represents a session, as a list of one; empty if it has none.

    That is its newest summary, else compaction, else transcript.
    """
    node = database.value(
        "select n.id from sessions s join session_summaries n on n.session = s.session"
        " join memory_artifacts a on a.id = n.artifact"
        " where s.agent_id = ? and s.session_token = ? and s.session_id = ?"
        " order by case n.source_type when 'summary' then 0 when 'compaction' then 1 else 2 end,"
        " a.captured_us desc, a.source_path desc limit 1",
        ref[:3],
    )
    return [] if node is None else [node]


def owns_path(database: Database, agent_id: str, path: str) -> bool:
    """Returns whether a path is a file that an agent may read: its MEMORY.md, an artifact, an entity file."""
    owned = (
        "select exists(select 1 from memory_artifacts where source_path = ?1 and agent_id = ?2)"
        " or exists(select 1 from garden_files where path = ?1 and agent_id = ?2)"
    )
    return path == head_page(agent_id) or bool(database.value(owned, (path, agent_id)))
