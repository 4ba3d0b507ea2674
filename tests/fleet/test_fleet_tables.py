"""Many workspaces as Parquet: the verdicts of `check`, what changed and nothing else, nothing of what was removed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from random import Random

import artifacts_fixture as made
import pytest
from fleet_tables import files_of, here, index, manifest, rows, stray
from invented_secrets import some
from workbench import NOW, Vault, call, cast, contents, numbered, tree

from signet_sync.fleet import engines
from signet_sync.fleet.read_only_index import indexed
from signet_sync.fleet.tables import schema
from signet_sync.fleet.tables.parquet import ParquetTables
from signet_sync.fleet.tables.rows import rows_of
from signet_sync.formats.timestamps import parse_instant

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
    (profile,) = vault.root.glob("entities/parts/*/Critic.md")
    profile.write_bytes(b"\xff\xfe")
    vault.session(6)
    vault.put(made.tombstone(session_id=numbered(6)["session_id"]), "memory/tombstones")
    (vault / "signet-sync.toml").write_text("[noise]\nprojects = 3\n")


@pytest.fixture(scope="module")
def mould(tmp_path_factory: pytest.TempPathFactory) -> object:
    return cast(tmp_path_factory.mktemp("mould"), furnish)


@pytest.fixture
def vault(mould, tmp_path: Path) -> Vault:
    return mould(tmp_path)


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


def test_sessions_and_facts_are_told_as_the_session_log_tells_them(vault: Vault, tmp_path: Path) -> None:
    index(tmp_path / "tables", vault.root)
    sessions = {one["session"]: one for one in rows(tmp_path / "tables", "sessions", vault.root)}
    assert len(sessions) == 4
    one, noise = sessions[numbered(1)["session_id"]], sessions[numbered(4)["session_id"]]
    assert (one["listed"], noise["listed"], noise["agent"], one["day"]) == (True, False, "scout", "2026-03-28")
    assert one["sentence"].startswith("In lantern step number 1") and one["files"] == 3
    assert one["path"].endswith("--summary.md") and one["size"] == sum(
        (vault.root / artifact["path"]).stat().st_size
        for artifact in rows(tmp_path / "tables", "artifacts", vault.root)
        if artifact["session"] == one["session"]
    )
    facts = rows(tmp_path / "tables", "facts", vault.root)
    decided = [fact for fact in facts if "number1x" in fact["text"]]
    assert [(fact["kind"], fact["status"], fact["session"]) for fact in decided] == [
        ("decision", "active", one["session"])
    ]
    assert "number1x" in one["words"]


def test_memories_and_bodies_are_in_no_table(vault: Vault, tmp_path: Path) -> None:
    vault.reindex()
    vault.call("remember", "The wick is trimmed at dusk.", "--now", NOW)
    index(tmp_path / "tables", vault.root)
    said = json.dumps([rows(tmp_path / "tables", table.name, vault.root) for table in schema.OPEN_TABLES], default=str)
    assert "wick" not in said and "# Session 1" not in said
    assert index(tmp_path / "tables", vault.root, more=("--bodies",)).json["indexed"] == 1
    artifacts = rows(tmp_path / "tables", "artifacts", vault.root)
    assert any("# Session 1" in (one["body"] or "") for one in artifacts)
    assert stray(tmp_path / "tables") == []


def test_what_did_not_change_is_neither_read_nor_written(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "tables"
    first = index(place, vault.root).json
    before, names = tree(place), files_of(place, vault.root)
    monkeypatch.setattr("signet_sync.sync.reading.judged", None)
    again = index(place, vault.root, now=LATER).json
    assert (again["indexed"], again["unchanged"], again["rows"]) == (0, 1, first["rows"])
    assert tree(place) == before
    monkeypatch.undo()
    vault.put({"more.txt": b"also mine"})
    assert index(place, vault.root, now=LATER).json["indexed"] == 1
    after = files_of(place, vault.root)
    assert {table for table in names if names[table] != after[table]} == {"verdicts"}
    assert stray(place) == []


@pytest.mark.parametrize("change", ["a session", "a tombstone", "an entity", "a setting"])
def test_every_change_is_seen(vault: Vault, tmp_path: Path, change: str) -> None:
    place = tmp_path / "tables"
    index(place, vault.root)
    before = files_of(place, vault.root)
    if change == "a session":
        vault.session(7)
    elif change == "a tombstone":
        vault.put(made.tombstone(session_id=numbered(1)["session_id"]), "memory/tombstones")
    elif change == "an entity":
        (profile,) = vault.root.glob("entities/parts/*/Critic.md")
        profile.unlink()
    else:
        (vault / "signet-sync.toml").unlink()
    index(place, vault.root)
    assert files_of(place, vault.root)["verdicts"] != before["verdicts"]


def test_of_a_removed_session_nothing_stays(vault: Vault, tmp_path: Path) -> None:
    vault.reindex()
    place = tmp_path / "tables"
    index(place, vault.root, more=("--bodies",))
    old = set(files_of(place, vault.root).values())
    assert vault.call("remove", numbered(2)["session_id"], "--reason", "asked", "--yes", "--now", NOW).code == 0
    index(place, vault.root, more=("--bodies",))
    for table in ("artifacts", "sessions", "facts"):
        assert "number2x" not in json.dumps(rows(place, table, vault.root), default=str)
        assert numbered(2)["session_id"] not in json.dumps(rows(place, table, vault.root), default=str)
    assert stray(place) == []
    assert not old & {path.name for path in place.rglob("*.parquet")}


def test_rows_of_what_cannot_be_reached_stay_and_prune_drops_what_is_not_named(vault: Vault, tmp_path: Path) -> None:
    place, other = tmp_path / "tables", Vault(tmp_path / "other")
    other.session(1)
    assert index(place, vault.root, other.root).json["indexed"] == 2
    before = manifest(place)
    shutil.move(other.root, tmp_path / "away")
    answer = index(place, vault.root, other.root)
    assert answer.code == 1
    assert [one["workspace"] for one in answer.json["unreachable"]] == [str(other.root)]
    (other.root / "notes").mkdir(parents=True)  # a root whose vault is not mounted
    assert "memory" in index(place, vault.root, other.root).json["unreachable"][0]["message"]
    assert index(place, vault.root).json["dropped"] == 0
    assert manifest(place) == before
    assert index(place, vault.root, more=("--prune",)).json["dropped"] == 1
    assert list(manifest(place)) == [str(vault.root)] and stray(place) == []


def test_equal_files_give_equal_tables_wherever_they_are(vault: Vault, tmp_path: Path) -> None:
    copy = shutil.copytree(vault.root, tmp_path / "elsewhere")
    index(tmp_path / "tables", vault.root, copy)
    assert files_of(tmp_path / "tables", vault.root) == files_of(tmp_path / "tables", copy)


def test_a_store_holds_what_a_folder_holds(vault: Vault, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    url = f"memory://{tmp_path.name}/tables"
    try:
        for _ in range(2):
            answer = index(url, vault.root)
            assert answer.code == 0, answer
        assert answer.json["unchanged"] == 1
        vault.session(7)
        index(url, vault.root)
        index(tmp_path / "tables", vault.root)
        store = fsspec.filesystem("memory")
        there = {path.partition("/tables/")[2]: store.cat_file(path) for path in store.find(f"/{tmp_path.name}")}
        here = {path: (tmp_path / "tables" / path).read_bytes() for path in contents(tmp_path / "tables")}
        assert {path: data for path, data in there.items() if path != "manifest.json"} == {
            path: data for path, data in here.items() if path != "manifest.json"
        }
        assert "manifest.json" in there
    finally:
        fsspec.filesystem("memory").rm(f"/{tmp_path.name}", recursive=True)


def test_a_secret_that_the_index_still_had_is_redacted_on_the_way_in(vault: Vault) -> None:
    secret = "ghp_" + some(Random(11), 36)
    with indexed(str(vault.root), NOW_US) as database:
        database.execute(
            "update memory_artifacts set ledger_sentence = ?, project = ?", (f"Used {secret}.", f"/{secret}")
        )
        database.execute("update ledger_rows set sentence = ?", (f"Used {secret}.",))
        database.execute("update attribute_sources set text = ?", (f"token={secret}",))
        database.execute("update files set path = ?||path, message = ? where verdict = 'ignored'", (secret, secret))
        database.execute("update memory_artifacts set content = ?", (f"# Told\n\n{secret}\n",))
        made = rows_of(database, [{"path": secret, "verdict": "invalid", "code": "x", "message": secret}], bodies=True)
    said = repr(made.tables)
    assert secret not in said and said.count("[REDACTED") >= 10
    assert made.redacted >= 6
    paths = [row[:2] for row in made.tables["verdicts"]]
    assert len(set(paths)) == len(paths)


def test_keys_are_unique_and_every_column_is_filled_by_some_row(vault: Vault) -> None:
    with indexed(str(vault.root), NOW_US) as database:
        found = rows_of(database, [], bodies=True).tables
    for table in schema.OPEN_TABLES:
        at = [table.names.index(name) for name in table.key]
        keys = [tuple(row[number] for number in at) for row in found[table.name]]
        assert keys == sorted(set(keys))
        assert {len(row) for row in found[table.name]} == {len(table.columns)}


def test_an_empty_workspace_has_tables_without_rows(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    answer = index(tmp_path / "tables", vault.root)
    assert answer.code == 0 and set(answer.json["rows"].values()) == {0}
    assert rows(tmp_path / "tables", "facts", vault.root) == []


def test_a_damaged_manifest_is_told_and_made_again_once_it_is_deleted(vault: Vault, tmp_path: Path) -> None:
    place = tmp_path / "tables"
    index(place, vault.root)
    files = files_of(place, vault.root)
    (place / "manifest.json").write_text('{"version": 1')
    answer = index(place, vault.root)
    assert answer.code == 3 and "manifest" in answer.out
    (place / "manifest.json").unlink()
    assert index(place, vault.root).json["indexed"] == 1
    assert files_of(place, vault.root) == files and stray(place) == []


def test_a_commit_whose_files_are_not_all_there_counts_for_nothing(vault: Vault, tmp_path: Path) -> None:
    """As a run leaves it whose files another one deleted."""
    place = tmp_path / "tables"
    index(place, vault.root)
    before, commit = manifest(place), manifest(place)[str(vault.root)]
    commit["files"]["facts"]["path"] = commit["files"]["facts"]["path"].replace(".parquet", "0.parquet")
    for name, raw in (("gone", json.dumps(commit)), ("half", '{"workspace":')):
        (place / "commits").mkdir(exist_ok=True)
        (place / f"commits/{name}.json").write_text(raw)
    assert index(place, vault.root).json["unchanged"] == 1
    assert manifest(place) == before and stray(place) == []


def test_a_file_that_somebody_deleted_is_made_again(vault: Vault, tmp_path: Path) -> None:
    place = tmp_path / "tables"
    index(place, vault.root)
    files = files_of(place, vault.root)
    next(place.rglob(files["facts"])).unlink()
    assert index(place, vault.root).json["indexed"] == 1
    assert files_of(place, vault.root) == files and stray(place) == []


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), 2, "--tables"),
        (("--tables", "s3://user:pw@bucket/x"), 2, "user or password"),
        (("--tables", "nothing://bucket/x"), 2, "no way to read"),
    ],
)
def test_a_place_that_cannot_be_is_refused(vault: Vault, words: tuple[str, ...], code: int, says: str) -> None:
    answer = call("fleet", "index", str(vault.root), *words)
    assert answer.code == code and says in answer.err and "pw@" not in answer.err, answer


def test_a_fleet_file_names_workspaces_and_tables(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "fleet.toml").write_text('targets = ["vaul?"]\ntables = "tables"\n')
    answer = call(
        "fleet", "index", tmp_path / "fleet.toml", "--engine", "local", "--workers", "1", "--json", "--now", NOW
    )
    assert answer.code == 0 and answer.json["indexed"] == 1, answer
    assert list(manifest(tmp_path / "tables")) == [str(vault.root)]
    # The same as in this process: an engine adds nothing.
    assert index(tmp_path / "tables", vault.root).json["unchanged"] == 1


def test_tables_inside_a_vault_are_refused(vault: Vault) -> None:
    answer = index(vault.memory / "tables", vault.root)
    assert answer.code == 2 and "memory/" in answer.json["error"]["message"]
    assert not (vault.memory / "tables").exists()


def test_a_workspace_may_have_any_name(tmp_path: Path) -> None:
    for name in (b"a\xff b", "naïve ?%#&=ü".encode(), b"x" * 200, b"line\nbreak"):
        vault = Vault(Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)))
        vault.session(1)
        assert index(tmp_path / "tables", vault.root).json["indexed"] == 1
        assert index(tmp_path / "tables", vault.root).json["unchanged"] == 1
    assert len(manifest(tmp_path / "tables")) == 4 and stray(tmp_path / "tables") == []


def test_a_worker_in_another_folder_writes_into_the_same_tables(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(*given):
        for done in here(*given):
            yield done
            os.chdir(tmp_path)

    def work(function, items, engine):
        os.chdir(tmp_path / "other")
        return elsewhere(function, items, engine)

    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engines, "run", work)
    assert call("fleet", "index", vault.root, "--tables", "tables", "--now", NOW).code == 0
    assert (tmp_path / "tables/sessions").is_dir() and not (tmp_path / "other/tables").exists()


def test_tables_are_read_by_their_owner_only(vault: Vault, tmp_path: Path) -> None:
    index(tmp_path / "tables", vault.root)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "tables").rglob("*")}
    assert modes == {0o700, 0o600}


def test_two_runs_at_once_are_refused(vault: Vault, tmp_path: Path) -> None:
    from signet_sync.storage import state_dir

    with state_dir.fleet_lock(state_dir.base()):
        answer = index(tmp_path / "tables", vault.root)
    assert answer.code == 3 and answer.json["error"]["code"] == "busy"


def test_what_another_run_published_meanwhile_stays(vault: Vault, tmp_path: Path) -> None:
    other = Vault(tmp_path / "other")
    other.session(1)
    place = tmp_path / "tables"
    index(place, vault.root)
    tables = ParquetTables(str(place))
    before = tables.commits()
    index(place, other.root)
    tables.publish(before, (), NOW_US)
    assert set(manifest(place)) == {str(vault.root), str(other.root)} and stray(place) == []
