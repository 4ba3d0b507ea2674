"""Shows, lists and checks an agent's entities and their event log."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from signet_sync.entities import check, observe, replay, write
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents.document import DocumentSection, body_sha, document_of, text_of
from signet_sync.entities.documents.edits import items
from signet_sync.entities.events import Event, tokens_in, verify
from signet_sync.entities.repository import EntityRepository, FileContent, words
from signet_sync.entities.store import EntityFile
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.entity_paths import FILES, File, Kind, kind_of, parse_path
from signet_sync.storage import clock, state_dir
from signet_sync.sync.read_only import IndexPlace, reading
from signet_sync.sync.workspace import Workspace

_SHORTEST = 6


class Proposal(NamedTuple):
    """A text that an agent proposes for a section; `op` is `set`, `append` or `append_item`, `at` ISO 8601 UTC.

    `source` is `PATH#LINE` of the artifact that supports it.
    """

    id: str
    entity_id: str
    section: str
    op: str
    text: str
    at: str
    rationale: str | None
    source: str | None = None


def list_proposals(repo: EntityRepository, entity_id: str | None = None) -> list[Proposal]:
    """Lists open proposals, oldest first, without those whose text a removal erased."""
    made = repo.log.events('"op":"propose"')
    answered = {
        event.fact("proposal") for op in ("approve", "reject") for event in repo.log.events(f'"op":"{op}"')
    } if made else set()  # fmt: skip
    found = (_proposal(event) for event in made if event.op == "propose" and event.id not in answered)
    return [one for one in found if one is not None and entity_id in (None, one.entity_id)]


def _proposal(event: Event) -> Proposal | None:
    op, text = event.said("op"), event.said("proposed")
    if not isinstance(op, str) or not isinstance(text, str) or event.entity_id is None or event.section is None:
        return None
    section = f"notes/{event.section}" if event.file == "notes" else event.section
    rests = event.said("rationale"), event.said("source")
    return Proposal(event.id, event.entity_id, section, op, text, event.at, *rests)


def find_proposal(repo: EntityRepository, name: str) -> Proposal:
    """Returns the proposal with this id, beginning of an id, or `ev:…`. Raises `UsageError` (`unknown-proposal`)."""
    wanted = name.strip().rpartition("-")[2].upper()
    known = list_proposals(repo)
    found = [one for one in known if one.id == wanted]
    if not found and len(wanted) >= _SHORTEST:
        found = [one for one in known if one.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    raise UsageError(
        f"{len(found) or 'no'} open proposal{'s' if len(found) > 1 else ''} called {name.strip()[:60]!r}",
        hint="signet-sync entity show lists them",
        code="unknown-proposal",
    )


class ItemView(NamedTuple):
    """An item of a list section; `prune` accepts `key` or `number`."""

    number: int
    key: str
    text: str


class SectionView(NamedTuple):
    """A section for display; `items` is None unless it is a list. `name` is its name in operations.

    `sha256` is what an edit may `expect`.
    """

    name: str
    anchor: str | None
    heading: str
    text: str
    items: tuple[ItemView, ...] | None
    sha256: str = ""

    def document(self) -> dict[str, Any]:
        """Returns a section's JSON document: a list has `items`, any other section `text`."""
        document = self._asdict()
        if self.items is None:
            del document["items"]
            return document
        del document["text"]
        return document | {"items": [item._asdict() for item in self.items]}


class EntityView(NamedTuple):
    """An entity as its files have it; sections of its notes are named `notes/…` and come last.

    `proposals` are the open ones; `drifted`: a file waits for a maintainer and is shown with its present content.
    """

    id: str
    agent_id: str
    kind: Kind
    title: str
    path: str
    status: str
    type: str | None
    participants: tuple[str, ...]
    sections: tuple[SectionView, ...]
    pins: tuple[str, ...]
    locks: tuple[str, ...]
    proposals: tuple[Proposal, ...] = ()
    drifted: bool = False

    def document(self) -> dict[str, Any]:
        """Returns the JSON document of `entity show --json`."""
        return self._asdict() | {
            "sections": [section.document() for section in self.sections],
            "proposals": [proposal._asdict() for proposal in self.proposals],
        }


