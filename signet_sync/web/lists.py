"""Shows lists: sessions day by day with their filter, threads and one node of the graph, what answers a question."""

import re
from itertools import groupby
from typing import Any

from signet_sync.errors import UsageError
from signet_sync.formats.timestamps import local_day, parse_moment
from signet_sync.graph.store import neighbours, nodes
from signet_sync.memories import promotion
from signet_sync.memories.store import memories
from signet_sync.pages.sections import distinct_names
from signet_sync.recall import operations as recall_operations
from signet_sync.recall.as_text import handle_of, split_turns
from signet_sync.recall.expand import expand
from signet_sync.recall.search import Within
from signet_sync.recall.store import session_list
from signet_sync.recall.store.session_list import Cursor, SessionFilter
from signet_sync.sessions.live import store as live
from signet_sync.statements import store as statements_store
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.text.sentences import basename, flatten
from signet_sync.web.formatting import day_name, mark_words
from signet_sync.web.link_targets import find_prose_targets, find_targets
from signet_sync.web.markdown import Prose
from signet_sync.web.request import ViewRequest, WebPage, portion

_PAGE = 100
_FIRST = 80  # characters of what was said first
LONGEST = 1_000  # characters of a query
MEMORIES = 20  # on a page
_TEXT = 200  # characters of a memory in a list
_ANSWERS = 20
THREADS = 50  # on a page
SESSIONS = 50
BUDGET = 4_000
_GROUPS = ("parents", "children", "siblings", "memories")
_LEVELS = {"arc": "week", "epoch": "quarter", "chunk": "part of a transcript"}
_LEVEL = re.compile(rf"({'|'.join(_LEVELS)})(?= \d{{4}}-)")


# ── sessions ──


def running(database: Database, agent_id: str) -> list[dict[str, Any]]:
    """Returns the running sessions of an agent, the most active first: what each is called, and how far it is.

    It is called by its project and what its person said first, by its key if neither is known.
    """
    found = []
    for one in live.sessions(database, agent_id):
        known = next(live.running(database, agent_id, one.session_key, one.session_id), None)
        project = basename(known.place.project) if known is not None and known.place.project else ""
        turns = live.transcript(database, agent_id, one.session_key, one.session_id)
        said = next((flatten(turn.content, _FIRST) for turn in turns if turn.role == "user"), "")
        title = ": ".join(filter(None, (project, said or f"session {one.session_key}")))
        found.append({"title": title, "turns": one.turns, "last_at": one.last_at})
    return found


def sessions(request: ViewRequest) -> WebPage:
    """Shows the list; with a cursor (`after`) what follows that position. Raises `UsageError` for what is no day."""
    # What is not UTF-8 is in no index.
    names = ("project", "from", "to")
    asked = {name: request.query.get(name, "").strip().encode("utf-8", "replace").decode() for name in names}
    asked = {name: text for name, text in asked.items() if text}
    since, until = _day(asked.get("from", "")), _day(asked.get("to", ""), ends=True)
    wanted = SessionFilter(asked.get("project"), since, until)
    after = _cursor(request.query.get("after", ""))
    with reading(request.site.place) as database:
        shown = session_list.page(database, request.agent, wanted, after, _PAGE)
        by_day = groupby(shown.entries, key=lambda entry: local_day(entry.membership_us))
        data: dict[str, Any] = {
            "asked": asked,
            "days": [(day, day_name(day), list(some)) for day, some in by_day],
            "shown": shown,
            "older": _write_cursor(shown.entries[-1].cursor) if shown.more else None,
            "is_first": after is None,
            "projects": _options(_projects(database, request.agent), wanted.project),
            "import_command": request.site.place.command_line("import claude-code"),
        }
    return WebPage("sessions", "Sessions", data)


def _day(text: str, *, ends: bool = False) -> int | None:
    """Returns when a day of the person begins, or when it is over, in microseconds. Raises `UsageError`."""
    is_day = re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII)
    found = parse_moment(text, ends=ends) if is_day else None
    if text and found is None:
        raise UsageError(f"“{text[:40]}” is not a day", hint="write it as 2026-03-28")
    return None if found is None else found + ends


