"""Migrating from claude-mem: each thing once, accounted for, after a backup."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from invented_secrets import some
from other_memories import BROUGHT, Memory, claude_mem, lay, state_of
from workbench import NOW, Vault, tree

SECRET = "ghp_" + some(Random(31), 36)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    vault.reindex()
    return vault


def migrate(vault: Vault, *words: str | Path, code: int = 0) -> Any:
    answer = vault.call("migrate", "claude-mem", *map(str, words), "--json", "--now", NOW)
    assert answer.code == code, answer
    return answer.json["error"] if code else answer.json


def counted(document: Any, what: str) -> int:
    found = (table[what] for table in document["tables"].values())
    return sum(sum(one.values()) if isinstance(one, dict) else one for one in found)


def remembered(vault: Vault) -> set[Memory]:
    rows = vault.rows("select content, type, tags, created_at from memories")
    return {Memory(text, kind, tuple(json.loads(tags)), at[:10]) for text, kind, tags, at in rows}


def test_everything_is_accounted_for_and_brought_once(vault: Vault, tmp_path: Path) -> None:
    place = lay(_folder(tmp_path / "theirs"))
    theirs = tree(tmp_path / "theirs")
    before = state_of(vault)
    seen = migrate(vault, place, "--dry-run")
    assert state_of(vault) == before
    done = migrate(vault, place)
    assert done == seen | {"dry_run": False, "from": str(place), "backup": done["backup"]}
    assert Path(done["backup"]).exists()
    assert {name: table["rows"] for name, table in done["tables"].items()} == {
        "observations": 3, "session_summaries": 1,
    }  # fmt: skip
    assert counted(done, "brought") == len(BROUGHT) and counted(done, "left") == 1
    assert remembered(vault) == set(BROUGHT)
    found = state_of(vault)
    again = migrate(vault, place.parent)
    assert counted(again, "brought") == 0 and counted(again, "here") == len(BROUGHT)
    assert state_of(vault) == found
    assert tree(tmp_path / "theirs") == theirs
    assert "Request: Trim it." in vault.page()


def test_the_backup_of_before_takes_back_what_came_since(vault: Vault, tmp_path: Path) -> None:
    vault.call("remember", "Mine stays.", "--now", NOW)
    place = lay(_folder(tmp_path / "theirs"))
    backup = migrate(vault, place)["backup"]
    assert len(remembered(vault)) == len(BROUGHT) + 1
    assert vault.call("backup", "restore", backup, "--replace", "--now", NOW).code == 2, "only on a person's word"
    assert vault.call("backup", "restore", backup, "--replace", "--yes", "--now", NOW).code == 0
    assert {one.text for one in remembered(vault)} == {"Mine stays."}
    assert "glass is thin" not in vault.page() and "Mine stays." in vault.page()
    assert vault.call("recall", "glass", "--json").json["hits"] == []
    assert counted(migrate(vault, place), "brought") == len(BROUGHT)


def test_an_older_database_has_fewer_columns(vault: Vault, tmp_path: Path) -> None:
    row = {
        "sdk_session_id": "s",
        "project": "p",
        "type": "bugfix",
        "text": "It drips.",
        "created_at": "1970-01-01T00:00:00Z",
    }
    place = claude_mem(tmp_path / "old.db", [row], [], older=True)
    assert counted(migrate(vault, place), "brought") == 1
    assert remembered(vault) == {Memory("It drips.", "note", ("bugfix", "p"), "1970-01-01")}


def test_a_secret_alone_is_left(vault: Vault, tmp_path: Path) -> None:
    rows = [{"project": "p", "type": "bugfix", "text": text} for text in (SECRET, f"{SECRET} opens the gate")]
    table = migrate(vault, claude_mem(tmp_path / "theirs.db", rows, []))["tables"]["observations"]
    assert table["brought"] == 1 and table["left"] == {"nothing but a secret": 1}
    assert {one.text for one in remembered(vault)} == {"[REDACTED:github] opens the gate."}


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _damaged(path: Path) -> Path:
    path.write_bytes(b"x" * 5_000)
    return path


@pytest.mark.parametrize(
    ("put", "code"), [(lambda path: path, "no-database"), (_folder, "no-database"), (_damaged, "database-damaged")]
)
def test_what_is_no_database_of_it_is_refused_and_nothing_is_brought(
    vault: Vault, tmp_path: Path, put: Callable[[Path], Path], code: str
) -> None:
    place = put(tmp_path / "theirs")
    before = state_of(vault)
    for more in ((), ("--dry-run",)):
        error = migrate(vault, place, *more, code=2)
        assert error["code"] == code and error["path"].startswith(str(place)) and error["hint"], error
    assert state_of(vault) == before


def test_lengths_are_bounded(vault: Vault, tmp_path: Path) -> None:
    said = ("word " * 14_000, "long " * 1_500, "x" * 5_000, "\x1b \u200b")
    rows = [{"project": "p", "type": "bugfix", "text": text} for text in said]
    done = migrate(vault, claude_mem(tmp_path / "theirs.db", rows, []))
    assert done["tables"]["observations"]["left"] == {"longer than 64,000 characters": 1, "no words in it": 1}
    assert all(len(one.text) <= 4_000 for one in remembered(vault)) and len(remembered(vault)) == 4


def test_no_secret_reaches_a_disk(vault: Vault, tmp_path: Path) -> None:
    said = f"{SECRET} opens it"
    columns = ("memory_session_id", "project", "type", "text", "title", "facts", "concepts", "created_at")
    row: dict[str, object] = dict.fromkeys(columns, said)
    summary = {"memory_session_id": said, "project": said, "learned": said, "created_at": said}
    done = migrate(vault, claude_mem(tmp_path / "claude-mem.db", [row], [summary]))
    assert counted(done, "brought") == 2 and done["redactions"]
    needle = SECRET[6:].lower()
    for where in (vault.root, Path(os.environ["SIGNET_STATE"])):
        for path in where.rglob("*"):
            held = path.name.lower() + (path.read_bytes().lower().decode("latin-1") if path.is_file() else "")
            assert needle not in held, path
