"""`import`: past sessions, each once, whatever the folder holds and however often it is asked."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from session_inputs import fields, segments, sound, written
from transcript_builder import SECRET, TranscriptBuilder, import_, store
from workbench import contents, sampled


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


def test_imported_twice_nothing_is_written_again(vault, home):
    talks(store(home), 3)
    import_(vault, "claude-code")
    before = contents(vault.root)
    again = import_(vault, "claude-code")
    assert (again["segments"], {entry["reason"] for entry in again["nothing"]}) == (
        [],
        {"read before, unchanged since"},
    )
    again = import_(vault, "claude-code", "--again")
    assert (again["segments"], {entry["reason"] for entry in again["nothing"]}) == (
        [],
        {"nothing new since it was captured"},
    )
    assert contents(vault.root) == before
    for path in vault.state.glob("signet-sync.db*"):
        path.unlink()
    assert vault.call("reindex").code == 0
    assert import_(vault, "claude-code")["segments"] == []
    assert contents(vault.root) == before
    sound(vault)


def test_what_was_said_since_is_imported(vault, home):
    first, second = talks(store(home), 2)
    import_(vault, "claude-code")
    second.exchange(7)
    second.idle(1000)
    done = import_(vault, "claude-code")
    assert (done["sessions"], len(done["segments"])) == (1, 1)
    assert [entry["path"] for entry in done["nothing"]] == [str(first.path)]
    assert "question7word" in segments(vault)[-1]
    sound(vault)


def test_a_session_that_is_still_written_is_left_for_later_unless_it_is_named(vault, home):
    (talk,) = talks(store(home), 1)
    talk.idle(10)
    done = import_(vault, "claude-code")
    assert (done["segments"], [entry["path"] for entry in done["nothing"]]) == ([], [str(talk.path)])
    assert "may still be running" in done["nothing"][0]["reason"]
    assert len(import_(vault, "claude-code", talk.path)["segments"]) == 1


def test_a_path_is_a_file_a_folder_or_in_the_home_folder(vault, home, tmp_path):
    made = talks(home / "old" / "rollouts", 3)
    assert import_(vault, "claude-code", made[0].path)["transcripts"] == 1
    assert import_(vault, "claude-code", f"~/old/rollouts/{made[1].path.name}")["sessions"] == 1
    done = import_(vault, "claude-code", "~/old")
    assert (done["transcripts"], done["sessions"]) == (3, 1)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert import_(vault, "claude-code", empty)["transcripts"] == 0
    assert "No transcripts" in vault.call("import", "claude-code", str(empty)).out


def test_some_failed(vault, home):
    made = talks(store(home), 4)
    made[1].path.write_text(made[1].path.read_text().replace("2026-", "9998-"))
    made[2].path.write_text("no json\n")
    for talk in made:
        talk.idle()
    done = import_(vault, "claude-code", code=1)
    assert done["sessions"] == 2
    assert len(done["failed"]) == 1 and made[1].path.name in done["failed"][0] and "future" in done["failed"][0]
    assert [entry["path"] for entry in done["nothing"]] == [str(made[2].path)]
    assert import_(vault, "claude-code")["failed"] == []
    text = vault.call("import", "claude-code", "--again")
    assert text.code == 1 and "failed" in text.err


def test_whose_they_are(vault, home):
    talks(store(home), 1)
    import_(vault, "claude-code", "--agent", "keeper")
    assert {fields(vault, path)["agent_id"] for path in written(vault)} == {"keeper"}
    assert import_(vault, "claude-code", "--agent", "keeper")["segments"] == []
    assert len(import_(vault, "claude-code", "--agent", "other")["segments"]) == 1


def test_one_session_in_two_files_is_kept_once(vault, home, tmp_path):
    """A transcript that was copied elsewhere is the same session."""
    (talk,) = talks(store(home), 1)
    import_(vault, "claude-code")
    copy = tmp_path / "copies" / talk.path.name
    copy.parent.mkdir()
    shutil.copyfile(talk.path, copy)
    before = written(vault)
    assert import_(vault, "claude-code", copy)["segments"] == []
    assert written(vault) == before


NAME = "tab\tnl\nnel\x85ls\u2028\x1b[31mX\u202eb\u200b\x7f [[x]] <!-- signet:end -->"
NAMES = {
    "every kind of character": (NAME, f"/home/u/{NAME}", (NAME, f"/home/u/{NAME}")),
    "half a character": ("a\ud800", "/home/u/\udcff", ("a\ufffd", "/home/u/\ufffd")),
    "NUL": ("a\0b", "/a\0b", ("a\ufffdb", "/a\ufffdb")),
    "long": ("x" * 20_000, "/" + "y" * 20_000, (None, "/" + "y" * 15_999)),
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
    at, later = "2026-03-28T10:00:00.000Z", "2026-03-28T10:00:01.000Z"
    said = "because of zebrafish"
    if harness == "claude-code":
        common = {"sessionId": session, "cwd": cwd}
        records = [
            common | {"type": "user", "uuid": "1", "timestamp": at, "message": {"role": "user", "content": asked}},
            common
            | {"type": "assistant", "uuid": "2", "parentUuid": "1", "timestamp": later}
            | {"message": {"role": "assistant", "content": [{"type": "text", "text": said}]}},
        ]
    elif harness == "codex":
        records = [{"type": "session_meta", "timestamp": at, "payload": {"id": session, "timestamp": at, "cwd": cwd}}]
        for role, kind, text in (("user", "input_text", asked), ("assistant", "output_text", said)):
            payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
            records.append({"type": "response_item", "timestamp": at, "payload": payload})
    elif harness == "gemini":
        records = [{"sessionId": session, "startTime": at, "lastUpdated": later, "directories": [cwd]}]
        records += [{"id": "1", "timestamp": at, "type": "user", "content": asked}]
        records += [{"id": "2", "timestamp": later, "type": "gemini", "content": said}]
    else:
        records = [{"type": "session", "id": session, "timestamp": at, "cwd": cwd}]
        for number, (role, text) in enumerate((("user", asked), ("assistant", said))):
            message = {"role": role, "content": [{"type": "text", "text": text}]}
            records.append({"type": "message", "id": str(number), "timestamp": at, "message": message})
    return "".join(f"{json.dumps(record)}\n" for record in records)


@pytest.mark.parametrize("case", sampled(NAMES, 2))
@pytest.mark.parametrize("harness", FILES)
def test_no_name_in_a_transcript_loses_its_session(vault, tmp_path, harness, case):
    session, cwd, kept = NAMES[case]
    path = tmp_path / f"{FILES[harness]}.jsonl"
    path.write_text(spoken(harness, session, cwd))
    os.utime(path, (1.7e9, 1.7e9))
    done = import_(vault, harness, path)
    assert (done["failed"], done["sessions"]) == ([], 1) and vault.hits("zebrafish")
    (manifest,) = written(vault, "manifest")
    head = fields(vault, manifest)
    if case == "blank":
        kept = (path.stem, None)
    assert head["session_id"] == head["session_key"] == (kept[0] or head["session_id"]) and head["project"] == kept[1]
    assert len(head["session_id"]) <= 16_000 and SECRET not in str(head)
    again = import_(vault, harness, path, "--again")
    assert (again["segments"], again["failed"]) == ([], []), "it is known as what it was written as"
    assert vault.rows("select distinct session_id, project from memory_artifacts") == [(head["session_id"], kept[1])]
    sound(vault)


@pytest.mark.parametrize("name", ["a\tb\n\x1b[31m", "\udcff", "a\x85b\u2028", SECRET])
def test_no_name_of_a_file_loses_its_session(vault, tmp_path, name):
    (tmp_path / "old").mkdir()
    path = tmp_path / "old" / f"{name}.jsonl"
    path.write_text(spoken("claude-code", "s1", "/home/u/x"))
    os.utime(path, (1.7e9, 1.7e9))
    done = import_(vault, "claude-code", tmp_path / "old")
    assert (done["failed"], done["sessions"]) == ([], 1)
    answer = vault.call("import", "claude-code", os.fspath(tmp_path / "old"))
    assert answer.code == 0 and "1 transcript" in answer.out + answer.err
    assert "\x1b" not in answer.out + answer.err
    assert import_(vault, "claude-code", tmp_path / "old")["segments"] == []
