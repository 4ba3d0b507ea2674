"""Durable files: read once through the gate, create if absent, replace atomically, unlink, sweep what a crash left."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from signet_sync.contracts.observed import Found, Signature, Trouble
from signet_sync.contracts.places import OWN, TEMPORARY
from signet_sync.errors import PathEscape, WorkspaceError
from signet_sync.vault.layout import folder, split_path

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TEMPORARY_NAME = re.compile(r"(\d+)-[0-9a-f]{32}\.tmp", re.ASCII)
_STRAY_NAME = re.compile(r"\.signet-(\d+)-[0-9a-f]{32}\.tmp", re.ASCII)
_SF_DATALESS = 0x40000000  # macOS: the bytes are in the cloud; reading would block until they are fetched


def signature_of(status: os.stat_result) -> Signature:
    """The signature of a stat result."""
    return Signature(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def read_at(descriptor: int, name: str, limit: int) -> Found | Trouble:
    """Reads a regular file of an open folder; never blocks, never follows a link, never reads beyond `limit` bytes."""
    try:
        handle = os.open(name, _READ, dir_fd=descriptor)
    except OSError as error:
        return _open_trouble(error)
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            return Trouble("not-a-file", "it is not a regular file", signature_of(before))
        if before.st_size > limit:
            return Trouble("too-large", f"{before.st_size:,} bytes, more than {limit:,}", signature_of(before))
        if getattr(before, "st_flags", 0) & _SF_DATALESS:
            return Trouble("unreadable", "its content is in the cloud and not downloaded", signature_of(before))
        raw = os.read(handle, before.st_size + 1)
        while len(raw) < before.st_size and (chunk := os.read(handle, before.st_size + 1 - len(raw))):
            raw += chunk
        signature = signature_of(os.fstat(handle))
        if len(raw) != signature.size or signature_of(before) != signature:
            return Trouble("unsettled", "it changed while it was read", signature)
        return Found(raw, signature)
    except OSError as error:
        return Trouble("unreadable", f"reading failed: {error.strerror}")
    finally:
        os.close(handle)


def _open_trouble(error: OSError) -> Trouble:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return Trouble("gone", "it is not there")
    if error.errno == errno.ELOOP:
        return Trouble("not-a-file", "it is a symlink")
    if error.errno in (errno.ENXIO, errno.ENODEV, errno.EISDIR, errno.EOPNOTSUPP):
        return Trouble("not-a-file", "it is not a regular file")
    return Trouble("unreadable", f"it cannot be opened: {error.strerror}")


def read(root: str, path: str, limit: int) -> Found | Trouble:
    """Reads one workspace-relative path through the gate."""
    try:
        where, name = split_path(path)
        with folder(root, where) as descriptor:
            return _read_settled(descriptor, name, limit)
    except FileNotFoundError:
        return Trouble("gone", "it is not there")
    except PathEscape as error:
        return Trouble("path-escape", error.message)
    except WorkspaceError:
        return Trouble("gone", "its folder is not there")
    except OSError as error:
        return Trouble("unreadable", f"its folder cannot be opened: {error.strerror}")


def _read_settled(descriptor: int, name: str, limit: int) -> Found | Trouble:
    """A file that changes while it is read is read again, a few times: a save takes a moment."""
    found = read_at(descriptor, name, limit)
    for _ in range(2):
        if not (isinstance(found, Trouble) and found.code == "unsettled"):
            break
        found = read_at(descriptor, name, limit)
    return found


def look(root: str, path: str) -> os.stat_result | None:
    """The status of a path, links not followed; None where nothing is there, or nothing inside the workspace."""
    try:
        where, name = split_path(path)
        with folder(root, where) as descriptor:
            return os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError, WorkspaceError):
        return None


def listing(root: str, path: str, prefix: str) -> list[str]:
    """Names in a folder that start with a prefix, sorted; empty where there is no such folder."""
    try:
        with folder(root, path) as descriptor:
            return sorted(name for name in os.listdir(descriptor) if name.startswith(prefix) and name.isprintable())
    except (OSError, WorkspaceError):
        return []


def signatures(root: str, paths: Iterable[str]) -> dict[str, Signature]:
    """The signatures of those paths that are regular files; each folder is opened once."""
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        where, name = split_path(path)
        by_folder.setdefault(where, []).append(name)
    found: dict[str, Signature] = {}
    for where, names in by_folder.items():
        try:
            with folder(root, where) as descriptor:
                for name in names:
                    with suppress(FileNotFoundError):
                        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            found[f"{where}/{name}" if where else name] = signature_of(status)
        except (FileNotFoundError, WorkspaceError):
            continue
    return found


def sync_descriptor(descriptor: int) -> None:
    """fsync, on macOS down to the platter (`F_FULLFSYNC`). After an error the descriptor must not be synced again.

    A kernel may call the pages clean that it failed to write; a second fsync would then succeed over lost bytes.
    """
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL):
                raise
    os.fsync(descriptor)


def prepare(root: str) -> None:
    """Makes `.signet/tmp` and a `.gitignore` that hides `.signet` from git."""
    with suppress(FileExistsError):
        create_once(root, f"{OWN}/.gitignore", b"*\n")


def _write_temporary(descriptor: int, name: str, data: bytes, mode: int) -> None:
    """A new durable file under a name of its own; after any error there is none."""
    handle = os.open(name, _CREATE, mode & 0o777, dir_fd=descriptor)
    try:
        try:
            os.fchmod(handle, mode & 0o777)
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
            sync_descriptor(handle)
        finally:
            os.close(handle)
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=descriptor)
        raise


_Result = TypeVar("_Result")


def _staged(temporary: int, target: int, data: bytes, mode: int, publish: Callable[[int, str], _Result]) -> _Result:
    """Writes a durable temporary file, lets `publish` give it its name, and takes away what is left of it.

    It stands in `.signet/tmp`; where that turns out to be on another file system, beside the target.
    """
    name = f"{os.getpid()}-{uuid.uuid4().hex}.tmp"
    try:
        return _published(temporary, name, data, mode, publish)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    return _published(target, f".signet-{name}", data, mode, publish)


def _published(folder_fd: int, name: str, data: bytes, mode: int, publish: Callable[[int, str], _Result]) -> _Result:
    _write_temporary(folder_fd, name, data, mode)
    try:
        return publish(folder_fd, name)
    finally:
        # What cannot be taken away now is swept later; it must not turn a durable write into an error.
        with suppress(OSError):
            os.unlink(name, dir_fd=folder_fd)


def _link(source: int, staged: str, target: int, name: str) -> bool:
    """Gives the staged file its name; False where the file system has neither hard links nor a rename that refuses.

    Raises `FileExistsError` where the name is taken.
    """
    try:
        os.link(staged, name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
        return True
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    return _rename(source, staged, target, name, _NOREPLACE)


def create_once(root: str, path: str, data: bytes) -> Signature:
    """Publishes a file that must not exist yet: temporary file, fsync, link, fsync of the folder.

    Raises `FileExistsError` if the name is taken; then nothing was changed. After any other `OSError` the file is
    absent or whole.
    """
    where, name = split_path(path)
    with folder(root, TEMPORARY, create=True) as temporary, folder(root, where, create=True) as target:

        def publish(source: int, staged: str) -> None:
            if not _link(source, staged, target, name):
                _write_temporary(target, name, data, 0o600)
            sync_descriptor(target)

        _staged(temporary, target, data, 0o600, publish)
        return signature_of(os.stat(name, dir_fd=target, follow_symlinks=False))


@dataclass(frozen=True, slots=True)
class Replaced:
    """The outcome of a replacement.

    `signature` belongs to the file that stands there now; `displaced` are the bytes that were found there when they
    were not the expected ones.
    """

    signature: Signature
    displaced: bytes | None


def replace(root: str, path: str, data: bytes, expected: bytes | None, *, sync_folder: bool = True) -> Replaced:
    """Replaces (or creates) a file atomically: temporary file, fsync, swap, fsync of the folder.

    `expected` are the bytes that the caller took for the present ones. Where the system can swap two names, the old
    file is compared *after* the swap, so that an editor that saved in between loses nothing: its file is swapped back
    in, which needs no space, and its bytes come back in `displaced`. With `expected` None whatever stands there is
    replaced and comes back in `displaced`. The old file's mode is kept; a new file is 0600.

    Raises `WorkspaceError` where something else than a file stands there, or one that is being written just now.
    """
    where, name = split_path(path)
    with folder(root, TEMPORARY, create=True) as temporary, folder(root, where, create=True) as target:
        mode = 0o600
        present = False
        with suppress(FileNotFoundError):
            status = os.stat(name, dir_fd=target, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                raise WorkspaceError("it is not a regular file", path=path, hint="move it away; a page belongs there")
            mode = stat.S_IMODE(status.st_mode)
            present = True

        def publish(source: int, staged: str) -> bytes | None:
            displaced = None
            if present or not _appears(source, staged, target, name):
                displaced = _swap(source, staged, target, name, path, expected)
            if sync_folder:
                sync_descriptor(target)
            return displaced

        displaced = _staged(temporary, target, data, mode, publish)
        # Only now: taking away the second name of a linked file moves its ctime.
        return Replaced(signature_of(os.stat(name, dir_fd=target, follow_symlinks=False)), displaced)


def _appears(source: int, staged: str, target: int, name: str) -> bool:
    """Publishes under a name that was free; False where it has been taken since, or cannot be taken safely."""
    try:
        return _link(source, staged, target, name)
    except FileExistsError:
        return False


def _swap(source: int, staged: str, target: int, name: str, path: str, expected: bytes | None) -> bytes | None:
    """Puts the staged file in place of another; gives the other's bytes where they are not the expected ones."""
    ours = os.stat(staged, dir_fd=source, follow_symlinks=False).st_ino
    swapped = _rename(source, staged, target, name, _EXCHANGE)
    old = _read_settled(source, staged, 1 << 31) if swapped else _read_settled(target, name, 1 << 31)
    displaced = old.raw if isinstance(old, Found) and old.raw != expected else None
    readable = isinstance(old, Found) or old.code == "gone"
    wanted = readable and (displaced is None or expected is None)
    if swapped and not wanted:
        _put_back(source, staged, target, name, ours)
    if not readable:
        raise WorkspaceError("it cannot be read, or is being written", path=path, hint="it is tried again by itself")
    if wanted and not swapped:
        os.replace(staged, name, src_dir_fd=source, dst_dir_fd=target)
    return displaced


