"""`import`: past sessions, each once, whatever the folder holds and however often it is asked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import harness_samples
import pytest
from harness_samples import Turn
from session_inputs import fields, sound, written
from transcript_builder import SECRET, TranscriptBuilder, import_, store


@pytest.fixture
def home() -> Path:
    return Path(os.environ["HOME"])


def talks(folder: Path, count: int) -> list[TranscriptBuilder]:
    """So many old sessions, with words of their own."""
    made = [TranscriptBuilder(folder, f"{number:08d}-0000-4000-8000-000000000000") for number in range(1, count + 1)]
    for number, talk in enumerate(made, start=1):
        talk.exchange(number)
        talk.idle(3600 * number)
    return made


def test_the_past_sessions_of_a_harness(vault, home):
    made = talks(store(home), 3)
    made[0].compacted("Lantern was lit.", 100)
    made[1].result(f"the key is {SECRET}", 100)
    for talk in made:
        talk.idle()
    done = import_(vault, "claude-code")
    assert {name: done[name] for name in ("harness", "transcripts", "sessions", "nothing", "failed")} == {
        "harness": "claude-code", "transcripts": 3, "sessions": 3, "nothing": [], "failed": [],
    }  # fmt: skip
    assert sorted(done["segments"]) == written(vault, "summary") and len(done["segments"]) == 3
    assert done["compactions"] == written(vault, "compaction") and len(done["compactions"]) == 1
    assert sum(done["redactions"].values()) == 1
    sound(vault)
    assert vault.hits("question2word")


def test_a_session_that_is_still_written_is_left_for_later_unless_it_is_named(vault, home):
    (talk,) = talks(store(home), 1)
    talk.idle(10)
    done = import_(vault, "claude-code")
    assert (done["segments"], [entry["path"] for entry in done["nothing"]]) == ([], [str(talk.path)])
    assert "may still be running" in done["nothing"][0]["reason"]
    assert len(import_(vault, "claude-code", talk.path)["segments"]) == 1


def test_what_was_removed_is_not_taken_and_no_failure(vault, home):
    made = talks(store(home), 4)
    import_(vault, "claude-code", made[1].path)
    assert vault.call("remove", made[1].session, "--yes", "--reason", "wrong").code == 0
    made[1].exchange(9)
    made[2].path.write_text("no json\n")
    for talk in made:
        talk.idle()
    done = import_(vault, "claude-code")
    assert (done["sessions"], done["failed"]) == (2, [])
    assert [entry["path"] for entry in done["nothing"]] == [str(made[1].path), str(made[2].path)]
    for words in ((), ("--again",)):
        answer = vault.call("import", "claude-code", *words)
        assert answer.code == 0 and "1  not taken, its session was removed:" in answer.out and not answer.err


def test_every_file_is_taken_or_named_with_its_reason(vault, home):
    """What has been read says again why nothing of it is kept."""
    folder = store(home)
    (talk,) = talks(folder, 1)
    (folder / "link.jsonl").symlink_to(talk.path)
    names = {"empty.jsonl": b"", "blank.jsonl": b" \n" * 1500, "agent-1.jsonl": b"{}\n"}
    names |= {"other.jsonl": b'{"type": "mode"}\n'}
    for name, content in names.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        os.utime(folder / name, (1.7e9, 1.7e9))
    reasons = {
        "link.jsonl": "it is a link", "empty.jsonl": "the file is empty",
        "blank.jsonl": "the file is empty",
        "agent-1.jsonl": "a sub-agent's file: it is part of another session",
        "other.jsonl": "no conversation in it",
    }  # fmt: skip
    for _ in range(2):
        told = {Path(one["path"]).name: one["reason"] for one in import_(vault, "claude-code")["nothing"]}
        assert {name: told[name] for name in reasons} == reasons and set(told) <= {*reasons, talk.path.name}
    shown = vault.call("import", "claude-code").out
    assert all(f"{name}\n" in shown or f"{name}: " in shown for name in reasons)
    assert all(reason.partition(":")[0] in shown for reason in reasons.values()) and talk.path.name not in shown


def test_a_record_that_is_dated_ahead_is_left_out_of_the_order(vault, home):
    (talk,) = talks(store(home), 1)
    talk.user("Does the zebrafish swim?", 50)
    talk.user("And the heron?", 60)
    lines = talk.path.read_text().replace("2026-03-20T10:00:50", "2199-03-20T10:00:50")
    assert "2199" in lines
    talk.path.write_text(lines)
    talk.idle()
    done = import_(vault, "claude-code")
    assert (done["sessions"], done["failed"]) == (1, []) and vault.hits("zebrafish")
    (path,) = written(vault, "transcript")
    assert fields(vault, path)["ended_at"].startswith("2026-03-20T10:01:00")
    sound(vault)


def test_a_transcript_without_times_is_of_its_file_s_day(vault, tmp_path):
    path = tmp_path / "s-1.jsonl"
    record = {"type": "user", "uuid": "1", "sessionId": "s-1", "cwd": "/x", "message": {"content": "Why zebrafish?"}}
    path.write_text(json.dumps(record) + "\n")
    os.utime(path, (1_774_000_000, 1_774_000_000))
    assert import_(vault, "claude-code", path)["sessions"] == 1
    (manifest,) = written(vault, "manifest")
    assert fields(vault, manifest)["captured_at"][:10] == "2026-03-20"
    sound(vault)


def test_what_openclaw_renamed_is_imported_and_never_twice(vault, home):
    folder = home / ".openclaw/agents/main/sessions"
    folder.mkdir(parents=True)
    path = folder / "857e1708-0000-4000-8000-000000000000.jsonl"
    path.write_text(spoken("openclaw", path.stem, "/home/u/x"))
    os.utime(path, (1.7e9, 1.7e9))
    assert import_(vault, "openclaw")["sessions"] == 1
    path.rename(f"{path}.reset.2026-03-28T10-00-00.000Z")
    other = folder / f"{'9' * 8}{path.name[8:]}.deleted.2026-03-29T10-00-00.000Z"
    # Other words: the same ones at the same time would be copied history.
    other.write_text(spoken("openclaw", f"{'9' * 8}{path.stem[8:]}", "/home/u/x").replace("2026-", "2025-"))
    os.utime(other, (1.7e9, 1.7e9))
    done = import_(vault, "openclaw")
    assert (done["transcripts"], done["sessions"]) == (2, 1)
    assert import_(vault, "openclaw", other, "--again")["segments"] == []
    sound(vault)


NAMES = {
    "half a character": ("a\ud800", "/home/u/\udcff", ("a\ufffd", "/home/u/\ufffd")),
    "blank": ("\n", "\t", ("12345678-0000-4000-8000-000000000000", None)),
    "a secret": (SECRET, f"/home/{SECRET}/x", (None, "/home/[REDACTED:github]/x")),
}
FILES = {
    "claude-code": "12345678-0000-4000-8000-000000000000",
    "codex": "rollout-2026-03-28T10-00-00-12345678-0000-4000-8000-000000000000",
    "gemini": "session-2026-03-28T10-00-12345678",
    "openclaw": "12345678-0000-4000-8000-000000000000",
}


def spoken(harness: str, session: str, cwd: str, asked: str = "why does it never drain") -> str:
    """A transcript of two turns as a harness writes it."""
    turns = [Turn("user", asked), Turn("assistant", "because of zebrafish")]
    records = harness_samples.sample(harness).records(session, cwd, turns, ())
    return "".join(f"{json.dumps(record)}\n" for record in records)


@pytest.mark.parametrize("case", NAMES)
def test_no_name_in_a_transcript_loses_its_session(vault, tmp_path, case):
    session, cwd, kept = NAMES[case]
    path = tmp_path / f"{FILES['claude-code']}.jsonl"
    path.write_text(spoken("claude-code", session, cwd))
    os.utime(path, (1.7e9, 1.7e9))
    done = import_(vault, "claude-code", path)
    assert (done["failed"], done["sessions"]) == ([], 1) and vault.hits("zebrafish")
    (manifest,) = written(vault, "manifest")
    head = fields(vault, manifest)
    if case == "blank":
        kept = (path.stem, None)
    assert head["session_id"] == head["session_key"] == (kept[0] or head["session_id"]) and head["project"] == kept[1]
    assert len(head["session_id"]) <= 16_000 and SECRET not in str(head)
    again = import_(vault, "claude-code", path, "--again")
    assert (again["segments"], again["failed"]) == ([], []), "it is known as what it was written as"
    assert vault.rows("select distinct session_id, project from memory_artifacts") == [(head["session_id"], kept[1])]
    sound(vault)
