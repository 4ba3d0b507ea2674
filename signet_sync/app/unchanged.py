"""Answers a full pass that finds nothing to do from one snapshot file, before the code of a pass is loaded.

A pass that found nothing to do leaves a snapshot: its answer, the key of everything it looked at, and until when time
alone changes nothing. If the key is the same, the answer is still true. In any other case, including a snapshot that is
damaged or of another version, the pass runs: the disk decides, and this file proves nothing by itself.

Every commit to the database deletes the file first (`storage.database.connection`). If a crash undoes the deletion, the
commit has still changed the signature of the database or of its log.
"""

from __future__ import annotations

import json
import marshal
import os
import stat
import struct
import sys
import time
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

import signet_sync
from signet_sync.errors import WorkspaceError
from signet_sync.formats.paths import MEMORY, OWN, TEMPORARY, TOMBSTONES, WORDS
from signet_sync.formats.timestamps import iso
from signet_sync.storage import locations
from signet_sync.storage.durable import READ, publish, unlink
from signet_sync.storage.files import folder
from signet_sync.storage.locations import SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from signet_sync.sync.workspace import Outcome

_FORMAT = "signet-sync snapshot 5"
# File-system clocks tick every few milliseconds: a younger file may be written again and keep its signature.
YOUNG_NS = 100_000_000
_LIFTED = f"{TOMBSTONES}/lifted"
_DAEMON = ".daemon"
# Below the root and below an agent's folder: the folders in which a pass looks, to any depth.
_LOOKED_INTO = ("ledger", "entities", OWN, _DAEMON)
# Contents of the state folder to which a pass reacts.
_FOLDERS = ("journal", "live", "spool", "backups")
_FILES = ("settings.json", "workspace.json")

Sign = tuple[int, int, int, int]
Signs = dict[str, Sign | None]  # by name or path; None for a folder
_packed = struct.Struct("<4q").pack


class Look:
    """Everything that decides what a pass does, but the clock, as it is at one moment.

    `key` identifies it, and is None for what cannot be compared. `settled` tells whether nothing waits for a later time
    or another program, and no file is so young that it could change and keep its signature.
    """

    def __init__(self, root: str, database: str | None) -> None:
        """Looks at a workspace and at the database that was chosen for it (None: that of its state folder)."""
        self.root = root
        self.state = locations.locate(root)
        self.database = database or self.state.database
        self.place = self.database + SNAPSHOT
        self.key: str | None = None
        self.settled = False
        oldest_ns = time.time_ns() - YOUNG_NS
        with suppress(OSError, ValueError, struct.error, WorkspaceError):  # a pass says what is wrong
            inputs = _inputs(root, self.state, self.database) if self.database != ":memory:" else None
            if inputs is not None:
                # Of version 2: from 3 on the same values may give other bytes.
                self.key = sha256(marshal.dumps(inputs, 2)).hexdigest()
                self.settled = _is_at_rest(inputs) and max(_times(inputs)) < oldest_ns


def answer(look: Look, now_us: int) -> dict[str, Any] | None:
    """Returns the document of a pass that would find nothing to do; None if a pass has to run."""
    started = time.perf_counter()
    try:
        saved = _read(look.place) if look.key is not None else None
        if saved is None or saved["key"] != look.key or not saved["from_us"] <= now_us < saved["until_us"]:
            return None
        document: dict[str, Any] = {**saved["document"], "now": iso(now_us)}
        data = json.dumps({"last_full_pass": document["now"]}) + "\n"
        os.close(publish(os.path.join(look.state.path, "last-pass.json"), data.encode(), durable=False))
    except (OSError, LookupError, TypeError, ValueError):
        return None  # another program wrote it, with a correct digest
    document["elapsed_ms"] = round((time.perf_counter() - started) * 1000, 1)
    return document


def drop(look: Look) -> None:
    """Deletes the snapshot, because a pass that may write is about to run."""
    with suppress(OSError):
        unlink(look.place)


def save(before: Look, outcome: Outcome, document: dict[str, Any], now_us: int, until_us: int | None) -> None:
    """Writes a snapshot of a pass if it found nothing to do and nothing changed since the look `before` it.

    The database is closed again.
    """
    if outcome.read or outcome.deferred or outcome.unsettled or until_us is None or before.key is None:
        return
    if document["halted"] or document["held"] or document["trouble"]:
        return
    now = Look(before.root, before.database)
    if now.key != before.key or not (before.settled and now.settled):
        return
    value = {"key": now.key, "document": document, "from_us": now_us, "until_us": until_us}
    body = json.dumps(value).encode()
    try:
        # The digest detects what a power loss leaves of the file.
        os.close(publish(now.place, sha256(body).hexdigest().encode() + b"\n" + body, durable=False))
    except OSError:
        drop(now)


