"""A text stands once, in the bytes of a seal or in its row; whoever reads it, and full text, sees no difference."""

from __future__ import annotations

import json
from pathlib import Path

import artifacts_fixture as made
import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import Vault, numbered

from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import artifacts, texts

SECRET = "ghp_" + "Zq7xK2mV9pL4tR8wY1nB6cD3fG5hJ0sA2uE4"
LEFT_TO_SEALS = "select source_path from memory_artifacts where content is null order by 1"


def words(database: Database) -> set[str]:
    """Every word that full text holds."""
    held: set[str] = set()
    for table in ("said", "printed"):
        database.execute(f"create virtual table if not exists temp.{table}_terms using fts5vocab(main, {table}, 'row')")
        held |= {word for (word,) in database.execute(f"select term from temp.{table}_terms")}
    return held


def stored_texts(database: Database) -> dict[str, str]:
    return dict(database.execute(f"select source_path, {texts.text_of()} from memory_artifacts"))


def is_whole(database: Database) -> None:
    """Every text can be had, and full text holds its words and no others."""
    assert database.problems() == [] and texts.is_in_step(database)
    before = words(database)
    with database.transaction():
        texts.rebuild(database, artifacts.read_every_row(database))
    assert words(database) == before


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    """Two sessions, indexed, of which one has a secret in its transcript."""
    found = Vault(tmp_path / "vault")
    found.session(1)
    found.session(2)
    found.put(made.transcript(**numbered(3) | {"body": f"## User\n\nThe token is {SECRET}, number3x.\n"}))
    found.put(made.manifest(**{k: v for k, v in numbered(3).items() if k != "body"}))
    assert found.reindex()["problems"] == []
    return found


# ── what is read is what was there ──

KNOTTY = st.text(
    alphabet=st.one_of(st.sampled_from("a \t\n\r-#备份サーバé\u2028\x85\ufeff🔦"), st.characters(codec="utf-8")),
    max_size=200,
)
SAID = st.lists(
    st.one_of(KNOTTY, st.sampled_from([SECRET, "---", "备份 lamp", "key: value", "a \r\n\r\n"])), max_size=6
)


@given(st.lists(SAID, min_size=1, max_size=3), st.booleans())
def test_a_row_gives_the_text_that_its_file_gave_whether_it_stands_there_or_in_the_seal(
    said: list[list[str]], bytes_go: bool
) -> None:
    files: dict[str, bytes] = {}
    for number, parts in enumerate(said):
        name, raw = made.transcript(session_id=f"s{number}", body="\n".join(parts).replace("\0", ""))
        files[name] = raw
    judged = [one for one in made.judged(files) if one.row is not None]
    sealed, plain = Database(":memory:"), Database(":memory:")
    made.fill(sealed, judged)
    with plain.transaction():
        artifacts.insert_rows(plain, judged, 1)
    if bytes_go:
        texts.keep(sealed, [one.path for one in judged])
        sealed.execute("update seals set packed = null")
        assert not list(sealed.execute(LEFT_TO_SEALS))
    rows = {one.path: one.row for one in judged}
    assert artifacts.rows_by_path(sealed, list(rows)) == rows == artifacts.rows_by_path(plain, list(rows))
    assert all(texts.text_at(sealed, path) == row.content for path, row in rows.items() if row is not None)
    assert words(sealed) == words(plain)
    is_whole(sealed)
    with sealed.transaction():
        artifacts.delete_rows(sealed, list(rows))
    assert words(sealed) == set() and sealed.problems() == []
    sealed.close()
    plain.close()


def test_what_is_said_side_by_side_is_found_by_words_of_both_up_to_a_length() -> None:
    talk = f"Alpha.\n\n## User\n\nBeta.\n\n## Assistant\n\n{'gamma ' * 99}\n\n## User\n\nDelta.\n"
    sentence = "In lantern epsilon bounded the retry loop of src/queue.py so that it ends."
    database = Database(":memory:")
    made.fill(
        database,
        made.judged(dict([made.transcript(body=talk), made.summary(memory_sentence=sentence, body="Zeta.\n")])),
    )
    for pair, rows in {"alpha beta": 1, "beta gamma": 0, "gamma delta": 0, "epsilon zeta": 0}.items():
        assert database.value("select count(*) from said where said match ?", (pair,)) == rows, pair
    database.close()


def test_only_a_text_that_the_sanitizer_changed_and_a_manifest_stand_in_their_rows(vault: Vault) -> None:
    with vault.database() as database:
        left = {path for (path,) in database.execute(LEFT_TO_SEALS)}
        kept = {path for (path,) in database.execute("select source_path from memory_artifacts")} - left
        assert len(left) == 4 and {path.rpartition("--")[2] for path in kept} == {"manifest.md", "transcript.md"}
        assert not any(SECRET in text for text in stored_texts(database).values())
    assert vault.dump() == vault.dump_from_scratch()
    vault.reindex("--full")
    with vault.database() as database:
        assert {path for (path,) in database.execute(LEFT_TO_SEALS)} == left, "a rebuild finds the seals"


def test_a_file_that_returns_under_a_tombstone_leaves_neither_word_nor_seal(vault: Vault) -> None:
    """Its name carries another token than the tombstone's: only the verdict tells."""
    keyed = numbered(4) | {"session_key": "agent:main:main"}
    vault.put(made.session(**keyed))
    name, _ = broken = made.compaction(**keyed | {"content_sha256": "0" * 64})  # it is invalid, and has no row
    vault.put(broken)
    vault.reindex()
    stone = made.tombstone(token=made.token_for(session_id=keyed["session_id"]), session_ids=(keyed["session_id"],))
    vault.put(stone, "memory/tombstones")
    vault.reindex()
    assert not (vault.memory / name).exists()
    with vault.database(readonly=False) as database:
        assert not [word for word in words(database) if "number4" in word]
        is_whole(database)


# ── the bytes become others ──


def test_a_seal_that_is_written_anew_leaves_the_row_its_text_until_a_pass_has_looked(vault: Vault) -> None:
    path = vault.rows(LEFT_TO_SEALS)[0][0]
    with vault.database(readonly=False) as database:
        text, seal = texts.text_at(database, path), artifacts.seal_of(database, path)
        assert seal is not None
        with database.transaction():
            artifacts.store_seals(database, [seal._replace(packed=b"others", text_sha256="0" * 64)])
        assert texts.text_at(database, path) == text
        is_whole(database)


# ── passes and databases that break ──


@pytest.mark.parametrize("damage", ["packed = null", "packed = zeroblob(20)", None])
def test_a_text_that_cannot_be_had_is_told_and_the_next_pass_reads_the_file_again(
    vault: Vault, damage: str | None
) -> None:
    path, dump = next(path for path in vault.hits("number1x") if (path,) in vault.rows(LEFT_TO_SEALS)), vault.dump()
    with vault.database(readonly=False) as database:
        what = "delete from seals" if damage is None else f"update seals set {damage}"
        database.execute(f"{what} where path = ?", (path,))
    answer = vault.call("recall", "--words", "number1x", "--json")
    assert answer.code == 3 and answer.json["error"]["code"] == "database-corrupt"
    found = vault.call("doctor", "--json").json["findings"]
    assert any("damaged" in json.dumps(one) for one in found), found
    assert any("moved aside" in line for line in vault.reindex()["trouble"])
    assert path in vault.hits("number1x") and vault.dump() == dump
    with vault.database(readonly=False) as database:
        is_whole(database)
