"""Finds workspaces by what names them, and opens each wherever it is: a folder, or anything that fsspec reads.

Every match has one state in an answer: `ok`, `empty` (no artifact), `damaged` (something in it is wrong, or it is no
workspace), `vanished` (nothing is there) or `unreachable` (its place does not answer: this says nothing about it).
"""

import errno
import glob
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import accumulate
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
from signet_sync.formats.paths import MEMORY, OWN, SETTINGS, TOMBSTONES, WORDS, display
from signet_sync.history import repository
from signet_sync.settings import model
from signet_sync.storage.files import require_root
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
_LONGEST = 255  # bytes of a name


# ── what names workspaces ──


def matches(targets: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Returns what targets match, sorted, each once: an absolute path or URL, and its state and why, if known already.

    A target is a folder, a URL, a glob of them, or `@FILE` with one a line. A glob matches folders and follows no link.
    Raises `UsageError` for what is no target, `ConfigError` with file and line for a faulty list.
    """
    named = (one for target in targets for one in (_read_list(target[1:]) if target[:1] == "@" else _expand(target)))
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
            yield from _expand(one) if one and one[0] != "#" else ()
        except UsageError as error:
            raise ConfigError(f"line {number}: {error.message}", path=path, hint=error.hint) from None


def _expand(target: str) -> Iterator[tuple[str, str, str]]:
    """Yields a target, or what its glob matches."""
    if not target or "\0" in target:
        raise UsageError("a target is empty", hint="name a folder, a URL or @FILE")
    if _URL.match(target):
        url = _check_url(target)
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


def _check_url(target: str) -> str:
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
        yield mask_url(url), "unreachable", f"this cannot be listed: {why}"
        return
    yield from ((fixed + path.removeprefix(start), "", "") for path in found)
    if not found:
        yield mask_url(url), "vanished", "this glob finds no folder"


# ── one of them, open ──


class Place(NamedTuple):
    """A workspace that is open: its name, and the folder of this machine where its files are, or are fetched into.

    `version` changes with every file of one elsewhere; it is empty for one of this machine, or without `memory/`.
    """

    name: str
    root: str
    version: str = ""
    fetch: Callable[[], None] = lambda: None


@contextmanager
def open_place(url: str) -> Iterator[Place]:
    """Yields a workspace by its path or URL; the name is without what is secret in a URL.

    One elsewhere is listed, and fetched into a folder of the user's own, which is deleted afterwards. Raises
    `UsageError` for a URL that cannot be read, `WorkspaceError` for what is no folder, `Unreachable` for a place that
    does not answer: what was not seen must not be taken for missing.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme == "file":
        path = os.path.abspath(os.path.expanduser(rest if separator else url))
        require_root(path)
        yield Place(path, path)
        return
    system, path = file_system(url)
    entries = _list_entries(system, path.rstrip("/"), url)
    if not entries:
        hint = "check its address; a place without files counts as missing"
        raise WorkspaceError("the workspace does not exist", path=mask_url(url), hint=hint)
    listed = repr(sorted(entries.items())) if any(one.startswith(f"{MEMORY}/") for one in entries) else ""
    version = listed and sha256(listed.encode("utf-8", "surrogatepass")).hexdigest()
    with tempfile.TemporaryDirectory(prefix="signet-sync-") as folder:
        yield Place(mask_url(url), folder, version, lambda: _fetch(system, entries, folder, url))


def file_system(url: str) -> tuple[Any, str]:
    """Returns fsspec's file system and the path in it. Raises `UsageError`, `Unreachable`.

    Settings and credentials are fsspec's own: its configuration and environment, and those of the store's library.
    """
    scheme, _, rest = url.partition("://")
    try:
        import fsspec
    except ImportError:
        raise UsageError("URLs need an extra", path=mask_url(url), hint=extra_hint("fleet")) from None
    try:
        if scheme == "git":  # `git://PATH:REF@FOLDER`, as fsspec writes it; without a ref it is the HEAD
            where, _, inner = rest.partition(":")
            ref, at, folder = inner.partition("@")
            given = {"path": _check_repository(where), "ref": ref if at and ref else "HEAD"}
            return fsspec.filesystem("git", skip_instance_cache=True, **given), (folder if at else inner).strip("/")
        if scheme == "zip" and os.path.exists(archive := url.rpartition("::")[2]) and not os.path.isfile(archive):
            raise OSError(errno.EINVAL, "it is not a regular file")
        found: tuple[Any, str] = fsspec.url_to_fs(url, use_listings_cache=False, skip_instance_cache=True)
        return found
    except SignetSyncError:
        raise
    except ImportError:
        hint = extra_hint("s3") if scheme == "s3" else "install the library that fsspec names for it"
        raise UsageError(f"{scheme}:// needs another library", path=mask_url(url), hint=hint) from None
    except Exception as error:  # noqa: BLE001 - each library has errors of its own
        if isinstance(error, ValueError) and "Protocol" in str(error):
            hint = "s3, zip, git and what else fsspec knows"
            raise UsageError(f"there is no way to read {scheme}://", path=mask_url(url), hint=hint) from None
        raise unreachable(url, error) from None


def _check_repository(where: str) -> str:
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


class _Entry(NamedTuple):
    """A file of a place: its path there, its size, and what changes with it; a link has no size."""

    path: str
    size: int | None
    version: str


def _list_entries(system: Any, path: str, url: str) -> dict[str, _Entry]:
    """Lists the files below a place by path. Raises `Unreachable`, `WorkspaceError` where it may not be read."""
    try:
        found = system.find(path, detail=True)
    except FileNotFoundError:
        return {}
    except PermissionError:
        hint = "check the rights of the credentials"
        raise WorkspaceError("the workspace cannot be read", path=mask_url(url), hint=hint) from None
    except Exception as error:  # noqa: BLE001 - as above
        raise unreachable(url, error) from None
    below = f"{path}/" if path else ""
    entries = {
        full[len(below) :]: _make_entry(full, info)
        for full, info in found.items()
        if full.startswith(below) and _is_plain(full[len(below) :])
    }
    # A store may have a file and a folder of one name.
    folders = {"/".join(parts[:n]) for one in entries if (parts := one.split("/")) for n in range(1, len(parts))}
    return {one: entry for one, entry in entries.items() if one not in folders}


def _is_plain(path: str) -> bool:
    """Returns whether a folder of this machine could hold it; a repository and what is of one machine are left out."""
    parts = path.split("/")
    with suppress(UnicodeEncodeError):
        short = all(len(os.fsencode(part)) <= _LONGEST for part in parts)
        return short and "\0" not in path and not {"", ".", "..", ".git", OWN}.intersection(parts)
    return False


def _make_entry(full: str, info: dict[str, Any]) -> _Entry:
    # The kind is in the mode of an entry of git, and in the attributes of one of an archive that was made on Unix.
    mode = info.get("mode", 0)
    mode = int(mode, 8) if isinstance(mode, str) else mode or 0
    if info.get("create_system") == 3:
        mode = info["external_attr"] >> 16
    link = info.get("islink") or info["type"] == "link" or stat.S_ISLNK(mode)
    version = " ".join(f"{info[name]}" for name in _VERSIONS if info.get(name))
    return _Entry(full, None if link else int(info["size"] or 0), version)


def _fetch(system: Any, entries: Mapping[str, _Entry], root: str, url: str) -> None:
    """Copies what is read of a workspace into an empty folder; of other files and larger ones name and size.

    Raises `Unreachable` if a file cannot be read, or is not as it was listed.
    """
    wanted: dict[str, _Entry] = {}
    own = {SETTINGS: entries[SETTINGS]} if SETTINGS in entries else {}
    _copy(system, {path: one for path, one in own.items() if one.size and one.size <= model.FILE_LIMIT}, root, url)
    limit = model.load(root)[0].max_file_bytes
    for path, one in entries.items():
        place = os.path.join(root, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if one.size is None:
            os.symlink("elsewhere", place)
        elif one.size and one.size <= limit and _is_read(path):
            wanted[path] = one
        else:
            with open(place, "wb") as file:
                file.truncate(one.size)
    _copy(system, wanted, root, url)


def _is_read(path: str) -> bool:
    """Returns whether a pass or check reads a file of a workspace, and not only its name."""
    folder, _, name = path.rpartition("/")
    if folder.startswith(f"{MEMORY}/") and folder not in (TOMBSTONES, WORDS, f"{TOMBSTONES}/lifted"):
        return False
    return name.endswith((".md", ".jsonl", ".toml"))


def _copy(system: Any, wanted: Mapping[str, _Entry], root: str, url: str) -> None:
    """Copies files, many at once, as an object store takes long for each."""
    left = sorted(wanted.items())
    while left:
        sizes = accumulate(one.size or 0 for _, one in left[:_AT_ONCE])
        count = max(1, sum(size <= _MOST_BYTES for size in sizes))
        some, left = left[:count], left[count:]
        try:
            # Never more than an entry states: an archive may hold more.
            found = system.cat_ranges([one.path for _, one in some], 0, [one.size for _, one in some])
        except Exception as error:  # noqa: BLE001 - damage of many kinds, and the errors of any place
            raise unreachable(url, error) from None
        for (path, one), raw in zip(some, found, strict=True):
            if not isinstance(raw, bytes) or len(raw) != one.size:
                raise unreachable(url, raw if isinstance(raw, Exception) else ValueError(f"{path} changed meanwhile"))
            with open(os.path.join(root, path), "wb") as file:
                file.write(raw)


def mask_url(url: str) -> str:
    """Returns a URL as it may be printed and stored: without user, password and query, which may be secret."""
    return display(_SECRET.sub("", url))


def unreachable(url: str, error: BaseException) -> Unreachable:
    """Returns the error for a place that does not answer. What its library says may quote the URL."""
    said = sanitize_line(mask_url(f"{type(error).__name__}: {error}"))[:300]
    hint = "check its address, the network and the credentials of this machine"
    return Unreachable(f"the workspace cannot be reached: {said}", path=mask_url(url), hint=hint)
