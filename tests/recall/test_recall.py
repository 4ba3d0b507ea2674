"""Recall answers from memories down to transcripts, says why, takes any input and never crosses agents."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

import artifacts_fixture as made
import pytest
from hostile_queries import HOSTILE
from hypothesis import given
from hypothesis import strategies as st
from workbench import ROOT, Vault

from signet_sync.app.workspace import opened
from signet_sync.pages.prompt_context import worth_injecting
from signet_sync.recall.best_turns import MOST_SHOWN, best_turns
from signet_sync.recall.dates import date_words
from signet_sync.recall.echoes import is_echo, unanswered, words_of
from signet_sync.recall.operations import recall
from signet_sync.recall.passages import REACH, PassageFinder
from signet_sync.recall.query import MOST_TERMS, read
from signet_sync.recall.rank import (
    CLEAR,
    KEPT,
    TIERS,
    RecallCandidate,
    choose,
    covered,
    for_prompt,
    scored,
    weights,
    why,
)
from signet_sync.recall.snippets import LONGEST_TURN, SNIPPET, label_with_snippet, snippet
from signet_sync.settings.model import Settings
from signet_sync.storage.database.connection import Database
from signet_sync.text.chunking import speaker_at, turns
from signet_sync.text.word_forms import folded, inflections, stem_of

ANY_TEXT = st.text(st.characters(codec=None), max_size=200)


def phrases(text):
    return [term.phrases[0] for term in read(text).terms]


# --- what is asked for ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "terms"), [
    ("What did we decide about the retry loop?", ["decide", "retry", "loop"]),
    ("what's wrong in #884", ["wrong", "884"]),
    ("the who", ["the", "who"]),
    ("src/queue.py and lantern-core", ["src queue py", "lantern core"]),
    ("getUserName", ["getusername"]),
    ("Café", ["cafe"]),
    ("retry retry RETRY", ["retry"]),
    ("备份", ["备 份"]),
    ("灯塔项目", ["灯 塔", "塔 项", "项 目"]),
    ("バックアップの確認", ["バ ッ", "ッ ク", "ク ア", "ア ッ", "ッ プ", "確 認"]),
    ('"quoted" AND NEAR(x, 2) * -', ["quoted", "near x", "2"]),
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
def test_any_text_is_a_query(text):
    query = read(text)
    assert len(query.terms) <= MOST_TERMS
    assert {term.word for term in query.terms} == set(range(query.words))
    for term in query.terms:
        assert not any(mark in phrase for phrase in term.phrases for mark in '"*^:()\0')
        assert not {*term.akin} & {*term.phrases}


@pytest.mark.parametrize(("asked", "written"), [
    ("moving", "moved"), ("move", "moving"), ("measurements", "measured"), ("retries", "retry"), ("retry", "retrying"),
    ("queues", "queue"), ("cache", "caching"), ("dropped", "drop"),
    ("documentation", "documented"),
    ("stay", "stays"), ("lose", "lost"), ("decision", "decided"), ("wrote", "written"), ("process", "processes"),
    ("planned", "planning"),
])  # fmt: skip
def test_other_forms_of_a_word_count(asked, written):
    assert written in inflections(asked)


@pytest.mark.parametrize(("asked", "other"), [("probe", "problem"), ("cat", "category"), ("string", "str")])
def test_other_words_do_not_count(asked, other):
    assert other not in inflections(asked)
    assert stem_of(asked)


@given(ANY_TEXT)
def test_folding_leaves_every_character_where_it_stands(text):
    assert len(folded(text)) == len(text)


# --- where it stands ------------------------------------------------------------------------------------------------


def best(query, text, given=None):
    asked = read(query)
    return PassageFinder(asked.terms, [term.share for term in asked.terms]).best(text, given)


FILLER = "The keeper trimmed the wick and wrote the hour into the book. "


def test_the_passage_is_where_the_words_stand_together():
    text = f"A queue. {FILLER * 6}A broker. {FILLER * 6}The broker fills the queue again. {FILLER * 6}"
    found = best("queue broker", text)
    assert text[found.start :].startswith("broker fills the queue")
    assert set(found.terms) == {0, 1}
    near, far = best("queue broker", "queue broker"), best("queue broker", f"queue {'x' * (REACH // 2)} broker")
    assert near.weight > far.weight > best("queue broker", f"queue {'x ' * REACH} broker").weight


def test_words_of_one_sentence_count_more_than_words_of_two():
    assert best("queue broker", "The queue and its broker").weight > best("queue broker", "The queue. A broker").weight


@pytest.mark.parametrize(("query", "text", "worth"), [
    ("cafe", "Ein Café.", 1.0), ("CAFÉ", "ein cafe", 1.0), ("queues", "the queue", 0.9),
    ("queue.py", "in src/queue.py:12", 1.0),
    ("queue.py", "the queue", 0.5),
    ("getUserName", "how to get user name", 1.0),
    ("журнала", "в журнале", 0.9), ("备份", "完成了数据库备份的设计", 1.0), ("probe", "a problem", 0.0),
    ("use", "because", 0.0), ("4", "#4: the budget", 1.0), ("4", "#42", 0.0),
])  # fmt: skip
def test_a_word_is_found_in_its_forms(query, text, worth):
    found = best(query, text)
    assert (found.start is not None) == bool(worth)
    assert max(found.terms.values(), default=0.0) == worth


def test_what_holds_for_the_whole_text_counts_in_every_passage():
    without, with_project = best("lantern queue", "the queue"), best("lantern queue", "the queue", {0: 1.0})
    assert with_project.weight > without.weight
    assert set(with_project.terms) == {0, 1}


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_is_looked_through(query, text):
    found = best(query, text)
    assert found.start is None or 0 <= found.start < len(text)
    assert 0 <= found.weight <= len(read(query).terms) + 1e-9
    piece = label_with_snippet("label", text, found.start)
    assert piece.isprintable() and len(piece) <= SNIPPET + 20


def test_a_text_full_of_the_words_is_looked_through_in_time_that_grows_with_it():
    def needed(times):
        begun = time.process_time()
        best(" ".join(f"word{n}x" for n in range(30)), " ".join(f"word{n % 30}x" for n in range(2_000 * times)))
        best("a b c d", "a b c d " * 2_000 * times)
        return time.process_time() - begun

    assert min(needed(10) for _ in range(3)) <= 30 * min(needed(1) for _ in range(5))


def test_who_said_it():
    text = "## User · 2026-03-28T10:00:00.000Z\n\nWhy?\n\n## Assistant · 2026-03-28T10:00:05.000Z\n\nBecause.\n"
    theirs = "User: why does it wait?\nAssistant: for the broker\nTool: none is up"
    for talk, said in ((text, "Why?"), (text, "Because."), (theirs, "wait"), (theirs, "broker"), (theirs, "none")):
        who = {"Why?": "User", "wait": "User", "none": "Tool"}.get(said, "Assistant")
        assert speaker_at(list(turns(talk)), talk.index(said)) == who
        assert re.match(f"{who}: .*{re.escape(said)}", snippet(talk, "", said.strip("?."), spoken=True))
    assert speaker_at(list(turns("no turns here")), 3) == ""


def turns_of(*said):
    roles = ("User", "Assistant")
    return "\n\n".join(f"## {roles[n % 2]} · 2026-03-28T10:00:0{n}.000Z\n\n{text}" for n, text in enumerate(said))


def shown_of(query, content):
    asked = read(query)
    found = best_turns(content, list(turns(content)), PassageFinder(asked.terms, [1.0] * len(asked.terms)))
    return [turn.text.strip() for turn in found]


def test_of_a_transcript_the_best_turns_are_shown_in_their_order():
    talk = turns_of("The broker died.", "Fine weather.", "Broker and queue again.", "A queue.", "Broker, queue!", "No.")
    assert shown_of("broker queue", talk) == [
        "The broker died.", "Broker and queue again.", "A queue.", "Broker, queue!",
    ]  # fmt: skip
    assert shown_of("broker queue", "no turns, but a broker") == []
    long = turns_of(*(f"broker {FILLER * 6}" for _ in range(5)))
    assert len(shown_of("broker", long)) == MOST_SHOWN // LONGEST_TURN


def test_an_answer_is_shown_though_it_repeats_no_word_of_its_question():
    talk = turns_of("Which queue does the broker run?", "RabbitMQ.", *("A queue.", "Well.") * 4)
    assert "RabbitMQ." in shown_of("queue broker runs", talk)
    assert "RabbitMQ." not in shown_of("queue broker runs", talk.replace("?", "."))


def test_what_a_named_speaker_said_comes_first():
    talk = turns_of(*("Bo: We sail at noon, Ada.", "Well.") * 5, "Ada: I sail as well.", "Well.")
    assert "Ada: I sail as well." in shown_of("when does Ada sail", talk)


# --- which of it is shown -------------------------------------------------------------------------------------------


def candidate(tier, score, name="a", *, text=None, session=None, at_us=0, terms=(0,), by_rules=False):
    text = f"{tier} {name}" if text is None else text
    held = dict.fromkeys(terms, 1.0)
    return RecallCandidate(tier, f"{tier}-{name}", text, None, at_us, score, held, "a note", session, by_rules)


def shown(candidates, limit=10):
    return [hit.id for hit in choose(candidates, limit)]


def test_the_better_comes_first_and_of_equal_ones_the_tiers_in_their_order():
    found = [candidate(tier, score, name) for tier in reversed(TIERS) for name, score in (("x", 0.9), ("y", 1.0))]
    assert shown(found, 20) == [f"{tier}-{name}" for name in "yx" for tier in TIERS]


def test_a_weak_fact_does_not_push_the_summary_that_answers():
    weak = [candidate("fact", 0.49, str(number)) for number in range(9)]
    assert shown([*weak, candidate("node", 1.0)]) == ["node-a"]


def test_the_newer_of_two_that_match_as_well_comes_first():
    assert shown([candidate("fact", 0.9, "old", at_us=1), candidate("fact", 0.901, "new", at_us=2)])[0] == "fact-new"


def test_nothing_is_said_twice():
    same = [candidate("memory", 1.0, text="Use SQLite."), candidate("fact", 1.0, text="use  sqlite")]
    assert shown(same) == ["memory-a"]


def test_a_session_is_one_hit_in_its_own_words_unless_its_summary_answers_better():
    ours, theirs = ("token", "one"), ("token", "two")
    found = [
        candidate("node", 1.0, session=ours),
        candidate("transcript", 0.95, "ours", session=ours),
        candidate("transcript", 0.9, "theirs", session=theirs),
        candidate("transcript", 0.8, "again", session=theirs),
    ]
    assert [(hit.id, hit.score) for hit in choose(found, 10)] == [("transcript-ours", 1.0), ("transcript-theirs", 0.9)]
    assert shown([found[0], candidate("transcript", 0.8, "ours", session=ours)]) == ["node-a"]


def test_rules_never_stand_for_the_words_that_they_were_made_from():
    ours = ("token", "one")
    thread, digest = (candidate(tier, 1.0, session=ours, by_rules=True) for tier in ("thread", "node"))
    said = candidate("transcript", 0.3, session=ours)
    assert [(hit.id, hit.score) for hit in choose([thread, digest, said], 10)] == [("transcript-a", 1.0)]
    assert shown([thread, candidate("node", 0.8, "model", session=ours), said]) == ["node-model"]
    assert shown([thread, digest]) == ["thread-a"]


def test_where_nothing_answers_well_more_is_shown():
    good = [candidate("fact", 0.9, "best"), candidate("fact", 0.4, "weak")]
    poor = [candidate("fact", 0.3, "best"), candidate("fact", 0.1, "weak")]
    assert shown(good) == ["fact-best"]
    assert shown(poor) == ["fact-best", "fact-weak"]


def test_words_that_are_said_more_often_or_side_by_side_score_more():
    texts = ["the queue", "queue and queue", "queue broker", f"broker {FILLER}queue"]
    once, twice, beside, apart = (scored([1.0, 1.0], best("queue broker", text), 1.0) for text in texts)
    assert once < twice < apart < beside
    assert (
        scored([1.0, 1.0], best("queue broker", texts[0]), 9.0) < once < scored([1.0, 1.0], best("queue", "queue"), 0.0)
    )
    assert covered([1.0, 1.0], best("queue broker", texts[1]), 1.0) == covered(
        [1.0, 1.0], best("queue broker", texts[0]), 9.0
    )


def test_a_condensation_is_not_needed_where_a_summary_below_answers():
    summary, arc = candidate("node", 0.9, session=("t", "s")), candidate("node", 0.9, "arc")
    assert shown([summary, arc]) == ["node-a"]
    assert shown([summary, candidate("node", 1.0, "arc")]) == ["node-arc", "node-a"]


@given(
    st.lists(
        st.builds(
            candidate,
            st.sampled_from(TIERS),
            st.floats(0, 1),
            st.text("abcdef", min_size=1, max_size=2),
            session=st.none() | st.tuples(st.just("t"), st.sampled_from("xyz")),
            at_us=st.integers(0, 3),
        ),
        max_size=40,
    ),
    st.integers(1, 30),
)
def test_what_is_shown_is_good_distinct_and_in_order(candidates, limit):
    candidates = list({one.id: one for one in candidates}.values())
    hits = choose(candidates, limit)
    assert hits == choose(list(reversed(candidates)), limit)
    assert len(hits) <= limit
    assert bool(hits) == any(one.score > 0 for one in candidates)
    places = [(-round(hit.score, 2), TIERS.index(hit.tier)) for hit in hits]
    assert [place[0] for place in places] == sorted(place[0] for place in places)
    sessions = [hit.session for hit in hits if hit.session is not None and hit.tier in ("node", "transcript")]
    assert len(set(sessions)) == len(sessions)
    most = max((one.score for one in candidates), default=0.0)
    assert all(hit.score >= KEPT * most * min(1, most / CLEAR) for hit in hits)
    assert len({hit.text for hit in hits}) == len(hits)


def test_why_is_short_and_true():
    query = read("what about the queue, the broker and 备份设计?")
    assert query.words == 3
    assert why(query, candidate("fact", 1.0, terms=range(5))) == "all words, in a note"
    assert why(query, candidate("fact", 1.0, terms=(0, 2, 3))) == "1 of 3 words, in a note"
    assert why(query, candidate("fact", 1.0, terms=(2,))) == "part of a word, in a note"
    assert why(read("queue"), candidate("fact", 1.0)) == "the word, in a note"


def test_a_rare_word_tells_more_and_an_unknown_one_most():
    common, rare, unknown = weights(read("common rare unknown"), [90, 2, 0], 100)
    assert 0 < common < rare < unknown


def test_a_prompt_is_answered_by_transcripts_only_if_nothing_else_answers():
    query = read("please fix the queue and its broker in src/lantern/queue.py today")
    assert for_prompt(read("the and of"), [candidate("fact", 1.0, terms=(0, 1))], 5) == []
    both = [candidate("fact", 0.5, terms=(0, 1)), candidate("transcript", 0.5, terms=(0, 1))]
    assert [hit.tier for hit in for_prompt(query, both, 5)] == ["fact"]
    assert [hit.tier for hit in for_prompt(query, both[1:], 5)] == ["transcript"]


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


@pytest.fixture
def vault(tmp_path):
    vault = Vault(tmp_path / "vault")
    write(vault)
    vault.reindex()
    return vault


def hits(vault, *words, **given):
    answer = vault.call("recall", "--json", "--agent", given.get("agent", "default"), *words)
    assert answer.code == 0, answer
    return answer.json["hits"]


def test_ten_questions_are_answered_at_the_top(vault):
    for ask, name, kind in QUESTIONS:
        found = hits(vault, ask)
        assert found and found[0]["path"] == path_of(name, kind), (ask, found)


def test_a_hit_says_what_it_is_and_why_and_leads_on(vault):
    found = hits(vault, "what did we decide about retries")
    assert list(found[0]) == ["tier", "id", "text", "path", "score", "why"]
    assert [hit["score"] for hit in found] == sorted((hit["score"] for hit in found), reverse=True)
    fact = found[0]
    assert (fact["tier"], fact["text"]) == ("fact", "Retries are capped at five, with a jitter of 200 ms.")
    assert fact["why"].endswith("in a decision of lantern, 2026-03-02")
    marmalade = hits(vault, "marmalade build")[0]
    assert marmalade["tier"] == "transcript" and "marmalade" in marmalade["text"]
    assert marmalade["why"] == "all words, in a transcript of lantern: User, 2026-03-02"
    for hit in (*found, marmalade):
        assert vault.call("expand", hit["id"]).code == 0


def test_a_transcript_shows_the_turns_that_answer_whole_and_who_said_them(vault):
    (hit,) = hits(vault, "marmalade build")[:1]
    assert hit["tier"] == "transcript"
    said = [line for line in (vault / hit["path"]).read_text().split("\n") if "marmalade" in line]
    assert said and all(line in hit["text"] for line in said[:2]), hit


def test_where_two_turns_that_are_cut_meet_one_sign_says_so(tmp_path):
    vault = Vault(tmp_path / "vault")
    long = " and then some more of it" * 30
    said = "".join(f"## User\n\nFirst{long}, the tangerine {word},{long}.\n\n" for word in ("gate", "lock"))
    vault.session(1, body=said)
    vault.reindex()
    (hit,) = [hit for hit in hits(vault, "tangerine gate lock") if hit["tier"] == "transcript"]
    assert "gate" in hit["text"] and "lock" in hit["text"] and "… …" not in hit["text"], hit


@pytest.mark.parametrize(("asked", "named"), [
    ("what did we do in May 2023?", [("may", "month", (5,)), ("2023", "year", (2023,))]),
    ("we may use the cache", []),
    ("on July 12th or last spring", [("july", "month", (7,)), ("12th", "day", (12,)), ("spring", "month", (3, 4, 5))]),
    ("port 2050 and 12 retries on Monday", [("2050", "year", (2050,)), ("monday", "weekday", (0,))]),
])  # fmt: skip
def test_dates_that_a_question_names(asked, named):
    assert [tuple(one) for one in date_words(asked)] == named


def test_a_question_about_a_time_is_answered_from_that_time_alone(vault):
    early = vault.call("remember", "Lantern retries at dusk.", "--now", "2026-03-05T10:00:00Z", "--json").json["id"]
    late = vault.call("remember", "Lantern retries at dawn.", "--now", "2026-04-05T10:00:00Z", "--json").json["id"]

    def found(*given):
        shown = [hit for hit in hits(vault, *given) if hit["tier"] != "thread"]
        return {hit["path"][7:17] if hit["path"] else hit["id"] for hit in shown}

    asked = ("lantern retries heartbeat backup gauges",)
    now = ("--now", "2026-04-12T00:00:00Z")
    assert found(*asked, "--limit", "50") >= {early, late, "2026-03-02", "2026-03-09"}
    assert found(*asked, "--until", "2026-03-05", "--limit", "50") == {early, "2026-03-02", "2026-03-05"}
    assert found(*asked, "--since", "2026-03-09", "--until", "2026-03-13") == {"2026-03-09"}
    assert found(*asked, "--since", "60d", "--until", "6w", *now) == set()
    assert found(*asked, "--until", "38d", *now) == {"2026-03-02"}
    assert found(*asked, "--since", "1w", *now) == {late}
    wrong = vault.call("recall", "x", "--since", "lately")
    assert wrong.code == 2 and "2026-03-28" in wrong.err and "3w" in wrong.err


def test_a_session_is_found_by_its_date_though_no_word_of_it_says_so(vault):
    assert {hit["path"][7:14] for hit in hits(vault, "marmalade in March")} == {"2026-03"}
    (first, *_) = hits(vault, "lantern on March 2")
    assert "2026-03-02" in first["why"]


def test_what_was_remembered_comes_first_and_a_private_one_is_shown_to_its_agent(vault):
    assert vault.call("remember", "Ada keeps the marmalade key under the mat", "--private").code == 0
    assert [hit["tier"] for hit in hits(vault, "marmalade")] == ["memory", "transcript"]
    memory = hits(vault, "marmalade key")[0]
    assert memory["path"] is None and memory["why"].startswith("all words, in a remembered note, ")


def says(vault, *texts):
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "signet_sync", "--workspace", vault.root, "transcript", "append"]
    for number, text in enumerate(texts):
        role = "user" if number % 2 == 0 else "assistant"
        turn = {"turn": number, "role": role, "text": text, "at": f"2026-03-28T10:00:0{number}Z"}
        subprocess.run([*command, "--session-key", "k 1"], input=json.dumps(turn).encode(), env=environ, check=True)


def test_a_running_session_is_found_as_soon_as_it_speaks(vault):
    says(vault, "the zeppelin leaks")
    found = hits(vault, "zeppelins leaking")
    assert [(hit["tier"], hit["id"], hit["path"]) for hit in found] == [("transcript", "k 1#0", None)]
    assert found[0]["why"] == "all words, in a running session: User, 2026-03-28"
    assert hits(vault, "zeppelin", agent="scout") == []


def test_of_a_running_session_the_answer_is_shown_with_its_question(vault):
    says(vault, "Where is the zeppelin moored?", "At the north mast.", "Fine weather.")
    (found,) = hits(vault, "zeppelin")
    assert found["text"] == "User: Where is the zeppelin moored? … Assistant: At the north mast."


def test_a_question_that_nobody_answered_is_no_answer(vault):
    said = "At night the zeppelin is moored to the mast in Lakehurst"
    assert vault.call("remember", said).code == 0
    asked = "Where is the zeppelin moored at night?"
    vault.put(made.transcript(session_id="asks", captured_at="2026-03-03T10:00:00.000Z", body=f"## User\n\n{asked}\n"))
    vault.reindex()
    says(vault, f"Is the ladder sound? {asked}")
    assert [hit["text"] for hit in hits(vault, asked)][:1] == [said]
    assert said in vault.call("context", "--prompt", asked).out
    with opened(str(vault.root), Settings()) as workspace:
        at_prompt = worth_injecting(workspace.database, "default", asked, lambda _: True, session_id="new")
    assert [hit.text for hit in at_prompt] == [said]
    found = hits(vault, "ladder sound")
    assert found[0]["text"].startswith("Is the ladder sound?"), "alone it is still found"


@pytest.mark.parametrize(("text", "echo"), [
    ("who reviews the parser?", True),
    ("What colour are widgets, and who reviews the parser?\nAnd why?", True),
    ("parser reviewers", True), ("パーサーは誰が見ますか", True),
    ("Mona reviews the parser.", False),
    ("The widgets are mine. Who reviews the parser?", False),
    ("Is it so? Yes.", False),
])  # fmt: skip
def test_what_only_asks_or_repeats_is_an_echo(text, echo):
    assert is_echo(text, words_of(read("who reviews the parser"))) == echo


def test_what_is_said_at_a_place_is_unanswered_unless_somebody_speaks_later():
    both = "## User · x\n\nOne?\n\n## Assistant · x\n\nYes.\n\n## User · x\n\nTwo?\n"
    assert unanswered(both, both.index("One")) == unanswered(both, both.index("Yes")) == ""
    assert unanswered(both, both.index("Two")).strip() == "Two?" and unanswered("Two?", 0) == ""
    assert unanswered("## User\n\nTwo?", 0).strip() == "Two?"


def test_nothing_crosses_agents_not_even_by_numbers(vault):
    alone = {ask: hits(vault, ask) for ask, *_ in QUESTIONS}
    write(vault, "scout", lambda text: text.replace("lantern", "orrery").replace("retry", "retry retry"))
    vault.reindex()
    assert {ask: hits(vault, ask) for ask, *_ in QUESTIONS} == alone
    assert hits(vault, "orrery") == [] and hits(vault, "lantern", agent="nobody") == []
    theirs = hits(vault, "orrery", agent="scout")
    assert theirs and not {hit["id"] for hit in theirs} & {hit["id"] for found in alone.values() for hit in found}


@pytest.mark.parametrize("asked", ["marmelade", "marmalde", "amrmalade", "marmalades", "marmaladde"])
def test_a_word_that_no_text_has_finds_words_spelled_alike(vault, asked):
    vault.put(made.summary(session_id="jam", captured_at="2026-03-03T10:00:00.000Z", body="The marmalade is stirred."))
    vault.put(
        made.summary(agent_id="scout", session_id="nut", captured_at="2026-03-03T10:00:00.000Z", body="Margarine.")
    )
    vault.reindex()
    found = {hit["text"] for hit in hits(vault, f"what of the {asked}")}
    assert any("marmalade" in text for text in found) == (asked[0] == "m")
    assert not any("Margarine" in text for text in found)


def test_a_word_that_some_text_has_is_taken_as_it_is(vault):
    for name, word in (("one", "quincey"), ("two", "quinces")):
        vault.put(made.summary(session_id=name, captured_at="2026-03-03T10:00:00.000Z", body=f"The {word} pantry."))
    vault.reindex()
    assert ["quincey" in hit["text"] for hit in hits(vault, "quincey")] == [True]


def test_a_removed_word_is_found_by_no_spelling(vault):
    vault.put(made.summary(session_id="jam", captured_at="2026-03-03T10:00:00.000Z", body="The persimmon is stirred."))
    vault.reindex()
    assert hits(vault, "persimon")
    assert vault.call("remove", "jam", "--yes", "--reason", "spilled").code == 0
    assert not any("persimmon" in str(hit) for hit in hits(vault, "persimon"))


def test_another_agent_that_says_it_louder_drowns_nothing(vault):
    quiet = "The marmalade build waits for the quince key"
    loud = f"{quiet} of the pantry"
    for number in range(30):
        day = f"2026-03-{number % 28 + 1:02d}T{number % 24:02d}:30:00.000Z"
        vault.put(made.summary(agent_id="scout", session_id=f"loud-{number}", captured_at=day, body=f"{loud} {number}"))
    vault.put(made.summary(session_id="quiet", captured_at="2026-01-01T10:00:00.000Z", body=quiet))
    vault.reindex()
    for agent, text in [("default", quiet), *(("scout", f"{loud} {number}") for number in range(25))]:
        assert vault.call("remember", text, "--agent", agent).code == 0
    found = hits(vault, "marmalade quince pantry")
    assert [hit["tier"] for hit in found][:2] == ["memory", "node"]
    assert not any("of the pantry" in hit["text"] for hit in found)
    assert found[1]["path"] == made.path_for("summary", session_id="quiet", captured_at="2026-01-01T10:00:00.000Z")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_any_input_is_answered(vault, text):
    with vault.database() as database:
        for hit in recall(database, text, agent_id="default"):
            assert hit.text.isprintable() and hit.why
    answer = vault.call("recall", "--", text)
    assert answer.code == 0 and "Traceback" not in answer.err and not {"\0", "\x1b"} & {*answer.out}, answer


def test_a_shell_gives_what_it_likes(vault):
    """Arguments of a real process: a megabyte in several of them, and bytes that are no UTF-8."""
    for words in (["retry " * 20_000] * 8, [b"retry \xff\xed\xa0\x80"], ["retry"] * 20_000, ["\x01\x02\x1b[31m retry"]):
        for ask, options in ((vault.spawn, []), (vault.call, ["--json"])):
            answer = ask("recall", *options, *map(os.fsdecode, words))
            assert (answer.code, answer.err) == (0, ""), answer
            assert "retry" in answer.out and "\x1b" not in answer.out


def test_no_text_raises(vault):
    with vault.database() as database:

        @given(ANY_TEXT | st.text('"()*^:+-{} ANDORNEAR,备aq', max_size=60))
        def holds(text):
            found = recall(database, text, agent_id="default", limit=7)
            assert len(found) <= 7
            assert all(hit.text.isprintable() and 0 < hit.score <= 1 for hit in found)

        holds()


def test_a_huge_transcript_is_found_by_its_last_word(vault):
    body = "User: go on\n" + "Assistant: on it goes and on and on\n" * 30_000 + "Assistant: the quokka sleeps\n"
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
    assert answer.out.startswith("transcript") and "^k-" in answer.out and "\x1b" not in answer.out
    nothing = vault.call("recall", "xylophone")
    assert (nothing.code, nothing.out, nothing.err.strip()) == (0, "", "nothing found")
    assert vault.call("recall").code == 2
    assert len(hits(vault, "lantern", "--limit", "2")) == 2
