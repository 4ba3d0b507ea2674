"""The door to what harnesses keep: which transcripts are found, whose files are read, lines, OpenCode's rows."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import apsw
import harness_samples
import pytest
from harness_samples import Turn

from signet_sync.capture import transcripts as stores_files
from signet_sync.capture.harnesses.opencode.database import read_session
from signet_sync.capture.harnesses.reader import TOO_LONG
from signet_sync.capture.transcripts import lines, list_installed, sources
from signet_sync.errors import HarnessError, UsageError


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "person"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME")
    return folder


def put(path: Path, text: str = '{"type":"user"}\n', *, at: int = 1_000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (at, at))
    return path


def found(harness: str, home: Path, **options) -> list[str]:
    return [os.path.relpath(s.path, home) for s in sources(harness, **options)]


def database(path: Path, *sessions: str) -> apsw.Connection:
    """OpenCode's store as its sample writes it, with the same words in each session; all but the first in the log."""
    turns = [Turn("user", "hello user"), Turn("assistant", "hello assistant")]
    path.parent.mkdir(parents=True, exist_ok=True)
    harness_samples.sample("opencode").write(path, sessions[0], "/home/u/lantern", turns, ())
    connection = apsw.Connection(str(path))
    connection.execute("pragma journal_mode = wal").fetchall()
    connection.execute("create table session_message (id, session_id, data)")
    for session in sessions[1:]:
        copy = {
            "session": f"'{session}', parent_id, directory, title, revert, time_created, time_updated + 1",
            "message": f"id || '{session}', '{session}', time_created, time_updated, data",
            "part": f"id || '{session}', message_id || '{session}', '{session}', time_created, time_updated, data",
        }
        for table, columns in copy.items():
            of = "id" if table == "session" else "session_id"
            connection.execute(f"insert into {table} select {columns} from {table} where {of} = ?", sessions[:1])
    return connection


# ── where transcripts are ───────────────────────────────────────────────────────────────────────────────────────────


def test_each_folder_of_claude_code_is_read_once(home, monkeypatch):
    for place in (".claude", ".config/claude"):
        put(home / place / f"projects/-x/{place[-6:]}.jsonl")
    assert len(sources("claude-code")) == 2
    for folders, count in ((f"{home}/none", 0), (f"{home}/none, {home}/.claude,{home}/.config/claude", 2)):
        with monkeypatch.context() as moved:
            moved.setenv("CLAUDE_CONFIG_DIR", folders)
            assert len(sources("claude-code")) == count
    (home / ".config/claude/projects").rename(home / "moved")
    (home / ".config/claude/projects").symlink_to(home / ".claude/projects")
    assert len(sources("claude-code")) == 1


def test_each_harness_is_found_in_its_own_folder(home):
    for number, path in enumerate((
        ".gemini/tmp/lantern/chats/session-2025-03-28T22-34-abcd.json", ".claude/projects/-home-u-lantern/bbbb.jsonl",
        ".claude/projects/-home-u-lantern/aaaa.jsonl", ".codex/archived_sessions/rollout-2025-03-28T22-34-06-abc.jsonl",
        ".gemini/tmp/lantern/chats/session-2026-03-28T22-34-abcd.jsonl", ".openclaw/agents/main/sessions/cccc.jsonl",
        ".codex/sessions/2026/03/28/rollout-2026-03-28T22-34-06-abc.jsonl", ".claude/history.jsonl",
        ".codex/sessions/2026/03/28/notes.jsonl", ".gemini/tmp/lantern/logs.json",
        ".openclaw/agents/main/sessions/sessions.json", ".claude/projects/-home-u-lantern/agent-1.jsonl",
        ".claude/projects/-home-u-lantern/aaaa/subagents/agent-2.jsonl",
    )):  # fmt: skip
        put(home / path, at=number)
    expected = {
        "claude-code": ["bbbb.jsonl", "aaaa.jsonl"], "openclaw": ["cccc.jsonl"], "opencode": [],
        "codex": ["rollout-2025-03-28T22-34-06-abc.jsonl", "rollout-2026-03-28T22-34-06-abc.jsonl"],
        "gemini": ["session-2026-03-28T22-34-abcd.jsonl"],
    }  # fmt: skip
    assert {harness: [Path(path).name for path in found(harness, home)] for harness in expected} == expected
    assert list_installed() == ["claude-code", "codex", "gemini", "openclaw"]
    # Files of sub-agents are no sessions wherever they are.
    named = found("claude-code", home, where=str(home / ".claude/projects"))
    assert [Path(path).name for path in named] == ["bbbb.jsonl", "aaaa.jsonl"]


@pytest.mark.parametrize(("harness", "variable", "below"), [
    ("claude-code", "CLAUDE_CONFIG_DIR", "projects/p/aaaa.jsonl"),
    ("codex", "CODEX_HOME", "sessions/2026/rollout-x.jsonl"), ("opencode", "XDG_DATA_HOME", "opencode/opencode.db"),
])  # fmt: skip
def test_a_moved_folder_is_honoured(home, monkeypatch, harness, variable, below):
    path = home / "moved" / below
    monkeypatch.setenv(variable, str(home / "moved"))
    database(path, "ses_a").close() if harness == "opencode" else put(path)
    assert [s.path for s in sources(harness)] == [str(path)]
    assert list_installed() == [harness]


