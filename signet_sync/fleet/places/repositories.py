"""Reads a workspace in a git repository as of one commit: a repository of this machine, or one fetched into memory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from io import BytesIO
from typing import Any
from urllib.parse import unquote, urlsplit

from signet_sync.errors import UsageError, extra_hint
from signet_sync.fleet.places.reader import PlaceReader, is_a_name, shown, unreachable
from signet_sync.formats.snapshot import Found, Trouble
from signet_sync.history.git.repository import objection
from signet_sync.storage import remote
from signet_sync.storage.files import signature_of
from signet_sync.storage.remote import RemoteRoot

_MOST = 1 << 29  # bytes of a fetched pack, which is kept in memory
_SILENCE = b"60"  # seconds
# git's own: a submodule is an empty folder of a checkout.
_MODES = {0o120000: stat.S_IFLNK, 0o160000: stat.S_IFDIR, 0o040000: stat.S_IFDIR}
# Where a name may stand in a repository, in git's order.
_REFS = ("{}", "refs/{}", "refs/tags/{}", "refs/heads/{}", "refs/remotes/{}")


@contextmanager
def opened(url: str) -> Iterator[RemoteRoot]:
    """Yields the root of a workspace at `git+https://host/repo.git@ref#folder`; likewise `git+ssh`, `git+file`.

    Without a ref it is the repository's HEAD; a ref is a branch, a tag or a whole id. Raises `UsageError`,
    `Unreachable`.
    """
    try:
        import dulwich  # noqa: F401
    except ImportError:
        raise UsageError("git repositories need an extra", path=shown(url), hint=extra_hint("fleet")) from None
    parts = urlsplit(url.removeprefix("git+"))
    path, _, ref = parts.path.partition("@")
    place = parts._replace(path=path, fragment="").geturl()
    with ExitStack() as stack:
        try:
            objects, commit = _local(unquote(path), ref, stack) if parts.scheme == "file" else _fetched(place, ref)
            tree = _tree_of(objects, commit, unquote(parts.fragment))
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001  # dulwich and its transports have errors of many kinds
            raise unreachable(url, error) from None
        yield RemoteRoot(shown(url), Repository(objects, tree))


def _local(path: str, ref: str, stack: ExitStack) -> tuple[Any, bytes]:
    """Opens a repository of this machine; one that points elsewhere is refused, as everywhere."""
    from dulwich.repo import Repo

    bare = not os.path.lexists(os.path.join(path, ".git"))
    if reason := objection(path, "." if bare else ".git"):
        hint = "see docs/history.md, *Repositories we refuse*"
        raise UsageError(f"the repository is not opened: {reason}", path=path, hint=hint)
    repository = stack.enter_context(Repo(path, bare=bare))
    return repository.object_store, _wanted(repository.get_refs(), ref)


def _fetched(place: str, ref: str) -> tuple[Any, bytes]:
    """Fetches one commit, without its history, into memory."""
    from dulwich.client import get_transport_and_path
    from dulwich.pack import PackData, PackInflater
    from dulwich.repo import MemoryRepo

    wanted: list[bytes] = []
    pack = BytesIO()

    def want(refs: Mapping[bytes, bytes], depth: int | None = None) -> list[bytes]:
        wanted[:] = [_wanted(refs, ref)]
        return wanted

    def write(data: bytes) -> int:
        if pack.tell() + len(data) > _MOST:
            raise OSError(f"its pack is larger than {_MOST:,} bytes")
        return pack.write(data)

    client, path = get_transport_and_path(place, _patience(), quiet=True)
    repository = MemoryRepo()
    try:
        # Not `fetch`, which would keep a large pack in a file.
        client.fetch_pack(path, want, repository.get_graph_walker(), write, depth=1)
    finally:
        client.close()
    pack.seek(0)
    with closing(PackData.from_file(pack, repository.object_format, len(pack.getvalue()))) as data:
        data.check()
        for each in PackInflater.for_pack_data(data):
            repository.object_store.add_object(each)
    return repository.object_store, wanted[0]


def _patience() -> Any:
    """Returns the person's settings of git, and that a server which says nothing is given up, unless they say when."""
    from dulwich.config import ConfigFile, StackedConfig

    ours = ConfigFile()
    ours.set((b"http",), b"timeout", _SILENCE)
    return StackedConfig([*StackedConfig.default_backends(), ours])


def _wanted(refs: Mapping[bytes, bytes], ref: str) -> bytes:
    """Returns the id that a ref has in a repository. Raises `UsageError`."""
    if len(ref) in (40, 64) and not set(ref) - set("0123456789abcdef"):
        return ref.encode()
    for form in _REFS:
        found = refs.get(os.fsencode(form.format(ref or "HEAD")))
        if found is not None:
            return found
    raise UsageError(f"the repository has no ref {ref or 'HEAD'}", hint="name a branch, a tag or a whole id after @")


def _tree_of(objects: Any, wanted: bytes, folder: str) -> bytes:
    """Returns the id of a folder's tree in a commit, or in the commit of a tag. Raises `KeyError`."""
    found = objects[wanted]
    while found.type_name == b"tag":
        found = objects[found.object[1]]
    tree: bytes = found.tree
    for part in filter(None, folder.split("/")):
        mode, tree = objects[tree][os.fsencode(part)]
        if mode != stat.S_IFDIR:
            raise KeyError(folder)
    return tree


class Repository(PlaceReader):
    """Reads trees and blobs as they are stored: no filter, no line ending is applied."""

    def __init__(self, objects: Any, tree: bytes) -> None:
        self._objects = objects
        self._folders = {"": Folder(objects, tree)}

    def entries(self, path: str) -> Folder:
        """Lists a folder of the commit."""
        if path not in self._folders:
            where, _, name = path.rpartition("/")
            mode, sha = self.entries(where).items_by_name.get(name, (0, b""))
            if _MODES.get(mode) != stat.S_IFDIR:
                raise FileNotFoundError(path)
            self._folders[path] = Folder(self._objects, sha if mode == stat.S_IFDIR else None)
        return self._folders[path]

    def content(self, path: str, status: os.stat_result) -> Found | Trouble:
        """Returns the bytes of a blob."""
        where, _, name = path.rpartition("/")
        return Found(self._objects[self.entries(where).items_by_name[name][1]].data, signature_of(status))


class Folder(Mapping[str, os.stat_result]):
    """The entries of a tree; only to tell the size of a file its blob is read."""

    def __init__(self, objects: Any, tree: bytes | None) -> None:
        self._objects = objects
        self._statuses: dict[str, os.stat_result] = {}
        items = objects[tree].iteritems() if tree is not None else ()
        named = ((os.fsdecode(path), mode, sha) for path, mode, sha in items)
        self.items_by_name = {name: (mode, sha) for name, mode, sha in named if is_a_name(name) and name != ".git"}

    def __getitem__(self, name: str) -> os.stat_result:
        found = self._statuses.get(name)
        if found is None:
            mode, sha = self.items_by_name[name]
            kind = _MODES.get(mode, stat.S_IFREG)
            size = self._objects[sha].raw_length() if kind == stat.S_IFREG else 0
            found = self._statuses[name] = remote.status(kind, size, sha.decode())
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_by_name)

    def __len__(self) -> int:
        return len(self.items_by_name)
