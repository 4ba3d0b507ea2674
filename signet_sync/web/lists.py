"""Shows lists: sessions by day, threads and a node of the graph, what answers a question, entities and one of them."""

import re
from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from signet_sync.entities import queries
from signet_sync.entities import store as entities_store
from signet_sync.entities.agent_text import read_item
from signet_sync.entities.events import Event, tokens_in
from signet_sync.entities.queries import EntityView, SectionView
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import anchor_of
from signet_sync.formats.timestamps import local_day, parse_moment
from signet_sync.graph.store import neighbours, nodes
from signet_sync.memories.store import memories
from signet_sync.pages.sections import distinct_names
from signet_sync.recall import operations as recall_operations
from signet_sync.recall.as_text import split_turns
from signet_sync.recall.expand import expand
from signet_sync.recall.store import session_list
from signet_sync.recall.store.rows import Within
from signet_sync.sessions.live import store as live
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import open_index
from signet_sync.sync.store import sessions as sessions_store
from signet_sync.sync.store.sessions import SessionRef
from signet_sync.text.sentences import flatten
from signet_sync.web.link_targets import find_targets
from signet_sync.web.markdown import Prose
from signet_sync.web.request import ViewRequest, WebPage, page_number, portion

_PAGE = 100
_FIRST = 80  # characters of what was said first
LONGEST = 1_000  # characters of a query
_ANSWERS = 20
THREADS = 50  # on a page
SESSIONS = 50
BUDGET = 4_000
EVENTS = 40  # of an entity on a page
RAW = 100_000  # characters of a file that is shown as it is
_WHOLE = "*"
_KINDS = {"user": "Users", "part": "Parts", "relationship": "Relationships"}
_GROUPS = ("parents", "children", "siblings", "memories")
_LEVELS = {"arc": "week", "epoch": "quarter", "chunk": "part of a transcript"}


# ── sessions ──


def list_running_sessions(database: Database, agent_id: str) -> list[dict[str, Any]]:
    """Returns the running sessions of an agent, the most active first: what each is called, and how far it is.

    It is called by what its person said first, by its key without that.
    """
    found = []
    for one in live.sessions(database, agent_id):
        turns = live.transcript(database, agent_id, one.session_key, one.session_id)
        said = next((flatten(turn.content, _FIRST) for turn in turns if turn.role == "user"), "")
        found.append({"title": said or f"session {one.session_key}", "turns": one.turns, "last_at": one.last_at})
    return found


def sessions(request: ViewRequest) -> WebPage:
    """Shows the list, a page at a time. Raises `UsageError` for what is no day."""
    # What is not UTF-8 is in no index.
    names = ("project", "from", "to")
    asked = {name: request.query.get(name, "").strip().encode("utf-8", "replace").decode() for name in names}
    asked = {name: text for name, text in asked.items() if text}
    since, until = _day(asked.get("from", "")), _day(asked.get("to", ""), ends=True)
    number = page_number(request.query.get("page"))
    with open_index(request.site.place) as database:
        shown, more = session_list.page(
            database,
            request.agent,
            project=asked.get("project"),
            since_us=since,
            until_us=until,
            offset=(number - 1) * _PAGE,
            limit=_PAGE,
        )
        by_day = groupby(shown, key=lambda entry: local_day(entry.membership_us))
        data: dict[str, Any] = {
            "asked": asked,
            "days": [(day, list(some)) for day, some in by_day],
            "shown": shown,
            "number": number,
            "more": more,
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


# ── threads ──


def threads(request: ViewRequest) -> WebPage:
    """Shows the threads, the one that was worked on last first."""
    with open_index(request.site.place) as database:
        chosen = portion(list(nodes.summaries(database, request.agent)), request.query.get("page"), THREADS)
        names = distinct_names(one.project for one in chosen.rows)
        shown = [one._replace(label=names.get(one.project or "", one.label)) for one in chosen.rows]
    return WebPage("threads", "Threads", {"rows": shown, "portion": chosen})


def node(request: ViewRequest) -> WebPage:
    """Shows one node, thread, statement, memory or entity, and what is around. Raises `UsageError` if it is unknown."""
    with open_index(request.site.place) as database:
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
            "links": find_targets(database, request.agent, prose.targets),
            "groups": {name: [(one, labels.get(one, one)) for one in found[name]] for name in _GROUPS},
            "transcript": found["transcript"],
            "sources": found.get("sources", []),
            "thread": (thread, labels.get(thread, thread)) if thread else None,
            "sessions": None,
        }
        if is_thread:
            chosen = portion(range(about["sessions"]), request.query.get("page"), SESSIONS)
            listed = nodes.newest_sessions(database, request.agent, about["id"], SESSIONS, chosen.first)
            data |= {"sessions": listed, "portion": chosen}
    return WebPage("node", about["label"] or about["id"], data)


# ── recall ──


def recall(request: ViewRequest) -> WebPage:
    """Shows the answers to a query."""
    words = request.query.get("q", "").strip().encode("utf-8", "replace").decode()[:LONGEST]
    with open_index(request.site.place) as database:
        answers = _answers(database, request, words) if words else []
    return WebPage("recall", "Search", {"words": words, "answers": answers})


