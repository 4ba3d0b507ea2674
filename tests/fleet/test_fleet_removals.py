"""Removal on every machine: approved at the place, enforced where its person allows it, answered by receipts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Answer, Vault, call, numbered

from signet_sync.fleet import removals
from signet_sync.formats.ids import token_of

TOKEN = token_of("default", numbered(1)["session_id"])


def approve(place: Path, *tokens: str, code: int = 1, more: tuple[str, ...] = ("--reason", "private", "--yes")) -> Any:
    answer = call("fleet", "remove", *tokens, "--at", str(place), "--json", "--now", NOW, *more)
    assert answer.code == code, answer
    return answer.json["approved"]


def pull(vault: Vault, place: Path, *more: str, allows: bool = True) -> Answer:
    """What the agent's timer runs, with the settings of its person."""
    with pytest.MonkeyPatch.context() as person:
        person.setenv("SIGNET_FLEET_URL", str(place))
        person.setenv("SIGNET_FLEET_REMOVALS", str(allows).lower())
        return vault.call("fleet", "share", "--json", "--now", NOW, *more)


def agents(tmp_path: Path, count: int, sessions: int = 2) -> list[Vault]:
    found = []
    for number in range(1, count + 1):
        vault = Vault(tmp_path / f"agent{number:02d}")
        for session in range(1, sessions + 1):
            vault.session(session)
        vault.reindex()
        found.append(vault)
    return found


def test_who_removed_answers_and_who_has_not_is_named(tmp_path: Path) -> None:
    place, fleet = tmp_path / "t", agents(tmp_path, 4)
    for vault in fleet:
        assert pull(vault, place).code == 0
    approve(place, TOKEN)
    for vault in fleet[2:]:
        assert pull(vault, place).json["removals"]["tokens"] == {f"default/{TOKEN}": "removed"}
        assert not list(vault.memory.glob(f"*{TOKEN}*.md")) and list(vault.memory.glob("tombstones/*.md"))
    (one,) = approve(place, code=1, more=())
    assert (one["removed"], one["absent"]) == (2, 0)
    assert [(each["workspace"].rpartition("/")[2], each["why"]) for each in one["waiting"]] == [
        (f"agent0{number}", "has not answered") for number in (1, 2)
    ]
    receipts = [json.loads(path.read_text()) for path in place.glob("receipts/*.json")]
    assert len(receipts) == 2 and all(one["tokens"] for one in receipts)
    for vault in fleet[:2]:
        pull(vault, place)
    assert approve(place, code=0, more=())[0]["removed"] == 4
    assert TOKEN not in call("fleet", "search", "lantern", "--at", str(place), "--json").out


def test_only_where_the_person_names_the_place_and_allows_it(tmp_path: Path) -> None:
    place, (vault,) = tmp_path / "t", agents(tmp_path, 1)
    approve(place, TOKEN, code=0)
    (vault / "signet-sync.toml").write_text(f'[fleet]\nurl = "{place}"\nremovals = true\n')  # the workspace's own
    assert vault.call("fleet", "share", "--json", "--at", str(place)).json["removals"] is None
    assert pull(vault, place, allows=False).json["removals"] is None
    assert pull(vault, tmp_path / "other", "--at", str(place)).json["removals"] is None
    assert list(vault.memory.glob(f"*{TOKEN}*"))
    (one,) = approve(place, more=())
    assert one["waiting"][0]["why"] == "does not allow removals"
    assert pull(vault, place).code == 0 and not list(vault.memory.glob(f"*{TOKEN}*"))


def test_many_at_once_wait_for_a_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert removals.MOST == 20
    monkeypatch.setattr(removals, "MOST", 2)
    place, (vault,) = tmp_path / "t", agents(tmp_path, 1, sessions=4)
    tokens = sorted({path.name.split("--")[1] for path in vault.memory.glob("*.md")})
    approve(place, *tokens[:3], code=0)
    answer = pull(vault, place)
    assert answer.code == 5 and "3 sessions" in answer.json["error"]["message"]
    assert len(list(vault.memory.glob("*.md"))) == 12
    assert {each["why"] for one in approve(place, more=()) for each in one["waiting"]} == {"halted"}
    assert pull(vault, place, "--accept-removals").code == 0
    assert len(list(vault.memory.glob("*.md"))) == 3
    approve(place, *tokens[:3], code=0, more=("--undo",))  # what was removed stays removed
    assert pull(vault, place).json["removals"]["tokens"] == {}


def test_a_list_that_is_damaged_or_wrong_removes_nothing(tmp_path: Path) -> None:
    place, (vault,) = tmp_path / "t", agents(tmp_path, 1)
    approve(place, TOKEN, code=0)
    path = place / "removals/approved.json"
    good = json.loads(path.read_text())
    for wrong in (b"{", b'{"approved": 3}', json.dumps({"approved": [{**good["approved"][0], "token": "*"}]}).encode()):
        path.write_bytes(wrong)
        answer = pull(vault, place)
        assert answer.code == 3 and "damaged" in answer.json["error"]["message"]
    assert list(vault.memory.glob(f"*{TOKEN}*"))
    for words in (("nonsense", "--reason", "x", "--yes"), (TOKEN,), (TOKEN, "--reason", "x")):
        assert call("fleet", "remove", *words, "--at", str(tmp_path / "new")).code == 2
