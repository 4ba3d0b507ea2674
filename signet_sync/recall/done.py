"""Finds what sessions did, by what their transcripts tell: commits, pull requests, files that were changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from signet_sync.digest.deeds import Deeds, deeds_of
from signet_sync.digest.turns import turns_of
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.bodies import text_at

if TYPE_CHECKING:
    from signet_sync.recall.store.rows import Period
    from signet_sync.recall.store.words import FoundFile

_ABBREVIATED = 7  # characters to which git shortens the name of a commit, or more


def deeds_in(database: Database, path: str) -> Deeds:
    """Returns what a transcript tells that was done."""
    return deeds_of(turns_of(text_at(database, path)))


def done_by(database: Database, transcripts: list[str], project: str | None) -> dict[str, list[dict[str, Any]]]:
    """Returns commits, pull requests and changed files of a session, for a document; paths within its project."""
    each = [deeds_in(database, path) for path in transcripts]
    files = {path.removeprefix(f"{project}/"): times for deeds in each for path, times in deeds.files.items()}
    return {
        "commits": [{"commit": one.name, "subject": one.subject} for deeds in each for one in deeds.commits],
        "pull_requests": [
            {"number": one.number, "title": one.title, "merged": one.merged}
            for deeds in each
            for one in deeds.requests.values()
        ],
        "files": [{"path": path, "edits": times} for path, times in files.items()],
    }


def transcripts_that(
    database: Database, agent_id: str, *, commit: str, file: str, period: Period | None, limit: int
) -> list[FoundFile]:
    """Returns the transcripts of an agent's sessions that made a commit or changed a file, the newest first."""
    from signet_sync.recall.store.words import files_with  # `open` needs no search

    file = os.path.normpath(file) if file else ""
    asked = commit[:_ABBREVIATED] if commit else os.path.basename(file)

    def told(path: str) -> str:
        return next(_list_told(deeds_in(database, path), commit.lower(), file), "")

    return files_with(database, asked, agent_id=agent_id, period=period, limit=limit, begun=bool(commit), told=told)


def _list_told(deeds: Deeds, commit: str, file: str) -> Iterator[str]:
    """Yields what deeds are of a commit, by its name or the beginning of it, or of a file, by the end of its path."""
    for one in deeds.commits if len(commit) >= _ABBREVIATED else ():
        if one.name and (one.name.startswith(commit) or commit.startswith(one.name)):
            yield f"{one.name} {one.subject}"
    for path, times in deeds.files.items() if file else ():
        if f"/{path}".endswith(f"/{file.lstrip('/')}") or file.endswith(f"/{path.lstrip('/')}"):
            yield f"{path}: {times} {'edit' if times == 1 else 'edits'}"
