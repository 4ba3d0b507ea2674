"""Clears conflict copies of pages, entity files and manifests: only the user's text stays.

Two machines write the same pages, so sync services make such copies regularly; only copies that hold something found
nowhere else need the user's attention. A copy may arrive before the version that displaced it: while a file is no later
than its copy, it may be what was copied and about to be replaced, so the copy is kept.

What a swap of ours displaced is kept as such a copy, also after a crash in the middle of it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from signet_sync.errors import SignetSyncError, WorkspaceError, reason
from signet_sync.formats import managed_block
from signet_sync.formats.artifact import LEDGER_HEADING, MANIFEST_KEYS, REPOSITORY_FIELDS
from signet_sync.formats.entity_paths import original_of, parse_ledger_page
from signet_sync.formats.filename import find_ignored_code, is_copy_mark
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import DEFAULT_AGENT, KEPT_COPY, MEMORY, folder_agent, page_agent
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.formats.timestamps import iso
from signet_sync.pages import others
from signet_sync.storage import files, state_dir, writing
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import artifacts
from signet_sync.sync.workspace import Pass, Recovery, Workspace

_PAGE = late(r"[\w-]+\.md", re.ASCII)
_AGENT_FOLDER = late(r"agents/[^/]+/")
_MANIFEST = late(r"(memory/.+--[a-z2-7]{16}--manifest)([\W_].*)\.md", re.ASCII)
# A line of a manifest that is written by itself: its fields, the ledger that shows it, links.
_GENERATED = late(
    rf"(?:{'|'.join(sorted({*MANIFEST_KEYS, *REPOSITORY_FIELDS}))}):.*|---|  - \"{re.escape(LEDGER_HEADING)}\""
    r"|(?:\s*\[\[[^\[\]]*\]\])+\s*".encode()
)
# Folders of the workspace, and of an agent, that have pages or entity files. No other folder is read.
_DEEPER = late(
    r"agents(?:/[^/]+)?|ledger(?:/\d{4}(?:/\d\d)?)?|entities(?:/ledger|/(?:user|parts|relationships)(?:/[^/]+--[^/]+)?)?",
    re.ASCII,
)


def tree(root: str, folder: str = "") -> Iterator[str]:
    """Yields the paths in a folder that may have pages or entity files, and in those below it; reads no file."""
    for name in files.list_names(root, folder, ""):
        path = f"{folder}/{name}" if folder else name
        yield path
        if _DEEPER.fullmatch(_AGENT_FOLDER.sub("", path)):
            yield from tree(root, path)


def copies(root: str) -> list[str]:
    """Lists the copies that we kept of displaced pages, and those that sync services made or make just now."""

    def is_temporary(path: str) -> bool:
        folder, slash, name = path.rpartition("/")
        page = _PAGE.search(name) if find_ignored_code(name) == "temporary" else None
        return page is not None and page_agent(f"{folder}{slash}{page[0]}") is not None

    return [path for path in tree(root) if is_temporary(path) or KEPT_COPY.fullmatch(path) or original_of(path)]


def keep_copy(workspace: Workspace, path: str, suffix: str, data: bytes, now_us: int) -> None:
    """Keeps displaced bytes beside a page as `NAME.user-<utc>.md` (Signet's own once, as `NAME.signet-<utc>.md`)."""
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".md")
    for other in files.list_names(workspace.root, folder, f"{stem}.{suffix}-"):
        found = files.read(workspace.root, f"{folder}/{other}" if folder else other, PAGE_LIMIT)
        if suffix == "signet" or (isinstance(found, Found) and found.raw == data):
            return
    stamp = iso(now_us).replace("-", "").replace(":", "").replace(".", "")
    for number in range(100):
        target = f"{path.removesuffix('.md')}.{suffix}-{stamp}{f'-{number}' if number else ''}.md"
        try:
            writing.create_once(workspace.root, target, data)
        except FileExistsError:
            continue
        workspace.events.append(f"{path}: its previous content is kept as {target}; write above or below the block")
        return
    raise SignetSyncError("no free name for a kept copy", path=path, hint="remove old copies beside it")


# ── displaced by a swap ──


_NAMELESS = "DISPLACED.md"


class DisplacedSaves(Recovery):
    """Keeps what the user saved into files that a pass displaced before it was killed."""

    name = "displaced saves"

    @contextmanager
    def recover(self, run: Pass) -> Iterator[None]:
        """Keeps the user's texts as copies; other files in folders of temporary files are deleted."""
        if run.request.paths is None and not run.workspace.touch_nothing:
            if waiting := keep_displaced(run.workspace, run.request.now_us):
                run.workspace.events.append(waiting)
            state_dir.sweep(run.workspace.state)
        yield


