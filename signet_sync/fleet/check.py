"""Checks many workspaces, adds up what was found, and says what is in them."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from signet_sync import __version__
from signet_sync.errors import SignetSyncError
from signet_sync.fleet import engines, targets
from signet_sync.fleet.engines import Engine
from signet_sync.fleet.places import opened, why_not
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import iso
from signet_sync.integrity import check as integrity_check
from signet_sync.integrity.check import CheckResult
from signet_sync.sync.planner import suspected_by
from signet_sync.text.sanitizer import sanitize_line_counted

_Progress = Callable[[int, int], None] | None  # how many are done, of how many
KINDS = ("secret", "changed", "came-back", "unreadable", "invalid")
_SUMMED = ("sessions", "artifacts", "bytes", "tombstones", *KINDS)
_TO_REDACT = "change the secret, then signet-sync redact takes it out of the files"


class Inspection(NamedTuple):
    """What a check of a workspace found: the document of `check --json` and what is in it, or why it has none."""

    workspace: str
    document: dict[str, Any] | None
    contents: dict[str, Any]
    unreachable: str = ""


def inspect(asked: tuple[str, int]) -> Inspection:
    """Checks one workspace, at a time in microseconds since 1970 UTC; writes nothing.

    A workspace that cannot be read is a result, not an error.
    """
    workspace, now_us = asked
    try:
        with opened(workspace) as place:
            # The engine has a process for every core.
            checked = integrity_check.check(place.name, vault=place.vault, now_us=now_us, workers=0)
            document = integrity_check.document(place.name, checked, now_us, strict=False)
            return Inspection(workspace, document, _contents(checked, now_us))
    except (SignetSyncError, OSError) as error:
        return Inspection(workspace, None, {}, why_not(error))


def _contents(checked: CheckResult, now_us: int) -> dict[str, Any]:
    """Returns what is in a workspace; a session that is dated in the future is not its last one."""
    ended: dict[tuple[str, str], int] = {}
    artifacts = [one for one in checked.judgements if one.verdict not in ("ignored", "tombstone")]
    for row in (one.row for one in artifacts if one.row is not None):
        key = (row.agent_id, row.session_token)
        ended[key] = max(row.membership_us, ended.get(key, row.membership_us))
    last = max((us for us in ended.values() if us <= now_us), default=None)
    return {
        "last_session": None if last is None else iso(last),
        "agents": len({agent for agent, _ in ended}),
        "sessions": len(ended),
        "artifacts": len(artifacts),
        "bytes": sum(one.signature.size for one in artifacts if one.signature is not None),
        "tombstones": checked.counts["tombstones"],
    }


def _inspected(
    named: Sequence[str], engine: Engine, now_us: int, progress: _Progress
) -> tuple[list[Inspection], list[dict[str, str]]]:
    """Returns what was found in the workspaces of targets, by name, and those that could not be reached, with why."""
    asked = [(workspace, now_us) for workspace in targets.workspaces(named)]
    found = []
    for item, result, failure in engines.run(inspect, asked, engine):
        found.append(result or Inspection(item[0], None, {}, failure))
        if progress is not None:
            progress(len(found), len(asked))
    found.sort(key=lambda one: one.workspace)
    lost = [{"workspace": one.workspace, "message": one.unreachable} for one in found if one.document is None]
    return [one for one in found if one.document is not None], lost


def check(named: Sequence[str], engine: Engine, now_us: int, progress: _Progress = None) -> dict[str, Any]:
    """Returns the document of `fleet check --json`.

    Raises as `targets.workspaces` and `engines.run` do.
    """
    found, lost = _inspected(named, engine, now_us, progress)
    counts = Counter(integrity_check.counts(CheckResult()))
    problems: list[dict[str, Any]] = []
    for one in found:
        assert one.document is not None
        counts.update(one.document["counts"])
        problems += [{"workspace": one.workspace, **problem} for problem in one.document["problems"]]
    problems.sort(key=lambda problem: (problem["workspace"], problem["path"], problem.get("line", 0)))
    total = len(found) + len(lost)
    return {"workspaces": total, "counts": dict(counts), "problems": problems, "unreachable": lost}


def report(named: Sequence[str], engine: Engine, now_us: int, progress: _Progress = None) -> dict[str, Any]:
    """Returns the document of `fleet report --json`, with every text cleaned that a file or path may have chosen.

    Raises as `check` does.
    """
    found, lost = _inspected(named, engine, now_us, progress)
    counts, rules = Counter(dict.fromkeys(_SUMMED, 0)), dict[str, Counter[str]]()
    by_workspace, findings = list[dict[str, Any]](), list[dict[str, Any]]()
    for one in found:
        assert one.document is not None
        kinds, named_rules, wrong = _findings(one.document)
        totals = {**one.contents, **{kind: kinds[kind] for kind in KINDS}}
        counts.update({name: totals[name] for name in _SUMMED})
        by_workspace.append({"workspace": _shown(one.workspace), **totals})
        findings += [{"workspace": _shown(one.workspace), **finding} for finding in wrong]
        for rule, files in named_rules.items():
            rules.setdefault(rule, Counter()).update(files=files, workspaces=1)
    return {
        "now": iso(now_us),
        "version": __version__,
        "workspaces": len(found) + len(lost),
        "counts": dict(counts),
        "by_rule": [{"rule": rule, **rules[rule]} for rule in sorted(rules)],
        "by_workspace": by_workspace,
        "findings": sorted(findings, key=lambda one: (one["workspace"], one["path"], one["line"], one["code"])),
        "unreachable": [{name: _shown(text) for name, text in one.items()} for one in lost],
    }


def _findings(document: dict[str, Any]) -> tuple[Counter[str], Counter[str], list[dict[str, Any]]]:
    """Returns how many findings of each kind a check has, in how many files each rule suspects a secret, and each."""
    kinds, rules, findings = Counter[str](), Counter[str](), list[dict[str, Any]]()
    notes = [{**note, "hint": _TO_REDACT} for note in document["notes"] if note["code"] == "secret-suspected"]
    for found in (*document["problems"], *notes):
        verdict, code = found.get("verdict", ""), found["code"]
        if code == "secret-suspected":
            kind = "secret"
        elif verdict == "violation" or code == "hash-mismatch":
            kind = "changed"  # without a seal, a text that does not fit its own hash is one that changed
        elif verdict == "tombstoned":
            kind = "came-back"
        elif verdict == "invalid":
            kind = "unreadable" if code in ("unreadable", "too-large", "not-a-file") else "invalid"
        else:
            continue
        kinds[kind] += 1
        named = suspected_by(found["message"]) if kind == "secret" else []
        rules.update(named)
        texts = {name: _shown(found[name]) for name in ("path", "code", "message", "hint")}
        findings.append({"kind": kind, **texts, "line": found.get("line", 1), "rules": named})
    return kinds, rules, findings


def _shown(text: str) -> str:
    """Returns a text that a file or a path may have chosen as a report shows it: no secret, no control character."""
    clean, found = sanitize_line_counted(text)
    line = clean if found else display(text)
    return line if len(line) <= 400 else f"{line[:399]}…"
