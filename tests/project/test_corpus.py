"""The benchmarks' made-up workspace is the same for a seed, and every file of it is in the written form."""

import base64
import hashlib
import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import frontmatter
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import corpus

WHO = ["agent_id", "session_id", "session_key", "project", "harness", "captured_at", "started_at", "ended_at"]
HASH = ["content_sha256", "hash_scope"]
SENTENCE = [f"memory_sentence{part}" for part in ("", "_version", "_quality", "_generated_at")]
LINKS = ["summary_path", "transcript_path", "compaction_path", "memory_md_refs", "updated_at", "revision"]
CONTENT = ["kind", *WHO, "manifest_path", "source_node_id", *HASH, *SENTENCE]
MANIFEST = ["kind", *WHO, *LINKS, *HASH]
KEYS = {"summary": CONTENT, "transcript": [*CONTENT, "sanitizer_version"], "manifest": MANIFEST}
VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors" / "signet.json"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    root = tmp_path_factory.mktemp("corpus")
    return root, corpus.write_corpus(root, 20, per_day=4)


def documents(root, sessions):
    for session in sessions:
        for kind, path in session["paths"].items():
            raw = (root / path).read_bytes()
            head, _, body = raw.decode().removeprefix("---\n").partition("\n---\n")
            yield session, kind, path, head.split("\n"), body


def test_the_folder_holds_three_files_a_session_and_nothing_else(written):
    root, sessions = written
    listed = {path for session in sessions for path in session["paths"].values()}
    assert len(listed) == 60
    assert {f"memory/{name}" for name in os.listdir(root / "memory")} == listed


def test_equal_arguments_write_equal_bytes_and_another_seed_others(written, tmp_path):
    root, sessions = written
    assert corpus.write_corpus(tmp_path / "again", 20, per_day=4) == sessions
    for session in sessions:
        for path in session["paths"].values():
            assert (tmp_path / "again" / path).read_bytes() == (root / path).read_bytes()
    other = corpus.write_corpus(tmp_path / "other", 20, per_day=4, seed=2)
    assert {one["token"] for one in other}.isdisjoint(one["token"] for one in sessions)


def test_a_small_corpus_opens_a_large_one(written, tmp_path):
    _, sessions = written
    assert corpus.write_corpus(tmp_path, 5, per_day=4) == sessions[:5]


def test_file_names_follow_from_capture_token_and_kind(written):
    root, sessions = written
    for session, kind, path, _, _ in documents(root, sessions):
        identity = session["session_key"] or session["session_id"]
        digest = hashlib.sha256(f"{session['agent_id']}:{identity}".encode()).digest()
        token = base64.b32encode(digest).decode().lower()[:16]
        assert session["token"] == token
        assert path == f"memory/{session['captured_at'].replace(':', '-')}--{token}--{kind}.md"
        assert re.fullmatch(r"memory/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z--[a-z2-7]{16}--\w+\.md", path)


def test_body_hashes_hold_and_bodies_are_written_normalized(written):
    root, sessions = written
    for _, _, path, head, body in documents(root, sessions):
        assert body.endswith("\n") and not body.endswith("\n\n"), path
        assert not re.search(r"[ \t]\n|\r", body), path
        declared = next(line for line in head if line.startswith("content_sha256: "))
        assert declared == f'content_sha256: "{hashlib.sha256(body[:-1].encode()).hexdigest()}"'
        assert 'hash_scope: "body-normalized-v1"' in head


def test_heads_are_one_json_scalar_a_line_in_the_order_of_the_models(written):
    root, sessions = written
    for session, kind, _, head, _ in documents(root, sessions):
        fields = dict(line.split(":", 1) for line in head)
        assert list(fields) == KEYS[kind]
        assert fields.pop("memory_md_refs", "") == ""
        values = {key: json.loads(value) for key, value in fields.items()}
        assert values["kind"] == kind
        for name in ("agent_id", "session_id", "session_key", "project", "captured_at", "ended_at"):
            assert values[name] == session[name], name
        if kind == "manifest":
            assert values["revision"] == 1
            assert values["summary_path"] == session["paths"]["summary"]
            assert values["transcript_path"] == session["paths"]["transcript"]
        else:
            assert values["manifest_path"] == session["paths"]["manifest"]
            assert values["memory_sentence"] == session["sentence"]


