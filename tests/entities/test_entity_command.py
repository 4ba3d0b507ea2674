"""`entity` and `open ev:…` as they are called: the documents, the refusals, stdin, and what a person reads."""

from __future__ import annotations

import json
import re
import shutil
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, ROOT, Answer, Vault, call

from signet_sync.cli.entity.group import entity

RATIONALE = "why: the review is next week; until: 2026-04-10; plan: prune to the three strongest"
SHA = re.compile(r"[0-9a-f]{64}")
ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
TOKEN = re.compile(r"ev:\d{8}T\d{6}Z-[0-9A-HJKMNP-TV-Z]{26}")


class EntityVault(Vault):
    """A vault whose entities are changed by the command line."""

    def entity(self, *arguments: str) -> Answer:
        return self.call("entity", *arguments, *(() if arguments[0] in ATEMPORAL else ("--now", NOW)))

    def done(self, *arguments: str) -> Any:
        """The answer of a command that writes."""
        answer = self.entity(*arguments, "--json")
        assert answer.code == 0, answer
        return answer.json

    def refused(self, *arguments: str) -> tuple[int, str]:
        """Exit code and the error's code; no event is written."""
        before = self.ledger()
        answer = self.entity(*arguments, "--json")
        assert list(answer.json) == ["error"] and answer.json["error"]["hint"], answer
        assert self.ledger() == before
        return answer.code, answer.json["error"]["code"]

    def ledger(self) -> bytes:
        return b"".join(page.read_bytes() for page in sorted((self.root / "entities/ledger").glob("*.jsonl")))

    def shown(self, ref: str) -> dict[str, Any]:
        """The sections of an entity by name."""
        return {section["name"]: section for section in self.done("show", ref)["sections"]}


ATEMPORAL = ("log",)


@pytest.fixture
def vault(tmp_path: Path) -> EntityVault:
    return EntityVault(tmp_path / "vault")


@pytest.fixture
def critic(vault: EntityVault) -> str:
    return str(vault.done("create", "part", "Inner Critic")["id"])


def typed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(text.encode())))


# ── documents ──


def test_an_entity_is_made_and_shown(vault: EntityVault) -> None:
    made = vault.done("create", "user", "Mira", "--key", "first")
    assert {"id", "path", "event_id"} <= made.keys()
    assert made["path"] == f"entities/user/mira--{made['id']}/Mira.md"
    assert ULID.fullmatch(made["event_id"]) and TOKEN.fullmatch(made["token"])
    shown = vault.done("show", "mira")
    assert {"id", "path", "sections", "pins", "locks", "status"} <= shown.keys()
    assert (shown["title"], shown["kind"], shown["status"]) == ("Mira", "user", "active")
    named = [section["name"] for section in shown["sections"]]
    assert named[:4] == ["overview", "preferences", "goals", "patterns"] and named[-1] == "notes/parking-lot"
    assert [s["anchor"] for s in shown["sections"] if "items" in s][:3] == ["highlights", "evidence", "open-questions"]
    again = vault.done("create", "user", "Mira", "--key", "first")
    assert again["replayed"] and again["event_id"] == made["event_id"]
    assert vault.done("list")["entities"][0]["path"] == made["path"]


def test_a_relationship_is_of_a_type_and_between_two(vault: EntityVault, critic: str) -> None:
    planner = vault.done("create", "part", "Planner")["id"]
    made = vault.done("create", "relationship", "They", "--type", "polarized", "--between", "inner-critic", planner)
    shown = vault.done("show", made["id"])
    assert (shown["type"], shown["participants"]) == ("polarized", [critic, planner])
    assert vault.refused("create", "relationship", "Nobody") == (2, "usage")
    assert vault.refused("create", "part", "X", "--type", "polarized") == (2, "usage")


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


