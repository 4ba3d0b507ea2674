"""`checkpoint` and `history` as a person meets them, and the commits that come by themselves."""

from __future__ import annotations

import math
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from agents import Inside, until
from history_vault import git as run_git
from session_inputs import end
from workbench import ROOT, Vault, contents

from signet_sync.admin.doctor import examine
from signet_sync.app.workspace import open_to_write
from signet_sync.formats.timestamps import SECOND, iso, parse_instant
from signet_sync.history import operations as history_operations
from signet_sync.history import scheduler
from signet_sync.memories.score import Promotion, sweep_id
from signet_sync.memories.store import promotions
from signet_sync.sessions import store as results
from signet_sync.settings.model import load
from signet_sync.storage import state_dir
from signet_sync.storage.locations import now_us
from signet_sync.sync.workspace import Workspace

git = shutil.which("git")


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """An empty vault whose history is on."""
    pytest.importorskip("pygit2")
    monkeypatch.setenv("SIGNET_HISTORY_ENABLED", "true")
    return Vault(tmp_path / "vault")


def checkpoint(vault: Vault, *words: str) -> Any:
    answer = vault.call("checkpoint", "--json", *words)
    assert answer.code == (0 if answer.json["ok"] else 2), answer
    return answer.json


def commits(vault: Vault, *options: str) -> list[dict[str, str]]:
    answer = vault.call("history", "--json", *options)
    assert answer.code == 0, answer
    return list(answer.json["commits"])


def subjects(vault: Vault) -> list[str]:
    return [commit["subject"] for commit in commits(vault)]


def note(vault: Vault, text: str, path: str = "notes.md") -> Path:
    place = vault / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


# ── checkpoint ──


def test_history_is_off_unless_the_user_turns_it_on(vault, monkeypatch):
    monkeypatch.delenv("SIGNET_HISTORY_ENABLED")
    note(vault, "[history]\nenabled = true\n", "signet-sync.toml")
    answer = vault.call("checkpoint", "--json", "a", "note")
    assert answer.code == 2
    assert answer.json["ok"] is False and answer.json["skipped"] is True
    assert answer.json["reason"] == "history-disabled" and answer.json["oid"] is None
    assert "history.enabled" in answer.err and "settings history.enabled true" in answer.err.splitlines()[-1]
    assert vault.call("history", "--json").json == {"commits": []}
    end(vault)
    assert not (vault / ".git").exists()


def test_checkpoint_commits_what_changed_and_history_lists_it(vault):
    assert checkpoint(vault, "nothing yet")["skipped"] and subjects(vault) == ["workspace init"]
    note(vault, "first\n")
    done = checkpoint(vault, "before", "the", "move")
    assert done["ok"] and not done["skipped"] and done["skipped_files"] == []
    assert done["subject"] == "checkpoint: before the move" and done["reason"] is None
    newest = commits(vault)[0]
    assert newest["oid"].startswith(done["oid"]) and newest["short_oid"] == done["oid"] and len(done["oid"]) == 7
    assert newest["author"] == "default" and newest["body"].startswith("manual checkpoint at 20")
    before = contents(vault / ".git")
    again = checkpoint(vault, "again")
    assert again["ok"] and again["skipped"] and again["oid"] is None and contents(vault / ".git") == before
    assert again["reason"] == "workspace tree is clean; no commit created"
    note(vault, "second\n")
    with workspace(vault) as held:
        history_operations.checkpoint(held, "ori", "a note\nof two lines", NOW)
    newest = commits(vault)[0]
    assert (newest["subject"], newest["author"]) == ("checkpoint: a note of two lines", "ori")
    assert newest["body"] == f"manual checkpoint at {iso(NOW)}" and newest["timestamp"] == iso(NOW)
    answer = vault.call("history", "--diff", "--limit", "2", "--json").json
    assert len(answer["commits"]) == 2 and "+second" in answer["diff"] and "-first" in answer["diff"]
    assert "diff" not in vault.call("history", "--json").json
    shown = vault.call("history", "--diff", "--limit", "2").out
    assert "checkpoint: a note of two lines  (ori)" in shown.splitlines()[0] and "+second" in shown


