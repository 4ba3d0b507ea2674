"""Finds the workspaces that the command line or a list names."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote, urlsplit

from signet_sync.errors import ConfigError, SignetSyncError, UsageError, place_of
from signet_sync.fleet.places import file_system
from signet_sync.formats.paths import MEMORY

_GLOB = re.compile(r"[*?\[]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_GLOB_HINT = f"a glob finds folders that have a {MEMORY}/; quote it, so that the shell leaves it alone"


def workspaces(targets: Sequence[str]) -> list[str]:
    """Returns the workspaces of targets, each once, sorted: absolute paths, and URLs in which nothing is secret.

    A target is a folder, a URL, a glob of them, or `@FILE` with one a line. A glob finds the folders that have a
    `memory/`; it follows no link. Raises `UsageError` if a target names nothing, `ConfigError` with file and line for
    a faulty file.
    """
    found: dict[str, str] = {}
    named = (one for target in targets for one in (_listed(target[1:]) if target[:1] == "@" else _expanded(target)))
    for name in sorted(named):
        found.setdefault(name if _URL.match(name) else os.path.realpath(name), name)
    return sorted(found.values())


def _listed(path: str) -> Iterator[str]:
    """Yields what a list names; `-` is the standard input. Paths are relative to the current folder."""
    try:
        with open("/dev/stdin" if path == "-" else path, encoding="utf-8-sig") as file:
            lines = file.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"cannot be read: {why}", path=path, hint="name an existing file of UTF-8 lines") from None
    wanted = [(number, one) for number, line in enumerate(lines, 1) if (one := line.strip()) and one[0] != "#"]
    if not wanted:
        raise ConfigError("names no workspace", path=path, hint="write one folder or URL on each line")
    for number, one in wanted:
        try:
            yield from list(_expanded(one))
        except UsageError as error:
            message = f"line {number}: {error.message}" + (f": {error.path}" if error.path else "")
            raise ConfigError(message, path=path, hint=error.hint) from None


def _expanded(target: str) -> Iterator[str]:
    """Yields a target, or what its glob finds."""
    if not target or "\0" in target:
        raise UsageError("a target is empty", hint="name a folder, a URL or @FILE")
    if _URL.match(target):
        url = _checked_url(target)
        if not url.startswith("file:"):
            begins = _GLOB.search(url)
            yield from (url,) if begins is None else _glob_url(url, begins.start())
            return
        target = unquote(url.removeprefix("file://"))
    name = os.path.expanduser(target)
    path = os.path.abspath(name)
    begins = _GLOB.search(name)
    if begins is None or os.path.lexists(path):  # a folder may have such a name itself
        yield path
        return
    start = os.path.join(os.path.abspath(name[: begins.start()].rpartition("/")[0] or ("/" if name[0] == "/" else ".")))
    found = {
        os.path.abspath(one)
        for one in glob.iglob(name, recursive=True)
        if os.path.isdir(memory := os.path.join(os.path.abspath(one), MEMORY))
        # None of its parts below `start` is a link.
        and os.path.realpath(memory) == os.path.join(os.path.realpath(start), os.path.relpath(memory, start))
    }
    if not found:
        raise UsageError("this finds no workspace", path=target, hint=_GLOB_HINT, code="no-workspace")
    yield from found


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
    return url


def _glob_url(url: str, begins: int) -> list[str]:
    """Returns the folders of a store that a glob finds, as URLs."""
    if url.startswith(("git:", "zip:", "http:", "https:")):
        raise UsageError("a URL of this kind is no glob", path=url, hint="name each, for example in a file: @FILE")
    fixed = url[: url.rindex("/", 0, begins)]
    store, pattern = file_system(url)
    _, start = file_system(fixed)
    try:
        matches = sorted(path for path, what in store.glob(pattern, detail=True).items() if what["type"] == "directory")
        with ThreadPoolExecutor(32) as pool:
            with_memory = list(pool.map(store.isdir, (f"{path}/{MEMORY}" for path in matches)))
    except Exception as error:  # noqa: BLE001 - each store has its own; its text may repeat what gave access
        why = error.strerror if isinstance(error, OSError) and error.strerror else place_of(error)
        hint = "check the address and what gives access"
        raise SignetSyncError(f"this cannot be listed: {why}", path=url, hint=hint, code="unlisted") from None
    found = [fixed + path.removeprefix(start) for path, has in zip(matches, with_memory, strict=True) if has]
    if not found:
        raise UsageError("this finds no workspace", path=url, hint=_GLOB_HINT, code="no-workspace")
    return found
