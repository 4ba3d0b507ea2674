"""Reads the context for a session's start from the workspace's files."""

from __future__ import annotations

from dataclasses import dataclass, field

from signet_sync.formats.paths import head_page
from signet_sync.formats.snapshot import Found
from signet_sync.pages import context
from signet_sync.pages.context import IDENTITIES, LIMIT, Size
from signet_sync.storage import files
from signet_sync.text.sanitizer import sanitize_transcript_v2

SIZE_LIMIT = 4 * 1024 * 1024  # bytes; a larger file is too big to be read at every start
# Bytes that fill a limit in any text: a character has at most four in UTF-8, and a token rarely sixteen.
_PER_CHARACTER, _PER_TOKEN = 5, 16
_CUT = "\n[No more of this file was read.]"


@dataclass(slots=True)
class SessionContext:
    """The text, the paths (relative to the workspace) that it was made of, and what could not be read and why.

    `ids` are those of the recalled hits; `crowded` means that there were hits, but none fitted.
    """

    text: str
    sources: list[str]
    troubles: list[str]
    ids: list[str] = field(default_factory=list)
    crowded: bool = False


def compose(root: str, agent_id: str, *, shared: bool = False, limit: int = LIMIT, size: Size = len) -> SessionContext:
    """Returns the context of an agent; with `shared` without its MEMORY.md, for places that others read too.

    No symlink is followed: one among these files is reported as a problem.
    """
    sources: list[str] = []
    troubles: list[str] = []

    def read(path: str) -> str:
        found = files.read(root, path, SIZE_LIMIT)
        if not isinstance(found, Found):
            if found.code != "gone":
                troubles.append(f"{path}: {found.message}")
            return ""
        text = sanitize_transcript_v2(beginning(found.raw, limit * (_PER_CHARACTER if size is len else _PER_TOKEN)))
        if text.strip():
            sources.append(path)
        return text

    page = head_page(agent_id)
    memory = "" if shared else read(page)
    identities = [(path, read(path)) for path in IDENTITIES]
    text = context.compose(memory, identities, limit, memory_path=page, size=size)
    return SessionContext(text, sources, troubles, crowded=bool(sources) and not text)


def opening(root: str, agent_id: str, *, shared: bool) -> str:
    """Returns the context between its markers, as a harness gets it at a session's start; "" if it is empty."""
    return context.wrapped(compose(root, agent_id, shared=shared, limit=context.room(root)).text, root)


def beginning(raw: bytes, enough: int) -> str:
    """Returns the text, or its beginning in whole lines if there are any, so that no secret is cut in two."""
    end = len(raw)
    if end > enough:
        end = max(raw.rfind(b"\n", 0, enough), 0) or enough
    return raw[:end].decode("utf-8-sig", "replace") + (_CUT if end < len(raw) else "")
