"""Checks the vault and the index: folders, file system, other programs; the database, and what it records.

Of our state folder: who has access to it, and what waits in it to be processed.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
import sys
from collections.abc import Iterator
from contextlib import closing

import apsw

from signet_sync.admin.doctor.installation import Finding, Installation, access_command, fine, problem, span, warning
from signet_sync.capture import spool
from signet_sync.entities import store as entities_store
from signet_sync.errors import DatabaseCorrupt, DatabaseError, SignetSyncError, WorkspaceError
from signet_sync.formats.paths import MEMORY, SETTINGS, display, head_page
from signet_sync.pages import conflict_copies
from signet_sync.pages.others import daemon_pid
from signet_sync.pages.store.pages import SIGNET_TROUBLE
from signet_sync.settings import model
from signet_sync.storage import writing
from signet_sync.storage.database import native_backup
from signet_sync.storage.database.connection import (
    Database,
    is_odd,
    list_set_aside,
    mark_suspect,
    note_damage,
)
from signet_sync.storage.database.tables import TABLES
from signet_sync.storage.files import require_root
from signet_sync.storage.locations import user_file
from signet_sync.sync.store import artifacts, counts, passes, texts
from signet_sync.text.phrases import count_noun
from signet_sync.text.sanitizer import sanitizer_stamp

_SHOWN = 3  # paths named in a finding
NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs", "fuse.rclone"}


def workspace(target: Installation) -> list[Finding]:
    """Checks that the folders exist and can be used."""
    root = target.root
    try:
        require_root(root)
    except WorkspaceError as error:
        return [problem("workspace", f"{error.message}: {root}", error.hint)]
    found = [fine("workspace", root)]
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        words = "the workspace cannot be written; check works where it can be read"
        found.append(problem("permissions", words, access_command(root, "u+rwx")))
    return [*found, *_memory(target)]


def _memory(target: Installation) -> Iterator[Finding]:
    memory = os.path.join(target.root, MEMORY)
    try:
        mode = os.lstat(memory).st_mode
    except FileNotFoundError:
        if os.path.isfile(target.database):
            remedy = f"ls -la {shlex.quote(target.root)}  # bring memory/ back: mount it, or let the sync end"
            yield warning("memory", "memory/ is missing", remedy)
        else:
            yield warning("memory", "there is no memory/ yet", target.command("init"))
    except OSError:
        return  # the parent folder denies access, which is reported already
    else:
        if stat.S_ISDIR(mode):
            yield from _memory_access(memory)
        else:
            remedy = f"ls -ld {shlex.quote(memory)}  # move it away and put the folder itself in its place"
            yield problem("memory", "memory/ is not a real folder", remedy)


def _memory_access(memory: str) -> Iterator[Finding]:
    """Reports that `memory/` cannot be listed or written; of its files `check` does."""
    remedy = access_command(memory, "u+rwx")
    try:
        os.listdir(memory)
    except OSError as error:
        if sys.platform == "darwin" and error.errno == errno.EPERM:
            # macOS asks once, for a program with a window; a service is refused silently.
            remedy = f"System Settings, Privacy & Security, Full Disk Access: add {sys.executable}, restart the agent"
        yield problem("memory", f"memory/ cannot be listed: {error.strerror}", remedy)
        return
    if os.access(os.path.dirname(memory), os.W_OK) and not os.access(memory, os.W_OK):
        yield problem("permissions", "memory/ cannot be written: no session can be saved", remedy)


# ── the file system ──


def file_system(target: Installation) -> list[Finding]:
    """Checks that vault and database are on this machine, and that names can be swapped."""
    memory = os.path.join(target.root, MEMORY)
    if not os.path.isdir(memory):
        return []
    found = []
    kind, under = kind_of(memory), kind_of(os.path.dirname(target.database))
    if kind in NETWORK and target.settings.watch_mode == "auto":
        words = f"memory/ is on {kind}: changes of other machines raise no events"
        found.append(warning("file-system", words, f"reconcile.interval = 10 in {os.path.join(target.root, SETTINGS)}"))
    if under in NETWORK:
        words = f"the database is on {under}, where its locks and its log are not safe"
        found.append(problem("file-system", words, "export XDG_STATE_HOME=...  # a folder on a local disk"))
    if writing.can_swap(target.root) is False:
        words = f"{kind or 'its disk'} cannot swap two names: what you save while signet-sync does may be lost"
        found.append(warning("file-system", words, "keep the vault on APFS, ext4, btrfs or XFS"))
    if found:
        return found
    return [fine("file-system", kind or "local")]


def kind_of(path: str) -> str:
    """Returns the kind of the file system that holds a path, empty if the system does not report it."""
    best = ("", "")
    real = os.path.realpath(path)
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as handle:
            for line in handle:
                parts = line.split()
                point = parts[1].replace("\\040", " ")
                if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= len(best[0]):
                    best = (point, parts[2])
    except OSError:
        return ""
    return best[1]


# ── settings and other programs ──


def settings(target: Installation) -> list[Finding]:
    """Checks that every setting is known and in range."""
    _, remarks = model.load(target.root, anyway=True)
    rename = f"correct its name in {os.path.join(target.root, SETTINGS)}, or remove the line"
    move = f"move it to {user_file()}"
    return [
        problem("settings", str(remark), remark.hint)
        if remark.broken
        else warning("settings", str(remark), rename if model.UNKNOWN in remark.message else move)
        for remark in remarks
    ] or [fine("settings", "every setting is known and in range")]


def signet(target: Installation) -> list[Finding]:
    """Checks whether a Signet daemon would also write MEMORY.md, and whether its database could be read."""
    trouble = target.query(lambda database: database.state(*SIGNET_TROUBLE))
    remedy = "see to that database, or move it away; the next full pass reads it again"
    return [*([warning("signet-database", display(trouble), remedy)] if trouble else []), *_daemon(target)]


def _daemon(target: Installation) -> list[Finding]:
    try:
        pid = daemon_pid(target.root)
    except (OSError, SignetSyncError):
        return []
    if pid is None:
        return []
    if target.settings.takeover:
        return [fine("signet-daemon", f"a Signet daemon (pid {pid}) runs, and projection.takeover is set")]
    words = f"a Signet daemon (pid {pid}) runs on this workspace; pages and manifests are held back"
    others = f"to leave Signet: {target.command('migrate signet')}; to write beside it: projection.takeover = true"
    return [warning("signet-daemon", words, f"kill {pid}  # {others} in {SETTINGS}")]


# ── pages ──


def pages(target: Installation) -> list[Finding]:
    """Reports what prevents a MEMORY.md from being read or written."""
    heads = target.query(lambda index: [] if passes.is_halted(index) else counts.agents(index)) or []
    return [found for agent_id in heads for found in _page(target, head_page(agent_id))]


def _page(target: Installation, page: str) -> Iterator[Finding]:
    path = os.path.join(target.root, page)
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return  # the next pass writes it
    if not stat.S_ISREG(status.st_mode):
        quoted = shlex.quote(path)
        words = f"{display(page)} is a link or a folder, so it is no longer written"
        yield problem("page", words, f"mv {quoted} {quoted}.aside && {target.command('reindex')}")
    elif not os.access(path, os.R_OK):
        words = f"{display(page)} cannot be read, so it is no longer written"
        yield problem("page", words, access_command(path, "u+rw"))


# ── the database, and our state folder ──


def index(target: Installation) -> list[Finding]:
    """Checks every page of the database, full text, open violations, and databases moved aside before."""
    path = target.database
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
        return [_report_unusable(target, error), *_set_aside(path)]
    with closing(database):
        try:
            return [*_bytes(target, database), *_rows(target, database), *_set_aside(path)]
        except (apsw.Error, DatabaseError) as error:
            return [_report_unusable(target, error), *_set_aside(path)]


def _report_unusable(target: Installation, error: apsw.Error | DatabaseError) -> Finding:
    translated = note_damage(error, target.database)
    if translated.code == "database-behind":
        return warning("database-behind", translated.message, target.command("reindex"))
    if isinstance(translated, DatabaseCorrupt) or is_odd(error):
        return _report_damage(target, translated.message)
    return problem("database", f"{target.database}: {translated.message}", translated.hint)


def _report_damage(target: Installation, what: str) -> Finding:
    return problem("database", what, f"{target.command('reindex')} --full  # moves it aside, rebuilds it")


def _bytes(target: Installation, database: Database) -> list[Finding]:
    problems = database.problems(closely=TABLES) or native_backup.implausible_rows(database)
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
    verdicts = counts.verdict_counts(database)
    open_ = verdicts.get("violation", 0)
    if open_:
        words = f"{count_noun(open_, 'open violation')}: sealed files that changed or are gone"
        found.append(problem("vault", words, target.command("violations list")))
    if verdicts.get("invalid"):
        found.append(warning("vault", f"invalid files: {verdicts['invalid']}", target.command("check")))
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
    paths = counts.list_suspected(database)
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
    paths = [one.path for one in counts.problems(database) if one.code == "conflict-copy"]
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


def modes(target: Installation) -> list[Finding]:
    """Checks that the state folder belongs to the user, and that nobody else has access."""
    folder = target.folder.path
    quoted = shlex.quote(folder)
    if not os.path.isdir(folder):
        return []
    every = (os.path.join(where, name) for where, names, others in os.walk(folder) for name in (*names, *others))
    strange = [path for path in (folder, *every) if not _is_ours(path)]
    if strange:
        words = f"{strange[0]} belongs to another user: a command was run as another user"
        return [problem("state-owner", words, f'sudo chown -R "$USER" {quoted}')]
    if stat.S_IMODE(os.stat(folder).st_mode) & 0o077:
        return [warning("state-mode", f"other users can read {folder}", f"chmod -R u+rwX,go-rwx {quoted}")]
    return []


def _is_ours(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except OSError:
        return True  # deleted meanwhile


# ── what waits to be processed ──


def jobs(target: Installation) -> Iterator[Finding]:
    """Reports jobs of hooks that nobody processes."""
    folder = target.folder.spool
    count = spool.count(folder)
    age = target.now - (spool.oldest(folder) or target.now)
    words = f"jobs of hooks that wait in the spool: {count}, the oldest for {span(age)}"
    if count and not target.alive and age > MOMENT:
        yield warning("spool", f"{words}, and no agent runs to process them", target.command("reindex"))
    elif count and age > LONG:
        yield warning("spool", f"{words}, although an agent runs", target.command("logs intake"))
    lost = spool.count_given_up(folder)
    if lost:
        words = f"jobs of hooks that could not be processed: {lost}; they are deleted after {spool.BAD_DAYS} days"
        remedy = f"{target.command('logs intake')}  # says why; import HARNESS reads its transcripts once more"
        yield warning("spool-given-up", words, remedy)
