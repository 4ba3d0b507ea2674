"""Violations settled one by one and many at once: what is no file any more, what went, batches, patterns."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from workbench import NOW, Vault

from signet_sync.sync.store.texts import keep

LATER = "2026-03-30T12:00:00.000Z"


def a_folder(path: Path) -> None:
    (path / "deep").mkdir(parents=True)
    (path / "deep" / "mine.txt").write_text("mine")


ODD: dict[str, Callable[[Path], None]] = {
    "link": lambda path: path.symlink_to(path.parents[2] / "outside.md"),
    "pipe": os.mkfifo,
    "folder": a_folder,
}


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    """Twelve sessions, indexed."""
    made = Vault(tmp_path / "vault")
    made.paths = [made.session(number) for number in range(1, 13)]  # type: ignore[attr-defined]
    made.reindex()
    return made


def opened(vault: Vault) -> dict[str, str]:
    found = vault.call("violations", "list", "--json").json["violations"]
    return {one["path"]: one["code"] for one in found}


@pytest.mark.parametrize("kind", ODD)
def test_what_is_put_in_the_place_of_a_sealed_file_is_a_violation_and_not_touched(vault, tmp_path, kind):
    outside = tmp_path / "outside.md"
    outside.write_text("outside")
    path = vault.paths[0]["summary"]
    before = (vault / path).read_bytes()
    (vault / path).unlink()
    ODD[kind](vault / path)
    document = vault.reindex()
    assert document["counts"]["violation"] == 1 and document["counts"]["invalid"] == 0
    hint = f"move it away, then: signet-sync violations restore {path}"
    assert [one["hint"] for one in document["problems"]] == [hint]  # accept refuses it
    assert opened(vault) == {path: "mutated"} and vault.hits("number1x")
    checked = vault.call("check", "--with-index", "--json").json["problems"]
    assert [(one["path"], one["code"], one["hint"]) for one in checked] == [(path, "mutated", hint)]
    assert "# Session 1" in vault.call("violations", "list", path).out
    refused = vault.call("violations", "accept", path, "--reason", "r", "--json")
    assert refused.code == 2 and "restore the file" in refused.json["error"]["hint"]
    status = (vault / path).lstat()
    refused = vault.call("violations", "restore", path, "--json", "--now", NOW)
    assert refused.code == 2 and "move away" in refused.json["error"]["hint"]
    assert (vault / path).lstat() == status and outside.read_text() == "outside"
    (vault / path).rename(tmp_path / "away")
    assert vault.call("violations", "restore", path, "--json", "--now", NOW).code == 0
    assert (vault / path).read_bytes() == before and vault.reindex()["problems"] == []


def test_sixty_files_that_went_are_settled_at_once_and_can_still_be_restored(vault):
    went = {path: (vault / path).read_bytes() for one in vault.paths for path in (one["summary"], one["transcript"])}
    vault.reindex("--accept-removals")
    for path in list(went)[:10]:
        (vault / path).unlink()
    vault.reindex()
    edited = vault.paths[11]["summary"]
    (vault / edited).write_bytes(went[edited] + b"\nmine\n")
    vault.reindex()
    listed = vault.call("violations", "list", "--json").json["violations"]
    assert len(listed) == 11 and all(one["restorable"] for one in listed)
    gone = list(went)[:10]
    asked = vault.call("violations", "accept", *gone, "--reason", "cleared out")
    assert asked.code == 2 and "--yes" in asked.err  # nobody sits there to be asked
    answer = vault.call("violations", "accept", *gone, "--reason", "cleared out", "--yes", "--json", "--now", NOW)
    assert answer.code == 0 and sorted(answer.json["accepted"]) == sorted(list(went)[:10]) and not answer.json["failed"]
    for more in ((), ("--full",)):
        document = vault.reindex(*more)
        assert document["counts"]["violation"] == 1 and opened(vault) == {edited: "mutated"}
    checked = vault.call("check", "--with-index", "--json").json["problems"]
    assert [one["path"] for one in checked] == [edited]
    assert "changed or lost" in vault.page()
    accepted = vault.call("violations", "list", "--accepted", "--json").json["accepted"]
    assert [(one["path"], one["reason"], one["restorable"]) for one in accepted] == [
        (path, "cleared out", True) for path in sorted(list(went)[:10])
    ]
    # One comes back by its path; that it goes once more is news.
    first, second, *_ = went
    assert vault.call("violations", "restore", first, "--now", NOW).code == 0
    assert (vault / first).read_bytes() == went[first]
    (vault / first).unlink()
    (vault / second).write_bytes(went[second])  # and one by a person's hand
    vault.reindex()
    assert opened(vault)[first] == "vanished"
    (vault / second).unlink()
    vault.reindex()
    assert {path for path, code in opened(vault).items() if code == "vanished"} == {first, second}


def test_what_was_accepted_as_gone_is_known_after_a_lost_database_and_forgotten_with_its_session(vault):
    path = vault.paths[0]["summary"]
    (vault / path).unlink()
    vault.reindex()
    done = vault.call("violations", "accept", path, "--reason", "mine", "--json", "--now", NOW).json
    assert done["accepted"] == [path]
    vault.reindex()
    for one in vault.db.parent.glob(f"{vault.db.name}*"):
        one.unlink()
    document = vault.reindex()
    assert document["problems"] == [] and opened(vault) == {}
    assert vault.call("remove", vault.paths[0]["transcript"], "--reason", "r", "--yes", "--now", NOW).code == 0
    assert vault.call("violations", "list", "--accepted", "--json").json["accepted"] == []
    assert vault.rows("select count(*) from acceptances") == [(0,)]


def test_trouble_with_one_of_several_is_told_while_the_rest_goes_on(vault):
    summaries = [one["summary"] for one in vault.paths]
    for path in summaries[:4]:
        (vault / path).write_bytes((vault / path).read_bytes() + b"one\n")
    vault.reindex()
    for path in summaries[4:8]:
        (vault / path).write_bytes((vault / path).read_bytes() + b"two\n")
    vault.reindex(now=LATER)
    assert len(opened(vault)) == 8
    with vault.database(readonly=False) as database:
        keep(database, [summaries[5]])
        database.execute("update seals set packed = null where path = ?", (summaries[5],))
    words = ("violations", "restore", *summaries[4:8], "--yes", "--json", "--now", LATER)
    answer = vault.call(*words)
    assert answer.code == 1 and len(answer.json["restored"]) == 3
    (failed,) = answer.json["failed"]
    assert failed.startswith(f"{summaries[5]}: the sealed bytes of this file were lost with a database")
    assert sorted(opened(vault)) == sorted([*summaries[:4], summaries[5]])
    answer = vault.call("violations", "accept", "--all", "--reason", "r", "--yes", "--json", "--now", LATER)
    assert answer.code == 0 and len(answer.json["accepted"]) == 5 and opened(vault) == {}
    refused = vault.call("violations", "restore", "memory/none.md", "--yes", "--json")
    assert refused.code == 2 and refused.json["error"]["code"] == "unknown-violation"
    for wrong in (("accept", "--all", "x", "--reason", "r"), ("accept", "--reason", "r"), ("restore",)):
        assert vault.call("violations", *wrong).code == 2
