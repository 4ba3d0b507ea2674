"""Merges conflict copies of manifests into their manifests and deletes the copies.

A manifest equal to its copy may be what was copied, about to be replaced: that copy is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from signet_sync.errors import RevisionConflict, WorkspaceError, reason
from signet_sync.formats.artifact_fastpath import MANIFEST_KEYS
from signet_sync.formats.filename import artifact_name, is_copy_mark
from signet_sync.formats.frontmatter import unknown_entries
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import MEMORY
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import parse_instant, parse_name_stamp
from signet_sync.formats.wikilinks import with_links
from signet_sync.pages import signet_daemon
from signet_sync.storage import files, state_dir
from signet_sync.sync import manifests
from signet_sync.sync.request import Pass
from signet_sync.sync.stages import Maintenance
from signet_sync.sync.workspace import Workspace

_COPY = late(r"(memory/.+--[a-z2-7]{16}--manifest)([\W_].*)\.md", re.ASCII)
_LINK = late(r"\[\[([^\[\]|]+)\|(\w+)\]\]")
_LINKS = late(r"(?:\s*\[\[[^\[\]]*\]\])+\s*")
_SAME = ("agent_id", "session_id", "session_key")
_PATHS = ("summary_path", "transcript_path", "compaction_path")
_LATER = ("ended_at", "updated_at")


class ManifestCopies(Maintenance):
    """Merges conflict copies of manifests into their manifests."""

    name = "copies of manifests"

    def run(self, run: Pass) -> None:
        """Merges the copies."""
        joined, trouble = merge_copies(run.workspace)
        run.outcome.rewritten |= joined
        run.outcome.trouble += trouble


def merge_copies(workspace: Workspace) -> tuple[set[str], list[str]]:
    """Merges the known copies into their manifests. Returns the paths that changed, and what could not be done.

    Two machines added to one manifest: the newest segments and every line that the user wrote are kept. A copy that
    belongs to another session, or has properties of its own, is left to the user. Every machine writes the same bytes.
    """
    changed: set[str] = set()
    trouble = []
    for copy, path in _known(workspace):
        try:
            changed |= _merge(workspace, copy, path)
        except (OSError, WorkspaceError, RevisionConflict) as error:
            trouble.append(f"{copy}: it could not be merged into its manifest: {reason(error)}")
    return changed, trouble


def _known(workspace: Workspace) -> list[tuple[str, str]]:
    rows = workspace.database.execute(
        "select path from files where verdict <> 'indexed' and verdict = 'ignored' and code = 'conflict-copy'"
        " and path like '%--manifest%.md' order by path"
    )
    matches = [match for (path,) in rows if (match := _COPY.fullmatch(path)) and is_copy_mark(match[2])]
    return [(match[0], f"{match[1]}.md") for match in matches if artifact_name(f"{match[1][len(MEMORY) + 1 :]}.md")]


def _merge(workspace: Workspace, copy: str, path: str) -> set[str]:
    limit = workspace.settings.max_file_bytes
    known = manifests.read(workspace.root, copy, limit)
    if known is None:
        return set()
    found, document, theirs = known
    name = artifact_name(path.rpartition("/")[2])
    if (
        name is None
        or unknown_entries(document.head, MANIFEST_KEYS)
        or signet_daemon.holds(workspace, [theirs["agent_id"]])
    ):
        return set()
    present = files.read(workspace.root, path, limit)
    if isinstance(present, Found) and present.raw == found.raw and not files.is_later(workspace.root, path, copy):
        return set()
    joined = False

    def change(fields: dict[str, Any], body: str) -> tuple[dict[str, Any], str] | None:
        nonlocal joined
        joined = all(fields.get(key) == theirs.get(key) for key in _SAME)
        if not joined:
            return None
        after = {**fields, **newer(fields, theirs)}, merged_body(body, document.body)
        return None if after == (fields, body) else after

    written = manifests.swap(
        workspace.root, path, change, lambda: state_dir.session_lock(workspace.state, name.token), limit=limit
    )
    if not joined or not files.retract(workspace.root, copy, found.raw):
        return {path} if written else set()
    return {path, copy} if written else {copy}


def newer(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields for which another manifest of the session has a later value: newest segments, last moments."""
    paths = {key: max(ours.get(key), theirs.get(key), key=_stamp) for key in _PATHS}
    moments = {key: max(ours.get(key), theirs.get(key), key=_moment) for key in _LATER}
    return {**paths, **moments}


def _stamp(path: str | None) -> tuple[int, str]:
    name = artifact_name((path or "").rpartition("/")[2])
    return (max(parse_name_stamp(name.stamp), default=0) if name else 0, path or "")


def _moment(text: str | None) -> tuple[int, str]:
    return (parse_instant(text or "") or 0, text or "")


def merged_body(body: str, other: str) -> str:
    """Returns a manifest's body plus the links and lines that only the other has; no line of either is lost."""
    lines = other.split("\n")
    links = [(path, kind) for line in lines if _LINKS.fullmatch(line) for path, kind in _LINK.findall(line)]
    present = set(body.split("\n"))
    words = [line for line in lines if line.strip() and line not in present and not _LINKS.fullmatch(line)]
    joined = with_links(body, links)
    return "\n".join([joined.rstrip("\n"), *words, ""]) if words else joined
