"""Flows that stop half-way: each partial failure is brought about, named, and finished by one pass."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from crash_runner import forked
from workbench import NOW, Vault

from signet_sync.app.workspace import open_to_write
from signet_sync.digest.outcome import ModelDigest
from signet_sync.errors import DatabaseError
from signet_sync.formats.frontmatter import parse
from signet_sync.formats.timestamps import parse_instant
from signet_sync.sessions import journal
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import session_input
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir

NOW_US = parse_instant(NOW) or 0
WORDS = "## User\n\nWhy does the queue of lantern never drain?\n\n## Assistant\n\nsrc/queue.py retries for ever.\n"
SUMMARY = "# Queue\n\n- lantern bounds the retry loop of src/queue.py at five attempts.\n"
# What a model says is kept nowhere but in the artifacts: who goes on must take it from there.
SENTENCE = "Bounded the retry loop of src/queue.py in lantern at five attempts so that the queue drains in the end."
DOCUMENT: dict[str, Any] = {
    "session_id": "5e551004-0000-4000-8000-000000000004", "project": "/home/me/lantern", "harness": "codex",
    "captured_at": "2026-03-29T11:30:00.000Z", "transcript": WORDS, "summary": SUMMARY,
}  # fmt: skip


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    vault.reindex()
    return vault


def model(words: str, **given: Any) -> ModelDigest:
    """A model with a good sentence."""
    return ModelDigest(SENTENCE)


def end(vault: Vault, propose: Callable[..., ModelDigest] | None = model, **given: Any) -> dict[str, Any]:
    with open_to_write(str(vault.root), Settings()) as workspace:
        return sessions_operations.write(
            workspace, session_input(DOCUMENT | given, now_us=NOW_US), now_us=NOW_US, propose=propose
        )


def killed(vault: Vault, arm: Callable[[], None], **given: Any) -> None:
    """Ends a session in a process that dies of what was armed."""

    def work() -> int:
        arm()
        end(vault, **given)
        return 0

    assert forked(work) == 137


def die(*_: object, **__: object) -> None:
    os._exit(137)


def fail(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def at_link(suffix: str, strike: Callable[..., None]) -> Callable[[], None]:
    """Arms the publication of one file."""

    def arm() -> None:
        real = os.link

        def link(source: str, target: str, **given: Any) -> None:
            if target.endswith(suffix):
                strike()
            real(source, target, **given)

        os.link = link

    return arm


def at_commit_after(vault: Vault, suffix: str, strike: Callable[[], None]) -> Callable[[], None]:
    """Arms the first commit after a file of that name was published."""
    before = set(vault.memory.iterdir())

    def arm() -> None:
        class Connection(apsw.Connection):
            def execute(self, sql: str, *given: Any, **named: Any) -> Any:
                fresh = set(vault.memory.iterdir()) - before
                if sql == "commit" and any(path.name.endswith(suffix) for path in fresh):
                    strike()
                return super().execute(sql, *given, **named)

        apsw.Connection = Connection

    return arm


@contextmanager
def failing(arm: Callable[[], None]) -> Iterator[None]:
    """What was armed is so in this process, for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", os.link)
        patch.setattr(apsw, "Connection", apsw.Connection)
        arm()
        yield


def files(vault: Vault) -> dict[str, dict[str, Any]]:
    """The frontmatter of the session's files by kind."""
    found = {}
    for path in vault.memory.glob("2026-03-29T11-30*"):
        head = parse(path.read_bytes()).fields
        found[head["kind"]] = head
    return found


def journals(vault: Vault) -> list[str]:
    return journal.keys(state_dir.locate(str(vault.root)).journal)


def finished(vault: Vault) -> None:
    """One ordinary pass, and the flow is done, with one sentence in both artifacts and on the page."""
    assert vault.reindex()["problems"] == []
    found = files(vault)
    assert set(found) == {"transcript", "summary", "manifest"}
    for kind in ("transcript", "summary"):
        assert (found[kind]["memory_sentence"], found[kind]["memory_sentence_quality"]) == (SENTENCE, "ok")
    assert SENTENCE in vault.page()
    assert journals(vault) == []
    ((answer,),) = vault.rows("select answer from flow_results")
    assert json.loads(answer)["sentence"] == SENTENCE
    assert vault.call("check").code == 0
    replay = end(vault)
    assert replay == json.loads(answer) | {"idempotent_replay": True}


