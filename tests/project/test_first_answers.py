"""What somebody reads who is new to the memory: each answer says what is there, and what to do where nothing is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import artifacts_fixture as made
import pytest
from workbench import Vault, call

TURN = {"turn": 0, "role": "user", "text": "Where does the zanzibar tariff live?", "at": "2026-03-28T22:34:06Z"}


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault")


def test_a_hit_in_a_running_session_names_what_expand_takes(vault: Vault) -> None:
    vault.reindex()
    vault.spawn("transcript", "append", "--session-key", "agent:main:main", input=json.dumps(TURN).encode())
    shown = vault.call("recall", "zanzibar").out.splitlines()
    assert shown[2].strip() == "agent:main:main#0"
    assert TURN["text"] in vault.call("expand", shown[2].strip()).out


@pytest.mark.parametrize("words", [["--prompt", "where does the zanzibar tariff live"], []])
def test_a_small_budget_is_not_taken_for_an_empty_memory(vault: Vault, words: list[str]) -> None:
    vault.call("remember", "the zanzibar tariff lives in tariffs/zanzibar.yaml")
    assert vault.call("context", *words).out
    answer = vault.call("context", *words, "--budget", "1")
    assert (answer.code, answer.out) == (0, "") and "--budget 1" in answer.err
    nothing = vault.call("context", "--prompt", "a kiln of clay", "--budget", "1")
    assert nothing.err == "memory contains nothing about this\n"


@pytest.mark.parametrize("words", [["recall", "x"], ["expand", "x"], ["context", "--prompt", "x"]])
def test_without_a_workspace_the_remedy_is_to_make_one(tmp_path: Path, words: list[str]) -> None:
    root = tmp_path / "not there"
    answer = call("--workspace", root, *words)
    assert answer.code == 3 and "signet-sync init" in answer.err and str(root) in answer.err
    root.mkdir()
    answer = call("--workspace", root, *words)
    assert answer.code == 3 and f"signet-sync --workspace '{root}' reindex" in answer.err


def test_a_memory_is_shown_with_its_tags(vault: Vault) -> None:
    told = vault.call("remember", "Ada wants short answers", "--type", "preference", "--tag", "style", "--private").out
    memory = re.findall(r"\^(m-\w+)", told)[0]
    title, about, _, text = vault.call("expand", memory).out.splitlines()
    assert title.startswith("memory · preference, remembered ") and title.endswith(f"^{memory}")
    assert (about, text) == ("  #style · private", "Ada wants short answers")


def test_what_the_budget_leaves_no_line_for_is_named(vault: Vault) -> None:
    items = {
        heading: [f"- {heading} {n} holds.\n" for n in range(3)] for heading in ("Decisions", "Constraints", "Next")
    }
    vault.put(made.summary(body="\n".join(f"## {heading}\n\n{''.join(some)}" for heading, some in items.items())))
    vault.reindex()
    node = vault.rows("select id from session_summaries where source_type = 'summary'")[0][0]
    document = vault.call("expand", node, "--budget", "1", "--json").json
    assert len(document["memories"]) == 9
    shown = vault.call("expand", node, "--budget", "1").out
    assert f"    {' '.join('^' + one for one in document['memories'][:4])} and 5 more: --json lists them\n" in shown


def test_what_a_memory_lacks_to_rise_is_told_and_that_it_rose(vault: Vault) -> None:
    memory = vault.call("remember", "the zanzibar tariff lives in tariffs.yaml", "--json").json["id"]
    vault.call("recall", "zanzibar")
    vault.call("recall", "zanzibar")
    assert "lacks 1 more hit, 1 more query" in vault.call("dream", "--dry-run").out
    told = vault.call("dream", "--json").json
    assert (told["promoted"], told["near"][0]["memory_id"]) == ([], memory)
    assert told["near"][0]["lacks"] == ["1 more hit", "1 more query"]
    assert "found 2 times by 1 query on 1 day, last " in vault.call("expand", memory).out
    vault.call("recall", "the tariff")
    after = vault.call("dream", "--json").json
    assert ([one["memory_id"] for one in after["promoted"]], after["near"]) == ([memory], [])
    document = vault.call("expand", memory, "--json").json
    assert document["recalled"]["hits"] == 3 and document["risen"]["score"] == after["promoted"][0]["score"]
    assert "promoted into MEMORY.md " in vault.call("expand", memory).out


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
