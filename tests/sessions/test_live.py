"""Live transcripts: what is said in a running session can be asked for at once, and goes when its files are written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import agents
import pytest
from session_inputs import FIRST, body, compact, end, fields, segments, sound, written
from test_intake import jobs, put, take
from transcript_builder import SECRET, SESSION, START, TranscriptBuilder, at, fired, plugged_in, store
from workbench import ROOT, Answer, Vault

from signet_sync.app.workspace import open_to_write
from signet_sync.capture import capture, intake, live_transcript, spool, transcripts
from signet_sync.capture.store import LiveMark, set_live_mark
from signet_sync.digest.outcome import ModelDigest
from signet_sync.formats.timestamps import SECOND, iso
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import session_input
from signet_sync.sessions.live import operations as sessions_live
from signet_sync.sessions.live import store as live
from signet_sync.sessions.live.store import LiveTurn
from signet_sync.settings.model import Settings
from signet_sync.storage.database.connection import Database

KEY = "agent:main:main"
ONE, TWO = "11ce0001-0000-4000-8000-000000000001", "11ce0002-0000-4000-8000-000000000002"


start = agents.start


def line(turn: int, text: str, second: float = 0, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"turn": turn, "role": role, "text": text, "at": at(second), **more}


def feed(vault: Vault, lines: Iterable[Any] | bytes, key: str = KEY, *options: str) -> Answer:
    """`transcript append --json` in this process; what is not bytes is written as JSON lines."""
    raw = lines if isinstance(lines, bytes) else "".join(json.dumps(one) + "\n" for one in lines).encode()
    return vault.call("transcript", "append", "--json", "--session-key", key, *options, given=raw)


def fed(vault: Vault, lines: Iterable[Any], key: str = KEY, *options: str) -> dict[str, Any]:
    answer = feed(vault, lines, key, *options)
    assert answer.code == 0, answer
    found: dict[str, Any] = answer.json
    return found


def refused(vault: Vault, lines: Iterable[Any] | bytes, code: str, key: str = KEY, *options: str) -> dict[str, str]:
    answer = feed(vault, lines, key, *options)
    assert answer.code == 2, answer
    error: dict[str, str] = answer.json["error"]
    assert error["code"] == code and error["hint"] and "\n" not in error["message"], error
    return error


def turns(vault: Vault, agent: str = "default") -> list[tuple[str, str, int, str]]:
    """What is buffered of an agent: key, id, turn, words."""
    return vault.rows(
        "select session_key, session_id, turn, content from session_transcripts where agent_id = ? order by 1, 2, 3",
        agent,
    )


def live_files(vault: Vault) -> list[Path]:
    return sorted((vault.state / "live").glob("*"))


@contextmanager
def writing(vault: Vault) -> Iterator[Database]:
    database = Database(str(vault.db))
    try:
        yield database
    finally:
        database.close()


def found(vault: Vault, *words: str, agent: str = "default") -> list[str]:
    with vault.database() as database:
        return [turn.content for turn in live.find(database, agent, words)]


# ── turns come in ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_turns_are_kept_before_there_is_any_index(vault: Vault) -> None:
    assert not vault.db.exists()
    answer = fed(vault, [line(0, "Why does the queue wait?"), line(1, "It retries.", 1, "assistant")])
    assert answer == {
        "agent_id": "default", "session_key": KEY, "turns": 2, "appended": 2, "duplicates": 0, "redactions": {},
    }  # fmt: skip
    assert found(vault, "QUEUE") == ["Why does the queue wait?"]
    vault.reindex("--full")
    assert len(turns(vault)) == 2, "native rows outlive a rebuild"


def test_a_turn_is_kept_once(vault: Vault) -> None:
    fed(vault, [line(0, "one"), line(1, "two")])
    again = fed(vault, [line(1, "two", 9), line(2, "three"), line(2, "three")])
    assert (again["turns"], again["appended"], again["duplicates"]) == (3, 1, 2)
    assert [turn[3] for turn in turns(vault)] == ["one", "two", "three"]


def test_other_words_under_a_number_are_refused_and_nothing_is_written(vault: Vault) -> None:
    fed(vault, [line(0, "one")])
    for lines in ([line(1, "two"), line(0, "uno")], [line(1, "two"), line(1, "zwei")], [line(0, "one", role="tool")]):
        assert "other words" in refused(vault, lines, "turn-conflict")["message"]
        assert [turn[3] for turn in turns(vault)] == ["one"]


WRONG: list[tuple[Any, str]] = [
    (b'{"turn": 0, "role": "user"', "line 1 is not JSON"),
    (b"\n\n[1]\n", "line 3 is not a JSON object"),
    (b'{"turn": 0, "role": "us\xff"}', "line 1 is not UTF-8: byte 23"),
    (b"[" * 100_000, "line 1 is not JSON that can be read"),
    (b'{"turn": ' + b"9" * 5000 + b"}", "line 1 is not JSON that can be read"),
    ([line(0, "fine"), line(-1, "x")], "line 2 has a turn"),
    ([line(True, "x")], "line 1 has a turn"),
    ([line(2**63, "x")], "line 1 has a turn"),
    ([line(0, "x", role=" ")], "line 1 has a role"),
    ([line(0, "x", role="a\nb")], "line 1 has a role"),
    ([line(0, 7)], "line 1 has a text"),
    ([line(0, "x") | {"at": "yesterday"}], "line 1 has an at"),
    ([line(0, "x", who="me")], "line 1 has an unknown field 'who'"),
    ([{"turn": 0, "role": "user", "at": at(0)}], "line 1 lacks text"),
]  # fmt: skip


def test_errors_name_the_line(vault: Vault) -> None:
    for raw, told in WRONG:
        assert told in refused(vault, raw, "input-invalid")["message"]
        assert not vault.db.exists(), "what is wrong is found before anything is opened"


def test_a_clock_that_goes_ahead_is_ours(vault: Vault) -> None:
    ahead = iso(time.time_ns() // 1000 + 3600 * SECOND)
    fed(vault, [line(0, "x") | {"at": ahead}], KEY, "--session-id", ONE)
    assert vault.rows("select at from session_transcripts")[0][0] < ahead
    end(vault, session_id=ONE, session_key=KEY)
    assert turns(vault) == []


# ── endings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_ending_takes_its_own_turns_and_no_others(vault: Vault) -> None:
    """A constant key has many sessions, and turns whose session nobody named."""
    fed(vault, [line(0, "first"), line(1, "later than it says that it ended", 500)], KEY, "--session-id", ONE)
    fed(vault, [line(0, "second")], KEY, "--session-id", TWO)
    fed(vault, [line(0, "somebody"), line(1, "at the end", 60), line(2, "somebody, later", 60.001)])
    fed(vault, [line(0, "other key")], "agent:other", "--session-id", ONE)
    end(vault, session_id=ONE, session_key=KEY, ended_at=at(60))
    assert [turn[3] for turn in turns(vault)] == ["somebody, later", "second", "other key"]
    end(vault, session_id=TWO, session_key=KEY, captured_at=at(61), transcript="## User\n\nAnother.\n")
    assert [turn[3] for turn in turns(vault)] == ["other key"]


def test_a_key_that_is_the_id_names_one_session(vault: Vault) -> None:
    fed(vault, [line(0, "mine"), line(1, "said after the time that the ending names", 900)], ONE)
    end(vault, session_id=ONE, ended_at=at(60), captured_at=at(60))
    assert turns(vault) == []


def test_what_is_said_while_an_ending_is_written_stays(vault: Vault) -> None:
    """Its words are not in the files; they stay until they are."""
    fed(vault, [line(0, "before")], KEY, "--session-id", ONE)
    now_us = time.time_ns() // 1000
    later = iso(now_us + SECOND)

    def meanwhile(*_: object, **__: object) -> ModelDigest:
        time.sleep(1.05)
        fed(vault, [line(1, "meanwhile") | {"at": later}], KEY, "--session-id", ONE)
        return ModelDigest()

    ending = {"session_id": ONE, "session_key": KEY, "transcript": FIRST}
    with open_to_write(str(vault.root), Settings()) as workspace:
        sessions_operations.write(workspace, session_input(ending, now_us=now_us), now_us=now_us, propose=meanwhile)
    assert [turn[3] for turn in turns(vault)] == ["meanwhile"]


def test_what_was_streamed_and_no_transcript_holds_becomes_part_of_the_artifact(vault: Vault) -> None:
    fed(vault, [line(0, "Where is the heron?"), line(1, "At the pond.", 1, "assistant")], KEY, "--session-id", ONE)
    fed(vault, [line(2, "And the otter?", 90), line(3, "src/otter.py", 91, "tool")], KEY, "--session-id", ONE)
    session = f"## User · {at(60)}\n\nWhy?\n\n## Assistant · {at(100)}\n\nBecause.\n"
    answer = end(vault, session_id=ONE, session_key=KEY, transcript=session, transcript_is="tail")
    text = body(vault, answer["transcript"])
    words = ["heron?", "pond.", "Why?", "otter?", "src/otter.py", "Because."]
    assert [text.count(word) for word in words] == [1] * 6 and sorted(words, key=text.find) == words
    assert text.count(" · live") == 4 and f"## User · {at(90)} · live\n\nAnd the otter?" in text
    assert turns(vault) == [] and live_files(vault) == [] and vault.hits("otter")
    # Whoever tells the whole again, with the streamed turns in it or without, brings nothing twice.
    held = f"## User · {at(0)}\n\nWhere is the heron?\n\n{session}"
    for whole in (session, held, held.replace("Why?", f"Why?\n\n## User · {at(89)}\n\nAnd the otter?")):
        fed(vault, [line(1, "At the pond.", 1, "assistant")], KEY, "--session-id", ONE)
        assert end(vault, session_id=ONE, session_key=KEY, transcript=whole)["idempotent_replay"] and turns(vault) == []
    more = end(vault, session_id=ONE, session_key=KEY, transcript=f"{held}\n## User · {at(300)}\n\nAnything else?\n")
    assert body(vault, more["transcript"]) == f"## User · {at(300)}\n\nAnything else?"
    sound(vault)


def test_what_takes_several_files_is_compared_with_all_of_it(
    vault: Vault, talk: TranscriptBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "SEGMENT_BYTES", 300)
    for number in range(2, 6):
        talk.exchange(number)
    fed(vault, [line(0, "Question 5: why does question5word of src/queue.py wait?", 50)], SESSION)
    fed(vault, [line(1, "Nobody else heard of the heron.", 25)], SESSION)
    put(vault, talk, "end")
    take(vault)
    texts = "\n".join(segments(vault))
    assert len(segments(vault)) > 2 and texts.count("question5word") == texts.count("heron") == 1
    assert texts.count(" · live") == 1 and turns(vault) == []


def test_what_was_said_is_written_by_the_sanitizer_of_today(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session may run while signet-sync is upgraded."""
    with monkeypatch.context() as patch:
        patch.setattr(sessions_live, "sanitize_counted", lambda text: (text, {}))
        fed(vault, [line(0, f"The key is {SECRET}.")], KEY, "--session-id", ONE)
    assert SECRET in turns(vault)[0][3]
    end(vault, session_id=ONE, session_key=KEY, transcript=f"## User\n\nThe key is {SECRET}.\n")
    assert segments(vault) == ["## User\n\nThe key is [REDACTED:github]."] and turns(vault) == []


