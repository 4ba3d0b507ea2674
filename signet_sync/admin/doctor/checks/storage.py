"""Checks disk space, and our state folder: who has access to it, and what waits in it to be processed."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress

from signet_sync.admin.doctor.installation import Finding, Installation, fine, problem, span, warning
from signet_sync.capture import spool
from signet_sync.sessions import journal
from signet_sync.sessions.live import files as live_files
from signet_sync.text.phrases import count_noun

# Jobs are taken within moments; one that waits for longer, in seconds, is not being processed.
MOMENT = 60.0
# Seconds in which a running agent has tried several times.
LONG = 3600.0
LOW_SPACE = 100 * 1024 * 1024
LOW_INODES = 1000


def modes(target: Installation) -> list[Finding]:
    """Checks that state folder and database belong to the user, and that nobody else has access."""
    folder = target.folder.path
    quoted = shlex.quote(folder)
    if not os.path.isdir(folder):
        return _room_for(folder)
    strange = [path for path in _all(folder) if not _is_ours(path)]
    if strange:
        words = f"{strange[0]} belongs to another user: a command was run as another user"
        return [problem("state-owner", words, f'sudo chown -R "$USER" {quoted}')]
    found = []
    wrong = badly_kept(folder)
    if wrong:
        remedy = f"chmod -R u+rwX,go-rwx {quoted}"
        closed = next((path for path in wrong if not _lets_owner(path)), None)
        if closed is not None:
            found.append(problem("state-mode", f"we are kept out of {closed} by its mode", remedy, fix=True))
        else:
            found.append(warning("state-mode", f"other users can read {wrong[0]}", remedy, fix=True))
    if os.path.isfile(target.database) and is_open(target.database):
        remedy = f"chmod 600 {shlex.quote(target.database)}"
        found.append(warning("database-mode", "other users can read the database", remedy, fix=True))
    return found


def _room_for(folder: str) -> list[Finding]:
    """Checks that the state folder can be created at its place."""
    while folder and not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if os.access(folder, os.W_OK | os.X_OK):
        return []
    remedy = f"chmod u+rwx {shlex.quote(folder)}" if _is_ours(folder) else f'sudo chown "$USER" {shlex.quote(folder)}'
    return [problem("state-folder", f"the state folder cannot be made: {folder} cannot be written", remedy)]


def badly_kept(folder: str) -> list[str]:
    """Returns paths of the state folder that its owner cannot use, and folders open to others; links are ignored."""
    return [path for path in _all(folder) if not _lets_owner(path) or (os.path.isdir(path) and is_open(path))]


def is_open(path: str) -> bool:
    """Returns whether others than the owner have any access to it."""
    try:
        return bool(stat.S_IMODE(os.stat(path).st_mode) & 0o077)
    except OSError:
        return False


def _all(folder: str) -> Iterator[str]:
    """Yields the folder and every file and folder in it."""
    if not os.path.isdir(folder):
        return
    yield folder
    for where, names, others in os.walk(folder):
        for name in [*names, *others]:
            path = os.path.join(where, name)
            with suppress(OSError):  # deleted meanwhile
                if stat.S_IFMT(os.lstat(path).st_mode) in (stat.S_IFREG, stat.S_IFDIR):
                    yield path


def _is_ours(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except OSError:
        return True  # deleted meanwhile


def _lets_owner(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return True
    wanted = 0o700 if stat.S_ISDIR(mode) else 0o600
    return mode & wanted == wanted


# ── what waits to be processed ──


def waiting(target: Installation) -> list[Finding]:
    """Reports unprocessed jobs of hooks, unfinished ends of sessions, damaged live turns."""
    return [*_spool(target), *_journal(target), *_live(target)]


def _spool(target: Installation) -> Iterator[Finding]:
    folder = target.folder.spool
    count = spool.size(folder)[0] - len(spool.markers(folder))
    age = target.now - (spool.oldest(folder) or target.now)
    words = f"jobs of hooks that wait in the spool: {count}, the oldest for {span(age)}"
    if count and not target.alive and age > MOMENT:
        yield warning("spool", f"{words}, and no agent runs to process them", target.command("reindex"), fix=True)
    elif count and age > LONG:
        yield warning("spool", f"{words}, although an agent runs", target.command("logs intake"))
    else:
        yield fine("spool", "nothing waits too long")
    lost = spool.count_given_up(folder)
    if lost:
        words = f"jobs of hooks that could not be processed: {lost}; they are deleted after {spool.BAD_DAYS} days"
        remedy = f"{target.command('logs intake')}  # says why; import HARNESS reads its transcripts once more"
        yield warning("spool-given-up", words, remedy)


def _journal(target: Installation) -> Iterator[Finding]:
    old = []
    for key in journal.keys(target.folder.journal):
        with suppress(OSError):
            began = os.stat(os.path.join(target.folder.journal, f"{key}.json")).st_mtime
            if target.now - began > MOMENT:
                old.append(began)
    if old:
        age = span(target.now - min(old))
        words = f"ends of sessions that were begun and not finished: {len(old)}, the oldest {age} ago"
        yield warning("unfinished", words, target.command("reindex"), fix=True)


def _live(target: Installation) -> Iterator[Finding]:
    folder = target.folder.live
    aside = live_files.list_damaged_files(folder)
    damaged = []
    for name in live_files.names(folder):
        with suppress(OSError):
            kept = live_files.read(folder, name)
            if kept is None or kept.damaged:
                damaged.append(name)
    found = [os.path.join(folder, name) for name in (*damaged, *aside)]
    if found:
        words = f"live turns that cannot be read: lines of {count_noun(len(found), 'file')}"
        remedy = f"open {shlex.quote(found[0])}  # what can be read is kept; the session's transcript has the rest"
        yield warning("live", words, remedy)


# ── disk space ──


def room(target: Installation) -> list[Finding]:
    """Checks free bytes and inodes on the disks of workspace and database."""
    found = []
    for what, path in (("workspace", target.root), ("state folder", os.path.dirname(target.database))):
        try:
            place = _existing(path)
            left = os.statvfs(place)
        except OSError:
            continue
        remedy = f"du -xh --max-depth=1 {shlex.quote(place)} | sort -h  # shows what is large; make room"
        free = left.f_bavail * left.f_frsize
        if free < LOW_SPACE:
            found.append(problem("disk-space", f"{free // 1_000_000} MB left for the {what}", remedy))
        elif left.f_files and left.f_favail < LOW_INODES:
            words = f"only {left.f_favail} more files can be made on the disk of the {what}"
            found.append(problem("disk-space", words, remedy.replace("du -xh", "du -x --inodes")))
    return found or [fine("disk-space", "enough")]


def _existing(path: str) -> str:
    while path and not os.path.exists(path):
        path = os.path.dirname(path)
    return path or "/"
