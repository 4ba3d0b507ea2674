"""Writes files of the workspace safely: create once, replace atomically, rename, unlink, sweep after a crash.

A file that a swap displaced is named by what may be in it, and is looked at again until no process writes to it.
"""

import errno
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from signet_sync.errors import WorkspaceError
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import OWN, TEMPORARY
from signet_sync.formats.snapshot import OWN_LIMIT, Found, Signature, Trouble
from signet_sync.storage import durable
from signet_sync.storage.durable import CREATE, READ, create, sync_descriptor
from signet_sync.storage.files import folder, open_trouble, read_settled, signature_of, split_path, status_at
from signet_sync.storage.locations import process_alive

if TYPE_CHECKING:
    import ctypes

_TEMPORARY_NAME = late(r"(\d+)-[0-9a-f]{32}\.tmp", re.ASCII)
REST = 60.0  # seconds: without a lease, a file that did not change for this long is taken to be final
_ROUNDS = 3  # attempts when a file appears or disappears between a look and a swap


# ── files that a swap displaced: their names, and whether a process still writes to them ──

_DISPLACED_NAME = late(r"(\d+)-[0-9a-f]{32}-([0-9a-f]{16})-([0-9a-f]{16})-(.*)\.tmp", re.ASCII | re.DOTALL)
_ANYTHING = "0" * 16
_LONGEST = 255  # bytes that a name may have


class DisplacedName(NamedTuple):
    """What a name says: the process, the bytes that it wrote and those that it expected (digests), the file's path."""

    pid: int
    ours: str
    expected: str
    path: str

    def holds_ours(self, raw: bytes) -> bool:
        """Returns whether these bytes are those that we wrote or had read before, so that nothing is lost with them."""
        return self.expected == _ANYTHING or _digest(raw) in (self.ours, self.expected)


def name_displaced(temporary: str, path: str, *, ours: bytes, expected: bytes | None) -> str:
    """Makes the name of a temporary file while a swap may leave another file under it.

    A path that is too long for it is left out.
    """
    start = f"{temporary.removesuffix('.tmp')}-{_digest(ours)}-{_ANYTHING if expected is None else _digest(expected)}-"
    quoted = path.replace("%", "%25").replace("/", "%2F")
    return f"{start}{quoted if len(start) + len(os.fsencode(quoted)) + len('.tmp') <= _LONGEST else ''}.tmp"


def parse_displaced(name: str) -> DisplacedName | None:
    """Parses such a name; None for any other."""
    match = _DISPLACED_NAME.fullmatch(name)
    if match is None:
        return None
    return DisplacedName(int(match[1]), match[2], match[3], match[4].replace("%2F", "/").replace("%25", "%"))


def _digest(raw: bytes) -> str:
    return sha256(raw).hexdigest()[:16]


if sys.platform == "linux":
    import fcntl
    import signal

    def has_no_writer(handle: int) -> bool | None:
        """Returns whether no process has a file open for writing, or None if the system cannot know.

        A read lease is granted on exactly that condition, and is held until the descriptor is closed: if no path leads
        to the file any more, nothing will write to it again.
        """
        try:
            # By default, breaking a lease kills its holder by a signal; this signal is ignored unless a handler is set.
            fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            return False if error.errno in (errno.EAGAIN, errno.EACCES) and _is_own(handle) else None
        return True

    def is_wanted(handle: int) -> bool:
        """Returns whether a process that had found the file under its old path waits for our lease to end."""
        return fcntl.fcntl(handle, fcntl.F_GETLEASE) != fcntl.F_RDLCK

    def _is_own(handle: int) -> bool:
        """Returns whether a refusal says anything: a lease is granted only on files of the same user."""
        return os.geteuid() in (0, os.fstat(handle).st_uid)

else:

    def has_no_writer(handle: int) -> bool | None:
        """Returns whether no process has a file open for writing: this system cannot know."""
        return None

    def is_wanted(handle: int) -> bool:
        """Returns whether a process waits for a lease of ours: there are none here."""
        return False


