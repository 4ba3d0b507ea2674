"""Lists and reads the files that one agent may read: its MEMORY.md, its artifacts, its entity files."""

from __future__ import annotations

from typing import NamedTuple

from signet_sync.entities import store as entities_store
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import parse_path
from signet_sync.formats.paths import display, head_page
from signet_sync.formats.snapshot import Found
from signet_sync.pages.session_context import beginning
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.storage.safe_paths import checked_parts
from signet_sync.sync.read_only import IndexPlace, reading
from signet_sync.sync.store import artifacts, sessions
from signet_sync.text.sanitizer import sanitize_transcript_v2
from signet_sync.text.sentences import flatten

_SIZE_LIMIT = 64 * 1024 * 1024  # bytes
_PER_CHARACTER = 5  # bytes of UTF-8 per character, at most, with a margin
_TITLE = 200  # characters


class ReadableFile(NamedTuple):
    """A file that may be read: `kind` is `page`, `entity` or that of an artifact, `title` says what it contains."""

    path: str
    kind: str
    title: str


class ReadableText(NamedTuple):
    """A file's text, sanitized; without `whole` only its beginning."""

    path: str
    text: str
    whole: bool


def read(place: IndexPlace, agent_id: str, path: str, limit: int) -> ReadableText:
    """Returns a file of an agent, at most `limit` characters. The index decides who owns it; no link is followed.

    Raises `UsageError` (`not-found`, `not-as-sealed`), `WorkspaceError`, `DatabaseError`.
    """
    checked_parts(path)
    with reading(place) as database:
        if not belongs(database, agent_id, path):
            raise _not_found(path)
        verdict = sessions.verdicts(database, [path]).get(path, "indexed")
        if verdict != "indexed":
            raise UsageError(
                f"the file differs from its seal ({verdict})",
                path=path,
                hint="see: signet-sync violations list",
                code="not-as-sealed",
            )
        # Read before the index is closed: a removal from then on is seen by the next request.
        found = files.read(place.root, path, _SIZE_LIMIT)
    if not isinstance(found, Found):
        raise _not_found(path) if found.code == "gone" else UsageError(found.message, path=path, code=found.code)
    enough = limit * _PER_CHARACTER
    text = sanitize_transcript_v2(beginning(found.raw, enough))
    whole = len(found.raw) <= enough and len(text) <= limit
    return ReadableText(path, text if len(text) <= limit else _cut(text, limit), whole)


def belongs(database: Database, agent_id: str, path: str) -> bool:
    """Returns whether a path is a file that the agent may read."""
    if path == head_page(agent_id):
        return True
    if parse_path(path) is not None:
        row = entities_store.file(database, path)
        return row is not None and row.agent_id == agent_id
    artifact = artifacts.rows_by_path(database, [path]).get(path)
    return artifact is not None and artifact.agent_id == agent_id


def listing(place: IndexPlace, agent_id: str, after: str, limit: int) -> list[ReadableFile]:
    """Lists what may be read, at most `limit` files: MEMORY.md, entity files, artifacts with the newest first.

    `after` is the last path of the previous list, "" to begin. Raises `WorkspaceError`, `DatabaseError`.
    """
    found: list[ReadableFile] = []
    with reading(place) as database:
        page = head_page(agent_id)
        if not after and files.status_of(place.root, page) is not None:
            found.append(ReadableFile(page, "page", "what this agent reads first in every session"))
        begun = after if parse_path(after) is None and after != page else ""
        if not begun:
            found += _of_entities(database, agent_id, after if after != page else "")
        room = max(limit - len(found), 0)
        for path, kind, session, sentence in artifacts.newest(database, agent_id, begun, room):
            found.append(ReadableFile(path, kind, flatten(sentence or f"{kind} of {session}", _TITLE)))
    return found[:limit]


def _of_entities(database: Database, agent_id: str, after: str) -> list[ReadableFile]:
    titles = {one.id: one.title for one in entities_store.entities(database, agent_id)}
    found = []
    for path in entities_store.signatures(database, agent_id):
        whose = parse_path(path)
        if whose is not None and path > after:
            found.append(
                ReadableFile(path, "entity", flatten(f"{titles.get(whose.id, whose.id)}: {whose.file}", _TITLE))
            )
    return found


def _cut(text: str, limit: int) -> str:
    end = text.rfind("\n", 0, limit)
    return text[: end if end > 0 else limit]


def _not_found(path: str) -> UsageError:
    return UsageError(
        "this agent has no such file", path=display(path), hint="list what there is, or search for it", code="not-found"
    )
