"""Two agents with equal keys, ids and projects: nothing of the one is ever shown to the other, or changes for it."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import artifacts_fixture as made
import pytest
from session_inputs import say
from workbench import NOW, Vault

from signet_sync.storage.database.tables import TABLES

MINE = {"default": "heronword", "scout": "plumeword"}
OTHER = {"default": "scout", "scout": "default"}
KEYS = (None, "agent:main:main", "shared-key")
PROJECTS = ("/home/ada/code/lantern", None)
HANDLE = re.compile(r"\^([a-z]-[a-z2-7]{6}(?:[a-z2-7]{6})?)\b")
# What no agent has: files and links are told by their paths, full text is that of its tables, some rows are states.
OF_NOBODY = {"files", "links", "violations", "memory_artifacts_fts", "recall_lines_fts", "history_files",
             "derivers", "acceptances", "redactions", "removed_lines", "forgotten_memories", "live_files",
             "live_transcripts", "passes", "beside_signet", "backups", "history_told", "model_rests"}  # fmt: skip
# Numbers of rows, what the clock of the machine said, and hashes over that.
UNLIKE = {
    "rowid", "updated_at", "at", "sealed_at", "inode", "mtime_ns", "ctime_ns", "source_mtime_ms", "revision", "packed",
    "digest", "file_sha256", "fence", "lease_token", "lease_owner", "lease_expires_at", "answer",
}  # fmt: skip


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault")


def summary(agent: str, number: int) -> str:
    word = MINE[agent]
    return (
        f"# Queue of {word} {number}\n\n## Decisions\n\n- Database: {word} holds lantern number {number}\n\n"
        f"## People\n\n- {word.title()}: keeps src/queue.py\n\n## Next steps\n\n- Ask {word} about #{number}\n"
    )


def files_of(agent: str, who: dict[str, Any], number: int, project: str | None) -> dict[str, bytes]:
    """The summary and transcript of a session in an agent's own words."""
    word = MINE[agent]
    more = {"project": project, "harness": "codex", "agent_id": agent}
    sentence = f"In lantern the {word} of run {number} bounded src/queue.py so that the loop drains at last."
    turns = f"## User · {who['captured_at']}\n\nWhat does {word} say of run {number}?\n\n## Assistant · "
    turns += f"{who['captured_at']}\n\nThat {word} keeps src/queue.py.\n"
    return dict(
        [
            made.summary(**who, **more, body=summary(agent, number), memory_sentence=sentence),
            made.transcript(**who, **more, body=turns, memory_sentence=sentence),
        ]
    )


def sessions(random: Random, vault: Vault, agents: tuple[str, ...] = ("default", "scout")) -> list[dict[str, Any]]:
    """The same sessions for each agent, in its own words."""
    written = []
    for number in range(6):
        who: dict[str, Any] = {
            "session_id": f"5e5510{number:02d}-0000-4000-8000-000000000000",
            "session_key": random.choice(KEYS),
            "captured_at": f"2026-03-{random.randint(1, 28):02d}T10:{number:02d}:00.000Z",
        }
        project = random.choice(PROJECTS)
        for agent in agents:
            vault.put(files_of(agent, who, number, project))
        written.append(who)
    return written


def own(vault: Vault, agent: str, *arguments: str) -> Any:
    """The answer of a command to an agent, which must not hold a word of the other but in what was asked."""
    answer = vault.call(*arguments, "--agent", agent, "--json")
    document = answer.json
    told = {name: value for name, value in document.items() if name not in ("query", "prompt")}
    assert MINE[OTHER[agent]] not in (json.dumps(told) + answer.err).lower(), (arguments, agent)
    return document


def refused(vault: Vault, agent: str, *arguments: str) -> None:
    """A command that finds nothing of that name, and says so without a word of whose it is."""
    answer = own(vault, agent, *arguments)
    assert answer["error"]["code"] in ("unknown-handle", "unknown-memory", "not-a-memory", "unknown-session"), answer


