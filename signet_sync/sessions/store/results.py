"""Stores the answers of write flows; a replay of the same request returns the first answer."""

import json
from typing import Any, NamedTuple

from signet_sync.storage.database.connection import Database


class RecordedAnswer(NamedTuple):
    """The recorded result of a flow; with `refused`, `document` is an error (code, message, hint, path)."""

    request_sha256: str
    document: dict[str, Any]
    refused: bool


def recorded(database: Database, agent_id: str, flow_key: str) -> RecordedAnswer | None:
    """Returns the answer of a flow, or None if it has not ended."""
    for request, answer, refused in database.execute(
        "select request_sha256, answer, refused from flow_results where agent_id = ? and flow_key = ?",
        (agent_id, flow_key),
    ):
        return RecordedAnswer(request, json.loads(answer), bool(refused))
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
    database.execute(
        "insert or ignore into flow_results"
        "(agent_id, flow_key, kind, request_sha256, session_token, session_id, answer, refused, at)"
        " values(?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            agent_id,
            flow_key,
            kind,
            answer.request_sha256,
            *session,
            json.dumps(answer.document, ensure_ascii=False),
            int(answer.refused),
            at,
        ),
    )


class RecordedEnd(NamedTuple):
    """A recorded session end; `session` is its key, else its id; `at` is when the flow began (ISO 8601)."""

    flow_key: str
    agent_id: str
    session: str
    at: str


def ended_since(database: Database, at: str) -> list[RecordedEnd]:
    """Returns the session ends recorded after a time (ISO 8601), oldest first."""
    return [
        RecordedEnd(*row)
        for row in database.execute(
            "select f.flow_key, f.agent_id, coalesce((select a.session_key from memory_artifacts a"
            " where a.agent_id = f.agent_id and a.session_token = f.session_token and a.session_id = f.session_id"
            " and a.session_key is not null limit 1), f.session_id), f.at from flow_results f"
            " where f.kind = 'end' and f.refused = 0 and f.at > ? order by f.at, f.flow_key",
            (at,),
        )
    ]


def forget_answers(database: Database) -> None:
    """Lets every end of a session be written again. In the caller's transaction."""
    database.execute("delete from flow_results where refused = 0")
