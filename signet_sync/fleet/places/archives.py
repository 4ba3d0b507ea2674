"""Reads a workspace inside a zip archive, such as the artifact of a CI job, without unpacking it."""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import IO

from signet_sync.errors import SignetSyncError
from signet_sync.fleet.places import object_stores
from signet_sync.fleet.places.reader import PlaceReader, failed, is_a_name, shown, unreachable
from signet_sync.formats.snapshot import Found, Trouble
from signet_sync.storage import remote
from signet_sync.storage.durable import READ
from signet_sync.storage.files import signature_of
from signet_sync.storage.remote import RemoteRoot

_UTF8 = 0x800  # flag of an entry: its name is UTF-8
_UNIX = 3  # the system of an entry whose attributes are a file mode


@contextmanager
def opened(url: str) -> Iterator[RemoteRoot]:
    """Yields the root of a workspace in an archive: `zip:///archive.zip!/folder`, `zip://folder::URL of the archive`.

    Raises `UsageError`, `Unreachable`.
    """
    inner, chained, place = url.removeprefix("zip://").partition("::")
    if not chained:
        place, _, inner = inner.partition("!")
    with ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(_file(place))))
        except SignetSyncError:
            raise
        except Exception as error:  # noqa: BLE001  # the archive may be in any place of fsspec
            raise unreachable(url, error) from None
        yield RemoteRoot(shown(url), Archive(archive, inner.strip("/")))


@contextmanager
def _file(place: str) -> Iterator[IO[bytes]]:
    if "://" in place and not place.startswith("file://"):
        system, path = object_stores.file_system(place)
        with system.open(path, "rb") as file:
            yield file
        return
    with open(os.open(os.path.expanduser(place.removeprefix("file://")), READ & ~os.O_NOFOLLOW), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise zipfile.BadZipFile("it is not a regular file")
        yield file


class Archive(PlaceReader):
    """Knows the files of an archive's folder by their names; a name that would leave the archive is none."""

    def __init__(self, archive: zipfile.ZipFile, top: str) -> None:
        self._archive = archive
        self._infos: dict[str, zipfile.ZipInfo] = {}
        self._listed: dict[str, dict[str, os.stat_result]] = {}
        for info in archive.infolist():
            name = _name(info)
            parts = name.rstrip("/").split("/")
            if (not top or name.startswith(f"{top}/")) and all(map(is_a_name, parts)):
                self._add(name[len(top) + 1 :] if top else name, info)

    def _add(self, path: str, info: zipfile.ZipInfo) -> None:
        where = ""
        self._listed.setdefault(where, {})
        *folders, name = path.split("/")
        for folder in folders:
            self._listed[where][folder] = remote.FOLDER
            where = f"{where}/{folder}" if where else folder
            self._listed.setdefault(where, {})
        # The last of several entries of one name is the one that unpacking leaves; what is below a name decides first.
        if name and path not in self._listed:
            self._infos[path] = info
            version = f"{info.CRC} {info.date_time}"
            self._listed[where][name] = remote.status(_mode(info), info.file_size, version)

    def entries(self, path: str) -> Mapping[str, os.stat_result]:
        """Lists a folder of the archive."""
        if path not in self._listed:
            raise FileNotFoundError(path)
        return self._listed[path]

    def content(self, path: str, status: os.stat_result) -> Found | Trouble:
        """Unpacks a file in memory, never more of it than its entry states."""
        try:
            raw = self._archive.read(self._infos[path])
        except Exception as error:  # noqa: BLE001  # damage of many kinds, and the errors of any place
            return failed(error)
        return Found(raw, signature_of(status))


def _name(info: zipfile.ZipInfo) -> str:
    """Returns an entry's name as unpacking on Unix would write it: bytes without a stated encoding as they are."""
    if info.flag_bits & _UTF8 or info.create_system != _UNIX:
        return info.filename
    return os.fsdecode(info.filename.encode("cp437"))


def _mode(info: zipfile.ZipInfo) -> int:
    kind = stat.S_IFMT(info.external_attr >> 16) if info.create_system == _UNIX else 0
    return kind or stat.S_IFREG
