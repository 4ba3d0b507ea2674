"""Applies a removal to entities: deletes its words and evidence from files and event log; the chain stays valid."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from signet_sync.entities import observe, write_ahead
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import DocumentProblem, DocumentSection, EntityDocument, render, reread
from signet_sync.entities.event_log import chain
from signet_sync.entities.event_log.events import Event, encode
from signet_sync.entities.repository import Entity, EntityRepository, FileContent, document_of, folder_of, path_of
from signet_sync.entities.results import Erasure
from signet_sync.entities.write_ahead import EditPlan
from signet_sync.errors import WorkspaceError
from signet_sync.formats.body import utf8
from signet_sync.formats.entity_paths import FILES, EntityPlace, File
from signet_sync.storage import files
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrase_search import Sieve
from signet_sync.text.sentences import escape

_TRIES = 3
_NAMES = 10  # of folders of one entity; more than one if it was copied


def erase(
    workspace: Workspace, agent_id: str, *, paths: Iterable[str], needles: Iterable[bytes], tombstone: str, now_us: int
) -> Erasure:
    """Removes what refers to these artifacts (paths), or contains one of the needles, from an agent's entities.

    `tombstone` is the path of the removal's tombstone; the workspace's lock is held. A second call changes nothing.
    Raises `WorkspaceError`, `OSError`; calling it again then continues.
    """
    repo = EntityRepository(workspace, agent_id, now_us)
    observe.examine_all(repo)
    removed = _RemovedText([*(utf8(path) for path in paths), *needles])
    gone = _events(repo, removed)
    removed = removed.with_tokens(event.token for event in gone)
    gone = _events(repo, removed)
    cleaned = _clean_files(repo, removed, gone, tombstone)
    if not gone and not removed.in_ledger(repo):
        return Erasure(tuple(cleaned), ())
    ids = {event.id for event in gone}
    # It says which events lose their texts, and why; the entry is hashed, so an erasure cannot be forged.
    repo.record("erase", "observer", {"tombstone": tombstone, "events": sorted(ids)})
    # Events that refer to removed words lose their texts; so does an unreadable line that contains such words.
    lines = chain.erase(
        repo.log.lines(), lambda entry: entry.id in ids if isinstance(entry, Event) else removed.holds(entry), tombstone
    )
    repo.log.rewrite(lines)
    repo.forget_replay(None)
    write_ahead.update_rows(repo)
    # A file that waits for a maintainer may have lost its events; this look reports it.
    observe.examine(repo, {event.entity_id for event in gone if event.entity_id is not None}, doubtful=None)
    return Erasure(tuple(cleaned), tuple(sorted(ids)))


class _RemovedText:
    """Recognises removed text."""

    def __init__(self, words: Collection[bytes]) -> None:
        self._words = [word for word in dict.fromkeys(words) if word]
        self._sieve = Sieve(self._words)

    def with_tokens(self, tokens: Iterable[str]) -> _RemovedText:
        """Recognises the tokens of events that refer to removed text too: evidence names them."""
        return _RemovedText([*self._words, *(utf8(token) for token in tokens)])

    def holds(self, text: str) -> bool:
        """Checks whether a text contains removed text."""
        return bool(self._sieve.caught(text.encode("utf-8", "surrogateescape")))

    def in_ledger(self, repo: EntityRepository) -> bool:
        """Checks whether an unreadable line of the event log contains removed text."""
        readable = {encode(entry) for entry in repo.log.entries()}
        return any(line.text not in readable and self.holds(line.text) for line in repo.log.lines())


def _events(repo: EntityRepository, removed: _RemovedText) -> list[Event]:
    """Finds events that contain removed text or refer to it. An event's own token does not count."""
    found = []
    for entry in repo.log.entries():
        if isinstance(entry, Event) and entry.erased is None:
            # An erase event's payload names the tombstone, and thereby the token.
            said = {key: value for key, value in (entry.payload or {}).items() if key != "tombstone"}
            bare = replace(entry, id=_NOBODY, token="", payload=said)
            if removed.holds(encode(bare)):
                found.append(entry)
    return found


_NOBODY = "0" * 26


def _clean_files(repo: EntityRepository, removed: _RemovedText, gone: list[Event], tombstone: str) -> list[str]:
    """Rewrites every file without removed text, and restates in an event every file whose events lose texts."""
    cleaned = []
    wanted = {(event.entity_id, event.file) for event in gone if event.file_after is not None}
    named = {event.entity_id for event in gone if "slug" in (event.payload or {})}
    for entity_id, places in repo.places().items():
        known = set(places)
        for place in places:
            for file in FILES:
                again = (entity_id, file) in wanted or (file == "profile" and entity_id in named)
                where = _present_place(repo, place, known)._replace(file=file)
                path = _clean_file(repo, where, removed, again=again, tombstone=tombstone)
                if path is not None:
                    cleaned.append(path)
            cleaned += _clean_name(repo, _present_place(repo, place, known), removed)
            cleaned += _clean_base(repo, _present_place(repo, place, known), removed)
            known.add(_present_place(repo, place, known))
    return cleaned


def _present_place(repo: EntityRepository, place: EntityPlace, known: Collection[EntityPlace]) -> EntityPlace:
    """Returns where the folder is now: a renamed profile takes the notes along. Copies of the folder do not count."""
    now = repo.places([place.id]).get(place.id, [])
    return place if place in now else next((one for one in now if one not in known), place)


