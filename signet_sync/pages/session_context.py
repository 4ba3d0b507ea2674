"""What a session of an agent is told at its start, read from the workspace as it is."""

from __future__ import annotations

from signet_sync.formats.paths import head_page
from signet_sync.formats.snapshot import Found
from signet_sync.pages import context
from signet_sync.pages.context import IDENTITIES, LIMIT, Size
from signet_sync.storage import files
from signet_sync.text.sanitizer import sanitize_transcript_v2

SIZE_LIMIT = 4 * 1024 * 1024  # bytes; what is larger is no page to be read at every start
# Bytes that fill a limit, whatever they hold: four make a character of UTF-8 at most, and a token rarely has sixteen.
_PER_CHARACTER, _PER_TOKEN = 5, 16
_CUT = "\n[No more of this file was read.]"


class Composed:
    """The text, the paths (relative to the workspace) that it was made of, and what could not be read and why.

    `ids` are those of what was recalled for it; `crowded` says that there was something, and none of it fitted.
    """

    def __init__(
        self,
        text: str,
        sources: list[str],
        troubles: list[str],
        ids: list[str] | None = None,
        *,
        crowded: bool = False,
    ) -> None:
        self.text = text
        self.sources = sources
        self.troubles = troubles
        self.ids = ids or []
        self.crowded = crowded


def compose(root: str, agent_id: str, *, shared: bool = False, limit: int = LIMIT, size: Size = len) -> Composed:
    """The context of an agent; with `shared` without its MEMORY.md, for places that others read too.

    Nothing is followed out of the workspace: a symlink among these files is trouble, not text.
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
    return Composed(text, sources, troubles, crowded=bool(sources) and not text)


def beginning(raw: bytes, enough: int) -> str:
    """The text, or so much of it as can be shown, in whole lines as far as there are any: no secret loses its end."""
    end = len(raw)
    if end > enough:
        end = max(raw.rfind(b"\n", 0, enough), 0) or enough
    return raw[:end].decode("utf-8-sig", "replace") + (_CUT if end < len(raw) else "")
