"""Keeps displaced bytes as copies beside their page, also after a crash in the middle of a swap; finds such copies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from signet_sync.errors import SignetSyncError
from signet_sync.formats import managed_block
from signet_sync.formats.entity_paths import original_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import KEPT_COPY, page_agent
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.formats.timestamps import iso
from signet_sync.storage import files, state_dir
from signet_sync.sync.request import Pass
from signet_sync.sync.stages import Recovery
from signet_sync.sync.workspace import Workspace

AGENT_FOLDER = late(r"agents/([^/]+)/")
# Folders of the workspace, and of an agent, that have pages or entity files. No other folder is read.
_DEEPER = late(
    r"agents(?:/[^/]+)?|ledger(?:/\d{4}(?:/\d\d)?)?|entities(?:/ledger|/(?:user|parts|relationships)(?:/[^/]+--[^/]+)?)?",
    re.ASCII,
)


def tree(root: str, folder: str = "") -> Iterator[str]:
    """Yields the paths in a folder that may have pages or entity files, and in those below it; reads no file."""
    for name in files.listing(root, folder, ""):
        path = f"{folder}/{name}" if folder else name
        yield path
        if _DEEPER.fullmatch(AGENT_FOLDER.sub("", path)):
            yield from tree(root, path)


def copies(root: str) -> list[str]:
    """Lists the copies that we kept of displaced pages, and those that sync services made."""
    return [path for path in tree(root) if KEPT_COPY.fullmatch(path) or original_of(path) is not None]


def keep_copy(workspace: Workspace, path: str, suffix: str, data: bytes, now_us: int) -> str | None:
    """Keeps displaced bytes beside a page as `NAME.user-<utc>.md` (Signet's own once, as `NAME.signet-<utc>.md`)."""
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".md")
    for other in files.listing(workspace.root, folder, f"{stem}.{suffix}-"):
        found = files.read(workspace.root, f"{folder}/{other}" if folder else other, PAGE_LIMIT)
        if suffix == "signet" or (isinstance(found, Found) and found.raw == data):
            return None
    for target in copy_names(path, suffix, now_us):
        try:
            files.create_once(workspace.root, target, data)
        except FileExistsError:
            continue
        workspace.events.append(f"{path}: its previous content is kept as {target}")
        return target
    raise no_free_name(path)


def copy_names(path: str, suffix: str, now_us: int) -> Iterator[str]:
    """Yields the paths beside a file that a kept copy of it may have."""
    stamp = iso(now_us).replace("-", "").replace(":", "").replace(".", "")
    for number in range(100):
        yield f"{path.removesuffix('.md')}.{suffix}-{stamp}{f'-{number}' if number else ''}.md"


def no_free_name(path: str) -> SignetSyncError:
    """Returns the error for when all names of `copy_names` are taken."""
    return SignetSyncError("no free name for a kept copy", path=path, hint="remove old copies beside it")


# ── displaced by a swap ──


BESIDE = ("",)  # where a temporary file may be besides `.signet/tmp`: in the root
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


def keep_displaced(workspace: Workspace, now_us: int, *, rest: float = files.REST) -> str:
    """Keeps what the user saved into files that were displaced; returns why something must wait, or "".

    `rest` is the age in seconds from which a displaced file counts as no longer in use, if nothing else shows that.
    """
    files.sweep(workspace.root, beside=BESIDE, rest=rest)
    waiting = ""
    for found in files.displaced(workspace.root, beside=BESIDE, rest=rest):
        try:
            if found.raw is None:
                waiting = f"{found.path or found.place} is being written by some program"
                continue
            text = _read_peoples_text(workspace.root, found.path, found.raw)
            if text is not None:
                keep_copy(workspace, _choose_place(found.path), "user", text, now_us)
            files.unlink(workspace.root, found.place)
        except (OSError, SignetSyncError) as error:
            waiting = f"{found.path or found.place} was displaced and cannot be kept: {error}"
    return waiting


def _choose_place(path: str) -> str:
    """Returns where to keep a copy: beside a page, for other files in the root; a removal reaches both."""
    return path if page_agent(path) is not None else path.rpartition("/")[2] or _NAMELESS


def _read_peoples_text(root: str, path: str, raw: bytes) -> bytes | None:
    """Returns what the user wrote of a displaced file and the page lacks; None if there is nothing."""
    if page_agent(path) is None or not (managed_block.is_generated(raw) or not raw.strip()):
        return raw
    rest = managed_block.without_block(raw)
    present = files.read(root, path, PAGE_LIMIT)
    if isinstance(present, Found) and managed_block.without_block(present.raw) == rest:
        return None
    return rest
