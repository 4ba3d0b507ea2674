"""Threads, one node and what is around it, what answers a question: for one agent, never writing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Vault, cast, contents

pytest.importorskip("starlette", reason="the extra `ui` is not installed")

from ui_pages import BESIDE, asked, harmless, visitor

from signet_sync.web import lists

READY = "Deploys happen on Tuesdays, after the backup"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A session and a memory; and one of another agent."""

    def make(vault: Vault) -> None:
        vault.session(1)
        vault.reindex()
        for text, agent in ((READY, "default"), ("Scouts go ahead", "scout")):
            assert vault.call("remember", text, "--agent", agent, "--now", NOW).code == 0

    return cast(tmp_path_factory.mktemp("recall"), make)


@pytest.fixture
def vault(filled: Any, tmp_path: Path) -> Vault:
    found: Vault = filled(tmp_path)
    return found


def test_what_is_asked_is_answered_as_by_the_command_and_nothing_is_written(vault: Vault) -> None:
    before = contents(vault.root), contents(vault.state, but=BESIDE)
    page = visitor(vault.root).get("/recall", params={"q": "when do deploys happen"})
    shown = harmless(page.text)
    data = lists.recall(asked(vault.root, q="when do deploys happen")).data
    ((memory,),) = vault.rows("select id from memories where agent_id = 'default'")
    assert any(link.startswith("/threads/") and link.endswith(memory) for link in shown.links)
    assert any("Deploys" in turn.text for one in data["answers"] for turn in one["turns"])
    assert (contents(vault.root), contents(vault.state, but=BESIDE)) == before
    told = json.loads(vault.call("recall", "when do deploys happen", "--json").out)["hits"]
    assert [one["hit"].text for one in data["answers"]][:10] == [hit["text"] for hit in told][:10]


def test_an_answer_leads_to_its_file_or_its_place_and_to_nothing_of_another_agent(vault: Vault) -> None:
    data = lists.recall(asked(vault.root, q="retry loop src/queue.py")).data
    (answer,) = [one for one in data["answers"] if one["hit"].tier == "session"]
    assert answer["target"].view == "session" and answer["target"].given["path"] == answer["hit"].path
    assert lists.recall(asked(vault.root, "scout", q="retry loop src/queue.py")).data["answers"] == []
    empty = visitor(vault.root, "scout").get("/recall", params={"q": "retry loop"}).text
    assert "Nothing found." in empty and "signet-sync" in empty


def test_what_nobody_has_is_told(vault: Vault) -> None:
    guest = visitor(vault.root)
    for address in ("/threads/s-aaaaaaaaaaaa", "/threads/%3Cscript%3E", "/threads/%00"):
        assert guest.get(address).status_code == 404, address
