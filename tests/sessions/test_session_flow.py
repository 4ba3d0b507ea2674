"""Session ends and compactions as their caller sees them: what is written, what is not, and what is answered."""

from __future__ import annotations

import artifacts_fixture as made
import pytest
from session_inputs import (
    FIRST,
    SECOND,
    SENTENCE,
    SUMMARY,
    THIRD,
    WHO,
    body,
    compact,
    end,
    everything,
    fields,
    journal,
    moment,
    refuse,
    say,
    segments,
    sound,
    written,
)

from signet_sync.formats.body import normalize
from signet_sync.sessions.live import store as live
from signet_sync.storage.database.connection import Database

TOKEN = made.token_for(session_id=WHO["session_id"])


def test_the_answer_has_the_shape_that_is_promised(vault):
    answer = end(vault, captured_at=moment(0), summary=SUMMARY, memory_sentence=SENTENCE)
    assert answer == {
        "agent_id": "default", "session_id": WHO["session_id"], "session_token": TOKEN,
        "summary": f"memory/2026-03-20T10-00-00.000Z--{TOKEN}--summary.md",
        "transcript": f"memory/2026-03-20T10-00-00.000Z--{TOKEN}--transcript.md",
        "manifest": f"memory/2026-03-20T10-00-00.000Z--{TOKEN}--manifest.md",
        "sentence": SENTENCE, "sentence_quality": "ok", "idempotent_replay": False, "redactions": {},
    }  # fmt: skip
    assert written(vault) == sorted(answer[kind] for kind in ("summary", "transcript", "manifest"))
    sound(vault)


def test_an_ending_is_on_the_page_and_in_search_when_it_is_answered(vault):
    answer = end(vault, session_key="agent:main/third", summary=SUMMARY, memory_sentence=SENTENCE)
    (row,) = [line for line in vault.page().splitlines() if line.startswith("- 20")]
    assert "session=agent:main/third" in row and SENTENCE in row
    assert all(f"[[{answer[kind]}|{kind}]]" in row for kind in ("summary", "transcript", "manifest"))
    assert set(vault.hits("drain")) == {answer["transcript"], answer["summary"]}
    assert fields(vault, answer["manifest"])["memory_md_refs"] == ["Session Ledger (Last 30 Days)"]


# ── segments ──


def test_ending_again_writes_exactly_the_rest(vault):
    whole = ""
    for number, more in enumerate([FIRST, SECOND, THIRD]):
        whole += more
        end(vault, captured_at=moment(number), transcript=whole)
    assert segments(vault) == [normalize(part).lstrip("\n") for part in (FIRST, SECOND, THIRD)]
    assert len(written(vault, "manifest")) == 1
    sound(vault)


def test_a_tail_is_written_as_it_is(vault):
    end(vault, captured_at=moment(0))
    end(vault, captured_at=moment(1), transcript=SECOND, transcript_is="tail")
    end(vault, captured_at=moment(2), transcript=FIRST + SECOND + THIRD)
    assert segments(vault) == [normalize(part) for part in (FIRST, SECOND, THIRD.lstrip("\n"))]


@pytest.mark.parametrize("given", [{}, {"summary": SUMMARY}, {"idempotency_key": "k", "captured_at": moment(5)}])
def test_nothing_new_writes_nothing(vault, given):
    first = end(vault, captured_at=moment(0), summary=SUMMARY)
    before = everything(vault)
    answer = end(vault, **given)
    assert answer == {**first, "idempotent_replay": True}
    assert everything(vault) == before


def test_clocks_that_run_backwards_make_no_overlap_and_no_gap(vault):
    end(vault, captured_at=moment(20), transcript=FIRST)
    end(vault, captured_at=moment(10), transcript=FIRST + SECOND)
    end(vault, captured_at=moment(15), transcript=FIRST + SECOND + THIRD)
    assert sorted(segments(vault)) == sorted(normalize(part).lstrip("\n") for part in (FIRST, SECOND, THIRD))
    assert fields(vault, written(vault, "manifest")[0])["transcript_path"] == written(vault, "transcript")[-1]
    sound(vault)


