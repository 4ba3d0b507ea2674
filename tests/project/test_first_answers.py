"""What somebody reads who is new to the memory: each answer says what is there, and what to do where nothing is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from workbench import Vault, call

TURN = {"turn": 0, "role": "user", "text": "Where does the zanzibar tariff live?", "at": "2026-03-28T22:34:06Z"}


def test_a_hit_in_a_running_session_names_what_expand_takes(vault: Vault) -> None:
    vault.reindex()
    vault.spawn("transcript", "append", "--session-key", "agent:main:main", input=json.dumps(TURN).encode())
    shown = vault.call("recall", "zanzibar").out.splitlines()
    assert shown[2].strip() == "agent:main:main#0"
    assert TURN["text"] in vault.call("expand", shown[2].strip()).out


def test_a_small_budget_is_not_taken_for_an_empty_memory(vault: Vault) -> None:
    vault.call("remember", "the zanzibar tariff lives in tariffs/zanzibar.yaml")
    assert vault.call("context").out
    answer = vault.call("context", "--budget", "1")
    assert (answer.code, answer.out) == (0, "") and "--budget 1" in answer.err


@pytest.mark.parametrize("words", [["recall", "x"], ["expand", "x"]])
def test_without_a_workspace_the_remedy_is_to_make_one(tmp_path: Path, words: list[str]) -> None:
    root = tmp_path / "not there"
    answer = call("--workspace", root, *words)
    assert answer.code == 3 and "signet-sync setup" in answer.err and str(root) in answer.err
    root.mkdir()
    answer = call("--workspace", root, *words)
    assert answer.code == 3 and f"signet-sync --workspace '{root}' reindex" in answer.err


def test_a_slip_in_the_name_of_an_agent_leaves_no_diary(vault: Vault) -> None:
    for words in ([], ["--dry-run"]):
        vault.reindex()
        answer = vault.call("dream", "--agent", "nobody", *words)
        assert answer.code == 2 and "known agents: default" in answer.err
    assert not (vault / "agents").exists()


def test_a_removal_does_not_call_our_own_ledger_a_stranger_for_naming_the_tombstone(vault: Vault) -> None:
    summary = vault.session()["summary"]
    vault.reindex()
    line = vault.page(summary).splitlines().index("- Lantern keeps its word number1x in src/queue.py.") + 1
    vault.call("entity", "create", "part", "Jo")
    vault.call("entity", "append", "jo", "evidence", "--text", "it is hers", "--evidence", f"{summary}#{line}")
    removed = vault.call("remove", "5e551001", "--reason", "private", "--yes", "--json").json
    (ledger,) = (vault / "entities/ledger").iterdir()
    assert f'"erased":"{removed["tombstone"]}"' in ledger.read_text() and removed["foreign"] == []