# ── the six partial failures ──


def full() -> None:
    raise apsw.FullError("full")


# By name: what fails, the error that its caller gets (none: the process dies), the files that are left, and what else
# was given.
BAD = {"propose": None, "memory_sentence": "Worked on task."}
FAILURES: dict[str, tuple[Callable[[Vault], Callable[[], None]], str, set[str], dict[str, Any]]] = {
    "sentence generated, artifact write failed": (
        lambda _: at_link("--transcript.md", fail), "No space", set(), {"propose": None, "memory_sentence": SENTENCE},
    ),
    "sentence generation failed, fallback path engaged": (
        lambda _: at_link("--transcript.md", fail), "No space", set(), BAD,
    ),
    "transcript written, summary failed": (
        lambda _: at_link("--summary.md", fail), "No space", {"transcript"}, {},
    ),
    "summary/transcript written, manifest failed": (
        lambda _: at_link("--manifest.md", fail), "No space", {"transcript", "summary"}, {},
    ),
    "canonical writes done, DB index update failed": (
        lambda vault: at_commit_after(vault, "--manifest.md", full), "full", {"transcript", "summary", "manifest"}, {},
    ),
    "artifacts+manifest written, MEMORY.md update failed": (
        lambda _: at_link("MEMORY.md", die), "", {"transcript", "summary", "manifest"}, {},
    ),
}  # fmt: skip


def test_the_six_are_those_of_the_seed(shared):
    (place,) = (shared / "seeds").glob("000_*.txt")
    listed = place.read_text(encoding="utf-8").partition("Partial-failure states")[2].partition("Recovery must")[0]
    assert {line.strip(" •\t") for line in listed.splitlines() if "•" in line} == set(FAILURES)


@pytest.mark.parametrize("name", FAILURES)
def test_a_partial_failure_is_finished_by_one_pass(vault, name):
    arm, error, left, given = FAILURES[name]
    if not error:
        (vault / "MEMORY.md").unlink()
        killed(vault, arm(vault))
        assert vault.rows("select count(*) from files where path like '%2026-03-29T11-30%'") == [(3,)]
    else:
        with failing(arm(vault)), pytest.raises((OSError, DatabaseError), match=error):
            end(vault, **given)
    assert set(files(vault)) == left and len(journals(vault)) == 1
    if given is not BAD:
        finished(vault)
        return
    vault.reindex()
    qualities = {head.get("memory_sentence_quality") for kind, head in files(vault).items() if kind != "manifest"}
    assert qualities == {"fallback"} and journals(vault) == []


def test_a_page_that_cannot_be_written_now_does_not_hold_up_the_answer(vault):
    """Files and rows are there and the next pass writes the page; a Signet daemon may hold it back for days."""
    (vault / "MEMORY.md").unlink()
    with failing(at_link("MEMORY.md", fail)):
        assert end(vault)["idempotent_replay"] is False
    assert not (vault / "MEMORY.md").exists() and journals(vault) == []
    finished(vault)


def test_another_ending_of_the_session_finishes_the_one_that_was_cut_off(vault):
    """Its words are kept once, under its own name, and only what is new makes another segment."""
    killed(vault, at_link("--summary.md", die))
    more = "## User\n\nBound it.\n"
    answer = end(vault, propose=None, transcript=WORDS + "\n" + more, captured_at="2026-03-29T11:40:00.000Z")
    assert journals(vault) == []
    (second,) = vault.memory.glob("2026-03-29T11-40*--transcript.md")
    assert parse(second.read_bytes()).body.strip() == more.strip()
    assert set(files(vault)) == {"transcript", "summary", "manifest"}
    assert answer["manifest"].startswith("memory/2026-03-29T11-30")
    assert len(list(vault.memory.glob("2026-03-29*--manifest.md"))) == 1


def test_what_somebody_put_in_the_place_of_its_manifest_holds_up_no_pass(vault):
    killed(vault, at_link("--manifest.md", die))
    (beside,) = vault.memory.glob("2026-03-29T11-30*--transcript.md")
    path = beside.with_name(beside.name.replace("transcript", "manifest"))
    path.write_text("mine\n")
    vault.reindex()
    assert journals(vault) == [] and path.read_text() == "mine\n"