@pytest.mark.skipif(not git, reason="needs git")
def test_a_repository_that_was_there_is_left_alone(vault):
    run_git(vault.root, "init", "-q", "-b", "main")
    note(vault, "mine\n")
    run_git(vault.root, "add", "notes.md")
    run_git(vault.root, "commit", "-q", "-m", "mine")
    note(vault, "changed\n")
    before = contents(vault / ".git")
    done = checkpoint(vault)
    assert (done["ok"], done["skipped"], done["reason"]) == (False, True, "existing-repository")
    assert contents(vault / ".git") == before
    assert "commit with git" in vault.call("checkpoint").err
    for command in (("history",), ("history", "forget", "--yes")):
        assert vault.call(*command, "--json").json["error"]["code"] == "existing-repository"
    assert contents(vault / ".git") == before


def test_without_the_extra_there_is_a_remedy(vault, tmp_path):
    note(vault, "A plan.\n")
    absent = tmp_path / "absent"
    absent.mkdir()
    (absent / "sitecustomize.py").write_text("import sys\nsys.modules['pygit2'] = None\n")
    environ = {"PYTHONPATH": f"{absent}{os.pathsep}{ROOT}"}
    answer = vault.spawn("checkpoint", "--json", "a note", environ=environ)
    assert answer.code == 2, answer
    assert "pip install 'signet-sync[git]'" in answer.json["error"]["hint"] and not (vault / ".git").exists()


def test_doctor_says_where_the_history_stands(vault, monkeypatch):
    def found() -> tuple[str, str, bool]:
        (one,) = [one for one in examine(str(vault.root), str(vault.db)) if one.name == "history"]
        return one.level, one.message, bool(one.remedy)

    assert found() == ("ok", "on", False)
    (vault / ".git").write_text("gitdir: /elsewhere\n")
    level, message, remedy = found()
    assert level == "problem" and "points elsewhere" in message and remedy
    monkeypatch.setenv("SIGNET_HISTORY_ENABLED", "false")
    assert found() == ("ok", "off", False)


# ── commits that come by themselves ──

NOW = parse_instant("2026-04-24T03:00:00Z") or 0


def workspace(vault: Vault) -> Any:
    return open_to_write(str(vault.root), load(str(vault.root))[0])


def ended(held: Workspace, key: str, at_us: int, agent: str = "default") -> None:
    with held.database.transaction():
        results.record(
            held.database,
            agent_id=agent,
            flow_key=f"flow {key} {at_us}",
            kind="end",
            session=("t" * 16, key),
            answer=results.RecordedAnswer("", {}),
            at=iso(at_us),
        )


def test_a_session_end_without_an_agent_is_committed(vault, monkeypatch):
    assert vault.call("entity", "create", "part", "Ada").code == 0
    end(vault, session_id="s1", session_key="lantern-42")
    newest = commits(vault)[0]
    assert newest["subject"] == "session-close: lantern-42" and newest["author"] == "default"
    assert newest["body"].splitlines()[0] == "- lantern-42 (agent default)"
    import pygit2

    held = [entry.path for entry in pygit2.Repository(str(vault / ".git")).index]
    assert any(path.endswith("--summary.md") for path in held) and "MEMORY.md" in held
    assert not any(path.endswith("--transcript.md") for path in held)
    # The names of its events look like secrets, and are none.
    assert any(path.startswith("entities/ledger/") for path in held)
    monkeypatch.setenv("SIGNET_HISTORY_AUTHOR_NAME", "Ada")
    monkeypatch.setenv("SIGNET_HISTORY_AUTHOR_EMAIL", "ada@example.org")
    note(vault, "A plan.\n")
    checkpoint(vault)
    newest = pygit2.Repository(str(vault / ".git")).head.peel(pygit2.Commit)
    assert (newest.author.name, newest.author.email) == ("Ada", "ada@example.org")
    assert newest.parents[0].author.email == "agent@localhost"


