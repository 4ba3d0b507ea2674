"""What a person or agent says of a statement: done, not true, open again. Pages and `recall` follow, and a rebuild."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Vault, numbered

from signet_sync.app.workspace import open_to_write
from signet_sync.cli.main import Context
from signet_sync.errors import UsageError
from signet_sync.formats.timestamps import parse_instant
from signet_sync.mcp_server import tools
from signet_sync.mcp_server.memory import ServedMemory
from signet_sync.recall import pinning
from signet_sync.settings.model import Settings

AGAIN = "Measure the whole retry loop of the queue."
STEP, DECIDED = "Measure the retry loop of the queue.", "The lamp of the tower burns whale oil."
BODY = f"# One\n\n## Decisions\n\n- {DECIDED}\n\n## Next steps\n\n- {STEP}\n"


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    made = Vault(tmp_path / "vault")
    made.session(1, body=BODY)
    made.reindex()
    return made


def handle(vault: Vault, text: str) -> str:
    ((found,),) = vault.rows("select distinct id from statements where text = ?", text)
    return f"^{found}"


def ask(vault: Vault, *words: str, code: int = 0) -> Any:
    answer = vault.call("statements", *words, "--json", "--now", NOW)
    assert answer.code == code, answer
    return answer.json


def shown(vault: Vault) -> list[str]:
    """Which of the two the page shows above its session log, and `recall` finds as statements."""
    page = vault.page().partition("## Session Ledger")[0]
    hits = vault.call("recall", "retry loop of the queue, whale oil", "--json", "--now", NOW).json["hits"]
    on_page = [text for text in (STEP, DECIDED, AGAIN) if text in page]
    assert {hit["text"] for hit in hits if hit["tier"] == "statement"} == set(on_page)
    return on_page


def test_what_is_marked_leaves_pages_and_recall_until_it_is_open_again(vault: Vault) -> None:
    step, decided = handle(vault, STEP), handle(vault, DECIDED)
    assert shown(vault) == [STEP, DECIDED]
    assert ask(vault, "done", step) == {"id": step[1:], "text": STEP, "status": "done"}
    assert shown(vault) == [DECIDED]
    assert "not true: " in vault.call("statements", "withdraw", decided, "--now", NOW).out
    assert shown(vault) == []
    assert vault.call("expand", decided, "--json").json["node"]["status"] == "withdrawn"
    for one in (step, decided):
        assert ask(vault, "done", one, "--undo")["status"] == "open"
    assert shown(vault) == [STEP, DECIDED]


def test_only_a_statement_is_marked(vault: Vault) -> None:
    ((node,),) = vault.rows("select id from session_summaries where source_type = 'summary'")
    assert ask(vault, "done", node, code=2)["error"]["code"] == "not-a-statement"
    assert ask(vault, "withdraw", "^f-abcdefghijkl", code=2)["error"]["code"] == "unknown-handle"


def test_an_agent_ends_steps_through_memory_note_and_nothing_that_holds(vault: Vault) -> None:
    memory = ServedMemory(Context(str(vault.root)).place(), agent_id="default", all_tools=True)
    said, _ = tools.memory_note(memory, note="Outcome: it burns", done=[handle(vault, STEP)])
    assert [one["status"] for one in said["said"]] == ["done"] and len(said["lines"]) == 1
    assert shown(vault) == [DECIDED] and b'"by":"agent"' in b"".join(words(vault).values())
    for given in ({"done": [handle(vault, DECIDED)]}, {"withdrawn": [handle(vault, DECIDED)]}):
        with pytest.raises(UsageError, match="only a person can say"):
            tools.memory_note(memory, **given)
    assert shown(vault) == [DECIDED]


BLOCKED = "It waits for the key of Ada's tower."
SENTENCE = "The lantern on the pier of shop burns with the new oil since noon; blocked: it waits for the key of Ada."


def test_a_thread_is_blocked_only_while_a_blocker_of_its_session_is_open(vault: Vault) -> None:
    body = f"# Two\n\n{SENTENCE}\n\n## Blockers\n\n- {BLOCKED}\n\n## Next steps\n\n- Oil the door of the tower.\n"
    vault.session(0, body=body, memory_sentence=SENTENCE)
    vault.reindex()

    def told() -> str:
        """How the thread stands, the same in a rebuild and wherever it is shown."""
        ((status, project),) = vault.rows("select status, project from memory_thread_heads")
        vault.reindex("--full")
        assert vault.rows("select status from memory_thread_heads") == [(status,)]
        here = vault.call("handoff", "--project", project, "--now", NOW).out
        assert f", {status} ===" in here and "; blocked:" not in here
        assert (
            f"({status}, " in vault.page()
            and f"({status}, " in vault.call("context", "--project", project, "--now", NOW).out
        )
        return str(status)

    assert told() == "blocked"
    for word, text, expected in (("done", BLOCKED, "open"), ("withdraw", "Oil the door of the tower.", "done"),
                                 ("done --undo", BLOCKED, "blocked")):  # fmt: skip
        ask(vault, *word.split(), handle(vault, text))
        assert told() == expected


# ── it stays said ──


def other_machine(vault: Vault, tmp_path: Path) -> Vault:
    """The vault where a sync service brought it, with an index of its own."""
    shutil.copytree(vault.root, tmp_path / "there", ignore=shutil.ignore_patterns(".signet"))
    there = Vault(tmp_path / "there")
    there.reindex()
    return there


def say_again(vault: Vault) -> None:
    vault.session(2, body=BODY.replace(STEP, AGAIN))


@pytest.mark.parametrize("then", ["rebuilt", "lost", "said again", "elsewhere", "an older backup"])
def test_what_a_person_took_back_never_returns(vault: Vault, tmp_path: Path, then: str) -> None:
    backup = str(tmp_path / "before.backup")
    assert vault.call("backup", "create", backup, "--now", NOW).code == 0
    ask(vault, "withdraw", handle(vault, STEP))
    ask(vault, "withdraw", handle(vault, DECIDED))
    where = vault
    match then:
        case "rebuilt":
            vault.reindex("--full")
        case "lost":
            shutil.rmtree(vault.state)  # with all backups
        case "said again":
            say_again(vault)
        case "elsewhere":
            where = other_machine(vault, tmp_path)
        case _:
            assert vault.call("backup", "restore", backup, "--now", NOW).code == 0
    where.reindex()
    assert shown(where) == []
    assert where.dump() == where.dump_from_scratch()


def test_what_is_kept_is_first_until_it_need_not_be(vault: Vault, tmp_path: Path) -> None:
    decided = handle(vault, DECIDED)
    ask(vault, "withdraw", decided)
    assert ask(vault, "keep", decided)["status"] == "open"
    assert f"📌 {DECIDED}"[:20] in vault.page() and shown(vault) == [STEP, DECIDED]
    there = other_machine(vault, tmp_path)
    assert there.page() == vault.page()
    assert there.call("pin", decided, "--remove").code == 0 and "📌" not in there.page()


# ── two machines ──


def words(vault: Vault) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (vault.memory / "words").glob("*")}


def bring(source: Vault, target: Vault, name: str = "") -> None:
    for path in (source.memory / "words").glob("*.jsonl"):
        shutil.copy(path, target.memory / "words" / (name or path.name))
    target.reindex()


def test_two_machines_say_different_things_and_then_have_both(vault: Vault, tmp_path: Path) -> None:
    step, decided = handle(vault, STEP), handle(vault, DECIDED)
    there = other_machine(vault, tmp_path)
    ask(vault, "done", step)
    assert there.call("statements", "withdraw", decided, "--now", NOW).code == 0
    assert there.call("statements", "done", "--undo", step, "--now", "2027-01-01T00:00:00.000Z").code == 0
    assert not words(vault).keys() & words(there).keys(), "each writes a file of its own"
    assert shown(vault) == [DECIDED] and shown(there) == [STEP]
    bring(there, vault)
    bring(vault, there)
    assert shown(vault) == shown(there) == [STEP], "the later word counts"
    said = "select * from statement_marks"
    assert words(vault) == words(there) and vault.rows(said) == there.rows(said)
    # What a slower clock says afterwards is later all the same.
    assert ask(vault, "done", step)["status"] == "done"
    bring(vault, there)
    assert shown(vault) == shown(there) == []


def test_conflict_copies_and_half_merged_files_count(vault: Vault, tmp_path: Path) -> None:
    step, decided = handle(vault, STEP), handle(vault, DECIDED)
    there = other_machine(vault, tmp_path)
    ask(vault, "done", step)
    (page,) = (vault.memory / "words").iterdir()
    assert there.call("statements", "withdraw", decided, "--now", NOW).code == 0
    bring(there, vault, f"{page.stem}.sync-conflict-20261122-101500-ABCDEF1.jsonl")
    assert shown(vault) == []
    (copy,) = (vault.memory / "words").glob("*conflict*")
    merged = b"<<<<<<< HEAD\n" + page.read_bytes() + b"=======\n" + copy.read_bytes() + b">>>>>>> theirs"
    copy.unlink()
    page.write_bytes(merged)
    vault.reindex()
    assert shown(vault) == []
    ask(vault, "done", step, "--undo")
    assert page.read_bytes().startswith(merged + b"\n") and shown(vault) == [STEP]


def test_a_file_of_another_machine_marks_and_does_nothing_else(vault: Vault, tmp_path: Path) -> None:
    ask(vault, "done", handle(vault, STEP))
    (page,) = (vault.memory / "words").iterdir()
    line = page.read_bytes()
    page.write_bytes(line.replace(b'"default"', b'"scout"') + b'{"v":1,"said":"run"}\n' + b"\xff\x00\n" * 3)
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(line)
    (page.parent / "link.jsonl").symlink_to(secret)
    (page.parent / "folder.jsonl").mkdir()
    assert vault.reindex()["trouble"] == [] and shown(vault) == [STEP, DECIDED]
    page.unlink()
    vault.reindex()
    assert vault.rows("select * from statement_marks") == []


# ── removal ──


def test_a_removal_says_nothing_again_of_what_was_said_otherwise_since(vault: Vault) -> None:
    say_again(vault)
    vault.reindex()
    ask(vault, "withdraw", handle(vault, AGAIN))
    assert shown(vault) == [DECIDED]
    ask(vault, "done", handle(vault, STEP), "--undo")
    removed = numbered(2)["session_id"]
    assert vault.call("remove", removed, "--reason", "asked", "--yes", "--now", NOW).code == 0
    assert STEP in shown(vault)


def test_a_removal_takes_the_words_of_its_session_and_no_others(vault: Vault, tmp_path: Path) -> None:
    vault.session(2, body=BODY, captured_at="2026-03-29T09:00:00.000Z")  # what it says last is said of it
    vault.session(3, body="# Three\n\n## Next steps\n\n- Paint the door of the tower.\n")
    vault.reindex()
    again, door = (handle(vault, text) for text in (STEP, "Paint the door of the tower."))
    ask(vault, "withdraw", again)
    ask(vault, "done", door)
    there = other_machine(vault, tmp_path)
    before = words(there)
    removed = [numbered(number)["session_id"] for number in (2, 3)]
    for session in removed:
        assert vault.call("remove", session, "--reason", "asked", "--yes", "--now", NOW).code == 0
    said = b"".join(words(vault).values())
    assert not any(one.encode() in said for one in (*removed, door[1:])), said
    assert shown(vault) == [DECIDED], "session 1 says the same, and it was taken back"
    # Elsewhere the tombstones take them, and what a copy of before brings.
    for path in (vault.memory / "tombstones").glob("*.md"):
        (there.memory / "tombstones").mkdir(exist_ok=True)
        shutil.copy(path, there.memory / "tombstones" / path.name)
    there.reindex()
    assert shown(there) == [DECIDED], "a removal that comes as a file leaves what was said of others, too"
    for name, raw in before.items():
        assert not any(one.encode() in b"".join(words(there).values()) for one in (*removed, door[1:]))
        (vault.memory / "words" / f"old {name}").write_bytes(raw)
    vault.reindex()
    assert not any(one.encode() in b"".join(words(vault).values()) for one in (*removed, door[1:]))
    assert shown(vault) == shown(there) == [DECIDED]


def test_what_was_marked_is_listed_with_what_undoes_it(vault: Vault) -> None:
    step, decided = handle(vault, STEP), handle(vault, DECIDED)
    assert ask(vault, "list") == {"statements": []}
    with open_to_write(str(vault.root), Settings()) as workspace:
        pinning.mark(workspace, "default", step, "done", parse_instant("2026-03-01T00:00:00Z") or 0, by_agent=True)
    said = vault.call("statements", "withdraw", decided, "--now", NOW).out
    assert said.endswith(f"statements withdraw {decided[1:]} --undo\n")
    known = [(one["id"], one["status"], one["by"], one["text"]) for one in ask(vault, "list")["statements"]]
    assert known == [(decided[1:], "withdrawn", "person", DECIDED), (step[1:], "done", "agent", STEP)]
    assert f"not true, says the person: {DECIDED} {decided}" in vault.call("statements", "list").out
    ask(vault, "done", step, "--undo")
    assert [one["id"] for one in ask(vault, "list")["statements"]] == [decided[1:]]
    assert ask(vault, "list", "--agent", "other") == {"statements": []}
    memory = vault.call("remember", "Ada wants short answers", "--json").json["id"]
    assert f"signet-sync forget {memory}" in vault.call("statements", "done", memory).err


def test_a_forgotten_memory_leaves_no_pin(vault: Vault) -> None:
    memory = vault.call("remember", "Ada wants short answers", "--json", "--now", NOW).json["id"]
    assert vault.call("pin", memory).code == 0 and memory.encode() in b"".join(words(vault).values())
    assert vault.call("forget", memory, "--now", NOW).code == 0
    assert b"".join(words(vault).values()) == b"" and vault.rows("select * from pins") == []
