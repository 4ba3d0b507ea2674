"""Applies a removal to entities: deletes its words and evidence from files and event log; the chain stays valid."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from signet_sync.entities import observe, write_ahead
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import Document, DocumentProblem, Section, render, reread
from signet_sync.entities.event_log import chain
from signet_sync.entities.event_log.agent_log import new_ulid
from signet_sync.entities.event_log.events import Event, encode
from signet_sync.entities.repository import Entity, Garden, Seen, folder_of, parsed, path_of
from signet_sync.entities.results import Erased
from signet_sync.entities.write_ahead import Plan, Stamp
from signet_sync.errors import WorkspaceError
from signet_sync.formats.body import utf8
from signet_sync.formats.entity_paths import FILES, File, Place
from signet_sync.storage import files
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrase_search import Sieve

_TRIES = 3
_NAMES = 10  # of folders of one entity; more than one if it was copied


def erase(
    workspace: Workspace,
    agent_id: str,
    *,
    paths: Iterable[str],
    needles: Iterable[bytes],
    tombstone: str,
    now_us: int,
) -> Erased:
    """Removes what refers to these artifacts (paths), or contains one of the needles, from an agent's entities.

    `tombstone` is the path of the removal's tombstone; the workspace's lock is held. A second call changes nothing.
    Raises `WorkspaceError`, `OSError`; calling it again then continues.
    """
    garden = Garden(workspace, agent_id, now_us)
    observe.tend(garden)
    observe.look(garden, None)
    told = _Told([*(utf8(path) for path in paths), *needles])
    gone = _events(garden, told)
    told = told.with_tokens(event.token for event in gone)
    gone = _events(garden, told)
    cleaned = _clean_files(garden, told, gone, tombstone)
    if not gone and not told.in_ledger(garden):
        return Erased(tuple(cleaned), ())
    ids = {event.id for event in gone}
    _record(garden, tombstone, sorted(ids))
    # Events that refer to removed words lose their texts; so does an unreadable line that contains such words.
    lines = chain.erase(
        garden.ledger.lines(),
        lambda entry: entry.id in ids if isinstance(entry, Event) else told.holds(entry),
        tombstone,
    )
    garden.ledger.rewrite(lines)
    garden.forget_told(None)
    write_ahead.mirror(garden)
    # A file that waits for a maintainer may have lost its events; this look reports it.
    observe.look(garden, {event.entity_id for event in gone if event.entity_id is not None}, doubtful=None)
    return Erased(tuple(cleaned), tuple(sorted(ids)))


class _Told:
    """Recognises removed text."""

    def __init__(self, words: Collection[bytes]) -> None:
        self._words = [word for word in dict.fromkeys(words) if word]
        self._sieve = Sieve(self._words)

    def with_tokens(self, tokens: Iterable[str]) -> _Told:
        """Recognises the tokens of events that refer to removed text too: evidence names them."""
        return _Told([*self._words, *(utf8(token) for token in tokens)])

    def holds(self, text: str) -> bool:
        """Checks whether a text contains removed text."""
        return bool(self._sieve.caught(text.encode("utf-8", "surrogateescape")))

    def in_ledger(self, garden: Garden) -> bool:
        """Checks whether an unreadable line of the event log contains removed text."""
        readable = {encode(entry) for entry in garden.ledger.entries()}
        return any(line.text not in readable and self.holds(line.text) for line in garden.ledger.lines())


def _events(garden: Garden, told: _Told) -> list[Event]:
    """Finds events that contain removed text or refer to it. An event's own token does not count."""
    found = []
    for entry in garden.ledger.entries():
        if isinstance(entry, Event) and entry.erased is None:
            # An erase event's payload names the tombstone, and thereby the token.
            said = {key: value for key, value in (entry.payload or {}).items() if key != "tombstone"}
            bare = replace(entry, id=_NOBODY, token="", payload=said)
            if told.holds(encode(bare)):
                found.append(entry)
    return found


_NOBODY = "0" * 26


def _clean_files(garden: Garden, told: _Told, gone: list[Event], tombstone: str) -> list[str]:
    """Rewrites every file without removed text, and restates in an event every file whose events lose texts."""
    cleaned = []
    wanted = {(event.entity_id, event.file) for event in gone if event.file_after is not None}
    named = {event.entity_id for event in gone if "slug" in (event.payload or {})}
    for entity_id, places in garden.places().items():
        known = set(places)
        for place in places:
            for file in FILES:
                again = (entity_id, file) in wanted or (file == "profile" and entity_id in named)
                where = _standing(garden, place, known)._replace(file=file)
                path = _clean_file(garden, where, told, again=again, tombstone=tombstone)
                if path is not None:
                    cleaned.append(path)
            cleaned += _clean_name(garden, _standing(garden, place, known), told)
            known.add(_standing(garden, place, known))
    return cleaned


def _standing(garden: Garden, place: Place, known: Collection[Place]) -> Place:
    """Returns where the folder is now: a renamed profile takes the notes along. Copies of the folder do not count."""
    now = garden.places([place.id]).get(place.id, [])
    return place if place in now else next((one for one in now if one not in known), place)