def test_text_comes_from_stdin_and_goes_to_notes(
    vault: EntityVault, critic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("First line.\n\n- and a list\n", monkeypatch)
    done = vault.done("set", critic, "notes/focus", "--text", "-")
    assert done["path"].endswith(" notes.md")
    assert "First line.\n\n- and a list" in (vault / done["path"]).read_text("utf-8")
    typed("", monkeypatch)
    assert vault.refused("set", critic, "notes/focus", "--text", "-") == (2, "text-empty")


def test_agents_leave_pinned_and_locked_sections_alone(vault: EntityVault, critic: str) -> None:
    assert vault.done("protect", "lock", critic, "identity")["event_id"]
    vault.done("protect", "pin", critic, "needs")
    assert vault.refused("set", critic, "identity", "--text", "Mine.") == (2, "section-locked")
    assert vault.refused("append", critic, "needs", "--text", "Mine.") == (2, "section-pinned")
    assert vault.refused("protect", "unlock", critic, "identity", "--actor", "agent") == (2, "actor-refused")
    shown = vault.done("show", critic)
    assert (shown["pins"], shown["locks"]) == (["needs"], ["identity"])
    vault.done("set", critic, "identity", "--text", "A person's words.", "--actor", "person")
    vault.done("protect", "unlock", critic, "identity")
    vault.done("set", critic, "identity", "--text", "Mine.")
    vault.done("protect", "lock", critic)
    assert vault.refused("status", critic, "resting") == (2, "section-locked")


def test_what_is_proposed_waits_for_a_person(vault: EntityVault, critic: str) -> None:
    vault.done("protect", "lock", critic, "identity")
    first, second = (vault.done("propose", critic, "identity", "--text", text) for text in ("Softer.", "Harder."))
    assert [p["id"] for p in vault.done("show", critic)["proposals"]] == [first["event_id"], second["event_id"]]
    assert vault.refused("review", "approve", first["event_id"], "--actor", "agent") == (2, "actor-refused")
    vault.done("review", "approve", first["event_id"])
    vault.done("review", "reject", second["event_id"], "--reason", "too hard")
    assert vault.done("show", critic)["proposals"] == []
    assert vault.shown(critic)["identity"]["text"].strip() == "Softer."
    assert vault.refused("review", "approve", second["event_id"]) == (2, "unknown-proposal")


def test_a_proposal_says_what_approving_it_does(vault: EntityVault, critic: str) -> None:
    vault.done("set", critic, "identity", "--text", "One.\n\nTwo.")
    for section, does in (
        ("identity", "replaces 2 lines"),
        ("role", "writes the first text"),
        ("highlights", "adds an item"),
    ):
        said = vault.entity("propose", critic, section, "--text", "Softer.")
        assert said.out.startswith(f"proposed for {section}; approving it {does}\n"), said


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", "nobody"), "unknown-entity"),
        (("set", "inner-critic", "colour", "--text", "Red."), "section-unknown"),
        (("set", "inner-critic", "highlights", "--text", "All."), "section-form"),
        (("prune", "inner-critic", "highlights", "3", "--reason", "R"), "item-unknown"),
        (("set", "inner-critic", "identity", "--text", " "), "text-empty"),
        (("append", "inner-critic", "evidence", "--text", "W", "--evidence", "memory/none.md#1"), None),
        (("append", "inner-critic", "evidence", "--text", "W"), "evidence-missing"),
        (("propose", "inner-critic", "evidence", "--text", '"W" — y'), "evidence-missing"),
        (("prune", "inner-critic", "highlights", "1"), "usage"),
        (("create", "planet", "Mars"), "usage"),
        (("promote", "Colour", "--actor", "agent"), "actor-refused"),
    ],
)
def test_what_cannot_be_done_is_refused(vault: EntityVault, critic: str, arguments: tuple[str, ...], code: str) -> None:
    refused = vault.refused(*arguments)
    assert refused[0] == 2 and (code is None or refused[1] == code)


