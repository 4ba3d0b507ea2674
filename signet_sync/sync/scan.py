"""Lists names and signatures of the vault's files; an entry that cannot be read becomes a value, not an error."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from signet_sync.errors import PathEscape, WorkspaceError
from signet_sync.formats.paths import MEMORY, TOMBSTONES, display
from signet_sync.formats.snapshot import STRANGE_NAME, Ground, Signature, Snapshot
from signet_sync.storage.files import Root, Vault, kind_of, reading, signature_of
from signet_sync.storage.safe_paths import split_checked, split_path


def scan(root: Root) -> Snapshot:
    """Lists everything in `memory/` and `memory/tombstones/`: one scandir and one stat per file, nothing opened."""
    files: dict[str, Signature] = {}
    odd: dict[str, str] = {}
    try:
        with reading(root, MEMORY) as vault:
            _collect(vault, MEMORY, files, odd)
    except (OSError, WorkspaceError) as error:
        return Snapshot(True, *_ground_of(error))
    try:
        with reading(root, TOMBSTONES) as vault:
            _collect(vault, TOMBSTONES, files, odd)
    except (FileNotFoundError, WorkspaceError):
        pass  # another kind of entry under this name was seen in `memory/`
    except OSError as error:
        odd[TOMBSTONES] = f"it cannot be read: {error.strerror}"
    return Snapshot(True, "present", "", files, odd)


def _ground_of(error: OSError | WorkspaceError) -> tuple[Ground, str]:
    if isinstance(error, FileNotFoundError):
        return "missing", "there is no folder `memory/`"
    return "refused", error.message if isinstance(
        error, WorkspaceError
    ) else f"`memory/` cannot be read: {error.strerror}"


def _collect(vault: Vault, where: str, files: dict[str, Signature], odd: dict[str, str]) -> None:
    for name, status in vault.list():
        path = f"{where}/{name}"
        if isinstance(status, OSError):
            odd[display(path)] = f"it cannot be looked at: {status.strerror}"
        else:
            _sort(path, status, files, odd)


def _sort(path: str, status: os.stat_result, files: dict[str, Signature], odd: dict[str, str]) -> None:
    if not path.isprintable():
        odd[display(path)] = STRANGE_NAME
    elif stat.S_ISREG(status.st_mode):
        files[path] = signature_of(status)
    else:
        odd[display(path)] = kind_of(status.st_mode)


def glance(root: Root, paths: Iterable[str]) -> Snapshot:
    """Returns the state of some paths only: one stat each. A path outside the two folders is left out."""
    asked = frozenset(p for p in paths if p.rpartition("/")[0] in (MEMORY, TOMBSTONES) and _names_something(p))
    files: dict[str, Signature] = {}
    odd: dict[str, str] = {}
    try:
        with reading(root, MEMORY):
            pass
    except (OSError, WorkspaceError) as error:
        return Snapshot(False, *_ground_of(error), asked=asked)
    for path in asked:
        where, name = split_path(path)
        try:
            with reading(root, where) as vault:
                status = vault.status(name)
        except (FileNotFoundError, NotADirectoryError, WorkspaceError):
            continue
        except OSError as error:
            odd[display(path)] = f"it cannot be looked at: {error.strerror}"
            continue
        if status is not None:
            _sort(path, status, files, odd)
    return Snapshot(False, "present", "", files, odd, asked)


def _names_something(path: str) -> bool:
    try:
        split_checked(path)
    except PathEscape:
        return False
    return True


def names(root: Root) -> set[str] | None:
    """Returns the paths in `memory/` and `memory/tombstones/` without a stat; None if `memory/` cannot be listed."""
    found: set[str] = set()
    for where in (MEMORY, TOMBSTONES):
        try:
            with reading(root, where) as vault:
                found.update(display(f"{where}/{name}") for name in vault.names())
        except (OSError, WorkspaceError):
            if where == MEMORY:
                return None
    return found
