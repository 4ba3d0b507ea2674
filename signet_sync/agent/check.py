"""`check`: the same judgements over the files alone, and entities; nothing is written, no index opened unless asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from signet_sync import reconcile as desk
from signet_sync.agent.report import problem
from signet_sync.agent.workspace import require_root
from signet_sync.config import Settings
from signet_sync.contracts.noise import NoiseRule
from signet_sync.contracts.observed import Trouble
from signet_sync.contracts.places import MEMORY, TOMBSTONES
from signet_sync.contracts.timestamps import iso
from signet_sync.errors import SignetSyncError, WorkspaceError
from signet_sync.index import artifacts, tombstones
from signet_sync.index.database import Database
from signet_sync.reconcile import Bench, CliffRule, Judgement, Known, Seal, Tombstones
from signet_sync.vault import files, gardens, scan, versions
from signet_sync.vault.layout import folder


@dataclass(slots=True)
class Checked:
    """Every judgement of a check, the notes that need more than one file to be seen, and problems of entities."""

    judgements: list[Judgement] = field(default_factory=list)
    notes: list[dict[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    strict_notes: int = 0
    problems: list[dict[str, str]] = field(default_factory=list)


def check(
    root: str,
    settings: Settings,
    *,
    now_us: int,
    agent: str | None = None,
    database: Database | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Checked:
    """Judges every file of the vault. With a database (read-only) also compares with the seals. Writes nothing."""
    require_root(root)
    snapshot = scan.scan(root)
    if snapshot.ground == "refused":
        raise WorkspaceError(
            snapshot.ground_message, path=MEMORY, hint="memory/ must be a real folder in the workspace"
        )
    stones, stone_judgements = _stones(root, snapshot.files, database)
    seal_of: Callable[[str], Seal | None] = lambda _: None  # noqa: E731 - the seal of no path
    if database is not None:
        held = database
        seal_of = lambda path: artifacts.seal_of(held, path)  # noqa: E731
    noise = NoiseRule.extended(settings.noise_projects, settings.noise_sessions)
    bench = Bench(stones, noise, seal_of, iso(now_us), settings.max_file_bytes)
    plan = desk.survey(snapshot, {}, stones, rule=CliffRule())
    checked = Checked(judgements=[*plan.judged, *stone_judgements])
    try:
        with folder(root, MEMORY) as descriptor:
            for number, path in enumerate(sorted(plan.read)):
                found = files.read_at(descriptor, path.rpartition("/")[2], settings.max_file_bytes)
                if isinstance(found, Trouble) and found.code == "gone":
                    continue
                checked.judgements.append(_light(desk.judge(path, found, bench)))
                if progress is not None and number % 256 == 0:
                    progress(number, len(plan.read))
    except FileNotFoundError:
        pass
    if database is not None:
        checked.judgements += _vanished(database, snapshot.files.keys(), bench)
    if agent is not None:
        checked.judgements = [j for j in checked.judgements if j.row is None or j.row.agent_id == agent]
    _notes(root, checked, now_us)
    verdicts = Counter(j.verdict for j in checked.judgements)
    checked.counts = {
        "scanned": plan.scanned,
        "read": len(plan.read) + len(stone_judgements),
        "indexed": verdicts["indexed"],
        "unchanged": 0,
        "ignored": verdicts["ignored"],
        "invalid": verdicts["invalid"],
        "violation": verdicts["violation"],
        "tombstoned": verdicts["tombstoned"],
        "tombstones": verdicts["tombstone"],
        "removed_rows": 0,
    }
    if any(gardens.stands(root, owner) for owner in gardens.owners(root)):
        _entities(root, settings, checked, agent, database, now_us)
    return checked


def _entities(
    root: str, settings: Settings, checked: Checked, agent: str | None, database: Database | None, now_us: int
) -> None:
    from signet_sync.agent.entities import checking

    remarks = checking.check(root, settings, agent, database, now_us)
    checked.problems += remarks.problems
    for entry in remarks.problems:
        checked.counts[entry["verdict"]] += 1
    checked.notes += remarks.notes
    checked.notes.sort(key=lambda n: (n["path"], n["code"], n["message"]))
    checked.strict_notes += len(remarks.notes)


def _light(judgement: Judgement) -> Judgement:
    """A judgement without its text: a check of a large vault keeps verdicts, not bodies."""
    if judgement.row is None:
        return judgement
    return Judgement(
        judgement.path,
        judgement.verdict,
        judgement.code,
        judgement.message,
        judgement.signature,
        judgement.notes,
        judgement.row._replace(content=""),
        links=judgement.links,
    )


def _stones(root: str, present: dict[str, Any], database: Database | None) -> tuple[Tombstones, list[Judgement]]:
    found = {(s.agent_id, s.session_token): s for s in tombstones.mirrored(database)} if database is not None else {}
    judged = []
    broken = []
    for path in sorted(present):
        if path.rpartition("/")[0] != TOMBSTONES:
            continue
        judgement, stone = desk.judge_tombstone(path, files.read(root, path, 1 << 20))
        judged.append(judgement)
        if stone is not None:
            found[stone.agent_id, stone.session_token] = stone
        elif judgement.verdict == "invalid":
            agent_id, _, token = path.rpartition("/")[2].removesuffix(".md").rpartition("--")
            broken.append((agent_id, token))
    return Tombstones(list(found.values()), by_name=broken), judged


def _vanished(database: Database, present: Any, bench: Bench) -> list[Judgement]:
    found = []
    for (path,) in database.execute("select path from seals order by path"):
        if path not in present:
            judgement = desk.judge_missing(path, Known(None, "indexed", ""), bench)
            if judgement is not None:
                found.append(judgement)
    return found


def _notes(root: str, checked: Checked, now_us: int) -> None:
    lost: dict[str, bool] = {}
    by_target: list[dict[str, str]] = []
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
                lost[target] = not _there(root, target)
            if lost[target]:
                note_ = {
                    "path": judgement.path,
                    "code": "link-broken",
                    "message": f"`{link}` leads to {target}, which is not there",
                }
                checked.notes.append(note_)
                by_target.append({"target": target})
    git_ignored = versions.ignored(root, sorted({entry["target"] for entry in by_target}))
    excused = sum(1 for entry in by_target if entry["target"] in git_ignored)
    checked.strict_notes = len(checked.notes) - excused
    checked.notes.sort(key=lambda n: (n["path"], n["code"], n["message"]))


def _there(root: str, target: str) -> bool:
    try:
        return files.look(root, target) is not None
    except (OSError, SignetSyncError):
        return False


def document(root: str, checked: Checked, now_us: int, *, strict: bool) -> dict[str, Any]:
    """The document of `check --json`."""
    problems = [
        problem(j.path, j.verdict, j.code, j.message)
        for j in checked.judgements
        if j.verdict not in ("indexed", "tombstone")
    ]
    return {
        "workspace": root,
        "now": iso(now_us),
        "ok": ok(checked, strict=strict),
        "counts": checked.counts,
        "problems": sorted([*problems, *checked.problems], key=lambda p: p["path"]),
        "notes": checked.notes,
    }


def ok(checked: Checked, *, strict: bool) -> bool:
    """Whether a check passes: nothing invalid, violated or due to be gone; strictly, no notes either."""
    bad = checked.counts["invalid"] + checked.counts["violation"] + checked.counts["tombstoned"]
    return not bad and not (strict and checked.strict_notes)
