"""Answers a full pass that finds nothing to do from one snapshot file, before the code of a pass is loaded.

A pass that found nothing to do leaves a snapshot: its answer, the signatures of everything it looked at, and until when
time alone changes nothing. If all of that is unchanged, the answer is still true. In any other case, including a
snapshot that is damaged or of another version, the pass runs: the disk decides, and this file proves nothing by itself.

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

from signet_sync import __version__
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

_HEAD = f"signet-sync snapshot 4 {sys.implementation.cache_tag} {marshal.version}\n".encode()
# File-system clocks tick every few milliseconds: a younger file may be written again and keep its signature.
YOUNG_NS = 100_000_000
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIFTED = f"{TOMBSTONES}/lifted"
_DAEMON = ".daemon"
# Below the root and below an agent's folder: the folders in which a pass looks, to any depth.
_LOOKED_INTO = ("ledger", "entities", OWN, _DAEMON)
# Contents of the state folder to which a pass reacts.
_FOLDERS = ("journal", "live", "spool", "backups")
_FILES = ("settings.json", "workspace.json")

Sign = tuple[int, int, int, int]
Signs = dict[str, Sign | None]  # by name or path; None for a folder
# Digest of the names and signatures of a folder's files, in the order in which it lists them, and its folders, sorted.
Contents = tuple[bytes, list[str]]
_packed = struct.Struct("<4q").pack


class CurrentInputs:
    """The state of the workspace, except `memory/`, before any of it was read; None for what cannot be compared."""

    __slots__ = ("at_ns", "database", "inputs", "root", "state")

    def __init__(self, root: str, database: str | None) -> None:
        """Looks at a workspace and at the database that was chosen for it (None: that of its state folder)."""
        self.root = root
        self.state = locations.locate(root)
        self.database = database or self.state.database
        self.at_ns = time.time_ns()
        self.inputs = self.inputs_now()

    @property
    def place(self) -> str:
        """Returns the path of the snapshot."""
        return self.database + SNAPSHOT

    def inputs_now(self) -> dict[str, Any] | None:
        """Returns the state of the workspace now."""
        if self.database == ":memory:":
            return None
        try:
            return _inputs(self.root, self.state, self.database)
        except (OSError, ValueError):
            return None


# ── the answer ──


def answer(current: CurrentInputs, now_us: int) -> dict[str, Any] | None:
    """Returns the document of a pass that would find nothing to do; None if a pass has to run."""
    started = time.perf_counter()
    if current.inputs is None:
        return None
    try:
        saved = _read(current.place)
        if saved is None or saved["inputs"] != current.inputs or not saved["from_us"] <= now_us < saved["until_us"]:
            return None
        if any(saved["memory"][where] != _contents(current.root, where) for where in (MEMORY, TOMBSTONES)):
            return None
        if saved["program"] != _program():  # last, for it looks at hundreds of files
            return None
        document: dict[str, Any] = {**saved["document"]}
    except (OSError, EOFError, AttributeError, LookupError, TypeError, ValueError, struct.error):
        return None  # another program wrote it, with a correct digest

    document["now"] = iso(now_us)
    data = json.dumps({"last_full_pass": document["now"]}) + "\n"
    try:
        os.close(publish(os.path.join(current.state.path, "last-pass.json"), data.encode(), durable=False))
    except OSError:
        return None
    document["elapsed_ms"] = round((time.perf_counter() - started) * 1000, 1)
    return document


def _contents(root: str, where: str) -> Contents | None:
    """Returns what a folder holds; None if it is missing. Raises `ValueError` for anything but files and folders."""
    digest, folders = sha256(), list[str]()
    try:
        with folder(root, where) as descriptor, os.scandir(descriptor) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    sign = status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
                    digest.update(_write_sign(entry.name, sign))
                elif stat.S_ISDIR(status.st_mode):
                    folders.append(entry.name)
                else:
                    raise ValueError(entry.name)
    except FileNotFoundError:
        return None
    return digest.digest(), sorted(folders)


def _write_sign(name: str, sign: Sign) -> bytes:
    """Returns the name and signature of a file; names of different files give different bytes."""
    return os.fsencode(name) + b"/" + _packed(*sign)


# ── the file ──


def drop(current: CurrentInputs) -> None:
    """Deletes the snapshot, because a pass that may write is about to run."""
    with suppress(OSError):
        unlink(current.place)


def _read(place: str) -> dict[str, Any] | None:
    """Returns the content of a snapshot; None if there is none, or not a complete one of this version."""
    try:
        handle = os.open(place, READ)
    except OSError:
        return None
    with open(handle, "rb") as file:
        raw = file.read()
    body = raw[len(_HEAD) + sha256().digest_size :]
    if raw != _HEAD + sha256(body).digest() + body:
        return None
    saved = marshal.loads(body)  # noqa: S302 - of our own folder, and whole
    return saved if isinstance(saved, dict) else None


# ── written by a pass ──


def save(current: CurrentInputs, outcome: Outcome, document: dict[str, Any], now_us: int, until_us: int | None) -> None:
    """Writes a snapshot of a pass if it found nothing to do and nothing changed meanwhile.

    `current` was taken before the pass, and the database is closed again.
    """
    found, inputs = outcome.seen, current.inputs
    if outcome.read or outcome.deferred or outcome.unsettled or until_us is None:
        return
    if document["halted"] or document["held"] or document["trouble"]:
        return
    if found is None or found.ground != "present" or inputs is None or current.inputs_now() != inputs:
        return
    youngest = current.at_ns - YOUNG_NS
    if not _is_at_rest(inputs) or any(sign[2] > youngest for sign in (*found.files.values(), *_signs(inputs))):
        return
    if any(what != "folder" for what in found.odd.values()):
        return
    digests, folders = {MEMORY: sha256(), TOMBSTONES: sha256()}, {MEMORY: list[str](), TOMBSTONES: list[str]()}
    for path, signature in found.files.items():  # in the order of the scan
        where, _, name = path.rpartition("/")
        digests[where].update(_write_sign(name, signature))
    for path in found.odd:
        where, _, name = path.rpartition("/")
        folders[where].append(name)
    memory: dict[str, Contents | None]
    memory = {where: (digest.digest(), sorted(folders[where])) for where, digest in digests.items()}
    if TOMBSTONES not in found.odd:
        memory[TOMBSTONES] = None
    value = {
        "inputs": inputs,
        "program": _program(),
        "memory": memory,
        "document": document,
        "from_us": now_us,
        "until_us": until_us,
    }
    body = marshal.dumps(value)
    try:
        # The digest detects what a power loss leaves of the file.
        os.close(publish(current.place, _HEAD + sha256(body).digest() + body, durable=False))
    except OSError:
        drop(current)


def _is_at_rest(inputs: dict[str, Any]) -> bool:
    """Returns whether nothing waits for a later time or for another program."""
    vault, state = inputs["vault"], inputs["state"]
    return not (
        state["journal"]
        or any(sign is not None for sign in state["spool"].values())
        or any(path.startswith((f"{TEMPORARY}/", f"{_DAEMON}/pid")) for path in vault)
        or any(".tmp" in name for name in (*state[""], *state["live"], *state["backups"]))
    )


def _signs(value: Any) -> Iterator[Sign]:
    """Yields every signature of the inputs."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _signs(inner)
    elif isinstance(value, tuple):
        yield value


