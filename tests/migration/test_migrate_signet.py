"""Migrating from Signet: each row accounted for, each thing once, found by recall, after a backup."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import apsw
import artifacts_fixture as made
import pytest
import signet_database as signet
from invented_secrets import some
from other_memories import state_of
from signet_database import Database, Made, at, build, turn, word
from signet_writer import process_of
from workbench import NOW, Vault, tree

from signet_sync.errors import HarnessError
from signet_sync.formats.ids import token_of
from signet_sync.migration.signet import SIGNET, open_database

SECRET = "ghp_" + some(Random(24), 36)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    vault.session(2)
    return vault


def migrate(vault: Vault, *words: str, code: int = 0) -> Any:
    answer = vault.call("migrate", "signet", "--json", "--now", NOW, *words)
    assert answer.code == code, answer
    return answer.json["error"] if code else answer.json


def brought(document: Any) -> dict[str, int]:
    return {name: found["brought"] for name, found in document["tables"].items() if found["brought"]}


def assert_accounted(document: Any, made: Made) -> None:
    """Each row of the database is in the report, once: in a count, or among those that are not read."""
    told = signet.counted(document)
    assert {name: found["rows"] for name, found in document["tables"].items()} == told
    unread = [note for note in document["notes"] if note.startswith("not read: ")]
    told |= {name: int(number) for name, number in re.findall(r"(\w+) \((\d+) rows?\)", "".join(unread))}
    assert {name: told.get(name, 0) for name in made.rows if name not in _ELSEWHERE} == {
        name: number for name, number in made.rows.items() if name not in _ELSEWHERE
    }


_LINES = "memory/codex/transcripts/transcript.jsonl"
# What is read for the rest.
_ELSEWHERE = (
    "memory_artifacts", "session_summary_children", "session_summary_memories", "transcript_capture_jobs"
)  # fmt: skip


def assert_found(vault: Vault, asked: list[tuple[str, str]]) -> None:
    """Recall finds each word in its first hits."""
    for agent, query in asked:
        hits = vault.call("recall", query, "--json", "--agent", agent).json["hits"]
        assert any(query in hit["text"] for hit in hits), (agent, query, hits)


def test_each_row_is_accounted_for_and_a_second_run_brings_nothing(vault: Vault) -> None:
    vault.reindex()
    made = build(vault.root)
    seen = migrate(vault, "--dry-run")
    done = migrate(vault)
    assert seen == done | {"dry_run": True, "notes": seen["notes"], "backup": None} and Path(done["backup"]).exists()
    assert_accounted(done, made)
    assert brought(done) == {
        "memory_artifact_tombstones": 3, "session_transcripts": 4, _LINES: 3,
        "session_summaries": 5, "memories": 10,
    }  # fmt: skip
    assert_found(vault, [*made.asked, ("default", word("file", 1)), ("default", word("sum", 2))])
    before = state_of(vault)
    again = migrate(vault)
    assert brought(again) == {} and again["backup"] is None
    assert_accounted(again, made)
    assert state_of(vault) == before


def test_an_older_version_lacks_columns_and_tables(vault: Vault) -> None:
    made = build(vault.root, older=True)
    done = migrate(vault)
    assert_accounted(done, made)
    assert done["tables"]["memories"]["brought"] == 10
    assert_found(vault, made.asked)


def test_what_is_not_known_is_named_and_the_rest_is_brought(vault: Vault) -> None:
    made = build(vault.root)
    connection = apsw.Connection(str(made.path))
    connection.execute("alter table memories add column novel")
    connection.execute("create table novelties(id, content); insert into novelties values(1, 'zqxnovelty')")
    connection.execute("create table empties(id); create virtual table novel_fts using fts5(content)")
    connection.close()
    done = migrate(vault)
    assert_accounted(done, made)
    assert brought(done)["memories"] == 10
    assert done["notes"] == [
        "not read: agents (3 rows), memory_history (12 rows), memory_thread_heads (1 row), novelties (1 row),"
        " summary_jobs (1 row)"
    ]


def test_newer_versions_tell_what_ended_what_holds_and_what_their_page_says(vault: Vault) -> None:
    """Of after August 2026: another layout of the workspace, completed transcripts, a page of entries."""
    database = Database(vault.root / "data/signet.db", newer=True)
    for number, completed in ((1, at(1)), (2, None)):
        database.put("session_transcripts", session_key=f"talk-{number}", content=signet.transcript(number),
                     created_at=at(1), completed_at=completed, agent_id="default")  # fmt: skip
    for number, values in enumerate(
        [{}, {"superseded_by": "mem-0"}, {"stale_at": at(1)}, {"visibility": "archived"}, {"type": "session_summary"},
         {"source_type": "aggregate-recall"}]
    ):  # fmt: skip
        database.memory(number, f"Ada keeps {word('mem', number)}.", **{"type": "fact", **values})
    for number, status in enumerate(("active", "removed", "active")):
        text = f"Ada keeps {word('mem', 0)}." if number == 2 else f"Page of {word('head', number)}."
        database.put(
            "memory_head_entries", agent_id="default", entry_id=f"e{number}", canonical_text=text, status=status
        )
    for revision, operation in enumerate(("added", "updated", "removed")):
        for entry in ("f", "g")[: 2 if revision < 2 else 1]:
            database.put("memory_head_revisions", agent_id="default", revision=revision, operation=operation,
                         entry_id=entry, entry_text=f"Page of {word(entry, revision)}.")  # fmt: skip
    database.put("memory_head_revisions", agent_id="default", revision=3, content="The whole page.")
    database.close()
    lines = vault.root / "transcripts/codex/transcript.jsonl"
    lines.parent.mkdir(parents=True)
    lines.write_text("".join(
        turn(session_key=name, session_id=name, content=f"zqxsaid{name} wait", source_format=form) + "\n"
        for name, form in (("live", "live"), ("whole", "normalized"))
    ))  # fmt: skip
    done = migrate(vault)
    assert brought(done) == {"session_transcripts": 1, "transcripts/codex/transcript.jsonl": 1, "memories": 1,
                             "memory_head_entries": 1, "memory_head_revisions": 1}  # fmt: skip
    discarded = {"still runs, or was discarded in Signet": 1}
    assert (
        done["tables"]["session_transcripts"]["left"]
        == discarded
        == done["tables"][f"{lines.relative_to(vault.root)}"]["left"]
    )
    assert done["tables"]["memories"]["left"] == {
        "superseded or archived in Signet": 3, "of one session, which is brought itself": 1, "an answer of Signet's": 1,
    }  # fmt: skip
    assert done["tables"]["memory_head_entries"] == {
        "rows": 3, "brought": 1, "here": 1, "left": {"superseded or archived in Signet": 1},
    }  # fmt: skip
    assert done["notes"] == []
    here = [word("mem", 0), word("head", 0), word("g", 1), word("talk", 1), "zqxsaidwhole"]
    assert_found(vault, [("default", one) for one in here])
    gone = [word("mem", 1), word("head", 1), word("g", 0), word("f", 1), word("talk", 2), "zqxsaidlive"]
    assert [one for one in gone if one in vault.call("recall", one, "--json").out.partition("hits")[2]] == []
    assert brought(migrate(vault)) == {}


def test_a_session_that_signet_discarded_is_not_revived(vault: Vault) -> None:
    """Of June 2026: what was cleared has a transcript in the database and nothing else."""
    database = Database(vault.memory / "memories.db")
    for name, text in (("ended", "zqxended"), ("queued", "zqxqueued"), ("cleared", "zqxcleared")):
        database.put("session_transcripts", session_key=name, content=f"User: What of {text}?", created_at=at(1))
    database.put(
        "memory_artifacts", agent_id="default", session_key="ended", session_id="session-end:ended:0a", is_deleted=0
    )
    database.put("memory_artifacts", agent_id="default", session_key="cleared", session_id="cleared", is_deleted=1)
    database.put(
        "transcript_capture_jobs", agent_id="default", session_key="queued", session_id="session-end:queued:0a"
    )
    database.close()
    assert migrate(vault)["tables"]["session_transcripts"] == {
        "rows": 3, "brought": 2, "here": 0, "left": {"still runs, or was discarded in Signet": 1},
    }  # fmt: skip
    assert vault.hits("zqxended") and vault.hits("zqxqueued") and vault.hits("zqxcleared") == []


@pytest.mark.parametrize("name", ["signet-small", pytest.param("signet-small-jun", marks=pytest.mark.slow)])
def test_nothing_comes_twice_from_the_vaults_that_signet_wrote(shared: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(shared / "vaults" / name, tmp_path / "vault", copy_function=shutil.copyfile)
    for path in [tmp_path / "vault", *(tmp_path / "vault").rglob("*")]:
        path.chmod(0o755)
    vault = Vault(tmp_path / "vault")
    assert migrate(vault, code=2)["code"] == "database-unknown"  # what lies there is no database of Signet
    (vault.memory / "memories.db").unlink()
    made, said = signet.of_files(vault.root)
    done = migrate(vault, "--yes")
    assert_accounted(done, made)
    assert done["tables"]["session_summaries"]["left"]["of one session, which is brought itself"] > 60
    for question in Random(1).sample(sorted(set(said)), 12):
        hits = vault.call("recall", " ".join(question.split()[:8]), "--json", "--now", NOW).json["hits"][:3]
        texts = [" ".join(re.sub(r"[^\w\s]", " ", hit["text"]).casefold().split()) for hit in hits]
        assert len({*texts}) == len(texts), (question, texts)


def test_a_memory_keeps_type_tags_time_agent_and_who_may_see_it(vault: Vault) -> None:
    build(vault.root)
    migrate(vault)
    rows = vault.rows("select content, type, tags, private, agent_id, created_at from memories where content like ?",
                      "The lantern of %")  # fmt: skip
    found = {content.split()[3]: rest for content, *rest in rows}
    assert found[word("mem", 1)] == ["decision", '["night-work", "queue"]', 0, "default", at(1)]
    assert found[word("mem", 2)][0] == "preference"
    assert found[word("mem", 5)] == ["note", '["important", "night-work", "queue"]', 0, "default", at(5)]
    assert found[word("mem", 6)][1:4] == ['["night-work", "queue", "scope-client-a"]', 1, "default"]
    assert found[word("mem", 7)][1:4] == ['["far-away", "radio"]', 0, "scout"]
    assert word("mem", 5) in vault.page()
    assert vault.rows("select count(*) from pins") == [(1,)]
    shared = vault.call("context", "--scope", "shared", "--now", NOW).out
    assert word("mem", 6) not in shared


def test_a_session_that_signet_removed_is_removed_after_a_question(vault: Vault) -> None:
    removed = vault.session(3)
    token = Path(removed["summary"]).name.split("--")[1]
    database = Database(vault.root / "memory/memories.db")
    database.put("memory_artifact_tombstones", agent_id="default", session_token=token, removed_at=at(1), reason="mine")
    database.memory(1, f"Ada keeps {word('mem', 1)}.")
    database.close()
    refused = migrate(vault, code=2)
    assert "--yes" in refused["hint"] + refused["message"] and (vault / removed["summary"]).exists()
    done = migrate(vault, "--yes")
    assert done["notes"] == ["removed here, as in Signet: 1 session"]
    assert not (vault / removed["summary"]).exists() and vault.hits("number3x") == []
    assert [*vault.memory.glob("tombstones/*.md")]
    assert vault.rows("select session_token from memory_artifact_tombstones") == [(token,)]


def test_a_removal_that_was_lifted_here_stays_lifted(vault: Vault) -> None:
    vault.reindex()
    name = vault.rows("select distinct session_id from memory_artifacts limit 1")[0][0]
    for words in (("--reason", "x", "--yes"), ("--undo",)):
        assert vault.call("remove", name, *words, "--now", NOW).code == 0
    database = Database(vault.root / "memory/memories.db")
    database.put("memory_artifact_tombstones", agent_id="default", session_token=token_of("default", name),
                 removed_at=at(1), reason="mine")  # fmt: skip
    database.close()
    assert migrate(vault)["tables"]["memory_artifact_tombstones"]["left"] == {"its removal was lifted here": 1}


def test_most_of_a_vault_is_not_removed_unasked(vault: Vault) -> None:
    database = Database(vault.root / "memory/memories.db")
    for number in range(1, 25):
        path = vault.session(number)["summary"]
        database.put("memory_artifact_tombstones", agent_id="default", session_token=Path(path).name.split("--")[1],
                     removed_at=at(1), reason="all")  # fmt: skip
    database.close()
    assert migrate(vault, "--yes", code=5)["code"] == "halted"
    assert len(list(vault.memory.glob("*--summary.md"))) == 24 and not (vault.memory / "tombstones").exists()
    migrate(vault, "--yes", "--accept-removals")
    assert list(vault.memory.glob("*--summary.md")) == []


def test_a_summary_of_several_sessions_comes_without_headings_and_rules(vault: Vault) -> None:
    database = Database(vault.root / "memory/memories.db")
    said = ["The month of the lantern.", "zqxparta " + "word " * 700, "zqxpartb " + "word " * 700]
    text = "\n\n".join(["# March", said[0], "---", "<!-- made -->", "## Work", *said[1:]])
    database.put("session_summaries", id="a", depth=1, kind="arc", content=text, agent_id="default", latest_at=at(3))
    database.close()
    assert brought(migrate(vault)) == {"session_summaries": 1}
    rows = vault.rows("select content, tags, created_at from memories order by content")
    assert {row[1:] for row in rows} == {('["arc", "summary"]', at(3))}
    assert [" ".join(row[0].split()) for row in rows] == [
        " ".join(one.split()) for one in (f"{said[0]} {said[1]}", said[2])
    ]
    assert brought(migrate(vault)) == {}


def test_what_comes_of_a_removed_session_is_left(vault: Vault) -> None:
    database = Database(vault.root / "memory/memories.db")
    database.put("memory_artifact_tombstones", agent_id="default", session_token=token_of("default", "id-1"),
                 removed_at=at(1), reason="mine")  # fmt: skip
    database.put("memory_artifacts", agent_id="default", session_id="id-1", session_key="key-1")
    database.put("session_transcripts", session_key="key-1", content="User: zqxsecretive words.", created_at=at(1))
    database.put("session_summaries", id="s1", depth=0, kind="session", session_key="key-1", content="zqxsecretive.")
    database.put("session_summaries", id="c1", depth=0, kind="session", source_ref="key-1", content="zqxsecretive.")
    for parent, child, kind in (("a1", "s1", "arc"), ("a2", "c1", "arc"), ("e1", "a1", "epoch")):
        database.put("session_summaries", id=parent, depth=1, kind=kind, content=f"{parent} was of zqxsecretive.")
        database.put("session_summary_children", parent_id=parent, child_id=child)
    database.put("session_summary_memories", summary_id="s1", memory_id="mem-1")
    database.memory(1, "Ada keeps zqxsecretive things.")
    database.memory(2, "Ada keeps zqxsecretive words.", source_id="key-1")
    database.put("memory_thread_heads", agent_id="default", thread_key="t", session_key="key-1", sample="zqxsecretive")
    database.close()
    (vault.memory / "codex/transcripts").mkdir(parents=True)
    line = turn(session_key="key-1", session_id="id-1", content="zqxsecretive")
    (vault.memory / "codex/transcripts/transcript.jsonl").write_text(f"{line}\n")
    done = migrate(vault)
    assert brought(done) == {"memory_artifact_tombstones": 1}
    assert done["tables"]["session_summaries"]["left"] == {
        "its session was removed": 1, "it tells of a removed session": 4,
    }  # fmt: skip
    assert vault.hits("zqxsecretive") == [] and vault.call("recall", "zqxsecretive", "--json").json["hits"] == []


def test_sessions_of_one_key_are_told_apart(vault: Vault) -> None:
    """One of two sessions of a key was removed: what names the key alone may be of it, what names the other is not."""
    database = Database(vault.root / "memory/memories.db")
    for name in ("one", "two"):
        database.put("memory_artifacts", agent_id="default", session_id=name, session_key="shared",
                     session_token=token_of("default", name))  # fmt: skip
    database.put("memory_artifact_tombstones", agent_id="default", session_token=token_of("default", "one"),
                 removed_at=at(1), reason="mine")  # fmt: skip
    database.memory(1, "Ada keeps zqxshared things.", source_id="shared")
    database.memory(2, "Ada keeps zqxtwo things.", source_id="two")
    database.close()
    (vault / _LINES).parent.mkdir(parents=True)
    lines = [turn(session_id=name, session_key="shared", content=f"zqxline{name}") for name in ("one", "two")]
    (vault / _LINES).write_text("\n".join(lines) + "\n")
    done = migrate(vault)
    assert done["tables"]["memories"]["left"] == {"its session was removed": 1}
    assert done["tables"][_LINES] == {"rows": 2, "brought": 1, "here": 0, "left": {"its session was removed": 1}}
    assert vault.hits("zqxlineone") == [] and vault.hits("zqxlinetwo") and vault.hits("zqxshared") == []


def test_a_transcript_joins_its_session(vault: Vault) -> None:
    """Of apr: the session has a summary and a manifest, the transcript is in the database and a file of lines."""
    who = {"session_id": "apr-session", "captured_at": "2026-03-20T10:00:00.000Z", "session_key": None}
    vault.put(dict([made.summary(**who, body="# Night\n\nBounded the loop.\n"), made.manifest(**who)]))
    vault.reindex()
    database = Database(vault.root / "memory/memories.db")
    database.put("session_transcripts", session_key="apr-session", content=signet.transcript(7),
                 created_at="2026-03-20 10:00:00", agent_id="default", harness="codex")  # fmt: skip
    database.close()
    (vault.memory / "codex/transcripts").mkdir(parents=True)
    turns = [line.split(": ", 1) for line in signet.transcript(7).split("\n")]
    lines = [
        turn(session_key="other", session_id="apr-session", role=role.lower(), content=text) for role, text in turns
    ]
    (vault.memory / "codex/transcripts/transcript.jsonl").write_text("\n".join(lines) + "\n")
    done = migrate(vault)
    assert brought(done) == {"session_transcripts": 1}
    assert done["tables"][_LINES]["here"] == 2
    tokens = vault.rows("select distinct session_token from memory_artifacts where session_id = 'apr-session'")
    assert tokens == [(token_of("default", "apr-session"),)]
    assert_found(vault, [("default", word("talk", 7))])


def test_what_was_forgotten_here_does_not_come_back_and_what_was_remembered_stays(vault: Vault) -> None:
    database = Database(vault.root / "memory/memories.db")
    for number in (1, 2, 3):
        database.memory(number, f"Ada keeps {word('mem', number)}.", type="fact")
    database.close()
    vault.call("remember", f"Ada keeps {word('mem', 1)}.", "--now", NOW)
    done = migrate(vault)
    assert (done["tables"]["memories"]["brought"], done["tables"]["memories"]["here"]) == (2, 1)
    mine, second, third = (
        vault.rows("select id from memories where content like ?", f"%{word('mem', number)}%")[0][0]
        for number in (1, 2, 3)
    )
    assert vault.call("forget", second, "--now", NOW).code == 0
    assert migrate(vault)["tables"]["memories"]["left"] == {"forgotten here": 1}
    vault.call("remember", f"Ada keeps {word('mem', 3)}.", "--now", NOW)
    migrate(vault)
    assert {one for (one,) in vault.rows("select id from memories")} == {mine, third}


# ── bad input ──


def test_no_database_is_an_error_with_a_remedy(vault: Vault, tmp_path: Path) -> None:
    error = migrate(vault, code=2)
    assert error["code"] == "no-database" and error["path"] == str(vault.root) and "PATH" in error["hint"]
    assert migrate(vault, str(tmp_path / "none"), code=2)["code"] == "no-database"


def test_another_place(vault: Vault, tmp_path: Path) -> None:
    vault.reindex()
    made = build(tmp_path / "other")
    for place in (tmp_path / "other", made.path):
        found = brought(migrate(vault, str(place), "--dry-run"))
        assert found["memories"] == 10 and found[str(tmp_path / "other" / _LINES)] == 3


def _garbage(path: Path) -> None:
    path.write_bytes(b"no database" * 900)


def _torn(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    for start in range(8192, len(raw), 4096):
        raw[start : start + 64] = b"\xff" * 64
    path.write_bytes(raw)


def _torn_late(path: Path) -> None:
    """A page of a table that is read after others were brought."""
    connection = apsw.Connection(str(path))
    page = connection.execute("select rootpage from sqlite_schema where name = 'memories'").get
    size = connection.execute("pragma page_size").get
    connection.close()
    with path.open("r+b") as handle:
        handle.seek((page - 1) * size)
        handle.write(b"\xff" * 64)


def _renamed(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("alter table memories rename column content to body")
    connection.close()


def _linked(path: Path) -> None:
    path.rename(path.with_name("real.db"))
    path.symlink_to("real.db")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage", [_garbage, _torn, _torn_late, _renamed, _linked, _folder], ids=lambda one: one.__name__[1:]
)
def test_a_database_that_cannot_be_read_brings_nothing(vault: Vault, damage: Callable[[Path], None]) -> None:
    made = build(vault.root)
    damage(made.path)
    vault.reindex()
    before = state_of(vault)["rows"]
    error = migrate(vault, code=2)
    assert error["path"].endswith("memories.db") and error["hint"]
    assert state_of(vault)["rows"] == before


def test_a_locked_database_brings_nothing(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signet_sync.storage.database.foreign.BUSY_MS", 50)
    made = build(vault.root, wal=False)
    writer = apsw.Connection(str(made.path))
    writer.execute("begin exclusive; create table more(x); insert into more values(zeroblob(100000))")
    writer.execute("pragma cache_spill = 1")
    journal = made.path.with_name("memories.db-journal")
    assert journal.exists() and journal.stat().st_size
    assert migrate(vault, code=2)["code"] == "database-locked"
    writer.execute("rollback")
    writer.close()
    assert brought(migrate(vault))["memories"] == 10


def test_a_database_that_moves_while_it_is_read_is_an_error(vault: Vault) -> None:
    made = build(vault.root)
    with pytest.raises(HarnessError) as caught, open_database(str(made.path), SIGNET) as found:
        assert found.count("memories") == 12
        writer = apsw.Connection(str(made.path))
        writer.execute("insert into memories(id, content) values('late', zeroblob(10000))")
        writer.close()
    assert caught.value.code == "database-moved" and "again" in caught.value.hint


@pytest.mark.slow
def test_secrets_controls_long_texts_and_odd_values(vault: Vault, tmp_path: Path) -> None:
    database = Database(vault.root / "memory/memories.db")
    database.memory(1, f"The token is {SECRET} and zqxalpha.", tags=f"{SECRET},ok")
    database.memory(2, "zqx\x00be\x1b[31mta is \u202ehere\x07.")
    database.memory(3, "\n\n".join(f"zqxpart{chr(97 + n)} " + "word " * 700 for n in range(3)))
    database.memory(4, "x" * 10_000_000)
    database.memory(5, "Ada keeps zqxsame.", id="mem-1")
    database.memory(6, "Ada keeps zqxagent.", agent_id="Not An Agent!")
    database.memory(7, b"\xff\xfe zqxblob", importance="high", pinned="yes", created_at="yesterday")
    database.memory(8, None)
    database.memory(9, SECRET)
    database.put("session_transcripts", session_key="long", content="User: zqxlong " + "word " * 2_000_000,
                 created_at="2099-01-01T00:00:00Z")  # fmt: skip
    database.put("session_transcripts", session_key="bad\x00key\n", content=f"User: {SECRET} zqxtold")
    database.put("session_transcripts", session_key="", content="User: nobody's")
    database.put("memory_artifact_tombstones", agent_id="default", session_token="../../etc", removed_at="x")
    made = database.close()
    folder = vault.memory / "codex/transcripts"
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").write_text(
        "[]\nnot json\n" + turn(content=f"{SECRET} zqxline") + '\n{"a": 1}\n{"schema'
    )
    os.mkfifo(folder / "pipe.jsonl")
    done = migrate(vault)
    assert_accounted(done, made)
    assert done["tables"]["memories"] == {
        "rows": 9, "brought": 5, "here": 0,
        "left": {
            "its agent has a name that is not allowed here": 1, "longer than 64,000 characters": 1, "no words in it": 1,
            "nothing but a secret": 1,
        },
    }  # fmt: skip
    assert done["tables"]["session_transcripts"]["brought"] == 2
    assert done["tables"]["session_transcripts"]["left"] == {"not valid": 1}
    assert done["tables"]["memory_artifact_tombstones"]["left"] == {"not valid": 1}
    assert done["tables"][_LINES] == {
        "rows": 5, "brought": 1, "here": 0,
        "left": {"no turn of a session": 1, "the line is damaged or breaks off": 3},
    }  # fmt: skip
    assert [note for note in done["notes"] if "pipe.jsonl" in note]
    queries = "zqxalpha zqxsame zqxblob zqxparta zqxpartb zqxpartc zqxlong zqxtold zqxline"
    assert_found(vault, [("default", query) for query in queries.split()])
    assert brought(migrate(vault)) == {}
    for path in tree(tmp_path, but=("memories.db", "transcripts")):
        where = tmp_path / path
        assert not where.is_file() or SECRET.encode() not in where.read_bytes(), path


# ── its hooks ──


def test_its_hooks_stay_and_what_is_left_to_do_is_said(home: Path) -> None:
    vault = Vault(home / ".agents")
    vault.session(1)
    build(vault.root)
    settings = home / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text("{ 1 // mine\n}")
    with process_of(vault.root) as process:
        done = migrate(vault)
    assert any(f"kill {process.pid}" in line for line in done["by_hand"]) and "hooks" in done["by_hand"][0]
    assert settings.read_text() == "{ 1 // mine\n}" and not vault.reindex()["held"]
