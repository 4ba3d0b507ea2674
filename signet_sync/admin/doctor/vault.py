"""Checks the vault: its folder and file system, readable files, its location, and other programs that work on it."""

from __future__ import annotations

import errno
import os
import shlex
import stat
import sys
from collections.abc import Iterator

from signet_sync.admin.doctor.installation import Finding, Installation, access_command, fine, problem, span, warning
from signet_sync.errors import SignetSyncError
from signet_sync.formats.paths import MEMORY, SETTINGS, display, head_page
from signet_sync.pages.others import HOLD, daemon_pid, replaced
from signet_sync.pages.store.pages import signet_trouble
from signet_sync.settings import model
from signet_sync.storage import writing
from signet_sync.storage.locations import user_file
from signet_sync.sync.store import counts, passes

NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs", "fuse.rclone"}


def workspace(target: Installation) -> list[Finding]:
    """Checks that the folders exist and can be used."""
    root = target.root
    quoted = shlex.quote(root)
    if os.path.islink(root) and not os.path.exists(root):
        words = f"{root} is a link to {os.readlink(root)}, which does not exist"
        return [problem("workspace", words, f"ls -l {quoted}  # bring back what it leads to, or: unlink {quoted}")]
    if os.path.lexists(root) and not os.path.isdir(root):
        return [problem("workspace", f"{root} is not a folder", "signet-sync --workspace FOLDER doctor")]
    if not os.path.isdir(root):
        return [problem("workspace", f"{root} does not exist", f"{target.command('setup')}  # or give --workspace")]
    found = [fine("workspace", root)]
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        words = "the workspace cannot be written; check works where it can be read"
        found.append(problem("permissions", words, access_command(root, "u+rwx")))
    return [*found, *_memory(target, quoted)]


def _memory(target: Installation, quoted: str) -> Iterator[Finding]:
    memory = os.path.join(target.root, MEMORY)
    try:
        mode = os.lstat(memory).st_mode
    except FileNotFoundError:
        if os.path.isfile(target.database):
            remedy = f"ls -la {quoted}  # bring memory/ back: mount it, or let the sync end"
            yield warning("memory", "memory/ is missing", remedy)
        else:
            yield warning("memory", "there is no memory/ yet", target.command("init"))
    except OSError:
        return  # the parent folder denies access, which is reported already
    else:
        if stat.S_ISDIR(mode):
            yield from _reading(memory)
        else:
            remedy = f"ls -ld {shlex.quote(memory)}  # move it away and put the folder itself in its place"
            yield problem("memory", "memory/ is not a real folder", remedy)


def _reading(memory: str) -> Iterator[Finding]:
    """Reports files in `memory/` that cannot be opened; links are left to `check`."""
    try:
        with os.scandir(memory) as entries:
            closed = [
                entry.path
                for entry in entries
                if entry.name.endswith(".md")
                and entry.is_file(follow_symlinks=False)
                and not os.access(entry.path, os.R_OK)
            ]
    except OSError as error:
        yield problem("memory", f"memory/ cannot be listed: {error.strerror}", _name_folder(memory, error))
        return
    if os.access(os.path.dirname(memory), os.W_OK) and not os.access(memory, os.W_OK):
        words = "memory/ cannot be written: no session can be saved"
        yield problem("permissions", words, access_command(memory, "u+rwx"))
    if closed:
        first = f"{MEMORY}/{os.path.basename(min(closed))}"
        words = first if len(closed) == 1 else f"{len(closed)} files in memory/, the first {first},"
        names = "" if len(closed) == 1 else f"{shlex.quote(memory)}/*.md"
        yield problem("unreadable", f"{display(words)} cannot be read", access_command(closed[0], "u+r", names))


def _name_folder(memory: str, error: OSError) -> str:
    if sys.platform == "darwin" and error.errno == errno.EPERM:
        # macOS asks once, for a program with a window; a service is refused silently.
        return f"System Settings, Privacy & Security, Full Disk Access: add {sys.executable}, then restart the agent"
    return access_command(memory, "u+rwx")


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
        found.append(warning("file-system", words, f"watch.mode = 'polling' in {os.path.join(target.root, SETTINGS)}"))
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
    _, remarks = model.load(target.root, environ=target.environ, anyway=True)
    rename = f"correct its name in {os.path.join(target.root, SETTINGS)}, or remove the line"
    move = f"move it to {user_file(target.environ)}"
    return [
        problem("settings", str(remark), remark.hint)
        if remark.broken
        else warning("settings", str(remark), rename if model.UNKNOWN in remark.message else move)
        for remark in remarks
    ] or [fine("settings", "every setting is known and in range")]


def signet(target: Installation) -> list[Finding]:
    """Checks whether a Signet daemon would also write MEMORY.md, and whether its database could be read."""
    trouble = target.query(signet_trouble)
    remedy = "see to that database, or move it away; the next full pass reads it again"
    return [*([warning("signet-database", display(trouble), remedy)] if trouble else []), *_daemon(target)]


def _daemon(target: Installation) -> list[Finding]:
    try:
        pid = daemon_pid(target.root)
    except (OSError, SignetSyncError):
        return []
    if pid is None:
        return _check_page_owner(target)
    if target.settings.takeover:
        return [fine("signet-daemon", f"a Signet daemon (pid {pid}) runs, and projection.takeover is set")]
    words = f"a Signet daemon (pid {pid}) runs on this workspace; pages and manifests are held back"
    others = f"to leave Signet: {target.command('migrate signet')}; to write beside it: projection.takeover = true"
    return [warning("signet-daemon", words, f"kill {pid}  # {others} in {SETTINGS}")]


def _check_page_owner(target: Installation) -> list[Finding]:
    """Reports a page that a Signet, no longer detected, wrote over ours."""
    if target.settings.takeover:
        return []
    path, age = target.query(lambda database: replaced(target.root, database, counts.agents(database))) or ("", 0.0)
    if not path:
        return []
    words = f"Signet replaced {path} after signet-sync had written it, and no daemon of it runs here"
    held = f"; pages and manifests are held back for another {span(HOLD - age)}" if age < HOLD else ""
    remedy = f"{target.command('reindex')}  # takes it back then; to write at once: projection.takeover = true"
    return [warning("signet-daemon", words + held, f"{remedy} in {SETTINGS}")]


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
        # A running agent writes it within moments, or, if held back by Signet's daemon, when that has gone.
        if not target.alive and daemon_pid(target.root) is None:
            yield warning("page", f"{display(page)} is not there", target.command("reindex"))
        return
    if not stat.S_ISREG(status.st_mode):
        quoted = shlex.quote(path)
        words = f"{display(page)} is a link or a folder, so it is no longer written"
        yield problem("page", words, f"mv {quoted} {quoted}.aside && {target.command('reindex')}")
    elif not os.access(path, os.R_OK):
        words = f"{display(page)} cannot be read, so it is no longer written"
        yield problem("page", words, access_command(path, "u+rw"))
