"""Opens a workspace wherever it is, to be read like a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from signet_sync.fleet.places import archives, object_stores, repositories


@contextmanager
def opened(url: str) -> Iterator[str]:
    """Yields the root of a workspace: a path of this machine, or a `RemoteRoot`, which prints without what is secret.

    Raises `UsageError` for a URL that cannot be read, `Unreachable` for a place that does not answer.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme == "file":
        yield os.path.abspath(os.path.expanduser(rest if separator else url))
        return
    place = repositories if scheme.startswith("git+") else archives if scheme == "zip" else object_stores
    with place.opened(url) as root:
        yield root
