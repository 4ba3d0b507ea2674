"""Reads and writes the files of the tables: in a folder of this machine, or in any store that fsspec reaches."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol
from urllib.parse import urlsplit

from signet_sync.errors import SignetSyncError, UsageError, place_of
from signet_sync.fleet.places.object_stores import file_system
from signet_sync.storage import durable
from signet_sync.storage.durable import private_folder, publish

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class TablePlace(Protocol):
    """A place of tables; paths are relative to it. Every method raises `SignetSyncError` if the place fails."""

    url: str

    def read(self, path: str) -> bytes | None:
        """Returns the bytes of a file; None if there is none."""

    def read_all(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Returns the bytes of several files by path; one that is gone is left out."""

    def write(self, path: str, data: bytes) -> None:
        """Writes a file, whole or not at all."""

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files; one that is gone already counts as deleted."""

    def names(self) -> list[str]:
        """Lists the paths of all files."""

    def register(self, connection: Any) -> None:
        """Lets DuckDB read files of the place by URL and path."""


def place_at(place: str) -> TablePlace:
    """Returns a place by its path or URL. Raises `UsageError` for a URL with a password, or without its package."""
    scheme = urlsplit(place).scheme if _URL.match(place) and "://" in place else ""
    if scheme in ("", "file"):
        return _Folder(os.path.abspath(os.path.expanduser(place.removeprefix("file://"))))
    if "@" in urlsplit(place).netloc:
        raise UsageError(
            f"a {scheme}:// URL of tables contains a user or password",
            hint="leave them out: the environment or the cloud's own settings give access",
            code="secret-in-url",
        )
    store, root = file_system(place)
    return _Store(place.rstrip("/"), store, root.rstrip("/"))


class _Folder:
    """A folder of this machine, readable by its owner only."""

    def __init__(self, path: str) -> None:
        self.url = path

    def read(self, path: str) -> bytes | None:
        with _failing(self.url):
            try:
                with open(os.path.join(self.url, path), "rb") as handle:
                    return handle.read()
            except FileNotFoundError:
                return None

    def read_all(self, paths: Iterable[str]) -> dict[str, bytes]:
        return {path: data for path in paths if (data := self.read(path)) is not None}

    def write(self, path: str, data: bytes) -> None:
        full = os.path.join(self.url, path)
        with _failing(self.url):
            private_folder(os.path.dirname(full))
            os.close(publish(full, data))

    def delete(self, paths: Iterable[str]) -> None:
        with _failing(self.url):
            folders = set()
            for path in paths:
                full = os.path.join(self.url, path)
                durable.unlink(full)
                folders.add(os.path.dirname(full))
            for folder in sorted(folders):
                self._leave(folder)

    def _leave(self, folder: str) -> None:
        """Makes deletions durable, and removes folders that they left empty."""
        with suppress(FileNotFoundError):
            durable.sync_folder(folder)
        with suppress(OSError):
            while folder != self.url:
                os.rmdir(folder)
                folder = os.path.dirname(folder)

    def names(self) -> list[str]:
        """Lists the files, and removes what a writer that died left of one."""
        found = []
        with _failing(self.url):
            for where, _, names in os.walk(self.url):
                swept = durable.sweep(where) if any(name.endswith(".tmp") for name in names) else []
                found += [os.path.relpath(os.path.join(where, name), self.url) for name in names if name not in swept]
        return sorted(one for one in found if not one.endswith(".tmp"))

    def register(self, connection: Any) -> None:
        pass


class _Store:
    """A store that fsspec reaches: one request puts a whole object."""

    def __init__(self, url: str, store: Any, root: str) -> None:
        self.url = url
        self._store = store
        self._root = root

    def read(self, path: str) -> bytes | None:
        with _failing(self.url):
            try:
                data: bytes = self._store.cat_file(f"{self._root}/{path}")
                return data
            except FileNotFoundError:
                return None

    def read_all(self, paths: Iterable[str]) -> dict[str, bytes]:
        wanted = {f"{self._root}/{path}": path for path in paths}
        with _failing(self.url):
            read: Mapping[str, object] = self._store.cat(list(wanted), on_error="return") if wanted else {}
            for one in read.values():
                if isinstance(one, Exception) and not isinstance(one, FileNotFoundError):
                    raise one
        return {wanted[full]: data for full, data in read.items() if isinstance(data, bytes)}

    def write(self, path: str, data: bytes) -> None:
        full = f"{self._root}/{path}"
        with _failing(self.url):
            if not getattr(self._store, "async_impl", False):
                self._store.makedirs(full.rpartition("/")[0], exist_ok=True)
            self._store.pipe_file(full, data)

    def delete(self, paths: Iterable[str]) -> None:
        with _failing(self.url):
            full = [f"{self._root}/{path}" for path in paths]
            try:
                if full:
                    self._store.rm(full)
            except FileNotFoundError:
                for one in full:
                    with suppress(FileNotFoundError):
                        self._store.rm_file(one)

    def names(self) -> list[str]:
        with _failing(self.url):
            self._store.invalidate_cache()
            found = self._store.find(self._root)
        return sorted(one[len(self._root) + 1 :] for one in found)

    def register(self, connection: Any) -> None:
        connection.register_filesystem(self._store)


@contextmanager
def _failing(url: str) -> Iterator[None]:
    """Turns what a store raises into one error, without the text of it, which may repeat what gave access."""
    try:
        yield
    except SignetSyncError:
        raise
    except Exception as error:  # noqa: BLE001 - each store has its own
        why = error.strerror if isinstance(error, OSError) and error.strerror else place_of(error)
        raise SignetSyncError(
            f"the tables cannot be read or written: {why}",
            path=url,
            hint="check the address and what gives access",
            code="tables-unusable",
        ) from None
