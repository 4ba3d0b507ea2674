"""The pages of entities: what they say and rest on, what waits for a person, what happened; nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Vault, cast

pytest.importorskip("starlette", reason="the extra `ui` is not installed")

from ui_pages import HOSTILE, asked, harmless, run, visitor

from signet_sync.app.workspace import open_to_write
from signet_sync.entities import operations
from signet_sync.formats.timestamps import parse_instant
from signet_sync.settings.model import Settings
from signet_sync.text.sentences import flatten
from signet_sync.web import lists
from signet_sync.web.link_targets import find_targets

NOW_US = parse_instant(NOW) or 0
NAMED = 'Jo <b>Mertens</b> " onload=x'
NAME = flatten(NAMED)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A person with evidence, a locked section, a pinned whole and a proposal; a part, and what is between the two."""

    def make(vault: Vault) -> None:
        summary = vault.session(1, body="# One\n\nJo reviews lantern releases on Thursdays.\n")["summary"]
        vault.reindex()
        line = next(
            number
            for number, text in enumerate((vault / summary).read_text("utf-8").split("\n"), 1)
            if text.startswith("Jo reviews")
        )
        with open_to_write(str(vault.root), Settings()) as workspace:
            jo = operations.create(workspace, "default", "user", NAMED, now_us=NOW_US).id
            part = operations.create(workspace, "default", "part", "lantern", now_us=NOW_US).id
            operations.create(
                workspace, "default", "relationship", "reviews", relation="reviews", between=(jo, part), now_us=NOW_US
            )
            said = f"Wants **short** answers {HOSTILE}\n\n- [x](javascript:alert(1)) of [[{part}|lantern]]\n"
            operations.set_section(workspace, "default", jo, "overview", said, now_us=NOW_US)
            to, at = (workspace, "default", jo), {"now_us": NOW_US}
            operations.append(*to, "evidence", "a release waits for her", evidence=f"{summary}#{line}", **at)
            operations.append(*to, "highlights", "Reads the changelog first.", **at)
            operations.guard("lock", *to, "goals", **at)
            operations.guard("pin", *to, **at)
            operations.set_section(*to, "preferences", "Tables, not prose.", propose=True, **at)
            operations.create(workspace, "scout", "user", "Ada", now_us=NOW_US)

    return cast(tmp_path_factory.mktemp("entities"), make)


@pytest.fixture
def vault(filled: Any, tmp_path: Path) -> Vault:
    found: Vault = filled(tmp_path)
    return found


def entity_id(vault: Vault, title: str) -> str:
    found: str = vault.rows("select id from garden_files where title = ? and file = 'profile'", title)[0][0]
    return found


def jo(vault: Vault, **query: str) -> dict[str, Any]:
    return lists.entity(asked(vault.root, given={"entity": entity_id(vault, NAME)}, **query)).data


def test_entities_stand_by_kind_with_what_waits(vault: Vault) -> None:
    data = lists.entities(asked(vault.root)).data
    shown = [(heading, [card["entity"].title for card in cards]) for heading, cards in data["kinds"]]
    assert shown == [("Users", [NAME]), ("Parts", ["lantern"]), ("Relationships", ["reviews"])]
    assert data["kinds"][0][1][0]["proposals"] == 1 and data["lost"] == []
    harmless(visitor(vault.root).get("/entities").text)


def test_an_entity_shows_its_sections_what_guards_them_and_who_is_beside_it(vault: Vault) -> None:
    data = jo(vault)
    sections = {section["name"]: section for section in data["sections"]}
    assert sections["goals"]["locked"] and not sections["overview"]["locked"] and data["pinned"] and not data["locked"]
    assert [title for _, title in data["beside"]] == ["reviews"]
    part = entity_id(vault, "lantern")
    with vault.database() as database:
        assert find_targets(database, "scout", [data["entity"].path]) == {} != find_targets(database, "default", [part])
    assert data["links"][part].view == "entity" and "javascript:alert(1)" not in data["links"]
    assert {section["name"] for section in data["sections"] if section["notes"]} >= {"notes/inbox", "notes/focus"}


def test_evidence_leads_to_the_line_that_it_rests_on(vault: Vault) -> None:
    (item,) = next(section for section in jo(vault)["sections"] if section["name"] == "evidence")["items"]
    assert (item["quote"], item["why"]) == ("Jo reviews lantern releases on Thursdays.", "a release waits for her")
    assert item["event"].op == "append_item"
    guest = visitor(vault.root)
    links = harmless(guest.get(f"/entities/{entity_id(vault, NAME)}").text).links
    link = next(link for link in links if link.startswith("/sessions/") and link.endswith("#here"))
    page = guest.get(link)
    assert page.status_code == 200 and page.text.count('id="here"') == 1
    assert page.text.partition('id="here"')[2].partition("Jo reviews lantern releases")[0].count("\n") == 0
    # What the index has no more is named and leads nowhere.
    with vault.database(readonly=False) as database:
        database.execute("delete from memory_artifacts")
    links = harmless(visitor(vault.root).get(f"/entities/{entity_id(vault, NAME)}").text).links
    assert not [link for link in links if link.startswith("/sessions/")]


def test_a_file_that_drifted_or_cannot_be_taken_apart_is_shown_with_what_settles_it(vault: Vault) -> None:
    profile = vault / vault.rows("select path from garden_files where title = ? and file = 'profile'", NAME)[0][0]
    profile.write_text(f"nothing that an entity file is {HOSTILE}", "utf-8")
    assert vault.call("entity", "check", "--json").code == 1
    data = jo(vault)
    assert len(data["drifted"]) == 1
    assert [section["raw"] for section in data["sections"] if section["raw"]] == [
        f"nothing that an entity file is {HOSTILE}"
    ]
    page = harmless(visitor(vault.root).get(f"/entities/{entity_id(vault, NAME)}").text).text
    settle = next(line for line in page.splitlines() if "--keep events" in line)
    kinds = lists.entities(asked(vault.root)).data["kinds"]
    assert [card["drifted"] for _, cards in kinds for card in cards] == [True, False, False]
    assert run(vault, f"{settle[settle.index('signet-sync') :]} --yes").code == 0 and jo(vault)["drifted"] == []
