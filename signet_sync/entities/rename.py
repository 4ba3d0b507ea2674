"""Updates links to a renamed entity's folder in every entity file of the agent."""

from __future__ import annotations

import re

from signet_sync.entities import observe, write_ahead
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import DocumentProblem, EntityDocument, reread
from signet_sync.entities.repository import Entity, EntityRepository, folder_of, path_of
from signet_sync.entities.write_ahead import EditPlan
from signet_sync.formats.entity_paths import parse_path
from signet_sync.formats.wikilinks import wikilink


def relink(repo: EntityRepository, before: Entity) -> None:
    """Changes links to the former folder of an entity. Files that are being edited, and drift, are left as they are."""
    row = repo.find(before.id)
    place = parse_path(row.path) if row is not None else None
    old = folder_of(before.seen["profile"].place)
    if row is None or place is None or folder_of(place) == old:
        return
    waiting = {one.entity_id for one in repo.drift()}
    for known in entities_store.entities(repo.workspace.database, repo.agent_id):
        entity = write_ahead.load(repo, known) if known.id not in waiting else None
        if entity is None or not any(old in (seen.text or "") for seen in entity.seen.values()):
            continue
        entity = observe.writable(repo, known.id)
        for file, document in entity.documents.items() if entity is not None else ():
            after = _changed(document, old, path_of(place), row.title)
            if entity is not None and after != document:
                plan = EditPlan(op="set", file=file, after=after, reason="links follow a renamed entity")
                write_ahead.write_as("observer", repo, entity, plan)


def _changed(document: EntityDocument, old: str, new: str, title: str) -> EntityDocument:
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
