"""Memories and pins: kept once, for one agent, until they are forgotten, and then to the last byte."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import artifacts_fixture as made
import pytest
from invented_secrets import some
from workbench import NOW, ROOT, Answer, Vault, numbered

from signet_sync.memories.store import memories
from signet_sync.memories.store.memories import Memory
from signet_sync.pages.store.views import project_inputs
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import counts
from signet_sync.text.memory import LONGEST

SECRET = "ghp_" + some(Random(8), 36)
# Full text writes only what a word does not share with the one before it in order: the first letters are left out.
CANARY = "zqxmemorycanary"
TEXT = f"Ada lets the {CANARY} decide how long the answers to her questions may be."
ID, OTHER = numbered(1)["session_id"], numbered(2)["session_id"]


def remember(vault: Vault, *words: str, code: int = 0) -> Any:
    answer = vault.call("remember", *words, "--json", "--now", NOW)
    assert answer.code == code, answer
    return answer.json["error"] if code else answer.json


def forget(vault: Vault, *words: str, code: int = 0) -> Any:
    answer = vault.call("forget", *words, "--json", "--now", NOW)
    assert answer.code == code, answer
    return answer.json["error"] if code else answer.json


def test_a_person_at_a_terminal_is_asked_before_a_memory_goes(vault: Vault) -> None:
    known = remember(vault, "The lamp burns whale oil.")["id"]
    dry = vault.call("forget", known, "--dry-run")
    assert dry.out == "The lamp burns whale oil.\nnothing was forgotten (--dry-run)\n"
    ours, theirs = pty.openpty()
    os.write(ours, b"n\n")
    line = [sys.executable, "-m", "signet_sync", "--workspace", str(vault.root), "forget", known]
    ran = subprocess.run(line, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=theirs, capture_output=True)
    assert b"whale oil" in ran.stdout and len(vault.rows("select id from memories")) == 1
    os.close(ours)
    os.close(theirs)


def remove(vault: Vault, name: str) -> None:
    answer = vault.call("remove", name, "--reason", "asked for", "--yes", "--json", "--now", NOW)
    assert answer.code == 0, answer


def leaks(vault: Vault, word: str = CANARY) -> list[str]:
    """Files of workspace and state that hold a word."""
    needle = word[3:].encode()
    return [
        str(path.relative_to(vault.root.parent))
        for path in vault.root.parent.rglob("*")
        if path.is_file() and needle in path.read_bytes().lower()
    ]


# ── remembering ──


def test_a_memory_stands_on_the_page_before_anything_was_indexed_and_hides_no_session(vault: Vault) -> None:
    vault.session(1)
    answer = vault.call("remember", "Ada", "wants", "short answers", "--type", "preference", "--now", NOW)
    assert answer.code == 0 and answer.err == ""
    (memory,) = vault.rows("select id, type, content, tags, private, created_at from memories")
    assert memory[1:] == ("preference", "Ada wants short answers", "[]", 0, NOW)
    assert answer.out == f"remembered as ^{memory[0]} (preference)\n"
    lines = vault.rows("select name, text from texts where tier = 'memory'")
    assert lines == [(memory[0], "Ada wants short answers")]
    page = vault.page()
    heading, line = page.index("## Decisions & Constraints"), page.index("Ada wants short answers")
    assert heading < line and f" ^{memory[0]}\n" in page
    assert "step number 1" in page and (vault / "ledger/2026-03.md").exists()
    assert vault.reindex()["agents"]["default"]["changed"] is False, "the page is as a pass would make it"


def test_what_is_remembered_twice_is_written_once(vault: Vault) -> None:
    first = remember(vault, "Use  tabs,\nnever blanks.", "--tag", "style")
    before = vault.rows("select * from memories"), vault.rows("select * from texts where artifact is null")
    again = remember(vault, "Use tabs, never blanks.")
    assert again == first | {"new": False, "redactions": {}}
    assert before == (vault.rows("select * from memories"), vault.rows("select * from texts where artifact is null"))
    assert len(vault.rows("select * from memory_sources")) == 1
    more = remember(vault, "Use tabs, never blanks.", "--tag", "editor", "--private")
    assert more["tags"] == ["editor", "style"] and more["private"]
    assert remember(vault, "Use tabs, never blanks.")["private"], "private stays private"
    assert remember(vault, "Use tabs, never blanks.", "--type", "decision")["id"] != first["id"]
    assert "already remembered as ^" in vault.call("remember", "Use tabs, never blanks.", "--now", NOW).out


def test_line_breaks_stay(vault: Vault) -> None:
    answer = vault.spawn("remember", "-", "--json", "--now", NOW, input=b"\xef\xbb\xbf\nfirst line\r\n\r\n  second\n\n")
    assert answer.code == 0, answer
    assert vault.rows("select content from memories") == [("first line\n\n  second",)]
    assert "first line second" in vault.page()


WRONG = [
    ((" \n ",), "memory-empty"), (("...",), "memory-empty"), ((SECRET,), "memory-empty"),
    (("x" * (LONGEST + 1),), "memory-too-long"),
    (("fine", "--tag", "a b|c"), "tag-invalid"), (("fine", "--tag", SECRET), "tag-invalid"),
    (("fine", "--tag", ""), "tag-invalid"), (("fine", "--agent", "../up"), "agent-invalid"),
    (("fine", "--type", "thought"), "usage"), (("fine", "--session", "nobody"), "unknown-session"), ((), "usage"),
]  # fmt: skip


def test_what_cannot_be_remembered_leaves_nothing(vault: Vault) -> None:
    for words, code in WRONG:
        error = remember(vault, *words, code=2)
        assert error["code"] == code and error["hint"], error
    for said, code in ((b"caf\xe9", "input-invalid"), ("é".encode() * 200_000, "memory-too-long")):
        assert vault.call("remember", "-", "--json", given=said).json["error"]["code"] == code
    assert leaks(vault, SECRET) == [] and not (vault.root.parent / "up").exists()
    assert not vault.db.exists() or vault.rows("select count(*) from memories") == [(0,)]


def test_a_memory_knows_its_project(vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "The gateway listens on port 7707."

    def told(project: str) -> list[str]:
        with vault.database() as database:
            seen = project_inputs(database, "default", 1 << 60, lambda one: one == project)
        return [one.text for one in seen.statements if one.is_memory]

    gateway = tmp_path / "gateway"
    (gateway / ".git").mkdir(parents=True)
    (gateway / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (gateway / "src").mkdir()
    monkeypatch.chdir(gateway / "src")
    assert remember(vault, said)["project"] == str(gateway)
    assert "(gateway, remembered" in (vault.root / "MEMORY.md").read_text()
    (hit,) = vault.call("recall", "gateway port", "--json").json["hits"]
    assert "a remembered note of gateway" in hit["why"]
    assert vault.call("recall", "port", "--project", "lantern", "--json").json["hits"] == []
    assert told(str(gateway)) == [said]
    assert told("/home/ada/lantern") == []
    assert remember(vault, said, "--everywhere")["project"] is None  # said for all, it is for all
    assert told("/home/ada/lantern") == [said]
    assert remember(vault, said)["project"] is None


# ── sessions as sources ──


def test_a_memory_goes_with_the_last_session_behind_it(vault: Vault) -> None:
    for number in (1, 2):
        vault.session(number)
    alone = remember(vault, f"a{CANARY} of the first", "--session", ID)["id"]
    both = remember(vault, "of two sessions", "--session", ID[:12])["id"]
    assert remember(vault, "of two sessions", "--session", OTHER)["new"] is False
    own = remember(vault, "of a session and of myself", "--session", ID)["id"]
    remember(vault, "of a session and of myself")
    assert vault.call("pin", alone, "--now", NOW).code == 0
    remove(vault, ID)
    assert {row[0] for row in vault.rows("select id from memories")} == {both, own}
    assert vault.rows("select count(*) from pins") == [(0,)]
    assert {row[0] for row in vault.rows("select name from texts where tier = 'memory'")} == {both, own}
    assert leaks(vault, f"a{CANARY}") == [] and "of two sessions" in vault.page()
    assert vault.rows("select count(*) from memory_sources where session_id = ?", ID) == [(0,)]
    remove(vault, OTHER)
    assert [row[0] for row in vault.rows("select id from memories")] == [own]
    assert remember(vault, "too late", "--session", ID, code=2)["code"] == "removed-session"


def test_a_tombstone_of_another_machine_takes_the_memory_too(vault: Vault) -> None:
    vault.session(1)
    memory = remember(vault, TEXT, "--session", ID)["id"]
    keep_a_copy(vault)
    (copy,) = vault.root.glob("MEMORY.user-*.md")
    copy.write_text(copy.read_text().replace(f" ^{memory}", ""))
    vault.put(made.tombstone(session_id=ID), "memory/tombstones")
    vault.reindex()
    assert leaks(vault) == []


# ── forgetting ──


def keep_a_copy(vault: Vault) -> None:
    """Somebody edits the page between the marks, so that a copy of it is kept."""
    page = vault.page()
    (vault / "MEMORY.md").write_text(page.replace("# Working Memory", "# Working Memory\n\na line of mine", 1))
    vault.reindex()
    (copy,) = vault.root.glob("MEMORY.user-*.md")
    assert CANARY in copy.read_text()


def test_nothing_is_left_of_what_was_forgotten(vault: Vault) -> None:
    vault.session(1)
    done = remember(vault, f"{TEXT}\nAnd the second line of the {CANARY} is as long as that.", "--tag", CANARY)
    kept = remember(vault, "Another one stays.")["id"]
    assert vault.call("pin", done["id"]).code == 0
    with vault.database(readonly=False) as database:
        counts.count_ids(database, "default", [done["id"], kept], "2026-03-28")
    keep_a_copy(vault)
    (vault / ".signet/tmp").mkdir(exist_ok=True)
    (vault / ".signet/tmp" / f"4194305-{'0' * 32}.tmp").write_text(vault.page())
    assert {"MEMORY.md", "signet-sync.db"} <= {Path(path).name for path in leaks(vault)}
    assert any("/native-" in path for path in leaks(vault)) and any(".user-" in path for path in leaks(vault))
    unseen = vault.page().replace(f" ^{done['id']}", "").replace("# W", "mine\n\n# W", 1)  # nobody has seen this edit
    (vault / "MEMORY.md").write_text(unseen)
    answer = forget(vault, f"^{done['id'][:8]}")
    assert answer == {"id": done["id"], "forgotten": True, "pending": False, "git_history": "no-repository"}
    assert leaks(vault) == [] and leaks(vault, done["id"]) == []
    assert [row[0] for row in vault.rows("select id from memories")] == [kept]
    assert vault.rows("select id from node_telemetry") == [(kept,)]
    copies = "".join(path.read_text() for path in vault.root.glob("MEMORY.user-*.md"))
    assert "a line of mine" in copies and "mine\n\n# W" in copies
    vault.reindex("--full")
    assert leaks(vault) == [] and "Another one stays." in vault.page()
    assert forget(vault, done["id"], code=2)["code"] == "unknown-handle"
    assert remember(vault, TEXT)["new"], "it may be remembered again"


def test_what_a_crash_leaves_the_next_pass_takes_away(vault: Vault) -> None:
    memory = remember(vault, TEXT)["id"]
    keep_a_copy(vault)
    with vault.database(readonly=False) as database, database.transaction():
        memories.forget(database, "default", [memory])
    assert len(leaks(vault)) >= 3
    assert CANARY not in "".join(
        row[0]
        for row in vault.rows("select mark || agent_id || memory_id from forgotten_memories join unscrubbed_memories")
    )
    vault.reindex()
    assert leaks(vault) == [] and vault.rows("select * from unscrubbed_memories") == []


def test_a_halted_vault_forgets_all_the_same(vault: Vault) -> None:
    vault.session(1)
    memory = remember(vault, TEXT)["id"]
    vault.memory.rename(vault / "elsewhere")
    assert remember(vault, "while the files are away")["new"]
    assert not forget(vault, memory)["pending"]
    assert leaks(vault) == [] and "while the files are away" in vault.page() and "halted" in vault.page()


def test_the_page_of_an_agent_goes_with_its_last_memory(vault: Vault) -> None:
    memory = remember(vault, TEXT, "--agent", "scout")["id"]
    assert vault.call("status", "--json").json["counts"]["agents"] == 1
    assert "scout" in vault.reindex()["agents"] and CANARY in vault.page("agents/scout/MEMORY.md")
    assert forget(vault, memory, code=2)["code"] == "unknown-handle"
    forget(vault, memory, "--agent", "scout")
    assert not (vault / "agents").exists() and vault.call("status", "--json").json["counts"]["agents"] == 0


def test_what_is_no_memory_or_may_be_several_is_not_forgotten(vault: Vault) -> None:
    memory = remember(vault, TEXT)["id"]
    with vault.database(readonly=False) as database, database.transaction():
        for letter in "abc":
            row = Memory("default", f"m-aaaaaaaaaaa{letter}", "note", f"n{letter}", (), False, NOW)
            memories.store(database, row, memories.OWN_WORD)
    for name, code in (
        ("t-abcdefghijkl", "not-a-memory"), ("^f-abcdefghijkl", "not-a-memory"), ("s-abcdefghijkl", "not-a-memory"),
        ("nothing", "unknown-handle"), ("m-abcdefghijkl", "unknown-handle"), (f"{memory}\nx", "unknown-handle"),
        ("m-", "unknown-handle"), ("m-aaaa", "ambiguous-handle"),
    ):  # fmt: skip
        error = forget(vault, name, code=2)
        assert error["code"] == code and error["hint"], error
    assert "m-aaaaaaaaaaab" in error["message"]
    answer: Answer = vault.call("forget", "t-abcdefghijkl")
    assert answer.err.count("\n") == 1 and "session's files" in answer.err


# ── pins ──


def test_a_memory_is_pinned_and_unpinned(vault: Vault) -> None:
    memory = remember(vault, TEXT)["id"]

    def ask(*words: str) -> Any:
        answer = vault.call(*words, "--json", "--now", NOW)
        assert answer.code == 0, answer
        return answer.json

    assert ask("pin", f"^{memory}") == {"id": memory, "pinned": True, "changed": True}
    assert ask("pin", memory[:9]) == {"id": memory, "pinned": True, "changed": False}
    pinned = vault.page()
    vault.reindex("--full")
    assert vault.rows("select id from pins") == [(memory,)] and vault.page() == pinned
    assert vault.call("pin", memory).out == f"already pinned: ^{memory}\n"
    assert ask("pin", "--remove", memory) == {"id": memory, "pinned": False, "changed": True}
    assert ask("pin", "--remove", memory) == {"id": memory, "pinned": False, "changed": False}
    assert vault.page() != pinned
    for said in (("pin", "nothing"), ("pin", "--remove", "t-aaaaaaaaaaaa"), ("pin", memory, "--agent", "scout")):
        answer = vault.call(*said, "--json")
        assert answer.code == 2 and answer.json["error"]["code"] == "unknown-handle", answer


def test_a_pin_goes_with_its_session_and_a_session_has_none(vault: Vault) -> None:
    paths = vault.session(1)
    vault.session(2)
    for handle in (ID, paths["summary"], paths["transcript"]):
        assert vault.call("pin", handle, "--json", "--now", NOW).json["error"]["code"] == "not-pinnable"
    first, second = (vault.rows("select id from statements where text like ?", f"%number{n}x%")[0] for n in (1, 2))
    for statement in (first, second):
        assert vault.call("pin", f"^{statement[0]}", "--now", NOW).out == f"pinned ^{statement[0]}\n"
    assert f"^{first[0][:8]}\n" in vault.page()
    remove(vault, ID)
    assert vault.rows("select id from pins") == [second]


def test_without_a_handle_what_is_pinned_is_listed(vault: Vault) -> None:
    vault.session(1)
    vault.reindex()
    assert "nothing is pinned" in vault.call("pin").err
    memory = remember(vault, TEXT)["id"]
    ((statement,),) = vault.rows("select id from statements where text like '%number1x%'")
    for handle, now in ((memory, NOW), (statement, "2026-03-30T12:00:00.000Z")):
        assert vault.call("pin", handle, "--now", now).code == 0
    first, second = vault.call("pin", "--json").json["pins"]
    assert first["id"] == statement and first["text"] and (second["id"], second["pinned_at"]) == (memory, NOW)
    assert TEXT[:60] in second["text"] and f"^{memory}  {second['text']}\n" in vault.call("pin").out
    assert vault.call("pin", "--agent", "scout", "--json").json == {"pins": []}


# ── telemetry ──


def test_accesses_are_counted_up_to_each_day_and_up_to_the_one_before() -> None:
    database = Database(":memory:")
    node = "s-abcdefghijkl"
    expected = [
        ("2026-03-28", (1, "2026-03-28", 0, None)),
        ("2026-03-28", (2, "2026-03-28", 0, None)),
        ("2026-03-30", (3, "2026-03-30", 2, "2026-03-28")),
        ("2026-03-30", (4, "2026-03-30", 2, "2026-03-28")),
        ("2026-03-29", (5, "2026-03-30", 2, "2026-03-28")),  # a clock that was set back
        ("2026-03-31", (6, "2026-03-31", 5, "2026-03-30")),
    ]
    for day, row in expected:
        counts.count_ids(database, "a", [node, node], day)
        assert list(database.execute("select accesses, last_day, before, before_day from node_telemetry")) == [row]
