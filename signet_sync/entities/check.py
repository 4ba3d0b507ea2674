"""Checks entity files and event logs for `check` and `entity check`; writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from copy import copy

from signet_sync.entities import replay, stage
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents.document import EntityDocument
from signet_sync.entities.documents.edits import items
from signet_sync.entities.documents.lint import lint
from signet_sync.entities.events import Event, verify
from signet_sync.entities.evidence import Rationale, read_rationale
from signet_sync.entities.finding import Finding
from signet_sync.entities.repository import EntityRepository, FileContent
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats import frontmatter
from signet_sync.formats.entity_paths import FILES
from signet_sync.formats.timestamps import day_of
from signet_sync.storage.database.connection import Database
from signet_sync.sync.workspace import Workspace

LOG = "change-log"


def lint_file(repo: EntityRepository, seen: FileContent) -> list[Finding]:
    """Lists deviations of a file from the schema; a given rationale excuses a long section until its day has come."""
    if seen.document is None:  # it is in the maintainer's queue
        return []
    place, found = seen.place, list[Finding]()
    events, given = [event for event in repo.log.of(place.id) if event.file == place.file], dict[str, Rationale]()
    for event in events:
        said = event.said("rationale")
        if event.section is not None and isinstance(said, str) and event.left is not None:
            try:
                given[event.section] = read_rationale(said)
            except UsageError:
                continue
    for one in lint(seen.document, repo.shapes(place.kind, place.file, seen.document)):
        why = given.get(one.anchor or "") if one.code == "too-long" else None
        if why is None:
            found.append(one)
        elif why.is_over(day_of(repo.now_us)):
            message = f"{one.message}, which was agreed until {why.until}"
            found.append(one._replace(code="rationale-over", message=message, hint=f"plan: {why.plan}"))
    found += _unwritten(seen.document, events)
    return [one._replace(id=place.id, path=seen.path) for one in found]


def _unwritten(document: EntityDocument, events: Sequence[Event]) -> Iterator[Finding]:
    """Finds lines of the change log that no operation wrote: somebody typed them, or another program."""
    section = next((one for one in document.sections if one.anchor == LOG), None)
    if section is None or not events or any(event.erased for event in events):
        return
    known = set[str]()
    for event in events:
        if event.op != "human_edit" or event is events[0]:
            text = event.said(replay.WHOLE) or replay.parts_of(event).get(LOG, (0, "", ""))[2]
            known.update(line[2:] for line in text.split("\n") if line.startswith("- "))
    for item in items(section):
        if item.text not in known:
            hint = "entity log shows who edited the file; remove the line, or leave it"
            yield Finding("log-line-unknown", f"item {item.number} was written by no operation", hint, anchor=LOG)


def verify_log(repo: EntityRepository) -> list[Finding]:
    """Lists the defects of the event log; without an index a missing end cannot be detected."""
    _, last_id, _ = entities_store.log_end(repo.workspace.database, repo.agent_id) or (None, None, None)
    return verify(repo.log.lines(), known_last=last_id, agent_id=repo.agent_id)


def check(workspace: Workspace, agent: str | None, database: Database | None, now_us: int) -> list[Finding]:
    """Checks the entities of an agent (None: of all).

    Unreadable files are `invalid`, changed event logs a `violation`; untidy files are noted.
    """
    found: list[Finding] = []
    owners = [one for one in stage.agents(workspace.vault) if agent in (None, one)]
    with ExitStack() as stack:
        if owners:
            # EntityRepository needs a workspace: without an index it gets an empty one.
            known = database or stack.enter_context(closing(Database(":memory:")))
            workspace = copy(workspace)
            workspace.database = known
        for owner in owners:
            try:
                repo = EntityRepository(workspace, owner, now_us)
                for one in verify_log(repo):
                    # A torn line is repaired by the next write.
                    verdict, path = "" if one.code == "torn" else "violation", one.path or stage.entities_folder(owner)
                    found.append(one._replace(code=f"ledger-{one.code}", verdict=verdict, path=path))
                for place in (place for places in repo.places().values() for place in places):
                    for file in FILES:
                        found += _check_file(repo, repo.read(place._replace(file=file)))
            except (OSError, WorkspaceError) as error:
                hint = "check its permissions, and that no folder on the way is a symlink"
                message = f"entities cannot be read: {error}"
                path = stage.entities_folder(owner)
                found.append(Finding("unreadable", message, hint, path, verdict="invalid"))
    return found


def _check_file(repo: EntityRepository, seen: FileContent) -> list[Finding]:
    problem, state = seen.problem, repo.state(seen.place.id).files.get(seen.place.file)
    if problem is None:
        return [one._replace(message=f"{one.message}: {one.hint}") for one in lint_file(repo, seen)]
    if seen.is_gone and seen.place.file == "notes":
        return []
    if seen.is_gone and (state is None or state.is_new):
        return [Finding("unfinished", "its creation was interrupted, and nothing of it stands yet", "", seen.path)]
    line, hint = 1, "restore it from a copy or from the history"
    if seen.text is not None:
        line = max(problem.line, frontmatter.line_of(seen.raw or b"", problem.code, problem.message))
        hint = problem.hint
    return [Finding(problem.code, problem.message, hint, seen.path, line=line, verdict="invalid")]
