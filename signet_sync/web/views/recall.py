"""Shows answers to a question, which memories are promoted into MEMORY.md and why, and all about one memory."""

from collections.abc import Sequence
from typing import NamedTuple

from signet_sync.embeddings.meaning import Meaning
from signet_sync.formats.handle import handle
from signet_sync.graph.store import neighbours
from signet_sync.memories import operations, promotion
from signet_sync.memories.promotion import RecalledMemory
from signet_sync.memories.promotion_score import WEIGHTS, DreamView, Gates, ScorePart, Signals, parts
from signet_sync.memories.store import memories, promotions, recall_events
from signet_sync.memories.store.memories import Memory
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.web.answers import answers
from signet_sync.web.commands import command_line
from signet_sync.web.marks import marked
from signet_sync.web.paging import portion
from signet_sync.web.request import View, ViewRequest, WebPage

LONGEST = 1_000  # characters of a query
MEMORIES = 20  # on a page
ANGLES = 30
_TEXT = 200  # characters of a memory in a list


class RecalledRow(NamedTuple):
    """A memory in a list: its words, its score with its parts, and how often it was found."""

    id: str
    text: str
    private: bool
    score: float
    parts: Sequence[ScorePart]
    hits: int
    queries: int
    days: int
    last_us: int
    lacks: Sequence[str] = ()
    risen: bool = False
    undone: bool = False


class Gate(NamedTuple):
    """A gate, and whether a memory passes it."""

    name: str
    has: str
    needs: str
    passed: bool


def recall(request: ViewRequest) -> WebPage:
    """Shows the answers to a query, and what recall found before with its score."""
    words = request.query.get("q", "").strip().encode("utf-8", "replace").decode()[:LONGEST]
    meaning = Meaning(request.site.place, request.now_us, remembers=False)
    settings = request.site.place.settings()
    with reading(request.site.place) as database:
        texts = _Texts(database, request.agent)
        found_now = answers(database, request, words, meaning) if words else []
        found = promotion.recalled(database, settings, request.agent, request.now_us)
        shown = portion(found, request.query.get("page"), MEMORIES)
        recalled = shown.each(lambda one: _row(one, texts))
    return WebPage(
        "recall",
        "Recall",
        {
            "recalled": recalled,
            "words": words,
            "answers": [(one, marked(one.text, words)) for one in found_now],
            "trouble": meaning.trouble,
            "in_terminal": command_line(request, "recall", words) if words else "",
            "least": promotion.gates(settings).score,
            "weights": list(WEIGHTS._asdict().items()),
            "most": sum(WEIGHTS),
            "enabled": settings.dream_enabled,
            "dream": command_line(request, "dream"),
            "remember": command_line(request, "remember", "Deploys happen on Tuesdays, after the backup."),
            "ask_recall": command_line(request, "recall", "when do we deploy?"),
        },
    )


class _Texts:
    """Memories of an agent by id, each read once."""

    def __init__(self, database: Database, agent_id: str) -> None:
        self._database = database
        self.agent_id = agent_id
        self._known: dict[str, Memory | None] = {}

    def __call__(self, memory_id: str) -> tuple[str, bool]:
        """Returns a memory's words on one line, and whether it is private."""
        if memory_id not in self._known:
            self._known[memory_id] = memories.get(self._database, self.agent_id, memory_id)
        memory = self._known[memory_id]
        return ("…", False) if memory is None else (_brief(memory.content, _TEXT), memory.private)


def _brief(text: str, most: int) -> str:
    """Returns the beginning of a text, on one line."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[:most]}…"


def _row(one: RecalledMemory, texts: _Texts) -> RecalledRow:
    memory = one.memory
    return RecalledRow(
        memory.memory_id,
        *texts(memory.memory_id),
        memory.score,
        parts(memory.signals),
        memory.signals.recall_count,
        memory.queries,
        memory.signals.unique_days,
        memory.last_us,
        one.lacks,
        one.risen,
        one.undone,
    )


def _risen(view: DreamView, texts: _Texts) -> RecalledRow:
    """Returns a promotion with its parts at the time and today's weights."""
    return RecalledRow(
        view.memory_id,
        *texts(view.memory_id),
        view.score,
        tuple(ScorePart(name, getattr(view, name), weight) for name, weight in WEIGHTS._asdict().items()),
        view.hits,
        view.queries,
        view.days,
        view.last_us,
        risen=True,
        undone=view.undone_us is not None,
    )


# ── one memory ──


def memory(request: ViewRequest) -> WebPage:
    """Shows all about one memory. Raises `UsageError` if the agent has none of this id."""
    settings = request.site.place.settings()
    gates = promotion.gates(settings)
    with reading(request.site.place) as database:
        found = operations.named(database, request.agent, request.path["memory"])
        wanted = found.id
        texts = _Texts(database, request.agent)
        now = next(iter(promotion.recalled(database, settings, request.agent, request.now_us, wanted)), None)
        then = promotions.view_of(database, request.agent, wanted)
        rose = promotions.of_memory(database, request.agent, wanted)
        data = {
            "memory": found,
            "pinned": memories.is_pinned(database, request.agent, wanted),
            "sources": neighbours.sources_of_memory(database, request.agent, wanted),
            "row": None if now is None else _row(now, texts),
            "gates": [] if now is None else _gates(now.memory.signals, now.memory.queries, now.memory.score, gates),
            "then": None if then is None else _risen(then, texts),
            "rose_us": None if rose is None else rose.at_us,
            "undone_us": None if rose is None else rose.undone_us,
            "angles": recall_events.angles_of(database, request.agent, wanted, ANGLES),
        }
    return WebPage(
        "memory",
        _brief(found.content, 80) or wanted,
        {
            **data,
            "handle": handle(wanted),
            "most": sum(WEIGHTS),
            "least": gates.score,
            "forget": command_line(request, "forget", wanted),
            "pin": command_line(request, "pin", wanted, *(["--remove"] if data["pinned"] else [])),
            "undo": command_line(request, "dream", "--redo" if data["undone_us"] else "--undo", wanted),
            "expand": command_line(request, "expand", wanted),
        },
    )


def _gates(signals: Signals, queries: int, score: float, gates: Gates) -> list[Gate]:
    counted = (
        ("times found", signals.recall_count, gates.recall_count),
        ("different queries", queries, gates.queries),
        ("different days", signals.unique_days, gates.unique_days),
    )
    found = [Gate(name, str(has), str(needs), has >= needs) for name, has, needs in counted]
    return [*found, Gate("score", f"{score:.2f}", f"{gates.score:.2f}", score >= gates.score)]


VIEWS: list[tuple[str, str, View]] = [("/recall", "recall", recall), ("/recall/{memory}", "memory", memory)]