def _answers(database: Database, request: ViewRequest, words: str) -> list[dict[str, Any]]:
    """Returns what the agent remembers that answers some words, the best first, and where each leads."""
    hits = recall_operations.recall(database, words, Within(request.agent), limit=_ANSWERS)
    targets = find_targets(database, request.agent, {name for hit in hits for name in (hit.id, hit.path) if name})
    found = []
    for hit in hits:
        source, place = targets.get(hit.path or ""), targets.get(hit.id)
        own = (source or place) if hit.tier == "session" else (place or source)
        turns = [Prose(turn, inline=True) for turn in split_turns(hit._asdict())]
        found.append({"hit": hit, "turns": turns, "target": own, "source": source if source != own else None})
    return found


# ── entities ──


def entities(request: ViewRequest) -> WebPage:
    """Shows all entities of the agent, by kind."""
    with queries.open_read_only(request.site.place, request.agent, request.now_us) as repo:
        found = queries.list_entities(repo)
        proposed = Counter(one.entity_id for one in queries.list_proposals(repo))
        queue = repo.drift()
    drifted, known = {one.id for one in queue}, {one.id for one in found}
    cards = [
        {
            "entity": one,
            "line": Prose(one.line, inline=True),
            "proposals": proposed[one.id],
            "drifted": one.id in drifted,
        }
        for one in found
    ]
    kinds = [
        (heading, [card for card, one in zip(cards, found, strict=True) if one.kind == kind])
        for kind, heading in _KINDS.items()
    ]
    data = {
        "kinds": [one for one in kinds if one[1]],
        # An entity whose profile is gone or unreadable is in no list.
        "lost": [one for one in queue if one.id not in known],
    }
    return WebPage("entities", "Entities", data)


def entity(request: ViewRequest) -> WebPage:
    """Shows one entity. Raises `UsageError` if the agent has none of this name, or several."""
    with queries.open_read_only(request.site.place, request.agent, request.now_us) as repo:
        database, row = repo.workspace.database, repo.require(request.path["entity"])
        shown = queries.view(repo, row)
        logged = repo.log.events_of(row.id)[::-1]
        log = portion(logged, request.query.get("page"), EVENTS)
        events = {one.id: one for one in logged}
        sections = [_section(shown, one, events) for one in shown.sections]
        waiting = [{"proposal": one, "prose": Prose(one.text)} for one in shown.proposals]
        texts = [one["prose"] for one in (*waiting, *sections, *(i for s in sections for i in s["items"] or ()))]
        about = {
            "entity": shown,
            "sections": sections,
            "proposals": waiting,
            "drifted": [one for one in repo.drift() if one.id == row.id],
            "log": log,
            "shown_events": [(one, queries.describe_event(one), queries.texts_of(one)) for one in log.rows],
            "beside": [
                (one, found[0].title if len(found := entities_store.find(database, request.agent, one)) == 1 else one)
                for one in entities_store.neighbours(database, row)
            ],
            "pinned": _WHOLE in shown.pins,
            "locked": _WHOLE in shown.locks,
            "links": find_targets(database, request.agent, {to for text in texts if text for to in text.targets}),
            "updated_us": row.updated_us,
            "sources": _sources(database, request.agent, shown, sections, log.rows),
        }
    return WebPage("entity", shown.title, about)


def _section(shown: EntityView, one: SectionView, events: Mapping[str, Event]) -> dict[str, Any]:
    """Returns a section for display: a narrative has prose, a list items; `raw` is a file that could not be parsed."""
    raw = one.text[:RAW] if not one.name else ""
    items = None if one.items is None else [_item(item.text, events) for item in one.items]
    name = anchor_of(one.name)
    # A person may have written headings.
    pinned, locked = (
        name in {anchor_of(" ".join(each.split())) for each in names} for names in (shown.pins, shown.locks)
    )
    return {
        "name": one.name,
        "heading": one.heading,
        "notes": one.name.startswith("notes/"),
        "prose": None if raw or items else Prose(one.text),
        "items": items,
        "pinned": pinned,
        "locked": locked,
        "log": name == "change-log",
        "raw": raw,
    }


def _item(text: str, events: Mapping[str, Event]) -> dict[str, Any]:
    """Returns an item: evidence has a quote, why it matters and a source, any other its words."""
    tokens = tokens_in(text)
    event = events.get(tokens[-1]) if tokens else None
    evidence = read_item(text)
    if evidence is None:
        return {"prose": Prose(text, inline=True), "quote": "", "why": "", "source": None, "event": event}
    rests = event.text_part("evidence") if event is not None else None
    source = rests[0] if rests else evidence.path
    return {"prose": None, "quote": evidence.quote, "why": evidence.why, "source": source, "event": event}


def _sources(
    database: Database, agent_id: str, shown: EntityView, sections: list[dict[str, Any]], logged: Any
) -> dict[str, tuple[str, int | None, SessionRef | None]]:
    """Returns path, line and session of each `PATH#LINE`; without a session the artifact is no longer indexed."""
    named = [item["source"] for section in sections for item in section["items"] or ()]
    named += [one.source for one in shown.proposals]
    named += [rests for event in logged for rests in event.text_part("evidence") or ()]
    known = sessions_store.find_of_paths(database, agent_id, [one.partition("#")[0] for one in named if one])
    found = {}
    for one in filter(None, named):
        path, _, line = one.partition("#")
        number = int(line) if line.isascii() and line.isdigit() and len(line) < 10 else None
        found[one] = path, number, known.get(path)
    return found
