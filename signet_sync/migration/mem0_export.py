"""Reads what mem0 exports as JSON: a list of memories, alone or as `results`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from signet_sync.errors import HarnessError
from signet_sync.formats.paths import DEFAULT_AGENT
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import parse_since
from signet_sync.migration.items import Item, kind_of
from signet_sync.migration.signet_rows import time_of
from signet_sync.storage import files

MOST_BYTES = 64 * 1024 * 1024
_UNKNOWN = "no `memory` in it: not of an export of mem0 that we know"
_NAMING = ("category", "type", "topic", "project")


def read(path: str, now_us: int) -> Iterator[Item]:
    """Yields the memories of an export, which is read whole before. Raises `HarnessError`."""
    for row in _rows(os.path.realpath(os.path.expanduser(path))):
        yield _item(row, now_us) if isinstance(row, dict) else Item("memories", "", 0, left=_UNKNOWN)


def _rows(path: str) -> list[Any]:
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


def _item(row: Mapping[str, Any], now_us: int) -> Item:
    about = row.get("metadata")
    about = about if isinstance(about, dict) else {}
    user = _text(row, "user_id")
    named = [_text(about, name) for name in _NAMING]
    tags = (*named, *_texts(row.get("categories")), *_texts(about.get("tags")), f"user-{user}" if user else "")
    kind = next((kind for one in named if (kind := kind_of(one)) != "note"), "note")
    times = {name: _text(row, name) for name in ("created_at", "updated_at")}
    at_us = time_of(times, *times, now_us=now_us)
    ends = parse_since(_text(row, "expiration_date"))
    left = "expired in mem0" if ends is not None and ends < now_us else "" if "memory" in row else _UNKNOWN
    agent_id = _text(row, "agent_id") or DEFAULT_AGENT
    return Item("memories", _text(row, "memory"), at_us, kind, tags, agent_id, left=left)


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value.strip() if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