def _clean_name(garden: Garden, place: Place, told: _Told) -> list[str]:
    """Gives a folder whose name contains removed text the name of its kind, even if its files are drift."""
    if not told.holds(place.slug):
        return []
    for slug in (place.kind, *(f"{place.kind}-{number}" for number in range(2, _NAMES))):
        if write_ahead.move(garden, place, slug) == slug:
            return [path_of(place._replace(slug=slug))]
    raise WorkspaceError("its folder cannot be called otherwise", path=folder_of(place), hint="move its copies away")


def _clean_file(garden: Garden, place: Place, told: _Told, *, again: bool, tombstone: str) -> str | None:
    for _ in range(_TRIES):
        seen = garden.seen(place)
        document = parsed(seen.text) if seen.text is not None else None
        if not isinstance(document, Document) or _waits(garden, place):
            return _clean_bytes(garden, seen, told)
        after = _without(document, place, told)
        if after is None:
            return _clean_bytes(garden, seen, told)
        if after == document and not again:
            return None
        slug = f"{place.kind}" if told.holds(place.slug) else place.slug
        plan = Plan(op="erase", file=place.file, after=after, extra={"tombstone": tombstone}, slug=slug, stated=True)
        documents: dict[File, Document] = {place.file: document}
        others = {place.file: seen}
        if slug != place.slug:
            whole_one = write_ahead.load(garden, place)
            if whole_one is not None:
                documents, others = dict(whole_one.documents), dict(whole_one.seen)
        entity = Entity(place.id, place.kind, place.slug, others, documents)
        try:
            write_ahead.write(garden, entity, plan, Stamp(ulid=new_ulid(garden.now_us), actor="observer"))
        except write_ahead.Raced:
            continue
        return seen.path if after != document else None
    raise WorkspaceError("it is being saved again and again", path=folder_of(place), hint="it is tried again by itself")


def _waits(garden: Garden, place: Place) -> bool:
    """Checks whether a file is drift: it must not be recorded as the content that its events describe."""
    queue = entities_store.drift(garden.workspace.database, garden.agent_id)
    return any(one.path == path_of(place) for one in queue)


def _clean_bytes(garden: Garden, seen: Seen, told: _Told) -> str | None:
    """Deletes lines with removed text from a file that is no entity file or waits for a maintainer."""
    if seen.raw is None:
        return None
    kept = [line for line in seen.raw.split(b"\n") if not told.holds(line.decode("utf-8", "surrogateescape"))]
    data = b"\n".join(kept)
    if data == seen.raw:
        return None
    if files.replace(garden.workspace.root, seen.path, data, seen.raw).displaced is not None:
        raise WorkspaceError("somebody saved it meanwhile", path=seen.path, hint="it is tried again by itself")
    return seen.path


def _without(document: Document, place: Place, told: _Told) -> Document | None:
    """Returns the file without items, lines and fields that contain removed text; replaces such titles and headings.

    Returns None if no entity file would be left.
    """
    after = document
    if told.holds(after.title):
        after = edits.with_title(after, f"{place.kind.capitalize()} {place.id}")
    fields = {key: None for key, value in after.fields.items() if told.holds(str(value))}
    if fields:
        after = edits.with_fields(after, fields)
    if told.holds(after.lead):
        after = replace(after, lead=f"# {after.title}\n\n")
    # By position: two sections may have the same name.
    after = replace(after, sections=tuple(_section(section, told) for section in after.sections))
    try:
        after = reread(after)
    except DocumentProblem:
        # Half a fence or comment is left: the bodies that changed are emptied.
        pairs = zip(document.sections, after.sections, strict=True)
        sections = (new if new.body == old.body else replace(new, body="\n") for old, new in pairs)
        after = replace(after, sections=tuple(sections))
    text = render(after)
    if told.holds(text):
        text = "\n".join(line for line in text.split("\n") if not told.holds(line))
    found = parsed(text)
    return found if isinstance(found, Document) else None


def _section(section: Section, told: _Told) -> Section:
    if told.holds(section.opening):
        # The anchor comes from the schema; the heading is a person's text.
        name = (section.anchor or "removed").replace("-", " ").capitalize()
        anchor = f"<!-- section {section.anchor} -->\n" if section.anchor else ""
        section = replace(section, heading=name, opening=f"## {name}\n{anchor}")
    return replace(section, body=_body(section.body, told.holds)) if told.holds(section.body) else section


def _body(body: str, holds: Callable[[str], bool]) -> str:
    """Returns a section's body without items and lines that contain removed text."""
    kept = "\n".join(line for line in body.split("\n") if not holds(line))
    # If a phrase remains that runs over several lines, the whole body is deleted.
    return "\n" if holds(kept) else kept


def _record(garden: Garden, tombstone: str, ids: list[str]) -> None:
    """Records which events lose their texts, and why; the entry is hashed, so an erasure cannot be forged."""
    garden.record("erase", "observer", {"tombstone": tombstone, "events": ids})