def test_turns_outlive_the_database(vault: Vault) -> None:
    fed(vault, [line(0, "one"), line(1, "two")], KEY, "--session-id", ONE)
    fed(vault, [line(0, "other")], KEY, "--agent", "scout")
    assert [oct(path.stat().st_mode)[-3:] for path in (vault.state / "live", *live_files(vault))] == [
        "700", "600", "600",
    ]  # fmt: skip
    before = turns(vault), turns(vault, "scout")
    for path in vault.state.glob("signet-sync.db*"):
        path.unlink()
    fed(vault, [line(2, "three")], KEY, "--session-id", ONE)
    vault.reindex()
    assert (turns(vault)[:-1], turns(vault, "scout")) == before and turns(vault)[-1][3] == "three"


def test_a_file_that_cannot_be_read_is_written_anew(vault: Vault) -> None:
    fed(vault, [line(0, "one", project="/home/ada/mill")])
    vault.reindex()
    (path,) = live_files(vault)
    path.write_bytes(b"nonsense\n")
    assert fed(vault, [line(0, "one"), line(1, "two")])["duplicates"] == 1, "the rows still know"
    fed(vault, [line(2, "three")])
    path.write_bytes(path.read_bytes().replace(b'"one"', b'"one'))
    vault.reindex()
    assert [turn[3] for turn in turns(vault)] == ["one", "two", "three"] and b'"one"' in path.read_bytes()
    assert vault.rows("select project from live_sessions") == [("/home/ada/mill",)]
    # Where the database is lost, too, what can be read is kept.
    path.write_bytes(path.read_bytes().replace(b'"one"', b'"one'))

    def lost() -> list[str]:
        for place in vault.state.glob("signet-sync.db*"):
            place.unlink()
        vault.reindex()
        return [turn[3] for turn in turns(vault)]

    assert lost() == ["two", "three"]
    with path.open("ab") as file:
        file.write(b'{"turns": [{"tu')
    fed(vault, [line(4, "four")])
    assert lost() == ["two", "three", "four"], "what was not written to its end spoils nothing"


