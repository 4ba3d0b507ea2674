"""Stores which sealed files were redacted, when and why, and whether a scrub is still due."""

from __future__ import annotations

import json
from collections.abc import Collection

from signet_sync.storage.database.connection import Database


def is_redacted(database: Database, path: str) -> bool:
    """Returns whether a file was redacted, here or on another machine."""
    return bool(database.value("select exists(select 1 from redactions where path = ?)", (path,)))


def paths(database: Database) -> frozenset[str]:
    """Returns every file that was redacted."""
    return frozenset(path for (path,) in database.execute("select path from redactions"))


def list_redacted(database: Database) -> list[tuple[str, str, str]]:
    """Returns which files were redacted, when (ISO 8601 UTC) and why, in that order."""
    return list(database.execute("select path, at, reason from redactions order by at, reason, path"))


def record(database: Database, paths: Collection[str], at: str, reason: str) -> None:
    """Keeps when and why files were redacted, and that a scrub has to follow; in the transaction of their seals."""
    database.executemany(
        "insert or replace into redactions(path, at, reason, scrubbed) values(?, ?, ?, 0)",
        [(path, at, reason) for path in paths],
    )


def is_due(database: Database) -> bool:
    """Returns whether redactions have not yet been followed by their scrub."""
    return bool(database.value("select exists(select 1 from redactions where scrubbed = 0)"))


def mark_scrubbed(database: Database) -> None:
    """Remembers that no old byte of what was redacted is left in our files."""
    database.execute("update redactions set scrubbed = 1 where scrubbed = 0")


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
