"""A session that two programs capture under two tokens, one of its key and one of its id, is shown once."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import artifacts_fixture as made
import pytest
from workbench import Vault, numbered

ID = numbered(1)["session_id"]
KEY = "claude-code:lantern:1"
TOKENS = {"ours": made.token_for(session_id=ID, session_key=KEY), "signet": made.token_for(session_id=ID)}


def write(vault: Vault, who: str, *, minute: int = 1, **given: object) -> None:
    key = KEY if who == "ours" else None
    fields = {"session_key": key, "captured_at": f"2026-03-28T10:{minute:02d}:00.000Z", **given}
    sentence = f"In lantern the program {who} bounded the retry loop of src/queue.py so that it always ends."
    vault.session(1, memory_sentence=sentence, **fields)


def shown(vault: Vault) -> list[str]:
    """Who is shown in MEMORY.md and on the page of the day, which agree; the count of the day is of one row each."""
    found = [who for who in TOKENS if f"the program {who} bounded" in vault.page()]
    day = vault.page("ledger/2026/03/28.md")
    assert found == [who for who in TOKENS if f"the program {who} bounded" in day]
    assert f"{len(found)} session" in day
    return found


def test_the_later_one_is_shown_and_the_other_when_that_goes(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    write(vault, "ours")
    vault.reindex()
    assert shown(vault) == ["ours"]
    write(vault, "signet", minute=2)
    vault.reindex()
    assert shown(vault) == ["signet"]
    assert vault.call("open", "--json", ID).json["session_token"] == TOKENS["signet"]
    assert vault.call("open", "--json", KEY).json["session_token"] == TOKENS["ours"]
    assert vault.dump() == vault.dump_from_scratch()
    for path in vault.memory.glob(f"*{TOKENS['signet']}*"):
        path.unlink()
    vault.reindex("--accept-removals")
    assert shown(vault) == ["ours"]
    assert vault.dump() == vault.dump_from_scratch()


def test_it_is_one_hit(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    write(vault, "ours")
    write(vault, "signet", minute=2)
    vault.reindex()
    hits = vault.call("recall", "--json", "bounded the retry loop").json["hits"]
    assert len([hit for hit in hits if hit["tier"] == "session"]) == 1


@pytest.mark.parametrize("order", list(permutations(("ours", "signet"))), ids="-".join)
def test_whoever_comes_first_the_same_is_shown(tmp_path: Path, order: tuple[str, ...]) -> None:
    vault = Vault(tmp_path / "vault")
    for who in order:
        write(vault, who)
        vault.reindex()
    assert len(shown(vault)) == 1
    assert shown(vault) == [max(TOKENS, key=lambda who: TOKENS[who])]
    assert vault.dump() == vault.dump_from_scratch()


def test_more_kinds_of_content_come_before_a_later_time(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    write(vault, "ours")
    vault.put(made.compaction(session_id=ID, captured_at="2026-03-28T11:00:00.000Z", body="# Compacted\n\nNo more.\n"))
    vault.reindex()
    assert shown(vault) == ["ours"]


@pytest.mark.parametrize("harness", ["codex", None])
def test_of_another_harness_it_is_another_session(tmp_path: Path, harness: str | None) -> None:
    vault = Vault(tmp_path / "vault")
    write(vault, "ours")
    write(vault, "signet", minute=2, harness=harness)
    vault.reindex()
    assert shown(vault) == ["ours", "signet"]


def test_a_removal_by_its_id_takes_both(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    vault.session(2)
    write(vault, "ours")
    write(vault, "signet", minute=2)
    vault.reindex()
    assert vault.call("remove", ID, "--reason", "asked for", "--yes", "--json").code == 0
    assert not [path for path in vault.memory.glob("*.md") if any(token in path.name for token in TOKENS.values())]
    assert "the program" not in vault.page()
