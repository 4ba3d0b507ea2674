"""Reads from an index what sessions of any agent can be named by, and which files they have."""

from __future__ import annotations

from collections.abc import Iterator

from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.removal import Scope, within
from signet_sync.sync.store import counts
from signet_sync.sync.store.bodies import text_of

# What a person may have written into a manifest, and the fields that text can be in.
_FIELDS = f"""
    select session_token, session_id, session_key, project, repository_root, repository_origin,
    case source_kind when 'manifest' then {text_of()} end from memory_artifacts where agent_id = ?"""


def agents(database: Database) -> list[str]:
    """Returns every agent with sessions, sealed or running ones included."""
    found = {row[0] for row in database.execute("select distinct agent_id from seals")}
    found |= {row[0] for row in database.execute("select distinct agent_id from session_transcripts")}
    return sorted({*found, *counts.agents(database)})


def sessions(database: Database, agent_id: str) -> list[tuple[str, str, str]]:
    """Returns token, id and key of an agent's sessions with files or seals; an unknown key is empty."""
    return list(
        database.execute(
            "select distinct session_token, session_id, coalesce(trim(session_key), '') from memory_artifacts"
            " where agent_id = ?1 union select distinct session_token, session_id, '' from seals where agent_id = ?1",
            (agent_id,),
        )
    )


def projects(database: Database, agent_id: str) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Yields token and id of sessions with what their projects are called: folder, root, origin, identity."""
    for token, session_id, *names in database.execute(
        "select a.session_token, a.session_id, a.project, a.repository_root, a.repository_origin, p.identity"
        " from memory_artifacts a left join session_projects p using (agent_id, session_token, session_id)"
        " where a.agent_id = ? group by 1, 2, 3, 4, 5, 6",
        (agent_id,),
    ):
        yield (token, session_id), [name for name in names if name]


def fields(database: Database, agent_id: str) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Yields token and id of sessions with the texts that are in fields of their files."""
    for token, session_id, *texts in database.execute(_FIELDS, (agent_id,)):
        yield (token, session_id), [text for text in texts if text]


def paths(database: Database, scope: Scope) -> set[str]:
    """Returns the paths of what is indexed or sealed of a scope."""
    where, bindings = within(scope)
    rows = database.execute(
        f"select source_path from memory_artifacts where {where} union select path from seals where {where}",
        [*bindings, *bindings],
    )
    return {path for (path,) in rows}
