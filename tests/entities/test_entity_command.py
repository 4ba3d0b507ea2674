"""`entity`, `open ev:…` and handles of entities as they are called: documents, refusals, stdin, what a person reads."""

from __future__ import annotations

import json
import os
import re
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, ROOT, Answer, Vault

from signet_sync.cli.entity import _HARNESS
from signet_sync.formats.entity_paths import KINDS, new_id
from signet_sync.formats.handle import HANDLE, LETTERS

RATIONALE = "why: the review is next week; until: 2026-04-10; plan: prune to the three strongest"
SHA = re.compile(r"[0-9a-f]{64}")
TOKEN = re.compile(r"ev:\d{8}T\d{6}Z-[0-9A-HJKMNP-TV-Z]{26}")


class EntityVault(Vault):
    """A vault whose entities are changed by the command line."""

    def entity(self, *arguments: str) -> Answer:
        return self.call("entity", *arguments, *(() if arguments[0] == "log" else ("--now", NOW)))

    def done(self, *arguments: str) -> Any:
        """The answer of a command that writes."""
        answer = self.entity(*arguments, "--json")
        assert answer.code == 0, answer
        return answer.json

    def ledger(self) -> bytes:
        return b"".join(page.read_bytes() for page in sorted((self.root / "entities/ledger").glob("*.jsonl")))

    def shown(self, ref: str) -> dict[str, Any]:
        """The sections of an entity by name."""
        return {section["name"]: section for section in self.done("show", ref)["sections"]}

    def expanded(self, handle: str) -> Any:
        answer = self.call("expand", handle, "--json")
        assert answer.code == 0, answer
        return answer.json


@pytest.fixture
def vault(tmp_path: Path) -> EntityVault:
    return EntityVault(tmp_path / "vault")


@pytest.fixture
def critic(vault: EntityVault) -> str:
    return str(vault.done("create", "part", "Inner Critic")["id"])


def typed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(text.encode())))


# ── documents ──


def test_edits_answer_with_the_section_and_its_hashes(vault: EntityVault, critic: str) -> None:
    first = vault.done("set", critic, "Identity", "--text", "Reads every draft first.")
    assert first["id"] == critic and first["section"] == "identity" and SHA.fullmatch(first["after"])
    second = vault.done("append", "inner critic", "identity", "--text", "And says so.")
    assert second["before"] == first["after"] and second["warnings"] == []
    assert vault.shown(critic)["identity"]["text"].strip() == "Reads every draft first.\n\nAnd says so."
    vault.done("append", critic, "highlights", "--text", "Asked for help.")
    (item,) = vault.shown(critic)["highlights"]["items"]
    assert (item["number"], item["text"]) == (1, "Asked for help.")
    pruned = vault.done("prune", critic, "highlights", item["key"], "--reason", "no longer so")
    assert pruned["section"] == "highlights" and vault.shown(critic)["highlights"]["items"] == []
    assert b"no longer so" in vault.ledger()


@pytest.mark.parametrize(("harness", "actor"), [("", "person"), ("default", "agent")])
def test_what_is_typed_in_a_terminal_is_a_persons(
    vault: EntityVault, critic: str, monkeypatch: pytest.MonkeyPatch, harness: str, actor: str
) -> None:
    for name in _HARNESS:
        monkeypatch.setenv(name, harness)
    with open(os.openpty()[1]) as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", terminal)
        vault.done("set", critic, "identity", "--text", "Reads every draft first.")
    assert vault.done("log", critic)["events"][0]["actor"] == actor


