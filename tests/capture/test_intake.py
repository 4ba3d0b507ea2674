"""From a hook to artifacts: jobs are worked off beside the watch, forgotten sessions swept up, nothing comes twice."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import page, until
from session_inputs import body, fields, journal, segments, sound, written
from transcript_builder import (
    SECRET,
    SESSION,
    TranscriptBuilder,
    at,
    fired,
    plugged_in,
    provider,
    store,
    worker,
)  # fmt: skip
from workbench import Vault

from signet_sync.app.workspace import open_to_write
from signet_sync.capture import capture, intake, spool
from signet_sync.capture.intake import Intake
from signet_sync.formats.timestamps import SECOND, iso
from signet_sync.settings.model import Settings
from signet_sync.sync.workspace import Workspace

start = agents.start


@pytest.fixture
def talk() -> TranscriptBuilder:
    """A session in Claude Code's own folder."""
    talk = TranscriptBuilder(store(Path(os.environ["HOME"])))
    talk.exchange(1)
    return talk


@contextmanager
def workspace(vault: Vault, **given: Any) -> Iterator[Workspace]:
    with open_to_write(str(vault.root), Settings(**given)) as found:
        yield found


def take(vault: Vault, *, later: float = 0, sweep: bool = False, **given: Any) -> Intake:
    """The intake in this process, at a clock that goes before; without waiting for records."""
    with workspace(vault, **given) as found:
        return intake.run_capture(
            found,
            now_us=lambda: time.time_ns() // 1000 + int(later * SECOND),
            sweep=sweep,
        )  # fmt: skip


def jobs(vault: Vault) -> list[str]:
    """The events that wait, whether they are due or not."""
    folder = vault.state / "spool"
    found = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        with suppress(FileNotFoundError):  # taken by a worker since the folder was listed
            found.append(spool._read(str(path)).event)
    return found


