"""Two agents with equal keys, ids and projects: nothing of the one is ever shown to the other."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from random import Random
from typing import Any

import artifacts_fixture as made
import pytest
from endings import say
from workbench import Vault

from signet_sync.contracts.tokens import derive_token

MINE = {"default": "heronword", "scout": "plumeword"}
KEYS = (None, "agent:main:main", "shared-key")
PROJECTS = ("/home/ada/code/lantern", None)
HANDLE = re.compile(r"\^([a-z]-[a-z2-7]{12})")


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault")


def summary(agent: str, number: int) -> str:
    word = MINE[agent]
    return (
        f"# Queue of {word} {number}\n\n## Decisions\n\n- Database: {word} holds lantern number {number}\n\n"
        f"## People\n\n- {word.title()}: keeps src/queue.py\n\n## Next steps\n\n- Ask {word} about #{number}\n"
    )


def sessions(random: Random, vault: Vault) -> list[dict[str, Any]]:
    """The same sessions for both agents, each in its own words."""
    written = []
    for number in range(6):
        who: dict[str, Any] = {
            "session_id": f"5e5510{number:02d}-0000-4000-8000-000000000000",
            "session_key": random.choice(KEYS),
            "captured_at": f"2026-03-{random.randint(1, 28):02d}T10:{number:02d}:00.000Z",
        }
        project = random.choice(PROJECTS)
        for agent, word in MINE.items():
            more = {"project": project, "harness": "codex", "agent_id": agent}
            sentence = f"In lantern the {word} of run {number} bounded src/queue.py so that the loop drains at last."
            turns = f"## User · {who['captured_at']}\n\nWhat does {word} say of run {number}?\n\n## Assistant · "
            turns += f"{who['captured_at']}\n\nThat {word} keeps src/queue.py.\n"
            vault.put(
                dict(
                    [
                        made.summary(**who, **more, body=summary(agent, number), memory_sentence=sentence),
                        made.transcript(**who, **more, body=turns, memory_sentence=sentence),
                    ]
                )
            )
        written.append(who)
    return written


def own(vault: Vault, agent: str, *arguments: str) -> Any:
    """The answer of a command to an agent, which must not hold a word of the other."""
    answer = vault.call(*arguments, "--agent", agent, "--json")
    other = MINE["scout" if agent == "default" else "default"]
    assert other not in (answer.out + answer.err).lower(), (arguments, agent)
    return answer.json


def rows_of(vault: Vault, agent: str) -> list[tuple[Any, ...]]:
    """Everything derived that names an agent."""
    found = []
    for table in ("memory_artifacts", "session_summaries", "session_summary_children", "thread_sessions",
                  "memory_thread_heads", "entities", "entity_mentions", "entity_attributes", "attribute_sources",
                  "relations", "memories", "memory_sources", "pins", "session_transcripts"):  # fmt: skip
        columns = "agent_id, source_path, content" if table == "memory_artifacts" else "*"
        found += [(table, *row) for row in vault.rows(f"select {columns} from {table} where agent_id = ?", agent)]
    found += [("line", *row) for row in vault.rows("select tier, id, text from recall_lines where agent_id = ?", agent)]
    return sorted(found, key=repr)


def page(agent: str) -> str:
    return "MEMORY.md" if agent == "default" else f"agents/{agent}/MEMORY.md"


def stream(monkeypatch: pytest.MonkeyPatch, vault: Vault, agent: str, key: str) -> None:
    said = {"turn": 0, "role": "user", "text": f"Tell {MINE[agent]} of the live turn.", "at": "2026-03-28T11:00:00Z"}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(said).encode() + b"\n")))
    own(vault, agent, "transcript", "append", "--session-key", key)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_crosses(vault: Vault, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random = Random(seed)
    written = sessions(random, vault)
    vault.reindex()
    for agent, word in MINE.items():
        own(vault, agent, "remember", f"Always ask {word} first.", "--type", "preference")
        stream(monkeypatch, vault, agent, "live-key")
    handles: dict[str, set[str]] = {}
    for agent in MINE:
        text = vault.page(page(agent))
        assert MINE[agent] in text.lower()
        assert MINE["scout" if agent == "default" else "default"] not in text.lower()
        handles[agent] = set(HANDLE.findall(text))
        assert len(handles[agent]) > 5
        for question in ("lantern queue", "heronword", "plumeword", "what keeps src/queue.py", "live turn"):
            own(vault, agent, "recall", question)
            own(vault, agent, "search", question)
            own(vault, agent, "context", "--prompt", question)
        own(vault, agent, "context")
        own(vault, agent, "graph", "--format", "json")
    assert not handles["default"] & handles["scout"]
    for agent, other in (("default", "scout"), ("scout", "default")):
        for handle in sorted(handles[agent]):
            assert own(vault, agent, "expand", handle)["node"]["agent_id"] == agent
            assert "error" in own(vault, other, "expand", handle)
            assert "error" in own(vault, other, "pin", handle)
        for who in written:
            for name in filter(None, (who["session_id"], who["session_key"])):
                own(vault, agent, "expand", name)
                own(vault, agent, "open", name)
    pinned = random.choice(sorted(handles["default"]))
    before = rows_of(vault, "scout")
    own(vault, "default", "pin", pinned)
    gone = random.choice(written)
    answer = vault.call("remove", gone["session_id"], "--reason", "asked", "--yes", "--json")
    assert answer.code == 0, answer
    assert rows_of(vault, "scout") == before
    token = derive_token("default", gone["session_key"], gone["session_id"])
    assert not vault.rows(
        "select 1 from session_summaries where agent_id = 'default' and session_token = ? and session_id = ?",
        token,
        gone["session_id"],
    )
    assert say(vault, agent_id="scout", session_id="after", captured_at="2026-03-28T13:00:00.000Z").code == 0