def test_a_backup_carries_the_turns(vault: Vault, tmp_path: Path) -> None:
    fed(vault, [line(0, "heron of before"), line(1, "pond", 1, "assistant")], KEY, "--session-id", ONE)
    fed(vault, [line(0, "written meanwhile")], KEY, "--session-id", TWO)
    vault.reindex()
    kept = tmp_path / "kept.db"
    assert vault.call("backup", "create", str(kept)).code == 0
    before = turns(vault)
    end(vault, session_id=TWO, session_key=KEY, transcript="")
    shutil.rmtree(vault.state)
    assert vault.call("backup", "restore", str(kept), "--yes").code == 0
    assert turns(vault) == [turn for turn in before if turn[1] == ONE], "what an artifact holds does not come back"
    assert [b"heron of before" in path.read_bytes() for path in live_files(vault)] == [True]


def test_a_compaction_writes_the_turns_so_far_and_the_ending_leaves_them_out(vault: Vault) -> None:
    fed(vault, [line(0, "Why does the heron wait?"), line(1, "It fishes.", 1, "assistant")], KEY, "--session-id", ONE)
    answer = compact(vault, session_id=ONE, session_key=KEY, captured_at=at(100))
    assert turns(vault) == [] and live_files(vault) == []
    said = [f"## User · {at(0)} · live", "Why does the heron wait?", f"## Assistant · {at(1)} · live", "It fishes."]
    assert body(vault, answer["transcript"]) == "\n\n".join(said)
    assert fields(vault, answer["manifest"])["transcript_path"] == answer["transcript"]
    assert vault.hits("heron")
    # The same turns again, one of them by another clock, and one more.
    fed(vault, [line(1, "It fishes.", 1.5, "assistant"), line(2, "For long?", 2)], KEY, "--session-id", ONE)
    whole = "## User\n\nWhy does the heron wait?\n\n## Assistant\n\nIt  fishes.\n\n- `Bash` ls\n\n"
    end(vault, session_id=ONE, session_key=KEY, transcript=f"{whole}## User\n\nFor long?\n", captured_at=at(200))
    assert segments(vault)[1:] == ["## Assistant\n\n- `Bash` ls\n\n## User\n\nFor long?"]
    assert turns(vault) == [] and live_files(vault) == []
    sound(vault)