def put(vault: Vault, talk: TranscriptBuilder, event: str = "end", **given: Any) -> spool.Job:
    """A job as a hook would have left it."""
    job = spool.Job(
        **{
            "event": event, "harness": talk.harness, "session_id": talk.session, "agent_id": "default",
            "at": iso(time.time_ns() // 1000), "transcript_path": str(talk.path), "cwd": talk.project, **given,
        }
    )  # fmt: skip
    return spool.put(str(vault.state / "spool"), job)


def captured(vault: Vault, count: int = 1) -> list[str]:
    """The transcripts, once there are so many and their flows are over."""

    def look() -> list[str]:
        found = segments(vault)
        begun = [name for name in journal(vault) if name.endswith(".json")]
        return found if len(found) >= count and not begun and len(written(vault, "summary")) >= count else []

    found = until(look, f"{count} transcripts")
    assert len(found) == count, (written(vault), journal(vault))
    return found


# ── a hook and its worker ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_session_that_ends_is_in_the_vault_a_moment_later(vault, talk):
    fired(vault, talk, reason="prompt_input_exit")
    captured(vault)
    until(lambda: not jobs(vault), "the job is gone")
    assert "[[ledger/2026-03.md]]" in page(vault)
    sound(vault)
    assert vault.hits("question1word")
    talk.exchange(2)
    fired(vault, talk)
    assert "question2word" in captured(vault, 2)[1]
    until(lambda: not jobs(vault), "the job is gone")
    before = written(vault)
    fired(vault, talk)
    until(lambda: not jobs(vault), "the job is gone")
    assert written(vault) == before
    sound(vault)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sessions whose transcripts were read, in order."""
    found: list[str] = []
    real = capture.read

    def read(source: Any, *now: Any) -> Any:
        found.append(Path(source.path).stem)
        return real(source, *now)

    monkeypatch.setattr(capture, "read", read)
    return found


def test_jobs_of_one_session_are_one_piece_of_work(vault, talk, reads):
    """A later one does what an earlier one would."""
    for number in range(5):
        put(vault, talk, "compact", at=at(1000 * number))
    put(vault, talk, "end", at=at(9000))
    put(vault, talk, "end", at=at(9001))
    take(vault)
    assert reads == [talk.session]
    assert len(segments(vault)) == 1 and jobs(vault) == []
    sound(vault)


def test_every_session_has_its_turn_before_any_has_a_second_one(vault, talk, reads, monkeypatch):
    """New work for one session comes with every look at it; the others are not kept waiting."""
    others = [
        TranscriptBuilder(talk.path.parent, session=f"7a1b0c00-0000-4000-8000-0000000000{n:02}") for n in range(10, 13)
    ]
    for number, other in enumerate(others):
        other.exchange(number + 1)
        put(vault, other, "end", at=at(500 + number))
    put(vault, talk, "end", at=at(1))
    real = capture.read

    def read(source: Any, *now: Any) -> Any:
        if source.path == str(talk.path) and len(reads) < 8:
            put(vault, talk, "end", at=at(2))
        return real(source, *now)

    monkeypatch.setattr(capture, "read", read)
    take(vault)
    assert reads[:4] == [talk.session, *(other.session for other in others)]
    assert set(reads[4:]) == {talk.session} and jobs(vault) == []


def test_the_agent_of_the_hook_counts(vault, talk):
    fired(vault, talk, environ={"SIGNET_AGENT_ID": "keeper"})
    captured(vault)
    assert fields(vault, written(vault)[0])["agent_id"] == "keeper"
    # The session goes on and is killed: the sweep knows whose it was.
    talk.exchange(2)
    talk.idle()
    plugged_in(vault, "claude-code")
    # The worker of the hook may not have gone yet: beside it another one does nothing.
    until(lambda: worker(vault, sweep=True).code == 0 and len(segments(vault)) == 2, "the sweep takes it")
    assert len(captured(vault, 2)) == 2
    assert {fields(vault, path)["agent_id"] for path in written(vault)} == {"keeper"}


def test_trouble_with_one_transcript_stops_no_other(vault, talk, tmp_path):
    others = [
        TranscriptBuilder(tmp_path / "others", f"0000000{number}-0000-4000-8000-000000000000") for number in range(4)
    ]
    for other in others:
        other.exchange(1)
        put(vault, other)
    put(vault, talk)
    gone, fifo, folder, link = (other.path for other in others)
    for path in (gone, fifo, folder, link):
        path.unlink()
    os.mkfifo(fifo)
    folder.mkdir()
    TranscriptBuilder(folder, "00000009-0000-4000-8000-000000000000").exchange(9)
    link.symlink_to(talk.path)
    failed = take(vault).failed
    assert len(failed) == 4 and not any("question" in text for text in failed)
    assert len(captured(vault)) == 1
    # What may come back is tried again; what never can be taken is not.
    assert len(jobs(vault)) == 4
    assert take(vault).failed == []
    assert len(take(vault, later=120).failed) == 4


def test_a_job_that_kills_whoever_takes_it_is_given_up_and_holds_up_no_other(vault, talk, tmp_path, monkeypatch):
    deadly = TranscriptBuilder(tmp_path, "00000001-0000-4000-8000-000000000000")
    deadly.exchange(1)
    put(vault, deadly, at=at(1))
    put(vault, talk, at=at(2))
    real = intake.capture.capture

    def dies(workspace: Any, source: Any, **given: Any) -> Any:
        if source.path == str(deadly.path):
            raise MemoryError
        return real(workspace, source, **given)

    monkeypatch.setattr(intake.capture, "capture", dies)
    deaths = 0
    for turn in range(40):
        try:
            take(vault, later=turn * 5 * 3600)
        except MemoryError:
            deaths += 1
    assert 3 < deaths < spool.MOST_TRIES + 1
    assert captured(vault)
    assert jobs(vault) == []
    assert spool.count_given_up(str(vault.state / "spool")) == 1


def test_a_killed_session_is_found_when_it_is_idle(vault, talk):
    plugged_in(vault, "claude-code")
    fired(vault, talk, "Stop")
    assert jobs(vault) == ["stop"]
    assert take(vault, sweep=True).captured == []
    assert jobs(vault) == ["stop"]
    take(vault, later=1000)
    assert jobs(vault) == [] and captured(vault)
    # A mark without a sweep was enough; a sweep without a mark is, too.
    talk.exchange(2)
    assert take(vault, sweep=True, later=600).captured == []
    take(vault, sweep=True, later=1000)
    assert captured(vault, 2)
    assert take(vault, sweep=True, later=2000).captured == []


def test_only_harnesses_that_feed_this_workspace_and_what_changed_since(vault, talk):
    talk.idle(3600)
    old = TranscriptBuilder(talk.path.parent, "00000001-0000-4000-8000-000000000000")
    old.exchange(1)
    old.idle(40 * 86_400)
    assert take(vault, sweep=True).captured == []
    plugged_in(vault, "codex", "gemini")
    assert take(vault, sweep=True).captured == []
    yesterday = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - 86_400))
    plugged_in(vault, "claude-code", "codex", "not-a-harness", since=yesterday)
    done = take(vault, sweep=True)
    assert [one.session_id for one in done.captured] == [SESSION]
    (vault.state / "harnesses.json").write_text("{damaged")
    talk.exchange(2)
    talk.idle()
    assert take(vault, sweep=True).captured == []


@pytest.mark.slow
def test_an_agent_that_ends_leaves_its_worker_to_itself(vault, talk, start, tmp_path):
    mark = tmp_path / "go on"
    wait = f"import os\nwhile not os.path.exists({str(mark)!r}): time.sleep(0.02)"
    provider(tmp_path, f"{wait}\nprint('Slow words.')", timeout=120)
    agent = start()
    agent.passed()
    fired(vault, talk)
    until(lambda: journal(vault), "the worker is at it")
    assert agent.end() == 0
    assert journal(vault), "the worker still waits for its model"
    mark.touch()
    captured(vault)
    until(lambda: not jobs(vault), "the job is gone")
    sound(vault)


# ── a language model ────────────────────────────────────────────────────────────────────────────────────────────────

SENTENCE = "Bounded the retry loop of src/queue.py in lantern at five attempts so that the queue drains in the end."
QUOTE = "answer1word bounds the retry loop"


def answers(*items: tuple[str, int, str], **more: Any) -> str:
    """A program that counts its calls and answers with items."""
    listed = [{"kind": kind, "turn": turn, "quote": quote} for kind, turn, quote in items]
    document = {"sentence": SENTENCE, "status": "open", "items": listed} | more
    return f"open(__file__ + '.calls', 'a').write('x')\nprint({json.dumps(document)!r})"


def calls(tmp_path: Path) -> int:
    """How often the program was asked."""
    marks = tmp_path / "model.py.calls"
    return len(marks.read_text()) if marks.exists() else 0


def summary_of(vault: Vault) -> tuple[str, dict[str, Any]]:
    (path,) = written(vault, "summary")
    return body(vault, path), fields(vault, path)


def test_a_model_is_asked_once_and_its_items_stand_in_place_of_the_rules(vault, talk, tmp_path):
    question = "Question 1: why does question1word of src/queue.py wait?"
    refused = [("decision", 1, question), ("decision", 2, QUOTE), ("decision", 1, "a seed is agreed on")]
    kept = [("decision", 1, QUOTE), ("note", 1, QUOTE), ("next", 2, "Drain the queue of the pier as well.")]
    talk.call("cat seeds.md", 30)
    talk.result("Decided: a seed is agreed on by all keepers.", 31)
    talk.user("From now on never burn whale oil in the lamp.", 40)
    talk.assistant(f"The key was {SECRET}.\n\nNext steps:\n\n- Drain the queue of the pier as well.", 41)
    provider(tmp_path, answers(*kept, *refused, done=["h1"]))
    put(vault, talk)
    assert worker(vault).code == 0 and calls(tmp_path) == 1
    text, head = summary_of(vault)
    assert "*A digest of the transcript whose quotes were chosen by a model." in text
    assert "Status: question-only.*" in text
    assert f"## Decisions\n\n- Answer 1: {QUOTE}. (agent)\n" in text and "- Drain the queue of the pier" in text
    assert "whale oil" not in text.partition("## Decisions")[2], "what rules found is not mixed in"
    assert not any(words in text.partition("## Decisions")[2] for words in ("question1word", "seed is agreed"))
    assert (head["memory_sentence"], head["memory_sentence_quality"]) == (SENTENCE, "ok")
    assert not any(SECRET in (vault / path).read_text() for path in written(vault))
    tokens = vault.call("status", "--json").json["tokens"]
    assert 0 < tokens["today"] < 5_000 and tokens["trouble"] is None
    sound(vault)


@pytest.mark.parametrize("script", ["time.sleep(600)", answers(("decision", 1, "of nobody"))])
def test_a_model_that_fails_delays_nothing_for_long(vault, talk, tmp_path, script):
    provider(tmp_path, script, timeout=1)
    put(vault, talk)
    assert worker(vault).code == 0
    text, head = summary_of(vault)
    assert "question1word" in text and "without a model" in text and head["memory_sentence_quality"] == "fallback"
    sound(vault)


def test_a_full_pass_takes_what_hooks_have_left_and_an_index_only_pass_nothing(vault: Vault, talk: TranscriptBuilder):
    put(vault, talk)
    assert vault.call("reindex", "--index-only").code == 0
    assert written(vault, "transcript") == [] and jobs(vault) == ["end"]
    answer = vault.call("reindex", "--json")
    assert answer.code == 0 and len(written(vault, "transcript")) == 1
    assert answer.json["counts"]["indexed"] == 3 and "1 session captured" in answer.err
    assert jobs(vault) == []
    sound(vault)


NOTICE = "> [!warning] signet-sync.toml is broken, its last good settings or defaults count: signet-sync doctor"


@pytest.mark.parametrize("broken", ["[watch\ndebounce = 1\n", "[reconcile]\ninterval = -1\n", None])
def test_no_settings_of_a_workspace_stop_a_session(vault: Vault, talk: TranscriptBuilder, broken: str | None) -> None:
    place = vault / "signet-sync.toml"
    os.mkfifo(place) if broken is None else place.write_text(broken)
    put(vault, talk)
    document = vault.root.parent / "input.json"
    document.write_text(json.dumps({"session_id": "s1", "transcript": "# Fix the queue\n\nIt never drains."}))
    assert vault.call("session", "end", "--input", str(document)).code == 0
    answer = vault.call("reindex", "--json")
    assert answer.code == 0 and "warning: signet-sync.toml: " in answer.err
    assert len(written(vault, "transcript")) == 2 and jobs(vault) == []
    assert NOTICE in page(vault)
    standing = vault.call("status", "--json").json
    assert standing["trouble"].startswith("signet-sync.toml: ") and "signet-sync doctor" in standing["trouble"]
    findings = {f["name"]: f for f in vault.call("doctor", "--json").json["findings"]}
    assert findings["settings"]["level"] == "problem" and findings["settings"]["remedy"]
    checked = vault.call("check", "--json")
    assert [p["code"] for p in checked.json["problems"] if p["path"] == "signet-sync.toml"] == ["config-invalid"]


@pytest.mark.slow
def test_broken_settings_of_the_person_stop_no_hook_and_no_agent(
    vault: Vault, talk: TranscriptBuilder, start: Any
) -> None:
    person = Path(os.environ["SIGNET_CONFIG"])
    person.parent.mkdir(parents=True, exist_ok=True)
    person.write_text("[llm]\nprovidre = 'ollama'\n")
    assert vault.call("reindex").code == 2
    put(vault, talk)
    start()
    captured(vault)
    assert "unknown setting llm.providre" in agents.status(vault)["trouble"]
    assert "> [!warning]" not in page(vault), "the page is the same one on all machines of this vault"
