"""`digest`: what happened in a period, as a person reads it; in a note between marks, without what was removed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Vault, numbered

from signet_sync.formats.timestamps import DAY, parse_instant
from signet_sync.pages.period import PeriodFact, PeriodInputs, PeriodMemory, PeriodSession, counts_of, text_of

TO = parse_instant("2026-03-30T00:00:00Z") or 0
AT = TO - DAY
LANTERN, MILL = "/home/ada/lantern", "/home/ada/mill"
SENTENCE = "In lantern the retry loop of src/queue.py ends after five tries, and the queue drains"


def test_a_week_by_project() -> None:
    seen = PeriodInputs(
        TO - 7 * DAY,
        TO,
        [
            PeriodSession("s-aaaaaaaaaaaa", MILL, AT - DAY, "done", "The wheel of the mill turns again."),
            PeriodSession("s-bbbbbbbbbbbb", None, AT, None, "Looked at [[a link]] <!-- signet:end -->"),
            PeriodSession("s-cccccccccccc", LANTERN, AT, "blocked", f"{SENTENCE}; blocked: it waits for Jo."),
        ],
        [
            PeriodFact("f-aaaaaaaaaaaa", LANTERN, AT, "decision", "lantern keeps the queue in SQLite."),
            PeriodFact("f-bbbbbbbbbbbb", LANTERN, AT - DAY, "decision", "lantern keeps the queue in SQLite"),
            PeriodFact("f-cccccccccccc", LANTERN, AT, "blocker", "lantern waits for Jo."),
            PeriodFact("f-dddddddddddd", MILL, AT, "blocker", "The wheel is stuck.", is_over=True),
            PeriodFact("f-eeeeeeeeeeee", "/home/ada/other", AT, "constraint", "Nothing runs at night."),
        ],
        [
            PeriodMemory("m-aaaaaaaaaaaa", "preference", AT, "Ada counts in millimetres.", False),
            PeriodMemory("m-bbbbbbbbbbbb", "note", AT, "The lamp is lit.", True, is_promoted=True),
        ],
    )
    assert (
        text_of(seen)
        == f"""\
# What happened from 2026-03-23 to 2026-03-29

3 sessions in 2 projects · 3 decisions · 1 blocker open · 1 solved · 1 memory kept · 1 promoted

## lantern: 1 session

- Mar 29 (blocked): {SENTENCE}. ^s-cccccc

Blocked:

- lantern waits for Jo. (Mar 29) ^f-cccccc

Decided:

- lantern keeps the queue in SQLite. (Mar 29) ^f-aaaaaa

## mill: 1 session

- Mar 28 (done): The wheel of the mill turns again. ^s-aaaaaa

Solved:

- The wheel is stuck. (Mar 29) ^f-dddddd

## Without a project: 1 session

- Mar 29: Looked at [ [a link] ] <! -- signet:end -- > ^s-bbbbbb

## Decided in other projects

- Nothing runs at night. (Mar 29) ^f-eeeeee

## Remembered

- preference: Ada counts in millimetres. (Mar 29) ^m-aaaaaaaaaaaa

## Promoted