def removed(vault: Vault, name: str) -> None:
    answer = vault.call("remove", name, "--reason", "asked", "--yes", "--quoting", "keep", "--json")
    assert answer.code == 0, answer


def test_a_removed_session_takes_its_turns_along_and_gets_none_again(vault: Vault) -> None:
    for session_id in (ONE, TWO):
        end(vault, session_id=session_id, session_key=KEY, transcript=f"{FIRST}\n{session_id}\n")
        fed(vault, [line(7, f"zqxlive {session_id}")], KEY, "--session-id", session_id)
    fed(vault, [line(7, "zqxlive of somebody")])
    fed(vault, [line(7, "zqxlive by its id alone")], ONE)
    removed(vault, ONE)
    assert [(turn[1], turn[3]) for turn in turns(vault)] == [(TWO, f"zqxlive {TWO}")]
    raw = b"".join(path.read_bytes() for path in vault.state.rglob("*") if path.is_file())
    assert f"zqxlive {ONE}".encode() not in raw and b"zqxlive of somebody" not in raw and b"by its id" not in raw
    for key, options in ((KEY, ("--session-id", ONE)), (ONE, ())):
        error = refused(vault, [line(8, "again")], "removed-session", key, *options)
        assert "was removed" in error["message"] and "--undo" in error["hint"]
    fed(vault, [line(8, "goes on")], KEY, "--session-id", TWO)
    fed(vault, [line(8, "somebody goes on")])
    vault.reindex()
    assert len(turns(vault)) == 3, "the others stay at every pass"
    removed(vault, KEY)
    assert turns(vault) == []
    refused(vault, [line(9, "again")], "removed-session", KEY, "--session-id", TWO)
    fed(vault, [line(9, "of another agent")], KEY, "--agent", "scout", "--session-id", ONE)