def _cursor(text: str) -> Cursor | None:
    """Parses a position in the list, as `_write_cursor` formats it; for anything else None: the list's top."""
    at, _, rest = text.partition(".")
    token, _, session_id = rest.partition(".")
    if not (re.fullmatch(r"-?\d{1,18}", at, re.ASCII) and token and session_id):
        return None
    return Cursor(int(at), token, session_id)


def _write_cursor(cursor: Cursor) -> str:
    return f"{cursor.membership_us}.{cursor.session_token}.{cursor.session_id}"


def _projects(database: Database, agent_id: str) -> list[tuple[str, str]]:
    """Returns value and label of each project; two of one name are distinguished by their paths."""
    counted = session_list.projects(database, agent_id)
    names = [basename(project) for project, _ in counted if project]
    found = []
    for project, count in counted:
        name = "no project" if project is None else basename(project)
        label = project if project and names.count(name) > 1 else name
        found.append((session_list.NONE if project is None else project, f"{label} ({count:,})"))
    return found


def _options(known: list[tuple[str, str]], chosen: str | None) -> list[tuple[str, str, bool]]:
    """Returns value, label and whether it is selected; the requested value even if no session has it."""
    more = [(chosen, chosen)] if chosen is not None and chosen not in dict(known) else []
    return [(value, label, value == chosen) for value, label in [*known, *more]]


# ── threads ──


def threads(request: ViewRequest) -> WebPage:
    """Shows the threads, the one that was worked on last first."""
    with reading(request.site.place) as database:
        chosen = portion(list(nodes.summaries(database, request.agent)), request.query.get("page"), THREADS)
        names = distinct_names(one.project for one in chosen.rows)
        shown = [one._replace(label=names.get(one.project or "", one.label)) for one in chosen.rows]
        left = {one.thread_id: statements_store.list_of_thread(database, request.agent, one.thread_id) for one in shown}
    steps = {name: next((text for kind, text in some if kind == "next"), None) for name, some in left.items()}
    return WebPage("threads", "Threads", {"rows": shown, "steps": steps, "portion": chosen})


def node(request: ViewRequest) -> WebPage:
    """Shows one node, thread, statement, memory or entity, and what is around. Raises `UsageError` if it is unknown."""
    with reading(request.site.place) as database:
        found = expand(database, request.agent, request.path["node"], BUDGET)
        about = found["node"]
        is_thread = about["kind"] == "thread"
        thread: str | None = about["id"] if is_thread else about.get("thread")
        around = [*(one for name in _GROUPS for one in found[name]), *([thread] if thread else [])]
        labels = neighbours.labels(database, request.agent, dict.fromkeys(around))
        prose = Prose(about["text"])
        data = {
            "node": about,
            "named": _LEVELS.get(level := about.get("level", about["kind"]), level),
            "pinned": memories.is_pinned(database, request.agent, about["id"]),
            "prose": prose,
            "links": find_prose_targets(database, request.agent, [prose]),
            "groups": {name: [(one, _plain(labels.get(one, one))) for one in found[name]] for name in _GROUPS},
            "left_out": found.get("children_left_out", 0),
            "transcript": found["transcript"],
            "sources": found.get("sources", []),
            "thread": (thread, labels.get(thread, thread)) if thread else None,
            "sessions": None,
        }
        if is_thread:
            chosen = portion(range(about["sessions"]), request.query.get("page"), SESSIONS)
            listed = nodes.newest_sessions(database, request.agent, about["id"], SESSIONS, chosen.first)
            data |= {"sessions": listed, "portion": chosen}
    return WebPage("node", _plain(about["label"] or about["id"]), data)


def _plain(label: str) -> str:
    """Returns the label of a node with its kind in plain words."""
    return _LEVEL.sub(lambda match: _LEVELS[match[1]], label, count=1) if _LEVEL.match(label) else label


# ── recall ──


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
