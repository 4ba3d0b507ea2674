"""A store in the memory of this process from which sessions can be removed."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from signet_sync.fleet.removal import object_store


class MemoryStore:
    """A store in the memory of this process that takes conditions."""

    def __init__(self, fs: Any, base: str) -> None:
        self._fs = fs
        self._base = base

    def read(self, path: str, limit: int) -> object_store.Stored | None:
        try:
            raw: bytes = self._fs.cat_file(f"{self._base}/{path}")
        except FileNotFoundError:
            return None
        return object_store.Stored(raw if len(raw) <= limit else None, sha256(raw).hexdigest())

    def put(self, path: str, data: bytes, version: str | None) -> bool:
        if self._version(path) != version:
            return False
        self._fs.pipe_file(f"{self._base}/{path}", data)
        return True

    def delete(self, path: str, version: str) -> bool:
        current = self._version(path)
        if current == version:
            self._fs.rm_file(f"{self._base}/{path}")
        return current in (version, None)

    def kept_versions(self, paths: Iterable[str]) -> int | None:
        return 0

    def _version(self, path: str) -> str | None:
        stored = self.read(path, 0)
        return None if stored is None else stored.version
