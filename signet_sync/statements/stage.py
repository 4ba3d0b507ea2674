"""Takes in what was said of statements; modules load only if anything was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from signet_sync.errors import WorkspaceError
from signet_sync.formats.paths import MEMORY, WORDS
from signet_sync.storage import files
from signet_sync.sync.store import passes
from signet_sync.sync.workspace import Maintenance, Pass, Recovery


class Words(Recovery, Maintenance):
    """Reads what was said of statements since the last pass, on whichever machine."""

    name = "words"
    database_only = True

    @contextmanager
    def recover(self, run: Pass) -> Iterator[None]:
        """Reads it before anything is derived: no early page may show what was taken back."""
        # If the folder is away, the pass may halt, and the rows serve on.
        if files.status_of(run.workspace.root, WORDS) is not None and self.due(run):
            self.run(run)
        yield

    def due(self, run: Pass) -> bool:
        """Returns whether the pass looks at the folder, and it is there or was."""
        paths = run.request.paths
        if paths is not None and not any(path == MEMORY or path.startswith(WORDS) for path in paths):
            return False
        return files.status_of(run.workspace.root, WORDS) is not None or (
            passes.find_version(run.database, self.name) is not None
        )

    def run(self, run: Pass) -> None:
        """Has rows follow the files, if they changed."""
        from signet_sync.statements import word_files  # most workspaces have none

        try:
            run.outcome.change.agents |= word_files.follow(run.workspace)
        except (OSError, WorkspaceError) as error:
            run.outcome.trouble.append(f"what was said of statements cannot be read now: {error}")
