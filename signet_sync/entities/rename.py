"""Updates links to a renamed entity's folder in every entity file of the agent."""

from __future__ import annotations

import re

from signet_sync.entities import observe, write_ahead
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import Document, DocumentProblem, reread
from signet_sync.entities.event_log.agent_log import new_ulid
from signet_sync.entities.repository import Entity, Garden, folder_of, path_of
from signet_sync.entities.write_ahead import Plan, Raced, Stamp
from signet_sync.formats.entity_paths import File, parse_path
from signet_sync.formats.wikilinks import wikilink


def relink(garden: Garden, before: Entity) -> None:
    """Changes links to the former folder of an entity. Files that are being edited, and drift, are left as they are."""
    database = garden.workspace.database
    row = garden.find(before.id)
    place = parse_path(row.path) if row is not None else None
    old = folder_of(before.seen["profile"].place)
    if row is None or place is None or folder_of(place) == old:
        return
    waiting = {one.entity_id for one in entities_store.drift(database, garden.agent_id)}
    for known in entities_store.entities(database, garden.agent_id):
        where = parse_path(known.path)
        if known.id in waiting or where is None:
            continue
        entity = write_ahead.load(garden, where)
        if entity is None or not any(old in (seen.text or "") for seen in entity.seen.values()):
            continue
        observe.look(garden, {known.id})
        for file in list(entity.documents):
            _follow(garden, where._replace(file=file).file, known.id, old, path_of(place), row.title)


def _follow(garden: Garden, file: File, entity_id: str, old: str, new: str, title: str) -> None:
    row = garden.find(entity_id)
    place = parse_path(row.path) if row is not None else None
    entity = write_ahead.load(garden, place) if place is not None else None
    if entity is None or file not in entity.documents:
        return
    after = _changed(entity.documents[file], old, new, title)
    if after == entity.documents[file]:
        return
    plan = Plan(op="set", file=file, after=after, reason="links follow a renamed entity")
    try:
        write_ahead.write(garden, entity, plan, Stamp(ulid=new_ulid(garden.now_us), actor="observer"))
    except Raced:
        return


def _changed(document: Document, old: str, new: str, title: str) -> Document:
    link = re.compile(rf"\[\[{re.escape(old)}/profile\.md(?:\|[^\[\]]*)?\]\]")
    after = document
    for section in document.sections:
        body = link.sub(lambda _: wikilink(new, title), section.body)
        body = body.replace(f"[[{old}/", f"[[{new.rpartition('/')[0]}/")
        if body != section.body and section.anchor is not None:
            after = edits.put_body(after, section.anchor, body)
    try:
        return reread(after)
    except DocumentProblem:
        return document