class EntitySummary(NamedTuple):
    """A row of a list of entities; `line` describes the entity in a sentence, and may be empty."""

    id: str
    kind: Kind
    title: str
    status: str
    type: str | None
    path: str
    line: str


class EntityFinding(NamedTuple):
    """A finding of `entity check`; `id` is an entity's or event's, empty for the event log."""

    id: str
    code: str
    message: str
    hint: str
    path: str = ""


class EventSource(NamedTuple):
    """What an event token refers to: the event, and the artifact (path, line from 1) that supports it, if any."""

    event: Event
    entity_path: str
    path: str | None
    line: int | None


# ── without a lock: nothing is settled, recorded or written ──


@contextmanager
def open_read_only(place: IndexPlace, agent_id: str, now_us: int) -> Iterator[EntityRepository]:
    """Opens an agent's entities over a read-only index.

    Raises as `sync.read_only.reading`, and `UsageError` for an invalid agent name.
    """
    with reading(place) as database:
        workspace = Workspace(place.root, place.settings(), place.state(), database, touch_nothing=True)
        yield EntityRepository(workspace, agent_id, now_us)


def view(repo: EntityRepository, row: EntityFile) -> EntityView:
    """Returns an entity with its sections, read from its files."""
    seen = _files(repo, row)
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
        sections=tuple(one for file in FILES for one in _sections(repo, seen[file])),
        pins=words(fields.get("pins")),
        locks=words(fields.get("locks")),
        proposals=tuple(list_proposals(repo, row.id)),
        drifted=any(one.entity_id == row.id for one in repo.drift()),
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
        for one in check.findings(repo, seen.place, document)
    ]


def list_drift(repo: EntityRepository) -> list[EntityFinding]:
    """Returns the maintainer's queue as of the last look at the files."""
    return [EntityFinding(one.entity_id, one.code, one.message, one.hint, one.path) for one in repo.drift()]


def list_events(repo: EntityRepository, entity_id: str | None = None) -> list[Event]:
    """Lists the events of an entity (None: of all), newest first."""
    return list(reversed(repo.log.events() if entity_id is None else repo.log.of(entity_id)))


def describe_event(event: Event) -> str:
    """Describes an event: `set role`, `append item highlights`, `set notes/inbox`, `create notes`."""
    what = "/".join(filter(None, ["notes" if event.file == "notes" else "", event.section or ""]))
    kept = [f"{word} {' and '.join(event.fact(word))}" for word in ("kept", "over") if event.fact(word)]
    return " ".join(filter(None, [event.op.replace("_", " "), what, *(f"({one})" for one in kept)]))


def texts_of(event: Event) -> dict[str, tuple[str, str]]:
    """Returns what an event changed: by section, the text before and after; the change log is left out."""
    found = replay.section_texts(event)
    if isinstance(event.said("proposed"), str):
        found = {event.section or "": ("", event.said("proposed"))}
    return {name: texts for name, texts in found.items() if name not in ("change-log", replay.LEAD)}


def _files(repo: EntityRepository, row: EntityFile) -> dict[File, FileContent]:
    place = parse_path(row.path)
    if place is None:
        raise WorkspaceError("the index contains a path that is not that of an entity", path=row.path)
    return {file: repo.read(place._replace(file=file)) for file in FILES}


def _sections(repo: EntityRepository, seen: FileContent) -> list[SectionView]:
    if seen.text is None:
        return []
    document, place = document_of(seen.text), seen.place
    if document is None:
        return [SectionView("", None, "", seen.text, None)]
    forms = {shape.anchor: shape.form for shape in repo.shapes(place.kind, place.file, document)}
    return [_shown(section, forms.get(section.anchor or "", "narrative"), place.file) for section in document.sections]


def _shown(section: DocumentSection, form: str, file: File) -> SectionView:
    name = section.anchor or section.heading
    found = None
    if form != "narrative":
        found = tuple(ItemView(item.number, item.key, item.text) for item in items(section))
    shown = f"notes/{name}" if file == "notes" else name
    return SectionView(shown, section.anchor, section.heading, text_of(section), found, body_sha(section))


# ── under the workspace's lock, after a look at the files ──


@contextmanager
def _opened(workspace: Workspace, agent_id: str, now_us: int | None = None) -> Iterator[EntityRepository]:
    with state_dir.workspace_lock(workspace.state):
        yield EntityRepository(workspace, agent_id, now_us or clock.now_us())