# ── publishing ──


def prepare(root: str) -> None:
    """Makes `.signet/tmp` and a `.gitignore` that hides `.signet` from git."""
    with suppress(FileExistsError):
        create_once(root, f"{OWN}/.gitignore", b"*\n")


@contextmanager
def _stage_file(temporary: int, data: bytes, mode: int = 0o600) -> Iterator[str]:
    """Writes a durable temporary file, yields its name to be renamed, and removes what is left of it."""
    staged = _fresh()
    os.close(create(staged, data, mode & 0o777, exact=True, dir_fd=temporary))
    try:
        yield staged
    finally:
        _drop(temporary, staged)


def _fresh() -> str:
    """Makes the name of a temporary file, as `sweep` and `list_displaced` parse it."""
    return f"{os.getpid()}-{os.urandom(16).hex()}.tmp"


def _link(source: int, staged: str, target: int, name: str) -> bool:
    """Gives the staged file its name; False if the file system has neither hard links nor a rename that can refuse.

    Raises `FileExistsError` if the name is taken.
    """
    try:
        os.link(staged, name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
        return True
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    return _rename(source, staged, target, name, _NOREPLACE)


def _claim(source: int, staged: str, target: int, name: str) -> None:
    """Reserves a free name with an empty file, then replaces it by the staged one, so that no partial file is seen.

    Raises `FileExistsError` if the name is taken. A crash in between leaves the empty file.
    """
    os.close(os.open(name, CREATE, 0o600, dir_fd=target))
    try:
        os.replace(staged, name, src_dir_fd=source, dst_dir_fd=target)
    except BaseException:
        _drop(target, name)
        raise


def create_once(root: str, path: str, data: bytes, *, sync_folder: bool = True) -> Signature:
    """Publishes a file that must not exist yet: temporary file, fsync, link, fsync of the folder.

    Raises `FileExistsError` if the name is taken; then nothing was changed. After any other `OSError` the file is
    absent or whole.
    """
    where, name = split_path(path)
    with folder(root, TEMPORARY, create=True) as temporary, folder(root, where, create=True) as target:
        with _stage_file(temporary, data) as staged:
            if not _link(temporary, staged, target, name):
                _claim(temporary, staged, target, name)
            if sync_folder:
                sync_descriptor(target)
        return signature_of(os.stat(name, dir_fd=target, follow_symlinks=False))


class Replaced(NamedTuple):
    """The outcome of a replacement.

    `signature` is that of the file now in place; `displaced` are the bytes that were found there if they were not the
    expected ones.
    """

    signature: Signature
    displaced: bytes | None


def replace(root: str, path: str, data: bytes, expected: bytes | None, *, sync_folder: bool = True) -> Replaced:
    """Replaces (or creates) a file atomically: temporary file, fsync, swap, fsync of the folder.

    `expected` are the bytes that the caller believes to be there. Where the system can swap two names, the old file is
    compared *after* the swap, and only once no process has it open for writing. So an editor that saved in between, or
    is about to, loses nothing: its file is swapped back, which needs no space, and its bytes are returned in
    `displaced`. With `expected` None any content is replaced and returned in `displaced`. The old file's mode is kept;
    a new file is 0600.

    Raises `WorkspaceError` if the path is not a regular file, or the file is being written at this moment.
    """
    where, name = split_path(path)
    with folder(root, TEMPORARY, create=True) as temporary, folder(root, where, create=True) as target:
        status = status_at(target, name)
        if status is not None and not stat.S_ISREG(status.st_mode):
            raise WorkspaceError("it is not a regular file", path=path, hint="move it away; a page belongs there")
        mode = 0o600 if status is None else stat.S_IMODE(status.st_mode)
        displaced = done = None
        with _stage_file(temporary, data, mode) as staged:
            if status is not None or not _appears(temporary, staged, target, name):
                displaced, done = _Swap(temporary, staged, target, name, path).run(data, expected)
            try:
                if sync_folder:
                    sync_descriptor(target)
            finally:
                if done is not None:
                    _drop_unchanged(temporary, *done)
        # Only now: removing the second name of a linked file changes its ctime.
        return Replaced(signature_of(os.stat(name, dir_fd=target, follow_symlinks=False)), displaced)


def _appears(source: int, staged: str, target: int, name: str) -> bool:
    """Publishes under a name that was free; False if it has been taken since, or cannot be taken safely."""
    try:
        return _link(source, staged, target, name)
    except FileExistsError:
        return False


_Done = tuple[str, bytes]  # a displaced file that nothing is lost with: its name, and what was in it


class _Swap(NamedTuple):
    """A staged file that replaces another one."""

    source: int
    staged: str
    target: int
    name: str
    path: str

    def run(self, data: bytes, expected: bytes | None) -> "tuple[bytes | None, _Done | None]":
        """Swaps the files; returns the bytes of the old one if they are not the expected ones, and what may go."""
        seen, _ = _read_final(self.target, self.name)
        if isinstance(seen, Found) and expected is not None and seen.raw != expected:
            return seen.raw, None
        if isinstance(seen, Trouble) and seen.code != "gone":
            raise self._unreadable()
        ours = os.stat(self.staged, dir_fd=self.source, follow_symlinks=False).st_ino
        held = name_displaced(self.staged, self.path, ours=data, expected=expected)
        # After a crash a person's file may be left under this name: the name records what else may be in it.
        os.rename(self.staged, held, src_dir_fd=self.source, dst_dir_fd=self.source)
        swapped = False
        try:
            for _ in range(_ROUNDS):
                swapped = _rename(self.source, held, self.target, self.name, _EXCHANGE)
                if swapped:
                    return self._settle(held, ours, expected)
                if status_at(self.target, self.name) is None and _appears(self.source, held, self.target, self.name):
                    return None, None
            return self._overwrite(held, expected), None
        finally:
            if not swapped:
                _drop(self.source, held)

    def _overwrite(self, held: str, expected: bytes | None) -> bytes | None:
        """Replaces where names cannot be swapped: what is saved between the comparison and the rename is lost."""
        old = read_settled(self.target, self.name, OWN_LIMIT)
        displaced = old.raw if isinstance(old, Found) and old.raw != expected else None
        if isinstance(old, Trouble) and old.code != "gone":
            raise self._unreadable()
        if displaced is None or expected is None:
            os.replace(held, self.name, src_dir_fd=self.source, dst_dir_fd=self.target)
        return displaced

    def _settle(self, held: str, ours: int, expected: bytes | None) -> "tuple[bytes | None, _Done | None]":
        """Judges the displaced file: it may go if it is the expected one, else it is put back."""
        old, final = _read_final(self.source, held)
        displaced = old.raw if isinstance(old, Found) and old.raw != expected else None
        readable = isinstance(old, Found) or old.code == "gone"
        if readable and (displaced is None or expected is None):
            return displaced, (held, old.raw) if final and isinstance(old, Found) else None
        done = self._put_back(held, ours)
        if not readable:
            if done is not None:
                _drop_unchanged(self.source, *done)
            raise self._unreadable()
        return displaced, done

    def _put_back(self, held: str, ours: int) -> "_Done | None":
        """Puts a displaced file back; if its name was taken again, it stays aside and is examined later.

        Returns our own file, unless another process opened it while it was in place and writes to it.
        """
        if not _rename(self.source, held, self.target, self.name, _EXCHANGE):
            if _appears(self.source, held, self.target, self.name):
                _drop(self.source, held)
            return None
        if os.stat(held, dir_fd=self.source, follow_symlinks=False).st_ino != ours:
            # It was saved once more between the two swaps: the newest stays.
            _rename(self.source, held, self.target, self.name, _EXCHANGE)
            return None
        displaced = parse_displaced(held)
        found, final = _read_final(self.source, held)
        if final and displaced is not None and isinstance(found, Found) and displaced.holds_ours(found.raw):
            return held, found.raw
        return None

    def _unreadable(self) -> WorkspaceError:
        return WorkspaceError(
            "it cannot be read, or is being written", path=self.path, hint="it will be retried automatically"
        )


def _drop_unchanged(descriptor: int, name: str, raw: bytes) -> None:
    """Deletes a displaced file, after the folder is synced: a program that had found it under its old path, and was
    held up before it had it open, has saved into it by now, and `list_displaced` finds that."""
    found, final = _read_final(descriptor, name)
    if final and isinstance(found, Found) and found.raw == raw:
        _drop(descriptor, name)


def _drop(descriptor: int, name: str) -> None:
    # What cannot be removed now is swept later; it must not turn a durable write into an error.
    with suppress(OSError):
        os.unlink(name, dir_fd=descriptor)


def is_being_written(root: str, path: str) -> bool:
    """Returns whether some program has a file open for writing at this moment; False if the system cannot know."""
    where, name = split_path(path)
    with suppress(OSError, WorkspaceError), folder(root, where) as descriptor:
        handle = os.open(name, READ, dir_fd=descriptor)
        try:
            return has_no_writer(handle) is False
        finally:
            os.close(handle)
    return False


def _read_final(descriptor: int, name: str) -> tuple[Found | Trouble, bool]:
    """Reads a displaced file once no process can write to it any more; the flag says whether that could be verified.

    A process that opened it under its old name may still write: then it is `unsettled`.
    """
    try:
        handle = os.open(name, READ, dir_fd=descriptor)
    except OSError as error:
        return open_trouble(error), False
    try:
        alone = has_no_writer(handle)
        if alone is False:
            return Trouble("unsettled", "a program has it open for writing"), False
        found = read_settled(descriptor, name, OWN_LIMIT)
        if alone and is_wanted(handle):
            return Trouble("unsettled", "a program opened it for writing"), False
        return found, alone is True
    finally:
        os.close(handle)


def retract(root: str, path: str, expected: bytes) -> bool:
    """Removes a file if it still holds these bytes, and syncs its folder; False if it was saved meanwhile.

    It is moved aside first and compared then, so that no save is lost.
    """
    where, name = split_path(path)
    with folder(root, TEMPORARY, create=True) as temporary, folder(root, where) as target:
        held = name_displaced(_fresh(), path, ours=expected, expected=expected)
        try:
            os.rename(name, held, src_dir_fd=target, dst_dir_fd=temporary)
        except FileNotFoundError:
            return True
        old, final = _read_final(temporary, held)
        if isinstance(old, Found) and old.raw == expected:
            sync_descriptor(target)
            if final:
                _drop_unchanged(temporary, held, expected)
            return True
        if _appears(temporary, held, target, name):
            _drop(temporary, held)
        return False


def sync_folders(root: str, folders: set[str]) -> None:
    """Syncs several folders, after a batch of replacements with `sync_folder=False`."""
    for path in sorted(folders):
        with suppress(FileNotFoundError), folder(root, path) as descriptor:
            sync_descriptor(descriptor)


def unlink(root: str, path: str) -> None:
    """Removes a file, if it is there, and syncs its folder."""
    where, name = split_path(path)
    with suppress(FileNotFoundError, NotADirectoryError), folder(root, where) as descriptor:
        os.unlink(name, dir_fd=descriptor)
        sync_descriptor(descriptor)


def remove_empty_folders(root: str, path: str) -> None:
    """Removes a folder and its parents, as far as they are empty."""
    while path:
        where, name = split_path(path)
        try:
            with folder(root, where) as descriptor:
                os.rmdir(name, dir_fd=descriptor)
        except (OSError, WorkspaceError):
            return
        path = where


def explain_unwritable(root: str, path: str) -> str:
    """Returns why no file can be made in a folder of the workspace, or "" if one can; writes nothing."""
    for where in (os.path.join(root, path), root):
        if os.path.isdir(where):
            if os.access(where, os.W_OK | os.X_OK):
                return ""
            return (
                "it is on a read-only file system" if os.statvfs(where).f_flag & os.ST_RDONLY else "permission denied"
            )
    return "its folder is gone"


def sweep(root: str, *, rest: float) -> None:
    """Removes temporary files whose owner is dead, or that are older than a day.

    Displaced files are removed only if they hold what we had written or read; `list_displaced` returns the others.
    """
    with suppress(OSError, WorkspaceError), folder(root, TEMPORARY) as descriptor:
        durable.sweep(".", _TEMPORARY_NAME, dir_fd=descriptor)
    for place, held, found in _list_held_aside(root, rest):
        if isinstance(found, Found) and held.holds_ours(found.raw):
            with suppress(OSError, WorkspaceError):
                unlink(root, place)


class Displaced(NamedTuple):
    """A person's file that a crash kept from being put back: where it is, the path that it had, and its bytes.

    `path` is empty if it was too long for the name; `raw` is None while another process may still write to it.
    """

    place: str
    path: str
    raw: bytes | None


def list_displaced(root: str, *, rest: float) -> list[Displaced]:
    """Lists the displaced files that exist nowhere else and have to be kept; `rest` 0 includes the newest."""
    return [
        Displaced(place, held.path, found.raw if isinstance(found, Found) else None)
        for place, held, found in _list_held_aside(root, rest)
        if not (isinstance(found, Found) and held.holds_ours(found.raw))
    ]


def _list_held_aside(root: str, rest: float) -> Iterator[tuple[str, DisplacedName, Found | Trouble]]:
    """Yields the displaced files that no process is working on."""
    with suppress(OSError, WorkspaceError), folder(root, TEMPORARY) as descriptor:
        for name in sorted(os.listdir(descriptor)):
            held = parse_displaced(name)
            status = status_at(descriptor, name) if held is not None else None
            if held is None or status is None:
                continue
            # Its ctime changes both when it is displaced and when it is written to.
            rested = time.time() - status.st_ctime >= rest
            if not rested and process_alive(held.pid):
                continue
            found, final = _read_final(descriptor, name)
            if not isinstance(found, Found) or final or rested:
                yield f"{TEMPORARY}/{name}", held, found


def can_swap(root: str) -> bool | None:
    """Tests with two empty files in `.signet/tmp`, which are removed, whether names can be swapped; None if unknown."""
    one, two = _fresh(), _fresh()
    try:
        with folder(root, TEMPORARY) as descriptor:
            before = os.fstat(descriptor)
            try:
                for name in (one, two):
                    os.close(os.open(name, CREATE, 0o600, dir_fd=descriptor))
                return _rename(descriptor, one, descriptor, two, _EXCHANGE)
            finally:
                _drop(descriptor, one)
                _drop(descriptor, two)
                os.utime(descriptor, ns=(before.st_atime_ns, before.st_mtime_ns))
    except (OSError, WorkspaceError):
        return None


_NOREPLACE, _EXCHANGE = 1, 2
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})


def _rename(source_fd: int, source: str, target_fd: int, target: str, flag: int) -> bool:
    """Calls renameat2 (Linux) or renameatx_np (macOS); False if the system or the file system lacks it."""
    import ctypes

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


def _renameat2() -> "ctypes._NamedFuncPointer | None":
    import ctypes

    try:
        library = ctypes.CDLL(None, use_errno=True)
        function = library.renameatx_np if sys.platform == "darwin" else library.renameat2
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return function


# ── renames, never over something that is there ──


def move_away(root: str, path: str, name: str) -> bool:
    """Gives what is at a path another name in its folder, durably: a link as a link, a folder with all that it holds.

    False if the name is taken. Raises `FileNotFoundError` if there is nothing to move.
    """
    where, old = split_path(path)
    with folder(root, where) as parent:
        try:
            if not _rename(parent, old, parent, name, _NOREPLACE):
                # Only we make such names: where a rename cannot refuse, a look before it is enough.
                if status_at(parent, name) is not None:
                    return False
                os.rename(old, name, src_dir_fd=parent, dst_dir_fd=parent)
        except FileExistsError:
            return False
        sync_descriptor(parent)
    return True
