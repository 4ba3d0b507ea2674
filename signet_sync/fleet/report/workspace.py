"""Reports on one workspace of a fleet, as plain values: what its check found, and what is in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from signet_sync.errors import SignetSyncError
from signet_sync.fleet import workspaces
from signet_sync.formats.calendar import WEEK, week_of
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import iso
from signet_sync.integrity import check
from signet_sync.integrity.check import CheckResult
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.sync.planner import suspected_by
from signet_sync.text.sanitizer import sanitize_line_counted

KINDS = ("secret", "changed", "came-back", "unreadable", "invalid")
# Findings of one kind that are named for each workspace; all are counted.
MOST = 1000
RECENT = 4 * WEEK

_UNREADABLE = frozenset({"unreadable", "too-large", "not-a-file"})
_TO_REDACT = "change the secret, then signet-sync redact takes it out of the files"
_FIELDS = ("memory_sentence_version", "sanitizer_version")
_LONGEST = 400


class ReportRequest(NamedTuple):
    """A workspace, the time of the report in microseconds since 1970 UTC, and whether seals are compared."""

    workspace: str
    now_us: int
    with_index: bool = False


class WorkspaceReport(NamedTuple):
    """What is reported on one workspace, or why it could not be reached (then all else is empty).

    `totals` is its entry of `by_workspace`. `rules` counts files by the rule of the sanitizer that found a secret in
    them, `versions` files by field and value, `weeks` sessions and bytes by ISO week.
    """

    workspace: str
    unreachable: str
    totals: dict[str, Any]
    findings: list[dict[str, Any]]
    rules: dict[str, int]
    versions: dict[tuple[str, str], int]
    weeks: dict[str, tuple[int, int]]


def unreached(workspace: str, why: str) -> WorkspaceReport:
    """Returns the report on a workspace of which nothing is known but why."""
    return WorkspaceReport(workspace, shown(why), {}, [], {}, {}, {})


def report_one(asked: ReportRequest) -> WorkspaceReport:
    """Checks one workspace and counts what is in it; writes nothing. One that cannot be read is a result, no error."""
    try:
        with workspaces.opened(asked.workspace) as root, _seals(root, asked.with_index) as database:
            # The engine has a process for every core.
            checked = check.check(root, now_us=asked.now_us, database=database, workers=0)
            document = check.document(root, checked, asked.now_us, strict=False)
    except (SignetSyncError, OSError) as error:
        return unreached(asked.workspace, workspaces.why_not(error))
    counts, findings, rules = _findings(document)
    contents, weeks = _contents(checked, asked.now_us)
    totals = {**contents, **{kind: counts[kind] for kind in KINDS}, "seals_compared": database is not None}
    return WorkspaceReport(asked.workspace, "", totals, findings, rules, _versions(checked), weeks)


def shown(text: str) -> str:
    """Returns a text that a file or a path may have chosen as a report shows it: no secret, no control character."""
    clean, found = sanitize_line_counted(text)
    line = clean if found else display(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


@contextmanager
def _seals(root: str, wanted: bool) -> Iterator[Database | None]:
    """Yields the index that this machine has of a folder, read-only; None if it has none, or none is wanted."""
    if not wanted or type(root) is not str:
        yield None
        return
    try:
        database = Database(state_dir.locate(root).database, readonly=True, traceless=True)
    except FileNotFoundError:
        yield None
        return
    try:
        yield database
    finally:
        database.close()


def _findings(document: dict[str, Any]) -> tuple[Counter[str], list[dict[str, Any]], Counter[str]]:
    counts, rules, findings = Counter[str](), Counter[str](), list[dict[str, Any]]()
    problems = ((_kind(found["verdict"], found["code"]), found) for found in document["problems"])
    notes = (
        ("secret", {**note, "hint": _TO_REDACT}) for note in document["notes"] if note["code"] == "secret-suspected"
    )
    for kind, found in (*problems, *notes):
        if kind is None:
            continue
        counts[kind] += 1
        named = suspected_by(found["message"]) if kind == "secret" else []
        rules.update(named)
        if counts[kind] <= MOST:
            texts = {name: shown(found[name]) for name in ("path", "code", "message", "hint")}
            findings.append({"kind": kind, **texts, "line": found.get("line", 1), "rules": named})
    return counts, findings, rules


def _kind(verdict: str, code: str) -> str | None:
    """Returns the kind of a problem; without a seal, a text that does not fit its own hash is one that changed."""
    if verdict == "violation" or code == "hash-mismatch":
        return "changed"
    if verdict == "tombstoned":
        return "came-back"
    if verdict != "invalid":
        return None
    return "unreadable" if code in _UNREADABLE else "invalid"


def _contents(checked: CheckResult, now_us: int) -> tuple[dict[str, Any], dict[str, tuple[int, int]]]:
    """Returns what is in the workspace, and sessions and bytes by week; what is dated in the future is in no week."""
    sessions: dict[tuple[str, str], int] = {}
    sizes: dict[int, int] = defaultdict(int)
    files = total = 0
    for judgement in checked.judgements:
        if judgement.verdict in ("ignored", "tombstone"):
            continue
        size = judgement.signature.size if judgement.signature is not None else 0
        files, total = files + 1, total + size
        if judgement.row is not None:
            row = judgement.row
            key = (row.agent_id, row.session_token)
            sessions[key] = max(row.membership_us, sessions.get(key, row.membership_us))
            sizes[row.captured_us] += size
    weeks: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    ended = sorted(us for us in sessions.values() if us <= now_us)
    for us in ended:
        weeks[week_of(us)][0] += 1
    for us, size in sizes.items():
        if us <= now_us:
            weeks[week_of(us)][1] += size
    contents = {
        "last_session": iso(ended[-1]) if ended else None,
        "agents": len({agent for agent, _ in sessions}),
        "sessions": len(sessions),
        "artifacts": files,
        "bytes": total,
        "tombstones": checked.counts["tombstones"],
        "sessions_recent": sum(us > now_us - RECENT for us in ended),
        "sessions_before": sum(now_us - 2 * RECENT < us <= now_us - RECENT for us in ended),
        "bytes_recent": sum(size for us, size in sizes.items() if now_us - RECENT < us <= now_us),
    }
    return contents, {week: (count, size) for week, (count, size) in weeks.items()}


def _versions(checked: CheckResult) -> dict[tuple[str, str], int]:
    found: Counter[tuple[str, str]] = Counter()
    for judgement in checked.judgements:
        found.update(zip(_FIELDS, judgement.versions, strict=False))
    return {(field, shown(value)): files for (field, value), files in found.items()}
