"""Reads a workspace through a file system of fsspec: object stores, memory, whatever else it knows."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import md5
from typing import Any

from signet_sync.errors import Unreachable, UsageError, extra_hint
from signet_sync.fleet.places.reader import PlaceReader, denied, failed, is_a_name, shown, unreachable
from signet_sync.formats.snapshot import Found, Trouble
from signet_sync.storage import remote
from signet_sync.storage.files import signature_of
from signet_sync.storage.remote import RemoteRoot

_AT_ONCE = 32  # reads of one workspace: an object store answers in 20 to 100 ms
# What a place changes with every change of a file; the first of these that a listing holds.
_VERSIONS = ("ETag", "etag", "VersionId", "version_id", "generation", "md5Hash", "content_md5", "sha256", "sha")
_TIMES = ("LastModified", "last_modified", "mtime", "modified", "updated", "created")
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az", "adl": "az"}
_KINDS = {"file": stat.S_IFREG, "link": stat.S_IFLNK}


def file_system(url: str) -> tuple[Any, str]:
    """Returns fsspec's file system and the path in it. Raises `UsageError`, `Unreachable`.

    Settings and credentials are fsspec's own: its configuration and environment, and those of the store's library.
    """
    scheme = url.partition("://")[0]
    try:
        import fsspec
    except ImportError:
        raise UsageError("URLs need an extra", path=shown(url), hint=extra_hint("fleet")) from None
    try:
        found, path = fsspec.url_to_fs(url, use_listings_cache=False)
    except ImportError:
        hint = extra_hint(_EXTRAS[scheme]) if scheme in _EXTRAS else "install the library that fsspec names for it"
        raise UsageError(f"{scheme}:// needs another library", path=shown(url), hint=hint) from None
    except Exception as error:  # noqa: BLE001  # each library has errors of its own
        if isinstance(error, ValueError) and "Protocol" in str(error):
            hint = "s3, gs, az, zip, git+https, git+ssh, git+file and what else fsspec knows"
            raise UsageError(f"there is no way to read {scheme}://", path=shown(url), hint=hint) from None
        raise unreachable(url, error) from None
    return found, path


@contextmanager
def opened(url: str) -> Iterator[RemoteRoot]:
    """Yields the root of a workspace at a URL of fsspec. Raises `UsageError`, `Unreachable`."""
    found, path = file_system(url)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="read") as pool:
        try:
            yield RemoteRoot(shown(url), ObjectStore(found, path, url, pool if found.async_impl else None))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


class ObjectStore(PlaceReader):
    """Lists each folder once, without a request for a file; reads ahead at once where the file system can."""

    def __init__(self, system: Any, top: str, url: str, pool: ThreadPoolExecutor | None) -> None:
        self._system = system
        self._top = top.rstrip("/")
        self._url = url
        self._pool = pool
        self._listed: dict[str, dict[str, os.stat_result]] = {}
        self._etags: dict[str, str] = {}
        self._begun: dict[str, Future[Found | Trouble]] = {}

    def entries(self, path: str) -> Mapping[str, os.stat_result]:
        """Lists a folder, by one listing of the store."""
        found = self._listed.get(path)
        if found is None:
            found = self._listed[path] = self._list(path)
        return found

    def content(self, path: str, status: os.stat_result) -> Found | Trouble:
        """Reads a file, or takes what was read ahead."""
        begun = self._begun.pop(path, None)
        return begun.result() if begun is not None else self._fetch(path, status)

    def read_ahead(self, paths: Sequence[str], limit: int) -> None:
        """Begins to read files at once; of a folder all files in it, once those are listed."""
        if self._pool is None:
            return
        named = [(path, status) for path in paths if (status := self._seen(path)) is not None]
        folders = [path for path, status in named if stat.S_ISDIR(status.st_mode)]
        for folder, entries in zip(folders, self._pool.map(self._present, folders), strict=True):
            named += [(f"{folder}/{name}", status) for name, status in entries.items()]
        for path, status in named:
            if stat.S_ISREG(status.st_mode) and 0 < status.st_size <= limit and path not in self._begun:
                self._begun[path] = self._pool.submit(self._fetch, path, status)

    def _seen(self, path: str) -> os.stat_result | None:
        with suppress(PermissionError):  # whoever reads it will be told
            return self.status(path)
        return None

    def _present(self, path: str) -> Mapping[str, os.stat_result]:
        try:
            return self.entries(path)
        except OSError:
            return {}

    def _place(self, path: str) -> str:
        return f"{self._top}/{path}" if path else self._top

    def _list(self, path: str) -> dict[str, os.stat_result]:
        place = self._place(path)
        try:
            infos: list[dict[str, Any]] = self._system.ls(place, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(path) from None
        except PermissionError:
            raise
        except Exception as error:  # noqa: BLE001  # each library has errors of its own
            raise unreachable(self._url, error) from None
        found: dict[str, os.stat_result] = {}
        for info in infos:
            name = info["name"][len(place) + 1 :] if info["name"].startswith(f"{place}/") else ""
            # A store may have a file and a folder of one name: what is below it decides.
            if is_a_name(name) and not (name in found and stat.S_ISDIR(found[name].st_mode)):
                found[name] = self._status(f"{path}/{name}" if path else name, info)
        if not found and self._system.isfile(place):
            raise FileNotFoundError(path)
        return found

    def _status(self, path: str, info: Mapping[str, Any]) -> os.stat_result:
        if info["type"] == "directory":
            return remote.FOLDER
        mode = stat.S_IFLNK if info.get("islink") else _KINDS.get(info["type"], stat.S_IFCHR)
        self._etags[path] = str(info.get("ETag") or "").strip('"')
        return remote.status(mode, int(info["size"] or 0), _version(info))

    def _fetch(self, path: str, status: os.stat_result) -> Found | Trouble:
        """Reads a file of the listed size; `unsettled` if what was read may not be what was listed."""
        if not status.st_size:
            return Found(b"", signature_of(status))
        place = self._place(path)
        try:
            for _ in range(2):
                raw = self._system.cat_file(place, start=0, end=status.st_size)
                before, proven = status, self._is_listed(path, raw)
                if not proven:
                    status = self._again(path)
                if status == before and len(raw) == status.st_size:
                    return Found(raw, signature_of(status))
                if status.st_size != before.st_size:
                    break
        except FileNotFoundError:
            return Trouble("gone", "it is not there")
        except PermissionError:
            return denied()
        except Unreachable:
            raise
        except Exception as error:  # noqa: BLE001  # each library has errors of its own
            self._list("")  # raises where the whole place does not answer
            return failed(error)
        return Trouble("unsettled", "it changed while it was read", signature_of(status))

    def _is_listed(self, path: str, raw: bytes) -> bool:
        """Returns whether the ETag proves that these are the listed bytes: most stores' is the MD5 of a small file."""
        return self._etags.get(path) == md5(raw, usedforsecurity=False).hexdigest()

    def _again(self, path: str) -> os.stat_result:
        """Looks at a file once more, and keeps what was seen for the next try."""
        where, _, name = path.rpartition("/")
        status = self._status(path, self._system.info(self._place(path)))
        self._listed[where][name] = status
        return status


def _version(info: Mapping[str, Any]) -> str:
    known = next((f"{info[name]}" for name in _VERSIONS if info.get(name)), "")
    return known or " ".join(f"{_time(info[name])}" for name in _TIMES if info.get(name))


def _time(value: Any) -> Any:
    """Returns a time in one form: some file systems list it as a number and show it as a date."""
    return value.timestamp() if isinstance(value, datetime) else value
