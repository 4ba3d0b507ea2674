"""A secret planted wherever text comes in stands nowhere but in its own file; what we make only its owner may read."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import artifacts_fixture as made
import pytest
from agents import Inside
from session_inputs import compact, end
from workbench import NOW, Vault, holding, tree

from signet_sync.capture import spool
from signet_sync.capture.spool import Job

ID = "5ec2e700-0000-4000-8000-000000000007"
ALNUM = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def drawn(place: str, length: int) -> str:
    return "".join(Random(place).choices(ALNUM, k=length))


# As providers write them; which one stands where is drawn, so that every place meets another shape.
SHAPES: list[Callable[[str], str]] = [
    lambda place: f"ghp_{drawn(place, 36)}",
    lambda place: f"sk-ant-api03-{drawn(place, 93)}AA",
    lambda place: (
        f"xoxb-{drawn(place, 12).translate(str.maketrans(ALNUM, '0123456789' * 6 + '01'))}-{drawn(place, 24)}"
    ),
    lambda place: f"AKIA{drawn(place, 16).upper()}",
    lambda place: f"glpat-{drawn(place, 20)}",
    lambda place: f"npm_{drawn(place, 36)}",
]
# What a person or a program says, and what the machine tells.
SAID = ("summary", "transcript", "compaction", "sentence", "project", "on disk", "on disk sentence", "on disk project",
        "on disk key", "harness", "live", "remembered", "tag", "asked", "entity", "entity name", "evidence", "reason",
        "pruned", "hook", "note", "bad input", "bad frontmatter", "bad field")  # fmt: skip
MACHINE = ("model key", "environment", "git author", "git remote", "bad setting", "command")
SECRETS = {place: SHAPES[number % len(SHAPES)](place) for number, place in enumerate((*SAID, *MACHINE))}
# What full text would keep of it: its longest word in small letters, without those that it shares with another one.
NEEDLES = {place: max(re.split(r"[-_]", secret), key=len)[5:].lower() for place, secret in SECRETS.items()}


ANSWERING = (
    f"""
