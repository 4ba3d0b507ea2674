"""Checks entity files and event logs for `check` and `entity check`; writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from copy import copy
from typing import Any

from signet_sync.entities import replay, scan
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents.document import DocumentProblem, EntityDocument, parse
from signet_sync.entities.documents.edits import items
from signet_sync.entities.documents.lint import LintFinding, lint
from signet_sync.entities.events import Event, verify
from signet_sync.entities.evidence import Rationale, read_rationale
from signet_sync.entities.repository import EntityRepository, FileContent
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats import locate
from signet_sync.formats.entity_paths import FILES, EntityPlace, ledger_page
from signet_sync.formats.timestamps import day_of
from signet_sync.storage.database.connection import Database
from signet_sync.sync.workspace import Workspace

LOG = "change-log"


# ── one file ──


def findings(repo: EntityRepository, place: EntityPlace, document: EntityDocument) -> list[LintFinding]:
    """Lists deviations of a file from the schema; a given rationale excuses a long section until its day has come."""
    events = [event for event in repo.log.of(place.id) if event.file == place.file]
    given, found = _rationales(events), list[LintFinding]()
    for one in lint(document, repo.shapes(place.kind, place.file, document)):
        why = given.get(one.anchor or "") if one.code == "too-long" else None
        if why is None:
            found.append(one)
        elif why.is_over(day_of(repo.now_us)):
            message = f"{one.message}, which was agreed until {why.until}"
            found.append(LintFinding(one.anchor, "rationale-over", message, f"plan: {why.plan}"))
    return found + list(_unwritten(document, events))


def _rationales(events: Sequence[Event]) -> dict[str, Rationale]:
    """Returns the last rationale of each section."""
    found: dict[str, Rationale] = {}
    for event in events:
        said = event.said("rationale")
        if event.section is not None and isinstance(said, str) and event.left is not None:
            try:
                found[event.section] = read_rationale(said)
            except UsageError:
                continue
    return found


def _unwritten(document: EntityDocument, events: Sequence[Event]) -> Iterator[LintFinding]:
    """Finds lines of the change log that no operation wrote: somebody typed them, or another program."""
    section = next((one for one in document.sections if one.anchor == LOG), None)
    if section is None or not events or any(event.erased for event in events):
        return
    known = set[str]()
    for event in events:
        if event.op != "human_edit" or event is events[0]:
            splice = (event.said(replay.PARTS) or {}).get(LOG) or [0, "", ""]
            text = event.said(replay.WHOLE) or splice[2]
            known.update(line[2:] for line in text.split("\n") if line.startswith("- "))
    for item in items(section):
        if item.text not in known:
            hint = "entity log shows who edited the file; remove the line, or leave it"
            yield LintFinding(LOG, "log-line-unknown", f"item {item.number} was written by no operation", hint)


# ── everything ──


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
        workspace = copy(workspace)
        workspace.database = known
        for owner in owners:
            try:
                repo = EntityRepository(workspace, owner, now_us)
                _ledger(repo, database, remarks)
                for place in (place for places in repo.places().values() for place in places):
                    for file in FILES:
                        _file(repo, repo.read(place._replace(file=file)), remarks)
            except (OSError, WorkspaceError) as error:
                message = f"entities cannot be read: {error}"
                hint = "check its permissions, and that no folder on the way is a symlink"
                remarks.problem(scan.entities_folder(owner), "invalid", "unreadable", message, hint)
    return remarks


def _ledger(repo: EntityRepository, database: Database | None, remarks: EntityReport) -> None:
    known = None if database is None else entities_store.log_end(database, repo.agent_id)
    found = verify(repo.log.lines(), known_last=None if known is None else known.last_id, agent_id=repo.agent_id)
    for one in found:
        path = ledger_page(repo.agent_id, one.month) if one.month else scan.entities_folder(repo.agent_id)
        if one.code == "torn":  # the next write repairs it
            remarks.note(path, f"ledger-{one.code}", one.said)
        else:
            remarks.problem(path, "violation", f"ledger-{one.code}", one.said, one.hint, one.number or 1)


def _file(repo: EntityRepository, seen: FileContent, remarks: EntityReport) -> None:
    if seen.text is None:
        state = repo.state(seen.place.id).files.get(seen.place.file)
        if seen.code == "gone" and (state is None or state.is_new) and not _has_profile(repo, seen.place):
            if seen.place.file == "profile":
                remarks.note(seen.path, "unfinished", "its creation was interrupted, and nothing of it stands yet")
        elif seen.code != "gone" or seen.place.file == "profile":
            remarks.problem(seen.path, "invalid", seen.code, seen.message, "restore it from a copy or from the history")
        return
    try:
        document = parse(seen.text)
    except DocumentProblem as problem:
        line = max(problem.line, locate.line_of(seen.raw or b"", problem.code, problem.message))
        remarks.problem(seen.path, "invalid", problem.code, problem.message, problem.hint, line)
        return
    for finding in findings(repo, seen.place, document):
        remarks.note(seen.path, finding.code, f"{finding.message}: {finding.hint}")


def _has_profile(repo: EntityRepository, place: EntityPlace) -> bool:
    return repo.read(place._replace(file="profile")).code != "gone"