def keep_displaced(workspace: Workspace, now_us: int, *, rest: float = writing.REST) -> str:
    """Keeps what the user saved into files that were displaced; returns why something must wait, or "".

    `rest` is the age in seconds from which a displaced file counts as no longer in use, if nothing else shows that.
    """
    writing.sweep(workspace.root, rest=rest)
    waiting = ""
    for found in writing.list_displaced(workspace.root, rest=rest):
        try:
            if found.raw is None:
                waiting = f"{found.path or found.place} is being written by some program"
                continue
            # Beside a page, of other files in the root: a removal reaches both.
            is_page = page_agent(found.path) is not None
            beside = found.path if is_page else found.path.rpartition("/")[2] or _NAMELESS
            text: bytes | None = found.raw
            if is_page and (managed_block.read_generated(found.raw) is not None or not found.raw.strip()):
                text = managed_block.drop_block(found.raw)  # what the user wrote
                present = files.read(workspace.root, found.path, PAGE_LIMIT)
                if isinstance(present, Found) and managed_block.drop_block(present.raw) == text:
                    text = None  # and the page has
            if text is not None:
                keep_copy(workspace, beside, "user", text, now_us)
            writing.unlink(workspace.root, found.place)
        except (OSError, SignetSyncError) as error:
            waiting = f"{found.path or found.place} was displaced and cannot be kept: {error}"
    return waiting


class Copy(NamedTuple):
    """A conflict copy of a page, an entity file, an event log or a manifest, and the file that it is a copy of."""

    path: str
    original: str
    agent_id: str


def find(root: str) -> list[Copy]:
    """Returns every conflict copy outside `memory/` and `.signet/`, without reading any."""
    return [Copy(path, of, folder_agent(path)) for path in tree(root) if (of := original_of(path)) is not None]


def _find_manifests(database: Database) -> Iterator[Copy]:
    """Yields the known copies of manifests."""
    for path in artifacts.list_manifest_copies(database):
        if (match := _MANIFEST.fullmatch(path)) and is_copy_mark(match[2]):
            yield Copy(path, f"{match[1]}.md", DEFAULT_AGENT)


def clear(workspace: Workspace) -> tuple[set[str], list[str]]:
    """Deletes copies with nothing of a person that their later original lacks.

    From another copy of a page our block is removed. Every machine does the same to the same copy. Event logs are left
    to the entities stage. Returns the paths that are gone, and what could not be done.
    """
    gone, trouble = set[str](), []
    for copy in [*find(workspace.root), *_find_manifests(workspace.database)]:
        signet_writes_it = page_agent(copy.original) is not None or _MANIFEST.fullmatch(copy.path) is not None
        if parse_ledger_page(copy.original) is not None or (signet_writes_it and others.holds(workspace)):
            continue
        try:
            if _clear_copy(workspace.root, copy):
                gone.add(copy.path)
        except (OSError, WorkspaceError) as error:
            trouble.append(f"{copy.path}: the conflict copy could not be cleared: {reason(error)}")
    return gone, trouble


def _clear_copy(root: str, copy: Copy) -> bool:
    """Returns whether a copy was deleted."""
    found, present = files.read(root, copy.path, PAGE_LIMIT), files.read(root, copy.original, PAGE_LIMIT)
    if not isinstance(found, Found) or not (isinstance(present, Found) or present.code == "gone"):
        return False
    words = _own_words(copy.original, found.raw)
    known = _own_words(copy.original, present.raw) if isinstance(present, Found) else b""
    if not words.strip() or (files.is_later(root, copy.original, copy.path) and _has_lines(words, known)):
        return writing.retract(root, copy.path, found.raw)
    if page_agent(copy.original) is not None and managed_block.read_generated(found.raw) is not None:
        writing.replace(root, copy.path, words, found.raw)
    return False


def _own_words(path: str, raw: bytes) -> bytes:
    """Returns what is a person's: of a page all but our block, of a manifest the lines that follow from no session."""
    if page_agent(path) is not None:
        return managed_block.drop_block(raw) or b""
    if not path.startswith(f"{MEMORY}/"):
        return raw
    return b"\n".join(line for line in raw.split(b"\n") if not _GENERATED.fullmatch(line))


def _has_lines(words: bytes, known: bytes) -> bool:
    """Returns whether every line of one text is in the other, in the same order."""
    lines = iter(known.splitlines())
    return all(line in lines for line in words.splitlines() if line.strip())
