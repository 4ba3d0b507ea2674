"""Reads what claude-mem remembers: the observations and the summaries of sessions in its database."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator

from signet_sync.errors import UsageError
from signet_sync.formats.timestamps import SECOND, parse_instant
from signet_sync.migration.items import TOO_LONG, Item, kind_of
from signet_sync.migration.signet_database import DatabaseFormat, opened
from signet_sync.migration.signet_rows import Row

_SHARED = ("id", "project", "merged_into_project", "created_at", "created_at_epoch")
_SUMMARY = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_FORMAT = DatabaseFormat(
    "claude-mem",
    "claude-mem.db",
    {
        "observations": (*_SHARED, "type", "title", "subtitle", "narrative", "text", "facts", "concepts"),
        "session_summaries": (*_SHARED, *_SUMMARY),
    },
    "observations",
    ("id", "type", "project"),
)


def read(path: str, now_us: int) -> Iterator[Item]:
    """Yields the rows of a database, or of the one in a folder. Raises `HarnessError`, `UsageError`."""
    path = os.path.realpath(os.path.expanduser(path))
    path = os.path.join(path, _FORMAT.file) if os.path.isdir(path) else path
    if not os.path.lexists(path):
        hint = "give its place, for example: signet-sync migrate from claude-mem ~/.claude-mem/claude-mem.db"
        raise UsageError("there is no database of claude-mem", path=path, hint=hint, code="no-database")
    with opened(path, _FORMAT) as database:
        for table, words in (("observations", _observed), ("session_summaries", _summarised)):
            for row in database.rows(table):
                kind = row.get("type") or ""
                project = row["merged_into_project"] or row["project"] or ""
                tags = (kind or "summary", project, *_listed(row, "concepts"))
                left = TOO_LONG if row.get("bytes") else ""
                yield Item(table, words(row), _time_of(row, now_us), kind_of(kind), tags, left=left)


def _time_of(row: Row, now_us: int) -> int:
    at_us = parse_instant((row["created_at"] or "").strip())
    if at_us is None:
        epoch = (row["created_at_epoch"] or "").strip()
        at_us = int(epoch) * SECOND // 1000 if epoch.isascii() and epoch.isdigit() and len(epoch) < 16 else now_us
    return min(max(at_us, 0), now_us)


def _observed(row: Row) -> str:
    # claude-mem puts this subtitle to what a person saves
    subtitle = "" if row["subtitle"] == "Manual memory" else row["subtitle"]
    return _as_sentences([row["title"], subtitle, row["narrative"] or row["text"], *_listed(row, "facts")])


def _summarised(row: Row) -> str:
    said = ((name.replace("_", " ").capitalize(), (row[name] or "").strip()) for name in _SUMMARY)
    return _as_sentences([f"{name}: {text}" for name, text in said if text])


def _as_sentences(texts: Iterable[str | None]) -> str:
    """Returns a line for each text, which ends as a sentence does: pages show all of them on one line."""
    lines = [text.strip() for text in texts if text and text.strip()]
    return "\n".join(line if line.endswith((".", "!", "?", ":", "…")) else f"{line}." for line in lines)


def _listed(row: Row, name: str) -> list[str]:
    """Returns the items of a column with a JSON list; a text that is none is one item."""
    text = (row.get(name) or "").strip()
    try:
        value = json.loads(text or "[]")
    except (ValueError, RecursionError):
        value = [text]
    return [item for item in value if isinstance(item, str) and item.strip()] if isinstance(value, list) else []
