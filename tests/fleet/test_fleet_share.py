"""The share of a workspace: its rows as Parquet, only what changed, nothing that was removed, one commit."""

from __future__ import annotations

import json
import os
from itertools import chain, repeat
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import DEFAULT, Mock

import artifacts_fixture as made
import pytest
from agents import Inside, until
from invented_secrets import some
from workbench import NOW, Answer, Vault, call, cast, numbered, tree

from signet_sync.app import scheduler
from signet_sync.errors import SignetSyncError
from signet_sync.fleet import share, tables
from signet_sync.fleet.tables import COLUMNS, TABLES, Tables
from signet_sync.storage import durable, state_dir

parquet = pytest.importorskip("pyarrow.parquet")


def furnish(vault: Vault) -> None:
    """Sessions of two agents, a damaged one, a foreign file, a removed one."""
    for number in (1, 2, 3):
        vault.session(number)
    vault.session(4, agent_id="scout", project="/home/ada/code/beacon")
    name, raw = made.summary(**numbered(5))
    vault.put((name, raw.replace(b"word", b"world")))
    vault.put({"notes.txt": b"mine"})
    vault.session(6)
    vault.put(made.tombstone(session_id=numbered(6)["session_id"]), "memory/tombstones")
    vault.reindex()


@pytest.fixture(scope="module")
def mould(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return cast(tmp_path_factory.mktemp("mould"), furnish)


@pytest.fixture
def vault(mould: Any, tmp_path: Path) -> Vault:
    found: Vault = mould(tmp_path)
    return found


def shared(vault: Vault, place: Path | str, *more: str, code: int = 0) -> Any:
    """`fleet share --json` of the workspace itself."""
    answer = vault.call("fleet", "share", "--at", str(place), "--json", "--now", NOW, *more)
    assert answer.code == code, answer
    return answer.json


def rows(place: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table that commits name, as any program can read them."""
    found = []
    for commit in map(json.loads, (path.read_text() for path in place.glob("shares/*.json"))):
        path = place / table / f"share={commit['share']}" / f"{commit[table]}.parquet"
        found += parquet.ParquetFile(path).read().to_pylist()
    return found


def all_rows(place: Path) -> dict[str, list[dict[str, Any]]]:
    return {table: rows(place, table) for table in TABLES}


def test_rows_are_those_of_the_index_and_without_text_unless_it_is_wanted(vault: Vault, tmp_path: Path) -> None:
    assert shared(vault, tmp_path / "t")["workspaces"][0]["shared"] == "written"
    plain = all_rows(tmp_path / "t")
    assert shared(vault, tmp_path / "t", "--holds", "text")["workspaces"][0]["shared"] == "written"
    told = all_rows(tmp_path / "t")
    checked = vault.call("check", "--json", "--now", NOW).json
    verdicts = {one["path"]: one["verdict"] for one in plain["files"]}
    assert {one["path"]: one["verdict"] for one in checked["problems"]}.items() <= verdicts.items()
    assert [len(plain[table]) for table in TABLES] == [len(told[table]) for table in TABLES]
    one = next(row for row in told["sessions"] if row["session"] == numbered(1)["session_id"])
    assert (
        one["sentence"].startswith("In lantern step number 1")
        and "# session 1" in one["said"]
        and "number1x" in one["said"]
    )
    assert any("number1x" in row["text"] and row["status"] == "open" for row in told["statements"])
    said = json.dumps(plain, default=str)
    assert "number1x" not in said and "step number" not in said and "/home/ada" not in said
    assert {row["project"] for row in plain["sessions"]} == {"lantern", "beacon"}
    for table in TABLES:
        hidden = {name for name, kind in COLUMNS[table].items() if kind == "line"}
        assert {row[name] for row in plain[table] for name in hidden} == {None}


def test_only_what_changed_is_written_and_a_withdrawn_share_is_gone(vault: Vault, tmp_path: Path) -> None:
    place = tmp_path / "t"
    shared(vault, place)
    before = tree(place)
    assert shared(vault, place)["workspaces"][0]["shared"] == "unchanged" and tree(place) == before
    vault.put({"more.txt": b"also mine"})
    vault.reindex()
    assert shared(vault, place)["workspaces"][0]["shared"] == "written"
    moved = {path.split("/")[0] for path in tree(place).keys() ^ before.keys()}
    assert moved == {"files"}  # the other parts are the same files
    part = next(place.glob("sessions/*/*.parquet"))
    part.unlink()  # somebody tidied up: it is written again
    assert shared(vault, place)["workspaces"][0]["shared"] == "written" and part.exists()
    vault.call("remove", numbered(2)["session_id"], "--reason", "private", "--yes", "--now", NOW)
    shared(vault, place)
    gone = numbered(2)["session_id"]
    assert all(row["session"] != gone for row in rows(place, "sessions"))
    assert len(list(place.glob("*/*/*.parquet"))) == 3
    assert shared(vault, place, "--withdraw")["workspaces"][0]["shared"] == "withdrawn"
    assert [path for path in place.rglob("*") if path.is_file()] == []


def test_every_text_passes_the_sanitizer_on_its_way(vault: Vault, tmp_path: Path) -> None:
    secret = "ghp_" + some(Random(11), 36)
    with vault.database(readonly=False) as database:
        database.execute(
            "update memory_artifacts set built_sentence = ?1, project = '/' || ?1, content = ?1", (secret,)
        )
        database.execute("update ledger_rows set sentence = ?", (f"Used {secret}.",))
        database.execute("update statements set text = ?", (f"token={secret}",))
        database.execute("update files set message = ?1, path = ?1 || path where verdict = 'ignored'", (secret,))
    for holds in ("rows", "text"):
        shared(vault, tmp_path / "t", "--holds", holds)
        said = repr(all_rows(tmp_path / "t"))
        assert secret not in said and "[REDACTED" in said


def test_a_writer_that_dies_anywhere_leaves_the_last_commit_whole(vault: Vault, tmp_path: Path) -> None:
    place = tmp_path / "t"
    shared(vault, place)
    before = all_rows(place)
    vault.session(7)
    vault.reindex()
    usual, delete = durable.publish, Tables.delete
    for dies_at in range(1, 7):
        steps = 0

        def step(real: Any, dies_at: int = dies_at) -> Any:
            def call(path: Any, *given: Any, **more: Any) -> Any:
                nonlocal steps
                steps += isinstance(path, Tables) or str(path).startswith(str(place))
                if steps == dies_at:
                    raise KeyboardInterrupt
                return real(path, *given, **more)

            return call

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(durable, "publish", step(usual))
            patch.setattr(Tables, "delete", step(delete))
            vault.call("fleet", "share", "--at", str(place), "--now", NOW)
        found = all_rows(place)
        assert found == before or len(found["sessions"]) == len(before["sessions"]) + 1, dies_at
    shared(vault, place)
    whole = all_rows(place)
    assert len(whole["sessions"]) == len(before["sessions"]) + 1
    for path in place.glob("*/*/*.parquet"):  # of a writer that died long ago
        os.utime(path, (0, 0))
    vault.session(8)
    vault.reindex()
    shared(vault, place)
    assert len(list(place.glob("*/*/*.parquet"))) == 3


def test_somebody_elses_commit_in_between_is_seen(vault: Vault, memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place = "memory://bucket/t"
    shared(vault, place)
    usual, beside = Tables.put, 0

    def put(self: Tables, path: str, data: bytes) -> None:
        nonlocal beside
        usual(self, path, data)
        if path.startswith("files/") and beside < 1:  # another one commits before this one does
            beside += 1
            commit = next(iter(memory.glob("/bucket/t/shares/*")))
            memory.pipe_file(commit, memory.cat_file(commit).replace(b'"rows"', b'"less"'))

    vault.put({"more.txt": b"mine"})
    vault.reindex()
    monkeypatch.setattr(Tables, "put", put)
    shared(vault, place)
    assert beside == 1 and Tables(place).read_all("shares").popitem()[1]["holds"] == "rows"
    monkeypatch.setattr(Tables, "write", lambda *_: (_ for _ in ()).throw(tables.Conflict))
    with pytest.raises(SignetSyncError) as told:
        Tables(place).commit("0" * 20, dict.fromkeys(TABLES, ()))
    assert told.value.code == "conflict"


def test_targets_are_shared_by_their_files_and_every_match_has_a_state(
    vault: Vault, memory: Any, tmp_path: Path
) -> None:
    for path in vault.root.rglob("*"):
        if path.is_file() and ".signet" not in path.parts:
            memory.pipe_file(f"/bucket/ada/{path.relative_to(vault.root)}", path.read_bytes())
    (tmp_path / "fleet/none").mkdir(parents=True)
    Vault(tmp_path / "fleet/empty")
    (tmp_path / "fleet/file").mkdir()
    (tmp_path / "fleet/file/memory").write_bytes(b"no folder")
    place, words = tmp_path / "t", (str(vault.root), "memory://bucket/ada", f"{tmp_path}/fleet/*", f"{tmp_path}/gone")

    def call_share() -> dict[str, tuple[str, str]]:
        answer = call("fleet", "share", *words, "--at", str(place), "--workers", "1", "--json", "--now", NOW)
        assert answer.code == 1, answer
        return {one["workspace"].rpartition("/")[2]: (one["state"], one["shared"]) for one in answer.json["workspaces"]}

    first = call_share()
    assert first == {  # in the memory of a worker there is nothing
        "vault": ("ok", "written"), "ada": ("vanished", ""), "empty": ("empty", "written"), "none": ("empty", ""),
        "file": ("damaged", ""), "gone": ("vanished", ""),
    }  # fmt: skip
    assert call_share()["vault"] == ("ok", "unchanged")
    # In this process the store in memory is the same, and gives the same rows as the folder.
    assert share.share_target(("memory://bucket/ada", str(tmp_path / "m"), "text", 0))[0] == "ok"
    share.share_target((str(vault.root), str(tmp_path / "f"), "text", 0))
    there, here = all_rows(tmp_path / "m"), all_rows(tmp_path / "f")
    assert there == here and len(here["sessions"]) == 4
    for path in vault.memory.iterdir():
        path.rename(tmp_path / path.name) if path.is_file() else None
    vault.memory.rename(tmp_path / "away")
    assert call_share()["vault"] == ("vanished", "") and rows(place, "sessions")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "no place for shares"),
        (("--at", "s3://user:pw@bucket/x"), "password"),
        (("--at", "no://b/x"), "no way to read"),
        (("--at", "/t", "--withdraw", "/a"), "leave out TARGET"),
        (("--at", "/t", "--address", "h:1"), "--engine ray"),
    ],
)
def test_what_cannot_be_is_refused(vault: Vault, words: tuple[str, ...], says: str) -> None:
    answer: Answer = vault.call("fleet", "share", *words)
    assert answer.code == 2 and says in answer.err and "pw@" not in answer.err, answer


def test_a_workspace_cannot_name_the_place_and_two_do_not_share_at_once(vault: Vault, tmp_path: Path) -> None:
    (vault / "signet-sync.toml").write_text(f'[fleet]\nurl = "{tmp_path}/t"\nremovals = true\n')
    assert vault.call("fleet", "share").code == 2 and not (tmp_path / "t").exists()
    with state_dir.lock(state_dir.locate(str(vault.root)), "fleet"):
        assert shared(vault, tmp_path / "t", code=3)["error"]["code"] == "busy"


def test_the_agent_shares_where_its_person_says_so(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGNET_FLEET_INTERVAL", "1")
    monkeypatch.setenv("SIGNET_FLEET_URL", str(tmp_path / "t"))
    tries = chain([OSError(11, "no process can be started")], repeat(DEFAULT))
    monkeypatch.setattr(scheduler, "Command", Mock(wraps=scheduler.Command, side_effect=tries))
    with Inside(vault):
        until(lambda: list((tmp_path / "t/shares").glob("*.json")) if (tmp_path / "t").exists() else [])
        until(lambda: len(rows(tmp_path / "t", "sessions")) == 4)