# ── what decides what a pass does ──


def _inputs(root: str, state: locations.StateFolder, database: str) -> dict[str, Any] | None:
    """Returns everything that decides what a pass does, except `memory/` and the clock. Raises `OSError`."""
    real, beside = os.path.realpath(root), os.path.dirname(os.path.abspath(database))
    if os.path.realpath(beside).startswith(os.path.join(real, "")):
        return None  # a file in the vault would be carried to other machines
    base = os.path.basename(database)
    passing = (f"{base}-wal", f"{base}-shm", f"{base}{SNAPSHOT}")
    own = _listing(state.path)
    log = _file(f"{database}-wal")
    return {
        "workspace": [root, real, locations.read_id(real), state.path, database],
        "settings": _file(locations.user_file()),
        "environment": {name: value for name, value in os.environ.items() if name.startswith("SIGNET_")},
        "database": {"": _sign(os.stat(database)), "-wal": log if log and log[0] else None},
        "beside": sorted(name for name in os.listdir(beside) if name.startswith(base) and not name.startswith(passing)),
        "state": {name: _listing(os.path.join(state.path, name)) for name in _FOLDERS}
        | {"": {name: sign for name, sign in own.items() if name in _FILES or name.endswith(".tmp")}},
        "vault": dict(_walk(root, "")) | {where: _listing(os.path.join(root, where)) for where in (_LIFTED, WORDS)},
    }


def _program() -> list[str]:
    """Identifies the program: other rules, another schema or another sanitizer come in other files."""
    found = []
    for where, _, names in os.walk(_PACKAGE):
        for name in names:
            if name.endswith(".py"):
                status = os.stat(os.path.join(where, name))
                found.append((where, name, status.st_size, status.st_mtime_ns))
    digest = sha256(repr(sorted(found)).encode("utf-8", "surrogateescape")).hexdigest()
    return [__version__, sys.version, digest]


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


def _listing(path: str) -> Signs:
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
