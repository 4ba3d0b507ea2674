"""Reads entities for display without a lock: nothing is settled, recorded or written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from signet_sync.entities import proposals
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import lint
from signet_sync.entities.documents.document import DocumentSection, text_of
from signet_sync.entities.documents.edits import items
from signet_sync.entities.event_log.events import Event, states_of
from signet_sync.entities.repository import EntityRepository, FileContent, document_of, words
from signet_sync.entities.results import EntityFinding, EntitySummary, EntityView, ItemView, LoggedEvent, SectionView
from signet_sync.entities.store import EntityFile
from signet_sync.errors import WorkspaceError
from signet_sync.formats.entity_paths import FILES, File, Kind, parse_path
from signet_sync.sync.read_only import IndexPlace, reading
from signet_sync.sync.workspace import Workspace


@contextmanager
def open_read_only(place: IndexPlace, agent_id: str, now_us: int) -> Iterator[EntityRepository]:
    """Opens an agent's entities over a read-only index; only the functions of this module may use them.

    Raises as `sync.read_only.reading`, and `UsageError` for an invalid agent name.
    """
    with reading(place) as database:
        workspace = Workspace(place.root, place.settings(), place.state(), database, touch_nothing=True)
        yield EntityRepository(workspace, agent_id, now_us)


def require_row(repo: EntityRepository, ref: str) -> EntityFile:
    """Returns the row of the entity that a name refers to.

    Raises `UsageError` (`unknown-entity`, `ambiguous-entity`).
    """
    row = repo.find(ref)
    if row is None:
        raise repo.unknown(ref)
    return row


def view(repo: EntityRepository, row: EntityFile) -> EntityView:
    """Returns an entity with its sections, read from its files."""
    seen = _files(repo, row)
    drifted = any(one.entity_id == row.id for one in repo.drift())
    profile = document_of(seen["profile"].text)
    fields = profile.fields if profile is not None else {}
    return EntityView(
        id=row.id,
        agent_id=repo.agent_id,
        kind=row.kind,
        title=row.title,
        path=row.path,
        status=row.status,
        type=row.type,
        participants=row.participants,
        sections=tuple(one for file in FILES for one in _sections(repo, row, seen[file])),
        pins=words(fields.get("pins")),
        locks=words(fields.get("locks")),
        proposals=tuple(proposals.waiting(repo, row.id)),
        drifted=drifted,
    )


def list_entities(repo: EntityRepository, kind: Kind | None = None) -> list[EntitySummary]:
    """Lists the entities in the index by kind and title."""
    return [
        EntitySummary(row.id, row.kind, row.title, row.status, row.type, row.path, row.line)
        for row in entities_store.entities(repo.workspace.database, repo.agent_id)
        if kind in (None, row.kind)
    ]


def lint_files(repo: EntityRepository, row: EntityFile) -> list[EntityFinding]:
    """Lists deviations of an entity's files from the schema."""
    return [
        EntityFinding(row.id, one.code, one.message, one.hint, seen.path)
        for seen in _files(repo, row).values()
        if (document := document_of(seen.text)) is not None  # otherwise it is in the maintainer's queue
        for one in lint.lint(document, repo.shapes_of(row.kind, seen.place.file, document))
    ]


def list_drift(repo: EntityRepository) -> list[EntityFinding]:
    """Returns the maintainer's queue as of the last look at the files."""
    return [EntityFinding(one.entity_id, one.code, one.message, one.hint, one.path) for one in repo.drift()]


def list_events(repo: EntityRepository, entity_id: str | None = None) -> list[LoggedEvent]:
    """Lists the events of an entity (None: of all), newest first."""
    entries = repo.log.entries() if entity_id is None else repo.log.of(entity_id)
    states = states_of(entries)
    return [LoggedEvent(entry, states[entry.id]) for entry in reversed(entries) if isinstance(entry, Event)]


def describe_event(event: Event) -> str:
    """Describes an event: `set role`, `append item highlights`, `set notes/inbox`, `create notes`."""
    what = "/".join(filter(None, ["notes" if event.file == "notes" else "", event.section or ""]))
    return " ".join(filter(None, [event.op.replace("_", " "), what]))


def _files(repo: EntityRepository, row: EntityFile) -> dict[File, FileContent]:
    place = parse_path(row.path)
    if place is None:
        raise WorkspaceError("the index contains a path that is not that of an entity", path=row.path)
    return repo.read_both(place)


def _sections(repo: EntityRepository, row: EntityFile, seen: FileContent) -> list[SectionView]:
    if seen.text is None:
        return []
    document = document_of(seen.text)
    if document is None:
        return [SectionView("", None, "", seen.text or "", None)]
    forms = {shape.anchor: shape.form for shape in repo.shapes_of(row.kind, seen.place.file, document)}
    return [
        _shown(section, forms.get(section.anchor or "", "narrative"), seen.place.file) for section in document.sections
    ]


def _shown(section: DocumentSection, form: str, file: File) -> SectionView:
    name = section.anchor or section.heading
    found = None
    if form != "narrative":
        found = tuple(ItemView(item.number, item.key, item.text) for item in items(section))
    return SectionView(
        f"notes/{name}" if file == "notes" else name, section.anchor, section.heading, text_of(section), found
    )
