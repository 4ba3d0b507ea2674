"""Opens and reads paths of the workspace that come from outside: inside it, never through a symlink."""

import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from signet_sync.errors import PathEscape, WorkspaceError
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.paths import MEMORY, OWN, TOMBSTONES, WORDS
from signet_sync.formats.snapshot import LARGEST, Found, Signature, Trouble, storable
from signet_sync.storage.durable import FOLDER, READ, sync_descriptor


def require_root(root: str) -> None:
    """Raises `WorkspaceError` unless the root is a folder that can be listed."""
    if not os.path.isdir(root):
        if os.path.exists(root):
            raise WorkspaceError("the workspace is not a folder", path=root, hint="name a folder with --workspace")
        if os.path.islink(root):
            message = f"the workspace is a link to {os.readlink(root)}, which does not exist"
            raise WorkspaceError(message, path=root, hint="bring back what it leads to, or unlink it")
        hint = "name another one with --workspace, or create it with: signet-sync setup"
        raise WorkspaceError("the workspace does not exist", path=root, hint=hint)
    if not os.access(root, os.R_OK | os.X_OK):
        raise WorkspaceError("the workspace cannot be read", path=root, hint="check its permissions")


def split_checked(path: str) -> list[str]:
    """Splits a workspace-relative path. Raises `PathEscape` for anything that could leave the workspace."""
    parts = path.split("/")
    odd = "\0" in path or any(part in ("", ".", "..") for part in parts)
    try:
        os.fsencode(path)
    except UnicodeEncodeError:  # half a surrogate pair: the system cannot have returned this text as a name
        odd = True
    if odd:
        raise PathEscape("the path leaves the workspace", path=path, hint="use a path relative to the workspace root")
    return parts


