"""Shows what answers a question, the memories that questions found, and all about one memory."""

from typing import NamedTuple

from signet_sync.formats.handle import handle
from signet_sync.graph.store import neighbours
from signet_sync.memories import operations, promotion
from signet_sync.memories.promotion import RecalledMemory
from signet_sync.memories.store import memories, promotions, recall_events
from signet_sync.recall import operations as recall_operations
from signet_sync.recall.as_text import handle_of
from signet_sync.recall.search import Within
from signet_sync.recall.shown import RankedHit
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.text.sentences import flatten
from signet_sync.web.commands import command_line
from signet_sync.web.link_targets import of_names
from signet_sync.web.links import LinkTarget
from signet_sync.web.marks import marked
from signet_sync.web.paging import portion
from signet_sync.web.request import View, ViewRequest, WebPage

LONGEST = 1_000  # characters of a query
MEMORIES = 20  # on a page
ANGLES = 30
_TEXT = 200  # characters of a memory in a list
_ANSWERS = 20


class Answer(NamedTuple):
    """A hit of recall: its kind in plain words, why it was found, where it leads, and the file it comes from."""

    id: str
    kind: str
    text: str
    why: str
    target: LinkTarget | None
    path: str
    source: LinkTarget | None


def answers(database: Database, request: ViewRequest, words: str) -> list[Answer]:
    """Returns what the agent remembers that answers some words, the best first."""
    hits = recall_operations.recall(database, words, Within(request.agent), limit=_ANSWERS)
    named = {name for hit in hits for name in (handle_of(hit.id), hit.path) if name}
    targets = of_names(database, request.agent, named)
    return [_answer(hit, targets) for hit in hits]


def _answer(hit: RankedHit, targets: dict[str, LinkTarget]) -> Answer:
    source = targets.get(hit.path or "")
    place = LinkTarget("memory", {"memory": hit.id}) if hit.tier == "memory" else targets.get(handle_of(hit.id))
    own = (source or place) if hit.tier == "session" else (place or source)
    return Answer(hit.id, hit.tier, hit.text, hit.why, own, hit.path or "", source if source != own else None)


class RecalledRow(NamedTuple):
    """A memory in a list: its words, its score, how often it was found, and what it lacks to be promoted."""

    id: str
    text: str
    private: bool
    score: float
    hits: int
    queries: int
    days: int
    last_us: int
    lacks: tuple[str, ...]
    risen: bool
    undone: bool


def recall(request: ViewRequest) -> WebPage:
    """Shows the answers to a query; without one what recall found before."""
    words = request.query.get("q", "").strip().encode("utf-8", "replace").decode()[:LONGEST]
    settings = request.site.place.settings()
    with reading(request.site.place) as database:
        found_now = answers(database, request, words) if words else []
        found = promotion.recalled(database, settings, request.agent, request.now_us)
        shown = portion(found, request.query.get("page"), MEMORIES)
        recalled = shown.each(lambda one: _row(database, request.agent, one))
    data = {
        "recalled": recalled,
        "words": words,
        "answers": [(one, marked(one.text, words)) for one in found_now],
        "in_terminal": command_line(request, "recall", words) if words else "",
        "enabled": settings.dream_enabled,
        "dream": command_line(request, "dream"),
        "remember": command_line(request, "remember", "Deploys happen on Tuesdays, after the backup."),
        "ask_recall": command_line(request, "recall", "when do we deploy?"),
    }
    return WebPage("recall", "Search", data)


def _row(database: Database, agent_id: str, one: RecalledMemory) -> RecalledRow:
    found, memory = one.memory, memories.get(database, agent_id, one.memory.memory_id)
    counts = found.signals.recall_count, found.queries, found.signals.unique_days, found.last_us
    text = "…" if memory is None else flatten(memory.content, _TEXT)
    private = memory is not None and memory.private
    return RecalledRow(found.memory_id, text, private, found.score, *counts, tuple(one.lacks), one.risen, one.undone)


def memory(request: ViewRequest) -> WebPage:
    """Shows all about one memory. Raises `UsageError` if the agent has none of this id."""
    settings = request.site.place.settings()
    with reading(request.site.place) as database:
        found = operations.named(database, request.agent, request.path["memory"])
        wanted = found.id
        now = next(iter(promotion.recalled(database, settings, request.agent, request.now_us, wanted)), None)
        rose = promotions.of_memory(database, request.agent, wanted)
        data = {
            "memory": found,
            "pinned": memories.is_pinned(database, request.agent, wanted),
            "sources": neighbours.sources_of_memory(database, request.agent, wanted),
            "row": None if now is None else _row(database, request.agent, now),
            "then": None if rose is None else rose.memory,
            "rose_us": None if rose is None else rose.at_us,
            "undone_us": None if rose is None else rose.undone_us,
            "angles": recall_events.angles_of(database, request.agent, wanted, ANGLES),
            "handle": handle(wanted),
            "forget": command_line(request, "forget", wanted),
            "expand": command_line(request, "expand", wanted),
        }
    data["pin"] = command_line(request, "pin", wanted, *(["--remove"] if data["pinned"] else []))
    data["undo"] = command_line(request, "dream", "--redo" if data["undone_us"] else "--undo", wanted)
    return WebPage("memory", flatten(found.content, 80) or wanted, data)


VIEWS: list[tuple[str, str, View]] = [("/recall", "recall", recall), ("/recall/{memory}", "memory", memory)]
