"""Opens a workspace wherever it is, to be read like a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def opened(url: str) -> Iterator[str]:
    """Yields the root of a workspace: a path of this machine.

    Raises `WorkspaceError` if it cannot be reached.
    """
    yield os.path.abspath(os.path.expanduser(url.removeprefix("file://")))
