"""Purges removed sessions and memories from the history: decides on each file and message, and resumes after a kill."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, Protocol

from signet_sync.errors import SignetSyncError, WorkspaceError, sentence_of
from signet_sync.formats.entity_paths import parse_ledger_page, parse_path, states_id
from signet_sync.formats.filename import artifact_name, carried_token
from signet_sync.formats.frontmatter import FrontmatterProblem, parse
from signet_sync.formats.handle import SHORT_LENGTH
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.managed_block import lines_without, without_lines
from signet_sync.formats.paths import KEPT_COPY, MEMORY, TOMBSTONES, display, page_agent
from signet_sync.history import purge, store
from signet_sync.history.git.repository import RepositoryRefused
from signet_sync.history.git.rewrite import RewriteRules
from signet_sync.history.purge import Begun
from signet_sync.memories.store import memories
from signet_sync.storage import state_dir
from signet_sync.sync.tombstones import store as tombstones_store
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrase_search import Sieve

if TYPE_CHECKING:
    from signet_sync.formats.artifact import Tombstone

REMOVED = b"[removed]"
_HANDLE = late(rb"\b[skcaetfmx]-(?:[a-z2-7]{12}|[a-z2-7]{6})\b")
_KEPT = late(r"\.(?:signet|user)-[^/.]+(?=\.md$)")
_LISTED = 120  # characters of a session's key that a commit contains
_OF_OTHERS = ("existing-repository", "inside-repository")
_LONG = 8  # characters from which a name is distinctive in any text

IsOfIt = Callable[[str, bytes], bool]


class PurgeResult(NamedTuple):
    """The result of a purge: commits rewritten, objects deleted; `left` still contains removed text.

    `left` are people's files by their paths (in some version in the history), and objects and files of `.git`. If the
    purge is not done, one of three gives the reason: `waiting`, it is begun, and every pass tries again; `refused`, it
    could not begin, and has to be requested again; `nothing`, no history of ours contains anything.
    """

    commits: int
    objects: int
    left: tuple[str, ...]
    waiting: str = ""
    refused: str = ""
    nothing: str = ""

    @property
    def is_done(self) -> bool:
        """Returns whether nothing is left to do."""
        return not (self.waiting or self.refused)

    def history(self, search: Callable[[], str]) -> str:
        """Returns `clean` or `contains`; if the history was not searched, what `search` finds out about it."""
        if self.refused or self.nothing:
            return search()
        return "contains" if self.left or self.waiting else "clean"


class HistoryRules(RewriteRules, Protocol):
    """Decides on files and messages, and collects what has to be left: `left` are paths of people's files."""

    left: set[str]

    def unexpected(self, raw: bytes) -> bool:
        """Returns whether an object still contains removed text and was not left on purpose."""


