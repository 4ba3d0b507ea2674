"""Translates rows of Signet's database into memories and texts of ours, by rules alone."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence

from signet_sync.formats.paths import AGENT_ID, DEFAULT_AGENT
from signet_sync.formats.timestamps import parse_instant
from signet_sync.migration.items import NO_AGENT, TOO_LONG, Item, Left
from signet_sync.text.sanitizer import sanitize_counted, sanitize_line
from signet_sync.text.sentences import flatten

Row = Mapping[str, str | None]

# What is read of each table beside the tombstones; whatever a version lacks is None.
COLUMNS: dict[str, tuple[str, ...]] = {
    "memory_artifacts": ("agent_id", "session_key", "session_id", "session_token"),
    "session_transcripts": (
        "session_key", "session_id", "content", "harness", "project", "agent_id", "created_at", "updated_at",
    ),
    "session_summaries": (
        "id", "project", "depth", "kind", "content", "earliest_at", "latest_at", "session_key", "harness", "agent_id",
        "created_at",
    ),
    "session_summary_children": ("parent_id", "child_id"),
    "session_summary_memories": ("summary_id", "memory_id"),
    "memory_thread_heads": ("agent_id", "thread_key", "label", "project", "session_key", "latest_at", "sample"),
    "memories": (
        "id", "type", "content", "importance", "source_id", "tags", "created_at", "updated_at", "pinned", "is_deleted",
        "scope", "agent_id", "visibility",
    ),
    "entities": (
        "id", "name", "entity_type", "description", "created_at", "agent_id", "pinned", "status", "archived_at",
        "source_id",
    ),
    "entity_aspects": ("id", "entity_id", "agent_id", "name", "status", "archived_at"),
    "entity_attributes": (
        "id", "aspect_id", "agent_id", "memory_id", "kind", "content", "status", "superseded_by", "created_at",
        "source_id", "archived_at",
    ),
    "entity_dependencies": (
        "id", "source_entity_id", "target_entity_id", "agent_id", "dependency_type", "reason", "created_at", "status",
        "source_id", "archived_at",
    ),
    "relations": ("id", "source_entity_id", "target_entity_id", "relation_type", "created_at"),
}  # fmt: skip

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


def is_active(row: Row) -> bool:
    """Returns whether a row of the graph still holds."""
    status = (row.get("status") or "active").strip().lower()
    return status in ("active", "current", "confirmed") and not row.get("superseded_by") and not row.get("archived_at")


def _listed(text: str | None) -> list[str]:
    """Returns the items of a JSON list, or of a text with commas."""
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        value = (text or "").split(",")
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def clean(text: str) -> str:
    """Returns a text as it may be kept."""
    return sanitize_counted(text)[0].strip("\n")


def memory(row: Row, *, now_us: int) -> Item:
    """Returns a memory. Raises `Left`.

    Ours have no named scope: what is scoped or not global is for the agent alone. Nor have they a number for
    importance: what is very important has a tag.
    """
    agent_id = agent_of(row)
    if is_set(row.get("is_deleted")):
        raise Left(DELETED)
    given, scope = (row.get("type") or "").strip().lower(), (row.get("scope") or "").strip()
    kind = _TYPES.get(given, "note")
    tags = _listed(row.get("tags"))
    tags += [given] if given not in ("", kind, "fact") else []
    tags += [f"scope-{scope}"] if scope else []
    tags += ["important"] if _number(row.get("importance")) >= IMPORTANT else []
    visibility = (row.get("visibility") or "global").strip().lower()
    private = bool(scope) or visibility != "global"
    tags += ["archived"] if visibility == "archived" else []
    text = row.get("content") or ""
    at_us = time_of(row, "created_at", "updated_at", now_us=now_us)
    return _item("memories", agent_id, kind, text, tags, at_us, row, private)


def _item(
    account: str, agent_id: str, kind: str, text: str, tags: Sequence[str], at_us: int, row: Row, private: bool = False
) -> Item:
    if row.get("bytes"):
        raise Left(TOO_LONG)
    pinned = is_set(row.get("pinned"))
    return Item(account, text, at_us, kind, tags, agent_id, private, pinned and account == "memories", SIGNET)


def _number(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


# ── what Signet says of names ──


def described(row: Row, *, now_us: int) -> Item:
    """Returns what is said of an entity itself. Raises `Left`."""
    agent_id = agent_of(row)
    if not is_active(row):
        raise Left(NOT_ACTIVE)
    name, what = name_of(row), _words(row.get("entity_type"))
    if not (row.get("description") or "").strip():
        raise Left("nothing is said of it but its name")
    shown = f"{name} ({what})" if what else name
    kind = "person" if what == "person" else "note"
    text = f"{shown}: {row.get('description')}"
    at_us = time_of(row, "created_at", now_us=now_us)
    return _item("entities", agent_id, kind, text, [what] if what else [], at_us, row)


def attribute(row: Row, entity: Row, aspect: Row, *, now_us: int) -> Item:
    """Returns what is said of an entity under an aspect. Raises `Left`."""
    if not (is_active(row) and is_active(entity) and is_active(aspect)):
        raise Left(NOT_ACTIVE)
    kind = "constraint" if _words(row.get("kind")) == "constraint" else "note"
    under = _words(aspect.get("name"))
    shown = f"{name_of(entity)}, {under}" if under else name_of(entity)
    text = f"{shown}: {row.get('content')}" if (row.get("content") or "").strip() else ""
    return _item("entity_attributes", agent_of(row), kind, text, [], time_of(row, "created_at", now_us=now_us), row)


def dependency(table: str, row: Row, source: Row, target: Row, *, now_us: int) -> Item:
    """Returns how two entities belong together. Raises `Left`."""
    if not (is_active(row) and is_active(source) and is_active(target)):
        raise Left(NOT_ACTIVE)
    how = _words(row.get("dependency_type") or row.get("relation_type")) or "is related to"
    why = f" ({row.get('reason')})" if (row.get("reason") or "").strip() else ""
    text = f"{name_of(source)} {how} {name_of(target)}{why}"
    agent_id = agent_of(row if row.get("agent_id") else source)
    return _item(table, agent_id, "note", text, [], time_of(row, "created_at", now_us=now_us), row)


def name_of(entity: Row) -> str:
    """Returns the name of an entity, on one line."""
    return flatten(sanitize_line(entity.get("name") or ""), 200) or "(no name)"


def _words(text: str | None) -> str:
    return " ".join(re.sub(r"[_-]+", " ", sanitize_line(text or "")).lower().split())[:80]


# ── summaries of more than one session ──


def summary(row: Row, *, now_us: int) -> Item:
    """Returns a summary of several sessions. Raises `Left`."""
    kind = _words(row.get("kind")) or "summary"
    at_us = time_of(row, "latest_at", "created_at", now_us=now_us)
    return _item("session_summaries", agent_of(row), "note", row.get("content") or "", ["summary", kind], at_us, row)


def thread_head(row: Row, *, now_us: int) -> Item:
    """Returns a thread's newest line. Raises `Left`."""
    sample, label = row.get("sample") or "", sanitize_line(row.get("label") or row.get("thread_key") or "")
    text = f"{label}: {sample}" if label and sample.strip() else sample
    at_us = time_of(row, "latest_at", now_us=now_us)
    return _item("memory_thread_heads", agent_of(row), "note", text, ["thread"], at_us, row)


def below(children: Mapping[str, Collection[str]], summary_id: str) -> set[str]:
    """Returns every summary below one, whatever circles there are."""
    found: set[str] = set()
    waiting = [summary_id]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found
