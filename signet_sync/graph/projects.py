"""Names the project of a session: the origin of its repository, else the repository's root, else its own folder."""

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from signet_sync.formats.body import js_trim
from signet_sync.formats.paths import normalize_path

# Folders above a session's own that may be the root of a repository.
_PARENTS = 64


class Place(NamedTuple):
    """Where a session worked: its folder, and root and origin of its repository as its files name them.

    An empty text is none.
    """

    folder: str
    root: str
    origin: str


def make_place(project: str | None, root: str | None, origin: str | None) -> Place:
    """Returns a place as texts that are equal for equal folders. What is no root of a repository is left out."""
    folder = _folder(root)
    if not re.match("/[^/]", folder) or posixpath.normpath(folder) != folder:
        return Place(_folder(project), "", "")
    return Place(_folder(project), folder, js_trim(origin or ""))


def _folder(path: str | None) -> str:
    trimmed = normalize_path(js_trim(path or ""))
    return trimmed.rstrip("/") or trimmed[:1]


def possible_roots(place: Place) -> Iterator[str]:
    """Yields the roots that a place without an origin may belong to, the nearest first: its own, else those above.

    A folder at the top of the file system, or where homes are, holds unrelated projects, whatever a file says.
    """
    if place.root:
        yield place.root
        return
    path = place.folder
    for _ in range(_PARENTS):
        above = path.rpartition("/")[0]
        if above in ("", "/home") or above.endswith("/Users"):  # also of a Windows below /mnt
            return
        yield path
        path = above


class Project(NamedTuple):
    """The project of a place: its identity, and the folder that its paths are relative to. Empty texts: none."""

    identity: str
    top: str


def top_of(place: Place, inside: str | None) -> str:
    """Returns the folder that holds a place's working tree, which it is `inside` of."""
    return place.folder.removesuffix(f"/{inside}") if inside else place.folder