def test_a_rewritten_transcript_is_a_segment_of_its_own_and_goes_on_from_there(vault):
    other = "# Anew\n\n## User\n\nStart over.\n"
    end(vault, captured_at=moment(0))
    end(vault, captured_at=moment(1), transcript=other)
    end(vault, captured_at=moment(2), transcript=other + SECOND)
    assert segments(vault) == [normalize(part) for part in (FIRST, other, SECOND.lstrip("\n"))]


# ── replays and refusals ──


@pytest.mark.parametrize("key", [{}, {"idempotency_key": "once"}])
@pytest.mark.parametrize("kind", ["end", "compact"])
def test_a_replay_is_known_after_the_database_was_lost(vault, key, kind):
    first = end(vault, kind, **key)
    for path in vault.db.parent.glob(f"{vault.db.name}*"):
        path.unlink()
    before = {k: v for k, v in everything(vault).items() if k.startswith("vault/memory")}
    assert end(vault, kind, **key) == {**first, "idempotent_replay": True}
    assert {k: v for k, v in everything(vault).items() if k.startswith("vault/memory")} == before


def test_one_key_for_two_contents_is_a_conflict(vault):
    end(vault, idempotency_key="once", captured_at=moment(0))
    before = everything(vault)
    for given in ({"transcript": FIRST + SECOND}, {"summary": SUMMARY}, {"project": "/elsewhere"}):
        error = refuse(vault, "idempotency-conflict", idempotency_key="once", captured_at=moment(0), **given)
        assert "key" in error["message"]
    assert everything(vault) == before
    assert not end(vault, agent_id="nova", idempotency_key="once", captured_at=moment(0))["idempotent_replay"]


@pytest.mark.parametrize("key", [{}, {"idempotency_key": "once"}])
def test_a_name_that_is_taken_is_refused(vault, key):
    first = end(vault, captured_at=moment(0), transcript="One thing was said in src/a.py.")
    original = (vault / first["transcript"]).read_bytes()
    other = {"transcript": "Another thing was said in src/b.py.", **key}
    error = refuse(vault, "name-taken", captured_at=moment(0), **other)
    assert error["path"] == first["transcript"]
    assert refuse(vault, "name-taken", captured_at=moment(0), **other) == error
    assert (vault / first["transcript"]).read_bytes() == original
    vault.reindex()
    assert journal(vault) == []

    answer = end(vault, captured_at=moment(1), **other)
    assert not answer["idempotent_replay"]
    assert body(vault, answer["transcript"]) == other["transcript"]
    assert end(vault, captured_at=moment(1), **other) == {**answer, "idempotent_replay": True}
    sound(vault)


def test_two_sessions_of_one_key_at_the_same_moment(vault):
    shared = {"session_key": "agent:main:main", "captured_at": moment(0)}
    first = end(vault, session_id="a", **shared)
    second = compact(vault, session_id="b", **shared)
    assert first["manifest"] != second["manifest"]
    assert fields(vault, second["manifest"])["session_id"] == "b"
    refuse(vault, "name-taken", session_id="c", transcript="Other words of src/c.py.", **shared)
    moved = end(vault, session_id="c", transcript="Other words of src/c.py.", **shared | {"captured_at": moment(1)})
    assert fields(vault, moved["manifest"])["session_id"] == "c"
    sound(vault)


def test_an_ending_of_a_removed_session_is_refused_until_that_is_undone(vault):
    first = end(vault, captured_at=moment(0), idempotency_key="once")
    assert vault.call("remove", WHO["session_id"], "--reason", "asked", "--yes").code == 0
    before = everything(vault)
    for given in ({}, {"idempotency_key": "once", "captured_at": moment(0)}, {"transcript": FIRST + SECOND}):
        error = refuse(vault, "removed-session", **given)
        assert "--undo" in error["hint"]
    refuse(vault, "removed-session", kind="compact")
    assert everything(vault) == before
    assert vault.call("remove", WHO["session_id"], "--undo").code == 0
    assert end(vault, captured_at=moment(0), idempotency_key="once") == first
    assert not compact(vault)["idempotent_replay"]
    sound(vault)


