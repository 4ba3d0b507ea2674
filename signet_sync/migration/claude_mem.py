"""Brings what claude-mem remembers, from its database of any version, beside the running program."""

import os
from collections.abc import Iterable, Iterator

from signet_sync.errors import UsageError
from signet_sync.migration.items import TOO_LONG, Item, Report, Row, list_items, time_of
from signet_sync.migration.signet import Format, open_database
from signet_sync.migration.writer import MemoryWriter
from signet_sync.sync.workspace import Workspace
from signet_sync.text.memory import TYPES

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


def migrate(workspace: Workspace, path: str, now_us: int, *, write: bool) -> Report:
    """Brings what is new in a database, or in the one of a folder; without `write` only reports what would come.

    What cannot be read as a whole is refused before anything is written. Ended early, it is finished by the same call.
    Raises `HarnessError`, `UsageError`, `WorkspaceError`, `DatabaseError`.
    """
    report = Report(path, dry_run=not write)
    writer = MemoryWriter(workspace, report, now_us, write=write)
    for item in list(_read(path, now_us)):
        with report.account_for(item.account) as account:
            account.is_new = writer.bring(item)
    writer.finish()
    return report


def _read(path: str, now_us: int) -> Iterator[Item]:
    path = os.path.realpath(os.path.expanduser(path))
    path = os.path.join(path, "claude-mem.db") if os.path.isdir(path) else path
    if not os.path.lexists(path):
        hint = "give its place, for example: signet-sync migrate claude-mem ~/.claude-mem/claude-mem.db"
        raise UsageError("there is no database of claude-mem", path=path, hint=hint, code="no-database")
    with open_database(path, _CLAUDE_MEM) as database:
        for table, words in (("observations", _tell_observation), ("session_summaries", _tell_summary)):
            for row in database.rows(table):
                given = row.get("type") or ""
                kind = given if given in TYPES else "note"
                project = row["merged_into_project"] or row["project"] or ""
                tags = (given or "summary", project, *list_items(row.get("concepts")))
                left = TOO_LONG if row.get("bytes") else ""
                at_us = time_of(row, "created_at", now_us=now_us)
                yield Item(table, words(row), at_us, kind, tags, origin=("", "claude-mem"), left=left)


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