@contextmanager
def folder(root: str, path: str, *, create: bool = False) -> Iterator[int]:
    """Yields a descriptor of a folder below the root (`""`: the root itself), opened part by part without symlinks.

    With `create`, missing folders are made (0700) and their parents synced. Raises `FileNotFoundError`, `PathEscape`,
    `WorkspaceError`.
    """
    descriptor = os.open(root, FOLDER)
    try:
        for part in split_checked(path) if path else []:
            try:
                inner = os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            except FileNotFoundError:
                if not create:
                    raise
                try:
                    os.mkdir(part, 0o700, dir_fd=descriptor)
                    sync_descriptor(descriptor)
                except FileExistsError:
                    pass
                inner = os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise _not_a_folder(part, path, descriptor) from None
                raise
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _not_a_folder(part: str, path: str, parent: int) -> WorkspaceError:
    """Returns the error for a path on which something else stands instead of a folder."""
    try:
        link = stat.S_ISLNK(os.stat(part, dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        link = False
    if link:
        return PathEscape(
            "a folder on this path is a symlink",
            path=path,
            hint="replace the link by a real folder inside the workspace",
        )
    return WorkspaceError("there is a file where a folder should be", path=path, hint="move the file away")


def split_path(path: str) -> tuple[str, str]:
    """Splits a relative path into folder and name, checked."""
    parts = split_checked(path)
    return "/".join(parts[:-1]), parts[-1]


def kind_of(mode: int) -> str:
    """Names what is at a path instead of a regular file, for messages."""
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISLNK(mode):
        return "symlink"
    if stat.S_ISFIFO(mode):
        return "named pipe"
    return "socket" if stat.S_ISSOCK(mode) else "device"


def is_dataless(status: os.stat_result) -> bool:
    """Returns whether the content is only in the cloud (macOS, `SF_DATALESS`): reading would wait for its download."""
    return bool(getattr(status, "st_flags", 0) & 0x40000000)


def signature_of(status: os.stat_result) -> Signature:
    """Returns the signature of a stat result."""
    found = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return tuple.__new__(Signature, found if max(found) <= LARGEST and min(found) >= -LARGEST else map(storable, found))


def read_at(descriptor: int, name: str, limit: int) -> Found | Trouble:
    """Reads a regular file of an open folder; never blocks, never follows a link, never reads beyond `limit` bytes."""
    try:
        handle = os.open(name, READ, dir_fd=descriptor)
    except OSError as error:
        return open_trouble(error)
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            return Trouble("not-a-file", f"it is a {kind_of(before.st_mode)}", signature_of(before))
        if before.st_size > limit:
            return Trouble("too-large", f"{before.st_size:,} bytes, more than {limit:,}", signature_of(before))
        if is_dataless(before):
            return Trouble("unreadable", "its content is in the cloud and not downloaded")
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


def open_trouble(error: OSError) -> Trouble:
    """Says why a file cannot be opened."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return Trouble("gone", "it is not there")
    if error.errno == errno.ELOOP:
        return Trouble("not-a-file", "it is a symlink")
    if error.errno in (errno.ENXIO, errno.ENODEV, errno.EISDIR, errno.EOPNOTSUPP):
        return Trouble("not-a-file", "it is not a regular file")
    return Trouble("unreadable", f"it cannot be opened: {error.strerror}")


def read(root: str, path: str, limit: int) -> Found | Trouble:
    """Reads one workspace-relative path safely."""
    try:
        where, name = split_path(path)
        with folder(root, where) as descriptor:
            return read_settled(descriptor, name, limit)
    except FileNotFoundError:
        return Trouble("gone", "it is not there")
    except PathEscape as error:
        return Trouble("path-escape", error.message)
    except WorkspaceError:
        return Trouble("gone", "its folder is not there")
    except OSError as error:
        return Trouble("unreadable", f"its folder cannot be opened: {error.strerror}")


def read_settled(descriptor: int, name: str, limit: int) -> Found | Trouble:
    """Reads a file of an open folder, again a few times if it changes while it is read: a save takes a moment."""
    found = read_at(descriptor, name, limit)
    for _ in range(2):
        if not (isinstance(found, Trouble) and found.code == "unsettled"):
            break
        found = read_at(descriptor, name, limit)
    return found


def status_of(root: str, path: str) -> os.stat_result | None:
    """Returns the status of a path, links not followed; None if nothing is there, or the path leaves the workspace."""
    try:
        where, name = split_path(path)
        with folder(root, where) as descriptor:
            return status_at(descriptor, name)
    except (FileNotFoundError, NotADirectoryError, WorkspaceError):
        return None


def exists(root: str, path: str) -> bool:
    """Returns whether something is at a path; False as well if that cannot be known."""
    try:
        return status_of(root, path) is not None
    except OSError:
        return False


def is_later(root: str, path: str, other: str) -> bool:
    """Returns whether a file was written on this machine after another one, whatever times a sync service gave them."""
    one, two = status_of(root, path), status_of(root, other)
    return one is not None and two is not None and one.st_ctime_ns > two.st_ctime_ns


def list_names(root: str, path: str, prefix: str) -> list[str]:
    """Lists the names in a folder that start with a prefix, sorted; empty if there is no such folder."""
    try:
        with folder(root, path) as descriptor:
            return sorted(name for name in os.listdir(descriptor) if name.startswith(prefix) and name.isprintable())
    except (OSError, WorkspaceError):
        return []


def signatures(root: str, paths: Iterable[str]) -> dict[str, Signature]:
    """Returns the signatures of those paths that are regular files; each folder is opened once."""
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        where, name = split_path(path)
        by_folder.setdefault(where, []).append(name)
    found: dict[str, Signature] = {}
    for where, names in by_folder.items():
        try:
            with folder(root, where) as descriptor:
                for name in names:
                    status = status_at(descriptor, name)
                    if status is not None and stat.S_ISREG(status.st_mode):
                        found[f"{where}/{name}" if where else name] = signature_of(status)
        except (FileNotFoundError, WorkspaceError):
            continue
    return found


def status_at(descriptor: int, name: str) -> os.stat_result | None:
    """Returns the status of a name in an open folder, links not followed; None if nothing is there."""
    try:
        return os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None


# ── files that are not ours, read once and in pieces, in little memory whatever their size ──

_PIECE = 1 << 20


def foreign_files(root: str, leave: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yields path and open descriptor of every regular file that is not an artifact, a tombstone or in `.signet`.

    The descriptor is closed when the next one is requested. Links are not followed, folders `.git` not entered; what
    cannot be opened is skipped. `leave` are absolute real paths of files and folders that are not touched at all:
    merely closing a live SQLite file would drop its locks.
    """
    own = (OWN, TOMBSTONES, WORDS)
    for where, folders, names, parent in os.fwalk(os.path.realpath(root), follow_symlinks=False):
        relative = os.path.relpath(where, os.path.realpath(root)).replace(os.sep, "/")
        base = "" if relative == "." else f"{relative}/"
        folders[:] = sorted(
            name
            for name in folders
            if name != ".git" and f"{base}{name}" not in own and os.path.join(where, name) not in leave
        )
        for name in sorted(names):
            ours = base == f"{MEMORY}/" and artifact_name(name) is not None
            if ours or os.path.join(where, name) in leave:
                continue
            descriptor = _open_foreign(name, parent)
            if descriptor is not None:
                try:
                    yield f"{base}{name}", descriptor
                finally:
                    os.close(descriptor)


def _open_foreign(name: str, parent: int) -> int | None:
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode) or is_dataless(status):
            return None
        return os.open(name, READ, dir_fd=parent)
    except OSError:
        return None


def pieces(descriptor: int, overlap: int) -> Iterator[bytes]:
    """Yields an open file in pieces of 1 MiB, each starting with the last `overlap` bytes of the previous one.

    At a read error the pieces end.
    """
    tail = b""
    while True:
        try:
            chunk = os.read(descriptor, _PIECE)
        except OSError:
            return
        if not chunk:
            return
        piece = tail + chunk
        yield piece
        tail = piece[-overlap:] if overlap else b""
