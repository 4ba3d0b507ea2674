"""Renames files and folders of the workspace atomically, never over something that is there."""

from __future__ import annotations

import errno
import os

from signet_sync.errors import WorkspaceError
from signet_sync.storage import files
from signet_sync.storage.durable import sync_descriptor
from signet_sync.storage.safe_paths import folder, split_path

_TAKEN = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR})


def rename_folder(root: str, path: str, name: str) -> bool:
    """Gives a folder another name in its parent, durably; False if it is not there.

    An empty folder of that name is replaced. Raises `WorkspaceError` (`name-taken`) if anything else has the name.
    """
    where, old = split_path(path)
    split_path(f"{where}/{name}")
    try:
        with folder(root, where) as parent:
            os.rename(old, name, src_dir_fd=parent, dst_dir_fd=parent)
            sync_descriptor(parent)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        raise WorkspaceError(
            "the name is already taken",
            path=f"{where}/{name}",
            hint="move it away and try again",
            code="name-taken",
        ) from None
    return True


def move_away(root: str, path: str, name: str) -> bool:
    """Gives what is at a path another name in its folder, durably: a link as a link, a folder with all that it holds.

    False if the name is taken. Raises `FileNotFoundError` if there is nothing to move.
    """
    where, old = split_path(path)
    with folder(root, where) as parent:
        moved = files.rename_to_free(parent, old, name)
        sync_descriptor(parent)
    return moved
