"""Decides which recorded projects are the one at a path: the same repository, the path itself, or a folder above it."""

from __future__ import annotations

import os
from collections.abc import Callable

_HIGHEST = 64  # folders that are looked at on the way up


def of_path(path: str | None) -> tuple[str, Callable[[str | None], bool]]:
    """Returns what names the project at a path ("" without one), and whether a recorded project belongs to it.

    Only names are compared, so the path may be gone, or a file. The home folder and those above it, where many projects
    are, belong to none of them.
    """
    if not path or not os.path.isabs(path):
        return "", lambda _: False
    at = os.path.normpath(path)
    root = _repository(at)
    home = os.path.expanduser("~")

    def belongs(project: str | None) -> bool:
        other = os.path.normpath(project) if project else ""
        if root is not None:
            return other == root or _is_below(other, root)
        return other == at or (_is_below(at, other) and other != home and not _is_below(home, other))

    return root or at, belongs


def _is_below(path: str, folder: str) -> bool:
    return bool(folder) and path.startswith(folder.rstrip(os.sep) + os.sep)


def _repository(path: str) -> str | None:
    """Returns the nearest folder with a `.git`, at the path or above it; never the home folder or one above."""
    home = os.path.expanduser("~")
    for _ in range(_HIGHEST):
        if path == home or _is_below(home, path):
            return None
        try:
            os.lstat(os.path.join(path, ".git"))
            return path
        except (OSError, ValueError):
            path = os.path.dirname(path)
    return None
