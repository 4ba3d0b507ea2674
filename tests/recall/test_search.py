"""Search takes any input, finds words of every script, and never crosses agents."""

from __future__ import annotations

import pytest
from artifacts_fixture import compaction, fill, judged, manifest, summary, transcript
from hostile_queries import HOSTILE
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.errors import UsageError
from signet_sync.formats.timestamps import parse_instant
from signet_sync.recall.snippets import SNIPPET, snippet
from signet_sync.recall.store.search import match_expression, search
from signet_sync.storage.database.connection import Database
from signet_sync.text.cjk import indexed, spaced

FILLER = "The keeper trimmed the wick and wrote the hour into the book of the tower. "
BODIES = {
    "plain": "The migration of the ledger was rolled back after the smoke test.",
    "twice": "ledger ledger ledger " * 20,
    "far": FILLER * 30 + "Then the heliograph broke." + FILLER * 30,
    "code": "Look at src/main.rs where getUserName calls read_user_row(id) in v1.2.3, see lantern-core and x=1.",
    "accents": "Das Café an der Straße führt naïve Gäste; Ελληνικά και русские слова тоже.",
    "chinese": "今天我们完成了数据库备份的设计,并且讨论了灯塔项目的下一步计划。",
    "japanese": "昨日、データベースのバックアップを設計しました。サーバーの設定も直した。",
    "korean": "오늘 네트워크를 점검했고 데이터베이스에서 오류를 고쳤습니다.",
    "mixed": "部署到Kubernetes集群之后,latency降到40ms。",
    "controls": "first line\n\n\tsecond\u2028line\u200b with \u00a0 odd blanks and a lodestone\nthird",
}


@pytest.fixture(scope="module")
def database():
    made = Database(":memory:")
    files = {}
    for number, (name, body) in enumerate(BODIES.items()):
        day = f"2026-03-{number + 1:02d}T10:00:00.000Z"
        files.update([summary(session_id=f"s-{name}", captured_at=day, body=body)])
    who = {"session_id": "s-kinds", "captured_at": "2026-03-20T10:00:00.000Z"}
    body = "Every kind of artifact speaks of the astrolabe."
    files.update([f(body=body, **who) for f in (summary, transcript, compaction, manifest)])
    files.update([summary(agent_id="other", session_id="s-other", body="Their ledger, their secret orrery.")])
    fill(made, judged(files))
    assert made.value("select count(*) from files where verdict <> 'indexed'") == 0
    yield made
    made.close()


def found(database, query, **how):
    return {hit.path for hit in search(database, query, agent_id="default", limit=100, **how)}


def path_of(name):
    number = list(BODIES).index(name)
    return f"memory/{summary(session_id=f's-{name}', captured_at=f'2026-03-{number + 1:02d}T10:00:00.000Z')[0]}"


@pytest.mark.parametrize(("query", "name"), [
    ("heliograph", "far"), ("HELIOGRAPH broke", "far"), ("smoke test ledger", "plain"), ("src/main.rs", "code"),
    ("main.rs", "code"), ("getUserName", "code"), ("getusername", "code"), ("read_user_row", "code"),
    ("read_user_row(id)", "code"), ("lantern-core", "code"), ("v1.2.3", "code"), ("x=1", "code"), ("cafe", "accents"),
    ("café", "accents"), ("Gaste", "accents"), ("ελληνικά", "accents"), ("русские слова", "accents"),
    ("数据库", "chinese"), ("备份", "chinese"), ("备", "chinese"), ("灯塔项目", "chinese"),
    ("データベース", "japanese"), ("ベース", "japanese"), ("サーバー", "japanese"), ("ー", "japanese"),
    ("バックアップ 設定", "japanese"), ("네트워크", "korean"), ("데이터베이스", "korean"), ("Kubernetes", "mixed"),
    ("Kubernetes集群", "mixed"), ("latency 40ms", "mixed"),
])  # fmt: skip
def test_words_are_found_as_people_write_them(database, query, name):
    assert path_of(name) in found(database, query)


@pytest.mark.parametrize("query", ["数备", "スーデ", "워네", "main/src", "user_read_row", "rs.main"])
def test_the_order_of_the_parts_of_a_word_counts(database, query):
    assert found(database, query) == set()


def test_a_name_in_humps_finds_its_words_apart(database):
    other = Database(":memory:")
    fill(other, judged(dict([summary(body="How to get user name and host.")])))
    assert len(search(other, "getUserName", agent_id="default")) == 1
    assert len(search(other, "HTTPServer", agent_id="default")) == 0
    other.close()


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE.keys())
def test_any_query_is_answered(database, query):
    for hit in search(database, query, agent_id="default"):
        assert hit.agent_id == "default" and hit.snippet
    try:
        search(database, query, agent_id="default", raw=True)
    except UsageError as error:
        assert error.exit_code == 2 and error.hint


@given(st.text(st.characters(codec=None), max_size=60) | st.text('"()*^:+-{} ANDORNEAR,备a', max_size=40))
def test_no_text_raises(database, query):
    for raw in (False, True):
        try:
            hits = search(database, query, agent_id="default", raw=raw)
        except UsageError:
            assert raw
        else:
            assert all(hit.snippet.isprintable() for hit in hits)


