"""Creates the workspace's history and commits what changed; `log` reads it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from signet_sync.formats.paths import TEMPORARY, display
from signet_sync.formats.snapshot import Found
from signet_sync.history.git import config as git_config
from signet_sync.history.git import index as git_index
from signet_sync.history.git import lock, objects, repository, worktree
from signet_sync.history.git.gathering import CachedBlob, Gathered, Gathering, Limits, Skipped
from signet_sync.history.git.objects import COMMIT, NewObjects, TreeEntry
from signet_sync.history.git.repository import OpenRepository
from signet_sync.history.git.versions import run_git
from signet_sync.storage import files
from signet_sync.storage.durable import sync_folder, sync_path
from signet_sync.storage.safe_paths import folder
from signet_sync.text.sanitizer import sanitize_line, sanitize_transcript_v2

SUBJECT_LENGTH = 200  # characters
LISTED = 100  # skipped files listed in a commit's body
MANY = 2000  # loose objects from which a pack is worthwhile

Outcome = Literal["committed", "clean", "busy"]


@dataclass(frozen=True, slots=True)
class Committed:
    """The outcome. `oid` is the commit's 40 hex digits, or None if none was made; `reason` explains `busy`.

    `learnt` and `forgotten` update the caller's cache, whatever the outcome.
    """

    outcome: Outcome
    oid: str | None = None
    reason: str = ""
    skipped: tuple[Skipped, ...] = ()
    learnt: Mapping[str, CachedBlob] = field(default_factory=dict)
    forgotten: frozenset[str] = frozenset()


# ── creating ──

IGNORES = b"""\
# Written once by signet-sync; change it as you like.
# Transcripts (`memory/*--transcript.md`) and `.signet/` are never committed, whatever is listed here, unless
# `history.transcripts` is set.
.signet/
memory/*--transcript.md
transcripts/
media/
*.db
*.db-*
*.sqlite*
*.tmp
*.swp
.DS_Store
.trash/
.obsidian/workspace*.json
"""
ATTRIBUTES = b"""\
# Written once by signet-sync: every file is kept byte for byte.
* -text
"""


BUILDING = f"{TEMPORARY}/history"


def create(root: str, workspace_id: str) -> None:
    """Creates the repository: branch `main`, no commit, no remote; `.gitignore` and `.gitattributes` if absent.

    Does nothing if it is ours already. Raises `RepositoryRefused` (`existing-repository`, `unsafe-repository`,
    `inside-repository`, `extra-missing`), `OSError`.
    """
    present = repository.inspect(root, workspace_id)
    if present.state == "ours":
        with suppress(OSError):
            os.rmdir(os.path.join(root, BUILDING))  # left, empty, by a creation that was interrupted at its end
        return
    if present.state != "none" or present.outer:
        raise repository.refusal(present)
    repository.require()
    for name, text in ((".gitignore", IGNORES), (".gitattributes", ATTRIBUTES)):
        with suppress(FileExistsError):
            files.create_once(root, name, text)
    _initialise(root, workspace_id)


def _initialise(root: str, workspace_id: str) -> None:
    """Builds `.git` in `.signet/tmp` and renames it into place: it is complete or absent."""
    import pygit2
    from pygit2.enums import RepositoryInitFlag

    files.prepare(root)
    with folder(root, TEMPORARY, create=True):
        pass
    building = os.path.join(root, BUILDING)
    shutil.rmtree(building, ignore_errors=True)  # of an interrupted creation
    with repository.readable():
        flags = RepositoryInitFlag.NO_REINIT | RepositoryInitFlag.MKDIR
        with repository.private():
            pygit2.init_repository(building, flags=flags, initial_head="main").free()
    dot = os.path.join(building, ".git")
    with repository.private(), open(os.path.join(dot, repository.MARK), "xb") as handle:
        handle.write(workspace_id.encode("utf-8", "surrogateescape") + b"\n")
    # Only the owner may read the workspace's files, and so it is with their earlier versions.
    os.chmod(dot, 0o700)
    _sync(dot)
    os.rename(dot, os.path.join(root, ".git"))
    sync_folder(root)
    os.rmdir(building)


def _sync(top: str) -> None:
    for where, _, names in os.walk(top, topdown=False):
        for path in (*(os.path.join(where, name) for name in names), where):
            sync_path(path)


# ── committing ──


FIRST = "workspace init"


def begin(
    place: OpenRepository, *, author: tuple[str, str], agent: tuple[str, str] | None = None, now_us: int, limits: Limits
) -> None:
    """Makes the first commit: the files of `create`, so that the next commit has its own subject.

    Does nothing if there is a commit. Raises what `commit` raises.
    """
    if repository.tip(place) is not None or _hindrance(place):
        return
    with repository.readable(), NewObjects(place.git) as new:
        found = _gathering(place, {}, limits, {}, new).some((".gitignore", ".gitattributes"))
        top = objects.build(found.flat, new.add)
        made = new.add(COMMIT, _commit_object(top, None, message(FIRST, "", []), author, agent or author, now_us))
        new.flush()
        _publish(place, None, made, found)


def commit(
    place: OpenRepository,
    *,
    subject: str,
    body: str = "",
    author: tuple[str, str],
    agent: tuple[str, str] | None = None,
    now_us: int,
    limits: Limits,
    cache: Mapping[str, CachedBlob],
) -> Committed:
    """Commits every file that is not ignored; `author` is name and address, `now_us` is microseconds.

    `agent` is the committer and identifies the agent, whatever the settings call the author (None: the author). A
    tracked file that cannot be committed (too large, contains a secret, unreadable) keeps its last version. The caller
    holds the history lock. A kill never leaves an invalid repository: objects are durable before the ref moves. Raises
    `RepositoryRefused` if the repository is damaged, `OSError` if the disk refuses.
    """
    reason = _hindrance(place)
    if reason:
        return Committed("busy", reason=reason)
    with repository.readable(), NewObjects(place.git) as new:
        parent = repository.tip(place)
        tracked, known_trees = objects.flatten(place.git, _tree_of(place, parent)) if parent else ({}, set())
        found = _gathering(place, tracked, limits, cache, new).gathered()
        forgotten = frozenset(cache.keys() - found.flat.keys() - {path for path, _ in found.skipped})
        done = Committed("clean", None, "", tuple(found.skipped), found.learnt, forgotten)
        if parent is not None and found.flat == tracked:
            _mend_index(place, found)
            return done

        def add(kind: int, data: bytes) -> bytes:
            oid = objects.object_id(kind, data)
            return oid if oid in known_trees else new.add(kind, data)

        top = objects.build(found.flat, add)
        text = message(subject, body, found.skipped)
        made = new.add(COMMIT, _commit_object(top, parent, text, author, agent or author, now_us))
        new.flush()
        if not _publish(place, parent, made, found):
            return replace(done, outcome="busy", reason="another git command is running")
        _tidy(place)
        return replace(done, outcome="committed", oid=made.hex())


def _hindrance(place: OpenRepository) -> str:
    """Returns why nothing is committed now (git is running, HEAD is detached). First removes our own leftover locks."""
    lock.mend(place.folder)
    if repository.branch(place) is None:
        return "HEAD is detached; `git switch main` returns to the branch"
    return repository.busy(place.folder)


def _tidy(place: OpenRepository) -> None:
    """Lets git, if it is installed, pack loose objects once there are many: a pack stores trees as differences."""
    with suppress(FileNotFoundError):
        # Ids are evenly distributed: as git does, we count the objects of one folder for all.
        if len(os.listdir(os.path.join(place.folder, "objects", "17"))) * 256 > MANY:
            run_git(place.root, place.root, "repack", "-d", "-q")


def _tree_of(place: OpenRepository, commit: bytes) -> bytes:
    import pygit2

    return place.git[pygit2.Oid(raw=commit)].peel(pygit2.Commit).tree_id.raw


def _gathering(
    place: OpenRepository,
    tracked: Mapping[str, TreeEntry],
    limits: Limits,
    cache: Mapping[str, CachedBlob],
    new: NewObjects,
) -> Gathering:
    config = files.read(place.root, ".git/config", repository.CONFIG_LIMIT)
    raw = config.raw if isinstance(config, Found) else b""
    any_case = git_config.flag(raw, "core", "ignorecase", False)
    exclude = files.read(place.root, ".git/info/exclude", worktree.RULES_LIMIT)
    layer = worktree.rules("", exclude.raw, any_case=any_case) if isinstance(exclude, Found) else None
    filemode = git_config.flag(raw, "core", "filemode", True)
    return Gathering(place.root, tracked, limits, cache, new.add, (layer,) if layer else (), any_case, filemode)


def _mend_index(place: OpenRepository, found: Gathered) -> None:
    """Updates an index that a kill between ref and index left behind; nothing else would be committed."""
    index = lock.index(place.folder)
    if index.unfinished() and index.stage(git_index.serialised(found.flat, found.stats)):
        index.publish()


def _publish(place: OpenRepository, parent: bytes | None, made: bytes, found: Gathered) -> bool:
    """Moves the ref from one commit to the next, and the index with it.

    Returns False, without any change, if another program holds either lock or has moved the ref.
    """
    name = repository.branch(place)
    assert name is not None
    index, ref = lock.index(place.folder), lock.ref(place.folder, name)
    staged: list[lock.Replacement] = []
    try:
        if not index.stage(git_index.serialised(found.flat, found.stats)):
            return False
        staged.append(index)
        if not ref.stage(made.hex().encode() + b"\n"):
            return False
        staged.append(ref)
        # Read again under the lock: `HEAD` may have moved to another branch, which this lock does not cover.
        if repository.branch(place) != name or repository.tip(place) != parent:
            return False
        while staged:
            staged[-1].publish()
            staged.pop()
        return True
    finally:
        for held in staged:
            held.drop()


# ── a commit's text ──


def message(subject: str, body: str, skipped: list[Skipped]) -> str:
    """Composes subject, body and the list of skipped files, sanitized; the subject is one line."""
    parts = [sanitize_line(subject)[:SUBJECT_LENGTH].strip() or "(no subject)", sanitize_transcript_v2(body).strip()]
    if skipped:
        listed = [f"- {sanitize_line(display(path))} ({why})" for path, why in skipped[:LISTED]]
        more = [f"- and {len(skipped) - LISTED:,} more"] if len(skipped) > LISTED else []
        parts.append("\n".join(["Not committed:", *listed, *more]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _commit_object(
    top: bytes, parent: bytes | None, text: str, author: tuple[str, str], agent: tuple[str, str], now_us: int
) -> bytes:
    lines = [f"tree {top.hex()}", *([f"parent {parent.hex()}"] if parent else [])]
    for role, who in (("author", author), ("committer", agent)):
        name, email = (_identity(part) for part in who)
        lines.append(f"{role} {name} <{email}> {now_us // 1_000_000} +0000")
    return ("\n".join(lines) + f"\n\n{text}").encode("utf-8", "replace")


def _identity(text: str) -> str:
    # As in git itself, characters that would end a name or an address early are left out.
    return sanitize_line(text).translate(dict.fromkeys(map(ord, "<>"))).strip(" .,:;\"'") or "unknown"