def test_links_and_odd_files_are_passed_over_but_a_store_that_is_itself_a_link(home):
    project = home / "disk/projects/p"
    (home / ".claude").symlink_to(home / "disk")
    put(project / "kept.jsonl")
    (project / "link.jsonl").symlink_to(put(home / "elsewhere.jsonl"))
    (home / "disk/projects/linked").symlink_to(put(home / "other/x.jsonl").parent)
    os.mkfifo(project / "pipe.jsonl")
    (project / "folder.jsonl").mkdir()
    assert [Path(path).name for path in found("claude-code", home)] == ["kept.jsonl"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_is_neither_found_nor_read(home):
    path = put(home / ".claude/projects/p/theirs.jsonl")
    os.chown(path, 12345, -1)
    assert found("claude-code", home) == []
    with pytest.raises(HarnessError, match="another user"):
        list(lines(str(path)))


def test_a_named_file_or_folder(home):
    old = put(home / "kept/2025/any name.jsonl", at=1)
    new = put(home / "kept/new.jsonl", at=2)
    put(home / "kept/notes.md")
    assert found("openclaw", home, where=str(home / "kept")) == [os.path.relpath(p, home) for p in (old, new)]
    assert found("openclaw", home, where=str(new)) == ["kept/new.jsonl"]
    (home / "link.jsonl").symlink_to(new)
    assert found("openclaw", home, where=str(home / "link.jsonl")) == ["kept/new.jsonl"]


@pytest.mark.parametrize(("harness", "where", "error"), [
    ("codex", "nowhere", HarnessError), ("codex", "pipe", HarnessError), ("codex", "a\0b", HarnessError),
    ("texts", "", UsageError),
])  # fmt: skip
def test_what_cannot_be_read_is_an_error_with_a_hint(home, harness, where, error):
    os.mkfifo(home / "pipe")
    with pytest.raises(error) as caught:
        sources(harness, str(home / where))
    if error is HarnessError:
        assert (caught.value.code, caught.value.exit_code) == ("transcript-unreadable", 2)
        assert caught.value.hint and caught.value.path


# ── lines ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("tail", [b"\nafter\n", b""])
def test_a_line_beyond_the_limit_is_damage(home, monkeypatch, tail):
    monkeypatch.setattr(stores_files, "LINE_LIMIT", 1000)
    path = home / "x.jsonl"
    path.write_bytes(b"before\n" + b"x" * 5000 + tail)
    assert list(lines(str(path))) == [b"before\n", TOO_LONG, *([b"after\n"] if tail else [])]


def test_what_is_no_regular_file_is_refused_and_never_waited_for(home):
    os.mkfifo(home / "pipe")
    put(home / "real.jsonl")
    (home / "link").symlink_to(home / "real.jsonl")
    listener = socket.socket(socket.AF_UNIX)
    before = os.getcwd()
    os.chdir(home)
    try:
        listener.bind("socket")
    finally:
        os.chdir(before)
    for name in ("pipe", "link", "socket", "absent", ".", "real.jsonl/x", "nul\0"):
        with pytest.raises(HarnessError) as caught:
            list(lines(str(home / name)))
        assert caught.value.hint and caught.value.path, name
    listener.close()


# ── OpenCode ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sessions_are_read_while_opencode_runs_and_no_byte_changes(home):
    path = home / ".local/share/opencode/opencode.db"
    writer = database(path, "ses_b", "ses_a")
    assert (path.parent / "opencode.db-wal").stat().st_size > 0  # of that session all stands in the log
    before = path.read_bytes()
    for where in (None, str(path.parent), str(path)):
        listed = sources("opencode", where)
        assert [(s.session_id, s.path) for s in listed] == [("ses_b", str(path)), ("ses_a", str(path))]
    session, messages = read_session(str(path), "ses_a")
    assert session["directory"] == "/home/u/lantern"
    assert [json.loads(m.data)["role"] for m in messages] == ["user", "assistant"]
    assert json.loads(messages[1].parts[0][1])["text"] == "hello assistant"
    assert path.read_bytes() == before
    writer.execute("insert into message values ('m', 'ses_a', 9, 9, '{}')")  # reading locked nothing
    writer.close()


@pytest.mark.parametrize(
    "change", [
        "drop table part", "alter table message rename column data to payload",
        "drop table session; create view session as select 1 as id",
        "insert into session values ('ses_new', null, '/', '', null, 1, 1);"
         "insert into session_message values ('1', 'ses_new', '{}')",
    ],
    ids=["no-part", "no-data", "a-view", "newer-tables"],
)  # fmt: skip
def test_an_unknown_shape_is_a_clear_error(home, change):
    path = home / "opencode.db"
    writer = database(path, "ses_a")
    writer.execute(change)
    writer.close()
    with pytest.raises(HarnessError) as caught:
        read_session(str(path), "ses_new" if "ses_new" in change else "ses_a")
    assert caught.value.code == "transcript-unreadable"
    assert caught.value.hint


def test_what_is_no_database_is_a_clear_error(home):
    (home / "real.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 4000)
    (home / "text.db").write_text("hello " * 400)
    (home / "link.db").symlink_to(home / "real.db")
    (home / "folder.db").mkdir()
    os.mkfifo(home / "pipe.db")
    for name in ("real.db", "text.db", "link.db", "folder.db", "pipe.db", "absent.db"):
        with pytest.raises(HarnessError):
            read_session(str(home / name), "x")
    assert not (home / "absent.db").exists()