def test_a_key_is_of_one_request(vault: EntityVault, critic: str) -> None:
    first = vault.done("set", critic, "role", "--text", "To warn.", "--key", "k")
    assert vault.done("set", critic, "role", "--text", "To warn.", "--key", "k") == {**first, "replayed": True}
    assert vault.refused("set", critic, "role", "--text", "To shout.", "--key", "k") == (2, "idempotency-conflict")


def test_garbage_in_a_profile_is_reported_everywhere_until_it_is_resolved(vault: EntityVault, critic: str) -> None:
    vault.session()
    vault.reindex()
    assert vault.call("status", "--json").json["entity_drift"] == 0 and "entity check" not in vault.page()
    profile = vault / vault.done("show", critic)["path"]
    profile.write_bytes(b"\x00garbage \xff that is no profile\n")
    document = vault.reindex()
    (told,) = document["entity_drift"]
    assert told["path"] == profile.relative_to(vault.root).as_posix() and told["message"] and told["hint"]
    for _ in range(2):  # the first pass finds it; every later one and every look tell of it again
        assert len(vault.reindex()["entity_drift"]) == 1
        assert "1 entity file is not what was recorded: signet-sync entity check" in vault.page()
    assert "signet-sync entity check" in vault.call("reindex").out
    assert vault.reindex("--strict", code=1)
    assert vault.call("status", "--json").json["entity_drift"] == 1
    assert "1 entity file not as recorded → signet-sync entity check" in vault.call("status").out
    doctor = vault.call("doctor")
    assert doctor.code == 1 and profile.name in doctor.out and "entity check" in doctor.out
    vault.done("resolve", critic, "--keep", "events", "--actor", "maintainer")
    assert "entity check" not in vault.page()  # the page follows at once
    assert vault.reindex()["entity_drift"] == [] and vault.call("status", "--json").json["entity_drift"] == 0


# ── evidence ──


def test_an_eighth_item_needs_a_rationale_and_tokens_lead_to_the_line(vault: EntityVault, critic: str) -> None:
    path = vault.session()["transcript"]
    vault.reindex()
    number = (vault / path).read_bytes().count(b"\n")
    append = ("append", critic, "evidence", "--evidence", f"{path}#{number}", "--text")
    for at in range(7):
        assert vault.done(*append, f"It matters, {at}.")["warnings"] == []
    assert vault.refused(*append, "One more.") == (2, "evidence-cap")
    assert vault.refused(*append, "One more.", "--rationale", "because") == (2, "rationale-invalid")
    eighth = vault.done(*append, "One more.", "--rationale", RATIONALE)
    assert "7" in eighth["warnings"][0]
    items = vault.shown(critic)["evidence"]["items"]
    assert len(items) == 8 and eighth["token"] in items[7]["text"] and f"[[{path}|" in items[7]["text"]
    assert "the review is next week" in json.dumps(vault.shown(critic)["change-log"])
    opened = vault.call("open", eighth["token"], "--json").json
    assert (opened["path"], opened["line"], opened["id"]) == (path, number, critic)
    assert opened["event"]["id"] == eighth["event_id"]
    assert vault.call("open", eighth["token"], "--path", "transcript").out.strip() == path
    assert vault.call("open", eighth["token"], "--path", "summary").code == 2
    told = vault.call("open", eighth["token"]).out
    assert f"{path}#{number}" in told and "append item evidence" in told
    assert vault.call("open", "ev:20260328T223406Z-nonsense", "--json").json["error"]["code"] == "token-invalid"


def test_a_narrative_above_its_cap_needs_a_rationale_too(vault: EntityVault, critic: str) -> None:
    long = ("set", critic, "role", "--text", "It has the last word on every draft. " * 60)
    assert vault.refused(*long) == (2, "section-cap")
    assert "soft cap is 300" in vault.done(*long, "--rationale", RATIONALE)["warnings"][0]
    (log,) = [item["text"] for item in vault.shown(critic)["change-log"]["items"] if "soft cap" in item["text"]]
    assert log.startswith("2026-03-29T12:00:00.000Z — Role") and "plan: prune to the three strongest" in log


