"""Stores what a person or agent did to statements: done, not true, open again. Native rows.

A row keeps words and session, so that it finds its statement again when a newer digest words it otherwise.
"""

from __future__ import annotations

from signet_sync.statements.validity import Mark
from signet_sync.storage.database.batches import Session
from signet_sync.storage.database.connection import Database


def add(database: Database, session: Session, mark: Mark) -> None:
    """Adds what was done to a statement of a session. In the caller's transaction."""
    agent_id, token, session_id = session
    database.execute(
        "insert or replace into statement_marks(agent_id, id, kind, text, status, at_us, session_token, session_id)"
        " values(?, ?, ?, ?, ?, ?, ?, ?)",
        (agent_id, *mark[:5], token, session_id),
    )


def of_thread(database: Database, agent_id: str, thread_id: str) -> list[Mark]:
    """Returns what was done to the statements of a thread's sessions."""
    rows = database.execute(
        "select m.id, m.kind, m.text, m.status, m.at_us, ifnull(n.session, 0) from statement_marks m"
        " left join sessions n using (agent_id, session_token, session_id) where m.agent_id = ?1 and (exists("
        " select 1 from thread_sessions t where t.agent_id = ?1 and t.session_token = m.session_token"
        " and t.session_id = m.session_id and t.thread_id = ?2)"
        " or exists(select 1 from statements s where s.agent_id = ?1 and s.id = m.id and s.thread_id = ?2))",
        (agent_id, thread_id),
    )
    return [Mark(*row) for row in rows]
