"""Rows of entity files: found by each of their names, recalled by their words, gone to the last one when forgotten."""

from __future__ import annotations

import pytest
from artifacts_fixture import fill, judged, session

from signet_sync.entities import store as entities_store
from signet_sync.entities.store import EntityFile
from signet_sync.formats import entity_paths
from signet_sync.formats.snapshot import Signature
from signet_sync.formats.timestamps import parse_instant
from signet_sync.recall.operations import recall
from signet_sync.recall.store.rows import Within
from signet_sync.storage.database.connection import Database

NOW_US = parse_instant("2026-11-20T10:00:00Z") or 0


@pytest.fixture
def database(tmp_path):
    made = Database(str(tmp_path / "index.db"))
    yield made
    made.close()


def profile(title="Inner Critic", text="It guards the gate.\nIt fears shame.", **given):
    kind, agent_id = given.get("kind", "part"), given.get("agent_id", "default")
    slug = given.get("slug", entity_paths.slug_of(title))
    entity_id = given.get("id", entity_paths.new_id(kind, agent_id, title))
    place = entity_paths.EntityPlace(agent_id, kind, slug, entity_id, given.get("file", "profile"))
    made = EntityFile(
        place.path, agent_id, kind, entity_id, slug, "profile", title, "active", None, "It guards the gate.", (),
        text, "0" * 64, NOW_US,
    )  # fmt: skip
    return made._replace(**given)


CRITIC = profile(type="manager", participants=("u-aaaaaaaaaaaa", "p-bbbbbbbbbbbb"), signature=Signature(1, 2, 3, 4))
NOTES = profile(file="notes", text="", line="", slug=CRITIC.slug)


def put(database, *files):
    with database.transaction():
        entities_store.put_files(database, files)


def forget(database, *files):
    with database.transaction():
        entities_store.put_files(database, [], [one.path for one in files])


def told(database):
    return sorted(database.execute("select agent_id, tier, name, text from texts where artifact is null"))


def words(database):
    database.execute("create virtual table if not exists temp.terms using fts5vocab(main, said, 'row')")
    return {row[0] for row in database.execute("select term from temp.terms")}


# ── files ──


def test_a_file_is_kept_as_it_was_seen_and_found_by_the_words_of_its_profile(database):
    put(database, CRITIC, NOTES._replace(text="secretly", title="Hidden"))
    assert told(database) == [("default", "entity", CRITIC.id, f"Inner Critic\n{CRITIC.text}")]
    put(database, CRITIC._replace(text="It rests."), NOTES)
    assert {word for word in words(database) if word.isascii()} == {"inner", "critic", "it", "rest"}
    put(database, CRITIC)
    assert entities_store.files_of(database, "default", CRITIC.id) == [NOTES, CRITIC]
    assert entities_store.signatures(database) == {CRITIC.path: Signature(1, 2, 3, 4), NOTES.path: None}
    assert entities_store.signatures(database, "default") == entities_store.signatures(database)
    assert entities_store.signatures(database, "scout") == {}
    assert entities_store.entities(database, "default") == [CRITIC]
    forget(database, NOTES)
    assert entities_store.files_of(database, "default", CRITIC.id) == [CRITIC] and told(database)
    forget(database, CRITIC, NOTES)
    assert entities_store.files_of(database, "default", CRITIC.id) == [] == told(database) and words(database) == set()


def test_an_entity_is_one_though_its_folder_was_copied(database):
    copied = CRITIC._replace(path=f"entities/parts/zz-copy--{CRITIC.id}/profile.md", text="Copied.")
    put(database, copied, CRITIC)
    assert entities_store.entities(database, "default") == [CRITIC]
    assert entities_store.find(database, "default", CRITIC.id) == [CRITIC]
    assert len(entities_store.files_of(database, "default", CRITIC.id)) == 2
    assert [hit.path for hit in recall(database, "inner critic", Within("default"))] == [CRITIC.path]
    forget(database, CRITIC)
    assert told(database) == [("default", "entity", CRITIC.id, "Inner Critic\nCopied.")]


@pytest.mark.parametrize(
    ("ref", "titles"),
    [
        ("inner-critic", ["Inner Critic"]),
        (" INNER  critic ", ["Inner Critic"]),
        (CRITIC.id, ["Inner Critic"]),
        (CRITIC.id[:6], ["Inner Critic"]),
        (CRITIC.id[:5], []),
        ("内なる批評家", ["内なる批評家"]),
        ("ｇａｔｅｋｅｅｐｅｒ", ["Gatekeeper", "gatekeeper"]),
        *((unknown, []) for unknown in ("p-", "critic", "", "%", "theirs", "p-zzzzzzzzzzzz")),
    ],
)
def test_an_entity_is_found_by_id_slug_title_or_the_beginning_of_its_id(database, ref, titles):
    twin = profile("gatekeeper", kind="user", slug="the-other")
    put(database, CRITIC, NOTES, profile("内なる批評家"), profile("Gatekeeper", slug="one"), twin)
    put(database, profile("Theirs", agent_id="scout"))
    assert sorted(one.title for one in entities_store.find(database, "default", ref)) == titles


def test_a_slug_goes_before_a_title_and_both_before_the_beginning_of_an_id(database):
    by_id = profile("Some", id="p-abcdefghijkl")
    by_title = profile("p-abcdefg", slug="other", id="p-bbbbbbbbbbbb")
    by_slug = profile("Third", slug="p-abcdefg", id="p-cccccccccccc")
    for one in (by_id, by_title, by_slug):
        put(database, one)
        assert entities_store.find(database, "default", "p-abcdefg") == [one]


# ── recall ──


LONG = "It likes order above all. " * 40 + "Then it fears the lighthouse. " + "And so on. " * 40


@pytest.mark.parametrize(
    ("given", "asked", "shown", "why"),
    [
        ({}, "who fears shame?", "It guards the gate. It fears shame.",
         "all words, in the part Inner Critic, 2026-11-20"),
        ({}, "inner critic", "It guards the gate.", "all words, in the part Inner Critic, 2026-11-20"),
        ({"text": LONG}, "lighthouse", "…", "all words, in the part Inner Critic, 2026-11-20"),
        ({"status": "deprecated"}, "shame", "It", "all words, in the deprecated part Inner Critic, 2026-11-20"),
    ],
)  # fmt: skip
def test_recall_finds_an_entity_and_says_what_it_is(database, given, asked, shown, why):
    put(database, CRITIC._replace(**given))
    (hit,) = recall(database, asked, Within("default"))
    assert (hit.tier, hit.id, hit.path, hit.why) == ("entity", CRITIC.id, CRITIC.path, why)
    assert hit.text.startswith(f"Inner Critic: {shown}") and len(hit.text) < 260
    assert "text" not in given or "fears the lighthouse" in hit.text
    assert recall(database, asked, Within("scout")) == []


def test_entities_stand_beside_what_else_answers_and_are_told_nobody_else(database):
    fill(database, judged(session(session_id="s-1", body="# Shame\n\nThe critic fears shame.\n")))
    before = recall(database, "critic shame", Within("default"))
    put(database, CRITIC)
    hits = recall(database, "critic shame", Within("default"))
    assert [hit.id for hit in hits if hit.tier != "entity"] == [hit.id for hit in before]
    assert [hit.id for hit in hits if hit.tier == "entity"] == [CRITIC.id]
    assert CRITIC.id not in [hit.id for hit in recall(database, "critic shame", Within("default", shared=True))]
