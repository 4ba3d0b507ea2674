"""What other programs than Signet remember, made up, in their own formats: one source of each, with what should come.

Formats: claude-mem's `src/services/sqlite/schema.sql`, basic-memory's `src/basic_memory/markdown/`, OpenClaw's
`docs/concepts/memory.md`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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
    private: bool = False
    agent: str = "default"


class Source(NamedTuple):
    """A source of one program: how it is laid below a folder, what should come, and how many rows it has in all."""

    lay: Callable[[Path], Path]
    memories: tuple[Memory, ...]
    rows: Mapping[str, int]


# ── claude-mem ──

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


def _claude_mem(folder: Path) -> Path:
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


# ── basic-memory ──

_NOTE = """---
title: Coffee
type: guide
permalink: notes/coffee
tags: [brewing, Morning]
created: 2026-01-02
---
# Coffee

## Observations

- [method] Pour over is clean #v60 (from Jo)
- [preference] Ada takes it black
- A line with a #tag alone
- [>] a task that waits

## Relations

- pairs_with [[Dark Chocolate]] (at dinner)
- "grown in" [[Ethiopia|the place]]
- drunk by [[Bob]]
- some prose with [[A Link]] in it
"""


def _basic_memory(folder: Path) -> Path:
    place = folder / "notes"
    (place / "deep/.obsidian").mkdir(parents=True)
    (place / "deep/coffee.md").write_text(_NOTE)
    (place / "deep/.obsidian/hidden.md").write_text("- [fact] hidden\n")
    (place / "prose.md").write_text("Nothing but prose.\n")
    (place / "broken.md").write_text("---\ntitle: [\n---\n\n- [fact] From a broken head\n")
    return place


# ── OpenClaw ──

_LASTING = """# Memory of Ada

## Preferences

- Tea without milk
  - but with lemon
- Short answers

1. The server is called zeta.

```sh
ssh zeta
```

## 2026

A paragraph
of two lines.

<!-- for machines -->
"""


def _openclaw(folder: Path) -> Path:
    place = folder / "claw"
    (place / "memory").mkdir(parents=True)
    (place / "MEMORY.md").write_text(_LASTING)
    (place / "memory/2026-02-03.md").write_text("# 2026-02-03\n\n- Trimmed the wick\n")
    (place / "memory/2026-02-04-1530.md").write_text("The lamp smoked.\n")
    (place / "SOUL.md").write_text("- Not a memory\n")
    (place / "skills").mkdir()
    (place / "skills/SKILL.md").write_text("- Not a memory either\n")
    return place


TODAY = "2026-03-29"
_GUIDE = ("brewing", "guide", "morning")
SOURCES: dict[str, Source] = {
    "claude-mem": Source(
        _claude_mem,
        (
            Memory(
                "Wick kept short.\nIt smokes otherwise.\nAda trims it daily.\nIt is 4 mm.\nChecked at dusk.",
                "decision", ("decision", "how-it-works", "lantern"), "2026-02-01",
            ),
            Memory("The glass is thin.", "note", ("discovery", "lantern"), TODAY),
            Memory(
                "Request: Trim it.\nLearned: Dusk is best.\nNext steps: Buy oil.", "note", ("lantern", "summary"),
                "2026-02-02",
            ),
        ),
        {"observations": 3, "session_summaries": 1},
    ),
    "basic-memory": Source(
        _basic_memory,
        (
            Memory(
                "Coffee: Pour over is clean #v60 (from Jo)", "note", ("brewing", "guide", "method", "morning", "v60"),
                "2026-01-02",
            ),
            Memory(
                "Coffee: Ada takes it black", "preference", (*_GUIDE, "preference"), "2026-01-02"
            ),
            Memory("broken: From a broken head", "note", ("fact",), TODAY),
            *(
                Memory(f"Coffee {said}", "note", _GUIDE, "2026-01-02")
                for said in ("drunk by Bob", "pairs with Dark Chocolate (at dinner)", "grown in Ethiopia")
            ),
        ),
        {"observations": 3, "relations": 3, "files": 1},
    ),
    "openclaw-memory": Source(
        _openclaw,
        (
            *(
                Memory(text, "note", ("openclaw",), TODAY, True)
                for text in (
                    "Preferences: Tea without milk\n- but with lemon", "Preferences: Short answers",
                    "Preferences: The server is called zeta.\n```sh\nssh zeta\n```", "A paragraph\nof two lines.",
                )
            ),
            Memory("Trimmed the wick", "note", ("openclaw",), "2026-02-03"),
            Memory("The lamp smoked.", "note", ("openclaw",), "2026-02-04"),
        ),
        {"MEMORY.md": 4, "memory/": 2},
    ),
}  # fmt: skip


# What says when something was, or that a pass has run.
PASSING = {"backups", "passes", "memory_md_heads", "history_told", "garden_days", "sqlite_sequence"}


def state_of(vault: Vault) -> dict[str, Any]:
    """What a vault holds: files, derived rows, native rows, but for what passes note."""
    with vault.database() as database:
        names = [name for name in native_tables() if name not in PASSING]
        rows = {name: sorted(database.execute(f"select * from {name}"), key=repr) for name in names}
    return {"files": contents(vault.root, but=(".signet",)), "dump": vault.dump(), "rows": rows}
