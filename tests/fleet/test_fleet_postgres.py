"""Tables of many workspaces in PostgreSQL, a real server of this machine; skipped where it or psycopg is absent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import postgres_server
import pytest
from fleet_tables import index, rows
from test_fleet_search import check_finding, found, furnish, sessions
from workbench import NOW, ROOT, Vault, call, cast, numbered

from signet_sync.fleet.tables import postgres
from signet_sync.fleet.tables.postgres import PostgresTables
from signet_sync.fleet.tables.schema import OPEN_TABLES

pytestmark = pytest.mark.slow
psycopg = pytest.importorskip("psycopg")
if postgres_server.programs() is None:
    pytest.skip("no PostgreSQL on this machine", allow_module_level=True)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server.server() as url:
        yield url


@pytest.fixture
def url(server: str) -> Iterator[str]:
    yield server
    with psycopg.connect(server) as connection:
        connection.execute(f"drop schema if exists {postgres.SCHEMA} cascade")


@pytest.fixture(scope="module")
def mould(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return cast(tmp_path_factory.mktemp("mould"), furnish)


@pytest.fixture
def vault(mould: Any, tmp_path: Path) -> Vault:
    return mould(tmp_path)


def held(url: str, sql: str, *bound: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return list(connection.execute(sql.format(schema=postgres.SCHEMA), bound))


def everything(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows, with the transaction that wrote each."""
    names = ("workspaces", *(table.name for table in OPEN_TABLES))
    return {name: sorted(held(url, f"select xmin, t.* from {{schema}}.{name} t"), key=repr) for name in names}


def test_the_rows_are_those_of_the_files(url: str, vault: Vault, tmp_path: Path) -> None:
    place = tmp_path / "tables"
    answer = call(
        "fleet", "index", vault.root, "--engine", "local", "--tables", place, "--to", url, "--json", "--now", NOW
    )
    assert answer.code == 0 and answer.json["indexed"] == 1, answer
    for table in OPEN_TABLES:
        columns = ", ".join(table.names)
        there = held(url, f"select {columns} from {{schema}}.{table.name}")
        here = [tuple(row[name] for name in table.names) for row in rows(place, table.name, vault.root)]
        assert sorted(map(str, there)) == sorted(str(_utc(row)) for row in here)


def _utc(row: tuple[Any, ...]) -> tuple[Any, ...]:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    return tuple(one.astimezone(ZoneInfo("Etc/UTC")) if isinstance(one, datetime) else one for one in row)


def test_sessions_are_found_there_as_in_the_files(url: str, vault: Vault, tmp_path: Path) -> None:
    other = Vault(tmp_path / "other")
    other.session(6)
    index(url, vault.root, other.root)
    check_finding(url, tmp_path)
    index(url, vault.root, more=("--bodies",))
    assert sessions(found(url, "Fünf")) == [5]


def test_a_second_run_writes_nothing_and_a_change_only_what_changed(url: str, vault: Vault) -> None:
    index(url, vault.root)
    before = everything(url)
    assert index(url, vault.root).json["unchanged"] == 1
    assert everything(url) == before
    vault.session(7)
    assert index(url, vault.root).json["indexed"] == 1
    after = everything(url)
    for table in ("artifacts", "sessions", "facts"):
        assert set(before[table]) < set(after[table]), table


def test_of_a_removed_session_and_of_a_workspace_that_is_dropped_nothing_stays(url: str, vault: Vault) -> None:
    other = Vault(vault.root.parent / "other")
    other.session(6)
    index(url, vault.root, other.root)
    vault.reindex()
    vault.call("remove", numbered(2)["session_id"], "--reason", "asked", "--yes", "--now", NOW)
    assert index(url, vault.root, more=("--prune",)).json["dropped"] == 1
    told = repr(everything(url))
    assert "number2x" not in told and str(other.root) not in told and "number1x" in told
    assert found(url, "number2x") == []


def test_the_password_is_told_nowhere(url: str, vault: Vault) -> None:
    wrong = url.replace("s3cret%2Fword", "wr0ng%2Fword")
    for words in (("search", "queue", "--from"), ("index", str(vault.root), "--engine", "local", "--to")):
        answer = call("fleet", *words, wrong)
        assert answer.code == 3 and "password authentication failed" in answer.err, answer
        assert "wr0ng" not in answer.err
    broken = "postgresql://fleet:wr0ng%zz@127.0.0.1/postgres"
    answer = call("fleet", "search", "queue", "--from", broken)
    assert answer.code in (2, 3) and "wr0ng" not in answer.err + answer.out, answer


def test_no_tables_and_tables_of_another_version_are_told(
    url: str, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = call("fleet", "search", "queue", "--from", url)
    assert answer.code == 2 and "fleet index" in answer.err
    index(url, vault.root)
    before = everything(url)
    monkeypatch.setattr(postgres, "_COMMENT", "tables of signet-sync fleet, version 0")
    answer = index(url, vault.root)
    assert answer.code == 2 and "drop schema" in answer.json["error"]["hint"]
    assert everything(url) == before


def test_a_run_killed_at_any_moment_leaves_each_workspace_as_before_or_after(
    url: str, vault: Vault, tmp_path: Path
) -> None:
    random = Random(3)
    index(url, vault.root)
    words = [
        sys.executable,
        "-m",
        "signet_sync",
        "fleet",
        "index",
        str(vault.root),
        "--engine",
        "local",
        "--to",
        url,
        "--now",
        NOW,
    ]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    kills = 0
    for number in range(7, 20):
        vault.session(number)
        process = subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL, start_new_session=True)
        time.sleep(random.uniform(0.3, 1.5))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
        ((counted,),) = held(url, "select rows from {schema}.workspaces")
        for table, expected in counted.items():
            assert held(url, f"select count(*) from {{schema}}.{table}") == [(expected,)]
    assert kills
    index(url, vault.root)
    fresh = {name: [row[1:] for row in found] for name, found in everything(url).items() if name != "workspaces"}
    with psycopg.connect(url) as connection:
        connection.execute(f"drop schema {postgres.SCHEMA} cascade")
    index(url, vault.root)
    again = {name: [row[1:] for row in found] for name, found in everything(url).items() if name != "workspaces"}
    assert {name: sorted(map(repr, one)) for name, one in fresh.items()} == {
        name: sorted(map(repr, one)) for name, one in again.items()
    }


def test_its_name_holds_no_access() -> None:
    assert PostgresTables("postgresql://u:p%40q@db.example:5433/x?password=z").url == "postgresql://db.example:5433/x"
