"""Commits the files of the workspace that are ours, by an allow-list of paths, to its repository."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING

from signet_sync.errors import WorkspaceError
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import OF_AGENT, display
from signet_sync.formats.snapshot import Found
from signet_sync.history import repository
from signet_sync.history.repository import MAIN, run_git
from signet_sync.storage import files
from signet_sync.storage.durable import create, sync_folder, unlink
from signet_sync.storage.files import folder
from signet_sync.text.sanitizer import sanitize_counted, sanitize_line, sanitize_transcript_v2

if TYPE_CHECKING:
    import pygit2

    Entries = dict[str, tuple[pygit2.Oid, int]]  # id and mode by path

SUBJECT_LENGTH = 200  # characters
LISTED = 100  # skipped files listed in a commit's body
MAX_BYTES = 1024 * 1024  # of a file
MANY = 2000  # loose objects from which a pack is worthwhile
FIRST = "workspace init"
# The committer's address: it marks the name as an agent's id, which no setting can do.
AGENTS_ADDRESS = "signet-sync@localhost"

# ── which files ──

_OURS = late(
    rf"{OF_AGENT}(?:[^/]+\.md|ledger/(?:[^/]+/)*[^/]+\.md|entities/(?:[^/]+/)*[^/]+\.(?:md|jsonl))"
    r"|memory/(?:tombstones/)?[^/]+\.md|memory/words/[^/]+\.jsonl|signet-sync\.toml|\.git(?:ignore|attributes)"
)
_FOLDERS = late(rf"memory(?:/tombstones|/words)?|agents|agents/[^/]+|{OF_AGENT}(?:ledger|entities)(?:/[^/]+)*")
_TRANSCRIPT = late(r"memory/[^/]*--transcript[^/]*\.md")
# The same list for a person's own git, whose `status` then shows what the next commit takes.
_IGNORED = (
    "/* !/.gitignore !/.gitattributes !/*.md !/signet-sync.toml !/memory/ /memory/* !/memory/*.md "
    "!/memory/tombstones/ /memory/tombstones/* !/memory/tombstones/*.md !/memory/words/ /memory/words/* "
    "!/memory/words/*.jsonl !/ledger/ !/entities/ !/agents/ agents/*/* !agents/*/*.md !agents/*/ledger/ "
    "!agents/*/entities/ ledger/** !ledger/**/ !ledger/**/*.md entities/** !entities/**/ !entities/**/*.md "
    "!entities/**/*.jsonl /memory/*--transcript*.md transcripts/ media/ *.tmp *.swp .DS_Store "
)
_ONCE = "# Written once by signet-sync"
_SAME = f"{_ONCE}. What it commits is fixed; these rules only tell your own git the same."
BESIDE = {
    ".gitignore": "\n".join((_SAME, *_IGNORED.split(), "")).encode(),
    ".gitattributes": f"{_ONCE}: every file is kept byte for byte.\n* -text\n".encode(),
}


def _scan(root: str) -> dict[str, str]:
    """Returns the paths of the allow-list, and of each why it is not read ("": it is); links are not followed.

    A name that some file system takes for another one (`git~1`, one with invisible characters) is not read.
    """
    found: dict[str, str] = {}
    pending = [""]
    while pending:
        where = pending.pop()
        prefix = f"{where}/" if where else ""
        try:
            with folder(root, where) as descriptor, os.scandir(descriptor) as entries:
                inside = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except FileNotFoundError:
            continue
        except (OSError, WorkspaceError):
            found[where] = "unreadable"
            continue
        for name, is_folder in inside:
            path = prefix + name
            wanted = _FOLDERS.fullmatch(path) and not name.startswith(".") if is_folder else _OURS.fullmatch(path)
            if not wanted or ".git/" in path or _TRANSCRIPT.fullmatch(path):
                continue
            if not name.isprintable() or (is_folder and ("~" in name or ":" in name)):
                found[path] = "not-a-file"
            elif is_folder:
                pending.append(path)
            else:
                found[path] = ""
    return found


def _holds_secret(path: str, raw: bytes) -> bool:
    """Returns whether the sanitizer would redact anything in a file or its name."""
    encodings = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
    text = raw.decode(encodings.get(raw[:2], "utf-8"), "replace")
    return bool(sanitize_counted(path)[1] or sanitize_counted(text)[1])


def _next_tree(
    git: pygit2.Repository, root: str, seen: Mapping[str, str], before: Entries
) -> tuple[Entries, dict[str, str]]:
    """Returns what the next commit contains, each file as it is, as it was or not at all, and by path why not as it is.

    What a person committed beside ours stays. The reasons are `too-large`, `secret`, `not-a-file`, `unreadable`,
    `unsettled`. What the last commit has is not searched for secrets again.
    """
    import pygit2

    odd = tuple(f"{path}/" for path, why in seen.items() if why)
    entries = {path: entry for path, entry in before.items() if not _OURS.fullmatch(path) or path.startswith(odd)}
    skipped: dict[str, str] = {}
    for path, why in sorted(seen.items()):
        read = files.read(root, path, MAX_BYTES) if not why else None
        if isinstance(read, Found):
            oid = pygit2.hash(read.raw)
            if oid == before.get(path, (None, 0))[0]:
                entries[path] = (oid, 0o100644)
                continue
            if not _holds_secret(path, read.raw):
                entries[path] = (git.create_blob(read.raw), 0o100644)
                continue
            why = "secret"
        elif read is not None:
            why = read.code
        if why != "gone":
            skipped[path] = why
            if path in before:
                entries[path] = before[path]
    return entries, skipped


# ── committing ──


def commit(
    git: pygit2.Repository,
    root: str,
    *,
    subject: str,
    body: str,
    author: tuple[str, str],
    agent: tuple[str, str],
    now_us: int,
) -> tuple[str | None, dict[str, str]]:
    """Commits what changed; `author` is name and address, `now_us` is microseconds.

    Returns the commit's 40 hex digits, None if nothing changed, and by path why files are not committed as they are.
    `agent` is the committer and identifies the agent, whatever the settings call the author. A history begins with a
    commit of `BESIDE` alone, so that the next one has its own subject. A tracked file that cannot be committed keeps
    its last version. The caller holds the history lock. A kill never leaves an invalid repository: objects are durable
    before the ref moves. Raises `RepositoryRefused` if the repository is damaged or another git command uses it
    (`history-busy`), `OSError`.
    """
    _release(root)
    repository.refuse_busy(root)
    import pygit2

    oid: str | None = None
    skipped: dict[str, str] = {}
    for first in (True, False) if repository.tip(git) is None else (False,):
        parent = repository.tip(git)
        index = pygit2.Index()
        if parent is not None:
            index.read_tree(parent.tree)
        before = {entry.path: (entry.id, int(entry.mode)) for entry in index}
        seen = {path: why for path, why in _scan(root).items() if not first or path in BESIDE}
        entries, skipped = _next_tree(git, root, seen, before)
        index.clear()
        for path, (blob, mode) in entries.items():
            index.add(pygit2.IndexEntry(path, blob, pygit2.enums.FileMode(mode)))
        tree = index.write_tree(git)
        if parent is not None and parent.tree_id == tree:
            if os.path.lexists(os.path.join(root, ".git", _INDEX)):  # a kill came between the ref and the index
                _publish(git, root, parent, parent.id, index)
            return None, skipped
        by, through = _signature(author, now_us), _signature(agent, now_us)
        text = _message(FIRST, "", {}) if first else _message(subject, body, skipped)
        made = git.create_commit(None, by, through, text, tree, [parent.id] if parent is not None else [])
        if not _publish(git, root, parent, made, index):
            raise repository.busy("another git command is running")
        oid = str(made)
    # Ids are evenly distributed: as git does, we count the objects of one folder for all.
    with suppress(FileNotFoundError):
        if len(os.listdir(os.path.join(root, ".git/objects/17"))) * 256 > MANY:
            run_git(root, root, "repack", "-d", "-q")
    return oid, skipped


# ── under git's locks ──

# Git's protocol: who creates `NAME.lock` may replace `NAME`. A lock that a dead process left blocks all programs for
# ever; ours is a hard link of a file that only we write, by which our next process knows it.
_INDEX, _REF = "signet-index", "signet-ref"


def _release(root: str) -> None:
    """Removes the locks that a killed process of ours left; keeps `signet-index` if the index is not published yet."""
    for name, staged in (("index", _INDEX), (MAIN, _REF)):
        lock, ours = (os.path.join(root, ".git", path) for path in (f"{name}.lock", staged))
        with suppress(FileNotFoundError):
            if os.path.samestat(os.lstat(lock), os.lstat(ours)):
                os.unlink(lock)
    unlink(os.path.join(root, ".git", _REF))


@contextmanager
def _lock_file(root: str, name: str, staged: str) -> Iterator[str]:
    """Yields the file to rename into place, locked; an empty string if another program holds the lock."""
    lock, ours = (os.path.join(root, ".git", path) for path in (f"{name}.lock", staged))
    source = lock
    try:
        os.link(ours, lock, follow_symlinks=False)
    except FileExistsError:
        source = ""
    except OSError:
        source = ours  # no hard links here: unlocked, a git command at the same moment may win, but nothing is lost
    try:
        yield source
    finally:
        if source == lock:
            unlink(lock)
        unlink(ours)


def _publish(
    git: pygit2.Repository, root: str, parent: pygit2.Commit | None, made: pygit2.Oid, index: pygit2.Index
) -> bool:
    """Moves the ref from one commit to the next, and then the index.

    Returns False, without any change, if another program holds either lock or has moved the ref.
    """
    import pygit2

    dot = os.path.join(root, ".git")
    staged = pygit2.Index(os.path.join(dot, _INDEX))
    staged.clear()
    for entry in index:
        staged.add(entry)
    staged.write()
    for above in ("refs", "refs/heads"):  # not `.git` itself: if it was just deleted, it stays deleted
        with suppress(FileExistsError):
            os.mkdir(os.path.join(dot, above))
    unlink(os.path.join(dot, _REF))
    os.close(create(os.path.join(dot, _REF), f"{made}\n".encode(), 0o666))
    with _lock_file(root, MAIN, _REF) as ref, _lock_file(root, "index", _INDEX) as staged_index:
        # Looked at again under the locks.
        now = repository.tip(git)
        if not ref or not staged_index or (now and now.id) != (parent and parent.id) or not repository.is_on_main(root):
            return False
        os.rename(ref, os.path.join(dot, MAIN))
        sync_folder(os.path.join(dot, "refs/heads"))
        os.rename(staged_index, os.path.join(dot, "index"))
    return True


# ── a commit's text ──


def _message(subject: str, body: str, skipped: Mapping[str, str]) -> str:
    """Composes subject, body and the list of skipped files, sanitized; the subject is one line."""
    parts = [sanitize_line(subject)[:SUBJECT_LENGTH].strip() or "(no subject)", sanitize_transcript_v2(body).strip()]
    if skipped:
        listed = [f"- {sanitize_line(display(path))} ({why})" for path, why in islice(skipped.items(), LISTED)]
        more = [f"- and {len(skipped) - LISTED:,} more"] if len(skipped) > LISTED else []
        parts.append("\n".join(["Not committed:", *listed, *more]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _signature(who: tuple[str, str], now_us: int) -> pygit2.Signature:
    """Returns a name and an address as git takes them: without the characters that would end them early."""
    import pygit2

    cut = dict.fromkeys(map(ord, "<>"))
    name, email = (sanitize_line(part).translate(cut).strip(" .,:;\"'") or "unknown" for part in who)
    return pygit2.Signature(name, email, now_us // 1_000_000, 0)