# ── transcripts that harnesses write ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def talk(vault: Vault) -> TranscriptBuilder:
    """A session of Claude Code that is at work, and whose hook has said so."""
    talk = TranscriptBuilder(store(Path(os.environ["HOME"])))
    talk.exchange(1)
    plugged_in(vault, "claude-code")
    put(vault, talk, "stop")
    return talk


def hear(vault: Vault, talk: TranscriptBuilder, later: float) -> None:
    """A hook tells that the session is at work, and somebody takes that in."""
    put(vault, talk, "stop")
    take(vault, later=later)


def said(vault: Vault) -> list[tuple[int, str]]:
    rows = vault.rows("select turn, content from session_transcripts where session_key = session_id order by turn")
    return [(turn, content) for turn, content in rows]


def test_a_running_session_can_be_asked_for(vault: Vault, talk: TranscriptBuilder) -> None:
    take(vault)
    assert said(vault) == [
        (1, "Question 1: why does question1word of src/queue.py wait?"),
        (2, "Answer 1: answer1word bounds the retry loop."),
    ]
    assert vault.rows("select role, at from session_transcripts") == [("user", at(10)), ("assistant", at(11))]
    assert vault.rows("select count(*) from captures") == [(0,)] and list(vault.memory.iterdir()) == []
    assert jobs(vault) == ["stop"]
    # More is said, and the last record is only half written.
    talk.call("ls", 15)
    talk.user(f"Use {SECRET}.", 16)
    talk.raw(b'{"type": "assistant", "uuid": "torn", "mess')
    hear(vault, talk, 10)
    assert said(vault)[2:] == [(3, "Use [REDACTED:github].")]
    # It goes idle: what was said is captured, and the turns are gone.
    take(vault, later=1000)
    assert said(vault) == [] and jobs(vault) == [] and vault.hits("question1word")
    assert vault.rows("select name from live_transcripts") == []
    removed(vault, SESSION)
    talk.exchange(2)
    hear(vault, talk, 10)
    assert said(vault) == [] and jobs(vault) == []


