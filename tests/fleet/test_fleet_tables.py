"""Many workspaces as Parquet: the verdicts of `check`, what changed and nothing else, nothing of what was removed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

import artifacts_fixture as made
import every_verdict
import pytest
from fleet_tables import all_rows, index, rows, workspaces
from invented_secrets import some
from workbench import NOW, Vault, call, cast, numbered, tree

from signet_sync.fleet.index import indexed
from signet_sync.fleet.places import Place
from signet_sync.fleet.rows import OPEN_TABLES, rows_of
from signet_sync.formats.timestamps import parse_instant
from signet_sync.storage import durable, state_dir

pytest.importorskip("pyarrow")
LATER = "2026-03-30T12:00:00.000Z"
NOW_US = parse_instant(NOW) or 0


def furnish(vault: Vault) -> None:
    """Sessions of two agents, noise, every kind of verdict, an entity that cannot be read, a broken setting."""
    for number in (1, 2, 3):
        vault.session(number)
    vault.session(4, agent_id="scout", project="/tmp/trial")
    name, raw = made.summary(**numbered(5))
    vault.put((name, raw.replace(b"word", b"world")))
    vault.put({"notes.txt": b"mine", "a\nb.md": b"strange"})
    vault.call("entity", "create", "part", "Critic", "--now", NOW)
    (profile,) = vault.root.glob("entities/parts/*/profile.md")
    profile.write_bytes(b"\xff\xfe")
    vault.session(6)
    vault.put(made.tombstone(session_id=numbered(6)["session_id"]), "memory/tombstones")
    (vault / "signet-sync.toml").write_text("[noise]\nprojects = 3\n")


@pytest.fixture(scope="module")
def mould(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return cast(tmp_path_factory.mktemp("mould"), furnish)


@pytest.fixture
def vault(mould: Any, tmp_path: Path) -> Vault:
    found: Vault = mould(tmp_path)
    return found


def test_the_verdicts_are_those_of_check(vault: Vault, tmp_path: Path) -> None:
    checked = vault.call("check", "--json", "--now", NOW).json
    before = tree(vault.root)
    answer = index(tmp_path / "tables", vault.root)
    assert answer.code == 0, answer
    assert tree(vault.root) == before
    found = rows(tmp_path / "tables", "verdicts", vault.root)
    wrong = [one for one in found if one["verdict"] not in ("indexed", "tombstone")]
    fields = ("path", "verdict", "code", "message")
    assert {one["verdict"] for one in wrong} == {"invalid", "ignored", "tombstoned"}
    assert sorted([one[name] for name in fields] for one in wrong) == sorted(
        [one[name] for name in fields] for one in checked["problems"]
    )
    assert sum(one["verdict"] == "indexed" for one in found) == checked["counts"]["indexed"]
    assert {one["sha256"] is None for one in found if one["verdict"] == "indexed"} == {False}
    assert answer.json["rows"]["verdicts"] == len(found)


def test_sessions_and_statements_are_told_as_the_session_log_tells_them(vault: Vault, tmp_path: Path) -> None:
    index(tmp_path / "tables", vault.root)
    sessions = {one["session"]: one for one in rows(tmp_path / "tables", "sessions", vault.root)}
    assert len(sessions) == 4
    one, noise = sessions[numbered(1)["session_id"]], sessions[numbered(4)["session_id"]]
    assert (one["listed"], noise["listed"], noise["agent"], one["day"]) == (True, False, "scout", "2026-03-28")
    assert one["sentence"].startswith("In lantern step number 1") and one["files"] == 3
    assert one["path"].endswith("--summary.md")
    assert one["size"] == sum(path.stat().st_size for path in vault.memory.glob(f"*{one['token']}*") if path.is_file())
    statements = rows(tmp_path / "tables", "statements", vault.root)
    decided = [statement for statement in statements if "number1x" in statement["text"]]
    assert [
        (statement["kind"], statement["speaker"], statement["status"], statement["session"]) for statement in decided
    ] == [("decision", "file", "open", one["session"])]
    assert "number1x" in one["words"]


def test_memories_and_bodies_are_in_no_table(vault: Vault, tmp_path: Path) -> None:
    vault.reindex()
    vault.call("remember", "The wick is trimmed at dusk.", "--now", NOW)
    index(tmp_path / "tables", vault.root)
    said = json.dumps(all_rows(tmp_path / "tables", vault.root), default=str)
    assert "wick" not in said and "# Session 1" not in said
    assert index(tmp_path / "tables", vault.root, more=("--bodies",)).json["indexed"] == 1
    assert any("# Session 1" in one["words"] for one in rows(tmp_path / "tables", "sessions", vault.root))


def test_what_did_not_change_is_neither_read_nor_written(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "tables"
    first = index(place, vault.root).json
    before = tree(place)
    monkeypatch.setattr("signet_sync.sync.reading.judged", None)
    again = index(place, vault.root, now=LATER).json
    assert (again["indexed"], again["unchanged"], again["rows"]) == (0, 1, first["rows"])
    assert tree(place) == before
    monkeypatch.undo()
    vault.put({"more.txt": b"also mine"})
    assert index(place, vault.root, now=LATER).json["indexed"] == 1


@pytest.mark.parametrize("change", ["a session", "a tombstone", "an entity", "a setting"])
def test_every_change_is_seen(vault: Vault, tmp_path: Path, change: str) -> None:
    place = tmp_path / "tables"
    index(place, vault.root)
    before = rows(place, "verdicts", vault.root)
    if change == "a session":
        vault.session(7)
    elif change == "a tombstone":
        vault.put(made.tombstone(session_id=numbered(1)["session_id"]), "memory/tombstones")
    elif change == "an entity":
        (profile,) = vault.root.glob("entities/parts/*/profile.md")
        profile.unlink()
    else:
        (vault / "signet-sync.toml").unlink()
    index(place, vault.root)
    assert rows(place, "verdicts", vault.root) != before


def test_of_a_removed_session_nothing_stays(vault: Vault, tmp_path: Path) -> None:
    vault.reindex()
    place = tmp_path / "tables"
    index(place, vault.root, more=("--bodies",))
    assert "number2x" in json.dumps(all_rows(place, vault.root), default=str)
    assert vault.call("remove", numbered(2)["session_id"], "--reason", "asked", "--yes", "--now", NOW).code == 0
    index(place, vault.root, more=("--bodies",))
    said = json.dumps(all_rows(place, vault.root), default=str)
    assert "number2x" not in said and numbered(2)["session_id"] not in said
    assert len([path for path in place.rglob("*") if path.is_file()]) == 4


def test_rows_of_what_cannot_be_reached_stay_and_prune_drops_what_is_not_named(vault: Vault, tmp_path: Path) -> None:
    place, other = tmp_path / "tables", Vault(tmp_path / "other")
    other.session(1)
    assert index(place, vault.root, other.root).json["indexed"] == 2
    before = tree(place)
    shutil.move(other.root, tmp_path / "away")
    answer = index(place, vault.root, other.root)
    assert answer.code == 1
    assert [one["workspace"] for one in answer.json["unreachable"]] == [str(other.root)]
    (other.root / "notes").mkdir(parents=True)  # a root whose vault is not mounted
    assert "memory" in index(place, vault.root, other.root).json["unreachable"][0]["message"]
    assert index(place, vault.root).json["dropped"] == 0
    assert tree(place) == before
    assert index(place, vault.root, more=("--prune",)).json["dropped"] == 1
    assert workspaces(place) == [str(vault.root)] and len(list(place.glob("*/*"))) == 4


def test_every_place_gives_equal_tables(memory: Any, tmp_path: Path) -> None:
    vault = every_verdict.make(tmp_path / "vault")
    for path, raw in every_verdict.files(vault).items():
        memory.pipe_file(f"/bucket/vault/{path}", raw)
    archive = every_verdict.zipped(vault, tmp_path / "vault.zip", "inner")
    repository = every_verdict.committed(vault, tmp_path / "repository")
    places = [str(vault), f"zip://inner::{archive}", f"git://{repository}", "memory://bucket/vault"]
    answer = index(tmp_path / "tables", *places)
    assert answer.code == 0 and answer.json["indexed"] == 4, answer
    first, *others = (all_rows(tmp_path / "tables", place) for place in places)
    assert len(first["verdicts"]) > 20 and [one for one in others if one != first] == []
    assert index(tmp_path / "tables", *places).json["unchanged"] == 4
    # The same in a store, whose change of a file is seen by its listing.
    index("memory://bucket/tables", *places)
    memory.pipe_file("/bucket/vault/memory/more.txt", b"more")
    found = index("memory://bucket/tables", *places).json
    assert (found["indexed"], found["unchanged"], found["rows"]["verdicts"]) == (1, 3, 4 * len(first["verdicts"]) + 1)
    assert sorted(path.rpartition("/")[2] for path in memory.find("/bucket/tables/sessions")) == sorted(
        path.name for path in (tmp_path / "tables/sessions").iterdir()
    )


def test_a_secret_that_the_index_still_had_is_redacted_on_the_way_in(vault: Vault) -> None:
    secret = "ghp_" + some(Random(11), 36)
    with indexed(Place(str(vault.root)), NOW_US) as database:
        database.execute(
            "update memory_artifacts set built_sentence = ?, project = ?", (f"Used {secret}.", f"/{secret}")
        )
        database.execute("update ledger_rows set sentence = ?", (f"Used {secret}.",))
        database.execute("update statements set text = ?", (f"token={secret}",))
        database.execute("update files set path = ?||path, message = ? where verdict = 'ignored'", (secret, secret))
        database.execute("update memory_artifacts set content = ?", (f"# Told\n\n{secret}\n",))
        tables = rows_of(
            database, [{"path": secret, "verdict": "invalid", "code": "x", "message": secret}], bodies=True
        )
    said = repr(tables)
    assert secret not in said and said.count("[REDACTED") >= 10
    for table in OPEN_TABLES:
        keys = [row[: table.key] for row in tables[table.name]]
        assert keys == sorted(set(keys)) and {len(row) for row in tables[table.name]} == {len(table.columns)}


def test_an_empty_workspace_has_tables_without_rows(tmp_path: Path) -> None:
    answer = index(tmp_path / "tables", Vault(tmp_path / "vault").root)
    assert answer.code == 0 and set(answer.json["rows"].values()) == {0}
    assert len(list((tmp_path / "tables").rglob("*.parquet"))) == 3


def test_a_damaged_note_counts_for_nothing(vault: Vault, tmp_path: Path) -> None:
    place = tmp_path / "tables"
    index(place, vault.root)
    (note,) = place.glob("workspaces/*.json")
    note.write_text('{"workspace":')
    assert index(place, vault.root).json["indexed"] == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "--tables"),
        (("--tables", "s3://user:pw@bucket/x"), "password"),
        (("--tables", "no://b/x"), "no way to read"),
    ],
)
def test_a_place_that_cannot_be_is_refused(vault: Vault, words: tuple[str, ...], says: str) -> None:
    answer = call("fleet", "index", str(vault.root), *words)
    assert answer.code == 2 and says in answer.err and "pw@" not in answer.err, answer


def test_tables_inside_a_vault_are_refused(vault: Vault) -> None:
    answer = index(vault.memory / "tables", vault.root)
    assert answer.code == 2 and "memory/" in answer.json["error"]["message"]
    assert not (vault.memory / "tables").exists()


def test_a_workspace_may_have_any_name_and_only_its_owner_reads_the_tables(tmp_path: Path) -> None:
    for name in (b"a\xff b", "naïve ?%#&=ü".encode(), b"x" * 200, b"line\nbreak"):
        vault = Vault(Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)))
        vault.session(1)
        assert index(tmp_path / "tables", vault.root).json["indexed"] == 1
        assert index(tmp_path / "tables", vault.root).json["unchanged"] == 1
    assert len(workspaces(tmp_path / "tables")) == 4
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "tables").rglob("*")} == {0o700, 0o600}


def test_two_runs_at_once_are_refused(vault: Vault, tmp_path: Path) -> None:
    with state_dir.fleet_lock(state_dir.base()):
        answer = index(tmp_path / "tables", vault.root)
    assert answer.code == 3 and answer.json["error"]["code"] == "busy"


def test_a_writer_that_dies_leaves_nothing_that_counts(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it dies: the workspace is indexed again, and every file is whole."""
    index(tmp_path / "right", vault.root)
    usual = durable.publish
    for dies_at in range(1, 5):
        place, written = tmp_path / f"tables{dies_at}", 0

        def failing(*given: Any, dies_at: int = dies_at, **more: Any) -> int:
            nonlocal written
            written += 1
            if written == dies_at:
                raise OSError(28, "No space left on device")
            return usual(*given, **more)

        monkeypatch.setattr(durable, "publish", failing)
        answer = index(place, vault.root)
        monkeypatch.undo()
        assert answer.code == 1 and "No space" in answer.json["unreachable"][0]["message"]
        assert workspaces(place) == []
        assert index(place, vault.root).json["indexed"] == 1
        assert all_rows(place, vault.root) == all_rows(tmp_path / "right", vault.root)
