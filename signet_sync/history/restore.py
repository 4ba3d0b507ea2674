"""Restores a file from the history: nothing removed returns, and nothing present is lost."""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import sha256

from signet_sync.errors import UsageError
from signet_sync.formats import managed_block
from signet_sync.formats.paths import OWN, TOMBSTONES, kept_page_agent, page_agent
from signet_sync.formats.snapshot import PAGE_LIMIT, Found, Signature
from signet_sync.formats.timestamps import iso
from signet_sync.history import log
from signet_sync.history.git import repository
from signet_sync.history.git.repository import OpenRepository
from signet_sync.history.git.worktree import is_gits
from signet_sync.history.log import Version
from signet_sync.pages.kept_copies import keep_copy
from signet_sync.storage import files, state_dir
from signet_sync.storage.safe_paths import checked_parts
from signet_sync.sync import engine, planner
from signet_sync.sync.planner import JudgeContext, Tombstones
from signet_sync.sync.request import Request
from signet_sync.sync.store import artifacts
from signet_sync.sync.tombstones import store as tombstones_store
from signet_sync.sync.workspace import Workspace

_NOWHEN = Signature(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Restored:
    """The result for a path: the commit it came from (40 hex digits), and whether bytes were written.

    `kept` is where the replaced bytes were saved, if the newest commit does not contain them.
    """

    path: str
    oid: str
    written: bool
    kept: str | None = None


def restore(workspace: Workspace, path: str, revision: str, now_us: int) -> Restored:
    """Writes a file as a commit has it, and runs a pass over it; of a generated page only people's part.

    Raises `UsageError` (`removed-session`, `sealed`, `not-restorable`, `unknown-revision`, `not-in-revision`),
    `PathEscape`, `RepositoryRefused`, `WorkspaceError`, `DatabaseError`, `OSError`.
    """
    path = _checked(workspace.root, path)
    with repository.opened(workspace.root, workspace.state.key) as place:
        version = log.blob(place, path, revision)
        newest = _newest(place, path)
    # From here until it is written nothing can be removed.
    with state_dir.workspace_lock(workspace.state):
        # Includes a tombstone or an artifact that a sync service has just brought.
        tombstones = (f"{TOMBSTONES}/{name}" for name in files.listing(workspace.root, TOMBSTONES, ""))
        engine.run_locked(workspace, Request(now_us=now_us, paths=frozenset({path, *tombstones}), project=False))
        _refuse_removed(workspace, path, version, now_us)
        _refuse_other_than_sealed(workspace, path, version)
        written, kept = _put(workspace, path, version.data, newest, now_us)
        engine.run_locked(workspace, Request(now_us=now_us, paths=frozenset({path})))
    return Restored(path, version.commit, written, kept)


def _newest(place: OpenRepository, path: str) -> bytes | None:
    """Returns what the newest commit has at the path."""
    try:
        return log.blob(place, path, "HEAD").data
    except UsageError:
        return None


def _checked(root: str, path: str) -> str:
    """Returns the path in the workspace. Raises `PathEscape` for one outside, `UsageError` for one never restored."""
    if os.path.isabs(path):
        path = os.path.relpath(path, root)
    parts = checked_parts(path.removeprefix("./"))
    # As any file system may read them: a history may contain names from other systems.
    if any(is_gits(part) or part.casefold() == OWN for part in parts):
        raise UsageError(
            "this file does not belong to the workspace",
            path=path,
            hint="name a file in the history: signet-sync history --diff",
            code="not-restorable",
        )
    path = "/".join(parts)
    if path.casefold().startswith(f"{TOMBSTONES}/"):
        raise UsageError(
            "a tombstone is not restored: it would remove its session again",
            path=path,
            hint="signet-sync remove SESSION does so",
            code="not-restorable",
        )
    if kept_page_agent(path) is not None:
        # Its generated lines are mixed with a person's, and it is unknown which contain text that was forgotten since.
        raise UsageError(
            "a kept copy of a page is not restored: it may contain text removed since",
            path=path,
            hint="git show REV:PATH shows it",
            code="not-restorable",
        )
    return path


def _refuse_removed(workspace: Workspace, path: str, version: Version, now_us: int) -> None:
    judging = JudgeContext(
        Tombstones(tombstones_store.mirrored(workspace.database)),
        workspace.noise,
        lambda _: None,
        iso(now_us),
        workspace.settings.max_file_bytes,
    )
    if planner.judge(path, Found(version.data, _NOWHEN), judging).verdict == "tombstoned":
        raise UsageError(
            "its session was removed; nothing of it is written again",
            path=path,
            hint="signet-sync remove SESSION --undo lifts the removal",
            code="removed-session",
        )


def _refuse_other_than_sealed(workspace: Workspace, path: str, version: Version) -> None:
    seal = artifacts.seal_of(workspace.database, path)
    if seal is not None and seal.file_sha256 != sha256(version.data).hexdigest():
        raise UsageError(
            "the commit contains other bytes than were sealed",
            path=path,
            hint=f"signet-sync violations restore {path} writes the sealed ones",
            code="sealed",
        )


def _put(workspace: Workspace, path: str, old: bytes, newest: bytes | None, now_us: int) -> tuple[bool, str | None]:
    """Writes the bytes; returns whether it had to, and where it saved what was there."""
    root = workspace.root
    found = files.read(root, path, PAGE_LIMIT)
    if not isinstance(found, Found) and found.code != "gone":
        raise UsageError(
            found.message, path=path, hint="move away what is there, then restore again", code="not-restorable"
        )
    present = found.raw if isinstance(found, Found) else None
    data = _merged_page(path, old, present) if page_agent(path) is not None else old
    if data == present:
        return False, None
    if present is None:
        files.create_once(root, path, data)
        return True, None
    kept = None
    if _would_be_lost(path, present, data, newest):
        kept = keep_copy(workspace, path, "user", present, now_us)
    if files.replace(root, path, data, present).displaced is not None:
        raise UsageError(
            "the file was saved while it was being restored", path=path, hint="check it, then restore again"
        )
    return True, kept


def _merged_page(path: str, old: bytes, present: bytes | None) -> bytes:
    """Combines people's old text with the present generated block: the old block may contain removed text."""
    generated = managed_block.generated(present) if present is not None else None
    if generated is not None:
        return managed_block.merge(old, generated).data
    rest = managed_block.without_block(old)
    if rest is None:
        raise UsageError(
            "all of this page is generated",
            path=path,
            hint="signet-sync reindex writes it again; signet-sync history --diff shows earlier versions",
            code="not-restorable",
        )
    return rest


def _would_be_lost(path: str, present: bytes, data: bytes, newest: bytes | None) -> bool:
    """Returns whether the present bytes contain something that neither the new bytes nor the newest commit contain."""
    if page_agent(path) is None or not managed_block.is_generated(present):
        return present != newest
    # Generated text can be generated again.
    words = managed_block.without_block(present)
    held = [managed_block.without_block(one) for one in (data, newest) if one is not None]
    return words is not None and words not in held