def _put_back(source: int, staged: str, target: int, name: str, ours: int) -> None:
    if not _rename(source, staged, target, name, _EXCHANGE):
        os.replace(staged, name, src_dir_fd=source, dst_dir_fd=target)
    elif os.stat(staged, dir_fd=source, follow_symlinks=False).st_ino != ours:
        # It was saved once more between the two swaps: the newest stays.
        _rename(source, staged, target, name, _EXCHANGE)


def sync_folders(root: str, folders: set[str]) -> None:
    """fsync of several folders, after a batch of replacements with `sync_folder=False`."""
    for path in sorted(folders):
        with suppress(FileNotFoundError), folder(root, path) as descriptor:
            sync_descriptor(descriptor)


def unlink(root: str, path: str) -> bool:
    """Removes a file and syncs its folder; False where nothing was there."""
    where, name = split_path(path)
    try:
        with folder(root, where) as descriptor:
            os.unlink(name, dir_fd=descriptor)
            sync_descriptor(descriptor)
            return True
    except (FileNotFoundError, NotADirectoryError):
        return False


def remove_empty_folders(root: str, path: str, stop: str) -> None:
    """Removes a folder and its empty parents below (not including) `stop`."""
    while path and path != stop:
        where, name = split_path(path)
        try:
            with folder(root, where) as descriptor:
                os.rmdir(name, dir_fd=descriptor)
        except (OSError, WorkspaceError):
            return
        path = where


