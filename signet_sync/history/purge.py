"""Purges the workspace's history: removes text from every commit, and deletes objects that are no longer needed.

A purge is begun (a record of ids and paths in `.git`, without a word of what is removed) and finished, at once or by
the next process: finishing needs only the record, and after a kill it starts again.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from signet_sync.errors import WorkspaceError
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import BEGUN_PURGE, display
from signet_sync.formats.snapshot import OWN_LIMIT, Found
from signet_sync.history.git import index as git_index
from signet_sync.history.git import lock as git_lock
from signet_sync.history.git import objects, packs
from signet_sync.history.git.lock import Replacement
from signet_sync.history.git.objects import KINDS, REPOSITORY, TREE, ObjectStore, TreeEntry, object_id
from signet_sync.history.git.packs import NewObjects
from signet_sync.history.git.repository import HISTORY_REF, OpenRepository, RepositoryRefused, busy, opened, tidying
from signet_sync.history.git.rewrite import Add, HistoryScan, RewriteDecisions, Rewriter, RewriteRules
from signet_sync.storage import files
from signet_sync.storage.safe_paths import folder

if TYPE_CHECKING:
    import pygit2

_INDEX = ".git/index"
_STASH, _STASH_LOG = "refs/stash", ".git/logs/refs/stash"
_VERSION = 1
_TRIES = 3
# Git's notes about its last operation, beside refs and objects: ids, and messages as they were written.
_TRACES = late(r"(?:[A-Z]+_HEAD|AUTO_MERGE|[A-Z]+_EDITMSG|MERGE_(?:MSG|MODE|RR)|SQUASH_MSG|gc\.log)")
_LOG_LINE = late(rb"([0-9a-f]{40}) ([0-9a-f]{40}) ([^\t\n]*)(?:\t([^\n]*))?")
_NOTHING = bytes(20)

Note = Mapping[str, str]


class Begun(NamedTuple):
    """What a purge changes: number of rewritten commits, versions of files, messages."""

    commits: int
    versions: int
    messages: int


@dataclass(frozen=True, slots=True)
class Purged:
    """The result of a purge: number of commits rewritten, objects deleted."""

    commits: int
    objects: int


@dataclass(slots=True)
class _PurgeRecord:
    """A begun purge. `note` is the caller's; `doomed` are objects to delete from a repository that is not ours."""

    note: dict[str, str]
    rulings: RewriteDecisions
    doomed: set[bytes]


@dataclass(frozen=True, slots=True)
class _Next:
    """Present and next targets of refs, the next stash log and index, and all objects to keep."""

    refs: dict[str, tuple[bytes, bytes | None]]
    stash_log: bytes
    index: bytes
    kept: set[bytes]
    commits: int


# ── beginning ──


def preview(root: str, workspace_id: str, rules: RewriteRules) -> Begun:
    """Returns what `begin` and `finish` would change; writes nothing. Raises as `begin` does."""
    with _ready(root, workspace_id, mend=False, beside=True) as repository:
        store = ObjectStore(repository.git)
        rulings = _scan(root, repository, store, rules, object_id)
        rewriting = Rewriter(store, rulings, object_id)
        _map(rewriting, repository, store)
        for oid in _stashed(root, store) if repository.ours else ():
            rewriting.of(oid)
        return _begun(rulings, rewriting.rewritten)


def begin(root: str, workspace_id: str, rules: RewriteRules, note: Note) -> Begun:
    """Finds what has to be removed and records it durably, with a note for the process that finishes it.

    From then on the text itself is no longer needed. A purge that was begun already is extended. `commits` of the
    answer is 0, because it is known only after rewriting. A running git command delays only finishing. Raises
    `RepositoryRefused`, `WorkspaceError`, `OSError`; then nothing was changed.
    """
    with _ready(root, workspace_id, beside=True) as repository:
        store = ObjectStore(repository.git)
        with NewObjects(repository.git) as new:
            rulings = _scan(root, repository, store, rules, new.add)
            new.flush()
    record = _read(root) or _PurgeRecord({}, RewriteDecisions(), set())
    record.note = dict(note)
    record.rulings.add(rulings)
    _write(root, record)
    return _begun(rulings, 0)


