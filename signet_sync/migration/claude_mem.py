"""Reads what claude-mem remembers: the observations and the summaries of sessions in its database."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from signet_sync.errors import UsageError
from signet_sync.migration.items import TOO_LONG, Item, kind_of
from signet_sync.migration.signet_database import DatabaseFormat, opened
from signet_sync.migration.signet_rows import Row, list_items, time_of

_SHARED = ("id", "project", "merged_into_project", "created_at")
_SUMMARY = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_FORMAT = DatabaseFormat(
    "claude-mem",
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
    path = os.path.join(path, "claude-mem.db") if os.path.isdir(path) else path
    if not os.path.lexists(path):
        hint = "give its place, for example: signet-sync migrate claude-mem ~/.claude-mem/claude-mem.db"
        raise UsageError("there is no database of claude-mem", path=path, hint=hint, code="no-database")
    with opened(path, _FORMAT) as database:
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
