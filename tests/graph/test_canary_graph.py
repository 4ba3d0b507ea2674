"""A session in the middle of the graph is removed: no word, row or handle is left, the rest is as if it never was."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import pytest
from session_inputs import compact, end
from workbench import NOW, Vault, sampled

from benchmarks import index_rows
from signet_sync.app.workspace import opened
from signet_sync.formats.statement import Word
from signet_sync.recall import pinning
from signet_sync.settings.model import Settings
from signet_sync.statements import word_files
from signet_sync.storage.database.tables import NODES, STATEMENTS, TABLES
from signet_sync.sync.store import counts
from signet_sync.sync.workspace import Workspace

PROJECT = "/home/ada/code/lantern"
KEY = "agent:main:main"
ID = "ca4a1e00-0000-4000-8000-000000000009"
# The sessions that stay: two of the same week, two of the week before, of the same quarter.
OTHERS = {f"0fe5e55{day}-0000-4000-8000-000000000000": f"2026-03-{day}T10:00:00.000Z" for day in (17, 19, 23, 27)}
LAST = "0fe5e5527-0000-4000-8000-000000000000"
HANDLE = re.compile(r"\b([a-z]-[a-z2-7]{12})\b")

# As in test_resurrection: each begins unlike the others, and its first letters are not looked for.
PLACES = ("summary", "opening", "middle", "closing", "compaction", "decision", "person", "file", "package", "issue",
          "next", "live", "memory", "tag", "sentence", "slot",
          "early")  # fmt: skip
CANARIES = {place: f"{chr(97 + number)}qz{place}canary" for number, place in enumerate(PLACES)}
# The same statement as another session's, in a spelling of its own.
SHARED, VARIANT = "Storage: SQLite with a write-ahead log", "Storage: SQLITE with a Write-Ahead LOG."
BOTH = "Ada wants the queue to drain before midnight."


def said(place: str) -> str:
    return f"The {CANARIES[place]} bounds every retry of the queue"


def talk(*words: str) -> str:
    """A transcript of several chunks."""
    filler = "The loop of src/queue.py was looked at once more, and nothing in it had moved. " * 40
    return "".join(
        f"## {('User', 'Assistant')[n % 2]} · 2026-03-25T09:{n:02d}:00.000Z\n\n{word}. {filler}\n\n"
        for n, word in enumerate(words)
    )


def body(place: str) -> str:
    return (
        f"# {said(place)}\n\nWe read `src/{CANARIES['file']}.py` and ran `pip install {CANARIES['package']}`, see"
        f" {CANARIES['issue'].upper()}-77.\n\n## Decisions\n\n- {VARIANT}\n- {said('decision')}\n"
        f"- Port: {CANARIES['slot']}\n\n## People\n\n- {CANARIES['person'].title()}: keeps the queue\n\n"
        f"## Next steps\n\n- [ ] {said('next')}\n- [x] Ask Ada about the loop.\n"
    )


class Scene:
    """A thread of five sessions; with `had` one of them is full of words that stand nowhere else."""

    def __init__(self, root: Path, *, key: str | None, had: bool) -> None:
        self.vault, self.key = Vault(root), key
        for number, (session_id, at) in enumerate(OTHERS.items()):
            if had and session_id == LAST:
                self.canaries()
            self.ordinary(number, session_id, at)
        self.ask("remember", BOTH, "--session", LAST)
        if had:
            self.ask("remember", BOTH, "--session", ID)
            self.ask("remember", said("memory"), "--type", "decision", "--session", ID, "--tag", CANARIES["tag"])
            self.marks()
        else:
            self.shared_marks()

    def ordinary(self, number: int, session_id: str, at: str) -> None:
        decided = f"## Decisions\n\n- {SHARED}\n- Number {number} holds.\n- Port: 70{number}\n"
        end(
            self.vault,
            **self.who(session_id),
            captured_at=at,
            summary=f"# Number {number}\n\n{decided}\n## Next steps\n\n- Ask Ada about the loop.\n",
            transcript=f"## User · {at}\n\nNumber {number}.\n",
            memory_sentence=f"Bounded the retry loop of src/queue.py in lantern number {number} so that it drains.",
        )

    def who(self, session_id: str) -> dict[str, Any]:
        return {"session_id": session_id, "session_key": self.key or session_id, "project": PROJECT, "harness": "codex"}

    def ask(self, *arguments: str) -> Any:
        answer = self.vault.call(*arguments, "--json", "--now", NOW)
        assert answer.code == 0, answer
        return answer.json

    def canaries(self) -> None:
        who = self.who(ID)
        compact(self.vault, **who, compaction=body("compaction"), captured_at="2026-03-25T09:30:00.000Z")
        end(self.vault, **who, captured_at="2026-03-25T09:10:00.000Z", summary=f"# {said('early')}\n",
            transcript=talk(said("early")))  # fmt: skip
        end(self.vault, **who, captured_at="2026-03-25T10:00:00.000Z", summary=body("summary"),
            transcript=talk(said("opening"), "a", "b", "c", said("middle"), "d", "e", "f", said("closing")),
            memory_sentence=f"{said('sentence')} of src/queue.py in lantern, so that it drains at last.")  # fmt: skip
        line = json.dumps({"turn": 0, "role": "user", "text": said("live"), "at": NOW}).encode() + b"\n"
        named = ["--session-id", ID] if self.key else []
        assert self.vault.call("transcript", "append", "--session-key", self.key or ID, *named, given=line).code == 0

    @contextmanager
    def writing(self) -> Iterator[Workspace]:
        with opened(str(self.vault.root), Settings()) as workspace:
            yield workspace

    @property
    def token(self) -> str:
        return made.token_for("default", ID, self.key)

    def ids(self) -> set[str]:
        """The id of everything there is."""
        places = {"session_summaries": "id", "memory_thread_heads": "thread_id", "statements": "id",
                  "memories": "id"}  # fmt: skip
        return {row[0] for table, column in places.items() for row in self.vault.rows(f"select {column} from {table}")}

    def marks(self) -> None:
        """Pins and accesses of everything of the session and of all above it, and that its step is done."""
        nodes = self.vault.rows(f"select id from {NODES} where session_id = ? or depth > 0", ID)
        stated = self.vault.rows(f"select id from {STATEMENTS} where session_id = ?", ID)
        heads = self.vault.rows("select thread_id from memory_thread_heads union select id from memories")
        self.mark({*nodes, *stated, *heads})
        ((step,),) = self.vault.rows("select id from statements where newest = 1 and text = ?", said("next"))
        with self.writing() as workspace:
            pinning.mark(workspace, "default", step, "done", now_us())

    def shared_marks(self) -> None:
        """The same pins and accesses, of what the session has no part in alone."""
        words = (SHARED, "Ask Ada about the loop.")
        shared = self.vault.rows("select id from statements where newest = 1 and text in (?, ?)", *words)
        above = self.vault.rows("select id from session_summaries where depth > 0")
        heads = self.vault.rows("select thread_id from memory_thread_heads union select id from memories")
        self.mark({*shared, *above, *heads})

    def mark(self, pinned: Iterable[tuple[Any, ...]]) -> None:
        with self.writing() as workspace:
            word_files.add(workspace, [Word("default", one, "pinned", NOW) for (one,) in pinned])
            word_files.follow(workspace)
            assert counts.count_ids(workspace.database, "default", [one for (one,) in pinned], "2026-03-28")
        self.ask("reindex")

    def leaks(self, words: Iterable[str] = tuple(CANARIES.values())) -> list[tuple[str, str]]:
        """Files of workspace and state that hold a word but for three letters."""
        needles = {word: word[3:].lower().encode() for word in words}
        found = []
        for path in [*self.vault.root.rglob("*"), *self.vault.state.rglob("*")]:
            if path.is_file():
                raw = path.name.encode() + path.read_bytes()
                lower = raw.lower()
                found += [(path.name, word) for word, needle in needles.items() if needle in lower]
                found += [(path.name, VARIANT)] * (VARIANT[9:].encode() in raw)
        return found

    def derived(self) -> dict[str, list[tuple[Any, ...]]]:
        """Everything of the graph and what belongs to it."""
        found = {}
        for table in ("session_summaries", "session_summary_children", "thread_sessions", "memory_thread_heads",
                      "statements", "statement_marks", "memories", "ledger_rows", "ledger_days",
                      "session_transcripts"):  # fmt: skip
            with self.vault.database() as database:
                found[table] = list(index_rows.sorted_rows(database, TABLES[table]))
        lines = "select agent_id, tier, name, text from texts where artifact is null order by name"
        found["texts"] = self.vault.rows(lines)
        found["memory_sources"] = self.vault.rows("select memory_id, session_token, session_id from memory_sources")
        for table in ("pins", "node_telemetry"):
            found[table] = self.vault.rows(f"select id from {table} order by id")
        return found


def now_us() -> int:
    return time.time_ns() // 1000


def pages(vault: Vault) -> dict[str, str]:
    places = [*vault.root.glob("MEMORY.md"), *vault.root.glob("ledger/**/*.md")]
    return {str(path.relative_to(vault.root)): path.read_text() for path in places}


def remove(scene: Scene, name: str = ID) -> Any:
    return scene.ask("remove", name, "--reason", "asked for", "--yes")


@pytest.fixture(params=sampled([None, KEY], 2), ids=["own key", "constant key"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    found = Scene(tmp_path / "had/vault", key=request.param, had=True)
    assert {word for _, word in found.leaks()} == {*CANARIES.values(), VARIANT}, "every place holds its word"
    return found


def test_a_removed_session_is_as_if_it_never_was(scene: Scene, tmp_path: Path) -> None:
    before = scene.ids()
    remove(scene)
    assert scene.leaks() == []
    for one in sorted(before - scene.ids()):
        for command in ("expand", "pin"):
            answer = scene.vault.call(command, one, "--json")
            assert answer.code == 2 and answer.json["error"]["code"] == "unknown-handle", (command, one, answer)
    for word in CANARIES.values():
        assert scene.vault.call("recall", word, "--json").json["hits"] == []
    after = scene.derived(), pages(scene.vault)
    scene.vault.reindex("--full")
    assert (scene.derived(), pages(scene.vault)) == after, "a rebuild gives the same"
    assert scene.leaks() == []
    never = Scene(tmp_path / "never/vault", key=scene.key, had=False)
    assert after == (never.derived(), pages(never.vault))
