"""The repository of a session: found by its hook or at its capture, written once, without credentials."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from session_inputs import end, fields, moment, sound, written
from test_found_repository import NAME, git, needs_git, with_origin
from test_hook import jobs, payload, take
from test_intake import put
from test_intake import take as intake
from transcript_builder import SECRET, SESSION, TranscriptBuilder, import_, store
from workbench import Vault

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


@pytest.mark.parametrize(("project", "cwd", "inside", "path"), [
    ("/wt/tree", "/wt/tree/docs/en", "docs/en", ""),
    ("/wt/tree/docs", "/wt/tree", "", ""),
    ("/wt/tree", "/wt/tree2", "", None),
    ("/wt/tree", "/elsewhere", "", None),
])  # fmt: skip
def test_a_hook_elsewhere_in_a_tree_that_is_gone(
    vault: Vault, project: str, cwd: str, inside: str, path: str | None
) -> None:
    vault.reindex()
    put(vault, talk_in(project), cwd=cwd, repository=Repository("/code/lantern", NAME, inside))
    intake(vault)
    assert stored(vault, "summary") == [None if path is None else ("/code/lantern", NAME, path)]


@pytest.mark.parametrize("recorded", ["a folder inside", "where it was made", "the remote", "another remote"])
def test_a_worktree_that_is_gone_is_of_the_repository_that_the_harness_recorded(
    vault: Vault, code: Path, recorded: str
) -> None:
    if "remote" in recorded:
        url = f"https://ada:{SECRET}@Example.org/Ada/{'Lantern' if recorded == 'the remote' else 'prism'}"
        folder = Path(os.environ["HOME"], ".codex/sessions/2026/03/01")
        meta = {"id": SESSION, "cwd": str(code / ".worktrees/fix"), "git": {"repository_url": url}}
        words = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Light the lantern."}]}
        lines = [("session_meta", meta), ("response_item", words)]
        records = [{"timestamp": moment(1), "type": kind, "payload": payload} for kind, payload in lines]
        folder.mkdir(parents=True)
        rollout = folder / f"rollout-2026-03-01T10-00-00-{SESSION}.jsonl"
        rollout.write_text("\n".join(map(json.dumps, records)))
        os.utime(rollout, (1e9, 1e9))
        import_(vault, "codex")
    elif recorded == "where it was made":
        talk = talk_in("/gone/fix")
        talk.record("worktree-state", 9, worktreeSession={"originalCwd": str(code / "docs")})
        talk.idle()
        import_(vault, "claude-code")
    else:
        talk_in(code / ".worktrees" / "fix").idle()
        import_(vault, "claude-code")
    name = NAME.replace("lantern", "prism") if recorded == "another remote" else NAME
    root = str(code / ".worktrees/fix") if recorded == "another remote" else str(code)
    assert stored(vault) == [(root, name, "")] * 3
    assert vault.rows("select project from memory_thread_heads") == [(name,)]
    assert SECRET.encode() not in everywhere(vault)


@pytest.mark.parametrize(("recorded", "hooked", "branch"), [
    ("old", "main", "main"), ("HEAD", "main", "main"), ("wick", None, "wick"), ("wick", "", "wick"),
    ("HEAD", "", None), ("", None, None),
])  # fmt: skip
def test_the_branch_is_what_the_hook_saw_last_else_the_harness(
    vault: Vault, code: Path, recorded: str, hooked: str | None, branch: str | None
) -> None:
    """Without a hook the session may be long over: what is checked out now, `main`, says nothing."""
    talk = talk_in(code)
    talk.user("Go on with the wick, please.", 30, gitBranch="first")
    talk.user("And now the brass.", 40, gitBranch=recorded or None)
    if hooked is not None:
        put(vault, talk, repository=Repository(str(code), NAME, "", hooked or None))
        intake(vault)
    else:
        talk.idle()
        import_(vault, "claude-code")
    branch = branch or ("first" if recorded in ("HEAD", "") else None)
    assert [fields(vault, written(vault, kind)[-1])["repository_branch"] for kind in KINDS] == [branch] * 3
    assert vault.rows("select branch, tree from thread_sessions") == [(branch, str(code))]


def test_the_home_folder_and_those_above_it_are_no_repository(vault: Vault, tmp_path: Path) -> None:
    """Sessions of all projects below would become one."""
    home = with_origin(Path(os.environ["HOME"]))
    (tmp_path / "link").symlink_to(home)
    (home / "notes").mkdir()
    for number, project in enumerate((home, home.parent, tmp_path / "link" / "notes"), 1):
        end(vault, session_id=f"s{number}", project=str(project))
        assert stored(vault) == [None] * 3, project
    sound(vault)


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
