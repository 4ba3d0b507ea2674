"""Reads from an index what the open tables hold; a session is named by agent, token and id."""

from __future__ import annotations

from typing import Any

from signet_sync.storage.database import named_rows
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.bodies import text_of

Session = tuple[str, str, str]
_Rows = list[tuple[Any, ...]]
_READ = ", ".join(
    """
    source_path, agent_id, source_kind, session_token, session_id, session_key, project, harness, started_at,
    membership_us, captured_us, ledger_sentence, memory_sentence_quality, noise, repository_root, repository_origin,
    source_sha256
    """.replace("\n", " ").split(", ")
)


def files(database: Database) -> _Rows:
    """Returns path, verdict, code, message, notes, agent, size and digest of every file."""
    return list(
        database.execute(
            "select path, verdict, code, message, notes, agent_id, iif(code = 'not-a-file', null, size), found_sha256"
            " from files"
        )
    )


def artifacts(database: Database, *, bodies: bool) -> _Rows:
    """Returns every artifact, its body last: null without `bodies`."""
    body = text_of() if bodies else "null"
    return list(database.execute(f"select {_READ}, {body} from memory_artifacts"))


def sessions(database: Database) -> dict[str, Session]:
    """Returns the session of every artifact, by path."""
    rows = database.execute("select source_path, agent_id, session_token, session_id from memory_artifacts")
    return {path: (agent, token, session) for path, agent, token, session in rows}


def listed(database: Database) -> dict[Session, tuple[str, str]]:
    """Returns sentence and path of the sessions that the session log lists."""
    rows = database.execute("select agent_id, session_token, session_id, sentence, path from ledger_rows")
    return {(agent, token, session): (sentence, path) for agent, token, session, sentence, path in rows}


def projects(database: Database) -> dict[Session, str]:
    """Returns the projects of sessions: the one of the thread, else what the session's own place gives."""
    found = {
        row[:3]: row[3]
        for row in database.execute(
            "select agent_id, session_token, session_id, min(identity) from session_projects where identity <> ''"
            " group by 1, 2, 3"
        )
    }
    found |= {
        row[:3]: row[3]
        for row in database.execute(
            "select s.agent_id, s.session_token, s.session_id, h.project from thread_sessions s"
            " join memory_thread_heads h on h.agent_id = s.agent_id and h.thread_id = s.thread_id"
            " where h.project is not null"
        )
    }
    return found


def statements(database: Database) -> dict[Session, list[str]]:
    """Returns what sessions state, in the order of their lines."""
    found: dict[Session, list[str]] = {}
    for agent, token, session, text in database.execute(
        f"select agent_id, session_token, session_id, text from {named_rows.SOURCES} order by at_us, source_path, line"
    ):
        found.setdefault((agent, token, session), []).append(text)
    return found


def facts(database: Database) -> _Rows:
    """Returns every fact, in the words of its newest source."""
    return list(
        database.execute(
            "select agent_id, id, entity_id, aspect, text, status, superseded_by, ended_by, sources, earliest_us,"
            f" latest_us, source_path, line from {named_rows.FACTS}"
        )
    )


def subjects(database: Database) -> dict[tuple[str, str], tuple[str, str]]:
    """Returns name and kind of what facts are about, by agent and id."""
    rows = database.execute("select agent_id, id, name, kind from entities")
    return {(agent, subject): (name, kind) for agent, subject, name, kind in rows}
