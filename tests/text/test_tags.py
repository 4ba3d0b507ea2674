"""Concept tags: what a text is about by fixed rules, where we part from the original, and how `recall` uses them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import NOW, Vault

from signet_sync.recall.query import read
from signet_sync.text.index_words import STOP_WORDS
from signet_sync.text.memory import LONGEST, LONGEST_TAG, MOST_CONCEPTS, derive_tags, normalize_tag

ANY_TEXT = st.text(st.characters(codec=None), max_size=300)
# Pieces that come close to what the rules look for.
PIECES = """
    OpenAI s3 kv S3_ configuración 网络 备份 の ルーター 라우터 2026-04-22 12345 the md İ foo_bar src/main.rs ﷺ ㏒ ½ ---
    // ＡＢＣ [REDACTED:api-key]
"""
LIKELY_TEXT = st.lists(st.sampled_from([*PIECES.split(), " ", "\n", "\u0301", "\ud800"]), max_size=40).map("".join)


# ── golden vectors (facts/nexo.md §5.5) ──


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("OpenAI quota monitoring endpoint", "openai quota monitoring endpoint"),
        ("We call OpenAI via GPT for backups", "backup backups gpt openai call via"),
        ("edit src/main.rs and config.yaml files", "src/main.rs config.yaml edit src main.rs"),
        ("router router router network network", "router network"),
        pytest.param("upload to S3 and kv store via QMD", "s3 kv qmd upload store via", id="corrected: short terms"),
        ("foo_bar baz-qux getUserName v1.2.3 2026-04-22 12345", "foo-bar baz-qux v1.2.3 baz qux getusername"),
        ("网络故障转移需要备份", "备份 故障转移 网络"), ("ネットワークのバックアップ", "バックアップ ネットワーク"),
        ("라우터 백업 설정", "라우터 백업 설정"),
        ("La configuración del router para el respaldo", "router configuración respaldo"),
        (
            "networking embeddings pre-commit /etc/nginx/nginx.conf https://example.com/a/b?c=d",
            "embedding embeddings network pre-commit etc/nginx/nginx.conf example.com/a/b networking pre",
        ),
        ("Wi-Fi 5G e-mail a@b.com 3.14 10:30", "wi-fi e-mail b.com 3.14 mail"),
        ("ＯｐｅｎＡＩ　ｇａｔｅｗａｙ", "gateway openai"),
        ("Luis lives in Bogota and prefers Spanish", "luis lives bogota prefers spanish"),
        ("a" * 33 + " " + "b" * 32, "b" * 32),
    ],
)  # fmt: skip
def test_golden_vectors(text: str, tags: str) -> None:
    assert derive_tags(text) == tuple(tags.split())


# ── corrections: what the original does otherwise (docs/internals/conformance.md) ──


@pytest.mark.parametrize(
    ("token", "tag"),
    [("가나다라마바사아자차카타", True), ("장" * 32, True), ("장" * 33, False), ("b" * 32, True), ("b" * 33, False)],
)
def test_correction_characters(token: str, tag: bool) -> None:
    assert normalize_tag(token) == (token if tag else None)
    assert (derive_tags(token) == (token,)) is tag


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("S3", "s3"), ("s3://backup-of-kv", "backup s3 kv backup-of-kv"), ("the s3_bucket", "s3 s3-bucket"),
        ("css3 mkv kvm ms365", "css3 mkv kvm ms365"), ("存到s3里，用kv缓存", "s3 kv"), ("ab S4 kx", ""),
    ],
)  # fmt: skip
def test_correction_short_terms(text: str, tags: str) -> None:
    assert derive_tags(text) == tuple(tags.split())


def test_correction_redactions() -> None:
    assert derive_tags("OpenAI takes [REDACTED:aws-access-key] here") == ("openai", "takes")
    assert derive_tags("[REDACTED:openai-token]") == ()


# ── conformance (facts/nexo.md §11, "Concept tags — unit") ──


# ── the rules hold for any text ──


@given(ANY_TEXT | LIKELY_TEXT)
def test_derive_any_text(text: str) -> None:
    tags = derive_tags(text)
    assert len(tags) <= MOST_CONCEPTS and len(set(tags)) == len(tags)
    for tag in tags:
        assert normalize_tag(tag) == tag and len(tag) <= LONGEST_TAG
        assert not any(map(str.isspace, tag))


def test_derive_reads_so_much_and_no_half_word() -> None:
    start = "12 " * (LONGEST // 3 - 2)
    assert derive_tags(start + "router") == ("router",)
    assert derive_tags(start + "quotations") == ()
    assert derive_tags("x1 " * LONGEST + "openai") == ()
    assert derive_tags(" " * LONGEST + "openai") == ()


def test_correction_words_of_asking() -> None:
    for word in STOP_WORDS:
        assert normalize_tag(word) is None
    assert derive_tags("what she told them about the lighthouse") == ("told", "lighthouse")


# ── queries ──


@pytest.mark.parametrize(("word", "found"), [
    ("networking", {"network"}), ("chatgpt", {"gpt"}), ("OpenAIGateway", {"openai", "gateway"}),
    ("reconfiguración", {"configuracion"}), ("ｃｈａｔｇｐｔ", {"gpt"}),
])  # fmt: skip
def test_a_word_finds_the_concepts_in_it(word: str, found: set[str]) -> None:
    (term,) = read(word).terms
    assert found <= {*term.forms[1:]}


@pytest.mark.parametrize(("word", "akin"), [
    ("openai-gateway", {"openai", "gateway"}), ("s3-bucket", {"s3", "bucket"}), ("src/main.rs", {"main"}),
    ("pre-commit", {"commit"}),
])  # fmt: skip
def test_a_compound_finds_its_parts_and_concepts_for_less(word: str, akin: set[str]) -> None:
    whole, *parts = read(word).terms
    assert akin <= {*whole.forms[1:]}.union(*(part.forms for part in parts))
    assert all(part.worth < whole.worth == 1 for part in parts)


def test_a_concept_is_no_other_form_of_itself() -> None:
    for word in ("openai", "OpenAI", "gateway", "s3", "css3", "mkv"):
        (term,) = read(word).terms
        assert len(set(term.forms)) == len(term.forms) and "kv" not in term.forms


# ── the store (facts/nexo.md §11, "Concept tags — store") ──


def remember(vault: Vault, text: str) -> Any:
    answer = vault.call("remember", text, "--json", "--now", NOW)
    assert answer.code == 0, answer
    return answer.json


def recalled(vault: Vault, query: str) -> list[str]:
    answer = vault.call("recall", query, "--json")
    assert answer.code == 0, answer
    return [hit["text"] for hit in answer.json["hits"]]


def test_remember_populates_tags_and_recall_expands_by_them(vault: Vault) -> None:
    """`remember_populates_concept_tags`, `max_concept_tags_honored`, `recall_expands_query_via_glossary_tag`,
    `recall_with_tags_matches_via_expansion`."""
    text = "OpenAI bills by the token"
    assert "openai" in remember(vault, text)["concept_tags"]
    words = " ".join(f"word{letter}" for letter in "abcdefghijkl")
    assert len(remember(vault, words)["concept_tags"]) == MOST_CONCEPTS
    assert recalled(vault, "openai rate limits") == recalled(vault, "unrelated zeppelins openailike") == [text]
