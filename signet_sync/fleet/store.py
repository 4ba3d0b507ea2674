"""Reads from an index what the open tables hold; a session is named by agent, token and id."""

from __future__ import annotations

from typing import Any

from signet_sync.storage.database import named_rows
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.bodies import text_of

Session = tuple[str, str, str]
_Rows = list[tuple[Any, ...]]


def files(database: Database) -> _Rows:
    """Returns path, verdict, code, message, notes, agent, size and digest of every file."""
    return list(
        database.execute(
            "select path, verdict, code, message, notes, agent_id, iif(code = 'not-a-file', null, size),"
            " nullif(found_sha256, '') from files"
        )
    )


def artifacts(database: Database, *, bodies: bool) -> _Rows:
    """Returns every artifact by its session: kind, path, what it says of the session, and its body with `bodies`."""
    return list(
        database.execute(
            "select a.agent_id, a.session_token, a.session_id, a.source_kind, a.source_path, a.session_key, a.project,"
            " a.harness, a.started_at, a.membership_us, a.captured_us, a.ledger_sentence, a.noise, f.size,"
            f" {text_of('a') if bodies else 'null'}"
            " from memory_artifacts a join files f on f.path = a.source_path"
        )
    )


def listed(database: Database) -> dict[Session, tuple[str, str]]:
    """Returns sentence and path of the sessions that the session log lists."""
    rows = database.execute("select agent_id, session_token, session_id, sentence, path from ledger_rows")
    return {(agent, token, session): (sentence, path) for agent, token, session, sentence, path in rows}


def projects(database: Database) -> dict[Session, str]:
    """Returns the projects of sessions: the one of the thread, else what the session's own place gives."""
    return {
        row[:3]: row[3]
        for query in (
            "select agent_id, session_token, session_id, min(identity) from session_projects where identity <> ''"
            " group by 1, 2, 3",
            "select s.agent_id, s.session_token, s.session_id, h.project from thread_sessions s"
            " join memory_thread_heads h on h.agent_id = s.agent_id and h.thread_id = s.thread_id"
            " where h.project is not null",
        )
        for row in database.execute(query)
    }


def statements(database: Database) -> dict[Session, list[str]]:
    """Returns what sessions state, in the order of their lines."""
    found: dict[Session, list[str]] = {}
    for agent, token, session, text in database.execute(
        f"select agent_id, session_token, session_id, text from {named_rows.SOURCES} order by at_us, source_path, line"
    ):
        found.setdefault((agent, token, session), []).append(text)
    return found


def facts(database: Database) -> _Rows:
    """Returns every fact, in the words of its newest source, and that one's session; none of a session that runs."""
    return list(
        database.execute(
            "select f.agent_id, f.id, f.aspect, f.text, e.name, e.kind, f.status,"
            " f.sources, f.earliest_us, f.latest_us, a.session_token, a.session_id, f.source_path, f.line"
            f" from {named_rows.FACTS} f join memory_artifacts a on a.source_path = f.source_path"
            " left join entities e on e.agent_id = f.agent_id and e.id = f.entity_id"
        )
    )
