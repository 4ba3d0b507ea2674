"""Translates rows of Signet's database into memories and texts of ours, by rules alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from signet_sync.formats.paths import AGENT_ID, DEFAULT_AGENT
from signet_sync.formats.timestamps import parse_instant
from signet_sync.migration.items import NO_AGENT, TOO_LONG, Item, Left
from signet_sync.text.sanitizer import sanitize_line
from signet_sync.text.sentences import flatten

Row = Mapping[str, str | None]

# What is read of each table beside the tombstones; whatever a version lacks is None.
COLUMNS = {
    table: tuple(columns.split())
    for table, columns in {
        "memory_artifacts": "agent_id session_key session_id session_token",
        "session_transcripts": "session_key session_id content harness project agent_id created_at updated_at",
        "session_summaries": "id project depth kind content earliest_at latest_at session_key harness agent_id"
        " created_at",
        "session_summary_children": "parent_id child_id",
        "session_summary_memories": "summary_id memory_id",
        "memories": "id type content importance source_id tags created_at updated_at pinned is_deleted scope agent_id"
        " visibility",
        "entities": "id name entity_type description created_at agent_id status archived_at source_id",
        "entity_aspects": "id entity_id agent_id name status archived_at",
        "entity_attributes": "id aspect_id agent_id memory_id kind content status superseded_by created_at source_id"
        " archived_at",
    }.items()
}

# Tables that are not brought, and why.
NOT_BROUGHT = {
    "memory_thread_heads": "summaries say the same",
    "entity_dependencies": "how names belong together is not brought",
    "relations": "how names belong together is not brought",
}

# Where a memory comes from that no session here said, and no person.
SIGNET = ("", "signet")
IMPORTANT = 0.8

DELETED = "forgotten in Signet"
OF_REMOVED = "its session was removed"
NOT_ACTIVE = "superseded or archived in Signet"
NOT_VALID = "not valid"

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


def time_of(row: Row, *names: str, now_us: int) -> int:
    """Returns the first time of a row that can be read, in microseconds since 1970 UTC, none after `now_us`."""
    found = (parse_instant(text.strip()) for name in names if (text := row.get(name)))
    return min(max(next((at for at in found if at is not None), now_us), 0), now_us)


def is_set(value: str | None) -> bool:
    """Returns whether a column that SQLite keeps as a number or text says yes."""
    return (value or "").strip().lower() not in ("", "0", "0.0", "false", "no")


def _is_active(row: Row) -> bool:
    """Returns whether a row of the graph still holds."""
    status = (row.get("status") or "active").strip().lower()
    return status in ("active", "current", "confirmed") and not row.get("superseded_by") and not row.get("archived_at")


def listed(text: str | None) -> list[str]:
    """Returns the items of a JSON list, or of a text with commas."""
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        value = (text or "").split(",")
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def memory(row: Row, *, now_us: int) -> Item:
    """Returns a memory. Raises `Left`.

    Ours have no named scope: what is scoped or not global is for the agent alone. Nor have they a number for
    importance: what is very important has a tag.
    """
    if is_set(row.get("is_deleted")):
        raise Left(DELETED)
    given, scope = (row.get("type") or "").strip().lower(), (row.get("scope") or "").strip()
    visibility = (row.get("visibility") or "global").strip().lower()
    kind = _TYPES.get(given, "note")
    tags = listed(row.get("tags"))
    tags += [given] if given not in ("", kind, "fact") else []
    tags += [f"scope-{scope}"] if scope else []
    tags += ["archived"] if visibility == "archived" else []
    with suppress(ValueError):
        tags += ["important"] if float(row.get("importance") or 0) >= IMPORTANT else []
    item = _item("memories", row, row.get("content") or "", now_us, kind, tags)
    private = bool(scope) or visibility != "global"
    return item._replace(private=private, pinned=is_set(row.get("pinned")))


def described(row: Row, *, now_us: int) -> Item:
    """Returns what is said of an entity itself. Raises `Left`."""
    what, said = _words(row.get("entity_type")), (row.get("description") or "").strip()
    if not (said or row.get("bytes")):
        raise Left("nothing is said of it but its name")
    shown = f"{_name_of(row)} ({what})" if what else _name_of(row)
    kind = "person" if what == "person" else "note"
    return _item("entities", row, f"{shown}: {said}", now_us, kind, [what] if what else [])


def attribute(row: Row, entity: Row, aspect: Row, *, now_us: int) -> Item:
    """Returns what is said of an entity under an aspect. Raises `Left`."""
    if not (_is_active(entity) and _is_active(aspect)):
        raise Left(NOT_ACTIVE)
    kind = "constraint" if _words(row.get("kind")) == "constraint" else "note"
    said, under = (row.get("content") or "").strip(), _words(aspect.get("name"))
    shown = f"{_name_of(entity)}, {under}" if under else _name_of(entity)
    return _item("entity_attributes", row, f"{shown}: {said}" if said else "", now_us, kind)


def summary(row: Row, *, now_us: int) -> Item:
    """Returns a summary of several sessions. Raises `Left`."""
    tags = ["summary", _words(row.get("kind")) or "summary"]
    return _item("session_summaries", row, row.get("content") or "", now_us, "note", tags)


def _item(table: str, row: Row, text: str, now_us: int, kind: str, tags: Sequence[str] = ()) -> Item:
    agent_id = agent_of(row)
    if not _is_active(row):
        raise Left(NOT_ACTIVE)
    if row.get("bytes"):
        raise Left(TOO_LONG)
    at_us = time_of(row, "latest_at", "created_at", "updated_at", now_us=now_us)
    return Item(table, text, at_us, kind, tags, agent_id, origin=SIGNET)


def _name_of(entity: Row) -> str:
    return flatten(sanitize_line(entity.get("name") or ""), 200) or "(no name)"


def _words(text: str | None) -> str:
    return " ".join(re.sub(r"[_-]+", " ", sanitize_line(text or "")).lower().split())[:80]
