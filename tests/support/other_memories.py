"""What claude-mem remembers, made up, in its own format (`src/services/sqlite/schema.sql`), with what should come."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import apsw
from workbench import Vault, contents

from signet_sync.storage.database.tables import native_tables

Columns = Mapping[str, object]


class Memory(NamedTuple):
    """A memory as it should be here."""

    text: str
    kind: str
    tags: tuple[str, ...]
    day: str


_SHARED = "id integer primary key, {session} text, project text, created_at text, created_at_epoch integer"
OBSERVATIONS = f"{_SHARED}, type text, text text"
NEWER = ", title text, subtitle text, narrative text, facts text, concepts text, merged_into_project text"
SUMMARIES = (
    f"{_SHARED}, request text, investigated text, learned text, completed text, next_steps text, notes text,"
    " files_read text"
)


def claude_mem(path: Path, observations: list[Columns], summaries: list[Columns], *, older: bool = False) -> Path:
    """Writes a database of claude-mem; an older one has other names and fewer columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    session = "sdk_session_id" if older else "memory_session_id"
    database = apsw.Connection(str(path))
    database.execute("pragma journal_mode = wal")
    database.execute(f"create table observations({OBSERVATIONS.format(session=session)}{'' if older else NEWER})")
    database.execute(f"create table session_summaries({SUMMARIES.format(session=session)})")
    database.execute("create table user_prompts(id integer primary key, prompt_text text)")
    for table, rows in (("observations", observations), ("session_summaries", summaries)):
        for row in rows:
            marks = ", ".join("?" * len(row))
            database.execute(f"insert into {table}({', '.join(row)}) values({marks})", tuple(row.values()))
    database.close()
    return path


def lay(folder: Path) -> Path:
    """Writes three observations, of which one is empty, and a summary."""
    at: Columns = {"memory_session_id": "s1", "project": "lantern", "created_at_epoch": 1_769_940_000_000}
    full = at | {
        "created_at": "2026-02-01T10:00:00.000Z", "type": "decision", "title": "Wick kept short",
        "subtitle": "It smokes otherwise", "narrative": "Ada trims it daily.", "text": "not read beside a narrative",
        "facts": json.dumps(["It is 4 mm", "Checked at dusk"]), "concepts": json.dumps(["how-it-works"]),
    }  # fmt: skip
    old = at | {"created_at": "yesterday", "type": "discovery", "text": "The glass is thin."}
    empty = at | {"created_at": "2026-02-01T10:00:00.000Z", "type": "change", "title": "  "}
    summary = at | {
        "created_at": "2026-02-02T10:00:00Z", "request": "Trim it", "learned": "Dusk is best", "next_steps": "Buy oil",
    }  # fmt: skip
    return claude_mem(folder / "claude-mem.db", [full, old, empty], [summary])


TODAY = "2026-03-29"
BROUGHT = (
    Memory(
        "Wick kept short.\nIt smokes otherwise.\nAda trims it daily.\nIt is 4 mm.\nChecked at dusk.",
        "decision", ("decision", "how-it-works", "lantern"), "2026-02-01",
    ),
    Memory("The glass is thin.", "note", ("discovery", "lantern"), TODAY),
    Memory(
        "Request: Trim it.\nLearned: Dusk is best.\nNext steps: Buy oil.", "note", ("lantern", "summary"), "2026-02-02",
    ),
)  # fmt: skip


# What says when something was, or that a pass has run.
PASSING = {"backups", "passes", "memory_md_heads", "history_told", "garden_days", "sqlite_sequence"}


def state_of(vault: Vault) -> dict[str, Any]:
    """What a vault holds: files, derived rows, native rows, but for what passes note."""
    with vault.database() as database:
        names = [name for name in native_tables() if name not in PASSING]
        rows = {name: sorted(database.execute(f"select * from {name}"), key=repr) for name in names}
    return {"files": contents(vault.root, but=(".signet",)), "dump": vault.dump(), "rows": rows}
