"""Sessions of many workspaces, found by DuckDB in the tables."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from fleet_tables import index
from hostile_queries import HOSTILE
from workbench import Vault, call, cast

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")


def furnish(vault: Vault) -> None:
    for number in (1, 2, 3):
        vault.session(number)
    body = "# Beacon\n\n## Decisions\n\n- The beacon gets a café für Ünal.\n"
    vault.session(4, agent_id="scout", project="/home/ada/code/beacon", body=body)
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
    answer = call("fleet", "search", "--json", "--tables", str(place), *more, "--", query, *only)
    assert answer.code == 0, answer
    hits: list[dict[str, Any]] = answer.json["hits"]
    return hits


def sessions(hits: list[dict[str, Any]]) -> list[int]:
    return [int(hit["session_id"][-12:]) for hit in hits]


def test_sessions_are_found_by_words_project_agent_time_and_workspace(place: Path, tmp_path: Path) -> None:
    assert sessions(found(place, "number2x")) == [2]
    assert sessions(found(place, "Lantern number3x keeps")) == [3]  # all of the words
    assert sorted(sessions(found(place, "number1x number6x"))) == [1, 6]  # if none has all, any
    assert sorted(sessions(found(place, "queue"))) == [1, 2, 3, 4, 5, 6]
    assert sessions(found(place, "增量")) == [5]
    assert sessions(found(place, "getusername")) == [5]
    assert sessions(found(place, "cafe unal")) == [4]
    assert sessions(found(place, "queue", only=(str(tmp_path / "other"),))) == [6]
    assert sessions(found(place, "beacon", "--agent", "scout")) == [4]
    assert found(place, "beacon", "--agent", "default") == []
    assert sessions(found(place, "beacon", "--project", "Beacon")) == [4]
    assert sorted(sessions(found(place, "queue", "--since", "2026-03-27"))) == [1, 2]
    assert sorted(sessions(found(place, "queue", "--until", "2026-03-26"))) == [3, 4, 5, 6]
    assert len(found(place, "queue", "--limit", "2")) == 2
    (hit,) = found(place, "number2x")
    assert hit["workspace"] == str(tmp_path / "vault") and hit["snippet"].startswith("Lantern keeps its word number2x")
    assert hit["path"].endswith("--summary.md") and hit["day"] == "2026-03-27" and hit["score"] == 1
    for query in HOSTILE.values():
        found(place, query)


def test_bodies_are_searched_where_they_are_indexed(place: Path, tmp_path: Path) -> None:
    assert found(place, "Fünf") == []
    index(place, tmp_path / "vault", more=("--bodies",))
    assert sessions(found(place, "Fünf")) == [5]


def test_tables_in_a_store_are_searched_like_those_in_a_folder(place: Path, memory: Any, tmp_path: Path) -> None:
    index("memory://bucket/tables", tmp_path / "vault", tmp_path / "other")
    assert found("memory://bucket/tables", "queue") == found(place, "queue")


def test_tables_that_are_damaged_gone_or_empty_are_told(place: Path, tmp_path: Path) -> None:
    file = next(place.glob("sessions/*.parquet"))
    file.write_bytes(file.read_bytes()[:-9])
    answer = call("fleet", "search", "queue", "--tables", str(place))
    assert answer.code == 3 and str(file) in answer.err and "fleet index" in answer.err
    shutil.rmtree(place / "sessions")
    assert call("fleet", "search", "queue", "--tables", str(place)).code == 3
    answer = call("fleet", "search", "queue", "--tables", str(tmp_path))
    assert answer.code == 2 and "fleet index" in answer.err
    index(tmp_path / "no[ne]", Vault(tmp_path / "empty").root)
    assert found(tmp_path / "no[ne]", "queue") == []