def is_begun(root: str) -> bool:
    """Returns whether a purge was begun; costs one stat."""
    return files.status_of(root, BEGUN_PURGE) is not None


def pending(root: str) -> Note | None:
    """Returns the note of an unfinished purge. Raises `WorkspaceError` if it cannot be read."""
    record = _read(root)
    return None if record is None else record.note


def abandon(root: str) -> None:
    """Deletes the record of a purge whose removal never happened."""
    files.unlink(root, BEGUN_PURGE)


def _begun(rulings: RewriteDecisions, commits: int) -> Begun:
    return Begun(commits, sum(map(len, rulings.files.values())), len(rulings.messages))


@contextmanager
def _ready(root: str, workspace_id: str, *, mend: bool = True, beside: bool = False) -> Iterator[OpenRepository]:
    """Opens the repository if it can be purged now. With `mend` removes the lock that a killed process of ours left.

    With `beside` another git command may be running. Raises `RepositoryRefused`, `WorkspaceError`.
    """
    with opened(root, workspace_id, adopt=True) as repository:
        if mend:
            git_lock.mend(repository.folder)
        reason = "" if beside else busy(repository.folder) or tidying(repository.folder)
        if reason:
            raise RepositoryRefused(
                f"the history cannot be rewritten now: {reason}",
                path=".git",
                hint="finish that first, then try again",
                code="history-busy",
            )
        if not repository.ours and HISTORY_REF not in repository.git.references:
            raise RepositoryRefused(
                "the repository is not ours, and its history is left alone",
                path=".git",
                hint="rewrite it with a tool for that (git filter-repo), or remove without --purge-history",
                code="existing-repository",
            )
        for name, what in (("shallow", "a shallow clone"), ("worktrees", "a repository with further working trees")):
            status = files.status_of(root, f".git/{name}")
            if status is not None and (not stat.S_ISDIR(status.st_mode) or files.listing(root, f".git/{name}", "")):
                raise RepositoryRefused(
                    f"the history of {what} cannot be rewritten",
                    path=f".git/{name}",
                    hint="git fetch --unshallow, or git worktree remove, then try again",
                    code="unsafe-repository",
                )
        yield repository


def _scan(root: str, repository: OpenRepository, store: ObjectStore, rules: RewriteRules, add: Add) -> RewriteDecisions:
    scan = HistoryScan(store, rules, add)
    scan.at(_tips(repository).values(), _others(repository, store))
    if repository.ours:
        scan.at(_stashed(root, store))
        for entry in _index(root, repository):
            if entry.mode != REPOSITORY:
                scan.file(os.fspath(entry.path), entry.id.raw)
    return scan.rulings


# ── refs ──


def _all_refs(git: pygit2.Repository) -> dict[str, bytes]:
    """Returns what refs and a detached HEAD name directly."""
    from pygit2.enums import ReferenceType

    found = {}
    for name in [*git.references, "HEAD"]:
        ref = git.lookup_reference(name)
        if ref.type == ReferenceType.DIRECT:
            found[ref.name] = bytes.fromhex(str(ref.target))
    return found


def _tips(repository: OpenRepository) -> dict[str, bytes]:
    """Returns the refs that we may rewrite."""
    refs = _all_refs(repository.git)
    return refs if repository.ours else {name: oid for name, oid in refs.items() if name == HISTORY_REF}


def _others(repository: OpenRepository, store: ObjectStore) -> set[bytes]:
    """Returns the commits of other refs: in a repository that is not ours they are not changed."""
    if repository.ours:
        return set()
    return store.commits(oid for name, oid in _all_refs(repository.git).items() if name != HISTORY_REF)


