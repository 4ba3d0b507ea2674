"""Applies a removal to entities: deletes its words and evidence from files and event log; the chain stays valid."""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from signet_sync.entities import document as documents
from signet_sync.entities import observe, replay, sections
from signet_sync.entities.document import DocumentProblem, DocumentSection, EntityDocument, document_of, render, reread
from signet_sync.entities.events import Event, canonical
from signet_sync.entities.repository import EntityRepository, FileContent
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.body import text_sha256, utf8
from signet_sync.formats.entity_paths import FILES, EntityPlace
from signet_sync.storage import writing
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrase_search import Sieve
from signet_sync.text.phrases import count_noun
from signet_sync.text.sentences import escape

_TRIES = 3
# Checks whether a text contains removed text.
_Holds = Callable[[str], bool]


class TakenLine(NamedTuple):
    """A line of an entity file that a removal takes: the file, the heading of its section ("": above all), its text."""

    path: str
    section: str
    text: str


def preview(workspace: Workspace, agent_id: str, *, paths: Iterable[str], needles: Iterable[bytes]) -> list[TakenLine]:
    """Returns what `erase` would take, and changes nothing."""
    repo = EntityRepository(workspace, agent_id, 0)
    holds, _ = _find_removed(repo, paths, needles)
    return [line for place in _places(repo) for line in _find_lines(repo.read(place), holds)]


def erase(
    workspace: Workspace, agent_id: str, *, paths: Iterable[str], needles: Iterable[bytes], tombstone: str, now_us: int
) -> None:
    """Removes what refers to these artifacts (paths), or contains one of the needles.

    `tombstone` is the path of the removal's tombstone; the workspace's lock is held. First each file is written without
    the words, and stated whole in an event; then the events lose their texts. A second call changes nothing, and
    finishes one that was interrupted. Raises `WorkspaceError`, `OSError`.
    """
    repo = EntityRepository(workspace, agent_id, now_us)
    paths, needles = [*paths], [*needles]
    observe.look(repo, None)
    holds, _ = _find_removed(repo, paths, needles)
    for place in (place for places in repo.places().values() for place in places if holds(place.slug)):
        _clean_name(repo, place)
        observe.examine(repo, {place.id}, thorough=True)
    holds, gone = _find_removed(repo, paths, needles)
    touched = {(event.entity_id, event.file) for event in gone}
    for place in _places(repo):
        again = (place.id, place.file) in touched or (place.file == "profile" and (place.id, None) in touched)
        _clean_file(repo, place, holds, again=again)
    ids = {event.id for event in gone}
    if ids or any(holds(line.text) for line in repo.log.list_unreadable()):
        # It says which events lose their texts, and why; the entry is hashed, so an erasure cannot be forged.
        facts = {"tombstone": tombstone, "events": sorted(ids)}
        repo.append(repo.event("erase", "observer", facts=facts))
        repo.log.erase(lambda one: one.id in ids if isinstance(one, Event) else holds(one), tombstone)
        repo.forget_states()
        with workspace.database.transaction(durable=True):
            repo.remember_log_end()
        # A file that waits for a maintainer may have lost its events; this look reports it.
        observe.examine(repo, {event.entity_id for event in gone if event.entity_id}, thorough=True)


def _find_removed(repo: EntityRepository, paths: Iterable[str], needles: Iterable[bytes]) -> tuple[_Holds, list[Event]]:
    """Returns what recognises removed text, and the events that contain it or refer to it."""

    def find(words: list[bytes]) -> tuple[_Holds, list[Event]]:
        sieve = Sieve(words)

        def holds(text: str) -> bool:
            return bool(sieve.find(text.encode("utf-8", "surrogateescape")))

        return holds, [one for one in repo.log.events() if one.text is not None and holds(canonical(one.text))]

    wanted = list(dict.fromkeys(filter(None, [*map(utf8, paths), *needles])))
    _, gone = find(wanted)
    # Evidence names the tokens of events that refer to removed text.
    return find([*wanted, *(utf8(event.token) for event in gone)])


def _places(repo: EntityRepository) -> list[EntityPlace]:
    return [place._replace(file=file) for places in repo.places().values() for place in places for file in FILES]


def _find_lines(seen: FileContent, holds: _Holds) -> list[TakenLine]:
    """Returns the lines of a file with removed text; no line may be shown whose words run into the next."""
    document = seen.document
    if document is None:
        parts = [("", (seen.raw or b"").decode("utf-8", "replace"))]
    else:
        parts = [("", document.head + document.lead)]
        parts += [(one.heading, one.opening + one.body) for one in document.sections]
    lines = ((heading, line) for heading, text in parts for line in text.split("\n"))
    return [TakenLine(seen.place.path, heading, line) for heading, line in lines if holds(line)]


