"""Implements the tools that read: each takes a memory and typed arguments, and returns a document."""

from __future__ import annotations

import os
from typing import Any

from signet_sync.admin.stats import stats as numbers
from signet_sync.entities import queries
from signet_sync.errors import UsageError
from signet_sync.formats.snapshot import LARGEST
from signet_sync.formats.timestamps import parse_moment
from signet_sync.history import agent_view
from signet_sync.history.operations import DISABLED, REMEDY
from signet_sync.mcp_server import schemas
from signet_sync.mcp_server.dispatch import Document, answer
from signet_sync.mcp_server.memory import ServedMemory
from signet_sync.storage.clock import now_us
from signet_sync.sync.read_only import reading

_MOST_HITS = 50
_MOST_COMMITS = 100


def _instant(text: str) -> int:
    instant = parse_moment(text)
    if instant is None:
        raise UsageError("`since` is not a day or an ISO 8601 time", hint="2026-03-28", code="arguments-invalid")
    return instant


def _more(found: int, limit: int, most: int = _MOST_HITS) -> str | None:
    if found < limit:
        return None
    return "there may be more; use a larger `limit`" if limit < most else "there may be more; use a narrower query"


def recall(memory: ServedMemory, asked: schemas.RecallArguments) -> Document:
    """`memory_recall`: with shared scope only memories that are not private."""
    found = memory.ask(
        "recall",
        query=asked.query,
        limit=asked.limit,
        now_us=now_us(),
        period=None if asked.since is None else [_instant(asked.since), LARGEST],
        project=asked.project,
        shared=memory.shared,
        counted=memory.counts,
    )
    more = [_more(len(found["hits"]), asked.limit)]
    return answer({"hits": found["hits"]}, "; ".join(filter(None, more)) or None)


def expand(memory: ServedMemory, asked: schemas.ExpandArguments) -> Document:
    """`memory_expand`."""
    found = memory.ask("expand", handle=asked.handle, budget=asked.budget, counted=memory.counts)
    left = found.get("children_left_out")
    return answer(found, f"{left} more below are not listed" if left else None)


def context(memory: ServedMemory, asked: schemas.ContextArguments) -> Document:
    """`memory_context`: with shared scope the identity files, and at a prompt memories that are not private."""
    given: dict[str, Any] = {"shared": memory.shared, "budget": asked.budget}
    if asked.prompt is None:
        found = memory.ask("context", project=asked.project or os.getcwd(), **given)
    else:
        found = memory.ask("prompt_context", prompt=asked.prompt, counted=memory.counts, **given)
    more = [f"not read: {trouble}" for trouble in found["troubles"]]
    if found["crowded"]:
        more.append("no section fits into `budget`; increase it")
    elif not found["context"]["text"]:
        more.append("no context yet" if asked.prompt is None else "memory contains nothing about this")
    return answer(found["context"], "; ".join(more) or None)


def session(memory: ServedMemory, asked: schemas.SessionArguments) -> Document:
    """`session_open`."""
    return answer(memory.ask("open_session", session=asked.session, counted=memory.counts))


def history(memory: ServedMemory, asked: schemas.HistoryArguments) -> Document:
    """`memory_history`."""
    found = agent_view.list_commits(memory.place, memory.agent_id, asked.limit, with_diff=asked.include_diff)
    more = []
    if not found.commits:
        enabled = memory.place.settings().history_enabled
        more.append("no commits yet" if enabled else f"{DISABLED}: {REMEDY}")
    elif left := _more(len(found.commits), asked.limit, _MOST_COMMITS):
        more.append(left)
    if found.cut:
        more.append(found.cut)
    return answer({"diff": None, **found.document()}, "; ".join(more) or None)


def stats(memory: ServedMemory, asked: schemas.NoArguments) -> Document:
    """`memory_stats`."""
    with reading(memory.place) as database:
        return answer(numbers(database, memory.agent_id, now_us())._asdict())


def entity(memory: ServedMemory, asked: schemas.EntityArguments) -> Document:
    """`entity_read`: one entity from its files; without an id a list of all."""
    with queries.open_read_only(memory.place, memory.agent_id, now_us()) as repo:
        if asked.id is None:
            found = queries.list_entities(repo, asked.kind)
            return answer({"entity": None, "entities": [one.document() for one in found]})
        shown = queries.view(repo, repo.require(asked.id))
    return answer({"entity": shown.document(), "entities": None})
