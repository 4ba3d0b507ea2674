"""Takes back what a migration brought, and nothing else: no removal is lifted, no removed session comes back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

from signet_sync.formats.body import normalize
from signet_sync.formats.paths import DEFAULT_AGENT
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import iso
from signet_sync.formats.wikilinks import wikilink
from signet_sync.memories import operations as memories_operations
from signet_sync.migration import proposals, store
from signet_sync.migration.memories import drop
from signet_sync.migration.operations import require_whole
from signet_sync.migration.store import BroughtFile
from signet_sync.storage import files, state_dir
from signet_sync.storage.database import removal
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import TABLES
from signet_sync.sync import engine, manifests
from signet_sync.sync.request import Request
from signet_sync.sync.store import artifacts, bodies, counts
from signet_sync.sync.workspace import Workspace, back_up

_KINDS = ("summary", "transcript", "compaction")
_MANIFEST = "--manifest.md"


@dataclass(slots=True)
class Undone:
    """What is taken back; `kept` are files that were changed since, and manifests with a person's words.

    `begun`: something is noted as brought, be it there or not.
    """

    memories: int = 0
    artifacts: list[str] = field(default_factory=list)
    proposals: int = 0
    kept: list[str] = field(default_factory=list)
    begun: bool = False
    waiting: str = ""

    def document(self) -> dict[str, Any]:
        """Returns the JSON document of the undo."""
        return {
            "memories": self.memories,
            "artifacts": self.artifacts,
            "proposals": self.proposals,
            "kept": self.kept,
        }


def planned(workspace: Workspace, now_us: int) -> Undone:
    """Returns what an undo would take back; writes nothing."""
    database = workspace.database
    ids = store.brought_memories(database)
    staying = _staying(workspace, ids)
    done = Undone(sum(len(found) for found in ids.values()) - len(staying))
    done.proposals = sum(1 for _ in proposals.brought(workspace, _agents(workspace), now_us))
    done.begun = bool(ids or done.proposals or store.brought_files(database))
    for one in _written(workspace):
        (done.artifacts if _is_as_written(workspace, one) else done.kept).append(one.path)
    return done


def undo(workspace: Workspace, now_us: int) -> Undone:
    """Takes back memories, artifacts and open proposals that were brought. Ended early, the same call finishes it."""
    done = planned(workspace, now_us)
    for agent_id, found in list(proposals.brought(workspace, _agents(workspace), now_us)):
        proposals.take_back(workspace, agent_id, found, now_us)
    with state_dir.workspace_lock(workspace.state):
        ours = {one.path for one in store.brought_files(workspace.database)}
        if _lost(workspace) - ours:
            # What else is gone is no concern of this undo: a pass halts, if it is most of the vault.
            require_whole(engine.run_locked(workspace, Request(now_us=now_us)))
        _forget_memories(workspace)
        gone = _delete_files(workspace, done)
        outcome = engine.run_locked(workspace, Request(now_us=now_us, accept_removals=True))
        _forget_files(workspace.database, gone)
        back_up(workspace, iso(now_us))
        done.waiting = memories_operations.waiting_for(DEFAULT_AGENT, outcome)
    return done


def _agents(workspace: Workspace) -> list[str]:
    return counts.agents(workspace.database)


def _lost(workspace: Workspace) -> set[str]:
    """Returns the indexed files that are not there."""
    known = artifacts.known_files(workspace.database)
    there = {f"memory/{name}" for name in files.listing(workspace.root, "memory", "")}
    return {path for path, one in known.items() if one.verdict == "indexed"} - there


# ── memories ──


def planned_memories(workspace: Workspace, program: str) -> Undone:
    """Returns what an undo of a program that brings memories only would take back; writes nothing."""
    ids = store.brought_memories(workspace.database, program)
    return Undone(sum(map(len, ids.values())) - len(_staying(workspace, ids, program)))


def undo_memories(workspace: Workspace, program: str, now_us: int) -> Undone:
    """Takes back the memories that were brought from a program. Ended early, the same call finishes it."""
    with state_dir.workspace_lock(workspace.state):
        done = planned_memories(workspace, program)
        agents = store.brought_memories(workspace.database, program)
        _forget_memories(workspace, program)
        for agent_id in agents:
            done.waiting = memories_operations.settle(workspace, agent_id, now_us) or done.waiting
    return done


def _staying(workspace: Workspace, ids: dict[str, list[str]], program: str = store.SIGNET[1]) -> set[tuple[str, str]]:
    """Returns the memories that a person or a session has said as well since they were brought."""
    return {
        (agent_id, one)
        for agent_id, found in ids.items()
        for one in found
        if store.others_say_it(workspace.database, agent_id, one, program)
    }


def _forget_memories(workspace: Workspace, program: str = store.SIGNET[1]) -> None:
    database = workspace.database
    ids = store.brought_memories(database, program)
    with database.transaction(durable=True):
        for agent_id, found in ids.items():
            drop(database, agent_id, found, program)


# ── files ──


def _written(workspace: Workspace) -> list[BroughtFile]:
    """Returns the artifacts that were brought and are there, without manifests."""
    return [
        one
        for one in store.brought_files(workspace.database)
        if not one.path.endswith(_MANIFEST) and files.status_of(workspace.root, one.path) is not None
    ]


def _is_as_written(workspace: Workspace, one: BroughtFile) -> bool:
    """Returns whether a file has the bytes that were sealed."""
    seal = artifacts.seal_of(workspace.database, one.path)
    found = files.read(workspace.root, one.path, workspace.settings.max_file_bytes)
    return isinstance(found, Found) and (seal is None or seal.file_sha256 == sha256(found.raw).hexdigest())


def _delete_files(workspace: Workspace, done: Undone) -> list[BroughtFile]:
    """Deletes the artifacts, and the manifests of sessions that have no others; the others point to what is left.

    The seals go first, so that a file that is gone is no violation for a pass that runs before all of it is done; a
    file that is still there is sealed again by it.
    """
    database, root = workspace.database, workspace.root
    paths = [one.path for one in _written(workspace) if one.path in done.artifacts]
    with database.transaction(durable=True):
        for agent_id, path in _manifests_of(workspace, paths, done):
            store.take_manifest(database, agent_id, path)
        bodies.keep(database, paths)
        brought = store.brought_files(database)
        for one in brought:
            if one.path in paths:
                removal.drop_artifacts(database, one.agent_id, [one.path], "seals")
        artifacts.forget_signatures(database, paths)
    gone = [one for one in brought if one.before is None and one.path not in done.kept]
    # The pass writes a manifest again whose session has other files.
    gone.sort(key=lambda one: (one.path.endswith(_MANIFEST), one.path))
    for one in gone:
        files.unlink(root, one.path)
    for one in brought:
        if one.before is not None and files.status_of(root, one.path) is not None:
            _restore_manifest(workspace, one, [one.path for one in gone])
    return gone


def _forget_files(database: Database, gone: Sequence[BroughtFile]) -> None:
    """Deletes what is left of files that a pass has found gone: verdicts, and the answers that name them."""
    names = [name for name, table in TABLES.items() if table.artifact and name != "migrated_files"]
    paths = [one.path for one in gone]
    with database.transaction(durable=True):
        for one in gone:
            removal.drop_artifacts(database, one.agent_id, [one.path], *names)
        artifacts.forget_files(database, paths)
        store.forget_answers(database, paths)
        store.forget_files(database, store.brought_files(database))


def _manifests_of(workspace: Workspace, paths: Sequence[str], done: Undone) -> list[tuple[str, str]]:
    """Returns agent and path of the manifests of sessions whose every artifact goes.

    One in which a person wrote is kept.
    """
    gone = set(paths)
    # A manifest may also link files that an undo has deleted before it was cut off.
    brought = [one.path for one in store.brought_files(workspace.database)]
    found = []
    for agent_id, token, session_id in store.sessions_of(workspace.database, paths):
        rows = artifacts.session_rows(workspace.database, agent_id, token, session_id)
        if any(row.source_kind != "manifest" and row.source_path not in gone for row in rows):
            continue
        for row in rows:
            if row.source_kind == "manifest":
                if _is_generated(workspace, row.source_path, brought):
                    found.append((agent_id, row.source_path))
                else:
                    done.kept.append(row.source_path)
    return found


def _is_generated(workspace: Workspace, path: str, paths: Iterable[str]) -> bool:
    known = manifests.read(workspace.root, path, workspace.settings.max_file_bytes)
    return known is not None and not _without_links(known[1].body, paths).strip()


def _without_links(body: str, paths: Iterable[str]) -> str:
    """Returns the body of a manifest without the links to some files."""
    for path in paths:
        if path in body:
            for kind in _KINDS:
                link = wikilink(path, kind)
                body = body.replace(f" {link}", "").replace(link, "")
    return body


def _restore_manifest(workspace: Workspace, one: BroughtFile, paths: Sequence[str]) -> None:
    """Lets a manifest that was here before say again what it said then, if it still names files that went."""
    before = one.before or {}

    def change(fields: dict[str, Any], body: str) -> tuple[dict[str, Any], str] | None:
        left = _without_links(body, paths)
        named = {f"{kind}_path" for kind in _KINDS if fields.get(f"{kind}_path") in paths}
        if not named and normalize(left) == normalize(body):
            return None
        fields.update({name: value for name, value in before.items() if name in named or not name.endswith("_path")})
        return fields, left.rstrip("\n") if left != body else body

    token = one.path.split("--")[1]
    manifests.swap(
        workspace.root,
        one.path,
        change,
        partial(state_dir.session_lock, workspace.state, token),
        limit=workspace.settings.max_file_bytes,
    )