def test_text_comes_from_stdin_and_goes_to_notes(
    vault: EntityVault, critic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("First line.\n\n- and a list\n", monkeypatch)
    done = vault.done("set", critic, "notes/focus", "--text", "-")
    assert done["path"].endswith("/notes.md")
    assert "First line.\n\n- and a list" in (vault / done["path"]).read_text("utf-8")
    typed("", monkeypatch)
    assert vault.entity("set", critic, "notes/focus", "--text", "-", "--json").json["error"]["code"] == "reason-missing"


def test_what_cannot_be_done_is_refused(vault: EntityVault, critic: str) -> None:
    before = vault.ledger()
    for arguments, code in (
        (("show", "nobody"), "unknown-entity"),
        (("set", "inner-critic", "identity", "--text", "x", "--expect", "0" * 64), "section-changed"),
        (("undo", "ev:20260328T223406Z-01KMV9AJJ8000G40R40M30E209"), "unknown-event"),
        (("check", "inner-critic", "--keep", "file", "--yes"), "not-drifted"),
        (("append", "inner-critic", "evidence", "--propose", "--text", '"W" — y'), "evidence-missing"),
        (("prune", "inner-critic", "highlights", "1"), "usage"),
        (("create", "planet", "Mars"), "usage"),
    ):
        answer = vault.entity(*arguments, "--json")
        assert list(answer.json) == ["error"] and answer.json["error"]["hint"], answer
        assert (answer.code, answer.json["error"]["code"]) == (2, code)
    assert vault.ledger() == before


def test_garbage_in_a_profile_is_reported_everywhere_until_it_is_resolved(vault: EntityVault, critic: str) -> None:
    vault.session()
    vault.reindex()
    assert vault.call("status", "--json").json["entity_drift"] == 0 and "entity check" not in vault.page()
    profile = vault / vault.done("show", critic)["path"]
    profile.write_bytes(b"\x00garbage \xff that is no profile\n")
    (told,) = vault.reindex()["entity_drift"]
    assert told["path"] == profile.relative_to(vault.root).as_posix() and told["message"] and told["hint"]
    # The first pass finds it; every later one and every look tell of it again.
    assert len(vault.reindex("--strict", code=1)["entity_drift"]) == 1
    assert "1 entity file is not what was recorded: signet-sync entity check" in vault.page()
    assert "1 entity file not as recorded → signet-sync entity check" in vault.call("status").out
    doctor = vault.call("doctor")
    assert doctor.code == 1 and profile.name in doctor.out and "entity check" in doctor.out
    assert vault.entity("check", critic, "--keep", "events", "--json").code == 2, "a person is asked"
    done = vault.done("check", critic, "--keep", "events", "--yes")
    assert [one["path"] for one in done["settled"]] == [profile.relative_to(vault.root).as_posix()]
    assert "entity check" not in vault.page()  # the page follows at once
    assert vault.reindex()["entity_drift"] == [] and vault.call("status", "--json").json["entity_drift"] == 0


def test_an_eighth_item_needs_a_rationale_and_tokens_lead_to_the_line(vault: EntityVault, critic: str) -> None:
    path = vault.session()["transcript"]
    vault.reindex()
    number = (vault / path).read_bytes().count(b"\n")
    append = ("append", critic, "evidence", "--evidence", f"{path}#{number}", "--text")
    for at in range(7):
        assert vault.done(*append, f"It matters, {at}.")["warnings"] == []
    for code, more in (("evidence-cap", ()), ("rationale-invalid", ("--rationale", "because"))):
        assert vault.entity(*append, "One more.", *more, "--json").json["error"]["code"] == code
    eighth = vault.done(*append, "One more.", "--rationale", RATIONALE)
    assert "7" in eighth["warnings"][0]
    items = vault.shown(critic)["evidence"]["items"]
    assert len(items) == 8 and eighth["token"] in items[7]["text"] and f"[[{path}|" in items[7]["text"]
    assert "the review is next week" in json.dumps(vault.shown(critic)["change-log"])
    opened = vault.call("open", eighth["token"], "--json").json
    assert (opened["path"], opened["line"], opened["id"]) == (path, number, critic)
    assert opened["event"]["id"] == eighth["event_id"]
    assert vault.call("open", eighth["token"], "--path", "summary").code == 2
    told = vault.call("open", eighth["token"]).out
    assert f"{path}#{number}" in told and "append item evidence" in told
    assert vault.call("open", "ev:20260328T223406Z-nonsense", "--json").json["error"]["code"] == "token-invalid"


def test_a_person_reads_who_it_is_and_what_happened(vault: EntityVault, critic: str) -> None:
    vault.done("set", critic, "identity", "--text", "Reads every draft.")
    vault.done("append", critic, "open-questions", "--text", "Since when?")
    vault.done("protect", "lock", critic, "identity")
    proposal = vault.done("set", critic, "identity", "--propose", "--text", "Softer.")
    shown = vault.entity("show", critic).out
    assert shown.startswith(f"Inner Critic\n  part · active · {critic}\n")
    assert "\nIdentity\n  Reads every draft.\n" in shown and "  1. Since when?" in shown
    assert "locked: identity" in shown and f"entity review approve {proposal['event_id']}" in shown
    assert "empty: role, concerns" in shown and "<!--" not in shown
    lines = vault.entity("log", critic).out.splitlines()
    assert lines[:2] == ["2026-03-29 12:00  agent       propose identity", "    + Softer."]
    vault.done("set", critic, "role", "--text", "It guards.")
    edit = vault.done("set", critic, "role", "--text", "It hides.")
    lines = vault.entity("log", critic).out.splitlines()
    assert lines[1:4] == ["    - It guards.", "    + It hides.", f"    {edit['token']}"]
    vault.done("undo", edit["token"])
    assert vault.shown(critic)["role"]["text"].strip() == "It guards."
    profile = vault / edit["path"]
    stale = profile.read_text("utf-8")
    vault.call("entity", "append", critic, "highlights", "--text", "Strict.", "--now", "2026-03-29T12:00:01.000Z")
    profile.write_text(stale.replace("It guards.", "It sleeps."), "utf-8")
    assert (
        "would have dropped highlights; it was kept" in vault.call("reindex", "--now", "2026-03-29T12:00:02.000Z").out
    )
    assert "human edit role (kept highlights)" in vault.entity("log", critic).out
    said = vault.entity("append", critic, "highlights", "--text", "# Loud", "--key", "k").out.splitlines()
    assert said[0] == "added to highlights" and TOKEN.search(said[2])
    assert vault.entity("show").out == f"Inner Critic  (part)  {critic}\n  Reads every draft.\n"
    (page,) = (vault.root / "entities/ledger").glob("*.jsonl")
    page.write_bytes(page.read_bytes().replace(b"every draft", b"many drafts"))
    answer = vault.entity("check", "--json")
    assert answer.code == 1 and {"id", "code", "message", "hint"} <= answer.json["findings"][0].keys()
    assert "text-changed" in vault.entity("check").out


# ── handles ──


def test_every_form_of_a_handle_leads_to_the_entity(vault: EntityVault) -> None:
    for kind in KINDS:
        assert HANDLE.fullmatch(f"^{new_id(kind, 'a')}") and LETTERS[new_id(kind, "a")[0]] == kind
    jo, lantern = (vault.done("create", "part", name)["id"] for name in ("Jo", "Lantern"))
    between = ("--type", "reviews", "--between", jo, lantern)
    edge = vault.done("create", "relationship", "Jo reviews", *between)["id"]
    path = vault.done("set", jo, "role", "--text", "Has the last word before a tag.")["path"]
    (hit,) = vault.call("recall", "--json", "last word before a tag").json["hits"]
    assert (hit["tier"], hit["id"]) == ("entity", jo) and f"^{jo[:8]}\n" in vault.page()
    for form in (jo, f"^{jo}", f"^{jo[:8]}", f"[[MEMORY#^{jo}]]", f"[[{path}|profile]]", path.removesuffix(".md")):
        document = vault.expanded(form)
        node = document["node"]
        assert (node["id"], node["kind"], node["label"], node["path"]) == (jo, "part", "Jo", path)
        assert node["text"].startswith("Has the last word before a tag.")
        assert document["siblings"] == [edge] and "Jo reviews" in document["labels"][edge]
    assert vault.rows("select id, accesses from node_telemetry") == [(jo, 7)]
    assert sorted(vault.expanded(edge)["siblings"]) == sorted([jo, lantern])
    text = vault.call("expand", edge).out
    assert text.startswith(f"relationship · Jo reviews  ^{edge}\n") and f"^{jo}  part " in text
    for command, code, hint in (
        ("pin", "not-pinnable", "entity protect pin"),
        ("forget", "not-a-memory", "entity status"),
    ):
        answer = vault.call(command, f"^{jo}", "--json")
        assert (answer.code, answer.json["error"]["code"]) == (2, code)
        assert f"{hint} {jo}" in answer.json["error"]["hint"]


# ── what is written about it ──


def test_every_decision_has_a_row_and_every_row_a_test() -> None:
    page = (ROOT / "docs/internals/conformance.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \|.*\|(.*)\|$", page, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 17))
    assert all("::" in cell for _, cell in rows)
    for file, test in re.findall(r"`(\w+)::(\w+)`", page):
        assert f"def {test}(" in next((ROOT / "tests").glob(f"*/{file}.py")).read_text("utf-8"), (file, test)