class PurgeRules:
    """Decides on every file and message of the history: a `RewriteRules` that remembers what it has to leave.

    `needles` are words and phrases, `handles` ids of facts and the like on pages, `names` the keys and ids under which
    commits name the sessions; `is_of_it` recognises artifacts to delete whole; `mend` removes quotations from others.
    """

    def __init__(
        self,
        needles: Iterable[bytes],
        handles: Iterable[str] = (),
        names: Iterable[str] = (),
        is_of_it: IsOfIt = lambda path, raw: False,
        mend: Callable[[str, bytes], bytes] = lambda path, raw: raw,
    ) -> None:
        self._mend = mend
        named = [" ".join(name.split()) for name in names]
        cut = [name[: _LISTED - 1].rstrip() if len(name) > _LISTED else name for name in named]
        long = {name.encode("utf-8", "replace") for name in cut if len(name) >= _LONG}
        self._needles = frozenset(needles) | long
        self._sieve = Sieve(self._needles)
        whole = [handle.encode("ascii") for handle in handles]
        self._handles = frozenset([*whole, *(handle[:SHORT_LENGTH] for handle in whole)])
        listed = "|".join(re.escape(name) for name in cut)
        self._closing = re.compile(rf"session-close: (?:{listed})(?: and \d+ more)?|- (?:{listed}) \(agent \S+\)")
        self._is_of_it = is_of_it
        self._left: set[bytes] = set()
        self.left: set[str] = set()

    def file(self, path: str, raw: bytes) -> bytes | None:
        """Deletes an artifact, deletes lines that we generated, keeps and lists what people wrote (`history.purge`)."""
        if path.startswith(f"{TOMBSTONES}/"):
            self._left.add(sha256(raw).digest())
            return raw
        if self._is_of_it(path, raw):
            return None
        raw = self._mend(path, raw)
        after = self._cleaned(path, raw) if self._contains(raw) else raw
        if self._contains(after) or self._contains(path.encode("utf-8", "surrogateescape")):
            self._left.add(sha256(after).digest())
            self.left.add(display(path) or "a file without a path")
        return after

    def message(self, raw: bytes) -> bytes:
        """Replaces every line that contains removed text by a placeholder."""
        return b"\n".join(
            REMOVED if self._contains(line) or self._names_session(line) else line for line in raw.split(b"\n")
        )

    def unexpected(self, raw: bytes) -> bool:
        """Returns whether an object still contains removed text and was not left on purpose."""
        return self._contains(raw) and sha256(raw).digest() not in self._left

    def _contains(self, raw: bytes) -> bool:
        return bool(self._sieve.caught(raw)) or not self._handles.isdisjoint(_HANDLE.findall(raw))

    def _names_session(self, line: bytes) -> bool:
        return self._closing.fullmatch(line.decode("utf-8", "replace")) is not None

    def _cleaned(self, path: str, raw: bytes) -> bytes:
        name = artifact_name(path.rpartition("/")[2])
        if (name is not None and name.kind == "manifest") or is_kept_page(path) or _is_of_entity(path, raw):
            caught = self._sieve.caught(raw)
            return b"\n".join(lines_without(raw.split(b"\n"), lambda line: self._line_goes(line, caught)))
        if page_agent(path) is not None:
            caught = self._sieve.caught(raw)
            return without_lines(raw, lambda line: self._line_goes(line, caught))
        return raw

    def _line_goes(self, line: bytes, caught: Iterable[bytes]) -> bool:
        return any(needle in line for needle in caught) or not self._handles.isdisjoint(_HANDLE.findall(line))


def _is_of_entity(path: str, raw: bytes) -> bool:
    """Returns whether a file is an entity's, or a page of the event log: it may rest on a removed session."""
    place = parse_path(path)
    if place is not None:
        return not place.base or states_id(raw, place.id)
    return parse_ledger_page(path) is not None


def is_kept_page(path: str) -> bool:
    """Returns whether a file is the copy of a displaced page: such a copy is ours to clean."""
    return kept_page_agent(path) is not None


def kept_page_agent(path: str) -> str | None:
    """Returns the agent whose page this is a kept copy of, or None."""
    return page_agent(_KEPT.sub("", path)) if KEPT_COPY.fullmatch(path) else None


def of_sessions(agent_id: str, token: str, ids: Iterable[str], paths: Iterable[str], *, everyone: bool) -> IsOfIt:
    """Returns a test for artifacts of some sessions in the history, and their conflict copies, in any version."""
    mine, gone = frozenset(ids), frozenset(paths)

    def is_of_it(path: str, raw: bytes) -> bool:
        folder, _, name = path.rpartition("/")
        if path in gone:
            return True
        if folder != MEMORY or carried_token(name) != token:
            return False
        fields = _fields(raw)
        # Another agent has another token: tokens are derived from agent and key.
        return (
            everyone if fields is None else fields.get("session_id") in mine or (everyone and _is_by(fields, agent_id))
        )

    return is_of_it


def _fields(raw: bytes) -> dict[str, object] | None:
    try:
        return dict(parse(raw).fields)
    except FrontmatterProblem:
        return None


def _is_by(fields: dict[str, object], agent_id: str) -> bool:
    return fields.get("agent_id") in (None, agent_id)


# ── steps ──


def preview(
    workspace: Workspace, make_rules: Callable[[], HistoryRules], search: Callable[[], str]
) -> Begun | PurgeResult:
    """Returns what a purge would change, or why it would not; takes the arguments of `begin`."""
    try:
        return purge.preview(workspace.root, workspace.state.key, make_rules())
    except (RepositoryRefused, WorkspaceError, OSError) as error:
        return _refused(error, search)


