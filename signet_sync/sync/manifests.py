"""Reads and writes manifests, a session's one mutable file, by compare-and-swap on the revision.

Missing ones are written again from their sessions' artifacts; `memory_md_refs` follow the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from signet_sync.errors import RevisionConflict, WorkspaceError, reason
from signet_sync.formats import frontmatter
from signet_sync.formats.artifact import (
    LEDGER_HEADING,
    MANIFEST_FIELDS,
    MANIFEST_KEYS,
    REPOSITORY_FIELDS,
    SESSION_FIELDS,
    FieldProblem,
    repository_fields,
    validate,
)
from signet_sync.formats.body import HASH_SCOPE, normalize, text_sha256
from signet_sync.formats.filename import artifact_file_name, artifact_name
from signet_sync.formats.frontmatter import Document, FrontmatterProblem, parse, unknown_entries, write
from signet_sync.formats.ids import token_matches
from signet_sync.formats.paths import MEMORY, artifact_path, wikilink
from signet_sync.formats.snapshot import Found
from signet_sync.storage import files, state_dir, writing
from signet_sync.sync.store import artifacts, passes
from signet_sync.sync.workspace import Maintenance, Pass, Workspace

RETRIES = 5


def text_of(fields: Mapping[str, Any], body: str, unknown: Mapping[str, Any] | None = None) -> bytes:
    """Formats a manifest: fields in model order, hash of the body, then unknown keys; the body is unchanged."""
    ordered = {name: fields.get(name) for name in MANIFEST_FIELDS}
    ordered["content_sha256"] = text_sha256(normalize(body))
    ordered["hash_scope"] = HASH_SCOPE
    ordered.update({name: fields[name] for name in REPOSITORY_FIELDS if name in fields})
    ordered.update(unknown or {})
    return write(ordered, body.removesuffix("\n"))


def read(root: str, path: str, limit: int) -> tuple[Found, Document, dict[str, Any]] | None:
    """Returns a manifest with its document and fields; None if it cannot be read or is not a manifest."""
    found = files.read(root, path, limit)
    if not isinstance(found, Found):
        return None
    try:
        document = parse(found.raw)
        return found, document, validate("manifest", frontmatter.read(document.head)).fields()
    except (FrontmatterProblem, FieldProblem):
        return None


Edit = Callable[[dict[str, Any], str], tuple[dict[str, Any], str] | None]


def swap(workspace: Workspace, path: str, change: Edit, *, sync_folder: bool = True) -> bool:
    """Changes a manifest under its session's lock: read, change, compare, write `revision + 1`; False if it stays.

    Without `sync_folder` the caller syncs the folder, once for several (`writing.sync_folders`). `change` gets the
    fields and the body and returns both, or None if nothing is to be written. An unreadable manifest is left alone.
    Raises `RevisionConflict` after a bounded number of lost races.
    """
    name = artifact_name(path.rpartition("/")[2])
    assert name is not None
    for _ in range(RETRIES):
        with state_dir.session_lock(workspace.state, name.token):
            known = read(workspace.root, path, workspace.settings.max_file_bytes)
            if known is None:
                return False
            found, document, before = known
            changed = change(dict(before), document.body)
            if changed is None:
                return False
            fields, body = changed
            fields["revision"] = before["revision"] + 1
            data = text_of(fields, body, dict(unknown_entries(document.head, MANIFEST_KEYS)))
            try:
                parse(data)
            except FrontmatterProblem:
                return False  # a person's own keys make it too large: written, it could not be read again
            if writing.replace(workspace.root, path, data, found.raw, sync_folder=sync_folder).displaced is None:
                return True
    raise RevisionConflict(
        "the manifest kept changing while it was written", path=path, hint="it is tried again by itself"
    )


_KINDS = ("summary", "transcript", "compaction")


def manifest_body(links: Iterable[tuple[str, str]]) -> str:
    """Returns the body of a generated manifest: wikilinks to the session's files, for readers in Obsidian."""
    return " ".join(wikilink(path, kind) for kind, path in links)


class MissingManifests(Maintenance):
    """Writes missing manifests again, from the artifacts of their sessions."""

    name = "missing manifests"

    def due(self, run: Pass) -> bool:
        """Returns whether a manifest may be missing: something moved since the last look."""
        return bool(passes.get(run.database, "manifests_due"))

    def run(self, run: Pass) -> None:
        """Writes them and adds their paths to the outcome."""
        for session in artifacts.sessions_without_manifest(run.database):
            if (path := _rebuild(run, *session)) is not None:
                run.outcome.rebuilt_manifests.append(path)
                run.outcome.rewritten.add(path)


