"""Composes the context for a session's start: what memory holds of its project, and the workspace's identity files.

Its project is the recorded one at its path: the same repository, the path itself, or a folder above it.
"""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from signet_sync.formats.paths import file_of, head_page, normalize_path
from signet_sync.formats.snapshot import Found
from signet_sync.host.repository import holds_home, real_path, resolve
from signet_sync.pages.context import IDENTITIES, LIMIT, cost, files_text
from signet_sync.storage import files
from signet_sync.text.sanitizer import sanitize_transcript_v2

if TYPE_CHECKING:
    from signet_sync.pages.board import Size
    from signet_sync.pages.project_context import ContextText


def name_project(
    path: str | None, origin_of: Callable[[str], str | None] = lambda _: None
) -> tuple[str, Callable[[str | None], bool]]:
    """Returns what names the project at a path ("" without one), and whether a recorded project belongs to it.

    `origin_of` returns the origin that sessions recorded of a root: a clone of a local repository names only that. The
    path may be gone, or a file. The home folder and those above it, where many projects are, belong to none of
    them.
    """
    if not path or not os.path.isabs(path):
        return "", lambda _: False
    at = os.path.normpath(path)
    real = real_path(at)
    found = resolve(at) or resolve(os.path.dirname(at))
    at, real, root = normalize_path(at), normalize_path(real), normalize_path(found.root) if found is not None else ""
    origin = None if found is None else found.origin or origin_of(found.root)

    def belongs(project: str | None) -> bool:
        if found is not None:
            return bool(project) and (project in (origin, root) or _is_below(str(project), root))
        other = os.path.normpath(project) if project else ""
        return other in (at, real) or (any(_is_below(one, other) for one in (at, real)) and not holds_home(other))

    return (origin or root) if found is not None else at, belongs


def _is_below(path: str, folder: str) -> bool:
    return bool(folder) and path.startswith(folder.rstrip(os.sep) + os.sep)


SIZE_LIMIT = 4 * 1024 * 1024  # bytes; a larger file is too big to be read at every start
# Bytes that fill a limit in any text: a character has at most four in UTF-8, and a token rarely sixteen.
_PER_CHARACTER, _PER_TOKEN = 5, 16
_CUT = "\n[No more of this file was read.]"


class SessionContext(NamedTuple):
    """The text, the paths (relative to the workspace) that it was made of, and what could not be read and why.

    `ids` are those of the recalled hits; `crowded` means that there were hits, but none fitted. `lines` are what was
    injected: the text of each line with its id, and whole files by their text with "" as id; `left_out` are texts of
    lines without room.
    """

    text: str
    sources: Sequence[str]
    troubles: Sequence[str]
    ids: Sequence[str] = ()
    crowded: bool = False
    lines: Sequence[tuple[str, str]] = ()
    left_out: Sequence[str] = ()


# Makes the text on the project within a limit, measured by a size.
Memory = Callable[[int, "Size"], "ContextText"]


def compose(
    root: str,
    agent_id: str,
    *,
    shared: bool = False,
    limit: int = LIMIT,
    size: "Size" = len,
    memory: Memory | None = None,
    known: Callable[[str], bool] = lambda _: False,
) -> SessionContext:
    """Returns the context of an agent; with `shared` the identity files only, for places that others read too.

    Without `memory`, which is made of rows, it begins with the agent's MEMORY.md; the identity files get what is left.
    `known` tells of a file's text that the session has it already. No symlink is followed: one among these files is
    reported as a problem.
    """
    sources: list[str] = []
    troubles: list[str] = []
    lines: list[tuple[str, str]] = []

    def read(path: str) -> tuple[str, str]:
        found = files.read(root, path, SIZE_LIMIT)
        if not isinstance(found, Found):
            if found.code != "gone":
                troubles.append(f"{path}: {found.message}")
            return path, ""
        text = sanitize_transcript_v2(beginning(found.raw, limit * (_PER_CHARACTER if size is len else _PER_TOKEN)))
        if not text.strip() or known(text):
            return path, ""
        sources.append(path)
        lines.append((text, ""))
        return path, text

    pages = [head_page(agent_id)] if not shared and memory is None else []
    texts = [read(path) for path in (*pages, *IDENTITIES)]
    if shared or memory is None:
        text = files_text(texts, limit, size)
        return SessionContext(text, sources, troubles, crowded=bool(sources) and not text, lines=lines)
    made = memory(limit, size)
    left = limit - (cost(made.text.split("\n"), size) + 1 if made.text else 0)
    text = "\n\n".join(filter(None, [made.text, files_text(texts, left, size)]))
    sources[:0] = dict.fromkeys(path for line in made.lines if (path := file_of(line.path)) is not None)
    # Without handles: when a project gets its origin, its ids change and its words do not.
    lines[:0] = [*((line.text, line.id) for line in made.lines), *((words, "") for words in made.quotes)]
    ids = [line.id for line in made.lines]
    crowded = not text and bool(sources or made.left_out)
    return SessionContext(text, sources, troubles, ids, crowded, lines, made.left_out)


def beginning(raw: bytes, enough: int) -> str:
    """Returns the text, or its beginning in whole lines if there are any, so that no secret is cut in two."""
    end = len(raw)
    if end > enough:
        end = max(raw.rfind(b"\n", 0, enough), 0) or enough
    return raw[:end].decode("utf-8-sig", "replace") + (_CUT if end < len(raw) else "")
