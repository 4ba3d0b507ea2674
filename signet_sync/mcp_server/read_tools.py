"""Implements the tools that read: each takes a memory and typed arguments, and returns a document."""

from __future__ import annotations

import os
from typing import Any

from signet_sync.admin.stats import stats as numbers
from signet_sync.capture.catch_up import catch_up
from signet_sync.digest.notes import hand_over
from signet_sync.embeddings.meaning import Meaning
from signet_sync.entities import queries
from signet_sync.errors import UsageError
from signet_sync.formats.snapshot import LARGEST
from signet_sync.formats.timestamps import parse_moment
from signet_sync.history import agent_view
from signet_sync.history.operations import DISABLED, REMEDY, document
from signet_sync.mcp_server import schemas
from signet_sync.mcp_server.dispatch import Document, answer
from signet_sync.mcp_server.memory import ServedMemory
from signet_sync.pages import operations as pages_operations
from signet_sync.recall import operations as recall_operations
from signet_sync.recall.expand import expand as follow
from signet_sync.recall.open_session import describe, newest_paths, running
from signet_sync.recall.search import Within
from signet_sync.recall.store.rows import Period
from signet_sync.storage.clock import now_us
from signet_sync.storage.safe_paths import require_root
from signet_sync.sync.read_only import count_artifacts, count_ids, reading

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
    if memory.counts:
        catch_up(memory.place, memory.agent_id)
    meaning = Meaning(memory.place, now_us(), remembers=memory.counts)
    period = None if asked.since is None else Period(_instant(asked.since), LARGEST)
    with reading(memory.place) as database:
        hits = recall_operations.recall(
            database,
            asked.query,
            Within(memory.agent_id, not memory.shared, memory.shared, period, asked.project),
            limit=asked.limit,
            meaning=meaning,
        )
    if memory.counts:
        recall_operations.count_hits(memory.place, memory.agent_id, asked.query, hits, now_us())
    more = [meaning.trouble, _more(len(hits), asked.limit)]
    return answer({"hits": [hit._asdict() for hit in hits]}, "; ".join(filter(None, more)) or None)


def expand(memory: ServedMemory, asked: schemas.ExpandArguments) -> Document:
    """`memory_expand`."""
    with reading(memory.place) as database:
        found = follow(database, memory.agent_id, asked.handle, asked.budget)
    if memory.counts and found["node"]["kind"] != "live":
        count_ids(memory.place, memory.agent_id, [found["node"]["id"]])
    left = found.get("children_left_out")
    return answer(found, f"{left} more below are not listed" if left else None)


def context(memory: ServedMemory, asked: schemas.ContextArguments) -> Document:
    """`memory_context`: with shared scope the identity files, and at a prompt memories that are not private."""
    require_root(memory.place.root)
    given: dict[str, Any] = {"shared": memory.shared, "budget": asked.budget}
    if asked.prompt is None:
        project = asked.project or os.getcwd()
        composed = pages_operations.at_start(memory.place, memory.agent_id, **given, project=project)
    else:
        composed = pages_operations.at_prompt(
            memory.place, memory.agent_id, asked.prompt, **given, counted=memory.counts
        )
    more = [f"not read: {trouble}" for trouble in composed.troubles]
    if composed.crowded:
        more.append("no section fits into `budget`; increase it")
    elif not composed.text:
        more.append("no context yet" if asked.prompt is None else "memory contains nothing about this")
    return answer(pages_operations.document(memory.agent_id, composed, shared=memory.shared), "; ".join(more) or None)


def session(memory: ServedMemory, asked: schemas.SessionArguments) -> Document:
    """`session_open`."""
    with reading(memory.place) as database:
        found = running(database, memory.agent_id, asked.session) or describe(database, memory.agent_id, asked.session)
    if memory.counts:
        paths = dict.fromkeys(newest_paths(found).values())
        count_artifacts(memory.place, [(memory.agent_id, path) for path in paths])
    return answer(found)


def history(memory: ServedMemory, asked: schemas.HistoryArguments) -> Document:
    """`memory_history`."""
    found = agent_view.list_commits(memory.place, memory.agent_id, asked.limit, with_diff=asked.include_diff)
    more = []
    if not found.commits:
        enabled = memory.place.settings().history_enabled
        more.append("no commits yet" if enabled else f"{DISABLED}: {REMEDY}")
    elif left := _more(len(found.commits), asked.limit, _MOST_COMMITS):
        more.append(left)
    if found.diff is not None and found.diff.cut:
        more.append(found.diff.cut)
    return answer({"diff": None, **document(found)}, "; ".join(more) or None)


def note(_: ServedMemory, asked: schemas.NoteArguments) -> Document:
    """`memory_note`: the transcript has the call, so nothing is written and nothing can be in its way."""
    return answer({"lines": [{"label": line.label, "text": line.text} for line in hand_over(asked.note)]})


def stats(memory: ServedMemory, asked: schemas.NoArguments) -> Document:
    """`memory_stats`."""
    with reading(memory.place) as database:
        return answer(numbers(database, memory.agent_id, now_us())._asdict())


def entity(memory: ServedMemory, asked: schemas.EntityArguments) -> Document:
    """`entity_read`: one entity from its files; without an id a list of all."""
    with queries.open_read_only(memory.place, memory.agent_id, now_us()) as repo:
        if asked.id is None:
            found = queries.list_entities(repo, asked.kind)
            return answer({"entity": None, "entities": [one._asdict() for one in found]})
        shown = queries.view(repo, queries.require_row(repo, asked.id))
    return answer({"entity": shown.document(), "entities": None})