def _stash(root: str) -> list[re.Match[bytes]]:
    """Returns the lines of the stash's log, which alone names all but the newest stash."""
    found = files.read(root, _STASH_LOG, OWN_LIMIT)
    return list(_LOG_LINE.finditer(found.raw)) if isinstance(found, Found) else []


def _stashed(root: str, store: ObjectStore) -> set[bytes]:
    """Returns the commits that the stash's log names."""
    return {oid for line in _stash(root) for oid in _named(line) if store.has(oid)}


def _named(line: re.Match[bytes]) -> list[bytes]:
    """Returns the objects that a line of a log names."""
    return [oid for oid in (bytes.fromhex(line[1].decode()), bytes.fromhex(line[2].decode())) if oid != _NOTHING]


def _index(root: str, repository: OpenRepository) -> list[pygit2.IndexEntry]:
    """Returns what is staged."""
    import pygit2

    if files.status_of(root, _INDEX) is None:
        return []
    return list(pygit2.Index(os.path.join(repository.folder, os.path.basename(_INDEX))))


# ── finishing ──


def finish(root: str, workspace_id: str) -> Purged:
    """Rewrites what a begun purge requires, moves the refs, and deletes every object that is no longer reached.

    In a repository that is not ours, only our ref moves and only what nothing else reaches is deleted. Raises
    `RepositoryRefused`, `WorkspaceError`, `OSError`: then the history is valid, and the purge is still begun.
    """
    for _ in range(_TRIES):
        record = _read(root)
        if record is None:
            return Purged(0, 0)
        next_state = _prepare(root, workspace_id, record)
        dropped = _switch(root, workspace_id, record, next_state)
        if dropped is not None:
            abandon(root)
            return Purged(next_state.commits, dropped)
    raise RepositoryRefused(
        "the history changed while it was being rewritten",
        path=".git",
        hint="let other programs finish; every pass retries",
        code="history-busy",
    )


def _prepare(root: str, workspace_id: str, record: _PurgeRecord) -> _Next:
    """Writes the new objects durably and prepares the next state; no ref moves."""
    with _ready(root, workspace_id) as repository:
        store = ObjectStore(repository.git)
        with NewObjects(repository.git) as new:
            rewriting = Rewriter(store, record.rulings, new.add)
            refs = _map(rewriting, repository, store)
            stashed = {oid: rewriting.of(oid) for oid in (_stashed(root, store) if repository.ours else ())}
            new.flush()
        needed = {oid for oid in (*(new for _, new in refs.values()), *stashed.values()) if oid is not None}
        stash_log, index = _next_stash_log(root, stashed, store), b""
        if repository.ours:
            index = _next_index(root, repository, rewriting, needed)
        kept = store.closure(needed)
        if not repository.ours:
            kept |= store.closure(_roots(root, repository, store), kept)
            record.doomed |= store.closure({old for old, new in refs.values() if old != new}, kept)
            _write(root, record)
    return _Next(refs, stash_log, index, kept, rewriting.rewritten)


def _map(rewriting: Rewriter, repository: OpenRepository, store: ObjectStore) -> dict[str, tuple[bytes, bytes | None]]:
    rewriting.commits.update((oid, oid) for oid in _others(repository, store))
    return {name: (oid, rewriting.of(oid)) for name, oid in _tips(repository).items()}


def _next_stash_log(root: str, stashed: Mapping[bytes, bytes | None], store: ObjectStore) -> bytes:
    """Returns the stash's log with the new commits and their messages."""
    lines = []
    for line in _stash(root):
        old, new = (stashed.get(bytes.fromhex(line[part].decode())) or _NOTHING for part in (1, 2))
        if new != _NOTHING:
            message = objects.split_message(store.read(new)[1])[1].partition(b"\n")[0]
            lines.append(b"%b %b %b\t%b\n" % (old.hex().encode(), new.hex().encode(), line[3], message))
    return b"".join(lines)


