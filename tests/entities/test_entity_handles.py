"""Handles of entity files, as MEMORY.md and `recall` show them: where they lead, and what they are not taken for."""

from __future__ import annotations

from typing import Any

import pytest
from workbench import NOW, Vault

from signet_sync.formats.entity_paths import KINDS, new_id
from signet_sync.formats.handle import HANDLE, LETTERS
from signet_sync.formats.timestamps import DAY
from signet_sync.pages.sections import EntityEntry, MemoryView, SectionInputs, StatementView, candidates


def entity(vault: Vault, *arguments: str) -> Any:
    answer = vault.call("entity", *arguments, "--now", NOW, "--json")
    assert answer.code == 0, answer
    return answer.json


@pytest.fixture
def pair(vault: Vault) -> tuple[str, str, str]:
    """A part with a role, another one, and what is between them."""
    jo, lantern = (entity(vault, "create", "part", name)["id"] for name in ("Jo", "Lantern"))
    edge = entity(vault, "create", "relationship", "Jo reviews", "--type", "reviews", "--between", jo, lantern)["id"]
    entity(vault, "set", jo, "role", "--text", "Has the last word before a tag.")
    return jo, lantern, edge


def expanded(vault: Vault, handle: str) -> Any:
    answer = vault.call("expand", handle, "--json")
    assert answer.code == 0, answer
    return answer.json


def test_ids_of_entity_files_are_handles() -> None:
    for kind in KINDS:
        made = new_id(kind, "a seed")
        assert HANDLE.fullmatch(f"^{made}") and LETTERS[made[0]] == kind


def test_every_form_of_a_handle_leads_to_the_entity(vault: Vault, pair: tuple[str, str, str]) -> None:
    jo, _, edge = pair
    path = entity(vault, "show", jo)["path"]
    for form in (
        jo,
        f"^{jo}",
        jo[:8],
        f"[[MEMORY#^{jo}]]",
        f"[[{path}|profile]]",
        path.removesuffix(".md"),
    ):
        document = expanded(vault, form)
        assert (document["node"]["id"], document["node"]["kind"], document["node"]["label"]) == (jo, "part", "Jo")
        assert document["node"]["path"] == path
        assert document["node"]["text"].startswith("Has the last word before a tag.")
        assert document["siblings"] == [edge] and "Jo reviews" in document["labels"][edge]


def test_a_relationship_leads_to_those_it_is_between(vault: Vault, pair: tuple[str, str, str]) -> None:
    jo, lantern, edge = pair
    assert sorted(expanded(vault, edge)["siblings"]) == sorted([jo, lantern])
    text = vault.call("expand", edge).out
    assert text.startswith(f"relationship · Jo reviews  ^{edge}\n") and f"^{jo}  part " in text


def test_what_recall_and_the_page_name_can_be_expanded(vault: Vault, pair: tuple[str, str, str]) -> None:
    jo = pair[0]
    (hit,) = vault.call("recall", "--json", "last word before a tag").json["hits"]
    assert (hit["tier"], hit["id"]) == ("entity", jo)
    assert f"^{jo[:8]}\n" in vault.page()
    assert expanded(vault, f"^{jo[:8]}")["node"]["kind"] == "part"
    assert vault.rows("select id, accesses from node_telemetry") == [(jo, 2)]


def test_entity_files_are_neither_pinned_to_the_page_nor_forgotten(vault: Vault, pair: tuple[str, str, str]) -> None:
    for command, code, hint in (
        ("pin", "not-pinnable", "entity protect pin"),
        ("forget", "not-a-memory", "entity status"),
    ):
        answer = vault.call(command, f"^{pair[0]}", "--json")
        assert (answer.code, answer.json["error"]["code"]) == (2, code)
        assert f"{hint} {pair[0]}" in answer.json["error"]["hint"]


def test_on_the_page_an_entity_ranks_like_what_was_remembered_of_a_person() -> None:
    now = 1_000 * DAY
    seen = SectionInputs(
        statements=[StatementView("f-aaaaaaaaaaaa", "person", "Jo reviews", None, now - 90 * DAY, "memory/x.md")],
        memories=[MemoryView("m-aaaaaaaaaaaa", "person", "Jo reviews lantern", now - 90 * DAY)],
        entities=[
            EntityEntry("p-aaaaaaaaaaaa", "part", "Jo", None, "active", "Reviews.", now - 90 * DAY, "entities/x.md")
        ],
    )
    statement, memory, entity = candidates(seen, now)
    scores = [-line.rank[1] for line in (statement, memory, entity)]
    assert scores[1] == scores[2] == pytest.approx(2**-0.5) and scores[0] < scores[1]
    assert {statement.section, memory.section, entity.section} == {"people"}
