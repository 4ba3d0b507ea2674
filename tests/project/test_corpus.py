"""The benchmarks' made-up workspace is the same for a seed, and every file of it is in the written form."""

import re

import pytest
from workbench import Vault

from benchmarks import corpus

SESSIONS = 20


@pytest.fixture
def written(tmp_path):
    vault = Vault(tmp_path / "vault")
    return vault, corpus.write_corpus(vault.root, SESSIONS, per_day=4)


def test_every_file_is_valid_and_every_sentence_passes(written):
    vault, sessions = written
    assert {f"memory/{path.name}" for path in vault.memory.iterdir()} == {
        path for session in sessions for path in session["paths"].values()
    }
    document = vault.reindex()
    assert document["counts"]["indexed"] == 3 * SESSIONS and document["problems"] == []
    assert [note for note in document["notes"] if note["code"] != "secret-suspected"] == []
    assert {session["agent_id"] for session in sessions} > {"default", "builder"}


def test_equal_arguments_write_equal_bytes_and_another_seed_others(written, tmp_path):
    vault, sessions = written
    assert corpus.write_corpus(tmp_path / "again", SESSIONS, per_day=4) == sessions
    for session in sessions:
        for path in session["paths"].values():
            assert (tmp_path / "again" / path).read_bytes() == (vault / path).read_bytes()
    other = corpus.write_corpus(tmp_path / "other", SESSIONS, per_day=4, seed=2)
    assert {one["token"] for one in other}.isdisjoint(one["token"] for one in sessions)
    with pytest.raises(FileExistsError):
        corpus.write_corpus(vault.root, 1)


def test_some_sessions_speak_chinese_japanese_or_korean_and_one_is_found_by_its_word():
    made = corpus.Corpus(agents=1, seed=1)
    texts = ["".join(made.compose(n, ended_ms=1_774_785_600_000)[1].values()) for n in range(150)]
    foreign = [text for text in texts if re.search("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]", text)]
    assert 1 <= len(foreign) <= 15
    session, files = made.compose(7, ended_ms=1_774_785_600_000, word="zyxcorpus")
    assert files[session["paths"]["summary"]].count("zyxcorpus") == 2
