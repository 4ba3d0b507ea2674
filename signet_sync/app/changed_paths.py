"""Finds the paths that differ from the index without needing a file-system event."""

from __future__ import annotations

from signet_sync.entities import stage as entities_stage
from signet_sync.formats.filename import ArtifactName, artifact_name, tombstone_name
from signet_sync.formats.paths import MEMORY, TOMBSTONES, WORDS, dream_page, head_page, page_agent
from signet_sync.formats.snapshot import STRANGE_NAME, Signature, Snapshot
from signet_sync.pages.store import pages
from signet_sync.storage import files
from signet_sync.sync import reading
from signet_sync.sync.index_records import Known
from signet_sync.sync.store import artifacts, counts
from signet_sync.sync.workspace import Workspace


def relevant(workspace: Workspace, hinted: frozenset[str]) -> frozenset[str]:
    """Returns the hinted paths that may matter.

    Left out are other folders, and ignored file names that still exist: another program's database in `memory/` may be
    written all day.
    """
    vault = frozenset(path for path in hinted if path.rpartition("/")[0] in (MEMORY, TOMBSTONES))
    foreign = [path for path in vault if not _is_ours(path)]
    known = artifacts.list_known_files(workspace.database, foreign)
    ignored = {
        path for path, before in known.items() if before.verdict == "ignored" and files.status_of(workspace.root, path)
    }
    others = {
        path
        for path in hinted - vault
        if path == MEMORY
        or path.startswith(f"{WORDS}/")
        or page_agent(path) is not None
        or entities_stage.is_entity_path(path)
    }
    return (vault - ignored) | others


def not_written_by_us(workspace: Workspace, heard: frozenset[str]) -> frozenset[str]:
    """Returns the reported paths, except pages and manifests that are as we left them.

    The same signature means the same bytes, as in every pass: a pass over such a path would write nothing.
    """
    database = workspace.database
    known: dict[str, Signature | None] = {}
    for path in heard:
        if page_agent(path) is not None and (state := pages.page_state(database, path)) and state.inputs_sha256:
            known[path] = state.signature
    written = [path for path in heard if (name := _artifact(path)) is not None and name.kind == "manifest"]
    for path, before in artifacts.list_known_files(database, written).items():
        if before.verdict == "indexed":
            known[path] = before.signature
    found = files.signatures(workspace.root, known)
    return frozenset(path for path in heard if known.get(path) is None or found.get(path) != known[path])


def new_or_gone(workspace: Workspace) -> frozenset[str] | None:
    """Returns paths that appeared or disappeared, by name only, at a tenth of a scan's cost; None: scan everything."""
    found = reading.list_names(workspace.root)
    if found is None:
        return None
    gone = set()
    for (path,) in workspace.database.execute("select path from files where code <> 'vanished'"):
        if path in found:
            found.remove(path)
        else:
            gone.add(path)
    return frozenset(gone).union(path for path in found if path != TOMBSTONES and path.endswith(".md"))


class Poll:
    """Scans all files repeatedly if there are no events; a scan equal to the previous one is not compared."""

    def __init__(self) -> None:
        self._seen: Snapshot | None = None
        self._entities: dict[str, Signature | None] = {}

    def changed(self, workspace: Workspace) -> frozenset[str] | None:
        """Returns files that came, went or changed size, time or inode, pages and entities too; None: all of them."""
        snapshot = reading.scan(workspace.root)
        if snapshot.ground != "present":
            return None
        changed = _pages(workspace)
        entities = entities_stage.differing(workspace)
        # An entity file that waits for the maintainer keeps differing, so it is reported once only.
        changed |= dict(entities.items() - self._entities.items()).keys()
        self._entities = entities
        if snapshot != self._seen:
            changed |= _differences(workspace, snapshot)
        self._seen = snapshot
        return frozenset(changed)


def _differences(workspace: Workspace, snapshot: Snapshot) -> set[str]:
    known = artifacts.list_known_files(workspace.database)
    changed = {path for path, signature in snapshot.files.items() if _has_changed(known.get(path), signature)}
    changed |= {path for path, what in snapshot.odd.items() if _is_news(path, what, known.get(path))}
    return changed | {
        path for path, before in known.items() if before.code != "vanished" and not _there(path, snapshot)
    }


def _pages(workspace: Workspace) -> set[str]:
    changed = set()
    for agent_id in counts.agents(workspace.database):
        for path in (head_page(agent_id), dream_page(agent_id)):
            written = pages.page_state(workspace.database, path)
            status = files.status_of(workspace.root, path)
            found = files.signature_of(status) if status is not None else None
            if written is not None and written.signature != found:
                changed.add(path)
    return changed


def _has_changed(before: Known | None, signature: Signature) -> bool:
    return before is None or before.signature != signature


def _is_news(path: str, what: str, before: Known | None) -> bool:
    """Returns whether something that is no regular file is not yet known as such; folders and pipes have no verdict."""
    if before is not None:
        return before.verdict == "indexed"
    return what in (STRANGE_NAME, "symlink") or artifact_name(path.rpartition("/")[2]) is not None


def _there(path: str, snapshot: Snapshot) -> bool:
    return path in snapshot.files or path in snapshot.odd


def _artifact(path: str) -> ArtifactName | None:
    where, _, name = path.rpartition("/")
    return artifact_name(name) if where == MEMORY else None


def _is_ours(path: str) -> bool:
    name = path.rpartition("/")[2]
    return artifact_name(name) is not None or tombstone_name(name) is not None
