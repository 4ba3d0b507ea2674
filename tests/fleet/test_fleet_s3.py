"""Shares at S3: conflicts and faults of the store lose nothing and count nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import object_store
import pytest
from object_store import Store
from workbench import NOW, Answer, Vault, call

from signet_sync.fleet.tables import Tables

pytestmark = pytest.mark.slow
PLACE = "s3://bucket/t"


@pytest.fixture
def store() -> Iterator[Store]:
    with object_store.s3() as found:
        yield found


def share(vault: Vault, code: int = 0) -> Answer:
    answer = vault.call("fleet", "share", "--at", PLACE, "--holds", "text", "--json", "--now", NOW)
    assert answer.code == code, answer
    return answer


def test_shares_survive_faults_and_conflicts(store: Store, tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    vault.reindex()
    for number in range(12):  # a store that stops answering after so many requests, once for each
        begun = len(store.asked) + number
        store.fault = lambda _method, _path, begun=begun: 500 if len(store.asked) > begun else 0  # type: ignore[misc]
        answer = vault.call("fleet", "share", "--at", PLACE, "--holds", "text", "--json", "--now", NOW)
        assert answer.code in (0, 3) and (answer.code == 0 or answer.json["error"]["code"] == "tables-unreachable")
        store.fault = lambda _method, _path: 0
        found = call("fleet", "search", "number1x", "--at", PLACE, "--json")
        assert len(found.json["hits"]) <= 1
    share(vault)
    assert len(call("fleet", "search", "number1x", "--at", PLACE, "--json").json["hits"]) == 1
    (name,) = Tables(PLACE).names("shares")
    beside = 0

    def conflict(method: str, path: str) -> int:  # another one commits, or the store says so, before ours comes
        nonlocal beside
        if method == "PUT" and path.startswith("/bucket/t/shares/") and beside < 3:
            beside += 1
            return (409, 412)[beside % 2]
        return 0

    vault.session(2)
    vault.reindex()
    store.fault = conflict
    share(vault)
    assert beside == 3 and Tables(PLACE).names("shares") == [name]
    store.fault = lambda method, _path: 409 if method == "PUT" and "/shares/" in _path else 0
    vault.session(3)
    vault.reindex()
    assert share(vault, code=3).json["error"]["code"] == "conflict"
    store.fault = lambda _method, _path: 0
    assert len(call("fleet", "search", "lantern", "--at", PLACE, "--json").json["hits"]) == 2
    share(vault)
    assert len(call("fleet", "search", "lantern", "--at", PLACE, "--json").json["hits"]) == 3
    store.fault = lambda _method, _path: 503
    answer = call("fleet", "search", "lantern", "--at", PLACE, "--json")
    assert answer.code == 1 and answer.json["states"]["unreachable"] == 1