# ── what is told without being asked ──


def test_the_change_log_tells_what_matters_and_every_day_that_is_over(vault: EntityVault, critic: str) -> None:
    vault.done("set", critic, "role", "--text", "To warn.")
    vault.done("append", critic, "highlights", "--text", "Was right once.")
    vault.done("set", critic, "role", "--text", "To warn early.")
    vault.done("status", critic, "resting", "--reason", "spring")
    vault.reindex(now="2026-03-30T00:10:00.000Z")
    log = [item["text"] for item in vault.shown(critic)["change-log"]["items"]]
    assert log == [
        "2026-03-29T12:00:00.000Z — Created",
        "2026-03-29T12:00:00.000Z — Role rewritten",
        "2026-03-29T12:00:00.000Z — Status: active → resting (spring)",
        "2026-03-29 — 5 events: 2 set, 1 created, 1 item added, 1 status changed; by agent 5",
    ]
    vault.reindex(now="2026-03-30T01:00:00.000Z")
    assert len(vault.shown(critic)["change-log"]["items"]) == len(log)


def test_patterns_of_relationships_are_told_to_the_user(vault: EntityVault, critic: str) -> None:
    vault.done("create", "user", "Mira")
    for name in ("Planner", "Exile"):
        vault.done("create", "part", name)
    for one, other, kind in (("inner-critic", "planner", "polarized"), ("inner-critic", "exile", "protects"),
                             ("planner", "exile", "protects")):  # fmt: skip
        vault.done("create", "relationship", f"{one} and {other}", "--type", kind, "--between", one, other)
    items = vault.shown("mira")["highlights"]["items"]
    assert all(item["text"].startswith("pattern: [[entities/parts/") for item in items)
    assert "|Planner]] are polarized around [[entities/parts/exile--" in items[-1]["text"]


# ── looking ──


def test_what_happened_is_logged_verified_and_told_again(vault: EntityVault, critic: str) -> None:
    vault.done("set", critic, "identity", "--text", "Reads every draft.")
    vault.done("status", critic, "dormant", "--reason", "quiet since the release")
    log = vault.entity("log", critic, "--json").json
    assert log["ok"] and [event["op"] for event in log["events"]][:2] == ["status", "set"]
    assert {event["state"] for event in log["events"]} == {"committed"}
    for command in (("check",), ("check", critic), ("check", "--log")):
        assert vault.entity(*command, "--json").json == {"ok": True, "findings": []}
    profile = (vault / vault.done("show", critic)["path"]).read_text("utf-8")
    assert "dormant" in profile and "## Change Log" in profile
    vault.done("status", critic, "deprecated", "--reason", "one voice with the planner")
    assert vault.done("show", critic)["status"] == "deprecated"


def test_a_changed_ledger_is_found(vault: EntityVault, critic: str) -> None:
    vault.done("set", critic, "identity", "--text", "Reads every draft.")
    page = next((vault.root / "entities/ledger").glob("*.jsonl"))
    page.write_bytes(page.read_bytes().replace(b"every draft", b"many drafts"))
    answer = vault.entity("check", "--json")
    assert answer.code == 1 and not answer.json["ok"]
    assert {"id", "code", "message", "hint"} <= answer.json["findings"][0].keys()
    assert "payload-changed" in vault.entity("check").out


