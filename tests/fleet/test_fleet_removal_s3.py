"""Removal from S3: tombstones and deletions on a condition, nothing else; faults of the store, and kills in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import object_store
import pytest
from object_store import Store
from test_fleet_removal import ID, WORDS, carried_out, holding, in_this_process, plan, remove, states, subject  # noqa: F401
from workbench import NOW, ROOT, Vault, contents, numbered

pytestmark = pytest.mark.slow

URL = "s3://bucket/some/where"
TOP = "bucket/some/where"
WRITING = ("PUT", "DELETE", "POST")


@pytest.fixture(scope="module")
def server() -> Iterator[Store]:
    with object_store.s3() as store:
        yield store


@pytest.fixture
def store(server: Store) -> Iterator[Store]:
    """An empty bucket, without faults."""
    server.fault = lambda _method, _path: 0
    if server.system.exists(TOP):
        server.system.rm(TOP, recursive=True)
    server.asked.clear()
    yield server
    server.fault = lambda _method, _path: 0


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    """Three sessions, one of which is to be removed, and pages that show it."""
    vault = Vault(tmp_path / "vault")
    for number in (2, 3):
        vault.session(number)
    subject(vault)
    vault.reindex()
    return vault


def upload(store: Store, vault: Vault) -> dict[str, bytes]:
    """Copies a vault into the bucket; returns what is in it."""
    for path in contents(vault.root):
        if not path.startswith(".signet"):
            store.system.pipe_file(f"{TOP}/{path}", (vault / path).read_bytes())
    store.asked.clear()
    return stored(store)


def stored(store: Store) -> dict[str, bytes]:
    """The objects of the workspace, by path."""
    return {path.removeprefix(f"{TOP}/"): store.system.cat_file(path) for path in store.system.find(TOP)}


def written(store: Store) -> list[str]:
    """What was asked to be written or deleted, in order."""
    found = [line.partition("?")[0].split(" ") for line in store.asked]
    return [f"{method} {path.partition('/where/')[2]}" for method, path in found if method in WRITING]


def named(asked: str, end: str) -> bool:
    """Whether a request is for an object whose name ends so."""
    return asked.partition("?")[0].endswith(end)


def approved(path: Path) -> Path:
    """An approved plan of the removal."""
    plan(path, URL, "--session", ID)
    remove("--approve", path, "--by", "Grace")
    return path


def test_a_tombstone_then_deletions_and_nothing_else(store: Store, vault: Vault, tmp_path: Path) -> None:
    before = upload(store, vault)
    path = approved(tmp_path / "plan.json")
    assert written(store) == []
    (row,) = remove("--apply", path, code=1)["workspaces"]
    assert row["state"] == "removed" and len(row["files"]) == 3
    assert written(store) == [f"PUT {row['tombstones'][0]}", *(f"DELETE {one}" for one in row["files"])]
    after = stored(store)
    assert {*before} - {*after} == {*row["files"]} and {*after} - {*before} == {*row["tombstones"]}
    assert all(after[path] == before[path] for path in before.keys() & after.keys())
    # A folder that is synced from it enforces the tombstone, to the last byte.
    stone = row["tombstones"][0]
    (vault / stone).parent.mkdir()
    (vault / stone).write_bytes(after[stone])
    vault.reindex()
    assert holding(vault.root) == [] and holding(vault.state) == []


def test_older_versions_that_the_bucket_keeps_are_named(server: Store, vault: Vault, tmp_path: Path) -> None:
    server.system.mkdir("versioned")
    server.system.call_s3("put_bucket_versioning", Bucket="versioned", VersioningConfiguration={"Status": "Enabled"})
    for path in contents(vault.memory):
        server.system.pipe_file(f"versioned/memory/{path}", (vault.memory / path).read_bytes())
    (row,) = carried_out(tmp_path / "plan.json", "s3://versioned", "--session", ID, code=1)["workspaces"]
    assert row["state"] == "removed"
    assert any("3 older versions" in one for one in row["remains"])


def test_what_changes_right_before_its_deletion_is_judged_again(store: Store, tmp_path: Path) -> None:
    """Behind the last look at it: only the condition of the deletion keeps the other session's words."""
    vault = Vault(tmp_path / "shared")
    mine = vault.session(1, session_key="constant")["summary"]
    raw = (vault / vault.session(2, session_key="constant")["summary"]).read_bytes()
    upload(store, vault)
    path = approved(tmp_path / "plan.json")
    changed = []

    def late(method: str, where: str) -> int:
        if method == "DELETE" and named(where, mine) and not changed:
            changed.append(where)
            store.system.pipe_file(f"{TOP}/{mine}", raw)
        return 0

    store.fault = late
    (row,) = remove("--apply", path, code=None)["workspaces"]
    assert changed and stored(store)[mine] == raw, "another session's words were deleted"
    assert row["state"] == "removed" and mine not in row["files"]


