"""What is left of a workspace, told so that two of them can be compared: files, rows, answers, buffers, backups."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
from crash_runner import dump
from operation_vaults import NOW_US
from operations import Operation
from test_statement_rows import orphans

from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.storage.durable import read_with_sum
from signet_sync.sync.database import backups


def contents(root: Path) -> dict[str, str]:
    """Every file of a workspace by path, but for temporaries."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and ".signet/tmp/" not in path.as_posix():
            name, digest = path.relative_to(root).as_posix(), sha256(content(path)).hexdigest()
            # What was kept of a page stands there once or, where keeping it was cut short, twice.
            found[f"kept {digest}" if ".user-" in name else name] = digest
    return found


DRAWN = ("id", "token", "prev", "hash")


def content(path: Path) -> bytes:
    """The bytes of a file; of an entity ledger what was done, whatever ids were drawn and however it came to pass."""
    raw = path.read_bytes()
    if path.suffix != ".jsonl" or path.parent.name != "ledger":
        return raw
    lines = whole_lines(raw)
    ended = {line["of"]: line["state"] for line in lines if "of" in line}
    done = [line for line in lines if "op" in line and ended.get(line["id"]) == "committed"]
    return json.dumps([[(key, line[key]) for key in line if key not in DRAWN] for line in done]).encode()


def whole_lines(raw: bytes) -> list[dict[str, Any]]:
    """The lines of a file of JSON but for those that a crash has cut short: these count for nothing."""
    lines = []
    for line in raw.splitlines():
        with suppress(ValueError):
            lines.append(json.loads(line))
    return lines


NATIVE = {
    "answers": "flow_results order by agent_id, flow_key",
    "live": "session_transcripts order by 1, 2, 3, 4",
    "running": "live_sessions order by 1, 2, 3",
    "tombstones": "memory_artifact_tombstones order by 1, 2",
    "events": "recall_events order by id",
}
KEPT = ("memories", "memory_sources", "node_telemetry", "dream_sweeps", "memory_promotions")
BACKED_UP = (
    "memories", "memory_sources", "recall_events", "dream_sweeps", "memory_promotions",
)  # fmt: skip


def portrait(root: Path) -> dict[str, Any]:
    """All that must be equal in two workspaces after the same things have been done.

    What is in a backup and nowhere else but in the database is listed twice.
    """
    place = state_dir.locate(str(root))
    found: dict[str, Any] = {"files": contents(root), "rows": dump(place.database)}
    database = Database(place.database, readonly=True)
    try:
        for name, table in {**NATIVE, **{name: f"{name} order by 1, 2" for name in KEPT}}.items():
            found[name] = list(database.execute(f"select * from {table}"))
        found["lines"] = list(database.execute("select agent_id, tier, name, text from texts order by 1, 3"))
        assert orphans(database) == 0
        for rowid, text in list(database.execute("select first, text from texts where artifact is null")):
            word = max(re.findall(r"[^\W_]+", text), key=len)
            hits = database.execute("select rowid from said where said match ?", (f'"{word}"',))
            assert (rowid,) in list(hits), f"{text!r} is not found by {word}"
    finally:
        database.close()
    texts = {
        path.name: [one for line in path.read_bytes().splitlines() if (one := read_with_sum(line)) is not None]
        for path in sorted(Path(place.live).glob("*.jsonl"))
    }
    backup = f"file:{backups(place)[0]}?immutable=1"
    connection = apsw.Connection(backup, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        asked = {name: list(connection.execute(f"select * from {name} order by 1, 2, 3")) for name in BACKED_UP}
    finally:
        connection.close()
    return json.loads(json.dumps(found | {"live files": texts, "backup": asked}))


def unlike(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """What differs, in words."""
    differences = []
    for part, values in wanted.items():
        if found[part] == values:
            continue
        if part in ("files", "backup"):
            names = found[part].keys() | values.keys()
            differences.append(f"{part}: " + ", ".join(sorted(n for n in names if found[part].get(n) != values.get(n))))
        else:
            differences.append(f"{part}: {[r for r in found[part] if r not in values]} for "
                        f"{[r for r in values if r not in found[part]]}"[:600])  # fmt: skip
    return differences


def without_kept(found: dict[str, Any]) -> dict[str, Any]:
    """A portrait without what was kept of pages."""
    return found | {"files": {name: digest for name, digest in found["files"].items() if not name.startswith("kept ")}}


def journals(root: Path) -> list[str]:
    """The flows that are not finished."""
    return sorted(path.name for path in Path(state_dir.locate(str(root)).journal).glob("*.json"))


def strays(root: Path) -> list[str]:
    """Temporary files and unfinished flows."""
    folder = Path(state_dir.locate(str(root)).path)
    return [path.name for place in (root, folder) for path in place.rglob("*.tmp*")] + journals(root)


def is_begun(root: Path, operation: Operation) -> bool:
    """Whether the next pass has to go on.

    By the inputs of a flow, a tombstone, the mark of what was forgotten, the sweep of this moment.
    """
    connection = apsw.Connection(state_dir.locate(str(root)).database)
    try:
        marks = list(connection.execute("select * from unscrubbed_memories"))
        marks += list(connection.execute("select * from dream_sweeps where at_us = ?", (NOW_US,)))
    finally:
        connection.close()
    removes = not operation.lifts and any(root.glob("memory/tombstones/*.md"))
    return bool(journals(root) or marks) or removes
