"""Updates links to an entity's files in every entity file of the agent after the folder or the files were renamed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from signet_sync.entities import observe, write_ahead
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import DocumentProblem, EntityDocument, reread
from signet_sync.entities.repository import Entity, EntityRepository, folder_of, path_of
from signet_sync.entities.write_ahead import EditPlan
from signet_sync.formats.entity_paths import FILES, EntityPlace, parse_path
from signet_sync.formats.wikilinks import wikilink


def relink(repo: EntityRepository, before: Entity) -> None:
    """Changes links to where an entity was before. Files that are being edited, and drift, are left as they are."""
    row = repo.find(before.id)
    place = parse_path(row.path) if row is not None else None
    old = before.seen["profile"].place
    if row is None or place is None or (folder_of(place), place.base) == (folder_of(old), old.base):
        return
    waiting = {one.entity_id for one in repo.drift()}
    for known in entities_store.entities(repo.workspace.database, repo.agent_id):
        entity = write_ahead.load(repo, known) if known.id not in waiting else None
        if entity is None or not any(folder_of(old) in (seen.text or "") for seen in entity.seen.values()):
            continue
        entity = observe.writable(repo, known.id)
        for file, document in entity.documents.items() if entity is not None else ():
            after = _changed(document, old, place, row.title)
            if entity is not None and after != document:
                plan = EditPlan(op="set", file=file, after=after, reason="links follow a renamed entity")
                write_ahead.write_as("observer", repo, entity, plan)


def moves(old: EntityPlace, new: EntityPlace) -> Mapping[str, str]:
    """Returns the former and present paths of an entity's files, without `.md`: links may omit it."""
    pairs = ((path_of(old._replace(file=file)), path_of(new._replace(file=file))) for file in FILES)
    return {before.removesuffix(".md"): after.removesuffix(".md") for before, after in pairs}


def _changed(document: EntityDocument, old: EntityPlace, new: EntityPlace, title: str) -> EntityDocument:
    profile, notes = moves(old, new)
    label = re.compile(rf"\[\[{re.escape(profile)}\.md(?:\|[^\[\]]*)?\]\]")
    bare = re.compile(rf"\[\[({re.escape(profile)}|{re.escape(notes)})(?=\.md[\]|#]|[\]|#])")
    after = document
    for section in document.sections:
        body = section.body
        if old.slug != new.slug:
            body = label.sub(lambda _: wikilink(path_of(new), title), body)
        body = bare.sub(lambda found: f"[[{moves(old, new)[found[1]]}", body)
        body = body.replace(f"[[{folder_of(old)}/", f"[[{folder_of(new)}/")
        if body != section.body and section.anchor is not None:
            after = edits.put_body(after, section.anchor, body)
    try:
        return reread(after)
    except DocumentProblem:
        return document
