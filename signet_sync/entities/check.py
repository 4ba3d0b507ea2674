"""Checks entity files and event logs for the command `check`; writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

from signet_sync.entities import scan
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents.document import DocumentProblem
from signet_sync.entities.documents.lint import lint
from signet_sync.entities.event_log import chain
from signet_sync.entities.repository import EntityRepository, FileContent, parsed
from signet_sync.errors import WorkspaceError
from signet_sync.formats import locate
from signet_sync.formats.entity_paths import FILES, EntityPlace, ledger_page
from signet_sync.storage.database.connection import Database
from signet_sync.sync.workspace import Workspace

# The next write repairs these by itself.
_MENDED = ("torn",)


class EntityReport:
    """Problems and notes in the format of `check --json`."""

    def __init__(self) -> None:
        self.problems: list[dict[str, Any]] = []
        self.notes: list[dict[str, str]] = []

    def problem(self, path: str, verdict: str, code: str, message: str, hint: str, line: int = 1) -> None:
        """Adds a finding that needs action."""
        self.problems.append(
            {"path": path, "verdict": verdict, "code": code, "message": message, "hint": hint, "line": line}
        )

    def note(self, path: str, code: str, message: str) -> None:
        """Adds a finding that needs no action."""
        self.notes.append({"path": path, "code": code, "message": message})


def check(workspace: Workspace, agent: str | None, database: Database | None, now_us: int) -> EntityReport:
    """Checks the entities of an agent (None: of all).

    Unreadable files are `invalid`, changed event logs a `violation`; untidy files are noted. Without a database a
    missing end of an event log cannot be detected.
    """
    remarks = EntityReport()
    owners = [one for one in scan.agents(workspace.vault) if agent in (None, one)]
    if not owners:
        return remarks
    with ExitStack() as stack:
        # EntityRepository needs a workspace: without an index it gets an empty one.
        known = database or stack.enter_context(closing(Database(":memory:")))
        workspace = replace(workspace, database=known)
        for owner in owners:
            try:
                repo = EntityRepository(workspace, owner, now_us)
                _ledger(repo, database, remarks)
                _files(repo, remarks)
            except (OSError, WorkspaceError) as error:
                message = f"entities cannot be read: {error}"
                hint = "check its permissions, and that no folder on the way is a symlink"
                remarks.problem(scan.entities_folder(owner), "invalid", "unreadable", message, hint)
    return remarks


def _ledger(repo: EntityRepository, database: Database | None, remarks: EntityReport) -> None:
    known = None if database is None else entities_store.log_end(database, repo.agent_id)
    found = chain.verify(
        repo.log.lines(), known_last=None if known is None else known.last_hash, agent_id=repo.agent_id
    )
    for finding in found:
        path = ledger_page(repo.agent_id, finding.month) if finding.month else scan.entities_folder(repo.agent_id)
        if finding.code in _MENDED:
            remarks.note(path, f"ledger-{finding.code}", finding.text)
        else:
            remarks.problem(
                path, "violation", f"ledger-{finding.code}", finding.text, finding.hint, finding.number or 1
            )


def _files(repo: EntityRepository, remarks: EntityReport) -> None:
    for place, seen in _seen(repo):
        if seen.text is None:
            if seen.code == "gone" and _is_unfinished(repo, place):
                remarks.note(seen.path, "unfinished", "its creation was interrupted, and nothing of it stands yet")
            elif seen.code != "gone" or place.file == "profile":
                hint = "restore it from a copy or from the history"
                remarks.problem(seen.path, "invalid", seen.code, seen.message, hint)
            continue
        document = parsed(seen.text)
        if isinstance(document, DocumentProblem):
            line = locate.line_of(seen.raw or b"", document.code, document.message)
            remarks.problem(
                seen.path, "invalid", document.code, document.message, document.hint, max(document.line, line)
            )
            continue
        for finding in lint(document, repo.shapes_of(place.kind, place.file, document)):
            remarks.note(seen.path, finding.code, f"{finding.message}: {finding.hint}")


def _is_unfinished(repo: EntityRepository, place: EntityPlace) -> bool:
    """Returns whether a folder is all that an interrupted or refused creation left: no file, no event carried out."""
    replayed = repo.replay(place.id)
    return not (replayed.texts or replayed.trouble) and all(
        repo.read(place._replace(file=file)).code == "gone" for file in FILES
    )


def _seen(repo: EntityRepository) -> Iterator[tuple[EntityPlace, FileContent]]:
    found = [place._replace(file=file) for places in repo.places().values() for place in places for file in FILES]
    for place in found:
        yield place, repo.read(place)
