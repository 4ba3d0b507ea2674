"""Reads the texts of artifacts, each of which is stored once.

If the bytes of a seal yield the text (`left_to_seals`), its row holds none. Otherwise it is in `content`: for
manifests, texts that the sanitizer changed, seals without bytes. SQL that reads that column uses `text_of`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from signet_sync.formats.body import body_sha256
from signet_sync.storage.database.connection import Database, unsealed

if TYPE_CHECKING:
    from signet_sync.sync.index_records import Row

# What Signet's render leaves below the frontmatter of a manifest: in its session log, and out of it.
SIGNETS_BODIES = (
    "## Session Ledger (Last 30 Days)\n\nThis session currently appears in the working memory ledger.",
    "",
)
# Of a row the text, or the bytes that give it.
KEPT = "coalesce(content, (select packed from seals where path = source_path))"


def text_of(row: str = "memory_artifacts") -> str:
    """Returns the text of a row as a term of SQL. Where it cannot be had reading it raises `DatabaseCorrupt`."""
    return f"coalesce({row}.content, unsealed((select packed from seals where path = {row}.source_path)))"


def text_at(database: Database, path: str) -> str:
    """Gives the text of an artifact; empty where it is not indexed. Raises `DatabaseCorrupt`."""
    return database.value(f"select {text_of()} from memory_artifacts where source_path = ?", (path,)) or ""


def opened(kept: str | bytes | None) -> str:
    """Gives the text of what is kept of a row. Raises `DatabaseCorrupt`."""
    return kept if isinstance(kept, str) else unsealed(None, kept)


def left_to_seals(database: Database, rows: Sequence[Row]) -> set[str]:
    """Returns the paths of rows whose seals give their texts: the sealed body is the text, letter by letter."""
    sealed = dict(
        database.execute(
            "select path, body_sha256 from seals where length(packed) > 0 and path in (select value from json_each(?))",
            (json.dumps([row.source_path for row in rows]),),
        )
    )
    return {
        row.source_path
        for row in rows
        if sealed.get(row.source_path) == row.source_sha256 and body_sha256(row.content) == row.source_sha256
    }


def keep(database: Database, paths: Sequence[str]) -> None:
    """Puts texts into their rows: the bytes that give them are about to go or to be others.

    In the caller's transaction. Full text needs the very words that it holds to delete them.
    """
    if not paths:
        return  # a statement that may have to be undone makes full text write what it holds back until the commit
    database.execute(
        f"update memory_artifacts set content = {text_of()}"
        " where content is null and source_path in (select value from json_each(?))",
        (json.dumps(paths),),
    )


def keep_replaced(database: Database, rows: Iterable[tuple[Row, Row | None]], now_iso: str) -> None:
    """Keeps the texts of manifests in whose place Signet has written its own. In the caller's transaction."""
    gone = [
        (before.agent_id, before.source_path, before.content, now_iso)
        for before, now in rows
        if now is not None
        and now.source_kind == "manifest"
        and now.content in SIGNETS_BODIES
        and before.content not in SIGNETS_BODIES
        and before.revision != now.revision
    ]
    if gone:
        database.executemany(
            "insert or replace into manifest_bodies(agent_id, source_path, body, at) values(?, ?, ?, ?)", gone
        )


def keep_texts(database: Database, paths: Sequence[str], now_iso: str) -> None:
    """Keeps the texts of manifests that moved before a rebuild drops them; another program may have replaced them."""
    with database.transaction():
        database.execute(
            f"insert or replace into manifest_bodies select agent_id, source_path, {text_of()}, ? from memory_artifacts"
            " where source_kind = 'manifest' and source_path in (select value from json_each(?))"
            f" and {text_of()} not in (select value from json_each(?))",
            (now_iso, json.dumps(paths), json.dumps(SIGNETS_BODIES)),
        )


def replaced(database: Database) -> list[tuple[str, str]]:
    """Returns paths of manifests in whose place Signet wrote its own text, and the text that each had before."""
    return list(
        database.execute(
            "select b.source_path, b.body from manifest_bodies b join memory_artifacts a using(agent_id, source_path)"
            " where a.content in (select value from json_each(?)) order by 1",
            (json.dumps(SIGNETS_BODIES),),
        )
    )
