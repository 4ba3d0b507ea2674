"""Entities where everything comes together: passes and the running agent, `check`, MEMORY.md, removal, agents apart."""

from __future__ import annotations

import os
from contextlib import contextmanager

import agents
import pytest
from workbench import NOW, Vault, contents, numbered, tree

from signet_sync.app.scheduler import relevant
from signet_sync.app.workspace import open_to_write
from signet_sync.entities import operations, queries
from signet_sync.entities.repository import EntityRepository, EventLog
from signet_sync.formats.timestamps import parse_instant
from signet_sync.settings.model import Settings
from signet_sync.storage import files
from signet_sync.sync import engine
from signet_sync.sync.workspace import Request

NOW_US = parse_instant(NOW)
CANARY = "qzxvbodycanary"
SAYING = f"The {CANARY} of lantern stays where it was put."
quick = agents.quick


@pytest.fixture
def vault(tmp_path):
    """A vault with one session."""
    found = Vault(tmp_path / "vault")
    found.session(1)
    found.reindex()
    return found


@contextmanager
def at_work(vault, **settings):
    with open_to_write(str(vault.root), Settings(**settings)) as workspace:
        yield workspace


def made(vault, name="Inner Critic", kind="part", agent="default", says="It warns before anything can go wrong."):
    """An entity that says who it is; gives its id and the path of its profile."""
    with at_work(vault) as workspace:
        done = operations.create(workspace, agent, kind, name, now_us=NOW_US)
        anchor = {"user": "overview", "part": "identity"}[kind]
        operations.set_section(workspace, agent, done.id, anchor, says, now_us=NOW_US)
    return done.id, done.path


def edited(vault, path, old, new):
    file = vault / path
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def operations_of(vault):
    with at_work(vault) as workspace:
        return [event.op for event in EventLog(workspace.root, "default").events()[::-1]]


def verified(vault):
    with at_work(vault) as workspace:
        return [one.code for one in queries.verify_log(EntityRepository(workspace, "default", NOW_US))]


# ── passes ──


def test_a_persons_edit_is_recorded_by_the_next_pass_that_may_write_and_shown(vault):
    _, path = made(vault)
    edited(vault, path, "It warns before", "It whispers before")
    before = contents(vault.root)
    vault.reindex("--index-only")
    assert contents(vault.root) == before
    vault.reindex()
    assert operations_of(vault)[0] == "human_edit" and verified(vault) == []
    assert "It whispers before anything can go wrong." in vault.page()
    assert vault.call("recall", "--json", "whispers").json["hits"][0]["tier"] == "entity"


def test_a_pass_over_nothing_changed_reads_no_entity_file_and_writes_nothing(vault, monkeypatch):
    _, path = made(vault)
    edited(vault, path, "It warns", "It whispers")
    vault.reindex()
    vault.reindex()
    before, read = tree(vault.root), []
    opened_file = files.read_at
    monkeypatch.setattr(files, "read_at", lambda at, name, limit: read.append(name) or opened_file(at, name, limit))
    vault.reindex()
    assert [name for name in read if name.endswith((".jsonl", "profile.md", "notes.md"))] == []
    assert tree(vault.root) == before


def test_a_rebuild_and_a_pass_that_only_indexes_know_the_same_entities(vault):
    made(vault)
    made(vault, "Ada", "user", "scout", "She keeps the light.")
    vault.reindex("--full")
    assert vault.rows("select count(*) from garden_files") == [(4,)]
    assert vault.dump() == vault.dump_from_scratch()


def test_what_cannot_be_looked_into_is_not_taken_for_gone(vault, tmp_path):
    made(vault)
    vault.reindex()
    rows = vault.rows("select path from garden_files")
    os.rename(vault / "entities", tmp_path / "elsewhere")
    (vault / "entities").symlink_to(tmp_path / "elsewhere")
    document = vault.reindex()
    assert "were not checked" in " ".join(document["trouble"])
    assert vault.rows("select path from garden_files") == rows
    assert vault.rows("select * from garden_drift") == []


# ── what the agent hears ──


def test_hints_of_entities_are_worth_a_look_and_others_are_not(vault):
    _, path = made(vault)
    folder = path.rpartition("/")[0]
    hinted = {path, f"{folder}/notes.md", folder, "entities", "agents/scout/entities/parts"}
    hinted |= {"entities/ledger/2026-03.jsonl"}
    others = {f"{folder}/{name}" for name in (".profile.md.swp", ".Other.md", "Other.md", "Other.txt")}
    others |= {"entities/readme.md", "entities/ledger", "src/entities/user.py"}
    with at_work(vault) as workspace:
        assert relevant(workspace, frozenset(hinted | others)) == hinted


def test_what_is_young_or_gone_is_looked_at_once_more(vault):
    _, path = made(vault)
    edited(vault, path, "It warns", "It whispers")
    now_us = (vault / path).stat().st_ctime_ns // 1000 + 1000
    with at_work(vault) as workspace:

        def unsettled(confirmed=frozenset()):
            asked = {"now_us": now_us, "paths": frozenset({path}), "settle_seconds": 2.0, "confirmed": confirmed}
            return engine.run_pass(workspace, Request(**asked)).unsettled

        assert unsettled() == {path} and operations_of(vault)[0] == "set"
        text = (vault / path).read_bytes()
        (vault / path).unlink()
        assert unsettled() == {path}
        (vault / path).write_bytes(text)
        assert not unsettled(frozenset({path}))
    assert operations_of(vault)[0] == "human_edit"