def _next_index(root: str, repository: OpenRepository, rewriting: Rewriter, needed: set[bytes]) -> bytes:
    """Returns the index with the new blobs, and adds these to `needed`."""
    flat = {}
    for entry in _index(root, repository):
        path = os.fspath(entry.path)
        oid = entry.id.raw if entry.mode == REPOSITORY else rewriting.file(path, entry.id.raw)
        if oid is not None:
            flat[path] = TreeEntry(int(entry.mode), oid)
            needed |= set() if entry.mode == REPOSITORY else {oid}
    # Without the files' times: the next `git status` compares their bytes once.
    return git_index.serialised(flat, {})


def _roots(root: str, repository: OpenRepository, store: ObjectStore) -> set[bytes]:
    """Returns all objects through which a repository that is not ours reaches others, except our ref."""
    found = {oid for name, oid in _all_refs(repository.git).items() if name != HISTORY_REF}
    found |= {entry.id.raw for entry in _index(root, repository) if entry.mode != REPOSITORY}
    for path in _below(root, ".git/logs"):
        read = files.read(root, path, OWN_LIMIT)
        if isinstance(read, Found) and path != f".git/logs/{HISTORY_REF}":
            found.update(oid for line in _LOG_LINE.finditer(read.raw) for oid in _named(line))
    for name in _traces(root):
        read = files.read(root, name, OWN_LIMIT)
        if isinstance(read, Found):
            found.update(bytes.fromhex(oid.decode()) for oid in re.findall(rb"\b[0-9a-f]{40}\b", read.raw))
    return {oid for oid in found if store.has(oid)}


def _switch(root: str, workspace_id: str, record: _PurgeRecord, next_state: _Next) -> int | None:
    """Moves refs and index, and deletes what is not kept; None if refs have moved meanwhile."""
    with _ready(root, workspace_id) as repository:
        with _locked(repository, next_state.index) as lock:
            if _tips(repository) != {name: old for name, (old, _) in next_state.refs.items()}:
                return None
            _move(repository, next_state.refs)
            if repository.ours:
                repository.git.compress_references()
                _forget_logs(root, next_state.stash_log)
                if files.status_of(root, _INDEX) is not None:
                    lock.publish()
            else:
                files.unlink(root, f".git/logs/{HISTORY_REF}")
        # A commit made now would build on objects to be deleted: commits are locked out until that is done.
        with _locked(repository, b""):
            if _tips(repository) != {name: new for name, (_, new) in next_state.refs.items() if new is not None}:
                return None
            store = ObjectStore(repository.git)
            doomed = (set(store.all()) if repository.ours else record.doomed) - next_state.kept
            return packs.drop(root, store, doomed, strays=repository.ours)


@contextmanager
def _locked(repository: OpenRepository, index: bytes) -> Iterator[Replacement]:
    """Keeps other programs from staging and committing, as git does, with the lock of the index.

    Raises `RepositoryRefused`.
    """
    lock = git_lock.index(repository.folder)
    if not lock.stage(index):
        raise RepositoryRefused(
            "another git command is running", path=f"{_INDEX}.lock", hint="wait for it to end", code="history-busy"
        )
    try:
        yield lock
    finally:
        lock.drop()


def _move(repository: OpenRepository, refs: Mapping[str, tuple[bytes, bytes | None]]) -> None:
    import pygit2

    for name, (old, new) in refs.items():
        if new is None:
            repository.git.references.delete(name)
        elif name == "HEAD" and new != old:
            repository.git.set_head(pygit2.Oid(raw=new))
        elif new != old:
            repository.git.references.create(name, pygit2.Oid(raw=new), force=True)


def _forget_logs(root: str, stash_log: bytes) -> None:
    """Empties the logs of refs, except the stash's, and deletes git's notes about its last operation."""
    if stash_log:
        files.replace(root, _STASH_LOG, stash_log, None)
    for path in _below(root, ".git/logs"):
        if path != _STASH_LOG or not stash_log:
            files.unlink(root, path)
    for path in _traces(root):
        files.unlink(root, path)
    packs.drop_folder(root, ".git/rr-cache")


