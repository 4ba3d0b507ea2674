"""Checks the database and our state folder: undamaged, consistent, and what the database records about the vault.

Of the folder: disk space, who has access to it, and what waits in it to be processed.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress

import apsw

from signet_sync.admin.doctor.installation import Finding, Installation, fine, problem, span, warning
from signet_sync.capture import spool
from signet_sync.entities import store as entities_store
from signet_sync.errors import DatabaseCorrupt, DatabaseError
from signet_sync.formats.paths import display
from signet_sync.pages import conflict_copies
from signet_sync.sessions import journal
from signet_sync.storage.database import salvage
from signet_sync.storage.database.connection import (
    Database,
    is_odd,
    list_set_aside,
    mark_suspect,
    note_damage,
)
from signet_sync.storage.database.tables import TABLES
from signet_sync.sync.store import artifacts, passes, texts
from signet_sync.sync.store import counts as counts_store
from signet_sync.text.phrases import count_noun
from signet_sync.text.sanitizer import sanitizer_stamp

_SHOWN = 3  # paths named in a finding


def index(target: Installation) -> list[Finding]:
    """Checks every page of the database, full text, open violations, and databases moved aside before."""
    path = target.database
    if os.path.isdir(path):
        quoted = shlex.quote(path)
        remedy = f"mv {quoted} {quoted}.aside && {target.command('reindex')}"
        return [problem("database", f"{path} is a folder", remedy)]
    is_shut = target.is_unreadable or (os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK))
    if is_shut and target.chosen is None:
        return []  # unknown; another finding names the reason
    if path == ":memory:":
        return [fine("database", "in memory, for one command")]
    try:
        database = Database(path, readonly=True)
    except FileNotFoundError:
        return [warning("database", "there is no index yet", target.command("reindex"))]
    except DatabaseError as error:
        return [_unusable(target, error), *_set_aside(path)]
    try:
        return [*_bytes(target, database), *_rows(target, database), *_set_aside(path)]
    except (apsw.Error, DatabaseError) as error:
        return [_unusable(target, error), *_set_aside(path)]
    finally:
        database.connection.close()


def _unusable(target: Installation, error: apsw.Error | DatabaseError) -> Finding:
    translated = note_damage(error, target.database)
    if translated.code == "database-behind":
        return warning("database-behind", translated.message, target.command("reindex"))
    if isinstance(translated, DatabaseCorrupt) or is_odd(error):
        return _report_damage(target, translated.message)
    return problem("database", f"{target.database}: {translated.message}", translated.hint)


def _report_damage(target: Installation, what: str) -> Finding:
    return problem("database", what, f"{target.command('reindex')} --full  # moves it aside, rebuilds it")


def _bytes(target: Installation, database: Database) -> list[Finding]:
    problems = database.problems(closely=TABLES) or salvage.implausible_rows(database)
    if problems:
        if database.problems():
            # A pass may never read these pages, so mark the database: the next pass checks all pages. Wrong values need
            # no mark: a rebuild fixes them.
            mark_suspect(database.path)
        return [_report_damage(target, f"damaged: {problems[0]}")]
    if not texts.is_in_step(database):
        return [problem("full-text", "out of step with its rows", target.command("reindex"))]
    return [fine("database", database.path)]


def _rows(target: Installation, database: Database) -> list[Finding]:
    found = []
    counts = counts_store.verdict_counts(database)
    open_ = counts.get("violation", 0)
    if open_:
        words = f"{count_noun(open_, 'open violation')}: sealed files that changed or are gone"
        found.append(problem("vault", words, target.command("violations list")))
    if counts.get("invalid"):
        found.append(warning("vault", f"invalid files: {counts['invalid']}", target.command("check")))
    found += _secrets(target, database)
    drifted = entities_store.drift(database)
    if drifted:
        what = count_noun(len(drifted), "entity file is", "entity files are")
        words = f"{what} not what their events say, the first {display(drifted[0].path)}: {drifted[0].message}"
        found.append(problem("entities", words, target.command("entity check")))
    found += _copies(target, database)
    if passes.is_halted(database):
        words = f"halted: {display(passes.halt_message(database))}; nothing was removed"
        accept = f"{target.command('reindex')} --accept-removals"
        remedy = f"put it right (mount memory/, or wait for the sync); only if all of it is to go for good: {accept}"
        found.append(problem("halt", words, remedy))
    return found


def _secrets(target: Installation, database: Database) -> list[Finding]:
    """Reports artifacts written before the sanitizer could find the secrets that it finds in them now."""
    paths = counts_store.list_suspected(database)
    if not paths:
        return []
    shown = ", ".join([*map(display, paths[:_SHOWN]), *(["…"] if len(paths) > _SHOWN else [])])
    words = f"files that seem to hold a secret: {len(paths)} ({shown})"
    if not (artifacts.sanitizer_of_rows(database) or "").startswith(sanitizer_stamp()):
        words += f"; not all of them were checked by this version: {target.command('reindex')}"
    reason = "--reason REASON  # takes it out of the files; index and pages leave it out already"
    return [warning("secrets", words, f"{target.command('redact')} --all {reason}")]


def _copies(target: Installation, database: Database) -> list[Finding]:
    """Reports copies that a sync service put beside files: either of the two may have the text the user wants."""
    paths = [one.path for one in counts_store.problems(database) if one.code == "conflict-copy"]
    paths += [one.path for one in conflict_copies.find(target.root)]
    if not paths:
        return []
    words = f"conflict copies of a sync service: {len(paths)}, the first {display(min(paths))}"
    remedy = f"{target.command('reindex')}  # lists them; compare each with its original and delete one"
    return [warning("copies", words, remedy)]


def _set_aside(path: str) -> list[Finding]:
    """Returns one finding for each damaged database that was moved aside."""
    return [
        warning(
            "database-aside",
            f"a damaged one was moved aside: {os.path.basename(name)}; its readable rows were taken over",
            f"rm {shlex.quote(name)}*  # and check the disk",
        )
        for name in list_set_aside(path)
    ]


# Jobs are taken within moments; one that waits for longer, in seconds, is not being processed.
MOMENT = 60.0
# Seconds in which a running agent has tried several times.
LONG = 3600.0
LOW_SPACE = 100 * 1024 * 1024


def modes(target: Installation) -> list[Finding]:
    """Checks that state folder and database belong to the user, and that nobody else has access."""
    folder = target.folder.path
    quoted = shlex.quote(folder)
    if not os.path.isdir(folder):
        return _room_for(folder)
    every = (os.path.join(where, name) for where, names, others in os.walk(folder) for name in (*names, *others))
    strange = [path for path in (folder, *every) if not _is_ours(path)]
    if strange:
        words = f"{strange[0]} belongs to another user: a command was run as another user"
        return [problem("state-owner", words, f'sudo chown -R "$USER" {quoted}')]
    found = []
    if is_open(folder):
        found.append(warning("state-mode", f"other users can read {folder}", f"chmod -R u+rwX,go-rwx {quoted}"))
    if os.path.isfile(target.database) and is_open(target.database):
        remedy = f"chmod 600 {shlex.quote(target.database)}"
        found.append(warning("database-mode", "other users can read the database", remedy))
    return found


def _room_for(folder: str) -> list[Finding]:
    """Checks that the state folder can be created at its place."""
    while folder and not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if os.access(folder, os.W_OK | os.X_OK):
        return []
    remedy = f"chmod u+rwx {shlex.quote(folder)}" if _is_ours(folder) else f'sudo chown "$USER" {shlex.quote(folder)}'
    return [problem("state-folder", f"the state folder cannot be made: {folder} cannot be written", remedy)]


def is_open(path: str) -> bool:
    """Returns whether others than the owner have any access to it."""
    try:
        return bool(stat.S_IMODE(os.stat(path).st_mode) & 0o077)
    except OSError:
        return False


def _is_ours(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except OSError:
        return True  # deleted meanwhile


# ── what waits to be processed ──


def waiting(target: Installation) -> list[Finding]:
    """Reports unprocessed jobs of hooks, unfinished ends of sessions."""
    return [*_spool(target), *_journal(target)]


def _spool(target: Installation) -> Iterator[Finding]:
    folder = target.folder.spool
    count = spool.count(folder)
    age = target.now - (spool.oldest(folder) or target.now)
    words = f"jobs of hooks that wait in the spool: {count}, the oldest for {span(age)}"
    if count and not target.alive and age > MOMENT:
        yield warning("spool", f"{words}, and no agent runs to process them", target.command("reindex"))
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
        yield warning("unfinished", words, target.command("reindex"))


# ── disk space ──


def room(target: Installation) -> list[Finding]:
    """Checks the free bytes on the disks of workspace and database."""
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
    return found or [fine("disk-space", "enough")]


def _existing(path: str) -> str:
    while path and not os.path.exists(path):
        path = os.path.dirname(path)
    return path or "/"