def test_what_did_not_move_is_not_read_again_and_what_moves_rests(
    vault: Vault, talk: TranscriptBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    real = live_transcript.update_live_turns
    monkeypatch.setattr(intake.live_transcript, "update_live_turns", lambda *given: reads.append(1) or real(*given))
    for later in (0, 1, 30):
        hear(vault, talk, later)
    assert len(reads) == 1
    talk.exchange(2)
    hear(vault, talk, 31)
    assert len(reads) == 2
    talk.exchange(3)
    hear(vault, talk, 33)
    assert len(reads) == 2, "a moment ago"
    hear(vault, talk, 35)
    assert len(reads) == 3 and found(vault, "question3word")
    before = vault.rows("select * from session_transcripts")
    talk.raw(b'{"type": "mode"}\n')
    take(vault, later=60)
    assert len(reads) == 3, "no hook has told of it"
    take(vault, later=100)
    assert len(reads) == 4 and vault.rows("select * from session_transcripts") == before
    talk.exchange(4)
    # A clock that was set back does not put it off for long.
    with writing(vault) as database:
        (name,) = spool.markers(str(vault.state / "spool"))
        set_live_mark(database, name, LiveMark("", "", time.time_ns() // 1000 + 3600 * SECOND))
    take(vault)
    assert len(reads) == 5


def test_a_transcript_that_kills_whoever_reads_it_is_left_alone_for_a_while(
    vault: Vault, talk: TranscriptBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []

    def dies(*_: object) -> None:
        reads.append(1)
        raise MemoryError

    monkeypatch.setattr(intake.live_transcript, "update_live_turns", dies)
    for _ in range(2):
        with pytest.raises(MemoryError):
            hear(vault, talk, 100 * len(reads))
        talk.exchange(2 + len(reads))
        hear(vault, talk, 100 * (len(reads) - 1) + 10)
    assert len(reads) == 2


def test_what_a_segment_of_live_turns_lacks_is_captured(vault: Vault, talk: TranscriptBuilder) -> None:
    fed(vault, [line(0, "Question 1: why does question1word of src/queue.py wait?", 10)], SESSION)
    compact(vault, session_id=SESSION, session_key=SESSION, captured_at=at(100))
    put(vault, talk, "end")
    take(vault)
    texts = "\n".join(segments(vault))
    assert "answer1word" in texts and texts.count("question1word") == 1


def test_what_was_taken_back_is_gone(vault: Vault, talk: TranscriptBuilder) -> None:
    tip = talk.tip
    talk.exchange(2)
    take(vault)
    assert len(said(vault)) == 4
    talk.tip = tip
    talk.exchange(3, 50)
    hear(vault, talk, 10)
    assert found(vault, "question3word")
    with vault.database() as database:
        kept = live.transcript(database, "default", SESSION, SESSION)
    (source,) = transcripts.sources("claude-code", str(talk.path))
    words = [e.text for e in capture.read(source).entries if e.kind in ("user", "assistant")]
    assert [turn.content for turn in kept] == words


@pytest.mark.parametrize("names", [(KEY, "--session-id", SESSION), (SESSION,)], ids=["id", "key"])
def test_a_session_that_somebody_streams_is_left_to_them(
    vault: Vault, talk: TranscriptBuilder, names: tuple[str, ...]
) -> None:
    fed(vault, [line(0, "streamed")], *names)
    take(vault)
    assert [turn[3] for turn in turns(vault)] == ["streamed"]


def test_a_session_that_ends_while_it_is_read_leaves_no_turns(
    vault: Vault, talk: TranscriptBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = live_transcript._make_turns

    def slow(*given: Any) -> list[LiveTurn]:
        turns = list(real(*given))
        assert vault.call("import", "claude-code", str(talk.path)).code == 0
        return turns

    monkeypatch.setattr(live_transcript, "_make_turns", slow)
    take(vault)
    assert vault.hits("question1word") and turns(vault) == []


# ── what is recallable while it is said ─────────────────────────────────────────────────────────────────────────────


def recalled(vault: Vault, words: str) -> list[str]:
    return [hit["text"] for hit in vault.call("recall", "--json", words).json["hits"]]


def test_the_first_turn_is_recallable_while_it_runs_and_stands_once(vault: Vault) -> None:
    vault.reindex()
    talk = TranscriptBuilder(store(Path(os.environ["HOME"])))
    fired(vault, talk, "UserPromptSubmit", prompt="Where does the heron sleep?")
    assert not talk.path.exists() and jobs(vault) == ["stop"] and not recalled(vault, "heron")
    # The harness writes its record, nobody tells of it.
    now = time.time() - START.timestamp()
    talk.user(f"<signet-memory>old pelican</signet-memory>Where does the heron sleep? {SECRET}", now)
    assert recalled(vault, "heron") == ["Where does the heron sleep? [REDACTED:github]"]
    talk.assistant("In the reeds, with the bittern.", now + 0.2)
    hear(vault, talk, 10)
    assert len(recalled(vault, "heron")) == len(recalled(vault, "bittern")) == 1 and not recalled(vault, "pelican")
    assert [turn for turn, _ in said(vault)] == [1, 2]
    put(vault, talk, "end")
    take(vault, later=10)
    (text,) = segments(vault)
    assert text.count("heron") == 1 and "· live" not in text and said(vault) == []
    raw = b"".join(path.read_bytes() for path in vault.state.rglob("*") if path.is_file())
    assert SECRET.encode() not in raw and b"old pelican" not in raw


def test_a_session_that_its_harness_keeps_nothing_of_leaves_nothing(vault: Vault) -> None:
    vault.reindex()
    talk = TranscriptBuilder(store(Path(os.environ["HOME"])))
    for event in ("UserPromptSubmit", "Stop", "SessionEnd"):
        fired(vault, talk, event, prompt="Nobody shall keep this heron.")
    assert jobs(vault) == ["stop"] and take(vault).failed == [] and jobs(vault) == ["stop"]
    assert take(vault, later=3600).failed == [] and jobs(vault) == []
    assert turns(vault) == [] and list(vault.memory.glob("*.md")) == []
    assert spool.count_given_up(str(vault.state / "spool")) == 0


@pytest.mark.parametrize("event", ["Stop", "SessionEnd"])
def test_a_session_whose_transcript_was_deleted_is_kept_as_far_as_it_was_read(vault: Vault, event: str) -> None:
    vault.reindex()
    talk = TranscriptBuilder(store(Path(os.environ["HOME"])))
    talk.exchange(1)
    fired(vault, talk, "Stop")
    assert recalled(vault, "answer1word")
    talk.path.unlink()
    fired(vault, talk, event)
    take(vault, later=3600)
    (text,) = segments(vault)
    assert "question1word" in text and "answer1word" in text and said(vault) == [] and jobs(vault) == []
    (path,) = written(vault, "transcript")
    assert fields(vault, path)["project"] == talk.project
    assert take(vault, later=7200).failed == []
    sound(vault)


def test_words_are_found_in_any_case_newest_first(vault: Vault) -> None:
    fed(vault, [line(0, "Das ÖL läuft aus", 1), line(1, "nothing", 2), line(2, "the 100%_queue", 3)])
    fed(vault, [line(0, "oil and QUEUE", 2)], "other")
    assert found(vault, "öl") == ["Das ÖL läuft aus"]
    assert found(vault, "queue", "öl") == ["the 100%_queue", "oil and QUEUE", "Das ÖL läuft aus"]
    assert found(vault, "%_") == ["the 100%_queue"]
    assert found(vault) == found(vault, "", "  ") == found(vault, "x%") == []
    with vault.database() as database:
        assert live.find(database, "default", ["oil"]) == [("other", "", 0, "user", at(2), "oil and QUEUE")]
        assert live.sessions(database, "default") == [(KEY, "", 3, at(1), at(3)), ("other", "", 1, at(2), at(2))]


def test_several_processes_append_at_once(vault: Vault) -> None:
    """Into a database that nobody has made yet; shared turns are kept once."""
    words = [*(sys.executable, "-m", "signet_sync", "--workspace", str(vault.root)), "transcript", "append", "--json"]
    beside = []
    for number in range(3):
        raw = "".join(json.dumps(line(turn, f"turn {turn}")) + "\n" for turn in (*range(20), 100 + number)).encode()
        told = vault.root.parent / f"turns-{number}"
        told.write_bytes(raw)
        with told.open("rb") as stream:
            beside.append(
                subprocess.Popen(
                    [*words, "--session-key", KEY], env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=stream,
                    stdout=subprocess.PIPE,
                )
            )  # fmt: skip
    answers = [json.loads(process.communicate(timeout=600)[0]) for process in beside]
    assert sum(answer["appended"] for answer in answers) == len(turns(vault)) == 23
    assert sum(answer["duplicates"] for answer in answers) == 40


def test_a_killed_session_is_recallable_at_once_whoever_is_alive(vault: Vault, talk: TranscriptBuilder) -> None:
    vault.reindex()
    assert recalled(vault, "answer1word")
    talk.user("The cormorant nests below the lamp.", 100)
    assert recalled(vault, "cormorant"), "no hook has told of it, no agent is alive"
    talk.idle()
    os.utime(talk.path)
    talk.assistant("It dives for the grebe.", 101)
    talk.idle(3600)
    assert recalled(vault, "grebe"), "not even after a quarter of an hour"
    take(vault)
    assert said(vault) == [] and recalled(vault, "grebe")
