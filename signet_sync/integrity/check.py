"""Checks files, pages and entities without writing anything; no verdict needs the index unless asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from signet_sync.entities import queries as entities_queries
from signet_sync.entities import stage
from signet_sync.errors import ConfigError
from signet_sync.formats import frontmatter
from signet_sync.formats.paths import MEMORY, SETTINGS, display
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import iso
from signet_sync.history import repository as history_repository
from signet_sync.integrity.report import problem
from signet_sync.settings import model
from signet_sync.settings.model import Settings
from signet_sync.storage import files, state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.storage.files import require_root
from signet_sync.sync import planner
from signet_sync.sync.index_records import PROBLEMS, Judgement
from signet_sync.sync.indexing import look
from signet_sync.sync.reading import judge_paths
from signet_sync.sync.store import violations
from signet_sync.sync.workspace import Pass, Request, Workspace


@dataclass(slots=True)
class CheckResult:
    """Every judgement of a check, the notes that need more than one file to be seen, problems of pages and entities.

    `excused` are notes, by path and message, that do not fail a strict check. `lines` are the lines of problems by path
    and code.
    """

    judgements: list[Judgement] = field(default_factory=list)
    notes: list[dict[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    excused: set[tuple[str, str]] = field(default_factory=set)
    problems: list[dict[str, Any]] = field(default_factory=list)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)


def check(
    root: str,
    *,
    now_us: int,
    database: Database | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CheckResult:
    """Judges every file of the vault. With a database (read-only) also compares with the seals. Writes nothing.

    The workspace's own settings bear on no verdict (a test holds it): a pull request may change them.
    """
    require_root(root)
    checked = CheckResult()
    settings = _settings(root, checked)
    held = database if database is not None else Database(":memory:")
    try:
        workspace = Workspace(root, settings, state_dir.locate(root), held, touch_nothing=True, own_place=False)
        run = Pass(workspace, Request(now_us, progress=progress))
        seen = look(run, from_scratch=True)
        plan, judging = seen.plan, seen.judging._replace(keeps=False)
        checked.judgements = [*plan.judged, *seen.removals.judged]
        for batch in judge_paths(run, plan.read, judging):
            # Verdicts, not bodies: the vault may be large.
            checked.judgements += (
                one
                if one.row is None
                else one._replace(row=one.row._replace(content=""), seal=None, raw=None, sealed=None)
                for _, one in batch
                if one is not None
            )
    finally:
        if database is None:
            held.close()
    for judgement in checked.judgements:
        if judgement.verdict in ("invalid", "violation"):
            found = files.read(root, judgement.path, settings.max_file_bytes)
            line = frontmatter.line_of(found.raw if isinstance(found, Found) else b"", judgement.message)
            checked.lines[judgement.path, judgement.code] = line
    if not plan.scanned:
        _add_excused_note(checked, MEMORY, "unchecked", "there is no artifact in memory/, so nothing was checked")
    if database is not None:
        present = seen.snapshot.files.keys() | seen.snapshot.odd.keys()
        gone = (path for path in violations.list_sealed_paths(database) if path not in present)
        checked.judgements += filter(None, (planner.judge_missing(path, judging) for path in gone))
    _notes(root, checked, now_us)
    checked.counts = counts(checked, scanned=plan.scanned, read=len(plan.read) + len(seen.removals.judged))
    if stage.agents(root):
        _entities(workspace, checked, database, now_us)
    return checked


def counts(checked: CheckResult, *, scanned: int = 0, read: int = 0) -> dict[str, int]:
    """Returns the `counts` of `check --json`."""
    verdicts = Counter(j.verdict for j in checked.judgements)
    return {
        "scanned": scanned,
        "read": read,
        "indexed": verdicts["indexed"],
        "unchanged": 0,
        "ignored": verdicts["ignored"],
        "invalid": verdicts["invalid"] + len(checked.problems),
        "violation": verdicts["violation"],
        "tombstoned": verdicts["tombstoned"],
        "tombstones": verdicts["tombstone"],
        "removed_rows": 0,
    }


def _settings(root: str, checked: CheckResult) -> Settings:
    """Returns the settings; what is wrong with the workspace's own is a problem of its file.

    Raises `ConfigError` for those of the person who asks.
    """
    settings, remarks = model.load(root)
    for remark in remarks:
        if remark.broken:
            found = files.read(root, SETTINGS, model.FILE_LIMIT)
            line = frontmatter.line_of(found.raw if isinstance(found, Found) else b"", remark.message)
            entry = {
                "path": SETTINGS,
                "verdict": "invalid",
                "code": ConfigError.code,
                "message": display(remark.message),
            }
            checked.problems.append({**entry, "hint": remark.hint, "line": line})
        else:
            _add_excused_note(checked, SETTINGS, "setting-ignored", remark.message)
    return settings


def _add_excused_note(checked: CheckResult, path: str, code: str, message: str) -> None:
    """Takes down a note that does not fail a strict check."""
    checked.excused.add((path, message))
    checked.notes.append({"path": path, "code": code, "message": message})


def _entities(workspace: Workspace, checked: CheckResult, database: Database | None, now_us: int) -> None:
    for one in entities_queries.check(workspace, database, now_us):
        entry: dict[str, Any] = {"path": one.path, "verdict": one.verdict, "code": one.code, "message": one.message}
        if one.verdict:
            checked.problems.append({**entry, "hint": one.hint, "line": one.line or 1})
            checked.counts[one.verdict] = checked.counts.get(one.verdict, 0) + 1
        else:
            checked.notes.append({"path": one.path, "code": one.code, "message": one.message})
    checked.notes.sort(key=lambda n: (n["path"], n["code"], n["message"]))


def _notes(root: str, checked: CheckResult, now_us: int) -> None:
    lost: dict[str, bool] = {}
    by_target: list[tuple[str, dict[str, str]]] = []
    for judgement in checked.judgements:
        if judgement.verdict != "indexed" or judgement.row is None:
            continue
        for note in judgement.notes:
            checked.notes.append({"path": judgement.path, "code": note.code, "message": note.message})
        if judgement.row.source_kind != "manifest" and judgement.row.membership_us > now_us:
            when = judgement.row.ended_at or judgement.row.captured_at
            checked.notes.append(
                {"path": judgement.path, "code": "future", "message": f"it is dated in the future: {when}"}
            )
        for link, target in judgement.links:
            if target not in lost:
                lost[target] = not files.exists(root, target)
            if lost[target]:
                note_ = {
                    "path": judgement.path,
                    "code": "link-broken",
                    "message": f"`{link}` leads to {target}, which is not there",
                }
                checked.notes.append(note_)
                by_target.append((target, note_))
    targets = sorted({target for target, _ in by_target})
    git_ignored = history_repository.find_ignored(root, targets)
    checked.excused |= {(note_["path"], note_["message"]) for target, note_ in by_target if target in git_ignored}
    checked.notes.sort(key=lambda n: (n["path"], n["code"], n["message"]))


def document(root: str, checked: CheckResult, now_us: int, *, strict: bool) -> dict[str, Any]:
    """Returns the document of `check --json`; a note that fails a strict check says so."""
    problems = [
        {
            **problem(j.path, j.verdict, j.code, j.message, is_file=bool(j.found_sha256)),
            **({"line": line} if (line := checked.lines.get((j.path, j.code))) is not None else {}),
        }
        for j in checked.judgements
        if j.verdict not in ("indexed", "tombstone")
    ]
    problems = sorted([*problems, *checked.problems], key=lambda p: (p["path"], p.get("line", 0)))
    notes: list[dict[str, Any]] = [
        {**note, "fails": True} if strict and (note["path"], note["message"]) not in checked.excused else dict(note)
        for note in checked.notes
    ]
    bad = [entry for entry in problems if entry["verdict"] in PROBLEMS]
    return {
        "workspace": root,
        "now": iso(now_us),
        "ok": not bad and not any("fails" in note for note in notes),
        "counts": checked.counts,
        "problems": problems,
        "notes": notes,
    }
