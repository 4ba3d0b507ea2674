"""Shows, lists and checks an agent's entities and their event log."""

from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from copy import copy
from typing import Any, NamedTuple

from signet_sync.entities import observe, replay, stage
from signet_sync.entities import store as entities_store
from signet_sync.entities.agent_text import Rationale, read_rationale
from signet_sync.entities.document import ListItem, body_sha, items, text_of
from signet_sync.entities.events import Event, tokens_in, verify
from signet_sync.entities.repository import EntityRepository, words
from signet_sync.entities.sections import lint
from signet_sync.entities.store import EntityFile
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats import frontmatter
from signet_sync.formats.entity_paths import FILES, EntityPlace, Finding, Kind, kind_of, parse_path, shapes
from signet_sync.formats.timestamps import day_of
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import IndexPlace, open_index
from signet_sync.sync.workspace import Workspace

# ── proposals ──


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
    answers = [one for op in ("approve", "reject") for one in repo.log.events(f'"op":"{op}"')] if made else []
    answered, found = {one.fact("proposal") for one in answers}, []
    for event in made:
        op, text = event.text_part("op"), event.text_part("proposed")
        if event.op != "propose" or event.id in answered or entity_id not in (None, event.entity_id):
            continue
        if isinstance(op, str) and isinstance(text, str) and event.entity_id is not None and event.section is not None:
            section = f"notes/{event.section}" if event.file == "notes" else event.section
            rests = event.text_part("rationale"), event.text_part("source")
            found.append(Proposal(event.id, event.entity_id, section, op, text, event.at, *rests))
    return found


