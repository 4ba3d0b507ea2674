"""Converts the outcome of a pass for `--json`: counts, problems, notes, pages, halts."""

from __future__ import annotations

from typing import Any

from signet_sync.entities import store as entities_store
from signet_sync.formats.timestamps import iso
from signet_sync.pages import conflict_copies
from signet_sync.sync.planner import HINTS
from signet_sync.sync.store import counts as counts_store
from signet_sync.sync.workspace import Outcome, Workspace


def hint_for(code: str, path: str, *, is_file: bool = True) -> str:
    """Returns what a person can do about a code; `is_file` says whether a file is at the path of a `mutated` one."""
    key = "replaced" if code == "mutated" and not is_file else code
    return HINTS.get(key, "").replace("PATH", path)


def problem(path: str, verdict: str, code: str, message: str, *, is_file: bool = True) -> dict[str, str]:
    """Returns one entry of `problems`."""
    hint = hint_for(code, path, is_file=is_file)
    return {"path": path, "verdict": verdict, "code": code, "message": message, "hint": hint}


def describe_pass(workspace: Workspace, outcome: Outcome, now_us: int, *, rebuild: bool) -> dict[str, Any]:
    """Returns the document of `reindex --json`."""
    database = workspace.database
    counts = counts_store.verdict_counts(database)
    known = counts_store.problems(database)
    seen = {p.path for p in known}
    problems = [problem(p.path, p.verdict, p.code, p.message, is_file=p.is_file) for p in known]
    problems += [
        problem(one.path, "ignored", "conflict-copy", f"a copy of {one.original}, with words that are not in it")
        for one in conflict_copies.find(workspace.root)
    ]
    passing = [j for j in outcome.tombstoned if j.path not in seen]
    problems += [problem(j.path, j.verdict, j.code, j.message + " and was deleted") for j in passing]
    notes = [{"path": n.path, "code": n.code, "message": n.message} for n in counts_store.notes(database, now_us)]
    notes += [
        {
            "path": path,
            "code": "manifest-rebuilt",
            "message": "the session's manifest was missing and has been rewritten",
        }
        for path in outcome.rebuilt_manifests
    ]
    return {
        "workspace": workspace.root,
        "database": database.path,
        "now": iso(now_us),
        "mode": "full" if rebuild else "incremental",
        "elapsed_ms": round(outcome.elapsed_ms, 1),
        "counts": {
            "scanned": outcome.scanned,
            "read": outcome.read,
            "indexed": counts.get("indexed", 0),
            "unchanged": outcome.unchanged,
            "ignored": counts.get("ignored", 0),
            "invalid": counts.get("invalid", 0),
            "violation": counts.get("violation", 0),
            "tombstoned": counts.get("tombstoned", 0) + len(passing),
            "tombstones": outcome.tombstones,
            "removed_rows": outcome.removed_rows,
        },
        "problems": sorted(problems, key=lambda p: p["path"]),
        "notes": sorted(notes, key=lambda n: (n["path"], n["code"])),
        "agents": {
            agent_id: {"memory_md" if name == "path" else name: value for name, value in page._asdict().items()}
            for agent_id, page in outcome.pages.items()
        },
        "halted": None if outcome.cliff is None else {"state": "cliff", **outcome.cliff._asdict()},
        "held": outcome.held or None,
        "trouble": [*workspace.events, *outcome.trouble],
        "entity_drift": [
            {"path": one.path, "code": one.code, "message": one.message, "hint": one.hint}
            for one in entities_store.drift(database)
        ],
    }
