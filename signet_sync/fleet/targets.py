"""Finds the workspaces that the command line, a list or a fleet file names."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote, urlsplit

from signet_sync.errors import ConfigError, SignetSyncError, UsageError, place_of
from signet_sync.fleet import fleet_file
from signet_sync.fleet.places.object_stores import file_system
from signet_sync.formats.paths import MEMORY

_GLOB = re.compile(r"[*?\[]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# Whose URLs name one workspace each.
_SINGLE = ("git+", "zip:", "http:", "https:")
# Requests at a time to an object store, which takes tens of milliseconds for each.
_AT_ONCE = 32


def workspaces(targets: Sequence[str]) -> list[str]:
    """Returns the workspaces of targets, each once, sorted: absolute paths, and URLs in which nothing is secret.

    A target is a folder, a URL, a glob of them, `@FILE` with one a line, or a fleet file. A glob finds the folders
    that have a `memory/`; it follows no link. Raises `UsageError` if a target names nothing, `ConfigError` with file
    and line for a faulty file.
    """
    found: dict[str, str] = {}
    for name in sorted(one for target in targets for one in _named(target)):
        found.setdefault(name if _URL.match(name) else os.path.realpath(name), name)
    return sorted(found.values())


def tables(targets: Sequence[str]) -> str | None:
    """Returns the folder of tables that the fleet files among targets name, None if none does. Raises `ConfigError`."""
    named = {one for target in targets if _is_fleet_file(target) if (one := fleet_file.read(target).tables)}
    if len(named) > 1:
        raise ConfigError(
            f"the fleet files name different folders of tables: {', '.join(sorted(named))}", hint="use --tables"
        )
    return named.pop() if named else None


def _named(target: str) -> Iterator[str]:
    if target.startswith("@"):
        yield from _of_list(target[1:])
    elif _is_fleet_file(target):
        folder = os.path.dirname(os.path.abspath(target))
        for one in fleet_file.read(target).targets:
            yield from _at(target, one, folder)
    else:
        yield from _expanded(target, os.curdir)


def _of_list(path: str) -> Iterator[str]:
    """Yields what a list names; `-` is the standard input. Paths are relative to the current folder."""
    text = fleet_file.read_text("/dev/stdin" if path == "-" else path)
    wanted = [(number, one) for number, line in enumerate(text.split("\n"), 1) if (one := line.strip())]
    wanted = [(number, one) for number, one in wanted if not one.startswith("#")]
    if not wanted:
        raise ConfigError("names no workspace", path=path, hint="write one folder or URL on each line")
    for number, one in wanted:
        yield from _at(path, one, os.curdir, f"line {number}: ")


def _at(path: str, target: str, folder: str, place: str = "") -> Iterable[str]:
    """Returns what a target in a file names; an error says where it is."""
    try:
        return list(_expanded(target, folder))
    except UsageError as error:
        message = f"{place}{error.message}" + (f": {error.path}" if error.path else "")
        raise ConfigError(message, path=path, hint=error.hint) from None


def _is_fleet_file(target: str) -> bool:
    return target.endswith(".toml") and not _URL.match(target) and not os.path.isdir(target)


def _expanded(target: str, folder: str) -> Iterator[str]:
    if not target or "\0" in target:
        raise UsageError("a target is empty", hint="name a folder, a URL or @FILE")
    if _URL.match(target):
        url = _url(target)
        if not url.startswith("file:"):
            begins = _GLOB.search(url)
            yield from (url,) if begins is None else _of_glob_url(url, begins.start())
            return
        target = unquote(url.removeprefix("file://"))
    folder, name = os.path.abspath(folder), os.path.expanduser(target)
    path = os.path.normpath(os.path.join(folder, name))
    # A folder may have such a name itself.
    glob_begins = _GLOB.search(name)
    if glob_begins is None or os.path.lexists(path):
        yield path
        return
    pattern = os.path.join(glob.escape(folder), name)
    fixed, _, _ = name[: glob_begins.start()].rpartition("/")
    start = os.path.join(folder, f"{fixed}/" if fixed or name.startswith("/") else "")
    found = {
        os.path.normpath(one)
        for one in glob.iglob(pattern, recursive=True)
        if _is_plain_folder(os.path.join(one, MEMORY), start)
    }
    if not found:
        raise _nothing(target)
    yield from found


def _is_plain_folder(path: str, start: str) -> bool:
    """Returns whether a path leads to a folder, and none of its parts below `start` is a link."""
    return os.path.isdir(path) and os.path.realpath(path) == os.path.join(
        os.path.realpath(start), os.path.relpath(path, start)
    )


def _nothing(target: str) -> UsageError:
    return UsageError(
        "this finds no workspace",
        path=target,
        hint=f"a glob finds folders that have a {MEMORY}/; quote it, so that the shell leaves it alone",
        code="no-workspace",
    )


def _url(target: str) -> str:
    """Returns a URL in one form. Raises `UsageError` if it contains a secret: it would get into tables and lists."""
    scheme, _, rest = target.partition("://")
    url = f"{scheme.lower()}://{rest.rstrip('/')}"
    for part in url.split("::"):
        _, _, place = part.partition("://")
        user, at, _ = place.partition("/")[0].rpartition("@")
        if at and (":" in user or not re.match(r"git\+ssh:|ssh:", part)):
            raise UsageError(
                f"a {scheme.lower()}:// URL contains a user or password",
                hint="leave them out: the environment, the cloud's own settings or an SSH key give access",
                code="secret-in-url",
            )
    if not urlsplit(url).netloc and scheme.lower() not in ("file", "zip", "git+file", "memory"):
        raise UsageError("this URL names no place", path=target, hint="for example: s3://bucket/agents/*")
    return url


def _of_glob_url(url: str, glob_begins: int) -> list[str]:
    if url.startswith(_SINGLE):
        raise UsageError("a URL of this kind is no glob", path=url, hint="name each, for example in a file: @FILE")
    fixed = url[: url.rindex("/", 0, glob_begins)]
    store, pattern = file_system(url)
    _, start = file_system(fixed)
    try:
        matches = sorted(path for path, what in store.glob(pattern, detail=True).items() if what["type"] == "directory")
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            with_memory = list(pool.map(store.isdir, (f"{path}/{MEMORY}" for path in matches)))
    except Exception as error:  # noqa: BLE001 - each store has its own; its text may repeat what gave access
        why = error.strerror if isinstance(error, OSError) and error.strerror else place_of(error)
        raise SignetSyncError(
            f"this cannot be listed: {why}", path=url, hint="check the address and what gives access", code="unlisted"
        ) from None
    found = [fixed + path.removeprefix(start) for path, has in zip(matches, with_memory, strict=True) if has]
    if not found:
        raise _nothing(url)
    return found