def find_proposal(repo: EntityRepository, name: str) -> Proposal:
    """Returns the proposal with this id, beginning of an id, or `ev:…`. Raises `UsageError` (`unknown-proposal`)."""
    wanted = name.strip().rpartition("-")[2].upper()
    known = list_proposals(repo)
    found = [one for one in known if one.id == wanted]
    if not found and len(wanted) >= entities_store.SHORTEST:
        found = [one for one in known if one.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    message = f"{len(found) or 'no'} open proposal{'s' if len(found) > 1 else ''} called {name.strip()[:60]!r}"
    raise UsageError(message, hint="signet-sync entity show lists them", code="unknown-proposal")


# ── without a lock: nothing is settled, recorded or written ──


class SectionView(NamedTuple):
    """A section for display; `items` is None unless it is a list. `name` is its name in operations.

    `sha256` is what an edit may `expect`; `prune` accepts the key or number of an item.
    """

    name: str
    anchor: str | None
    heading: str
    text: str
    items: tuple[ListItem, ...] | None
    sha256: str = ""

    def document(self) -> dict[str, Any]:
        """Returns a section's JSON document: a list has `items`, any other section `text`."""
        document = self._asdict()
        document.pop("items" if self.items is None else "text")
        listed = [{"number": one.number, "key": one.key, "text": one.text} for one in self.items or ()]
        return document if self.items is None else document | {"items": listed}


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


@contextmanager
def open_read_only(place: IndexPlace, agent_id: str, now_us: int) -> Iterator[EntityRepository]:
    """Opens an agent's entities over a read-only index.

    Raises as `sync.read_only.open_index`, and `UsageError` for an invalid agent name.
    """
    with open_index(place) as database:
        workspace = Workspace(place.root, place.settings(), place.state(), database, touch_nothing=True)
        yield EntityRepository(workspace, agent_id, now_us)


def list_entities(repo: EntityRepository, kind: Kind | None = None) -> list[EntityFile]:
    """Lists the profiles in the index by kind and title."""
    rows = entities_store.entities(repo.workspace.database, repo.agent_id)
    return [row for row in rows if kind in (None, row.kind)]


def view(repo: EntityRepository, row: EntityFile) -> EntityView:
    """Returns an entity with its sections, read from its files."""
    sections, fields, place = list[SectionView](), dict[str, Any](), parse_path(row.path)
    if place is None:
        raise WorkspaceError("the index contains a path that is not that of an entity", path=row.path)
    for file in FILES:
        seen = repo.read(place._replace(file=file))
        document = seen.document
        if document is None:
            sections += [SectionView("", None, "", seen.text, None)] if seen.text is not None else []
            continue
        if file == "profile":
            fields = dict(document.fields)
        forms = {shape.anchor: shape.form for shape in shapes(row.kind, file)}
        for section in document.sections:
            name = f"notes/{section.name}" if file == "notes" else section.name
            listed = items(section) if forms.get(section.anchor or "", "narrative") != "narrative" else None
            of = name, section.anchor, section.heading, text_of(section)
            sections.append(SectionView(*of, listed, body_sha(section)))
    named = row.id, row.agent_id, row.kind, row.title, row.path, row.status, row.type, row.participants
    return EntityView(
        *named,
        sections=tuple(sections),
        pins=words(fields.get("pins")),
        locks=words(fields.get("locks")),
        proposals=tuple(list_proposals(repo, row.id)),
        drifted=any(one.id == row.id for one in repo.drift()),
    )


def describe_event(event: Event) -> str:
    """Describes an event: `set role`, `append item highlights`, `set notes/inbox`, `create notes`."""
    what = "/".join(filter(None, ["notes" if event.file == "notes" else "", event.section or ""]))
    kept = [f"({word} {' and '.join(event.fact(word))})" for word in ("kept", "over") if event.fact(word)]
    return " ".join(filter(None, [event.op.replace("_", " "), what, *kept]))


def texts_of(event: Event) -> dict[str, tuple[str, str]]:
    """Returns what an event changed: by section, the text before and after; the change log is left out."""
    found = replay.section_texts(event)
    if isinstance(event.text_part("proposed"), str):
        found = {event.section or "": ("", event.text_part("proposed"))}
    return {name: texts for name, texts in found.items() if name not in (replay.LOG, replay.LEAD)}


class EventSource(NamedTuple):
    """What an event token refers to: the event, and the artifact (path, line from 1) that supports it, if any."""

    event: Event
    entity_path: str
    path: str | None
    line: int | None


def log(repo: EntityRepository, ref: str | None = None) -> list[Event]:
    """Lists the events of an entity (None: of all), newest first. Raises `UsageError` (`unknown-entity`)."""
    return (repo.log.events() if ref is None else repo.log.events_of(identify(repo, ref)))[::-1]


def source(repo: EntityRepository, token: str) -> EventSource:
    """Returns what an `ev:…` refers to. Raises `UsageError` (`token-invalid`, `unknown-event`)."""
    read = tokens_in(token.strip())
    if len(read) != 1:
        message = f"{token.strip()[:60]!r} is not the name of an event"
        raise UsageError(message, hint="ev:20260328T223406Z-…", code="token-invalid")
    event = repo.log.event(read[0])
    if event is None:
        message = f"agent {repo.agent_id} has no event {token.strip()}"
        raise UsageError(message, hint="--agent chooses another agent", code="unknown-event")
    row = repo.find(event.entity_id) if event.entity_id is not None else None
    path, _, line = next(iter(event.text_part("evidence") or []), "").rpartition("#")
    number = int(line) if line.isascii() and line.isdigit() and len(line) < 10 else None
    return EventSource(event, row.path if row is not None else "", path or None, number)


def identify(repo: EntityRepository, ref: str) -> str:
    """Returns the id that a name refers to; a missing entity needs its full id. Raises `UsageError`."""
    name = ref.strip()
    return name if kind_of(name) is not None and repo.log.events_of(name) else repo.require(ref).id


# ── findings ──


def findings(workspace: Workspace, agent_id: str, ref: str | None = None, *, now_us: int) -> list[Finding]:
    """Checks the event log, and the files of an entity (None: of all) against schema and events. Raises as `log`."""
    with state_dir.workspace_lock(workspace.state):
        repo = EntityRepository(workspace, agent_id, now_us)
        found = verify_log(repo)
        ids = None if ref is None else {identify(repo, ref)}
        observe.look(repo, ids)
        found += _check_files(repo, ids)
        known = {(one.id and one.path, one.code) for one in found}
        asked = (one for one in repo.drift() if ids is None or one.id in (*ids, observe.LEDGER))
        return found + [one for one in asked if (one.id and one.path, one.code) not in known]


def check(workspace: Workspace, database: Database | None, now_us: int) -> list[Finding]:
    """Checks the entities of all agents for `check`; writes nothing.

    Unreadable files are `invalid`, changed event logs a `violation`; untidy files are noted.
    """
    found: list[Finding] = []
    with closing(Database(":memory:")) as empty:
        workspace = copy(workspace)
        workspace.database = database or empty
        for owner in stage.agents(workspace.root):
            try:
                repo = EntityRepository(workspace, owner, now_us)
                for one in verify_log(repo):
                    # A torn line is repaired by the next write.
                    verdict, path = "" if one.code == "torn" else "violation", one.path or stage.entities_folder(owner)
                    found.append(one._replace(code=f"ledger-{one.code}", verdict=verdict, path=path))
                for one in _check_files(repo):
                    told = one.message if one.verdict or not one.hint else f"{one.message}: {one.hint}"
                    found.append(one._replace(message=told))
            except (OSError, WorkspaceError) as error:
                message, hint = f"entities cannot be read: {error}", "check its permissions; no folder may be a symlink"
                found.append(Finding("unreadable", message, hint, stage.entities_folder(owner), verdict="invalid"))
    return found


def verify_log(repo: EntityRepository) -> list[Finding]:
    """Lists the defects of the event log; without an index a missing end cannot be detected."""
    _, last_id = entities_store.log_end(repo.workspace.database, repo.agent_id)
    return verify(repo.log.lines(), known_last=last_id, agent_id=repo.agent_id)


def _check_files(repo: EntityRepository, ids: Collection[str] | None = None) -> list[Finding]:
    """Lists what is wrong with the files of some entities (None: of all)."""
    places = [place for each in repo.places(ids).values() for place in each]
    return [one for place in places for file in FILES for one in _check_file(repo, place._replace(file=file))]


def _check_file(repo: EntityRepository, place: EntityPlace) -> list[Finding]:
    """Lists deviations of a file from the schema; a given rationale excuses a long section until its day."""
    seen, state = repo.read(place), repo.state(place.id).get(place.file)
    problem, found, given = seen.problem, list[Finding](), dict[str | None, Rationale]()
    if seen.is_gone and place.file == "notes":
        return []
    if seen.is_gone and (state is None or state.is_new):
        return [Finding("unfinished", "its creation was interrupted, and nothing of it stands yet", "", place.path)]
    if seen.document is None:
        assert problem is not None
        line, hint = 1, "restore it from a copy or from the history"
        if seen.text is not None:
            line = max(problem.line, frontmatter.line_of(seen.raw or b"", problem.message))
            hint = problem.hint
        return [Finding(problem.code, problem.message, hint, seen.place.path, place.id, line=line, verdict="invalid")]
    for event in repo.log.events_of(place.id):
        if event.left is not None:
            with suppress(UsageError):
                given[event.section] = read_rationale(event.text_part("rationale") or "")
    for one in lint(seen.document, shapes(place.kind, place.file)):
        why = given.get(one.anchor) if one.code == "too-long" else None
        if why is None:
            found.append(one)
        elif why.is_over(day_of(repo.now_us)):
            message = f"{one.message}, which was agreed until {why.until}"
            found.append(one._replace(code="rationale-over", message=message, hint=f"plan: {why.plan}"))
    return [one._replace(id=place.id, path=seen.place.path) for one in found]
