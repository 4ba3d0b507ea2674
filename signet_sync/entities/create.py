"""Creates an entity: its profile, its notes, and the events that record them."""

from __future__ import annotations

from collections.abc import Sequence

from signet_sync.entities import execute, write_ahead
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import EntityDocument
from signet_sync.entities.documents.escaping import SafeText, fit_title
from signet_sync.entities.event_log.events import Event
from signet_sync.entities.repository import Entity, EntityRepository, FileContent, path_of
from signet_sync.entities.section_edits import finished
from signet_sync.entities.store import EntityFile
from signet_sync.entities.write_ahead import EventStamp
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import FILES, EntityPlace, File, Kind, base_of, new_id, slug_of
from signet_sync.formats.timestamps import iso
from signet_sync.formats.wikilinks import wikilink

_DEPRECATED = "deprecated"


def create_entity(
    repo: EntityRepository, kind: Kind, name: str, relation: str | None, between: Sequence[str], stamp: EventStamp
) -> tuple[Event, Entity]:
    """Creates an entity. Raises `UsageError`, `Raced`, `WorkspaceError`."""
    title = fit_title(name)
    members = _members(repo, kind, relation, between)
    slug = slug_of(title)
    entity_id = _id(repo, kind, slug, relation, members)
    _refuse_second(repo, kind, title, slug, relation, members)
    documents = _documents(repo, kind, title, entity_id, relation, members)
    place = EntityPlace(repo.agent_id, kind, slug, entity_id, "profile", base_of(title, kind))
    seen = {file: FileContent(path_of(place._replace(file=file)), place._replace(file=file)) for file in FILES}
    entity = Entity(entity_id, kind, slug, seen, {})
    return write_ahead.create(repo, entity, documents, stamp), entity


def _documents(
    repo: EntityRepository, kind: Kind, title: str, entity_id: str, relation: str | None, members: Sequence[EntityFile]
) -> dict[File, EntityDocument]:
    given: dict[str, object] = {
        "title": title,
        "entity_id": entity_id,
        "created_at": iso(repo.now_us),
        "relation": relation,
    }
    given |= {"participants": [row.id for row in members]}
    version = repo.version(kind)
    made: dict[File, EntityDocument] = {file: repo.blank(kind, file, version, **given) for file in FILES}
    for row in members:
        link = SafeText(wikilink(row.path, row.title))
        made["profile"] = edits.append_item(made["profile"], "participants", link)
    made["profile"] = finished(repo, made["profile"], "profile", ["Created"])
    return made


def _members(repo: EntityRepository, kind: Kind, relation: str | None, between: Sequence[str]) -> list[EntityFile]:
    """Returns the participants of a relationship. Raises `UsageError` (`relation-needed`, `unknown-entity`)."""
    if kind != "relationship":
        if relation is not None or between:
            raise UsageError(
                f"a {kind} has no type and no participants", hint="omit --type and --between", code="relation-unfit"
            )
        return []
    found = {row.id: row for row in (execute.locate(repo, ref) for ref in between)}
    if len(found) < 2 or not relation or not any(map(str.isalnum, relation)):
        raise UsageError(
            "a relationship needs a type and two entities",
            hint="--type protects --between ID ID",
            code="relation-needed",
        )
    if any(row.kind == "relationship" for row in found.values()):
        raise UsageError("a relationship is between persons", hint="name two of these", code="relation-needed")
    return list(found.values())


def _id(repo: EntityRepository, kind: Kind, slug: str, relation: str | None, members: Sequence[EntityFile]) -> str:
    """Returns an unused id: a name may be used again, an id never."""
    seed = [repo.agent_id, slug] if not members else [repo.agent_id, relation or "", *sorted(r.id for r in members)]
    for number in range(10_000):
        made = new_id(kind, *seed, *([str(number)] if number else []))
        if not repo.log.of(made) and not repo.places([made]):
            return made
    raise UsageError("no id is left for this name", hint="choose another name", code="entity-exists")


def _refuse_second(
    repo: EntityRepository, kind: Kind, title: str, slug: str, relation: str | None, members: Sequence[EntityFile]
) -> None:
    """Refuses a second entity of a name, or relationship of a pair and type. Deprecated ones do not count."""
    for row in entities_store.entities(repo.workspace.database, repo.agent_id):
        if row.kind != kind or row.status == _DEPRECATED:
            continue
        if kind == "relationship":
            same = set(row.participants) == {r.id for r in members} and _folded(row.type) == _folded(relation)
        else:
            same = row.slug == slug or _folded(row.title) == _folded(title)
        if same:
            raise UsageError(
                f"{row.title} already exists",
                path=row.path,
                hint=f"change it by its id: {row.id}",
                code="entity-exists",
            )


def _folded(text: str | None) -> str:
    return " ".join((text or "").casefold().split())