def unwritable(root: str, path: str) -> str:
    """Why no file can be made in a folder of the workspace, or empty where one can; writes nothing."""
    for where in (os.path.join(root, path), root):
        if os.path.isdir(where):
            if os.access(where, os.W_OK | os.X_OK):
                return ""
            return (
                "it is on a read-only file system" if os.statvfs(where).f_flag & os.ST_RDONLY else "permission denied"
            )
    return "its folder is gone"


def sweep(root: str, *, beside: tuple[str, ...] = ()) -> list[str]:
    """Removes temporary files whose owner is dead, or that are older than a day; gives their paths."""
    swept = []
    for where, pattern in ((TEMPORARY, _TEMPORARY_NAME), *((b, _STRAY_NAME) for b in beside)):
        try:
            with folder(root, where) as descriptor:
                for name in os.listdir(descriptor):
                    if where != TEMPORARY and not name.startswith(".signet-"):
                        continue
                    match = pattern.fullmatch(name)
                    if match is None:
                        continue
                    with suppress(OSError):
                        age = time.time() - os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mtime
                        if age > 86_400 or not _alive(int(match[1])):
                            os.unlink(name, dir_fd=descriptor)
                            swept.append(f"{where}/{name}")
        except (OSError, WorkspaceError):
            continue
    return swept


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


_NOREPLACE, _EXCHANGE = 1, 2
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})


def _rename(source_fd: int, source: str, target_fd: int, target: str, flag: int) -> bool:
    """renameat2 (Linux) or renameatx_np (macOS); False where the system or the file system cannot do it."""
    function = _renameat2()
    if function is None:
        return False
    if sys.platform == "darwin":
        flag = {_NOREPLACE: 0x4, _EXCHANGE: 0x2}[flag]
    result = function(source_fd, os.fsencode(source), target_fd, os.fsencode(target), flag)
    if result == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOENT):
        return False
    raise OSError(code, os.strerror(code), target)


def _renameat2() -> ctypes._NamedFuncPointer | None:
    try:
        library = ctypes.CDLL(None, use_errno=True)
        function = library.renameatx_np if sys.platform == "darwin" else library.renameat2
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return function
