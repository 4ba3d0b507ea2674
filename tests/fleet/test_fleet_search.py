"""Sessions of many workspaces, found by DuckDB's full-text index over the tables; skipped where DuckDB lacks it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from fleet_tables import index
from hostile_queries import HOSTILE
from workbench import NOW, Vault, call, cast, numbered

from signet_sync.fleet.tables import text_index
from signet_sync.storage import state_dir

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")


def has_full_text() -> bool:
    try:
        duckdb.connect().execute(f"load '{text_index._extension(duckdb.__version__)}'")
    except duckdb.Error:
        return False
    return True


HAS_FULL_TEXT = has_full_text()
with_full_text = pytest.mark.skipif(not HAS_FULL_TEXT, reason="DuckDB has no full-text extension here")


def furnish(vault: Vault) -> None:
    for number in (1, 2, 3):
        vault.session(number)
    vault.session(
        4,
        agent_id="scout",
        project="/home/ada/code/beacon",
        body="# Beacon\n\n## Decisions\n\n- The beacon gets a café für Ünal.\n",
    )
    vault.session(5, body="# Fünf\n\n## Decisions\n\n- 我们把索引改成增量更新 in getUserName.\n")
    vault.reindex()


@pytest.fixture(scope="module")
def mould(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return cast(tmp_path_factory.mktemp("mould"), furnish)


@pytest.fixture
def place(mould: Any, tmp_path: Path) -> Path:
    vault = mould(tmp_path)
    other = Vault(tmp_path / "other")
    other.session(6)
    assert index(tmp_path / "tables", vault.root, other.root).code == 0
    return tmp_path / "tables"


def found(place: Path | str, query: str, *more: str, only: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    where = "--from" if str(place).startswith("postgresql://") else "--tables"
    answer = call("fleet", "search", "--json", where, str(place), *more, "--", query, *only)
    assert answer.code == 0, answer
    hits: list[dict[str, Any]] = answer.json["hits"]
    return hits


def sessions(hits: list[dict[str, Any]]) -> list[int]:
    return [int(hit["session_id"][-12:]) for hit in hits]


def check_finding(place: Path | str, folder: Path) -> None:
    """What every place of tables answers."""
    assert sessions(found(place, "number2x")) == [2]
    assert sessions(found(place, "Lantern number3x keeps")) == [3]  # all of the words
    assert sorted(sessions(found(place, "number1x number6x"))) == [1, 6]  # if none has all, any
    assert sorted(sessions(found(place, "queue"))) == [1, 2, 3, 4, 5, 6]
    assert sessions(found(place, "增量")) == [5]
    assert sessions(found(place, "getusername")) == [5]
    assert sessions(found(place, "queue", only=(str(folder / "other"),))) == [6]
    assert sessions(found(place, "beacon", "--agent", "scout")) == [4]
    assert found(place, "beacon", "--agent", "default") == []
    assert sessions(found(place, "beacon", "--project", "Beacon")) == [4]
    assert sorted(sessions(found(place, "queue", "--since", "2026-03-27"))) == [1, 2]
    assert sorted(sessions(found(place, "queue", "--until", "2026-03-26"))) == [3, 4, 5, 6]
    assert len(found(place, "queue", "--limit", "2")) == 2
    (hit,) = found(place, "number2x")
    assert hit["workspace"] == str(folder / "vault") and hit["snippet"].startswith("Lantern keeps its word number2x")
    assert hit["path"].endswith("--summary.md") and hit["day"] == "2026-03-27" and hit["score"] > 0
    for query in HOSTILE.values():
        found(place, query)


@with_full_text
def test_sessions_are_found_by_words_project_agent_time_and_workspace(place: Path, tmp_path: Path) -> None:
    check_finding(place, tmp_path)
    assert sessions(found(place, "cafe unal")) == [4]


@with_full_text
def test_a_person_reads_where_it_is_and_what_it_says(place: Path, tmp_path: Path) -> None:
    answer = call("fleet", "search", "number2x", "--tables", str(place))
    where, sentence, said = answer.out.splitlines()
    assert where.startswith(str(tmp_path / "vault")) and sentence.startswith("  In lantern step number 2")
    assert said.startswith("  Lantern keeps its word number2x")
    assert call("fleet", "search", "nowheretobefound", "--tables", str(place)).err == "nothing found\n"


def indexes() -> list[Path]:
    return [path for path in Path(state_dir.base(), "fleet").rglob("*") if path.is_file()]


@with_full_text
def test_the_index_is_made_once_for_a_manifest_and_deleted_with_it(place: Path, tmp_path: Path) -> None:
    found(place, "queue")
    (first,) = indexes()
    before = first.stat()
    assert before.st_mode & 0o777 == 0o600 and first.parent.stat().st_mode & 0o077 == 0
    found(place, "loop")
    assert first.stat().st_mtime_ns == before.st_mtime_ns
    vault = Vault(tmp_path / "vault")
    index(place, vault.root)
    assert indexes() == [first]
    vault.reindex()
    assert vault.call("remove", numbered(2)["session_id"], "--reason", "asked", "--yes", "--now", NOW).code == 0
    index(place, vault.root)
    assert indexes() == []
    assert sessions(found(place, "number2x")) == []
    (second,) = indexes()
    assert b"number2x" not in second.read_bytes() and second != first


@with_full_text
def test_what_a_search_that_died_left_is_deleted(place: Path) -> None:
    found(place, "queue")
    (path,) = indexes()
    left = path.parent / "4194304-x.building"
    left.mkdir()
    (left / "index.duckdb").write_bytes(b"half of it")
    found(place, "queue")
    assert indexes() == [path] and not left.exists()


@with_full_text
def test_files_that_are_gone_are_told(place: Path) -> None:
    shutil.rmtree(place / "sessions")
    answer = call("fleet", "search", "queue", "--tables", str(place))
    assert answer.code == 3 and "fleet index" in answer.err


@with_full_text
def test_tables_in_a_store_are_searched_like_those_in_a_folder(place: Path, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    url = f"memory://{tmp_path.name}"
    try:
        index(url, tmp_path / "vault", tmp_path / "other")
        assert found(url, "queue") == found(place, "queue")
    finally:
        fsspec.filesystem("memory").rm(f"/{tmp_path.name}", recursive=True)


@with_full_text
def test_bodies_are_searched_where_they_are_indexed(place: Path, tmp_path: Path) -> None:
    assert found(place, "Fünf") == []
    index(place, tmp_path / "vault", more=("--bodies",))
    assert sessions(found(place, "Fünf")) == [5]


@with_full_text
def test_tables_without_a_session_answer_nothing(tmp_path: Path) -> None:
    index(tmp_path / "tables", Vault(tmp_path / "vault").root)
    assert found(tmp_path / "tables", "queue") == []


@pytest.mark.skipif(HAS_FULL_TEXT, reason="DuckDB has its full-text extension here")
def test_without_full_text_the_remedy_is_told_and_nothing_fetched(place: Path) -> None:
    answer = call("fleet", "search", "queue", "--tables", str(place))
    assert answer.code == 2 and "--install-fts" in answer.err and "fleet-tables.md" in answer.err
    assert indexes() == []


def test_a_place_without_tables_is_told(tmp_path: Path) -> None:
    for words in (["--tables", str(tmp_path)], []):
        answer = call("fleet", "search", "queue", *words)
        assert answer.code == 2 and ("fleet index" in answer.err or "--tables" in answer.err)
