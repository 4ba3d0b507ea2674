"""Decides which recorded projects are the one at a path: the same repository, the path itself, or a folder above it."""

from __future__ import annotations

import os
from collections.abc import Callable

from signet_sync.formats.paths import composed
from signet_sync.host.repository import holds_home, real_path, resolve


def of_path(
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
    at, real, root = composed(at), composed(real), composed(found.root) if found is not None else ""
    origin = None if found is None else found.origin or origin_of(found.root)

    def belongs(project: str | None) -> bool:
        if found is not None:
            return bool(project) and (project in (origin, root) or _is_below(str(project), root))
        other = os.path.normpath(project) if project else ""
        return other in (at, real) or (any(_is_below(one, other) for one in (at, real)) and not holds_home(other))

    return (origin or root) if found is not None else at, belongs


def _is_below(path: str, folder: str) -> bool:
    return bool(folder) and path.startswith(folder.rstrip(os.sep) + os.sep)
