"""Names the state of a workspace's files without reading them, so that an unchanged one costs a listing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256

from signet_sync import __version__
from signet_sync.entities import scan as entities_scan
from signet_sync.errors import SignetSyncError, WorkspaceError, reason
from signet_sync.fleet.rows import VERSION
from signet_sync.formats.paths import MEMORY, SETTINGS
from signet_sync.settings.model import Settings
from signet_sync.storage import files
from signet_sync.storage.vault import Root
from signet_sync.sync import scan
from signet_sync.text import digest_mark
from signet_sync.text.sanitizer import sanitizer_stamp


def listing_of(root: Root) -> str:
    """Returns a digest of path and signature of every file on which rows depend. Raises `WorkspaceError`."""
    found = scan.scan(root)
    if found.ground != "present":
        raise WorkspaceError(found.ground_message, path=MEMORY, hint="check that the workspace is mounted, and whole")
    digest = sha256()
    for entry in (*sorted(found.files.items()), *sorted(found.odd.items()), *_others(root)):
        digest.update(json.dumps(entry, ensure_ascii=True).encode())
    return digest.hexdigest()


def _others(root: Root) -> Iterator[object]:
    """Yields what is known of settings and entities, whose problems are verdicts too."""
    yield sorted(files.signatures(root, [SETTINGS]).items())
    for agent in entities_scan.possible_agents(root):
        if entities_scan.has_folder(root, agent):
            try:
                yield agent, sorted((entities_scan.scan(root, agent) or {}).items())
                yield agent, sorted(entities_scan.log_pages(root, agent).items())
            except (SignetSyncError, OSError) as error:
                yield agent, reason(error)


def stamp_of(settings: Settings, *, bodies: bool) -> str:
    """Names the rules by which rows are made of files: program, sanitizer, tables, and the settings that bear on them.

    What another stamp made is made again.
    """
    noise = settings.noise_projects, settings.noise_sessions
    rules = (__version__, sanitizer_stamp(), digest_mark.VERSION, VERSION, noise, settings.max_file_bytes, bodies)
    return sha256(repr(rules).encode()).hexdigest()[:32]
