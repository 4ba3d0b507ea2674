"""Threads, one node and what is around it, what answers a question: for one agent, never writing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import artifacts_fixture as made
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


# ── recall itself ──


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


# ── threads ──


def sessions() -> Iterator[dict[str, Any]]:
    """Three weeks of a thread with two sessions each, another thread, a session of another agent."""
    lantern = {"project": "/home/ada/code/lantern", "harness": "codex"}
    for number in range(6):
        moment = datetime(2026, 3, 3, 10, tzinfo=UTC) + timedelta(weeks=number // 2, hours=5 * (number % 2))
        yield lantern | named(number, moment)
    yield lantern | named(6, datetime(2025, 6, 3, 10, tzinfo=UTC))
    for number in (7, 8):
        yield {**named(number, datetime(2026, 3, 10, number, tzinfo=UTC)), "project": "/home/ada/code/wick"}
    yield {**named(9, datetime(2026, 3, 12, tzinfo=UTC)), "agent_id": "scout"}


def named(number: int, moment: datetime) -> dict[str, Any]:
    return {
        "session_id": f"5e5510{number:02d}-0000-4000-8000-{number:012d}",
        "captured_at": moment.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "body": f"# Session {number}\n\n## Decisions\n\n- Lantern keeps its word number{number}x in src/queue.py.\n",
        "memory_sentence": f"In lantern step number {number} bounded the retry loop of src/queue.py so that it ends.",
    }


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    """The tests only look at it."""
    folder = tmp_path_factory.mktemp("graph")
    with pytest.MonkeyPatch.context() as here:
        here.setenv("SIGNET_STATE", str(folder / "state"))
        vault = Vault(folder / "vault")
        for one in sessions():
            vault.put(dict([made.summary(**one), made.transcript(**one)]))
        vault.reindex()
    yield vault


@pytest.fixture(autouse=True)
def state(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "graph" in request.fixturenames:
        monkeypatch.setenv("SIGNET_STATE", str(request.getfixturevalue("graph").root.parent / "state"))


def listed(graph: Vault, **query: str) -> Any:
    return lists.threads(asked(graph.root, **query)).data["rows"]


def node(graph: Vault, name: str, **query: str) -> dict[str, Any]:
    return lists.node(asked(graph.root, given={"node": name}, **query)).data


def test_threads_stand_newest_first_a_page_at_a_time(graph: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    lantern, wick = listed(graph)
    assert (lantern.label, lantern.sessions, wick.sessions) == ("lantern", 7, 2)
    guest = visitor(graph.root)
    monkeypatch.setattr(lists, "THREADS", 1)
    assert [row.label for row in listed(graph)] == ["lantern"] and len(listed(graph, page="2")) == 1
    assert 'href="/threads?page=2"' in guest.get("/threads").text


def test_a_thread_shows_its_sessions_a_page_at_a_time(graph: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    lantern = listed(graph)[0].thread_id
    assert len(node(graph, lantern)["sessions"]) == 7
    monkeypatch.setattr(lists, "SESSIONS", 5)
    pages = [node(graph, lantern, page=page)["sessions"] for page in ("1", "2")]
    assert [len(page) for page in pages] == [5, 2] and not {*pages[0]} & {*pages[1]}


def test_what_nobody_has_is_told(graph: Vault) -> None:
    guest = visitor(graph.root)
    for address in ("/threads/s-aaaaaaaaaaaa", "/threads/%3Cscript%3E", "/threads/%00"):
        assert guest.get(address).status_code == 404, address