def _clean_name(repo: EntityRepository, place: EntityPlace, removed: _RemovedText) -> list[str]:
    """Gives a folder whose name contains removed text the name of its kind, even if its files are drift."""
    if not removed.holds(place.slug):
        return []
    for slug in (place.kind, *(f"{place.kind}-{number}" for number in range(2, _NAMES))):
        if write_ahead.move(repo, place, slug) == slug:
            return [path_of(place._replace(slug=slug))]
    raise WorkspaceError("its folder cannot be called otherwise", path=folder_of(place), hint="move its copies away")


def _clean_base(repo: EntityRepository, place: EntityPlace, removed: _RemovedText) -> list[str]:
    """Gives files whose names contain removed text names of their kind."""
    if not removed.holds(place.base):
        return []
    plain = place.kind.capitalize()
    for base in (plain, *(f"{plain} of {number}" for number in range(2, _NAMES))):
        after = write_ahead.name_files(repo, place, base)
        if after is not None:
            observe.examine(repo, {place.id})
            return [path_of(after)]
    raise WorkspaceError("its files cannot be called otherwise", path=folder_of(place), hint="move its copies away")


def _clean_file(
    repo: EntityRepository, place: EntityPlace, removed: _RemovedText, *, again: bool, tombstone: str
) -> str | None:
    for _ in range(_TRIES):
        seen = repo.read(place)
        document = document_of(seen.text)
        if document is None or _waits(repo, place):
            return _clean_bytes(repo, seen, removed)
        after = _without(document, place, removed)
        if after is None:
            return _clean_bytes(repo, seen, removed)
        if after == document and not again:
            return None
        slug = f"{place.kind}" if removed.holds(place.slug) else place.slug
        plan = EditPlan(
            op="erase", file=place.file, after=after, extra={"tombstone": tombstone}, slug=slug, stated=True
        )
        documents: dict[File, EntityDocument] = {place.file: document}
        others = {place.file: seen}
        if slug != place.slug:
            whole_one = write_ahead.load_at(repo, place)
            if whole_one is not None:
                documents, others = dict(whole_one.documents), dict(whole_one.seen)
        entity = Entity(place.id, place.kind, place.slug, others, documents)
        if write_ahead.write_as("observer", repo, entity, plan) is None:
            continue
        return seen.path if after != document else None
    raise WorkspaceError("it is being saved again and again", path=folder_of(place), hint="it is tried again by itself")


def _waits(repo: EntityRepository, place: EntityPlace) -> bool:
    """Checks whether a file is drift: it must not be recorded as the content that its events describe."""
    queue = entities_store.drift(repo.workspace.database, repo.agent_id)
    return any(one.path == path_of(place) for one in queue)


def _clean_bytes(repo: EntityRepository, seen: FileContent, removed: _RemovedText) -> str | None:
    """Deletes lines with removed text from a file that is no entity file or waits for a maintainer."""
    if seen.raw is None:
        return None
    kept = [line for line in seen.raw.split(b"\n") if not removed.holds(line.decode("utf-8", "surrogateescape"))]
    data = b"\n".join(kept)
    if data == seen.raw:
        return None
    if files.replace(repo.workspace.root, seen.path, data, seen.raw).displaced is not None:
        raise WorkspaceError(
            "the file changed while it was being written", path=seen.path, hint="it is tried again by itself"
        )
    return seen.path


def _without(document: EntityDocument, place: EntityPlace, removed: _RemovedText) -> EntityDocument | None:
    """Returns the file without items, lines and fields that contain removed text; replaces such titles and headings.

    Returns None if no entity file would be left.
    """
    after = document
    if removed.holds(after.title):
        after = edits.with_title(after, f"{place.kind.capitalize()} {place.id}")
    fields = {key: None for key, value in after.fields.items() if removed.holds(str(value))}
    if fields:
        after = edits.with_fields(after, fields)
    if removed.holds(after.lead):
        after = replace(after, lead=f"# {escape(after.title)}\n\n")
    # By position: two sections may have the same name.
    after = replace(after, sections=tuple(_section(section, removed) for section in after.sections))
    try:
        after = reread(after)
    except DocumentProblem:
        # Half a fence or comment is left: the bodies that changed are emptied.
        pairs = zip(document.sections, after.sections, strict=True)
        sections = (new if new.body == old.body else replace(new, body="\n") for old, new in pairs)
        after = replace(after, sections=tuple(sections))
    text = render(after)
    if removed.holds(text):
        text = "\n".join(line for line in text.split("\n") if not removed.holds(line))
    return document_of(text)


def _section(section: DocumentSection, removed: _RemovedText) -> DocumentSection:
    if removed.holds(section.opening):
        # The anchor comes from the schema; the heading is a person's text.
        name = (section.anchor or "removed").replace("-", " ").capitalize()
        anchor = f"<!-- section {section.anchor} -->\n" if section.anchor else ""
        section = replace(section, heading=name, opening=f"## {name}\n{anchor}")
    return replace(section, body=_body(section.body, removed.holds)) if removed.holds(section.body) else section


def _body(body: str, holds: Callable[[str], bool]) -> str:
    """Returns a section's body without items and lines that contain removed text."""
    kept = "\n".join(line for line in body.split("\n") if not holds(line))
    # If a phrase remains that runs over several lines, the whole body is deleted.
    return "\n" if holds(kept) else kept
