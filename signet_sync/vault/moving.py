"""Folders under another name: moved inside their parent at once, and never over something that stands there."""

from __future__ import annotations

import os

from signet_sync.errors import WorkspaceError
from signet_sync.vault import files
from signet_sync.vault.layout import folder, split_path


def rename_folder(root: str, path: str, name: str) -> bool:
    """Gives a folder another name in its parent, durably; False where it is not there.

    Raises `WorkspaceError` (`name-taken`) where something stands under the new name.
    """
    where, old = split_path(path)
    split_path(f"{where}/{name}")
    try:
        with folder(root, where) as parent:
            if _stands(parent, name):
                raise WorkspaceError(
                    "a folder of that name stands there already",
                    path=f"{where}/{name}",
                    hint="move it away and try again",
                    code="name-taken",
                )
            os.rename(old, name, src_dir_fd=parent, dst_dir_fd=parent)
            files.sync_descriptor(parent)
    except FileNotFoundError:
        return False
    return True


def _stands(parent: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
