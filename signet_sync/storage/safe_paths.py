"""Opens paths that come from outside: inside the workspace, never through a symlink."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from signet_sync.errors import PathEscape, WorkspaceError
from signet_sync.storage.durable import FOLDER, sync_descriptor


def require_root(root: str) -> None:
    """Raises `WorkspaceError` unless the root is a folder that can be listed."""
    if not os.path.isdir(root):
        if os.path.exists(root):
            raise WorkspaceError("the workspace is not a folder", path=root, hint="name a folder with --workspace")
        hint = "name another one with --workspace, or create it with: signet-sync setup"
        raise WorkspaceError("the workspace does not exist", path=root, hint=hint)
    if not os.access(root, os.R_OK | os.X_OK):
        raise WorkspaceError("the workspace cannot be read", path=root, hint="check its permissions")


def split_checked(path: str) -> list[str]:
    """Splits a workspace-relative path. Raises `PathEscape` for anything that could leave the workspace."""
    parts = path.split("/")
    if "\0" in path or any(part in ("", ".", "..") for part in parts) or not _is_a_name(path):
        raise PathEscape("the path leaves the workspace", path=path, hint="use a path relative to the workspace root")
    return parts


def _is_a_name(path: str) -> bool:
    """Returns whether the system could have returned this text as a name: half a surrogate pair has no bytes."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def folder(root: str, path: str, *, create: bool = False) -> Iterator[int]:
    """Yields a descriptor of a folder below the root (`""`: the root itself), opened part by part without symlinks.

    With `create`, missing folders are made (0700) and their parents synced. Raises `FileNotFoundError`, `PathEscape`,
    `WorkspaceError`.
    """
    descriptor = os.open(root, FOLDER)
    try:
        for part in split_checked(path) if path else []:
            try:
                inner = os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            except FileNotFoundError:
                if not create:
                    raise
                try:
                    os.mkdir(part, 0o700, dir_fd=descriptor)
                    sync_descriptor(descriptor)
                except FileExistsError:
                    pass
                inner = os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise _not_a_folder(part, path, descriptor) from None
                raise
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _not_a_folder(part: str, path: str, parent: int) -> WorkspaceError:
    try:
        link = stat.S_ISLNK(os.stat(part, dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        link = False
    return no_folder(path, link=link)


def no_folder(path: str, *, link: bool) -> WorkspaceError:
    """Returns the error for a path on which something else stands instead of a folder."""
    if link:
        return PathEscape(
            "a folder on this path is a symlink",
            path=path,
            hint="replace the link by a real folder inside the workspace",
        )
    return WorkspaceError("there is a file where a folder should be", path=path, hint="move the file away")


def split_path(path: str) -> tuple[str, str]:
    """Splits a relative path into folder and name, checked."""
    parts = split_checked(path)
    return "/".join(parts[:-1]), parts[-1]
