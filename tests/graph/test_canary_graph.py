"""A session in the middle of the graph is removed: no row or handle is left, the rest is as if it never was."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from session_inputs import compact, end
from workbench import NOW, Vault

from benchmarks import index_rows
from signet_sync.app.workspace import open_to_write
from signet_sync.formats.statement import Word
from signet_sync.recall import pinning
from signet_sync.settings.model import Settings
from signet_sync.statements import word_files
from signet_sync.storage.database.tables import NODES, STATEMENTS, TABLES
from signet_sync.sync.store import counts

PROJECT = "/home/ada/code/lantern"
KEY = "agent:main:main"
ID = "ca4a1e00-0000-4000-8000-000000000009"
# The sessions that stay: two of the same week, two of the week before, of the same quarter.
OTHERS = {f"0fe5e55{day}-0000-4000-8000-000000000000": f"2026-03-{day}T10:00:00.000Z" for day in (17, 19, 23, 27)}
LAST = "0fe5e5527-0000-4000-8000-000000000000"
# The same statement as another session's, in a spelling of its own.
SHARED, VARIANT = "Storage: SQLite with a write-ahead log", "Storage: SQLITE with a Write-Ahead LOG."
STEP = "Trim the wick of the lantern before dusk"
BOTH = "Ada wants the queue to drain before midnight."
DERIVED = ("session_summaries", "session_summary_children", "thread_sessions", "memory_thread_heads", "statements",
           "statement_marks", "memories", "ledger_rows", "ledger_days", "session_transcripts")  # fmt: skip


class Scene:
    """A thread of five sessions; without `had` of four, as if the middle one never was."""

    def __init__(self, root: Path, *, key: str | None, had: bool) -> None:
        self.vault, self.key = Vault(root), key
        for number, (session_id, at) in enumerate(OTHERS.items()):
            if had and session_id == LAST:
                self.middle()
            decided = f"## Decisions\n\n- {SHARED}\n- Number {number} holds.\n- Port: 70{number}\n"
            end(
                self.vault,
                **self.who(session_id),
                captured_at=at,
                summary=f"# Number {number}\n\n{decided}\n## Next steps\n\n- Ask Ada about the loop.\n",
                transcript=f"## User · {at}\n\nNumber {number}.\n",
                memory_sentence=f"Bounded the retry loop of src/queue.py in lantern number {number} so that it drains.",
            )
        self.ask("remember", BOTH, "--session", LAST)
        if had:
            self.ask("remember", BOTH, "--session", ID)
            self.ask("remember", "The oil is of whales", "--type", "decision", "--session", ID, "--tag", "oil")
            of_it = f"select id from {NODES} where session_id = '{ID}' union select id from {STATEMENTS}"
            self.mark(f"{of_it} where session_id = '{ID}'")
            ((step,),) = self.vault.rows("select id from statements where newest = 1 and text = ?", STEP)
            with open_to_write(str(self.vault.root), Settings()) as workspace:
                pinning.mark(workspace, "default", step, "done", time.time_ns() // 1_000)
        else:
            self.mark(f"select id from statements where text in ('{SHARED}', 'Ask Ada about the loop.')")

    def who(self, session_id: str) -> dict[str, Any]:
        return {"session_id": session_id, "session_key": self.key or session_id, "project": PROJECT, "harness": "codex"}

    def ask(self, *arguments: str) -> Any:
        answer = self.vault.call(*arguments, "--json", "--now", NOW)
        assert answer.code == 0, answer
        return answer.json

    def middle(self) -> None:
        body = (
            f"# The wick\n\n## Decisions\n\n- {VARIANT}\n- Port: 71\n\n## People\n\n- Mira: keeps the queue\n\n"
            f"## Next steps\n\n- [ ] {STEP}\n- [x] Ask Ada about the loop.\n"
        )
        talk = "".join(
            f"## {('User', 'Assistant')[n % 2]} · 2026-03-25T09:{n:02d}:00.000Z\n\n{'The wick burns. ' * 200}\n\n"
            for n in range(9)
        )
        compact(self.vault, **self.who(ID), compaction=body, captured_at="2026-03-25T09:30:00.000Z")
        for at in ("2026-03-25T09:10:00.000Z", "2026-03-25T10:00:00.000Z"):
            end(self.vault, **self.who(ID), captured_at=at, summary=body, transcript=talk)

    def mark(self, own: str) -> None:
        """Pins and accesses of some things, of all threads, condensations and memories."""
        above = "select id from session_summaries where depth > 0 union select id from memories"
        things = [one for (one,) in self.vault.rows(f"{own} union {above} union {_THREADS}")]
        with open_to_write(str(self.vault.root), Settings()) as workspace:
            word_files.add(workspace, [Word("default", one, "pinned", NOW) for one in things])
            word_files.follow(workspace)
            counts.count_ids(workspace.database, "default", things, "2026-03-28")
        self.ask("reindex")

    def ids(self) -> set[str]:
        """The id of everything there is."""
        every = "select id from session_summaries union select id from statements union select id from memories"
        return {one for (one,) in self.vault.rows(f"{every} union {_THREADS}")}

    def derived(self) -> dict[str, Iterable[Any]]:
        """Everything of the graph and what belongs to it, and the pages."""
        places = [*self.vault.root.glob("MEMORY.md"), *self.vault.root.glob("ledger/**/*.md")]
        found: dict[str, Iterable[Any]] = {str(path.relative_to(self.vault.root)): path.read_text() for path in places}
        with self.vault.database() as database:
            found |= {table: list(index_rows.sorted_rows(database, TABLES[table])) for table in DERIVED}
        found["texts"] = self.vault.rows("select tier, name, text from texts where artifact is null order by name")
        found["memory_sources"] = self.vault.rows("select memory_id, session_token, session_id from memory_sources")
        for table in ("pins", "node_telemetry"):
            found[table] = self.vault.rows(f"select id from {table} order by id")
        return found


_THREADS = "select thread_id from memory_thread_heads"


@pytest.mark.parametrize("key", [None, KEY], ids=["own key", "constant key"])
def test_a_removed_session_is_as_if_it_never_was(tmp_path: Path, key: str | None) -> None:
    scene, never = (Scene(tmp_path / f"{had}/vault", key=key, had=had) for had in (True, False))
    before = scene.ids()
    scene.ask("remove", ID, "--reason", "asked for", "--yes")
    gone = before - scene.ids()
    assert len(gone) > 6
    for one in sorted(gone):
        answer = scene.vault.call("expand", one, "--json")
        assert answer.code == 2 and answer.json["error"]["code"] == "unknown-handle", (one, answer)
    assert scene.derived() == never.derived()
    scene.vault.reindex("--full")
    assert scene.derived() == never.derived(), "a rebuild gives the same"
