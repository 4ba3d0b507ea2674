"""Reads the texts of artifacts, each of which is stored once.

If the bytes of a seal yield the text (`find_left_to_seals`), its row holds none. Otherwise it is in `content`: for
manifests, texts that the sanitizer changed, seals without bytes. SQL that reads that column uses `text_of`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from signet_sync.formats.body import body_sha256
from signet_sync.storage.database.connection import Database, unpack_sealed

if TYPE_CHECKING:
    from signet_sync.sync.index_records import Row

# Of a row the text, or the bytes that give it.
KEPT = "coalesce(content, (select packed from seals where path = source_path))"


def text_of(row: str = "memory_artifacts") -> str:
    """Returns the text of a row as a term of SQL. Where it cannot be had reading it raises `DatabaseCorrupt`."""
    return f"coalesce({row}.content, unsealed((select packed from seals where path = {row}.source_path)))"


def text_at(database: Database, path: str) -> str:
    """Gives the text of an artifact; empty where it is not indexed. Raises `DatabaseCorrupt`."""
    return database.value(f"select {text_of()} from memory_artifacts where source_path = ?", (path,)) or ""


def unpack_text(kept: str | bytes | None) -> str:
    """Gives the text of what is kept of a row. Raises `DatabaseCorrupt`."""
    return kept if isinstance(kept, str) else unpack_sealed(None, kept)


def find_left_to_seals(database: Database, rows: Sequence[Row]) -> set[str]:
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
    bound, left = (json.dumps(paths),), "content is null and source_path in (select value from json_each(?))"
    # A statement that may have to be undone makes full text write what it holds back until the commit.
    if database.value(f"select exists(select 1 from memory_artifacts where {left})", bound):
        database.execute(f"update memory_artifacts set content = {text_of()} where {left}", bound)