def _read(place: str) -> dict[str, Any] | None:
    """Returns the content of a snapshot; None if it is not whole. Raises `OSError`, `ValueError`."""
    with open(os.open(place, READ), "rb") as file:
        digest, _, body = file.read().partition(b"\n")
    saved = json.loads(body) if digest.decode() == sha256(body).hexdigest() else None
    return saved if isinstance(saved, dict) else None


# ── what decides what a pass does ──


def _inputs(root: str, state: locations.StateFolder, database: str) -> dict[str, Any] | None:
    """Returns everything that decides what a pass does, except the clock. Raises `OSError`, `ValueError`."""
    real, beside = os.path.realpath(root), os.path.dirname(os.path.abspath(database))
    if os.path.realpath(beside).startswith(os.path.join(real, "")):
        return None  # a file in the vault would be carried to other machines
    base = os.path.basename(database)
    passing = (f"{base}-wal", f"{base}-shm", f"{base}{SNAPSHOT}")
    own = _listing(state.path)
    log = _file(f"{database}-wal")
    return {
        # Other rules, another schema or another sanitizer come with another file.
        "program": [_FORMAT, signet_sync.__version__, sys.version, _file(signet_sync.__file__)],
        "workspace": [root, real, locations.read_id(real), state.path, database],
        "settings": _file(locations.user_file()),
        "environment": sorted(one for one in os.environ.items() if one[0].startswith("SIGNET_")),
        "database": {"": _sign(os.stat(database)), "-wal": log if log and log[0] else None},
        "beside": sorted(name for name in os.listdir(beside) if name.startswith(base) and not name.startswith(passing)),
        "state": {name: _listing(os.path.join(state.path, name)) for name in _FOLDERS}
        | {"": {name: sign for name, sign in own.items() if name in _FILES or name.endswith(".tmp")}},
        "vault": dict(_walk(root, "")) | {where: _listing_inside(root, where) for where in (_LIFTED, WORDS)},
        "memory": [_contents(root, where) for where in (MEMORY, TOMBSTONES)],
    }


def _is_at_rest(inputs: dict[str, Any]) -> bool:
    """Returns whether nothing waits for a later time or for another program."""
    vault, state = inputs["vault"], inputs["state"]
    return not (
        inputs["memory"][0] is None
        or state["journal"]
        or any(sign is not None for sign in state["spool"].values())
        or any(path.startswith((f"{TEMPORARY}/", f"{_DAEMON}/pid")) for path in vault)
        or any(".tmp" in name for name in (*state[""], *state["live"], *state["backups"]))
    )


def _times(value: Any) -> Iterator[int]:
    """Yields when each file changed whose signature is in the inputs."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _times(inner)
    elif isinstance(value, tuple) and isinstance(value[0], int):
        yield value[2]


def _contents(root: str, where: str) -> tuple[int, bytes, int, list[str]] | None:
    """Returns number, digest and last change of a folder's files, and its folders; None if it is missing.

    Raises `OSError`; `ValueError` for anything but files and folders.
    """
    digest, folders, number, newest = sha256(), list[str](), 0, 0
    try:
        with folder(root, where) as descriptor, os.scandir(descriptor) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    size, modified, changed, inode = _sign(status)
                    digest.update(os.fsencode(entry.name) + b"/" + _packed(size, modified, changed, inode))
                    number += 1
                    newest = changed if changed > newest else newest
                elif stat.S_ISDIR(status.st_mode):
                    folders.append(entry.name)
                else:
                    raise ValueError(entry.name)
    except FileNotFoundError:
        return None
    return number, digest.digest(), newest, sorted(folders)


def _sign(status: os.stat_result) -> Sign:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _file(path: str) -> Sign | None:
    """Returns the signature of a file, which may be a link; None if there is none. Raises `OSError`."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path} is not a regular file")
    return _sign(status)


def _listing(path: str | int) -> Signs:
    """Returns the signatures of a folder's entries, None for a folder; empty if the folder is missing."""
    found: Signs = {}
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                found[entry.name] = None if is_folder else _sign(entry.stat(follow_symlinks=False))
    except FileNotFoundError:
        return {}
    return found


def _listing_inside(root: str, where: str) -> Signs:
    """Returns the same of a folder of the vault; a link in its place is not followed. Raises `WorkspaceError`."""
    try:
        with folder(root, where) as descriptor:
            return _listing(descriptor)
    except FileNotFoundError:
        return {}


def _walk(root: str, where: str) -> Iterator[tuple[str, Sign | None]]:
    """Yields path and signature of everything in the folders that a pass looks into. Raises `OSError`."""
    for name, sign in _listing(os.path.join(root, where)).items():
        path = f"{where}/{name}" if where else name
        yield path, sign
        if sign is None and _is_looked_into(path):
            yield from _walk(root, path)


def _is_looked_into(path: str) -> bool:
    parts = path.split("/")
    if parts[0] == "agents":
        parts = parts[2:]
    return not parts or parts[0] in _LOOKED_INTO
