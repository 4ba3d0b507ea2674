"""Which sealed files were redacted, when and why; and whether old bytes of them are still to be cleaned away.

Native marks beside those of accepted files: a rebuild leaves them, backups and bundles carry them.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from signet_sync.index import wordings
from signet_sync.index.database import Database

_MARK = "redacted:"
_DUE = "redaction:due"


def key_of(path: str) -> str:
    """The key of a path's mark."""
    return f"{_MARK}{path}"


def is_redacted(database: Database, path: str) -> bool:
    """Whether a file was redacted, here or on another machine."""
    return database.meta(key_of(path)) is not None


def paths(database: Database) -> frozenset[str]:
    """Every file that was redacted."""
    return frozenset(told(database))


def told(database: Database) -> dict[str, str]:
    """When and why files were redacted, by path."""
    rows = database.execute(
        "select key, value from meta where key >= ? and key < 'redacted;' order by value, key", (_MARK,)
    )
    return {key.removeprefix(_MARK): value for key, value in rows}


def record(database: Database, agent_id: str, paths: Collection[str], said: str) -> None:
    """Keeps when and why files were redacted, and that a scrub has to follow; in the transaction of their seals.

    What a model distilled of the old text goes.
    """
    for path in paths:
        database.set_meta(key_of(path), said)
    wordings.forget_paths(database, agent_id, paths)
    database.set_meta(_DUE, "1")


def is_due(database: Database) -> bool:
    """Whether redactions have not yet been followed by their scrub."""
    return database.meta(_DUE) is not None


def mark_scrubbed(database: Database) -> None:
    """Remembers that no old byte of what was redacted is left in our files."""
    database.execute("delete from meta where key = ?", (_DUE,))


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