def test_python_frontmatter_reads_the_same_fields(written):
    root, sessions = written
    for session, kind, path, _, _ in documents(root, sessions):
        meta, _ = frontmatter.parse((root / path).read_text())
        assert set(meta) == set(KEYS[kind])
        assert meta["session_id"] == session["session_id"]
        assert meta["captured_at"] == session["captured_at"]


def test_sentences_pass_the_gate(written):
    _, sessions = written
    for session in sessions:
        sentence = session["sentence"]
        assert 12 <= len(sentence.split()) <= 48
        assert sentence.endswith(".") and not re.search(r"[.!?]\s", sentence)
        assert os.path.basename(session["project"]) in sentence


def test_sessions_end_evenly_before_the_end_and_are_captured_afterwards(tmp_path):
    sessions = corpus.write_corpus(tmp_path, 30, per_day=10, end="2026-03-29T12:00:00.000Z")
    end = datetime(2026, 3, 29, 12, tzinfo=UTC)
    captured = [datetime.fromisoformat(one["captured_at"]) for one in sessions]
    assert captured == sorted(captured, reverse=True) and captured[0] <= end
    for day in range(3):
        assert sum(end - timedelta(day + 1) <= at <= end - timedelta(day) for at in captured) == 10
    for session, at in zip(sessions, captured, strict=True):
        ended = datetime.fromisoformat(session["ended_at"] or session["captured_at"])
        assert timedelta(0) <= at - ended <= timedelta(seconds=2)


def test_agents_share_the_sessions_and_one_is_the_default(tmp_path):
    two = corpus.write_corpus(tmp_path / "two", 4, agents=2)
    assert [one["agent_id"] for one in two] == ["default", "builder", "default", "builder"]
    one = corpus.write_corpus(tmp_path / "one", 3, agents=1)
    assert {session["agent_id"] for session in one} == {"default"}


def test_a_folder_that_holds_anything_is_left_alone(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "note.md").write_text("mine")
    with pytest.raises(FileExistsError):
        corpus.write_corpus(tmp_path, 1)
    assert os.listdir(tmp_path / "memory") == ["note.md"]


def test_some_sessions_speak_chinese_japanese_or_korean():
    made = corpus.Corpus(agents=1, seed=1)
    texts = ["".join(made.compose(n, ended_ms=1_774_785_600_000)[1].values()) for n in range(150)]
    foreign = [text for text in texts if re.search("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]", text)]
    assert 1 <= len(foreign) <= 15


def test_a_named_session_is_found_by_its_word():
    made = corpus.Corpus(agents=1, seed=1)
    session, files = made.compose(7, ended_ms=1_774_785_600_000, word="zyxcorpus")
    assert session["sentence"].endswith(", known as zyxcorpus.")
    assert files[session["paths"]["summary"]].count("zyxcorpus") == 2


@given(st.text())
def test_any_text_survives_as_one_line_of_a_head(text):
    line = corpus.document({"key": text}, "").split("\n")[1]
    assert json.loads(line.removeprefix("key: ")) == text
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]", line)


def test_tokens_and_bodies_agree_with_recorded_ones():
    if not VECTORS.exists():
        pytest.skip("recorded vectors are not here")
    vectors = json.loads(VECTORS.read_text())
    for one in vectors["token"]:
        made = corpus.token(one["agent_id"], one["session_key"], one["session_id"] or "")
        assert made == one["token_session_key_rule"], one
    for one in vectors["body"]:
        assert corpus.normalized(one["input"]) == one["normalized"], one["name"]
        if one["input"].encode(errors="ignore").decode() == one["input"]:  # no file holds half a surrogate pair
            assert corpus.body_hash(one["input"]) == one["sha256"], one["name"]
