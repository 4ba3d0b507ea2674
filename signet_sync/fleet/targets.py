"""Finds the workspaces that the command line or a list names; every match has one state in the answer.

`ok`, `empty` (no artifact), `damaged` (something in it is wrong, or it is no workspace), `vanished` (nothing is there)
or `unreachable` (its place does not answer: this says nothing about the workspace).
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from signet_sync.errors import ConfigError, SignetSyncError, Unreachable, UsageError, place_of, sentence_of
from signet_sync.fleet.places import file_system, shown
from signet_sync.formats.paths import display

STATES = ("ok", "empty", "damaged", "vanished", "unreachable")
_GLOB = re.compile(r"[*?\[]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def matches(targets: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Returns what targets match, sorted, each once: an absolute path or URL, and its state and why, if known already.

    A target is a folder, a URL, a glob of them, or `@FILE` with one a line. A glob matches folders and follows no link.
    Raises `UsageError` for what is no target, `ConfigError` with file and line for a faulty list.
    """
    named = (one for target in targets for one in (_listed(target[1:]) if target[:1] == "@" else _expanded(target)))
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


def _listed(path: str) -> Iterator[tuple[str, str, str]]:
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