def _rebuild(run: Pass, agent_id: str, token: str, session_id: str) -> str | None:
    """Writes a manifest for a session that has valid artifacts but none; returns its path."""
    rows = artifacts.session_rows(run.database, agent_id, token, session_id)
    best = max(rows, key=lambda r: (r.captured_us, r.source_kind == "summary"), default=None)
    if best is None or not token_matches(token, agent_id, best.session_key, session_id):
        return None
    first = min(rows, key=lambda r: (r.captured_us, r.source_path))
    path, captured_at = artifact_path(artifact_file_name(first.captured_at, token, "manifest")), first.captured_at
    for row in rows:
        named = artifact_name((row.manifest_path or "").removeprefix(f"{MEMORY}/"))
        same = [r for r in rows if named is not None and r.captured_at.replace(":", "-") == named.stamp]
        if named is not None and named.kind == "manifest" and named.token == token and same:
            path, captured_at = f"{MEMORY}/{named.stamp}--{token}--manifest.md", same[0].captured_at
            break
    newest: dict[str, str | None] = {}
    for kind in _KINDS:
        last = max((r for r in rows if r.source_kind == kind), key=lambda r: r.captured_us, default=None)
        newest[kind] = last.source_path if last is not None else None
    fields: dict[str, Any] = {
        "kind": "manifest",
        **{name: getattr(best, name) for name in SESSION_FIELDS},
        "captured_at": captured_at,
        "started_at": first.started_at,
        "ended_at": best.ended_at,
        **{f"{kind}_path": written for kind, written in newest.items()},
        "memory_md_refs": [],
        "updated_at": run.now_iso,
        "revision": 1,
        **repository_fields(*(getattr(best, name) for name in REPOSITORY_FIELDS)),
    }
    if files.status_of(run.workspace.root, path) is not None:
        return None  # the path is taken by a file that is no readable manifest: its verdict reports it
    body = manifest_body((kind, written) for kind, written in newest.items() if written is not None)
    try:
        writing.create_once(run.workspace.root, path, text_of(fields, body))
    except FileExistsError:
        return None
    except (OSError, WorkspaceError) as error:
        run.workspace.events.append(f"{path}: the missing manifest could not be written: {reason(error)}")
        run.outcome.deferred = True
        return None
    return path


def follow_page(
    workspace: Workspace,
    agent_id: str,
    shown: Iterable[tuple[str, str]],
    is_on_disk: Callable[[], bool],
) -> tuple[list[str], list[str]]:
    """Updates `memory_md_refs` to match the sessions that a page shows; returns changed paths and problems.

    Only values that change are written, and `updated_at` stays: two machines that render the same page write the same
    bytes. `is_on_disk` returns whether the page on disk is this one. If it is another machine's, that machine updates
    the references: two machines whose clocks or memories differ would otherwise overwrite each other's manifests
    endlessly.
    """
    wanted: dict[str, list[str]] = {}
    showing = set()
    for token, session_id in shown:
        manifest = artifacts.manifest_of(workspace.database, agent_id, token, session_id)
        if manifest is None:
            continue
        path, headings = manifest
        showing.add(path)
        if headings != LEDGER_HEADING:
            wanted[path] = [LEDGER_HEADING]
    for path in artifacts.list_shown_manifests(workspace.database, agent_id):
        if path not in showing:
            wanted[path] = []
    if not wanted or not is_on_disk():
        return [], []
    changed: list[str] = []
    trouble: list[str] = []
    for path, refs in sorted(wanted.items()):

        def change(fields: dict[str, Any], body: str, refs: list[str] = refs) -> tuple[dict[str, Any], str] | None:
            if fields.get("memory_md_refs") == refs:
                return None
            return {**fields, "memory_md_refs": refs}, body

        try:
            if swap(workspace, path, change, sync_folder=False):
                changed.append(path)
        except (OSError, WorkspaceError, RevisionConflict) as error:
            trouble.append(f"{path}: its references could not be written: {reason(error)}")
    if changed:
        writing.sync_folders(workspace.root, {MEMORY})
    return changed, trouble
