"""What write flows answered: a replay of the same request gets the first answer again."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from signet_sync.index.database import Database


class Answer(NamedTuple):
    """The recorded end of a flow; `refused` says that `document` is an error (code, message, hint, path)."""

    request_sha256: str
    document: dict[str, Any]
    refused: bool


def recorded(database: Database, agent_id: str, flow_key: str) -> Answer | None:
    """The answer of a flow, or None where it has not ended."""
    for request, answer, refused in database.execute(
        "select request_sha256, answer, refused from flow_results where agent_id = ? and flow_key = ?",
        (agent_id, flow_key),
    ):
        return Answer(request, json.loads(answer), bool(refused))
    return None


def record(
    database: Database,
    *,
    agent_id: str,
    flow_key: str,
    kind: str,
    session: tuple[str, str],
    answer: Answer,
    at: str,
) -> None:
    """Keeps the first answer of a flow; `session` is token and id. A later one changes nothing."""
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


def refusals(database: Database) -> list[tuple[str, str, str]]:
    """Endings that were refused for good: time, agent and what was said, newest first."""
    return [
        (at, agent_id, json.loads(answer).get("message", ""))
        for at, agent_id, answer in database.execute(
            "select at, agent_id, answer from flow_results where refused = 1 order by at desc limit 100"
        )
    ]
