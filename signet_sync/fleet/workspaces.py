"""Opens a workspace wherever it is, to be read like a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from signet_sync.errors import SignetSyncError, WorkspaceError, reason, sentence_of
from signet_sync.fleet.places import archives, object_stores, repositories


@contextmanager
def opened(url: str) -> Iterator[str]:
    """Yields the root of a workspace: a path of this machine, or a `RemoteRoot`, which prints without what is secret.

    Raises `UsageError` for a URL that cannot be read, `WorkspaceError` for what is no folder, `Unreachable` for a place
    that does not answer.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme == "file":
        path = os.path.abspath(os.path.expanduser(rest if separator else url))
        if not os.path.isdir(path):
            what = "this is not a folder" if os.path.lexists(path) else "this folder does not exist"
            raise WorkspaceError(what, path=path, hint="name a folder that has a memory/")
        yield path
        return
    place = repositories if scheme.startswith("git+") else archives if scheme == "zip" else object_stores
    with place.opened(url) as root:
        yield root


def why_not(error: SignetSyncError | OSError) -> str:
    """Returns why a workspace could not be read, and what to do."""
    return sentence_of(error) if isinstance(error, SignetSyncError) else reason(error)
