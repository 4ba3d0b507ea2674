"""Migrating from claude-mem, basic-memory and OpenClaw: each thing once, accounted for, after a backup."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_secrets import some
from other_memories import SOURCES, Memory, claude_mem, state_of
from workbench import NOW, Vault, tree

from signet_sync.migration import others
from signet_sync.migration.items import FILES

SECRET = "ghp_" + some(Random(31), 36)
NOW_US = 1_774_785_600_000_000
PROGRAMS = sorted(SOURCES)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    vault.reindex()
    return vault


def migrate(vault: Vault, program: str, *words: str | Path, code: int = 0) -> Any:
    answer = vault.call("migrate", program, *map(str, words), "--json", "--now", NOW)
    assert answer.code == code, answer
    return answer.json["error"] if code else answer.json


def counted(document: Any, what: str) -> int:
    found = (table[what] for table in document["tables"].values())
    return sum(sum(one.values()) if isinstance(one, dict) else one for one in found)


def remembered(vault: Vault) -> set[Memory]:
    rows = vault.rows("select content, type, tags, created_at, private, agent_id from memories")
    return {
        Memory(text, kind, tuple(json.loads(tags)), at[:10], bool(private), agent)
        for text, kind, tags, at, private, agent in rows
    }


@pytest.mark.parametrize("program", PROGRAMS)
def test_everything_is_accounted_for_and_brought_once(vault: Vault, tmp_path: Path, program: str) -> None:
    source = SOURCES[program]
    place = source.lay(_folder(tmp_path / "theirs"))
    for folder, _, names in os.walk(tmp_path / "theirs"):
        for name in names:
            os.utime(Path(folder, name), (2_000_000_000, 2_000_000_000))  # later than now: it counts as now
    theirs = tree(tmp_path / "theirs")
    before = state_of(vault)
    seen = migrate(vault, program, place, "--dry-run")
    assert state_of(vault) == before
    done = migrate(vault, program, place)
    assert done == seen | {"dry_run": False, "from": str(place), "backup": done["backup"]}
    assert Path(done["backup"]).exists()
    assert {name: table["rows"] for name, table in done["tables"].items()} == source.rows
    assert counted(done, "brought") + counted(done, "left") == counted(done, "rows")
    assert counted(done, "brought") == len(source.memories)
    assert remembered(vault) == set(source.memories)
    found = state_of(vault)
    again = migrate(vault, program, place)
    assert counted(again, "brought") == 0 and counted(again, "here") == len(source.memories)
    assert state_of(vault) == found
    assert tree(tmp_path / "theirs") == theirs
    page = "".join(path.read_text() for path in vault.root.rglob("MEMORY.md"))
    assert source.memories[-1].text.split("\n")[0] in page


def test_the_backup_of_before_takes_back_what_came_since(vault: Vault, tmp_path: Path) -> None:
    vault.call("remember", "Mine stays.", "--now", NOW)
    source = SOURCES["claude-mem"]
    place = source.lay(_folder(tmp_path / "theirs"))
    backup = migrate(vault, "claude-mem", place)["backup"]
    assert len(remembered(vault)) == len(source.memories) + 1
    assert vault.call("backup", "restore", backup, "--replace", "--now", NOW).code == 2, "only on a person's word"
    assert vault.call("backup", "restore", backup, "--replace", "--yes", "--now", NOW).code == 0
    assert {one.text for one in remembered(vault)} == {"Mine stays."}
    assert "glass is thin" not in vault.page() and "Mine stays." in vault.page()
    assert vault.call("recall", "glass", "--json").json["hits"] == []
    assert counted(migrate(vault, "claude-mem", place), "brought") == len(source.memories)


# ── what a source may be ──


def test_an_older_claude_mem_has_fewer_columns(vault: Vault, tmp_path: Path) -> None:
    row = {
        "sdk_session_id": "s",
        "project": "p",
        "type": "bugfix",
        "text": "It drips.",
        "created_at": "1970-01-01T00:00:00Z",
    }
    place = claude_mem(tmp_path / "old.db", [row], [], older=True)
    assert counted(migrate(vault, "claude-mem", place), "brought") == 1
    assert remembered(vault) == {Memory("It drips.", "note", ("bugfix", "p"), "1970-01-01")}


@pytest.mark.parametrize(
    ("line", "observations", "relations"),
    [
        ("- it's drunk by [[Bob]]", 0, 1), ("1. in [[N]]", 0, 1), ("- rel [[X]] #bm:links_to", 0, 1),
        (f"- [{'c' * 120}] long", 1, 0), ("- [fact] of [[X]] #tag", 1, 0),
        ("- [[Cup]]", 0, 0), ("- [[X]] #tag", 0, 0), ("- [ ] task [[T]]", 0, 0), ("- [x] done #tag", 0, 0),
        ("- [00:01:02] talk #idea", 0, 0), ("[fact] no list", 0, 0), ("# Head #tag", 0, 0), ("> - [!info] x", 0, 0),
        ("- `[[c]]`", 0, 0), ("text [[P]]", 0, 0), ("- \\[[e]]", 0, 0), ("- plain", 0, 0), ("- tags: #a #b", 0, 0),
        ("- | [blocker] x | [[Y]] |\n  |---|---|\n  | a | b |", 0, 0),
    ],
)  # fmt: skip
def test_what_basic_memory_states_in_a_list(tmp_path: Path, line: str, observations: int, relations: int) -> None:
    (tmp_path / "note.md").write_text(f"{line}\n")
    found = [one.account for one in others.read_basic_memory(str(tmp_path), NOW_US)]
    assert (found.count("observations"), found.count("relations")) == (observations, relations)


@pytest.mark.parametrize(
    ("said", "stated"),
    [
        ("- Trimmed the wick", 1), ("The lamp smokes at dusk.", 1), ("- **Lamp:** smokes at dusk", 1),
        ("- **Lit** the [lamp](https://x.example/y) at dusk", 1), ("ランプは煙を出します", 1),
        ("**The lamp smokes at dusk.**", 1),
        ("**Relevant Hashtags**", 0), ("| lamp | smokes |\n|---|---|\n| at dusk | always |", 0),
        ("- **Session ID**: 5e551001-0000-4000-8000-000000000001", 0),
        ("- Which lamp smokes at dusk?", 0), ("- [What the lamp does](https://x.example/the-lamp-at-dusk)", 0),
        ("![The lamp at dusk](a/b/c.png)", 0), ("```\nlight the lamp now\n```", 0), ("- wick", 0),
        ("- https://x.example/the-lamp-at-dusk", 0), ("### What the lamp does at dusk", 0),
        ("user: please light the lamp now\n\nassistant: The lamp is lit now.\n\nIt burns well.", 0),
    ],
)  # fmt: skip
def test_of_openclaws_notes_only_what_they_state_comes(vault: Vault, tmp_path: Path, said: str, stated: int) -> None:
    claw = _folder(tmp_path / "claw")
    (claw / "memory").mkdir()
    (claw / "memory/2026-03-01.md").write_text(f"# Day\n\n## Blockers\n\n{said}\n\n## End\n\n- Nothing more happened\n")
    done = migrate(vault, "openclaw-memory", claw)
    assert counted(done, "brought") == stated + 1
    assert counted(done, "brought") + counted(done, "left") == counted(done, "rows")


def test_a_secret_alone_is_left(vault: Vault, tmp_path: Path) -> None:
    rows = [{"project": "p", "type": "bugfix", "text": text} for text in (SECRET, f"{SECRET} opens the gate")]
    table = migrate(vault, "claude-mem", claude_mem(tmp_path / "theirs.db", rows, []))["tables"]["observations"]
    assert table["brought"] == 1 and table["left"] == {"nothing but a secret": 1}
    assert {one.text for one in remembered(vault)} == {"[REDACTED:github] opens the gate."}


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _written(data: bytes) -> Callable[[Path], Path]:
    def write(path: Path) -> Path:
        path.write_bytes(data)
        return path

    return write


REFUSED: list[tuple[str, Callable[[Path], Path], str]] = [
    ("claude-mem", lambda path: path, "no-database"),
    ("claude-mem", _folder, "no-database"),
    ("claude-mem", _written(b"x" * 5_000), "database-damaged"),
    ("basic-memory", lambda path: path, "no-such-path"),
    ("basic-memory", _folder, "no-such-path"),
    ("openclaw-memory", lambda path: path, "no-such-path"),
    ("openclaw-memory", _folder, "no-such-path"),
]


@pytest.mark.parametrize(("program", "lay", "code"), REFUSED)
def test_what_is_not_of_the_program_is_refused_and_nothing_is_brought(
    vault: Vault, tmp_path: Path, program: str, lay: Callable[[Path], Path], code: str
) -> None:
    place = lay(tmp_path / "theirs")
    before = state_of(vault)
    for more in ((), ("--dry-run",)):
        error = migrate(vault, program, place, *more, code=2)
        assert error["code"] == code and error["path"].startswith(str(place)) and error["hint"], error
    assert state_of(vault) == before


def test_links_pipes_and_files_of_ours_are_left(vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = _folder(tmp_path / "outside")
    (outside / "note.md").write_text("- [fact] outside\n")
    place = _folder(tmp_path / "notes")
    (place / "link.md").symlink_to(outside / "note.md")
    (place / "folder").symlink_to(outside)
    os.mkfifo(place / "pipe.md")
    (place / "large.md").write_text("- [fact] large\n" * 100)
    (place / "latin.md").write_bytes(b"- [fact] caf\xe9\n")
    vault.call("remember", "Ours is shown on our page.", "--now", NOW)
    (place / "ours.md").write_bytes((vault / "MEMORY.md").read_bytes() + b"\n- [fact] theirs\n")
    for path in (vault / "memory").glob("*--summary.md"):
        (place / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(others, "MOST_BYTES", 1_400)
    done = migrate(vault, "basic-memory", place)
    assert done["tables"]["observations"] == {
        "rows": 1, "brought": 1, "here": 0, "left": {},
    }  # fmt: skip
    assert done["tables"]["files"]["left"] == {
        "1,500 bytes, more than 1,400": 1, "it is a link": 2, "it is a named pipe": 1, "it is not UTF-8": 1,
        "it is an artifact of signet-sync": 1,
    }  # fmt: skip
    assert "link.md was left: it is a link" in done["notes"]
    assert {one.text for one in remembered(vault)} == {"Ours is shown on our page.", "ours: theirs"}


def test_lengths_are_bounded(vault: Vault, tmp_path: Path) -> None:
    said = ("word " * 1_000, "long " * 700, "\x1b \u200b")
    rows = [{"project": "p", "type": "bugfix", "text": text} for text in said]
    done = migrate(vault, "claude-mem", claude_mem(tmp_path / "theirs.db", rows, []))
    assert done["tables"]["observations"]["left"] == {"longer than 4,000 characters": 1, "no words in it": 1}
    assert len(remembered(vault)) == 1


# ── secrets, and anything at all ──


# Between its lines is an empty one: by itself the second half does not say that it is a key.
KEY = some(Random(32), 64)
PEM = f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{KEY}\n-----END RSA PRIVATE KEY-----\n"
# A tag could hold neither its dots nor all of it.
TOKEN = f"eyJhbGciOiJIUzI1NiJ9.{some(Random(33), 40)}.{some(Random(34), 43)}"


def _with_secret(folder: Path) -> dict[str, Path]:
    folder.mkdir()
    said = f"{SECRET} opens it"
    columns = ("memory_session_id", "project", "type", "text", "title", "facts", "concepts", "created_at")
    row: dict[str, object] = dict.fromkeys(columns, said)
    summary = {"memory_session_id": said, "project": said, "learned": said, "created_at": said}
    notes, claw = _folder(folder / "notes"), _folder(folder / "claw")
    (notes / f"{SECRET}.md").write_text(
        f"---\ntitle: {said}\npermalink: {said}\ntype: {said}\ntags: [{SECRET}]\ncreated: {said}\n---\n\n"
        f"- [{SECRET}] {said} #{SECRET} ({SECRET})\n- {SECRET} [[{SECRET}]] ({SECRET})\n"
    )
    (claw / "MEMORY.md").write_text(f"# {said}\n\n## {said}\n\n{said}:\n\n- {said}\n\n```\n{SECRET}\n```\n\n{PEM}")
    return {
        "claude-mem": claude_mem(folder / "claude-mem.db", [row], [summary]), "basic-memory": notes,
        "openclaw-memory": claw,
    }  # fmt: skip


def test_no_secret_reaches_a_disk(vault: Vault, tmp_path: Path) -> None:
    for program, place in _with_secret(tmp_path / "theirs").items():
        done = migrate(vault, program, place)
        assert counted(done, "brought") and done["redactions"], program
    needles = [one.lower() for one in (SECRET[6:], KEY, TOKEN[25:50])]
    for where in (vault.root, Path(os.environ["SIGNET_STATE"])):
        for path in where.rglob("*"):
            held = path.name.lower() + (path.read_bytes().lower().decode("latin-1") if path.is_file() else "")
            assert [one for one in needles if one in held] == [], path


WILD = st.text(st.characters(exclude_categories=()), max_size=200)
MARKS = st.sampled_from(
    ["- ", "  - ", "1. ", "# ", "## ", "> ", "```\n", "---\n", "[fact] ", "[[", "]]", "(", ")", ":", "#"]
)
MARKDOWN = st.lists(st.one_of(MARKS, WILD, st.sampled_from(["\n", "\n\n", "lamp", "wick ", "title: x\n"]))).map("".join)


@given(MARKDOWN)
def test_any_markdown_is_read(text: str) -> None:
    with TemporaryDirectory() as place:
        Path(place, "MEMORY.md").write_bytes(text.encode("utf-8", "replace"))
        for read in (others.read_basic_memory, others.read_openclaw_memory):
            for found in read(place, NOW_US):
                assert found.account == FILES or 0 <= found.at_us <= NOW_US


@given(
    st.lists(
        st.tuples(st.sampled_from(["- ", "* ", "1. ", "", "  - ", "\n"]), st.from_regex("[a-z]{3,9}", fullmatch=True))
    )
)
def test_no_word_of_a_note_is_lost(lines: list[tuple[str, str]]) -> None:
    body = "\n".join(mark + word for mark, word in lines)
    assert sorted(word for piece in others.pieces(body) for word in piece.whole.split() if word.isalpha()) == sorted(
        word for _, word in lines
    )