def test_a_session_end_beside_an_agent_is_left_to_it_and_it_tries_again_after_a_commit_that_failed(vault, monkeypatch):
    end(vault, session_id="s1")
    with state_dir.run_lock(state_dir.locate(str(vault.root))):
        end(vault, session_id="s2", transcript="# Another\n\nSomething else.\n")
    assert [one for one in subjects(vault) if "session" in one] == ["session-close: s1"]
    for name in ("QUIET", "RETRY_WAIT", "_MOMENT"):
        monkeypatch.setattr(scheduler, name, 0.1)
    git, aside = vault / ".git", vault.root.parent / "aside"
    with workspace(vault) as held:
        agent = scheduler.CommitScheduler(held)

        def trouble() -> str:
            if agent.due <= time.monotonic():
                agent.run_due()
            return agent._last_error

        git.rename(aside)
        git.write_text("gitdir: /elsewhere\n")
        agent.note_change()
        assert "elsewhere" in until(trouble, "it failed")
        git.unlink()
        aside.rename(git)
        until(lambda: not trouble(), "it succeeded")
        assert agent.due == math.inf and not history_operations.is_due(held, now_us())
    assert subjects(vault)[0] == "session-close: s2"


def test_every_end_is_told_once_whenever_it_is_written_down(vault):
    with workspace(vault) as held:
        note(vault, "1")
        ended(held, "a", NOW - 10 * SECOND)
        ended(held, "b", NOW - 5 * SECOND, "ori")
        first = history_operations.commit_ends(held, NOW)
        assert first is not None and first.subject == "session-close: b and 1 more"
        # A slow model held it up: it was begun before the others.
        note(vault, "2")
        ended(held, "c", NOW - 60 * SECOND)
        assert history_operations.is_due(held, NOW)
        second = history_operations.commit_ends(held, NOW)
        assert second is not None and second.subject == "session-close: c"
        # The clock was ahead by a year, and is set right.
        note(vault, "3")
        year = 365 * 86_400 * SECOND
        ended(held, "d", NOW + year)
        assert history_operations.commit_ends(held, NOW + year) is not None
        assert history_operations.commit_ends(held, NOW + year) is None
        ended(held, "e", NOW + 2 * SECOND)
        assert history_operations.is_due(held, NOW + 3 * SECOND)
    listed = commits(vault)
    assert listed[2]["body"].splitlines() == ["- a (agent default)", "- b (agent ori)"]
    assert listed[2]["author"] == "ori"


def risen(held, agent, *memories, at=NOW):
    """What a sweep has written into the ledger."""
    found = [Promotion(memory, 0.7310, 5, 0.9, 0.5, 0.7, 0.6, 3, 3, at) for memory in memories]
    with held.database.transaction():
        promotions.store(held.database, agent, (sweep_id(at), at, 9, len(found), 0), found)


def test_a_dream_is_committed_once_without_a_word_of_its_memories(vault):
    with workspace(vault) as held:
        note(vault, "page", "MEMORY.md")
        assert history_operations.commit_promotions(held, NOW) is None
        risen(held, "ori", "m-abc")
        assert history_operations.is_due(held, NOW)
        done = history_operations.commit_promotions(held, NOW)
        assert done is not None and done.ok and not history_operations.is_due(held, NOW)
        assert history_operations.commit_promotions(held, NOW + SECOND) is None
        note(vault, "another page", "MEMORY.md")
        risen(held, "ori", "m-def", "m-ghi", at=NOW + SECOND)
        history_operations.commit_promotions(held, NOW + SECOND)
    second, first = commits(vault)[:2]
    assert (first["subject"], first["author"]) == ("promote: 1 memory", "ori")
    assert first["body"] == "m-abc score 0.73, 5 hits on 3 days"
    assert second["subject"] == "promote: 2 memories" and "m-def" in second["body"] and "m-abc" not in second["body"]


def test_a_dream_or_an_end_is_not_undone_by_a_history_that_fails(vault):
    (vault / ".git").write_text("gitdir: /elsewhere\n")
    with workspace(vault) as held:
        risen(held, "default", "m-abc")
        history_operations.close_dreams(held, NOW)
        assert any("the history was not written" in text for text in held.events)
        assert history_operations.is_due(held, NOW), "it is told by the next commit that comes through"
    assert end(vault)["sentence"]


def test_the_agent_commits_when_it_has_been_quiet(vault, monkeypatch):
    monkeypatch.setattr(scheduler, "QUIET", 0.1)
    with Inside(vault) as agent:
        agent.wait("watching", "polling")
        end(vault, session_id="s1", session_key="lantern-42")
        until(lambda: "session-close: lantern-42" in subjects(vault), "the commit")