def test_the_number_of_terms_is_bounded():
    assert match_expression(" ".join(f"t{n}" for n in range(500))).count('"') == 2 * 64
    assert match_expression("! ? …") is None and match_expression("") is None
    assert match_expression('say "hello"') == '"say" AND """hello"""'


@pytest.mark.parametrize("query", ['"open', "NEAR(", "heliograph AND", "nothing: x", "*", "^", "a + +", ")", "\ud800("])
def test_wrong_raw_syntax_is_a_usage_error(database, query):
    with pytest.raises(UsageError, match="FTS5") as caught:
        search(database, query, agent_id="default", raw=True)
    assert "--raw" in caught.value.hint


def test_raw_syntax_is_fts5s_own(database):
    assert found(database, "heliogr* NOT lodestone", raw=True) == {path_of("far")}
    assert found(database, "memory_sentence: heliograph", raw=True) == set()
    assert found(database, "NEAR(rolled smoke, 5)", raw=True) == {path_of("plain")}


# ── scope and filters ──


def test_no_search_crosses_agents(database):
    assert found(database, "orrery") == set()
    theirs = search(database, "ledger orrery", agent_id="other", limit=100)
    assert {hit.agent_id for hit in theirs} == {"other"} and len(theirs) == 1
    assert search(database, "ledger", agent_id="nobody") == []
    for query in ("ledger", "ledger OR orrery", "the"):
        assert {h.agent_id for h in search(database, query, agent_id="default", raw=True, limit=1000)} <= {"default"}


@pytest.mark.parametrize("kind", ["summary", "transcript", "compaction", "manifest"])
def test_a_kind_narrows(database, kind):
    assert [hit.kind for hit in search(database, "astrolabe", agent_id="default", kind=kind)] == [kind]


def test_since_narrows_by_the_time_of_the_session_and_includes_its_instant(database):
    instant = parse_instant("2026-03-03T10:00:00.000Z")
    assert found(database, "heliograph", since_us=instant) == {path_of("far")}
    assert found(database, "heliograph", since_us=instant + 1) == set()


@pytest.mark.parametrize(("limit", "count"), [(1, 1), (2, 2), (0, 1), (-5, 1), (10_000_000, 11)])
def test_a_limit_is_held(database, limit, count):
    # The word of the common sentence, which every summary of the agent but the manifest has.
    hits = search(database, "broker", agent_id="default", kind="summary", limit=limit)
    assert len(hits) == count


def test_any_word_counts_where_not_all_are_found(database):
    assert found(database, "heliograph zzzunknown") == {path_of("far")}
    assert found(database, "heliograph smoke") == {path_of("far"), path_of("plain")}


def test_better_hits_score_higher_and_come_first(database):
    hits = search(database, "ledger", agent_id="default")
    assert [hit.path for hit in hits] == [path_of("twice"), path_of("plain")]
    assert hits[0].score > hits[1].score > 0
    assert len({hit.score for hit in hits}) == 2


def test_a_hit_tells_what_it_is(database):
    hit = search(database, "heliograph", agent_id="default")[0]
    assert hit.kind == "summary" and hit.session_key is None and hit.ended_at == "2026-03-03T10:00:00.000Z"
    assert hit.session_token == path_of("far").split("--")[1]


# ── snippets ──


@pytest.mark.parametrize(("query", "word"), [
    ("heliograph", "heliograph"),
    ("the heliograph", "heliograph"),
    ("HELIOGRAPH", "heliograph"), ('"heliograph"', "heliograph"), ("getUserName", "getUserName"), ("cafe", "Café"),
    ("备份", "备份"), ("サーバー", "サーバー"), ("네트워크", "네트워크를"), ("lodestone", "lodestone"),
    ("broker", "broker"),
])  # fmt: skip
def test_a_snippet_is_one_printable_line_with_the_word(database, query, word):
    hit = search(database, query, agent_id="default")[0]
    assert word in hit.snippet
    assert hit.snippet.isprintable() and hit.snippet == " ".join(hit.snippet.split(" "))
    assert len(hit.snippet) <= SNIPPET + 2


def test_a_snippet_prefers_the_place_where_the_words_stand_together():
    text = "start of it. " + "filler " * 100 + "the art of the lantern stands here. " + "more " * 100
    assert "art of the lantern" in snippet(text, "", "art lantern")
    assert "art of the" in snippet(text, "", "art")
    assert snippet(text, "", "absent").startswith("start of it")
    assert snippet("", "Only a sentence.", "absent") == "Only a sentence."
    assert snippet("text", "The sentence holds it.", "holds") == "The sentence holds it."
    assert snippet("", "", "x") == ""


@given(st.text(max_size=400), st.text(max_size=40), st.text(max_size=40))
def test_any_snippet_is_one_printable_line(content, sentence, query):
    made = snippet(content, sentence, query)
    assert made.isprintable() and len(made) <= SNIPPET + 2


# ── segments ──


def test_only_text_that_needs_it_is_spaced():
    for text in ("plain ascii", "Café Ελληνικά русский", ""):
        assert indexed(text) is None and spaced(text) is text
    assert spaced("a备份b") == "a 备 份 b"
    assert spaced("サーバー").split() == ["サ", "ー", "バ", "ー"]
    assert indexed("데이터") == " 데 이 터 "


@given(st.text())
def test_spacing_adds_blanks_and_nothing_else(text):
    assert spaced(text).replace(" ", "") == text.replace(" ", "")