reindex --json;reindex --full;check;check --json;status;status --json;doctor;context;render
violations list;history;entity check;entity log;hooks status auto;open {ID}
""".strip()
    .replace("\n", ";")
    .split(";")
)


class Scene:
    """A vault into which a secret was put at every place, and all that was answered meanwhile."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.vault = Vault(root)
        self.said: list[str] = []
        self.monkeypatch = monkeypatch
        self.machine()
        self.files()
        self.words()
        self.mistakes()
        for words in ANSWERING:
            self.ask(*words.split())

    def ask(self, *words: str, raw: bytes = b"") -> Any:
        answer = self.vault.call(*words, given=raw)
        self.said.append(answer.out + answer.err)
        return answer

    def machine(self) -> None:
        """Settings, environment, git: what belongs to the person who runs us."""
        config = Path(os.environ["SIGNET_CONFIG"])
        config.parent.mkdir(parents=True)
        config.write_text("[history]\nenabled = true\n")
        self.monkeypatch.setenv("ANTHROPIC_API_KEY", SECRETS["environment"])
        self.monkeypatch.setenv("SIGNET_LLM_API_KEY", SECRETS["model key"])
        home = Path(os.environ["HOME"])
        home.mkdir(parents=True, exist_ok=True)
        (home / ".gitconfig").write_text(f"[user]\n\tname = {SECRETS['git author']}\n\temail = ada@example.org\n")
        for words in (
            ["init", "-q"],
            ["remote", "add", "origin", f"https://ada:{SECRETS['git remote']}@example.org/v.git"],
        ):
            subprocess.run(["git", "-C", self.vault.root, *words], check=True, capture_output=True)

    def files(self) -> None:
        """What other programs wrote, who redact nothing."""
        self.vault.session(
            1,
            body=f"# Keys\n\n## Decisions\n\n- The queue is read with {SECRETS['on disk']} from now on.\n",
            memory_sentence=f"In lantern the loop of src/queue.py reads {SECRETS['on disk sentence']} so that it ends.",
            project=f"/home/ada/{SECRETS['on disk project']}",
            session_key=f"key {SECRETS['on disk key']}",
        )
        self.vault.session(2)
        name, raw = made.summary(session_id="b0000000-0000-4000-8000-000000000001")
        self.vault.put((name, raw.replace(b"kind:", f"{SECRETS['bad frontmatter']}\nkind:".encode(), 1)))
        name, raw = made.summary(session_id="b0000000-0000-4000-8000-000000000002",
                                 started_at=f"at {SECRETS['bad field']}")  # fmt: skip
        self.vault.put((name, raw))

    def words(self) -> None:
        """What is said to us."""
        who = {"session_id": ID, "project": f"/home/ada/{SECRETS['project']}", "harness": SECRETS["harness"]}
        end(
            self.vault,
            **who,
            captured_at="2026-03-25T10:00:00.000Z",
            transcript=f"## User\n\nUse {SECRETS['transcript']} for src/queue.py.\n",
            summary=f"# Queue\n\n## Decisions\n\n- The token is {SECRETS['summary']} for now.\n",
            memory_sentence=f"In lantern the loop of src/queue.py reads {SECRETS['sentence']} so that it ends at last.",
        )
        compact(self.vault, **who, captured_at="2026-03-25T11:00:00.000Z", compaction=f"Use {SECRETS['compaction']}.")
        (self.vault.root.parent / "input.json").unlink()
        line = json.dumps({"turn": 0, "role": "user", "text": SECRETS["live"], "at": NOW}).encode() + b"\n"
        self.ask("transcript", "append", "--session-key", "k", raw=line)
        kept = f"The queue of lantern is read with {SECRETS['remembered']} at night."
        assert self.ask("remember", kept, "--json").code == 0
        assert self.ask("remember", kept, "--tag", SECRETS["tag"], "--json").code == 2
        self.ask("recall", f"token {SECRETS['asked']}")
        told = json.loads(self.ask("entity", "create", "user", f"Ada {SECRETS['entity name']}", "--json").out)
        self.ask("entity", "append", told["id"], "Preferences", "--text", f"Uses {SECRETS['entity']} a lot.")
        self.ask("entity", "append", told["id"], "Evidence", "--text", f"Why {SECRETS['evidence']}")
        self.ask("entity", "prune", told["id"], "Evidence", "1", "--reason", f"for {SECRETS['pruned']}")
        self.ask("checkpoint", f"note {SECRETS['note']}")
        told = {"hook_event_name": "PreCompact", "session_id": "h1", "cwd": "/home/ada", "transcript_path": "/nowhere"}
        said = dict.fromkeys(("custom_instructions", "prompt"), SECRETS["hook"])
        self.ask("hook", "claude-code", raw=json.dumps(told | said).encode())
        job = Job(event="compact", harness="claude-code", session_id="s1", agent_id="default", at=NOW)
        spool.put(str(self.vault.state / "spool"), job)
        self.ask("session", "take-spool")
        self.ask("remove", "5e551002", "--reason", f"it held {SECRETS['reason']}", "--yes")

    def mistakes(self) -> None:
        """What is refused is told in words that do not repeat it."""
        bad = json.dumps({"session_id": ID, "transcript": 7, SECRETS["bad input"]: SECRETS["bad input"]}).encode()
        assert self.ask("session", "end", "--json", raw=bad).code == 2
        self.monkeypatch.setenv("SIGNET_RECONCILE_INTERVAL", SECRETS["bad setting"])
        assert self.ask("reindex").code == 2
        self.monkeypatch.delenv("SIGNET_RECONCILE_INTERVAL")
        self.monkeypatch.setenv("SIGNET_LLM_PROVIDER", "command")
        self.monkeypatch.setenv("SIGNET_LLM_COMMAND", f'["false", "{SECRETS["command"]}"]')
        self.ask("reindex")
        for name in ("SIGNET_LLM_PROVIDER", "SIGNET_LLM_COMMAND"):
            self.monkeypatch.delenv(name)

    def leaks(self) -> list[tuple[str, str]]:
        """Files of ours, and answers, that hold a secret; artifacts stay as whoever wrote them made them."""
        theirs = {path for path in self.vault.memory.glob("*.md") if "b0000000" in path.read_text(errors="replace")}
        theirs |= {self.vault.root / path for path in made_by_others()} | {self.vault.root / ".git/config"}
        places = {needle.encode(): place for place, needle in NEEDLES.items()}
        held = holding(places, self.vault.root, Path(os.environ["SIGNET_STATE"]))
        found = [(path.name, places[needle]) for needle, path in held if path not in theirs]
        said = "\n".join(self.said).lower()
        return found + [("an answer", at) for at, needle in NEEDLES.items() if needle in said]