def test_a_persons_edit_counts_and_a_broken_file_waits_for_a_maintainer(vault: EntityVault, critic: str) -> None:
    path = vault / vault.done("set", critic, "identity", "--text", "Reads every draft.")["path"]
    path.write_text(path.read_text("utf-8").replace("every draft", "my drafts"), encoding="utf-8")
    assert vault.shown(critic)["identity"]["text"].strip() == "Reads my drafts."
    events = vault.entity("log", critic, "--json").json["events"]
    assert [(e["op"], e["actor"]) for e in events][:1] == [("human_edit", "person")]
    broken = path.read_text("utf-8").replace(critic, critic[:-1] + ("a" if critic[-1] != "a" else "b"))
    path.write_text(broken, encoding="utf-8")
    assert vault.refused("set", critic, "identity", "--text", "Mine.") == (2, "entity-drifted")
    queue = vault.entity("check", "--json")
    assert queue.code == 1 and queue.json["findings"][0]["id"] == critic
    assert path.read_text("utf-8") == broken
    assert vault.refused("resolve", critic, "--keep", "events", "--actor", "agent") == (2, "actor-refused")
    vault.done("resolve", critic, "--keep", "events", "--actor", "maintainer")
    assert vault.entity("check").code == 0 and "Reads my drafts." in path.read_text("utf-8")


def test_a_field_becomes_a_section_of_the_schema(vault: EntityVault, critic: str) -> None:
    vault.done("set", critic, "extensions", "--text", "### Triggers\n\nAn empty page.")
    done = vault.done("promote", "Triggers", "--actor", "maintainer")
    assert (done["section"], done["kind"], done["schema_version"]) == ("triggers", "part", 2) and done["event_id"]
    assert vault.shown(critic)["triggers"]["text"].strip() == "An empty page."
    assert vault.entity("check", critic).code == 0


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_demo_has_a_garden_that_is_whole_however_often_it_is_made(tmp_path: Path, times: int) -> None:
    root = tmp_path / "demo"
    for again in range(times):
        assert call("demo", str(root), "--yes").code == 0
        for command in (("check",), ("check", "jo")):
            assert call("--workspace", root, "entity", *command).code == 0, (again, command)
        assert call("--workspace", root, "entity", "set", "mira", "preferences", "--text", "Mine.").code == 2
        shutil.rmtree(root)


# ── what is written about it ──


def test_every_decision_has_a_row_and_every_row_a_test() -> None:
    page = (ROOT / "docs/internals/conformance.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \|.*\|(.*)\|$", page, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 17))
    assert all("::" in cell for _, cell in rows)
    for file, test in re.findall(r"`(\w+)::(\w+)`", page):
        assert f"def {test}(" in next((ROOT / "tests").glob(f"*/{file}.py")).read_text("utf-8"), (file, test)


def test_every_command_is_in_the_page_and_its_help_fits() -> None:
    page = (ROOT / "docs/entities.md").read_text("utf-8")
    for words in ((name,) for name in entity.commands):
        assert f"entity {words[0]}" in page or f"`{words[0]}`" in page, words
        answer = call("entity", *words, "--help")
        assert answer.code == 0 and all(len(line) <= 100 for line in answer.out.splitlines()), words


# ── what a person reads ──


def test_a_person_reads_who_it_is_and_what_happened(vault: EntityVault, critic: str) -> None:
    vault.done("set", critic, "identity", "--text", "Reads every draft.")
    vault.done("append", critic, "open-questions", "--text", "Since when?")
    vault.done("protect", "lock", critic, "identity")
    proposal = vault.done("propose", critic, "identity", "--text", "Softer.")
    shown = vault.entity("show", critic).out
    assert shown.startswith(f"Inner Critic\n  person · active · {critic}\n")
    assert "\nIdentity\n  Reads every draft.\n" in shown and "  1. Since when?" in shown
    assert "locked: identity" in shown and f"entity review approve {proposal['event_id']}" in shown
    assert "empty: role, concerns" in shown and "<!--" not in shown
    lines = vault.entity("log", critic).out.splitlines()
    assert lines[0] == "2026-03-29 12:00  agent       propose identity"
    said = vault.entity("append", critic, "highlights", "--text", "# Loud", "--key", "k").out.splitlines()
    assert said[0] == "added to highlights" and TOKEN.search(said[2])
    assert vault.entity("list").out == f"Inner Critic  (person)  {critic}\n  Reads every draft.\n"