def rows_of(vault: Vault, agent: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row that names an agent, by table, without the times of this machine."""
    found = {}
    for table in TABLES:
        if table in OF_NOBODY:
            continue
        unlike = UNLIKE | ({"id"} if table in ("memory_artifacts", "recall_events") else set())
        told = TABLES[table].joined
        columns = told.names if told else [row[1] for row in vault.rows(f"pragma table_info({table})")]
        shown = [name for name in columns if name not in {*unlike, "entity", "session"}]
        assert "agent_id" in shown, table
        order = ", ".join(str(place + 1) for place in range(len(shown)))
        sql = f"select {', '.join(shown)} from {TABLES[table].rows} where agent_id = ? order by {order}"
        found[table] = vault.rows(sql, agent)
    return found


def ids_of(vault: Vault, agent: str) -> list[str]:
    """Every id of an agent that a handle may stand for."""
    places = {"session_summaries": "id", "memory_thread_heads": "thread_id", "entity_attributes": "id",
              "memories": "id", "entities": "id"}  # fmt: skip
    sql = "select {column} from {table} where agent_id = ? order by 1"
    return [
        row[0] for table, column in places.items() for row in vault.rows(sql.format(table=table, column=column), agent)
    ]


def page(agent: str) -> str:
    return "MEMORY.md" if agent == "default" else f"agents/{agent}/MEMORY.md"


def pages(vault: Vault, agent: str) -> dict[str, str]:
    """MEMORY.md and the ledger of an agent."""
    root = vault.root if agent == "default" else vault.root / f"agents/{agent}"
    found = [root / "MEMORY.md", *sorted((root / "ledger").rglob("*.md"))]
    return {str(path.relative_to(root)): path.read_text() for path in found}


def stream(vault: Vault, agent: str, key: str, *options: str, turn: int = 0) -> Any:
    said = {"turn": turn, "role": "user", "text": f"Tell {MINE[agent]} of live turn {turn}.", "at": NOW}
    held, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(json.dumps(said).encode() + b"\n"))
    try:
        return own(vault, agent, "transcript", "append", "--session-key", key, *options)
    finally:
        sys.stdin = held


# ── nothing is shown ────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_one_agent_has_the_other_cannot_name(vault: Vault) -> None:
    random = Random(1)
    written = sessions(random, vault)
    vault.reindex()
    for agent, word in MINE.items():
        own(vault, agent, "remember", f"Always ask {word} first.", "--type", "preference", "--now", NOW)
        assert stream(vault, agent, "live-key")["appended"] == 1, "equal keys and turns, two agents"
        assert stream(vault, agent, "live-key", "--session-id", "live-id")["appended"] == 1
    handles: dict[str, set[str]] = {}
    for agent in MINE:
        text = "\n".join(pages(vault, agent).values())
        assert MINE[agent] in text.lower()
        assert MINE[OTHER[agent]] not in text.lower()
        handles[agent] = set(HANDLE.findall(text))
        ids = ids_of(vault, agent)
        assert len(handles[agent]) > 5
        assert all(sum(one.startswith(handle) for one in ids) == 1 for handle in handles[agent])
        for question in ("lantern queue", "heronword", "plumeword", "what keeps src/queue.py", "live turn"):
            for command in (["recall"], ["search"], ["context", "--prompt"]):
                own(vault, agent, *command, question)
        assert own(vault, agent, "recall", MINE[OTHER[agent]])["hits"] == []
        assert any("#" in hit["id"] for hit in own(vault, agent, "recall", "live turn")["hits"])
        own(vault, agent, "context")
        own(vault, agent, "context", "--scope", "shared")
        own(vault, agent, "context", "--scope", "shared", "--prompt", MINE[OTHER[agent]])
    assert not set(ids_of(vault, "default")) & set(ids_of(vault, "scout"))
    for agent, other in OTHER.items():
        path = vault.rows("select min(source_path) from memory_artifacts where agent_id = ?", agent)[0][0]
        token = path.split("--")[1]
        chosen = [*random.sample(ids_of(vault, agent), 12), *sorted(handles[agent])[:6]]
        for handle in chosen:
            assert own(vault, agent, "expand", handle)["node"]["agent_id"] == agent
        for name in (*chosen, f"^{chosen[0]}", chosen[1][:9], path, path.removeprefix("memory/"), token,
                     f"[[{path}|summary]]", f"[[MEMORY#^{chosen[2]}]]"):  # fmt: skip
            for command in (["expand"], ["pin"], ["pin", "--remove"], ["forget"]):
                refused(vault, other, *command, name)
        for name in (path, token):
            refused(vault, other, "remember", "Of another.", "--session", name)
            refused(vault, other, "remove", name, "--reason", "asked", "--yes")
        for who in written:
            for name in filter(None, (who["session_id"], who["session_key"], who["session_id"][:8])):
                own(vault, agent, "expand", name)
                own(vault, agent, "open", name)


# ── nothing changes ─────────────────────────────────────────────────────────────────────────────────────────────────


class Life:
    """What an agent does in a vault: the same steps for the same seed, chosen among what is its own."""

    def __init__(self, vault: Vault, agent: str) -> None:
        self.vault, self.agent = vault, agent
        self.steps = [
            self.end, self.end, self.compact, self.arrive, self.remember, self.remember_of, self.forget, self.pin,
            self.unpin, self.expand, self.recall, self.stream, self.remove, self.vanish,
        ]  # fmt: skip
        self.answers: list[Any] = []

    def step(self, seed: int) -> None:
        random = Random(seed)
        random.choice(self.steps)(random)

    def ask(self, *arguments: str) -> None:
        self.answers.append(own(self.vault, self.agent, *arguments))

    def who(self, random: Random) -> dict[str, Any]:
        return {
            "session_id": f"5e5510{random.randint(0, 7):02d}-0000-4000-8000-000000000000",
            "session_key": random.choice(KEYS),
            "captured_at": f"2026-03-{random.randint(1, 28):02d}T{random.randint(0, 23):02d}:00:00.000Z",
        }

    def arrive(self, random: Random) -> None:
        files = files_of(self.agent, self.who(random), random.randint(0, 9), random.choice(PROJECTS))
        self.vault.put(files)
        self.vault.reindex()

    def end(self, random: Random) -> None:
        word, number = MINE[self.agent], random.randint(0, 9)
        more: dict[str, Any] = {"project": random.choice(PROJECTS), "harness": "codex", "agent_id": self.agent}
        turns = f"## User\n\nWhat does {word} say of run {number}?\n\n## Assistant\n\nRun {number} ends.\n"
        say(self.vault, **self.who(random), **more, summary=summary(self.agent, number), transcript=turns)

    def compact(self, random: Random) -> None:
        more: dict[str, Any] = {"project": random.choice(PROJECTS), "harness": "codex", "agent_id": self.agent}
        say(self.vault, "compact", **self.who(random), **more, compaction=summary(self.agent, random.randint(0, 9)))

    def remember(self, random: Random) -> None:
        kind = random.choice(("note", "decision", "preference"))
        self.ask("remember", f"Ask {MINE[self.agent]} {random.randint(0, 3)}.", "--type", kind, "--now", NOW)

    def remember_of(self, random: Random) -> None:
        text = f"Ask {MINE[self.agent]} {random.randint(0, 3)}."
        self.ask("remember", text, "--session", self.who(random)["session_id"], "--now", NOW)

    def one(self, random: Random, letters: str = "") -> str:
        ids = [one for one in ids_of(self.vault, self.agent) if not letters or one[0] in letters]
        return random.choice(ids or ["x"])

    def forget(self, random: Random) -> None:
        self.ask("forget", self.one(random, "m"), "--now", NOW)

    def pin(self, random: Random) -> None:
        self.ask("pin", self.one(random), "--now", NOW)

    def unpin(self, random: Random) -> None:
        self.ask("pin", "--remove", self.one(random), "--now", NOW)

    def expand(self, random: Random) -> None:
        self.ask("expand", self.one(random))

    def recall(self, random: Random) -> None:
        query = random.choice(("lantern queue", "what keeps src/queue.py", "run 3", "ask first"))
        self.ask("recall", query, "--now", NOW)

    def stream(self, random: Random) -> None:
        options = random.choice(([], ["--session-id", self.who(random)["session_id"]]))
        self.answers.append(stream(self.vault, self.agent, "shared-key", *options, turn=random.randint(0, 3)))

    def remove(self, random: Random) -> None:
        who = self.who(random)
        name = who["session_key"] if random.random() < 0.3 and who["session_key"] else who["session_id"]
        self.ask("remove", name, "--reason", "asked", "--yes", "--now", NOW)

    def vanish(self, random: Random) -> None:
        """A file goes without a removal."""
        held = self.vault.rows(
            "select source_path from memory_artifacts where agent_id = ? and source_kind = 'summary' order by 1",
            self.agent,
        )
        if held:
            (self.vault / random.choice(held)[0]).unlink(missing_ok=True)
            self.vault.reindex()


def lives(vault: Vault, seeds: Mapping[str, list[int]]) -> dict[str, Life]:
    """A vault in which each agent takes its steps, in turns."""
    found = {agent: Life(vault, agent) for agent in seeds}
    vault.reindex()
    for step in range(max(map(len, seeds.values()))):
        for agent, own_seeds in seeds.items():
            if step < len(own_seeds):
                found[agent].step(own_seeds[step])
    vault.reindex()
    return found


def check_apart(root: Path, seed: int, steps: int) -> None:
    """An agent's rows, pages and answers are those of a vault in which it is alone."""
    random = Random(seed)
    seeds = {agent: [random.getrandbits(32) for _ in range(steps)] for agent in MINE}
    together = lives(Vault(root / "together"), seeds)
    for agent, own_seeds in seeds.items():
        alone = lives(Vault(root / agent), {agent: own_seeds})[agent]
        life = together[agent]
        assert life.answers == alone.answers
        assert rows_of(life.vault, agent) == rows_of(alone.vault, agent)
        assert pages(life.vault, agent) == pages(alone.vault, agent)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_an_agent_lives_as_if_it_were_alone(tmp_path: Path, seed: int) -> None:
    check_apart(tmp_path, seed, 8 if seed == 0 else 12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_an_agent_lives_long_as_if_it_were_alone(tmp_path: Path, seed: int) -> None:
    check_apart(tmp_path, seed, 40)


@pytest.mark.parametrize(("key", "vanished"), [(None, False), ("agent:main:main", True)])
def test_a_removal_leaves_an_agent_with_the_same_session_alone(vault: Vault, key: str | None, vanished: bool) -> None:
    """Id, key, project and times are those of both: what tells a session from others are its words alone."""
    session_id = "5e551001-0000-4000-8000-000000000000"
    who = {"session_id": session_id, "session_key": key, "captured_at": "2026-03-20T10:00:00.000Z"}
    paths = {agent: vault.put(files_of(agent, who, 1, PROJECTS[0])) for agent in MINE}
    vault.reindex()
    for agent in MINE:
        text = vault.page(page(agent))
        assert f"session={key or session_id}" in text
        (vault / page(agent)).write_text(text.replace("# Working Memory", "# Working Memory\n\nmy own line", 1))
    vault.reindex()
    ((kept,),) = ([*vault.root.glob("agents/scout/MEMORY.user-*")],)
    before = kept.read_bytes()
    if vanished:
        for path in paths["default"]:
            (vault / path).unlink()
        vault.reindex()
    answer = own(vault, "default", "remove", session_id, "--reason", "asked", "--yes", "--now", NOW)
    assert answer["foreign"] == []
    assert kept.read_bytes() == before
    (mine,) = vault.root.glob("MEMORY.user-*")
    assert "my own line" in mine.read_text() and MINE["default"] not in mine.read_text()


def test_a_session_that_moves_to_another_agent_takes_nothing_along(vault: Vault) -> None:
    """What the first agent pinned, remembered and was told of stays its own; the other begins with the words alone."""
    who = {"session_id": "5e551001-0000-4000-8000-000000000000", "session_key": "agent:main:main",
           "captured_at": "2026-03-20T10:00:00.000Z"}  # fmt: skip
    first = vault.put(files_of("default", who, 1, PROJECTS[0]))
    vault.reindex()
    fact = next(one for one in ids_of(vault, "default") if one[0] == "f")
    own(vault, "default", "pin", fact, "--now", NOW)
    own(vault, "default", "expand", fact)
    own(vault, "default", "remember", "Ask first.", "--session", who["session_id"], "--now", NOW)
    for path in first:
        (vault / path).unlink()
    vault.put(files_of("scout", who, 1, PROJECTS[0]))
    vault.reindex()
    assert "pinned" not in vault.page(page("scout")) and "Ask first" not in vault.page(page("scout"))
    moved = rows_of(vault, "scout")
    assert not moved["pins"] and not moved["memories"] and not moved["node_telemetry"]
    refused(vault, "scout", "expand", fact)
    assert "error" not in own(vault, "default", "remove", who["session_id"], "--reason", "asked", "--yes", "--now", NOW)
    assert rows_of(vault, "scout") == moved
    assert own(vault, "scout", "expand", who["session_id"])["node"]["agent_id"] == "scout"
