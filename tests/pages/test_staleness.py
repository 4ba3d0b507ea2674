"""What stands behind a statement that may be out of date: git is asked in the session's own folder, not for long."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import artifacts_fixture as made
import pytest
import said
from workbench import Vault, cast

from signet_sync.capture.injections import HookSession, Moment
from signet_sync.host import git
from signet_sync.pages import hook_context
from signet_sync.pages.at_hand import marks
from signet_sync.pages.store import views
from signet_sync.storage import state_dir

LAMP, WICK, DARK, FAR = (
    "src/lamp.py holds the oil of the northern pier.",
    "src/lamp.py, src/wick.py and src/door.py are trimmed together each night.",
    "The keepers of the pier leave every lantern dark during the summer.",
    "../far.py and /etc/hosts name what is lit elsewhere along the coast.",
)
SUBJECT = "Light the lamp of the pier"
BEFORE, SAID, AFTER = (f"2026-11-10T{hour}:00:00Z" for hour in ("09", "10", "11"))


def run(repository: Path, *command: str, at: str = AFTER) -> str:
    who = [part for name in ("AUTHOR", "COMMITTER") for part in (f"GIT_{name}_DATE={at}", f"GIT_{name}_NAME=Ada")]
    mail = ["GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_EMAIL=ada@example.org", "GIT_CONFIG_GLOBAL=/dev/null"]
    environ = os.environ | dict(one.split("=", 1) for one in (*who, *mail))
    done = subprocess.run(["git", "-C", repository, *command], env=environ, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def change(repository: Path, *names: str, subject: str = "Change it", at: str = AFTER) -> str:
    for name in names:
        with (repository / name).open("a") as file:
            file.write("oil\n")
    run(repository, "add", ".")
    run(repository, "commit", "-qm", subject, at=at)
    return run(repository, "rev-parse", "--short", "HEAD")


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Vault]:
    def make(vault: Vault) -> None:
        vault.reindex()

    return cast(tmp_path_factory.mktemp("cast"), make)


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose branch `pier` has a commit beyond `main`."""
    repository = tmp_path_factory.mktemp("harbour")
    (repository / "src").mkdir()
    run(repository, "init", "-qb", "main")
    change(repository, "src/lamp.py", "src/wick.py", "src/door.py", "far.py", at=BEFORE)
    run(repository, "switch", "-qc", "pier")
    change(repository, "src/lamp.py", subject=SUBJECT, at=BEFORE)
    return repository


@pytest.fixture
def lantern(tmp_path: Path, harbour: Path) -> Path:
    return Path(shutil.copytree(harbour, tmp_path / "code" / "lantern"))


@pytest.fixture
def vault(tmp_path: Path, lantern: Path, copied: Callable[[Path], Vault], monkeypatch: pytest.MonkeyPatch) -> Vault:
    """A session made that commit on `pier`, and stated something."""
    monkeypatch.setattr(git, "PATIENCE", 300.0)
    monkeypatch.setattr(git, "_LAST", 300.0)
    monkeypatch.setattr(git, "_COMMITS", 20)
    vault = copied(tmp_path)
    name = run(lantern, "rev-parse", "--short", "pier")
    talk = said.TASK + said.call("Bash", f"git commit -qm '{SUBJECT}'", f"[pier {name}] {SUBJECT}") + said.DONE
    decided = "".join(f"- {text}\n" for text in (LAMP, WICK, DARK, FAR))
    who = {"project": str(lantern), "captured_at": SAID}
    vault.put(
        dict([made.summary(body=f"# Pier\n\n## Decisions\n\n{decided}", **who), made.transcript(body=talk, **who)])
    )
    vault.reindex(now="2026-11-12T10:00:00Z")
    return vault


def told(vault: Vault, folder: Path) -> dict[str, str]:
    """The marks of what the session stated, by its words."""
    with vault.database() as database:
        seen = views.project_inputs(database, "default", 2**60, lambda _: True).statements
        assert len(seen) == 4
        deeds = views.deeds(database, "default", [view.id for view in seen])
        found = marks(str(folder), seen, deeds)
        return {view.text: found[view.id].strip(" ()") for view in seen if view.id in found}


def reverted(repository: Path) -> None:
    run(repository, "revert", "--no-edit", "HEAD")


def deleted(repository: Path) -> None:
    run(repository, "switch", "-q", "main")
    run(repository, "branch", "-qD", "pier")


