"""Reads the files that one agent may read: its MEMORY.md, its artifacts, its entity files."""

from typing import NamedTuple

from signet_sync.entities import store as entities_store
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import parse_path
from signet_sync.formats.paths import display, head_page
from signet_sync.formats.snapshot import Found
from signet_sync.pages.context import beginning
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.storage.safe_paths import split_checked
from signet_sync.sync.read_only import IndexPlace, reading
from signet_sync.sync.store import artifacts, sessions
from signet_sync.text.sanitizer import sanitize_transcript_v2

_SIZE_LIMIT = 64 * 1024 * 1024  # bytes
_PER_CHARACTER = 5  # bytes of UTF-8 per character, at most, with a margin


class ReadableText(NamedTuple):
    """A file's text, sanitized; without `whole` only its beginning."""

    path: str
    text: str
    whole: bool


def read(place: IndexPlace, agent_id: str, path: str, limit: int) -> ReadableText:
    """Returns a file of an agent, at most `limit` characters. The index decides who owns it; no link is followed.

    Raises `UsageError` (`not-found`, `not-as-sealed`), `WorkspaceError`, `DatabaseError`.
    """
    split_checked(path)
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


def _cut(text: str, limit: int) -> str:
    end = text.rfind("\n", 0, limit)
    return text[: end if end > 0 else limit]


def _not_found(path: str) -> UsageError:
    return UsageError(
        "this agent has no such file", path=display(path), hint="list what there is, or search for it", code="not-found"
    )