def _traces(root: str) -> list[str]:
    """Returns the files with git's notes about its last operation."""
    return [f".git/{name}" for name in files.listing(root, ".git", "") if _TRACES.fullmatch(name)]


def _below(root: str, path: str) -> Iterator[str]:
    """Yields the files below a folder of `.git`; links are not followed."""
    try:
        # All names: a branch's name may contain invisible characters.
        with folder(root, path) as descriptor:
            names = sorted(os.listdir(descriptor))
    except (FileNotFoundError, WorkspaceError):
        return
    for name in names:
        inner = f"{path}/{name}"
        status = files.status_of(root, inner)
        if status is not None and stat.S_ISDIR(status.st_mode):
            yield from _below(root, inner)
        elif status is not None:
            yield inner


# ── the record ──


def _write(root: str, record: _PurgeRecord) -> None:
    document = {
        "version": _VERSION,
        "note": record.note,
        "files": {
            path: {old.hex(): new and new.hex() for old, new in versions.items()}
            for path, versions in record.rulings.files.items()
        },
        "messages": {oid.hex(): message.decode("latin-1") for oid, message in record.rulings.messages.items()},
        "doomed": sorted(oid.hex() for oid in record.doomed),
    }
    files.replace(root, BEGUN_PURGE, json.dumps(document).encode("ascii"), None)


def _read(root: str) -> _PurgeRecord | None:
    """Reads the record of a begun purge, None if there is none. Raises `WorkspaceError` if it is invalid."""
    found = files.read(root, BEGUN_PURGE, OWN_LIMIT)
    if not isinstance(found, Found):
        if found.code == "gone":
            return None
        raise _unreadable(found.message)
    try:
        document: Any = json.loads(found.raw)
        if document["version"] != _VERSION:
            raise _unreadable(f"it is of version {document['version']!r}")
        versions = {
            path: {_oid(old): None if new is None else _oid(new) for old, new in versions_of.items()}
            for path, versions_of in document["files"].items()
        }
        messages = {_oid(oid): message.encode("latin-1") for oid, message in document["messages"].items()}
        note = {str(key): str(value) for key, value in document["note"].items()}
        return _PurgeRecord(note, RewriteDecisions(versions, messages), {_oid(oid) for oid in document["doomed"]})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _unreadable(f"{type(error).__name__}") from None


def _oid(digits: str) -> bytes:
    oid = bytes.fromhex(digits)
    if len(oid) != 20:
        raise ValueError("no id of an object")
    return oid


def _unreadable(why: str) -> WorkspaceError:
    return WorkspaceError(
        f"the record of a begun purge cannot be read: {why}",
        path=BEGUN_PURGE,
        hint="delete it and remove with --purge-history once more",
        code="history-damaged",
    )


# ── what is left ──


def left(root: str, workspace_id: str, contains: Callable[[bytes], bool]) -> list[str]:
    """Lists what still contains removed text: objects other than trees, and other files of `.git` with text.

    Raises `RepositoryRefused`, `WorkspaceError`.
    """
    found = []
    with _ready(root, workspace_id) as repository:
        store = ObjectStore(repository.git)
        for oid in store.all():
            kind, raw = store.read(oid)
            if kind != TREE and contains(raw):
                found.append(f"{KINDS[kind]} {oid.hex()}")
    for name in files.listing(root, ".git", ""):
        path = f".git/{name}"
        if name == "objects" or path == _INDEX:
            continue
        status = files.status_of(root, path)
        inner = _below(root, path) if status is not None and stat.S_ISDIR(status.st_mode) else [path]
        for place in inner:
            read = files.read(root, place, OWN_LIMIT)
            if isinstance(read, Found) and contains(read.raw):
                found.append(display(place))
    return sorted(found)
