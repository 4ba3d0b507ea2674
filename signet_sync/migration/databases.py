"""Reads what Signet, claude-mem and mem0 remember: databases of any version, beside the running program, and an export.

Each database is asked what it has.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from signet_sync.capture.transcripts import require_own_file, unreadable
from signet_sync.errors import HarnessError, UsageError
from signet_sync.formats.paths import DEFAULT_AGENT, SIGNET_DATABASES
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import parse_since
from signet_sync.migration.items import TOO_LONG, Item, kind_of
from signet_sync.migration.signet_rows import COLUMNS, Row, list_items, time_of
from signet_sync.privacy import signet_tombstones
from signet_sync.storage import files
from signet_sync.storage.database import foreign
from signet_sync.storage.database.foreign import ForeignDatabase

# What is read of a program's database, and the table and columns by which it is recognised.
Format = tuple[str, Mapping[str, tuple[str, ...]], str, tuple[str, ...]]

_COLUMNS = {signet_tombstones.TABLE: signet_tombstones.COLUMNS, **COLUMNS}
SIGNET: Format = ("Signet", _COLUMNS, "memories", ("id", "content"))


def find_database(root: str, given: str | None) -> str:
    """Returns the path of Signet's database: of the workspace, or of the file or folder that a person gives."""
    where = os.path.realpath(os.path.expanduser(given)) if given is not None else root
    if os.path.isfile(where):
        return where
    for place in SIGNET_DATABASES:
        path = os.path.join(where, place)
        if os.path.lexists(path):
            return path
    hint = "give its place: signet-sync migrate signet PATH (a memories.db, or the folder of a workspace)"
    raise UsageError("there is no database of Signet", path=where, hint=hint, code="no-database")


@contextmanager
def opened(path: str, written: Format = SIGNET) -> Iterator[ForeignDatabase]:
    """Opens the database in one read transaction, after a check of the tables that are read. Raises `HarnessError`."""
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    try:
        require_own_file(path, os.lstat(path))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    program, columns, known, needed = written
    with foreign.reading(path, program, columns) as database:
        # Another program's, an unknown version and a damaged file are refused before anything is brought.
        if not database.columns(known) >= {*needed}:
            what = f"it has no table `{known}` with {' and '.join(needed)}"
            hint = f"name {program}'s own database; if it is, upgrade signet-sync"
            raise HarnessError(what, path=path, hint=hint, code="database-unknown")
        if not all(database.is_sound(table) for table in database.tables if table in columns):
            raise foreign.make_damage_error(path, program)
        yield database


# ── claude-mem ──

_SHARED = ("id", "project", "merged_into_project", "created_at")
_SUMMARY = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_CLAUDE_MEM: Format = (
    "claude-mem",
    {
        "observations": (*_SHARED, "type", "title", "subtitle", "narrative", "text", "facts", "concepts"),
        "session_summaries": (*_SHARED, *_SUMMARY),
    },
    "observations",
    ("id", "type", "project"),
)


def read_claude_mem(path: str, now_us: int) -> Iterator[Item]:
    """Yields the rows of a database, or of the one in a folder. Raises `HarnessError`, `UsageError`."""
    path = os.path.realpath(os.path.expanduser(path))
    path = os.path.join(path, "claude-mem.db") if os.path.isdir(path) else path
    if not os.path.lexists(path):
        hint = "give its place, for example: signet-sync migrate claude-mem ~/.claude-mem/claude-mem.db"
        raise UsageError("there is no database of claude-mem", path=path, hint=hint, code="no-database")
    with opened(path, _CLAUDE_MEM) as database:
        for table, words in (("observations", _tell_observation), ("session_summaries", _tell_summary)):
            for row in database.rows(table):
                kind = row.get("type") or ""
                project = row["merged_into_project"] or row["project"] or ""
                tags = (kind or "summary", project, *list_items(row.get("concepts")))
                left = TOO_LONG if row.get("bytes") else ""
                yield Item(table, words(row), time_of(row, "created_at", now_us=now_us), kind_of(kind), tags, left=left)


def _tell_observation(row: Row) -> str:
    # claude-mem puts this subtitle to what a person saves
    subtitle = "" if row["subtitle"] == "Manual memory" else row["subtitle"]
    return _join_sentences([row["title"], subtitle, row["narrative"] or row["text"], *list_items(row["facts"])])


def _tell_summary(row: Row) -> str:
    said = ((name.replace("_", " ").capitalize(), (row[name] or "").strip()) for name in _SUMMARY)
    return _join_sentences([f"{name}: {text}" for name, text in said if text])


def _join_sentences(texts: Iterable[str | None]) -> str:
    """Returns a line for each text, which ends as a sentence does: pages show all of them on one line."""
    lines = [text.strip() for text in texts if text and text.strip()]
    return "\n".join(line if line.endswith((".", "!", "?", ":", "…")) else f"{line}." for line in lines)


# ── mem0 ──

MOST_BYTES = 64 * 1024 * 1024
_UNKNOWN = "no `memory` in it: not of an export of mem0 that we know"


def read_mem0(path: str, now_us: int) -> Iterator[Item]:
    """Yields the memories of an export, which is read whole before. Raises `HarnessError`."""
    for row in _read_export(os.path.realpath(os.path.expanduser(path))):
        yield _memory_of(row, now_us) if isinstance(row, dict) else Item("memories", "", 0, left=_UNKNOWN)


def _read_export(path: str) -> list[Any]:
    where, name = os.path.split(path)
    found = files.read(where, name, MOST_BYTES) if os.path.isdir(where) else None
    if not isinstance(found, Found):
        what = "there is no such file" if found is None or found.code == "gone" else found.message
        raise HarnessError(what, path=path, hint="check the path; nothing was brought", code="file-unreadable")
    try:
        document = json.loads(found.raw.decode("utf-8-sig"))
        rows = document.get("results") if isinstance(document, dict) else document
        if not isinstance(rows, list) or (rows and not any(isinstance(one, dict) and "memory" in one for one in rows)):
            raise ValueError("it holds no list of memories")
    except (RecursionError, ValueError) as error:  # broken JSON, bytes that are not UTF-8
        hint = "give the whole answer of mem0's `get_all`, saved as JSON; nothing was brought"
        raise HarnessError(f"it is no export: {error}", path=path, hint=hint, code="export-unknown") from None
    return rows


def _memory_of(row: Mapping[str, Any], now_us: int) -> Item:
    about = row.get("metadata")
    about = about if isinstance(about, dict) else {}
    category, project = _export_text(about, "category"), _export_text(about, "project")
    categories, user = row.get("categories"), _export_text(row, "user_id")
    tags = [
        category,
        project,
        *(one for one in (categories if isinstance(categories, list) else ()) if isinstance(one, str)),
    ]
    tags += [f"user-{user}"] if user else []
    times = {name: _export_text(row, name) for name in ("created_at", "updated_at")}
    at_us = time_of(times, *times, now_us=now_us)
    ends = parse_since(_export_text(row, "expiration_date"))
    left = "expired in mem0" if ends is not None and ends < now_us else "" if "memory" in row else _UNKNOWN
    agent_id = _export_text(row, "agent_id") or DEFAULT_AGENT
    return Item("memories", _export_text(row, "memory"), at_us, kind_of(category), tags, agent_id, left=left)


def _export_text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value.strip() if isinstance(value, str) else str(value) if isinstance(value, int) else ""