def squashed(repository: Path) -> None:
    run(repository, "switch", "-q", "main")
    change(repository, "src/lamp.py", subject=f"{SUBJECT} (#7)")
    run(repository, "branch", "-qD", "pier")


def ages(repository: Path) -> None:
    """So many commits that not all since are read."""
    change(repository, "src/wick.py")
    for _ in range(git._COMMITS - 1):
        run(repository, "commit", "-qm", "on", "--allow-empty")
    change(repository, "src/lamp.py")


ONE, TWO = (f"{count} of its files changed since" for count in (1, 2))
GONE = "its branch is gone"
CASES: dict[str, tuple[Callable[[Path], object], dict[str, str]]] = {
    "nothing": (lambda _: None, {}),
    "two files": (lambda at: change(at, "src/lamp.py", "src/wick.py", "far.py"), {LAMP: ONE, WICK: TWO}),
    "a file that is gone": (lambda at: [run(at, "rm", "-q", "src/lamp.py"), change(at, "src/wick.py")],
                            {LAMP: ONE, WICK: TWO}),
    "before it was said": (lambda at: change(at, "src/lamp.py", at=BEFORE), {}),
    "not committed": (lambda at: (at / "src/lamp.py").write_text("new"), {}),
    "reverted": (reverted, dict.fromkeys((LAMP, WICK, DARK, FAR), "reverted by HEAD")),
    "reverted twice": (lambda at: [reverted(at), reverted(at)], {LAMP: ONE, WICK: ONE}),
    "branch deleted": (deleted, dict.fromkeys((LAMP, WICK, DARK, FAR), GONE)),
    "merged by another name": (squashed, {}), "many commits": (ages, {}),
    "broken": (lambda at: [change(at, "src/lamp.py"), (at / ".git/HEAD").write_text("broken")], {}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_may_be_out_of_date(vault: Vault, lantern: Path, case: str) -> None:
    happens, expected = CASES[case]
    happens(lantern)
    found = told(vault, lantern)
    by = run(lantern, "rev-parse", "HEAD")[:8] if case == "reverted" else ""
    assert found == {text: mark.replace("HEAD", by) for text, mark in expected.items()}
    assert told(vault, lantern / "src") == {} or case in ("reverted", "branch deleted")


STUBS = {
    "prints without end": "yes '' | tr '\\n' '\\0'",
    # Told in full it would be a change of the file.
    "hangs behind its answer": "printf '\\0\\0%s 1a2b3c4 Change\\n\\0\\nsrc/lamp.py\\0' 1800000000; exec sleep 60",
}  # fmt: skip


@pytest.mark.parametrize("stub", [*STUBS, None])
def test_git_is_not_waited_for(
    vault: Vault, lantern: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stub: str | None
) -> None:
    change(lantern, "src/lamp.py")
    assert told(vault, lantern)
    monkeypatch.setattr(git, "PATIENCE", 0.5)
    (tmp_path / "bin").mkdir()
    if stub:
        (tmp_path / "bin/git").write_text(f"#!/bin/sh\n{STUBS[stub]}\n")
        (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin" if stub else str(tmp_path / "bin"))
    assert told(vault, lantern) == {}


def test_a_start_and_a_moment_show_it(vault: Vault, lantern: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(lantern, "src/lamp.py")

    def start(source: str) -> str:
        event = {"session_id": "s-1", "transcript_path": "/nowhere/s.jsonl", "hook_event_name": "SessionStart"}
        event |= {"cwd": str(lantern), "source": source}
        answer = vault.hook("claude-code", "--strict", given=json.dumps(event).encode())
        assert (answer.code, answer.err) == (0, "")
        return answer.out

    place = state_dir.locate(str(vault.root))
    state_dir.write_heartbeat(place, {"state": "watching"})  # no worker is started
    with state_dir.run_lock(place):
        text, _, again = start("startup"), change(lantern, "src/wick.py"), start("resume")
    assert f"{LAMP} (Nov 10) ({ONE}) ^" in text and f"({TWO})" not in text
    assert LAMP not in again, "it has the statement, whatever changed since"
    session = HookSession("/w", place, place.database, "default", "claude-code", "s-2", str(lantern), False)
    monkeypatch.setattr(hook_context, "_LONGEST_MOMENT", 20.0)
    moment = hook_context.answer_moment(session, Moment(str(lantern / "src/lamp.py"), "", "")).text
    assert f"({ONE})" in moment or f"({TWO})" in moment, "two statements name it first"