def begin(
    workspace: Workspace, make_rules: Callable[[], HistoryRules], note: dict[str, str], search: Callable[[], str]
) -> HistoryRules | PurgeResult:
    """Records what has to be removed from the history, before the rows that name it are deleted.

    Returns what `make_rules` returns. If the history cannot be purged it is not changed, and the answer gives the
    reason; the removal itself continues. `search` finds out whether a repository that is not ours contains any of it.
    """
    try:
        rules = make_rules()
        resume(workspace)
        with state_dir.history_lock(workspace.state):
            purge.begin(workspace.root, workspace.state.key, rules, note)
    except (RepositoryRefused, WorkspaceError, OSError) as error:
        return _refused(error, search)
    return rules


def _refused(error: SignetSyncError | OSError, search: Callable[[], str]) -> PurgeResult:
    code = error.code if isinstance(error, RepositoryRefused) else ""
    if code == "no-repository":
        return PurgeResult(0, 0, (), nothing="the workspace has no git history")
    if code in _OF_OTHERS and search() == "clean":
        return PurgeResult(0, 0, (), nothing="the repository is not ours and holds none of it")
    return PurgeResult(0, 0, (), refused=sentence_of(error))


def finish(workspace: Workspace, begun: HistoryRules | PurgeResult, note: dict[str, str]) -> PurgeResult:
    """Adds what was committed since `begin`, rewrites the history, and searches all that is left of it."""
    if isinstance(begun, PurgeResult):
        return begun
    root, key, rules = workspace.root, workspace.state.key, begun
    try:
        with state_dir.history_lock(workspace.state):
            purge.begin(root, key, rules, note)
            done = _finish(workspace)
            found = purge.left(root, key, rules.unexpected)
    except (SignetSyncError, OSError) as error:
        return PurgeResult(0, 0, tuple(sorted(rules.left)), sentence_of(error))
    return PurgeResult(done.commits, done.objects, tuple(sorted({*rules.left, *found})))


def _finish(workspace: Workspace) -> purge.Purged:
    with workspace.database.transaction():
        # It names blobs that will be deleted: the next commit must not rely on them.
        store.update_cache(workspace.database, "", {}, ())
    return purge.finish(workspace.root, workspace.state.key)


def resume(workspace: Workspace) -> None:
    """Finishes an interrupted purge, or drops it if its removal never happened.

    Errors become an event of the workspace; the next pass tries again.
    """
    if workspace.touch_nothing or not purge.is_begun(workspace.root):
        return
    try:
        with state_dir.history_lock(workspace.state):
            note = purge.pending(workspace.root)
            if note is None:
                return
            if _has_happened(workspace, note):
                _finish(workspace)
            else:
                purge.abandon(workspace.root)
    except (SignetSyncError, OSError) as error:
        workspace.events.append(f"a begun purge of the history is not finished: {sentence_of(error)}")


# ── what a begun purge belongs to ──


def note_of_sessions(agent_id: str, token: str, ids: Sequence[str]) -> dict[str, str]:
    """Returns what shows later whether the removal happened; no ids: all sessions of the token."""
    return {"agent_id": agent_id, "session_token": token, "session_ids": json.dumps(sorted(ids))}


def note_of_memory(agent_id: str, memory_id: str) -> dict[str, str]:
    """Returns the same for a memory."""
    return {"agent_id": agent_id, "memory_id": memory_id}


def _has_happened(workspace: Workspace, note: purge.Note) -> bool:
    if "redacted" in note:
        return True  # a secret is removed, whatever happened to the files
    agent_id = note.get("agent_id", "")
    if "memory_id" in note:
        return memories.get(workspace.database, agent_id, note["memory_id"]) is None
    ids = set(json.loads(note.get("session_ids", "[]")))
    return any(_covers(tombstone, ids) for tombstone in _tombstones(workspace, agent_id, note.get("session_token", "")))


def _tombstones(workspace: Workspace, agent_id: str, token: str) -> list[Tombstone]:
    found = tombstones_store.mirrored(workspace.database)
    return [tombstone for tombstone in found if (tombstone.agent_id, tombstone.session_token) == (agent_id, token)]


def _covers(tombstone: Tombstone, ids: set[str]) -> bool:
    return not tombstone.session_ids or (bool(ids) and ids <= set(tombstone.session_ids))