@pytest.mark.parametrize("there", [False, True])
def test_a_tombstone_that_another_writes_at_the_same_time_is_joined(store: Store, tmp_path: Path, there: bool) -> None:
    """`there`: one existed before, and is replaced by another one in between."""
    vault = Vault(tmp_path / "shared")
    for number in (1, 2, 3):
        vault.session(number, session_key="constant")
    upload(store, vault)
    stones = {}
    for number in (2, 3):
        answer = vault.call("remove", numbered(number)["session_id"], "--reason", "x", "--yes", "--now", NOW)
        assert answer.code == 0
        (stone,) = (vault / "memory/tombstones").iterdir()
        stones[number] = stone.read_bytes()
    place = f"{TOP}/memory/tombstones/{stone.name}"
    if there:
        store.system.pipe_file(place, stones[2])
    path = approved(tmp_path / "plan.json")
    late = [stones[3] if there else stones[2]]

    def fault(method: str, where: str) -> int:
        if method == "PUT" and named(where, stone.name) and late:
            store.system.pipe_file(place, late.pop())
        return 0

    store.fault = fault
    (row,) = remove("--apply", path, code=None)["workspaces"]
    assert row["state"] == "removed" and not late
    said = stored(store)[f"memory/tombstones/{stone.name}"].decode()
    for number in (1, 2, *((3,) if there else ())):
        assert numbered(number)["session_id"] in said, "a removal of somebody else was overwritten"


def test_errors_of_the_store_are_retried(store: Store, vault: Vault, tmp_path: Path) -> None:
    upload(store, vault)
    path = approved(tmp_path / "plan.json")
    asked = []

    def third(method: str, where: str) -> int:
        asked.append(where)
        return 500 if len(asked) % 3 == 0 else 0

    store.fault = third
    assert states(remove("--apply", path, code=1)) == {"where": "removed"}
    store.fault = lambda _method, _path: 0
    assert not [path for path, raw in stored(store).items() if WORDS.encode() in raw and path.startswith("memory/")]


def test_a_store_that_fails_is_done_by_the_next_apply(store: Store, vault: Vault, tmp_path: Path) -> None:
    upload(store, vault)
    path = approved(tmp_path / "plan.json")
    store.fault = lambda method, where: 500 if method == "DELETE" and named(where, "--transcript.md") else 0
    document = remove("--apply", path, code=1)
    assert states(document) == {"where": "pending"} and "InternalError" in document["workspaces"][0]["message"]
    store.fault = lambda method, where: 403 if method == "DELETE" else 0
    assert states(remove("--apply", path, code=1)) == {"where": "not-writable"}
    store.fault = lambda _method, _where: 0
    (row,) = remove("--apply", path, code=1)["workspaces"]
    assert row["state"] == "removed" and len(row["files"]) == 3


def test_a_store_that_cannot_be_reached_is_no_removal(store: Store, vault: Vault, tmp_path: Path) -> None:
    upload(store, vault)
    path = approved(tmp_path / "plan.json")
    store.fault = lambda _method, _path: 503
    assert states(remove("--apply", path, code=1)) == {"where": "unreachable"}
    store.fault = lambda _method, _path: 0
    assert states(remove("--apply", path, code=1)) == {"where": "removed"}


@pytest.mark.parametrize("number", range(8))
def test_killed_at_any_write_it_goes_on(store: Store, vault: Vault, tmp_path: Path, number: int) -> None:
    """A tombstone and three deletions: killed when the request comes, or right after it was carried out."""
    before = upload(store, vault)
    path = approved(tmp_path / "plan.json")
    process: list[subprocess.Popen[bytes]] = []
    seen: list[str] = []

    def kill(method: str, where: str) -> int:
        if method in WRITING and process:
            seen.append(where)
            if len(seen) == number // 2 + 1:
                if number % 2:
                    carry_out(store, method, where, before)
                os.kill(process[0].pid, signal.SIGKILL)
                process.clear()
                return 500
        return 0

    store.fault = kill
    words = ["fleet", "remove", "--apply", str(path), "--engine", "local", "--workers", "1", "--now", NOW]
    running = subprocess.Popen(
        [sys.executable, "-m", "signet_sync", *words], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    process.append(running)
    assert running.wait(120) == -signal.SIGKILL
    store.fault = lambda _method, _path: 0
    (row,) = remove("--apply", path, code=1)["workspaces"]
    assert row["state"] == "removed" and len(row["files"]) == 3
    after = stored(store)
    assert {*before} - {*after} == {*row["files"]} and {*after} - {*before} == {*row["tombstones"]}


def carry_out(store: Store, method: str, where: str, before: dict[str, Any]) -> None:
    """Does what a request asks for, whose sender does not live to hear of it; a tombstone is the one of the folder."""
    path = where.partition("/where/")[2].partition("?")[0]
    if method == "DELETE":
        store.system.rm_file(f"{TOP}/{path}")
    else:
        token = path.partition("--")[2][:16]
        fields = ("kind: tombstone", "agent_id: default", f"session_token: {token}", f"removed_at: '{NOW}'")
        text = "\n".join(("---", *fields, "reason: asked for", "removed_paths: []", "---", ""))
        store.system.pipe_file(f"{TOP}/{path}", text.encode())