def show(workspace: Workspace, agent_id: str, ref: str, *, now_us: int) -> EntityView:
    """Returns an entity with its sections. Raises `UsageError` (`unknown-entity`, `ambiguous-entity`)."""
    with _opened(workspace, agent_id, now_us) as repo:
        return view(repo, _examined(repo, ref))


def listing(workspace: Workspace, agent_id: str, *, kind: Kind | None = None, now_us: int) -> list[EntitySummary]:
    """Lists the entities of an agent by kind and title."""
    with _opened(workspace, agent_id, now_us) as repo:
        observe.look(repo, None)
        return list_entities(repo, kind)


def log(workspace: Workspace, agent_id: str, ref: str | None = None, *, limit: int = 0) -> list[Event]:
    """Lists the events of an entity (None: of all), newest first; `limit` 0: all of them. Raises as `show`."""
    with _opened(workspace, agent_id) as repo:
        found = list_events(repo, None if ref is None else _identify(repo, ref))
    return found[:limit] if limit else found


def findings(
    workspace: Workspace, agent_id: str, ref: str | None = None, *, only_log: bool = False, now_us: int
) -> list[EntityFinding]:
    """Checks the event log, and the files of an entity (None: of all) against schema and events. Raises as `show`."""
    with _opened(workspace, agent_id, now_us) as repo:
        found = _verified(repo)
        if only_log:
            return found
        if ref is None:
            observe.look(repo, None)
            rows = entities_store.entities(workspace.database, agent_id)
            wanted = {row.id for row in rows}
        else:
            wanted = {_identify(repo, ref)}
            observe.look(repo, wanted)
            rows = [row for row in [repo.find(next(iter(wanted)))] if row is not None]
        said = {one.code for one in found}
        drift = [one for one in list_drift(repo) if ref is None or one.id in wanted]
        return [
            *found,
            *(one for row in rows for one in lint_files(repo, row)),
            *(one for one in drift if not (one.id == observe.LEDGER and one.code in said)),
        ]


def _verified(repo: EntityRepository) -> list[EntityFinding]:
    known = entities_store.log_end(repo.workspace.database, repo.agent_id)
    pages = repo.log.pages()
    found = verify(repo.log.lines(), known_last=known.last_id if known else None, agent_id=repo.agent_id)
    remarks = [EntityFinding(one.id, one.code, one.said, one.hint, pages.get(one.month, "")) for one in found]
    said = {remark.code for remark in remarks}
    queued = [one for one in list_drift(repo) if one.id == observe.LEDGER and one.code not in said]
    return remarks + queued


def source(workspace: Workspace, agent_id: str, token: str) -> EventSource:
    """Returns what an `ev:…` refers to. Raises `UsageError` (`token-invalid`, `unknown-event`)."""
    read = tokens_in(token.strip())
    if len(read) != 1:
        raise UsageError(
            f"{token.strip()[:60]!r} is not the name of an event", hint="ev:20260328T223406Z-…", code="token-invalid"
        )
    with _opened(workspace, agent_id) as repo:
        event = repo.log.event(read[0])
        row = repo.find(event.entity_id) if event is not None and event.entity_id is not None else None
    if event is None:
        raise UsageError(
            f"agent {agent_id} has no event {token.strip()}", hint="--agent chooses another agent", code="unknown-event"
        )
    path, _, line = next(iter(event.said("evidence") or []), "").rpartition("#")
    number = int(line) if line.isascii() and line.isdigit() and len(line) < 10 else None
    return EventSource(event, row.path if row is not None else "", path or None, number)


def _examined(repo: EntityRepository, ref: str) -> EntityFile:
    """Returns the row of an entity after a look at its files. Raises `UsageError`."""
    observe.catch_up(repo)
    row = write.locate(repo, ref)
    observe.examine(repo, {row.id})
    return repo.find(row.id) or row


def _identify(repo: EntityRepository, ref: str) -> str:
    """Returns the id that a name refers to; a missing entity needs its full id. Raises `UsageError`."""
    row = repo.find(ref)
    if row is None and kind_of(ref.strip()) is not None and repo.log.of(ref.strip()):
        return ref.strip()
    return (row or write.locate(repo, ref)).id
