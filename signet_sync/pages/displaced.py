"""Recovers page content that was moved aside for a swap and never restored because of a crash."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from signet_sync.errors import SignetSyncError
from signet_sync.formats import managed_block
from signet_sync.formats.paths import page_agent
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.pages.kept_copies import keep_copy
from signet_sync.storage import files, state_dir
from signet_sync.sync.request import Pass
from signet_sync.sync.stages import Recovery
from signet_sync.sync.workspace import Workspace

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