# ── check ──


def test_check_tells_what_is_untidy_and_what_was_changed_and_writes_nothing(vault):
    _, path = made(vault)
    vault.reindex()
    assert vault.call("check", "--json").json["ok"]
    edited(vault, path, "## Role\n", "## Roles\n")
    (page,) = (vault / "entities" / "ledger").iterdir()
    whole, ledger = page.read_bytes(), f"entities/ledger/{page.name}"
    page.write_bytes(whole.replace(b"It warns before", b"It cares before"))
    before = tree(vault.root)
    answer = vault.call("check", "--json")
    document = answer.json
    assert answer.code == 1 and (path, "heading-wrong") in {(one["path"], one["code"]) for one in document["notes"]}
    assert [(one["path"], one["verdict"], bool(one["hint"])) for one in document["problems"]] == [
        (ledger, "violation", True)
    ]
    assert document["counts"]["violation"] == len(document["problems"])
    assert tree(vault.root) == before
    page.write_bytes(b"\n".join(whole.split(b"\n")[:-2]) + b"\n")
    assert vault.call("check", "--json").json["ok"], "a lost end is known from the index alone"
    codes = {entry["code"] for entry in vault.call("check", "--json", "--with-index").json["problems"]}
    assert codes == {"ledger-truncated"}
    (vault / path).write_text("# Nobody\n", encoding="utf-8")
    problems = vault.call("check", "--json").json["problems"]
    assert [(entry["path"], entry["verdict"]) for entry in problems] == [(path, "invalid")]


# ── MEMORY.md ──


def test_the_page_shows_an_entity_once_and_none_that_is_deprecated(vault):
    entity, _ = made(vault)
    vault.reindex()
    section = vault.page().partition("## People & Relationships")[2].partition("\n## ")[0]
    line = f"- **Inner Critic**: It warns before anything can go wrong. ^{entity[:8]}"
    assert section.strip().split("\n") == [line]
    assert vault.page().count("Inner Critic") == 1
    with at_work(vault) as workspace:
        why = {"reason": "it was somebody else", "now_us": NOW_US}
        operations.set_status(workspace, "default", entity, "deprecated", **why)
    vault.reindex()
    assert "Inner Critic" not in vault.page()


# ── removal ──


def with_evidence(vault):
    """An entity whose evidence rests on a session full of words that stand nowhere else."""
    given = {
        "body": f"# Session 2\n\n{SAYING}\n",
        "memory_sentence": "In lantern the qjkxsentencecanary bounded the retry loop.",
    }
    paths = vault.session(2, **given)
    vault.reindex()
    entity, path = made(vault)
    source = paths["summary"]
    lines = (vault / source).read_text(encoding="utf-8").split("\n")
    number = next(number for number, line in enumerate(lines, 1) if CANARY in line)
    with at_work(vault) as workspace:
        done = operations.append(
            workspace,
            "default",
            entity,
            "evidence",
            "it is what it fears",
            evidence=f"{source}#{number}",
            now_us=NOW_US,
        )
        for said in ("It was calm all week.", f"More of that in {done.token}."):
            operations.append(workspace, "default", entity, "highlights", said, now_us=NOW_US)
    return path


def holding(root, word):
    return [path for path in tree(root) if os.path.isfile(root / path) and word.encode() in (root / path).read_bytes()]


def test_a_removal_takes_evidence_along_and_the_chain_stays_whole(vault):
    path = with_evidence(vault)
    edited(vault, path, "It warns", f"It says: {SAYING}\nIt warns")
    vault.reindex()
    assert SAYING in (vault / path).read_text(encoding="utf-8").partition("## Role")[0]
    session = numbered(2)["session_id"]
    planned = vault.call("remove", "--dry-run", "--json", session).json["removals"][0]["entity_lines"]
    assert [line["section"] for line in planned] == ["Identity", "Highlights", "Evidence"] and CANARY in planned[0][
        "text"
    ]
    assert SAYING in vault.call("remove", "--dry-run", session).out
    answer = vault.call("remove", "--yes", "--json", "--reason", "asked for", session)
    assert answer.code == 0, answer
    assert answer.json["removals"][0]["entity_lines"] == planned
    for word in (CANARY, CANARY[3:], "sentencecanary"):
        assert holding(vault.root, word) == [], word
        assert holding(vault.state, word) == [], word
    text = (vault / path).read_text(encoding="utf-8")
    assert (
        "It was calm all week." in text
        and "Removed with a session: 3 lines of Identity and Highlights and Evidence" in text
    )
    assert "It warns before anything can go wrong." in text
    assert "ev:" not in text, "who names the event of removed evidence refers to it, too"
    assert verified(vault) == []
    vault.reindex()
    assert verified(vault) == []
    assert vault.call("check", "--json", "--with-index").json["problems"] == []
