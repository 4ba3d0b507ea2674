"""Shows what answers a question, and the memories that questions found."""

from __future__ import annotations

from typing import Any

from signet_sync.memories import promotion
from signet_sync.memories.store import memories
from signet_sync.recall import operations as recall_operations
from signet_sync.recall.as_text import handle_of, split_turns
from signet_sync.recall.search import Within
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.text.sentences import flatten
from signet_sync.web.formatting import mark_words
from signet_sync.web.link_targets import find_targets
from signet_sync.web.request import View, ViewRequest, WebPage, portion

LONGEST = 1_000  # characters of a query
MEMORIES = 20  # on a page
_TEXT = 200  # characters of a memory in a list
_ANSWERS = 20


def recall(request: ViewRequest) -> WebPage:
    """Shows the answers to a query, and what recall found before."""
    words = request.query.get("q", "").strip().encode("utf-8", "replace").decode()[:LONGEST]
    settings = request.site.place.settings()
    with reading(request.site.place) as database:
        answers = _answers(database, request, words) if words else []
        found = promotion.weigh_recalled(database, settings, request.agent, request.now_us)
        shown = portion(found, request.query.get("page"), MEMORIES)
        texts = {
            one.memory.memory_id: memories.get(database, request.agent, one.memory.memory_id) for one in shown.rows
        }
    data = {
        "recalled": shown,
        "texts": {one: ("…" if held is None else flatten(held.content, _TEXT)) for one, held in texts.items()},
        "private": [one for one, held in texts.items() if held is not None and held.private],
        "words": words,
        "answers": answers,
        "enabled": settings.dream_enabled,
    }
    return WebPage("recall", "Search", data)


def _answers(database: Database, request: ViewRequest, words: str) -> list[dict[str, Any]]:
    """Returns what the agent remembers that answers some words, the best first, and where each leads."""
    hits = recall_operations.recall(database, words, Within(request.agent), limit=_ANSWERS)
    targets = find_targets(
        database, request.agent, {name for hit in hits for name in (handle_of(hit.id), hit.path) if name}
    )
    found = []
    for hit in hits:
        source, place = targets.get(hit.path or ""), targets.get(handle_of(hit.id))
        own = (source or place) if hit.tier == "session" else (place or source)
        turns = [mark_words(turn, words) for turn in split_turns(hit._asdict())]
        found.append({"hit": hit, "turns": turns, "target": own, "source": source if source != own else None})
    return found


VIEWS: list[tuple[str, str, View]] = [("/recall", "recall", recall)]
