"""What the engine asks of a vault that it reads, wherever it is; `files.DiskVault` is one of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from signet_sync.formats.snapshot import Found, Trouble


class Vault(Protocol):
    """A folder that is only read, by names in it: the root of a workspace, or a folder below.

    A vault that is not on this machine raises `Unreachable` where it does not answer: what was not seen must not be
    taken for missing.
    """

    def names(self) -> Iterable[str]:
        """Returns every name. Raises `OSError`."""

    def list(self) -> Iterator[tuple[str, os.stat_result | OSError]]:
        """Yields every name with its status, links not followed, or with why it has none. Raises `OSError`."""

    def status(self, name: str) -> os.stat_result | None:
        """Returns the status of a name, links not followed; None if nothing is there. Raises `OSError`."""

    def read(self, name: str, limit: int) -> Found | Trouble:
        """Reads a regular file, never beyond `limit` bytes; the signature is that of the bytes."""

    def inside(self, name: str) -> AbstractContextManager[Vault | None]:
        """Opens a folder in this one; yields None if there is no folder of that name. Raises `OSError`."""


# Where a workspace is: a path of this machine, or the vault itself.
Root = str | Vault
