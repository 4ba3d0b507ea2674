"""The repository of a session: found by its hook or at its capture, written once, without credentials."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from session_inputs import fields, moment, sound, written
from test_found_repository import NAME, git, needs_git, with_origin
from test_hook import jobs, payload, take
from test_intake import put
from test_intake import take as intake
from transcript_builder import SECRET, TranscriptBuilder, store
from workbench import Vault

from signet_sync.capture import spool
from signet_sync.capture.capture import repository_of
from signet_sync.capture.harnesses.reader import Conversation
from signet_sync.formats.artifact import REPOSITORY_FIELDS
from signet_sync.formats.ids import agent_for
from signet_sync.host import repository
from signet_sync.host.repository import Repository, resolve
from signet_sync.storage.durable import read_with_sum

KINDS = ("summary", "transcript", "manifest")


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A working tree with credentials in its origin."""
    place = with_origin(tmp_path / "lantern", f"https://ada:{SECRET}@example.org/ada/lantern.git")
    (place / "docs").mkdir()
    return place


def stored(vault: Vault, *kinds: str) -> list[tuple[Any, ...]]:
    """The fields of the newest file of each kind, but for the branch; None for one without them."""
    found = []
    for kind in kinds or KINDS:
        held = fields(vault, written(vault, kind)[-1])
        found.append(tuple(held[name] for name in REPOSITORY_FIELDS[:3]) if "repository_root" in held else None)
    return found


def everywhere(vault: Vault) -> bytes:
    return b"".join(path.read_bytes() for path in (*vault.root.rglob("*"), *vault.state.rglob("*")) if path.is_file())


def talk_in(project: Path | str) -> TranscriptBuilder:
    talk = TranscriptBuilder(store(Path(os.environ["HOME"])), project=str(project))
    talk.exchange(1)
    return talk


# ── hooks and jobs ──


def test_a_hook_hands_the_repository_over(vault: Vault, code: Path, tmp_path: Path) -> None:
    vault.reindex()
    talk = talk_in(code / "docs")
    take(vault, "claude-code", payload("Stop", talk.path, cwd=str(code / "docs")), "--strict")
    (job,) = jobs(vault)
    assert job.repository == Repository(str(code), NAME, "docs", "main")
    document = read_with_sum(Path(job.place).read_bytes())
    assert document["v"] == 1 and document["repository"] == [str(code), NAME, "docs", "main"]
    assert SECRET.encode() not in everywhere(vault)
    for cwd in (str(tmp_path), str(code / "gone"), "relative", 7):
        take(vault, "claude-code", payload("Stop", talk.path, cwd=cwd))
        assert jobs(vault)[-1].repository is None


def test_the_worktree_may_be_gone_when_its_session_is_captured(vault: Vault, code: Path) -> None:
    vault.reindex()
    talk = talk_in("/wt/tree")
    put(vault, talk, repository=Repository(str(code), NAME, ""))
    intake(vault)
    assert stored(vault) == [(str(code), NAME, "")] * 3
    sound(vault)
    assert vault.rows("select project from memory_artifacts group by 1") == [("/wt/tree",)]
    assert vault.rows("select project from memory_thread_heads") == [(NAME,)]


GONE, HEARD = "/wt/tree", Repository("/code/lantern", NAME, "docs", "main")
# What the harness recorded, the job's folder and repository; root, name, path and branch. `CODE` is a checkout.
FOUND: list[tuple[dict[str, str], tuple[str, Repository] | None, tuple[str, str, str, str | None] | None]] = [
    ({"project": "CODE"}, None, ("CODE", NAME, "", None)),
    ({"project": "CODE", "branch": "wick"}, None, ("CODE", NAME, "", "wick")),
    ({"project": "CODE", "branch": "old"}, ("CODE", HEARD._replace(root="CODE")), ("CODE", NAME, "docs", "main")),
    ({"project": "CODE", "branch": "wick"}, ("CODE", HEARD._replace(branch=None)), HEARD._replace(branch="wick")),
    ({"project": GONE}, (GONE, HEARD), HEARD),
    ({"project": GONE}, (f"{GONE}/docs/en", HEARD), HEARD._replace(path="")),
    ({"project": f"{GONE}/docs"}, (GONE, HEARD), HEARD._replace(path="")),
    ({"project": GONE}, (f"{GONE}2", HEARD), None),
    ({"project": GONE}, ("/elsewhere", HEARD), None),
    ({"project": "CODE/.worktrees/fix", "branch": "fix"}, None, ("CODE", NAME, "", "fix")),
    ({"project": GONE, "worktree_of": "CODE/docs"}, None, ("CODE", NAME, "", None)),
    ({"project": "CODE/.worktrees/fix", "remote": f"https://ada:{SECRET}@Example.org/Ada/Lantern"}, None,
     ("CODE", NAME, "", None)),
    ({"project": GONE, "remote": f"https://ada:{SECRET}@Example.org/Ada/Prism"}, None,
     (GONE, NAME.replace("lantern", "prism"), "", None)),
    ({"project": "/wt/../tree", "remote": "https://example.org/ada/prism"}, None, None), ({}, (GONE, HEARD), None),
]  # fmt: skip


def test_the_repository_is_the_one_that_a_hook_heard_of_else_what_the_harness_recorded(code: Path) -> None:
    """The branch, too: the session may be long over, and what is checked out now says nothing."""

    def here(text: str) -> str:
        return text.replace("CODE", str(code))

    for recorded, heard, found in FOUND:
        facts: dict[str, Any] = {"project": None, **{name: here(text) for name, text in recorded.items()}}
        job = None
        if heard is not None:
            known = heard[1]._replace(root=here(heard[1].root))
            job = spool.Job(cwd=here(heard[0]), repository=known)
        told = repository_of(Conversation("claude-code", "s", entries=(), **facts), job)
        assert told == (found and Repository(here(found[0]), *found[1:])), (recorded, heard)


# ── two views of one checkout ──


@needs_git
def test_a_link_and_a_worktree_are_views_of_one_project(vault: Vault, tmp_path: Path) -> None:
    """Whatever program ends the session, it names only the folder; the context asks from any of them."""
    main = tmp_path / "code" / "lantern"
    (main / "docs").mkdir(parents=True)
    git(main, "init")
    git(main, "commit", "--allow-empty", "-m", "one")
    git(main, "worktree", "add", str(tmp_path / "fix"))
    (tmp_path / "link").symlink_to(main)
    (tmp_path / "papers").symlink_to(main / "docs")
    views = [main, tmp_path / "fix", tmp_path / "link", tmp_path / "papers"]
    vault.put({})
    for number, view in enumerate(views):
        said = f"## User\n\nWe use tallow number {number}.\n\n## Assistant\n\nNoted: tallow number {number}.\n"
        given = {"session_id": f"s-{number}", "project": str(view), "transcript": said, "captured_at": moment(number)}
        assert vault.call("session", "end", "--json", "--input", written_to(tmp_path / "input", given)).code == 0
    assert vault.rows("select project, sessions from memory_thread_heads") == [(str(main), 4)]
    for view in views:
        assert f"number {len(views) - 1}" in vault.call("context", "--project", str(view), "--now", moment(9)).out, view
    rules = [f"{main}=scout"]
    assert {agent_for(repository.views(str(view), resolve(str(view))), {}, rules) for view in views} == {"scout"}


def written_to(place: Path, document: dict[str, Any]) -> str:
    place.write_text(json.dumps(document))
    return str(place)
