"""Two agents with equal keys, ids and projects: nothing of the one is ever shown to the other, or changes for it."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import artifacts_fixture as made
import pytest
from workbench import NOW, Vault

MINE = {"default": "heronword", "scout": "plumeword"}
OTHER = {"default": "scout", "scout": "default"}
KEYS = (None, "agent:main:main", "shared-key")
PROJECTS = ("/home/ada/code/lantern", None)
HANDLE = re.compile(r"\^([a-z]-[a-z2-7]{6}(?:[a-z2-7]{6})?)\b")


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


def own(vault: Vault, agent: str, *arguments: str, given: bytes | None = None) -> Any:
    """The answer of a command to an agent, which must not hold a word of the other but in what was asked."""
    answer = vault.call(*arguments, "--agent", agent, "--json", given=given)
    document = answer.json
    told = {name: value for name, value in document.items() if name != "query"}
    assert MINE[OTHER[agent]] not in (json.dumps(told) + answer.err).lower(), (arguments, agent)
    return document


def refused(vault: Vault, agent: str, *arguments: str) -> None:
    """A command that finds nothing of that name, and says so without a word of whose it is."""
    answer = own(vault, agent, *arguments)
    assert answer["error"]["code"] in ("unknown-handle", "not-a-memory", "unknown-session"), answer


def ids_of(vault: Vault, agent: str) -> list[str]:
    """Every id of an agent that a handle may stand for."""
    places = {"session_summaries": "id", "memory_thread_heads": "thread_id", "statements": "id",
              "memories": "id"}  # fmt: skip
    sql = "select distinct {column} from {table} where agent_id = ? order by 1"
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
    line = json.dumps(said).encode()
    return own(vault, agent, "transcript", "append", "--session-key", key, *options, given=line)


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
            for command in (["recall"], ["recall", "--words"]):
                own(vault, agent, *command, question)
        assert own(vault, agent, "recall", MINE[OTHER[agent]])["hits"] == []
        assert any("#" in hit["id"] for hit in own(vault, agent, "recall", "live turn")["hits"])
        own(vault, agent, "context")
        own(vault, agent, "context", "--scope", "shared")
    assert not set(ids_of(vault, "default")) & set(ids_of(vault, "scout"))
    for agent, other in OTHER.items():
        path = vault.rows("select min(source_path) from memory_artifacts where agent_id = ?", agent)[0][0]
        token = path.split("--")[1]
        kinds = {one[0]: one for one in ids_of(vault, agent)}
        chosen = [*kinds.values(), *sorted(handles[agent])[:2]]
        assert len(kinds) > 5
        for handle in chosen:
            assert own(vault, agent, "expand", handle)["node"]["agent_id"] == agent
        for name in (*chosen, f"^{chosen[0]}", chosen[1][:9], path, path.removeprefix("memory/"), token,
                     f"[[{path}|summary]]", f"[[MEMORY#^{chosen[2]}]]"):  # fmt: skip
            for command in (["expand"], ["pin"], ["pin", "--remove"], ["forget"]):
                refused(vault, other, *command, name)
        for name in (path, token):
            refused(vault, other, "remember", "Of another.", "--session", name)
            refused(vault, other, "remove", name, "--reason", "asked", "--yes")
        for who in {who["session_key"]: who for who in written}.values():
            for name in filter(None, (who["session_id"], who["session_key"], who["session_id"][:8])):
                own(vault, agent, "expand", name)
                own(vault, agent, "open", name)


# ── nothing changes ─────────────────────────────────────────────────────────────────────────────────────────────────


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
    assert answer["removals"][0]["foreign"] == []
    assert kept.read_bytes() == before
    (mine,) = vault.root.glob("MEMORY.user-*")
    assert "my own line" in mine.read_text() and MINE["default"] not in mine.read_text()