def made_by_others() -> list[str]:
    from workbench import numbered

    given = {name: value for name, value in numbered(1).items() if name in ("session_id", "captured_at")}
    key = f"key {SECRETS['on disk key']}"
    return [made.path_for(kind, **given, session_key=key) for kind in ("summary", "transcript", "manifest")]


def test_no_secret_leaves_the_file_that_it_was_written_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path / "vault", monkeypatch)
    assert len(scene.said) > 25 and scene.vault.hits("queue")
    assert scene.leaks() == []


# ── who may read what we make ──


@pytest.fixture(params=[0o000, pytest.param(0o077, marks=pytest.mark.slow)], ids=["000", "077"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(*roots: Path) -> dict[str, int]:
    found = {str(root / path): int(entry[0], 8) for root in roots for path, entry in tree(root).items()}
    return {path: stat.S_IMODE(mode) for path, mode in found.items()} | {
        str(root): stat.S_IMODE(root.stat().st_mode) for root in roots
    }


def test_all_that_we_make_is_for_its_owner_alone_whatever_the_umask(
    tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "vault"
    (root / "memory").mkdir(parents=True)
    vault = Vault(root)
    vault.session(2)
    (root / "MEMORY.md").write_text("Mine.\n")
    theirs = {"MEMORY.md": 0o644, "memory": 0o755, ".": 0o751, **{
        str(path.relative_to(root)): 0o640 for path in vault.memory.iterdir()
    }}  # fmt: skip
    for path, mode in theirs.items():
        (root / path).chmod(mode)
    state = Path(os.environ["SIGNET_STATE"])
    os.environ["SIGNET_HISTORY_ENABLED"] = "true"
    monkeypatch.setenv("SIGNET_HISTORY_ENABLED", "true")
    with Inside(vault) as agent:
        agent.wait("watching")
        made_by_all_commands(vault)
        agent.settled()
        found = modes(root, state)
    found |= modes(root, state)
    kinds = {Path(path).suffix or Path(path).name for path in found}
    assert {".db", ".db-wal", ".db-shm", ".lock", ".log", ".jsonl", "spool", "journal", "backups", "ledger"} <= kinds
    wrong = {
        os.path.relpath(path, tmp_path): oct(mode)
        for path, mode in found.items()
        if path not in {str(root / name) for name in theirs} and mode & 0o077
    }
    assert wrong == {}
    kept = {path: mode for path, mode in theirs.items() if (root / path).exists()}
    assert len(kept) == 3, "what was removed is gone"
    assert {path: stat.S_IMODE((root / path).stat().st_mode) for path in kept} == kept, "theirs stay as they were"


def made_by_all_commands(vault: Vault) -> None:
    end(vault, session_id=ID, transcript="## User\n\nWhy does src/queue.py of lantern never drain?\n")
    compact(vault, session_id=ID, compaction="# Queue\n\n- lantern bounds the retry loop of src/queue.py.\n")
    for words in (["remember", "Ada wants short answers.", "--session", ID], ["recall", "answers"], ["dream"],
                  ["entity", "create", "user", "Ada"], ["checkpoint", "first"], ["reindex", "--full"],
                  ["remove", "5e551002", "--reason", "asked for", "--yes"]):  # fmt: skip
        answer = vault.call(*words)
        assert answer.code == 0, answer
    spool.put(str(vault.state / "spool"), Job(event="compact", harness="codex", session_id="s", agent_id="default",
                                              at=NOW, compaction="We bound the loop of src/queue.py now."))  # fmt: skip
    assert vault.call("session", "take-spool").code == 0