- note (private): The lamp is lit. (Mar 29) ^m-bbbbbbbbbbbb"""
    )
    assert counts_of(seen)["sessions"] == 3


def test_a_long_list_is_cut_and_an_empty_day_says_so() -> None:
    many = [PeriodSession(f"s-{'abcdefghijkl'[n] * 12}", MILL, AT + n, "done", f"Step {n} is done.") for n in range(9)]
    lines = text_of(PeriodInputs(AT, TO, many), level=2).splitlines()
    assert lines[0] == "## What happened on 2026-03-29" and lines[4] == "### mill: 9 sessions"
    assert "Step 8 " in lines[6] and lines[-1] == "- and 3 more (signet-sync digest --json)"
    assert text_of(PeriodInputs(AT, TO)) == "# What happened on 2026-03-29\n\n0 sessions"


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    vault = Vault(tmp_path / "vault")
    for number in (1, 2, 9):
        vault.session(number, project=LANTERN)
    vault.session(3, project=MILL)
    vault.session(4, agent_id="scout", project=LANTERN)
    vault.reindex()
    return vault


def digest(vault: Vault, *words: str, code: int = 0) -> Any:
    answer = vault.call("digest", "--json", "--now", NOW, *words)
    assert answer.code == code, answer
    return answer.json


def texts(document: Any) -> str:
    return "\n".join(session["text"] for session in document["sessions"])


def test_only_this_agent_this_period_and_this_project(vault: Vault) -> None:
    week = digest(vault)
    assert (week["from"], week["to"], week["counts"]["sessions"], week["counts"]["projects"]) == (
        "2026-03-23", "2026-03-29", 3, 2,
    )  # fmt: skip
    assert "step number 1 " in texts(week) and "step number 4 " not in texts(week) and "number 9 " not in texts(week)
    assert digest(vault, "--day")["counts"]["sessions"] == 0
    assert digest(vault, "--since", "2026-03-01")["counts"]["sessions"] == 4
    for name in ("mill", "MILL", MILL, f"{MILL}/"):
        assert digest(vault, "--project", name)["counts"]["sessions"] == 1
    assert digest(vault, "--agent", "scout")["counts"]["sessions"] == 1
    assert {fact["aspect"] for fact in week["facts"]} == {"decision"} and len(week["facts"]) == 3
    vault.call("remember", "Ada trims the wick.", "--now", NOW)
    vault.call("remember", "Not Ada's affair.", "--now", NOW, "--agent", "scout")
    assert [memory["text"] for memory in digest(vault, "--day")["memories"]] == ["Ada trims the wick."]
    assert vault.call("digest", "--now", NOW).out == vault.call("digest", "--now", NOW).out


def test_what_cannot_be_asked_for_is_said(vault: Vault) -> None:
    for words, told in (
        (["--project", "nowhere"], LANTERN),
        (["--since", "yesterday"], "2026-03-28"),
        (["--since", "2026-04-01"], "2026-03-28"),
        (["--agent", "../x"], "agent"),
    ):
        answer = vault.call("digest", "--now", NOW, *words)
        assert answer.code == 2 and told in answer.err, answer


def test_a_note_keeps_the_persons_words(vault: Vault) -> None:
    note = vault / "Daily/2026-03-29.md"
    note.parent.mkdir()
    note.write_text("# Sunday\n\nMine.\n")
    assert digest(vault, "--into", "Daily/2026-03-29.md")["changed"]
    text = note.read_text()
    assert text.startswith("# Sunday\n\nMine.\n\n<!-- signet:begin -->\n## What happened") and "step number 1 " in text
    note.write_text(f"{text}\nMore of mine.\n")
    before = note.stat()
    assert not digest(vault, "--into", str(note))["changed"] and note.stat() == before
    digest(vault, "--into", str(note), "--project", "mill")
    assert note.read_text().endswith("\nMore of mine.\n") and "step number 1 " not in note.read_text()
    edited = note.read_text().replace("step number 3", "my own words of step 3")
    note.write_text(edited)
    digest(vault, "--into", str(note))
    (kept,) = note.parent.glob("2026-03-29.user-*.md")
    assert "my own words of step 3" in kept.read_text()


def test_private_memories_are_printed_and_in_no_note(vault: Vault) -> None:
    vault.call("remember", "Ada trims the wick.", "--private", "--now", NOW)
    vault.call("remember", "The lamp is lit.", "--now", NOW)
    assert "- note (private): Ada trims the wick." in vault.call("digest", "--day", "--now", NOW).out
    answer = digest(vault, "--day", "--into", "Daily/team.md")
    assert [memory["text"] for memory in answer["memories"]] == ["The lamp is lit."]
    assert "wick" not in (vault / "Daily/team.md").read_text()


def test_a_removal_reaches_the_notes_and_their_copies(vault: Vault) -> None:
    (vault / "Daily").mkdir()
    note = vault / "Daily/week.md"
    note.write_text("The word step number 2 is mine.\n")
    digest(vault, "--into", "Daily/week.md")
    note.write_text(note.read_text().replace("Mar 26", "Thursday"))
    digest(vault, "--into", "Daily/week.md")
    (kept,) = note.parent.glob("week.user-*.md")
    memory = vault.call("remember", "Ada trims the wick.", "--now", NOW, "--json").json["id"]
    digest(vault, "--into", "Daily/week.md")
    assert "wick" in note.read_text() and "number2x" in note.read_text() and "number2x" in kept.read_text()
    assert vault.call("remove", made_id(2), "--reason", "asked", "--yes", "--quoting", "keep").code == 0
    assert vault.call("forget", memory).code == 0
    for path in (note, kept):
        text = path.read_text().replace("The word step number 2 is mine.", "")
        assert "number2x" not in text and "step number 2 " not in text and "wick" not in text
        assert "step number 1 " in text
    assert note.read_text().startswith("The word step number 2 is mine.\n")


def made_id(number: int) -> str:
    return f"5e5510{number:02d}-0000-4000-8000-{number:012d}"


@pytest.mark.parametrize(
    "path",
    ["MEMORY.md", "memory/x.md", "AGENTS.md", "entities/x.md", ".obsidian/x.md", "notes.txt", "../x.md", "ledger/x.md"],
)
def test_a_digest_goes_into_notes_only(vault: Vault, path: str) -> None:
    answer = vault.call("digest", "--now", NOW, "--into", str(vault / path))
    assert answer.code == 2 and "note" in answer.err + "note" * ("redirect" in answer.err)
    assert not (vault / ".signet/notes.json").exists()


def test_a_link_leads_nowhere(vault: Vault, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("theirs\n")
    (vault / "note.md").symlink_to(outside)
    assert vault.call("digest", "--now", NOW, "--into", str(vault / "note.md")).code == 2
    (vault / ".signet/notes.json").write_text('["../outside.md", "memory/x.md", 7, "note.md"]')
    assert vault.call("remove", made_id(1), "--reason", "asked", "--yes", "--quoting", "keep").code == 0
    assert outside.read_text() == "theirs\n" and os.path.islink(vault / "note.md")


def test_eject_leaves_plain_text(vault: Vault) -> None:
    digest(vault, "--into", str(vault / "week.md"))
    assert vault.call("eject", "--yes").code == 0
    assert "signet:" not in (vault / "week.md").read_text() and "step number 1 " in (vault / "week.md").read_text()
    assert not (vault / ".signet").exists()


def test_the_page_under_another_name_follows_removals_and_leaves_a_persons_words(vault: Vault) -> None:
    note = vault / "OURS.md"
    note.write_text("Mine.\n")
    assert "OURS.md written" in vault.call("render", "--into", "OURS.md", "--now", NOW).err
    assert note.read_text().startswith("Mine.\n\n<!-- signet:begin -->\n# Working Memory")
    assert "step number 1 " in note.read_text() and vault.call("render", "--into", "MEMORY.md").code == 2
    vault.call("remove", numbered(1)["session_id"], "--reason", "asked", "--yes", "--quoting", "keep")
    assert "step number 1 " not in note.read_text() and note.read_text().startswith("Mine.\n")
