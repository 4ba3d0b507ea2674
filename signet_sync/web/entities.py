"""Shows an agent's entity files, and one entity: its content and evidence, who may change it, its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from signet_sync.entities import queries
from signet_sync.entities import store as entities_store
from signet_sync.entities.agent_text import read_item
from signet_sync.entities.events import Event, tokens_in
from signet_sync.entities.queries import EntityView, SectionView
from signet_sync.formats.entity_paths import anchor_of
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import sessions
from signet_sync.web.link_targets import find_targets
from signet_sync.web.markdown import Prose
from signet_sync.web.request import ViewRequest, WebPage, portion

EVENTS = 40
RAW = 100_000  # characters of a file that is shown as it is
_WHOLE = "*"
_KINDS = {"user": "Users", "part": "Parts", "relationship": "Relationships"}


def entities(request: ViewRequest) -> WebPage:
    """Shows all entities of the agent, by kind."""
    with queries.open_read_only(request.site.place, request.agent, request.now_us) as repo:
        found = queries.list_entities(repo)
        proposed = Counter(one.entity_id for one in queries.list_proposals(repo))
        queue = repo.drift()
        chain = entities_store.log_end(repo.workspace.database, request.agent)
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
        "events": chain[2] if chain is not None else 0,
    }
    return WebPage("entities", "Entities", data)


def entity(request: ViewRequest) -> WebPage:
    """Shows one entity. Raises `UsageError` if the agent has none of this name, or several."""
    with queries.open_read_only(request.site.place, request.agent, request.now_us) as repo:
        database, row = repo.workspace.database, repo.require(request.path["entity"])
        shown = queries.view(repo, row)
        logged = repo.log.of(row.id)[::-1]
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
    rests = event.said("evidence") if event is not None else None
    source = rests[0] if rests else evidence.path
    return {"prose": None, "quote": evidence.quote, "why": evidence.why, "source": source, "event": event}


def _sources(
    database: Database, agent_id: str, shown: EntityView, sections: list[dict[str, Any]], logged: Any
) -> dict[str, tuple[str, int | None, sessions.SessionRef | None]]:
    """Returns path, line and session of each `PATH#LINE`; without a session the artifact is no longer indexed."""
    named = [item["source"] for section in sections for item in section["items"] or ()]
    named += [one.source for one in shown.proposals]
    named += [rests for event in logged for rests in event.said("evidence") or ()]
    known = sessions.find_of_paths(database, agent_id, [one.partition("#")[0] for one in named if one])
    found = {}
    for one in filter(None, named):
        path, _, line = one.partition("#")
        number = int(line) if line.isascii() and line.isdigit() and len(line) < 10 else None
        found[one] = path, number, known.get(path)
    return found