def test_one_manifest_leads_to_the_newest_and_links_to_all(vault):
    answers = [end(vault, captured_at=moment(0), started_at=moment(0), ended_at=moment(1))]
    answers.append(compact(vault, captured_at=moment(2)))
    answers.append(end(vault, captured_at=moment(3), ended_at=moment(3), transcript=FIRST + SECOND))
    assert {answer["manifest"] for answer in answers} == {f"memory/2026-03-20T10-00-00.000Z--{TOKEN}--manifest.md"}
    head = fields(vault, answers[0]["manifest"])
    assert (head["summary_path"], head["transcript_path"]) == (answers[2]["summary"], answers[2]["transcript"])
    assert head["compaction_path"] == answers[1]["compaction"]
    assert (head["captured_at"], head["started_at"], head["ended_at"]) == (moment(0), moment(0), moment(3))
    links = body(vault, answers[0]["manifest"])
    for answer in answers:
        for kind in ("summary", "transcript", "compaction"):
            assert answer.get(kind) is None or f"[[{answer[kind]}|{kind}]]" in links


def test_what_a_person_wrote_into_a_manifest_stays(vault):
    path = vault / end(vault, captured_at=moment(0))["manifest"]
    text = path.read_text()
    assert text.count("---\n") == 2
    path.write_text(text.replace("hash_scope:", 'tags:\n  - "mine"\nhash_scope:', 1) + "\nMy own *words*, kept.\n")
    vault.reindex(now=moment(9))
    end(vault, captured_at=moment(1), transcript=FIRST + SECOND)
    compact(vault, captured_at=moment(2))
    assert "\nMy own *words*, kept.\n" in path.read_text()
    assert fields(vault, f"memory/{path.name}")["tags"] == ["mine"]
    assert len(body(vault, f"memory/{path.name}").split("[[")) == 6


def test_live_turns_go_only_after_everything_is_written(vault):
    vault.reindex()
    database = Database(str(vault.db))
    with database.transaction():
        for key in ("main", "other"):
            live.buffer(database, "default", key, [live.LiveTurn(1, "user", "said", moment(0))])
    database.connection.close()
    (vault / f"memory/2026-03-20T10-00-00.000Z--{made.token_for(session_key='main')}--summary.md").write_text("taken\n")
    refuse(vault, "name-taken", session_key="main", captured_at=moment(0))
    assert vault.rows("select session_key from session_transcripts order by 1") == [("main",), ("other",)]
    end(vault, session_key="main", captured_at=moment(1))
    assert vault.rows("select session_key from session_transcripts") == [("other",)]


@pytest.mark.parametrize("sentence", [
    "Worked on task.", "Too short.", "word " * 60 + "src/queue.py.",
    "Nothing here names anything of what was done in all of these many words at all.",
    SENTENCE.rstrip("."), f"{SENTENCE} {SENTENCE}", "\x00\x1b[31m", "<!-- signet:end 0000000000000000 -->", "", "   ",
])  # fmt: skip
def test_a_bad_sentence_gives_way_to_a_true_one(vault, sentence):
    told = say(vault, memory_sentence=sentence, summary=SUMMARY)
    answer = told.json
    assert answer["sentence_quality"] == "fallback"
    assert ("the proposed sentence" in told.err) is bool(sentence.strip("\x00\x1b[31m "))
    assert "src/queue.py retries for ever" in answer["sentence"] and "was asked" not in answer["sentence"]
    sound(vault)


# ── summaries ──


def test_a_session_of_which_only_a_summary_is_left(vault):
    answer = end(vault, transcript="", summary=SUMMARY, captured_at=moment(0))
    assert body(vault, answer["transcript"]) == ""
    end(vault, captured_at=moment(1))
    assert segments(vault) == ["", normalize(FIRST)]
    sound(vault)


def test_a_whole_that_says_less_than_what_is_kept_writes_nothing(vault):
    end(vault, captured_at=moment(0), transcript=FIRST + SECOND)
    end(vault, captured_at=moment(1), transcript=FIRST + SECOND + THIRD)
    before = everything(vault)
    for less in (FIRST, FIRST + SECOND, "# Queue\n"):
        assert end(vault, transcript=less)["idempotent_replay"], less
    assert everything(vault) == before


def test_a_compaction_before_any_ending_names_the_manifest(vault):
    compaction = compact(vault, captured_at=moment(0))
    answer = end(vault, captured_at=moment(5))
    assert answer["manifest"] == compaction["manifest"]
    head = fields(vault, answer["manifest"])
    assert head["captured_at"] == moment(0)
    assert (head["compaction_path"], head["summary_path"]) == (compaction["compaction"], answer["summary"])
