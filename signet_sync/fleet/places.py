"""Finds workspaces by what names them, and opens each wherever it is: a folder, or anything that fsspec reads.

Every match has one state in an answer: `ok`, `empty` (no artifact), `damaged` (something in it is wrong, or it is no
workspace), `vanished` (nothing is there) or `unreachable` (its place does not answer: this says nothing about it).
"""

import errno
import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from signet_sync.errors import (
    ConfigError,
    SignetSyncError,
    Unreachable,
    UsageError,
    WorkspaceError,
    extra_hint,
    place_of,
    sentence_of,
)
from signet_sync.formats.paths import display
from signet_sync.formats.snapshot import Found, Trouble
from signet_sync.history import repository
from signet_sync.storage.files import Vault, kind_of, require_root, signature_of
from signet_sync.text.sanitizer import sanitize_line

STATES = ("ok", "empty", "damaged", "vanished", "unreachable")
_GLOB = re.compile(r"[*?\[]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SECRET = re.compile(r"(?<=//)[^/\s]*@|\?[^#\s]*")
# What a place changes with every change of a file, as far as a listing holds it.
_VERSIONS = "ETag etag VersionId version_id generation hex CRC sha256".split()
_VERSIONS += "LastModified last_modified mtime modified updated created".split()
_AT_ONCE = 64  # files: an object store takes 20 to 100 ms for each
_MOST_BYTES = 16 << 20


# ── what names workspaces ──


def matches(targets: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Returns what targets match, sorted, each once: an absolute path or URL, and its state and why, if known already.

    A target is a folder, a URL, a glob of them, or `@FILE` with one a line. A glob matches folders and follows no link.
    Raises `UsageError` for what is no target, `ConfigError` with file and line for a faulty list.
    """
    named = (one for target in targets for one in (_read_list(target[1:]) if target[:1] == "@" else _expanded(target)))
    found: dict[str, tuple[str, str]] = {}
    for name, state, why in sorted(named):
        found.setdefault(name if state or _URL.match(name) else os.path.realpath(name), (state, why))
    return dict(sorted(found.items()))


def state_of(error: Exception) -> tuple[str, str]:
    """Returns the state of a workspace that could not be read, and why, without what may be secret in a URL."""
    said = sentence_of(error) if isinstance(error, SignetSyncError | OSError) else place_of(error)
    if "does not exist" in said:
        return "vanished", said
    silent = isinstance(error, PermissionError | Unreachable) or getattr(error, "code", "") == "tables-unreachable"
    return "unreachable" if silent or "cannot be read" in said else "damaged", said


def answer(states: Iterable[tuple[str, str, str, dict[str, Any]]]) -> dict[str, Any]:
    """Returns the part of a document that says of every match its state, by name, and how many have each."""
    rows = sorted(states, key=lambda one: one[0])
    counts = {state: sum(one[1] == state for one in rows) for state in STATES}
    listed = [{"workspace": display(name), "state": state, "message": why, **more} for name, state, why, more in rows]
    return {"states": counts, "workspaces": listed}


def _read_list(path: str) -> Iterator[tuple[str, str, str]]:
    """Yields what a list names; `-` is the standard input. Paths are relative to the current folder."""
    try:
        with open("/dev/stdin" if path == "-" else path, encoding="utf-8-sig") as file:
            lines = file.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"cannot be read: {why}", path=path, hint="name an existing file of UTF-8 lines") from None
    for number, one in enumerate(map(str.strip, lines), 1):
        try:
            yield from _expanded(one) if one and one[0] != "#" else ()
        except UsageError as error:
            raise ConfigError(f"line {number}: {error.message}", path=path, hint=error.hint) from None


def _expanded(target: str) -> Iterator[tuple[str, str, str]]:
    """Yields a target, or what its glob matches."""
    if not target or "\0" in target:
        raise UsageError("a target is empty", hint="name a folder, a URL or @FILE")
    if _URL.match(target):
        url = _checked_url(target)
        if not url.startswith("file:"):
            begins = _GLOB.search(url)
            yield from ((url, "", ""),) if begins is None else _glob_url(url, begins.start())
            return
        target = unquote(url.removeprefix("file://"))
    name = os.path.expanduser(target)
    path = os.path.abspath(name)
    begins = _GLOB.search(name)
    if begins is None or os.path.lexists(path):  # a folder may have such a name itself
        yield path, "", ""
        return
    start = os.path.abspath(name[: begins.start()].rpartition("/")[0] or ("/" if name[0] == "/" else "."))
    found = [one for one in map(os.path.abspath, glob.iglob(name, recursive=True)) if os.path.isdir(one)]
    for one in found:
        # An agent may put a link among the workspaces, but not choose what is read with it.
        linked = os.path.realpath(one) != os.path.join(os.path.realpath(start), os.path.relpath(one, start))
        yield (one, "damaged", "it is a link, or behind one") if linked else (one, "", "")
    if not found:
        yield path, "vanished", "this glob finds no folder"


def _checked_url(target: str) -> str:
    """Returns a URL in one form. Raises `UsageError` if it contains a secret: it would get into tables and lists."""
    scheme, _, rest = target.partition("://")
    url = f"{scheme.lower()}://{rest.rstrip('/')}"
    for part in url.split("::"):
        kind, _, place = part.partition("://")
        user, at, _ = place.partition("/")[0].rpartition("@")
        if at and kind != "git" and (":" in user or kind not in ("sftp", "ssh")):
            hint = "leave them out: the environment, the cloud's own settings or an SSH key give access"
            raise UsageError(f"a {scheme.lower()}:// URL contains a user or password", hint=hint, code="secret-in-url")
    if not urlsplit(url).netloc and scheme.lower() not in ("file", "zip", "git", "memory"):
        raise UsageError("this URL names no place", path=target, hint="for example: s3://bucket/agents/*")
    if _GLOB.search(url) and scheme.lower() in ("git", "zip", "http", "https"):
        raise UsageError("a URL of this kind is no glob", path=url, hint="name each, for example in a file: @FILE")
    return url


def _glob_url(url: str, begins: int) -> Iterator[tuple[str, str, str]]:
    """Yields the folders of a store that a glob finds, as URLs; the glob itself if the store does not answer."""
    fixed = url[: url.rindex("/", 0, begins)]
    try:
        (store, pattern), (_, start) = file_system(url), file_system(fixed)
        found = [path for path, what in store.glob(pattern, detail=True).items() if what["type"] == "directory"]
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001 - each store has its own; its text may repeat what gave access
        why = error.strerror if isinstance(error, OSError) and error.strerror else place_of(error)
        yield shown(url), "unreachable", f"this cannot be listed: {why}"
        return
    yield from ((fixed + path.removeprefix(start), "", "") for path in found)
    if not found:
        yield shown(url), "vanished", "this glob finds no folder"


# ── one of them, open ──


class Place(NamedTuple):
    """A workspace that is open: its name, which is its path if it is on this machine, and its vault if it is not."""

    name: str
    vault: Vault | None = None


@contextmanager
def opened(url: str) -> Iterator[Place]:
    """Yields a workspace by its path or URL; the name is without what is secret in a URL.

    Raises `UsageError` for a URL that cannot be read, `WorkspaceError` for what is no folder, `Unreachable` for a place
    that does not answer.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme == "file":
        path = os.path.abspath(os.path.expanduser(rest if separator else url))
        require_root(path)
        yield Place(path)
        return
    system, path = file_system(url)
    vault = _listed(system, path.rstrip("/"), url)
    if not vault.entries:
        hint = "check its address; a place without files counts as missing"
        raise WorkspaceError("the workspace does not exist", path=shown(url), hint=hint)
    yield Place(shown(url), vault)


def file_system(url: str) -> tuple[Any, str]:
    """Returns fsspec's file system and the path in it. Raises `UsageError`, `Unreachable`.

    Settings and credentials are fsspec's own: its configuration and environment, and those of the store's library.
    """
    scheme, _, rest = url.partition("://")
    try:
        import fsspec
    except ImportError:
        raise UsageError("URLs need an extra", path=shown(url), hint=extra_hint("fleet")) from None
    try:
        if scheme == "git":  # `git://PATH:REF@FOLDER`, as fsspec writes it; without a ref it is the HEAD
            where, _, inner = rest.partition(":")
            ref, at, folder = inner.partition("@")
            given = {"path": _checked_repository(where), "ref": ref if at and ref else "HEAD"}
            return fsspec.filesystem("git", skip_instance_cache=True, **given), (folder if at else inner).strip("/")
        if scheme == "zip" and os.path.exists(archive := url.rpartition("::")[2]) and not os.path.isfile(archive):
            raise OSError(errno.EINVAL, "it is not a regular file")
        found: tuple[Any, str] = fsspec.url_to_fs(url, use_listings_cache=False, skip_instance_cache=True)
        return found
    except SignetSyncError:
        raise
    except ImportError:
        hint = extra_hint("s3") if scheme == "s3" else "install the library that fsspec names for it"
        raise UsageError(f"{scheme}:// needs another library", path=shown(url), hint=hint) from None
    except Exception as error:  # noqa: BLE001 - each library has errors of its own
        if isinstance(error, ValueError) and "Protocol" in str(error):
            hint = "s3, zip, git and what else fsspec knows"
            raise UsageError(f"there is no way to read {scheme}://", path=shown(url), hint=hint) from None
        raise unreachable(url, error) from None


def _checked_repository(where: str) -> str:
    """Returns the path of a repository of this machine; one that points elsewhere is refused, as everywhere."""
    path = os.path.abspath(os.path.expanduser(where))
    if not os.path.isdir(path):
        raise WorkspaceError("the repository does not exist", path=path, hint="check its address")
    bare = not os.path.lexists(os.path.join(path, ".git"))
    if why := repository.objection(path, "." if bare else ".git"):
        hint = "see docs/history.md, *Repositories we refuse*"
        raise UsageError(f"the repository is not opened: {why}", path=path, hint=hint)
    repository.require()
    return path


class RemoteVault:
    """A folder of a file system of fsspec, all of whose entries are known; its files are read many at once.

    A file that changes between the listing and its reading gets the verdict of the bytes that were read; its signature
    is that of the listing, so that the next look at it sees the change.
    """

    def __init__(self, system: Any, path: str, url: str) -> None:
        self.entries: dict[str, os.stat_result | RemoteVault] = {}
        self._system, self._path, self._url = system, path, url
        self._begun: dict[str, bytes | BaseException] = {}

    def names(self) -> list[str]:
        """Returns every name."""
        return list(self.entries)

    def list(self) -> Iterator[tuple[str, os.stat_result | OSError]]:
        """Yields every name with its status."""
        yield from ((name, _status({"type": "directory"}) if isinstance(one, RemoteVault) else one)
                    for name, one in self.entries.items())  # fmt: skip

    def status(self, name: str) -> os.stat_result | None:
        """Returns the status of a name; None if nothing is there."""
        found = self.entries.get(name)
        return _status({"type": "directory"}) if isinstance(found, RemoteVault) else found

    @contextmanager
    def inside(self, name: str) -> "Iterator[RemoteVault | None]":
        """Yields a folder of this one."""
        found = self.entries.get(name)
        yield found if isinstance(found, RemoteVault) else None

    def read(self, name: str, limit: int) -> Found | Trouble:
        """Reads what the listing shows to be a regular file of bearable size; answers as a disk does."""
        status = self.status(name)
        if status is None:
            return Trouble("gone", "it is not there")
        if stat.S_ISLNK(status.st_mode):
            return Trouble("not-a-file", "it is a symlink")
        if not stat.S_ISREG(status.st_mode):
            return Trouble("not-a-file", f"it is a {kind_of(status.st_mode)}", signature_of(status))
        if status.st_size > limit:
            return Trouble("too-large", f"{status.st_size:,} bytes, more than {limit:,}", signature_of(status))
        if name not in self._begun:
            self._fetch(name, limit)
        raw = self._begun.pop(name)
        if isinstance(raw, FileNotFoundError):
            return Trouble("gone", "it is not there")
        if isinstance(raw, PermissionError):
            return Trouble("unreadable", f"it cannot be opened: {os.strerror(errno.EACCES)}")
        if isinstance(raw, BaseException):
            _listed(self._system, self._path, self._url)  # raises where the whole place does not answer
            said = raw.strerror if isinstance(raw, OSError) and raw.strerror else type(raw).__name__
            return Trouble("unreadable", f"reading failed: {sanitize_line(shown(said))[:300]}")
        if len(raw) != status.st_size:
            return Trouble("unsettled", "it changed while it was read", signature_of(status))
        return Found(raw, signature_of(status))

    def _fetch(self, name: str, limit: int) -> None:
        """Reads a file, and where the file system asks for many at once also those that come after it by name."""
        wanted, size = {name: self.status(name)}, 0
        if getattr(self._system, "async_impl", False):
            for other, status in sorted(self.list(), key=lambda one: one[0]):
                if other > name and isinstance(status, os.stat_result) and stat.S_ISREG(status.st_mode):
                    size += status.st_size
                    if len(wanted) == _AT_ONCE or size > _MOST_BYTES:
                        break
                    if status.st_size <= limit:
                        wanted[other] = status
        sizes = {one: status.st_size for one, status in wanted.items() if status is not None}
        self._begun = {one: b"" for one, length in sizes.items() if not length}
        asked = [one for one, length in sizes.items() if length]
        paths = [f"{self._path}/{one}".lstrip("/" if not self._path else "") for one in asked]
        try:
            # Never more than an entry states and one byte: an archive may hold more.
            found = self._system.cat_ranges(paths, 0, [sizes[one] for one in asked], on_error="return") if asked else []
        except Exception as error:  # noqa: BLE001 - damage of many kinds, and the errors of any place
            found = [error] * len(asked)
        self._begun |= dict(zip(asked, found, strict=True))


def _listed(system: Any, path: str, url: str) -> RemoteVault:
    """Lists a place with all that is below it. Raises `Unreachable`, `WorkspaceError` where it may not be read."""
    top = RemoteVault(system, path, url)
    try:
        found = system.find(path, detail=True)
    except FileNotFoundError:
        return top
    except PermissionError:
        hint = "check the rights of the credentials"
        raise WorkspaceError("the workspace cannot be read", path=shown(url), hint=hint) from None
    except Exception as error:  # noqa: BLE001 - as above
        raise unreachable(url, error) from None
    below = f"{path}/" if path else ""
    for full, info in found.items():
        parts = full[len(below) :].split("/") if full.startswith(below) else [""]
        # What no folder of this machine could hold is not looked at.
        if any(part in ("", ".", "..", ".git") or "\0" in part for part in parts):
            continue
        folder = top
        for depth, part in enumerate(parts[:-1], 1):
            inner = folder.entries.get(part)
            if not isinstance(inner, RemoteVault):  # a store may have a file and a folder of one name
                inner = folder.entries[part] = RemoteVault(system, below + "/".join(parts[:depth]), url)
            folder = inner
        if parts[-1] not in folder.entries:
            folder.entries[parts[-1]] = _status(info)
    return top


def _status(info: dict[str, Any]) -> os.stat_result:
    """Makes the status of an entry of a listing: its version stands where a file of a disk has its inode."""
    version = " ".join(f"{info[name]}" for name in _VERSIONS if info.get(name))
    inode = int.from_bytes(sha256(version.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1
    # The kind is in the mode of an entry of git, and in the attributes of one of an archive that was made on Unix.
    mode = info.get("mode", 0)
    mode = int(mode, 8) if isinstance(mode, str) else mode or 0
    if info.get("create_system") == 3:
        mode = info["external_attr"] >> 16
    kind = stat.S_IFDIR if info["type"] == "directory" else stat.S_IFREG if info["type"] == "file" else stat.S_IFCHR
    if info.get("islink") or info["type"] == "link" or stat.S_ISLNK(mode):
        kind = stat.S_IFLNK
    size, inode = (0, 0) if kind == stat.S_IFDIR else (int(info["size"] or 0), inode)
    return os.stat_result((kind, inode, 0, 1, 0, 0, size, 0, 0, 0), {"st_mtime_ns": 0, "st_ctime_ns": 0})


def shown(url: str) -> str:
    """Returns a URL as it may be printed and stored: without user, password and query, which may be secret."""
    return display(_SECRET.sub("", url))


def unreachable(url: str, error: BaseException) -> Unreachable:
    """Returns the error for a place that does not answer. What its library says may quote the URL."""
    said = sanitize_line(shown(f"{type(error).__name__}: {error}"))[:300]
    hint = "check its address, the network and the credentials of this machine"
    return Unreachable(f"the workspace cannot be reached: {said}", path=shown(url), hint=hint)
