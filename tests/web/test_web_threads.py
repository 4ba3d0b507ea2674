"""Threads and nodes on the page: the list, and what is around a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import artifacts_fixture as made
import pytest
from workbench import Vault, cast

from signet_sync.formats.timestamps import parse_instant
from signet_sync.web import lists
from signet_sync.web.request import Site, ViewRequest

pytest.importorskip("starlette", reason="the extra `ui` is not installed")

from ui_pages import site, visitor

NOW = parse_instant("2026-03-29T12:00:00Z") or 0


# ── a workspace ──


class Shown(NamedTuple):
    """A workspace, and its pages."""

    site: Site
    client: Any

    def ask(self, path: Mapping[str, str] = {}, agent: str = "default", **query: str) -> ViewRequest:
        return ViewRequest(self.site, agent, path, query, NOW)


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
def filled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    def make(vault: Vault) -> None:
        for one in sessions():
            vault.put(dict([made.summary(**one), made.transcript(**one)]))
        vault.reindex()

    return cast(tmp_path_factory.mktemp("graph"), make)


@pytest.fixture
def shown(filled: Any, tmp_path: Path) -> Shown:
    root = filled(tmp_path).root
    return Shown(site(root), visitor(root))


def listed(shown: Shown, agent: str = "default", **query: str) -> Any:
    return lists.threads(shown.ask(agent=agent, **query)).data["rows"]


def test_threads_stand_newest_first_and_words_choose_them(shown: Shown) -> None:
    lantern, wick = listed(shown)
    assert (lantern.label, lantern.sessions, wick.sessions) == ("lantern", 7, 2)
    assert [row.label for row in listed(shown, q="LANTERN codex")] == ["lantern"]
    assert listed(shown, q="nobody") == [] and "Use other words" in shown.client.get("/threads?q=nobody").text


def test_a_page_of_threads_leads_to_the_next(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "THREADS", 1)
    assert [row.label for row in listed(shown)] == ["lantern"] and len(listed(shown, page="2")) == 1
    assert 'href="/threads?page=2"' in shown.client.get("/threads").text


def test_a_thread_shows_its_sessions_a_page_at_a_time(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    lantern = listed(shown)[0].thread_id
    assert len(lists.node(shown.ask({"node": lantern})).data["sessions"]) == 7
    monkeypatch.setattr(lists, "SESSIONS", 5)
    pages = [lists.node(shown.ask({"node": lantern}, page=page)).data["sessions"] for page in ("1", "2")]
    assert [len(page) for page in pages] == [5, 2] and not {*pages[0]} & {*pages[1]}


def test_the_text_of_an_arc_leads_to_its_sessions(shown: Shown) -> None:
    session = lists.node(shown.ask({"node": listed(shown)[0].thread_id})).data["sessions"][0].node_id
    parents = lists.node(shown.ask({"node": session})).data["groups"]["parents"]
    arc = next(one for one, _ in parents if one[0] == "a")
    page = lists.node(shown.ask({"node": arc}))
    assert set(page.data["links"]) == {one for one, _ in page.data["groups"]["children"]}
    prose = shown.client.get(f"/threads/{arc}").text.partition('<div class="told prose">')[2].partition("<section>")[0]
    assert all(f'href="/threads/{child}"' in prose for child in page.data["links"])


def test_a_node_that_nobody_has_is_told(shown: Shown) -> None:
    for address in ("/threads/s-aaaaaaaaaaaa", "/threads/%3Cscript%3E", "/threads/%00"):
        assert shown.client.get(address).status_code == 404, address
