"""`recall` answers by what was said, names who said it, takes any input and never crosses agents."""

from __future__ import annotations

import json
from itertools import pairwise

import artifacts_fixture as made
import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import Vault, cast

from signet_sync.app.workspace import open_to_write
from signet_sync.pages.prompt_context import choose_hits
from signet_sync.recall.operations import is_question, recall
from signet_sync.recall.query import MOST_TERMS, date_words, read
from signet_sync.recall.search import WeighedTerms, search, weigh
from signet_sync.recall.store.rows import Within
from signet_sync.recall.store.session_list import files_with
from signet_sync.settings.model import Settings
from signet_sync.storage.database.connection import Database
from signet_sync.text.passages import LONGEST, asks_only_memory, passages

ANY_TEXT = st.text(st.characters(codec=None), max_size=200)


def phrases(text):
    return [term.forms[0] for term in read(text).terms]


# --- what is asked for ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "terms"), [
    ("What did we decide about the retry loop?", ["decide", "retry", "loop"]),
    ("what's wrong in #884", ["wrong", "884"]),
    ("the who", ["the", "who"]),
    ("src/queue.py and lantern-core", ["src queue py", "lantern core", "src", "queue", "py", "lantern", "core"]),
    ("getUserName", ["getusername"]),
    ("Café", ["cafe"]),
    ("retry retry RETRY", ["retry"]),
    ("备份", ["备份"]),
    ("灯塔项目", ["灯塔", "塔项", "项目"]),
    ("バックアップの確認", ["バッ", "ック", "クア", "アッ", "ップ", "プの", "の確", "確認"]),
    ('"quoted" AND NEAR(x, 2) * -', ["quoted", "near x", "2", "near", "x"]),
    ("! ? …", []), ("", []), ("\0\ud800", []),
])  # fmt: skip
def test_a_query_is_its_telling_words(text, terms):
    assert phrases(text) == terms


def test_of_a_long_text_the_names_and_the_long_words_are_kept():
    text = " ".join([*(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(200)), "src/queue.py", "a1"])
    kept = phrases(text)
    assert len(kept) == MOST_TERMS
    assert {"src queue py", "a1"} <= set(kept)


@given(ANY_TEXT)
def test_any_text_is_a_question(text):
    query = read(text)
    assert len(query.terms) <= MOST_TERMS
    assert {term.word for term in query.terms} == set(range(query.words))
    for term in query.terms:
        assert not any(mark in form for form in (*term.forms, term.prefix) for mark in '"*^:()\0')


@pytest.mark.parametrize(("asked", "named"), [
    ("what did we do in May 2023?", [("may", "month", (5,)), ("2023", "year", (2023,))]),
    ("we may use the cache", []),
    ("on July 12th or last spring", [("july", "month", (7,)), ("12th", "day", (12,)), ("spring", "month", (3, 4, 5))]),
    ("port 2050 and 12 retries on Monday", [("2050", "year", (2050,)), ("monday", "weekday", (0,))]),
])  # fmt: skip
def test_dates_that_a_question_names(asked, named):
    assert [tuple(one) for one in date_words(asked)] == named


@pytest.mark.parametrize(("text", "asks"), [
    ("who reviews the parser?", True),
    ("What colour are widgets, and who reviews the parser?\nAnd why?", True), ("パーサーは誰が見ますか", True),
    ("Mona reviews the parser.", False), ("The widgets are mine. Who reviews the parser?", False),
    ("Is it so? Yes.", False),
])  # fmt: skip
def test_a_question_says_nothing(text, asks):
    assert is_question(text) == asks


# --- what was said --------------------------------------------------------------------------------------------------

TALK = """Before all.

## User · 2026-03-28T10:00:00Z

How big is the sluice?

- `Read` · 2026-03-28T10:00:01Z · `sluice.md`

  The sluice is nine fathoms wide.

## Assistant · 2026-03-28T10:00:02Z

Nine fathoms.

- `mcp__signet-sync__memory_recall` · 2026-03-28T10:00:03Z · `{"query": "old weir"}`

  result of signet-sync left out
"""


