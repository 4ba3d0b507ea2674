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
from contextlib import suppress
from dataclasses import dataclass

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
    """Reads a regular file of an open folder; never blocks, never follows a link, never reads more than `limit` bytes."""
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
        chunks = []
        wanted = before.st_size + 1
        while wanted > 0:
            chunk = os.read(handle, wanted)
            if not chunk:
                break
            chunks.append(chunk)
            wanted -= len(chunk)
        after = os.fstat(handle)
        raw = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if len(raw) != after.st_size or signature_of(before) != signature_of(after):
            return Trouble("unsettled", "it changed while it was read", signature_of(after))
        return Found(raw, signature_of(after))
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
    where, name = split_path(path)
    try:
        with folder(root, where) as descriptor:
            for _ in range(3):
                found = read_at(descriptor, name, limit)
                if not (isinstance(found, Trouble) and found.code == "unsettled"):
                    return found
            return found
    except FileNotFoundError:
        return Trouble("gone", "it is not there")
    except PathEscape as error:
        return Trouble("path-escape", error.message)
    except WorkspaceError:
        return Trouble("gone", "its folder is not there")
    except OSError as error:
        return Trouble("unreadable", f"its folder cannot be opened: {error.strerror}")


def look(root: str, path: str) -> os.stat_result | None:
    """The status of a path, links not followed; None where nothing is there."""
    where, name = split_path(path)
    try:
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


def sync_descriptor(descriptor: int) -> None:
    """fsync, on macOS down to the platter (`F_FULLFSYNC`)."""
    if sys.platform == "darwin":
        import fcntl

        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def prepare(root: str) -> None:
    """Makes `.signet/tmp` and a `.gitignore` that hides `.signet` from git."""
    with folder(root, TEMPORARY, create=True):
        pass
    with folder(root, OWN) as own, suppress(FileExistsError):
        handle = os.open(".gitignore", _CREATE, 0o600, dir_fd=own)
        try:
            os.write(handle, b"*\n")
            sync_descriptor(handle)
        finally:
            os.close(handle)


def _write_temporary(descriptor: int, name: str, data: bytes, mode: int) -> None:
    handle = os.open(name, _CREATE, mode & 0o777, dir_fd=descriptor)
    try:
        os.fchmod(handle, mode & 0o777)
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        sync_descriptor(handle)
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=descriptor)
        raise
    finally:
        os.close(handle)


def _temporary_name() -> str:
    return f"{os.getpid()}-{uuid.uuid4().hex}.tmp"


def create_once(root: str, path: str, data: bytes) -> Signature:
    """Publishes a file that must not exist yet: temporary file, fsync, link, fsync of the folder.

    Raises `FileExistsError` if the name is taken; then nothing was changed.
    """
    where, name = split_path(path)
    with folder(root, TEMPORARY, create=True) as temporary, folder(root, where, create=True) as target:
        staged = _temporary_name()
        source = temporary
        _write_temporary(temporary, staged, data, 0o600)
        try:
            try:
                os.link(staged, name, src_dir_fd=temporary, dst_dir_fd=target, follow_symlinks=False)
            except FileExistsError:
                raise
            except OSError as error:
                if error.errno == errno.EXDEV:
                    os.unlink(staged, dir_fd=temporary)
                    source, staged = target, f".signet-{staged}"
                    _write_temporary(target, staged, data, 0o600)
                elif error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                    raise
                _publish_without_links(source, staged, target, name, data)
            sync_descriptor(target)
            return signature_of(os.stat(name, dir_fd=target, follow_symlinks=False))
        finally:
            with suppress(FileNotFoundError):
                os.unlink(staged, dir_fd=source)


def _publish_without_links(source: int, staged: str, target: int, name: str, data: bytes) -> None:
    """File systems without hard links: rename that refuses a taken name, else exclusive creation of the final name."""
    if _rename(source, staged, target, name, _NOREPLACE):
        return
    handle = os.open(name, _CREATE, 0o600, dir_fd=target)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        sync_descriptor(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class Replaced:
    """The outcome of a replacement: the new signature, and the bytes that stood there when they were not the expected."""

    signature: Signature
    displaced: bytes | None


def replace(root: str, path: str, data: bytes, expected: bytes | None, *, sync_folder: bool = True) -> Replaced:
    """Replaces (or creates) a file atomically: temporary file, fsync, swap, fsync of the folder.

    `expected` are the bytes that the caller took for the present ones (None: no file). Where the system can swap two
    names, the displaced file is compared *after* the swap, so that an editor that saved in between loses nothing: its
    bytes come back in `displaced`. The old file's mode is kept; a new file is 0600.
    """
    where, name = split_path(path)
    with folder(root, TEMPORARY, create=True) as temporary, folder(root, where, create=True) as target:
        mode = 0o600
        present = None
        with suppress(FileNotFoundError):
            present = os.stat(name, dir_fd=target, follow_symlinks=False)
        if present is not None:
            if not stat.S_ISREG(present.st_mode):
                raise WorkspaceError("it is not a regular file", path=path, hint="move it away; a page belongs there")
            mode = stat.S_IMODE(present.st_mode)
        staged, source = _temporary_name(), temporary
        _write_temporary(temporary, staged, data, mode)
        displaced: bytes | None = None
        try:
            if present is None:
                try:
                    os.link(staged, name, src_dir_fd=temporary, dst_dir_fd=target, follow_symlinks=False)
                except FileExistsError:
                    return replace(root, path, data, expected, sync_folder=sync_folder)
                except OSError:
                    source, staged = _nearby(temporary, staged, target, data, mode)
                    os.replace(staged, name, src_dir_fd=source, dst_dir_fd=target)
            elif _rename(temporary, staged, target, name, _EXCHANGE):
                old = read_at(temporary, staged, 1 << 31)
                if isinstance(old, Found) and old.raw != expected:
                    displaced = old.raw
            else:
                old = read_at(target, name, 1 << 31)
                if isinstance(old, Found) and old.raw != expected:
                    displaced = old.raw
                source, staged = _nearby(temporary, staged, target, data, mode)
                os.replace(staged, name, src_dir_fd=source, dst_dir_fd=target)
            if sync_folder:
                sync_descriptor(target)
            return Replaced(signature_of(os.stat(name, dir_fd=target, follow_symlinks=False)), displaced)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(staged, dir_fd=source)


def _nearby(temporary: int, staged: str, target: int, data: bytes, mode: int) -> tuple[int, str]:
    """The staged file itself, or a copy beside the target where `.signet/tmp` is on another file system."""
    if os.fstat(temporary).st_dev == os.fstat(target).st_dev:
        return temporary, staged
    os.unlink(staged, dir_fd=temporary)
    name = f".signet-{_temporary_name()}"
    _write_temporary(target, name, data, mode)
    return target, name


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


def sweep(root: str, *, beside: tuple[str, ...] = ()) -> list[str]:
    """Removes temporary files whose owner is dead, or that are older than a day; gives their paths."""
    swept = []
    for where, pattern in ((TEMPORARY, _TEMPORARY_NAME), *((b, _STRAY_NAME) for b in beside)):
        try:
            with folder(root, where) as descriptor:
                for name in os.listdir(descriptor):
                    match = pattern.fullmatch(name)
                    if match is None:
                        continue
                    with suppress(FileNotFoundError):
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
    if code in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EXDEV, errno.ENOENT):
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
