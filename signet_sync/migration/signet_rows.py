"""Translates rows of Signet's database into memories and texts of ours, by rules alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import AGENT_ID, DEFAULT_AGENT
from signet_sync.migration.items import NO_AGENT, TOO_LONG, Item, Left, Row, list_items, time_of

DELETED = "forgotten in Signet"
NOT_ACTIVE = "superseded or archived in Signet"
OF_ONE = "of one session, which is brought itself"

# What is read of each table beside the tombstones; whatever a version lacks is None.
COLUMNS = {
    table: tuple(columns.split())
    for table, columns in {
        "memory_artifacts": "agent_id session_key session_id session_token is_deleted",
        "transcript_capture_jobs": "agent_id session_key session_id status",
        "session_transcripts": "session_key session_id content harness project agent_id created_at updated_at"
        " completed_at",
        "session_summaries": "id project depth kind content earliest_at latest_at session_key harness agent_id"
        " created_at source_type source_ref",
        "session_summary_children": "parent_id child_id",
        "session_summary_memories": "summary_id memory_id",
        "memories": "id type content importance source_id source_type tags created_at updated_at pinned is_deleted"
        " scope agent_id visibility superseded_by stale_at",
        "memory_head_entries": "agent_id canonical_text status updated_at",
        "memory_head_revisions": "agent_id revision entry_id entry_text operation created_at",
    }.items()
}

# Where a memory comes from that no session here said, and no person.
SIGNET = ("", "signet")
IMPORTANT = 0.8

_NO_WORDS = late(r"^ {0,3}(?:#{1,6}(?: .*)?|[-*_]{3,} *|<!--.*-->)$\n?", re.MULTILINE)
_TYPES = {
    "preference": "preference", "decision": "decision", "rationale": "decision", "constraint": "constraint",
    "rule": "constraint", "person": "person", "relationship": "person", "blocker": "blocker", "issue": "blocker",
}  # fmt: skip


def agent_of(row: Row) -> str:
    """Returns the agent of a row. Raises `Left` for one whose name ours does not allow."""
    agent_id = (row.get("agent_id") or "").strip() or DEFAULT_AGENT
    if AGENT_ID.fullmatch(agent_id) is None:
        raise Left(NO_AGENT)
    return agent_id


def is_set(value: str | None) -> bool:
    """Returns whether a column that SQLite keeps as a number or text says yes."""
    return (value or "").strip().lower() not in ("", "0", "0.0", "false", "no")


def _is_active(row: Row) -> bool:
    """Returns whether a row still holds."""
    status = (row.get("status") or "active").strip().lower()
    ended = any(row.get(name) for name in ("superseded_by", "stale_at", "archived_at"))
    return status in ("active", "current", "confirmed") and not ended


def memory(row: Row, *, now_us: int) -> Item:
    """Returns a memory. Raises `Left`; what Signet made of one session, or answered, is none.

    Ours have no named scope: what is scoped or not global is for the agent alone. Nor have they a number for
    importance: what is very important has a tag.
    """
    if is_set(row.get("is_deleted")):
        raise Left(DELETED)
    given, scope = (row.get("type") or "").strip().lower(), (row.get("scope") or "").strip()
    visibility = (row.get("visibility") or "global").strip().lower()
    if given == "session_summary":
        raise Left(OF_ONE)
    if row.get("source_type") == "aggregate-recall":
        raise Left("an answer of Signet's")
    if visibility == "archived":
        raise Left(NOT_ACTIVE)
    kind = _TYPES.get(given, "note")
    tags = list_items(row.get("tags"))
    tags += [given] if given not in ("", kind, "fact") else []
    tags += [f"scope-{scope}"] if scope else []
    with suppress(ValueError):
        tags += ["important"] if float(row.get("importance") or 0) >= IMPORTANT else []
    item = _item("memories", row, row.get("content") or "", now_us, kind, tags)
    private = bool(scope) or visibility != "global"
    return item._replace(private=private, pinned=is_set(row.get("pinned")))


def is_of_several(row: Row) -> bool:
    """Returns whether a summary is of several sessions."""
    return (row["kind"] or "").strip() in ("arc", "epoch") or (row["depth"] or "0").strip() != "0"


def summary(row: Row, *, now_us: int) -> Item:
    """Returns a summary of several sessions, without its headings and rules. Raises `Left`."""
    if not is_of_several(row):
        raise Left(OF_ONE)
    tags = ["summary", row["kind"] or ""]
    return _item("session_summaries", row, _NO_WORDS.sub("", row["content"] or ""), now_us, "note", tags)


def head_entry(row: Row, *, now_us: int) -> Item:
    """Returns an entry of the page that Signet's own reflection keeps. Raises `Left`."""
    if (row.get("operation") or "").startswith("remove"):
        raise Left(NOT_ACTIVE)
    return _item("memory_head_entries", row, row.get("canonical_text") or row.get("entry_text") or "", now_us, "note")


def _item(table: str, row: Row, text: str, now_us: int, kind: str, tags: Sequence[str] = ()) -> Item:
    agent_id = agent_of(row)
    if not _is_active(row):
        raise Left(NOT_ACTIVE)
    if row.get("bytes"):
        raise Left(TOO_LONG)
    at_us = time_of(row, "latest_at", "created_at", "updated_at", now_us=now_us)
    return Item(table, text, at_us, kind, tags, agent_id, origin=SIGNET)