def test_passages_are_what_was_said_and_behind_them_what_tools_printed():
    found = [(one.voice, one.turn, TALK[one.start : one.end].strip()) for one in passages(TALK, "transcript")]
    assert found == [
        ("text", -1, "Before all."),
        ("person", 0, "How big is the sluice?"),
        ("agent", 2, "Nine fathoms."),
        ("tool", 1, "· `sluice.md`\n\n  The sluice is nine fathoms wide."),
    ]


@given(st.text(st.characters(codec="utf-8"), max_size=1200), st.sampled_from(["summary", "transcript"]))
def test_passages_cover_every_word_and_are_short(text, kind):
    found = [one for one in passages(text, kind) if one.voice != "tool"]
    assert all(0 < one.end - one.start <= LONGEST for one in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    if kind == "summary":
        said = "".join(text[one.start : one.end] for one in found)
        assert sorted(filter(str.isalnum, text)) == sorted(filter(str.isalnum, said))


LOOK_UP = "\n\n".join([
    "## User · 2026-03-28T10:00:00Z", "What did we decide about rounding?",
    "- `mcp__signet-sync__memory_recall` · 2026-03-28T10:00:03Z · `{}`", "  result of signet-sync left out",
    "## Assistant · 2026-03-28T10:00:05Z", "Rounding is half to even.\n",
])  # fmt: skip


def test_a_session_that_only_asks_memory_is_no_memory(tmp_path):
    vault = Vault(tmp_path / "vault")
    asked = "What did we decide about rounding?"
    assert asks_only_memory(LOOK_UP) and not asks_only_memory(TALK)
    assert not asks_only_memory(LOOK_UP.replace(asked, "From now on round half to even."))
    given = {"session_id": "looks", "transcript": LOOK_UP, "captured_at": "2026-03-28T10:00:00.000Z"}
    (tmp_path / "ended.json").write_text(json.dumps(given))
    assert vault.call("session", "end", "--input", tmp_path / "ended.json").code == 0
    assert hits(vault, "decide rounding") == [] and "rounding" not in (vault / "MEMORY.md").read_text()
    decided = "We round half to even, for the ledger."
    vault.put(made.summary(session_id="ledger", captured_at="2026-03-02T10:00:00.000Z", body=decided))
    vault.reindex()
    assert [hit["text"] for hit in hits(vault, asked)] == [decided]


# --- a workspace ----------------------------------------------------------------------------------------------------

LANTERN, HARBOR = "/home/ada/code/lantern", "/srv/harbor-api"


def talk(*turns):
    return "\n\n".join(f"{'User' if place % 2 == 0 else 'Assistant'}: {words}" for place, words in enumerate(turns))


# Name, kind, day, project, sentence, body.
STORY = [
    ("loop", "summary", "2026-03-02", LANTERN,
     "Bounded the retry loop of src/queue.py in lantern, so that a dead broker no longer blocks the start (#884).",
     "# Retry loop\n\nThe loop gave up never; now after five attempts.\n\n## Decisions\n\n"
     "- Retries are capped at five, with a jitter of 200 ms.\n- Database: SQLite, because nobody runs a server.\n"),
    ("loop", "transcript", "2026-03-02", LANTERN, "The talk about the retry loop of src/queue.py in lantern.",
     talk("why does the start hang?", "The broker is dead and the retry loop of src/queue.py never ends.",
     "try the marmalade build too", "The marmalade build fails in the same way.")),
    ("tides", "summary", "2026-03-05", HARBOR,
     "Imported the tide tables of 41 stations into harbor-api and found three gauges without a surveyed zero (#12).",
     "# Tide tables\n\nAll stations were imported.\n\n## Blockers\n\n- Gauge HRB-07 has no surveyed zero.\n\n"
     "## Next\n\n- [ ] Ask the hydrographic office for the missing zeros.\n"),
    ("heartbeat", "compaction", "2026-03-09", LANTERN,
     "Compacted the work on the heartbeat of lantern, which src/pulse.py now sends every ten seconds by a timer.",
     "The heartbeat was measured before and after it moved out of the queue into src/pulse.py.\n"),
    ("horn", "transcript", "2026-03-11", HARBOR, "The talk about the fog horn of harbor-api and its calibration.",
     talk("how loud is the fog horn FH-204?", "It was calibrated to 120 decibel at one mile.", "and who signed?",
     "Nobody yet; the protocol lies with Maren.")),
    ("lighthouse", "summary", "2026-03-14", LANTERN,
     "Translated the notes of lantern about its backup, kept in docs/backup.md, for the readers of three languages.",
     "今天我们完成了数据库备份的设计。\n\nデータベースのバックアップを確認した。\n\nПроверили журнал и окно.\n"),
    ("scratch", "summary", "2026-03-15", "/tmp/try",
     "Tried the pelican parser in a scratch folder of /tmp/try/run.py.",
     "The pelican parser reads a file in one go.\n"),
]  # fmt: skip
QUESTIONS = [
    ("What did we decide about retries?", "loop", "summary"),
    ("which database do we use, SQLite?", "loop", "summary"),
    ("Why did the start block (#884)?", "loop", "summary"),
    ("marmalade build failing", "loop", "transcript"),
    ("gauges without surveyed zeros", "tides", "summary"),
    ("measurements of the heartbeat after moving it", "heartbeat", "compaction"),
    ("calibration of FH-204", "horn", "transcript"),
    ("数据库备份设计", "lighthouse", "summary"),
    ("проверка журнала", "lighthouse", "summary"),
    ("pelican parsers", "scratch", "summary"),
]


def who(name, day, agent="default"):
    return {"agent_id": agent, "session_id": f"session-of-{name}", "captured_at": f"{day}T10:00:00.000Z"}


def path_of(name, kind, agent="default"):
    day = next(day for story, _, day, *_ in STORY if story == name)
    return made.path_for(kind, **who(name, day, agent))


def write(vault, agent="default", words=lambda text: text):
    for name, kind, day, project, sentence, body in STORY:
        identity = who(name, day, agent)
        told = {"project": project, "memory_sentence": words(sentence), "body": words(body)}
        vault.put(made.content(kind, **identity, **told))


@pytest.fixture(scope="module")
def mould(tmp_path_factory):
    def make(vault):
        write(vault)
        vault.reindex()

    return cast(tmp_path_factory.mktemp("recall"), make)


@pytest.fixture
def vault(mould, tmp_path):
    return mould(tmp_path)


def hits(vault, *words, **given):
    answer = vault.call("recall", "--json", "--agent", given.get("agent", "default"), *words)
    assert answer.code == 0, answer
    return answer.json["hits"]


def test_ten_questions_are_answered_at_the_top(vault):
    for ask, name, kind in QUESTIONS:
        found = hits(vault, ask)
        assert found and found[0]["path"] == path_of(name, kind), (ask, found)


def test_a_hit_names_speaker_day_file_and_turn_and_leads_on(vault):
    marmalade = hits(vault, "marmalade build")[0]
    assert list(marmalade) == "tier id text path score known speaker turn day why".split()
    assert (marmalade["tier"], marmalade["speaker"], marmalade["turn"]) == ("session", "User", 3)
    assert marmalade["why"] == "all words, in a transcript of lantern: User, 2026-03-02" and marmalade["known"]
    assert "Assistant: The marmalade build fails in the same way." in marmalade["text"]
    found = hits(vault, "what did we decide about retries")
    assert [hit["score"] for hit in found] == sorted((hit["score"] for hit in found), reverse=True)
    statement = next(hit for hit in found if hit["tier"] == "statement")
    assert statement["text"] == "Retries are capped at five, with a jitter of 200 ms."
    assert statement["why"].endswith("in a decision of lantern, 2026-03-02")
    for hit in (*found, marmalade):
        assert vault.call("expand", hit["id"]).code == 0


def test_a_statement_stands_before_the_session_that_it_comes_from(vault):
    found = hits(vault, "retries capped at five with jitter")
    of_loop = [hit["tier"] for hit in found if hit["path"] and "2026-03-02" in hit["path"]]
    assert of_loop[0] == "statement" and of_loop.count("session") == 1


OF_A_KIND = {
    "what blocks lantern": "Maren has the key of the gallery",
    "what is left to do": "Oil the trapdoor hinges",
    "what was decided": "Hemp rope replaces the chain",
}


def test_a_question_for_a_kind_is_answered_by_statements_of_it(vault):
    said = (
        "## Decisions\n\n- Hemp rope replaces the chain of the winch.\n\n## Open Blockers\n\n- Maren has the key of the"
    )
    said += " gallery, which nobody can open.\n\n## Next Steps\n\n- Oil the trapdoor hinges of the gallery.\n"
    vault.put(made.content("summary", **who("winch", "2026-03-16"), project=LANTERN, body=said))
    vault.reindex()
    for asked, answer in OF_A_KIND.items():
        assert hits(vault, asked)[0]["text"].startswith(answer), asked


def test_a_fork_and_what_it_goes_on_from_are_one_hit(vault):
    for name, minute, goes_on in (("first", "01", "Moor it at the mast."), ("fork", "02", "Or rather at the quay.")):
        body = talk("Why does the zeppelin leak at its seams when the sun has set?", goes_on)
        at = f"2026-03-03T10:{minute}:00.000Z"
        vault.put(made.transcript(session_id=name, captured_at=at, body=body))
    vault.reindex()
    (hit,) = hits(vault, "zeppelin leak seams")
    assert "Why does the zeppelin leak" in hit["text"]
    assert len(hits(vault, "moor mast quay")) == 2


def test_below_a_floor_there_is_no_answer_and_what_is_near_is_called_so(vault):
    assert hits(vault, "the owner of the pantograph schema") == []
    near = vault.call("recall", "marmalade", "pantograph", "owner")
    assert near.err.strip() == "the nearest there is:" and "marmalade" in near.out
    assert not any(hit["known"] for hit in hits(vault, "marmalade pantograph owner"))
    assert vault.call("recall", "marmalade", "build").err == ""


def test_beside_a_sure_answer_stands_only_what_scores_nearly_half_as_much(vault):
    said = "Why does the zeppelin leak at its seams after sunset in the harbour?", "The zeppelin is grey and sleeps."
    for minute, words in enumerate(said):
        body = talk(words, "So it is.")
        vault.put(made.transcript(session_id=f"z{minute}", captured_at=f"2026-03-03T10:0{minute}:00.000Z", body=body))
    vault.reindex()
    sure = hits(vault, "zeppelin leak seams sunset harbour")
    assert [hit["known"] for hit in sure] == [True] and len(hits(vault, "zeppelin")) == 2


def test_a_question_about_a_time_or_a_project_is_answered_from_it_alone(vault):
    early = vault.call("remember", "Lantern retries at dusk.", "--now", "2026-03-05T10:00:00Z", "--json").json["id"]
    late = vault.call(
        "remember", "Lantern retries at dawn.", "--private", "--now", "2026-04-05T10:00:00Z", "--json"
    ).json["id"]

    def found(*given):
        return {hit["path"][7:17] if hit["path"] else hit["id"] for hit in hits(vault, *given)}

    asked = ("lantern retries heartbeat gauges",)
    now = ("--now", "2026-04-12T00:00:00Z")
    assert found(*asked, "--limit", "50") >= {early, late, "2026-03-02", "2026-03-09"}
    assert found(*asked, "--until", "2026-03-05", "--limit", "50") == {early, "2026-03-02", "2026-03-05"}
    assert found(*asked, "--since", "2026-03-09", "--until", "2026-03-13") == {"2026-03-09"}
    assert found(*asked, "--since", "60d", "--until", "6w", *now) == set()
    for week in ("1w", "7d", "1 week ago", "7 days ago"):
        assert found(*asked, "--since", week, *now) == {late}, week
    for project, answers, more in (("harbor-api", {"2026-03-05"}, {"2026-03-11"}), ("nobody's", set(), set())):
        assert found(*asked, "--project", project) == answers
        files = vault.call("recall", "the", "--words", "--project", project, "--json").json["files"]
        assert {file["path"][7:17] for file in files} == answers | more
    wrong = vault.call("recall", "x", "--since", "lately")
    assert wrong.code == 2 and "2026-03-28" in wrong.err and "3w" in wrong.err


def test_a_session_is_found_by_its_date_though_no_word_of_it_says_so(vault):
    (first, *_) = hits(vault, "lantern on March 2")
    assert "2026-03-02" in first["why"]


def test_what_was_remembered_comes_first_and_a_private_one_is_shown_to_its_agent(vault):
    assert vault.call("remember", "Ada keeps the marmalade key under the mat", "--private").code == 0
    memory = hits(vault, "marmalade key")[0]
    assert (memory["tier"], memory["path"]) == ("memory", None)
    assert memory["why"].startswith("all words, in a remembered note, ")
    with vault.database() as database:
        assert recall(database, "marmalade key", Within("default", shared=True)) == []


def says(vault, *texts):
    for number, text in enumerate(texts):
        role = "user" if number % 2 == 0 else "assistant"
        turn = {"turn": number, "role": role, "text": text, "at": f"2026-03-28T10:00:0{number}Z"}
        answer = vault.call("transcript", "append", "--session-key", "k 1", given=json.dumps(turn).encode())
        assert answer.code == 0, answer


def test_a_running_session_is_found_as_soon_as_it_speaks(vault):
    says(vault, "the zeppelin leaks")
    (found,) = hits(vault, "zeppelins leaking")
    assert (found["tier"], found["id"], found["path"]) == ("session", "k 1#0", None)
    assert found["why"] == "all words, in a running session: User, 2026-03-28"
    assert hits(vault, "zeppelin", agent="scout") == []


def test_a_number_is_not_found_in_a_longer_one(vault):
    says(vault, "moor at pier 37, then at 7b or v7.1, not at 7")
    (found,) = hits(vault, "pier 37")
    assert found["why"].startswith("all words")
    weighed = WeighedTerms(read("pier 7").terms, [1.0, 1.0])
    text_of = {"pier 37": 0b01, "pier 70": 0b01, "pier 37, 7": 0b11, "berth v7.": 0b10, "": 0}
    assert {text: weighed.find_terms(text) for text in text_of} == text_of
    assert weighed.find_first("37 and 7") == 7


def test_of_a_running_session_the_answer_is_shown_with_its_question(vault):
    says(vault, "Where is the zeppelin moored?", "At the north mast.", "Fine weather.")
    (found,) = hits(vault, "zeppelin")
    assert found["text"] == "User: Where is the zeppelin moored? … Assistant: At the north mast."


def test_what_a_branch_repeats_is_shown_once(vault):
    turns = "User: Where is the quetzal kept?\n\nAssistant: In the {} aviary.\n\n"
    body = turns.format("north") + turns.format("south")
    vault.put(made.transcript(session_id="tried-again", body=body, memory_sentence="The quetzal of lantern is kept."))
    vault.reindex()
    assert hits(vault, "where is the quetzal kept")[0]["text"].count("Where is the quetzal kept?") == 1


def test_a_question_that_nobody_answered_yet_is_no_hit(vault):
    said = "At night the zeppelin is moored to the mast in Lakehurst"
    assert vault.call("remember", said).code == 0
    asked = "Where is the zeppelin moored at night?"
    says(vault, asked)
    assert [hit["text"] for hit in hits(vault, asked)] == [said]
    with open_to_write(str(vault.root), Settings()) as workspace:
        at_prompt = choose_hits(workspace.database, "default", asked, lambda _: True, session_id="new")
    assert [hit.text for hit in at_prompt] == [said]


def test_nothing_crosses_agents_not_even_by_numbers(vault):
    alone = {ask: hits(vault, ask) for ask, *_ in QUESTIONS}
    write(vault, "scout", lambda text: text.replace("lantern", "orrery").replace("retry", "retry retry"))
    vault.reindex()
    assert {ask: hits(vault, ask) for ask, *_ in QUESTIONS} == alone
    assert hits(vault, "orrery") == [] and hits(vault, "lantern", agent="nobody") == []
    theirs = hits(vault, "orrery", agent="scout")
    assert theirs and not {hit["id"] for hit in theirs} & {hit["id"] for found in alone.values() for hit in found}


def test_no_text_raises(vault):
    with vault.database() as database:

        @given(ANY_TEXT | st.text('"()*^:+-{} ANDORNEAR,备aq', max_size=60))
        def holds(text):
            found = recall(database, text, Within("default"), limit=7)
            assert len(found) <= 7
            assert all(hit.text.isprintable() and 0 < hit.score <= 1 for hit in found)

        holds()


def test_a_huge_transcript_is_found_by_its_last_word(vault):
    body = "User: go on\n" + "Assistant: on it goes and on and on\n" * 8_000 + "Assistant: the quokka sleeps\n"
    vault.put(made.transcript(session_id="long", body=body, memory_sentence="A long talk in lantern about going on."))
    vault.reindex()
    found = hits(vault, "sleeping quokka")
    assert [hit["path"] for hit in found] == [made.path_for("transcript", session_id="long")]
    assert "quokka" in found[0]["text"]
    assert "quokka sleeps" in json.dumps(vault.call("expand", found[0]["id"], "--json").json)


def test_what_is_shown_counts_as_accessed_and_never_waits(vault):
    found = hits(vault, "calibration of FH-204")
    counted = dict(vault.rows("select id, accesses from node_telemetry where agent_id = 'default'"))
    assert counted == {hit["id"]: 1 for hit in found}
    blocker = Database(str(vault.db))
    try:
        with blocker.transaction():  # which ends after the answer
            assert hits(vault, "calibration of FH-204") == found
    finally:
        blocker.close()
    assert dict(vault.rows("select id, accesses from node_telemetry")) == counted


def test_the_command_for_people(vault):
    answer = vault.call("recall", "marmalade", "build")
    assert answer.out.startswith("session") and "^k-" in answer.out and "\x1b" not in answer.out
    nothing = vault.call("recall", "xylophone")
    assert (nothing.code, nothing.out, nothing.err.strip()) == (0, "", "nothing answers this")
    assert vault.call("recall").code == 2
    for words, why in {"1f2e3": "seven or more", "HEAD": "seven or more", "1f2e3d4 --words": "omit --words"}.items():
        wrong = vault.call("recall", "--commit", *words.split())
        assert wrong.code == 2 and why in wrong.err
    assert len(hits(vault, "lantern retry heartbeat", "--limit", "2")) == 2


def test_where_every_word_is_common_the_newest_are_searched(vault, monkeypatch):
    monkeypatch.setattr("signet_sync.recall.search.COMMON", 0)
    with vault.database() as database:
        weighed, held = weigh(database, read("marmalade build"), Within("default"))
        assert weighed.common == 0b11 and 0b11 in held.values()
        assert [hit.speaker for hit in recall(database, "marmalade build", Within("default"))] == ["User"]


def test_another_projects_running_session_is_not_of_this_one(vault):
    says(vault, "the zeppelin of lantern leaks")
    assert hits(vault, "zeppelin") and hits(vault, "zeppelin", "--project", "harbor-api") == []


# --- words of every script ------------------------------------------------------------------------------------------

FILLER = "The keeper trimmed the wick and wrote the hour into the book of the tower. "
BODIES = {
    "plain": "The migration of the ledger was rolled back after the smoke test.",
    "far": FILLER * 30 + "Then the heliograph broke." + FILLER * 30,
    "code": "Look at src/main.rs where getUserName calls read_user_row(id) in v1.2.3, see lantern-core and x=1.",
    "accents": "Das Café an der Straße führt naïve Gäste; Ελληνικά και русские слова тоже. Die Größe der Maße.",
    "chinese": "今天我们完成了数据库备份的设计,并且讨论了灯塔项目的下一步计划。",
    "japanese": "昨日、データベースのバックアップを設計しました。サーバーの設定も直した。",
    "korean": "오늘 네트워크를 점검했고 데이터베이스에서 오류를 고쳤습니다.",
    "mixed": "部署到Kubernetes集群之后,latency降到40ms。",
    "thai": "วันนี้เราสำรองฐานข้อมูลแล้ว และ rsync ใช้เวลา 3 นาที",
    "emoji": "Shipped 🚀 with👍rollback and a 👩‍💻 at the desk.",
    "hash": "Reverted in 9f3e1c2, see #884 and PR-17; 'quoted' and state-of-the-art as --dry-run NOT done.",
    "arabic": "تم نسخ قاعدة البيانات احتياطيا; השרת הופעל מחדש",
}


@pytest.fixture(scope="module")
def database():
    index = Database(":memory:")
    files = {}
    for number, (name, body) in enumerate(BODIES.items()):
        day = f"2026-03-{number + 1:02d}T10:00:00.000Z"
        files.update([made.summary(session_id=f"s-{name}", captured_at=day, body=body)])
    files.update([made.summary(agent_id="other", session_id="s-other", body="Their ledger, their secret orrery.")])
    made.fill(index, made.judged(files))
    yield index
    index.close()


WRITTEN = [
    ("HELIOGRAPH broke", "far"), ("smoke test ledger", "plain"), ("src/main.rs", "code"), ("main.rs", "code"),
    ("getusername", "code"), ("read_user_row(id)", "code"), ("lantern-core", "code"), ("v1.2.3", "code"),
    ("cafe", "accents"), ("Gaste", "accents"), ("ελληνικά", "accents"), ("русские слова", "accents"),
    ("Größe", "accents"), ("数据库", "chinese"), ("备", "chinese"), ("灯塔项目", "chinese"), ("ベース", "japanese"),
    ("ー", "japanese"), ("バックアップ 設定", "japanese"), ("데이터베이스", "korean"), ("Kubernetes集群", "mixed"),
    ("latency 40ms", "mixed"), ("ฐานข้อมูล", "thai"), ("rollback 🚀", "emoji"), ("9f3e1c2", "hash"), ("#884", "hash"),
    ("pr-17", "hash"), ("'quoted\"", "hash"), ("state-of-the-art", "hash"), ("reverted NOT (", "hash"),
    ("البيانات", "arabic"), ("השרת", "arabic"), ("\U000105c0", None),
]  # fmt: skip


def test_words_are_found_as_people_write_them(database):
    for query, name in WRITTEN:
        if name is None:  # letters that FTS5 does not know
            assert search(database, read(query), Within("default"))[1] == []
            continue
        day = f"2026-03-{list(BODIES).index(name) + 1:02d}T10:00:00.000Z"
        path = f"memory/{made.summary(session_id=f's-{name}', captured_at=day)[0]}"
        _, matches = search(database, read(query), Within("default"))
        assert path in {one.text.name for one in matches if one.covered > 0.3}, query
        assert path in {file.path for file in files_with(database, query, Within("default"))}, query


def test_every_word_is_in_a_file_and_no_file_is_of_another_agent(database):
    assert len(files_with(database, "ledger smoke", Within("default"))) == 1
    assert files_with(database, "ledger heliograph", Within("default")) == []
    assert files_with(database, "orrery", Within("default")) == [] == files_with(database, "", Within("default"))
    assert [file.path for file in files_with(database, "orrery", Within("other"))]