def _clean_file(repo: EntityRepository, place: EntityPlace, holds: _Holds, *, again: bool) -> None:
    """Rewrites a file without removed text; states it in an event if it changes, or (`again`) its events lose texts."""
    for _ in range(_TRIES):
        seen = repo.read(place)
        document, taken = seen.document, _find_lines(seen, holds)
        # A copied folder waits as a whole.
        waits = any(
            one.path == place.path or (one.code == "id-twice" and one.path.rpartition("/")[0] == place.folder)
            for one in repo.drift()
        )
        after = None if document is None or waits else _clean_document(document, place, holds, taken)
        if after is None:
            # It is no entity file, or must not be recorded as what its events describe.
            lines = (seen.raw or b"").split(b"\n")
            kept = b"\n".join(line for line in lines if not holds(line.decode("utf-8", "surrogateescape")))
            if seen.raw is None or kept == seen.raw:
                return
            if writing.replace(repo.workspace.root, seen.place.path, kept, seen.raw).displaced is None:
                return
            continue
        if after == document and not again:
            return
        if after != document:
            names = " and ".join(dict.fromkeys(line.section for line in taken if line.section))
            line = f"Removed with a session: {count_noun(len(taken), 'line')}" + (f" of {names}" if names else "")
            with suppress(UsageError):  # unless a person has changed the change log's form
                after = sections.finish(repo, after, place.file, [line])
        text = render(after)
        said = {replay.WHOLE: text}
        of = {"entity_id": place.id, "file": place.file, "found": seen.text_hash, "left": text_sha256(text)}
        with suppress(observe.FileChanged):
            observe.record(repo, [(repo.event("restate", "observer", text=said, **of), seen, after)])
            return
    raise WorkspaceError("it is being saved again and again", path=place.folder, hint="it is tried again by itself")


def _clean_name(repo: EntityRepository, place: EntityPlace) -> None:
    """Gives a folder whose name contains removed text the name of its kind, even if its files are drift."""
    for slug in (place.kind, *(f"{place.kind}-{number}" for number in range(2, 10))):
        name = place._replace(slug=slug).folder.rpartition("/")[2]
        with suppress(FileNotFoundError):  # it is gone, which is as good
            if not writing.move_away(repo.workspace.root, place.folder, name):
                continue
        return
    raise WorkspaceError("its folder cannot be called otherwise", path=place.folder, hint="move its copies away")


def _clean_document(
    document: EntityDocument, place: EntityPlace, holds: _Holds, taken: Collection[TakenLine]
) -> EntityDocument | None:
    """Returns the file without items, lines and fields that contain removed text; replaces such titles and headings.

    Returns None if no entity file would be left.
    """
    after = document
    if not taken and not holds(render(document)):
        return after
    if holds(after.title):
        after = documents.with_title(after, f"{place.kind.capitalize()} {place.id}")
    fields = {key: None for key, value in after.fields.items() if holds(str(value))}
    if fields:
        after = documents.with_fields(after, fields)
    if holds(after.lead):
        after = replace(after, lead=f"# {escape(after.title)}\n\n")
    # By position: two sections may have the same name.
    after = replace(after, sections=tuple(_clean_section(section, holds) for section in after.sections))
    try:
        after = reread(after)
    except DocumentProblem:
        # Half a fence or comment is left: the bodies that changed are emptied.
        pairs = zip(document.sections, after.sections, strict=True)
        kept = (new if new.body == old.body else replace(new, body="\n") for old, new in pairs)
        after = replace(after, sections=tuple(kept))
    text = render(after)
    if holds(text):
        text = "\n".join(line for line in text.split("\n") if not holds(line))
    return document_of(text)


def _clean_section(section: DocumentSection, holds: _Holds) -> DocumentSection:
    if holds(section.opening):
        # The anchor comes from the schema; the heading is a person's text.
        name = (section.anchor or "removed").replace("-", " ").capitalize()
        anchor = f"<!-- section {section.anchor} -->\n" if section.anchor else ""
        section = replace(section, heading=name, opening=f"## {name}\n{anchor}")
    if not holds(section.body):
        return section
    kept = "\n".join(line for line in section.body.split("\n") if not holds(line))
    # If a phrase remains that runs over several lines, the whole body is deleted.
    return replace(section, body="\n" if holds(kept) else kept)
