"""A session in the middle of the graph is removed: no word, row or handle is left, and the rest is as if it never was."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import pytest
from endings import compact, end, moment
from workbench import NOW, Vault, spawn

from signet_sync.agent import graph
from signet_sync.agent.workspace import opened
from signet_sync.config import Settings
from signet_sync.facts.records import Item
from signet_sync.index import facts, wordings
from signet_sync.index.database import Database
from signet_sync.temporal.ids import LETTERS

PROJECT = "/home/ada/code/lantern"
KEY = "agent:main:main"
ID = "ca4a1e00-0000-4000-8000-000000000009"
# The sessions that stay: two of the same week, two of the week before, of the same quarter.
OTHERS = {f"0fe5e55{day:02d}-0000-4000-8000-000000000000": f"2026-03-{day:02d}T10:00:00.000Z" for day in (17, 19, 23, 27)}
LAST = "0fe5e5527-0000-4000-8000-000000000000"
HANDLE = re.compile(r"\b([a-z]-[a-z2-7]{12})\b")

# As in test_canary: each begins unlike the others, and its first letters are not looked for.
PLACES = ("summary", "opening", "middle", "closing", "compaction", "decision", "person", "file", "package", "issue",
          "next", "live", "extracted", "arcword", "epochword", "memory", "tag", "sentence", "slot", "early")  # fmt: skip
CANARIES = {place: f"{chr(97 + number)}qz{place}canary" for number, place in enumerate(PLACES)}
# The same fact as another session's, in a spelling of its own.
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
            end(self.vault, **self.who(session_id), captured_at=at, transcript=f"## User · {at}\n\nNumber {number}.\n",
                summary=f"# Number {number}\n\n## Decisions\n\n- {SHARED}\n- Number {number} holds.\n- Port: 70{number}\n\n"
                "## Next steps\n\n- Ask Ada about the loop.\n",
                memory_sentence=f"Bounded the retry loop of src/queue.py in lantern number {number} so that it drains.")  # fmt: skip
        self.ask("remember", BOTH, "--session", LAST)
        if had:
            self.ask("remember", BOTH, "--session", ID)
            self.ask("remember", said("memory"), "--type", "decision", "--session", ID, "--tag", CANARIES["tag"])
            self.model()
            self.marks()
        else:
            self.shared_marks()

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
        held, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(line))
        try:
            code = self.vault.call("transcript", "append", "--session-key", self.key or ID, *named).code
        finally:
            sys.stdin = held
        assert code == 0

    @contextmanager
    def writing(self) -> Any:
        with opened(str(self.vault.root), Settings()) as workspace:
            yield workspace

    def model(self) -> None:
        """What a model stated of the session, and its words for the condensations above it."""
        with self.writing() as workspace:
            for artifact in wordings.unread(workspace.database, 99, NOW):
                if artifact.session_id == ID:
                    items = [Item("constraint", said("extracted"), 3)]
                    assert wordings.put_items(workspace.database, artifact, items, "m", NOW)
            graph.rederive(workspace, {("default", self.token, ID)}, now_us())
            for node in wordings.unworded(workspace.database, 99, NOW):
                words = "Two sessions bounded the queue."
                if node.id[0] == "e" or CANARIES["sentence"] in node.content:
                    words = said("epochword" if node.id[0] == "e" else "arcword")
                assert wordings.put_wording(workspace.database, node, words, "m", NOW)

    @property
    def token(self) -> str:
        return made.token_for("default", ID, self.key)

    def ids(self) -> dict[str, set[str]]:
        """Every id there is, by what stands behind it."""
        places = {"session_summaries": "id", "memory_thread_heads": "thread_id", "entity_attributes": "id",
                  "memories": "id", "entities": "id"}  # fmt: skip
        return {
            table: {row[0] for row in self.vault.rows(f"select {column} from {table}")}
            for table, column in places.items()
        }

    def marks(self) -> None:
        """Pins and accesses of everything of the session and of all above it."""
        nodes = self.vault.rows("select id from session_summaries where session_id = ? or depth > 0 order by id", ID)
        stated = self.vault.rows("select attribute_id from attribute_sources where session_id = ? order by 1", ID)
        heads = self.vault.rows("select thread_id from memory_thread_heads union select id from memories")
        named = self.vault.rows("select entity_id from entity_mentions where session_id = ?", ID)
        for (one,) in {*nodes, *stated, *heads}:
            self.ask("pin", one)
        for (one,) in {*nodes, *stated, *heads, *named}:
            assert self.vault.call("expand", one).code == 0

    def shared_marks(self) -> None:
        """The same marks, of what the session had no part in alone."""
        ids = self.ids()
        shared = self.vault.rows("select id from entity_attributes where text in (?, 'Ask Ada about the loop.')", SHARED)
        above = self.vault.rows("select id from session_summaries where depth > 0")
        pinned = {row[0] for row in (*shared, *above)} | ids["memory_thread_heads"] | ids["memories"]
        named = self.vault.rows("select id from entities where norm in ('lantern', 'src/queue.py') or kind = 'project'")
        for one in pinned:
            self.ask("pin", one)
        for one in pinned | {row[0] for row in named}:
            assert self.vault.call("expand", one).code == 0

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

    def sound(self) -> None:
        """Nothing stands behind nothing."""
        ids = self.ids()
        known = set.union(*ids.values())
        with self.vault.database() as database:
            assert facts.orphans(database) == 0
        for table, column in (
            ("session_summary_children", "parent_id"), ("session_summary_children", "child_id"),
            ("pins", "id"), ("node_telemetry", "id"), ("node_wordings", "id"), ("recall_lines", "id"),
            ("thread_sessions", "node_id"), ("thread_sessions", "thread_id"), ("memory_thread_heads", "node_id"),
            ("memory_sources", "memory_id"), ("attribute_sources", "attribute_id"), ("attribute_sources", "entity_id"),
        ):  # fmt: skip
            left = {row[0] for row in self.vault.rows(f"select {column} from {table}")} - known
            assert not left, (table, column, left)
        for table, column in (("extractions", "source_path"), ("session_summaries", "source_ref"), ("seals", "path"),
                              ("attribute_sources", "source_path"), ("entity_mentions", "source_path"),
                              ("memory_thread_heads", "source_ref"), ("thread_sessions", "source_ref")):  # fmt: skip
            for (path,) in self.vault.rows(f"select {column} from {table} where {column} is not null"):
                assert (self.vault / path).exists(), (table, path)
        for one in HANDLE.findall("\n".join(pages(self.vault).values())):
            if one[0] in LETTERS:
                assert one in known, one

    def derived(self) -> dict[str, list[tuple[Any, ...]]]:
        """Everything of the graph and what belongs to it."""
        found = {}
        for table in ("session_summaries", "session_summary_children", "thread_sessions", "memory_thread_heads",
                      "entities", "entity_mentions", "entity_attributes", "attribute_sources", "relations",
                      "memories", "ledger_rows", "ledger_days", "session_transcripts"):  # fmt: skip
            found[table] = self.vault.rows(f"select * from {table} order by 1, 2, 3")
        found["recall_lines"] = self.vault.rows("select agent_id, tier, id, text from recall_lines order by id")
        found["memory_sources"] = self.vault.rows("select memory_id, session_token, session_id from memory_sources")
        for table in ("pins", "node_telemetry"):
            found[table] = self.vault.rows(f"select id from {table} order by id")
        return found


def now_us() -> int:
    return time.time_ns() // 1000


def pages(vault: Vault) -> dict[str, str]:
    return {str(p.relative_to(vault.root)): p.read_text() for p in [vault / "MEMORY.md", *vault.root.glob("ledger/**/*.md")]}


def remove(scene: Scene, name: str = ID) -> Any:
    return scene.ask("remove", name, "--reason", "asked for", "--yes")


@pytest.fixture(params=[None, KEY], ids=["own key", "constant key"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    found = Scene(tmp_path / "had/vault", key=request.param, had=True)
    assert {word for _, word in found.leaks()} == {*CANARIES.values(), VARIANT}, "every place holds its word"
    found.sound()
    return found


def test_a_removed_session_is_as_if_it_never_was(scene: Scene, tmp_path: Path) -> None:
    before = scene.ids()
    remove(scene)
    assert scene.leaks() == []
    scene.sound()
    for one in sorted(set.union(*before.values()) - set.union(*scene.ids().values())):
        for command in ("expand", "pin"):
            answer = scene.vault.call(command, one, "--json")
            assert answer.code == 2 and answer.json["error"]["code"] == "unknown-handle", (command, one, answer)
    for word in CANARIES.values():
        assert scene.vault.call("recall", word, "--json").json["hits"] == []
    assert scene.vault.rows("select count(*) from node_wordings") == [(1,)], "that of the week that it was not in"
    after = scene.derived(), pages(scene.vault)
    scene.vault.reindex("--full")
    assert (scene.derived(), pages(scene.vault)) == after, "a rebuild gives the same"
    assert scene.leaks() == []
    never = Scene(tmp_path / "never/vault", key=scene.key, had=False)
    assert after == (never.derived(), pages(never.vault))
