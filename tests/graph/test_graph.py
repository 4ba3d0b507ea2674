"""The temporal graph follows the artifacts: what passes build bit by bit is what one pass builds from nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import artifacts_fixture as made
import pytest
from workbench import NOW, Vault

SHARED = Path(__file__).resolve().parents[3] / "shared"
GRAPH = (
    "session_summaries", "session_summary_children", "thread_sessions", "memory_thread_heads", "session_projects",
)  # fmt: skip
TABLES = (
    *GRAPH, "statements", "texts",
)  # fmt: skip
PROJECTS = ("/home/ada/code/lantern", "/home/ada/code/lantern/docs", "/home/ada/code/prism", None)


def body(random: Random) -> str:
    """Headings and items out of few words, so that items of sessions meet, supersede and close each other."""
    words = ["queue", "lease", "ledger", "SQLite", "Postgres", "src/queue.py", "#12"]
    lines = ["# " + " ".join(random.choices(words, k=3))]
    for heading in random.sample(["Decisions", "Next steps", "Open questions", "Blockers", "People"], k=3):
        lines += ["", f"## {heading}", ""]
        for _ in range(random.randint(1, 3)):
            tick = random.choice(["", "", "[x] "])
            start = random.choice(["Database: ", "", "Use ", "The queue limit is now 5 for ", "No longer use "])
            if heading == "Blockers":
                start = random.choice(["", "Waits for the queue lease of "])
            lines.append(f"- {tick}{start}{' '.join(random.choices(words, k=2))}")
    if random.random() < 0.5:
        done = random.choice(["The queue lease was merged.", "Use of the ledger queue is done.", "#12 is merged."])
        lines += ["", "## Outcome", "", f"- {done}"]
    return "\n".join(lines) + "\n"


WORDS = ["why", "queue", "drains", "lease", "five"]


def talk(random: Random) -> str:
    turns = [
        f"## {'Assistant' if number % 2 else 'User'} · 2026-03-01T10:{number:02d}:00.000Z\n\n"
        + " ".join(random.choices(WORDS, k=random.choice([5, 40, 900])))
        for number in range(random.randint(1, 5))
    ]
    # One that changed something is counted as working. What is a dead end in one session works in another.
    ran = "- `Bash` · 2026-03-01T10:00:40.000Z · `oil run wick`"
    how = " · failed\n  ```\n  error: unrecognized subcommand\n  ```" if len(turns) % 2 else ""
    turns[1:1] = [f"- `Edit` · 2026-03-01T10:00:30.000Z · `src/{random.choice(WORDS)}.py`", ran + how]
    return "\n\n".join(turns) + "\n"


ORIGINS = ["example.org/ada/lantern", "example.org/ada/wick"]


def files_of(random: Random, number: int) -> dict[str, bytes]:
    """Some artifacts of one session of one of two agents, some of them under a constant key."""
    who: dict[str, Any] = {
        "agent_id": random.choice(["default", "scout"]),
        "session_id": f"5e5510{number % 7:02d}-0000-4000-8000-000000000000",
        "session_key": random.choice([None, "agent:main:main"]),
        "captured_at": f"2026-{random.randint(9, 11):02d}-{random.randint(1, 28):02d}T10:{number:02d}:00.000Z",
    }
    more = {"project": random.choice(PROJECTS), "harness": random.choice(["codex", "claude-code"])}
    if random.random() < 0.4:
        root, origin = random.choice([*filter(None, PROJECTS), "/home/ada/code"]), random.choice([None, *ORIGINS])
        more |= {"repository_root": root, "repository_origin": origin, "repository_path": ""}
    makers = [("summary", body), ("compaction", body), ("transcript", talk)]
    chosen = random.sample(makers, k=random.randint(1, 3))
    return dict(made.content(kind, **who, **more, body=make(random)) for kind, make in chosen)


def graph_of(dump: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [row for row in dump if row[0] in TABLES]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_bit_by_bit_is_as_all_at_once(vault: Vault, seed: int) -> None:
    random = Random(seed)
    standing: list[str] = []
    for step in range(12):
        for number in range(random.randint(1, 4)):
            standing += vault.put(files_of(random, step * 4 + number))
        for path in random.sample(sorted(set(standing)), k=random.randint(0, 2)):
            (vault / path).unlink(missing_ok=True)
        if step == 8:
            token = random.choice(sorted({path.split("--")[1] for path in standing if (vault / path).exists()}))
            for agent in ("default", "scout"):
                vault.call("remove", token, "--agent", agent, "--reason", "asked", "--yes")
        vault.reindex("--now", NOW)
        if step % 4 == 3:
            assert graph_of(vault.dump()) == graph_of(vault.dump_from_scratch())
    assert {row[0] for row in vault.dump()} >= set(TABLES)
    before = vault.dump()
    vault.reindex("--full")
    assert vault.dump() == before


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real vaults are not here")
@pytest.mark.slow
def test_the_graph_of_a_real_vault_is_the_same_however_it_was_built(vault: Vault) -> None:
    names = sorted(path for path in (SHARED / "vaults/signet-small/memory").glob("*.md"))
    for start in range(0, len(names), 24):
        for path in names[start : start + 24]:
            shutil.copyfile(path, vault.memory / path.name)
        vault.call("reindex", "--now", NOW)
    assert graph_of(vault.dump()) == graph_of(vault.dump_from_scratch())
    assert len(graph_of(vault.dump())) > 200
