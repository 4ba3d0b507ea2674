"""The door to what harnesses keep: which transcripts are found, whose files are read, lines, OpenCode's rows."""

from __future__ import annotations

import json
import os
import socket
import tracemalloc
from pathlib import Path

import apsw
import pytest

from signet_sync.capture import transcripts as stores_files
from signet_sync.capture.harnesses.opencode.database import read_session
from signet_sync.capture.harnesses.reader import TOO_LONG
from signet_sync.capture.transcripts import lines, list_installed, sources
from signet_sync.errors import HarnessError, UsageError
from signet_sync.storage.database import foreign


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "person"
    folder.mkdir()
    return folder


def put(path: Path, text: str = '{"type":"user"}\n', *, at: int = 1_000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (at, at))
    return path


def found(harness: str, home: Path, **options) -> list[str]:
    return [os.path.relpath(s.path, home) for s in sources(harness, {"HOME": str(home)}, **options)]


def database(path: Path, *, wal: bool = True) -> apsw.Connection:
    """A store as OpenCode makes it, as far as its columns matter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(path))
    if wal:
        connection.execute("pragma journal_mode = wal")
    connection.execute(
        "create table session (id text primary key, parent_id text, directory text not null, title text not null,"
        " revert text, time_created integer not null, time_updated integer not null);"
        "create table message (id text primary key, session_id text, time_created integer, time_updated integer,"
        " data text not null);"
        "create table part (id text primary key, message_id text, session_id text, time_created integer,"
        " time_updated integer, data text not null);"
        "create table session_message (id text primary key, session_id text not null, data text);"
    )
    return connection


def add_session(connection: apsw.Connection, session_id: str, *, updated: int = 2_000, words: str = "hello") -> None:
    connection.execute(
        "insert into session values (?, null, '/home/u/lantern', 'A title', null, 1000, ?)", (session_id, updated)
    )
    for number, role in enumerate(("user", "assistant")):
        message = f"msg_{session_id}_{number}"
        connection.execute(
            "insert into message values (?, ?, ?, 0, ?)",
            (message, session_id, 1000 + number, json.dumps({"role": role})),
        )
        connection.execute(
            "insert into part values (?, ?, ?, 0, 0, ?)",
            (f"prt_{message}", message, session_id, json.dumps({"type": "text", "text": f"{words} {role}"})),
        )


# ── where transcripts are ───────────────────────────────────────────────────────────────────────────────────────────


def test_each_folder_of_claude_code_is_read_once(home):
    for place in (".claude", ".config/claude"):
        put(home / place / f"projects/-x/{place[-6:]}.jsonl")
    environ = {"HOME": str(home)}
    assert len(list(sources("claude-code", environ))) == 2
    assert list(sources("claude-code", environ | {"CLAUDE_CONFIG_DIR": str(home / "none")})) == []
    both = f"{home}/none, {home}/.claude,{home}/.config/claude"
    assert len(list(sources("claude-code", environ | {"CLAUDE_CONFIG_DIR": both}))) == 2
    (home / ".config/claude/projects").rename(home / "moved")
    (home / ".config/claude/projects").symlink_to(home / ".claude/projects")
    assert len(list(sources("claude-code", environ))) == 1


def test_each_harness_is_found_in_its_own_folder(home):
    put(home / ".claude/projects/-home-u-lantern/aaaa.jsonl", at=3)
    put(home / ".claude/projects/-home-u-lantern/bbbb.jsonl", at=2)
    put(home / ".claude/history.jsonl")
    put(home / ".codex/sessions/2026/03/28/rollout-2026-03-28T22-34-06-abc.jsonl", at=5)
    put(home / ".codex/archived_sessions/rollout-2025-03-28T22-34-06-abc.jsonl", at=4)
    put(home / ".codex/sessions/2026/03/28/notes.jsonl")
    put(home / ".gemini/tmp/lantern/chats/session-2026-03-28T22-34-abcd.jsonl", at=2)
    put(home / ".gemini/tmp/lantern/chats/session-2025-03-28T22-34-abcd.json", at=1)
    put(home / ".gemini/tmp/lantern/logs.json")
    put(home / ".openclaw/agents/main/sessions/cccc.jsonl")
    put(home / ".openclaw/agents/main/sessions/sessions.json")

    assert found("claude-code", home) == [
        ".claude/projects/-home-u-lantern/bbbb.jsonl",
        ".claude/projects/-home-u-lantern/aaaa.jsonl",
    ]
    assert found("codex", home) == [
        ".codex/archived_sessions/rollout-2025-03-28T22-34-06-abc.jsonl",
        ".codex/sessions/2026/03/28/rollout-2026-03-28T22-34-06-abc.jsonl",
    ]
    assert found("gemini", home) == [
        ".gemini/tmp/lantern/chats/session-2025-03-28T22-34-abcd.json",
        ".gemini/tmp/lantern/chats/session-2026-03-28T22-34-abcd.jsonl",
    ]
    assert found("openclaw", home) == [".openclaw/agents/main/sessions/cccc.jsonl"]
    assert found("opencode", home) == []
    assert list_installed({"HOME": str(home)}) == ["claude-code", "codex", "gemini", "openclaw"]


def test_files_of_sub_agents_are_no_sessions(home):
    project = home / ".claude/projects/-home-u-lantern"
    put(project / "agent-1.jsonl")
    put(project / "aaaa/subagents/agent-2.jsonl")
    put(project / "aaaa.jsonl")
    assert found("claude-code", home) == [".claude/projects/-home-u-lantern/aaaa.jsonl"]
    assert found("claude-code", home, where=str(home)) == [".claude/projects/-home-u-lantern/aaaa.jsonl"]


@pytest.mark.parametrize(("harness", "variable", "below"), [
    ("claude-code", "CLAUDE_CONFIG_DIR", "projects/p/aaaa.jsonl"),
    ("codex", "CODEX_HOME", "sessions/2026/rollout-x.jsonl"),
])  # fmt: skip
def test_a_moved_folder_is_honoured(home, harness, variable, below):
    put(home / "moved" / below)
    environ = {"HOME": str(home), variable: str(home / "moved")}
    assert [s.path for s in sources(harness, environ)] == [str(home / "moved" / below)]
    assert list_installed(environ) == [harness]


def test_links_and_odd_files_are_passed_over(home):
    project = home / ".claude/projects/p"
    kept = put(project / "kept.jsonl")
    (project / "link.jsonl").symlink_to(put(home / "elsewhere.jsonl"))
    (home / ".claude/projects/linked").symlink_to(put(home / "other/x.jsonl").parent)
    os.mkfifo(project / "pipe.jsonl")
    (project / "folder.jsonl").mkdir()
    assert found("claude-code", home) == [os.path.relpath(kept, home)]


def test_a_store_that_is_itself_a_link_is_followed(home):
    put(home / "disk/projects/p/aaaa.jsonl")
    (home / ".claude").symlink_to(home / "disk")
    assert [Path(path).name for path in found("claude-code", home)] == ["aaaa.jsonl"]


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


@pytest.mark.parametrize("where", ["nowhere", "pipe", "a\0b"])
def test_a_named_path_that_cannot_be_read_is_an_error_with_a_hint(home, where):
    os.mkfifo(home / "pipe")
    with pytest.raises(HarnessError) as caught:
        list(sources("codex", {"HOME": str(home)}, str(home / where)))
    assert (caught.value.code, caught.value.exit_code) == ("transcript-unreadable", 2)
    assert caught.value.hint and caught.value.path


def test_an_unknown_harness_is_a_usage_error(home):
    with pytest.raises(UsageError, match="no harness"):
        list(sources("texts", {"HOME": str(home)}))


# ── lines ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_lines_end_at_line_feeds_only(home):
    path = home / "x.jsonl"
    path.write_bytes(b'{"a":"\xe2\x80\xa8\r\x85"}\r\n\n{"torn')
    assert list(lines(str(path))) == [b'{"a":"\xe2\x80\xa8\r\x85"}\r\n', b"\n", b'{"torn']


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1000])
def test_lines_are_the_same_whatever_the_chunks(home, monkeypatch, chunk):
    content = b"one\n\ntwo two\r\n" + b"x" * 50 + b"\nlast"
    path = home / "x.jsonl"
    path.write_bytes(content)
    monkeypatch.setattr(stores_files, "CHUNK", chunk)
    assert list(lines(str(path))) == content.splitlines(keepends=True)


@pytest.mark.parametrize("tail", [b"\nafter\n", b""])
def test_a_line_beyond_the_limit_is_damage(home, monkeypatch, tail):
    monkeypatch.setattr(stores_files, "LINE_LIMIT", 1000)
    monkeypatch.setattr(stores_files, "CHUNK", 64)
    path = home / "x.jsonl"
    path.write_bytes(b"before\n" + b"x" * 5000 + tail)
    assert list(lines(str(path))) == [b"before\n", TOO_LONG, *([b"after\n"] if tail else [])]


def test_a_large_file_never_stands_in_memory(home):
    path = home / "x.jsonl"
    with path.open("wb") as file:
        for _ in range(400):
            file.write(b"y" * 99_999 + b"\n")
    tracemalloc.start()
    try:
        assert sum(len(line) for line in lines(str(path))) == 40_000_000
        assert tracemalloc.get_traced_memory()[1] < 6_000_000
    finally:
        tracemalloc.stop()


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


def test_sessions_are_read_while_opencode_runs(home):
    path = home / ".local/share/opencode/opencode.db"
    writer = database(path)
    add_session(writer, "ses_b", updated=3_000)
    add_session(writer, "ses_a", updated=2_000)
    assert (path.parent / "opencode.db-wal").stat().st_size > 0  # all of it still stands in the log

    listed = list(sources("opencode", {"HOME": str(home)}))
    assert [(s.session_id, s.mtime_ns) for s in listed] == [("ses_a", 2_000_000_000), ("ses_b", 3_000_000_000)]
    assert {s.path for s in listed} == {str(path)}
    session, messages = read_session(str(path), "ses_b")
    assert session["directory"] == "/home/u/lantern"
    assert [json.loads(m.data)["role"] for m in messages] == ["user", "assistant"]
    assert json.loads(messages[1].parts[0][1])["text"] == "hello assistant"
    writer.execute("insert into message values ('m', 'ses_a', 9, 9, '{}')")  # reading locked nothing
    writer.close()


def test_xdg_data_home_and_a_named_folder(home):
    path = home / "data/opencode/opencode.db"
    writer = database(path)
    add_session(writer, "ses_a")
    writer.close()
    environ = {"HOME": str(home), "XDG_DATA_HOME": str(home / "data")}
    assert [s.session_id for s in sources("opencode", environ)] == ["ses_a"]
    assert list_installed(environ) == ["opencode"]
    assert [s.session_id for s in sources("opencode", {"HOME": str(home)}, str(path.parent))] == ["ses_a"]


def test_values_are_data(home):
    path = home / "opencode.db"
    writer = database(path)
    add_session(writer, "x' or 1=1 --", words="it's")
    writer.execute("insert into session values (x'00ff', null, 7, x'ff', null, 1, 1)")
    writer.execute("insert into message values ('odd', 'x'' or 1=1 --', 3, 0, x'fffe')")
    writer.close()
    assert [s.session_id for s in sources("opencode", {}, str(path))] == ["x' or 1=1 --"]
    _, messages = read_session(str(path), "x' or 1=1 --")
    assert [type(m.data) for m in messages] == [str] * 3
    with pytest.raises(HarnessError) as caught:
        read_session(str(path), "' or 1=1 --")
    assert caught.value.code == "session-unknown"


def test_a_locked_database_is_an_error_soon(home, monkeypatch):
    monkeypatch.setattr(foreign, "BUSY_MS", 50)
    path = home / "opencode.db"
    writer = database(path, wal=False)
    add_session(writer, "ses_a")
    writer.execute("begin exclusive")
    with pytest.raises(HarnessError, match="locked"):
        read_session(str(path), "ses_a")
    writer.execute("rollback")
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
    writer = database(path)
    writer.execute(change)
    writer.close()
    with pytest.raises(HarnessError) as caught:
        read_session(str(path), "ses_new")
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


def test_reading_changes_no_byte_of_the_store(home):
    path = home / "opencode.db"
    writer = database(path)
    add_session(writer, "ses_a")
    writer.close()
    before = path.read_bytes()
    assert [s.session_id for s in sources("opencode", {"HOME": str(home)}, str(path))] == ["ses_a"]
    read_session(str(path), "ses_a")
    assert path.read_bytes() == before
