"""Stores the answers of write flows; a replay of the same request returns the first answer."""

import json
from collections.abc import Collection
from typing import Any, NamedTuple

from signet_sync.storage.database.connection import Database


class RecordedAnswer(NamedTuple):
    """The recorded result of a flow."""

    request_sha256: str
    document: dict[str, Any]


def find_recorded(database: Database, agent_id: str, flow_key: str) -> RecordedAnswer | None:
    """Returns the answer of a flow, or None if it has not ended."""
    for request, answer in database.execute(
        "select request_sha256, answer from flow_results where agent_id = ? and flow_key = ?",
        (agent_id, flow_key),
    ):
        return RecordedAnswer(request, json.loads(answer))
    return None


def record(
    database: Database,
    *,
    agent_id: str,
    flow_key: str,
    kind: str,
    session: tuple[str, str],
    answer: RecordedAnswer,
    at: str,
) -> None:
    """Stores the first answer of a flow; `session` is token and id. Later answers are ignored."""
    said = answer.request_sha256, *session, json.dumps(answer.document, ensure_ascii=False)
    database.execute(
        "insert or ignore into flow_results"
        "(agent_id, flow_key, kind, request_sha256, session_token, session_id, answer, at)"
        " values(?, ?, ?, ?, ?, ?, ?, ?)",
        (agent_id, flow_key, kind, *said, at),
    )


class RecordedEnd(NamedTuple):
    """A recorded session end; `session` is its key, else its id."""

    flow_key: str
    agent_id: str
    session: str


def list_ends_since(database: Database, at: str) -> list[RecordedEnd]:
    """Returns the session ends recorded after a time (ISO 8601), oldest first."""
    query = (
        "select f.flow_key, f.agent_id, coalesce((select a.session_key from memory_artifacts a"
        " where a.agent_id = f.agent_id and a.session_token = f.session_token and a.session_id = f.session_id"
        " and a.session_key is not null limit 1), f.session_id) from flow_results f"
        " where f.kind = 'end' and f.at > ? order by f.at, f.flow_key"
    )
    return [RecordedEnd(*row) for row in database.execute(query, (at,))]


def reword(database: Database, session: tuple[str, str, str], before: str, after: str) -> None:
    """Has recorded answers of a session's endings say the sentence that its artifacts say now."""
    rows = list(
        database.execute(
            "select flow_key, answer from flow_results where agent_id = ? and session_token = ? and session_id = ?",
            session,
        )
    )
    for flow_key, answer in rows:
        document = json.loads(answer)
        if isinstance(document, dict) and document.get("sentence") == before:
            document["sentence"] = after
            database.execute(
                "update flow_results set answer = ? where agent_id = ? and flow_key = ?",
                (json.dumps(document, ensure_ascii=False), session[0], flow_key),
            )


def forget_answers_of(database: Database, agent_id: str, ids: Collection[str]) -> None:
    """Deletes the answers of removed sessions. In the caller's transaction."""
    database.executemany(
        "delete from flow_results where agent_id = ? and session_id = ?", [(agent_id, one) for one in sorted(ids)]
    )


def forget_answers(database: Database) -> None:
    """Lets every end of a session be written again. In the caller's transaction."""
    database.execute("delete from flow_results")
